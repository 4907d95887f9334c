//! The way into a running machine: descriptors of its namespaces, root and cgroup, opened once
//! at boot. A pid that was used again can therefore never lead a command somewhere else, which
//! with a lab's commands would mean the computer itself.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, RawFd};
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
    /// `None` while the boot, whose first pid is given, has not yet brought an init into being.
    pub fn open(boot: u32) -> io::Result<Option<Inside>> {
        let Some(init) = init_below(boot) else {
            return Ok(None);
        };
        let of_init = PathBuf::from(format!("/proc/{init}"));
        let place = fs::read_to_string(of_init.join("cgroup"))?;
        let place = place.lines().find_map(|line| line.strip_prefix("0::/"));
        let (Some(place), Some(mounted)) = (place, sweep::cgroup_root()) else {
            return Err(io::Error::other("init is in no version 2 cgroup"));
        };
        // systemd moves itself there early; a command in the cgroup above would keep it from
        // giving controllers to those below.
        if !place.ends_with("/init.scope") {
            return Ok(None);
        }
        let procs = mounted.join(place).join("cgroup.procs");
        let cgroup = OpenOptions::new().write(true).open(procs)?;
        let mut namespaces = Vec::new();
        for (option, name) in NAMESPACES {
            namespaces.push((option, File::open(of_init.join("ns").join(name))?));
        }
        let root = File::open(of_init.join("root"))?;
        // Still the same init after everything was opened, so all of it is the machine's.
        Ok(is_init(init).then_some(Inside { init, namespaces, root, cgroup }))
    }

    /// A command that runs `argv` inside: all namespaces, root, working directory, cgroup.
    pub fn command(&self) -> Command {
        let path = |file: &File| format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
        let mut command = Command::new("nsenter");
        for (option, file) in &self.namespaces {
            command.arg(format!("--{option}={}", path(file)));
        }
        let root = path(&self.root);
        command.arg(format!("--root={root}")).arg(format!("--wd={root}")).arg("--");
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
    pub fn kill_init(&self, boot: u32) {
        // Until nspawn has reaped init its pid is init's: it is, while it is found below `boot`.
        if init_below(boot) == Some(self.init) {
            // SAFETY: no memory is involved.
            unsafe { libc::kill(self.init as i32, libc::SIGKILL) };
        }
    }
}

/// The machine's init among the descendants of `pid`, which are few: the shell, nspawn, init.
fn init_below(pid: u32) -> Option<u32> {
    children(pid).into_iter().find_map(
        |child| {
            if is_init(child) {
                Some(child)
            } else {
                init_below(child)
            }
        },
    )
}

pub(crate) fn children(pid: u32) -> Vec<u32> {
    let list = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

/// True once the process is number 1 of a pid namespace and has become systemd: before that
/// it still has the computer's root.
fn is_init(pid: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let first = status.lines().any(|line| line.starts_with("NSpid:") && line.ends_with("\t1"));
    let program = fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
    first && program.ends_with("lib/systemd/systemd")
}
