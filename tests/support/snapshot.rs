//! A tree as it is: every name with its kind, contents, mode, owner, times and inode number.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// What is known of one entry. The time of its last reading is not part of it.
#[derive(Debug, PartialEq, Eq)]
pub struct Seen {
    mode: u32,
    owner: (u32, u32),
    inode: u64,
    links: u64,
    modified: (i64, i64),
    changed: (i64, i64),
    holds: Vec<u8>,
}

/// Everything at and beneath `top`.
pub fn snapshot(top: &Path) -> BTreeMap<PathBuf, Seen> {
    let mut tree = BTreeMap::new();
    let mut waiting = vec![top.to_path_buf()];
    while let Some(path) = waiting.pop() {
        let meta = path.symlink_metadata().unwrap();
        let holds = if meta.is_symlink() {
            path.read_link().unwrap().into_os_string().into_encoded_bytes()
        } else if meta.is_file() {
            std::fs::read(&path).unwrap()
        } else {
            Vec::new()
        };
        if meta.is_dir() {
            waiting.extend(path.read_dir().unwrap().map(|entry| entry.unwrap().path()));
        }
        let seen = Seen {
            mode: meta.mode(),
            owner: (meta.uid(), meta.gid()),
            inode: meta.ino(),
            links: meta.nlink(),
            modified: (meta.mtime(), meta.mtime_nsec()),
            changed: (meta.ctime(), meta.ctime_nsec()),
            holds,
        };
        tree.insert(path, seen);
    }
    tree
}

/// Panics, naming what differs, unless `top` is as it was.
#[track_caller]
pub fn assert_same(top: &Path, before: &BTreeMap<PathBuf, Seen>, why: &str) {
    let after = snapshot(top);
    let all: std::collections::BTreeSet<_> = before.keys().chain(after.keys()).collect();
    for path in all {
        assert_eq!(before.get(path), after.get(path), "{why}: {} differs", path.display());
    }
}
