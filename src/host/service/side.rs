//! The seam to what else the loop attends to: the link.

use std::os::fd::RawFd;
use std::time::Duration;

use serde_json::Value;

use super::errand::Told;
use super::schedule::Cause;

/// What else the loop attends to. Nothing here may wait: the loop has everything else to do as
/// well. Instants are [`crate::machine::uptime`]'s.
pub trait Side {
    /// What it waits for: descriptors, each with the events of poll(2). Asked before every wait.
    fn interests(&self) -> Vec<(RawFd, i16)>;

    /// When it wants its turn at the latest.
    fn deadline(&self) -> Option<Duration>;

    /// Its turn. `ready` is what of its interests has come about, with the events. What it wants
    /// passes for: a declaration that was accepted, the link being back.
    fn turn(&mut self, ready: &[(RawFd, i16)], now: Duration) -> Vec<Cause>;

    /// A pass is over, or the store was changed by somebody else and this is how it stands.
    fn told(&mut self, told: &Told);

    /// The ids of reports that were taken since this was asked last. They are recorded with the
    /// next pass, or by a child of their own where none is due soon.
    fn sent(&mut self) -> Vec<String>;

    /// The service is ending: whatever is to be said to the other side is said now.
    fn stop(&mut self);

    /// The link is up.
    fn is_up(&self) -> bool;

    /// How it is, for the status; null where there is nothing to say.
    fn status(&self) -> Value;
}

/// A host that belongs to no mesh.
#[derive(Clone, Copy, Debug)]
pub struct Alone;

impl Side for Alone {
    fn interests(&self) -> Vec<(RawFd, i16)> {
        Vec::new()
    }

    fn deadline(&self) -> Option<Duration> {
        None
    }

    fn turn(&mut self, _: &[(RawFd, i16)], _: Duration) -> Vec<Cause> {
        Vec::new()
    }

    fn told(&mut self, _: &Told) {}

    fn sent(&mut self) -> Vec<String> {
        Vec::new()
    }

    fn stop(&mut self) {}

    fn is_up(&self) -> bool {
        false
    }

    fn status(&self) -> Value {
        Value::Null
    }
}
