//! Watching what is declared: inotify(7) on the inode at each declared path, and, for a name that
//! is not there, on the directory in which it or what is above it would appear.
//!
//! The instance is the service's, which keeps it when the pass that arms it has ended; so a pass
//! arms it right before it looks at everything. Whatever happens after that is somebody else's
//! doing, except what the pass goes on to do itself: then it arms again before it looks once more.

use std::collections::HashSet;
use std::io;
use std::os::fd::AsRawFd;
use std::os::fd::RawFd;
use std::rc::Rc;

use super::events::Inotify;
use super::root::{Dir, Intent, Reached, Spot};
use super::words::words;
use super::Machine;
use crate::resource::RootPath;

/// Of the thing itself. A name that leads to another inode than before shows as `IN_ATTRIB` of the
/// old one, whose count of names has changed.
const ITSELF: u32 = libc::IN_ATTRIB | libc::IN_DELETE_SELF | libc::IN_MOVE_SELF;
/// Of a directory: that a name has come up in it. What is watched already stays watched.
const NAMES: u32 = libc::IN_CREATE | libc::IN_MOVED_TO | libc::IN_ONLYDIR | libc::IN_MASK_ADD;

/// How many absent names are waited for: the rest has the timer.
const MOST_AWAITED: usize = 4096;

/// How often a piece is read to empty the queue, of which the kernel bounds the length.
const PIECES: usize = 1024;

/// The instance to arm, and what it has come to.
#[derive(Debug)]
pub struct Drift {
    inotify: Inotify,
    /// Every watch there is.
    watches: HashSet<i32>,
    /// What has been armed.
    pub armed: Armed,
}

/// What is watched.
#[derive(Debug, Default)]
pub struct Armed {
    /// How many paths.
    pub watched: usize,
    /// How many could not be.
    pub unwatched: usize,
    /// Why the last of them could not.
    pub why: Option<String>,
    /// Names that are not there, each with the watch of the directory it is missed in.
    pub awaited: Vec<(i32, String)>,
    /// The watches of what the caller marked.
    pub marked: Vec<i32>,
}

/// What to watch.
#[derive(Clone, Copy, Debug)]
pub struct Watched<'d> {
    /// Where it is.
    pub path: &'d RootPath,
    /// It is a directory: what happens to the files in it is of no interest.
    pub directory: bool,
    /// Its watch is to be told.
    pub marked: bool,
}

impl Drift {
    /// Arms the instance that the parent handed down under this number.
    ///
    /// # Errors
    /// There is none.
    pub fn inherited(fd: RawFd) -> io::Result<Drift> {
        let inotify = Inotify::inherited(fd)?;
        Ok(Drift { inotify, watches: HashSet::new(), armed: Armed::default() })
    }
}

impl Machine {
    /// Watches these and nothing else any more, and forgets what has been seen so far. Leaves the
    /// process in another working directory.
    pub fn arm<'d>(&mut self, drift: &mut Drift, paths: impl Iterator<Item = Watched<'d>>) {
        self.forget();
        let before = std::mem::take(&mut drift.watches);
        // Anew where it is still needed, for no more than that.
        for (watch, _) in std::mem::take(&mut drift.armed).awaited {
            drift.inotify.remove(watch);
        }
        let mut standing: Option<Rc<Dir>> = None;
        for watched in paths {
            match self.arm_path(drift, watched, &mut standing) {
                Ok(watch) => {
                    drift.armed.watched += 1;
                    drift.armed.marked.extend(watch.filter(|_| watched.marked));
                }
                Err(error) => {
                    drift.armed.unwatched += 1;
                    drift.armed.why = Some(told(&error));
                }
            }
        }
        for gone in before.difference(&drift.watches) {
            drift.inotify.remove(*gone);
        }
        // What was seen up to here will be looked at.
        for _ in 0..PIECES {
            // A queue that cannot be read is told by who reads it later.
            if !matches!(drift.inotify.read(&mut |_| ()), Ok(true)) {
                break;
            }
        }
        // Children start elsewhere on purpose, and nobody relies on this.
        let _ = std::env::set_current_dir("/");
    }

    fn arm_path(
        &mut self,
        drift: &mut Drift,
        watched: Watched,
        standing: &mut Option<Rc<Dir>>,
    ) -> io::Result<Option<i32>> {
        let (spot, absent) = match self.root.reach(watched.path, Intent::See, "watch") {
            Ok(Reached::Parent(spot)) => (spot, false),
            Ok(Reached::Missing(above)) => match self.root.reach(&above, Intent::See, "watch") {
                Ok(Reached::Parent(spot)) => (spot, true),
                _ => return Err(unreachable()),
            },
            Err(_) => return Err(unreachable()),
        };
        if standing.as_ref().is_none_or(|dir| !Rc::ptr_eq(dir, &spot.dir)) {
            // By descriptor: a path could lead elsewhere by now.
            // SAFETY: takes no memory.
            if unsafe { libc::fchdir(spot.dir.fd.as_raw_fd()) } != 0 {
                return Err(io::Error::last_os_error());
            }
            *standing = Some(spot.dir.clone());
        }
        if !absent {
            let modified = if watched.directory { 0 } else { libc::IN_MODIFY };
            let mask = ITSELF | modified;
            // Hard links share their inode, and a directory may be one that a name is missed in.
            match drift.inotify.add_name(&spot.name, mask | libc::IN_MASK_ADD) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                other => {
                    let watch = other?;
                    drift.watches.insert(watch);
                    return Ok(Some(watch));
                }
            }
        }
        await_name(drift, &spot)
    }
}

fn await_name(drift: &mut Drift, spot: &Spot) -> io::Result<Option<i32>> {
    if drift.armed.awaited.len() == MOST_AWAITED {
        return Err(io::Error::other(format!("more than {MOST_AWAITED} names are not there")));
    }
    let watch = drift.inotify.add_name(c".", NAMES)?;
    drift.watches.insert(watch);
    drift.armed.awaited.push((watch, spot.name.to_string_lossy().into_owned()));
    Ok(None)
}

/// What cannot be reached fails in its own turn, with more to say.
fn unreachable() -> io::Error {
    io::Error::other("the way to it cannot be walked")
}

fn told(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::ENOSPC) => {
            "the kernel's table of watches is full (fs.inotify.max_user_watches)".into()
        }
        _ => words(error),
    }
}
