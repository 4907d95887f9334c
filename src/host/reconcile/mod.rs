//! One pass: observe, take steps in order, read back, record, let go, look again.
//!
//! Every source of a declaration and every type of resource goes through this one flow, and a dry
//! run is the same flow without its steps. What differs is data: the declarations, and whether the
//! ledger writes.

mod finish;
mod group;
mod hold;
mod ledger;
mod release;
mod turn;

use std::collections::{BTreeSet, HashMap, HashSet};

use crate::declaration::{Declaration, Fault, Own};
use crate::error::{Error, Stage};
use crate::machine::{self, Machine};
use crate::plan::{self, Claims, Fate};
use crate::report::{Failure, Line, Outcome, Report, Trigger, REPORT};
use crate::resource::{Object, RootPath, Trouble};
use crate::store::{Kind, Owned, Source};

use group::Group;
pub use ledger::Ledger;
use turn::Turn;

/// What is special about some resources of a declaration, by position.
type Fates = HashMap<usize, Fate>;

/// Links: where each was held to lead when the pass began, and where it is declared to lead now.
type Ways = HashMap<Object, (Box<str>, Option<Box<str>>)>;

/// What a pass is about: a source and what it declares.
#[derive(Clone, Copy)]
pub struct Work<'d> {
    /// Whose declaration it is.
    pub source: Source,
    /// What is declared.
    pub declaration: &'d Declaration,
}

/// What a pass tells whoever watches it, and is told by them.
pub trait Watch {
    /// `done` of `all` resources have had their turn; `doing` is what happens now.
    fn progress(&mut self, done: usize, all: usize, doing: &str);

    /// This will be let go of, in this order, once everything declared matches.
    fn releasing(&mut self, goes: &[Owned<'_>]);

    /// Someone asked the pass to end; it does so before the next resource.
    fn interrupted(&self) -> bool;

    /// Something else keeps altering this resource, as far as is known.
    fn is_contested(&self, source: Source, id: &str) -> bool {
        let _ = (source, id);
        false
    }

    /// Everything declared is looked at from here on: whoever wants to see what others do to it
    /// begins now. Comes again after the last step, once all of it is to be looked at again. Says
    /// whether anybody watches, since then nothing may be left out.
    fn looking(&mut self, machine: &mut Machine, works: &[Work<'_>]) -> bool {
        let _ = (machine, works);
        false
    }
}

/// How a pass is to be made.
pub struct Options<'o> {
    /// What started it.
    pub trigger: Trigger,
    /// Whether diffs are wanted: they cost a second read of what changed.
    pub diffs: bool,
    /// What may be taken over.
    pub claims: Claims,
    /// What is the host's own.
    pub own: &'o Own,
    /// Who watches.
    pub watch: &'o mut dyn Watch,
}

/// Makes the machine match what every `work` declares, or in a dry run says what that would take.
///
/// # Errors
/// Where the whole is refused before anything is touched, because it reaches for the host itself or
/// for what another source owns. What fails later stands in the report.
pub fn reconcile<'p, 'd>(
    machine: &'p mut Machine,
    ledger: Ledger<'p>,
    works: &[Work<'d>],
    options: Options<'p>,
) -> Result<Report<'d>, Error> {
    let started = machine::now();
    let all = works.iter().map(|work| work.declaration.resources.len()).sum();
    let mut pass = Pass {
        machine,
        ledger,
        options,
        lines: Vec::new(),
        errors: Vec::new(),
        touched: false,
        promised: HashSet::new(),
        bringing: Vec::new(),
        relinked: HashSet::new(),
        gone: HashMap::new(),
        releasing: Vec::new(),
        leading: HashSet::new(),
        names_releasing: BTreeSet::new(),
        ways: Ways::new(),
        unclosed: Vec::new(),
        seen: (Source::Bundle, Vec::new()),
        stops_at_failure: false,
        not_met: HashSet::new(),
        ended: None,
        settled: 0,
        done: 0,
        all,
    };
    pass.sweep();
    let _ = pass.options.watch.looking(pass.machine, works);
    works.iter().for_each(|work| pass.machine.expect(work.declaration));
    let mut covered = Vec::with_capacity(works.len());
    for work in works {
        let before = pass.errors.len();
        pass.settled = 0;
        if pass.ended.is_none() {
            if let Err(error) = pass.carry(work) {
                pass.end(error);
            }
        }
        if pass.ended.is_some() {
            pass.not_reached(work, pass.settled);
        }
        let whole = pass.ended.is_none() && pass.errors.len() == before;
        covered.push((*work, whole));
    }
    pass.finish(started, covered)
}

/// The report of a pass that was not made, since a person holds the machine still.
pub fn paused_report<'d>(works: &[Work<'d>], trigger: Trigger, reason: &str) -> Report<'d> {
    let now = machine::now().to_string();
    let mut lines = Vec::new();
    for work in works {
        let detail = format!("paused: {reason}");
        let waiting = |position| Turn::of(work, position).line(Outcome::NotReached, 0, &detail);
        lines.extend((0..work.declaration.resources.len()).map(waiting));
    }
    Report {
        schema: REPORT,
        id: machine::random_id(),
        node: None,
        trigger,
        started: now.clone(),
        finished: now,
        outcome: Outcome::Paused,
        declarations: works.iter().map(|work| (work.source, work.declaration)).collect(),
        lines,
        errors: Vec::new(),
    }
}

/// The report, or in a dry run the plan, of a declaration that was refused.
pub fn refused_report(schema: &'static str, what: &str, faults: &[Fault]) -> Report<'static> {
    let now = machine::now().to_string();
    Report {
        schema,
        id: machine::random_id(),
        node: None,
        trigger: Trigger::Command,
        started: now.clone(),
        finished: now,
        outcome: Outcome::Refused,
        declarations: Vec::new(),
        lines: Vec::new(),
        errors: faults.iter().map(|fault| Failure::of_fault(what, fault)).collect(),
    }
}

/// A pass in the making.
struct Pass<'p> {
    machine: &'p mut Machine,
    ledger: Ledger<'p>,
    options: Options<'p>,
    lines: Vec<Line>,
    errors: Vec<Failure>,
    /// A step was taken or, in a dry run, would have been.
    touched: bool,
    /// What will be there once what is pending is carried out; in a dry run, all that would be.
    promised: HashSet<Object>,
    /// Of these, in a dry run, what may bring anything: nobody knows who does not have it.
    bringing: Vec<Object>,
    /// Of these, the links: what lies beyond them cannot be seen yet.
    relinked: HashSet<Object>,
    /// What has been let go of, and how.
    gone: HashMap<Object, Outcome>,
    /// What the source at hand owned at first and no longer declares.
    releasing: Vec<Object>,
    /// Of these, the links: what is declared beyond one has to wait until it is gone.
    leading: HashSet<Object>,
    /// The same in the order of names.
    names_releasing: BTreeSet<Object>,
    /// The links on the way to what is to be let go of.
    ways: Ways,
    /// Directories made along with something, or not, by a pass that was interrupted.
    unclosed: Vec<RootPath>,
    /// Whose resources, at which positions, were looked at after the last step, in order.
    seen: (Source, Vec<usize>),
    /// The declaration at hand is new: what follows a failure keeps its last applied form.
    stops_at_failure: bool,
    /// Positions, in the declaration at hand, of what could not be made to match.
    not_met: HashSet<usize>,
    /// Why the pass goes no further: an interruption, or a store that cannot be written.
    ended: Option<Stage>,
    /// Of the source at hand, every resource before this position has been answered for.
    settled: usize,
    done: usize,
    all: usize,
}

impl Pass<'_> {
    /// Clears away what an interrupted pass left beside what it was making.
    fn sweep(&mut self) {
        if self.ledger.is_dry() {
            return;
        }
        let interrupted: Vec<(RootPath, bool)> = self
            .ledger
            .state()
            .pending()
            .filter_map(|owned| {
                let path = RootPath::parse(owned.object.strip_prefix("path:")?).ok()?;
                Some((path, owned.implied))
            })
            .collect();
        for (path, implied) in interrupted {
            // What cannot be removed is in the way of its own resource, and said there.
            let _ = self.machine.sweep(&path);
            if implied {
                self.unclosed.push(path);
            }
        }
    }

    /// One source's declaration, from its first resource to letting go of what it no longer names.
    fn carry<'d>(&mut self, work: &Work<'d>) -> Result<(), Error> {
        let Work { source, declaration } = *work;
        self.not_met.clear();
        let state = self.ledger.state();
        let fates = plan::fates(source, declaration, state, self.options.claims);
        self.stops_at_failure = state.whole(source) != Some(&declaration.sha256);
        self.releasing = plan::released(source, declaration, state);
        self.releasing.extend(plan::replaced(declaration, &fates, state));
        self.names_releasing = self.releasing.iter().cloned().collect();
        let goes = self.releasing.iter().rev();
        let goes: Vec<Owned<'_>> = goes.filter_map(|object| state.get(object.as_str())).collect();
        self.options.watch.releasing(&goes);
        self.leading = plan::leading(&self.releasing, state);
        self.ways = self.ways(declaration)?;
        let failures = self.errors.len();
        self.advance(work, &fates)?;
        if self.ended.is_some() {
            return Ok(());
        }
        if self.errors.len() == failures {
            self.close_parents()?;
            let goes = self.still_owned(work);
            return self.release(source, goes);
        }
        if self.stops_at_failure {
            self.hold_rest(work)?;
        }
        Ok(())
    }

    /// Closes the intents of parents that are there: no resource's turn does, since none lacks
    /// them any more.
    fn close_parents(&mut self) -> Result<(), Error> {
        for path in std::mem::take(&mut self.unclosed) {
            let object = Object::at(&path);
            let pending = self.ledger.state().get(object.as_str()).and_then(|it| it.pending);
            if pending.is_some() && self.is_there(&path) == Some(true) {
                self.ledger.again(Kind::Applied, &object)?;
            }
        }
        Ok(())
    }

    /// Gives each resource its turn, as far as failures let it.
    fn advance<'d>(&mut self, work: &Work<'d>, fates: &Fates) -> Result<(), Error> {
        let failures = self.errors.len();
        let mut group = Group::default();
        let resources = &work.declaration.resources;
        for position in 0..resources.len() {
            if self.options.watch.interrupted() {
                self.flush(&mut group)?;
                self.interrupt();
                self.settled = position;
                return Ok(());
            }
            let turn = Turn::of(work, position);
            match fates.get(&position) {
                Some(fate) => self.fated(turn, *fate, &mut group)?,
                None => self.turn(turn, &mut group)?,
            }
            if self.stops_at_failure && self.errors.len() > failures {
                return self.flush(&mut group);
            }
            if group.is_empty() {
                self.settled = position + 1;
            }
        }
        self.flush(&mut group)?;
        self.settled = resources.len();
        Ok(())
    }

    /// The turn of a resource that another source has a part in.
    fn fated<'d>(
        &mut self,
        turn: Turn<'d>,
        fate: Fate,
        group: &mut Group<'d>,
    ) -> Result<(), Error> {
        match fate {
            Fate::Claim(from) => self.claim(turn, from, group),
            Fate::Skip(owner) => {
                let detail = match owner {
                    Some(owner) => format!("not taken over: {owner} has it"),
                    None => "another source took it over, for good".into(),
                };
                self.line(turn, Outcome::Claimed, 0, detail, None);
                Ok(())
            }
            Fate::Conflict(owner) => {
                let object = turn.declared().resource.object();
                let doing = format!("make {}", object.name());
                let cause = format!("{owner} owns it; apply with --take to take it over");
                self.fail(turn, &object, Stage::Observe, Trouble::new(doing, cause))
            }
        }
    }

    /// Ownership passes first, so that what is then changed is this source's.
    fn claim<'d>(
        &mut self,
        turn: Turn<'d>,
        from: Source,
        group: &mut Group<'d>,
    ) -> Result<(), Error> {
        let object = turn.declared().resource.object();
        let before = self.lines.len();
        if !self.ledger.is_dry() {
            self.flush(group)?;
            self.ledger.claimed(turn, &object, from)?;
        }
        self.turn(turn, group)?;
        self.flush(group)?;
        let said = self.lines[before..].iter().any(|line| line.position == turn.answers);
        if !said {
            self.line(turn, Outcome::Claimed, 0, format!("from {from}"), None);
        }
        Ok(())
    }

    /// What is to be let go of, the last made first: neither what has gone already to make way for
    /// something, nor what has become what is declared in its place.
    fn still_owned(&self, work: &Work<'_>) -> Vec<Object> {
        if self.releasing.is_empty() {
            return Vec::new();
        }
        let rest = plan::released(work.source, work.declaration, self.ledger.state());
        let stays = |it: &Object| self.gone.contains_key(it) || self.promised.contains(it);
        rest.into_iter().rev().filter(|object| !stays(object)).collect()
    }

    /// A line for a resource that was not simply found unchanged.
    fn line(
        &mut self,
        turn: Turn<'_>,
        outcome: Outcome,
        took_ms: u64,
        detail: String,
        diff: Option<Box<str>>,
    ) {
        self.lines.push(Line { diff, ..turn.line(outcome, took_ms, &detail) });
    }

    /// Answers for a resource that could not be made to match.
    fn fail(
        &mut self,
        turn: Turn<'_>,
        object: &Object,
        stage: Stage,
        trouble: Trouble,
    ) -> Result<(), Error> {
        let id = &turn.declared().id;
        self.ledger.failed(turn.source, object, id, stage, &trouble)?;
        self.not_met.extend(turn.answers);
        self.line(turn, Outcome::Failed, 0, trouble.to_string(), None);
        self.failure(stage, Some(id.clone()), trouble);
        Ok(())
    }

    fn failure(&mut self, stage: Stage, resource: Option<Box<str>>, trouble: Trouble) {
        let Trouble { doing, cause, .. } = trouble;
        self.errors.push(Failure { stage, resource, doing, cause });
    }

    fn interrupt(&mut self) {
        let cause = "a signal asked for it; what was in hand is finished and recorded";
        self.failure(Stage::Interrupted, None, Trouble::new("end the pass", cause));
        self.ended = Some(Stage::Interrupted);
    }

    /// The store cannot be written: nothing more may be done.
    fn end(&mut self, error: Error) {
        self.errors.push(Failure::of(error));
        self.ended = Some(Stage::Record);
    }
}
