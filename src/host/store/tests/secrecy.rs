//! Secrets, and who may look.

use std::collections::BTreeSet;
use std::os::unix::fs::{symlink, PermissionsExt};

use super::*;

const CANARY: &[u8] = b"canary-3b1f\nwith a line break";

fn opened(scratch: &Scratch) -> Secrets {
    Secrets::open(&scratch.store(), &mut |key| key.fill(9)).unwrap()
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}

// R-20 R-30
#[test]
fn a_secret_stands_in_its_own_file_and_nowhere_else() {
    let scratch = Scratch::new();
    let mut store = scratch.open();
    let mut secrets = opened(&scratch);
    let name = secrets.put(CANARY).unwrap();
    secrets.sync().unwrap();
    accept(&mut store, Source::Link, 1, &declaration(1, &[&name]));
    store.flush().unwrap();
    assert_eq!(name.len(), 32);
    assert_eq!(secrets.get(&name).unwrap(), CANARY);
    assert_eq!(secrets.put(CANARY).unwrap(), name, "the same value once");
    let journal = fs::read(scratch.journal()).unwrap();
    assert!(!journal.windows(11).any(|it| it == &CANARY[..11]));
    let plain = hex(&sha256(CANARY));
    assert!(!String::from_utf8(journal).unwrap().contains(&plain[..16]), "a guessable digest");
    assert!(!format!("{:?}", secrets.get("nothing")).contains("canary"));
    drop(store);
    let again = Secrets::read(&scratch.store()).unwrap().unwrap();
    assert_eq!(again.get(&name).unwrap(), CANARY);
}

//
#[test]
fn everything_is_for_root_alone() {
    let scratch = Scratch::new();
    let _store = scratch.open();
    let name = opened(&scratch).put(CANARY).unwrap();
    let state = scratch.store();
    assert_eq!(mode(&state), 0o700);
    assert_eq!(mode(&state.join("secrets")), 0o700);
    for file in [JOURNAL, "secrets/key", "pass.lock", &format!("secrets/{name}")] {
        assert_eq!(mode(&state.join(file)), 0o600, "{file}");
    }
}

#[test]
fn a_directory_that_others_can_write_is_refused() {
    let scratch = Scratch::new();
    drop(scratch.open());
    for bad in [0o770, 0o702, 0o777, 0o1777] {
        fs::set_permissions(scratch.store(), fs::Permissions::from_mode(bad)).unwrap();
        let refused = Store::open(&scratch.store(), Duration::ZERO, AT).err().unwrap();
        assert!(refused.to_string().contains(&format!("mode {bad:04o}")), "{refused}");
        assert_eq!(mode(&scratch.store()), bad, "left as it was");
    }
    fs::set_permissions(scratch.store(), fs::Permissions::from_mode(0o755)).unwrap();
    drop(scratch.open());
    assert_eq!(mode(&scratch.store()), 0o700, "narrowed");
}

#[test]
fn a_secret_that_is_gone_or_another_is_an_error_and_not_an_empty_value() {
    let scratch = Scratch::new();
    drop(scratch.open());
    let mut secrets = opened(&scratch);
    let name = secrets.put(CANARY).unwrap();
    let path = scratch.store().join("secrets").join(&name);
    for spoil in [
        |path: &Path| fs::write(path, "").unwrap(),
        |path: &Path| fs::write(path, "another").unwrap(),
        |path: &Path| fs::remove_file(path).unwrap(),
        |path: &Path| symlink("/etc/hostname", path).unwrap(),
    ] {
        spoil(&path);
        assert!(secrets.get(&name).is_err());
    }
    fs::remove_file(&path).unwrap();
    for bad in ["", "key", "../journal.jsonl", "ffffffffffffffffffffffffffffffff", "\u{e9}"] {
        assert!(secrets.get(bad).is_err(), "{bad}");
    }
    assert_eq!(secrets.put(CANARY).unwrap(), name, "what is gone can be stored again");
    assert_eq!(secrets.get(&name).unwrap(), CANARY);
}

#[test]
fn a_sweep_keeps_the_key_and_what_is_named() {
    let scratch = Scratch::new();
    drop(scratch.open());
    let mut secrets = opened(&scratch);
    let kept = secrets.put(b"kept").unwrap();
    let dropped = secrets.put(b"dropped").unwrap();
    fs::write(scratch.store().join("secrets/leftover.new"), "x").unwrap();
    secrets.sweep(&BTreeSet::from([kept.clone()])).unwrap();
    assert_eq!(fs::read_dir(scratch.store().join("secrets")).unwrap().count(), 2);
    assert!(secrets.get(&kept).is_ok() && secrets.get(&dropped).is_err());
}

#[test]
fn a_key_is_made_once_and_never_a_second_time_beside_secrets() {
    let scratch = Scratch::new();
    drop(scratch.open());
    assert!(Secrets::read(&scratch.store()).unwrap().is_none());
    // What a crash leaves of the making is no hindrance.
    fs::create_dir(scratch.store().join("secrets")).unwrap();
    fs::write(scratch.store().join("secrets/key.new"), "half").unwrap();
    let name = opened(&scratch).put(CANARY).unwrap();
    let other = Secrets::open(&scratch.store(), &mut |key| key.fill(1)).unwrap();
    assert_eq!(other.name(CANARY), name, "the first key stays");
    let key = scratch.store().join("secrets/key");
    fs::write(&key, [9; 31]).unwrap();
    assert_eq!(Secrets::read(&scratch.store()).err().unwrap().exit_code(), 6);
    fs::remove_file(&key).unwrap();
    let refused = Secrets::open(&scratch.store(), &mut |key| key.fill(1)).err().unwrap();
    assert_eq!(refused.exit_code(), 6);
}
