//! Removing and changing access: only what is still what it was, and never more than it.

use std::os::unix::fs::{MetadataExt, PermissionsExt};

use super::super::change::open_seen;
use super::super::root::{Intent, Reached, Root};
use super::*;
use crate::resource::{Removable, Step};

fn remove(machine: &mut Machine, at: &str, kind: Removable) -> Result<(), Trouble> {
    machine.take(&Step::Remove { path: &path(at), kind }, LIMIT)
}

#[test]
fn each_kind_is_removed_as_itself() {
    //
    let scratch = Scratch::new();
    scratch.file("/f", "x").directory("/d").directory("/kept/x").link("/l", "kept");
    let mut machine = scratch.machine();
    remove(&mut machine, "/f", Removable::File).unwrap();
    remove(&mut machine, "/d", Removable::Directory).unwrap();
    remove(&mut machine, "/l", Removable::Symlink).unwrap();
    assert_eq!(
        (scratch.names("/"), scratch.names("/kept")),
        (vec!["kept".into()], vec!["x".into()])
    );
}

#[test]
fn what_is_gone_is_removed() {
    let scratch = Scratch::new();
    let mut machine = scratch.machine();
    for kind in [Removable::File, Removable::Directory, Removable::Symlink] {
        remove(&mut machine, "/gone", kind).unwrap();
        remove(&mut machine, "/no/parent/gone", kind).unwrap();
    }
}

#[test]
fn a_directory_with_something_in_it_is_left() {
    //
    let scratch = Scratch::new();
    scratch.directory("/d").file("/d/theirs", "x");
    let mut machine = scratch.machine();
    trouble(remove(&mut machine, "/d", Removable::Directory), "it is not empty");
    assert_eq!(scratch.read("/d/theirs"), b"x");
}

#[test]
fn what_has_become_another_kind_is_left() {
    //
    let scratch = Scratch::new();
    scratch.file("/f", "x").directory("/d").link("/l", "d");
    let mut machine = scratch.machine();
    let kinds = [
        ("/f", Removable::File, "it is no longer a regular file"),
        ("/d", Removable::Directory, "it is no longer a directory"),
        ("/l", Removable::Symlink, "it is no longer a symbolic link"),
    ];
    for (at, is, _) in kinds {
        for (_, other, words) in kinds.into_iter().filter(|(_, other, _)| *other != is) {
            trouble(remove(&mut machine, at, other), words);
        }
    }
    assert_eq!(scratch.names("/"), ["d", "f", "l"]);
}

#[test]
fn access_is_the_entrys_own_and_never_a_links_target() {
    let scratch = Scratch::new();
    scratch.directory("/d").file("/f", "x").link("/l", "d").file("/two", "x");
    std::fs::hard_link(scratch.at("/two"), scratch.at("/names")).unwrap();
    let mut machine = scratch.machine();
    let (uid, gid) = sys::effective_ids();
    let mut set =
        |at: &str, mode| machine.take(&Step::Access { path: &path(at), mode, uid, gid }, LIMIT);
    let mode = |at| std::fs::metadata(scratch.at(at)).unwrap().mode() & 0o7777;
    set("/d", 0o3710).unwrap();
    set("/f", 0o4711).unwrap();
    for at in ["/l", "/two", "/none", "/no/parent"] {
        assert!(set(at, 0o777).is_err(), "{at}");
    }
    assert_eq!((mode("/d"), mode("/f"), mode("/names") & 0o111), (0o3710, 0o4711, 0));
}

#[test]
fn a_second_name_put_in_the_files_place_is_given_nothing_though_the_first_goes() {
    //
    let scratch = Scratch::new();
    scratch.file("/f", "theirs").file("/victim", "root's").directory("/d").directory("/e");
    let mut root = Root::open(&scratch.0, Own::default()).unwrap();
    for (at, moved) in [("/f", "/victim"), ("/d", "/e")] {
        let Ok(Reached::Parent(spot)) = root.reach(&path(at), Intent::See, "look at") else {
            panic!("{at} has a parent");
        };
        let seen = sys::stat_at(&spot.dir.fd, &spot.name).unwrap();
        assert!(open_seen(&spot, seen).is_ok(), "{at}");
        std::fs::rename(scratch.at(at), scratch.at(&format!("{at}-away"))).unwrap();
        std::fs::rename(scratch.at(moved), scratch.at(at)).unwrap();
        assert!(open_seen(&spot, seen).unwrap_err().contains("another thing"), "{at}");
    }
}

#[test]
fn a_full_directory_of_roots_is_not_given_away_where_others_could_have_moved_it() {
    //
    if !is_root("giving directories away") {
        return;
    }
    let scratch = Scratch::new();
    scratch.directory("/home/full").file("/home/full/f", "x").directory("/home/empty");
    let mut machine = scratch.machine();
    let mut set = |at: &str| {
        machine.take(&Step::Access { path: &path(at), mode: 0o755, uid: 7, gid: 7 }, LIMIT)
    };
    let owner = |at| std::fs::metadata(scratch.at(at)).unwrap().uid();
    let opened = |mode| {
        std::fs::set_permissions(scratch.at("/home"), PermissionsExt::from_mode(mode)).unwrap();
    };
    give(&scratch.at("/home"), 7);
    trouble(set("/home/full"), "others than root can change the directory that it lies in");
    set("/home/empty").unwrap();
    give(&scratch.at("/home"), 0);
    opened(0o775);
    trouble(set("/home/full"), "others than root can change the directory that it lies in");
    assert_eq!((owner("/home/full"), owner("/home/empty")), (0, 7));
    opened(0o1777);
    set("/home/full").unwrap();
    give(&scratch.at("/home/full"), 0);
    opened(0o755);
    set("/home/full").unwrap();
    assert_eq!(owner("/home/full"), 7);
}

#[test]
fn access_is_given_to_nothing_that_could_block_or_act() {
    let scratch = Scratch::new();
    let fifo = std::ffi::CString::new(scratch.at("/fifo").to_str().unwrap()).unwrap();
    // SAFETY: the name is NUL-terminated.
    assert_eq!(unsafe { libc::mkfifo(fifo.as_ptr(), 0o600) }, 0);
    let (uid, gid) = sys::effective_ids();
    let step = Step::Access { path: &path("/fifo"), mode: 0o777, uid, gid };
    trouble(scratch.machine().take(&step, LIMIT), "another thing was put in its place meanwhile");
}

#[test]
fn a_mounted_tree_has_no_kernel_and_runs_nothing() {
    let scratch = Scratch::new();
    let mut machine = scratch.machine();
    let argv: Box<[Box<str>]> =
        ["touch".into(), scratch.at("/ran").to_str().unwrap().into()].into();
    let command = crate::resource::Command { argv: &argv, env: &[], workdir: None };
    for question in [Question::Sysctl("kernel.ostype"), Question::Check(command)] {
        assert!(matches!(machine.ask(&question, LIMIT), Ok(Answer::NotApplicable(_))));
    }
    let key = "vm.swappiness";
    trouble(machine.take(&Step::Sysctl { key, value: "60" }, LIMIT), "not to a mounted tree");
    trouble(machine.take(&Step::Run(command), LIMIT), "not on a mounted tree");
    assert_eq!(scratch.names("/"), [""; 0]);
}
