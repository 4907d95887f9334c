//! The store's directory and files: made private, opened without following, replaced whole.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use crate::error::{Error, Stage};

/// Makes `dir` with mode 0700 where it is absent, and narrows it to that where it is wider.
///
/// # Errors
/// It is no directory, or others than its owner could have changed what is in it.
pub fn private_directory(dir: &Path) -> Result<(), Error> {
    let doing = || format!("open the directory {}", dir.display());
    let failed = |err: io::Error| Error::failed(Stage::Read, doing(), err);
    let found = match fs::metadata(dir) {
        Err(err) if err.kind() == io::ErrorKind::NotFound => {
            let doing = || format!("make the directory {}", dir.display());
            make_directory(dir, 0o700).map_err(|err| Error::failed(Stage::Record, doing(), err))?;
            fs::metadata(dir).map_err(failed)?
        }
        other => other.map_err(failed)?,
    };
    if !found.is_dir() {
        return Err(failed(io::ErrorKind::NotADirectory.into()));
    }
    // SAFETY: geteuid takes nothing and cannot fail.
    let euid = unsafe { libc::geteuid() };
    let mode = found.mode() & 0o7777;
    if found.uid() != euid && found.uid() != 0 {
        let cause = format!("it belongs to user {}, not to {euid}", found.uid());
        return Err(Error::failed(Stage::Read, doing(), cause));
    }
    if mode & 0o022 != 0 {
        let cause = format!("others can write to it (mode {mode:04o}): chmod 0700 it");
        return Err(Error::failed(Stage::Read, doing(), cause));
    }
    if mode & 0o077 != 0 {
        fs::set_permissions(dir, fs::Permissions::from_mode(0o700)).map_err(failed)?;
    }
    Ok(())
}

/// Makes `dir` and what is missing above it, durably; another process may do so at the same time.
fn make_directory(dir: &Path, mode: u32) -> io::Result<()> {
    let above = dir.parent().filter(|above| !above.as_os_str().is_empty());
    let above = above.unwrap_or(Path::new("."));
    match fs::metadata(above) {
        Err(err) if err.kind() == io::ErrorKind::NotFound => make_directory(above, 0o755)?,
        there => there.map(|_| ())?,
    }
    match DirBuilder::new().mode(mode).create(dir) {
        Err(err) if err.kind() == io::ErrorKind::AlreadyExists => {}
        made => made?,
    }
    sync_directory(above)
}

/// Opens a regular file, its last name not followed; `None` where there is none.
///
/// # Errors
/// Something else stands there ([`Error::Damaged`]), or it cannot be opened.
pub(super) fn open_regular(path: &Path, write: Access) -> Result<Option<File>, Error> {
    let mut options = OpenOptions::new();
    // Not to block on a fifo; a regular file does not mind.
    options.read(true).write(write == Access::Write);
    options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
    let strange = || {
        let why = "is not a regular file".into();
        Error::Damaged { path: path.display().to_string(), line: 0, why }
    };
    let failed = |err| Error::failed(Stage::Read, format!("open {}", path.display()), err);
    match options.open(path) {
        Ok(file) if file.metadata().map_err(failed)?.is_file() => Ok(Some(file)),
        Ok(_) => Err(strange()),
        Err(err) if err.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(err)
            if matches!(err.raw_os_error(), Some(libc::ELOOP | libc::EISDIR | libc::ENXIO)) =>
        {
            Err(strange())
        }
        Err(err) => Err(failed(err)),
    }
}

/// What a file is opened for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// Reading only.
    Read,
    /// Reading and writing.
    Write,
}

/// Makes a file of mode 0600 that was not there.
pub(super) fn create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true).mode(0o600);
    options.custom_flags(libc::O_NOFOLLOW).open(path)
}

/// Puts a file of mode 0600 with these bytes at `path` by way of `temporary`, in one instant, its
/// bytes durable before its name; that is so once its directory is synced.
pub(super) fn place(path: &Path, temporary: &Path, bytes: &[u8]) -> io::Result<()> {
    remove_if_there(temporary)?;
    let mut file = create(temporary)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(temporary, path)
}

/// As [`place`], and durable.
///
/// # Errors
/// Those of the system calls; what stood at `path` is still there, or what was to.
pub fn replace(path: &Path, temporary: &Path, bytes: &[u8]) -> io::Result<()> {
    place(path, temporary, bytes)?;
    path.parent().map_or(Ok(()), sync_directory)
}

/// Removes what an earlier process left unfinished.
pub(super) fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path).and_then(|_| fs::remove_file(path)) {
        Err(err) if err.kind() != io::ErrorKind::NotFound => Err(err),
        _ => Ok(()),
    }
}

/// Makes the names in `dir` durable.
pub(super) fn sync_directory(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}
