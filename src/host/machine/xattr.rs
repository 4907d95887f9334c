//! Extended attributes that somebody decided, carried over when a file is replaced.
//!
//! Owns which those are: the security label, what users have attached, and the access list where
//! nobody has declared a mode: a list beside the declared one would let in whom it keeps out. A
//! capability is not among them: it was granted to the bytes that were there.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use super::root::Spot;
use super::sys;
use super::words::{quoted, words};

/// The kernel's own limits: of the list of names, and of one value, in bytes.
const LARGEST: usize = 64 << 10;
/// The most attributes that are carried over.
const MOST: usize = 64;

const ACCESS_LIST: &CStr = c"system.posix_acl_access";

/// Takes from what was newly made the access list that its directory's default gave it: nobody has
/// a right to it but those that its mode names. Its mode must be set afterwards.
pub(super) fn bare(made: &OwnedFd) -> Result<(), String> {
    // Asked first: nearly always there is none, and removing none writes to the disk's own journal.
    let removed = match has(made, ACCESS_LIST) {
        Ok(()) => remove(made, ACCESS_LIST),
        Err(error) => Err(error),
    };
    let removed = removed.or_else(ignore_absent);
    removed.map_err(|error| {
        format!("take away its access list, which its directory gave it: {}", words(&error))
    })
}

/// Gives the new file `to` the attributes of the regular file at `from` that are somebody's
/// decision, of which the access list is one where `with_list` says so. Its mode must be set
/// afterwards: setting an access list changes it.
pub(super) fn keep(from: &Spot, to: &OwnedFd, with_list: bool) -> Result<(), String> {
    let flags = libc::O_RDONLY | libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let from = match sys::open(&from.dir.fd, &from.name, flags, 0) {
        Ok(fd) => fd,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(format!("read its extended attributes: {}", words(&error))),
    };
    let names = match names(&from) {
        Ok(names) => names,
        Err(error) if unsupported(&error) => return Ok(()),
        Err(error) => return Err(format!("list its extended attributes: {}", words(&error))),
    };
    if names.len() > MOST {
        return Err(format!("it has more than {MOST} extended attributes"));
    }
    for name in names.iter().filter(|name| with_list || ***name != *ACCESS_LIST) {
        copy(&from, to, name).map_err(|error| told(name, &error))?;
    }
    Ok(())
}

fn told(name: &CStr, error: &io::Error) -> String {
    format!("keep its extended attribute {}: {}", quoted(name.to_bytes()), words(error))
}

fn unsupported(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::ENOSYS))
}

fn ignore_absent(error: io::Error) -> io::Result<()> {
    let absent = unsupported(&error) || error.raw_os_error() == Some(libc::ENODATA);
    if absent {
        Ok(())
    } else {
        Err(error)
    }
}

fn decided(name: &[u8]) -> bool {
    name == b"security.selinux" || name == ACCESS_LIST.to_bytes() || name.starts_with(b"user.")
}

fn names(file: &OwnedFd) -> io::Result<Vec<CString>> {
    let mut list = vec![0u8; LARGEST];
    // SAFETY: `list` is writable for its length.
    let len = unsafe { libc::flistxattr(file.as_raw_fd(), list.as_mut_ptr().cast(), list.len()) };
    list.truncate(usize::try_from(len).map_err(|_| io::Error::last_os_error())?);
    let names = list.split(|&byte| byte == 0).filter(|name| decided(name));
    Ok(names.map(|name| CString::new(name).expect("split at every NUL")).collect())
}

fn copy(from: &OwnedFd, to: &OwnedFd, name: &CStr) -> io::Result<()> {
    let mut value = vec![0u8; LARGEST];
    let (room, size) = (value.as_mut_ptr().cast(), value.len());
    // SAFETY: the name is NUL-terminated, the value writable for its length.
    let len = unsafe { libc::fgetxattr(from.as_raw_fd(), name.as_ptr(), room, size) };
    value.truncate(usize::try_from(len).map_err(|_| io::Error::last_os_error())?);
    let (bytes, size) = (value.as_ptr().cast(), value.len());
    // SAFETY: the name is NUL-terminated, the value readable for its length.
    match unsafe { libc::fsetxattr(to.as_raw_fd(), name.as_ptr(), bytes, size, 0) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// An error where it has not: that it is absent, or why that cannot be told.
fn has(file: &OwnedFd, name: &CStr) -> io::Result<()> {
    // SAFETY: the name is NUL-terminated; of a value of no room only the size is asked.
    match unsafe { libc::fgetxattr(file.as_raw_fd(), name.as_ptr(), std::ptr::null_mut(), 0) } {
        0.. => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn remove(file: &OwnedFd, name: &CStr) -> io::Result<()> {
    // SAFETY: the name is NUL-terminated.
    match unsafe { libc::fremovexattr(file.as_raw_fd(), name.as_ptr()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
