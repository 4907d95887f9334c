//! Progress for a person at a terminal, and the signals that end a pass early.

use std::io::{stderr, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::{show, Invocation};
use crate::reconcile::Watch;
use crate::resource::parting::{parting, Leaving, Parting};
use crate::store::Owned;

/// How often the line is rewritten.
const EVERY: Duration = Duration::from_millis(100);

/// Set by the signals that ask a pass to end.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Watches a pass for whoever runs the command.
pub(super) struct Terminal {
    /// Nothing but errors is wanted, or what is said would be said of a dry run.
    silent: bool,
    /// Something was announced to go.
    pub announced: bool,
    shows: bool,
    /// Not before then again.
    next: Option<Instant>,
    shown: bool,
}

impl Terminal {
    pub(super) fn new(it: &Invocation) -> Terminal {
        listen();
        let silent = it.quiet || it.command == Some(super::table::Command::Plan);
        let shows = stderr().is_terminal() && !it.quiet && !it.json;
        Terminal { silent, announced: false, shows, next: None, shown: false }
    }

    fn clear(&mut self) {
        if self.shown {
            self.write("\r\x1b[K");
            self.shown = false;
        }
    }

    fn write(&self, text: &str) {
        // A terminal that went away is no reason to stop.
        let _ = stderr().write_all(text.as_bytes());
    }
}

impl Watch for Terminal {
    fn progress(&mut self, done: usize, all: usize, doing: &str) {
        let now = Instant::now();
        if !self.shows || self.next.is_some_and(|next| now < next) {
            return;
        }
        self.next = Some(now + EVERY);
        let doing: String = super::show::plain(doing).chars().take(60).collect();
        self.write(&format!("\r\x1b[K{done}/{all} {doing}"));
        self.shown = true;
    }

    fn releasing(&mut self, goes: &[Owned<'_>]) {
        if self.silent {
            return;
        }
        self.announced |= !goes.is_empty();
        for owned in goes {
            let kind = owned.of_type;
            let name = owned.object.split_once(':').map_or(owned.object, |(_, name)| name);
            let will = match parting(kind, owned.standing) {
                Parting::Remove(_) => Some(format!("remove {kind} {name}")),
                Parting::Undo(undo) => {
                    let (standing, before) = (owned.standing, owned.before);
                    undo.announces(&Leaving { name, standing, before })
                }
                Parting::Forget => None,
            };
            if let Some(will) = will {
                show::note(&format!("will {will}"));
            }
        }
    }

    fn interrupted(&self) -> bool {
        interrupted()
    }
}

/// Somebody has asked the process to end.
pub(super) fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.clear();
    }
}

/// From now on, interruption and termination are asked for and not suffered.
pub(super) fn listen() {
    extern "C" fn note(_: libc::c_int) {
        INTERRUPTED.store(true, Ordering::Relaxed);
    }
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: the action is fully initialised, and its handler only stores to an atomic.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = note as extern "C" fn(libc::c_int) as usize;
            action.sa_flags = libc::SA_RESTART;
            libc::sigaction(signal, &action, std::ptr::null_mut());
        }
    }
}
