//! Writing the journal: records gathered in a buffer, written in large pieces, made durable once a
//! group. A write that fails leaves the journal as it was when it was last durable.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;

use super::journal::{tail, Place, HEAD, TAIL};
use super::record::Record;
use crate::digest::{sha256, Hasher};

/// How much is gathered before it is written.
const PIECE: usize = 256 << 10;

/// A JSON value to be written as a record's body. Line breaks in it, which JSON allows between
/// tokens only, are written as spaces, so that a body is a part of one line and keeps its length.
pub struct Body<'a> {
    /// How many bytes it has.
    pub len: u64,
    /// Where they come from.
    pub from: &'a mut dyn Read,
}

/// Why a record was not appended.
#[derive(Debug)]
pub(super) enum Failure {
    /// No host may write it, and why; nothing else happened.
    Refused(String),
    /// It could not be written: everything since the last [`Appender::flush`] is lost.
    Io(io::Error),
}

impl From<io::Error> for Failure {
    fn from(err: io::Error) -> Failure {
        Failure::Io(err)
    }
}

impl From<Failure> for io::Error {
    fn from(failure: Failure) -> io::Error {
        match failure {
            Failure::Refused(why) => io::Error::other(why),
            Failure::Io(err) => err,
        }
    }
}

/// The writing end of a journal file.
pub(super) struct Appender {
    file: File,
    buffer: Vec<u8>,
    /// Bytes in the file.
    written: u64,
    /// Bytes in the file that will survive a power failure.
    durable: u64,
    /// After a failed write the file could not be cut back or read: nothing is written any more.
    broken: bool,
}

impl Appender {
    /// Appends to `file`, which has `len` bytes.
    pub fn new(file: File, len: u64) -> Appender {
        Appender { file, buffer: Vec::new(), written: len, durable: len, broken: false }
    }

    /// The journal's file.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// The journal's length once everything gathered is written.
    pub fn len(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    /// Gathers a record. `admit` is told where its body will stand and may refuse it: then nothing
    /// of it is kept.
    ///
    /// # Errors
    /// As [`Failure`] has it.
    pub fn append(
        &mut self,
        record: &mut Record<'_>,
        body: Option<Body<'_>>,
        admit: impl FnOnce(&Record<'_>, Option<Place>) -> Result<(), String>,
    ) -> Result<(), Failure> {
        self.usable()?;
        let start = self.buffer.len();
        record.bytes = body.as_ref().map(|body| body.len);
        let mut place = None;
        serde_json::to_writer(&mut self.buffer, record).expect("a record is plain JSON");
        if let Some(body) = &body {
            self.buffer.pop();
            self.buffer.extend_from_slice(record.kind.body_marker());
            place = Some(Place { offset: self.len(), len: body.len });
        }
        let fits = self.buffer.len() - start < HEAD - TAIL;
        let admitted = if fits { admit(record, place) } else { Err("is too long".into()) };
        if let Err(why) = admitted {
            self.buffer.truncate(start);
            return Err(Failure::Refused(why));
        }
        let digest = match body {
            None => {
                let digest = sha256(&self.buffer[start..]);
                self.buffer.pop();
                digest
            }
            Some(body) => self.copy_body(start, body).inspect_err(|_| self.back_off())?,
        };
        self.buffer.extend_from_slice(&tail(&digest));
        self.buffer.push(b'\n');
        Ok(self.spill().inspect_err(|_| self.back_off())?)
    }

    /// Writes what has been gathered and makes it durable.
    ///
    /// # Errors
    /// Everything since the last flush is lost, and the journal is as it was then.
    pub fn flush(&mut self) -> io::Result<()> {
        self.usable()?;
        if self.len() == self.durable {
            return Ok(());
        }
        self.write_out().and_then(|()| self.file.sync_data()).inspect_err(|_| self.back_off())?;
        self.durable = self.written;
        Ok(())
    }

    /// Writes everything, makes it durable and gives the file back.
    ///
    /// # Errors
    /// As for [`Appender::flush`].
    pub fn finish(mut self) -> io::Result<File> {
        self.flush()?;
        self.file.sync_all()?;
        Ok(self.file)
    }

    /// Refuses everything from now on.
    pub fn end(&mut self) {
        self.broken = true;
    }

    fn copy_body(&mut self, start: usize, body: Body<'_>) -> io::Result<[u8; 32]> {
        let mut hasher = Hasher::new();
        hasher.update(&self.buffer[start..]);
        let mut left = body.len;
        while left > 0 {
            let at = self.buffer.len();
            let piece = left.min(HEAD as u64) as usize;
            self.buffer.resize(at + piece, 0);
            body.from.read_exact(&mut self.buffer[at..])?;
            for byte in &mut self.buffer[at..] {
                if matches!(*byte, b'\n' | b'\r') {
                    *byte = b' ';
                }
            }
            hasher.update(&self.buffer[at..]);
            left -= piece as u64;
            self.spill()?;
        }
        hasher.update(b"}");
        Ok(hasher.finish())
    }

    fn spill(&mut self) -> io::Result<()> {
        if self.buffer.len() < PIECE {
            return Ok(());
        }
        self.write_out()
    }

    fn write_out(&mut self) -> io::Result<()> {
        self.file.write_all_at(&self.buffer, self.written)?;
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// Forgets what is not durable: the next append must not fuse with half a line.
    fn back_off(&mut self) {
        self.buffer.clear();
        self.written = self.durable;
        self.broken = self.file.set_len(self.durable).is_err();
    }

    fn usable(&self) -> io::Result<()> {
        let why = "an earlier write failed and could not be taken back";
        if self.broken {
            Err(io::Error::other(why))
        } else {
            Ok(())
        }
    }
}
