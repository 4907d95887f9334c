//! What crosses between the service and a child that makes a pass for it: an order, as an argument,
//! and words, one JSON value a line. Pure.
//!
//! The service never opens the store: what it knows of it, a child has told. So it stays small,
//! cannot be held up by a disk, and has nothing to do where the store is damaged.

use serde::{Deserialize, Serialize};

use crate::error::Stage;
use crate::report::Trigger;
use crate::store::{Outcome, Source};

/// The argument that makes the binary such a child: the next one is the order, then come flags.
pub const ERRAND_ARGUMENT: &str = "errand-for-the-service";

/// How many of a kind are told one by one: it is for people to read.
pub const MOST_TOLD: usize = 64;

/// The longest text of somebody else's that is told, in bytes.
pub const LONGEST: usize = 1000;

/// What a child is to do.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Order {
    /// Make a pass, for this reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pass: Option<Trigger>,
    /// The inotify instance that it arms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drift: Option<i32>,
    /// What is contested already.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub contested: Vec<(Source, String)>,
    /// Reports that have been taken, by their ids.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sent: Vec<String>,
}

/// What a child says.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Word {
    /// It begins.
    Begun {
        /// The longest limit of a resource, in seconds.
        longest_s: u64,
    },
    /// So far it has come.
    Progress {
        /// Resources that have had their turn.
        done: usize,
        /// Of so many.
        all: usize,
        /// What happens now.
        doing: String,
    },
    /// Why there is no pass.
    Unable {
        /// The exit code that it would be for a command.
        exit: u8,
        /// One line for a person.
        said: String,
    },
    /// The pass is over, and this is how things stand.
    Told(Box<Told>),
}

/// How things stand.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Told {
    /// The pass.
    pub pass: Option<Pass>,
    /// What was declared by whom.
    pub declared: Vec<Declared>,
    /// How many objects the host owns.
    pub owned: usize,
    /// What keeps failing, the first of it.
    pub failing: Vec<Failing>,
    /// How much that is in all.
    pub failing_count: usize,
    /// A person holds the machine still.
    pub paused: Option<Paused>,
    /// What is watched.
    pub watched: usize,
    /// What could not be watched.
    pub unwatched: usize,
    /// Why not.
    pub unwatched_why: Option<String>,
    /// Names that are not there, each with the watch of the directory that it is missed in.
    pub awaited: Vec<(i32, String)>,
    /// The watches of what is contested.
    pub contested: Vec<i32>,
    /// Reports that wait to be sent.
    pub waiting: usize,
    /// The journal as the child left it: inode and length.
    pub journal: Option<(u64, u64)>,
}

/// What the report says, in short.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Pass {
    /// The report's id.
    pub id: String,
    /// What started it.
    pub trigger: Trigger,
    /// How it ended.
    pub outcome: Outcome,
    /// When it started.
    pub started: String,
    /// And ended.
    pub finished: String,
    /// How many resources are declared.
    pub declared: usize,
    /// Created or changed.
    pub changed: usize,
    /// Drifted, and put right.
    pub corrected: usize,
    /// Removed.
    pub removed: usize,
    /// Failed.
    pub failed: usize,
    /// What was done, the first of it.
    pub lines: Vec<Line>,
    /// What failed, the first of it.
    pub errors: Vec<Failed>,
}

/// What became of one resource.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Line {
    /// Its id.
    pub id: String,
    /// Whose it is.
    pub source: Source,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// How it ended.
    pub outcome: Outcome,
    /// What differed or was done.
    pub detail: String,
}

/// One failure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failed {
    /// Where in the pass.
    pub stage: Stage,
    /// Whose.
    pub resource: Option<String>,
    /// What was being done.
    pub doing: String,
    /// Why it did not succeed.
    pub cause: String,
}

/// A source's declaration.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Declared {
    /// Whose it is.
    pub source: Source,
    /// All of it is applied, and nothing of it failing.
    pub holds: bool,
}

/// A resource that keeps failing.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Failing {
    /// Its id.
    pub id: String,
    /// Whose it is.
    pub source: Source,
    /// Since when, in seconds since 1970.
    pub since: u64,
    /// What was being done.
    pub doing: String,
    /// Why it does not succeed.
    pub cause: String,
}

/// A pause.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Paused {
    /// Why.
    pub reason: String,
    /// Until when, in seconds since 1970.
    pub until: Option<u64>,
}

impl Pass {
    /// What was put right in vain: somebody undid it before it was looked at again. Only of files
    /// and their like: elsewhere it is more often a tool that does not do what it says.
    pub fn undone(&self) -> impl Iterator<Item = &Line> {
        let is_path = |line: &&Line| matches!(&*line.kind, "file" | "directory" | "symlink");
        let undone = |line: &&Line| {
            self.errors.iter().any(|error| {
                matches!(error.stage, Stage::ReadBack | Stage::Closing)
                    && error.resource.as_deref() == Some(&line.id)
            })
        };
        let failed = self.lines.iter().filter(|line| line.outcome == Outcome::Failed);
        failed.filter(is_path).filter(undone)
    }
}

/// `text` as far as it is told.
pub fn cut(text: &str) -> String {
    match text.char_indices().take_while(|(at, _)| *at < LONGEST).last() {
        Some((at, last)) if at + last.len_utf8() < text.len() => {
            format!("{}…", &text[..at + last.len_utf8()])
        }
        _ => text.to_owned(),
    }
}
