//! Any bytes as what docker said: understood or refused in words fit for a terminal.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nox_mesh_host::tool::docker::{
    containers, foreign_engine, inspected, is_podman, networks, reason, says_missing,
};

fuzz_target!(|bytes: &[u8]| {
    let said = String::from_utf8_lossy(bytes);
    let plain = |why: String| assert!(!why.chars().any(char::is_control), "{why:?}");
    match containers(&said) {
        Ok(all) => assert!(all.iter().all(|it| it.id.len() == 64 && !it.name.is_empty())),
        Err(why) => plain(why),
    }
    networks(&said).map_or_else(plain, drop);
    inspected(&said).map_or_else(plain, drop);
    foreign_engine(&said).map_or_else(plain, |name| name.map_or((), plain));
    assert!(reason(&said).is_none_or(|line| said.contains(line)));
    says_missing(&said);
    is_podman(bytes);
});
