//! The values of secrets, apart from the journal: one file each, named by a digest keyed with a key
//! that never leaves the machine, so that the name tells nothing of the value.

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder};
use std::io::{self, Read};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use super::files::{self, Access};
use crate::declaration::MAX_BYTES;
use crate::digest::{hex, keyed};
use crate::error::{Error, Stage};

/// The directory's name in the state directory.
pub(super) const DIRECTORY: &str = "secrets";
const KEY: &str = "key";
/// Length of a secret's name.
const NAME: usize = 32;

/// The secrets of a store.
pub struct Secrets {
    dir: PathBuf,
    key: [u8; 32],
    /// Names were made, by this process or an earlier one, that need not be durable.
    unsynced: bool,
}

impl Secrets {
    /// Opens the secrets of the store in `state`, making directory and key, from `random` bytes,
    /// where they are absent. The pass lock must be held.
    ///
    /// # Errors
    /// They cannot be read or made, or the key is not one.
    pub fn open(state: &Path, random: &mut dyn FnMut(&mut [u8])) -> Result<Secrets, Error> {
        if let Some(secrets) = Secrets::read(state)? {
            return Ok(secrets);
        }
        let dir = state.join(DIRECTORY);
        let mut key = [0; 32];
        random(&mut key);
        make(state, &dir, &key)
            .map_err(|err| Error::failed(Stage::Record, format!("make {}", dir.display()), err))?;
        Ok(Secrets { dir, key, unsynced: false })
    }

    /// Opens the secrets of the store in `state`, if it has any, without writing.
    ///
    /// # Errors
    /// They cannot be read, or the key is not one.
    pub fn read(state: &Path) -> Result<Option<Secrets>, Error> {
        let dir = state.join(DIRECTORY);
        let path = dir.join(KEY);
        let Some(file) = files::open_regular(&path, Access::Read)? else {
            return refuse_keyless(&dir, &path);
        };
        let mut bytes = Vec::new();
        let doing = || format!("read {}", path.display());
        file.take(33)
            .read_to_end(&mut bytes)
            .map_err(|err| Error::failed(Stage::Read, doing(), err))?;
        let path = path.display().to_string();
        match bytes.try_into() {
            Ok(key) => Ok(Some(Secrets { dir, key, unsynced: false })),
            Err(_) => Err(Error::Damaged { path, line: 0, why: "is not 32 bytes".into() }),
        }
    }

    /// The key: under it, the host marks what it makes where others make things too.
    pub fn key(&self) -> [u8; 32] {
        self.key
    }

    /// What the journal calls this value.
    pub fn name(&self, value: &[u8]) -> String {
        let mut name = hex(&keyed(&self.key, value));
        name.truncate(NAME);
        name
    }

    /// Stores a value and gives its name. It is durable after [`Secrets::sync`].
    ///
    /// # Errors
    /// It cannot be written.
    pub fn put(&mut self, value: &[u8]) -> Result<String, Error> {
        let name = self.name(value);
        self.unsynced = true;
        if self.get(&name).is_ok() {
            return Ok(name);
        }
        let path = self.dir.join(&name);
        files::place(&path, &self.dir.join(format!("{name}.new")), value).map_err(|err| {
            Error::failed(Stage::Record, format!("write {}", path.display()), err)
        })?;
        Ok(name)
    }

    /// Makes everything put durable; to be called before the record that names it is flushed.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn sync(&mut self) -> Result<(), Error> {
        if !self.unsynced {
            return Ok(());
        }
        let failed =
            |err| Error::failed(Stage::Record, format!("write {}", self.dir.display()), err);
        files::sync_directory(&self.dir).map_err(failed)?;
        self.unsynced = false;
        Ok(())
    }

    /// The value of this name.
    ///
    /// # Errors
    /// It is gone, or is not what was stored.
    pub fn get(&self, name: &str) -> Result<Vec<u8>, Error> {
        let doing = || format!("read the secret {:?}", name.get(..8).unwrap_or("?"));
        let failed = |cause: &str| Error::failed(Stage::Read, doing(), cause);
        if name.len() != NAME || !name.bytes().all(|it| matches!(it, b'0'..=b'9' | b'a'..=b'f')) {
            return Err(failed("it has no name of a secret"));
        }
        let found = files::open_regular(&self.dir.join(name), Access::Read)?;
        let file = found.ok_or_else(|| failed("it is gone from the store"))?;
        let mut value = Vec::new();
        let read = file.take(MAX_BYTES as u64 + 1).read_to_end(&mut value);
        read.map_err(|err| Error::failed(Stage::Read, doing(), err))?;
        if self.name(&value) != name {
            return Err(failed("it is not what was stored"));
        }
        Ok(value)
    }

    /// Whether no value is kept.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn is_empty(&self) -> Result<bool, Error> {
        let doing = || format!("read {}", self.dir.display());
        let failed = |err| Error::failed(Stage::Read, doing(), err);
        let mut entries = fs::read_dir(&self.dir).map_err(failed)?;
        Ok(entries.all(|entry| entry.is_ok_and(|entry| *entry.file_name() == *KEY)))
    }

    /// Removes every value but those that are still named.
    ///
    /// # Errors
    /// The directory cannot be read or changed.
    pub fn sweep(&self, named: &BTreeSet<String>) -> Result<(), Error> {
        let sweep = || -> io::Result<()> {
            for entry in fs::read_dir(&self.dir)? {
                let entry = entry?;
                let name = entry.file_name();
                let keep = name == KEY || name.to_str().is_some_and(|name| named.contains(name));
                if !keep {
                    fs::remove_file(entry.path())?;
                }
            }
            Ok(())
        };
        sweep().map_err(|err| {
            Error::failed(Stage::Record, format!("sweep {}", self.dir.display()), err)
        })
    }
}

/// What a key is called until it is whole.
pub(super) fn unfinished_key(state: &Path) -> PathBuf {
    state.join(DIRECTORY).join(format!("{KEY}.new"))
}

/// Without its key no secret can be told from any other file: it is not made a second time.
fn refuse_keyless(dir: &Path, key: &Path) -> Result<Option<Secrets>, Error> {
    let unfinished = format!("{KEY}.new");
    let entries = match fs::read_dir(dir) {
        Err(err) if err.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other
            .map_err(|err| Error::failed(Stage::Read, format!("read {}", dir.display()), err))?,
    };
    let others = entries.flatten().any(|entry| *entry.file_name() != *unfinished);
    if others {
        let why = "is missing, but secrets are there".into();
        return Err(Error::Damaged { path: key.display().to_string(), line: 0, why });
    }
    Ok(None)
}

fn make(state: &Path, dir: &Path, key: &[u8; 32]) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(dir) {
        Err(err) if err.kind() != io::ErrorKind::AlreadyExists => return Err(err),
        _ => {}
    }
    files::place(&dir.join(KEY), &dir.join(format!("{KEY}.new")), key)?;
    files::sync_directory(dir)?;
    files::sync_directory(state)
}
