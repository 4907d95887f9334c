//! A resource's turn: is it whose, does it match, what would make it match?

use super::group::{path_of, Group, Member};
use super::{Pass, Work};
use crate::declaration::{Declaration, Declared};
use crate::diff;
use crate::error::{Error, Stage};
use crate::plan;
use crate::report::{Line, Outcome};
use crate::resource::{
    directory, Answer, Due, Entry, Found, Make, Object, Place, Question, RootPath,
};
use crate::resource::{Step, Trouble, Verdict};
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
            contested: false,
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
        // What is asked of a command or the kernel may hang on what is pending, as does what lies
        // beyond a link; and what is pending may make this very thing, as a parent of another.
        let is_path = matches!(declared.resource.question(), Question::Path { .. });
        let hangs = self.link_above(&object).is_some() || self.promised.contains(&object);
        if !is_path || hangs {
            self.flush(group)?;
        }
        if let Some(broken) = self.leans_on(turn) {
            self.not_met.insert(turn.position);
            let detail = format!("it refers to {broken}, which is not as declared");
            self.line(turn, Outcome::NotReached, 0, detail, None);
            return Ok(());
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
                self.promise(&verdict);
                let outcome = self.ledger.outcome(&object, turn, &verdict);
                self.join(turn, object, verdict, outcome, diff, group)
            }
        }
    }

    /// The id of a resource that this one refers to and that could not be made to match.
    fn leans_on(&self, turn: Turn<'_>) -> Option<Box<str>> {
        if self.not_met.is_empty() || turn.answers != Some(turn.position) {
            return None;
        }
        let mut refers = turn.declared().refers.iter().flatten().map(|&at| at as usize);
        let broken = refers.find(|at| self.not_met.contains(at))?;
        Some(turn.declaration.resources[broken].id.clone())
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
        match group.is_full(self.machine.descriptors()) {
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
        self.clear_way(turn, object, group)?;
        if let Some(decision) = self.hidden(turn, object) {
            return Ok(decision);
        }
        loop {
            let trouble = match self.look_up(turn, object, Due::Nothing) {
                Ok((verdict, note)) => match self.missing_parent(&verdict) {
                    None if cleared || !self.buries(object, kind, &verdict) => {
                        return self.weigh(turn, object, verdict, note, group)
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
                return Ok(self.foresee_unknown(turn, object, until(awaited)));
            }
            if let Some(brings) = self.brings(object) {
                return Ok(self.foresee_unknown(turn, object, until(&brings)));
            }
            let mut blockers = plan::blockers(object, kind, &self.releasing, self.ledger.state());
            blockers.extend(trouble.in_the_way.clone().filter(|it| self.releasing.contains(it)));
            blockers.retain(|blocker| !self.gone.contains_key(blocker));
            if cleared || blockers.is_empty() {
                return Ok(Decision::Fail(trouble));
            }
            cleared = true;
            self.touched = true;
            let mark = self.lines.len();
            self.release(turn.source, blockers)?;
            let removed = self.lines[mark..].iter().all(|line| line.outcome == Outcome::Removed);
            if self.ledger.is_dry() && removed {
                let detail = "once what stands there is removed";
                let hidden = self.hidden(turn, object);
                return Ok(
                    hidden.unwrap_or_else(|| self.foresee_unknown(turn, object, detail.into()))
                );
            }
        }
    }

    /// A link that is declared no longer leads nowhere that `object` could stay.
    fn clear_way<'d>(
        &mut self,
        turn: Turn<'d>,
        object: &Object,
        group: &mut Group<'d>,
    ) -> Result<(), Error> {
        if self.leading.is_empty() {
            return Ok(());
        }
        let leads = |it: &Object| self.leading.contains(it) && !self.gone.contains_key(it);
        let Some(link) = above(object).filter(leads).last() else { return Ok(()) };
        self.flush(group)?;
        self.touched = true;
        let mut goes = plan::beyond(&link, &self.releasing);
        goes.retain(|it| !self.gone.contains_key(it));
        self.release(turn.source, goes)
    }

    /// In a dry run: what comes of a resource that a look could not yet find where it will be.
    fn hidden<'d>(&mut self, turn: Turn<'d>, object: &Object) -> Option<Decision<'d>> {
        if !self.ledger.is_dry() || self.promised.contains(object) {
            return None;
        }
        if let Some(link) = self.link_above(object) {
            return Some(self.foresee_unknown(turn, object, until(&link)));
        }
        let way = above(object).find(|it| self.has_made_way(it))?;
        let parent = above(object).next().filter(|parent| !self.promised.contains(parent));
        match parent.and_then(|parent| path_of(&parent)) {
            Some(parent) if turn.declared().resource.kind() != "directory" => {
                Some(Decision::Fail(no_parent(object, &parent)))
            }
            _ => Some(self.foresee_unknown(turn, object, until(&way))),
        }
    }

    fn has_made_way(&self, object: &Object) -> bool {
        self.gone.get(object) == Some(&Outcome::Removed)
    }

    /// The pending link that leads to `object`.
    fn link_above(&self, object: &Object) -> Option<Object> {
        if self.relinked.is_empty() {
            return None;
        }
        above(object).find(|it| self.relinked.contains(it))
    }

    /// What these steps make is as good as there for whatever needs only a directory above it.
    fn promise(&mut self, verdict: &Verdict<'_>) {
        for place in verdict.steps.iter().filter_map(placed) {
            if matches!(place.make, Make::Symlink(_)) {
                self.relinked.insert(Object::at(place.path));
            }
            self.promised.insert(Object::at(place.path));
        }
    }

    /// The resource as it is now, compared with what is declared.
    pub(super) fn look<'d>(
        &mut self,
        turn: Turn<'d>,
        object: &Object,
    ) -> Result<Verdict<'d>, Trouble> {
        self.look_after(turn, object, Due::Nothing)
    }

    /// The same, once steps have been taken that amount to `refreshed` and are not recorded yet.
    pub(super) fn look_after<'d>(
        &mut self,
        turn: Turn<'d>,
        object: &Object,
        refreshed: Due,
    ) -> Result<Verdict<'d>, Trouble> {
        self.look_up(turn, object, refreshed).map(|(verdict, _)| verdict)
    }

    /// The same, and what is to be noted of it where it matches.
    fn look_up<'d>(
        &mut self,
        turn: Turn<'d>,
        object: &Object,
        refreshed: Due,
    ) -> Result<(Verdict<'d>, Option<Outcome>), Trouble> {
        let declared = turn.declared();
        let mut answer = self.machine.ask(&declared.resource.question(), declared.timeout)?;
        if self.ledger.is_dry() && self.promised.contains(object) {
            let replaces = above(object).chain([object.clone()]).any(|it| self.has_made_way(&it));
            made_along(&mut answer, replaces);
        }
        // In a dry run, what would be made counts as changed.
        let will_change = |it: &Object| self.ledger.is_dry() && self.promised.contains(it);
        let mut known = self.ledger.known(turn, object, &will_change);
        if known.past.due <= refreshed {
            known.past.due = Due::Nothing;
        }
        if known.past.due_under_way <= refreshed {
            known.past.due_under_way = Due::Nothing;
        }
        Ok((declared.resource.judge(&answer, &known.past)?, known.note))
    }

    /// In a dry run: what would be there by then and may bring `object`, or lift any other trouble
    /// that it has now: a package brings what nobody can know who does not have it.
    fn brings(&self, object: &Object) -> Option<Object> {
        let is_unit_of = |it: &&Object| {
            let name = path_of(it).map(|path| path.name() == object.name());
            object.space() == "service" && name == Some(true)
        };
        let named = |it: &&Object| object.name().split('.').next() == Some(it.name());
        let all = &self.bringing;
        let package = all.iter().find(named).or(all.last());
        self.promised.iter().find(is_unit_of).or(package).cloned()
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
            Some(path) => {
                path.as_str() == object.name() || !self.promised.contains(&Object::at(path))
            }
            None => true,
        });
        if !verdict.steps.is_empty() {
            return Ok(Decision::Act(verdict));
        }
        let note = note.or_else(|| self.parts_otherwise(object, &verdict));
        if let Some(outcome) = note {
            if self.ledger.is_dry() {
                self.line(turn, outcome, 0, noted(outcome), None);
            } else {
                self.join(turn, object.clone(), verdict, outcome, None, group)?;
            }
        }
        Ok(Decision::Settled)
    }

    /// What is to be put back on leaving is no longer what the store holds.
    fn parts_otherwise(&self, object: &Object, verdict: &Verdict) -> Option<Outcome> {
        let held = self.ledger.state().get(object.as_str())?.before;
        let before = verdict.before.as_deref()?;
        (Some(before) != held).then_some(Outcome::Unchanged)
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
        self.promise(&verdict);
        self.promised.insert(object.clone());
        if verdict.steps.iter().any(Step::may_bring_anything) {
            self.bringing.push(object.clone());
        }
        self.touched = true;
        self.line(turn, outcome, 0, verdict.detail, diff);
    }

    /// In a dry run: what would be done, where looking closer has to wait.
    fn foresee_unknown<'d>(&mut self, turn: Turn, object: &Object, detail: String) -> Decision<'d> {
        let outcome = match self.gone.contains_key(object) {
            true => Outcome::Created,
            false => self.ledger.outcome(object, turn, &Verdict::default()),
        };
        if turn.declared().resource.kind() == "directory" {
            // What is made with it, in place of what goes.
            let made: Vec<Object> = above(object).collect();
            let top = made.iter().rposition(|it| self.has_made_way(it));
            self.promised.extend(made.into_iter().take(top.map_or(0, |top| top + 1)));
        }
        self.promised.insert(object.clone());
        self.touched = true;
        self.line(turn, outcome, 0, detail, None);
        Decision::Settled
    }

    /// The parent that is neither there nor about to be.
    fn missing_parent(&self, verdict: &Verdict) -> Option<RootPath> {
        verdict.needs_parent.clone().filter(|parent| !self.promised.contains(&Object::at(parent)))
    }

    /// Old text against new, where a diff is wanted and there is one to show.
    fn diff(&mut self, declared: &Declared, verdict: &Verdict) -> Option<Box<str>> {
        let secret = self.ledger.is_secret(&declared.resource.object());
        let new = declared.resource.text().filter(|_| self.options.diffs && !secret)?;
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

/// What a step puts in place.
fn placed<'s, 'a>(step: &'s Step<'a>) -> Option<&'s Place<'a>> {
    match step {
        Step::Place(place) => Some(place),
        _ => None,
    }
}

/// The path that a step puts something at.
pub(super) fn places<'a>(step: &Step<'a>) -> Option<&'a RootPath> {
    placed(step).map(|place| place.path)
}

/// The directories above a path, as objects, the nearest first.
pub(super) fn above(object: &Object) -> impl Iterator<Item = Object> {
    let ancestors = path_of(object).map(|path| path.ancestors()).unwrap_or_default();
    ancestors.into_iter().rev().map(|path| Object::at(&path))
}

/// A missing parent that was made along with an earlier resource, as it will be found; `replaces`
/// says that what is seen there now will have gone by then.
fn made_along(answer: &mut Answer, replaces: bool) {
    let Answer::Path(path) = answer else { return };
    if replaces || matches!(path.found, Found::Nothing | Found::NoParent(_)) {
        let (mode, uid, gid) = (directory::DEFAULT_MODE, path.euid, path.egid);
        path.found = Found::Entry { kind: Entry::Directory, mode, uid, gid, linked: false };
    }
}

fn until(awaited: &Object) -> String {
    format!("unknown until {awaited} is there")
}

fn no_parent(object: &Object, parent: &RootPath) -> Trouble {
    Trouble {
        awaits: Some(Object::at(parent)),
        ..Trouble::new(
            format!("make {}", object.name()),
            format_args!("its directory {parent} is not there; declare it earlier"),
        )
    }
}

/// What is said of a resource that matches and yet has something to be recorded.
pub(super) fn noted(outcome: Outcome) -> String {
    match outcome {
        Outcome::Unchanged => "there before; recorded as declared now",
        Outcome::Claimed => "taken over",
        _ => "finished before an interruption could record it",
    }
    .into()
}
