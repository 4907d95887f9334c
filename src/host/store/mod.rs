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
mod lock;
mod owned;
mod record;
mod rescue;
mod secrets;
mod state;
mod tail;

#[cfg(test)]
mod tests;

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use crate::when::When;
pub use append::Body;
pub use compact::Extract;
pub use journal::{Entry, Place, Torn};
pub use lock::{Lock, Name};
pub use owned::Owned;
pub use record::{Counts, Covered, Hex, Kind, Made, Outcome, Record, Source, SCHEMA};
pub use rescue::{discard, Discarded};
pub use secrets::Secrets;
pub use state::{Accepted, Failing, LastPass, Note, Paused, State, Text};
pub use tail::Tail;

use crate::declaration::Bundle;
use crate::error::{Error, Stage};
use append::Appender;
use files::Access;
use journal::{Position, Reader, Stop};

/// The journal's name in the state directory.
pub const JOURNAL: &str = "journal.jsonl";
/// What a new journal is called until it is whole.
const UNFINISHED: &str = "journal.jsonl.new";
/// The largest file in which a torn first line can still be the making of a store.
const FIRST_LINE: u64 = 4096;

/// The store, open for writing, its pass lock held.
pub struct Store {
    dir: PathBuf,
    journal: Appender,
    state: State,
    /// Length of the journal when it was last new.
    base: u64,
    notices: Vec<String>,
    /// Last, so that it is let go of last.
    _lock: Lock,
}

/// The store as it was at one moment.
#[derive(Default)]
pub struct Reading {
    /// What is known.
    pub state: State,
    /// A last line that is not there whole: torn, or being written at this moment.
    pub torn: Option<Torn>,
    lines: u64,
    file: Option<File>,
}

/// A declaration from the store, and how far it is trusted.
#[derive(Debug)]
pub enum Stored {
    /// It came from a file that only root can write.
    Trusted(Bundle),
    /// It came from anywhere else.
    Untrusted(Vec<u8>),
}

/// What [`verify`] saw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Whole lines.
    pub lines: u64,
    /// Number of the last record.
    pub last_seq: u64,
    /// A last line that is not there whole.
    pub torn: Option<Torn>,
}

impl Store {
    /// Opens the store in `dir`, made where it is absent: takes the pass lock, reads the journal,
    /// cuts off a torn last line and clears away what a crash left unfinished.
    ///
    /// # Errors
    /// The lock is not free within `patience`; the directory is not private; the journal is damaged.
    pub fn open(dir: &Path, patience: Duration, now: When) -> Result<Store, Error> {
        files::private_directory(dir)?;
        let lock = Lock::take(dir, Name::Pass, patience)?;
        let path = dir.join(JOURNAL);
        let failed = |err| Error::failed(Stage::Record, format!("open {}", path.display()), err);
        files::remove_if_there(&dir.join(UNFINISHED)).map_err(failed)?;
        let mut notices = Vec::new();
        let found = files::open_regular(&path, Access::Write)?;
        let (file, mut folded) = match found {
            Some(file) => {
                let folded = fold_file(&file, &path)?;
                (file, folded)
            }
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
        let mut file = file;
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

    /// Appends an accepted declaration: `record` is its [`Kind::Accepted`], `text` its words without
    /// any secret value.
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
            Err(err) if err.kind() == io::ErrorKind::InvalidInput => {
                let doing = format!("record {:?} in the journal", record.kind);
                Err(Error::failed(Stage::Record, doing, err))
            }
            done => self.settle(done),
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

    /// The words of a declaration or of one resource of it, as a declaration.
    ///
    /// # Errors
    /// The journal cannot be read.
    pub fn text(&mut self, text: &Text) -> Result<Stored, Error> {
        self.flush()?;
        stored(self.journal.file(), text).map_err(|err| self.unreadable(err))
    }

    /// The body of a note.
    ///
    /// # Errors
    /// The journal cannot be read.
    pub fn body(&mut self, place: Place) -> Result<Vec<u8>, Error> {
        self.flush()?;
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

    /// After a failed write the state is what the journal says, no more.
    fn settle(&mut self, done: io::Result<()>) -> Result<(), Error> {
        let Err(err) = done else { return Ok(()) };
        let path = self.dir.join(JOURNAL);
        self.state = State::default();
        self.state = fold_file(self.journal.file(), &path)?.state;
        Err(Error::failed(Stage::Record, format!("write {}", path.display()), err))
    }

    fn unreadable(&self, err: io::Error) -> Error {
        let path = self.dir.join(JOURNAL);
        Error::failed(Stage::Read, format!("read {}", path.display()), err)
    }
}

impl Reading {
    /// Reads the store in `dir`. Nothing is written and no lock taken; where there is no store, an
    /// empty one is read.
    ///
    /// # Errors
    /// The journal is damaged or cannot be read.
    pub fn of(dir: &Path) -> Result<Reading, Error> {
        let path = dir.join(JOURNAL);
        let mut last = None;
        // A writer that takes back a failed write moves the end under a reader, who then sees lines
        // that never stood together: what is really damaged is so again.
        for _ in 0..3 {
            let Some(file) = files::open_regular(&path, Access::Read)? else {
                refuse_remains(dir)?;
                return Ok(Reading::default());
            };
            match fold_file(&file, &path) {
                Ok(folded) => {
                    let (state, torn, lines) = (folded.state, folded.torn, folded.end.line);
                    return Ok(Reading { state, torn, lines, file: Some(file) });
                }
                Err(err) => last = Some(err),
            }
        }
        Err(last.expect("the loop ran"))
    }

    /// The words of a declaration or of one resource of it, as a declaration.
    ///
    /// # Errors
    /// The journal cannot be read.
    pub fn text(&self, text: &Text) -> Result<Stored, Error> {
        let file = self.file.as_ref().expect("a text is known from a journal");
        stored(file, text).map_err(|err| Error::failed(Stage::Read, "read the journal", err))
    }
}

impl Stored {
    /// The bytes, however far they are trusted.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Stored::Trusted(bundle) => bundle.bytes(),
            Stored::Untrusted(bytes) => bytes,
        }
    }
}

/// Checks every line of the journal in `dir`.
///
/// # Errors
/// It is damaged or cannot be read.
pub fn verify(dir: &Path) -> Result<Summary, Error> {
    let reading = Reading::of(dir)?;
    let (lines, last_seq, torn) = (reading.lines, reading.state.seq(), reading.torn);
    Ok(Summary { lines, last_seq, torn })
}

/// Folds the bytes of a journal.
///
/// # Errors
/// [`Error::Damaged`].
pub fn fold_bytes(bytes: &[u8]) -> Result<State, Error> {
    fold(bytes, bytes.len() as u64, Path::new(JOURNAL)).map(|folded| folded.state)
}

/// A journal that has been read.
struct Folded {
    state: State,
    end: Position,
    /// Length of the journal when it was new.
    base: u64,
    torn: Option<Torn>,
}

fn fold_file(mut file: &File, path: &Path) -> Result<Folded, Error> {
    let failed = |err| Error::failed(Stage::Read, format!("read {}", path.display()), err);
    let len = file.metadata().map_err(failed)?.len();
    file.seek(SeekFrom::Start(0)).map_err(failed)?;
    fold(BufReader::with_capacity(256 << 10, file), len, path)
}

fn fold(input: impl BufRead, len: u64, path: &Path) -> Result<Folded, Error> {
    let damaged = |line, why| Error::Damaged { path: path.display().to_string(), line, why };
    let mut reader = Reader::new(input, Position::default());
    let mut state = State::default();
    let (mut base, mut torn) = (0, None);
    loop {
        let entry = match reader.next() {
            Ok(Some(entry)) => entry,
            Ok(None) => break,
            Err(Stop::Io(err)) => {
                return Err(Error::failed(Stage::Read, format!("read {}", path.display()), err));
            }
            Err(Stop::Torn(it)) => {
                torn = Some(it);
                break;
            }
            Err(Stop::Damaged { line, why }) => {
                return Err(damaged(line, newer_schema(line, reader.head()).unwrap_or(why)));
            }
        };
        let was_restating = state.seq() == 0 || state.restating() > 0;
        let folded = state.fold(&entry.record, entry.body);
        let Position { offset, line, .. } = reader.position();
        folded.map_err(|why| damaged(line, why))?;
        if was_restating && state.restating() == 0 {
            base = offset;
        }
    }
    let end = reader.position();
    if torn.is_some() && end.line == 0 && !(len <= FIRST_LINE && is_a_beginning(reader.head())) {
        return Err(damaged(1, "is not the beginning of a journal".into()));
    }
    if state.restating() > 0 {
        let why = format!("{} records of the last compaction are missing", state.restating());
        return Err(damaged(end.line + 1, why));
    }
    Ok(Folded { state, end, base, torn })
}

/// What a first line says that is of a later format, whatever else is in it.
fn newer_schema(line: u64, head: &[u8]) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct First {
        schema: u32,
    }
    let mut first = serde_json::Deserializer::from_slice(head).into_iter::<First>();
    let schema = first.next()?.ok().filter(|_| line == 1)?.schema;
    (schema > SCHEMA).then(|| state::newer(schema))
}

/// Whether these bytes, the whole of a journal, are the first of the line with which a store is
/// made, and so stand for a store that never held anything.
fn is_a_beginning(head: &[u8]) -> bool {
    let written = head.iter().position(|&byte| byte == 0).unwrap_or(head.len());
    let head = &head[..written];
    let line =
        b"{\"seq\":1,\"at\":\"....-..-..T..:..:..Z\",\"kind\":\"snapshot\",\"schema\":1,\"sum\":\"";
    let fits = |(&seen, &due): (&u8, &u8)| seen == due || due == b'.' && seen.is_ascii_digit();
    !head.ends_with(b"\n") && head.iter().zip(line).all(fits)
}

/// A journal is never removed, so where the store's other files stand without one, it was lost.
fn refuse_remains(dir: &Path) -> Result<(), Error> {
    if fs::symlink_metadata(dir.join(secrets::DIRECTORY)).is_err() {
        return Ok(());
    }
    let why = format!("is missing, but {}/ is there", secrets::DIRECTORY);
    Err(Error::Damaged { path: dir.join(JOURNAL).display().to_string(), line: 0, why })
}

/// Puts a journal that holds nothing (but a floor) in place of what is there.
fn make_anew(dir: &Path, floor: Option<u64>, now: When) -> Result<(File, Folded), Error> {
    let path = dir.join(JOURNAL);
    let failed = |err| Error::failed(Stage::Record, format!("make {}", path.display()), err);
    let unfinished = dir.join(UNFINISHED);
    files::remove_if_there(&unfinished).map_err(failed)?;
    let mut journal = Appender::new(files::create(&unfinished).map_err(failed)?, 0);
    let mut record = Record { seq: 1, at: now, floor, ..Record::new(Kind::Snapshot) };
    record.schema = Some(SCHEMA);
    journal.append(&mut record, None, |_, _| Ok(())).map_err(failed)?;
    let file = journal.finish().map_err(failed)?;
    fs::rename(&unfinished, &path).and_then(|()| files::sync_directory(dir)).map_err(failed)?;
    let folded = fold_file(&file, &path)?;
    Ok((file, folded))
}

fn said(path: &Path, torn: &Torn) -> String {
    let Torn { line, bytes, .. } = torn;
    format!("{} line {line} was not written whole: its {bytes} bytes are cut off", path.display())
}

fn stored(file: &File, text: &Text) -> io::Result<Stored> {
    let mut bytes = read_place(file, text.place)?;
    if text.excerpt {
        bytes = [b"{\"version\":1,\"resources\":[".as_slice(), &bytes, b"]}"].concat();
    }
    Ok(match text.source {
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
