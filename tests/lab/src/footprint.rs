//! What identifies a machine's traces on the computer, so that a scenario can look for them
//! when there should be none.

use crate::inside::Inside;
use crate::owner::Owner;
use crate::sweep;
use std::sync::{Arc, Weak};

/// Made by [`crate::Machine::footprint`] while the machine is up.
pub struct Footprint {
    whose: Whose,
    /// Namespaces are not looked for by number, as the kernel gives a number out again at once.
    /// They live by their processes, which are looked for, and by our own descriptors.
    held: Weak<Inside>,
}

enum Whose {
    Mark(String),
    Process(u32),
}

impl Footprint {
    pub(crate) fn new(mark: &str, inside: &Arc<Inside>) -> Footprint {
        Footprint { whose: Whose::Mark(mark.to_owned()), held: Arc::downgrade(inside) }
    }

    /// Of everything that the process `pid` has made, whether it still lives or not.
    pub fn of_process(pid: u32) -> Footprint {
        Footprint { whose: Whose::Process(pid), held: Weak::new() }
    }

    /// What is there now: directories, cgroups, processes, mounts, namespaces.
    pub fn remains(&self) -> Vec<String> {
        let mut found = match &self.whose {
            Whose::Mark(mark) => sweep::remains(|word| word == mark),
            Whose::Process(pid) => {
                sweep::remains(|word| Owner::of(word).is_some_and(|owner| owner.pid() == *pid))
            }
        };
        if self.held.strong_count() > 0 {
            found.push("descriptors of its namespaces".to_owned());
        }
        found
    }
}
