//! Whether machines can be had on this computer, and if not, why.

use crate::owner::fresh_mark;
use crate::{child, sweep, tree};
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use std::{env, fs, io};

/// Tries, in namespaces that are gone afterwards, what a boot needs of the kernel.
const PROBE: &str = "mount -t tmpfs tmpfs \"$DIR\"/try && cd \"$DIR\" && \
    mount -t overlay -o lowerdir=lower,upperdir=upper,workdir=work overlay lower && \
    mount -t cgroup2 cgroup2 try && ip link add name probe type veth peer name other && \
    ip link add bridge0 type bridge";

/// Says why a lab cannot run here.
pub fn supported() -> Result<(), String> {
    // SAFETY: takes nothing and cannot fail.
    if unsafe { libc::geteuid() } != 0 {
        return Err("machines need root".into());
    }
    let tools = ["ip", "mount", "nsenter", "systemd-nspawn", "unshare"];
    // The builder is not needed once there is a tree.
    let builder = (!tree::is_built()).then_some("mmdebstrap");
    let missing: Vec<&str> = tools.into_iter().chain(builder).filter(|t| !on_path(t)).collect();
    if !missing.is_empty() {
        let list = "tests/lab/packages.txt";
        return Err(format!("not installed: {} (see {list})", missing.join(", ")));
    }
    let Some(cgroups) = sweep::cgroup_root() else {
        return Err("no version 2 cgroup tree is mounted".into());
    };
    let trial = cgroups.join(fresh_mark());
    fs::create_dir(&trial).map_err(|e| format!("make a cgroup in {}: {e}", cgroups.display()))?;
    fs::remove_dir(&trial).map_err(|e| format!("remove {}: {e}", trial.display()))?;
    let directory = Path::new(sweep::STATE).join(fresh_mark());
    let probed = probe(&directory);
    let removed = sweep::remove_tree(&directory);
    probed?;
    removed.map_err(|e| format!("remove {}: {e}", directory.display()))
}

/// For the first line of a scenario: says why machines cannot be had and returns true, or, where
/// `CI=true` says that nobody would read it, panics.
#[track_caller]
pub fn skipped() -> bool {
    let Err(why) = supported() else { return false };
    assert!(env::var_os("CI").is_none_or(|ci| ci != "true"), "no lab here: {why}");
    // Not `eprintln!`, which a test that passes would keep to itself.
    let _ = writeln!(io::stderr(), "SKIPPED, no lab here: {why}");
    true
}

fn probe(directory: &Path) -> Result<(), String> {
    for part in ["lower", "upper", "work", "try"] {
        fs::create_dir_all(directory.join(part)).map_err(|e| format!("{part}: {e}"))?;
    }
    let mut command = Command::new("unshare");
    command.args(["--mount", "--net", "--propagation=private", "sh", "-c", PROBE]);
    command.env("DIR", directory);
    let done = child::run(command, &[], Duration::from_secs(20)).map_err(|e| e.to_string())?;
    if done.status.is_some_and(|status| status.success()) {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&done.stderr);
    Err(format!("namespaces, overlay, cgroup2 or veth: {}", said.trim_end()))
}

fn on_path(tool: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|directory| directory.join(tool).is_file())
}
