//! Takes away what machines leave: at a machine's own end, and at the next start for those
//! whose owner was killed. Removes only what bears the name of an owner that is dead.
//!
//! Mounts and network namespaces need no sweeping: they belong to the machine's processes and
//! go with them. Directories and cgroups do.

use crate::owner::Owner;
use crate::{tree, wait};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};

/// Holds the machines' directories. Not `/tmp`, which may be too small or in memory.
pub(crate) const STATE: &str = "/var/tmp";

/// Removes everything that dead owners left; names what was removed, and what could not be.
pub fn sweep() -> Vec<String> {
    let mut said = Vec::new();
    // First the processes: a machine that somehow outlived its owner still holds its files.
    for cgroup in cgroup_root().iter().flat_map(|root| orphans(root)) {
        said.push(outcome(&cgroup, end_cgroup(&cgroup)));
    }
    let beside_tree = tree::cache().parent().map(Path::to_owned);
    for place in [Some(PathBuf::from(STATE)), beside_tree].into_iter().flatten() {
        for directory in orphans(&place) {
            if !tree::is_held(&directory) {
                said.push(outcome(&directory, remove_tree(&directory)));
            }
        }
    }
    said
}

fn outcome(place: &Path, removed: io::Result<()>) -> String {
    match removed {
        Ok(()) => format!("removed {}", place.display()),
        Err(e) => format!("left {}: {e}", place.display()),
    }
}

fn orphans(place: &Path) -> Vec<PathBuf> {
    marked(place).into_iter().filter(|path| owner(path).is_some_and(|o| !o.is_alive())).collect()
}

/// The entries of `place` that bear a mark.
pub(crate) fn marked(place: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(place).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| owner(path).is_some()).collect()
}

fn owner(path: &Path) -> Option<Owner> {
    path.file_name().and_then(OsStr::to_str).and_then(Owner::of)
}

/// Removes a directory of ours with all it holds, unless something is mounted in it.
pub(crate) fn remove_tree(directory: &Path) -> io::Result<()> {
    let mounts = fs::read_to_string("/proc/self/mountinfo")?;
    let below = mounts.lines().filter_map(|line| line.split(' ').nth(4));
    if let Some(point) = below.into_iter().find(|point| Path::new(point).starts_with(directory)) {
        return Err(io::Error::other(format!("{point} is mounted")));
    }
    match fs::remove_dir_all(directory) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// Kills every process of a cgroup of ours and removes it with all below it.
pub(crate) fn end_cgroup(cgroup: &Path) -> io::Result<()> {
    match fs::write(cgroup.join("cgroup.kill"), "1") {
        Err(e) if e.kind() == io::ErrorKind::NotFound && !cgroup.exists() => return Ok(()),
        killed => killed?,
    }
    let mut last = Ok(());
    let gone = wait::until(Duration::from_secs(10), || {
        last = remove_cgroups(cgroup);
        last.is_ok()
    });
    if gone {
        Ok(())
    } else {
        last
    }
}

fn remove_cgroups(cgroup: &Path) -> io::Result<()> {
    for entry in fs::read_dir(cgroup).into_iter().flatten() {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            remove_cgroups(&entry.path())?;
        }
    }
    match fs::remove_dir(cgroup) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// Where the computer has its version 2 cgroup tree mounted.
pub(crate) fn cgroup_root() -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let mut unified = mounts.lines().filter(|line| line.contains(" - cgroup2 "));
    unified.find_map(|line| line.split(' ').nth(4)).map(PathBuf::from)
}

/// What is left on the computer of the machines and builds whose marks are asked for.
pub(crate) fn remains(is_asked_for: impl Fn(&str) -> bool) -> Vec<String> {
    let mut found = Vec::new();
    let beside_tree = tree::cache();
    let places = [cgroup_root(), Some(STATE.into()), beside_tree.parent().map(Path::to_owned)];
    for path in places.into_iter().flatten().flat_map(|place| marked(&place)) {
        if path.file_name().and_then(OsStr::to_str).is_some_and(&is_asked_for) {
            found.push(path.display().to_string());
        }
    }
    let bears = |text: &str| text.split(['/', ' ', ',', '\n', '\0', ':', '=']).any(&is_asked_for);
    for process in fs::read_dir("/proc").into_iter().flatten().flatten() {
        // The dead whom their parent has not yet looked at hold nothing any more.
        let stat = fs::read_to_string(process.path().join("stat")).unwrap_or_default();
        if stat.contains(") Z ") || stat.contains(") X ") {
            continue;
        }
        for table in ["cgroup", "mountinfo", "cmdline"].map(|table| process.path().join(table)) {
            if bears(&String::from_utf8_lossy(&fs::read(&table).unwrap_or_default())) {
                found.push(table.display().to_string());
            }
        }
    }
    found
}
