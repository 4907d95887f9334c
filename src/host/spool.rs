//! Reports that wait to be sent: in the journal before anybody sees them, in order, bounded, and
//! let go of by their ids.
//!
//! Who sends reads them with [`waiting`] and [`Store::body`], and says with [`sent`] which were
//! taken. What is sent again after a crash has the same id, by which the other side knows it.
//! Where more wait than may, the two oldest become one, under the id and in the place of the later.

use std::io::Read;

use serde_json::{Map, Value};

use crate::error::Error;
use crate::report::Report;
use crate::store::{Body, Kind, Note, Record, State, Store, When};

/// How many reports may wait.
const MOST: usize = 200;

/// How many bytes of them.
const MOST_BYTES: u64 = 16 << 20;

/// A larger report leaves out what was found unchanged, and says of how many that is so.
const LARGE: usize = 256 << 10;

/// How large merged reports may be, in bytes.
const MOST_MERGED: usize = 1 << 20;

/// How many resources and errors of merged reports are kept, the latest.
const MOST_LINES: usize = 1000;

/// This host has somebody to report to: it has an identity of a mesh's.
pub fn is_wanted(state_directory: &std::path::Path) -> bool {
    state_directory.join("identity/key.pem").exists()
}

/// The reports that wait, the oldest first.
pub fn waiting(state: &State) -> impl Iterator<Item = &Note> {
    state.notes().iter().filter(|note| note.kind == Kind::Reported)
}

/// Has `report` wait, with its diffs or without; it is durable when this returns.
///
/// # Errors
/// The store cannot be written.
pub fn keep(store: &mut Store, report: &Report<'_>, diffs: bool, now: When) -> Result<(), Error> {
    let mut text = serde_json::to_vec(report).expect("a report is plain JSON");
    if !diffs && report.lines.iter().any(|line| line.diff.is_some()) {
        text = without_diffs(&text).unwrap_or_default();
    }
    if text.len() > LARGE {
        text = without_unchanged(&text).unwrap_or(text);
    }
    append(store, &report.id, &text, now)?;
    store.flush()?;
    while let Some((first, second)) = too_many(store.state()) {
        merge(store, &first, &second, now)?;
    }
    Ok(())
}

/// These have been taken. Ids of which none waits are passed over: they were said before.
///
/// # Errors
/// The store cannot be written.
pub fn sent(store: &mut Store, ids: &[String], now: When) -> Result<(), Error> {
    for id in ids {
        let waits = waiting(store.state()).any(|note| note.id.as_deref() == Some(id));
        if waits {
            let id = Some(id.as_str().into());
            store.append(Record { id, ..Record::new(Kind::Sent) }, now)?;
        }
    }
    store.flush()
}

fn append(store: &mut Store, id: &str, text: &[u8], now: When) -> Result<(), Error> {
    let record = Record { id: Some(id.into()), ..Record::new(Kind::Reported) };
    let (len, mut from) = (text.len() as u64, text);
    store.append_body(record, Some(Body { len, from: &mut from as &mut dyn Read }), now)
}

/// The two oldest, where there are more than may be.
fn too_many(state: &State) -> Option<(Note, Note)> {
    let len = |note: &Note| note.body.map_or(0, |place| place.len);
    let (count, bytes) =
        waiting(state).fold((0, 0), |(count, bytes), note| (count + 1, bytes + len(note)));
    let mut oldest = waiting(state);
    let (first, second) = (oldest.next()?, oldest.next()?);
    (count > MOST || bytes > MOST_BYTES).then(|| (first.clone(), second.clone()))
}

fn merge(store: &mut Store, first: &Note, second: &Note, now: When) -> Result<(), Error> {
    let read = |note: &Note| -> Result<Value, Error> {
        let text = note.body.map(|place| store.body(place)).transpose()?.unwrap_or_default();
        // The journal's sums have been checked: what does not parse was written by another version.
        Ok(serde_json::from_slice(&text).unwrap_or(Value::Null))
    };
    let text = bounded(merged(read(first)?, read(second)?));
    let (Some(old), Some(id)) = (first.id.as_deref(), second.id.as_deref()) else {
        unreachable!("a report is kept under its id")
    };
    append(store, id, &text, now)?;
    sent(store, &[old.to_owned()], now)
}

/// What two reports in a row come to: the later one, with what the earlier one did.
fn merged(earlier: Value, later: Value) -> Value {
    let (Value::Object(mut earlier), Value::Object(mut later)) = (earlier, later) else {
        return Value::Null;
    };
    let number = |of: &Map<String, Value>, name: &str| of.get(name).and_then(Value::as_u64);
    for name in ["changed", "corrected", "removed", "failed"] {
        let sum = number(&earlier, name).unwrap_or(0) + number(&later, name).unwrap_or(0);
        later.insert(name.into(), sum.into());
    }
    let count = number(&earlier, "merged").unwrap_or(1) + number(&later, "merged").unwrap_or(1);
    later.insert("merged".into(), count.into());
    if let Some(started) = earlier.remove("started") {
        later.insert("started".into(), started);
    }
    for name in ["resources", "errors"] {
        let mut all = list(earlier.remove(name));
        all.extend(list(later.remove(name)));
        let surplus = all.len().saturating_sub(MOST_LINES);
        all.drain(..surplus);
        later.insert(name.into(), all.into());
    }
    later.into()
}

/// The text of merged reports, without the earliest of their lines where it would be too large.
fn bounded(mut merged: Value) -> Vec<u8> {
    loop {
        let text = serde_json::to_vec(&merged).expect("a value is plain JSON");
        if text.len() <= MOST_MERGED {
            return text;
        }
        let mut dropped = 0;
        for name in ["resources", "errors"] {
            let Some(lines) = merged[name].as_array_mut() else { continue };
            dropped += lines.drain(..lines.len().div_ceil(2)).count();
        }
        if dropped == 0 {
            return text;
        }
    }
}

/// What a list says that matters later too.
fn list(value: Option<Value>) -> Vec<Value> {
    let Some(Value::Array(mut lines)) = value else { return Vec::new() };
    lines.retain(|line| line["outcome"] != "unchanged");
    lines
}

fn without_diffs(text: &[u8]) -> Option<Vec<u8>> {
    let mut report: Value = serde_json::from_slice(text).ok()?;
    for line in report["resources"].as_array_mut()? {
        line.as_object_mut()?.remove("diff");
    }
    serde_json::to_vec(&report).ok()
}

fn without_unchanged(text: &[u8]) -> Option<Vec<u8>> {
    let mut report: Map<String, Value> = serde_json::from_slice(text).ok()?;
    let before = report.get("resources")?.as_array()?.len();
    let told = list(report.remove("resources"));
    report.insert("unchanged".into(), (before - told.len()).into());
    report.insert("resources".into(), told.into());
    serde_json::to_vec(&report).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Outcome, Trigger};
    use crate::store::Reading;
    use std::path::PathBuf;
    use std::time::Duration;

    struct Place(PathBuf);

    impl Place {
        fn new(name: &str) -> Place {
            let path = std::env::temp_dir();
            let path = path.join(format!("mesh-host-spool-{name}-{}", std::process::id()));
            let _ = std::fs::remove_dir_all(&path);
            Place(path)
        }

        fn store(&self) -> Store {
            Store::open(&self.0, Duration::ZERO, When(1)).unwrap()
        }
    }

    impl Drop for Place {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn report(id: &str, detail: &str) -> Report<'static> {
        let text = br#"{"version":1,"resources":[]}"#.to_vec();
        let declaration = crate::declaration::parse(text, &Default::default()).unwrap();
        // A report borrows what was declared.
        let declaration = Box::leak(Box::new(declaration));
        let line = crate::report::Line {
            id: format!("of-{id}").into(),
            source: crate::store::Source::Local,
            kind: "file".into(),
            outcome: Outcome::Failed,
            took_ms: 0,
            detail: detail.into(),
            diff: Some("a secret of nobody's".into()),
            contested: false,
            position: None,
        };
        Report {
            schema: crate::report::REPORT,
            id: id.into(),
            node: None,
            trigger: Trigger::Timer,
            started: format!("started-{id}"),
            finished: format!("finished-{id}"),
            outcome: Outcome::Failed,
            declarations: vec![(crate::store::Source::Local, declaration)],
            lines: vec![line],
            errors: Vec::new(),
        }
    }

    fn ids(state: &State) -> Vec<String> {
        waiting(state).map(|note| note.id.as_deref().unwrap().to_string()).collect()
    }

    fn text(store: &Store, nth: usize) -> Value {
        let place = waiting(store.state()).nth(nth).unwrap().body.unwrap();
        serde_json::from_slice(&store.body(place).unwrap()).unwrap()
    }

    #[test]
    fn reports_wait_in_order_over_a_restart_until_each_was_taken() {
        let place = Place::new("order");
        let mut store = place.store();
        for id in ["a", "b", "c"] {
            keep(&mut store, &report(id, ""), false, When(2)).unwrap();
        }
        sent(&mut store, &["b".into(), "nobody".into()], When(3)).unwrap();
        drop(store);
        let mut store = place.store();
        assert_eq!(ids(store.state()), ["a", "c"]);
        let seq = store.state().seq();
        sent(&mut store, &["b".into()], When(3)).unwrap();
        assert_eq!(store.state().seq(), seq, "what was said before is not said again");
        assert_eq!(text(&store, 0)["id"], "a");
        assert!(!text(&store, 0).to_string().contains("secret"), "no diff leaves unasked");
        store.compact(&mut |_, objects| vec![None; objects.len()], When(4)).unwrap();
        assert_eq!(ids(store.state()), ["a", "c"]);
        assert_eq!(text(&store, 1)["id"], "c");
        drop(store);
        assert_eq!(ids(&Reading::of(&place.0).unwrap().state), ["a", "c"]);
    }

    #[test]
    fn more_than_may_wait_are_merged_the_oldest_first_and_nothing_is_miscounted() {
        let place = Place::new("merged");
        let mut store = place.store();
        for id in 0..MOST + 5 {
            keep(&mut store, &report(&id.to_string(), ""), false, When(2)).unwrap();
        }
        let all = ids(store.state());
        assert_eq!(all.len(), MOST);
        assert_eq!(all[0], "5", "the merged one has the id and the place of the latest in it");
        assert_eq!(all[1], "6");
        let first = text(&store, 0);
        assert_eq!((&first["merged"], &first["failed"]), (&6.into(), &6.into()));
        assert_eq!(first["started"], "started-0");
        assert_eq!(first["finished"], "finished-5");
        assert_eq!(first["resources"].as_array().unwrap().len(), 6);
        assert_eq!(first["resources"][0]["id"], "of-0");
    }

    #[test]
    fn large_reports_are_bounded_by_their_bytes() {
        let place = Place::new("large");
        let mut store = place.store();
        let long = "x".repeat(2 << 20);
        for id in 0..12 {
            keep(&mut store, &report(&id.to_string(), &long), false, When(2)).unwrap();
        }
        let bytes: u64 = waiting(store.state()).map(|note| note.body.unwrap().len).sum();
        assert!(bytes <= MOST_BYTES, "{bytes}");
        let merged: u64 = (0..waiting(store.state()).count())
            .map(|nth| text(&store, nth)["merged"].as_u64().unwrap_or(1))
            .sum();
        assert_eq!(merged, 12);
    }
}
