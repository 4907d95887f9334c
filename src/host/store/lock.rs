//! The two locks of a state directory: one for the life of the service, one for a pass or an
//! append.
//!
//! They are POSIX record locks, because those name their holder. Such a lock is its *process's*: it
//! ends when the process closes any descriptor of the file, so a process opens each lock's file
//! once, by taking it, and only another process asks who holds it.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::{Error, Stage};

/// Time between two tries.
const PAUSE_MS: i32 = 50;

/// Which lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name {
    /// Held by the service for as long as it lives.
    Run,
    /// Held for a pass or an append, by whoever does it.
    Pass,
}

impl Name {
    fn path(self, dir: &Path) -> PathBuf {
        dir.join(match self {
            Name::Run => "run.lock",
            Name::Pass => "pass.lock",
        })
    }
}

/// A lock that is held; dropping it lets go.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the lock, trying for as long as `patience`.
    ///
    /// # Errors
    /// [`Error::Locked`] with the holder's pid where it is still held then.
    pub fn take(dir: &Path, name: Name, patience: Duration) -> Result<Lock, Error> {
        let path = name.path(dir);
        let failed = |err| Error::failed(Stage::Record, format!("lock {}", path.display()), err);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let file = options.custom_flags(libc::O_NOFOLLOW).open(&path).map_err(failed)?;
        let tries = patience.as_millis() / PAUSE_MS as u128 + 1;
        for left in (0..tries).rev() {
            let mut request = whole_file();
            match control(&file, libc::F_SETLK, &mut request) {
                Ok(()) => return Ok(Lock { _file: file }),
                Err(err) if !is_held(&err) => return Err(failed(err)),
                Err(_) if left > 0 => pause(),
                Err(_) => {}
            }
        }
        let pid = ask(&file).map_err(failed)?.unwrap_or(0);
        Err(Error::Locked { path: path.display().to_string(), pid })
    }

    /// The process that holds the lock; never this one, which would lose a lock of its own by
    /// asking.
    ///
    /// # Errors
    /// The lock's file is there and cannot be asked.
    pub fn holder(dir: &Path, name: Name) -> Result<Option<i32>, Error> {
        let path = name.path(dir);
        let failed =
            |err| Error::failed(Stage::Read, format!("ask who holds {}", path.display()), err);
        match OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW).open(&path) {
            Ok(file) => ask(&file).map_err(failed),
            Err(err) if err.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(err) => Err(failed(err)),
        }
    }
}

fn ask(file: &File) -> io::Result<Option<i32>> {
    let mut request = whole_file();
    control(file, libc::F_GETLK, &mut request)?;
    Ok((request.l_type != libc::F_UNLCK as libc::c_short).then_some(request.l_pid))
}

fn whole_file() -> libc::flock {
    // SAFETY: flock is a C struct of integers, for which all-zero is a value.
    let mut request: libc::flock = unsafe { std::mem::zeroed() };
    request.l_type = libc::F_WRLCK as libc::c_short;
    request.l_whence = libc::SEEK_SET as libc::c_short;
    request
}

fn control(file: &File, command: libc::c_int, request: &mut libc::flock) -> io::Result<()> {
    // SAFETY: the descriptor is open for the call and `request` is a flock, as both commands need.
    match unsafe { libc::fcntl(file.as_raw_fd(), command, request as *mut libc::flock) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

fn is_held(err: &io::Error) -> bool {
    matches!(err.raw_os_error(), Some(libc::EACCES | libc::EAGAIN))
}

fn pause() {
    // SAFETY: with no descriptors the array may be null; this is a wait and nothing else.
    unsafe { libc::poll(std::ptr::null_mut(), 0, PAUSE_MS) };
}
