//! A resource's turn: is it whose, does it match, what would make it match?

use std::time::Instant;

use super::group::{Group, Member};
use super::{Course, Pass, Work};
use crate::declaration::Declared;
use crate::error::{Error, Stage};
use crate::plan::{self, Fate};
use crate::report::{Line, Outcome};
use crate::resource::{Object, RootPath, Standing, Step, Trouble, Verdict};
use crate::store::Source;

/// A resource whose turn has come.
#[derive(Clone, Copy)]
pub(super) struct Turn<'d> {
    pub source: Source,
    pub position: usize,
    pub declared: &'d Declared,
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
        let object = turn.declared.resource.object();
        self.done += 1;
        match self.decide(turn, &object, group)? {
            Decision::Settled => Ok(()),
            Decision::Fail(trouble) => {
                self.fail(turn, &object, Stage::Observe, trouble);
                Ok(())
            }
            Decision::Act(verdict) if self.ledger.is_dry() => {
                self.foresee(turn, &object, verdict);
                Ok(())
            }
            Decision::Act(verdict) => {
                if !self.touched {
                    self.guard_all()?;
                    self.touched = true;
                }
                let diff = self.diff(turn.declared, &verdict);
                self.promised.extend(verdict.steps.iter().filter_map(places).map(path_object));
                let outcome = self.ledger.outcome(&object, turn, &verdict);
                group.push(Member { turn, object, verdict, outcome, diff });
                if group.is_full() {
                    self.flush(group)?;
                }
                Ok(())
            }
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
        let mut cleared = false;
        loop {
            let trouble = match self.look(turn.declared, object) {
                Ok(verdict) => match self.missing_parent(&verdict) {
                    None => return self.weigh(turn, object, verdict, group),
                    Some(parent) => no_parent(object, &parent),
                },
                Err(trouble) => trouble,
            };
            if trouble.touches_host && !self.touched {
                return Err(self.refusal(turn.declared, &trouble));
            }
            if !group.is_empty() {
                self.flush(group)?;
                continue;
            }
            if let Some(awaited) = trouble.awaits.as_ref().filter(|it| self.promised.contains(it)) {
                let detail = format!("unknown until {awaited} is there");
                return Ok(self.foresee_unknown(turn, object, detail));
            }
            let blockers = self.blockers(turn.source, turn.declared.resource.kind(), object);
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
        &self,
        declared: &'d Declared,
        object: &Object,
    ) -> Result<Verdict<'d>, Trouble> {
        let resource = &declared.resource;
        let answer = self.machine.ask(&resource.question(), declared.timeout)?;
        resource.judge(&answer, self.ledger.standing(object, resource.kind()))
    }

    /// What an undisturbed look came to: nothing to do, something to note, or steps.
    fn weigh<'d>(
        &mut self,
        turn: Turn<'d>,
        object: &Object,
        mut verdict: Verdict<'d>,
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
        if let Some(outcome) = self.ledger.to_note(object, turn) {
            if self.ledger.is_dry() {
                self.line(turn, outcome, 0, note(outcome), None);
            } else {
                group.push(Member { turn, object: object.clone(), verdict, outcome, diff: None });
            }
        }
        Ok(Decision::Settled)
    }

    /// In a dry run: says what would be done, and takes it for done.
    fn foresee(&mut self, turn: Turn<'_>, object: &Object, verdict: Verdict<'_>) {
        let diff = self.diff(turn.declared, &verdict);
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
    fn diff(&self, declared: &Declared, verdict: &Verdict) -> Option<Box<str>> {
        let new = declared.resource.text().filter(|_| self.options.diffs)?;
        let path = verdict.steps.iter().find_map(|step| match step {
            Step::Place(place) => Some(place.path),
            _ => None,
        })?;
        let old = match verdict.existed {
            true => Some(self.machine.read_text(path, diff::MAX_BYTES)?),
            false => None,
        };
        Some(diff::unified(path.as_str(), old.as_deref(), Some(new)).into())
    }

    /// Before the first step of a pass: nothing declared may lead, by links that stand on this
    /// machine, to the host itself.
    fn guard_all(&self) -> Result<(), Error> {
        for work in self.works {
            for declared in &work.declaration.resources {
                let Question::Path { path, .. } = declared.resource.question() else { continue };
                if let Err(trouble) = self.machine.guard(path) {
                    return Err(self.refusal(declared, &trouble));
                }
            }
        }
        Ok(())
    }

    fn refusal(&self, declared: &Declared, trouble: &Trouble) -> Error {
        let fault = Fault {
            place: format!("resource {:?}", declared.id),
            field: String::new(),
            wrong: format!("{}: {}", trouble.doing, trouble.cause),
            mend: "leave the host's own files to its installation".into(),
        };
        Error::Refused { what: "the declaration".into(), faults: vec![fault] }
    }
}

/// The path that a step puts something at.
fn places<'a>(step: &Step<'a>) -> Option<&'a RootPath> {
    match step {
        Step::Place(place) => Some(place.path),
        _ => None,
    }
}

fn at(path: &RootPath) -> Object {
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
fn note(outcome: Outcome) -> String {
    match outcome {
        Outcome::Unchanged => "there before; adopted",
        Outcome::Claimed => "taken over",
        _ => "finished before an interruption could record it",
    }
    .into()
}
