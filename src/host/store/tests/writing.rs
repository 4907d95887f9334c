//! Appending: what it costs, what it leaves when it fails, and what the fold makes of it.

use super::locking::other_process;
use super::*;
use crate::resource::Standing;

fn applied(store: &mut Store, name: &str) -> Result<(), Error> {
    store.append(object(Kind::Applied, Source::Local, name, Made::Created), AT)
}

#[test]
#[ignore = "the other process of the test below"]
fn writer_on_a_full_disk() {
    let Some(dir) = std::env::var_os("NOX_TEST_DIR").map(PathBuf::from) else { return };
    let limit = |bytes: u64| {
        let limit = libc::rlimit { rlim_cur: bytes, rlim_max: libc::RLIM_INFINITY };
        // SAFETY: this process is one test's own; it ignores the signal that the limit would send.
        unsafe {
            libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
            assert_eq!(libc::setrlimit(libc::RLIMIT_FSIZE, &limit), 0);
        }
    };
    let mut store = Store::open(&dir, Duration::ZERO, AT).unwrap();
    applied(&mut store, "path:/before").unwrap();
    store.flush().unwrap();
    let good = fs::read(dir.join(JOURNAL)).unwrap();
    // Room for a few bytes, for a few lines, and for several pieces: a small group fails when it is
    // flushed, a large one in its middle.
    for (room, records) in [(1, 1), (100, 1), (1000, 50), (300 << 10, 5000)] {
        limit(good.len() as u64 + room);
        let mut done = Ok(());
        for at in 0..records {
            done = done.and_then(|()| applied(&mut store, &format!("path:/{at}")));
        }
        let failed = done.and_then(|()| store.flush()).unwrap_err();
        assert!(failed.to_string().contains("File too large"), "{failed}");
        assert_eq!(failed.exit_code(), 1);
        assert_eq!(fs::read(dir.join(JOURNAL)).unwrap(), good, "cut back");
        assert_eq!(store.state().owned_len(), 1, "the state is the journal's");
        let words = declaration(1, &["x"]).repeat(20_000);
        let mut record = Record::new(Kind::Accepted);
        (record.source, record.sha256) = (Some(Source::Local), Some(Hex([1; 32])));
        let refused = store.accept(record, words.as_bytes(), AT).and_then(|()| store.flush());
        assert!(refused.is_err());
        assert_eq!(store.state().accepted(Source::Local), None);
    }
    assert!(store.compact(&mut extract, AT).is_ok(), "there is room for less");
    limit(libc::RLIM_INFINITY);
    applied(&mut store, "path:/after").unwrap();
    store.flush().unwrap();
    drop(store);
    assert_eq!(Reading::of(&dir).unwrap().state.owned_len(), 2);
    println!("\nall as it should be");
}

//
#[test]
fn a_full_disk_leaves_the_journal_as_it_was_and_usable() {
    let scratch = Scratch::new();
    let child = other_process("writing::writer_on_a_full_disk", &scratch.store());
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("all as it should be"), "{said}");
}

#[test]
fn a_group_is_written_in_large_pieces() {
    let scratch = Scratch::new();
    let mut store = scratch.open();
    let mut written = vec![];
    for at in 0..4000 {
        applied(&mut store, &format!("path:/srv/files/{at}")).unwrap();
        written.push(fs::metadata(scratch.journal()).unwrap().len());
    }
    store.flush().unwrap();
    written.push(fs::metadata(scratch.journal()).unwrap().len());
    written.dedup();
    let pieces = *written.last().unwrap() / (256 << 10) + 2;
    assert!(written.len() as u64 <= pieces, "{} sizes were seen", written.len());
}

#[test]
fn a_long_declaration_reads_back_with_its_line_breaks_as_spaces() {
    let scratch = Scratch::new();
    let mut store = scratch.open();
    // Lengths about the sizes in which lines are read and summed.
    for len in (65_300..65_700).step_by(7).chain([200_000, 300_001, 1 << 20]) {
        let text = format!("{{\"resources\":[],\r\n\"filler\":\"{}\"}}", "\u{e9}".repeat(len / 2));
        accept(&mut store, Source::Bundle, 1, &text);
        store.flush().unwrap();
        let store = scratch.read();
        let accepted = store.state.accepted(Source::Bundle).unwrap();
        assert_eq!(accepted.sha256, sha256(text.as_bytes()));
        match store.words(accepted.words).unwrap() {
            Stored::Trusted(bundle) => {
                let expected = text.replace("\r\n", "  ");
                assert_eq!(bundle.bytes(), expected.as_bytes(), "{len}");
            }
            Stored::Untrusted(_) => panic!("a bundle is trusted"),
        }
    }
}

#[test]
fn a_record_that_no_host_may_write_is_left_out() {
    let scratch = Scratch::new();
    let mut store = scratch.open();
    let long = format!("path:/{}", "x".repeat(70_000));
    for bad in [
        Record::new(Kind::Snapshot),
        Record::new(Kind::Accepted),
        Record::new(Kind::Applied),
        Record::new(Kind::Paused),
        Record { object: Some("path:/x".into()), ..Record::new(Kind::Removed) },
        object(Kind::Began, Source::Local, &long, Made::Created),
        object(Kind::Began, Source::Local, ":/x", Made::Created),
        object(Kind::Applied, Source::Local, "path:/x", Made::Nothing),
    ] {
        let kind = bad.kind;
        let refused = store.append(bad, AT).unwrap_err();
        assert!(refused.to_string().contains(&format!("{kind:?}")), "{refused}");
    }
    applied(&mut store, "path:/x").unwrap();
    store.flush().unwrap();
    assert_eq!(store.state().seq(), 2);
    assert_eq!(scratch.read().state.seq(), 2);
}

//
#[test]
fn an_intent_alone_counts_as_owned_until_it_is_seen_that_nothing_was_made() {
    let scratch = Scratch::new();
    let mut store = scratch.open();
    let failed = |name: &'static str, made| Record {
        made,
        cause: Some("why".into()),
        ..object(Kind::Failed, Source::Local, name, Made::Nothing)
    };
    for name in ["path:/gone", "path:/perhaps", "path:/known"] {
        store.append(object(Kind::Began, Source::Local, name, Made::Created), AT).unwrap();
    }
    applied(&mut store, "path:/known").unwrap();
    store.append(object(Kind::Began, Source::Local, "path:/known", Made::Adopted), AT).unwrap();
    let pending = store.state().get("path:/known").unwrap();
    assert_eq!((pending.pending, pending.standing), (Some([7; 8]), Standing::Created));
    store.append(failed("path:/gone", Some(Made::Nothing)), AT).unwrap();
    store.append(failed("path:/perhaps", None), AT).unwrap();
    store.append(failed("path:/known", Some(Made::Nothing)), AT).unwrap();
    let state = store.state();
    assert_eq!(state.get("path:/gone"), None);
    let perhaps = state.get("path:/perhaps").unwrap();
    assert_eq!((perhaps.form, perhaps.pending), (None, Some([7; 8])));
    let known = state.get("path:/known").unwrap();
    assert_eq!((known.form, known.pending), (Some([7; 8]), None));
    assert_eq!(state.failing().count(), 3);
    applied(&mut store, "path:/known").unwrap();
    assert_eq!(store.state().failing().count(), 2);
}

//
#[test]
fn what_is_to_be_put_back_is_what_was_said_last() {
    let scratch = Scratch::new();
    let mut store = scratch.open();
    for (kind, before) in [(Kind::Began, "0"), (Kind::Applied, "0"), (Kind::Began, "1")] {
        let mut record = object(kind, Source::Local, "sysctl:net.x", Made::Adopted);
        record.before = Some(before.into());
        store.append(record, AT).unwrap();
    }
    assert_eq!(store.state().get("sysctl:net.x").unwrap().before, Some("1"));
    let silent = object(Kind::Applied, Source::Local, "sysctl:net.x", Made::Adopted);
    store.append(silent, AT).unwrap();
    assert_eq!(store.state().get("sysctl:net.x").unwrap().before, Some("1"));
    let removed = Record { object: Some("sysctl:net.x".into()), ..Record::new(Kind::Removed) };
    store.append(removed, AT).unwrap();
    let mut record = object(Kind::Applied, Source::Local, "sysctl:net.x", Made::Adopted);
    record.before = Some("2".into());
    store.append(record, AT).unwrap();
    assert_eq!(store.state().get("sysctl:net.x").unwrap().before, Some("2"));
}

#[test]
fn what_is_made_again_comes_last() {
    let scratch = Scratch::new();
    let mut store = scratch.open();
    let names = |store: &Store| -> Vec<String> {
        store.state().owned().map(|owned| owned.object.to_owned()).collect()
    };
    for name in ["path:/a", "path:/b", "path:/c"] {
        applied(&mut store, name).unwrap();
    }
    let removed = Record { object: Some("path:/a".into()), ..Record::new(Kind::Removed) };
    store.append(removed, AT).unwrap();
    assert_eq!(store.state().get("path:/a"), None);
    applied(&mut store, "path:/a").unwrap();
    applied(&mut store, "path:/b").unwrap();
    assert_eq!(names(&store), ["path:/b", "path:/c", "path:/a"]);
    store.compact(&mut extract, AT).unwrap();
    assert_eq!(names(&store), ["path:/b", "path:/c", "path:/a"]);
}

//
#[test]
fn a_claim_is_for_good() {
    let scratch = Scratch::new();
    let mut store = scratch.open();
    store.append(object(Kind::Applied, Source::Bundle, "path:/a", Made::Adopted), AT).unwrap();
    let claim = |from, to| Record {
        object: Some("path:/a".into()),
        from: Some(from),
        to: Some(to),
        ..Record::new(Kind::Claimed)
    };
    store.append(claim(Source::Bundle, Source::Link), AT).unwrap();
    let owned = store.state().get("path:/a").unwrap();
    assert_eq!((owned.source, owned.standing), (Source::Link, Standing::Adopted));
    let removed = Record { object: Some("path:/a".into()), ..Record::new(Kind::Forgotten) };
    store.append(removed, AT).unwrap();
    for _ in 0..2 {
        assert!(store.state().ceded(Source::Bundle, "path:/a"));
        assert!(!store.state().ceded(Source::Link, "path:/a"));
        store.compact(&mut extract, AT).unwrap();
    }
}

#[test]
fn a_tail_shows_each_record_once_across_a_compaction() {
    let scratch = Scratch::new();
    let mut store = scratch.open();
    let mut tail = Tail::of(&scratch.store(), 100).unwrap();
    let mut read = || {
        let mut seen = vec![];
        tail.read(&mut |entry| {
            seen.push(entry.record.seq);
            Ok(())
        })
        .unwrap();
        seen
    };
    applied(&mut store, "path:/a").unwrap();
    store.flush().unwrap();
    assert_eq!(read(), [1, 2]);
    assert_eq!(read(), [0; 0]);
    applied(&mut store, "path:/b").unwrap();
    store.flush().unwrap();
    store.compact(&mut extract, AT).unwrap();
    applied(&mut store, "path:/c").unwrap();
    store.flush().unwrap();
    assert_eq!(read(), [3, 6], "4 is the snapshot, 5 restates");
    drop(store);
    discard(&scratch.store(), Duration::ZERO, AT).unwrap();
    assert_eq!(read(), [1], "a new store is a new journal");
}

#[test]
fn a_tail_begins_at_the_last_records_asked_for() {
    let scratch = Scratch::new();
    let mut store = scratch.open();
    for name in ["path:/a", "path:/b", "path:/c"] {
        applied(&mut store, name).unwrap();
    }
    store.flush().unwrap();
    for (last, len) in [(4, 4), (6, 2)] {
        for asked in [0, 1, 2, 3, 4, 99] {
            let mut seen = vec![];
            let mut show = |entry: &Entry<'_>| {
                seen.push(entry.record.seq);
                Ok(())
            };
            Tail::of(&scratch.store(), asked).unwrap().read(&mut show).unwrap();
            assert_eq!(seen, (last + 1 - len.min(asked)..=last).collect::<Vec<_>>());
        }
        store.compact(&mut extract, AT).unwrap();
    }
    let summary = verify(&scratch.store()).unwrap();
    assert_eq!((summary.lines, summary.first_seq, summary.last_seq), (2, 7, 8));
}
