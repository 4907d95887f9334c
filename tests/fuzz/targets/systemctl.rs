//! Any bytes as what systemctl said of units: understood or refused in words fit for a terminal.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nox_mesh_host::tool::systemctl::{file_states, reason, says_missing, units};

fuzz_target!(|said: &[u8]| {
    let said = String::from_utf8_lossy(said);
    let asked = ["shop.service", "door.socket"];
    for count in 1..=asked.len() {
        match units(&asked[..count], &said) {
            Ok(units) => assert_eq!(units.len(), count),
            Err(why) => assert!(!why.chars().any(char::is_control), "{why:?}"),
        }
    }
    if let Err(why) = file_states(&said) {
        assert!(!why.chars().any(char::is_control), "{why:?}");
    }
    assert!(reason(&said).is_none_or(|line| said.contains(line)));
    says_missing(asked[0], &said);
});
