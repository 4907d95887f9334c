//! The lock of a package manager: who holds it, and whether one that was left behind is ours.
//!
//! One that nobody holds while no package manager runs goes only where an intent of our own is
//! older than it, since what was cut off was then ours. Otherwise it is someone else's.

use std::collections::HashSet;
use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use super::clock::{self, Deadline};
use super::root::{Intent, Reached};
use super::words::quoted;
use super::{sys, Machine};
use crate::resource::{Removable, RootPath, Step, Trouble};
use crate::tool::installer::{Installer, Lock};

/// Between two looks at a lock that someone holds.
const PAUSE: Duration = Duration::from_millis(300);
/// So many looks at a lock that nobody holds come before it is called left behind.
const LOOKS: usize = 3;

/// Who keeps us from installing.
pub(super) enum Held {
    /// This process, or one that cannot be seen.
    By(Option<(u32, String)>),
    /// Nobody: it was left behind at this time, in seconds since 1970.
    LeftBehind(RootPath, u64),
}

impl Machine {
    /// Waits until nobody holds the manager's lock. One that was left behind since `begun` goes;
    /// says whether there was such a one.
    pub(super) fn await_lock(
        &mut self,
        manager: &'static dyn Installer,
        begun: Option<u64>,
        doing: &str,
        until: Deadline,
    ) -> Result<bool, Trouble> {
        let mut abandoned = 0;
        loop {
            let held = match self.held(manager)? {
                None => return Ok(false),
                Some(held) => held,
            };
            let by = match held {
                Held::LeftBehind(path, since) => match running(manager.processes()) {
                    Some(by) => Some(by),
                    None if begun.is_some_and(|begun| since >= begun) => {
                        self.take(&Step::Remove { path: &path, kind: Removable::File }, PAUSE)?;
                        return Ok(true);
                    }
                    // Its holder may just have let go of it, and be about to remove it.
                    None if abandoned < LOOKS => {
                        abandoned += 1;
                        None
                    }
                    None => {
                        let cause = format!(
                            "its lock {path} was left behind by someone else, since nobody holds \
                             it and no package manager runs; remove it if that is so"
                        );
                        return Err(Trouble::new(doing, cause));
                    }
                },
                Held::By(by) => by,
            };
            if until.passed() {
                let by = by.map_or("a process that cannot be seen".into(), |(pid, name)| {
                    format!("process {pid} ({})", quoted(name.as_bytes()))
                });
                let name = manager.name();
                let cause = format!("{by} still holds the lock of {name}; wait until it has ended");
                return Err(Trouble::new(doing, cause));
            }
            clock::pause(PAUSE.min(until.left()));
        }
    }

    pub(super) fn held(&mut self, manager: &dyn Installer) -> Result<Option<Held>, Trouble> {
        match manager.lock() {
            Lock::Made(path) => {
                let path = RootPath::parse(path).map_err(|why| Trouble::new(path, why))?;
                let Some(file) = self.opened(&path) else { return Ok(None) };
                let Ok(meta) = file.metadata() else { return Ok(None) };
                Ok(Some(match holder((meta.dev(), meta.ino())) {
                    Some(by) => Held::By(Some(by)),
                    None => Held::LeftBehind(path, seconds(meta.mtime())),
                }))
            }
            Lock::Taken(paths) => Ok(paths.iter().find_map(|path| {
                let path = RootPath::parse(path).ok()?;
                let Reached::Parent(spot) = self.root.reach(&path, Intent::See, "look at").ok()?
                else {
                    return None;
                };
                let flags = libc::O_RDONLY | libc::O_NOFOLLOW;
                let file = File::from(sys::open(&spot.dir.fd, &spot.name, flags, 0).ok()?);
                locked_by(&file).map(|pid| Held::By(name_of(pid).map(|name| (pid, name))))
            })),
        }
    }

    /// What is at `path`, to be asked about and not to be read.
    pub(super) fn opened(&mut self, path: &RootPath) -> Option<File> {
        let Reached::Parent(spot) = self.root.reach(path, Intent::See, "look at").ok()? else {
            return None;
        };
        let flags = libc::O_PATH | libc::O_NOFOLLOW;
        sys::open(&spot.dir.fd, &spot.name, flags, 0).ok().map(File::from)
    }
}

pub(super) fn seconds(time: i64) -> u64 {
    u64::try_from(time).unwrap_or(0)
}

/// Who has a record lock on `file`; 0 for a process that cannot be seen.
fn locked_by(file: &File) -> Option<u32> {
    // SAFETY: all zeroes is a valid `flock`, which is plain data: the whole file, from its start.
    let mut request: libc::flock = unsafe { std::mem::zeroed() };
    request.l_type = libc::F_WRLCK as libc::c_short;
    // SAFETY: `request` is writable and of the size that the kernel fills.
    let asked = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GETLK, &mut request) };
    let held = asked == 0 && request.l_type != libc::F_UNLCK as libc::c_short;
    held.then(|| u32::try_from(request.l_pid).unwrap_or(0))
}

/// The processes that can be seen.
fn processes() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Who has the file of this device and inode open.
fn holder(identity: (u64, u64)) -> Option<(u32, String)> {
    // We have it open ourselves, to ask.
    let others = processes().filter(|&pid| pid != std::process::id());
    let pid = { others }.find(|pid| {
        let open = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        open.map(|entry| entry.path()).any(|path| {
            // Only what is called so is looked at: a look may take long, on a dead network mount.
            let named = fs::read_link(&path)
                .is_ok_and(|to| to.as_os_str().as_encoded_bytes().ends_with(b".lck"));
            named && fs::metadata(&path).is_ok_and(|meta| (meta.dev(), meta.ino()) == identity)
        })
    })?;
    Some((pid, name_of(pid)?))
}

/// One of the processes called so.
fn running(names: &[&str]) -> Option<(u32, String)> {
    let names: HashSet<&str> = names.iter().copied().collect();
    let mut all = processes().filter_map(|pid| Some((pid, name_of(pid)?)));
    all.find(|(_, name)| names.contains(name.as_str()))
}

fn name_of(pid: u32) -> Option<String> {
    let name = fs::read(format!("/proc/{pid}/comm")).ok()?;
    Some(String::from_utf8_lossy(name.trim_ascii_end()).into_owned())
}
