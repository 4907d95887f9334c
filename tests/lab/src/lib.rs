//! A lab: throwaway machines with real systemd as PID 1, each in namespaces of its own over a
//! shared Debian tree, to try the node host on.
//!
//! A scenario is an ordinary test:
//!
//! ```no_run
//! # use lab::Lab;
//! if lab::skipped() {
//!     return;
//! }
//! let web = Lab::machine("web");
//! web.write("/etc/motd", "hello\n");
//! web.reboot();
//! assert_eq!(web.read("/etc/motd"), "hello\n");
//! ```
//!
//! What it needs of the computer: root, the Debian packages in `packages.txt`, and for the first
//! run a Debian mirror, from which it builds the tree. Heeds in the environment:
//!
//! | variable | says |
//! |---|---|
//! | `MESH_LAB_TREE` | where the tree is kept, instead of `/var/cache/mesh-lab-tree` |
//! | `MESH_LAB_MIRROR` | the mirror, or a sources file, instead of mmdebstrap's default |
//! | `MESH_LAB_HOST` | the host binary to try, instead of the one beside the test |
//! | `CI` | `true`: a scenario that lacks a package fails instead of being skipped |
//!
//! It must not depend on the host's source: the host is a binary that is put into a machine.
//! Everything here panics with the whole story instead of returning errors, as a test wants it.

mod apply;
mod apt;
mod background;
mod child;
mod files;
mod footprint;
mod inside;
mod invocation;
mod machine;
mod owner;
mod package;
mod pacman;
mod supported;
mod sweep;
mod switch;
mod tree;
mod wait;

pub use apply::{host_binary, Applied};
pub use background::Background;
pub use footprint::Footprint;
pub use invocation::{Invocation, Ran};
pub use machine::Machine;
pub use package::{shelf, Package};
pub use supported::{skip, skipped, supported, Lack};
pub use sweep::sweep;
pub use tree::{build, cache, is_built, remove};
pub use wait::{eventually, until};

use std::ffi::OsStr;
use std::sync::Once;

/// Where machines come from.
pub struct Lab;

impl Lab {
    /// Boots a machine; it is up when this returns. Its name is its host name and need not be
    /// unique. All machines of a process hang on one switch. The first one of a process also
    /// takes away what killed processes have left, and builds the tree if there is none.
    #[track_caller]
    pub fn machine(name: &str) -> Machine {
        static SWEPT: Once = Once::new();
        SWEPT.call_once(|| {
            for line in sweep() {
                eprintln!("lab: {line}");
            }
        });
        match Machine::boot_new(name) {
            Ok(machine) => machine,
            Err(e) => panic!("{e}"),
        }
    }
}

impl Machine {
    /// Runs a command to its end, within a minute.
    #[track_caller]
    pub fn run<A: AsRef<OsStr>>(&self, argv: impl IntoIterator<Item = A>) -> Ran {
        self.command(argv).run()
    }

    /// Runs a shell script, `set -e`, to its end, within a minute.
    #[track_caller]
    pub fn sh(&self, script: &str) -> Ran {
        self.run(["sh", "-ec", script])
    }

    /// A command to which more is to be said before it runs.
    #[track_caller]
    pub fn command<A: AsRef<OsStr>>(&self, argv: impl IntoIterator<Item = A>) -> Invocation<'_> {
        Invocation::new(self, argv)
    }

    /// Starts a command that runs beside the scenario.
    #[track_caller]
    pub fn spawn<A: AsRef<OsStr>>(&self, argv: impl IntoIterator<Item = A>) -> Background {
        self.command(argv).spawn()
    }

    /// A shell for a person, on this process's own terminal, until it is left.
    pub fn shell(&self) {
        let command = self.command(["bash", "-l"]).env("TERM", "linux").prepare();
        match child::spawn(command).and_then(|mut shell| shell.wait()) {
            Ok(_) => {}
            Err(e) => eprintln!("lab: shell in {}: {e}", self.name()),
        }
    }
}
