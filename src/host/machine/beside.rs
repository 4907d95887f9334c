//! A child of this same binary that runs beside us: its words are read line by line as they come,
//! and its end is seen, without ever waiting for it.
//!
//! It differs from the tools that a pass runs in what happens when we end: it is asked to end, not
//! killed, since it may have a resource in hand.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};

use super::child::{end_with, no_blocking, pidfd};

/// The longest line that is taken, in bytes.
const LONGEST_LINE: usize = 1 << 20;

/// How the child ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// With this code.
    Exited(i32),
    /// By this signal.
    Killed(i32),
}

/// A running child.
#[derive(Debug)]
pub struct Beside {
    child: Child,
    out: Option<File>,
    pidfd: Option<OwnedFd>,
    /// What has come of a line that is not there whole.
    begun: Vec<u8>,
    /// The line that has begun is too long, and the rest of it is passed over.
    passing: bool,
}

impl Beside {
    /// Starts this binary with these arguments; it inherits `keeps` and the standard error.
    ///
    /// # Errors
    /// The kernel's.
    pub fn spawn(arguments: &[OsString], keeps: Option<RawFd>) -> io::Result<Beside> {
        // Not the name we were started by: an upgrade may have put another version there.
        let mut command = Command::new("/proc/self/exe");
        command
            .arg0("nox-mesh-host")
            .args(arguments)
            .env_remove("NOTIFY_SOCKET")
            .env_remove("WATCHDOG_USEC")
            .env_remove("WATCHDOG_PID")
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .process_group(0);
        let parent = i32::try_from(std::process::id()).expect("a process number is an i32");
        // SAFETY: what is called there is async-signal-safe and takes no memory of ours.
        unsafe {
            command.pre_exec(move || {
                // What we read by a descriptor, it must suffer.
                let mut none: libc::sigset_t = std::mem::zeroed();
                libc::sigemptyset(&mut none);
                libc::sigprocmask(libc::SIG_SETMASK, &none, std::ptr::null_mut());
                if let Some(fd) = keeps {
                    libc::fcntl(fd, libc::F_SETFD, 0);
                }
                end_with(parent, libc::SIGTERM)
            });
        }
        let mut child = command.spawn()?;
        let out = child.stdout.take().map(|pipe| File::from(OwnedFd::from(pipe)));
        out.iter().for_each(no_blocking);
        let pidfd = pidfd(&child);
        Ok(Beside { child, out, pidfd, begun: Vec::new(), passing: false })
    }

    /// What to poll for reading: its words, and its end.
    pub fn descriptors(&self) -> impl Iterator<Item = RawFd> {
        let out = self.out.as_ref().map(AsRawFd::as_raw_fd);
        out.into_iter().chain(self.pidfd.as_ref().map(AsRawFd::as_raw_fd))
    }

    /// Its process number.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Takes the lines that have come, a piece at most.
    pub fn read(&mut self, line: &mut dyn FnMut(&[u8])) {
        let Some(out) = &mut self.out else { return };
        let mut piece = [0; 16 << 10];
        match out.read(&mut piece) {
            Ok(read @ 1..) => self.take(&piece[..read], line),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Ok(0) | Err(_) => self.out = None,
        }
    }

    /// Takes the lines that are still to come, once it has ended: a pipe's worth at most.
    pub fn read_rest(&mut self, line: &mut dyn FnMut(&[u8])) {
        for _ in 0..128 {
            let before = self.out.is_some();
            self.read(line);
            if !before {
                break;
            }
        }
    }

    fn take(&mut self, mut piece: &[u8], line: &mut dyn FnMut(&[u8])) {
        while let Some(end) = piece.iter().position(|&byte| byte == b'\n') {
            if !std::mem::take(&mut self.passing) {
                self.begun.extend_from_slice(&piece[..end]);
                line(&self.begun);
            }
            self.begun.clear();
            piece = &piece[end + 1..];
        }
        if !self.passing && self.begun.len() + piece.len() <= LONGEST_LINE {
            self.begun.extend_from_slice(piece);
        } else {
            (self.begun, self.passing) = (Vec::new(), true);
        }
    }

    /// How it ended, once it has.
    pub fn ended(&mut self) -> Option<End> {
        let status = self.child.try_wait().ok().flatten()?;
        let signal = || End::Killed(status.signal().unwrap_or(0));
        Some(status.code().map_or_else(signal, End::Exited))
    }

    /// Sends it a signal. It has not been reaped, so the number is its.
    pub fn signal(&self, signal: i32) {
        let pid = i32::try_from(self.child.id()).expect("a process number is an i32");
        // SAFETY: takes no memory. That it has ended is the only way to fail.
        unsafe { libc::kill(pid, signal) };
    }
}
