//! Running the built host and holding what it said.

use std::ffi::OsStr;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// What a run of the host ended with.
#[derive(Debug)]
pub struct Said {
    /// Exit code; -1 where a signal ended it.
    pub code: i32,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

/// The host with these arguments, ready to be started: nothing on standard input, and no say of the
/// environment in its colours.
pub fn command<S: AsRef<OsStr>>(arguments: &[S]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nox-mesh-host"));
    command.args(arguments).env_remove("NO_COLOR").stdin(Stdio::null());
    command
}

/// Runs the host.
pub fn host<S: AsRef<OsStr>>(arguments: &[S]) -> Said {
    Said::of(command(arguments).output().unwrap())
}

/// Runs the host with `root` for its root.
pub fn at(root: &Path, arguments: &[&str]) -> Said {
    let mut all = vec![OsStr::new("--root"), root.as_os_str()];
    all.extend(arguments.iter().map(OsStr::new));
    host(&all)
}

/// Runs the host with `root` for its root and `text` on standard input.
pub fn fed(root: &Path, arguments: &[&str], text: &[u8]) -> Said {
    let mut host = command(arguments);
    host.arg("--root").arg(root).stdin(Stdio::piped());
    let mut child = host.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // A host that refuses may go before it has read all.
    let _ = child.stdin.take().unwrap().write_all(text);
    Said::of(child.wait_with_output().unwrap())
}

impl Said {
    /// What a process ended with.
    pub fn of(output: Output) -> Said {
        let text = |bytes| String::from_utf8(bytes).expect("the host writes UTF-8");
        let code = output.status.code().unwrap_or(-1);
        Said { code, out: text(output.stdout), err: text(output.stderr) }
    }

    /// Panics, with all that was said, unless it exited so.
    #[track_caller]
    pub fn exits(self, code: i32) -> Said {
        assert!(self.code == code, "expected exit {code}: {self:#?}");
        self
    }

    /// The one JSON document of standard output, which names its schema. Panics where there is
    /// anything else.
    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        let json: Result<serde_json::Value, _> = serde_json::from_str(&self.out);
        let json = json.unwrap_or_else(|error| panic!("{error}: {self:#?}"));
        assert!(json["schema"].is_string() && self.out.ends_with("}\n"), "no schema: {self:#?}");
        json
    }

    /// Panics where either stream holds anything that a terminal acts on.
    #[track_caller]
    pub fn is_plain(&self) {
        for text in [&self.out, &self.err] {
            let acts = |it: char| it.is_control() && it != '\n';
            assert!(!text.contains(acts), "{self:#?}");
        }
    }
}
