//! What is left after a power failure, and what is damage.

use super::*;

/// A journal with one record of most kinds.
fn sample() -> Vec<u8> {
    let scratch = Scratch::new();
    let mut store = scratch.open();
    let sha = accept(&mut store, Source::Link, 3, &declaration(3, &["path:/a", "path:/b"]));
    for name in ["path:/a", "path:/b \u{1f980}\"\\"] {
        store.append(object(Kind::Began, Source::Link, name, Made::Created), AT).unwrap();
        let mut record = object(Kind::Applied, Source::Link, name, Made::Created);
        record.declared_by = Some(sha.short());
        store.append(record, AT).unwrap();
    }
    store.append(whole(Source::Link, sha, Outcome::Converged), AT).unwrap();
    let removed = Record { object: Some("path:/a".into()), ..Record::new(Kind::Removed) };
    store.append(removed, AT).unwrap();
    store.flush().unwrap();
    fs::read(scratch.journal()).unwrap()
}

fn lines(bytes: &[u8]) -> Vec<&[u8]> {
    bytes.split_inclusive(|&byte| byte == b'\n').collect()
}

fn known(state: &State) -> (u64, Vec<String>, u64) {
    let owned = state.owned().map(|owned| format!("{owned:?}")).collect();
    (state.seq(), owned, state.floor())
}

//
#[test]
fn a_journal_cut_at_any_byte_holds_what_its_whole_lines_say() {
    let journal = sample();
    let scratch = Scratch::new();
    fs::create_dir(scratch.store()).unwrap();
    fs::set_permissions(scratch.store(), std::os::unix::fs::PermissionsExt::from_mode(0o700))
        .unwrap();
    for cut in 0..=journal.len() {
        let whole = journal[..cut].iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        let expected = known(&fold_bytes(&journal[..whole]).unwrap());
        assert_eq!(known(&fold_bytes(&journal[..cut]).unwrap()), expected, "cut at {cut}");

        fs::write(scratch.journal(), &journal[..cut]).unwrap();
        let reading = Reading::of(&scratch.store()).unwrap();
        assert_eq!(reading.torn.is_some(), cut != whole, "cut at {cut}");
        assert_eq!(fs::read(scratch.journal()).unwrap(), &journal[..cut], "a reader cut at {cut}");

        // Each opening syncs, so not every cut is also opened; every line has several that are.
        if cut % 19 > 1 && cut != whole {
            continue;
        }
        let mut store = scratch.open();
        let said = !store.take_notices().is_empty();
        assert_eq!(said, cut != whole || whole == 0, "said of a cut at {cut}");
        let before = store.state().seq();
        store.append(Record::new(Kind::Resumed), AT).unwrap();
        store.flush().unwrap();
        drop(store);
        let after = Reading::of(&scratch.store()).unwrap();
        assert_eq!(after.torn, None, "cut at {cut}");
        assert_eq!(after.state.seq(), before + 1, "cut at {cut}");
    }
}

//
#[test]
fn a_tail_of_nul_bytes_is_cut_off() {
    let journal = sample();
    let expected = known(&fold_bytes(&journal).unwrap());
    for zeros in [1, 4096, 300_000] {
        let mut torn = journal.clone();
        torn.resize(journal.len() + zeros, 0);
        assert_eq!(known(&fold_bytes(&torn).unwrap()), expected);
    }
    let mut half = journal.clone();
    let at = journal.len() - lines(&journal).last().unwrap().len() + 10;
    half[at..].fill(0);
    half.resize(journal.len() + 4096, 0);
    assert_eq!(fold_bytes(&half).unwrap().seq(), lines(&journal).len() as u64 - 1);
}

//
#[test]
fn a_flipped_bit_before_the_last_line_is_damage_and_the_line_is_named() {
    let journal = sample();
    let lines = lines(&journal);
    let mut start = 0;
    for (number, line) in lines.iter().enumerate().take(lines.len() - 2) {
        for at in start..start + line.len() {
            for bit in 0..8 {
                let mut flipped = journal.clone();
                flipped[at] ^= 1 << bit;
                match fold_bytes(&flipped) {
                    Err(Error::Damaged { line, .. }) => assert_eq!(line, number as u64 + 1),
                    other => panic!("byte {at} bit {bit}: {:?}", other.map(|it| it.seq())),
                }
            }
        }
        start += line.len();
    }
}

#[test]
fn what_no_host_would_write_is_damage() {
    let journal = sample();
    let lines = lines(&journal);
    let skip = |skipped: usize| {
        let kept = lines.iter().enumerate().filter(|(at, _)| *at != skipped);
        kept.flat_map(|(_, line)| line.iter().copied()).collect::<Vec<u8>>()
    };
    let sealed = |members: &str| {
        let object = format!("{{{members}}}");
        let tail = journal::tail(&sha256(object.as_bytes()));
        [&object.as_bytes()[..object.len() - 1], &tail, b"\n"].concat()
    };
    let first = lines[0];
    let at = "\"at\":\"2026-01-02T03:04:05Z\"";
    let after = |members: &str| [first, &sealed(&format!("\"seq\":2,{at},{members}"))].concat();
    for (what, bytes) in [
        ("text", b"not a journal at all, but longer than a sum\n".to_vec()),
        ("empty JSON", b"{}\n".to_vec()),
        ("a lost first line", skip(0)),
        ("a lost line", skip(2)),
        ("NUL bytes of another file", vec![0; 8192]),
        ("unknown kind", after("\"kind\":\"blessed\"")),
        ("unknown member", after("\"kind\":\"resumed\",\"why\":1")),
        ("member twice", after("\"kind\":\"paused\",\"reason\":\"a\",\"reason\":\"b\"")),
        ("no object", after("\"kind\":\"removed\"")),
        ("not owned", after("\"kind\":\"removed\",\"object\":\"path:/x\"")),
        (
            "body beyond the line",
            after("\"kind\":\"accepted\",\"bytes\":99999999,\"declaration\":{}"),
        ),
        ("body of 2^64", after("\"kind\":\"accepted\",\"bytes\":18446744073709551615")),
        ("second snapshot", after("\"kind\":\"snapshot\",\"schema\":1")),
        ("no schema", sealed(&format!("\"seq\":1,{at},\"kind\":\"snapshot\""))),
        ("middle", sealed(&format!("\"seq\":9,{at},\"kind\":\"snapshot\",\"schema\":1"))),
    ] {
        match fold_bytes(&bytes) {
            Err(Error::Damaged { .. }) => {}
            other => panic!("{what}: {:?}", other.map(|it| it.seq())),
        }
    }
}

/// Lines whose sum is right and whose content is not: nothing may be taken for granted of them.
#[test]
fn a_resealed_line_of_any_content_is_read_or_refused() {
    let journal = sample();
    let lines = lines(&journal);
    let mut dice = Dice(7);
    let (mut read, mut refused) = (0, 0);
    for _ in 0..4000 {
        let at = dice.below(lines.len());
        let mut line = lines[at][..lines[at].len() - journal::TAIL - 1].to_vec();
        for _ in 0..=dice.below(3) {
            let byte = dice.below(line.len());
            match dice.below(3) {
                0 => line[byte] = b"0129\"{}[]:,x\0\xff"[dice.below(14)],
                1 => drop(line.remove(byte)),
                _ => line.insert(byte, b"09\"}"[dice.below(4)]),
            }
        }
        line.push(b'}');
        let tail = journal::tail(&sha256(&line));
        line.pop();
        let mut bytes = lines[..at].concat();
        bytes.extend([&line[..], &tail, b"\n"].concat());
        bytes.extend(lines[at + 1..].concat());
        match fold_bytes(&bytes) {
            Ok(_) => read += 1,
            Err(Error::Damaged { .. }) => refused += 1,
            Err(other) => panic!("{other}"),
        }
    }
    assert!(read > 100 && refused > 100, "{read} read, {refused} refused");
}

#[test]
fn a_newer_schema_is_refused_with_both_numbers() {
    let at = "\"at\":\"2026-01-02T03:04:05Z\"";
    for members in ["\"schema\":7", "\"schema\":7,\"invented\":{}"] {
        let object = format!("{{\"seq\":1,{at},\"kind\":\"snapshot\",{members}}}");
        for sum in [journal::tail(&sha256(object.as_bytes())), journal::tail(&[0; 32])] {
            let line = [&object.as_bytes()[..object.len() - 1], &sum, b"\nmore\n"].concat();
            let said = fold_bytes(&line).map(|it| it.seq()).unwrap_err().to_string();
            assert!(said.contains("schema 7") && said.contains("up to 1"), "{said}");
        }
    }
}

/// Schema 1 as its first host wrote it: whatever this host becomes, it reads this.
#[test]
fn a_journal_of_schema_1_is_read() {
    let state = fold_bytes(include_bytes!("schema-1.jsonl")).unwrap();
    assert_eq!(state.seq(), 8);
    assert_eq!(state.floor(), 3);
    let owned: Vec<&str> = state.owned().map(|owned| owned.object).collect();
    assert_eq!(owned, ["path:/b \u{1f980}\"\\"]);
}

#[test]
#[ignore = "writes the fixture; to be run once for each schema"]
fn write_the_fixture() {
    fs::write("src/host/store/tests/schema-1.jsonl", sample()).unwrap();
}
