//! What the service says: one line an event on standard error, with the priority that the journal
//! reads (sd-daemon(3)) where that is who reads. The same cause is said once, until it is another.

use std::collections::BTreeMap;
use std::io::{stderr, Write};
use std::os::fd::AsRawFd;

use crate::plain::plain;
use crate::service::errand::cut;

/// How much an event matters, as syslog numbers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Priority {
    /// Something does not work.
    Error = 3,
    /// Something may not.
    Warning = 4,
    /// The machine was changed.
    Notice = 5,
    /// Nothing of note.
    Info = 6,
}

/// The way to standard error, and what it was last told of each topic.
#[derive(Debug)]
pub struct Log {
    /// Who reads knows priorities.
    numbered: bool,
    said: BTreeMap<&'static str, String>,
}

impl Log {
    /// As the environment says: the journal names the stream that it reads in `JOURNAL_STREAM`.
    pub fn of_environment() -> Log {
        let numbered = std::env::var_os("JOURNAL_STREAM").is_some();
        Log { numbered, said: BTreeMap::new() }
    }

    /// Says `text`.
    pub fn say(&self, priority: Priority, text: &str) {
        let text = cut(text);
        let text = plain(&text);
        let line = match self.numbered {
            true => format!("<{}>{text}\n", priority as u8),
            false => format!("nox-mesh-host: {text}\n"),
        };
        let mut out = stderr().lock();
        // A reader that has stopped reading must not stop us: better a line less.
        let mut poll = libc::pollfd { fd: out.as_raw_fd(), events: libc::POLLOUT, revents: 0 };
        // SAFETY: one initialised pollfd is passed, with a count of one.
        if unsafe { libc::poll(&mut poll, 1, 0) } == 1 {
            let _ = out.write_all(line.as_bytes());
        }
    }

    /// Says `text` of this topic where that is news.
    pub fn say_once(&mut self, topic: &'static str, priority: Priority, text: &str) {
        if self.said.get(topic).is_none_or(|said| said != text) {
            self.say(priority, text);
            self.said.insert(topic, text.to_owned());
        }
    }

    /// There is nothing to be said of this topic any more; whether there was.
    pub fn settle(&mut self, topic: &'static str) -> bool {
        self.said.remove(topic).is_some()
    }
}
