//! Reading the journal: lines, their sums, and what a torn end is. Reads any `BufRead`; no effect
//! of its own.
//!
//! A line is `{"seq":…,…,"sum":"…"}`. Its sum covers the bytes before `,"sum"` and a closing brace.
//! A body may be as long as a declaration, so a line is summed in pieces and only its head is kept.

use std::io::{self, BufRead, Read};
use std::str;

use super::record::Record;
use crate::digest::{sha256, Hasher, Sha256};

/// How much of a line is kept: all but the body must fit.
pub(super) const HEAD: usize = 64 << 10;
/// Length of `,"sum":"0123456789abcdef"}`.
pub(super) const TAIL: usize = 26;

/// Bytes of the journal file: where a record's body stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// From the start of the file.
    pub offset: u64,
    /// How many.
    pub len: u64,
}

/// How far a journal has been read: the end of the last whole line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// Bytes.
    pub offset: u64,
    /// Lines.
    pub line: u64,
    /// The last record's number.
    pub seq: u64,
}

/// A last line that was not written whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Torn {
    /// Its number, from 1.
    pub line: u64,
    /// Where it begins, in bytes.
    pub offset: u64,
    /// How many bytes there are of it.
    pub bytes: u64,
}

/// Why reading ended before the end of the file.
#[derive(Debug)]
pub(super) enum Stop {
    /// The file could not be read.
    Io(io::Error),
    /// The last line is torn.
    Torn(Torn),
    /// A line was never written by a host.
    Damaged {
        /// Its number, from 1.
        line: u64,
        /// What is wrong with it.
        why: String,
    },
}

/// A record that has been read.
#[derive(Debug)]
pub struct Entry<'a> {
    /// The record.
    pub record: Record<'a>,
    /// Where its body stands.
    pub body: Option<Place>,
}

/// Reads records one after the other.
pub(super) struct Reader<R> {
    input: R,
    head: Vec<u8>,
    position: Position,
}

/// A line as it came, before it is parsed.
pub(super) struct Line {
    /// Bytes, the line break not counted.
    len: u64,
    /// What is wrong with it.
    pub wrong: Option<&'static str>,
    terminated: bool,
}

impl<R: BufRead> Reader<R> {
    /// Reads on from `position`, which is where `input` stands.
    pub fn new(input: R, position: Position) -> Reader<R> {
        Reader { input, head: Vec::new(), position }
    }

    /// The end of what has been read.
    pub fn position(&self) -> Position {
        self.position
    }

    /// The first bytes of the line read last.
    pub fn head(&self) -> &[u8] {
        &self.head
    }

    /// The next record; `None` at the end.
    pub fn next(&mut self) -> Result<Option<Entry<'_>>, Stop> {
        let Some(line) = self.read_line().map_err(Stop::Io)? else { return Ok(None) };
        let number = self.position.line + 1;
        let damaged = |why: String| Stop::Damaged { line: number, why };
        if let Some(why) = line.wrong {
            return Err(match self.torn(&line).map_err(Stop::Io)? {
                Some(torn) => Stop::Torn(torn),
                None => damaged(why.into()),
            });
        }
        let start = self.position.offset;
        let (cut, body) = self.split(&line, start).map_err(|why| damaged(why.into()))?;
        self.head[cut] = b'}';
        let members =
            str::from_utf8(&self.head[..=cut]).map_err(|_| damaged("is not UTF-8".into()))?;
        let record: Record = serde_json::from_str(members)
            .map_err(|err| damaged(format!("is not a record: {:?}", capped(&err.to_string()))))?;
        if record.bytes != body.map(|body| body.len) {
            return Err(damaged("its body is not of the size it names".into()));
        }
        let expected = self.position.seq + 1;
        if number > 1 && record.seq != expected {
            return Err(damaged(format!("is record {}, not {expected}", record.seq)));
        }
        self.position = Position { offset: start + line.len + 1, line: number, seq: record.seq };
        Ok(Some(Entry { record, body }))
    }

    /// Takes the next line in and checks its sum; `None` at the end.
    pub fn read_line(&mut self) -> io::Result<Option<Line>> {
        self.head.clear();
        let taken = (&mut self.input).take(HEAD as u64).read_until(b'\n', &mut self.head)?;
        if taken == 0 {
            return Ok(None);
        }
        if taken == HEAD && self.head[taken - 1] != b'\n' {
            return self.read_rest().map(Some);
        }
        let terminated = self.head[taken - 1] == b'\n';
        if !terminated {
            return Ok(Some(Line { len: taken as u64, wrong: Some("ends early"), terminated }));
        }
        let len = taken - 1;
        let sound = len > TAIL && {
            let cut = len - TAIL;
            let comma = std::mem::replace(&mut self.head[cut], b'}');
            let tail = tail(&sha256(&self.head[..=cut]));
            self.head[cut] = comma;
            self.head[cut..len] == tail
        };
        let wrong = (!sound).then_some("its sum is wrong");
        Ok(Some(Line { len: len as u64, wrong, terminated }))
    }

    /// The rest of a line that is longer than its kept head.
    fn read_rest(&mut self) -> io::Result<Line> {
        let mut hasher = Hasher::new();
        let mut held = self.head.clone();
        let mut len = held.len() as u64;
        loop {
            let settled = held.len() - TAIL;
            hasher.update(&held[..settled]);
            held.drain(..settled);
            let taken = (&mut self.input).take(HEAD as u64).read_until(b'\n', &mut held)?;
            len += taken as u64;
            if taken == 0 {
                return Ok(Line { len, wrong: Some("ends early"), terminated: false });
            }
            if held.last() == Some(&b'\n') {
                held.pop();
                break;
            }
        }
        let cut = held.len() - TAIL;
        hasher.update(&held[..cut]);
        hasher.update(b"}");
        let sound = held[cut..] == tail(&hasher.finish());
        Ok(Line { len: len - 1, wrong: (!sound).then_some("its sum is wrong"), terminated: true })
    }

    /// Where, in the kept head of a sound line that begins at `start`, the members end, and where
    /// the body stands.
    pub fn split(&self, line: &Line, start: u64) -> Result<(usize, Option<Place>), &'static str> {
        let content = line.len - TAIL as u64;
        let body = body_len(&self.head);
        let body_at = content.checked_sub(body.unwrap_or(0)).ok_or("its body is cut short")?;
        let members = usize::try_from(body_at).ok().filter(|&at| at < self.head.len());
        let members = members.ok_or("its members are too long")?;
        let Some(len) = body else { return Ok((members, None)) };
        let markers = [b",\"declaration\":".as_slice(), b",\"resource\":", b",\"detail\":"];
        let found = markers.iter().find(|marker| self.head[..members].ends_with(marker));
        let marker = found.ok_or("its body is not of the size it names")?;
        Ok((members - marker.len(), Some(Place { offset: start + body_at, len })))
    }

    /// Whether `line`, which is wrong, is the last: nothing follows it but the NUL bytes that some
    /// file systems leave in place of what a power failure took.
    fn torn(&mut self, line: &Line) -> io::Result<Option<Torn>> {
        let mut bytes = line.len + u64::from(line.terminated);
        loop {
            let rest = self.input.fill_buf()?;
            if rest.is_empty() {
                let Position { offset, line, .. } = self.position;
                return Ok(Some(Torn { line: line + 1, offset, bytes }));
            }
            if rest.iter().any(|&byte| byte != 0) {
                return Ok(None);
            }
            let len = rest.len();
            bytes += len as u64;
            self.input.consume(len);
        }
    }
}

/// What ends a line of this digest.
pub(super) fn tail(digest: &Sha256) -> [u8; TAIL] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut tail = *b",\"sum\":\"0000000000000000\"}";
    for (pair, byte) in tail[8..24].chunks_mut(2).zip(digest) {
        pair[0] = DIGITS[usize::from(byte >> 4)];
        pair[1] = DIGITS[usize::from(byte & 15)];
    }
    tail
}

/// The size of the body that a line beginning so has: the member `bytes` after `kind`.
fn body_len(head: &[u8]) -> Option<u64> {
    let rest = head.strip_prefix(b"{\"seq\":")?;
    let digits = rest.iter().take(20).take_while(|byte| byte.is_ascii_digit()).count();
    let rest = rest[digits..].strip_prefix(b",\"at\":\"")?.get(20..)?;
    let rest = rest.strip_prefix(b"\",\"kind\":\"")?;
    let word = rest.iter().take(20).take_while(|&&byte| byte != b'"').count();
    let rest = rest[word..].strip_prefix(b"\",\"bytes\":")?;
    let digits = rest.iter().take(20).take_while(|byte| byte.is_ascii_digit()).count();
    std::str::from_utf8(&rest[..digits]).ok()?.parse().ok()
}

/// The first 200 characters.
fn capped(text: &str) -> &str {
    text.char_indices().nth(200).map_or(text, |(at, _)| &text[..at])
}
