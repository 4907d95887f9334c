//! Two processes and one store.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};

use super::*;

/// Runs one ignored test of this binary as another process, `NOX_TEST_DIR` telling it where.
pub fn other_process(test: &str, dir: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &format!("store::tests::{test}"), "--ignored", "--nocapture"])
        .env("NOX_TEST_DIR", dir)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

#[test]
#[ignore = "the other process of the tests below"]
fn holder() {
    let Some(dir) = std::env::var_os("NOX_TEST_DIR").map(PathBuf::from) else { return };
    let mut store = Store::open(&dir, Duration::ZERO, AT).unwrap();
    let run = Lock::take(&dir, Name::Run, Duration::ZERO).unwrap();
    store.append(object(Kind::Began, Source::Local, "path:/held", Made::Created), AT).unwrap();
    store.flush().unwrap();
    println!("\nholding");
    std::io::stdin().read_line(&mut String::new()).unwrap();
    drop((store, run));
}

/// A process that holds both locks of `dir`.
fn held(dir: &Path) -> Child {
    let mut child = other_process("locking::holder", dir);
    let lines = BufReader::new(child.stdout.as_mut().unwrap()).lines();
    assert!(lines.map_while(Result::ok).any(|line| line == "holding"));
    child
}

#[test]
fn a_lock_that_another_process_holds_is_refused_with_its_pid() {
    let scratch = Scratch::new();
    drop(scratch.open());
    let mut child = held(&scratch.store());
    let pid = child.id() as i32;
    for patience in [Duration::ZERO, Duration::from_millis(120)] {
        match Store::open(&scratch.store(), patience, AT) {
            Err(Error::Locked { path, pid: named }) => {
                assert!(path.ends_with("pass.lock"));
                assert_eq!(named, pid);
            }
            other => panic!("{:?}", other.map(|_| ())),
        }
    }
    for name in [Name::Run, Name::Pass] {
        assert_eq!(Lock::holder(&scratch.store(), name).unwrap(), Some(pid));
    }
    // A reader looks on meanwhile.
    let reading = Reading::of(&scratch.store()).unwrap();
    assert!(reading.state.get("path:/held").is_some());

    child.stdin.take().unwrap().write_all(b"\n").unwrap();
    let store = Store::open(&scratch.store(), Duration::from_secs(20), AT).unwrap();
    assert!(store.state().get("path:/held").is_some(), "read after the lock was taken");
    assert!(child.wait().unwrap().success());
    drop(store);
    for name in [Name::Run, Name::Pass] {
        assert_eq!(Lock::holder(&scratch.store(), name).unwrap(), None);
    }
}

#[test]
fn a_lock_ends_with_its_process() {
    let scratch = Scratch::new();
    drop(scratch.open());
    let mut child = held(&scratch.store());
    child.kill().unwrap();
    child.wait().unwrap();
    let store = Store::open(&scratch.store(), Duration::ZERO, AT).unwrap();
    assert_eq!(store.state().get("path:/held").unwrap().form, None, "its intent counts as owned");
}

#[test]
fn reading_makes_nothing() {
    let scratch = Scratch::new();
    let reading = Reading::of(&scratch.store()).unwrap();
    assert_eq!(reading.state.seq(), 0);
    assert_eq!(verify(&scratch.store()).unwrap().lines, 0);
    assert_eq!(Lock::holder(&scratch.store(), Name::Pass).unwrap(), None);
    assert!(!scratch.store().exists());
}
