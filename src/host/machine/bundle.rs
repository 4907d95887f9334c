//! Opening a declaration's file, and vouching for one that only root could have written.
//!
//! Reads and judges; never parses. A bundle is judged by what was opened, not by its name.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use super::sys;
use super::words::{quoted, words};
use crate::declaration::{Bundle, Fault, MAX_BYTES};
use crate::error::{Error, Stage};

/// Opens the bundle `path`: a regular file that root or the user who runs this owns, and that
/// nobody else may write.
pub fn open_bundle(path: &Path) -> Result<Bundle, Error> {
    let file = open(path, libc::O_NONBLOCK)?;
    let meta = file.metadata().map_err(|error| failed(path, &error))?;
    if !meta.is_file() {
        let mend = "name the file that holds it";
        return Err(refused(path, "is not a regular file".to_string(), mend));
    }
    let (euid, _) = sys::effective_ids();
    if meta.uid() != 0 && meta.uid() != euid {
        let wrong = format!("belongs to user {}, so others decide what it says", meta.uid());
        return Err(refused(path, wrong, "give it to root, once you have read it"));
    }
    if meta.mode() & 0o022 != 0 {
        let wrong = format!("has mode {:04o}: others may write it", meta.mode() & 0o7777);
        return Err(refused(path, wrong, "chmod go-w, once you have read it"));
    }
    read(path, file, meta.len()).map(Bundle::vouched)
}

/// Reads the declaration `path`, or standard input for `-`.
pub fn read_declaration(path: &Path) -> Result<Vec<u8>, Error> {
    if path == Path::new("-") {
        return read(path, io::stdin().lock(), 0);
    }
    let file = open(path, 0)?;
    let meta = file.metadata().map_err(|error| failed(path, &error))?;
    if meta.is_dir() {
        return Err(refused(path, "is a directory".to_string(), "name the file in it"));
    }
    read(path, file, meta.len())
}

fn open(path: &Path, flags: i32) -> Result<File, Error> {
    let flags = flags | libc::O_NOCTTY;
    let opened = OpenOptions::new().read(true).custom_flags(flags).open(path);
    opened.map_err(|error| failed(path, &error))
}

/// Reads it whole; `size` is what it is said to have.
fn read(path: &Path, from: impl Read, size: u64) -> Result<Vec<u8>, Error> {
    let most = MAX_BYTES as u64 + 1;
    let mut bytes = Vec::with_capacity(usize::try_from(size.min(most)).unwrap_or(0) + 1);
    from.take(most).read_to_end(&mut bytes).map_err(|error| failed(path, &error))?;
    if bytes.len() > MAX_BYTES {
        let wrong = format!("has more than {} MiB", MAX_BYTES >> 20);
        return Err(refused(path, wrong, "fetch large contents by source instead"));
    }
    Ok(bytes)
}

fn failed(path: &Path, error: &io::Error) -> Error {
    let shown = quoted(path.as_os_str().as_encoded_bytes());
    Error::failed(Stage::Read, format!("read {shown}"), words(error))
}

fn refused(path: &Path, wrong: String, mend: &str) -> Error {
    let fault = Fault { place: String::new(), field: String::new(), wrong, mend: mend.to_string() };
    Error::Refused { what: path.to_string_lossy().into_owned(), faults: vec![fault] }
}
