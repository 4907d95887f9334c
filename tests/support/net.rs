//! A network of a test's own, and tools of its own before the machine's.
#![allow(dead_code)] // each test binary uses a part of it

use std::ffi::CString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use super::{has, skip, Lacks, Scratch};

/// Gives this thread, and what it starts, a network of its own in which nft works; `false` where
/// it may not, and says so.
pub fn own_network(test: &str) -> bool {
    if !has("nft", test) || !has("ip", test) {
        return false;
    }
    // SAFETY: changes what this thread sees of the network and of mounts, and nothing else.
    let done = unsafe { libc::unshare(libc::CLONE_NEWNET | libc::CLONE_NEWNS) } == 0;
    if !done {
        skip(test, &Lacks::Machine("the privilege of unshare(2)"));
    }
    done
}

/// Has nft do or list something, which must succeed; what it said.
#[track_caller]
pub fn nft(command: &str) -> String {
    let (flags, command) = match command.split_once(' ') {
        Some((flag, rest)) if flag.starts_with('-') => (vec![flag], rest),
        _ => (vec![], command),
    };
    let output = Command::new("/usr/sbin/nft").args(flags).arg(command).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "nft {command}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

/// An nft that the host finds before the machine's own. For this thread only, which has mounts of
/// its own.
pub struct Tool(PathBuf);

impl Tool {
    /// One that does what the real one does.
    pub fn over(scratch: &Scratch) -> Tool {
        let dir = scratch.join("sbin");
        fs::create_dir(&dir).unwrap();
        let text = |path: &str| CString::new(path).unwrap();
        let (source, target) = (text(dir.to_str().unwrap()), text("/usr/local/sbin"));
        let (none, root) = (std::ptr::null(), text("/"));
        let private = libc::MS_REC | libc::MS_PRIVATE;
        // SAFETY: strings with their ends, and null where mount(2) takes none.
        let done = unsafe {
            libc::mount(none, root.as_ptr(), none, private, none.cast()) == 0
                && libc::mount(source.as_ptr(), target.as_ptr(), none, libc::MS_BIND, none.cast())
                    == 0
        };
        assert!(done, "mount: {}", std::io::Error::last_os_error());
        let tool = Tool(dir.join("nft"));
        tool.runs("");
        tool
    }

    /// From now on runs `script` first.
    pub fn runs(&self, script: &str) {
        let text = format!("#!/bin/sh\n{script}\nexec /usr/sbin/nft \"$@\"\n");
        let new = self.0.with_extension("new");
        fs::write(&new, text).unwrap();
        fs::set_permissions(&new, fs::Permissions::from_mode(0o755)).unwrap();
        fs::rename(new, &self.0).unwrap();
    }
}
