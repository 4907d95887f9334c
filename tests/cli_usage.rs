//! The command line as it is understood: every command and flag, and what is said of those that
//! are none.

mod support;

use support::said::{at, host, Said};
use support::Scratch;

const COMMANDS: [&str; 15] = [
    "run",
    "apply",
    "plan",
    "check",
    "reconcile",
    "status",
    "owned",
    "journal",
    "pause",
    "resume",
    "rescue",
    "schema",
    "unit",
    "version",
    "help",
];

/// A declaration of one file at the top of the root.
const ONE: &str = r#"{"version":1,"resources":[
    {"id":"one","type":"file","path":"/one","content":"1\n"}]}"#;

fn usage(arguments: &[&str]) -> Said {
    let said = host(arguments).exits(2);
    assert!(said.out.is_empty(), "{said:?}");
    assert!(said.err.starts_with("nox-mesh-host: ") && said.err.lines().count() == 1, "{said:?}");
    said
}

#[test]
fn every_command_says_what_it_does_and_all_help_fits_a_terminal() {
    let overview = host(&["help"]).exits(0).out;
    for spelling in [&["--help"][..], &["-h"]] {
        assert_eq!(host(spelling).exits(0).out, overview);
    }
    assert!(overview.lines().count() <= 32, "{overview}");
    for name in COMMANDS {
        assert!(overview.contains(&format!("\n  {name} ")), "{name} in {overview}");
        let help = host(&["help", name]).exits(0);
        assert!(help.err.is_empty());
        assert!(help.out.starts_with(&format!("usage: nox-mesh-host {name}")), "{}", help.out);
        assert!(help.out.lines().count() <= 32, "{}", help.out);
        // Help wins over what else is missing or in the way.
        for asked in [&[name, "--help"][..], &["-h", name], &[name, "x", "y", "--help"]] {
            assert_eq!(host(asked).exits(0).out, help.out, "{asked:?}");
        }
        for line in help.out.lines().chain(overview.lines()) {
            assert!(line.chars().count() <= 80, "{name}: {line}");
        }
    }
}

#[test]
fn what_is_unknown_is_named_and_the_nearest_name_suggested() {
    for (arguments, named, meant) in [
        (&["aply", "x"][..], "\"aply\"", "did you mean \"apply\"?"),
        (&["jour"], "\"jour\"", "did you mean \"journal\"?"),
        (&["help", "stauts"], "\"stauts\"", "did you mean \"status\"?"),
        (&["plan", "--exit-cod", "x"], "\"--exit-cod\"", "did you mean \"exit-code\"?"),
        (&["status", "--jsno"], "\"--jsno\"", "did you mean \"json\"?"),
        (&["xyzzy"], "\"xyzzy\"", "see nox-mesh-host help"),
        (&["--xyzzy", "status"], "\"--xyzzy\"", "see nox-mesh-host help"),
        (&["-x"], "\"-x\"", "see nox-mesh-host help"),
        (&["-"], "\"-\"", "see nox-mesh-host help"),
        (&[""], "\"\"", "see nox-mesh-host help"),
    ] {
        let said = usage(arguments);
        assert!(said.err.contains(named) && said.err.contains(meant), "{arguments:?}: {said:?}");
    }
    assert!(!usage(&["xyzzy"]).err.contains("did you mean"));
}

#[test]
fn hostile_arguments_are_quoted_and_capped() {
    let long = "l".repeat(100_000);
    let escape = "\x1b[2Jevil\u{202e}\n";
    for argument in [&*long, escape, "\u{9b}31m"] {
        for arguments in [
            &[argument][..],
            &["status", argument],
            &["help", argument],
            &["--root", argument, "status"],
            &["--config", argument, "status"],
            &["apply", argument],
            &["apply", "--bundle", argument],
            &["journal", "-n", argument],
            &["pause", "--reason", "r", "--for", argument],
            &["--color", argument, "status"],
            &[&format!("--{argument}")],
            &["status", &format!("--json={argument}")],
        ] {
            let said = host(arguments);
            assert!(matches!(said.code, 1 | 2), "{arguments:.50?}: {said:.300?}");
            assert!(said.err.len() < 1000, "{:.50?} said {}", arguments, said.err.len());
            assert_eq!(said.err.lines().count(), 1, "{said:?}");
            assert!(!said.err.contains(['\u{202e}', '\u{9b}']), "{said:?}");
            said.is_plain();
        }
    }
}

#[test]
fn operands_and_flags_are_wanted_where_they_belong_and_nowhere_else() {
    for arguments in [
        &[][..],
        &["apply"],
        &["plan"],
        &["check"],
        &["--bundle"],
        &["apply", "a", "b"],
        &["apply", "--bundle", "a", "b"],
        &["apply", "--bundle", "-"],
        &["reconcile", "x"],
        &["status", "x"],
        &["owned", "x"],
        &["journal", "x"],
        &["pause"],
        &["pause", "why"],
        &["pause", "--reason", " "],
        &["pause", "--reason"],
        &["resume", "x"],
        &["rescue"],
        &["schema", "x"],
        &["unit", "x"],
        &["version", "x"],
        &["help", "apply", "plan"],
        &["apply", "--exit-code", "x"],
        &["check", "--take", "x"],
        &["reconcile", "--bundle"],
        &["status", "--follow"],
        &["plan", "--verify", "x"],
        &["apply", "--reason", "r", "x"],
        &["resume", "--for", "1h"],
        &["pause", "--discard-state", "--reason", "r"],
        &["apply", "--take=yes", "x"],
        &["status", "--json=1"],
        &["status", "--root"],
        &["status", "--root", ""],
        &["status", "--state="],
        &["status", "--config", ""],
        &["status", "--color", "sometimes"],
        &["journal", "-n"],
        &["journal", "-n", "x"],
        &["journal", "-n", "-1"],
        &["journal", "-n", "18446744073709551616"],
    ] {
        usage(arguments);
    }
    let said = usage(&["pause", "--reason", &"r".repeat(1001)]);
    assert!(said.err.contains("longer than 1000 bytes"), "{said:?}");
    for span in ["", "s", "0s", "1", "-1h", "1.5h", "2w", "367d", "99999999999999999999d", "é"] {
        let said = usage(&["pause", "--reason", "r", "--for", span]);
        assert!(said.err.contains("--for"), "{said:?}");
    }
}

#[test]
fn flags_stand_before_or_after_the_command_joined_or_apart() {
    let scratch = Scratch::new("cli-flags");
    let root = scratch.path().to_str().unwrap();
    let file = scratch.join("one.json");
    std::fs::write(&file, ONE).unwrap();
    let file = file.to_str().unwrap();
    let joined = format!("--root={root}");
    let want = host(&["--root", root, "plan", "--exit-code", file]).exits(10).out;
    for arguments in [
        &["plan", file, "--exit-code", "--root", root][..],
        &["--exit-code", &joined, "plan", file],
        &["plan", "--exit-code", &joined, "--", file],
        &["--root", "/nonexistent", "plan", "--exit-code", file, "--root", root],
    ] {
        assert_eq!(host(arguments).exits(10).out, want, "{arguments:?}");
    }
    at(scratch.path(), &["apply", file]).exits(0);
    at(scratch.path(), &["plan", "--exit-code", file]).exits(0);
    let last = at(scratch.path(), &["journal", "-n1"]).exits(0).out;
    assert_eq!(last.lines().count(), 1);
    assert_eq!(at(scratch.path(), &["journal", "--count=1"]).exits(0).out, last);
    let none = at(scratch.path(), &["journal", "-n", "0"]).exits(0);
    assert!(none.out.is_empty(), "{none:?}");
}
