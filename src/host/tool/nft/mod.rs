//! nft(8), the tool of the kernel's packet filter. Pure.
//!
//! A table that the host made holds a chain of the host's own, which no packet enters: it is the
//! mark by which the table is known again. What is read back is never what was loaded, since the
//! kernel merges ranges and nft writes names as numbers. So two things stand in that chain, as
//! comments of rules: the digest of what was declared, loaded along with it; and, added once it
//! has been loaded, the digest of each chain, set and map as nft then listed it. Whatever is listed
//! otherwise later was changed by somebody else. It lives and goes with the table: no record can
//! say of a table what is not so.
//!
//! Listed as JSON, which 1.0.6 leaves the comments of tables and chains out of, but not those of
//! rules.

mod listing;
mod ruleset;

use std::collections::BTreeMap;
use std::ops::Range;

pub use listing::{tables, Mark, Part, Table};
pub use ruleset::{Base, Chain, Ruleset, Set};

/// The chain that marks a table as the host's.
pub const MARK: &str = "nox-mesh-host";

/// Loads what is on standard input, all of it or nothing.
pub const LOAD: [&str; 3] = ["nft", "-f", "-"];
/// Has nft and the kernel say whether they would take what is on standard input.
pub const CHECK: [&str; 4] = ["nft", "-c", "-f", "-"];
/// Lists all that the packet filter holds.
pub const LIST: [&str; 4] = ["nft", "-j", "list", "ruleset"];

/// Begins the comment that holds the digest of what was declared.
const DECLARED: &str = "declared ";
/// The most differences that are told of.
const MOST_TOLD: usize = 5;

/// What lists one table, whole; nft refuses it where that is not there. Of two in one call it
/// finds none (1.0.6).
pub fn list(table: &str) -> String {
    format!("list table {table}")
}

/// What deletes a table.
pub fn delete(table: &str) -> String {
    format!("delete table {table}")
}

/// What puts a table back as it was listed in words; where those are none, it goes.
pub fn restore(table: &str, listed: &str) -> String {
    format!("add table {table}\ndelete table {table}\n{listed}")
}

/// What notes, in the mark of `table`, how each part of it was listed.
pub fn seal(table: &str, listed: &Table) -> String {
    let line = |(name, part): (&String, &Part)| {
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
        match found.parts.get(name) {
            None => all.push(format!("{name} is gone")),
            Some(part) if part.shape != *wanted => {
                all.push(format!("{name}: {} → {wanted}", part.shape));
            }
            Some(part) => match mark.seals.get(name) {
                Some(digest) if *digest == part.digest => {}
                Some(_) => all.push(format!("{name} was changed since it was loaded")),
                None => all.push(format!("how {name} was loaded is not noted")),
            },
        }
    }
    let others = found.parts.keys().filter(|name| !outline.contains_key(*name));
    all.extend(others.map(|name| format!("{name} was added")));
    let of_none = mark.seals.keys().any(|name| !outline.contains_key(name));
    if mark.is_strange || of_none {
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

#[cfg(test)]
mod tests {
    use super::*;

    // nft 1.0.6: three runs, of which the first found two errors.
    const ERRORS: &str = include_str!("../../../../tests/transcripts/nft/errors.txt");

    fn input(policy: &str, rules: &[&str]) -> Ruleset {
        let (kind, hook, priority) = ("filter".into(), "input".into(), "filter".into());
        let base = Some(Base { kind, hook, priority, policy: policy.into() });
        let rules = rules.iter().map(|rule| (*rule).into()).collect();
        let chain = Chain { name: "input".into(), base, rules };
        let set = Set {
            name: "peers".into(),
            of: "ipv4_addr".into(),
            to: None,
            flags: ["interval".into()].into(),
            elements: ["10.0.0.0/8".into(), "192.0.2.7".into()].into(),
            timeout_s: None,
            merges: true,
        };
        Ruleset::new("inet filter".into(), [chain].into(), [set].into())
    }

    /// The table as it is found once it has been loaded.
    fn loaded(ruleset: &Ruleset) -> (Mark, Table) {
        let part = |(name, shape): (String, String)| {
            (name.clone(), Part { shape, digest: format!("of {name}").into() })
        };
        let table = Table { parts: ruleset.outline().map(part).collect(), mark: None };
        let seals = table.parts.iter().map(|(name, part)| (name.clone(), part.digest.clone()));
        let declared = Some(ruleset.digest().into());
        (Mark { declared, seals: seals.collect(), is_strange: false }, table)
    }

    //
    #[test]
    fn a_table_is_as_declared_only_if_it_is_as_it_was_loaded() {
        let ruleset = input("drop", &["accept"]);
        let (mark, table) = loaded(&ruleset);
        assert_eq!(differences(&ruleset, &mark, &table), [""; 0]);
        let of = |ruleset: &Ruleset, mark: &Mark, table: &Table| {
            differences(ruleset, mark, table).join("; ")
        };
        let other = input("accept", &["accept"]);
        assert_eq!(of(&other, &mark, &table), "it holds what was declared before");
        let cut = Mark { declared: None, ..mark.clone() };
        assert_eq!(of(&ruleset, &cut, &table), "its mark is not whole");
        let unsealed = Mark { seals: BTreeMap::new(), ..mark.clone() };
        let told = of(&ruleset, &unsealed, &table);
        assert!(told.contains("how chain input was loaded is not noted"), "{told}");
        // A tool that says it loaded what was declared, and loaded something else.
        let (_, mut lied) = loaded(&other);
        assert_eq!(
            of(&ruleset, &mark, &lied),
            "chain input: filter at input 0, accept, 1 rule → filter at input 0, drop, 1 rule"
        );
        lied.parts.clear();
        assert_eq!(of(&ruleset, &mark, &lied), "chain input is gone; set peers is gone");
        let mut more = table.clone();
        more.parts.insert("chain back".into(), more.parts["chain input"].clone());
        assert_eq!(of(&ruleset, &mark, &more), "chain back was added");
        for n in 0..20 {
            more.parts.insert(format!("chain n{n}"), more.parts["chain input"].clone());
        }
        assert!(of(&ruleset, &mark, &more).ends_with("and 16 more"));
    }

    #[test]
    fn an_error_is_traced_to_what_was_declared() {
        let ruleset = input("drop", &["accept", "iif wg0 drop"]);
        let text = ruleset.text();
        let line = |of: &str| text.lines().position(|line| line.contains(of)).unwrap() + 1;
        let at = |of: &str| ruleset.at(line(of)).unwrap_or_default();
        assert_eq!(at("iif wg0"), "chain input, rule 2, \"iif wg0 drop\"");
        assert_eq!(at("policy"), "chain input");
        assert_eq!(at("192.0.2.7"), "set peers, element 2, \"192.0.2.7\"");
        assert_eq!(at("auto-merge"), "set peers");
        assert_eq!(at("add table"), "");
        assert_eq!(ruleset.at(0).or(ruleset.at(1000)), None);
        assert_eq!(ruleset.words(line("iif wg0"), 4..7).as_deref(), Some("wg0"));
        assert_eq!(ruleset.words(line("iif wg0"), 4..700).or(ruleset.words(0, 0..1)), None);
    }

    #[test]
    fn the_first_error_is_the_one_that_is_told() {
        let first = complaint(ERRORS).unwrap();
        assert_eq!(first.place, Some((12, 5..9)));
        assert_eq!(first.words, "syntax error, unexpected string");
        let starts = ERRORS.match_indices("/dev/stdin").map(|(at, _)| at);
        let second = complaint(&ERRORS[starts.last().unwrap()..]).unwrap();
        assert!(second.is_of_interface() && second.place == Some((13, 6..9)), "{second:?}");
        let last = complaint(&ERRORS[ERRORS.rfind("Error: ").unwrap()..]).unwrap();
        assert_eq!((last.place, &*last.words), (None, "No such file or directory"));
        assert_eq!(complaint("Segmentation fault\n"), None);
        for end in 0..ERRORS.len() {
            complaint(&ERRORS[..end]);
        }
        for strange in ["/dev/stdin:0:1-2: Error: x", "a:1:0-2: Error: x", ":9:: Error: x"] {
            assert_eq!(complaint(strange).unwrap().place, None, "{strange}");
        }
    }

    #[test]
    fn a_priority_by_name_is_the_number_that_the_kernel_has() {
        let shape = |table: &str, priority: &str| {
            let base = Base {
                kind: "filter".into(),
                hook: "prerouting".into(),
                priority: priority.into(),
                policy: "accept".into(),
            };
            let chain = Chain { name: "c".into(), base: Some(base), rules: [].into() };
            let ruleset = Ruleset::new(table.into(), [chain].into(), [].into());
            let shape = ruleset.outline().next().unwrap().1;
            shape.split([' ', ',']).nth(3).unwrap().parse::<i64>().unwrap()
        };
        for (priority, number) in
            [("-7", -7), ("filter", 0), ("raw", -300), ("mangle - 10", -160), ("srcnat + 1", 101)]
        {
            assert_eq!(shape("inet t", priority), number, "{priority}");
        }
        assert_eq!(shape("bridge t", "filter"), -200);
        assert_eq!(shape("bridge t", "dstnat + 5"), -295);
    }
}
