//! Letting go of what is no longer declared: removed, put back, forgotten or left, and recorded
//! once that is so. What is to be removed or put back has an intent first, as what is made has: the
//! store never claims for certain what an interrupted pass may have taken away.

use std::collections::BTreeSet;
use std::time::Duration;

use super::group::is_of_unit;
use super::turn::above;
use super::{Pass, Ways};
use crate::declaration::{Declaration, Declared};
use crate::error::{Error, Stage};
use crate::machine::Staged;
use crate::plan;
use crate::report::{Line, Outcome};
use crate::resource::parting::{parting, Ends, Farewell, Leaving, Parting, Undo};
use crate::resource::{may_cut, Removable, RootPath, Standing, Step, Trouble};
use crate::resource::{Access, Answer, Entry, Found, Holds, Object, PathAnswer, Question};
use crate::store::{Kind, Owned, Source};

/// How it went with one object.
pub(super) enum Gone {
    /// It is no longer there, or no longer ours: what to record, and why where that is not plain.
    As(Outcome, String),
    /// It was removed just now, and that has yet to be made durable and looked at.
    Removing(Staged),
    /// It is still there and still ours.
    Not(Trouble),
}

/// What the store knew of an object that goes.
pub(super) struct Parted {
    pub object: Object,
    kind: Box<str>,
    pub id: Box<str>,
    standing: Standing,
    before: Option<Box<str>>,
}

/// Looking, removing and undoing take no time worth waiting longer for.
const LIMIT: Duration = Duration::from_secs(60);

/// Why a link stays.
const LEADS: &str = "it still leads to something of ours";

/// Of a path that goes, only what it is matters.
static ANY_ACCESS: Access = Access { mode: None, owner: None, group: None };

impl Parted {
    pub(super) fn of(owned: &Owned<'_>) -> Option<Parted> {
        let object = Object::from_journal(owned.object)?;
        let (kind, id) = (owned.of_type.into(), owned.id.into());
        Some(Parted {
            object,
            kind,
            id,
            standing: owned.standing,
            before: owned.before.map(Box::from),
        })
    }

    fn leaving(&self) -> Leaving<'_> {
        let (standing, before) = (self.standing, self.before.as_deref());
        Leaving { name: self.object.name(), standing, before }
    }
}

impl From<Farewell<'_>> for Gone {
    fn from(farewell: Farewell<'_>) -> Gone {
        let outcome = match farewell.ends {
            Ends::Removed => Outcome::Removed,
            Ends::Forgotten => Outcome::Forgotten,
            Ends::Left => Outcome::Left,
        };
        Gone::As(outcome, farewell.detail)
    }
}

impl Pass<'_> {
    /// Lets go of `objects`, in this order. In a dry run, says so.
    pub(super) fn release(&mut self, source: Source, objects: Vec<Object>) -> Result<(), Error> {
        let state = self.ledger.state();
        let known = |object: Object| Parted::of(&state.get(object.as_str())?);
        let parted: Vec<Parted> = objects.into_iter().filter_map(known).collect();
        if parted.is_empty() {
            return Ok(());
        }
        self.touched = true;
        self.seen.1.clear();
        let dry = self.ledger.is_dry();
        let is_guarded = |it: &Parted| {
            may_cut(&it.kind) && matches!(parting(&it.kind, it.standing), Parting::Undo(_))
        };
        let mut guard = None;
        if !dry {
            guard = if parted.iter().any(is_guarded) { self.arm() } else { None };
            for it in &parted {
                if !matches!(parting(&it.kind, it.standing), Parting::Forget) {
                    let guard = guard.as_deref().filter(|_| is_guarded(it));
                    if guard.is_some() {
                        self.note_found(&it.object);
                    }
                    self.ledger.again(Kind::Began, &it.object, guard)?;
                }
            }
            self.ledger.flush()?;
        }
        let mut failed = Vec::new();
        let mut ends = Vec::new();
        for it in parted {
            let gone = match () {
                // Beyond a link that is gone, nothing would be found again.
                () if &*it.kind == "symlink" && holds_any(&it, &failed) => not_yet(&it, LEADS),
                () => match self.part(&it) {
                    Gone::As(Outcome::Left, why) if holds_any(&it, &failed) => not_yet(&it, &why),
                    gone => gone,
                },
            };
            let gone = match gone {
                Gone::As(Outcome::Removed, _) if guard.is_some() && is_guarded(&it) => {
                    self.keep_way_without(source, &it)?
                }
                gone => gone,
            };
            match gone {
                // What lies in a directory goes before it.
                Gone::As(outcome, _) if dry => drop(self.gone.insert(it.object.clone(), outcome)),
                Gone::Not(_) => failed.push(it.object.clone()),
                _ => {}
            }
            ends.push((it, gone));
            // Each removal may hold a descriptor until it is durable.
            if ends.len() >= self.machine.descriptors() {
                self.settle(source, std::mem::take(&mut ends), &mut failed)?;
            }
        }
        self.settle(source, ends, &mut failed)?;
        self.ledger.flush()
    }

    /// Takes the step that parting with one object needs.
    fn part(&mut self, it: &Parted) -> Gone {
        match parting(&it.kind, it.standing) {
            Parting::Forget => Gone::As(Outcome::Forgotten, String::new()),
            Parting::Remove(kind) => match RootPath::parse(it.object.name()) {
                Ok(path) => self.remove(&path, kind),
                Err(why) => Gone::As(Outcome::Left, format!("its path {why}")),
            },
            Parting::Undo(undo) => self.undo(it, undo),
        }
    }

    /// The links on the way to what is to be let go of, as [`Pass::ways`] has them.
    pub(super) fn ways(&mut self, declaration: &Declaration) -> Result<Ways, Error> {
        let state = self.ledger.state();
        let links: BTreeSet<(Source, Object)> = self
            .releasing
            .iter()
            .flat_map(above)
            .filter_map(|it| Some((state.get(it.as_str())?, it)))
            .filter(|(owned, _)| owned.of_type == "symlink")
            .map(|(owned, it)| (owned.source, it))
            .collect();
        let mut ways = Ways::new();
        for source in Source::ALL {
            let of = links.iter().filter(|(owner, _)| *owner == source).map(|(_, link)| link);
            let held = self.ledger.held(source, &of.collect::<Vec<_>>(), self.options.own)?;
            for (link, nth, position) in &held.forms {
                let Some(led) = target(&held.declarations[*nth].resources[*position]) else {
                    continue;
                };
                let now = declaration.resources.iter().find(|it| it.resource.object() == *link);
                let leads = now.and_then(target).map(Into::into);
                ways.insert(link.clone(), (led.into(), leads));
            }
        }
        Ok(ways)
    }

    /// A link on the way to `path` that leads elsewhere than when that was made: what is found
    /// beyond it is another thing.
    fn astray(&mut self, path: &RootPath) -> Option<Object> {
        if self.ways.is_empty() {
            return None;
        }
        let links: Vec<Object> =
            above(&Object::at(path)).filter(|it| self.ways.contains_key(it)).collect();
        links.into_iter().find(|link| {
            let (led, leads) = &self.ways[link];
            if self.ledger.is_dry() && self.relinked.contains(link) {
                return leads.as_ref() != Some(led);
            }
            let Ok(path) = RootPath::parse(link.name()) else { return false };
            let question = Question::Path { path: &path, holds: None, access: &ANY_ACCESS };
            match self.machine.ask(&question, LIMIT) {
                Ok(Answer::Path(PathAnswer { found: Found::Entry { kind, .. }, .. })) => {
                    !matches!(kind, Entry::Symlink(found) if found == led.as_bytes())
                }
                // What lies beyond is not there, or cannot be seen either.
                _ => false,
            }
        })
    }

    fn remove(&mut self, path: &RootPath, kind: Removable) -> Gone {
        if let Some(link) = self.astray(path) {
            return Gone::As(Outcome::Left, format!("{} leads elsewhere now", link.name()));
        }
        let question = Question::Path { path, holds: None, access: &ANY_ACCESS };
        let found = match self.machine.ask(&question, LIMIT) {
            Ok(Answer::Path(answer)) => answer.found,
            Ok(_) => unreachable!("a question about a path is answered with one"),
            // No directory stands where it would be.
            Err(trouble) if trouble.awaits.is_some() => Found::Nothing,
            Err(trouble) => return Gone::Not(trouble),
        };
        match (found, kind) {
            (Found::Nothing | Found::NoParent(_), _) => {
                return Gone::As(Outcome::Removed, "was gone already".into())
            }
            (Found::Entry { kind: Entry::File { .. }, .. }, Removable::File)
            | (Found::Entry { kind: Entry::Directory, .. }, Removable::Directory)
            | (Found::Entry { kind: Entry::Symlink(_), .. }, Removable::Symlink) => {}
            _ => return Gone::As(Outcome::Left, "something else stands there now".into()),
        }
        if self.ledger.is_dry() {
            return self.foresee_removal(path, kind);
        }
        match self.machine.stage(&Step::Remove { path, kind }, LIMIT) {
            Ok(staged) => Gone::Removing(staged),
            Err(trouble) if trouble.not_empty => Gone::As(Outcome::Left, trouble.cause),
            Err(trouble) => Gone::Not(trouble),
        }
    }

    /// In a dry run: a directory goes only once everything in it has gone and nothing comes.
    fn foresee_removal(&mut self, path: &RootPath, kind: Removable) -> Gone {
        let goes = |it: &RootPath| self.gone.get(&Object::at(it)) == Some(&Outcome::Removed);
        let beneath = format!("{path}/");
        let comes = |it: &Object| it.name().starts_with(&beneath) && it.space() == "path";
        let stays = match kind {
            Removable::File | Removable::Symlink => Ok(false),
            Removable::Directory if self.promised.iter().any(comes) => Ok(true),
            Removable::Directory => self.machine.holds_more(path, &goes),
        };
        match stays {
            Ok(false) => Gone::As(Outcome::Removed, String::new()),
            Ok(true) => Gone::As(Outcome::Left, "it is not empty".into()),
            Err(trouble) => Gone::Not(trouble),
        }
    }

    /// Takes the steps that undoing what was done to an object needs, and looks whether they took.
    pub(super) fn undo(&mut self, it: &Parted, undo: &dyn Undo) -> Gone {
        let leaving = it.leaving();
        let steps = match self.farewell(&leaving, undo) {
            Ok(farewell) if farewell.steps.is_empty() || self.ledger.is_dry() => {
                return farewell.into()
            }
            Ok(farewell) => farewell.steps,
            Err(trouble) => return Gone::Not(trouble),
        };
        // What cannot be undone keeps nothing else from it: a lock that fails leaves no keys.
        let mut taken = Ok(());
        for step in &steps {
            taken = taken.and(self.machine.take(step, undo.limit()));
        }
        match taken.and_then(|()| self.farewell(&leaving, undo)) {
            Ok(farewell) if farewell.steps.is_empty() => farewell.into(),
            Ok(farewell) => {
                let doing = format!("undo what was done to {}", it.object);
                Gone::Not(Trouble::unread(doing, &farewell.detail))
            }
            Err(trouble) => Gone::Not(trouble),
        }
    }

    fn farewell<'a>(&mut self, it: &Leaving<'a>, undo: &dyn Undo) -> Result<Farewell<'a>, Trouble> {
        let answer = self.machine.ask(&undo.question(it), LIMIT)?;
        undo.judge(it, &answer)
    }

    /// Makes the removals durable, looks whether they took, and records what is so.
    /// What still is there joins `failed`.
    fn settle(
        &mut self,
        source: Source,
        ends: Vec<(Parted, Gone)>,
        failed: &mut Vec<Object>,
    ) -> Result<(), Error> {
        let removed = ends.iter().filter_map(|(_, gone)| match gone {
            Gone::Removing(staged) => Some(staged),
            _ => None,
        });
        let durable = self.machine.sync(removed);
        // Whether this pass removed it or one that was interrupted: the manager may still have it.
        let of_unit = |it: &Parted, gone: &Gone| {
            let goes = matches!(gone, Gone::Removing(_) | Gone::As(Outcome::Removed, _));
            goes && is_of_unit(&it.object)
        };
        let known = match ends.iter().any(|(it, gone)| of_unit(it, gone)) {
            true if !self.ledger.is_dry() => self.reload_manager(),
            _ => Ok(()),
        };
        for (it, gone) in ends {
            let known = if of_unit(&it, &gone) { known.clone() } else { Ok(()) };
            let removing = matches!(gone, Gone::Removing(_));
            let durable = if removing { durable.clone() } else { Ok(()) };
            let (outcome, detail) = match (gone, durable.and(known)) {
                (Gone::As(Outcome::Removed, _), Err(trouble)) => {
                    self.not_released(source, &it, Stage::Release, trouble);
                    continue;
                }
                (Gone::As(outcome, detail), _) => (outcome, detail),
                (Gone::Removing(_), Err(trouble)) => {
                    self.not_released(source, &it, Stage::Release, trouble);
                    failed.push(it.object);
                    continue;
                }
                (Gone::Removing(_), Ok(())) if self.is_gone(&it.object) => {
                    (Outcome::Removed, String::new())
                }
                (Gone::Removing(_), Ok(())) => {
                    let doing = format!("remove {}", it.object.name());
                    let trouble = Trouble::new(doing, "it is still there");
                    self.not_released(source, &it, Stage::ReadBack, trouble);
                    failed.push(it.object);
                    continue;
                }
                (Gone::Not(trouble), _) => {
                    self.not_released(source, &it, Stage::Release, trouble);
                    continue;
                }
            };
            self.ledger.released(source, &it.object, &it.id, outcome, &detail)?;
            self.gone.insert(it.object.clone(), outcome);
            self.released_line(source, &it, outcome, detail);
        }
        Ok(())
    }

    fn is_gone(&mut self, object: &Object) -> bool {
        RootPath::parse(object.name()).is_ok_and(|path| self.is_there(&path) == Some(false))
    }

    /// Whether anything is at `path`; `None` where that cannot be seen.
    pub(super) fn is_there(&mut self, path: &RootPath) -> Option<bool> {
        let question = Question::Path { path, holds: None, access: &ANY_ACCESS };
        match self.machine.ask(&question, LIMIT) {
            Ok(Answer::Path(answer)) => Some(matches!(answer.found, Found::Entry { .. })),
            Err(trouble) if trouble.awaits.is_some() => Some(false),
            _ => None,
        }
    }

    fn not_released(&mut self, source: Source, it: &Parted, stage: Stage, trouble: Trouble) {
        self.released_line(source, it, Outcome::Failed, trouble.cause.clone());
        self.failure(stage, Some(it.id.clone()), trouble);
    }

    fn released_line(&mut self, source: Source, it: &Parted, outcome: Outcome, why: String) {
        let name = it.object.name();
        let detail = if why.is_empty() { name.into() } else { format!("{name}: {why}").into() };
        let (id, kind) = (it.id.clone(), it.kind.clone());
        self.lines.push(Line {
            id,
            source,
            kind,
            outcome,
            took_ms: 0,
            detail,
            diff: None,
            contested: false,
            position: None,
        });
    }
}

/// Where a declared link leads.
fn target(declared: &Declared) -> Option<&str> {
    match declared.resource.question() {
        Question::Path { holds: Some(Holds::Target(target)), .. } => Some(target),
        _ => None,
    }
}

/// One of `failed`, which could not be removed, lies beneath `it`, or may have joined it: then
/// neither can it be, yet.
fn holds_any(it: &Parted, failed: &[Object]) -> bool {
    let joins = |other: &Object| &*it.kind == "container_network" && other.space() == "container";
    failed.iter().any(|other| plan::beneath(other, &it.object) || joins(other))
}

fn not_yet(it: &Parted, why: &str) -> Gone {
    let cause = format!("{why}, since not everything in it could be removed");
    Gone::Not(Trouble::new(format!("remove {}", it.object.name()), cause))
}
