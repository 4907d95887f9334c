//! strace(1), by which a run of the host is watched, killed or lied to at a chosen system call.

use std::fs;
use std::process::{Command, Output};

use super::site::{told, Site, HOST};
use super::{has, skip, Lacks};

/// The calls by which a process changes files or makes changes durable.
const CHANGING: &str = "openat,write,pwrite64,writev,fsync,fdatasync,syncfs,ftruncate,fallocate,\
    /^rename,/^link,/^mkdir,/^symlink,/^unlink,/^rmdir,/chown,/chmod,/setxattr";

/// One system call of a run.
#[derive(Clone, Debug)]
pub struct Call {
    /// Its name.
    pub name: String,
    /// Which of that name in the run, from 1.
    pub nth: usize,
    /// The rest of the line that shows it: arguments and result.
    pub shown: String,
}

/// Whether runs can be traced here; records the skip of `test` where they cannot.
pub fn can_trace(test: &str) -> bool {
    if !has("strace", test) {
        return false;
    }
    let tried = Command::new("strace").args(["-qq", "-o", "/dev/null", "true"]).status();
    let can = tried.is_ok_and(|status| status.success());
    if !can {
        skip(test, &Lacks::Machine("the privilege of ptrace(2)"));
    }
    can
}

/// Runs `command` under strace, with what `inject` says where it is not empty. Children are not
/// traced; nor is `--seccomp-bpf` used, under which strace 6.1 counts other calls than it shows.
pub fn traced(site: &Site, command: &str, inject: &str) -> Output {
    let mut strace = Command::new("strace");
    strace.args(["-qq", "-s", "4096", "-o"]).arg(site.path().join("trace"));
    strace.arg(format!("--trace={CHANGING}"));
    if !inject.is_empty() {
        strace.arg(format!("--inject={inject}"));
    }
    strace.env_remove("LD_LIBRARY_PATH").arg("--").arg(HOST).args(site.arguments(command));
    strace.output().unwrap()
}

/// Runs `command`, which must succeed; every call of it that opens, changes or syncs, in order.
pub fn calls(site: &Site, command: &str) -> Vec<Call> {
    let output = traced(site, command, "");
    assert!(output.status.success(), "{command}: {}", told(&output));
    let trace = fs::read_to_string(site.path().join("trace")).unwrap();
    let mut calls: Vec<Call> = Vec::new();
    for line in trace.lines() {
        let Some((name, shown)) = line.split_once('(') else { continue };
        let nth = calls.iter().filter(|call| call.name == name).count() + 1;
        calls.push(Call { name: name.into(), nth, shown: shown.into() });
    }
    calls
}

impl Call {
    /// It changes something, makes it durable, or says it: opening for reading does not.
    pub fn changes(&self) -> bool {
        self.name != "openat" || self.shown.contains("O_CREAT")
    }

    /// It writes to standard output or standard error.
    pub fn says(&self) -> bool {
        self.name == "write" && (self.shown.starts_with("1,") || self.shown.starts_with("2,"))
    }

    /// What has `strace` do `what` instead of this call.
    pub fn inject(&self, what: &str) -> String {
        format!("{}:{what}:when={}", self.name, self.nth)
    }
}
