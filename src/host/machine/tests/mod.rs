//! Tests of the machine against real directories, links, mounts and processes.

mod accounts;
mod bundle;
mod change;
mod child;
mod keys;
mod look;
mod place;
mod refused;
mod speed;
mod walk;

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{sys, Machine};
use crate::declaration::Own;
use crate::resource::{
    Access, Answer, Entry, Found, Holds, Make, PathAnswer, Place, Question, RootPath, Trouble,
};

/// A limit that nothing here should come near.
const LIMIT: Duration = Duration::from_secs(60);

/// A directory of the test's own, removed when it ends.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Scratch {
        let mut name = [0; 8];
        super::fill(&mut name);
        let name = format!("mesh-host-test-{}", crate::digest::hex(&name));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).unwrap();
        Scratch(path)
    }

    /// The machine whose root it is.
    fn machine(&self) -> Machine {
        Machine::open(&self.0, Own::default()).unwrap()
    }

    /// Where `path` of the root really is.
    fn at(&self, path: &str) -> PathBuf {
        self.0.join(path.trim_start_matches('/'))
    }

    /// Makes the directory `path` with its parents.
    fn directory(&self, path: &str) -> &Scratch {
        std::fs::create_dir_all(self.at(path)).unwrap();
        self
    }

    /// Makes the file `path`.
    fn file(&self, path: &str, bytes: impl AsRef<[u8]>) -> &Scratch {
        std::fs::write(self.at(path), bytes).unwrap();
        self
    }

    /// Makes the symbolic link `path`.
    fn link(&self, path: &str, target: impl AsRef<Path>) -> &Scratch {
        std::os::unix::fs::symlink(target, self.at(path)).unwrap();
        self
    }

    fn read(&self, path: &str) -> Vec<u8> {
        std::fs::read(self.at(path)).unwrap()
    }

    /// The names in the directory `path`, in order.
    fn names(&self, path: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.at(path)).unwrap();
        let mut names: Vec<String> =
            entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn path(text: &str) -> RootPath {
    RootPath::parse(text).unwrap()
}

/// Asks for `at`, and whether it holds `holds`.
fn ask(machine: &mut Machine, at: &str, holds: Option<Holds>) -> Result<PathAnswer, Trouble> {
    let (path, access) = (&path(at), &Access::default());
    match machine.ask(&Question::Path { path, holds, access }, LIMIT)? {
        Answer::Path(answer) => Ok(answer),
        other => panic!("{other:?} is no answer about a path"),
    }
}

fn look(machine: &mut Machine, at: &str) -> Found {
    ask(machine, at, None).unwrap().found
}

/// What kind of thing is at `at`.
fn kind(machine: &mut Machine, at: &str) -> Entry {
    match look(machine, at) {
        Found::Entry { kind, .. } => kind,
        other => panic!("{at}: {other:?}"),
    }
}

/// The file `at` is there and holds `bytes`.
fn holds(machine: &mut Machine, at: &str, bytes: &[u8]) -> bool {
    match ask(machine, at, Some(Holds::Bytes(bytes))).unwrap().found {
        Found::Entry { kind: Entry::File { holds, .. }, .. } => holds.unwrap(),
        other => panic!("{at}: {other:?}"),
    }
}

fn place<'a>(path: &'a RootPath, make: Make<'a>, over: bool) -> Place<'a> {
    let (uid, gid) = sys::effective_ids();
    let mode = if matches!(make, Make::Directory) { 0o755 } else { 0o644 };
    Place { path, make, mode, uid, gid, over, keeps_list: true }
}

/// Runs as root; says why the test is not run where it does not.
fn is_root(test: &str) -> bool {
    let root = sys::effective_ids().0 == 0;
    if !root {
        eprintln!("skipped: {test} needs root");
    }
    root
}

/// Gives the thing at `at`, a link itself, to `uid`.
fn give(at: &Path, uid: u32) {
    std::os::unix::fs::lchown(at, Some(uid), Some(uid)).unwrap();
}

/// A file system that only this thread sees, for as long as it lives.
struct Mount(std::ffi::CString);

impl Mount {
    /// Mounts a tmpfs; says why it could not.
    fn tmpfs(at: &Path, options: &str) -> Option<Mount> {
        Mount::new(Path::new("tmpfs"), at, 0, options)
    }

    /// Shows the directory `from` at `at` too; says why it could not.
    fn bind(from: &Path, at: &Path) -> Option<Mount> {
        Mount::new(from, at, libc::MS_BIND, "")
    }

    fn new(from: &Path, at: &Path, flags: libc::c_ulong, options: &str) -> Option<Mount> {
        let c = |text: &[u8]| std::ffi::CString::new(text).unwrap();
        let (at, options) = (c(at.as_os_str().as_bytes()), c(options.as_bytes()));
        let source = c(from.as_os_str().as_bytes());
        let from = source.as_ptr();
        let (root, tmpfs, none) = (c"/".as_ptr(), c"tmpfs".as_ptr(), std::ptr::null());
        let private = libc::MS_REC | libc::MS_PRIVATE;
        // SAFETY: every pointer is a NUL-terminated string that outlives the call, or null where
        // mount(2) takes that.
        let failed = unsafe {
            libc::unshare(libc::CLONE_NEWNS) != 0
                || libc::mount(none, root, none, private, none.cast()) != 0
                || libc::mount(from, at.as_ptr(), tmpfs, flags, options.as_ptr().cast()) != 0
        };
        if failed {
            eprintln!("skipped: cannot mount: {}", std::io::Error::last_os_error());
            return None;
        }
        Some(Mount(at))
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // SAFETY: the name is NUL-terminated.
        unsafe { libc::umount2(self.0.as_ptr(), libc::MNT_DETACH) };
    }
}

/// From here on this thread, and it alone, is a user who is not root.
fn be_a_user() {
    if sys::effective_ids().0 != 0 {
        return;
    }
    const USER: libc::c_long = 4242;
    // By number: the C library would change every thread of the process.
    // SAFETY: none takes memory but the empty list.
    let results = unsafe {
        [
            libc::syscall(libc::SYS_setgroups, 0, std::ptr::null::<libc::gid_t>()),
            libc::syscall(libc::SYS_setresgid, USER, USER, USER),
            libc::syscall(libc::SYS_setresuid, USER, USER, USER),
        ]
    };
    assert_eq!(results, [0; 3]);
}

/// The one trouble that `result` must be, which must say `cause`.
fn trouble<T: std::fmt::Debug>(result: Result<T, Trouble>, cause: &str) -> Trouble {
    let trouble = result.unwrap_err();
    assert!(trouble.cause.contains(cause), "{cause:?} is not in {trouble:?}");
    trouble
}
