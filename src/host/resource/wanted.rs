//! Permissions and ownership: what is wanted, given what is there. Pure.

use super::{Access, Found, PathAnswer, Standing};

/// The permissions and ownership an entry should end with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Permission bits.
    pub mode: u16,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
}

impl Access {
    /// What the entry should end with. What the declaration leaves out is `default_mode` and the
    /// host's own user for what the host makes, and stays as found on what was there before.
    pub fn wanted(&self, answer: &PathAnswer, standing: Standing, default_mode: u16) -> Wanted {
        let mut rest = Wanted { mode: default_mode, uid: answer.euid, gid: answer.egid };
        if standing != Standing::Created {
            if let Found::Entry { mode, uid, gid, .. } = answer.found {
                rest = Wanted { mode, uid, gid };
            }
        }
        Wanted {
            mode: self.mode.unwrap_or(rest.mode),
            uid: answer.uid.unwrap_or(rest.uid),
            gid: answer.gid.unwrap_or(rest.gid),
        }
    }
}

impl Wanted {
    /// How this differs from what was found, for a person; empty where it does not.
    pub fn difference(&self, mode: u16, uid: u32, gid: u32) -> String {
        let mut parts = Vec::new();
        if mode != self.mode {
            parts.push(format!("mode {mode:04o} → {:04o}", self.mode));
        }
        if uid != self.uid {
            parts.push(format!("owner {uid} → {}", self.uid));
        }
        if gid != self.gid {
            parts.push(format!("group {gid} → {}", self.gid));
        }
        parts.join(", ")
    }
}
