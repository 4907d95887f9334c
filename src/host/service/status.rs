//! What the service knows that is not history: `/run/mesh-host/status.json`, which `status` reads.
//! Pure.

use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::Value;

use super::contest::Contest;
use super::errand::{Pass, Told};
use crate::report::Trigger;
use crate::store::{Outcome, Source};

/// `schema` of the document.
pub const SERVICE: &str = "service/1";

/// Where it lies in the root.
pub const PLACE: &str = "run/mesh-host/status.json";

/// Where the document lies.
pub fn place(root: &Path) -> PathBuf {
    root.join(PLACE)
}

/// The document.
#[derive(Debug, Serialize)]
pub struct Status<'s> {
    /// [`SERVICE`].
    pub schema: &'static str,
    /// Who wrote it.
    pub pid: u32,
    /// The host's version.
    pub host: &'static str,
    /// Since when it runs.
    pub since: &'s str,
    /// What it is doing.
    pub doing: Doing,
    /// What started the pass that runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub passing: Option<Trigger>,
    /// Why nothing can be applied, if so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unable: Option<&'s str>,
    /// The last pass, whether it had news or not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_pass: Option<LastPass<'s>>,
    /// When the next is due.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_pass: Option<String>,
    /// How drift is seen.
    pub drift: Drift<'s>,
    /// What something else keeps altering.
    pub contested: Vec<Contested<'s>>,
    /// Reports that wait to be sent.
    pub reports_waiting: usize,
    /// The link, as it says itself.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub link: Value,
}

/// What the service is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Doing {
    /// Waiting for a reason to do something.
    Waiting,
    /// A pass runs.
    Passing,
    /// A person holds the machine still.
    Paused,
    /// It is ending.
    Stopping,
}

/// The last pass.
#[derive(Debug, Serialize)]
pub struct LastPass<'s> {
    id: &'s str,
    trigger: Trigger,
    outcome: Outcome,
    started: &'s str,
    finished: &'s str,
    declared: usize,
    changed: usize,
    corrected: usize,
    removed: usize,
    failed: usize,
}

/// How drift is seen.
#[derive(Debug, Serialize)]
pub struct Drift<'s> {
    /// Declared paths of which it is seen at once.
    pub watched: usize,
    /// Declared paths that have only the timer.
    pub unwatched: usize,
    /// Why that is so, or that signs were lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<&'s str>,
}

/// A contested resource.
#[derive(Debug, Serialize)]
pub struct Contested<'s> {
    id: &'s str,
    source: Source,
    /// How often it was put right.
    times: u32,
    since: String,
}

impl<'s> From<&'s Pass> for LastPass<'s> {
    fn from(pass: &'s Pass) -> LastPass<'s> {
        LastPass {
            id: &pass.id,
            trigger: pass.trigger,
            outcome: pass.outcome,
            started: &pass.started,
            finished: &pass.finished,
            declared: pass.declared,
            changed: pass.changed,
            corrected: pass.corrected,
            removed: pass.removed,
            failed: pass.failed,
        }
    }
}

/// The contested resources.
pub fn contested(contest: &Contest) -> Vec<Contested<'_>> {
    let rows = contest.contested().map(|it| (it.key, it.times, it.since));
    rows.map(|((source, id), times, since)| {
        let since = crate::when::When(since).to_string();
        Contested { id, source: *source, times, since }
    })
    .collect()
}

/// How drift is seen, `overflowed` where signs of it were lost since the last pass.
pub fn drift(told: &Told, overflowed: bool) -> Drift<'_> {
    let lost = overflowed.then_some("more happened than the kernel keeps in mind for a reader");
    let why = lost.or(told.unwatched_why.as_deref());
    Drift { watched: told.watched, unwatched: told.unwatched, why }
}
