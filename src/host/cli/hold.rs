//! The commands of a person who takes the machine in hand: still, on again, or with a new store.

use serde::Serialize;

use super::commands::{Place, PATIENCE};
use super::{done, Invocation};
use crate::error::Error;
use crate::machine;
use crate::store::{self, Kind, Record, When};

/// The longest reason for a pause, in bytes: it is shown wherever somebody looks.
const LONGEST_REASON: usize = 1000;

/// `pause`: from now on declarations are accepted and nothing is applied.
pub(super) fn pause(it: &Invocation) -> Result<u8, Error> {
    #[derive(Serialize)]
    struct Shape<'r> {
        schema: &'static str,
        reason: &'r str,
        #[serde(skip_serializing_if = "Option::is_none")]
        until: Option<String>,
    }
    let Some(reason) = it.reason.as_deref().filter(|reason| !reason.trim().is_empty()) else {
        return Err(Error::Usage("pause wants --reason, for whoever looks next".into()));
    };
    if reason.len() > LONGEST_REASON {
        let why = format!("--reason is longer than {LONGEST_REASON} bytes: say where to read more");
        return Err(Error::Usage(why));
    }
    let place = Place::of(it)?;
    let mut store = place.store()?;
    let until = it.pause_for.map(|span| When(machine::now().0 + span.as_secs()));
    let record = Record { reason: Some(reason.into()), until, ..Record::new(Kind::Paused) };
    store.append(record, machine::now())?;
    store.flush()?;
    let until = until.map(|until| until.to_string());
    let said = format!("paused until {}: {reason}", until.as_deref().unwrap_or("resume"));
    done(it, &Shape { schema: "pause/1", reason, until }, &said)
}

/// `resume`: the end of that.
pub(super) fn resume(it: &Invocation) -> Result<u8, Error> {
    #[derive(Serialize)]
    struct Shape {
        schema: &'static str,
        was_paused: bool,
    }
    let shape = |was_paused| Shape { schema: "resume/1", was_paused };
    let place = Place::of(it)?;
    let mut store = place.store()?;
    if store.state().paused().is_none() {
        return done(it, &shape(false), "was not paused");
    }
    store.append(Record::new(Kind::Resumed), machine::now())?;
    store.flush()?;
    done(it, &shape(true), "resumed; the next pass applies what was accepted")
}

/// `rescue`: the store is set aside and a new one begun.
pub(super) fn rescue(it: &Invocation) -> Result<u8, Error> {
    #[derive(Serialize)]
    struct Shape {
        schema: &'static str,
        aside: String,
        floor: u64,
    }
    if !it.discard_state {
        return Err(Error::Usage("rescue wants --discard-state, so that it is meant".into()));
    }
    let place = Place::of(it)?;
    let store::Discarded { aside, floor } = store::discard(&place.state, PATIENCE, machine::now())?;
    let aside = aside.to_string_lossy().into_owned();
    let said = format!("set aside as {aside}");
    done(it, &Shape { schema: "rescue/1", aside, floor }, &said)
}
