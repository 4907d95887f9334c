//! Removing an entry, and giving one another mode or owner.
//!
//! Never recursive, never following; what is no longer of the kind that was seen is left alone.

use std::io;
use std::os::fd::OwnedFd;

use super::place::{hinted, no_chown};
use super::root::{trouble, Spot};
use super::sys::{self, Kind, Stat};
use super::words::words;
use crate::resource::{Removable, RootPath, Trouble};

/// Why an entry was not removed.
pub(super) enum Unremoved {
    /// It is a directory that holds something.
    NotEmpty,
    /// Anything else.
    Because(String),
}

/// Removes the entry at `spot` if it is still of this kind; nothing there is as good.
pub(super) fn remove(spot: &Spot, kind: Removable) -> Result<Kind, Unremoved> {
    let because = |error: io::Error| Unremoved::Because(words(&error));
    let gone = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
    let (expected, name) = match kind {
        Removable::File => (Kind::File, "a regular file"),
        Removable::Directory => (Kind::Directory, "a directory"),
        Removable::Symlink => (Kind::Symlink, "a symbolic link"),
    };
    let stat = match sys::stat_at(&spot.dir.fd, &spot.name) {
        Ok(stat) => stat,
        Err(error) if gone(&error) => return Ok(expected),
        Err(error) => return Err(because(error)),
    };
    if stat.kind != expected {
        return Err(Unremoved::Because(format!("it is no longer {name}")));
    }
    let removed = match kind {
        Removable::Directory => sys::remove_directory(&spot.dir.fd, &spot.name),
        Removable::File | Removable::Symlink => sys::unlink(&spot.dir.fd, &spot.name),
    };
    match removed {
        Ok(()) => Ok(expected),
        Err(error) if gone(&error) => Ok(expected),
        Err(error) => Err(match error.raw_os_error() {
            Some(libc::ENOTEMPTY | libc::EEXIST) => Unremoved::NotEmpty,
            Some(libc::EBUSY) => {
                Unremoved::Because(format!("{}: something is mounted there", words(&error)))
            }
            _ => Unremoved::Because(hinted(&error)),
        }),
    }
}

/// Removes the regular file `path` at `spot`, durably; that there is none is as good.
pub(super) fn remove_file(spot: &Spot, path: &RootPath) -> Result<(), Trouble> {
    match remove(spot, Removable::File) {
        Ok(_) => {}
        Err(Unremoved::NotEmpty) => unreachable!("a file holds no names"),
        Err(Unremoved::Because(cause)) => return Err(trouble(path, "remove", cause)),
    }
    let synced = spot.dir.reopen().and_then(|dir| sys::sync(&dir));
    synced.map_err(|error| trouble(path, "make durable", words(&error)))
}

/// Gives the regular file or directory at `spot` this access; says which it is.
pub(super) fn access(spot: &Spot, mode: u16, uid: u32, gid: u32) -> Result<Kind, String> {
    // Before it is opened: opening a device can have effects.
    let seen = sys::stat_at(&spot.dir.fd, &spot.name).map_err(|error| words(&error))?;
    let (fd, stat) = open_seen(spot, seen)?;
    if stat.kind == Kind::Directory && stat.uid == 0 && uid != 0 {
        may_give_away(spot, &fd)?;
    }
    sys::chown(&fd, uid, gid).map_err(|error| no_chown(&error, uid, gid))?;
    sys::chmod(&fd, mode).map_err(|error| format!("set mode {mode:04o}: {}", hinted(&error)))?;
    Ok(stat.kind)
}

/// Opens what was `seen` at `spot`, and nothing else that has come there since: a second name of
/// another file, the first of which then goes, has a single name too.
pub(super) fn open_seen(spot: &Spot, seen: Stat) -> Result<(OwnedFd, Stat), String> {
    let changes =
        |stat: Stat| stat.kind == Kind::Directory || stat.kind == Kind::File && !stat.linked;
    let another = || "another thing was put in its place meanwhile".to_string();
    if !changes(seen) {
        return Err(another());
    }
    let flags = libc::O_RDONLY | libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let fd = sys::open(&spot.dir.fd, &spot.name, flags, 0).map_err(|error| words(&error))?;
    let stat = sys::stat(&fd).map_err(|error| words(&error))?;
    if !changes(stat) || stat.identity != seen.identity {
        return Err(another());
    }
    Ok((fd, stat))
}

/// Root's directory `fd` is given to somebody else only where nobody else can have chosen it: who
/// may change the directory that holds it can move another of root's there, with all that it holds.
fn may_give_away(spot: &Spot, fd: &OwnedFd) -> Result<(), String> {
    let parent = sys::stat(&spot.dir.fd).map_err(|error| words(&error))?;
    let sticky = parent.mode & 0o1000 != 0;
    if parent.uid == 0 && (parent.mode & 0o022 == 0 || sticky)
        || is_empty(fd).map_err(|error| words(&error))?
    {
        return Ok(());
    }
    Err("it is root's and holds something, and others than root can change the directory that it \
         lies in, so they may have put it there to be given it; look what it holds, then give it \
         away with chown(1)"
        .to_string())
}

/// The directory `fd`, which is open for reading, holds nothing.
pub(super) fn is_empty(fd: &OwnedFd) -> io::Result<bool> {
    let again = sys::open(fd, c".", libc::O_RDONLY | libc::O_DIRECTORY, 0)?;
    sys::any_entry(again, &|_| true).map(|any| !any)
}
