//! Making durable what was staged or renamed.
//!
//! A few entries are synced one by one. From [`CROSSOVER`] entries on, one syncfs(2) for each file
//! system does it all: fsync waits for a journal commit each time, syncfs for one. That is sound
//! since syncfs waits until every byte and name that was written before is on the disk, ours among
//! them. Its limits: it writes out what others have dirtied too, so it takes as long as that does;
//! and before Linux 5.8 it reports no failed write of data, which then shows when the file is next
//! read and differs. fsync reports one on every kernel that runs this.

use std::collections::BTreeSet;
use std::ffi::CStr;
use std::io;
use std::rc::Rc;

use super::place::{Dirty, Entry, Staged};
use super::root::{trouble, Dir, Spot};
use super::sys::{self, Kind};
use super::words::words;
use crate::resource::Trouble;

/// The largest group whose entries are synced one by one.
pub(super) const CROSSOVER: usize = 8;

/// Makes `group` durable: of what is only staged the contents, of what is in place the names too.
pub(super) fn sync<'s>(group: impl IntoIterator<Item = &'s Staged>) -> Result<(), Trouble> {
    let group: Vec<&Entry> = group.into_iter().filter_map(|staged| staged.0.as_ref()).collect();
    let result = if group.len() > CROSSOVER { whole_systems(&group) } else { one_by_one(&group) };
    result.map_err(|(at, error)| trouble(&at.path, "make durable", words(&error)))
}

type Failed<'a> = (&'a Entry, io::Error);

pub(super) fn one_by_one<'a>(group: &[&'a Entry]) -> Result<(), Failed<'a>> {
    let mut parents = BTreeSet::new();
    for entry in group {
        let Spot { dir, name } = &entry.spot;
        let synced = match (&entry.temporary, entry.kind, entry.dirty) {
            (Some(temporary), Kind::File, _) => contents(dir, temporary),
            (Some(_), _, _) => Ok(()),
            (None, _, Dirty::Itself) => contents(dir, name),
            (None, _, Dirty::Name) => parent(&mut parents, dir),
            (None, _, Dirty::Both) => contents(dir, name).and_then(|()| parent(&mut parents, dir)),
        };
        synced.map_err(|error| (*entry, error))?;
    }
    Ok(())
}

/// Syncs the directory `dir`, unless it is among those that have been.
fn parent<'a>(done: &mut BTreeSet<&'a [u8]>, dir: &'a Dir) -> io::Result<()> {
    if done.insert(&dir.path) {
        sys::sync(&dir.reopen()?)
    } else {
        Ok(())
    }
}

/// Syncs the file or directory of this name.
fn contents(dir: &Dir, name: &CStr) -> io::Result<()> {
    let flags = libc::O_RDONLY | libc::O_NOFOLLOW | libc::O_NONBLOCK;
    sys::open(&dir.fd, name, flags, 0).and_then(|fd| sys::sync(&fd))
}

pub(super) fn whole_systems<'a>(group: &[&'a Entry]) -> Result<(), Failed<'a>> {
    let mut done = BTreeSet::new();
    let mut last: Option<(&Rc<Dir>, u64)> = None;
    for entry in group {
        let device = match last {
            Some((dir, device)) if Rc::ptr_eq(dir, &entry.spot.dir) => Ok(device),
            _ => whole_system(&entry.spot.dir, &mut done),
        };
        let device = device.map_err(|error| (*entry, error))?;
        last = Some((&entry.spot.dir, device));
        elsewhere(entry, device).map_err(|error| (*entry, error))?;
    }
    Ok(())
}

/// Syncs the file system that `dir` lies on, unless it is among those that have been.
fn whole_system(dir: &Dir, done: &mut BTreeSet<u64>) -> io::Result<u64> {
    let (device, _) = sys::stat(&dir.fd)?.identity;
    if done.insert(device) {
        sys::sync_file_system(&dir.reopen()?)?;
    }
    Ok(device)
}

/// Syncs an entry that is itself of another file system than its parent: a mount point.
fn elsewhere(entry: &Entry, parents: u64) -> io::Result<()> {
    let Spot { dir, name } = &entry.spot;
    if entry.dirty != Dirty::Itself || sys::stat_at(&dir.fd, name)?.identity.0 == parents {
        return Ok(());
    }
    contents(dir, name)
}
