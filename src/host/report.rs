//! What a pass did: the document that `apply --json` prints and the link will carry. Pure.
//!
//! A resource that was found unchanged costs nothing here: only what else happened is held, and the
//! rest is filled in from the declarations when the report is written.

use serde::ser::{SerializeSeq, Serializer};
use serde::{Deserialize, Serialize};

use crate::declaration::{Declaration, Declared, Fault};
use crate::error::{Error, Stage};
pub use crate::store::Outcome;
use crate::store::Source;

/// What started a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trigger {
    /// The service has started.
    Start,
    /// A declaration was accepted over the link.
    Declaration,
    /// A person or a script ran a command.
    Command,
    /// The link is back.
    Reconnect,
    /// Something that is declared was seen to be altered.
    Drift,
    /// It was time.
    Timer,
}

/// `schema` of a report.
pub const REPORT: &str = "report/1";

/// `schema` of a plan: the same document, of what would be done.
pub const PLAN: &str = "plan/1";

/// One resource, or one object let go of, that was not simply found unchanged.
#[derive(Debug, Serialize)]
pub struct Line {
    /// The id it is, or was last, declared by.
    pub id: Box<str>,
    /// Who declares it, or owned it.
    pub source: Source,
    /// The type's name.
    #[serde(rename = "type")]
    pub kind: Box<str>,
    /// How it ended.
    pub outcome: Outcome,
    /// Wall time, in milliseconds; shared evenly by what was done together.
    pub took_ms: u64,
    /// What differed, was done or stood in the way.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub detail: Box<str>,
    /// Old against new, where there is text to show.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff: Option<Box<str>>,
    /// Something else keeps altering it: it was put right again and again before.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub contested: bool,
    /// Its place in its declaration; `None` of what is no longer declared.
    #[serde(skip)]
    pub position: Option<usize>,
}

/// One failure.
#[derive(Debug, Serialize)]
pub struct Failure {
    /// Where in the pass.
    pub stage: Stage,
    /// The resource's id, where it is one's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource: Option<Box<str>>,
    /// What was being done, to what.
    pub doing: String,
    /// Why it did not succeed.
    pub cause: String,
}

impl Trigger {
    /// The word in reports and the journal.
    pub fn as_str(self) -> &'static str {
        match self {
            Trigger::Start => "start",
            Trigger::Declaration => "declaration",
            Trigger::Command => "command",
            Trigger::Reconnect => "reconnect",
            Trigger::Drift => "drift",
            Trigger::Timer => "timer",
        }
    }
}

impl Failure {
    /// What is wrong with the declaration `what`.
    pub fn of_fault(what: &str, fault: &Fault) -> Failure {
        let mut doing = format!("read {what}");
        for part in [&fault.place, &fault.field].into_iter().filter(|part| !part.is_empty()) {
            doing = format!("{doing}: {part}");
        }
        let mend = if fault.mend.is_empty() { "" } else { "; " };
        let cause = format!("{}{mend}{}", fault.wrong, fault.mend);
        Failure { stage: Stage::Read, resource: None, doing, cause }
    }

    /// The failure as an error of the whole run.
    pub fn of(error: Error) -> Failure {
        match error {
            Error::Failed { stage, resource, doing, cause } => {
                Failure { stage, resource, doing, cause }
            }
            other => Failure {
                stage: Stage::Record,
                resource: None,
                doing: "use the store".into(),
                cause: other.to_string(),
            },
        }
    }
}

/// A declaration that a pass was about.
#[derive(Debug, Serialize)]
pub struct About {
    /// Whose it is.
    pub source: Source,
    /// Its serial, where it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub serial: Option<u64>,
    /// SHA-256 of its bytes, in hexadecimal.
    pub sha256: String,
}

/// The whole report.
#[derive(Debug)]
pub struct Report<'d> {
    /// `report/1`, or `plan/1` where nothing was done.
    pub schema: &'static str,
    /// Unlike any other report's.
    pub id: String,
    /// This host's identity, where it has one.
    pub node: Option<Box<str>>,
    /// What started the pass.
    pub trigger: Trigger,
    /// When it started, RFC 3339 in UTC.
    pub started: String,
    /// When it ended.
    pub finished: String,
    /// How it ended.
    pub outcome: Outcome,
    /// What each declaration said, with its source.
    pub declarations: Vec<(Source, &'d Declaration)>,
    /// What was not simply found unchanged, in order.
    pub lines: Vec<Line>,
    /// Everything that failed.
    pub errors: Vec<Failure>,
}

impl Report<'_> {
    /// How many resources ended so.
    pub fn count(&self, wanted: &[Outcome]) -> usize {
        self.lines.iter().filter(|line| wanted.contains(&line.outcome)).count()
    }

    /// Every declared resource in its order, each with its line where it has one, then a line for
    /// what was let go of; one declaration after the other.
    pub fn turns(&self) -> impl Iterator<Item = (Source, Option<&Declared>, Option<&Line>)> {
        self.declarations.iter().flat_map(|&(source, declaration)| {
            let mine = move |line: &&Line| line.source == source;
            let mut lines = self.lines.iter().filter(mine).peekable();
            let resources = declaration.resources.iter().enumerate();
            let declared = resources.map(move |(position, declared)| {
                let line = lines.next_if(|line| line.position == Some(position));
                (source, Some(declared), line)
            });
            let parted = self.lines.iter().filter(mine).filter(|line| line.position.is_none());
            declared.chain(parted.map(move |line| (source, None, Some(line))))
        })
    }

    /// How many resources are declared in all.
    pub fn declared(&self) -> usize {
        self.declarations.iter().map(|(_, declaration)| declaration.resources.len()).sum()
    }
}

impl Serialize for Report<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Shape<'r> {
            schema: &'static str,
            id: &'r str,
            #[serde(skip_serializing_if = "Option::is_none")]
            node: Option<&'r str>,
            host: &'static str,
            trigger: Trigger,
            declarations: Vec<About>,
            started: &'r str,
            finished: &'r str,
            outcome: Outcome,
            changed: usize,
            corrected: usize,
            removed: usize,
            failed: usize,
            resources: Lines<'r>,
            errors: &'r [Failure],
        }
        let about = |(source, declaration): &(Source, &Declaration)| About {
            source: *source,
            serial: declaration.serial,
            sha256: crate::digest::hex(&declaration.sha256),
        };
        Shape {
            schema: self.schema,
            id: &self.id,
            node: self.node.as_deref(),
            host: env!("CARGO_PKG_VERSION"),
            trigger: self.trigger,
            declarations: self.declarations.iter().map(about).collect(),
            started: &self.started,
            finished: &self.finished,
            outcome: self.outcome,
            changed: self.count(&[Outcome::Created, Outcome::Changed]),
            corrected: self.count(&[Outcome::Corrected]),
            removed: self.count(&[Outcome::Removed]),
            failed: self.count(&[Outcome::Failed]),
            resources: Lines(self),
            errors: &self.errors,
        }
        .serialize(serializer)
    }
}

/// Every declared resource in its order, then what was let go of.
struct Lines<'r>(&'r Report<'r>);

impl Serialize for Lines<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Unchanged<'r> {
            id: &'r str,
            source: Source,
            #[serde(rename = "type")]
            kind: &'r str,
            outcome: Outcome,
            took_ms: u64,
        }
        let mut seq = serializer.serialize_seq(None)?;
        for turn in self.0.turns() {
            match turn {
                (_, _, Some(line)) => seq.serialize_element(line)?,
                (source, Some(declared), None) => seq.serialize_element(&Unchanged {
                    id: &declared.id,
                    source,
                    kind: declared.resource.kind(),
                    outcome: Outcome::Unchanged,
                    took_ms: 0,
                })?,
                (_, None, None) => {}
            }
        }
        seq.end()
    }
}
