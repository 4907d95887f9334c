//! Any bytes as what nft said: understood or refused in words fit for a terminal.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nox_mesh_host::tool::nft::{complaint, tables};

fuzz_target!(|said: &[u8]| {
    let said = String::from_utf8_lossy(said);
    match tables(&["inet filter", "ip nowhere"], &said) {
        Ok(tables) => assert_eq!(tables.len(), 2),
        Err(why) => assert!(!why.chars().any(char::is_control), "{why:?}"),
    }
    if let Some(complaint) = complaint(&said) {
        assert!(said.contains(&complaint.words));
    }
});
