//! Names of users and groups come from the root's own files.

use super::*;
use crate::resource::{Object, Principal, Step};

fn ids(machine: &mut Machine, owner: &str, group: &str) -> Result<(u32, u32), Trouble> {
    let name = |name: &str| Some(Principal::Name(name.into()));
    let access = Access { mode: None, owner: name(owner), group: name(group) };
    let question = Question::Path { path: &path("/f"), holds: None, access: &access };
    match machine.ask(&question, LIMIT)? {
        Answer::Path(PathAnswer { uid, gid, .. }) => Ok((uid.unwrap(), gid.unwrap())),
        other => panic!("{other:?}"),
    }
}

#[test]
fn names_are_the_trees_own() {
    let scratch = Scratch::new();
    scratch
        .directory("/etc")
        .file("/etc/passwd", "alice:x:4001:4002::/:/bin/sh\nroot:x:5:5::/:/\n");
    scratch.file("/etc/group", "alice:x:4003:\n");
    let mut machine = scratch.machine();
    assert_eq!(ids(&mut machine, "alice", "alice"), Ok((4001, 4003)));
    assert_eq!(ids(&mut machine, "root", "root"), Ok((0, 0)));
    let numbers = Access {
        owner: Some(Principal::Id(7)),
        group: Some(Principal::Id(8)),
        ..Access::default()
    };
    let question = Question::Path { path: &path("/f"), holds: None, access: &numbers };
    let Answer::Path(answer) = machine.ask(&question, LIMIT).unwrap() else { panic!() };
    assert_eq!((answer.uid, answer.gid), (Some(7), Some(8)));
}

#[test]
fn a_name_that_is_nowhere_is_waited_for() {
    for scratch in [Scratch::new(), Scratch::new()] {
        let mut machine = scratch.machine();
        assert_eq!(ids(&mut machine, "root", "root"), Ok((0, 0)));
        let user = trouble(ids(&mut machine, "alice", "root"), "no user \"alice\" in /etc/passwd");
        assert_eq!(user.awaits, Some(Object::new("user", "alice")));
        let group = trouble(ids(&mut machine, "root", "wheel"), "no group \"wheel\" in /etc/group");
        assert_eq!(group.awaits, Some(Object::new("group", "wheel")));
        scratch.directory("/etc").file("/etc/passwd", "");
    }
}

#[test]
fn a_step_may_make_an_account() {
    let scratch = Scratch::new();
    scratch.directory("/etc");
    let mut machine = scratch.machine();
    assert!(ids(&mut machine, "alice", "root").is_err());
    let passwd = path("/etc/passwd");
    let made = place(&passwd, Make::Bytes(b"alice:x:4001:4002::/:/bin/sh\n"), false);
    machine.take(&Step::Place(made), LIMIT).unwrap();
    assert_eq!(ids(&mut machine, "alice", "root"), Ok((4001, 0)));
}

#[test]
fn an_account_file_that_is_none_is_refused() {
    let scratch = Scratch::new();
    scratch.directory("/etc/passwd").link("/etc/group", "/dev/zero");
    let mut machine = scratch.machine();
    trouble(ids(&mut machine, "alice", "root"), "not a regular file");
    trouble(ids(&mut machine, "root", "wheel"), "not a regular file");
    std::fs::remove_dir(scratch.at("/etc/passwd")).unwrap();
    std::fs::File::create(scratch.at("/etc/passwd")).unwrap().set_len(1 << 40).unwrap();
    trouble(ids(&mut machine, "alice", "root"), "not a regular file of at most 16777216 bytes");
}

#[test]
fn a_name_that_no_directory_service_knows_is_unknown() {
    // getent(1) is asked on this machine's own root only, and says 2 or is not there.
    let mut machine = Machine::open(Path::new("/"), Own::default()).unwrap();
    for name in ["no-such-account-here", "-s", "--help"] {
        let unknown = ids(&mut machine, name, "root").unwrap_err();
        assert_eq!(unknown.awaits, Some(Object::new("user", name)));
    }
}
