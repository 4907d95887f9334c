//! `action`: a command that a bundle may carry, with the check that says whether it is needed.

use super::RootPath;

/// A declared action.
#[derive(Debug)]
pub struct Action {
    /// The resource's id: an action has no other name.
    pub id: Box<str>,
    /// What to run.
    pub run: Box<[Box<str>]>,
    /// What must exit 0 for the action to count as done.
    pub verify: Box<[Box<str>]>,
    /// Variables for both.
    pub env: Box<[(Box<str>, Box<str>)]>,
    /// Working directory of both.
    pub workdir: Option<RootPath>,
}
