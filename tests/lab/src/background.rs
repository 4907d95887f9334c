//! A command that runs beside the scenario, until it is stopped, dropped or its machine ends.

use crate::inside::children;
use crate::switch::lock;
use crate::{child, wait};
use std::io::{self, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Made by [`crate::Machine::spawn`].
pub struct Background {
    what: String,
    nsenter: Child,
    output: Arc<Mutex<Vec<u8>>>,
}

impl Background {
    pub(crate) fn start(mut command: Command, what: &str) -> io::Result<Background> {
        command.process_group(0).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut nsenter = child::spawn(command)?;
        let output = Arc::new(Mutex::new(Vec::new()));
        collect(nsenter.stdout.take(), &output);
        collect(nsenter.stderr.take(), &output);
        Ok(Background { what: what.to_owned(), nsenter, output })
    }

    /// What it has said so far, on both streams.
    pub fn output(&self) -> String {
        String::from_utf8_lossy(&lock(&self.output)).into_owned()
    }

    /// Waits until it has said `text`.
    #[track_caller]
    pub fn says(&mut self, text: &str, limit: Duration) -> &mut Self {
        // The readers hold the output as long as there is somebody to read from.
        let is_over = || Arc::strong_count(&self.output) == 1;
        let said = wait::until(limit, || self.output().contains(text) || is_over());
        if !said || !self.output().contains(text) {
            panic!("{}\ndid not say {text:?}, but:\n{}", self.what, self.output());
        }
        self
    }

    pub fn is_running(&mut self) -> bool {
        matches!(self.nsenter.try_wait(), Ok(None))
    }

    /// Its pid as this computer counts, while it runs.
    pub fn pid(&mut self) -> Option<u32> {
        let nsenter = self.nsenter.id();
        self.is_running().then(|| children(nsenter).first().copied()).flatten()
    }

    /// Sends it a signal, for instance `libc::SIGTERM`.
    #[track_caller]
    pub fn signal(&mut self, signal: i32) -> &mut Self {
        // nsenter forks the command; right after the start it may not have done so yet.
        let mut target = None;
        wait::until(Duration::from_secs(10), || {
            target = self.pid();
            target.is_some() || !self.is_running()
        });
        let Some(pid) = target else { panic!("{}\nis not running", self.what) };
        // SAFETY: no memory is involved; the pid is a child of our nsenter, which still waits.
        let sent = unsafe { libc::kill(pid as i32, signal) };
        assert!(sent == 0, "signal {signal} to {}: {}", self.what, io::Error::last_os_error());
        self
    }

    /// Waits for its end; its exit code, or 128 and the number of the signal that ended it.
    #[track_caller]
    pub fn ends(&mut self, limit: Duration) -> i32 {
        match child::wait(&mut self.nsenter, limit) {
            Ok(Some(status)) => status.code().unwrap_or(128 + status.signal().unwrap_or(0)),
            Ok(None) => panic!("not over within {limit:?}: {}\n{}", self.what, self.output()),
            Err(e) => panic!("{}: {e}", self.what),
        }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        child::kill_group(&mut self.nsenter);
    }
}

/// Reads until the last writer is gone, which is at the latest when the machine is.
fn collect(from: Option<impl Read + Send + 'static>, output: &Arc<Mutex<Vec<u8>>>) {
    let Some(mut from) = from else { return };
    let output = Arc::clone(output);
    std::thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(n @ 1..) = from.read(&mut buffer) {
            lock(&output).extend_from_slice(&buffer[..n]);
        }
    });
}
