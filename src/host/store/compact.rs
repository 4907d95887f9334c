//! Compaction: a new journal that says, in as few records, what the old one adds up to.
//!
//! It is a snapshot line, the number of records that restate, and those: so there is one fold, and
//! a compaction that was cut short cannot be taken for a store that knows less. The new file is
//! written beside the old one, folded, and only then renamed over it.

use std::collections::BTreeMap;
use std::fs;
use std::io;

use super::append::{Appender, Body};
use super::journal::Place;
use super::known::Words;
use super::member::{Hex, Restated};
use super::owned::{Owned, Slot};
use super::reading::fold_file;
use super::record::{Covered, Kind, Made, Record, Source, SCHEMA};
use super::state::State;
use super::writer::Store;
use super::{files, stored, Stored, Stretch, JOURNAL, UNFINISHED};
use crate::error::{Error, Stage};
use crate::resource::Standing;
use crate::when::When;

/// Finds, in the words of a declaration, the resources that declare these objects: for each, where
/// in the words it stands. Given by the caller, because reading a declaration is not the store's.
pub type Extract<'a> = &'a mut dyn FnMut(&Stored, &[&str]) -> Vec<Option<std::ops::Range<usize>>>;

impl Store {
    /// Rewrites the journal without what no longer matters.
    ///
    /// # Errors
    /// As for [`Store::compact_if_due`].
    pub fn compact(&mut self, extract: Extract<'_>, now: When) -> Result<(), Error> {
        self.flush()?;
        let path = self.dir.join(JOURNAL);
        let failed = |err| Error::failed(Stage::Record, format!("rewrite {}", path.display()), err);
        match self.replace(extract, now).map_err(failed) {
            // The new journal is in force from here on, whatever becomes of its name.
            Ok(()) => files::sync_directory(&self.dir).map_err(failed),
            Err(err) => {
                // What stays of it is removed when the store is opened next.
                let _ = files::remove_if_there(&self.dir.join(UNFINISHED));
                self.read_anew()?;
                Err(err)
            }
        }
    }

    /// Puts a new journal in place of the old one; an error leaves that in place.
    fn replace(&mut self, extract: Extract<'_>, now: When) -> io::Result<()> {
        let unfinished = self.dir.join(UNFINISHED);
        let file = self.write_compacted(extract, now)?;
        // The old state makes room for the new; the old journal still stands.
        let known = std::mem::take(&mut self.state).owned_len();
        let folded = fold_file(&file, &unfinished).map_err(io::Error::other)?;
        if folded.torn.is_some() || folded.state.owned_len() != known {
            return Err(io::Error::other("it does not read back as it was written"));
        }
        fs::rename(&unfinished, self.dir.join(JOURNAL))?;
        self.journal = Appender::new(file, folded.end.offset);
        (self.state, self.base) = (folded.state, folded.base);
        Ok(())
    }

    fn write_compacted(&self, extract: Extract<'_>, now: When) -> io::Result<fs::File> {
        let unfinished = self.dir.join(UNFINISHED);
        files::remove_if_there(&unfinished)?;
        let excerpts = self.excerpts(extract)?;
        let out = Appender::new(files::create(&unfinished)?, 0);
        let (old, seq) = (self.journal.file(), self.state.seq());
        let mut writer = Writer { out, old, seq };
        restate(&self.state, &excerpts, now, &mut writer)?;
        writer.out.finish()
    }

    /// For each object that is held to words which will be gone with their declaration: where those
    /// words stand in the old journal.
    fn excerpts(&self, extract: Extract<'_>) -> io::Result<BTreeMap<u32, Place>> {
        let state = &self.state;
        let kept = kept(state);
        let mut lost: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        let mut excerpts = BTreeMap::new();
        for at in state.table().positions() {
            match own_text(state, at).map(|text| (text, &state.texts()[text as usize])) {
                Some((_, text)) if text.excerpt => drop(excerpts.insert(at, text.place)),
                Some((number, text)) if !is_kept(state, &kept, text) => {
                    lost.entry(number).or_default().push(at);
                }
                _ => {}
            }
        }
        for (number, positions) in lost {
            let text = &state.texts()[number as usize];
            let words = stored(self.journal.file(), *text)?;
            let object = |&at: &u32| state.table().view(at).0.object;
            let objects: Vec<&str> = positions.iter().map(object).collect();
            for (at, range) in positions.iter().zip(extract(&words, &objects)) {
                let Some(range) = range.filter(|range| range.end <= words.bytes().len()) else {
                    continue;
                };
                let (offset, len) = (text.place.offset + range.start as u64, range.len() as u64);
                excerpts.insert(*at, Place { offset, len });
            }
        }
        Ok(excerpts)
    }
}

/// Writes restating records.
struct Writer<'a> {
    out: Appender,
    old: &'a fs::File,
    seq: u64,
}

impl Writer<'_> {
    fn put(&mut self, mut record: Record<'_>, body: Option<Place>) -> io::Result<()> {
        self.seq += 1;
        record.seq = self.seq;
        let mut from = Stretch { file: self.old, at: body.map_or(0, |place| place.offset) };
        let body = body.map(|place| Body { len: place.len, from: &mut from });
        Ok(self.out.append(&mut record, body, |_, _| Ok(()))?)
    }
}

fn restate(
    state: &State,
    excerpts: &BTreeMap<u32, Place>,
    now: When,
    writer: &mut Writer<'_>,
) -> io::Result<()> {
    let start = writer.seq + 1;
    let parts = parts(state, excerpts);
    let records = Some(count(state, &parts));
    let floor = Some(state.floor()).filter(|&floor| floor > 0);
    let schema = Some(SCHEMA);
    let owned = Some(state.owned_len() as u64);
    let first = Record { at: now, schema, records, owned, floor, ..Record::new(Kind::Snapshot) };
    writer.put(first, None)?;
    let kept = kept(state);
    for &number in &kept {
        writer.put(accepted(state, number), Some(state.texts()[number as usize].place))?;
    }
    if let Some(record) = pass(state) {
        writer.put(record, None)?;
    }
    for part in &parts {
        let at = match part {
            Part::Alone(at) => *at,
            Part::Alike(positions) => {
                writer.put(alike(state, positions), None)?;
                continue;
            }
        };
        let (owned, slot) = state.table().view(at);
        if owned.form.is_some() {
            let excerpt = excerpts.get(&at).copied();
            let text = own_text(state, at).map(|text| &state.texts()[text as usize]);
            let named = text.filter(|text| excerpt.is_some() || is_kept(state, &kept, text));
            let declared_by = named.map(|text| text.declaration);
            writer.put(Record { declared_by, ..applied(&owned, &slot) }, excerpt)?;
        }
        if let Some(form) = owned.pending {
            let started = Some(owned.starting).filter(|&seq| seq > 0);
            let (form, at) = (Some(Hex(form)), When(owned.begun));
            writer.put(Record { form, at, started, ..object(Kind::Began, &owned) }, None)?;
        }
    }
    for (from, object) in state.all_ceded() {
        let (object, from) = (Some(object.into()), Some(from));
        writer.put(Record { at: now, object, from, ..Record::new(Kind::Claimed) }, None)?;
    }
    rest(state, writer)?;
    match writer.seq - start == count(state, &parts) {
        true => Ok(()),
        false => Err(io::Error::other("a compaction miscounted its own records")),
    }
}

fn rest(state: &State, writer: &mut Writer<'_>) -> io::Result<()> {
    for (source, id, why) in state.failing() {
        let mut record = Record::new(Kind::Failed);
        (record.source, record.id) = (Some(source), Some(id.into()));
        (record.stage, record.at) = (why.stage, When(why.since));
        (record.doing, record.cause) = (Some((&*why.doing).into()), Some((&*why.cause).into()));
        writer.put(record, None)?;
    }
    if let Some(paused) = state.paused() {
        let mut record = Record::new(Kind::Paused);
        record.reason = Some((&*paused.reason).into());
        (record.until, record.at) = (paused.until.map(When), When(paused.since));
        writer.put(record, None)?;
    }
    for note in state.notes() {
        let mut record = Record::new(note.kind);
        record.id = note.id.as_deref().map(Into::into);
        (record.source, record.serial) = (note.source, note.serial);
        record.at = When(note.at);
        writer.put(record, note.body)?;
    }
    Ok(())
}

/// How many records [`restate`] writes after the first.
fn count(state: &State, parts: &[Part]) -> u64 {
    let owned = |part: &Part| match part {
        Part::Alone(at) => {
            let owned = state.table().view(*at).0;
            usize::from(owned.form.is_some()) + usize::from(owned.pending.is_some())
        }
        Part::Alike(_) => 1,
    };
    let records = kept(state).len()
        + usize::from(pass(state).is_some())
        + parts.iter().map(owned).sum::<usize>()
        + state.all_ceded().count()
        + state.failing().count()
        + usize::from(state.paused().is_some())
        + state.notes().len();
    records as u64
}

/// How an object is restated.
enum Part {
    /// By records of its own.
    Alone(u32),
    /// Together with others that follow each other and have all but their names in common: most
    /// of what a host owns was applied with one declaration and nothing has happened to it since.
    Alike(Vec<u32>),
}

/// What all objects of a [`Part::Alike`] have in common: since when, on whose behalf, and what it
/// is to the host.
fn common(owned: &Owned<'_>) -> (u64, Source, Standing, bool, bool) {
    (owned.since, owned.source, owned.standing, owned.implied, owned.secret)
}

/// The most bytes of names in one record, so that it fits however much of them is escaped.
const MOST_NAMES: usize = 8 << 10;

/// Everything that is owned, in its order.
fn parts(state: &State, excerpts: &BTreeMap<u32, Place>) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    let (mut last, mut names) = (None, 0);
    for at in state.table().positions() {
        let owned = state.table().view(at).0;
        let is_plain = owned.form.is_some()
            && owned.pending.is_none()
            && owned.before.is_none()
            && owned.started.max(owned.reloaded) == 0
            && !excerpts.contains_key(&at)
            && own_text(state, at).is_none();
        if !is_plain {
            parts.push(Part::Alone(at));
            continue;
        }
        names += owned.object.len() + owned.id.len() + owned.of_type.len();
        match parts.last_mut() {
            Some(Part::Alike(positions)) if last == Some(common(&owned)) && names <= MOST_NAMES => {
                positions.push(at);
            }
            _ => {
                names = 0;
                parts.push(Part::Alike(vec![at]));
            }
        }
        last = Some(common(&owned));
    }
    parts
}

fn alike<'s>(state: &'s State, positions: &[u32]) -> Record<'s> {
    let view = |&at: &u32| {
        let (owned, slot) = state.table().view(at);
        let form = Hex(owned.form.unwrap_or_default());
        Restated(owned.object.into(), owned.of_type.into(), owned.id.into(), form, slot.changed)
    };
    let first = positions.first().map(|&at| state.table().view(at).0);
    let first = first.expect("a part is not empty");
    Record {
        object: None,
        of_type: None,
        id: None,
        objects: positions.iter().map(view).collect(),
        ..object(Kind::Applied, &first)
    }
}

/// The texts whose declarations stay: for each source the one applied whole, and the one accepted
/// last where that is another.
fn kept(state: &State) -> Vec<u32> {
    let mut kept: Vec<u32> = Vec::new();
    for source in Source::ALL {
        let accepted = state.accepted(source);
        let whole = state
            .last_whole(source)
            .filter(|whole| accepted.is_none_or(|accepted| accepted.sha256 != whole.sha256));
        kept.extend(whole.and_then(|whole| whole.text));
        kept.extend(accepted.map(|accepted| accepted.position));
    }
    kept
}

fn is_kept(state: &State, kept: &[u32], text: &Words) -> bool {
    let is_it = |&at: &u32| state.texts()[at as usize].declaration == text.declaration;
    !text.excerpt && kept.iter().any(is_it)
}

/// The text that an object is held to where that is not its source's whole declaration.
fn own_text(state: &State, at: u32) -> Option<u32> {
    let (_, slot) = state.table().view(at);
    let whole = state.last_whole(slot.source).and_then(|whole| whole.text);
    state.held_text(at).filter(|&text| Some(text) != whole)
}

fn accepted(state: &State, number: u32) -> Record<'_> {
    let text = &state.texts()[number as usize];
    let mut record = Record::new(Kind::Accepted);
    record.source = Some(text.source);
    match state.accepted(text.source).filter(|accepted| accepted.position == number) {
        Some(accepted) => {
            record.sha256 = Some(Hex(accepted.sha256));
            (record.serial, record.at) = (accepted.serial, When(accepted.at));
            record.node = accepted.node.as_deref().map(Into::into);
        }
        None => record.sha256 = state.whole(text.source).copied().map(Hex),
    }
    record
}

/// The last pass, standing for every source's last whole one. What has come since, and was neither
/// finished nor let go of, is said by a second part in which that is not whole.
fn pass(state: &State) -> Option<Record<'_>> {
    let last = state.last_pass()?;
    let covered = |source| {
        let whole = state.whole(source).map(|sha256| (Hex(*sha256), true));
        let open = whole.filter(|_| !state.is_settled(source)).map(|(sha256, _)| (sha256, false));
        let parts = whole.into_iter().chain(open);
        parts.map(move |(sha256, whole)| Covered { source, sha256, whole })
    };
    Some(Record {
        id: Some((&*last.id).into()),
        at: When(last.at),
        trigger: Some((&*last.trigger).into()),
        outcome: last.outcome,
        counts: Some(last.counts),
        sources: Source::ALL.into_iter().flat_map(covered).collect(),
        ..Record::new(Kind::Pass)
    })
}

fn object<'a>(kind: Kind, owned: &Owned<'a>) -> Record<'a> {
    let created = owned.standing == Standing::Created;
    Record {
        object: Some(owned.object.into()),
        of_type: Some(owned.of_type.into()),
        id: Some(owned.id.into()),
        source: Some(owned.source),
        made: Some(if created { Made::Created } else { Made::Adopted }),
        implied: owned.implied,
        secret: owned.secret,
        at: When(owned.since),
        before: owned.before.map(Into::into),
        ..Record::new(kind)
    }
}

fn applied<'a>(owned: &Owned<'a>, slot: &Slot) -> Record<'a> {
    let some = |seq| Some(seq).filter(|&seq| seq > 0);
    Record {
        form: owned.form.map(Hex),
        last: Some(slot.changed),
        started: some(owned.started),
        reloaded: some(owned.reloaded),
        ..object(Kind::Applied, owned)
    }
}
