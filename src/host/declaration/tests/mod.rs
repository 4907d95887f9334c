//! What a declaration may say and what is said of one that may not.

mod bad;
mod good;
mod listed;
mod mutated;
mod owned;
mod stored;

use super::{parse, parse_trusted, Bundle, Declaration, Fault, Own};

/// A declaration of these resources.
fn document(resources: &str) -> String {
    format!("{{\"version\":1,\"resources\":[{resources}]}}")
}

/// Parses what anyone may have written.
fn read(text: &str) -> Result<Declaration, Vec<Fault>> {
    parse(text.as_bytes().to_vec(), &Own::default())
}

/// Parses what only root can have written.
fn read_trusted(text: &str) -> Result<Declaration, Vec<Fault>> {
    parse_trusted(Bundle::vouched(text.as_bytes().to_vec()), &Own::default())
}

/// The faults of a declaration of these resources, but for those of types that cannot be applied.
fn faults(resources: &str) -> Vec<Fault> {
    let faults = read(&document(resources)).err().unwrap_or_default();
    faults.into_iter().filter(|fault| !fault.wrong.contains("not supported by this host")).collect()
}

/// The faults as lines.
fn lines(faults: &[Fault]) -> String {
    faults.iter().map(|fault| format!("{fault}\n")).collect()
}
