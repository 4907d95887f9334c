//! Running the built host in a scratch root: what it is told and says, what became of the tree.
#![allow(dead_code)] // each test binary uses a part of it

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::os::unix::fs::{symlink, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use super::Scratch;

/// The built binary.
pub const HOST: &str = env!("CARGO_BIN_EXE_nox-mesh-host");

/// A scratch root with `/etc` and `/s` in it, and the store at its default place.
pub struct Root {
    /// Where everything lies.
    pub scratch: Scratch,
    path: PathBuf,
}

/// What a run came to.
pub struct Run {
    /// Exit code.
    pub code: i32,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

impl Root {
    /// A new one. `name` is the test's, unique in its file.
    pub fn new(name: &str) -> Root {
        let scratch = Scratch::new(name);
        let path = scratch.join("root");
        for dir in ["etc/mesh-host", "s"] {
            fs::create_dir_all(path.join(dir)).unwrap();
        }
        Root { scratch, path }
    }

    /// The root directory itself.
    pub fn dir(&self) -> &Path {
        &self.path
    }

    /// `path` of the root, as it is outside.
    pub fn at(&self, path: &str) -> PathBuf {
        self.path.join(path.trim_start_matches('/'))
    }

    /// The state directory.
    pub fn state(&self) -> PathBuf {
        self.at("/var/lib/mesh-host")
    }

    /// The journal's bytes; empty where there is none.
    pub fn journal(&self) -> String {
        fs::read_to_string(self.state().join("journal.jsonl")).unwrap_or_default()
    }

    /// The journal's records.
    pub fn records(&self) -> Vec<Value> {
        self.journal().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The objects of the records of this kind, in their order.
    pub fn recorded(&self, kind: &str) -> Vec<String> {
        let records = self.records().into_iter().filter(|record| record["kind"] == kind);
        records.filter_map(|record| Some(record["object"].as_str()?.to_string())).collect()
    }

    /// Runs the host on this root.
    pub fn host(&self, args: &[&str]) -> Run {
        run(Command::new(HOST).arg("--root").arg(&self.path).args(args))
    }

    /// Applies these resources as source `local`; `--json` is among the arguments.
    pub fn apply(&self, resources: &str) -> Run {
        self.host(&["--json", "apply", &self.declare("local.json", &declared(resources))])
    }

    /// The same, and it must succeed.
    pub fn converge(&self, resources: &str) -> Run {
        let run = self.apply(resources);
        assert_eq!(run.code, 0, "{}{}", run.out, run.err);
        run
    }

    /// What applying them would do.
    pub fn plan(&self, resources: &str) -> Run {
        let file = self.declare("planned.json", &declared(resources));
        self.host(&["--json", "plan", "--exit-code", &file])
    }

    /// Applies these resources as the bundle.
    pub fn bundle(&self, resources: &str) -> Run {
        let file = self.declare("bundle.json", &declared(resources));
        self.host(&["--json", "apply", "--bundle", &file])
    }

    /// One pass over what the store holds.
    pub fn reconcile(&self) -> Run {
        self.host(&["--json", "reconcile"])
    }

    /// Writes a file beside the root; its name.
    pub fn declare(&self, name: &str, text: &str) -> String {
        let path = self.scratch.join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_string()
    }

    /// Puts a file in the root.
    pub fn put(&self, path: &str, text: &str) {
        fs::write(self.at(path), text).unwrap();
    }

    /// Puts a directory in the root.
    pub fn mkdir(&self, path: &str) {
        fs::create_dir_all(self.at(path)).unwrap();
    }

    /// Puts a link in the root.
    pub fn link(&self, path: &str, target: &str) {
        symlink(target, self.at(path)).unwrap();
    }

    /// The text of a file in the root.
    pub fn text(&self, path: &str) -> String {
        fs::read_to_string(self.at(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    /// Whether anything is there, a dangling link included.
    pub fn has(&self, path: &str) -> bool {
        self.at(path).symlink_metadata().is_ok()
    }

    /// Permission bits.
    pub fn mode(&self, path: &str) -> u32 {
        self.at(path).symlink_metadata().unwrap().mode() & 0o7777
    }

    /// Gives a file or directory these permission bits.
    pub fn chmod(&self, path: &str, mode: u32) {
        fs::set_permissions(self.at(path), fs::Permissions::from_mode(mode)).unwrap();
    }

    /// Owner and group.
    pub fn owner(&self, path: &str) -> (u32, u32) {
        let meta = self.at(path).symlink_metadata().unwrap();
        (meta.uid(), meta.gid())
    }

    /// Everything beneath the root but access times: see [`tree`].
    pub fn tree(&self) -> BTreeMap<PathBuf, String> {
        tree(&self.path)
    }
}

impl Run {
    /// The report.
    pub fn report(&self) -> Value {
        serde_json::from_str(&self.out)
            .unwrap_or_else(|error| panic!("exit {}, {error}: {}{}", self.code, self.out, self.err))
    }

    /// `id outcome`, in the report's order.
    pub fn outcomes(&self) -> Vec<String> {
        let report = self.report();
        let word = |line: &Value, name: &str| line[name].as_str().unwrap().to_string();
        let lines = report["resources"].as_array().unwrap().iter();
        lines.map(|line| format!("{} {}", word(line, "id"), word(line, "outcome"))).collect()
    }

    /// The detail of a resource's line.
    pub fn detail(&self, id: &str) -> String {
        let report = self.report();
        let lines = report["resources"].as_array().unwrap();
        let line = lines.iter().find(|line| line["id"] == id).expect("it is reported");
        line["detail"].as_str().unwrap_or_default().to_string()
    }

    /// Stage, resource and cause of each failure.
    pub fn errors(&self) -> Vec<[String; 3]> {
        let report = self.report();
        let text = |of: &Value| of.as_str().unwrap_or_default().to_string();
        let errors = report["errors"].as_array().unwrap().iter();
        errors.map(|it| [text(&it["stage"]), text(&it["resource"]), text(&it["cause"])]).collect()
    }

    /// Fails unless it ended so.
    pub fn expect(self, code: i32, outcomes: &[&str]) -> Run {
        assert_eq!(self.outcomes(), outcomes, "exit {}: {}{}", self.code, self.out, self.err);
        assert_eq!(self.code, code, "{}{}", self.out, self.err);
        self
    }
}

/// A declaration of these resources.
pub fn declared(resources: &str) -> String {
    format!("{{\"version\":1,\"resources\":[{resources}]}}")
}

/// Runs `command` to its end, with nothing to read.
pub fn run(command: &mut Command) -> Run {
    let Output { status, stdout, stderr } = command.stdin(Stdio::null()).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let code = status.code().unwrap_or_else(|| panic!("{command:?}: {status}"));
    Run { code, out: text(stdout), err: text(stderr) }
}

/// Runs `command` to its end with `input` to read.
pub fn run_with(command: &mut Command, input: &str) -> Run {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Run {
        code: output.status.code().unwrap(),
        out: text(&output.stdout),
        err: text(&output.stderr),
    }
}

/// Every entry beneath `dir`, itself included, with all that a write would change: inode, times of
/// change, mode, owner, link count, and what it holds or leads to.
pub fn tree(dir: &Path) -> BTreeMap<PathBuf, String> {
    let mut seen = BTreeMap::new();
    note(dir, Path::new(""), &mut seen);
    seen
}

fn note(path: &Path, name: &Path, seen: &mut BTreeMap<PathBuf, String>) {
    let meta = path.symlink_metadata().unwrap();
    let times = (meta.mtime(), meta.mtime_nsec(), meta.ctime(), meta.ctime_nsec());
    let (mode, owner) = (meta.mode(), (meta.uid(), meta.gid()));
    let mut line =
        format!("{} {mode:o} {owner:?} {} {times:?} {}", meta.ino(), meta.nlink(), meta.len());
    if meta.is_file() {
        line += &format!(" {:?}", fs::read(path).unwrap());
    } else if meta.is_symlink() {
        line += &format!(" {:?}", fs::read_link(path).unwrap());
    } else if meta.is_dir() {
        let mut names: Vec<_> = fs::read_dir(path).unwrap().map(|it| it.unwrap()).collect();
        names.sort_by_key(|entry| entry.file_name());
        for entry in names {
            note(&entry.path(), &name.join(entry.file_name()), seen);
        }
    }
    seen.insert(name.to_path_buf(), line);
}

/// Whether the tests run as root: ownership cannot be tried otherwise.
pub fn is_root() -> bool {
    // SAFETY: cannot fail and takes no memory.
    unsafe { libc::geteuid() == 0 }
}

/// A command line, as text.
pub fn shown(command: &Command) -> String {
    let words = command.get_args().map(OsStr::to_string_lossy);
    words.collect::<Vec<_>>().join(" ")
}
