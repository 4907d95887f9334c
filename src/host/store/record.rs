//! One record of the journal: its members, its kinds and how they are written. No I/O.
//!
//! A record is one flat JSON object, so that one derived struct reads every kind; a member that a
//! kind does not use is left out. A large JSON value (a declaration, a report) is the record's
//! *body*: it is written last, its size stands up front in `bytes`, and it is never parsed here.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::member::{Hex, Restated, Text};
use crate::error::Stage;
use crate::when::When;

/// The journal format that this host writes, and the newest that it reads.
pub const SCHEMA: u32 = 1;

/// What a record says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A declaration was accepted; it is the body. Written before anything of it is applied.
    Accepted,
    /// An object is about to be made or changed, and what was there before.
    Began,
    /// An object was read back and is as declared.
    Applied,
    /// An object was removed from the machine.
    Removed,
    /// An object is no longer owned and was not touched.
    Forgotten,
    /// An object should have been removed, could not be, and is no longer owned.
    Left,
    /// An object passed from one source to another.
    Claimed,
    /// A resource failed.
    Failed,
    /// A pass that changed or failed something, or applied an accepted declaration whole.
    Pass,
    /// A declaration that cut the link is not to be applied.
    Quarantined,
    /// The host joined a mesh.
    Enrolled,
    /// A person holds the machine still.
    Paused,
    /// And lets go of it.
    Resumed,
    /// A report waits to be sent; it is the body.
    Reported,
    /// The report of this id has been taken.
    Sent,
    /// The first line of every journal.
    Snapshot,
}

impl Kind {
    /// The word for it, as the journal writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Accepted => "accepted",
            Kind::Began => "began",
            Kind::Applied => "applied",
            Kind::Removed => "removed",
            Kind::Forgotten => "forgotten",
            Kind::Left => "left",
            Kind::Claimed => "claimed",
            Kind::Failed => "failed",
            Kind::Pass => "pass",
            Kind::Quarantined => "quarantined",
            Kind::Enrolled => "enrolled",
            Kind::Paused => "paused",
            Kind::Resumed => "resumed",
            Kind::Reported => "reported",
            Kind::Sent => "sent",
            Kind::Snapshot => "snapshot",
        }
    }

    /// What stands between the other members and the body.
    pub(super) fn body_marker(self) -> &'static [u8] {
        match self {
            Kind::Accepted => b",\"declaration\":",
            Kind::Applied => b",\"resource\":",
            _ => b",\"detail\":",
        }
    }
}

/// Where a declaration came from, in the order in which passes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// A file that only root can write.
    Bundle,
    /// A person at this machine.
    Local,
    /// The mesh.
    Link,
}

impl Outcome {
    /// The word in reports and the journal.
    pub fn as_str(self) -> &'static str {
        match self {
            Outcome::Unchanged => "unchanged",
            Outcome::Created => "created",
            Outcome::Changed => "changed",
            Outcome::Corrected => "corrected",
            Outcome::Removed => "removed",
            Outcome::Forgotten => "forgotten",
            Outcome::Left => "left",
            Outcome::Claimed => "claimed",
            Outcome::Failed => "failed",
            Outcome::NotReached => "not_reached",
            Outcome::NotApplicable => "not_applicable",
            Outcome::Converged => "converged",
            Outcome::Refused => "refused",
            Outcome::Paused => "paused",
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Source {
    /// All of them, in the order of a pass.
    pub const ALL: [Source; 3] = [Source::Bundle, Source::Local, Source::Link];

    /// The word for it, as journal and report write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Source::Bundle => "bundle",
            Source::Local => "local",
            Source::Link => "link",
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Whether the host made an object or found it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Made {
    /// The host made it.
    Created,
    /// It was there before.
    Adopted,
    /// In [`Kind::Failed`] only: it was seen that nothing had been made, and the intent is
    /// withdrawn.
    Nothing,
}

/// How a resource or a pass ended, in the report's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It was as declared.
    Unchanged,
    /// It was not there.
    Created,
    /// Its declaration had changed.
    Changed,
    /// The machine had drifted.
    Corrected,
    /// It is gone from the machine.
    Removed,
    /// It is no longer owned, and was not touched.
    Forgotten,
    /// It should have gone and could not.
    Left,
    /// It has passed to another source.
    Claimed,
    /// It, or the pass, failed.
    Failed,
    /// Something before it failed.
    NotReached,
    /// It makes no sense in this root.
    NotApplicable,
    /// A pass: everything is as declared.
    Converged,
    /// A pass: its declaration was refused.
    Refused,
    /// A pass: a person holds the machine still.
    Paused,
}

/// One source's part in a pass.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Covered {
    /// Whose declaration.
    pub source: Source,
    /// Which one.
    pub sha256: Hex<32>,
    /// All of it is applied.
    pub whole: bool,
}

/// What a pass did, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Counts {
    /// Created or changed.
    pub changed: u32,
    /// Drifted and put right.
    pub corrected: u32,
    /// Removed.
    pub removed: u32,
    /// Failed.
    pub failed: u32,
}

/// A record. Members stand in the order in which they are written; `seq`, `at` and `bytes` are
/// filled in by the store.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record<'a> {
    /// Its number; one more than the record before.
    pub seq: u64,
    /// When it was written; in a record that restates, when what it says came about.
    pub at: When,
    /// What it says.
    pub kind: Kind,
    /// Size of the body, which is not part of this struct.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Snapshot: the journal's format.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<u32>,
    /// Snapshot: how many records after it restate what was known before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub records: Option<u64>,
    /// Snapshot: how many objects those are about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owned: Option<u64>,
    /// No serial over the link may be lower from now on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub floor: Option<u64>,
    /// A restated [`Kind::Applied`]: the record of its last change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<u64>,
    /// On whose behalf.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    /// The object, `space:name`.
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub object: Option<Text<'a>>,
    /// A restated [`Kind::Applied`]: objects that the other members say the same of, in place of
    /// one.
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    pub objects: Vec<Restated<'a>>,
    /// The resource's type.
    #[serde(borrow, rename = "type", skip_serializing_if = "Option::is_none")]
    pub of_type: Option<Text<'a>>,
    /// The resource's, pass's or report's id.
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub id: Option<Text<'a>>,
    /// Made or found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub made: Option<Made>,
    /// The object was made along with another (a missing parent) and is declared by none.
    #[serde(default, skip_serializing_if = "is_false")]
    pub implied: bool,
    /// What the object holds is secret, or was until it is seen to have been replaced.
    #[serde(default, skip_serializing_if = "is_false")]
    pub secret: bool,
    /// How it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// Digest of the declared form.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub form: Option<Hex<8>>,
    /// First half-line of the SHA-256 of the declaration that the form stands in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub declared_by: Option<Hex<8>>,
    /// What must be put back on release.
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub before: Option<Text<'a>>,
    /// Applied: what it follows and what had changed up to this record, it took in by a start.
    /// Began: that start is about to begin.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started: Option<u64>,
    /// Applied: likewise, by a reload.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reloaded: Option<u64>,
    /// Claimed: who had it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<Source>,
    /// Claimed: who has it now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<Source>,
    /// Accepted: SHA-256 of the declaration as it arrived.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sha256: Option<Hex<32>>,
    /// Accepted: its serial.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub serial: Option<u64>,
    /// Accepted: the node it is addressed to.
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub node: Option<Text<'a>>,
    /// Failed: where in the pass.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stage: Option<Stage>,
    /// Failed: what was being done.
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub doing: Option<Text<'a>>,
    /// Failed: the cause.
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Text<'a>>,
    /// Why a person paused the host, or why an object was left.
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Text<'a>>,
    /// When a pause ends by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<When>,
    /// What started the pass.
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub trigger: Option<Text<'a>>,
    /// The declarations that the pass went over.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<Covered>,
    /// What the pass did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counts: Option<Counts>,
}

impl Record<'_> {
    /// A record of this kind that says nothing else yet.
    pub fn new(kind: Kind) -> Record<'static> {
        Record {
            seq: 0,
            at: When(0),
            kind,
            bytes: None,
            schema: None,
            records: None,
            owned: None,
            floor: None,
            last: None,
            source: None,
            object: None,
            objects: Vec::new(),
            of_type: None,
            id: None,
            made: None,
            implied: false,
            secret: false,
            outcome: None,
            form: None,
            declared_by: None,
            before: None,
            started: None,
            reloaded: None,
            from: None,
            to: None,
            sha256: None,
            serial: None,
            node: None,
            stage: None,
            doing: None,
            cause: None,
            reason: None,
            until: None,
            trigger: None,
            sources: Vec::new(),
            counts: None,
        }
    }
}

fn is_false(flag: &bool) -> bool {
    !flag
}
