//! A loop for one link: poll(2), and what happened in order.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nox_mesh_host::link::{Happened, Identity, Link};
use nox_mesh_host::machine;

/// A link, and what it has told and nobody has asked for yet.
pub struct Driver {
    pub link: Link,
    told: Vec<Happened>,
    /// The longest turn.
    pub longest: Duration,
}

impl Driver {
    /// The link of the identity in this state directory.
    pub fn new(state: &Path) -> Driver {
        let identity = Identity::read(state).unwrap().expect("there is an identity");
        let mut link = Link::new(identity);
        link.look_up_by(PathBuf::from(env!("CARGO_BIN_EXE_nox-mesh-host")));
        Driver { link, told: Vec::new(), longest: Duration::ZERO }
    }

    /// Goes on until something of which `is` has happened, which is returned; what came before it
    /// is dropped.
    pub fn until(&mut self, what: &str, is: impl Fn(&Happened) -> bool) -> Happened {
        let began = Instant::now();
        let mut seen = Vec::new();
        loop {
            while !self.told.is_empty() {
                let happened = self.told.remove(0);
                if is(&happened) {
                    return happened;
                }
                seen.push(format!("{happened:?}"));
            }
            let standing = self.link.standing();
            assert!(began.elapsed() < Duration::from_secs(25), "{what}: {standing:?} {seen:?}");
            self.turn();
        }
    }

    /// Waits for one thing and lets the link have its turn.
    pub fn turn(&mut self) {
        let left = self.link.deadline().map(|at| at.saturating_sub(machine::uptime()));
        let wait = left.unwrap_or(Duration::MAX).min(Duration::from_secs(1));
        let wait_ms = i32::try_from(wait.as_micros().div_ceil(1000)).unwrap();
        let interest = self.link.interest();
        let mut fds = [libc::pollfd {
            fd: interest.map_or(-1, |it| it.fd),
            events: interest.map_or(0, |it| it.events),
            revents: 0,
        }];
        // SAFETY: `fds` is writable and holds one entry.
        unsafe { libc::poll(fds.as_mut_ptr(), 1, wait_ms) };
        let began = Instant::now();
        self.told.extend(self.link.turn());
        self.longest = self.longest.max(began.elapsed());
    }

    /// Goes on until the link is up.
    pub fn up(&mut self) {
        self.until("up", |it| matches!(it, Happened::Up { .. }));
    }

    /// Goes on until an attempt or the link has come to nothing, and says why.
    pub fn refusal(&mut self) -> String {
        match self.until("down", |it| matches!(it, Happened::Down { .. })) {
            Happened::Down { refusal, .. } => refusal.to_string(),
            _ => unreachable!("that is what was waited for"),
        }
    }
}
