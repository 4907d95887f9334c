//! What the service knows, all of it told by children, and what of that is news to say.

use std::collections::BTreeMap;
use std::time::Duration;

use super::contest::{Contest, Key};
use super::errand::{Line, Pass, Told};
use super::log::{Log, Priority};
use super::metrics::{Metrics, Moment};
use super::running::Unable;
use super::side::Side;
use super::status::{self, Doing, LastPass, Status, SERVICE};
use crate::machine;
use crate::plain::counted;
use crate::report::Trigger;
use crate::store::{Outcome, Source, When};

/// Lines that one pass may be worth, for what it did and for what it failed at.
const MOST_LINES: usize = 20;

/// The exit code of a command where another process holds the pass lock.
const LOCKED: u8 = 4;

/// What is known.
pub(super) struct Known {
    since: String,
    told: Told,
    /// Why there is no pass.
    unable: Option<String>,
    failing: BTreeMap<(Source, String), String>,
    contest: Contest,
    overflowed: bool,
    metrics: Metrics,
    longest_turn: Duration,
}

impl Known {
    pub fn new(now: When) -> Known {
        Known {
            since: now.to_string(),
            told: Told::default(),
            unable: None,
            failing: BTreeMap::new(),
            contest: Contest::default(),
            overflowed: false,
            metrics: Metrics::default(),
            longest_turn: Duration::ZERO,
        }
    }

    /// The loop waits again, after having done something for so long.
    pub fn waits(&mut self, turn: Duration) {
        self.longest_turn = self.longest_turn.max(turn);
    }

    /// The journal as the last child left it.
    pub fn journal(&self) -> Option<(u64, u64)> {
        self.told.journal
    }

    /// The last pass put something right in vain.
    pub fn was_undone(&self) -> bool {
        self.told.pass.as_ref().is_some_and(|pass| pass.undone().next().is_some())
    }

    pub fn is_paused(&self) -> bool {
        self.told.paused.is_some()
    }

    /// How long it is until the pause ends by itself.
    pub fn pause_ends(&self, now: When) -> Option<Duration> {
        let until = self.told.paused.as_ref()?.until?;
        Some(Duration::from_secs(until.saturating_sub(now.0).max(1)))
    }

    /// What is contested, as a child is told.
    pub fn contested_keys(&self) -> Vec<Key> {
        let keys = self.contest.contested().map(|it| it.key.clone());
        keys.take(super::errand::MOST_TOLD).collect()
    }

    /// A child has told this; `span` ends what is contested.
    pub fn take(&mut self, log: &mut Log, told: Told, span: Duration, now: Duration) {
        let wall = machine::now().0;
        self.metrics.pass(&told, wall);
        log.settle("locked");
        if self.unable.take().is_some() {
            log.settle("unable");
            log.say(Priority::Notice, "passes are made again");
        }
        if let Some(pass) = &told.pass {
            self.overflowed = false;
            let key = |line: &Line| (line.source, line.id.clone());
            let is = |line: &&Line| line.outcome == Outcome::Corrected;
            let corrected = pass.lines.iter().filter(is).chain(pass.undone()).map(key);
            let contested = self.contest.note(corrected, span, now, wall);
            say_lines(log, pass);
            let whole = pass.errors.iter().find(|error| error.resource.is_none());
            match whole {
                Some(error) => {
                    let text = format!("pass failed: {}: {}", error.doing, error.cause);
                    log.say_once("pass", Priority::Error, &text);
                }
                None => drop(log.settle("pass")),
            }
            for (source, id) in contested {
                let text = format!(
                    "contested: {id} ({source}) is put right again and again; \
                     something else keeps altering it, and from now on it is given more time"
                );
                log.say(Priority::Warning, &text);
            }
        }
        self.say_failing(log, &told);
        match told.paused.as_ref() {
            Some(paused) => {
                let until = paused.until.map_or("resume".into(), |until| When(until).to_string());
                let text = format!("paused until {until}: {}", paused.reason);
                log.say_once("paused", Priority::Notice, &text);
            }
            None if log.settle("paused") => log.say(Priority::Notice, "no longer paused"),
            None => {}
        }
        match &told.unwatched_why {
            Some(why) => {
                let paths = counted(told.unwatched, "path");
                let text = format!("drift of {paths} is seen by the timer only: {why}");
                log.say_once("unwatched", Priority::Warning, &text);
            }
            None => drop(log.settle("unwatched")),
        }
        self.told = told;
    }

    /// No pass could be made. `journal` is what it was tried on: where that is another one, it is
    /// worth another try.
    pub fn unable(&mut self, log: &mut Log, unable: &Unable, journal: Option<(u64, u64)>) {
        self.told.journal = journal;
        if unable.exit == LOCKED {
            // A person's apply, most likely: the pass comes after it.
            let text = format!("a pass waits: {}", unable.said);
            return log.say_once("locked", Priority::Info, &text);
        }
        self.metrics.lost();
        let text = format!("no pass was made: {}", unable.said);
        log.say_once("unable", Priority::Error, &text);
        self.unable = Some(unable.said.clone());
    }

    /// Signs of drift were lost.
    pub fn overflow(&mut self, log: &mut Log) {
        self.overflowed = true;
        self.metrics.overflow();
        let text = "more was altered than inotify(7) keeps in mind: a pass looks at everything";
        log.say(Priority::Warning, text);
    }

    fn say_failing(&mut self, log: &mut Log, told: &Told) {
        let now: BTreeMap<(Source, String), String> = told
            .failing
            .iter()
            .map(|it| ((it.source, it.id.clone()), format!("{}: {}", it.doing, it.cause)))
            .collect();
        let new = now.iter().filter(|(key, why)| self.failing.get(*key) != Some(*why));
        for ((source, id), why) in new.take(MOST_LINES) {
            log.say(Priority::Error, &format!("failing: {id} ({source}): {why}"));
        }
        let is_all = told.failing_count == told.failing.len();
        let gone = self.failing.keys().filter(|key| is_all && !now.contains_key(*key));
        for (source, id) in gone.take(MOST_LINES) {
            log.say(Priority::Notice, &format!("no longer failing: {id} ({source})"));
        }
        self.failing = now;
    }

    /// The line for the service manager.
    pub fn words(&self, doing: Doing) -> String {
        let now = match doing {
            Doing::Waiting => "waiting",
            Doing::Passing => "a pass runs",
            Doing::Paused => "paused",
            Doing::Stopping => "stopping",
        };
        let last = match (&self.unable, &self.told.pass) {
            (Some(why), _) => format!("no pass was made: {why}"),
            (None, Some(pass)) => format!("last pass {} at {}", pass.outcome, pass.finished),
            (None, None) => "no pass yet".into(),
        };
        crate::plain::plain(&format!("{now}; {last}")).into_owned()
    }

    /// The document for `status`.
    pub fn status<'k>(
        &'k self,
        doing: Doing,
        passing: Option<Trigger>,
        next: Option<u64>,
        side: &dyn Side,
    ) -> Status<'k> {
        Status {
            schema: SERVICE,
            pid: std::process::id(),
            host: env!("CARGO_PKG_VERSION"),
            since: &self.since,
            doing,
            passing,
            unable: self.unable.as_deref(),
            last_pass: self.told.pass.as_ref().map(LastPass::from),
            next_pass: next.map(|next| When(next).to_string()),
            drift: status::drift(&self.told, self.overflowed),
            contested: status::contested(&self.contest),
            reports_waiting: self.told.waiting,
            link: side.status(),
        }
    }

    /// The text of the metrics file.
    pub fn metrics(&self, linked: bool) -> String {
        let moment = Moment {
            contested: self.contest.contested().count(),
            linked,
            able: self.unable.is_none(),
            longest_turn_ms: self.longest_turn.as_millis().try_into().unwrap_or(u64::MAX),
        };
        self.metrics.text(&self.told, moment)
    }
}

/// What a pass did, one line each, and its end where it did anything.
fn say_lines(log: &Log, pass: &Pass) {
    let acted = |line: &&Line| {
        !matches!(line.outcome, Outcome::Failed | Outcome::NotReached | Outcome::NotApplicable)
    };
    let told: Vec<&Line> = pass.lines.iter().filter(acted).collect();
    for line in told.iter().take(MOST_LINES) {
        let Line { id, source, kind, outcome, detail } = line;
        let detail = if detail.is_empty() { String::new() } else { format!(": {detail}") };
        log.say(Priority::Notice, &format!("{outcome} {kind} {id} ({source}){detail}"));
    }
    let counts = [
        (pass.changed, "changed"),
        (pass.corrected, "corrected"),
        (pass.removed, "removed"),
        (pass.failed, "failed"),
    ];
    let counts: Vec<String> = counts
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    // A pass that only fails as before is said by nothing: its causes were.
    if !told.is_empty() {
        let (outcome, trigger) = (pass.outcome, pass.trigger.as_str());
        let counts = counts.join(", ");
        log.say(Priority::Info, &format!("pass {outcome} ({trigger}): {counts}"));
    }
}
