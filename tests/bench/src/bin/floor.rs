//! The floor: the least that honest work on files and directories costs.
//!
//! It parses the same JSON as the host, borrowed from the text, and then does with bare calls what
//! no honest tool can leave out. It keeps no record, follows what it is told and recovers from
//! nothing: a yardstick, not a tool.

use std::borrow::Cow;
use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{fchown, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::process::ExitCode;

use serde::Deserialize;

#[derive(Deserialize)]
struct Declaration<'a> {
    #[serde(borrow)]
    resources: Vec<Resource<'a>>,
}

#[derive(Deserialize)]
struct Resource<'a> {
    #[serde(borrow)]
    path: Cow<'a, str>,
    #[serde(borrow)]
    mode: Cow<'a, str>,
    /// A file's contents; a directory has none.
    #[serde(borrow, default)]
    content: Option<Cow<'a, str>>,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, verb, file] = &arguments[..] else {
        eprintln!("usage: floor make|check|repair FILE");
        return ExitCode::from(2);
    };
    match work(verb, file) {
        Ok(differing) => {
            println!("{differing} differ");
            ExitCode::from(u8::from(verb == "check" && differing > 0))
        }
        Err(cause) => {
            eprintln!("floor: {verb} {file}: {cause}");
            ExitCode::FAILURE
        }
    }
}

/// `make` writes everything unseen, `check` only looks, `repair` writes what differs. Returns how
/// many differed, or were made.
fn work(verb: &str, file: &str) -> io::Result<usize> {
    let text = std::fs::read(file)?;
    let declaration: Declaration = serde_json::from_slice(&text)?;
    let (uid, gid) = ids();
    let mut buffer = Vec::new();
    let mut differing = 0;
    for resource in &declaration.resources {
        let mode = u32::from_str_radix(&resource.mode, 8).map_err(io::Error::other)?;
        if verb != "make" && holds(resource, mode, uid, gid, &mut buffer)? {
            continue;
        }
        differing += 1;
        if verb != "check" {
            make(resource, mode, uid, gid)?;
        }
    }
    if verb != "check" && differing > 0 {
        sync(&declaration.resources[0].path)?;
    }
    Ok(differing)
}

/// Whether the machine has it: kind, mode, owner and every byte.
fn holds(r: &Resource, mode: u32, uid: u32, gid: u32, buffer: &mut Vec<u8>) -> io::Result<bool> {
    let path: &str = &r.path;
    let access = |found: &std::fs::Metadata| {
        found.mode() & 0o7777 == mode && found.uid() == uid && found.gid() == gid
    };
    let Some(content) = &r.content else {
        return match std::fs::symlink_metadata(path) {
            Ok(found) => Ok(found.is_dir() && access(&found)),
            Err(_) => Ok(false),
        };
    };
    let opened = OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW).open(path);
    let Ok(mut file) = opened else { return Ok(false) };
    let found = file.metadata()?;
    if !found.is_file() || !access(&found) || found.len() != content.len() as u64 {
        return Ok(false);
    }
    buffer.resize(content.len() + 1, 0);
    let mut length = 0;
    while length < buffer.len() {
        match file.read(&mut buffer[length..])? {
            0 => break,
            n => length += n,
        }
        if length == content.len() {
            break;
        }
    }
    Ok(&buffer[..length] == content.as_bytes())
}

/// Puts it there: a file beside its place first, then in its place.
fn make(r: &Resource, mode: u32, uid: u32, gid: u32) -> io::Result<()> {
    let path: &str = &r.path;
    let Some(content) = &r.content else {
        if let Err(cause) = std::fs::create_dir(path) {
            if cause.kind() != io::ErrorKind::AlreadyExists {
                return Err(cause);
            }
        }
        std::os::unix::fs::chown(path, Some(uid), Some(gid))?;
        return std::fs::set_permissions(path, Permissions::from_mode(mode));
    };
    let beside = format!("{path}.new~");
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600).custom_flags(libc::O_NOFOLLOW);
    let mut file = options.open(&beside)?;
    file.write_all(content.as_bytes())?;
    fchown(&file, Some(uid), Some(gid))?;
    file.set_permissions(Permissions::from_mode(mode))?;
    drop(file);
    std::fs::rename(beside, path)
}

/// Makes the whole file system of `path` durable.
fn sync(path: &str) -> io::Result<()> {
    let file = File::open(path)?;
    // SAFETY: the descriptor is open for as long as `file` lives; syncfs takes no pointer.
    match unsafe { libc::syncfs(file.as_raw_fd()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn ids() -> (u32, u32) {
    // SAFETY: both only return a number and cannot fail.
    unsafe { (libc::geteuid(), libc::getegid()) }
}
