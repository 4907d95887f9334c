//! The fold: what all records of a journal, in their order, add up to. Pure.

use std::collections::{BTreeMap, BTreeSet};

use super::journal::Place;
use super::known::{Accepted, Desk, Failing, LastPass, Note, Paused, Whole, Words};
use super::member::{Hex, Restated};
use super::owned::{Described, Owned, Table};
use super::record::{Covered, Kind, Made, Outcome, Record, Source, SCHEMA};
use crate::digest::Sha256;

/// What the store knows.
#[derive(Default)]
pub struct State {
    /// The last record's number; 0 in an empty store.
    seq: u64,
    /// Records of the compaction that are still to come.
    restating: u64,
    floor: u64,
    table: Table,
    texts: Vec<Words>,
    desks: [Desk; 3],
    failing: BTreeMap<(Source, Box<str>), Failing>,
    paused: Option<Paused>,
    last_pass: Option<LastPass>,
    notes: Vec<Note>,
}

impl State {
    /// The last record's number; 0 in a store that has none.
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// The lowest serial that may still be accepted over the link.
    pub fn floor(&self) -> u64 {
        self.floor
    }

    /// The declaration that `source` had accepted last.
    pub fn accepted(&self, source: Source) -> Option<&Accepted> {
        self.desks[source as usize].accepted.as_ref()
    }

    /// SHA-256 of the declaration of `source` that was last applied whole.
    pub fn whole(&self, source: Source) -> Option<&Sha256> {
        self.desks[source as usize].whole.as_ref().map(|whole| &whole.sha256)
    }

    /// The accepted declaration of `source` has been applied whole.
    pub fn is_whole(&self, source: Source) -> bool {
        self.accepted(source).is_some_and(|it| self.whole(source) == Some(&it.sha256))
    }

    /// All that `source` owns is what its accepted declaration names, or was made along with that:
    /// nothing has been begun since it was applied whole.
    pub fn is_settled(&self, source: Source) -> bool {
        self.desks[source as usize].settled && self.is_whole(source)
    }

    /// What was intended and never seen to have come about.
    pub fn pending(&self) -> impl Iterator<Item = Owned<'_>> {
        self.table.pending().map(|at| self.table.view(at).0)
    }

    /// Something is owned on behalf of another than `source`.
    pub fn is_shared(&self, source: Source) -> bool {
        self.table.sources().any(|other| other != source)
    }

    /// What the host owns, in order of making.
    pub fn owned(&self) -> impl DoubleEndedIterator<Item = Owned<'_>> {
        self.table.positions().map(|at| self.table.view(at).0)
    }

    /// How many objects that is.
    pub fn owned_len(&self) -> usize {
        self.table.len()
    }

    /// One more than the greatest [`Owned::position`].
    pub fn positions(&self) -> usize {
        self.table.end()
    }

    /// What is known of an object, `space:name`, if the host owns it.
    pub fn get(&self, object: &str) -> Option<Owned<'_>> {
        self.table.find(object).map(|at| self.table.view(at).0)
    }

    /// The object was once claimed from `source`, which must leave it alone for good.
    pub fn ceded(&self, source: Source, object: &str) -> bool {
        self.desks[source as usize].ceded.contains(object)
    }

    /// Something was once claimed from `source`.
    pub fn has_ceded(&self, source: Source) -> bool {
        !self.desks[source as usize].ceded.is_empty()
    }

    /// The words for the form in which an object of `source` is held while its accepted declaration
    /// has not reached it: those of the last declaration applied whole, or of a later one that has
    /// been applied to this object.
    pub fn held(&self, source: Source, object: &str) -> Option<&Words> {
        let at = self.table.find(object)?;
        let slot = self.table.view(at).1;
        let text = (slot.source == source).then(|| self.held_text(at)).flatten()?;
        self.texts.get(text as usize)
    }

    /// The words of everything that is in force: of what is accepted, of what was applied whole,
    /// and of every form that an object is held to.
    pub fn in_force(&self) -> Vec<Words> {
        let accepted = Source::ALL.into_iter().filter_map(|source| self.accepted(source));
        let whole = self.desks.iter().filter_map(|desk| desk.whole?.text);
        let held = self.table.positions().filter_map(|at| self.held_text(at));
        let texts: BTreeSet<u32> =
            accepted.map(|it| it.position).chain(whole).chain(held).collect();
        texts.into_iter().map(|at| self.texts[at as usize]).collect()
    }

    /// Resources that failed and have not succeeded since, with the source and id of each.
    pub fn failing(&self) -> impl Iterator<Item = (Source, &str, &Failing)> {
        self.failing.iter().map(|((source, id), why)| (*source, &**id, why))
    }

    /// The pause in force, even where its time is over.
    pub fn paused(&self) -> Option<&Paused> {
        self.paused.as_ref()
    }

    /// The last pass on record.
    pub fn last_pass(&self) -> Option<&LastPass> {
        self.last_pass.as_ref()
    }

    /// Records kept as they are, in their order.
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }

    /// Records of a compaction that the journal should still hold; 0 once it is complete.
    pub(super) fn restating(&self) -> u64 {
        self.restating
    }

    pub(super) fn table(&self) -> &Table {
        &self.table
    }

    pub(super) fn texts(&self) -> &[Words] {
        &self.texts
    }

    pub(super) fn last_whole(&self, source: Source) -> Option<Whole> {
        self.desks[source as usize].whole
    }

    pub(super) fn all_ceded(&self) -> impl Iterator<Item = (Source, &str)> {
        let of = |source| self.desks[source as usize].ceded.iter().map(move |it| (source, &**it));
        Source::ALL.into_iter().flat_map(of)
    }

    /// Position of the text in which an owned object is held.
    pub(super) fn held_text(&self, at: u32) -> Option<u32> {
        let slot = self.table.view(at).1;
        if slot.is_intent_alone() {
            return None;
        }
        let whole = self.desks[slot.source as usize].whole;
        let is_later = whole.is_none_or(|whole| slot.applied > whole.seq);
        let own = slot.declared.checked_sub(1).filter(|_| is_later);
        own.or(whole.and_then(|whole| whole.text))
    }

    /// Adds a record. It is taken whole or not at all.
    ///
    /// # Errors
    /// No host would have written it, and why.
    pub(super) fn fold(&mut self, record: &Record<'_>, body: Option<Place>) -> Result<(), String> {
        match (self.seq, record.kind) {
            (0, Kind::Snapshot) => self.begin(record)?,
            (0, _) => return Err("is the first and not a snapshot".into()),
            (_, Kind::Snapshot) => return Err("is a snapshot and not the first".into()),
            (_, Kind::Accepted) => self.accept(record, body)?,
            (_, Kind::Began) => self.intend(record)?,
            (_, Kind::Applied) if !record.objects.is_empty() => self.restate(record)?,
            (_, Kind::Applied) => self.apply(record, body)?,
            (_, Kind::Removed | Kind::Forgotten | Kind::Left) => self.release(record)?,
            (_, Kind::Claimed) => self.claim(record)?,
            (_, Kind::Failed) => self.fail(record)?,
            (_, Kind::Pass) => self.pass(record)?,
            (_, Kind::Paused) => {
                let reason = (**need(&record.reason, "reason")?).into();
                let until = record.until.map(|when| when.0);
                self.paused = Some(Paused { reason, until, since: record.at.0 });
            }
            (_, Kind::Resumed) => self.paused = None,
            (_, Kind::Enrolled | Kind::Quarantined | Kind::Reported) => self.note(record, body),
            (_, Kind::Sent) => {
                let id = need(&record.id, "id")?;
                let sent =
                    |note: &Note| note.kind == Kind::Reported && note.id.as_deref() == Some(id);
                self.notes.retain(|note| !sent(note));
            }
        }
        if self.seq != 0 {
            self.restating = self.restating.saturating_sub(1);
        }
        self.floor = self.floor.max(record.floor.unwrap_or(0));
        self.seq = record.seq;
        Ok(())
    }

    fn begin(&mut self, record: &Record<'_>) -> Result<(), String> {
        match record.schema {
            Some(schema) if schema > SCHEMA => return Err(newer(schema)),
            Some(1..) => {}
            _ => return Err("names no schema".into()),
        }
        self.restating = record.records.unwrap_or(0);
        if record.records.is_none() && record.seq != 1 {
            return Err("begins a journal in its middle".into());
        }
        // A hint only, and so bounded: what follows it must still be read.
        self.table.reserve(record.owned.unwrap_or(0).min(1 << 17) as usize);
        Ok(())
    }

    fn accept(&mut self, record: &Record<'_>, body: Option<Place>) -> Result<(), String> {
        let source = *need(&record.source, "source")?;
        let sha256 = *need(&record.sha256, "sha256")?;
        let place = *need(&body, "declaration")?;
        let position = position(self.texts.len())?;
        let words = Words { source, declaration: sha256.short(), place, excerpt: false };
        self.texts.push(words);
        let (serial, at) = (record.serial, record.at.0);
        let node = record.node.as_deref().map(Into::into);
        let accepted = Accepted { sha256: sha256.0, serial, node, at, words, position };
        let desk = &mut self.desks[source as usize];
        (desk.accepted, desk.settled) = (Some(accepted), false);
        if source == Source::Link {
            self.floor = self.floor.max(serial.unwrap_or(0));
        }
        Ok(())
    }

    fn intend(&mut self, record: &Record<'_>) -> Result<(), String> {
        let mut said = described(record)?;
        if let Some(at) = self.table.find(said.object) {
            let (known, slot) = self.table.view(at);
            if known.of_type == said.of_type {
                // What is owned stays what it was until the change has been read back.
                (said.created, said.source) = (slot.created, slot.source);
            } else {
                // Another kind of thing is another thing, and what was there is gone.
                self.table.release(at);
            }
        }
        self.desks[said.source as usize].settled = false;
        let at = self.table.describe(&said)?;
        self.table.intend(at, (form(record), record.secret), record.at.0, record.started);
        if let Some(before) = &record.before {
            self.table.set_before(at, before);
        }
        Ok(())
    }

    fn apply(&mut self, record: &Record<'_>, body: Option<Place>) -> Result<(), String> {
        let said = described(record)?;
        let declared = self.declared_by(record, body)?;
        let at = self.table.describe(&said)?;
        self.table.settle(at, Some((form(record), record.secret)));
        let slot = self.table.slot(at);
        slot.applied = record.seq;
        slot.declared = declared;
        match (record.last, record.outcome) {
            (Some(last), _) => slot.changed = last,
            (None, Some(Outcome::Unchanged)) => {}
            (None, _) => slot.changed = record.seq,
        }
        if let Some(before) = &record.before {
            self.table.set_before(at, before);
        }
        self.table.refresh(at, record.started, record.reloaded);
        self.succeed(said.source, said.id);
        Ok(())
    }

    fn restate(&mut self, record: &Record<'_>) -> Result<(), String> {
        if self.restating == 0 {
            return Err("restates what no compaction does".into());
        }
        for Restated(object, of_type, id, form, last) in &record.objects {
            let said = Described { object: named(object)?, of_type, id, ..said(record)? };
            let at = self.table.describe_new(&said)?;
            self.table.settle(at, Some((form.0, record.secret)));
            let slot = self.table.slot(at);
            (slot.applied, slot.declared, slot.changed) = (record.seq, 0, *last);
        }
        Ok(())
    }

    /// Position, from 1, of the text that an applied record stands for; 0 where there is none.
    fn declared_by(&mut self, record: &Record<'_>, body: Option<Place>) -> Result<u32, String> {
        let Some(declaration) = record.declared_by else { return Ok(0) };
        let source = *need(&record.source, "source")?;
        if let Some(place) = body {
            let at = position(self.texts.len())?;
            self.texts.push(Words { source, declaration, place, excerpt: true });
            return Ok(at + 1);
        }
        Ok(self.find_text(source, declaration).map_or(0, |at| at + 1))
    }

    fn find_text(&self, source: Source, declaration: Hex<8>) -> Option<u32> {
        let latest = self.accepted(source).filter(|it| it.words.declaration == declaration);
        if let Some(accepted) = latest {
            return Some(accepted.position);
        }
        let is_it = |it: &Words| !it.excerpt && it.declaration == declaration;
        let own = self.texts.iter().rposition(|it| is_it(it) && it.source == source);
        // What was claimed is still held to its former owner's words.
        own.or_else(|| self.texts.iter().rposition(is_it)).map(|at| at as u32)
    }

    fn release(&mut self, record: &Record<'_>) -> Result<(), String> {
        let object = need(&record.object, "object")?;
        let at = self.table.find(object).ok_or("releases what is not owned")?;
        let owned = self.table.view(at).0;
        if !self.failing.is_empty() {
            let key = (owned.source, owned.id.into());
            self.failing.remove(&key);
        }
        self.table.release(at);
        Ok(())
    }

    fn claim(&mut self, record: &Record<'_>) -> Result<(), String> {
        let object = need(&record.object, "object")?;
        let from = *need(&record.from, "from")?;
        if record.to == Some(from) {
            return Err("claims from a source for itself".into());
        }
        let known = self.table.find(object);
        // Where a compaction restates what was ceded, it is not said to whom: that is the owner's.
        if let Some(to) = record.to {
            if let Some(at) = known {
                // Until its new owner has applied it, it is held as the old one left it.
                let held = self.held_text(at).map_or(0, |text| text + 1);
                let slot = self.table.slot(at);
                (slot.source, slot.declared, slot.applied) = (to, held, record.seq);
            }
            let desk = &mut self.desks[to as usize];
            desk.ceded.remove(&**object);
            desk.settled = false;
        }
        self.desks[from as usize].ceded.insert((**object).into());
        Ok(())
    }

    fn fail(&mut self, record: &Record<'_>) -> Result<(), String> {
        let source = *need(&record.source, "source")?;
        let id = need(&record.id, "id")?;
        let known = record.object.as_deref().and_then(|object| self.table.find(object));
        if let (Some(at), Some(Made::Nothing)) = (known, record.made) {
            if self.table.slot(at).is_intent_alone() {
                self.table.release(at);
            } else {
                self.table.settle(at, None);
            }
        }
        // An intent taken back because an earlier resource failed is no failure of its own.
        if record.cause.is_none() {
            return Ok(());
        }
        let text = |of: &Option<super::member::Text<'_>>| of.as_deref().unwrap_or("").into();
        let since = record.at.0;
        let (doing, cause) = (text(&record.doing), text(&record.cause));
        let failing = Failing { since, stage: record.stage, doing, cause };
        let known = self.failing.entry((source, (**id).into())).or_insert(failing.clone());
        *known = Failing { since: known.since, ..failing };
        Ok(())
    }

    fn pass(&mut self, record: &Record<'_>) -> Result<(), String> {
        let id = (**need(&record.id, "id")?).into();
        for Covered { source, sha256, whole } in &record.sources {
            if !whole {
                // A compaction says so after the same declaration has been called whole.
                self.desks[*source as usize].settled &= self.restating == 0;
                continue;
            }
            let text = self.find_text(*source, sha256.short());
            let whole = Whole { sha256: sha256.0, text, seq: record.seq };
            let desk = &mut self.desks[*source as usize];
            (desk.whole, desk.settled) = (Some(whole), true);
        }
        if record.outcome == Some(Outcome::Converged) {
            let covered = |source| record.sources.iter().any(|it| it.source == source);
            self.failing.retain(|(source, _), _| !covered(*source));
        }
        let trigger = record.trigger.as_deref().unwrap_or("").into();
        let (at, outcome) = (record.at.0, record.outcome);
        let counts = record.counts.unwrap_or_default();
        self.last_pass = Some(LastPass { id, at, trigger, outcome, counts });
        Ok(())
    }

    fn note(&mut self, record: &Record<'_>, body: Option<Place>) {
        let kind = record.kind;
        if kind != Kind::Reported {
            self.notes.retain(|note| note.kind != kind);
        }
        let id = record.id.as_deref().map(Into::into);
        let (source, serial, at) = (record.source, record.serial, record.at.0);
        let note = Note { kind, id, source, serial, at, body };
        // A report under an id that waits already takes its place: others were merged into it.
        match self.notes.iter_mut().find(|it| it.kind == kind && it.id == note.id) {
            Some(known) => *known = note,
            None => self.notes.push(note),
        }
    }

    fn succeed(&mut self, source: Source, id: &str) {
        if !self.failing.is_empty() {
            self.failing.remove(&(source, id.into()));
        }
    }
}

/// Says that a journal is of a later format.
pub(super) fn newer(schema: u32) -> String {
    format!("is of schema {schema}, and this host reads up to {SCHEMA}")
}

fn described<'a>(record: &'a Record<'_>) -> Result<Described<'a>, String> {
    let object = named(need(&record.object, "object")?)?;
    let (of_type, id) = (need(&record.of_type, "type")?, need(&record.id, "id")?);
    Ok(Described { object, of_type, id, ..said(record)? })
}

fn named(object: &str) -> Result<&str, String> {
    match object.split_once(':') {
        Some((space, _)) if !space.is_empty() => Ok(object),
        _ => Err("names an object that is none".into()),
    }
}

/// What a record says of an object, or of many alike, apart from names.
fn said<'a>(record: &Record<'_>) -> Result<Described<'a>, String> {
    let made = *need(&record.made, "made")?;
    if made == Made::Nothing {
        return Err("made nothing".into());
    }
    Ok(Described {
        object: "",
        of_type: "",
        id: "",
        source: *need(&record.source, "source")?,
        created: made == Made::Created,
        implied: record.implied,
        since: record.at.0,
    })
}

fn form(record: &Record<'_>) -> [u8; 8] {
    record.form.map_or([0; 8], |form| form.0)
}

fn need<'a, T>(member: &'a Option<T>, name: &str) -> Result<&'a T, String> {
    member.as_ref().ok_or_else(|| format!("has no {name}"))
}

fn position(len: usize) -> Result<u32, String> {
    u32::try_from(len).map_err(|_| "refers to more texts than a store can hold".into())
}
