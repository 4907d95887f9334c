//! A root and a state directory of one test's own, the built host to run on them, and what can be
//! seen of both from outside.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;

/// The built host.
pub const HOST: &str = env!("CARGO_BIN_EXE_nox-mesh-host");

/// Entries by their path in a directory, each in words: kind, mode, owner, contents.
pub type Tree = BTreeMap<String, String>;

/// A scratch root, `root/`, and a state directory beside it, `state/`.
pub struct Site(PathBuf);

impl Site {
    /// An empty root and no state. Lies in memory where it can: what is tested here is what stands
    /// in the files, not the disk.
    pub fn new() -> Site {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let memory = Path::new("/dev/shm");
        let above = if memory.is_dir() { memory } else { Path::new(env!("CARGO_TARGET_TMPDIR")) };
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let site = Site(above.join(format!("mesh-host-{}-{count}", std::process::id())));
        fs::create_dir_all(site.root()).unwrap();
        site
    }

    /// Another site in which everything is as it is here.
    pub fn copy(&self) -> Site {
        let copy = Site::new();
        let from = self.0.join(".");
        let copied = Command::new("cp").arg("-a").arg(from).arg(&copy.0).status();
        assert!(copied.unwrap().success());
        copy
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn root(&self) -> PathBuf {
        self.0.join("root")
    }

    pub fn state(&self) -> PathBuf {
        self.0.join("state")
    }

    pub fn journal(&self) -> PathBuf {
        self.state().join("journal.jsonl")
    }

    /// Keeps a declaration of these resources as `name`, to be named `@name` in a command.
    pub fn declare(&self, name: &str, resources: &str) {
        let text = format!("{{\"version\":1,\"resources\":[{resources}]}}");
        fs::write(self.0.join(name), text).unwrap();
    }

    /// A person's own file in the root.
    pub fn put(&self, path: &str, text: &str) {
        let path = self.root().join(path.trim_start_matches('/'));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// The arguments of `command`, words apart by blanks, on this site.
    pub fn arguments(&self, command: &str) -> Vec<OsString> {
        let word = |word: &str| match word.strip_prefix('@') {
            Some(name) => self.0.join(name).into_os_string(),
            None => word.into(),
        };
        let mut words: Vec<OsString> = command.split_whitespace().map(word).collect();
        words.extend(["--root".into(), self.root().into()]);
        words.extend(["--state".into(), self.state().into()]);
        words
    }

    /// Runs a command of the host.
    pub fn host(&self, command: &str) -> Output {
        // cargo's own, in which the loader would search before the machine's.
        let mut host = Command::new(HOST);
        host.env_remove("LD_LIBRARY_PATH").args(self.arguments(command)).output().unwrap()
    }

    /// Runs a command that must do what it says; its standard output.
    pub fn ok(&self, command: &str) -> String {
        let output = self.host(command);
        assert!(output.status.success(), "{command}: {}", told(&output));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Everything in the root.
    pub fn tree(&self) -> Tree {
        let mut tree = Tree::new();
        walk(&self.root(), "", &mut tree);
        tree
    }

    /// Names in the state directory, those that are random by what they are. Stores that were set
    /// aside are left out.
    pub fn state_names(&self) -> Vec<String> {
        let mut tree = Tree::new();
        walk(&self.state(), "", &mut tree);
        let is_secret = |name: &str| name.len() == 32 && !name.contains('.');
        let name = |name: &String| match name.strip_prefix("/secrets/") {
            Some(secret) if is_secret(secret) => "/secrets/#".to_string(),
            _ => name.clone(),
        };
        let is_aside = |name: &&String| name.starts_with("/discarded-");
        tree.keys().filter(|name| !is_aside(name)).map(name).collect()
    }

    /// What the host says it owns, by object, without times.
    pub fn owned(&self) -> BTreeMap<String, Value> {
        let said: Value = serde_json::from_str(&self.ok("owned --json")).unwrap();
        let owned = said["owned"].as_array().unwrap().iter().cloned();
        let without_time = |mut it: Value| {
            it.as_object_mut().unwrap().remove("since");
            (it["object"].as_str().unwrap().to_string(), it)
        };
        owned.map(without_time).collect()
    }

    /// The whole lines of the journal.
    pub fn records(&self) -> Vec<Value> {
        let journal = fs::read_to_string(self.journal()).unwrap_or_default();
        let whole = journal.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        whole.map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// How a run ended, for a failing test.
pub fn told(output: &Output) -> String {
    let (out, err) = (&output.stdout, &output.stderr);
    let (out, err) = (String::from_utf8_lossy(out), String::from_utf8_lossy(err));
    format!("{}\n{err}{out}", output.status)
}

fn walk(at: &Path, name: &str, tree: &mut Tree) {
    let Ok(entries) = fs::read_dir(at) else { return };
    for entry in entries {
        let entry = entry.unwrap();
        let path = entry.path();
        let name = format!("{name}/{}", entry.file_name().to_string_lossy());
        let found = fs::symlink_metadata(&path).unwrap();
        let access = format!("{:04o} {}:{}", mode(&found), found.uid(), found.gid());
        let words = if found.is_dir() {
            walk(&path, &name, tree);
            format!("directory {access}")
        } else if found.is_symlink() {
            let target = fs::read_link(&path).unwrap();
            format!("symlink {}", String::from_utf8_lossy(target.as_os_str().as_bytes()))
        } else {
            let text = fs::read(&path).unwrap();
            format!("file {access} {:?}", String::from_utf8_lossy(&text))
        };
        tree.insert(name, words);
    }
}

fn mode(found: &fs::Metadata) -> u32 {
    found.permissions().mode() & 0o7777
}
