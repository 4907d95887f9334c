//! The store: what this host has accepted, intends, has applied and owns.
//!
//! It is one file, the journal, and everything known is a fold of its records; beside it lie the
//! values of secrets. [`Store`] writes and holds the pass lock for as long as it lives. [`Reading`]
//! writes nothing, takes no lock, and may look on while another process appends.
//!
//! Decision: an unreadable journal never becomes an empty one. A last line that was not written
//! whole is cut off and said; whatever else no host would have written is [`Error::Damaged`].
//!
//! Absent on purpose: no clock and no random numbers; both are passed in.

mod append;
mod compact;
mod files;
mod journal;
mod known;
mod lock;
mod member;
mod owned;
mod reading;
mod record;
mod rescue;
mod secrets;
mod state;
mod tail;
mod writer;

#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;

pub use crate::when::When;
pub use append::Body;
pub use compact::Extract;
pub use files::{private_directory, replace};
pub use journal::{Entry, Place, Torn};
pub use known::{Accepted, Failing, Guarded, LastPass, Note, Paused, Quarantined, Words};
pub use lock::{Lock, Name};
pub use member::{Hex, Text};
pub use owned::Owned;
pub use reading::{fold_bytes, verify, Reading, Summary};
pub use record::{Counts, Covered, Kind, Made, Outcome, Record, Source, SCHEMA};
pub use rescue::{discard, Discarded};
pub use secrets::Secrets;
pub use state::State;
pub use tail::Tail;
pub use writer::Store;

use crate::declaration::{Bundle, Stored};

/// The journal's name in the state directory.
pub const JOURNAL: &str = "journal.jsonl";
/// What a new journal is called until it is whole.
const UNFINISHED: &str = "journal.jsonl.new";

/// The journal in `dir` as it is now: its inode and length; `None` where there is none. That both
/// are what they were means that nobody wrote it.
pub fn journal_place(dir: &std::path::Path) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    let found = std::fs::symlink_metadata(dir.join(JOURNAL)).ok()?;
    Some((found.ino(), found.len()))
}

fn stored(file: &File, words: Words) -> io::Result<Stored> {
    let mut bytes = read_place(file, words.place)?;
    if words.excerpt {
        bytes = [b"{\"version\":1,\"resources\":[".as_slice(), &bytes, b"]}"].concat();
    }
    Ok(match words.source {
        Source::Bundle => Stored::Trusted(Bundle::vouched(bytes)),
        Source::Local | Source::Link => Stored::Untrusted(bytes),
    })
}

fn read_place(file: &File, place: Place) -> io::Result<Vec<u8>> {
    let len = usize::try_from(place.len).map_err(io::Error::other)?;
    let mut bytes = vec![0; len];
    file.read_exact_at(&mut bytes, place.offset)?;
    Ok(bytes)
}

/// Reads a stretch of a file from its start to its end.
struct Stretch<'a> {
    file: &'a File,
    at: u64,
}

impl Read for Stretch<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(into, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}
