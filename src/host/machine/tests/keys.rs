//! A user's authorized_keys, in a home that its owner changes at the same time.

use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::resource::account::{Ask, AskUser, FoundUser, Keys, Whereabouts};
use crate::resource::Step;

const ALICE: u32 = 4001;
const FILE: &str = "/home/alice/.ssh/authorized_keys";

/// A root in which alice has a home.
fn home() -> Scratch {
    let scratch = Scratch::new();
    scratch.directory("/etc").directory("/home/alice").directory("/root/.ssh");
    scratch.file("/etc/passwd", format!("alice:x:{ALICE}:{ALICE}::/home/alice:/bin/sh\n"));
    scratch.file("/root/.ssh/authorized_keys", "root's own\n");
    give(&scratch.at("/home/alice"), ALICE);
    scratch
}

fn put(machine: &mut Machine, keys: &[&str]) -> Result<(), Trouble> {
    let keys: Vec<Box<str>> = keys.iter().map(|key| (*key).into()).collect();
    machine.take(&Step::Keys { user: "alice", keys: &keys, home: None }, LIMIT)
}

fn found(machine: &mut Machine) -> FoundUser {
    let ask = AskUser { name: "alice", keys: Keys::Asked, ..AskUser::default() };
    match machine.ask(&Question::Account(Ask::User(ask)), LIMIT) {
        Ok(Answer::User(it)) => match it.user {
            Whereabouts::Here(found) => *found,
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_was_put_is_what_is_found() {
    if !is_root("what_was_put_is_what_is_found") {
        return;
    }
    let scratch = home();
    let mut machine = scratch.machine();
    assert_eq!(found(&mut machine).keys.unwrap().lines, Vec::<String>::new());
    for keys in [&["ssh-rsa AAAA 1", "ssh-rsa AAAA 2"][..], &["ssh-rsa AAAA 3"], &[]] {
        put(&mut machine, keys).unwrap();
        assert_eq!(found(&mut machine).keys.unwrap().lines, keys);
    }
    assert_eq!(scratch.names("/home/alice/.ssh"), Vec::<String>::new());
}

#[test]
fn a_file_that_is_too_large_or_odd_is_refused_and_kept() {
    if !is_root("a_file_that_is_too_large_or_odd_is_refused_and_kept") {
        return;
    }
    let scratch = home();
    let mut machine = scratch.machine();
    put(&mut machine, &["ssh-rsa AAAA 1"]).unwrap();
    let whole = String::from_utf8(scratch.read(FILE)).unwrap();
    scratch.file(FILE, whole.replace("# nox-mesh-host: end\n", "ssh-rsa AAAA theirs\n"));
    let before = scratch.read(FILE);
    trouble(put(&mut machine, &["ssh-rsa AAAA 2"]), "begins in it and does not end");
    trouble(found(&mut machine).keys, "begins in it and does not end");
    assert_eq!(scratch.read(FILE), before);
    std::fs::File::options().write(true).open(scratch.at(FILE)).unwrap().set_len(1 << 40).unwrap();
    trouble(put(&mut machine, &["ssh-rsa AAAA 2"]), "more than 16777216 bytes");
}

#[test]
fn keys_without_a_place_or_too_many_are_written_nowhere() {
    if !is_root("keys_without_a_place_or_too_many_are_written_nowhere") {
        return;
    }
    let scratch = home();
    let mut machine = scratch.machine();
    let long = "x".repeat(1 << 20);
    trouble(put(&mut machine, &[&*long; 17]), "and 16777216 are the most");
    assert_eq!(scratch.names("/home/alice/.ssh"), Vec::<String>::new());
    for home in ["", "home/alice", "/home/../alice", "/home/alice\u{0}"] {
        scratch.file("/etc/passwd", format!("alice:x:{ALICE}:{ALICE}::{home}:/bin/sh\n"));
        let mut machine = scratch.machine();
        let refused = put(&mut machine, &["ssh-rsa AAAA 1"]).unwrap_err();
        assert!(refused.doing.contains("find the home of user alice"), "{home:?}: {refused}");
        assert_eq!(found(&mut machine).keys.unwrap_err(), refused);
    }
    scratch.file("/etc/passwd", b"alice:x:4001:4001::/home/\xff:/bin/sh\n");
    trouble(put(&mut scratch.machine(), &["ssh-rsa AAAA 1"]), "no absolute path");
    assert_eq!(scratch.names("/"), ["etc", "home", "root"]);
}

/// Runs `swap` again and again beside `check`.
fn against(swap: impl Fn() + Sync, check: impl FnOnce()) {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                swap();
            }
        });
        check();
        over.store(true, Ordering::Relaxed);
    });
}

//
#[test]
fn whoever_exchanges_what_is_in_a_home_wins_nothing_of_roots() {
    if !is_root("whoever_exchanges_what_is_in_a_home_wins_nothing_of_roots") {
        return;
    }
    let scratch = home();
    let mut machine = scratch.machine();
    put(&mut machine, &["ssh-rsa AAAA 1"]).unwrap();
    let at = |path: &str| scratch.at(path);
    scratch.link("/home/alice/link", "../../root/.ssh");
    scratch.link("/home/alice/.ssh/other", "../../../root/.ssh/authorized_keys");
    give(&at("/home/alice/link"), ALICE);
    give(&at("/home/alice/.ssh/other"), ALICE);
    let exchange = |one: &str, other: &str| {
        let name = |path| std::ffi::CString::new(at(path).as_os_str().as_bytes()).unwrap();
        let (one, other) = (name(one), name(other));
        let (cwd, flags) = (libc::AT_FDCWD, libc::RENAME_EXCHANGE);
        // SAFETY: both names are NUL-terminated and outlive the call.
        unsafe { libc::renameat2(cwd, one.as_ptr(), cwd, other.as_ptr(), flags) };
    };
    let swaps: [(&str, &str); 2] =
        [("/home/alice/.ssh", "/home/alice/link"), (FILE, "/home/alice/.ssh/other")];
    for (one, other) in swaps {
        let (mut done, mut refused) = (0, 0);
        against(
            || exchange(one, other),
            || {
                for nth in 0..9_000 {
                    if nth > 300 && done > 0 && refused > 0 {
                        break;
                    }
                    match put(&mut machine, &[&format!("ssh-rsa AAAA {nth}")]) {
                        Ok(()) => done += 1,
                        Err(_) => refused += 1,
                    }
                    let keys = found(&mut machine).keys.unwrap_or_default();
                    assert!(keys.lines.iter().all(|line| line.starts_with("ssh-rsa AAAA")));
                }
            },
        );
        assert!(done > 0 && refused > 0, "{one}: {done} done, {refused} refused");
        if at(one).is_symlink() {
            exchange(one, other);
        }
    }
    assert_eq!(scratch.read("/root/.ssh/authorized_keys"), b"root's own\n");
    assert_eq!(scratch.names("/root/.ssh"), ["authorized_keys"]);
    for path in ["/root", "/root/.ssh", "/root/.ssh/authorized_keys"] {
        use std::os::unix::fs::MetadataExt;
        let meta = at(path).symlink_metadata().unwrap();
        assert_eq!((meta.uid(), meta.gid()), sys::effective_ids(), "{path}");
    }
}
