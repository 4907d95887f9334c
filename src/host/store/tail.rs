//! The journal as a person follows it: record after record, without holding it.

use std::fs::File;
use std::io::{BufReader, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::files::{self, Access};
use super::journal::{Entry, Position, Reader, Stop};
use super::JOURNAL;
use crate::error::{Error, Stage};

/// A place in a journal from which reading goes on.
pub struct Tail {
    path: PathBuf,
    file: Option<File>,
    position: Position,
    /// Records up to this one have been seen, or restate what was.
    seen: u64,
}

impl Tail {
    /// Stands before the first record of the journal in `dir`.
    pub fn of(dir: &Path) -> Tail {
        Tail { path: dir.join(JOURNAL), file: None, position: Position::default(), seen: 0 }
    }

    /// Shows every record that has been written since the last call, and goes on to a journal that
    /// was put in place of this one by a compaction, past what that restates.
    ///
    /// # Errors
    /// The journal is damaged or cannot be read; or what `show` says.
    pub fn read(
        &mut self,
        show: &mut dyn FnMut(&Entry<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        if let Some(file) = &self.file {
            self.position = self.read_file(file, show)?;
            self.seen = self.seen.max(self.position.seq);
        }
        if !self.turn()? {
            return Ok(());
        }
        let file = self.file.as_ref().expect("a journal was just opened");
        self.position = self.read_file(file, show)?;
        self.seen = self.seen.max(self.position.seq);
        Ok(())
    }

    /// Opens the journal that stands there now, if it is not the one being read.
    fn turn(&mut self) -> Result<bool, Error> {
        let Some(file) = files::open_regular(&self.path, Access::Read)? else { return Ok(false) };
        let known = |file: &File| file.metadata().ok().map(|it| (it.dev(), it.ino()));
        if self.file.as_ref().is_some_and(|old| known(old) == known(&file)) {
            return Ok(false);
        }
        (self.file, self.position) = (Some(file), Position::default());
        Ok(true)
    }

    fn read_file(
        &self,
        mut file: &File,
        show: &mut dyn FnMut(&Entry<'_>) -> Result<(), Error>,
    ) -> Result<Position, Error> {
        let failed = |err| Error::failed(Stage::Read, format!("read {}", self.path.display()), err);
        file.seek(SeekFrom::Start(self.position.offset)).map_err(failed)?;
        let mut reader = Reader::new(BufReader::new(file), self.position);
        let mut seen = self.seen;
        loop {
            match reader.next() {
                Ok(Some(entry)) => {
                    let record = &entry.record;
                    if record.seq == 1 {
                        // A journal that was begun anew, by a rescue.
                        seen = 0;
                    } else if let Some(records) = record.records.filter(|_| seen > 0) {
                        seen = record.seq + records;
                    }
                    if record.seq > seen {
                        show(&entry)?;
                    }
                }
                Ok(None) | Err(Stop::Torn(_)) => return Ok(reader.position()),
                Err(Stop::Io(err)) => return Err(failed(err)),
                Err(Stop::Damaged { line, why }) => {
                    return Err(Error::Damaged {
                        path: self.path.display().to_string(),
                        line,
                        why,
                    });
                }
            }
        }
    }
}
