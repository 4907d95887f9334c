//! Whether machines can be had on this computer, and if not, why; and the honest way to skip.
//!
//! A scenario that cannot run leaves a line in `target/skips/`, which `make check` prints.

use crate::owner::fresh_mark;
use crate::{child, sweep, tree};
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use std::{env, fmt, fs, thread};

/// Tries, in namespaces that are gone afterwards, what a boot needs of the kernel.
const PROBE: &str = "mount -t tmpfs tmpfs \"$DIR\"/try && cd \"$DIR\" && \
    mount -t overlay -o lowerdir=lower,upperdir=upper,workdir=work overlay lower && \
    mount -t cgroup2 cgroup2 try && ip link add name probe type veth peer name other && \
    ip link add bridge0 type bridge";

/// Why something cannot be tried here.
#[derive(Debug)]
pub enum Lack {
    /// What `packages.txt` or a Debian mirror would bring: under `CI=true` a failure.
    Package(String),
    /// What only another computer has: a privilege, a kernel facility, another build.
    Machine(String),
}

impl fmt::Display for Lack {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Lack::Package(what) => f.write_str(what),
            Lack::Machine(what) => write!(f, "{what} (needs another machine)"),
        }
    }
}

/// Says why a lab cannot run here.
pub fn supported() -> Result<(), Lack> {
    // SAFETY: takes nothing and cannot fail.
    if unsafe { libc::geteuid() } != 0 {
        return Err(Lack::Machine("root, for machines".into()));
    }
    let tools = ["ip", "mount", "nsenter", "systemd-nspawn", "unshare"];
    // The builder is not needed once there is a tree.
    let builder = (!tree::is_built()).then_some("mmdebstrap");
    let missing: Vec<&str> = tools.into_iter().chain(builder).filter(|t| !on_path(t)).collect();
    if !missing.is_empty() {
        let list = "tests/lab/packages.txt";
        return Err(Lack::Package(format!("not installed: {} (see {list})", missing.join(", "))));
    }
    permitted().map_err(Lack::Machine)
}

/// Says what the kernel does not let us do.
fn permitted() -> Result<(), String> {
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

/// For the first line of a scenario: records why machines cannot be had and returns true. Builds
/// the tree where there is none.
#[track_caller]
pub fn skipped() -> bool {
    match supported().and_then(|()| tree::build().map_err(Lack::Package)) {
        Ok(_) => false,
        Err(lack) => {
            skip(&lack);
            true
        }
    }
}

/// Records that the scenario of this thread is skipped, and why. Panics under `CI=true` where CI
/// has what is lacking.
#[track_caller]
pub fn skip(lack: &Lack) {
    let in_ci = env::var_os("CI").is_some_and(|value| value == "true");
    assert!(!(in_ci && matches!(lack, Lack::Package(_))), "may not be skipped: {lack}");
    // A test's thread bears its name, unless one thread runs them all.
    let thread = thread::current();
    let name = thread.name().filter(|name| *name != "main").unwrap_or("scenarios");
    let test = env::current_exe().expect("a test has a path");
    let target = test.ancestors().nth(3).expect("a test lies in target/PROFILE/deps");
    let skips = target.join("skips");
    fs::create_dir_all(&skips).expect("target/ can be written");
    let line = lack.to_string().replace('\n', "; ");
    fs::write(skips.join(name), format!("{line}\n")).expect("target/ can be written");
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
