//! The reading side: folding a journal, and telling a torn end from damage.

use std::fs::{symlink_metadata, File};
use std::io::{BufRead, BufReader, Seek, SeekFrom};
use std::path::Path;

use super::files::{self, Access};
use super::journal::{Position, Reader, Stop, Torn};
use super::known::Words;
use super::record::SCHEMA;
use super::state::{self, State};
use super::{secrets, stored, Stored, JOURNAL};
use crate::error::{Error, Stage};

/// The largest file in which a torn first line can still be the making of a store.
const FIRST_LINE: u64 = 4096;

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

/// What [`verify`] saw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Whole lines.
    pub lines: u64,
    /// Number of the first record; 0 where there is none.
    pub first_seq: u64,
    /// Number of the last record.
    pub last_seq: u64,
    /// A last line that is not there whole.
    pub torn: Option<Torn>,
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
    pub fn words(&self, words: Words) -> Result<Stored, Error> {
        let file = self.file.as_ref().expect("a text is known from a journal");
        stored(file, words).map_err(|err| Error::failed(Stage::Read, "read the journal", err))
    }
}

/// Checks every line of the journal in `dir`.
///
/// # Errors
/// It is damaged or cannot be read.
pub fn verify(dir: &Path) -> Result<Summary, Error> {
    let reading = Reading::of(dir)?;
    let (lines, last_seq, torn) = (reading.lines, reading.state.seq(), reading.torn);
    let first_seq = last_seq - lines.saturating_sub(1);
    Ok(Summary { lines, first_seq, last_seq, torn })
}

/// Folds the bytes of a journal.
///
/// # Errors
/// [`Error::Damaged`].
pub fn fold_bytes(bytes: &[u8]) -> Result<State, Error> {
    fold(bytes, bytes.len() as u64, Path::new(JOURNAL)).map(|folded| folded.state)
}

/// A journal that has been read.
pub(super) struct Folded {
    pub state: State,
    pub end: Position,
    /// Length of the journal when it was new.
    pub base: u64,
    pub torn: Option<Torn>,
}

/// Folds a journal's file from its start.
pub(super) fn fold_file(mut file: &File, path: &Path) -> Result<Folded, Error> {
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
pub(super) fn refuse_remains(dir: &Path) -> Result<(), Error> {
    if symlink_metadata(dir.join(secrets::DIRECTORY)).is_err() {
        return Ok(());
    }
    let why = format!("is missing, but {}/ is there", secrets::DIRECTORY);
    Err(Error::Damaged { path: dir.join(JOURNAL).display().to_string(), line: 0, why })
}
