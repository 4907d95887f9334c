//! Rescue: the store is set aside, never deleted, and a new one begun that knows nothing but the
//! lowest serial it may accept. The host's identity stays.
//!
//! The old files are linked into the directory aside before the new journal is renamed over the old
//! one: until that instant the old store is in force and whole, from then on the new one.

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, File};
use std::io::{self, BufReader};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::files::{self, Access};
use super::journal::{Position, Reader};
use super::lock::{Lock, Name};
use super::record::Source;
use super::secrets::Secrets;
use super::writer::make_anew;
use super::{secrets, JOURNAL};
use crate::error::{Error, Stage};
use crate::when::When;

/// More directories aside than this are someone's mistake.
const MOST: u32 = 1000;

/// A store that was set aside.
#[derive(Debug)]
pub struct Discarded {
    /// Where it lies now.
    pub aside: PathBuf,
    /// The lowest serial that the new store will accept, as far as the old one could be read.
    pub floor: u64,
}

/// Sets the store in `dir` aside and begins a new one.
///
/// # Errors
/// The pass lock is not free within `patience`, or a step could not be done: then either the old
/// store is still in force or the new one already, and the same may be tried again.
pub fn discard(dir: &Path, patience: Duration, now: When) -> Result<Discarded, Error> {
    files::private_directory(dir)?;
    let _lock = Lock::take(dir, Name::Pass, patience)?;
    let path = dir.join(JOURNAL);
    let failed = |err| Error::failed(Stage::Record, format!("set {} aside", path.display()), err);
    let floor = match files::open_regular(&path, Access::Read) {
        Ok(Some(file)) => salvage_floor(&file).map_err(failed)?,
        Ok(None) | Err(Error::Damaged { .. }) => 0,
        Err(err) => return Err(err),
    };
    let aside = make_aside(dir, now).map_err(failed)?;
    keep(dir, &aside).map_err(failed)?;
    make_anew(dir, Some(floor).filter(|&floor| floor > 0), now)?;
    clear_secrets(dir, &aside).map_err(failed)?;
    Ok(Discarded { aside, floor })
}

/// The lowest serial that may be accepted, by whatever lines of a journal are still sound.
fn salvage_floor(file: &File) -> io::Result<u64> {
    #[derive(serde::Deserialize)]
    struct Said {
        floor: Option<u64>,
        source: Option<Source>,
        serial: Option<u64>,
    }
    let mut reader = Reader::new(BufReader::with_capacity(256 << 10, file), Position::default());
    let mut floor = 0;
    while let Some(line) = reader.read_line()? {
        if line.wrong.is_some() {
            continue;
        }
        let Ok((cut, _)) = reader.split(&line, 0) else { continue };
        let members = [&reader.head()[..cut], b"}"].concat();
        if let Ok(said) = serde_json::from_slice::<Said>(&members) {
            let serial = said.serial.filter(|_| said.source == Some(Source::Link));
            floor = floor.max(said.floor.unwrap_or(0)).max(serial.unwrap_or(0));
        }
    }
    Ok(floor)
}

fn make_aside(dir: &Path, now: When) -> io::Result<PathBuf> {
    let at: String = now.to_string().chars().filter(|it| !matches!(it, '-' | ':')).collect();
    for number in 1..=MOST {
        let aside = dir.join(format!("discarded-{at}-{number}"));
        match DirBuilder::new().mode(0o700).create(&aside) {
            Err(err) if err.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made.map(|()| aside),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Links everything of the store into `aside`, durably; nothing of it is moved yet.
fn keep(dir: &Path, aside: &Path) -> io::Result<()> {
    let path = dir.join(JOURNAL);
    match fs::symlink_metadata(&path) {
        Err(err) if err.kind() == io::ErrorKind::NotFound => {}
        Err(err) => return Err(err),
        // Not a journal, so nothing is lost where a crash comes between this and the new one.
        Ok(found) if !found.is_file() => fs::rename(&path, aside.join(JOURNAL))?,
        Ok(_) => link(&path, &aside.join(JOURNAL))?,
    }
    let secrets = dir.join(secrets::DIRECTORY);
    let kept = aside.join(secrets::DIRECTORY);
    match fs::read_dir(&secrets) {
        Err(err) if err.kind() == io::ErrorKind::NotFound => {}
        Err(err) => return Err(err),
        Ok(entries) => {
            DirBuilder::new().mode(0o700).create(&kept)?;
            for entry in entries {
                let entry = entry?;
                link(&entry.path(), &kept.join(entry.file_name()))?;
            }
            files::sync_directory(&kept)?;
        }
    }
    files::sync_directory(aside)?;
    files::sync_directory(dir)
}

/// A second name for a file; a copy where the file system has none.
fn link(from: &Path, to: &Path) -> io::Result<()> {
    if fs::hard_link(from, to).is_ok() {
        return Ok(());
    }
    fs::copy(from, to)?;
    File::open(to)?.sync_all()
}

/// Takes away the secrets that have been linked into `aside`. Their key stays where it is sound:
/// by it the host knows what it has marked as its own, and no value is left that it could be the
/// key of. Otherwise all goes in one instant: a part of them without its key would be damage.
fn clear_secrets(dir: &Path, aside: &Path) -> io::Result<()> {
    if let Ok(Some(secrets)) = Secrets::read(dir) {
        return secrets
            .sweep(&BTreeSet::new())
            .map_err(|error| io::Error::other(error.to_string()));
    }
    let linked = aside.join("secrets.linked");
    match fs::rename(dir.join(secrets::DIRECTORY), &linked) {
        Err(err) if err.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(err) => Err(err),
        Ok(()) => fs::remove_dir_all(&linked),
    }
}
