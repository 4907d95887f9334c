//! What a pass knows of the store and tells it. A dry run knows as much and tells nothing.

use std::collections::HashMap;

use super::group::Member;
use super::turn::Turn;
use super::Work;
use crate::accept;
use crate::declaration::{self, Declaration, Declared, Own};
use crate::error::{Error, Stage};
use crate::machine;
use crate::report::{Outcome, Report};
use crate::resource::{Due, Follows, Object, Past, RootPath, Standing, Trouble, Verdict};
use crate::store::Words;
use crate::store::{
    Counts, Covered, Hex, Kind, Made, Owned, Reading, Record, Secrets, Source, State, Store,
};

/// The store, as a pass sees it.
pub struct Ledger<'s> {
    book: Book<'s>,
    /// The key under which a secret's digest is told from another's; a dry run may have none.
    secrets: Option<&'s Secrets>,
}

/// What the store knows of an object.
pub(super) struct Known<'s> {
    /// What its resource is judged by.
    pub past: Past<'s>,
    /// What has to be recorded of it where it matches without a step: that it is adopted, has
    /// another id, or that an interrupted pass had made it so. `None` when there is nothing new.
    pub note: Option<Outcome>,
}

/// Last applied forms.
#[derive(Default)]
pub(super) struct Held {
    /// What they stand in.
    pub declarations: Vec<Declaration>,
    /// Each object, which declaration, and its position in there.
    pub forms: Vec<(Object, usize, usize)>,
}

enum Book<'s> {
    Dry(&'s Reading),
    Live(&'s mut Store),
}

impl<'s> Ledger<'s> {
    /// For a dry run over what the store holds.
    pub fn dry(store: &'s Reading, secrets: Option<&'s Secrets>) -> Ledger<'s> {
        Ledger { book: Book::Dry(store), secrets }
    }

    /// For a pass that is recorded in `store`.
    pub fn live(store: &'s mut Store, secrets: Option<&'s Secrets>) -> Ledger<'s> {
        Ledger { book: Book::Live(store), secrets }
    }

    pub(super) fn is_dry(&self) -> bool {
        matches!(self.book, Book::Dry(_))
    }

    pub(super) fn state(&self) -> &State {
        match &self.book {
            Book::Dry(store) => &store.state,
            Book::Live(store) => store.state(),
        }
    }

    /// What is known of the object of the turn's resource, should it be a thing of that type.
    /// `will_change` tells what is as good as changed.
    pub(super) fn known(
        &self,
        turn: Turn<'_>,
        object: &Object,
        will_change: &dyn Fn(&Object) -> bool,
    ) -> Known<'_> {
        let declared = turn.declared();
        let owned = self.state().get(object.as_str());
        let known = |it: &Owned<'_>| (it.started, it.starting, it.reloaded);
        let (started, starting, reloaded) = owned.as_ref().map_or((0, 0, 0), known);
        let due = self.due(turn, (started, reloaded), will_change);
        let due_under_way = self.due(turn, (started.max(starting), reloaded), will_change);
        let nothing = Past { due, due_under_way, ..Past::NONE };
        let Some(owned) = owned.filter(|owned| owned.of_type == declared.resource.kind()) else {
            return Known { past: nothing, note: Some(Outcome::Unchanged) };
        };
        let note = match (owned.form, owned.pending) {
            _ if owned.implied => Some(Outcome::Unchanged),
            (None, _) if owned.standing == Standing::Created => Some(Outcome::Created),
            (None, _) => Some(Outcome::Changed),
            (Some(form), Some(pending)) if form != pending => Some(Outcome::Changed),
            (Some(_), Some(_)) => Some(Outcome::Corrected),
            (Some(_), None) if *owned.id != *declared.id => Some(Outcome::Unchanged),
            (Some(_), None) => None,
        };
        let past = Past {
            standing: owned.standing,
            before: owned.before,
            due,
            due_under_way,
            begun: owned.pending.map(|_| owned.begun),
        };
        Known { past, note }
    }

    /// What something that follows others owes to their last changes: it counts as converged only
    /// if its last recorded start came after those.
    fn due(
        &self,
        turn: Turn<'_>,
        (started, reloaded): (u64, u64),
        will_change: &dyn Fn(&Object) -> bool,
    ) -> Due {
        let declared = turn.declared();
        let Follows { restarts, reloads } = declared.resource.follows();
        if restarts + reloads == 0 {
            return Due::Nothing;
        }
        let changed_since = |at: &Option<u32>, seen: u64| {
            let Some(at) = *at else { return false };
            let object = turn.declaration.resources[at as usize].resource.object();
            let changed = self.state().get(object.as_str()).map_or(0, |owned| owned.changed);
            changed > seen || will_change(&object)
        };
        let (restart, rest) = declared.refers.split_at(restarts);
        if restart.iter().any(|at| changed_since(at, started)) {
            return Due::Restart;
        }
        match rest[..reloads].iter().any(|at| changed_since(at, started.max(reloaded))) {
            true => Due::Reload,
            false => Due::Nothing,
        }
    }

    /// What the object holds may be secret, whatever is declared now.
    pub(super) fn is_secret(&self, object: &Object) -> bool {
        self.state().get(object.as_str()).is_some_and(|owned| owned.secret)
    }

    /// What it will be called that the steps of `verdict` were taken.
    pub(super) fn outcome(&self, object: &Object, turn: Turn<'_>, verdict: &Verdict) -> Outcome {
        let kind = turn.declared().resource.kind();
        let owned = self.state().get(object.as_str()).filter(|owned| owned.of_type == kind);
        match owned {
            None if verdict.existed => Outcome::Changed,
            None => Outcome::Created,
            Some(owned) => match owned.form {
                None if owned.standing == Standing::Created => Outcome::Created,
                None => Outcome::Changed,
                Some(_) if self.is_whole(turn) => Outcome::Corrected,
                Some(form) if form == self.form(turn) => Outcome::Corrected,
                Some(_) => Outcome::Changed,
            },
        }
    }

    /// The declaration that the turn is of has been applied whole before.
    fn is_whole(&self, turn: Turn<'_>) -> bool {
        self.state().whole(turn.source) == Some(&turn.declaration.sha256)
    }

    /// A digest of what is declared, whatever its id, without giving a secret away.
    pub(super) fn form(&self, turn: Turn<'_>) -> [u8; 8] {
        let mut name = |value: &[u8]| match self.secrets {
            Some(secrets) => secrets.name(value),
            None => String::new(),
        };
        declaration::form(turn.declaration, turn.position, &mut name)
    }

    pub(super) fn began(&mut self, member: &Member<'_>) -> Result<(), Error> {
        let record = self.about(Kind::Began, member, &member.object);
        let before = member.verdict.before.as_deref().map(Into::into);
        // A start that outlasts this pass is known by it to the next.
        let starts = member.verdict.refreshes == Due::Restart;
        let started = starts.then(|| self.state().seq());
        self.append(Record { before, started, ..record })
    }

    pub(super) fn applied(&mut self, member: &Member<'_>) -> Result<(), Error> {
        let record = self.about(Kind::Applied, member, &member.object);
        let before = member.verdict.before.as_deref().map(Into::into);
        let seq = Some(self.state().seq());
        let (started, reloaded) = match member.verdict.refreshes {
            Due::Restart => (seq, None),
            Due::Reload => (None, seq),
            Due::Nothing => (None, None),
        };
        self.append(Record { before, started, reloaded, ..record })
    }

    /// A directory that is made along with `member`.
    pub(super) fn began_parent(
        &mut self,
        member: &Member<'_>,
        path: &RootPath,
    ) -> Result<(), Error> {
        self.parent(Kind::Began, member, path)
    }

    /// The same, once it is there.
    pub(super) fn applied_parent(
        &mut self,
        member: &Member<'_>,
        path: &RootPath,
    ) -> Result<(), Error> {
        self.parent(Kind::Applied, member, path)
    }

    fn parent(&mut self, kind: Kind, member: &Member<'_>, path: &RootPath) -> Result<(), Error> {
        let object = Object::at(path);
        // Declared by another resource, and missing until now: its own turn says how it went.
        let known = self.state().get(object.as_str());
        if known.is_some_and(|it| !it.implied && it.of_type == "directory") {
            return match kind {
                Kind::Began => self.again(kind, &object),
                _ => Ok(()),
            };
        }
        let record = self.about(kind, member, &object);
        let of_type = Some("directory".into());
        self.append(Record {
            implied: true,
            secret: false,
            of_type,
            made: Some(Made::Created),
            ..record
        })
    }

    /// Says again what is known of an object that is owned: `Began`, since it is about to go;
    /// `Applied`, since an interrupted pass had made it.
    pub(super) fn again(&mut self, kind: Kind, object: &Object) -> Result<(), Error> {
        let Some(owned) = self.state().get(object.as_str()) else { return Ok(()) };
        let form = match kind {
            Kind::Began => owned.form.or(owned.pending),
            _ => owned.pending.or(owned.form),
        };
        let record = Record {
            source: Some(owned.source),
            object: Some(object.as_str().into()),
            of_type: Some(owned.of_type.to_string().into()),
            id: Some(owned.id.to_string().into()),
            made: Some(match owned.standing {
                Standing::Adopted => Made::Adopted,
                _ => Made::Created,
            }),
            implied: owned.implied,
            form: form.map(Hex),
            outcome: (kind == Kind::Applied).then_some(Outcome::Created),
            ..Record::new(kind)
        };
        self.append(record)
    }

    /// Takes an intent back: nothing came of it.
    pub(super) fn withdrawn(&mut self, member: &Member<'_>, object: &Object) -> Result<(), Error> {
        self.append(Record {
            source: Some(member.turn.source),
            id: Some((&*member.turn.declared().id).into()),
            object: Some(object.as_str().into()),
            made: Some(Made::Nothing),
            ..Record::new(Kind::Failed)
        })
    }

    pub(super) fn failed(
        &mut self,
        source: Source,
        object: &Object,
        id: &str,
        stage: Stage,
        trouble: &Trouble,
    ) -> Result<(), Error> {
        self.append(Record {
            source: Some(source),
            id: Some(id.into()),
            object: Some(object.as_str().into()),
            stage: Some(stage),
            doing: Some(trouble.doing.as_str().into()),
            cause: Some(trouble.cause.as_str().into()),
            ..Record::new(Kind::Failed)
        })
    }

    pub(super) fn claimed(
        &mut self,
        turn: Turn,
        object: &Object,
        from: Source,
    ) -> Result<(), Error> {
        self.append(Record {
            object: Some(object.as_str().into()),
            id: Some((&*turn.declared().id).into()),
            from: Some(from),
            to: Some(turn.source),
            ..Record::new(Kind::Claimed)
        })
    }

    /// An object that is let go of: `outcome` is removed, forgotten or left.
    pub(super) fn released(
        &mut self,
        source: Source,
        object: &Object,
        id: &str,
        outcome: Outcome,
        why: &str,
    ) -> Result<(), Error> {
        let kind = match outcome {
            Outcome::Removed => Kind::Removed,
            Outcome::Left => Kind::Left,
            _ => Kind::Forgotten,
        };
        self.append(Record {
            source: Some(source),
            object: Some(object.as_str().into()),
            id: Some(id.into()),
            reason: Some(why).filter(|why| !why.is_empty()).map(Into::into),
            ..Record::new(kind)
        })
    }

    /// The end of a pass. One that changed nothing, failed nothing and applied nothing whole that
    /// was not so before leaves no record.
    pub(super) fn passed(
        &mut self,
        report: &Report<'_>,
        covered: &[(Work<'_>, bool)],
        touched: bool,
    ) -> Result<(), Error> {
        let news = |(work, whole): &(Work<'_>, bool)| {
            *whole && self.state().whole(work.source) != Some(&work.declaration.sha256)
        };
        let is_covered = |source| covered.iter().any(|(work, _)| work.source == source);
        let failing = !report.errors.is_empty()
            || self.state().failing().any(|(source, ..)| is_covered(source));
        if self.is_dry() || !(touched || failing || covered.iter().any(news)) {
            return self.flush();
        }
        let count = |outcomes: &[Outcome]| report.count(outcomes) as u32;
        let cover = |(work, whole): &(Work<'_>, bool)| Covered {
            source: work.source,
            sha256: Hex(work.declaration.sha256),
            whole: *whole,
        };
        self.append(Record {
            id: Some(report.id.as_str().into()),
            trigger: Some(report.trigger.as_str().into()),
            outcome: Some(report.outcome),
            sources: covered.iter().map(cover).collect(),
            counts: Some(Counts {
                changed: count(&[Outcome::Created, Outcome::Changed]),
                corrected: count(&[Outcome::Corrected]),
                removed: count(&[Outcome::Removed]),
                failed: count(&[Outcome::Failed]),
            }),
            ..Record::new(Kind::Pass)
        })?;
        self.flush()
    }

    /// The last applied forms of these objects, in their order, as far as there are any.
    pub(super) fn held(
        &mut self,
        source: Source,
        objects: &[&Object],
        own: &Own,
    ) -> Result<Held, Error> {
        let mut held = Held::default();
        let mut known: Vec<(Words, HashMap<Object, usize>)> = Vec::new();
        for object in objects {
            let Some(text) = self.state().held(source, object.as_str()).copied() else { continue };
            let nth = match known.iter().position(|(other, _)| *other == text) {
                Some(nth) => nth,
                None => {
                    let mut declaration = self.read(&text, own)?;
                    // An excerpt is of one object, and has nothing else.
                    if let [one] = &mut declaration.resources[..] {
                        one.resource.complete(object);
                    }
                    let object = |declared: &Declared| declared.resource.object();
                    let objects = declaration.resources.iter().map(object);
                    known.push((text, objects.zip(0..).collect()));
                    held.declarations.push(declaration);
                    known.len() - 1
                }
            };
            let position = known[nth].1.get(*object);
            held.forms.extend(position.map(|position| ((*object).clone(), nth, *position)));
        }
        Ok(held)
    }

    /// A declaration, or a resource of one, as the store keeps it.
    fn read(&mut self, words: &Words, own: &Own) -> Result<Declaration, Error> {
        let stored = match &self.book {
            Book::Dry(store) => store.words(*words)?,
            Book::Live(store) => store.words(*words)?,
        };
        accept::stored(stored, self.secrets, own)
    }

    /// Makes everything told so far durable.
    pub(super) fn flush(&mut self) -> Result<(), Error> {
        match &mut self.book {
            Book::Dry(_) => Ok(()),
            Book::Live(store) => store.flush(),
        }
    }

    /// What every record about an object that is being made says.
    fn about<'r>(&self, kind: Kind, member: &'r Member<'_>, object: &'r Object) -> Record<'r> {
        let turn = member.turn;
        let standing = match self.known(turn, object, &|_| false).past.standing {
            Standing::Unowned if member.verdict.existed => Standing::Adopted,
            Standing::Unowned => Standing::Created,
            known => known,
        };
        Record {
            source: Some(turn.source),
            object: Some(object.as_str().into()),
            of_type: Some(turn.declared().resource.kind().into()),
            id: Some((&*turn.declared().id).into()),
            made: Some(match standing {
                Standing::Adopted => Made::Adopted,
                _ => Made::Created,
            }),
            form: Some(Hex(member.form)),
            secret: turn.declared().resource.secret(),
            outcome: (kind == Kind::Applied).then_some(member.outcome),
            declared_by: (kind == Kind::Applied).then(|| Hex(turn.declaration.sha256).short()),
            ..Record::new(kind)
        }
    }

    fn append(&mut self, record: Record<'_>) -> Result<(), Error> {
        match &mut self.book {
            Book::Dry(_) => Ok(()),
            Book::Live(store) => store.append(record, machine::now()),
        }
    }
}
