//! Any bytes as what wg and ip said of interfaces: understood or refused in words fit for a
//! terminal.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nox_mesh_host::tool::{ip, wg};

fuzz_target!(|said: &[u8]| {
    let said = String::from_utf8_lossy(said);
    match wg::devices(&said) {
        Ok(devices) => assert!(devices.len() <= said.lines().count()),
        Err(why) => assert!(!why.chars().any(char::is_control), "{why:?}"),
    }
    if let Err(why) = ip::links(&said) {
        assert!(!why.chars().any(char::is_control), "{why:?}");
    }
    ip::says_no_such_kind(&said);
});
