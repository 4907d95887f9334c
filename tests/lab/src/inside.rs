//! The way into a running machine: descriptors of its namespaces, root and cgroup, opened once
//! at boot. A pid that was used again can therefore never lead a command somewhere else, which
//! with a lab's commands would mean the computer itself.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use crate::sweep;

/// nsenter's option and the name in `/proc/PID/ns`.
const NAMESPACES: [(&str, &str); 6] = [
    ("mount", "mnt"),
    ("uts", "uts"),
    ("ipc", "ipc"),
    ("net", "net"),
    ("pid", "pid"),
    ("cgroup", "cgroup"),
];

/// Opened from a machine's init.
pub(crate) struct Inside {
    init: u32,
    namespaces: Vec<(&'static str, File)>,
    root: File,
    /// `cgroup.procs` of init's own cgroup: commands belong to the machine like init's other
    /// children, else systemd there could not move them into a scope.
    cgroup: File,
}

impl Inside {
    /// `None` while nspawn, whose pid is given, has not yet brought an init into being.
    pub fn open(nspawn: u32) -> io::Result<Option<Inside>> {
        let Some(init) = children(nspawn).into_iter().find(|pid| is_init(*pid)) else {
            return Ok(None);
        };
        let of_init = PathBuf::from(format!("/proc/{init}"));
        let mut namespaces = Vec::new();
        for (option, name) in NAMESPACES {
            namespaces.push((option, File::open(of_init.join("ns").join(name))?));
        }
        let root = File::open(of_init.join("root"))?;
        let place = fs::read_to_string(of_init.join("cgroup"))?;
        let place = place.lines().find_map(|line| line.strip_prefix("0::/"));
        let (Some(place), Some(mounted)) = (place, sweep::cgroup_root()) else {
            return Err(io::Error::other("init is in no version 2 cgroup"));
        };
        let cgroup = OpenOptions::new()
            .write(true)
            .open(mounted.join(place).join("cgroup.procs"))?;
        // Still the same init after everything was opened, so all of it is the machine's.
        Ok(is_init(init).then_some(Inside {
            init,
            namespaces,
            root,
            cgroup,
        }))
    }

    /// A command that runs `argv` inside: all namespaces, root, working directory, cgroup.
    pub fn command(&self) -> Command {
        let path = |file: &File| format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
        let mut command = Command::new("nsenter");
        for (option, file) in &self.namespaces {
            command.arg(format!("--{option}={}", path(file)));
        }
        let root = path(&self.root);
        command
            .arg(format!("--root={root}"))
            .arg(format!("--wd={root}"))
            .arg("--");
        let cgroup: RawFd = self.cgroup.as_raw_fd();
        // SAFETY: one write, async-signal-safe, to a descriptor that `self` keeps open until
        // the command has been started.
        unsafe {
            command.pre_exec(move || match libc::write(cgroup, b"0".as_ptr().cast(), 1) {
                1 => Ok(()),
                _ => Err(io::Error::last_os_error()),
            });
        }
        command
    }

    /// Kills init, and with it, before nspawn hears of it, every process of the machine.
    pub fn kill_init(&self, nspawn: u32) {
        // While nspawn has not reaped init its pid is init's: ask that it is still its child.
        if children(nspawn).contains(&self.init) && is_init(self.init) {
            // SAFETY: no memory is involved.
            unsafe { libc::kill(self.init as i32, libc::SIGKILL) };
        }
    }

    /// Inode numbers that identify the namespaces.
    pub fn identities(&self) -> Vec<u64> {
        self.namespaces
            .iter()
            .filter_map(|(_, file)| file.metadata().ok())
            .map(|m| m.ino())
            .collect()
    }
}

pub(crate) fn children(pid: u32) -> Vec<u32> {
    let list = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    list.split_whitespace()
        .filter_map(|pid| pid.parse().ok())
        .collect()
}

/// True once the process is number 1 of a pid namespace and has become systemd: before that
/// it still has the computer's root.
fn is_init(pid: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let first = status
        .lines()
        .any(|line| line.starts_with("NSpid:") && line.ends_with("\t1"));
    let program = fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
    first && program.ends_with("lib/systemd/systemd")
}
