//! Whose a leftover is. Everything a lab puts on the computer under a name carries the pid of
//! the process that made it and that process's start time, which together are never reused
//! while the computer is up: what bears a dead owner's name may be removed, nothing else may.

use std::fs;
use std::sync::atomic::{AtomicU32, Ordering};

/// Stands at the front of every name.
const PREFIX: &str = "mesh-lab.";

/// A process that made, or makes, lab machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    pid: u32,
    /// Clock ticks after boot, field 22 of `/proc/PID/stat`.
    started: u64,
}

impl Owner {
    pub fn this_process() -> Owner {
        let pid = std::process::id();
        let started = start_time(pid).expect("this process stands in /proc");
        Owner { pid, started }
    }

    /// Reads the owner out of a name made by [`fresh_mark`]; `None` if it is not one of ours.
    pub fn of(mark: &str) -> Option<Owner> {
        let mut parts = mark.strip_prefix(PREFIX)?.split('.');
        let owner =
            Owner { pid: parts.next()?.parse().ok()?, started: parts.next()?.parse().ok()? };
        parts.next()?.parse::<u32>().ok()?;
        parts.next().is_none().then_some(owner)
    }

    pub fn pid(self) -> u32 {
        self.pid
    }

    pub fn is_alive(self) -> bool {
        start_time(self.pid) == Some(self.started)
    }
}

/// A name no other machine, build or probe on this computer has: `mesh-lab.PID.STARTED.N`.
pub fn fresh_mark() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    let Owner { pid, started } = Owner::this_process();
    format!("{PREFIX}{pid}.{started}.{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

fn start_time(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field is the program's name in brackets and may hold anything.
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_names_its_living_owner() {
        let mark = fresh_mark();
        assert_eq!(Owner::of(&mark), Some(Owner::this_process()));
        assert!(Owner::this_process().is_alive());
        assert_ne!(mark, fresh_mark());
    }

    #[test]
    fn a_pid_that_was_used_again_is_another_owner() {
        let Owner { pid, started } = Owner::this_process();
        assert!(!Owner { pid, started: started - 1 }.is_alive());
    }

    #[test]
    fn names_of_others_have_no_owner() {
        for name in ["", "mesh-lab", "mesh-lab.", "mesh-lab.1", "mesh-lab.1.2", "mesh-lab.1.2.x"] {
            assert_eq!(Owner::of(name), None, "{name}");
        }
        assert_eq!(Owner::of("mesh-lab.1.2.3.4"), None);
        assert_eq!(Owner::of("other.1.2.3"), None);
    }
}
