//! Any bytes as a journal: folded or refused, never a panic, and the same twice.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nox_mesh_host::store::fold_bytes;

fuzz_target!(|journal: &[u8]| {
    let first = fold_bytes(journal);
    let second = fold_bytes(journal);
    match (&first, &second) {
        (Ok(_), Ok(_)) => {}
        (Err(first), Err(second)) => {
            let shown = first.to_string();
            assert_eq!(shown, second.to_string());
            assert!(!shown.chars().any(char::is_control), "{shown:?}");
        }
        _ => panic!("the same bytes were read in two ways"),
    }
});
