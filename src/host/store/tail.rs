//! The journal as a person follows it: record after record, without holding it.

use std::fs::File;
use std::io::{BufReader, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::files::{self, Access};
use super::journal::{Entry, Position, Reader, Stop};
use super::reading;
use super::record::Record;
use super::JOURNAL;
use crate::error::{Error, Stage};

/// A place in a journal from which reading goes on.
pub struct Tail {
    path: PathBuf,
    file: Option<File>,
    position: Position,
    /// Only records after this one are shown.
    after: u64,
}

impl Tail {
    /// Stands before the last `records` of the journal in `dir`.
    ///
    /// # Errors
    /// The journal is damaged or cannot be read.
    pub fn of(dir: &Path, records: u64) -> Result<Tail, Error> {
        let after = reading::verify(dir)?.last_seq.saturating_sub(records);
        Ok(Tail { path: dir.join(JOURNAL), file: None, position: Position::default(), after })
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
        self.read_file(show)?;
        let Some(file) = files::open_regular(&self.path, Access::Read)? else { return Ok(()) };
        let known = |file: &File| file.metadata().ok().map(|it| (it.dev(), it.ino()));
        if self.file.as_ref().is_some_and(|old| known(old) == known(&file)) {
            return Ok(());
        }
        let is_first = self.file.is_none();
        (self.file, self.position) = (Some(file), Position::default());
        if !is_first {
            self.skip_restated()?;
        }
        self.read_file(show)
    }

    /// At the beginning of a later journal: what a compaction restates has been shown; one that was
    /// begun anew, by a rescue, has not.
    fn skip_restated(&mut self) -> Result<(), Error> {
        let before = std::mem::take(&mut self.after);
        let mut after = 0;
        self.read_file(&mut |entry| {
            let Record { seq, records, .. } = entry.record;
            if let Some(records) = records.filter(|_| seq > before) {
                after = seq + records;
            }
            Ok(())
        })?;
        (self.after, self.position) = (after, Position::default());
        Ok(())
    }

    fn read_file(
        &mut self,
        show: &mut dyn FnMut(&Entry<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let Some(mut file) = self.file.as_ref() else { return Ok(()) };
        let path = self.path.display();
        let failed = |err| Error::failed(Stage::Read, format!("read {path}"), err);
        file.seek(SeekFrom::Start(self.position.offset)).map_err(failed)?;
        let mut reader = Reader::new(BufReader::new(file), self.position);
        loop {
            match reader.next() {
                Ok(Some(entry)) if entry.record.seq > self.after => show(&entry)?,
                Ok(Some(_)) => {}
                Ok(None) | Err(Stop::Torn(_)) => break,
                Err(Stop::Io(err)) => return Err(failed(err)),
                Err(Stop::Damaged { line, why }) => {
                    return Err(Error::Damaged { path: path.to_string(), line, why });
                }
            }
        }
        self.position = reader.position();
        Ok(())
    }
}
