//! The Debian tree that machines start from: built once, cached, shared read-only.
//!
//! A build goes into a directory beside the cache and is renamed when it is complete, so an
//! interrupted one is never taken for a good one. Processes that use a tree hold a shared lock
//! on it; a tree that was replaced is removed only once nobody holds it.

use crate::{child, owner, sweep};
use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;
use std::{env, io};

const BUILD: &str = include_str!("build.sh");
const PACKAGES: &str = include_str!("../machine-packages.txt");
const BUILD_LIMIT: Duration = Duration::from_secs(900);

/// A complete tree, held by this process.
pub(crate) struct Tree {
    held: File,
}

impl Tree {
    /// The tree of this process, built first if it is missing or its recipe has changed.
    pub fn ready() -> Result<&'static Tree, String> {
        static TREE: OnceLock<Result<Tree, String>> = OnceLock::new();
        TREE.get_or_init(|| {
            let cache = cache();
            prepare(&cache).map_err(|e| format!("lab tree {}: {e}", cache.display()))
        })
        .as_ref()
        .map_err(Clone::clone)
    }

    /// The directory to put below an overlay: where the tree is now, which another process may
    /// have moved aside. The descriptor itself will not do, being of another mount namespace.
    pub fn lower(&self) -> io::Result<PathBuf> {
        let place = fs::read_link(format!("/proc/self/fd/{}", self.held.as_raw_fd()))?;
        Ok(place.join("root"))
    }
}

/// Where the tree is kept: `$MESH_LAB_TREE`, else `/var/cache/mesh-lab-tree`.
pub fn cache() -> PathBuf {
    env::var_os("MESH_LAB_TREE").map_or_else(|| "/var/cache/mesh-lab-tree".into(), PathBuf::from)
}

/// True if the cached tree can be used as it is.
pub fn is_built() -> bool {
    fs::read_to_string(cache().join("stamp")).is_ok_and(|stamp| stamp == recipe())
}

/// Builds the tree unless it is there; returns its place.
pub fn build() -> Result<PathBuf, String> {
    Tree::ready().map(|_| cache())
}

/// Removes the cached tree, unless a process is using it.
pub fn remove() -> Result<(), String> {
    let cache = cache();
    let doing = |e: io::Error| format!("remove {}: {e}", cache.display());
    match File::open(&cache) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => {}
        held => {
            let held = held.map_err(doing)?;
            lock(&held, libc::LOCK_EX | libc::LOCK_NB).map_err(doing)?;
            sweep::remove_tree(&cache).map_err(doing)?;
        }
    }
    match fs::remove_file(lock_file(&cache)) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed.map_err(doing),
    }
}

/// What a tree is made of; kept beside it and compared.
fn recipe() -> String {
    format!("{PACKAGES}\n{BUILD}")
}

fn lock_file(cache: &Path) -> PathBuf {
    let mut name = cache.as_os_str().to_owned();
    name.push(".lock");
    name.into()
}

fn prepare(cache: &Path) -> io::Result<Tree> {
    let parent = cache.parent().ok_or_else(|| io::Error::other("has no parent directory"))?;
    fs::create_dir_all(parent)?;
    // One builder at a time; a second process waits here and then finds the tree.
    let builder = File::create(lock_file(cache))?;
    lock(&builder, libc::LOCK_EX)?;
    if !is_built() {
        let fresh = parent.join(owner::fresh_mark());
        fs::create_dir(&fresh)?;
        let built = fill(&fresh).and_then(|()| swap(&fresh, cache));
        if built.is_err() {
            sweep::remove_tree(&fresh)?;
        }
        built?;
    }
    let held = File::open(cache)?;
    lock(&held, libc::LOCK_SH)?;
    Ok(Tree { held })
}

/// Runs the recipe, in a cgroup of its own: if this process is killed, the next sweep finds
/// and ends the build before it takes the half-made tree away.
fn fill(fresh: &Path) -> io::Result<()> {
    let root = sweep::cgroup_root().ok_or_else(|| io::Error::other("no cgroup2 is mounted"))?;
    let cgroup = root.join(fresh.file_name().expect("a fresh tree has a name"));
    fs::create_dir(&cgroup)?;
    let built = run_recipe(fresh, &cgroup);
    sweep::end_cgroup(&cgroup)?;
    built?;
    fs::write(fresh.join("stamp"), recipe())
}

fn run_recipe(fresh: &Path, cgroup: &Path) -> io::Result<()> {
    let include: Vec<&str> = PACKAGES.split_whitespace().collect();
    let mut command = Command::new("sh");
    command
        .args(["-c", BUILD])
        .env("CGROUP", cgroup)
        .env("DEST", fresh.join("root"))
        .env("INCLUDE", include.join(","))
        .env("MIRROR", env::var_os("MESH_LAB_MIRROR").unwrap_or_default())
        .env("LC_ALL", "C.UTF-8");
    let done = child::run(command, &[], BUILD_LIMIT)?;
    if !done.status.is_some_and(|status| status.success()) {
        let said = String::from_utf8_lossy(&done.stderr);
        let lines: Vec<&str> = said.lines().collect();
        let tail = lines[lines.len().saturating_sub(20)..].join("\n");
        return Err(io::Error::other(format!("mmdebstrap: {:?}\n{tail}", done.status)));
    }
    Ok(())
}

/// Puts the fresh tree in the cache's place, and the old one, if any, out of the way.
fn swap(fresh: &Path, cache: &Path) -> io::Result<()> {
    let old = cache.with_file_name(owner::fresh_mark());
    match fs::rename(cache, &old) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return fs::rename(fresh, cache),
        moved => moved?,
    }
    fs::rename(fresh, cache)?;
    let held = File::open(&old)?;
    // In use by another process: the next sweep after that one's end takes it away.
    match lock(&held, libc::LOCK_EX | libc::LOCK_NB) {
        Ok(()) => sweep::remove_tree(&old),
        Err(_) => Ok(()),
    }
}

/// True if a process holds the tree in `place`.
pub(crate) fn is_held(place: &Path) -> bool {
    File::open(place).is_ok_and(|held| lock(&held, libc::LOCK_EX | libc::LOCK_NB).is_err())
}

fn lock(file: &File, how: libc::c_int) -> io::Result<()> {
    // SAFETY: flock takes a descriptor we hold and a flag.
    match unsafe { libc::flock(file.as_raw_fd(), how) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
