//! Putting a directory entry in place, whole, in one visible instant.
//!
//! A file or link is made complete under another name beside its target, with its owner and mode,
//! and then renamed; nobody ever sees half of it, or a secret that others may read. Access is set
//! through the descriptor of what was made, never by a name that could be swapped. Owns the other
//! name: it follows from the target's path, so that what an interrupted run left is found again.

use std::cell::Cell;
use std::ffi::{CStr, CString};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::time::Duration;

use super::change::is_empty;
use super::fetch::{self, Fetcher};
use super::files::Reader;
use super::root::{trouble, Dir, Root, Spot};
use super::sync::sync;
use super::sys::{self, Kind};
use super::words::words;
use super::xattr;
use crate::digest::{hex, sha256};
use crate::resource::{Make, Place, RootPath, Trouble};

/// An entry that is complete and waits beside its target to be renamed over it. Dropped before
/// that, it is removed.
///
/// Also what is left of any other step: what has yet to be made durable.
#[derive(Debug)]
pub struct Staged(pub(super) Option<Entry>);

/// A directory entry that a step made, changed or removed.
#[derive(Debug)]
pub(super) struct Entry {
    pub spot: Spot,
    pub path: RootPath,
    pub kind: Kind,
    /// The name it has until it is in place; `None` from then on.
    pub temporary: Option<CString>,
    /// What of it is not yet durable once it is in place.
    pub dirty: Dirty,
    over: bool,
}

/// What of an entry a step changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dirty {
    /// Its name.
    Name,
    /// Its mode, owner or contents.
    Itself,
    /// Both.
    Both,
}

impl Staged {
    /// It is complete and not yet in place.
    pub fn waits(&self) -> bool {
        self.0.as_ref().is_some_and(|entry| entry.temporary.is_some())
    }

    /// A step that left nothing to be made durable.
    pub(super) fn nothing() -> Staged {
        Staged(None)
    }

    /// A step that is done but for being made durable.
    pub(super) fn done(spot: Spot, path: &RootPath, kind: Kind, dirty: Dirty) -> Staged {
        Staged(Some(Entry { spot, path: path.clone(), kind, temporary: None, dirty, over: false }))
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        if let Some(temporary) = self.temporary.take() {
            // What cannot be removed is found by its name when the target is next placed or swept.
            let _ = match self.kind {
                Kind::Directory => sys::remove_directory(&self.spot.dir.fd, &temporary),
                _ => sys::unlink(&self.spot.dir.fd, &temporary),
            };
        }
    }
}

/// The name that what becomes `path` has until then; it fits whatever the length of the last name.
pub(super) fn temporary(path: &RootPath) -> CString {
    let digest = sha256(path.as_str().as_bytes());
    let name = format!(".{}.mesh-host~", hex(&digest[..8]));
    CString::new(name).expect("hexadecimal holds no NUL")
}

/// What fills a file.
pub(super) struct Filling<'a> {
    pub reader: &'a mut Reader,
    pub fetcher: &'a Fetcher,
    /// How long fetching may take.
    pub limit: Duration,
}

/// Where, and with what, a step of several parts writes.
pub(super) struct Site<'a> {
    pub root: &'a mut Root,
    pub reader: &'a mut Reader,
    pub fetcher: &'a Fetcher,
    /// How long all of it may take.
    pub limit: Duration,
}

/// What is being made, under its temporary name.
struct Making<'a> {
    spot: &'a Spot,
    name: &'a CStr,
    place: &'a Place<'a>,
    /// What has the temporary name is ours.
    begun: Cell<bool>,
}

/// Makes `place` complete beside its target; a directory, which nothing can replace, in place.
pub(super) fn stage(spot: Spot, place: &Place, filling: Filling) -> Result<Staged, Trouble> {
    let kind = match place.make {
        Make::Directory => Kind::Directory,
        Make::Bytes(_) | Make::Fetched { .. } => Kind::File,
        Make::Symlink(_) => Kind::Symlink,
    };
    let name = temporary(place.path);
    let making = Making { spot: &spot, name: &name, place, begun: Cell::new(false) };
    let made = match place.make {
        Make::Directory => make_directory(&making),
        Make::Symlink(target) => make_link(&making, target),
        Make::Bytes(_) | Make::Fetched { .. } => make_file(&making, filling),
    };
    let temporary = making.begun.get().then_some(name);
    let (path, over) = (place.path.clone(), place.over);
    let dirty = if kind == Kind::Directory { Dirty::Both } else { Dirty::Name };
    let mut entry = Entry { spot, path, kind, temporary, dirty, over };
    made.map_err(|cause| trouble(place.path, "make", cause))?;
    if kind == Kind::Directory {
        entry.temporary = None;
    }
    Ok(Staged(Some(entry)))
}

/// Renames what was staged to its target.
pub(super) fn commit(staged: &mut Staged) -> Result<(), Trouble> {
    let Some(entry) = &mut staged.0 else { return Ok(()) };
    let Some(temporary) = &entry.temporary else { return Ok(()) };
    let Spot { dir, name } = &entry.spot;
    let renamed = match entry.over {
        true => still(dir, name, entry.kind)
            .and_then(|()| sys::rename_over(&dir.fd, temporary, name).map_err(|e| hinted(&e))),
        false => rename_new(dir, temporary, name, entry.kind),
    };
    renamed.map_err(|cause| trouble(&entry.path, "put in place", cause))?;
    entry.temporary = None;
    Ok(())
}

/// Puts one file in place by itself, durably.
pub(super) fn durably(spot: Spot, place: &Place, filling: Filling) -> Result<(), Trouble> {
    let mut staged = stage(spot, place, filling)?;
    sync([&staged])?;
    commit(&mut staged)?;
    sync([&staged])
}

/// Removes what an interrupted run left under the temporary name `name`; says whether it did.
/// That a run was interrupted here, or that it is as the host makes it, the caller has seen.
pub(super) fn unlink_stray(dir: &Dir, name: &CStr) -> io::Result<bool> {
    let removed = match sys::stat_at(&dir.fd, name).map(|stat| stat.kind) {
        Ok(Kind::File | Kind::Symlink) => sys::unlink(&dir.fd, name),
        Ok(Kind::Directory) => sys::remove_directory(&dir.fd, name),
        Ok(Kind::Other(_)) => Err(io::Error::from_raw_os_error(libc::EEXIST)),
        Err(error) => Err(error),
    };
    match removed {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

impl Making<'_> {
    /// Has `make` make something new; what an interrupted run left is cleared out of its way.
    fn fresh<T>(&self, make: impl Fn(&Dir, &CStr) -> io::Result<T>) -> Result<T, String> {
        let (dir, name) = (&self.spot.dir, self.name);
        let made = match make(dir, name) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let in_the_way =
                    |cause: String| format!("{} is in the way: {cause}", name.to_string_lossy());
                let failed = |error: io::Error| in_the_way(words(&error));
                if !may_be_ours(dir, name, self.place).map_err(failed)? {
                    let cause = "it is not as the host makes it; look what it is, and remove it";
                    return Err(in_the_way(cause.to_string()));
                }
                unlink_stray(dir, name).map_err(failed)?;
                make(dir, name)
            }
            made => made,
        };
        self.begun.set(made.is_ok());
        made.map_err(|error| hinted(&error))
    }
}

/// What has a temporary name is what the host leaves: as it makes it or as it gives it away. Where
/// only root and the host could have made it, the name says enough.
fn may_be_ours(dir: &Dir, name: &CStr, place: &Place) -> io::Result<bool> {
    let (parent, (euid, _)) = (sys::stat(&dir.fd)?, sys::effective_ids());
    if [0, euid].contains(&parent.uid) && parent.mode & 0o022 == 0 {
        return Ok(true);
    }
    let stat = match sys::stat_at(&dir.fd, name) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        stat => stat?,
    };
    let (made, given) = match stat.kind {
        Kind::File => (stat.mode == 0o600, stat.mode == place.mode),
        Kind::Directory => (stat.mode & !0o2700 == 0, stat.mode == place.mode),
        Kind::Symlink => (true, true),
        Kind::Other(_) => (false, false),
    };
    Ok(!stat.linked && (made && stat.uid == euid || given && stat.uid == place.uid))
}

fn make_file(making: &Making, filling: Filling) -> Result<(), String> {
    let Making { spot, place, .. } = *making;
    let flags = libc::O_CREAT | libc::O_EXCL | libc::O_RDWR | libc::O_NOFOLLOW;
    let fd = making.fresh(|dir, name| sys::open(&dir.fd, name, flags, 0o600))?;
    let mut file = File::from(fd);
    match place.make {
        Make::Bytes(bytes) => file
            .write_all(bytes)
            .map_err(|error| format!("write {} bytes: {}", bytes.len(), words(&error)))?,
        Make::Fetched { url, sha256 } => file = fetch::into_file(file, url, sha256, filling)?,
        Make::Directory | Make::Symlink(_) => unreachable!("only a file is filled"),
    }
    let fd = OwnedFd::from(file);
    xattr::bare(&fd)?;
    if place.over {
        xattr::keep(spot, &fd, place.keeps_list)?;
    }
    give(&fd, place)
}

/// Sets owner and mode, in this order: a change of owner clears the setuid bit. What is right
/// already is left: even a change to the same writes to the disk's own journal.
fn give(fd: &OwnedFd, place: &Place) -> Result<(), String> {
    let Place { uid, gid, mode, .. } = *place;
    let stat = sys::stat(fd).map_err(|error| words(&error))?;
    if (stat.uid, stat.gid) != (uid, gid) {
        sys::chown(fd, uid, gid).map_err(|error| no_chown(&error, uid, gid))?;
    } else if stat.mode == mode {
        return Ok(());
    }
    sys::chmod(fd, mode).map_err(|error| format!("set mode {mode:04o}: {}", words(&error)))
}

/// Why something could not be given to an owner.
pub(super) fn no_chown(error: &io::Error, uid: u32, gid: u32) -> String {
    let mend = match error.raw_os_error() {
        Some(libc::EPERM) if sys::effective_ids().0 != 0 => "; only root can: run as root",
        _ => "",
    };
    format!("give it to user {uid}, group {gid}: {}{mend}", words(error))
}

fn make_link(making: &Making, target: &str) -> Result<(), String> {
    let Making { spot: Spot { dir, .. }, name, place, .. } = *making;
    let target = CString::new(target).map_err(|_| "its target holds a NUL byte".to_string())?;
    making.fresh(|dir, name| sys::make_link(&target, &dir.fd, name))?;
    // Through a descriptor, having seen that it is ours: whoever can write the directory could
    // have put another thing under its name.
    let (uid, gid) = (place.uid, place.gid);
    let link = sys::open(&dir.fd, name, libc::O_PATH | libc::O_NOFOLLOW, 0)
        .map_err(|error| words(&error))?;
    let stat = sys::stat(&link).map_err(|error| words(&error))?;
    if (stat.uid, stat.gid) == (uid, gid) {
        return Ok(());
    }
    if stat.kind != Kind::Symlink || stat.uid != sys::effective_ids().0 || stat.linked {
        return Err("another thing was put in its place while it was made".to_string());
    }
    sys::chown_link(&link, uid, gid).map_err(|error| no_chown(&error, uid, gid))
}

fn make_directory(making: &Making) -> Result<(), String> {
    let Making { spot: Spot { dir, name: becomes }, name, place, .. } = *making;
    making.fresh(|dir, name| sys::make_directory(&dir.fd, name, 0o700))?;
    let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_NOFOLLOW;
    let fd = sys::open(&dir.fd, name, flags, 0).map_err(|error| words(&error))?;
    let stat = sys::stat(&fd).map_err(|error| words(&error))?;
    // On a file system without owners and modes, it is as the mount has it, and that may do.
    if (stat.uid, stat.gid, stat.mode) != (place.uid, place.gid, place.mode) {
        if !is_newly_made(dir, &fd).map_err(|error| words(&error))? {
            return Err("another thing was put in its place while it was made".to_string());
        }
        xattr::bare(&fd)?;
        give(&fd, place)?;
    }
    rename_new(dir, name, becomes, Kind::Directory)
}

/// The directory `fd` in `dir` is as [`sys::make_directory`] leaves one. Whoever can write `dir`
/// may exchange it for another of root's before it is opened, and that must not be given away.
pub(super) fn is_newly_made(dir: &Dir, fd: &OwnedFd) -> io::Result<bool> {
    let (stat, parent) = (sys::stat(fd)?, sys::stat(&dir.fd)?);
    let (euid, egid) = sys::effective_ids();
    // The group and the bit that hands it on can be the parent's; its default list narrows modes.
    let made = stat.mode & !0o2700 == 0 && stat.uid == euid;
    Ok(made && [egid, parent.gid].contains(&stat.gid) && is_empty(fd)?)
}

/// `name` is still of the kind that was seen there, or gone.
fn still(dir: &Dir, name: &CStr, kind: Kind) -> Result<(), String> {
    match sys::stat_at(&dir.fd, name) {
        Ok(stat) if stat.kind == kind => Ok(()),
        Ok(_) => Err("something of another kind appeared there meanwhile".to_string()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(words(&error)),
    }
}

/// Renames where nothing may be replaced, also on a file system or kernel that cannot promise it.
fn rename_new(dir: &Dir, old: &CStr, new: &CStr, kind: Kind) -> Result<(), String> {
    let renamed = match sys::rename_new(&dir.fd, old, new) {
        Err(error) if matches!(error.raw_os_error(), Some(libc::EINVAL | libc::ENOSYS)) => {
            rename_new_without_help(dir, old, new, kind)
        }
        renamed => renamed,
    };
    renamed.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => "something appeared there meanwhile".to_string(),
        _ => hinted(&error),
    })
}

/// A second name fails where the name is taken. A directory cannot have one, nor can a file on
/// some file systems: for these all that is left is to look first.
pub(super) fn rename_new_without_help(
    dir: &Dir,
    old: &CStr,
    new: &CStr,
    kind: Kind,
) -> io::Result<()> {
    if kind != Kind::Directory {
        match sys::second_name(&dir.fd, old, new) {
            Ok(()) => return sys::unlink(&dir.fd, old),
            Err(error) => match error.raw_os_error() {
                Some(libc::EPERM | libc::EOPNOTSUPP | libc::ENOSYS | libc::EMLINK) => {}
                _ => return Err(error),
            },
        }
    }
    match sys::stat_at(&dir.fd, new) {
        Ok(_) => Err(io::Error::from_raw_os_error(libc::EEXIST)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            sys::rename_over(&dir.fd, old, new)
        }
        Err(error) => Err(error),
    }
}

/// The kernel's words, and what they hide when root hears them.
pub(super) fn hinted(error: &io::Error) -> String {
    let hint = match error.raw_os_error() {
        Some(libc::EPERM) => "; lsattr(1) shows whether it or its directory is immutable",
        _ => "",
    };
    format!("{}{hint}", words(error))
}
