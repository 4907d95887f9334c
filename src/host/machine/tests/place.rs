//! Placing: whole, with its access, in one instant, or not at all.

use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{symlink, MetadataExt, PermissionsExt};

use super::super::place::temporary;
use super::*;
use crate::resource::{Object, Step};

fn take(machine: &mut Machine, place: Place) -> Result<(), Trouble> {
    machine.take(&Step::Place(place), LIMIT)
}

fn mode(scratch: &Scratch, at: &str) -> u32 {
    std::fs::symlink_metadata(scratch.at(at)).unwrap().mode() & 0o7777
}

#[test]
fn a_file_is_placed_and_replaced_with_its_access() {
    //
    let scratch = Scratch::new();
    let (mut machine, at) = (scratch.machine(), path("/f"));
    take(&mut machine, Place { mode: 0o4711, ..place(&at, Make::Bytes(b"one"), false) }).unwrap();
    assert_eq!((scratch.read("/f"), mode(&scratch, "/f")), (b"one".to_vec(), 0o4711));
    take(&mut machine, Place { mode: 0o600, ..place(&at, Make::Bytes(b""), true) }).unwrap();
    assert_eq!((scratch.read("/f"), mode(&scratch, "/f")), (b"".to_vec(), 0o600));
    assert_eq!(scratch.names("/"), ["f"]);
}

#[test]
fn what_is_placed_belongs_to_whom_it_should() {
    if !is_root("giving files away") {
        return;
    }
    let scratch = Scratch::new();
    let mut machine = scratch.machine();
    for (at, make) in
        [("/f", Make::Bytes(b"x")), ("/d", Make::Directory), ("/l", Make::Symlink("f"))]
    {
        let at = path(at);
        take(&mut machine, Place { mode: 0o6755, uid: 7, gid: 8, ..place(&at, make, false) })
            .unwrap();
        let meta = std::fs::symlink_metadata(scratch.at(at.as_str())).unwrap();
        assert_eq!((meta.uid(), meta.gid()), (7, 8), "{at}");
    }
    // Set after the owner, which clears them.
    assert_eq!((mode(&scratch, "/f"), mode(&scratch, "/d")), (0o6755, 0o6755));
}

#[test]
fn a_staged_secret_is_never_open_to_others_and_nothing_shows_before_the_commit() {
    //
    let scratch = Scratch::new();
    scratch.file("/f", "old");
    let (mut machine, at) = (scratch.machine(), path("/f"));
    let secret = Place { mode: 0o600, ..place(&at, Make::Bytes(b"secret"), true) };
    let mut staged = machine.stage(&Step::Place(secret), LIMIT).unwrap();
    let beside = temporary(&at).into_string().unwrap();
    assert_eq!(scratch.names("/"), [beside.clone(), "f".to_string()]);
    assert_eq!((scratch.read("/f"), mode(&scratch, &beside)), (b"old".to_vec(), 0o600));
    machine.sync(std::slice::from_ref(&staged)).unwrap();
    machine.commit(&mut staged).unwrap();
    machine.sync(std::slice::from_ref(&staged)).unwrap();
    drop(staged);
    assert_eq!(
        (scratch.names("/"), scratch.read("/f")),
        (vec!["f".to_string()], b"secret".to_vec())
    );
}

#[test]
fn what_is_staged_and_dropped_leaves_nothing() {
    let scratch = Scratch::new();
    let mut machine = scratch.machine();
    for make in [Make::Bytes(b"x"), Make::Symlink("target")] {
        drop(machine.stage(&Step::Place(place(&path("/f"), make, false)), LIMIT).unwrap());
        assert_eq!(scratch.names("/"), [""; 0]);
    }
}

#[test]
fn what_appears_meanwhile_is_not_replaced() {
    //
    for make in [Make::Bytes(b"ours"), Make::Symlink("ours")] {
        let scratch = Scratch::new();
        let (mut machine, at) = (scratch.machine(), path("/f"));
        let mut staged = machine.stage(&Step::Place(place(&at, make, false)), LIMIT).unwrap();
        scratch.file("/f", "theirs");
        trouble(machine.commit(&mut staged), "something appeared there meanwhile");
        drop(staged);
        assert_eq!(
            (scratch.read("/f"), scratch.names("/")),
            (b"theirs".to_vec(), vec!["f".to_string()])
        );
    }
    let scratch = Scratch::new();
    scratch.directory("/d/below");
    let at = path("/d");
    trouble(
        take(&mut scratch.machine(), place(&at, Make::Directory, false)),
        "something appeared there meanwhile",
    );
    assert_eq!(
        (scratch.names("/"), scratch.names("/d")),
        (vec!["d".to_string()], vec!["below".to_string()])
    );
}

#[test]
fn another_kind_that_appears_meanwhile_is_not_replaced() {
    //
    let scratch = Scratch::new();
    scratch.file("/f", "old").link("/l", "old");
    let mut machine = scratch.machine();
    let (f, l) = (path("/f"), path("/l"));
    let mut file =
        machine.stage(&Step::Place(place(&f, Make::Bytes(b"new"), true)), LIMIT).unwrap();
    let mut link =
        machine.stage(&Step::Place(place(&l, Make::Symlink("new"), true)), LIMIT).unwrap();
    std::fs::remove_file(scratch.at("/f")).unwrap();
    symlink("/etc/passwd", scratch.at("/f")).unwrap();
    std::fs::remove_file(scratch.at("/l")).unwrap();
    scratch.directory("/l");
    trouble(machine.commit(&mut file), "something of another kind appeared there meanwhile");
    trouble(machine.commit(&mut link), "something of another kind appeared there meanwhile");
    drop((file, link));
    assert_eq!(scratch.names("/"), ["f", "l"]);
    assert_eq!(kind(&mut machine, "/f"), Entry::Symlink(b"/etc/passwd".to_vec()));
}

#[test]
fn a_parent_swapped_for_a_link_leads_nowhere_else() {
    let scratch = Scratch::new();
    scratch.directory("/d").directory("/victim");
    let (mut machine, at) = (scratch.machine(), path("/d/f"));
    let mut staged =
        machine.stage(&Step::Place(place(&at, Make::Bytes(b"x"), false)), LIMIT).unwrap();
    std::fs::rename(scratch.at("/d"), scratch.at("/moved")).unwrap();
    scratch.link("/d", "victim");
    machine.commit(&mut staged).unwrap();
    assert_eq!(
        (scratch.names("/victim"), scratch.names("/moved")),
        (vec![], vec!["f".to_string()])
    );
}

#[test]
fn another_name_of_the_file_keeps_the_old_contents() {
    let scratch = Scratch::new();
    scratch.file("/f", "old");
    std::fs::hard_link(scratch.at("/f"), scratch.at("/other")).unwrap();
    let at = path("/f");
    take(&mut scratch.machine(), place(&at, Make::Bytes(b"new"), true)).unwrap();
    assert_eq!((scratch.read("/f"), scratch.read("/other")), (b"new".to_vec(), b"old".to_vec()));
}

#[test]
fn the_longest_name_has_room_for_its_temporary() {
    let scratch = Scratch::new();
    let at = path(&format!("/{}", "n".repeat(255)));
    let mut machine = scratch.machine();
    take(&mut machine, place(&at, Make::Bytes(b"x"), false)).unwrap();
    take(&mut machine, place(&at, Make::Bytes(b"y"), true)).unwrap();
    assert_eq!(scratch.read(at.as_str()), b"y");
}

#[test]
fn a_stray_of_an_interrupted_run_is_found_and_nothing_else_is_removed() {
    //
    let scratch = Scratch::new();
    let (mut machine, at) = (scratch.machine(), path("/f"));
    let stray = scratch.0.join(std::ffi::OsStr::from_bytes(temporary(&at).as_bytes()));
    let place = || place(&at, Make::Bytes(b"x"), false);
    assert_eq!(machine.sweep(&at), Ok(false));
    assert_eq!(machine.sweep(&path("/no/f")), Ok(false));
    for make_stray in [
        |at: &Path| std::fs::write(at, "half").unwrap(),
        |at: &Path| symlink("/etc/passwd", at).unwrap(),
        |at: &Path| std::fs::create_dir(at).unwrap(),
    ] {
        make_stray(&stray);
        assert_eq!(machine.sweep(&at), Ok(true));
        make_stray(&stray);
        drop(machine.stage(&Step::Place(place()), LIMIT).unwrap());
        assert_eq!(scratch.names("/"), [""; 0]);
    }
    std::fs::create_dir_all(stray.join("full")).unwrap();
    trouble(machine.sweep(&at), "directory not empty");
    trouble(take(&mut machine, place()), "is in the way: directory not empty");
    assert!(stray.join("full").exists());
}

#[test]
fn what_others_put_under_the_temporary_name_is_not_removed() {
    //
    let scratch = Scratch::new();
    scratch.directory("/open").file("/open/theirs", "x");
    std::fs::set_permissions(scratch.at("/open"), PermissionsExt::from_mode(0o1777)).unwrap();
    let (mut machine, at) = (scratch.machine(), path("/open/f"));
    let stray = scratch.at("/open").join(temporary(&at).to_str().unwrap());
    let mut take = |make| take(&mut machine, Place { mode: 0o640, ..place(&at, make, false) });
    let file = |mode| {
        std::fs::write(&stray, "theirs").unwrap();
        std::fs::set_permissions(&stray, PermissionsExt::from_mode(mode)).unwrap();
    };
    let words = "is in the way: it is not as the host makes it; look what it is, and remove it";
    file(0o644);
    trouble(take(Make::Bytes(b"x")), words);
    trouble(take(Make::Symlink("x")), words);
    std::fs::remove_file(&stray).unwrap();
    std::fs::hard_link(scratch.at("/open/theirs"), &stray).unwrap();
    file(0o600);
    trouble(take(Make::Bytes(b"x")), words);
    std::fs::remove_file(&stray).unwrap();
    if is_root("giving files away") {
        file(0o600);
        give(&stray, 7);
        trouble(take(Make::Directory), words);
        std::fs::remove_file(&stray).unwrap();
    }
    // As it is made, and as it is just before it is put in place.
    for mode in [0o600, 0o640] {
        file(mode);
        take(Make::Bytes(b"x")).unwrap();
        std::fs::remove_file(scratch.at("/open/f")).unwrap();
    }
    assert_eq!(scratch.names("/open"), ["theirs"]);
}

#[test]
fn a_directory_that_is_not_as_it_was_made_is_no_new_one() {
    //
    use super::super::place::is_newly_made;
    use super::super::root::Root;
    let scratch = Scratch::new();
    scratch.directory("/new").directory("/full/x").directory("/open").directory("/theirs");
    for (at, mode) in [("/new", 0o2700), ("/full", 0o700), ("/open", 0o755), ("/theirs", 0o700)] {
        std::fs::set_permissions(scratch.at(at), PermissionsExt::from_mode(mode)).unwrap();
    }
    let root = Root::open(&scratch.0, Own::default()).unwrap();
    let is = |name: &str| {
        let fd = std::fs::File::open(scratch.at(name)).unwrap().into();
        is_newly_made(root.top(), &fd).unwrap()
    };
    assert!(is("/new") && !is("/full") && !is("/open"));
    if is_root("giving directories away") {
        give(&scratch.at("/theirs"), 7);
        assert!(!is("/theirs"));
    }
}

#[test]
fn a_missing_parent_is_what_a_placement_waits_for() {
    let scratch = Scratch::new();
    let at = path("/a/b/f");
    let result = take(&mut scratch.machine(), place(&at, Make::Bytes(b"x"), false));
    assert_eq!(trouble(result, "\"/a\" is not there").awaits, Some(Object::new("path", "/a")));
}

#[test]
fn a_group_is_made_durable_small_or_large() {
    let scratch = Scratch::new();
    let mut machine = scratch.machine();
    for count in [1, 3, 40] {
        let paths: Vec<RootPath> = (0..count).map(|at| path(&format!("/{count}-{at}"))).collect();
        let mut group: Vec<_> = paths
            .iter()
            .map(|at| {
                machine.stage(&Step::Place(place(at, Make::Bytes(b"x"), false)), LIMIT).unwrap()
            })
            .collect();
        machine.sync(&group).unwrap();
        group.iter_mut().for_each(|staged| machine.commit(staged).unwrap());
        machine.sync(&group).unwrap();
        assert!(paths.iter().all(|at| scratch.read(at.as_str()) == b"x"));
    }
    // What has been taken away cannot be made durable, and that is said.
    let at = path("/gone");
    let staged = machine.stage(&Step::Place(place(&at, Make::Bytes(b"x"), false)), LIMIT).unwrap();
    std::fs::remove_file(scratch.0.join(".").join(temporary(&at).to_str().unwrap())).unwrap();
    trouble(machine.sync(&[staged]), "no such file or directory");
}

#[test]
fn attributes_that_somebody_decided_are_kept() {
    let scratch = Scratch::new();
    scratch.file("/f", "old").file("/bare", "old");
    if !set_xattr(&scratch.at("/f"), c"user.origin", b"theirs") {
        return eprintln!("skipped: no extended attributes here");
    }
    // Version 2; user::rw-, user:7:r--, group::r--, mask::r--, other::r--.
    let list: [u8; 44] =
        access_list(&[(1, 6, !0), (2, 4, 7), (4, 4, !0), (16, 4, !0), (32, 4, !0)]);
    let has_lists = set_xattr(&scratch.at("/f"), c"system.posix_acl_access", &list);
    let mut machine = scratch.machine();
    let at = path("/f");
    take(&mut machine, Place { mode: 0o640, ..place(&at, Make::Bytes(b"new"), true) }).unwrap();
    assert_eq!(get_xattr(&scratch.at("/f"), c"user.origin").as_deref(), Some(&b"theirs"[..]));
    assert_eq!((scratch.read("/f"), mode(&scratch, "/f")), (b"new".to_vec(), 0o640));
    if has_lists {
        let kept = get_xattr(&scratch.at("/f"), c"system.posix_acl_access").unwrap();
        let expected: [u8; 44] =
            access_list(&[(1, 6, !0), (2, 4, 7), (4, 4, !0), (16, 4, !0), (32, 0, !0)]);
        assert_eq!(kept, expected);
        // What was open to nobody in particular does not become so by its directory's default.
        assert!(set_xattr(&scratch.0, c"system.posix_acl_default", &list));
        let bare = path("/bare");
        take(&mut machine, place(&bare, Make::Bytes(b"new"), true)).unwrap();
        assert_eq!(get_xattr(&scratch.at("/bare"), c"system.posix_acl_access"), None);
    }
}

#[test]
fn nobody_gets_at_what_is_placed_by_an_access_list_beside_its_mode() {
    //
    let scratch = Scratch::new();
    scratch.file("/f", "old");
    let (name, default) = (c"system.posix_acl_access", c"system.posix_acl_default");
    let list: [u8; 44] =
        access_list(&[(1, 6, !0), (2, 6, 1000), (4, 4, !0), (16, 6, !0), (32, 0, !0)]);
    if !set_xattr(&scratch.at("/f"), name, &list) || !set_xattr(&scratch.0, default, &list) {
        return eprintln!("skipped: no access lists here");
    }
    let mut machine = scratch.machine();
    for (at, make, over) in [
        ("/f", Make::Bytes(b"secret"), true),
        ("/g", Make::Bytes(b"secret"), false),
        ("/d", Make::Directory, false),
    ] {
        let of = path(at);
        let place = Place { mode: 0o640, keeps_list: false, ..place(&of, make, over) };
        take(&mut machine, place).unwrap();
        assert_eq!((get_xattr(&scratch.at(at), name), mode(&scratch, at)), (None, 0o640), "{at}");
    }
    // What was there keeps its own where no mode is declared; what is new has none.
    assert!(set_xattr(&scratch.at("/f"), name, &list));
    for (at, over) in [("/f", true), ("/h", false)] {
        take(&mut machine, place(&path(at), Make::Bytes(b"x"), over)).unwrap();
        assert_eq!(get_xattr(&scratch.at(at), name).is_some(), over, "{at}");
    }
}

#[test]
fn a_link_without_the_kernels_help_replaces_nothing_either() {
    //
    use super::super::place::rename_new_without_help;
    use super::super::root::Root;
    use super::super::sys::Kind;
    let scratch = Scratch::new();
    scratch.file("/old", "old").file("/taken", "taken").directory("/dir").directory("/full/x");
    let root = Root::open(&scratch.0, Own::default()).unwrap();
    let rename = |old, new, kind| rename_new_without_help(root.top(), old, new, kind);
    assert!(rename(c"old", c"taken", Kind::File).is_err());
    assert!(rename(c"dir", c"full", Kind::Directory).is_err());
    assert!(rename(c"dir", c"taken", Kind::Directory).is_err());
    rename(c"old", c"new", Kind::File).unwrap();
    rename(c"dir", c"dir2", Kind::Directory).unwrap();
    assert_eq!(scratch.names("/"), ["dir2", "full", "new", "taken"]);
    assert_eq!(
        (scratch.read("/new"), scratch.read("/taken")),
        (b"old".to_vec(), b"taken".to_vec())
    );
}

fn access_list<const N: usize>(entries: &[(u16, u16, u32)]) -> [u8; N] {
    let mut bytes = 2u32.to_le_bytes().to_vec();
    for (tag, permissions, id) in entries {
        bytes.extend(tag.to_le_bytes());
        bytes.extend(permissions.to_le_bytes());
        bytes.extend(id.to_le_bytes());
    }
    bytes.try_into().unwrap()
}

fn c_path(at: &Path) -> std::ffi::CString {
    std::ffi::CString::new(at.as_os_str().as_bytes()).unwrap()
}

fn set_xattr(at: &Path, name: &std::ffi::CStr, value: &[u8]) -> bool {
    let (at, name) = (c_path(at), name.as_ptr());
    // SAFETY: both strings are NUL-terminated, the value readable for its length.
    unsafe { libc::setxattr(at.as_ptr(), name, value.as_ptr().cast(), value.len(), 0) == 0 }
}

fn get_xattr(at: &Path, name: &std::ffi::CStr) -> Option<Vec<u8>> {
    let (at, mut value) = (c_path(at), vec![0u8; 4096]);
    let (room, size) = (value.as_mut_ptr().cast(), value.len());
    // SAFETY: both strings are NUL-terminated, the value writable for its length.
    let len = unsafe { libc::getxattr(at.as_ptr(), name.as_ptr(), room, size) };
    value.truncate(usize::try_from(len).ok()?);
    Some(value)
}

#[test]
fn a_mode_is_set_whatever_the_umask_and_the_parents_group() {
    let scratch = Scratch::new();
    scratch.directory("/d");
    std::fs::set_permissions(scratch.at("/d"), PermissionsExt::from_mode(0o2775)).unwrap();
    let mut machine = scratch.machine();
    let (f, d) = (path("/d/f"), path("/d/e"));
    take(&mut machine, Place { mode: 0o666, ..place(&f, Make::Bytes(b"x"), false) }).unwrap();
    take(&mut machine, Place { mode: 0o777, ..place(&d, Make::Directory, false) }).unwrap();
    assert_eq!((mode(&scratch, "/d/f"), mode(&scratch, "/d/e")), (0o666, 0o777));
}
