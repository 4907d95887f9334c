//! What the tests of the built host share: a scratch directory and the honest way to skip.
//!
//! A test that cannot run here leaves a line in `target/skips/`, which `make check` prints. Under
//! `CI=true` the lack of something that `.ci/run` installs is a failure, not a skip.
#![allow(dead_code)] // each test binary uses a part of it

pub mod broken;
pub mod engine;
pub mod golden;
pub mod root;
pub mod said;
pub mod service;
pub mod site;
pub mod snapshot;
pub mod strace;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What a test lacks.
pub enum Lacks<'a> {
    /// A program that `.ci/run` installs.
    Program(&'a str),
    /// Something that only another machine has: a kernel facility, a privilege, a service manager.
    Machine(&'a str),
}

/// Records that `test` was skipped and what it lacks. Panics under `CI=true` where CI has it.
pub fn skip(test: &str, lacks: &Lacks) {
    let line = match lacks {
        Lacks::Program(program) => format!("no {program} here"),
        Lacks::Machine(what) => format!("{what} (needs another machine)"),
    };
    let in_ci = std::env::var_os("CI").is_some_and(|value| value == "true");
    assert!(!(in_ci && matches!(lacks, Lacks::Program(_))), "{test} may not be skipped: {line}");
    let skips = target().join("skips");
    std::fs::create_dir_all(&skips).expect("target/ can be written");
    std::fs::write(skips.join(test), format!("{line}\n")).expect("target/ can be written");
}

/// Whether `program` can be started here; records the skip of `test` where it cannot.
pub fn has(program: &str, test: &str) -> bool {
    let started = Command::new(program)
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if started.is_err() {
        skip(test, &Lacks::Program(program));
    }
    started.is_ok()
}

/// The directory that cargo builds into.
pub fn target() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("target/tmp has a parent")
}

/// The user that the tests run as.
pub fn euid() -> u32 {
    // SAFETY: geteuid takes nothing and cannot fail.
    unsafe { libc::geteuid() }
}

/// A directory of one test's own, removed when it goes out of scope.
pub struct Scratch(PathBuf);

impl Scratch {
    /// A new, empty one. `name` is the test's.
    pub fn new(name: &str) -> Scratch {
        let path =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("target/tmp can be written");
        Scratch(path)
    }

    /// Where it is, absolute.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// `relative` inside it.
    pub fn join(&self, relative: &str) -> PathBuf {
        self.0.join(relative)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Numbers that look random and are the same in every run (xorshift64*).
pub struct Dice(u64);

impl Dice {
    /// The sequence of `seed`, which is not 0.
    pub fn new(seed: u64) -> Dice {
        assert_ne!(seed, 0, "a sequence of zeros is no dice");
        Dice(seed)
    }

    /// The next number below `sides`.
    pub fn below(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let wide = u128::from(self.0.wrapping_mul(0x2545_f491_4f6c_dd1d));
        ((wide * sides as u128) >> 64) as usize
    }
}
