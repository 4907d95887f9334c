//! The house rules that a compiler does not hold: what may stand where, what may name what, how a
//! file begins and how long it gets, and that every requirement claimed done has a test.
//!
//! Each rule is a function from a source to its offences, so that the last test here can show each
//! of them something bad. Comments and test modules are told from code by line, as rustfmt leaves
//! them; no rule needs more.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// What stands at the top, besides files whose name begins with a dot.
const TOP: [&str; 9] = [
    "Cargo.lock",
    "Cargo.toml",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "Makefile",
    "README.md",
    "src",
    "tests",
    "unit",
];

/// The host's direct dependencies, all of them.
const DEPENDENCIES: [&str; 6] = ["lexopt", "libc", "rustls", "serde", "serde_json", "ureq"];

/// Kinds of crate that have no place under the host, by part of their name: async runtimes, the
/// TLS provider we do not use, clients of databases.
const FOREIGN: [&str; 20] = [
    "async-executor",
    "async-io",
    "async-std",
    "aws-lc",
    "diesel",
    "futures-executor",
    "libsqlite",
    "mio",
    "mongodb",
    "mysql",
    "openssl",
    "postgres",
    "redis",
    "rusqlite",
    "sea-orm",
    "smol",
    "sqlite",
    "sqlx",
    "tiberius",
    "tokio",
];

/// Where pure modules live: what begins so.
const PURE: [&str; 17] = [
    "src/host/base64",
    "src/host/declaration/",
    "src/host/diff",
    "src/host/digest",
    "src/host/error",
    "src/host/link/declared",
    "src/host/link/mesh",
    "src/host/link/mqtt/",
    "src/host/link/refusal",
    "src/host/link/session/",
    "src/host/link/signed",
    "src/host/link/x509",
    "src/host/plan",
    "src/host/report",
    "src/host/resource/",
    "src/host/tool/",
    "src/host/when",
];

/// What a pure module does not name. Of the store that is what opens, reads or writes it: what its
/// records add up to is data like any other, and an address is not a connection.
const EFFECTS: [&str; 18] = [
    "Instant::now",
    "Reading::",
    "Secrets",
    "Store::",
    "SystemTime",
    "TcpListener",
    "TcpStream",
    "UdpSocket",
    "crate::machine",
    "eprintln!",
    "libc",
    "println!",
    "std::env",
    "std::fs",
    "std::io::stdin",
    "std::os",
    "std::process",
    "std::thread",
];

/// Who may vouch for a bundle: what begins so.
const VOUCHERS: [&str; 3] = ["src/host/declaration/mod.rs", "src/host/machine/", "src/host/store/"];

/// Requirement rows that are done, each of which some test defends by name.
const DONE: [u32; 21] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 14, 15, 16, 25, 27, 29, 30, 31, 32];

/// The last row there is.
const LAST_ROW: u32 = 34;

/// File names that say nothing of what is inside.
const EMPTY_NAMES: [&str; 5] = ["common.rs", "handler.rs", "helper.rs", "manager.rs", "utils.rs"];

const MOST_LINES: usize = 700;
const MOST_COLUMNS: usize = 100;

/// A file of the project.
struct Source {
    /// Relative to the top, with `/`.
    path: String,
    text: String,
}

/// A line of Rust, taken apart.
struct Line<'a> {
    number: usize,
    code: &'a str,
    comment: &'a str,
    test: bool,
}

impl Source {
    fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    fn is_under(&self, places: &[&str]) -> bool {
        places.iter().any(|place| self.path.starts_with(place))
    }

    /// The lines; those of test files and test modules are marked.
    fn lines(&self) -> Vec<Line<'_>> {
        let whole =
            format!("/{}", self.path).contains("/tests/") || self.path.ends_with("/tests.rs");
        let (mut test, mut announced) = (whole, false);
        let mut lines = Vec::new();
        for (i, text) in self.text.lines().enumerate() {
            test |= announced && text.starts_with("mod ") && text.ends_with('{');
            announced = text == "#[cfg(test)]";
            let at = comment_start(text);
            let (code, comment) = (&text[..at], &text[at..]);
            lines.push(Line { number: i + 1, code, comment, test });
            if text == "}" {
                test = whole;
            }
        }
        lines
    }

    /// Code outside tests that names `what`, as offences against `rule`.
    fn names(&self, what: &[&str], rule: &str) -> Vec<String> {
        let lines = self.lines();
        let code = lines.iter().filter(|line| !line.test);
        let hits = code.flat_map(|line| {
            what.iter().filter(|word| names(line.code, word)).map(|word| (line.number, *word))
        });
        hits.map(|(line, word)| format!("{}:{line}: {word}: {rule}", self.path)).collect()
    }
}

/// Where the comment of a line begins; a `//` right after a colon is an address in a string.
fn comment_start(line: &str) -> usize {
    line.match_indices("//")
        .find(|(at, _)| !line[..*at].ends_with(':'))
        .map_or(line.len(), |(at, _)| at)
}

/// Whether `code` has `word` with no letter, digit or `_` against either end of it.
fn names(code: &str, word: &str) -> bool {
    let joins = |c: char| c.is_alphanumeric() || c == '_';
    code.match_indices(word).any(|(at, _)| {
        let (before, after) = (&code[..at], &code[at + word.len()..]);
        let open = !word.starts_with(joins) || !before.ends_with(joins);
        open && (!word.ends_with(joins) || !after.starts_with(joins))
    })
}

fn begins_by_saying_what_it_owns(source: &Source) -> Vec<String> {
    let fine = source.text.starts_with("//! ");
    offence(!fine, || format!("{}: does not begin with //!", source.path))
}

fn stays_short(source: &Source) -> Vec<String> {
    let lines = source.text.lines().count();
    offence(lines > MOST_LINES, || format!("{}: {lines} lines", source.path))
}

fn stays_narrow(source: &Source) -> Vec<String> {
    let wide = |(i, line): (usize, &str)| {
        let columns = line.chars().count();
        let said = format!("{}:{}: {columns} columns", source.path, i + 1);
        (columns > MOST_COLUMNS).then_some(said)
    };
    source.text.lines().enumerate().filter_map(wide).collect()
}

fn has_a_telling_name(source: &Source) -> Vec<String> {
    let name = source.path.rsplit('/').next().unwrap_or_default();
    offence(EMPTY_NAMES.contains(&name), || format!("{}: names no one thing", source.path))
}

fn stays_pure(source: &Source) -> Vec<String> {
    if !source.is_under(&PURE) {
        return Vec::new();
    }
    let mut found = source.names(&EFFECTS, "an effect in a pure module");
    for line in source.lines().iter().filter(|line| !line.test) {
        let Some((_, listed)) = line.code.split_once("std::{") else { continue };
        let effects = ["env", "fs", "net", "os", "process", "thread"];
        for word in effects.iter().filter(|word| names(listed, word)) {
            found.push(format!("{}:{}: std::{word} in a pure module", source.path, line.number));
        }
    }
    found
}

/// Only what has seen who owns a bundle makes one, and the link cannot ask for trust.
fn trusts_no_more_than_it_may(source: &Source) -> Vec<String> {
    let mut found = Vec::new();
    if source.is_under(&["src/"]) && !source.is_under(&VOUCHERS) {
        found.extend(source.names(&["vouched"], "may not vouch for a bundle"));
    }
    if source.is_under(&["src/host/link", "src/bootstrap/", "src/control/"]) {
        found.extend(source.names(&["parse_trusted", "Bundle"], "may not trust a declaration"));
    }
    found
}

fn imports_nothing_from_above(source: &Source) -> Vec<String> {
    if !source.is_under(&["src/host/"]) {
        return Vec::new();
    }
    let above = ["mesh_bootstrap", "mesh_control", "#[path"];
    source.names(&above, "the host imports nothing of another tier")
}

fn starts_no_thread(source: &Source) -> Vec<String> {
    if !source.is_under(&["src/host/"]) {
        return Vec::new();
    }
    let threads = ["thread::spawn", "thread::scope", "thread::Builder", "async fn", ".await"];
    source.names(&threads, "the host has one thread and no async")
}

fn never_unwraps(source: &Source) -> Vec<String> {
    if !source.is_under(&["src/"]) {
        return Vec::new();
    }
    source.names(&[".unwrap()", ".unwrap_err()"], "handle it, or state the invariant with expect")
}

fn leaves_nothing_undone(source: &Source) -> Vec<String> {
    let marks = [concat!("to", "do!"), concat!("unim", "plemented!"), concat!("db", "g!")];
    let lines = source.lines();
    let hit = |line: &&Line| marks.iter().any(|mark| names(line.code, mark));
    let said = |line: &Line| format!("{}:{}: not done", source.path, line.number);
    lines.iter().filter(hit).map(said).collect()
}

fn says_why_unsafe_is_safe(source: &Source) -> Vec<String> {
    let lines = source.lines();
    let is_unsafe = |line: &Line| {
        let rest = line.code.split_once("unsafe ").map(|(_, rest)| rest.trim_start());
        let opens =
            |rest: &str| ["{", "fn ", "impl ", "extern "].iter().any(|w| rest.starts_with(w));
        names(line.code, "unsafe") && rest.is_some_and(opens)
    };
    let argued = |at: usize| {
        // The argument stands above the statement, which may have begun a few lines higher.
        let above = lines[..at].iter().rev().take(12).take_while(|line| {
            let code = line.code.trim_end();
            let blank = code.is_empty() && line.comment.is_empty();
            !blank && !code.ends_with([';', '{', '}'])
        });
        above.into_iter().any(|line| line.comment.contains("SAFETY:"))
    };
    let bare = |(at, line): (usize, &Line)| {
        let said = format!("{}:{}: unsafe without SAFETY", source.path, line.number);
        (is_unsafe(line) && !argued(at)).then_some(said)
    };
    lines.iter().enumerate().filter_map(bare).collect()
}

/// Nothing names the machine it was written on or where packages come from.
fn names_no_machine(source: &Source) -> Vec<String> {
    let places = [
        concat!("/wo", "rk/"),
        concat!("crates", ".io"),
        concat!("npmjs", ".org"),
        concat!("proxy.golang", ".org"),
        concat!("py", "pi.org"),
        concat!("pythonhosted", ".org"),
        concat!("rubygems", ".org"),
    ];
    let usual = concat!("registry+https://github.com/rust-lang/crates", ".io-index");
    let hit = |(i, line): (usize, &str)| {
        let line = line.replace(usual, "");
        let place = places.iter().find(|place| line.contains(**place))?;
        Some(format!("{}:{}: names {place}", source.path, i + 1))
    };
    source.text.lines().enumerate().filter_map(hit).collect()
}

fn locks_to_the_usual_registry(source: &Source) -> Vec<String> {
    let usual = concat!("\"registry+https://github.com/rust-lang/crates", ".io-index\"");
    if !source.path.ends_with("Cargo.lock") {
        return Vec::new();
    }
    let origins = source.text.lines().filter_map(|line| line.strip_prefix("source = "));
    let other = origins.filter(|origin| *origin != usual);
    other.map(|origin| format!("{}: comes from {origin}", source.path)).collect()
}

fn offence(is: bool, said: impl FnOnce() -> String) -> Vec<String> {
    is.then(said).into_iter().collect()
}

type Rule = fn(&Source) -> Vec<String>;

/// Rules for Rust, each with something that breaks it: a path and a text.
const RUST_RULES: [(Rule, &str, &str); 10] = [
    (begins_by_saying_what_it_owns, "src/host/plan.rs", "use std::fmt;\n"),
    (has_a_telling_name, "src/host/tool/utils.rs", ""),
    (stays_pure, "src/host/tool/ip.rs", "use std::{fmt, fs};\n"),
    (stays_pure, "src/host/plan.rs", "#[cfg(test)]\nmod t {\n}\nlet a = libc::c_int;\n"),
    (trusts_no_more_than_it_may, "src/host/cli/mod.rs", "    Bundle::vouched(bytes)\n"),
    (imports_nothing_from_above, "src/host/cli/mod.rs", "use mesh_control::Topic;\n"),
    (starts_no_thread, "src/host/service.rs", "std::thread::spawn(|| {});\n"),
    (never_unwraps, "src/host/plan.rs", "let x = y.unwrap();\n"),
    (leaves_nothing_undone, "tests/cli.rs", concat!("    to", "do!()\n")),
    (
        says_why_unsafe_is_safe,
        "src/host/machine/sys.rs",
        "f();\n// SAFETY: no\nf();\nunsafe { g() }\n",
    ),
];

/// Rules for every text, likewise.
const TEXT_RULES: [(Rule, &str, &str); 2] = [
    (names_no_machine, "README.md", concat!("cd /wo", "rk/main\n")),
    (locks_to_the_usual_registry, "Cargo.lock", "source = \"registry+https://mirror/\"\n"),
];

#[test]
fn every_rule_holds_in_every_file() {
    let mut offences = Vec::new();
    for source in sources() {
        if source.is_rust() {
            offences.extend(RUST_RULES.iter().flat_map(|(rule, ..)| rule(&source)));
        }
        if source.is_rust() || source.is_under(&["Makefile", ".ci/"]) {
            offences.extend(stays_narrow(&source));
            offences.extend(stays_short(&source));
        }
        offences.extend(TEXT_RULES.iter().flat_map(|(rule, ..)| rule(&source)));
    }
    offences.sort();
    offences.dedup();
    assert!(offences.is_empty(), "\n{}\n", offences.join("\n"));
}

#[test]
fn every_rule_sees_what_it_forbids() {
    for (i, (rule, path, text)) in RUST_RULES.iter().chain(&TEXT_RULES).enumerate() {
        let bad = Source { path: (*path).into(), text: (*text).into() };
        assert!(!rule(&bad).is_empty(), "rule {i} saw nothing in {path}: {text}");
        let text = "//! Fine.\n\n// SAFETY: it is.\nlet x =\n    unsafe { f() };\n".into();
        let good = Source { path: "src/host/tool/ip.rs".into(), text };
        assert!(rule(&good).is_empty(), "rule {i}: {:?}", rule(&good));
    }
    let wide = Source { path: "Makefile".into(), text: "é".repeat(MOST_COLUMNS + 1) };
    assert_eq!(stays_narrow(&wide).len(), 1);
    let long = Source { path: "src/host/plan.rs".into(), text: "\n".repeat(MOST_LINES + 1) };
    assert_eq!(stays_short(&long).len(), 1);
}

#[test]
fn the_top_of_the_tree_holds_what_it_should_and_no_more() {
    let top: BTreeSet<String> = files()
        .iter()
        .filter_map(|path| path.split('/').next())
        .filter(|name| !name.starts_with('.'))
        .map(String::from)
        .collect();
    assert_eq!(top, TOP.map(String::from).into(), "what stands at the top, and what should");
}

//
#[test]
fn the_host_depends_on_six_crates_and_brings_no_runtime_and_no_database() {
    let manifest = std::fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let mut section = String::new();
    let mut direct = BTreeSet::new();
    for line in manifest.lines().map(str::trim).filter(|line| !line.starts_with('#')) {
        if let Some(head) = line.strip_prefix('[') {
            section = head.trim_end_matches(']').to_owned();
            if let Some(name) = section.strip_prefix("dependencies.") {
                direct.insert(name.to_owned());
            }
            let more = section.ends_with("build-dependencies") || section.starts_with("target.");
            assert!(!more, "[{section}] would be a second list of dependencies");
        } else if let (true, Some((name, _))) = (section == "dependencies", line.split_once('=')) {
            direct.insert(name.split('.').next().unwrap_or(name).trim().to_owned());
        }
    }
    assert_eq!(direct, DEPENDENCIES.map(String::from).into());

    let cargo = std::env::var("CARGO").unwrap_or("cargo".into());
    let arguments = "tree --offline --locked -p nox-mesh-host -e normal,build --prefix none";
    let tree = Command::new(cargo).args(arguments.split(' ')).current_dir(root()).output().unwrap();
    assert!(tree.status.success(), "{}", String::from_utf8_lossy(&tree.stderr));
    let tree = String::from_utf8(tree.stdout).unwrap();
    let all: BTreeSet<&str> = tree.lines().filter_map(|line| line.split(' ').next()).collect();
    assert!(DEPENDENCIES.iter().all(|name| all.contains(name)), "not the whole tree: {all:?}");
    let foreign = |name: &&&str| FOREIGN.iter().any(|part| part_of(part, name));
    let found: Vec<_> = all.iter().filter(foreign).collect();
    assert!(found.is_empty(), "{found:?} under the host");
}

/// Whether `part` is one or more whole words of the crate name `name`, or begins it.
fn part_of(part: &str, name: &str) -> bool {
    name.starts_with(part) || name.split(['-', '_']).any(|word| word == part)
}

#[test]
fn every_requirement_claimed_done_is_defended_by_a_test() {
    let mut cited: BTreeMap<u32, String> = BTreeMap::new();
    for source in sources().iter().filter(|source| source.is_rust()) {
        for line in source.lines().iter().filter(|line| line.test) {
            for row in rows(line.comment) {
                assert!((1..=LAST_ROW).contains(&row), "{}: there is no R-{row}", source.path);
                cited.entry(row).or_insert_with(|| source.path.clone());
            }
        }
    }
    let missing: Vec<_> = DONE.iter().filter(|row| !cited.contains_key(row)).collect();
    assert!(missing.is_empty(), "no test cites row {missing:?}");
}

/// The requirement rows that a comment cites.
fn rows(comment: &str) -> Vec<u32> {
    let after = comment.split("R-").skip(1);
    let digits = after.map(|rest| rest.split(|c: char| !c.is_ascii_digit()).next());
    digits.filter_map(|digits| digits?.parse().ok()).collect()
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every text file of the project.
fn sources() -> Vec<Source> {
    let read = |path: String| {
        let text = String::from_utf8(std::fs::read(root().join(&path)).ok()?).ok()?;
        Some(Source { path, text })
    };
    let sources: Vec<Source> = files().into_iter().filter_map(read).collect();
    assert!(sources.iter().filter(|source| source.is_rust()).count() > 10, "too few to be all");
    sources
}

/// Every file of the project, relative to its top: what git knows or would add, or all that is
/// there where this is no checkout.
fn files() -> Vec<String> {
    let arguments = ["ls-files", "--cached", "--others", "--exclude-standard"];
    let git = Command::new("git").args(arguments).current_dir(root()).output();
    if let Ok(git) = git {
        let listed = String::from_utf8(git.stdout).unwrap();
        let there = |path: &&str| root().join(path).is_file();
        let listed: Vec<String> = listed.lines().filter(there).map(String::from).collect();
        if git.status.success() && !listed.is_empty() {
            return listed;
        }
    }
    let mut found = Vec::new();
    let mut ahead = vec![PathBuf::new()];
    while let Some(directory) = ahead.pop() {
        for entry in std::fs::read_dir(root().join(&directory)).unwrap() {
            let entry = entry.unwrap();
            let path = directory.join(entry.file_name());
            let made = ["target", "corpus", "artifacts", ".git"];
            match entry.file_type().unwrap().is_dir() {
                true if made.iter().any(|name| entry.file_name() == *name) => {}
                true => ahead.push(path),
                false => found.push(path.to_str().unwrap().to_owned()),
            }
        }
    }
    found
}
