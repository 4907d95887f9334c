//! What a process waits for: the clock, signals, changes of files. Each is a descriptor to poll.

use std::ffi::CString;
use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use libc::c_int;

/// How much is read of an instance at once, in bytes: many events, and the longest one.
const PIECE: usize = 64 << 10;

/// A clock that goes on while the machine sleeps, and wakes its reader at one instant.
#[derive(Debug)]
pub struct Timer(OwnedFd);

/// Signals that are read instead of suffered.
#[derive(Debug)]
pub struct Signals(OwnedFd);

/// An instance of inotify(7).
#[derive(Debug)]
pub struct Inotify(OwnedFd);

/// What happened to a watched inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen<'n> {
    /// The watch, as the kernel numbers it.
    pub watch: i32,
    /// `IN_*`.
    pub mask: u32,
    /// The name in the watched directory that it happened to; empty of the watched thing itself.
    pub name: &'n [u8],
}

/// A call that returns a descriptor or -1.
fn opened(fd: c_int) -> io::Result<OwnedFd> {
    match fd {
        -1 => Err(io::Error::last_os_error()),
        // SAFETY: the kernel has just handed out this descriptor; nobody else owns it.
        fd => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
    }
}

fn done(result: c_int) -> io::Result<()> {
    match result {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Reads what is there without waiting; 0 where there is nothing.
fn read_some(fd: &OwnedFd, into: &mut [u8]) -> io::Result<usize> {
    // SAFETY: `into` is writable for its length.
    let read = unsafe { libc::read(fd.as_raw_fd(), into.as_mut_ptr().cast(), into.len()) };
    match usize::try_from(read) {
        Ok(read) => Ok(read),
        Err(_) => match io::Error::last_os_error() {
            error if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
            error if error.kind() == io::ErrorKind::Interrupted => Ok(0),
            error => Err(error),
        },
    }
}

impl Timer {
    /// One that is not set.
    ///
    /// # Errors
    /// There are no descriptors left.
    pub fn new() -> io::Result<Timer> {
        let flags = libc::TFD_CLOEXEC | libc::TFD_NONBLOCK;
        // SAFETY: takes no memory.
        opened(unsafe { libc::timerfd_create(libc::CLOCK_BOOTTIME, flags) }).map(Timer)
    }

    /// Wakes at `at`, an instant of [`super::uptime`]; at once where that has passed.
    ///
    /// # Errors
    /// None that a descriptor of this kind has.
    pub fn set(&self, at: Duration) -> io::Result<()> {
        let at = at.max(Duration::from_nanos(1));
        // SAFETY: all zeroes is a valid `itimerspec`, which is plain data.
        let mut spec: libc::itimerspec = unsafe { zeroed() };
        spec.it_value.tv_sec = i32::try_from(at.as_secs()).unwrap_or(i32::MAX).into();
        spec.it_value.tv_nsec = at.subsec_nanos().into();
        let flags = libc::TFD_TIMER_ABSTIME;
        // SAFETY: `spec` is initialised and only read; no old value is asked for.
        done(unsafe {
            libc::timerfd_settime(self.0.as_raw_fd(), flags, &spec, std::ptr::null_mut())
        })
    }

    /// It has been seen to wake.
    pub fn drain(&self) {
        // What cannot be read has not happened, and is polled again.
        let _ = read_some(&self.0, &mut [0; 8]);
    }
}

impl Signals {
    /// From now on these are read here and reach nobody otherwise.
    ///
    /// # Errors
    /// There are no descriptors left.
    pub fn new(signals: &[c_int]) -> io::Result<Signals> {
        // SAFETY: all zeroes is a valid set, which `sigemptyset` then makes an empty one.
        let mut set: libc::sigset_t = unsafe { zeroed() };
        // SAFETY: `set` is writable, and the signals are ones that the kernel knows.
        unsafe {
            libc::sigemptyset(&mut set);
            for &signal in signals {
                libc::sigaddset(&mut set, signal);
            }
        }
        // SAFETY: `set` is initialised and only read.
        done(unsafe { libc::sigprocmask(libc::SIG_BLOCK, &set, std::ptr::null_mut()) })?;
        let flags = libc::SFD_CLOEXEC | libc::SFD_NONBLOCK;
        // SAFETY: `set` is initialised and only read.
        opened(unsafe { libc::signalfd(-1, &set, flags) }).map(Signals)
    }

    /// The next one that came.
    pub fn take(&self) -> Option<c_int> {
        let mut raw = [0; size_of::<libc::signalfd_siginfo>()];
        match read_some(&self.0, &mut raw) {
            Ok(read) if read == raw.len() => {
                // The number is the first member of signalfd_siginfo.
                let number = raw[..4].try_into().expect("it is four bytes");
                Some(i32::from_ne_bytes(number))
            }
            _ => None,
        }
    }
}

impl Inotify {
    /// One that watches nothing yet.
    ///
    /// # Errors
    /// The user has as many as the kernel allows (`fs.inotify.max_user_instances`).
    pub fn new() -> io::Result<Inotify> {
        // SAFETY: takes no memory.
        opened(unsafe { libc::inotify_init1(libc::IN_CLOEXEC | libc::IN_NONBLOCK) }).map(Inotify)
    }

    /// The one that a parent handed down under this number, which is nobody else's.
    pub fn inherited(fd: RawFd) -> io::Result<Inotify> {
        // Only for us: the tools that we run have no use for it.
        // SAFETY: takes no memory; where the number is none of a descriptor, it says so.
        done(unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) })?;
        // SAFETY: the descriptor is open, and was opened for this process alone.
        Ok(Inotify(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Watches what is at `path`, a last link not followed, for `mask`; the watch's number.
    ///
    /// # Errors
    /// Nothing is there, it may not be read, or the user has as many watches as the kernel allows.
    pub fn add(&self, path: &Path, mask: u32) -> io::Result<i32> {
        let path = CString::new(path.as_os_str().as_bytes())?;
        self.add_name(&path, mask)
    }

    /// The same of a name in the working directory.
    pub(super) fn add_name(&self, name: &std::ffi::CStr, mask: u32) -> io::Result<i32> {
        let mask = mask | libc::IN_DONT_FOLLOW;
        // SAFETY: the name is NUL-terminated.
        match unsafe { libc::inotify_add_watch(self.0.as_raw_fd(), name.as_ptr(), mask) } {
            -1 => Err(io::Error::last_os_error()),
            watch => Ok(watch),
        }
    }

    /// Ends a watch. One that has ended by itself is no error.
    pub(super) fn remove(&self, watch: i32) {
        // SAFETY: takes no memory.
        unsafe { libc::inotify_rm_watch(self.0.as_raw_fd(), watch) };
    }

    /// Reads a piece of what has happened; whether there was anything.
    ///
    /// # Errors
    /// The kernel's.
    pub fn read(&self, seen: &mut dyn FnMut(Seen)) -> io::Result<bool> {
        const HEAD: usize = size_of::<libc::inotify_event>();
        let mut piece = vec![0; PIECE];
        let read = read_some(&self.0, &mut piece)?;
        let mut rest = &piece[..read];
        while let Some((head, more)) = rest.split_at_checked(HEAD) {
            let number = |at: usize| head[at..at + 4].try_into().expect("it is four bytes");
            let len = u32::from_ne_bytes(number(12)) as usize;
            let (name, after) = more.split_at_checked(len).unwrap_or((more, &[]));
            let end = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
            let (watch, mask) = (i32::from_ne_bytes(number(0)), u32::from_ne_bytes(number(4)));
            seen(Seen { watch, mask, name: &name[..end] });
            rest = after;
        }
        Ok(read > 0)
    }
}

impl AsRawFd for Timer {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

impl AsRawFd for Signals {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

impl AsRawFd for Inotify {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

/// Waits until one of `fds` is ready, for as long as that takes; a signal that nobody reads ends
/// the wait as well.
///
/// # Errors
/// The kernel's.
pub fn wait(fds: &mut [libc::pollfd]) -> io::Result<()> {
    let count = libc::nfds_t::try_from(fds.len()).unwrap_or(0);
    // SAFETY: `fds` is writable and holds as many entries as is said.
    match done(unsafe { libc::poll(fds.as_mut_ptr(), count, -1) }) {
        Err(error) if error.kind() == io::ErrorKind::Interrupted => {
            fds.iter_mut().for_each(|fd| fd.revents = 0);
            Ok(())
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watched_file_that_is_altered_is_seen_and_an_ended_watch_is_not() {
        let dir = std::env::temp_dir().join(format!("mesh-host-events-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let file = dir.join("file");
        std::fs::write(&file, "a").unwrap();
        let inotify = Inotify::new().unwrap();
        let on_file = inotify.add(&file, libc::IN_MODIFY).unwrap();
        let on_dir = inotify.add(&dir, libc::IN_CREATE).unwrap();
        let mut seen = Vec::new();
        let look = |seen: &mut Vec<(i32, Vec<u8>)>| {
            inotify.read(&mut |it| seen.push((it.watch, it.name.to_vec()))).unwrap();
        };
        look(&mut seen);
        assert_eq!(seen, []);
        std::fs::write(&file, "b").unwrap();
        std::fs::write(dir.join("other"), "").unwrap();
        look(&mut seen);
        assert_eq!(seen.first().unwrap(), &(on_file, Vec::new()));
        assert_eq!(seen.last().unwrap(), &(on_dir, b"other".to_vec()));
        inotify.remove(on_file);
        seen.clear();
        look(&mut seen);
        seen.clear();
        std::fs::write(&file, "c").unwrap();
        look(&mut seen);
        assert_eq!(seen, []);
        assert!(inotify.add(&dir.join("none"), libc::IN_MODIFY).is_err());
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn a_timer_wakes_at_its_instant_even_where_that_has_passed() {
        let timer = Timer::new().unwrap();
        let ready = |timeout: i32| {
            let mut fd = libc::pollfd { fd: timer.as_raw_fd(), events: libc::POLLIN, revents: 0 };
            // SAFETY: one initialised pollfd is passed, with a count of one.
            unsafe { libc::poll(&mut fd, 1, timeout) == 1 }
        };
        assert!(!ready(0));
        timer.set(super::super::uptime() + Duration::from_secs(1000)).unwrap();
        assert!(!ready(0));
        timer.set(Duration::ZERO).unwrap();
        assert!(ready(1000));
        timer.drain();
        assert!(!ready(0));
    }
}
