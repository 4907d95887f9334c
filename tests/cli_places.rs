//! Where things are: the root, the state, the configuration; and who may work on them.

mod support;

use std::os::fd::AsRawFd;
use std::os::unix::fs::{chown, PermissionsExt};
use std::path::Path;
use std::process::{Command, Stdio};

use support::said::{at, command, fed, host, Said};
use support::snapshot::{assert_same, snapshot};
use support::{euid, has, skip, Lacks, Scratch};

const ONE: &str = r#"{"version":1,"resources":[
    {"id":"one","type":"file","path":"/one","content":"1\n"}]}"#;

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Every command that looks at a place, with what it needs.
const PLACED: [&[&str]; 10] = [
    &["apply", "-"],
    &["plan", "-"],
    &["check", "-"],
    &["reconcile"],
    &["status"],
    &["owned"],
    &["journal"],
    &["pause", "--reason", "r"],
    &["resume"],
    &["rescue", "--discard-state"],
];

#[test]
fn a_configuration_that_cannot_be_taken_at_its_word_is_refused_by_every_command() {
    let scratch = Scratch::new("cli-config");
    let (root, config) = (scratch.join("root"), scratch.join("config.json"));
    std::fs::create_dir(&root).unwrap();
    let long = format!("{{\"{}\":1}}", "k".repeat(2 << 20));
    for (holds, why) in [
        (r#"{"bogus":1}"#, "bogus"),
        ("{\"\\u001b[31m\":1}", "unknown field"),
        ("", "EOF"),
        ("[]x", "trailing characters"),
        ("null", "null"),
        ("{", "EOF"),
        ("\u{feff}{}", "expected value"),
        (&*long, "larger than"),
    ] {
        std::fs::write(&config, holds).unwrap();
        for arguments in PLACED {
            let all = [&["--config", text(&config)], arguments].concat();
            let said = fed(&root, &all, ONE.as_bytes()).exits(1);
            assert!(said.err.contains("config.json") && said.err.contains(why), "{said:?}");
            assert!(said.err.len() < 1000, "{}", said.err.len());
            said.is_plain();
        }
    }
    for (named, why) in [("gone.json", "No such file"), (".", "not a regular file")] {
        let named = scratch.join(named);
        let said = at(&root, &["--config", text(&named), "status"]).exits(1);
        assert!(said.err.contains(why), "{said:?}");
    }
    let fifo = scratch.join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let said = at(&root, &["--config", text(&fifo), "status"]).exits(1);
    assert!(said.err.contains("not a regular file"), "{said:?}");
    assert_eq!(root.read_dir().unwrap().count(), 0, "nothing was made meanwhile");

    // The default one is read just so, and may be absent.
    let default = root.join("etc/mesh-host/config.json");
    std::fs::create_dir_all(default.parent().unwrap()).unwrap();
    at(&root, &["status"]).exits(0);
    std::fs::write(&default, r#"{"bogus":1}"#).unwrap();
    assert!(at(&root, &["status"]).exits(1).err.contains("bogus"));
    std::fs::write(&default, "{}").unwrap();
    at(&root, &["status"]).exits(0);
}

#[test]
fn a_root_that_is_not_there_is_an_error_and_not_made() {
    let scratch = Scratch::new("cli-root");
    std::fs::write(scratch.join("file"), "").unwrap();
    let before = snapshot(scratch.path());
    for (root, why) in [("gone", "No such file"), ("file", "not a directory"), ("gone/x", "No")] {
        for arguments in PLACED {
            let said = fed(&scratch.join(root), arguments, ONE.as_bytes()).exits(1);
            assert!(said.err.contains("open the root") && said.err.contains(why), "{said:?}");
        }
    }
    assert_same(scratch.path(), &before, "a root that is not there");
}

#[test]
fn relative_places_mean_what_they_mean_to_a_shell() {
    let scratch = Scratch::new("cli-relative");
    std::fs::create_dir_all(scratch.join("root/sub")).unwrap();
    std::fs::write(scratch.join("one.json"), ONE).unwrap();
    let run = |arguments: &[&str]| {
        let mut host = command(arguments);
        Said::of(host.current_dir(scratch.join("root/sub")).output().unwrap())
    };
    let places = ["--root", "..", "--state", "../../state", "apply", "../../one.json"];
    run(&places).exits(0);
    assert_eq!(std::fs::read(scratch.join("root/one")).unwrap(), b"1\n");
    assert!(scratch.join("state/journal.jsonl").is_file());
    assert!(!scratch.join("root/var").exists());
    let owned = run(&["owned", "--root", ".", "--state", "../../state"]).exits(0);
    assert!(owned.out.contains("/one  [one]"), "{owned:?}");
    // R-15: relative or not, the state in use is the host's own.
    let own = r#"{"version":1,"resources":[
        {"id":"x","type":"file","path":"/sub/here/x","content":""}]}"#;
    std::fs::write(scratch.join("own.json"), own).unwrap();
    run(&["apply", "../../own.json", "--root", "..", "--state", "here"]).exits(3);
    assert_eq!(scratch.join("root/sub").read_dir().unwrap().count(), 0);
}

#[test]
fn a_damaged_store_is_said_with_its_line_and_nothing_is_done() {
    let scratch = Scratch::new("cli-damaged");
    let root = scratch.path();
    fed(root, &["apply", "-"], ONE.as_bytes()).exits(0);
    let journal = scratch.join("var/lib/mesh-host/journal.jsonl");
    let whole = std::fs::read_to_string(&journal).unwrap();
    std::fs::write(&journal, whole.replacen("\"path:/one\"", "\"path:/two\"", 1)).unwrap();
    let before = snapshot(root);
    for arguments in PLACED.iter().filter(|it| !matches!(it[0], "check" | "rescue")) {
        let said = fed(root, arguments, ONE.as_bytes()).exits(6);
        assert!(said.err.contains("journal.jsonl line 3"), "{arguments:?}: {said:?}");
        assert!(said.out.is_empty(), "{said:?}");
    }
    let said = at(root, &["journal", "--verify", "--json"]).exits(6);
    assert_eq!(said.json()["exit"], 6);
    assert_same(root, &before, "a damaged store");
    at(root, &["rescue", "--discard-state"]).exits(0);
    at(root, &["journal", "--verify"]).exits(0);
}

#[test]
fn who_holds_the_lock_is_named() {
    let name = "who_holds_the_lock_is_named";
    if !has("strace", name) {
        return;
    }
    let scratch = Scratch::new("cli-lock");
    let root = scratch.path();
    fed(root, &["apply", "-"], ONE.as_bytes()).exits(0);
    let lock = scratch.join("var/lib/mesh-host/pass.lock");
    let file = std::fs::OpenOptions::new().write(true).open(lock).unwrap();
    // SAFETY: flock is a C struct of integers, for which all-zero is a value.
    let mut request: libc::flock = unsafe { std::mem::zeroed() };
    request.l_type = libc::F_WRLCK as libc::c_short;
    // SAFETY: the descriptor is open and the request is a flock, as F_SETLK needs.
    assert_eq!(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLK, &mut request) }, 0);
    // The half minute of waiting goes by at once.
    let traced = |arguments: &[&str]| {
        let mut strace = Command::new("strace");
        strace.args(["-o", "/dev/null", "-e", "trace=poll,ppoll"]);
        strace.args(["-e", "inject=poll,ppoll:retval=0", env!("CARGO_BIN_EXE_nox-mesh-host")]);
        strace.arg("--root").arg(root).args(arguments).stdin(Stdio::null());
        Said::of(strace.output().unwrap())
    };
    for arguments in [&["reconcile"][..], &["pause", "--reason", "r"], &["resume"]] {
        let said = traced(arguments);
        if said.err.contains("ptrace") {
            return skip(name, &Lacks::Machine("ptrace(2)"));
        }
        let pid = std::process::id();
        let named = format!("process {pid} holds");
        assert!(said.code == 4 && said.err.contains(&named), "{said:?}");
    }
    // Those who only look take no lock.
    for arguments in [&["status"][..], &["owned"], &["journal"], &["plan", "/dev/null"]] {
        assert_ne!(at(root, arguments).code, 4);
    }
}

/// Runs the host as nobody.
fn as_nobody(root: &Path, arguments: &[&str], declaration: &str) -> Said {
    let file = root.join("declaration.json");
    std::fs::write(&file, declaration).unwrap();
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o644)).unwrap();
    let mut run = Command::new("setpriv");
    run.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
    run.arg(env!("CARGO_BIN_EXE_nox-mesh-host")).arg("--root").arg(root).args(arguments);
    Said::of(run.stdin(std::fs::File::open(file).unwrap()).output().unwrap())
}

#[test]
fn who_is_not_root_may_work_on_a_tree_of_his_own() {
    let name = "who_is_not_root_may_work_on_a_tree_of_his_own";
    if !has("setpriv", name) {
        return;
    }
    if euid() != 0 {
        return skip(name, &Lacks::Machine("root, to be someone else"));
    }
    let scratch = Scratch::new("cli-nobody");
    let root = scratch.path();
    chown(root, Some(65534), Some(65534)).unwrap();
    if as_nobody(root, &["version"], "").code != 0 {
        return skip(name, &Lacks::Machine("a target directory that everyone can reach"));
    }
    as_nobody(root, &["apply", "-"], ONE).exits(0);
    let again = as_nobody(root, &["apply", "-"], ONE).exits(0);
    assert!(again.out.contains("nothing to do"), "{again:?}");
    let owned = r#"{"version":1,"resources":[
        {"id":"one","type":"file","path":"/one","content":"2\n","owner":"0"}]}"#;
    let said = as_nobody(root, &["apply", "-"], owned).exits(1);
    assert!(said.err.contains("one: ") && said.err.contains("not permitted"), "{said:?}");
    assert_eq!(std::fs::read(scratch.join("one")).unwrap(), b"1\n");

    // What belongs to root is out of reach, and that is said without a trace in it.
    let rooted = scratch.join("rooted");
    std::fs::create_dir(&rooted).unwrap();
    fed(&rooted, &["apply", "-"], ONE.as_bytes()).exits(0);
    let before = snapshot(&rooted.join("var"));
    for (arguments, what) in [(&["status"][..], "journal"), (&["apply", "-"], "mesh-host")] {
        let said = as_nobody(&rooted, arguments, ONE).exits(1);
        assert!(said.err.to_lowercase().contains("permission denied"), "{said:?}");
        assert!(said.err.contains(what), "{said:?}");
    }
    assert_same(&rooted.join("var"), &before, "root's own tree");
    assert_eq!(host(&["version"]).code, 0);
}
