//! The child that makes a pass for the service: does what it is ordered, and says what came of it,
//! one JSON value a line on standard output.

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use super::commands::{in_force, recorded_pass, works, Hands, Place};
use super::table::Command;
use super::watch::{interrupted, listen};
use super::{parse, Invocation};
use crate::accept;
use crate::error::{Error, Stage};
use crate::machine::{self, Drift, Machine, Watched};
use crate::plan::Claims;
use crate::reconcile::{Options, Watch, Work};
use crate::report::{Outcome, Report, Trigger};
use crate::resource::Question;
use crate::service::errand::{
    cut, Declared, Failed, Failing, Line, Order, Pass, Paused, Told, Word, MOST_TOLD,
};
use crate::spool;
use crate::store::{self, Owned, Secrets, Source, Store};

/// How often it is said what happens.
const EVERY: Duration = Duration::from_millis(500);

/// How long another process may hold the store: the service tries again, and must not be held up
/// where it is asked to end.
const PATIENCE: Duration = Duration::from_secs(2);

/// Does what the service ordered: the first argument is the order, the rest are flags.
pub fn errand_main(arguments: &[OsString]) -> ExitCode {
    listen();
    let done = errand(arguments);
    let code = done.as_ref().map_or_else(Error::exit_code, |_| 0);
    let word = match done {
        Ok(told) => Word::Told(Box::new(told)),
        Err(error) => Word::Unable { exit: code, said: cut(&all_of(&error)) },
    };
    say(&word);
    ExitCode::from(code)
}

/// The error and the first of what is wrong.
fn all_of(error: &Error) -> String {
    match error {
        Error::Refused { faults, .. } => {
            let faults: Vec<String> = faults.iter().take(5).map(ToString::to_string).collect();
            format!("{error}: {}", faults.join("; "))
        }
        _ => error.to_string(),
    }
}

/// Nobody may be listening any more, and what is done is recorded all the same.
fn say(word: &Word) {
    let mut line = serde_json::to_vec(word).expect("a word is plain JSON");
    line.push(b'\n');
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(&line).and_then(|()| out.flush());
}

fn errand(arguments: &[OsString]) -> Result<Told, Error> {
    let (order, flags) = arguments
        .split_first()
        .and_then(|(order, flags)| Some((serde_json::from_str::<Order>(order.to_str()?), flags)))
        .ok_or_else(|| Error::Usage("this form is the service's own".into()))?;
    let order = order.map_err(|error| Error::Usage(format!("read the order: {error}")))?;
    let name = OsString::from(Command::Reconcile.entry().name);
    let it = parse(std::iter::once(name).chain(flags.iter().cloned()))?;
    obey(&it, order)
}

fn obey(it: &Invocation, order: Order) -> Result<Told, Error> {
    let place = Place::of(it)?;
    let mut told = Told::default();
    let mut store = place.store_within(PATIENCE)?;
    spool::sent(&mut store, &order.sent, machine::now())?;
    if let Some(trigger) = order.pass {
        pass(&place, &mut store, trigger, order, &mut told)?;
    }
    let state = store.state();
    told.owned = state.owned_len();
    let all: Vec<Failing> = state
        .failing()
        .map(|(source, id, why)| Failing {
            id: id.into(),
            source,
            since: why.since,
            doing: cut(&why.doing),
            cause: cut(&why.cause),
        })
        .collect();
    let holds = |source| state.is_whole(source) && all.iter().all(|it| it.source != source);
    let declared = Source::ALL.into_iter().filter(|source| state.accepted(*source).is_some());
    told.declared = declared.map(|source| Declared { source, holds: holds(source) }).collect();
    told.failing_count = all.len();
    told.failing = all.into_iter().take(MOST_TOLD).collect();
    let paused = accept::paused(state, machine::now());
    told.paused = paused.map(|it| Paused { reason: it.reason.clone().into(), until: it.until });
    told.waiting = spool::waiting(state).count();
    told.journal = store::journal_place(&place.state);
    Ok(told)
}

fn pass(
    place: &Place,
    store: &mut Store,
    trigger: Trigger,
    order: Order,
    told: &mut Told,
) -> Result<(), Error> {
    let mut machine = place.machine()?;
    let secrets = Secrets::read(&place.state)?;
    let declared = in_force(place, store, secrets.as_ref())?;
    let works = works(&declared);
    let limits = works.iter().flat_map(|work| work.declaration.resources.iter());
    let longest_s = limits.map(|declared| declared.timeout.as_secs()).max().unwrap_or(0);
    say(&Word::Begun { longest_s });
    let drift = order.drift.map(Drift::inherited).transpose();
    let drift = drift.map_err(|error| Error::failed(Stage::Observe, "watch for drift", error))?;
    let mut watch = Teller { drift, contested: order.contested, next: None };
    let options = Options {
        trigger,
        diffs: false,
        claims: Claims::BySource,
        own: &place.own,
        watch: &mut watch,
    };
    let (machine, secrets) = (&mut machine, secrets.as_ref());
    let mut hands = Hands { place, machine, store, secrets };
    let report = recorded_pass(&mut hands, &works, options)?;
    told.pass = Some(in_short(&report));
    if let Some(drift) = watch.drift {
        let armed = drift.armed;
        (told.watched, told.unwatched) = (armed.watched, armed.unwatched);
        (told.unwatched_why, told.awaited) = (armed.why, armed.awaited);
        told.contested = armed.marked;
    }
    Ok(())
}

fn in_short(report: &Report<'_>) -> Pass {
    let line = |line: &crate::report::Line| Line {
        id: line.id.to_string(),
        source: line.source,
        kind: line.kind.to_string(),
        outcome: line.outcome,
        detail: cut(&line.detail),
    };
    let failed = |error: &crate::report::Failure| Failed {
        stage: error.stage,
        resource: error.resource.as_ref().map(ToString::to_string),
        doing: cut(&error.doing),
        cause: cut(&error.cause),
    };
    let is_told = |line: &&crate::report::Line| {
        !matches!(line.outcome, Outcome::NotReached | Outcome::NotApplicable | Outcome::Claimed)
    };
    Pass {
        id: report.id.clone(),
        trigger: report.trigger,
        outcome: report.outcome,
        started: report.started.clone(),
        finished: report.finished.clone(),
        declared: report.declared(),
        changed: report.count(&[Outcome::Created, Outcome::Changed]),
        corrected: report.count(&[Outcome::Corrected]),
        removed: report.count(&[Outcome::Removed]),
        failed: report.count(&[Outcome::Failed]),
        lines: report.lines.iter().filter(is_told).take(MOST_TOLD).map(line).collect(),
        errors: report.errors.iter().take(MOST_TOLD).map(failed).collect(),
    }
}

/// Watches a pass for the service.
struct Teller {
    drift: Option<Drift>,
    contested: Vec<(Source, String)>,
    /// Not before then again.
    next: Option<Instant>,
}

impl Watch for Teller {
    fn progress(&mut self, done: usize, all: usize, doing: &str) {
        let now = Instant::now();
        if self.next.is_none_or(|next| now >= next) {
            self.next = Some(now + EVERY);
            say(&Word::Progress { done, all, doing: cut(doing) });
        }
    }

    fn releasing(&mut self, _: &[Owned<'_>]) {}

    fn interrupted(&self) -> bool {
        interrupted()
    }

    fn is_contested(&self, source: Source, id: &str) -> bool {
        self.contested.iter().any(|(of, contested)| *of == source && contested == id)
    }

    fn looking(&mut self, machine: &mut Machine, works: &[Work<'_>]) -> bool {
        let Some(mut drift) = self.drift.take() else { return false };
        let all = works.iter().flat_map(|work| {
            let source = work.source;
            work.declaration.resources.iter().map(move |declared| (source, declared))
        });
        let watched = all.filter_map(|(source, declared)| {
            let Question::Path { path, .. } = declared.resource.question() else { return None };
            let directory = declared.resource.kind() == "directory";
            let marked = self.is_contested(source, &declared.id);
            Some(Watched { path, directory, marked })
        });
        machine.arm(&mut drift, watched);
        self.drift = Some(drift);
        true
    }
}
