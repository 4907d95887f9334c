//! The switch all machines of this process hang on: a bridge in a network namespace that has no
//! name and no process, only a descriptor here, so that it cannot be left behind. Machines of
//! other processes hang on other switches and may have the same addresses.

use crate::child;
use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::AsRawFd;
use std::process::Command;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

/// Plugs a machine into the switch for as long as it is held.
pub(crate) struct Port {
    switch: Arc<Switch>,
    number: u8,
}

struct Switch {
    namespace: File,
    taken: Mutex<BTreeSet<u8>>,
}

impl Port {
    /// A free port of this process's switch, which is made when the first one is asked for.
    pub fn free() -> io::Result<Port> {
        static SWITCH: Mutex<Weak<Switch>> = Mutex::new(Weak::new());
        let mut current = lock(&SWITCH);
        let switch = match current.upgrade() {
            Some(switch) => switch,
            None => Arc::new(Switch::new()?),
        };
        *current = Arc::downgrade(&switch);
        let number = {
            let mut taken = lock(&switch.taken);
            let free = (1..=253).find(|n| !taken.contains(n));
            let free = free.ok_or_else(|| io::Error::other("all 253 ports are taken"))?;
            taken.insert(free);
            free
        };
        Ok(Port { switch, number })
    }

    /// Its machine's address, in the range set aside for documentation.
    pub fn address(&self) -> Ipv4Addr {
        Ipv4Addr::new(192, 0, 2, self.number)
    }

    /// Its machine's Ethernet address. The neighbours remember it, so like that of a card it
    /// outlives a reboot.
    pub fn mac(&self) -> String {
        format!("02:6d:65:73:68:{:02x}", self.number)
    }

    pub fn name(&self) -> String {
        format!("port{}", self.number)
    }

    /// The switch's network namespace.
    pub fn switch(&self) -> &File {
        &self.switch.namespace
    }

    /// Sets the link on the switch's side `up` or `down`.
    pub fn set(&self, state: &str) -> io::Result<()> {
        self.switch.ip(&["link", "set", &self.name(), state])
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        lock(&self.switch.taken).remove(&self.number);
    }
}

impl Switch {
    fn new() -> io::Result<Switch> {
        // A thread may leave its network namespace for a new one; the descriptor keeps that.
        let made = std::thread::spawn(|| {
            // SAFETY: unshare takes a flag; CLONE_NEWNET concerns this thread alone.
            if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
                return Err(io::Error::last_os_error());
            }
            File::open("/proc/thread-self/ns/net")
        });
        let namespace = made.join().map_err(|_| io::Error::other("the thread panicked"))??;
        let switch = Switch { namespace, taken: Mutex::default() };
        switch.ip(&["link", "add", "br0", "type", "bridge"])?;
        switch.ip(&["address", "add", "192.0.2.254/24", "dev", "br0"])?;
        switch.ip(&["link", "set", "br0", "up"])?;
        switch.ip(&["link", "set", "lo", "up"])?;
        Ok(switch)
    }

    fn ip(&self, argv: &[&str]) -> io::Result<()> {
        let path = format!("--net=/proc/{}/fd/{}", std::process::id(), self.namespace.as_raw_fd());
        let mut command = Command::new("nsenter");
        command.arg(path).arg("ip").args(argv);
        let done = child::run(command, &[], Duration::from_secs(20))?;
        if done.status.is_some_and(|status| status.success()) {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&done.stderr).trim_end().to_owned();
        Err(io::Error::other(format!("ip {}: {said}", argv.join(" "))))
    }
}

/// A scenario that panicked has not damaged what stands behind these locks.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
