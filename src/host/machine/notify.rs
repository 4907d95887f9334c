//! What the service manager is told (sd_notify(3)): readiness, a line of status, signs of life.
//!
//! Who was not started by one says nothing. Nothing here waits, and what cannot be said is let be:
//! a manager that does not listen is no reason to stop.

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::PathBuf;
use std::time::Duration;

/// The way to the service manager.
#[derive(Debug, Default)]
pub struct Notify {
    socket: Option<SocketAddr>,
    watchdog: Option<Duration>,
}

impl Notify {
    /// As `NOTIFY_SOCKET`, `WATCHDOG_USEC` and `WATCHDOG_PID` say.
    pub fn of_environment() -> Notify {
        let Some(address) = std::env::var_os("NOTIFY_SOCKET").filter(|it| !it.is_empty()) else {
            return Notify::default();
        };
        let address = match address.as_bytes().strip_prefix(b"@") {
            Some(name) => SocketAddr::from_abstract_name(name),
            None => SocketAddr::from_pathname(PathBuf::from(&address)),
        };
        let number = |name: &str| std::env::var(name).ok()?.parse::<u64>().ok();
        let mine = number("WATCHDOG_PID").is_none_or(|pid| pid == u64::from(std::process::id()));
        let span = number("WATCHDOG_USEC").filter(|&span| span > 0 && mine);
        Notify { socket: address.ok(), watchdog: span.map(Duration::from_micros) }
    }

    /// How often a sign of life is due: twice in the time after which the manager acts.
    pub fn every(&self) -> Option<Duration> {
        self.watchdog.map(|span| span / 2)
    }

    /// Says these lines. The socket is connected and lives for as long as that takes: one that is
    /// neither would be listed among those that listen.
    pub fn say(&self, lines: &str) {
        let Some(address) = &self.socket else { return };
        let say = || -> io::Result<usize> {
            let socket = UnixDatagram::unbound()?;
            socket.connect_addr(address)?;
            socket.set_nonblocking(true)?;
            socket.send(lines.as_bytes())
        };
        let _ = say();
    }
}
