//! A store set aside.

use super::*;

fn filled(scratch: &Scratch) {
    let mut store = scratch.open();
    accept(&mut store, Source::Link, 41, &declaration(41, &["path:/a"]));
    store.append(object(Kind::Applied, Source::Link, "path:/a", Made::Created), AT).unwrap();
    let claimed = Record {
        object: Some("path:/a".into()),
        from: Some(Source::Bundle),
        to: Some(Source::Link),
        ..Record::new(Kind::Claimed)
    };
    store.append(claimed, AT).unwrap();
    store.flush().unwrap();
    let mut secrets = Secrets::open(&scratch.store(), &mut |key| key.fill(5)).unwrap();
    secrets.put(b"value").unwrap();
    secrets.sync().unwrap();
    fs::create_dir(scratch.store().join("identity")).unwrap();
    fs::write(scratch.store().join("identity/key.pem"), "key").unwrap();
}

fn discarded(scratch: &Scratch) -> Discarded {
    discard(&scratch.store(), Duration::ZERO, AT).unwrap()
}

//
#[test]
fn a_rescue_sets_everything_aside_but_identity_and_floor() {
    let scratch = Scratch::new();
    filled(&scratch);
    let old = fs::read(scratch.journal()).unwrap();
    let Discarded { aside, floor } = discarded(&scratch);
    assert_eq!(floor, 41);
    assert_eq!(fs::read(aside.join(JOURNAL)).unwrap(), old);
    assert_eq!(fs::read_dir(aside.join("secrets")).unwrap().count(), 2);
    assert_eq!(fs::read_dir(&aside).unwrap().count(), 2);
    // The key stays: what is marked under it is still the host's.
    let secrets = Secrets::read(&scratch.store()).unwrap().unwrap();
    assert_eq!((secrets.key(), secrets.is_empty().unwrap()), ([5; 32], true));
    assert_eq!(fs::read(scratch.store().join("identity/key.pem")).unwrap(), b"key");
    let mut store = scratch.open();
    assert_eq!(store.take_notices(), Vec::<String>::new());
    assert_eq!((store.state().owned_len(), store.state().floor()), (0, 41));
    assert!(!store.state().ceded(Source::Bundle, "path:/a"));
    drop(store);
    // Once more in the same second: nothing of the first is lost, and the floor stays.
    let again = discarded(&scratch);
    assert_ne!(again.aside, aside);
    assert_eq!(again.floor, 41);
    assert_eq!(fs::read(aside.join(JOURNAL)).unwrap(), old);
}

//
#[test]
fn a_rescue_of_a_damaged_journal_keeps_the_floor_that_it_can_read() {
    let scratch = Scratch::new();
    filled(&scratch);
    let old = fs::read(scratch.journal()).unwrap();
    let mut damaged = old.clone();
    damaged[3] ^= 1;
    let at = damaged.len() - 40;
    damaged[at] ^= 1;
    damaged.extend_from_slice(b"junk\n\0\0more");
    fs::write(scratch.journal(), &damaged).unwrap();
    assert_eq!(Reading::of(&scratch.store()).err().unwrap().exit_code(), 6);
    let Discarded { aside, floor } = discarded(&scratch);
    assert_eq!(floor, 41);
    assert_eq!(fs::read(aside.join(JOURNAL)).unwrap(), damaged);
    assert_eq!(scratch.open().state().floor(), 41);
}

//
#[test]
fn a_rescue_can_be_tried_again_wherever_it_was_cut_short() {
    // Cut short before the new journal is in force: links aside, and a new file unfinished.
    let scratch = Scratch::new();
    filled(&scratch);
    let old = fs::read(scratch.journal()).unwrap();
    let aside = scratch.store().join("discarded-20260102T030405Z-1");
    fs::create_dir(&aside).unwrap();
    fs::hard_link(scratch.journal(), aside.join(JOURNAL)).unwrap();
    fs::write(scratch.store().join(UNFINISHED), "{\"seq\":1").unwrap();
    assert_eq!(scratch.open().state().owned_len(), 1, "the old store is still in force");
    assert_eq!(discarded(&scratch).floor, 41);
    assert_eq!(fs::read(aside.join(JOURNAL)).unwrap(), old);

    // After that: the secrets are still there, and are no danger to the new store.
    let scratch = Scratch::new();
    filled(&scratch);
    let secrets = scratch.store().join("secrets");
    let copy = scratch.store().join("kept");
    fs::rename(&secrets, &copy).unwrap();
    discarded(&scratch);
    fs::rename(&copy, &secrets).unwrap();
    assert_eq!(scratch.open().state().owned_len(), 0);
    assert!(Secrets::read(&scratch.store()).unwrap().is_some());
    assert_eq!(discarded(&scratch).floor, 41);
    assert!(Secrets::read(&scratch.store()).unwrap().unwrap().is_empty().unwrap());
}

//
#[test]
fn a_rescue_takes_whatever_stands_in_the_journals_place() {
    for put in [
        |path: &Path| fs::create_dir(path).unwrap(),
        |path: &Path| std::os::unix::fs::symlink("/etc/passwd", path).unwrap(),
        |_: &Path| {},
    ] {
        let scratch = Scratch::new();
        filled(&scratch);
        fs::remove_file(scratch.journal()).unwrap();
        put(&scratch.journal());
        let refused = Store::open(&scratch.store(), Duration::ZERO, AT).err().unwrap();
        assert_eq!(refused.exit_code(), 6, "{refused}");
        assert_eq!(Reading::of(&scratch.store()).err().unwrap().exit_code(), 6);
        discarded(&scratch);
        assert_eq!(scratch.open().state().seq(), 1);
    }
}
