//! Removing an entry, and giving a directory another mode or owner.
//!
//! Never recursive, never following; what is no longer of the kind that was seen is left alone.

use std::io;

use super::place::{hinted, no_chown};
use super::root::{Dir, Spot};
use super::sys::{self, Kind};
use super::words::words;
use crate::resource::Removable;

/// Removes the entry at `spot` if it is still of this kind; nothing there is as good. Durable.
pub(super) fn remove(spot: &Spot, kind: Removable) -> Result<(), String> {
    let stat = match sys::stat_at(&spot.dir.fd, &spot.name) {
        Ok(stat) => stat,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return sync(&spot.dir),
        Err(error) => return Err(words(&error)),
    };
    let (expected, name) = match kind {
        Removable::File => (Kind::File, "a regular file"),
        Removable::Directory => (Kind::Directory, "a directory"),
        Removable::Symlink => (Kind::Symlink, "a symbolic link"),
    };
    if stat.kind != expected {
        return Err(format!("it is no longer {name}"));
    }
    let removed = match kind {
        Removable::Directory => sys::remove_directory(&spot.dir.fd, &spot.name),
        Removable::File | Removable::Symlink => sys::unlink(&spot.dir.fd, &spot.name),
    };
    match removed {
        Ok(()) => sync(&spot.dir),
        Err(error) => match error.raw_os_error() {
            Some(libc::ENOENT) => sync(&spot.dir),
            Some(libc::ENOTEMPTY | libc::EEXIST) => Err("it is not empty".to_string()),
            Some(libc::EBUSY) => Err(format!("{}: something is mounted there", words(&error))),
            _ => Err(hinted(&error)),
        },
    }
}

/// Gives the directory at `spot` this access. Durable.
pub(super) fn access(spot: &Spot, mode: u16, uid: u32, gid: u32) -> Result<(), String> {
    let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_NOFOLLOW;
    let fd = sys::open(&spot.dir.fd, &spot.name, flags, 0).map_err(|error| words(&error))?;
    sys::chown(&fd, uid, gid).map_err(|error| no_chown(&error, uid, gid))?;
    sys::chmod(&fd, mode).map_err(|error| format!("set mode {mode:04o}: {}", hinted(&error)))?;
    sys::sync(&fd).map_err(|error| words(&error))
}

/// A removal that an interrupted run did not make durable is made so by the next.
fn sync(dir: &Dir) -> Result<(), String> {
    let synced = dir.reopen().and_then(|dir| sys::sync(&dir));
    synced.map_err(|error| format!("make it durable: {}", words(&error)))
}
