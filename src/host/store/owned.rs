//! What the host owns, packed: a hundred thousand objects cost little more than their names. Pure.
//!
//! Objects stand in the order in which they came to be owned. All names lie end to end in one text;
//! the index is open addressing over positions, and made once it is needed: a declaration names
//! what is owned in the order in which it was made, and is followed without one. What is released
//! leaves a gap, until the journal is compacted and folded anew.

use std::cell::{Cell, RefCell, RefMut};
use std::collections::BTreeMap;
use std::hash::Hasher as _;

use super::record::Source;
use crate::hash::Quick;
use crate::resource::Standing;

/// What the store knows of an object that the host owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owned<'a> {
    /// The object, `space:name`.
    pub object: &'a str,
    /// The type of the resource that declared it last.
    pub of_type: &'a str,
    /// That resource's id.
    pub id: &'a str,
    /// Its place among all that the host owns or owned; less than [`State::positions`].
    ///
    /// [`State::positions`]: super::State::positions
    pub position: usize,
    /// On whose behalf it is owned.
    pub source: Source,
    /// Created or adopted.
    pub standing: Standing,
    /// It was made along with another and is declared by none.
    pub implied: bool,
    /// What it holds may be secret.
    pub secret: bool,
    /// Since when, in seconds since 1970.
    pub since: u64,
    /// Digest of the form that it was last read back in; `None` where there is only an intent.
    pub form: Option<[u8; 8]>,
    /// Digest of the form that was intended and never seen to have come about.
    pub pending: Option<[u8; 8]>,
    /// What must be put back on release.
    pub before: Option<&'a str>,
    /// Number of the record of its last creation, change or correction; 0 where there is none.
    pub changed: u64,
    /// Number of the record up to which it took in, by a start, the changes of what it follows.
    pub started: u64,
    /// The same by a reload.
    pub reloaded: u64,
    /// When the intent that stands over it was first written; of none, as `since`.
    pub begun: u64,
    /// The number that `started` will have once the start that was intended is over.
    pub starting: u64,
}

/// A stretch of the text of names.
#[derive(Clone, Copy, Default)]
struct Span {
    at: u32,
    len: u32,
}

/// One object.
#[derive(Clone, Copy)]
pub(super) struct Slot {
    name: Span,
    id: Span,
    since: u64,
    pub form: [u8; 8],
    pub pending: [u8; 8],
    pub changed: u64,
    /// Number of the record that `declared` comes from.
    pub applied: u64,
    /// Position, from 1, of the text that its last form stands in; 0 where none is known.
    pub declared: u32,
    of_type: u8,
    pub source: Source,
    pub created: bool,
    flags: u8,
}

const LIVE: u8 = 1;
const IMPLIED: u8 = 2;
const APPLIED: u8 = 4;
const PENDING: u8 = 8;
const SECRET: u8 = 16;
/// An index entry that leads nowhere.
const VACANT: u32 = u32::MAX;

/// How a record describes an object.
pub(super) struct Described<'a> {
    pub object: &'a str,
    pub of_type: &'a str,
    pub id: &'a str,
    pub source: Source,
    pub created: bool,
    pub implied: bool,
    pub since: u64,
}

/// The table.
#[derive(Default)]
pub(super) struct Table {
    slots: Vec<Slot>,
    /// Of the first [`Table::indexed`] slots.
    index: RefCell<Vec<u32>>,
    indexed: Cell<usize>,
    names: String,
    types: Vec<Box<str>>,
    befores: BTreeMap<u32, Box<str>>,
    /// For what follows others: up to which record it took in their changes, started and reloaded.
    refreshed: BTreeMap<u32, (u64, u64)>,
    /// For what was owned before an intent came to stand over it: [`Owned::begun`] and
    /// [`Owned::starting`].
    intents: BTreeMap<u32, (u64, u64)>,
    live: usize,
    /// The position found last: what is asked for next is mostly the same again, or the next one.
    found: Cell<u32>,
}

impl Table {
    /// Makes room for so many objects at once.
    pub fn reserve(&mut self, objects: usize) {
        self.slots.reserve_exact(objects);
    }

    /// One more than the greatest position.
    pub fn end(&self) -> usize {
        self.slots.len()
    }

    /// How many are owned.
    pub fn len(&self) -> usize {
        self.live
    }

    /// The object's position.
    pub fn find(&self, object: &str) -> Option<u32> {
        let last = self.found.get();
        let near = [last, last.saturating_add(1)].into_iter().find(|&at| {
            let slot = self.slots.get(at as usize);
            slot.is_some_and(|it| it.flags & LIVE != 0 && self.text(it.name) == object)
        });
        let at = match near {
            Some(at) => at,
            None => {
                let index = self.complete(0);
                index[self.probe(&index, object)]
            }
        };
        if at == VACANT || self.slots[at as usize].flags & LIVE == 0 {
            return None;
        }
        self.found.set(at);
        Some(at)
    }

    /// The slot at a position that [`Table::find`] or [`Table::describe`] gave.
    pub fn slot(&mut self, at: u32) -> &mut Slot {
        &mut self.slots[at as usize]
    }

    /// The positions of what is owned, in order of making.
    pub fn positions(&self) -> impl DoubleEndedIterator<Item = u32> + '_ {
        let live = |&at: &u32| self.slots[at as usize].flags & LIVE != 0;
        (0..self.slots.len() as u32).filter(live)
    }

    /// The positions of what has an open intent.
    pub fn pending(&self) -> impl Iterator<Item = u32> + '_ {
        let open = LIVE | PENDING;
        (0..self.slots.len() as u32).filter(move |&at| self.slots[at as usize].flags & open == open)
    }

    /// On whose behalf each object is owned.
    pub fn sources(&self) -> impl Iterator<Item = Source> + '_ {
        self.slots.iter().filter(|slot| slot.flags & LIVE != 0).map(|slot| slot.source)
    }

    /// What is at a position.
    pub fn view(&self, at: u32) -> (Owned<'_>, Slot) {
        let slot = self.slots[at as usize];
        let has = |flag| slot.flags & flag != 0;
        let (started, reloaded) = self.refreshed.get(&at).copied().unwrap_or_default();
        let (begun, starting) = self.intents.get(&at).copied().unwrap_or((slot.since, 0));
        let owned = Owned {
            object: self.text(slot.name),
            of_type: &self.types[usize::from(slot.of_type)],
            id: self.text(slot.id),
            position: at as usize,
            source: slot.source,
            standing: if slot.created { Standing::Created } else { Standing::Adopted },
            implied: has(IMPLIED),
            secret: has(SECRET),
            since: slot.since,
            form: has(APPLIED).then_some(slot.form),
            pending: has(PENDING).then_some(slot.pending),
            before: self.befores.get(&at).map(|text| &**text),
            changed: slot.changed,
            started,
            reloaded,
            begun,
            starting,
        };
        (owned, slot)
    }

    /// Takes the object in, or takes over what is said of it anew; its position.
    ///
    /// # Errors
    /// There are more types or names than a store can hold.
    pub fn describe(&mut self, said: &Described<'_>) -> Result<u32, String> {
        let of_type = self.intern(said.of_type)?;
        let index = self.complete(1);
        let probe = self.probe(&index, said.object);
        let known = index[probe];
        drop(index);
        let at = match known {
            VACANT => self.add(said, of_type, None)?,
            at if self.slots[at as usize].flags & LIVE != 0 => {
                return self.describe_anew(at, said, of_type)
            }
            // A name that was let go of keeps its place in the index, and its text.
            at => self.add(said, of_type, Some(self.slots[at as usize].name))?,
        };
        self.index.get_mut()[probe] = at;
        self.indexed.set(self.slots.len());
        Ok(at)
    }

    /// Takes in an object that is not known yet.
    ///
    /// # Errors
    /// As [`Table::describe`].
    pub fn describe_new(&mut self, said: &Described<'_>) -> Result<u32, String> {
        let of_type = self.intern(said.of_type)?;
        self.add(said, of_type, None)
    }

    fn describe_anew(&mut self, at: u32, said: &Described<'_>, of_type: u8) -> Result<u32, String> {
        if self.text(self.slots[at as usize].id) != said.id {
            self.slots[at as usize].id = self.keep(said.id)?;
        }
        let slot = &mut self.slots[at as usize];
        slot.of_type = of_type;
        slot.source = said.source;
        slot.created = said.created;
        slot.set(IMPLIED, said.implied);
        Ok(at)
    }

    /// Keeps what is to be put back on release.
    pub fn set_before(&mut self, at: u32, before: &str) {
        self.befores.insert(at, before.into());
    }

    /// Keeps up to which records the object took in the changes of what it follows.
    pub fn refresh(&mut self, at: u32, started: Option<u64>, reloaded: Option<u64>) {
        if started.is_none() && reloaded.is_none() {
            return;
        }
        let known = self.refreshed.entry(at).or_default();
        *known = (started.unwrap_or(known.0), reloaded.unwrap_or(known.1));
    }

    /// An intent stands over the object from `begun` on, or goes on to: what an earlier one began
    /// was never seen to end. `starting` is said of one that starts it.
    pub fn intend(
        &mut self,
        at: u32,
        (form, secret): ([u8; 8], bool),
        begun: u64,
        starting: Option<u64>,
    ) {
        let slot = &mut self.slots[at as usize];
        let known = match slot.flags & PENDING {
            0 => (begun, 0),
            _ => self.intents.get(&at).copied().unwrap_or((slot.since, 0)),
        };
        slot.intend(form, secret);
        let intent = (known.0, starting.unwrap_or(known.1));
        if intent != (slot.since, 0) {
            self.intents.insert(at, intent);
        }
    }

    /// No intent stands over the object any more: it was read back in this form, if in any.
    pub fn settle(&mut self, at: u32, applied: Option<([u8; 8], bool)>) {
        self.intents.remove(&at);
        let slot = &mut self.slots[at as usize];
        slot.set(PENDING, false);
        if let Some((form, secret)) = applied {
            slot.apply(form, secret);
        }
    }

    /// Lets go of an object.
    pub fn release(&mut self, at: u32) {
        self.slots[at as usize].flags = 0;
        self.befores.remove(&at);
        self.refreshed.remove(&at);
        self.intents.remove(&at);
        self.live -= 1;
    }

    /// Bytes held, for the test that bounds them.
    #[cfg(test)]
    pub fn heap_bytes(&self) -> usize {
        self.slots.capacity() * size_of::<Slot>()
            + self.index.borrow().capacity() * 4
            + self.names.capacity()
    }

    fn add(
        &mut self,
        said: &Described<'_>,
        of_type: u8,
        name: Option<Span>,
    ) -> Result<u32, String> {
        let at = self.slots.len();
        if at as u32 == VACANT {
            return Err("owns more objects than a store can hold".into());
        }
        let name = match name {
            Some(name) => name,
            None => self.keep(said.object)?,
        };
        let id = self.keep(said.id)?;
        let (form, pending, source) = ([0; 8], [0; 8], said.source);
        let flags = LIVE | if said.implied { IMPLIED } else { 0 };
        self.slots.push(Slot {
            name,
            id,
            since: said.since,
            form,
            pending,
            changed: 0,
            applied: 0,
            declared: 0,
            of_type,
            source,
            created: said.created,
            flags,
        });
        self.live += 1;
        Ok(at as u32)
    }

    fn intern(&mut self, of_type: &str) -> Result<u8, String> {
        let found = self.types.iter().position(|known| **known == *of_type);
        let at = found.unwrap_or_else(|| {
            self.types.push(of_type.into());
            self.types.len() - 1
        });
        u8::try_from(at).map_err(|_| "names more than 256 types".into())
    }

    fn keep(&mut self, text: &str) -> Result<Span, String> {
        let (at, len) = (self.names.len(), text.len());
        let end = u32::try_from(at + len).map_err(|_| "holds more than 4 GiB of names")?;
        self.names.push_str(text);
        Ok(Span { at: end - len as u32, len: len as u32 })
    }

    fn text(&self, span: Span) -> &str {
        &self.names[span.at as usize..][..span.len as usize]
    }

    /// The index entry that leads to the object, or the vacant one where it would go.
    fn probe(&self, index: &[u32], object: &str) -> usize {
        let mask = index.len() - 1;
        let mut entry = hash(object) as usize & mask;
        loop {
            let at = index[entry];
            if at == VACANT || self.text(self.slots[at as usize].name) == object {
                return entry;
            }
            entry = (entry + 1) & mask;
        }
    }

    /// The index of all that there is, with at least a third of it vacant after `more` objects.
    fn complete(&self, more: usize) -> RefMut<'_, Vec<u32>> {
        let mut index = self.index.borrow_mut();
        let entries = self.slots.len() + more;
        if entries + entries / 2 >= index.len() {
            let wanted = (entries * 2).next_power_of_two().max(16);
            *index = Vec::new();
            *index = vec![VACANT; wanted];
            self.indexed.set(0);
        }
        for at in self.indexed.get()..self.slots.len() {
            // Later slots of one name come to stand in place of earlier ones.
            let probe = self.probe(&index, self.text(self.slots[at].name));
            index[probe] = at as u32;
        }
        self.indexed.set(self.slots.len());
        index
    }
}

impl Slot {
    /// Only an intent is known of it.
    pub fn is_intent_alone(&self) -> bool {
        self.flags & APPLIED == 0
    }

    /// An intent stands over it.
    fn intend(&mut self, form: [u8; 8], secret: bool) {
        self.pending = form;
        self.set(PENDING, true);
        // What it held stays secret until it is seen to hold something else.
        self.flags |= if secret { SECRET } else { 0 };
    }

    /// It was read back in this form.
    fn apply(&mut self, form: [u8; 8], secret: bool) {
        self.form = form;
        self.set(SECRET, secret);
        self.set(APPLIED, true);
    }

    fn set(&mut self, flag: u8, on: bool) {
        self.flags = if on { self.flags | flag } else { self.flags & !flag };
    }
}

fn hash(object: &str) -> u64 {
    let mut hasher = Quick::default();
    hasher.write(object.as_bytes());
    hasher.finish()
}
