//! A machine that reports success and did nothing, and the proof that an idle pass writes nothing.

mod support;

use std::fs;
use std::process::Command;

use nox_mesh_host::digest::{hex, sha256};
use support::root::{declared, is_root, run, Root, Run, HOST};
use support::{has, skip, Lacks};

/// Runs the host under strace(1), which makes the named calls lie; what it traced.
fn lied_to(root: &Root, lies: &[&str], args: &[&str]) -> Run {
    let trace = root.scratch.join("trace");
    let mut strace = Command::new("strace");
    strace.args(["-qq", "-f", "-o"]).arg(&trace).args(lies);
    run(strace.arg(HOST).args(["--json", "--root"]).arg(root.dir()).args(args))
}

/// Whether strace can trace here.
fn can_trace(test: &str) -> bool {
    if !has("strace", test) {
        return false;
    }
    let traced = Command::new("strace").args(["-qq", "-o", "/dev/null", "true"]).output().unwrap();
    if !traced.status.success() {
        skip(test, &Lacks::Machine("the privilege of ptrace(2)"));
    }
    traced.status.success()
}

/// No host records what it did not see to be so, nor leaves anything behind once it is.
fn after_the_lie(root: &Root, call: &str, run: &Run, applied_before: usize) {
    assert_eq!(run.code, 1, "{call}: {}{}", run.out, run.err);
    assert_eq!(run.report()["outcome"], "failed", "{call}");
    assert_eq!(root.recorded("applied").len(), applied_before, "{call}: {}", root.journal());
    let honest = root.reconcile();
    assert_eq!(honest.code, 0, "{call}: {}", honest.err);
    let before = root.tree();
    root.reconcile();
    assert_eq!(root.tree(), before, "{call}");
    let stray = before.keys().find(|path| path.to_string_lossy().ends_with(".mesh-host~"));
    assert_eq!(stray, None, "{call}");
}

const FILE: &str = r#"{"id":"r","type":"file","path":"/s/f","content":"new","mode":"0640"}"#;
const DIRECTORY: &str = r#"{"id":"r","type":"directory","path":"/s/d","mode":"0710"}"#;
const LINK: &str = r#"{"id":"r","type":"symlink","path":"/s/l","target":"new"}"#;

// R-5, R-6
#[test]
fn a_lying_kernel_fails_what_is_to_be_made() {
    if !can_trace("a_lying_kernel_fails_what_is_to_be_made") {
        return;
    }
    for (what, resource, calls) in [
        ("file", FILE, &["renameat2", "fchmod"][..]),
        ("directory", DIRECTORY, &["renameat2", "fchmod", "mkdirat"]),
        ("link", LINK, &["renameat2", "symlinkat"]),
    ] {
        for call in calls {
            let root = Root::new(&format!("make-{what}-{call}"));
            let file = root.declare("local.json", &declared(resource));
            let lie = format!("inject={call}:retval=0");
            let run = lied_to(&root, &["-e", &lie], &["apply", &file]);
            assert_eq!(run.outcomes(), ["r failed"], "{what} {call}");
            after_the_lie(&root, &format!("{what} {call}"), &run, 0);
        }
    }
}

// R-5, R-6
#[test]
fn a_lying_kernel_fails_what_is_to_be_changed() {
    if !can_trace("a_lying_kernel_fails_what_is_to_be_changed") {
        return;
    }
    let mode = FILE.replace("0640", "0600");
    let text = FILE.replace("new", "other");
    let target = LINK.replace("new", "other");
    for (what, first, then, call) in [
        ("contents", FILE, &*text, "renameat"),
        ("mode", FILE, &*mode, "fchmod"),
        ("target", LINK, &*target, "renameat"),
        ("directory", DIRECTORY, &*DIRECTORY.replace("0710", "0700"), "fchmod"),
    ] {
        let root = Root::new(&format!("change-{what}"));
        root.converge(first);
        let file = root.declare("local.json", &declared(then));
        let lie = format!("inject={call}:retval=0");
        let run = lied_to(&root, &["-e", &lie], &["apply", &file]);
        assert_eq!(run.outcomes(), ["r failed"], "{what}");
        assert_eq!(run.errors()[0][..2], ["read_back", "r"], "{what}");
        assert!(run.err.contains("the steps reported success, yet"), "{}", run.err);
        after_the_lie(&root, what, &run, 1);
    }
}

// R-5, R-6
#[test]
fn a_lying_kernel_fails_a_change_of_owner() {
    let name = "a_lying_kernel_fails_a_change_of_owner";
    if !can_trace(name) {
        return;
    }
    if !is_root() {
        return skip(name, &Lacks::Machine("root"));
    }
    for first in [FILE, DIRECTORY] {
        let root = Root::new(&format!("owner-{}", first.len()));
        root.converge(first);
        let owned = first.replace("\"mode\"", "\"owner\":\"4711\",\"group\":\"4712\",\"mode\"");
        let file = root.declare("local.json", &declared(&owned));
        let run = lied_to(&root, &["-e", "inject=fchown:retval=0"], &["apply", &file]);
        assert_eq!(run.errors()[0][..2], ["read_back", "r"], "{}", run.out);
        after_the_lie(&root, "fchown", &run, 1);
    }
}

// R-5, R-6
#[test]
fn contents_that_were_never_written_fail_the_read_back() {
    if !can_trace("contents_that_were_never_written_fail_the_read_back") {
        return;
    }
    let root = Root::new("write");
    let temporary = format!("/s/.{}.mesh-host~", hex(&sha256(b"/s/f")[..8]));
    let temporary = root.at(&temporary);
    let file = root.declare("local.json", &declared(FILE));
    let lies = ["-P", temporary.to_str().unwrap(), "-e", "inject=write:retval=3"];
    let run = lied_to(&root, &lies, &["apply", &file]);
    let trace = fs::read_to_string(root.scratch.join("trace")).unwrap();
    assert!(trace.contains("(INJECTED)"), "{trace}");
    assert_eq!(run.errors()[0][..2], ["read_back", "r"], "{}", run.out);
    after_the_lie(&root, "write", &run, 0);
}

// R-5, R-9
#[test]
fn what_was_not_really_removed_is_not_recorded_as_removed() {
    if !can_trace("what_was_not_really_removed_is_not_recorded_as_removed") {
        return;
    }
    for resource in [FILE, DIRECTORY, LINK] {
        let root = Root::new(&format!("remove-{}", resource.len()));
        root.converge(resource);
        let file = root.declare("local.json", &declared(""));
        let run = lied_to(&root, &["-e", "inject=unlinkat:retval=0"], &["apply", &file]);
        assert_eq!((run.code, run.outcomes()), (1, vec!["r failed".to_string()]), "{}", run.out);
        assert_eq!(run.errors()[0][..], ["read_back", "r", "it is still there"]);
        assert!(root.recorded("removed").is_empty());
        root.reconcile().expect(0, &["r removed"]);
        assert!(!root.has("/s/f") && !root.has("/s/d") && !root.has("/s/l"));
    }
}

// R-5
#[test]
fn a_kernel_parameter_that_did_not_take_fails_the_read_back() {
    let name = "a_kernel_parameter_that_did_not_take_fails_the_read_back";
    if !can_trace(name) {
        return;
    }
    // SAFETY: changes what this thread sees of the network, and nothing else.
    if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
        return skip(name, &Lacks::Machine("the privilege of unshare(2)"));
    }
    let root = Root::new("sysctl");
    let key = "/proc/sys/net/ipv4/ip_default_ttl";
    let before = fs::read_to_string(key).unwrap();
    let set = r#"{"id":"k","type":"sysctl","key":"net.ipv4.ip_default_ttl","value":99}"#;
    let on_host = |lie: bool, resources: &str| {
        let file = root.declare("local.json", &declared(resources));
        let mut command = Command::new(if lie { "strace" } else { HOST });
        if lie {
            let trace = root.scratch.join("trace");
            command.args(["-qq", "-o"]).arg(trace).args(["-P", key]);
            command.args(["-e", "inject=write:retval=3", HOST]);
        }
        command.args(["--json", "--state"]).arg(root.scratch.join("state"));
        run(command.arg("apply").arg(file))
    };
    let run = on_host(true, set).expect(1, &["k failed"]);
    assert_eq!(run.errors()[0][..2], ["read_back", "k"]);
    assert_eq!(fs::read_to_string(key).unwrap(), before);
    on_host(false, set).expect(0, &["k changed"]);
    let run = on_host(true, "").expect(1, &["k failed"]);
    assert!(run.err.contains(r#"yet "99" → "64""#), "{}", run.err);
    on_host(false, "").expect(0, &["k removed"]);
    assert_eq!(fs::read_to_string(key).unwrap(), before);
}

// R-2
#[test]
fn an_idle_pass_asks_the_kernel_for_no_write() {
    if !can_trace("an_idle_pass_asks_the_kernel_for_no_write") {
        return;
    }
    let root = Root::new("idle");
    let secret = r#"{"id":"s","type":"file","path":"/s/s","content":"x","secret":true}"#;
    let all = [DIRECTORY, FILE, LINK].map(|it| it.to_string()).join(",");
    let all = all.replacen("\"r\"", "\"a\"", 1).replacen("\"r\"", "\"b\"", 1);
    let all = format!("{all},{secret}");
    root.converge(&all);
    let file = root.declare("local.json", &declared(&all));
    let reads =
        "trace=!read,pread64,fstat,newfstatat,statx,close,lseek,readlinkat,readlink,getdents64";
    for args in [&["apply", &file][..], &["reconcile"], &["plan", &file]] {
        let run = lied_to(&root, &["-e", reads], args);
        assert_eq!(run.code, 0, "{}", run.err);
        let trace = fs::read_to_string(root.scratch.join("trace")).unwrap();
        for line in trace.lines() {
            let call = line.split_once(' ').map_or(line, |(_, call)| call.trim_start());
            let name = call.split('(').next().unwrap_or(call);
            let to_person = call.starts_with("write(1,") || call.starts_with("write(2,");
            let writes = [
                "write",
                "pwrite",
                "sync",
                "rename",
                "unlink",
                "rmdir",
                "mkdir",
                "link",
                "chmod",
                "chown",
                "truncate",
                "utime",
                "xattr",
                "fallocate",
                "mknod",
                "fork",
                "execveat",
            ];
            let wrote = writes.iter().any(|it| name.contains(it)) && !to_person;
            assert!(!wrote, "{args:?}: {line}");
            // The lock's file is there, and stays as it is.
            let makes = call.contains("O_CREAT") && !call.contains("/pass.lock\"");
            assert!(!makes && !call.contains("O_TRUNC"), "{args:?}: {line}");
        }
        assert!(trace.contains("openat("), "{args:?}: {trace}");
    }
}
