//! A resource's turn: is it whose, does it match, what would make it match?

use super::group::{Group, Member};
use super::{Pass, Work};
use crate::declaration::{Declaration, Declared};
use crate::diff;
use crate::error::{Error, Stage};
use crate::plan;
use crate::report::{Line, Outcome};
use crate::resource::{Object, Question, RootPath, Standing, Step, Trouble, Verdict};
use crate::store::Source;

/// A resource whose turn has come.
#[derive(Clone, Copy)]
pub(super) struct Turn<'d> {
    pub source: Source,
    pub declaration: &'d Declaration,
    /// Where in the declaration it stands.
    pub position: usize,
    /// Where in the report's declaration it is answered for.
    pub answers: Option<usize>,
}

impl<'d> Turn<'d> {
    /// The turn of the resource at `position` of what `work` declares.
    pub(super) fn of(work: &Work<'d>, position: usize) -> Turn<'d> {
        let Work { source, declaration } = *work;
        Turn { source, declaration, position, answers: Some(position) }
    }

    /// A line that answers for it.
    pub(super) fn line(&self, outcome: Outcome, took_ms: u64, detail: &str) -> Line {
        let declared = self.declared();
        Line {
            id: declared.id.clone(),
            source: self.source,
            kind: declared.resource.kind().into(),
            outcome,
            took_ms,
            detail: detail.into(),
            diff: None,
            position: self.answers,
        }
    }

    pub(super) fn declared(&self) -> &'d Declared {
        &self.declaration.resources[self.position]
    }
}

/// What a resource's turn came to.
enum Decision<'d> {
    /// It is settled: matches, or was answered for in the lines.
    Settled,
    /// These steps would make it match.
    Act(Verdict<'d>),
    /// It cannot be made to match.
    Fail(Trouble),
}

impl Pass<'_> {
    /// Gives one resource its turn. What there is to do joins `group`.
    pub(super) fn turn<'d>(&mut self, turn: Turn<'d>, group: &mut Group<'d>) -> Result<(), Error> {
        let declared = turn.declared();
        let object = declared.resource.object();
        self.done += 1;
        // What is asked of a command or the kernel may hang on what is pending, and what is pending
        // may make this very thing, as a parent of another.
        let is_path = matches!(declared.resource.question(), Question::Path { .. });
        if !is_path || self.promised.contains(&object) {
            self.flush(group)?;
        }
        match self.decide(turn, &object, group)? {
            Decision::Settled => Ok(()),
            Decision::Fail(trouble) => self.fail(turn, &object, Stage::Observe, trouble),
            Decision::Act(verdict) if self.ledger.is_dry() => {
                self.foresee(turn, &object, verdict);
                Ok(())
            }
            Decision::Act(verdict) => {
                self.touched = true;
                let diff = self.diff(turn.declared(), &verdict);
                self.promised.extend(verdict.steps.iter().filter_map(places).map(at));
                let outcome = self.ledger.outcome(&object, turn, &verdict);
                self.join(turn, object, verdict, outcome, diff, group)
            }
        }
    }

    /// Adds what there is to do, or to record, to what is pending.
    fn join<'d>(
        &mut self,
        turn: Turn<'d>,
        object: Object,
        verdict: Verdict<'d>,
        outcome: Outcome,
        diff: Option<Box<str>>,
        group: &mut Group<'d>,
    ) -> Result<(), Error> {
        let form = self.ledger.form(turn);
        group.push(Member { turn, object, verdict, outcome, form, diff });
        match group.is_full() {
            true => self.flush(group),
            false => Ok(()),
        }
    }

    /// Looks, and looks again after each thing that may lift a trouble: carrying out what is
    /// pending, then letting go of what stands in the way. Each is tried once.
    fn decide<'d>(
        &mut self,
        turn: Turn<'d>,
        object: &Object,
        group: &mut Group<'d>,
    ) -> Result<Decision<'d>, Error> {
        let kind = turn.declared().resource.kind();
        let mut cleared = false;
        loop {
            let known = self.ledger.known(object, kind);
            let trouble = match self.look(turn.declared(), known.standing) {
                Ok(verdict) => match self.missing_parent(&verdict) {
                    None if cleared || !self.buries(object, kind, &verdict) => {
                        return self.weigh(turn, object, verdict, known.note, group)
                    }
                    None => Trouble::new(format!("make {}", object.name()), "something is to go"),
                    Some(parent) => no_parent(object, &parent),
                },
                Err(trouble) => trouble,
            };
            if !group.is_empty() {
                self.flush(group)?;
                continue;
            }
            if let Some(awaited) = trouble.awaits.as_ref().filter(|it| self.promised.contains(it)) {
                let detail = format!("unknown until {awaited} is there");
                return Ok(self.foresee_unknown(turn, object, detail));
            }
            let blockers = plan::blockers(object, kind, &self.releasing, self.ledger.state());
            if cleared || blockers.is_empty() {
                return Ok(Decision::Fail(trouble));
            }
            cleared = true;
            self.touched = true;
            self.release(turn.source, blockers)?;
            if self.ledger.is_dry() {
                let detail = "once what stands there is removed".into();
                return Ok(self.foresee_unknown(turn, object, detail));
            }
        }
    }

    /// The resource as it is now, compared with what is declared.
    pub(super) fn look<'d>(
        &mut self,
        declared: &'d Declared,
        standing: Standing,
    ) -> Result<Verdict<'d>, Trouble> {
        let answer = self.machine.ask(&declared.resource.question(), declared.timeout)?;
        declared.resource.judge(&answer, standing)
    }

    /// The same of a resource that has had its turn.
    pub(super) fn look_again<'d>(
        &mut self,
        declared: &'d Declared,
        object: &Object,
    ) -> Result<Verdict<'d>, Trouble> {
        let known = self.ledger.known(object, declared.resource.kind());
        self.look(declared, known.standing)
    }

    /// What an undisturbed look came to: nothing to do, something to note, or steps.
    fn weigh<'d>(
        &mut self,
        turn: Turn<'d>,
        object: &Object,
        mut verdict: Verdict<'d>,
        note: Option<Outcome>,
        group: &mut Group<'d>,
    ) -> Result<Decision<'d>, Error> {
        if let Some(why) = verdict.not_applicable {
            self.line(turn, Outcome::NotApplicable, 0, why.into(), None);
            return Ok(Decision::Settled);
        }
        // A parent that an earlier resource of the same group makes is not made twice.
        verdict.steps.retain(|step| match places(step) {
            Some(path) => path.as_str() == object.name() || !self.promised.contains(&at(path)),
            None => true,
        });
        if !verdict.steps.is_empty() {
            return Ok(Decision::Act(verdict));
        }
        if let Some(outcome) = note {
            if self.ledger.is_dry() {
                self.line(turn, outcome, 0, noted(outcome), None);
            } else {
                self.join(turn, object.clone(), verdict, outcome, None, group)?;
            }
        }
        Ok(Decision::Settled)
    }

    /// What is to be let go of has its name beneath this, which is no directory. Once this is made,
    /// that name would lead nowhere, or by a link to what is not ours.
    fn buries(&self, object: &Object, kind: &str, verdict: &Verdict) -> bool {
        if verdict.existed || verdict.steps.is_empty() || kind == "directory" {
            return false;
        }
        let beneath = Object::new(object.space(), &format!("{}/", object.name()));
        let first = self.names_releasing.range(&beneath..).next();
        first.is_some_and(|it| it.as_str().starts_with(beneath.as_str()))
    }

    /// In a dry run: says what would be done, and takes it for done.
    fn foresee(&mut self, turn: Turn<'_>, object: &Object, verdict: Verdict<'_>) {
        let diff = self.diff(turn.declared(), &verdict);
        let outcome = self.ledger.outcome(object, turn, &verdict);
        self.promised.extend(verdict.steps.iter().filter_map(places).map(at));
        self.promised.insert(object.clone());
        self.touched = true;
        self.line(turn, outcome, 0, verdict.detail, diff);
    }

    /// In a dry run: what would be done, where looking closer has to wait.
    fn foresee_unknown<'d>(&mut self, turn: Turn, object: &Object, detail: String) -> Decision<'d> {
        self.promised.insert(object.clone());
        self.touched = true;
        self.line(turn, Outcome::Created, 0, detail, None);
        Decision::Settled
    }

    /// The parent that is neither there nor about to be.
    fn missing_parent(&self, verdict: &Verdict) -> Option<RootPath> {
        verdict.needs_parent.clone().filter(|parent| !self.promised.contains(&at(parent)))
    }

    /// Old text against new, where a diff is wanted and there is one to show.
    fn diff(&mut self, declared: &Declared, verdict: &Verdict) -> Option<Box<str>> {
        let new = declared.resource.text().filter(|_| self.options.diffs)?;
        let path = verdict.steps.iter().find_map(|step| match step {
            Step::Place(place) => Some(place.path),
            _ => None,
        })?;
        let old = match verdict.existed {
            true => Some(self.machine.read_text(path, diff::MAX_BYTES as u64)?),
            false => None,
        };
        Some(diff::unified(path.as_str(), old.as_deref(), Some(new)).into())
    }
}

/// The path that a step puts something at.
pub(super) fn places<'a>(step: &Step<'a>) -> Option<&'a RootPath> {
    match step {
        Step::Place(place) => Some(place.path),
        _ => None,
    }
}

pub(super) fn at(path: &RootPath) -> Object {
    Object::new("path", path.as_str())
}

fn no_parent(object: &Object, parent: &RootPath) -> Trouble {
    Trouble {
        awaits: Some(at(parent)),
        ..Trouble::new(
            format!("make {}", object.name()),
            format_args!("its directory {parent} is not there; declare it earlier"),
        )
    }
}

/// What is said of a resource that matches and yet has something to be recorded.
pub(super) fn noted(outcome: Outcome) -> String {
    match outcome {
        Outcome::Unchanged => "there before; adopted",
        Outcome::Claimed => "taken over",
        _ => "finished before an interruption could record it",
    }
    .into()
}
