//! Tests of the store as a whole, and what they share.

mod compaction;
mod locking;
mod power_loss;
mod rescue;
mod scale;
mod secrecy;
mod writing;

use std::fmt::Write as _;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use super::*;
use crate::digest::{hex, sha256};
use crate::error::Error;

/// A directory of one test's own.
pub struct Scratch(PathBuf);

impl Scratch {
    pub fn new() -> Scratch {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        // Memory where there is some to be had: nothing here depends on a disk, and syncing one of
        // several hundred stores takes long.
        let memory = Path::new("/dev/shm");
        let parent = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        let dir = parent.join(format!("store-{}-{count}", std::process::id()));
        fs::create_dir(&dir).unwrap();
        Scratch(dir)
    }

    /// Where the store goes; it does not exist yet.
    pub fn store(&self) -> PathBuf {
        self.0.join("state")
    }

    pub fn journal(&self) -> PathBuf {
        self.store().join(JOURNAL)
    }

    pub fn open(&self) -> Store {
        Store::open(&self.store(), Duration::ZERO, AT).unwrap()
    }

    /// The store read anew, once `store` has let go of it.
    pub fn reopened(&self, store: Store) -> Store {
        drop(store);
        self.open()
    }

    pub fn read(&self) -> Reading {
        Reading::of(&self.store()).unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

pub const AT: When = When(1_767_323_045);

pub fn declaration(serial: u64, objects: &[&str]) -> String {
    let resources: Vec<String> =
        objects.iter().map(|it| format!("{{\"o\":\"{it}\",\"n\":{serial}}}")).collect();
    format!("{{\"version\":1,\n\"serial\":{serial},\"resources\":[{}]}}", resources.join(",\n"))
}

pub fn accept(store: &mut Store, source: Source, serial: u64, text: &str) -> Hex<32> {
    let sha = Hex(sha256(text.as_bytes()));
    let mut record = Record::new(Kind::Accepted);
    (record.source, record.sha256, record.serial) = (Some(source), Some(sha), Some(serial));
    store.accept(record, text.as_bytes(), AT).unwrap();
    sha
}

pub fn object<'a>(kind: Kind, source: Source, object: &'a str, made: Made) -> Record<'a> {
    let mut record = Record::new(kind);
    (record.object, record.of_type) = (Some(object.into()), Some("file".into()));
    (record.id, record.source) = (Some(object.split_once(':').unwrap().1.into()), Some(source));
    (record.made, record.form) = (Some(made), Some(Hex([7; 8])));
    if kind == Kind::Applied {
        record.outcome = Some(Outcome::Created);
    }
    record
}

pub fn whole(source: Source, sha256: Hex<32>, outcome: Outcome) -> Record<'static> {
    let mut record = Record::new(Kind::Pass);
    (record.id, record.trigger) = (Some("p".into()), Some("command".into()));
    record.outcome = Some(outcome);
    record.sources = vec![Covered { source, sha256, whole: outcome == Outcome::Converged }];
    record
}

/// A caller's reading of a declaration as [`declaration`] writes it.
pub fn extract(words: &Stored, objects: &[&str]) -> Vec<Option<Range<usize>>> {
    let text = std::str::from_utf8(words.bytes()).unwrap();
    let find = |object: &&str| {
        let start = text.find(&format!("{{\"o\":\"{object}\""))?;
        Some(start..start + text[start..].find('}')? + 1)
    };
    objects.iter().map(find).collect()
}

/// Everything that a state says, without the places where it stands in the journal. Numbers of
/// records are kept as far as their order matters.
pub fn dump(store: &Store) -> String {
    let mut out = String::new();
    let mut texts = Vec::new();
    let state = store.state();
    for source in Source::ALL {
        if let Some(it) = state.accepted(source) {
            writeln!(out, "{source}: {} {:?} {}", hex(&it.sha256), it.serial, it.at).unwrap();
            texts.push((source.to_string(), it.words));
        }
        writeln!(out, "whole: {:?}", state.whole(source).map(|it| hex(it))).unwrap();
    }
    for owned in state.owned() {
        // Where it stands in the table hangs on what was there before it.
        writeln!(out, "{:?}", crate::store::Owned { position: 0, ..owned }).unwrap();
        if let Some(text) = state.held(owned.source, owned.object) {
            texts.push((owned.object.into(), *text));
        }
    }
    for owned in ["path:/a", "path:/b", "path:/c", "path:/d", "path:/e"] {
        let ceded = Source::ALL.map(|source| state.ceded(source, owned));
        writeln!(out, "ceded {owned}: {ceded:?}").unwrap();
    }
    writeln!(out, "{:?}", state.failing().collect::<Vec<_>>()).unwrap();
    writeln!(out, "{:?}", state.guarded().collect::<Vec<_>>()).unwrap();
    writeln!(out, "{:?}", Source::ALL.map(|source| state.quarantined(source))).unwrap();
    writeln!(out, "{:?} {:?} {}", state.paused(), state.last_pass(), state.floor()).unwrap();
    let notes: Vec<Note> = state.notes().to_vec();
    for (whose, text) in texts {
        let words = store.words(text).unwrap();
        let words = std::str::from_utf8(words.bytes()).unwrap();
        // Of a declaration, only the object's own words matter to what it is held to.
        let own =
            whose.contains(':').then(|| words.find(&format!("{{\"o\":\"{whose}\""))).flatten();
        let own = own.map_or(words, |at| &words[at..at + words[at..].find('}').unwrap()]);
        writeln!(out, "{whose}: {:?} {own}", text.declaration).unwrap();
    }
    for note in notes {
        let body = note.body.map(|place| store.body(place).unwrap());
        writeln!(out, "{:?} {:?}", Note { body: None, ..note }, body).unwrap();
    }
    out
}

/// Numbers that look random and are the same each time (xorshift64*).
pub struct Dice(pub u64);

impl Dice {
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % limit
    }
}
