//! The parts of what a store knows, apart from what it owns. Pure data.

use std::collections::BTreeSet;

use super::journal::Place;
use super::member::Hex;
use super::record::{Counts, Kind, Outcome, Source};
use crate::digest::Sha256;
use crate::error::Stage;

/// One source's declarations.
#[derive(Default)]
pub(super) struct Desk {
    pub accepted: Option<Accepted>,
    pub whole: Option<Whole>,
    pub ceded: BTreeSet<Box<str>>,
    pub quarantined: Option<Quarantined>,
    /// Nothing has been accepted, begun or claimed since all of it was applied.
    pub settled: bool,
}

/// A declaration that was applied whole.
#[derive(Clone, Copy)]
pub(super) struct Whole {
    pub sha256: Sha256,
    /// Position of its text.
    pub text: Option<u32>,
    /// The pass that did it.
    pub seq: u64,
}

/// A declaration that was accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// SHA-256 of the bytes as they arrived. The text kept in the store hashes to something else
    /// where secrets were taken out of it or line breaks became spaces.
    pub sha256: Sha256,
    /// Its serial.
    pub serial: Option<u64>,
    /// The node it is addressed to.
    pub node: Option<Box<str>>,
    /// When, in seconds since 1970.
    pub at: u64,
    /// The text.
    pub words: Words,
    pub(super) position: u32,
}

/// Where the words for an object's form stand in the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Words {
    /// Whose they are.
    pub source: Source,
    /// First 16 digits of the declaration's SHA-256.
    pub declaration: Hex<8>,
    pub(super) place: Place,
    /// The place holds one resource of the declaration and not the whole of it.
    pub(super) excerpt: bool,
}

/// A resource that failed and has not succeeded since.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failing {
    /// Since when, in seconds since 1970.
    pub since: u64,
    /// Where in the pass.
    pub stage: Option<Stage>,
    /// What was being done.
    pub doing: Box<str>,
    /// The cause.
    pub cause: Box<str>,
}

/// A person holds the machine still.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paused {
    /// Why.
    pub reason: Box<str>,
    /// Until when, in seconds since 1970; for good where absent.
    pub until: Option<u64>,
    /// Since when.
    pub since: u64,
}

/// A declaration that cut the way to this machine: until another is accepted, or a person tries it
/// again, what it replaced is held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quarantined {
    /// Which one.
    pub sha256: Sha256,
    /// What it did.
    pub reason: Box<str>,
    /// Since when, in seconds since 1970.
    pub since: u64,
}

/// A change that was begun under a guard and not seen to have left open what it guards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guarded {
    /// What must be reachable.
    pub way: Box<str>,
    /// The declaration that the change is of, first half-line of its SHA-256.
    pub declared_by: Option<Hex<8>>,
}

/// The last pass that is on record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastPass {
    /// Its id.
    pub id: Box<str>,
    /// When it ended, in seconds since 1970.
    pub at: u64,
    /// What started it.
    pub trigger: Box<str>,
    /// How it ended.
    pub outcome: Option<Outcome>,
    /// What it did.
    pub counts: Counts,
}

/// A record that the fold keeps as it is: enrolled, or a report not yet sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Which of them.
    pub kind: Kind,
    /// Its id.
    pub id: Option<Box<str>>,
    /// On whose behalf.
    pub source: Option<Source>,
    /// Its serial.
    pub serial: Option<u64>,
    /// When, in seconds since 1970.
    pub at: u64,
    /// Where its body stands.
    pub body: Option<Place>,
}
