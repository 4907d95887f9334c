//! Taking a declaration in, and getting it back out of the store.
//!
//! What is accepted is what the host will hold the machine to from now on, so everything that can
//! refuse it comes first, and its secrets are on the disk before the journal names them.

use std::collections::BTreeSet;
use std::io::{self, Read};

use crate::declaration::{self, Declaration, Fault, Own, Stored};
use crate::error::Error;
use crate::machine::Machine;
use crate::plan::{self, Claims, Fate};
use crate::store::{Body, Hex, Kind, Paused, Record, Secrets, Source, State, Store, When};

/// Whether `source` may declare this now: not below the serial that it declared before, not other
/// words under the same serial, and, unless `claims` says so, nothing that another source owns.
///
/// # Errors
/// [`Error::Refused`], naming everything that stands against it.
pub fn may(
    source: Source,
    declaration: &Declaration,
    state: &State,
    claims: Claims,
    what: &str,
) -> Result<(), Error> {
    let mut faults: Vec<Fault> = Vec::new();
    faults.extend(stale(source, declaration, state));
    let fates = plan::fates(source, declaration, state, claims);
    for (position, declared) in declaration.resources.iter().enumerate() {
        if let Some(Fate::Conflict(owner)) = fates.get(&position) {
            faults.push(Fault {
                place: format!("resources[{position}] {:?}", declared.id),
                field: String::new(),
                wrong: format!("{} is owned by {owner}", declared.resource.object()),
                mend: "apply with --take to take it over, for good".into(),
            });
        }
    }
    match faults.is_empty() {
        true => Ok(()),
        false => Err(Error::Refused { what: what.into(), faults }),
    }
}

fn stale(source: Source, declaration: &Declaration, state: &State) -> Option<Fault> {
    let serial = declaration.serial?;
    let accepted = state.accepted(source);
    let last = accepted.and_then(|accepted| accepted.serial).unwrap_or(0);
    let floor = if source == Source::Link { state.floor().max(last) } else { last };
    let wrong = if serial < floor {
        format!("{serial} is stale: {floor} was accepted before")
    } else if accepted.is_some_and(|it| serial == last && it.sha256 != declaration.sha256) {
        format!("{serial} was accepted before, with other contents")
    } else {
        return None;
    };
    let mend = "give each new declaration a higher serial".into();
    Some(Fault { place: String::new(), field: "serial".into(), wrong, mend })
}

/// Refuses what leads, by the links that stand on this machine, to the host itself.
///
/// # Errors
/// [`Error::Refused`], naming each resource that does.
pub fn guard(machine: &mut Machine, declaration: &Declaration, what: &str) -> Result<(), Error> {
    let mut faults = Vec::new();
    machine.expect(declaration);
    for (position, declared) in declaration.resources.iter().enumerate() {
        if let Err(trouble) = machine.guard(&declared.resource.question()) {
            faults.push(Fault {
                place: format!("resources[{position}] {:?}", declared.id),
                field: "path".into(),
                wrong: trouble.to_string(),
                mend: "leave what is the host's own to its installation".into(),
            });
        }
    }
    match faults.is_empty() {
        true => Ok(()),
        false => Err(Error::Refused { what: what.into(), faults }),
    }
}

/// Records that `source` declares this from now on, unless it does so already. The record is
/// durable with the next flush, at the latest with the first intent: nothing is done before it.
///
/// # Errors
/// The store cannot be written; nothing is accepted then.
pub fn accept(
    store: &mut Store,
    secrets: &mut Option<Secrets>,
    source: Source,
    declaration: &Declaration,
    now: When,
) -> Result<(), Error> {
    let mut failed = None;
    let known = store.state().accepted(source).is_some_and(|it| it.sha256 == declaration.sha256);
    let mut keep = |value: &[u8]| {
        let Some(secrets) = secrets.as_mut() else {
            unreachable!("whoever has a secret has where to keep it")
        };
        let name = secrets.name(value);
        // What a record on the disk names was made durable before it.
        if known && secrets.get(&name).is_ok() {
            return name;
        }
        secrets.put(value).unwrap_or_else(|error| {
            failed = Some(error);
            String::new()
        })
    };
    let mut len = 0;
    if known {
        // What was lost of its secrets is at hand again.
        let is_secret = |nth: &usize| declaration.resources[*nth].resource.secret();
        for nth in (0..declaration.resources.len()).filter(is_secret) {
            declaration::journal_form(declaration, nth, &mut keep);
        }
    } else {
        len = declaration::journal_len(declaration, &mut keep);
    }
    if let Some(error) = failed {
        return Err(error);
    }
    if let Some(secrets) = secrets {
        secrets.sync()?;
    }
    if known {
        return Ok(());
    }
    let record = Record {
        source: Some(source),
        sha256: Some(Hex(declaration.sha256)),
        serial: declaration.serial,
        node: declaration.node.as_deref().map(Into::into),
        ..Record::new(Kind::Accepted)
    };
    // A second time, since a copy of the whole would cost as much memory as the declaration itself.
    let mut name = |value: &[u8]| match secrets {
        Some(secrets) => secrets.name(value),
        None => String::new(),
    };
    let mut pieces = declaration::journal_text(declaration, &mut name);
    let mut from = Pieces { pieces: &mut pieces, piece: Vec::new(), at: 0 };
    store.append_body(record, Some(Body { len, from: &mut from }), now)
}

/// Text that comes in pieces, as something to read from.
struct Pieces<'p> {
    pieces: &'p mut dyn Iterator<Item = String>,
    piece: Vec<u8>,
    at: usize,
}

impl Read for Pieces<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.at == self.piece.len() {
            let Some(piece) = self.pieces.next() else { return Ok(0) };
            (self.piece, self.at) = (piece.into_bytes(), 0);
        }
        let count = into.len().min(self.piece.len() - self.at);
        into[..count].copy_from_slice(&self.piece[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }
}

/// The declaration that `source` has in force, as the store keeps it.
///
/// # Errors
/// It cannot be read back, or this host would no longer accept it.
pub fn stored(stored: Stored, secrets: Option<&Secrets>, own: &Own) -> Result<Declaration, Error> {
    let mut value = |name: &str| secrets.and_then(|secrets| secrets.get(name).ok());
    declaration::parse_stored(stored, own, &mut value)
        .map_err(|faults| Error::Refused { what: "a declaration in the store".into(), faults })
}

/// The pause in force at `now`.
pub fn paused(state: &State, now: When) -> Option<&Paused> {
    state.paused().filter(|paused| paused.until.is_none_or(|until| now.0 < until))
}

/// After a pass: rewrites the journal where that is due, and drops the secrets that nothing in
/// force names any more.
///
/// # Errors
/// The store could not be rewritten; it is as it was, and nothing is lost.
pub fn tidy(
    store: &mut Store,
    secrets: Option<&Secrets>,
    own: &Own,
    now: When,
) -> Result<(), Error> {
    let mut extract = |text: &Stored, objects: &[&str]| {
        // What this host would no longer accept, it is not held to either.
        let read = stored(text.clone(), secrets, own);
        read.map_or_else(|_| vec![None; objects.len()], |it| declaration::excerpts(&it, objects))
    };
    store.compact_if_due(&mut extract, now)?;
    let Some(secrets) = secrets else { return Ok(()) };
    if secrets.is_empty()? {
        return Ok(());
    }
    let mut named = BTreeSet::new();
    for words in store.state().in_force() {
        let text = store.words(words)?;
        named.extend(declaration::secret_names(text.bytes()).map(str::to_string));
    }
    secrets.sweep(&named)
}
