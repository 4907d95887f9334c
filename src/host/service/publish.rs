//! A file that others read while it is written: it is made beside its place and renamed over it.
//! Not made durable: what it says is true of this run of the service only.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

/// Puts a file with these contents and this mode at `path`; directories that are missing on the way
/// are made, readable by all.
///
/// # Errors
/// The kernel's; what stood there stands.
pub fn publish(path: &Path, contents: &str, mode: u32) -> io::Result<()> {
    let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let mut temporary = std::ffi::OsString::from(".");
    temporary.push(name);
    temporary.push("~");
    let temporary = dir.join(temporary);
    match fs::remove_file(&temporary) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            DirBuilder::new().recursive(true).mode(0o755).create(dir)?;
        }
        other => other?,
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(mode).custom_flags(libc::O_NOFOLLOW);
    options.open(&temporary)?.write_all(contents.as_bytes())?;
    fs::rename(&temporary, path)
}
