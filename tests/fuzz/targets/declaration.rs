//! Any bytes as a declaration: parsed or refused, never a panic; what is refused is refused with
//! words that can be shown; what is accepted says the same when it is written in another form.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nox_mesh_host::declaration::{parse, Declaration, Own};

fuzz_target!(|text: &[u8]| {
    let own = Own::default();
    match parse(text.to_vec(), &own) {
        Ok(declaration) => {
            let value: serde_json::Value =
                serde_json::from_slice(text).expect("what was accepted is JSON");
            let pretty = serde_json::to_vec_pretty(&value).expect("a value can be written");
            let again = parse(pretty, &own).expect("its form decides nothing");
            assert_eq!(said(&declaration), said(&again));
        }
        Err(faults) => {
            assert!(!faults.is_empty(), "a refusal says why");
            for fault in faults {
                let shown = fault.to_string();
                assert!(!shown.chars().any(char::is_control), "{shown:?}");
                assert!(shown.len() < 4096, "{} bytes", shown.len());
            }
        }
    }
});

/// What a declaration declares, and that it keeps its own rules.
fn said(declaration: &Declaration) -> Vec<String> {
    let mut ids = std::collections::HashSet::new();
    let mut objects = std::collections::HashSet::new();
    let each = declaration.resources.iter().enumerate().map(|(at, declared)| {
        assert!(ids.insert(&declared.id), "ids are unique");
        assert!(objects.insert(declared.resource.object()), "objects are unique");
        assert!(declared.refers.iter().all(|&earlier| (earlier as usize) < at));
        assert_ne!(declared.resource.kind(), "action", "only a bundle may carry an action");
        format!("{} {:?} {:?}", declared.id, declared.timeout, declared.resource)
    });
    let head = format!("{:?} {:?}", declaration.node, declaration.serial);
    std::iter::once(head).chain(each).collect()
}
