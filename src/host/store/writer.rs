//! The writing side: opening the store under its lock, and appending.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::append::{Appender, Body, Failure};
use super::compact::Extract;
use super::files::{self, Access};
use super::journal::{Place, Torn};
use super::known::Words;
use super::lock::{Lock, Name};
use super::reading::{fold_file, refuse_remains, Folded};
use super::record::{Kind, Record, SCHEMA};
use super::state::State;
use super::{read_place, secrets, stored, Stored, JOURNAL, UNFINISHED};
use crate::error::{Error, Stage};
use crate::when::When;

/// The store, open for writing, its pass lock held.
pub struct Store {
    pub(super) dir: PathBuf,
    pub(super) journal: Appender,
    pub(super) state: State,
    /// Length of the journal when it was last new.
    pub(super) base: u64,
    notices: Vec<String>,
    /// Last, so that it is let go of last.
    _lock: Lock,
}

impl Store {
    /// Opens the store in `dir`, made where it is absent: takes the pass lock, reads the journal,
    /// cuts off a torn last line and clears away what a crash left unfinished.
    ///
    /// # Errors
    /// The lock is not free within `patience`; the directory is not private; the journal is
    /// damaged.
    pub fn open(dir: &Path, patience: Duration, now: When) -> Result<Store, Error> {
        files::private_directory(dir)?;
        let lock = Lock::take(dir, Name::Pass, patience)?;
        let path = dir.join(JOURNAL);
        let failed = |err| Error::failed(Stage::Record, format!("open {}", path.display()), err);
        for unfinished in [dir.join(UNFINISHED), secrets::unfinished_key(dir)] {
            files::remove_if_there(&unfinished).map_err(failed)?;
        }
        let mut notices = Vec::new();
        let (mut file, mut folded) = match files::open_regular(&path, Access::Write)? {
            Some(file) => fold_file(&file, &path).map(|folded| (file, folded))?,
            None => {
                refuse_remains(dir)?;
                make_anew(dir, None, now)?
            }
        };
        if let Some(torn) = folded.torn {
            notices.push(said(&path, &torn));
            let cut = file.set_len(folded.end.offset).and_then(|()| file.sync_all());
            cut.map_err(failed)?;
        }
        if folded.state.seq() == 0 {
            if folded.torn.is_none() {
                notices.push(format!("{} is empty and is begun anew", path.display()));
            }
            (file, folded) = make_anew(dir, None, now)?;
        }
        let journal = Appender::new(file, folded.end.offset);
        let (dir, state, base) = (dir.to_owned(), folded.state, folded.base);
        Ok(Store { dir, journal, state, base, notices, _lock: lock })
    }

    /// What a person should be told of the opening, once.
    pub fn take_notices(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notices)
    }

    /// What is known, all appended records included.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The state directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Appends a record; it is durable after [`Store::flush`].
    ///
    /// # Errors
    /// As for [`Store::flush`]; or no host may write such a record, which is then left out.
    pub fn append(&mut self, record: Record<'_>, now: When) -> Result<(), Error> {
        self.append_body(record, None, now)
    }

    /// Appends an accepted declaration: `record` is its [`Kind::Accepted`], `text` its words
    /// without any secret value.
    ///
    /// # Errors
    /// As for [`Store::append`].
    pub fn accept(&mut self, record: Record<'_>, text: &[u8], now: When) -> Result<(), Error> {
        let (len, mut from) = (text.len() as u64, text);
        self.append_body(record, Some(Body { len, from: &mut from }), now)
    }

    /// Appends a record with a body.
    ///
    /// # Errors
    /// As for [`Store::append`].
    pub fn append_body(
        &mut self,
        mut record: Record<'_>,
        body: Option<Body<'_>>,
        now: When,
    ) -> Result<(), Error> {
        record.seq = self.state.seq() + 1;
        record.at = now;
        let state = &mut self.state;
        let done = self.journal.append(&mut record, body, |record, body| state.fold(record, body));
        match done {
            Ok(()) => Ok(()),
            Err(Failure::Io(err)) => self.settle(Err(err)),
            Err(Failure::Refused(why)) => {
                let doing = format!("record {:?} in the journal", record.kind);
                Err(Error::failed(Stage::Record, doing, why))
            }
        }
    }

    /// Makes everything appended durable.
    ///
    /// # Errors
    /// The disk is full or failing: everything since the last flush is taken back, in the journal
    /// and in [`Store::state`]. The store stays usable.
    pub fn flush(&mut self) -> Result<(), Error> {
        let done = self.journal.flush();
        self.settle(done)
    }

    /// The words of a declaration or of one resource of it, as a declaration. What was appended
    /// since the last flush cannot be read yet.
    ///
    /// # Errors
    /// The journal cannot be read.
    pub fn words(&self, words: Words) -> Result<Stored, Error> {
        stored(self.journal.file(), words).map_err(|err| self.unreadable(err))
    }

    /// The body of a note, likewise.
    ///
    /// # Errors
    /// The journal cannot be read.
    pub fn body(&self, place: Place) -> Result<Vec<u8>, Error> {
        read_place(self.journal.file(), place).map_err(|err| self.unreadable(err))
    }

    /// Rewrites the journal without what no longer matters, where that has grown to more than what
    /// does; whether it did. To be called at the end of a pass that wrote something. A failure
    /// leaves the store as it was and need not fail the pass.
    ///
    /// # Errors
    /// The new journal could not be written, or does not say what the old one does.
    pub fn compact_if_due(&mut self, extract: Extract<'_>, now: When) -> Result<bool, Error> {
        self.flush()?;
        let due = self.journal.len() > (256 << 10) + 2 * self.base;
        if due {
            self.compact(extract, now)?;
        }
        Ok(due)
    }

    fn settle(&mut self, done: io::Result<()>) -> Result<(), Error> {
        let Err(err) = done else { return Ok(()) };
        self.read_anew()?;
        let doing = format!("write {}", self.dir.join(JOURNAL).display());
        Err(Error::failed(Stage::Record, doing, err))
    }

    /// After a failed write the state is what the journal says, no more. Where it cannot be read
    /// either, nothing is written any more.
    pub(super) fn read_anew(&mut self) -> Result<(), Error> {
        let folded = fold_file(self.journal.file(), &self.dir.join(JOURNAL));
        self.state = folded.inspect_err(|_| self.journal.end())?.state;
        Ok(())
    }

    fn unreadable(&self, err: io::Error) -> Error {
        let path = self.dir.join(JOURNAL);
        Error::failed(Stage::Read, format!("read {}", path.display()), err)
    }
}

/// Puts a journal that holds nothing (but a floor) in place of what is there.
pub(super) fn make_anew(
    dir: &Path,
    floor: Option<u64>,
    now: When,
) -> Result<(File, Folded), Error> {
    let path = dir.join(JOURNAL);
    let failed = |err| Error::failed(Stage::Record, format!("make {}", path.display()), err);
    let unfinished = dir.join(UNFINISHED);
    files::remove_if_there(&unfinished).map_err(failed)?;
    let mut journal = Appender::new(files::create(&unfinished).map_err(failed)?, 0);
    let mut record = Record { seq: 1, at: now, floor, ..Record::new(Kind::Snapshot) };
    record.schema = Some(SCHEMA);
    journal.append(&mut record, None, |_, _| Ok(())).map_err(|err| failed(err.into()))?;
    let file = journal.finish().map_err(failed)?;
    fs::rename(&unfinished, &path).and_then(|()| files::sync_directory(dir)).map_err(failed)?;
    let folded = fold_file(&file, &path)?;
    Ok((file, folded))
}

fn said(path: &Path, torn: &Torn) -> String {
    let Torn { line, bytes, .. } = torn;
    format!("{} line {line} was not written whole: its {bytes} bytes are cut off", path.display())
}
