//! Several of the host at once, and signals: one pass at a time, readers never wait, and a pass
//! that is asked to end finishes what it has in hand.

mod support;

use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader};
use std::os::fd::AsRawFd;
use std::process::{Child, Command, Stdio};

use support::broken::{Course, Scenario};
use support::site::{told, Site, HOST};
use support::strace::can_trace;

const SOME: &str = r#"
    {"id":"dir","type":"directory","path":"/srv/app"},
    {"id":"conf","type":"file","path":"/srv/app/conf","content":"one\n"},
    {"id":"forward","type":"sysctl","key":"net.ipv4.ip_forward","value":"1"},
    {"id":"more","type":"file","path":"/srv/app/more","content":"two\n"},
    {"id":"key","type":"file","path":"/srv/app/key","content":"a canary","secret":true},
    {"id":"somaxconn","type":"sysctl","key":"net.core.somaxconn","value":"4096"},
    {"id":"last","type":"symlink","path":"/srv/last","target":"app"}"#;

fn prepare(site: &Site) {
    site.declare("some", SOME);
    site.declare("other", r#"{"id":"o","type":"file","path":"/other","content":"o"}"#);
    site.declare("empty", "");
}

/// Takes the pass lock, as another pass would; held until dropped.
fn hold(site: &Site) -> File {
    let lock = OpenOptions::new().write(true).open(site.state().join("pass.lock")).unwrap();
    // SAFETY: flock is a C struct of integers, for which all-zero is a value.
    let mut request: libc::flock = unsafe { std::mem::zeroed() };
    request.l_type = libc::F_WRLCK as libc::c_short;
    // SAFETY: the descriptor is open and `request` is a flock.
    let taken = unsafe { libc::fcntl(lock.as_raw_fd(), libc::F_SETLK, &request) };
    assert_eq!(taken, 0);
    lock
}

fn spawn(site: &Site, command: &str) -> Child {
    let mut host = Command::new(HOST);
    host.args(site.arguments(command)).stdout(Stdio::piped()).stderr(Stdio::piped());
    host.spawn().unwrap()
}

// The contract's exit code 4.
#[test]
fn a_pass_that_never_ends_is_named_and_not_waited_for_for_ever() {
    if !can_trace("a_pass_that_never_ends_is_named_and_not_waited_for_for_ever") {
        return;
    }
    let site = Site::new();
    prepare(&site);
    site.ok("apply @empty");
    let (journal, tree) = (fs::read(site.journal()).unwrap(), site.tree());
    let lock = hold(&site);
    // Its waits are over at once, which is all that is not as it would be.
    for command in ["apply @some", "reconcile", "pause --reason R", "rescue --discard-state"] {
        let mut strace = Command::new("strace");
        strace.args(["-qq", "-o", "/dev/null", "--trace=/^p?poll$", "--inject=/^p?poll$:retval=0"]);
        let output = strace.arg(HOST).args(site.arguments(command)).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(4), "{command}: {}", told(&output));
        assert!(said.contains(&format!("process {}", std::process::id())), "{said}");
        assert_eq!(fs::read(site.journal()).unwrap(), journal, "{command}");
        assert_eq!(site.tree(), tree, "{command}");
    }
    drop(lock);
    site.ok("apply @some");
}

#[test]
fn a_pass_waits_for_another_and_then_has_its_turn() {
    if !can_trace("a_pass_waits_for_another_and_then_has_its_turn") {
        return;
    }
    let site = Site::new();
    prepare(&site);
    site.ok("apply @empty");
    let lock = hold(&site);
    let mut strace = Command::new("strace");
    strace.args(["-qq", "-e", "trace=/^p?poll$", "--", HOST]).args(site.arguments("apply @some"));
    let mut waiting = strace.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(waiting.stderr.take().unwrap()).lines();
    let waits = lines.by_ref().map(Result::unwrap).find(|line| line.contains("poll(NULL, 0"));
    assert!(waits.is_some(), "it does not wait");
    assert!(!site.root().join("srv").exists(), "it does not wait before it acts");
    drop(lock);
    lines.for_each(drop);
    assert!(waiting.wait().unwrap().success());
    assert!(site.root().join("srv/last").is_symlink());
}

#[test]
fn readers_do_not_wait_for_a_pass() {
    let site = Site::new();
    prepare(&site);
    site.ok("apply @some");
    let lock = hold(&site);
    for command in ["owned", "journal", "journal --verify", "status", "plan @other", "check @other"]
    {
        site.ok(command);
        site.ok(&format!("{command} --json"));
    }
    drop(lock);
}

#[test]
fn passes_at_once_have_their_turns_and_all_converge() {
    for _ in 0..5 {
        let site = Site::new();
        prepare(&site);
        let passes: Vec<Child> = (0..4).map(|_| spawn(&site, "apply @some")).collect();
        for pass in passes {
            let output = pass.wait_with_output().unwrap();
            assert!(output.status.success(), "{}", told(&output));
        }
        assert_eq!(site.owned().len(), 6, "{:?}", site.owned());
        site.ok("journal --verify");
        let accepted = |it: &serde_json::Value| it["kind"] == "accepted";
        assert_eq!(site.records().iter().filter(|it| accepted(it)).count(), 1);
        let journal = fs::read(site.journal()).unwrap();
        site.ok("apply @some");
        assert_eq!(fs::read(site.journal()).unwrap(), journal);
        site.ok("apply @empty");
        assert!(site.tree().is_empty());
    }
}

// R-6
#[test]
fn a_pass_that_is_terminated_finishes_what_it_has_in_hand() {
    if can_trace("a_pass_that_is_terminated_finishes_what_it_has_in_hand") {
        interrupted("TERM", libc::SIGTERM);
    }
}

// R-6
#[test]
fn a_pass_that_is_interrupted_finishes_what_it_has_in_hand() {
    if can_trace("a_pass_that_is_interrupted_finishes_what_it_has_in_hand") {
        interrupted("INT", libc::SIGINT);
    }
}

fn interrupted(signal: &str, number: i32) {
    let course = Course::new(Scenario {
        prepare,
        run: "apply @some",
        other: &["apply @other"],
        release: &["apply @empty"],
        adopted: &[],
    });
    course.interrupt_at_every_call(signal, number);
}
