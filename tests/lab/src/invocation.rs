//! A command in a machine: what to run, how long, and what came of it.

use crate::background::Background;
use crate::{child, Machine};
use std::ffi::{OsStr, OsString};
use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::time::Duration;

/// What a command may take unless it says otherwise.
const LIMIT: Duration = Duration::from_secs(60);
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// A command being put together; made by [`Machine::command`].
pub struct Invocation<'m> {
    machine: &'m Machine,
    argv: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    input: Vec<u8>,
    limit: Duration,
}

impl<'m> Invocation<'m> {
    pub(crate) fn new<A: AsRef<OsStr>>(
        machine: &'m Machine,
        argv: impl IntoIterator<Item = A>,
    ) -> Invocation<'m> {
        let argv: Vec<OsString> = argv.into_iter().map(|arg| arg.as_ref().to_owned()).collect();
        assert!(!argv.is_empty(), "nothing to run in {}", machine.name());
        Invocation { machine, argv, environment: Vec::new(), input: Vec::new(), limit: LIMIT }
    }

    /// Bytes for its standard input, which is otherwise empty.
    pub fn input(mut self, bytes: impl AsRef<[u8]>) -> Self {
        self.input = bytes.as_ref().to_owned();
        self
    }

    /// A variable beside the `PATH`, `HOME` and `LANG` that every command gets.
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.environment.push((name.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    /// How long it may take, instead of a minute.
    pub fn within(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Runs it to its end. Panics if it is not over within its limit, after killing it.
    #[track_caller]
    pub fn run(self) -> Ran {
        let what = self.describe();
        let done = match child::run(self.prepare(), &self.input, self.limit) {
            Ok(done) => done,
            Err(e) => panic!("{what}: {e}"),
        };
        let ran = |status: Option<std::process::ExitStatus>| Ran {
            code: status.map_or(-1, |s| s.code().unwrap_or(128 + s.signal().unwrap_or(0))),
            what,
            stdout: done.stdout,
            stderr: done.stderr,
        };
        match done.status {
            Some(status) => ran(Some(status)),
            None => panic!("not over within {:?}, killed: {}", self.limit, ran(None).story()),
        }
    }

    /// Starts it and lets it run beside the scenario; no limit, ends with the machine.
    #[track_caller]
    pub fn spawn(self) -> Background {
        assert!(self.input.is_empty(), "a background command has no input");
        let what = self.describe();
        Background::start(self.prepare(), &what).unwrap_or_else(|e| panic!("{what}: {e}"))
    }

    pub(crate) fn prepare(&self) -> Command {
        let mut command = self.machine.inside().command();
        command.args(&self.argv).env_clear().env("PATH", PATH);
        command.env("HOME", "/root").env("LANG", "C.UTF-8");
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }

    fn describe(&self) -> String {
        let argv: Vec<_> = self.argv.iter().map(|arg| arg.to_string_lossy()).collect();
        format!("{}# {}", self.machine.name(), argv.join(" "))
    }
}

/// A command that has ended.
#[derive(Debug)]
pub struct Ran {
    what: String,
    code: i32,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

impl Ran {
    /// Its exit code; 128 and the signal's number if a signal ended it.
    pub fn code(&self) -> i32 {
        self.code
    }

    /// Panics, with all it said, unless it exited 0.
    #[track_caller]
    pub fn ok(self) -> Ran {
        self.exits(0)
    }

    /// Panics, with all it said, unless it exited with `code`.
    #[track_caller]
    pub fn exits(self, code: i32) -> Ran {
        assert!(self.code == code, "expected exit {code}: {}", self.story());
        self
    }

    /// Panics, with all it said, if it exited 0.
    #[track_caller]
    pub fn fails(self) -> Ran {
        assert!(self.code != 0, "expected a failure: {}", self.story());
        self
    }

    /// Standard output without the line ends at its end.
    pub fn stdout(&self) -> String {
        String::from_utf8_lossy(&self.stdout).trim_end_matches('\n').to_owned()
    }

    /// Standard error without the line ends at its end.
    pub fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.stderr).trim_end_matches('\n').to_owned()
    }

    /// Standard output as it came.
    pub fn bytes(&self) -> &[u8] {
        &self.stdout
    }

    /// The whole of it, for a panic's message.
    pub fn story(&self) -> String {
        let Ran { what, code, .. } = self;
        format!("{what}\nexit {code}\n{}\n--- stderr\n{}", self.stdout(), self.stderr())
    }
}
