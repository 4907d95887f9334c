//! What becomes of an object that is no longer declared. Pure.

use std::time::Duration;

use super::{Answer, Question, Removable, Standing, Step, Trouble};

/// How the host parts with an object.
#[derive(Clone, Copy)]
pub enum Parting {
    /// The machine keeps it; the host no longer cares.
    Forget,
    /// It is removed, if it is still what was made.
    Remove(Removable),
    /// What was done to it is undone.
    Undo(&'static dyn Undo),
}

/// How what was done to something other than a directory entry is undone.
///
/// As with a resource, this asks and judges; no steps means that there is nothing left to undo.
pub trait Undo: Sync {
    /// What is about to be done, for a person, as `will …`; `None` where that is nothing.
    fn announces(&self, it: &Leaving<'_>) -> Option<String>;

    /// How long that may take.
    fn limit(&self) -> Duration {
        Duration::from_secs(60)
    }

    /// What to ask to know how far the machine is from it.
    fn question<'a>(&self, it: &Leaving<'a>) -> Question<'a>;

    /// What the answer leaves to be done, and how it ends once that is done.
    fn judge<'a>(&self, it: &Leaving<'a>, answer: &Answer) -> Result<Farewell<'a>, Trouble>;
}

/// What the store knows of an object that leaves.
#[derive(Clone, Copy, Debug)]
pub struct Leaving<'a> {
    /// Its name within its space.
    pub name: &'a str,
    /// Created or adopted.
    pub standing: Standing,
    /// What is to be put back.
    pub before: Option<&'a str>,
}

/// What it takes to part with an object.
#[derive(Debug)]
pub struct Farewell<'a> {
    /// What is still to be done.
    pub steps: Vec<Step<'a>>,
    /// How it has ended once no steps are left.
    pub ends: Ends,
    /// With steps, what differs; without, why it ended so, or how, where that is not plain.
    pub detail: String,
}

impl Farewell<'_> {
    /// Nothing is left to be done.
    pub fn ended(ends: Ends, detail: &str) -> Farewell<'static> {
        Farewell { steps: vec![], ends, detail: detail.into() }
    }
}

/// How it ends with an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ends {
    /// What the host did is undone.
    Removed,
    /// There was nothing to undo.
    Forgotten,
    /// It should have been undone and cannot be, or must not.
    Left,
}

/// How the host parts with what was declared as a `kind`.
pub fn parting(kind: &str, standing: Standing) -> Parting {
    match (kind, standing) {
        ("file", Standing::Created) => Parting::Remove(Removable::File),
        ("directory", Standing::Created) => Parting::Remove(Removable::Directory),
        ("symlink", Standing::Created) => Parting::Remove(Removable::Symlink),
        ("service", _) => Parting::Undo(&super::unit_before::AsBefore),
        // Whether it is the host's own is told by its label, however it was found.
        ("container", _) => Parting::Undo(&super::container::Remove),
        ("container_network", Standing::Created) => {
            Parting::Undo(&super::container_network::Remove)
        }
        ("group", _) => Parting::Undo(&super::group::Leave),
        ("user", Standing::Created) => Parting::Undo(&super::user::LockOut),
        ("packet_filter", Standing::Created) => Parting::Undo(&super::packet_filter::Delete),
        ("overlay", _) => Parting::Undo(&super::overlay::TakeDown),
        ("peer", Standing::Created) => Parting::Undo(&super::peer::TakeAway),
        ("sysctl", _) => Parting::Undo(&super::sysctl::PutBack),
        _ => Parting::Forget,
    }
}
