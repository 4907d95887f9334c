//! What the kernel refuses: said in its words, with nothing replaced and nothing left behind.

use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;

use super::*;
use crate::resource::{Removable, Step};

/// Sets or clears the immutable flag, for good or for as long as it lives.
struct Immutable(std::fs::File);

/// `FS_IOC_SETFLAGS` and `FS_IMMUTABLE_FL` of <linux/fs.h>, 64-bit.
const SET_FLAGS: u64 = 0x4008_6602;
const IMMUTABLE: libc::c_long = 0x10;

impl Immutable {
    fn new(at: &Path) -> Option<Immutable> {
        let file = std::fs::File::open(at).unwrap();
        // SAFETY: the request reads one long from the address.
        let set = unsafe { libc::ioctl(file.as_raw_fd(), SET_FLAGS as _, &IMMUTABLE) };
        (set == 0).then_some(Immutable(file))
    }
}

impl Drop for Immutable {
    fn drop(&mut self) {
        let none: libc::c_long = 0;
        // SAFETY: the request reads one long from the address.
        unsafe { libc::ioctl(self.0.as_raw_fd(), SET_FLAGS as _, &none) };
    }
}

#[test]
fn a_full_file_system_keeps_the_old_file() {
    //
    let scratch = Scratch::new();
    let Some(_mount) = Mount::tmpfs(&scratch.0, "size=128k") else { return };
    scratch.file("/f", "old");
    let (mut machine, at) = (scratch.machine(), path("/f"));
    let large = vec![b'x'; 1 << 20];
    let result = machine.take(&Step::Place(place(&at, Make::Bytes(&large), true)), LIMIT);
    let trouble = trouble(result, "no space left on device");
    assert_eq!(trouble.cause, "write 1048576 bytes: no space left on device");
    assert_eq!((scratch.read("/f"), scratch.names("/")), (b"old".to_vec(), vec!["f".to_string()]));
}

#[test]
fn a_read_only_file_system_refuses_every_step() {
    //
    let scratch = Scratch::new();
    let Some(_mount) = Mount::tmpfs(&scratch.0, "ro") else { return };
    let (mut machine, at) = (scratch.machine(), path("/f"));
    for make in [Make::Bytes(b"x"), Make::Symlink("x"), Make::Directory] {
        let result = machine.take(&Step::Place(place(&at, make, false)), LIMIT);
        trouble(result, "read-only file system");
    }
    assert_eq!(look(&mut machine, "/f"), Found::Nothing);
}

#[test]
fn an_immutable_file_stays_and_the_refusal_says_where_to_look() {
    //
    let scratch = Scratch::new();
    scratch.file("/f", "old");
    let Some(_immutable) = Immutable::new(&scratch.at("/f")) else {
        return eprintln!("skipped: no immutable files here");
    };
    let (mut machine, at) = (scratch.machine(), path("/f"));
    let placed = machine.take(&Step::Place(place(&at, Make::Bytes(b"new"), true)), LIMIT);
    trouble(placed, "operation not permitted; lsattr(1) shows");
    let step = Step::Remove { path: &at, kind: Removable::File };
    trouble(machine.take(&step, LIMIT), "operation not permitted; lsattr(1) shows");
    assert_eq!((scratch.read("/f"), scratch.names("/")), (b"old".to_vec(), vec!["f".to_string()]));
}

#[test]
fn a_mount_point_is_not_removed() {
    let scratch = Scratch::new();
    scratch.directory("/mount");
    let Some(_mount) = Mount::tmpfs(&scratch.at("/mount"), "size=64k") else { return };
    let step = Step::Remove { path: &path("/mount"), kind: Removable::Directory };
    trouble(scratch.machine().take(&step, LIMIT), "something is mounted there");
}

#[test]
fn a_group_over_several_file_systems_is_made_durable() {
    let scratch = Scratch::new();
    scratch.directory("/mount");
    let Some(_mount) = Mount::tmpfs(&scratch.at("/mount"), "size=1m") else { return };
    let mut machine = scratch.machine();
    let paths: Vec<RootPath> =
        (0..40).map(|n| path(&format!("{}/{n}", ["", "/mount"][n % 2]))).collect();
    let stage =
        |at| machine.stage(&Step::Place(place(at, Make::Bytes(b"x"), false)), LIMIT).unwrap();
    let mut group: Vec<_> = paths.iter().map(stage).collect();
    machine.sync(&group).unwrap();
    group.iter_mut().for_each(|staged| machine.commit(staged).unwrap());
    machine.sync(&group).unwrap();
    assert_eq!(scratch.names("/mount").len(), 20);
}

#[test]
fn a_user_may_try_it_out_and_is_told_what_only_root_can_do() {
    be_a_user();
    let scratch = Scratch::new();
    let mut machine = scratch.machine();
    let mut take = |place: Place| machine.take(&Step::Place(place), LIMIT);
    for (at, make) in
        [("/f", Make::Bytes(b"x")), ("/d", Make::Directory), ("/l", Make::Symlink("f"))]
    {
        take(place(&path(at), make, false)).unwrap();
    }
    for make in [Make::Bytes(b"x"), Make::Directory, Make::Symlink("x")] {
        let at = path("/given");
        let roots = Place { uid: 0, gid: 0, ..place(&at, make, false) };
        trouble(take(roots), "give it to user 0, group 0: operation not permitted; only root can");
    }
    assert_eq!(scratch.names("/"), ["d", "f", "l"]);
}

#[test]
fn what_may_not_be_read_or_entered_is_said_in_the_kernels_words() {
    be_a_user();
    let scratch = Scratch::new();
    scratch.file("/f", "x").directory("/d").directory("/d/e");
    for at in ["/f", "/d"] {
        std::fs::set_permissions(scratch.at(at), PermissionsExt::from_mode(0o000)).unwrap();
    }
    let mut machine = scratch.machine();
    let file = trouble(ask(&mut machine, "/f", Some(Holds::Bytes(b"x"))), "permission denied");
    assert_eq!((file.doing.as_str(), file.cause.as_str()), ("look at \"/f\"", "permission denied"));
    trouble(ask(&mut machine, "/d/f", None), "permission denied");
    trouble(ask(&mut machine, "/d/e/f", None), "\"/d/e\": permission denied");
    // What it is can be seen without reading it.
    assert_eq!(kind(&mut machine, "/f"), Entry::File { size: 1, holds: None });
    std::fs::set_permissions(scratch.at("/d"), PermissionsExt::from_mode(0o700)).unwrap();
}

#[test]
fn what_is_anothers_is_read_without_the_right_to_hide_it() {
    // The kernel lets only a file's owner read it without its access time being touched.
    be_a_user();
    let mut machine = Machine::open(Path::new("/proc"), Own::default()).unwrap();
    let cap = 4096;
    assert!(machine.read_text(&path("/version"), cap).is_some_and(|text| !text.is_empty()));
    assert!(machine.read_text(&path("/version"), cap).is_some());
}
