//! The child that makes a pass, while it does: its words, its limits, its end.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::time::Duration;

use super::errand::{Order, Told, Word, ERRAND_ARGUMENT};
use super::schedule::Cause;
use crate::machine::{Beside, End, Inotify};

/// A child that says nothing for so long is asked to end. What it does has limits of its own,
/// which it says first of all where they are longer.
const SILENCE: Duration = Duration::from_secs(30 * 60);

/// One that was asked and does not end is killed after this long.
const GRACE: Duration = Duration::from_secs(60);

/// A running child.
pub struct Running {
    beside: Beside,
    /// Why there is a pass; nothing where it only records something.
    pub cause: Option<Cause>,
    /// The instance that it arms.
    pub fresh: Option<Inotify>,
    /// The reports that it records as taken.
    pub sent: Vec<String>,
    silence: Duration,
    until: Duration,
    asked: bool,
    /// What it came to.
    pub outcome: Option<Result<Box<Told>, Unable>>,
    /// What it last said that it does.
    pub doing: Option<String>,
}

/// Why there was no pass.
#[derive(Debug)]
pub struct Unable {
    /// The exit code that it would be for a command; 0 where the child died.
    pub exit: u8,
    /// One line for a person.
    pub said: String,
}

impl Running {
    /// Starts a child for `order`.
    ///
    /// # Errors
    /// The kernel's.
    pub fn start(
        cause: Option<Cause>,
        mut order: Order,
        flags: &[OsString],
        fresh: Option<Inotify>,
        now: Duration,
    ) -> io::Result<Running> {
        order.drift = fresh.as_ref().map(AsRawFd::as_raw_fd);
        let text = serde_json::to_string(&order).expect("an order is plain JSON");
        let mut arguments: Vec<OsString> = vec![ERRAND_ARGUMENT.into(), text.into()];
        arguments.extend(flags.iter().cloned());
        let beside = Beside::spawn(&arguments, order.drift)?;
        Ok(Running {
            beside,
            cause,
            fresh,
            sent: order.sent,
            silence: SILENCE,
            until: now + SILENCE,
            asked: false,
            outcome: None,
            doing: None,
        })
    }

    /// What to poll for reading.
    pub fn descriptors(&self) -> impl Iterator<Item = RawFd> {
        self.beside.descriptors()
    }

    /// When something is to be done about it at the latest.
    pub fn deadline(&self) -> Duration {
        self.until
    }

    /// Takes what it has said, a little at a time, and has it keep its limits; whether it is over.
    pub fn turn(&mut self, now: Duration) -> bool {
        let mut words = Vec::new();
        let ended = self.beside.ended();
        match ended {
            None => self.beside.read(&mut |line| words.extend(word(line))),
            Some(_) => self.beside.read_rest(&mut |line| words.extend(word(line))),
        }
        let is_alive = !words.is_empty();
        words.into_iter().for_each(|word| self.take(word));
        if is_alive && !self.asked {
            self.until = now + self.silence;
        }
        if let Some(end) = ended {
            let died = || Err(Unable { exit: 0, said: said(end, self.asked) });
            let outcome = self.outcome.take();
            self.outcome = Some(outcome.unwrap_or_else(died));
            return true;
        }
        if now >= self.until {
            match self.asked {
                false => self.ask(now, GRACE),
                true => self.kill(now),
            }
        }
        false
    }

    /// Asks it to finish what it has in hand, record it and end, for which it has `grace`.
    pub fn ask(&mut self, now: Duration, grace: Duration) {
        self.beside.signal(libc::SIGTERM);
        (self.asked, self.until) = (true, now + grace);
    }

    fn kill(&mut self, now: Duration) {
        self.beside.signal(libc::SIGKILL);
        self.until = now + GRACE;
    }

    fn take(&mut self, word: Word) {
        match word {
            Word::Begun { longest_s } => {
                self.silence = SILENCE.max(Duration::from_secs(longest_s.min(86_400)) * 4);
            }
            Word::Progress { done, all, doing } => {
                self.doing = Some(format!("{done}/{all} {doing}"));
            }
            Word::Unable { exit, said } => self.outcome = Some(Err(Unable { exit, said })),
            Word::Told(told) => self.outcome = Some(Ok(told)),
        }
    }
}

/// A line that is none of ours is somebody else's on the same stream, and says nothing.
fn word(line: &[u8]) -> Option<Word> {
    serde_json::from_slice(line).ok()
}

fn said(end: End, asked: bool) -> String {
    let how = match end {
        End::Exited(code) => format!("exited {code}"),
        End::Killed(signal) => format!("was killed by signal {signal}"),
    };
    let why = if asked { ", having been asked to end" } else { "" };
    format!("the pass {how}{why} without saying what it did")
}
