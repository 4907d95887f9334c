//! A compacted journal says what the old one did.

use super::*;

/// Enough to meet every pair of kinds many times over.
const RUNS: u64 = 60;
const OBJECTS: [&str; 5] = ["path:/a", "path:/b", "path:/c", "path:/d", "path:/e"];

/// One record that may or may not fit what is known; one that does not must be left out.
fn step(store: &mut Store, dice: &mut Dice, serial: &mut u64) -> &'static str {
    let source = Source::ALL[dice.below(3)];
    let name = OBJECTS[dice.below(5)];
    let made = [Made::Created, Made::Adopted][dice.below(2)];
    let accepted = store.state().accepted(source).map(|it| Hex(it.sha256));
    let id = ["r1", "r2", "r3"][dice.below(3)];
    let (what, record) = match dice.below(14) {
        0 | 1 => {
            *serial += 1;
            accept(store, source, *serial, &declaration(*serial, &OBJECTS));
            return "accepted";
        }
        2 | 3 => {
            let before = (dice.below(3) == 0).then(|| "before".into());
            let started = (dice.below(3) == 0).then(|| store.state().seq());
            ("began", Record { before, started, ..object(Kind::Began, source, name, made) })
        }
        4..=6 => {
            let mut record = object(Kind::Applied, source, name, made);
            record.declared_by = accepted.map(|it| it.short());
            record.implied = dice.below(6) == 0;
            record.started = (dice.below(4) == 0).then(|| store.state().seq());
            record.reloaded = (dice.below(4) == 0).then(|| store.state().seq());
            record.outcome = [Some(Outcome::Unchanged), Some(Outcome::Changed)][dice.below(2)];
            ("applied", record)
        }
        7 => {
            let kind = [Kind::Removed, Kind::Forgotten, Kind::Left][dice.below(3)];
            ("released", Record { object: Some(name.into()), ..Record::new(kind) })
        }
        8 => {
            let from = store.state().get(name).map(|owned| owned.source);
            let object = Some(name.into());
            ("claimed", Record { object, from, to: Some(source), ..Record::new(Kind::Claimed) })
        }
        9 => {
            let mut record = object(Kind::Failed, source, name, Made::Nothing);
            record.cause = Some("no \"space\"\n".into());
            record.made = record.made.filter(|_| dice.below(2) == 0);
            ("failed", record)
        }
        10 => {
            let outcome = [Outcome::Converged, Outcome::Failed][dice.below(2)];
            let Some(sha) = accepted else { return "nothing" };
            ("pass", whole(source, sha, outcome))
        }
        11 => {
            let mut record = Record::new([Kind::Paused, Kind::Resumed][dice.below(2)]);
            (record.reason, record.until) = (Some("r".into()), Some(When(2_000_000_000)));
            ("paused", record)
        }
        12 => {
            let kind = [Kind::Reported, Kind::Enrolled, Kind::Quarantined][dice.below(3)];
            let (record, mut body) =
                (Record { id: Some(id.into()), ..Record::new(kind) }, &b"[1]"[..]);
            let body = (dice.below(2) == 0).then_some(Body { len: 3, from: &mut body });
            store.append_body(record, body, AT).unwrap();
            return "noted";
        }
        _ => {
            let floor = Some(dice.below(50) as u64);
            ("sent", Record { id: Some(id.into()), floor, ..Record::new(Kind::Sent) })
        }
    };
    let before = store.state().seq();
    let done = store.append(record, When(AT.0 + before));
    assert_eq!(store.state().seq(), before + u64::from(done.is_ok()), "{what}");
    what
}

// R-9 R-31
#[test]
fn a_compacted_journal_says_what_the_old_one_did() {
    for seed in 1..=RUNS {
        let mut dice = Dice(seed);
        let mut serial = 0;
        let scratch = Scratch::new();
        let mut store = scratch.open();
        let mut steps = Vec::new();
        for _ in 0..4 {
            for _ in 0..dice.below(60) {
                steps.push(step(&mut store, &mut dice, &mut serial));
            }
            store.flush().unwrap();
            let expected = dump(&store);
            let settled = Source::ALL.map(|source| store.state().is_settled(source));
            assert_eq!(dump(&scratch.reopened(store)), expected, "read anew, {seed}: {steps:?}");
            store = scratch.open();
            store.compact(&mut extract, When(AT.0 + 60)).unwrap();
            assert_eq!(dump(&store), expected, "compacted, {seed}: {steps:?}");
            assert_eq!(dump(&scratch.reopened(store)), expected, "and read, {seed}: {steps:?}");
            store = scratch.open();
            // An open intent is only ever looked into once too often.
            let is_true = |source| settled[source as usize] || !store.state().is_settled(source);
            assert!(Source::ALL.into_iter().all(is_true), "settled, {seed}: {steps:?}");
        }
    }
}

#[test]
fn what_was_not_reached_is_held_to_its_last_form() {
    let scratch = Scratch::new();
    let mut store = scratch.open();
    let declare = |store: &mut Store, serial| {
        accept(store, Source::Link, serial, &declaration(serial, &OBJECTS))
    };
    let apply = |store: &mut Store, name, sha: Hex<32>| {
        let mut record = object(Kind::Applied, Source::Link, name, Made::Created);
        record.declared_by = Some(sha.short());
        store.append(record, AT).unwrap();
    };
    let first = declare(&mut store, 1);
    OBJECTS.iter().for_each(|name| apply(&mut store, name, first));
    store.append(whole(Source::Link, first, Outcome::Converged), AT).unwrap();
    // The second reaches /a and /b; the third /b only.
    let second = declare(&mut store, 2);
    ["path:/a", "path:/b"].iter().for_each(|name| apply(&mut store, name, second));
    store.append(whole(Source::Link, second, Outcome::Failed), AT).unwrap();
    let third = declare(&mut store, 3);
    apply(&mut store, "path:/b", third);
    store.append(whole(Source::Link, third, Outcome::Failed), AT).unwrap();
    store.flush().unwrap();
    assert!(!store.state().is_whole(Source::Link));
    for _ in 0..3 {
        for (name, serial) in [("path:/a", 2), ("path:/b", 3), ("path:/c", 1)] {
            let text = *store.state().held(Source::Link, name).unwrap();
            let words = store.words(text).unwrap();
            let words = std::str::from_utf8(words.bytes()).unwrap().to_owned();
            assert!(words.starts_with("{\"version\":1,"), "{words}");
            let own = format!("{{\"o\":\"{name}\",\"n\":{serial}}}");
            assert!(words.contains(&own), "{name}: {words}");
            assert_eq!(store.state().held(Source::Local, name), None);
        }
        store.compact(&mut extract, AT).unwrap();
    }
    // Of the second declaration only one resource is left.
    let journal = fs::read_to_string(scratch.journal()).unwrap();
    assert_eq!(journal.matches("\"n\":2").count(), 1, "{journal}");
    let fourth = declare(&mut store, 4);
    store.append(whole(Source::Link, fourth, Outcome::Converged), AT).unwrap();
    assert!(store.state().is_whole(Source::Link));
    let held = store.state().held(Source::Link, "path:/a").unwrap();
    assert_eq!(held.declaration, fourth.short());
}

// R-9
#[test]
fn what_another_declaration_left_behind_is_still_to_be_let_go_of() {
    let scratch = Scratch::new();
    let mut store = scratch.open();
    let first = declaration(1, &["path:/a"]);
    let sha = accept(&mut store, Source::Local, 1, &first);
    store.append(whole(Source::Local, sha, Outcome::Converged), AT).unwrap();
    assert!(store.state().is_settled(Source::Local));
    // The second makes something and fails; the first comes back, and fails too for now.
    let second = accept(&mut store, Source::Local, 2, &declaration(2, &["path:/b"]));
    for kind in [Kind::Began, Kind::Applied] {
        store.append(object(kind, Source::Local, "path:/b", Made::Created), AT).unwrap();
    }
    store.append(whole(Source::Local, second, Outcome::Failed), AT).unwrap();
    accept(&mut store, Source::Local, 3, &first);
    store.append(whole(Source::Local, sha, Outcome::Failed), AT).unwrap();
    for _ in 0..2 {
        assert!(!store.state().is_settled(Source::Local));
        store.compact(&mut extract, AT).unwrap();
        store = scratch.reopened(store);
    }
    assert!(store.state().is_whole(Source::Local));
    store.append(whole(Source::Local, sha, Outcome::Converged), AT).unwrap();
    store.compact(&mut extract, AT).unwrap();
    assert!(store.state().is_settled(Source::Local));
}

// R-9
#[test]
fn an_intent_is_as_old_as_itself_and_not_as_what_it_is_about() {
    let scratch = Scratch::new();
    let mut store = scratch.open();
    let at = |after| When(AT.0 + after);
    let put = |store: &mut Store, kind, after, started| {
        let record = object(kind, Source::Local, "path:/a", Made::Created);
        store.append(Record { started, ..record }, at(after)).unwrap();
    };
    let intent = |store: &Store| {
        let owned = store.state().get("path:/a").unwrap();
        (owned.since - AT.0, owned.begun - AT.0, owned.starting)
    };
    put(&mut store, Kind::Began, 0, None);
    put(&mut store, Kind::Applied, 1, Some(1));
    assert_eq!(intent(&store), (0, 0, 0));
    put(&mut store, Kind::Began, 1000, Some(4));
    // What that began may have been at it since, whatever is begun after it.
    put(&mut store, Kind::Began, 2000, None);
    for _ in 0..2 {
        assert_eq!(intent(&store), (0, 1000, 4));
        store.compact(&mut extract, at(3000)).unwrap();
        store = scratch.reopened(store);
    }
    put(&mut store, Kind::Applied, 4000, None);
    assert_eq!(intent(&store), (0, 0, 0));
    put(&mut store, Kind::Began, 5000, None);
    assert_eq!(intent(&store), (0, 5000, 0));
}

// R-31
#[test]
fn a_compaction_cut_short_is_damage_and_never_a_smaller_store() {
    let scratch = Scratch::new();
    let mut store = scratch.open();
    accept(&mut store, Source::Local, 1, &declaration(1, &OBJECTS));
    for name in OBJECTS {
        store.append(object(Kind::Applied, Source::Local, name, Made::Created), AT).unwrap();
    }
    store.compact(&mut extract, AT).unwrap();
    let journal = fs::read(scratch.journal()).unwrap();
    let restated = journal.len();
    assert_eq!(fold_bytes(&journal).unwrap().owned_len(), OBJECTS.len());
    for cut in 9..restated {
        match fold_bytes(&journal[..cut]) {
            Err(Error::Damaged { .. }) => {}
            other => panic!("cut at {cut}: {:?}", other.map(|it| it.owned_len())),
        }
    }
}

// R-31
#[test]
fn what_a_crash_leaves_of_a_compaction_is_cleared_away() {
    let scratch = Scratch::new();
    let mut store = scratch.open();
    store.append(object(Kind::Applied, Source::Local, "path:/a", Made::Created), AT).unwrap();
    store.flush().unwrap();
    drop(store);
    let unfinished = scratch.store().join(UNFINISHED);
    for left in [&b""[..], b"{\"seq\":9,", &fs::read(scratch.journal()).unwrap()] {
        fs::write(&unfinished, left).unwrap();
        assert_eq!(scratch.open().state().owned_len(), 1);
        assert!(!unfinished.exists());
    }
}

#[test]
fn a_journal_does_not_grow_without_bound() {
    let scratch = Scratch::new();
    let mut store = scratch.open();
    let (mut largest, mut compacted) = (0, 0);
    for serial in 0..400 {
        let filler = "x".repeat(2000);
        let text = declaration(serial, &["path:/a", &filler]);
        let sha = accept(&mut store, Source::Local, serial, &text);
        let mut record = object(Kind::Applied, Source::Local, "path:/a", Made::Created);
        record.declared_by = Some(sha.short());
        store.append(record, AT).unwrap();
        store.append(whole(Source::Local, sha, Outcome::Converged), AT).unwrap();
        compacted += u32::from(store.compact_if_due(&mut extract, AT).unwrap());
        largest = largest.max(fs::metadata(scratch.journal()).unwrap().len());
    }
    assert!(compacted > 1 && largest < 300 << 10, "{compacted} compactions, {largest} bytes");
    assert_eq!(store.state().accepted(Source::Local).unwrap().serial, Some(399));
}
