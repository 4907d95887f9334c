//! What a large store costs.

use std::time::Instant;

use super::*;

/// A store in which one pass made so many files of some 100 bytes; the bytes of their names and
/// ids.
fn filled(scratch: &Scratch, objects: usize) -> usize {
    let mut store = scratch.open();
    let words = |at: usize| {
        let content = "0123456789".repeat(10);
        format!(
            "{{\"id\":\"file-{at}\",\"type\":\"file\",\"path\":\"/srv/scale/{at:06}\",\
             \"content\":\"{content}\"}}"
        )
    };
    let resources: Vec<String> = (0..objects).map(words).collect();
    let text = format!("{{\"version\":1,\"resources\":[{}]}}", resources.join(","));
    let sha = accept(&mut store, Source::Local, 1, &text);
    let mut names = 0;
    for at in 0..objects {
        let (name, id) = (format!("path:/srv/scale/{at:06}"), format!("file-{at}"));
        names += name.len() + id.len();
        for kind in [Kind::Began, Kind::Applied] {
            let mut record = object(kind, Source::Local, &name, Made::Created);
            record.id = Some(id.as_str().into());
            record.declared_by = Some(sha.short()).filter(|_| kind == Kind::Applied);
            store.append(record, AT).unwrap();
        }
    }
    store.append(whole(Source::Local, sha, Outcome::Converged), AT).unwrap();
    store.flush().unwrap();
    names
}

#[test]
fn an_owned_object_costs_little_more_than_its_name() {
    let scratch = Scratch::new();
    let objects = 11_000;
    let names = filled(&scratch, objects);
    let mut store = scratch.open();
    for compacted in [false, true] {
        let each = (store.state().table().heap_bytes() - names) / objects;
        assert!(each <= 136, "{each} bytes an object, compacted: {compacted}");
        store.compact(&mut extract, AT).unwrap();
        assert_eq!(store.state().owned_len(), objects);
    }
}

#[test]
#[ignore = "measures; run with --release --nocapture"]
fn how_long_a_fold_takes() {
    for objects in [10_000, 110_000] {
        let scratch = Scratch::new();
        let start = Instant::now();
        let names = filled(&scratch, objects);
        println!("{objects} objects, {names} bytes of names: written in {:?}", start.elapsed());
        for _ in 0..2 {
            let len = fs::metadata(scratch.journal()).unwrap().len();
            let mut best = Duration::MAX;
            for _ in 0..7 {
                let start = Instant::now();
                let reading = Reading::of(&scratch.store()).unwrap();
                best = best.min(start.elapsed());
                assert_eq!(reading.state.owned_len(), objects);
            }
            let mut store = scratch.open();
            let heap = store.state().table().heap_bytes();
            println!("  {len} bytes fold in {best:?} into {} bytes each", heap / objects);
            let start = Instant::now();
            if store.compact_if_due(&mut extract, AT).unwrap() {
                println!("  compacted in {:?}", start.elapsed());
            }
        }
    }
}
