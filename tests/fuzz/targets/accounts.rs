//! Any bytes as the account files and as a file of keys: never a panic, and what is said of them is
//! true of them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nox_mesh_host::tool::authorized_keys::part;
use nox_mesh_host::tool::shadow::{groups_of, has_group, id_of, login_of, user_of, File};

fuzz_target!(|text: &[u8]| {
    let names = text.split(|&byte| byte == b'\n' || byte == b':').take(64);
    for name in names.filter_map(|name| std::str::from_utf8(name).ok()) {
        if let Some(user) = user_of(text, name) {
            let uid = id_of(File::Passwd, text, name);
            assert_eq!(uid, Some(user.uid), "one line is read in two ways");
            assert_ne!(user.uid, u32::MAX);
        }
        for group in groups_of(text, name) {
            let gid = id_of(File::Group, text, group).expect("its line has a number");
            assert!(has_group(text, gid));
        }
        let _ = login_of(text, name);
    }
    let Ok(parted) = part(text) else { return };
    let keys: [Box<str>; 2] = ["ssh-rsa AAAA 1".into(), "ssh-rsa AAAA 2".into()];
    let with = part(&parted.with(&keys)).expect("what the host wrote can be read");
    assert_eq!(with.ours, Some(keys.iter().map(|key| key.to_string()).collect::<Vec<_>>()));
    assert_eq!(with.with(&keys), parted.with(&keys), "a second time changes nothing");
    let without = part(&with.with(&[])).expect("what the host wrote can be read");
    assert_eq!(without.ours, None);
});
