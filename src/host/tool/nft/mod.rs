//! nft(8), the tool of the kernel's packet filter. Pure.
//!
//! A table that the host made holds a chain of the host's own, which no packet enters: it is the
//! mark by which the table is known again. What is read back is never what was loaded, since the
//! kernel merges ranges and nft writes names as numbers. So two things stand in that chain, as
//! comments of rules: the digest of what was declared, loaded along with it; and, added once it
//! has been loaded, the digest of each chain, set and map as nft then listed it. Whatever is listed
//! otherwise later was changed by somebody else. It lives and goes with the table: no record can
//! say of a table what is not so.

mod listing;
mod ruleset;

use std::collections::BTreeMap;
use std::ops::Range;

pub use listing::{names, tables, Mark, Part, Table};
pub use ruleset::{Base, Chain, Ruleset, Set};

/// The chain that marks a table as the host's.
pub const MARK: &str = "nox-mesh-host";

/// Loads what is on standard input, all of it or nothing.
pub const LOAD: [&str; 3] = ["nft", "-f", "-"];
/// Has nft and the kernel say whether they would take what is on standard input.
pub const CHECK: [&str; 4] = ["nft", "-c", "-f", "-"];
/// Lists every table by name.
pub const NAMES: [&str; 4] = ["nft", "-j", "list", "tables"];

/// Begins the comment that holds the digest of what was declared.
const DECLARED: &str = "declared ";
/// The most differences that are told of.
const MOST_TOLD: usize = 5;

/// What lists these tables, whole; nft refuses it where one of them is not there.
pub fn list(tables: &[&str]) -> String {
    tables.iter().map(|table| format!("list table {table};")).collect()
}

/// What deletes a table.
pub fn delete(table: &str) -> String {
    format!("delete table {table}")
}

/// What notes, in the mark of `table`, how each part of it was listed.
pub fn seal(table: &str, listed: &Table) -> String {
    let line = |(name, part): (&Box<str>, &Part)| {
        format!("add rule {table} {MARK} return comment \"{name} {}\"\n", part.digest)
    };
    listed.parts.iter().map(line).collect()
}

/// What of a marked table is not as declared, or not as it was when it had been loaded; empty when
/// nothing is.
pub fn differences(declared: &Ruleset, mark: &Mark, found: &Table) -> Vec<String> {
    if mark.declared.as_deref() != Some(declared.digest()) {
        return vec![match mark.declared {
            Some(_) => "it holds what was declared before".into(),
            None => "its mark is not whole".into(),
        }];
    }
    let mut all = Vec::new();
    let outline: BTreeMap<String, String> = declared.outline().collect();
    for (name, wanted) in &outline {
        match found.parts.get(name.as_str()) {
            None => all.push(format!("{name} is gone")),
            Some(part) if part.shape != *wanted => {
                all.push(format!("{name}: {} → {wanted}", part.shape));
            }
            Some(part) => match mark.seals.get(name.as_str()) {
                Some(digest) if *digest == part.digest => {}
                Some(_) => all.push(format!("{name} was changed since it was loaded")),
                None => all.push(format!("how {name} was loaded is not noted")),
            },
        }
    }
    let others = found.parts.keys().filter(|name| !outline.contains_key(&***name));
    all.extend(others.map(|name| format!("{name} was added")));
    if mark.is_strange {
        all.push(format!("chain {MARK} was changed since it was loaded"));
    }
    if let Some(more @ 1..) = all.len().checked_sub(MOST_TOLD) {
        all.truncate(MOST_TOLD);
        all.push(format!("and {more} more"));
    }
    all
}

/// What nft had against its input.
#[derive(Debug, PartialEq, Eq)]
pub struct Complaint {
    /// The line that it is about, counted from 1, and of that the bytes, if it names them.
    pub place: Option<(usize, Range<usize>)>,
    /// Its words.
    pub words: String,
}

/// The first error among what nft wrote (1.0.6: `/dev/stdin:7:21-21: Error: syntax error,
/// unexpected newline`).
pub fn complaint(said: &str) -> Option<Complaint> {
    let line = said.lines().find(|line| line.contains("Error: "))?;
    let (place, words) = line.split_once("Error: ")?;
    let mut numbers = place.split(':').skip(1);
    let mut read = || {
        let line: usize = numbers.next()?.parse().ok()?;
        let (first, last) = numbers.next()?.split_once('-')?;
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        (line > 0).then_some((line, first.checked_sub(1)?..last))
    };
    Some(Complaint { place: read(), words: words.trim().into() })
}

impl Complaint {
    /// An interface is not there (1.0.6).
    pub fn is_of_interface(&self) -> bool {
        self.words.starts_with("Interface does not exist")
    }
}
