//! `--json`: one document on standard output whatever happens, and messages on standard error only.

mod support;

use support::said::{at, fed, host, Said};
use support::Scratch;

const ONE: &str = r#"{"version":1,"resources":[
    {"id":"one","type":"file","path":"/one","content":"1\n"}]}"#;
const FAILS: &str = r#"{"version":1,"resources":[
    {"id":"in","type":"file","path":"/nowhere/in","content":""}]}"#;
const REFUSED: &str = r#"{"version":1,"resources":[{"id":"in","type":"file","path":"in"}]}"#;

#[track_caller]
fn answers(said: Said, code: i32, schema: &str) -> serde_json::Value {
    let json = said.exits(code).json();
    assert_eq!(json["schema"], schema);
    json
}

#[test]
fn every_command_answers_with_one_document() {
    let scratch = Scratch::new("cli-json");
    let root = scratch.path();
    let file = scratch.join("one.json");
    std::fs::write(&file, ONE).unwrap();
    let file = file.to_str().unwrap();
    for (arguments, schema) in [
        (&["check", file][..], "check/1"),
        (&["plan", file], "plan/1"),
        (&["status"], "status/1"),
        (&["owned"], "owned/1"),
        (&["journal"], "journal/1"),
        (&["reconcile"], "report/1"),
        (&["apply", file], "report/1"),
        (&["apply", file], "report/1"),
        (&["plan", file], "plan/1"),
        (&["reconcile"], "report/1"),
        (&["status"], "status/1"),
        (&["owned"], "owned/1"),
        (&["journal"], "journal/1"),
        (&["journal", "--verify"], "verify/1"),
        (&["resume"], "resume/1"),
        (&["pause", "--reason", "r"], "pause/1"),
        (&["apply", file], "report/1"),
        (&["resume"], "resume/1"),
        (&["rescue", "--discard-state"], "rescue/1"),
        (&["schema"], "schema/1"),
        (&["unit"], "unit/1"),
        (&["version"], "version/1"),
        (&["help"], "help/1"),
        (&["help", "plan"], "help/1"),
        (&["plan", "--help"], "help/1"),
    ] {
        let (mut before, mut after) = (vec!["--json"], arguments.to_vec());
        before.extend(arguments);
        after.extend(["--json", "-q"]);
        answers(at(root, &before), 0, schema);
        answers(at(root, &after), 0, schema).as_object().unwrap();
    }
}

// R-7
#[test]
fn what_cannot_be_done_is_answered_with_a_document_too() {
    let scratch = Scratch::new("cli-json-errors");
    let root = scratch.path();
    for (arguments, code) in [
        (&["--json"][..], 2),
        (&["--json", "aply"], 2),
        (&["apply", "--json"], 2),
        (&["--bogus", "status", "--json"], 2),
        (&["apply", "/nonexistent", "--json"], 1),
        (&["--config", "/nonexistent", "status", "--json"], 1),
        (&["--root", "/nonexistent", "status", "--json"], 1),
    ] {
        let json = answers(host(arguments), code, "error/1");
        assert_eq!(json["exit"], code);
        assert!(!json["error"].as_str().unwrap().is_empty());
    }
    for (command, schema) in [("apply", "report/1"), ("plan", "plan/1")] {
        let json = answers(fed(root, &[command, "--json", "-"], REFUSED.as_bytes()), 3, schema);
        assert_eq!((&json["outcome"], &json["failed"]), (&"refused".into(), &0.into()));
        let errors = json["errors"].as_array().unwrap();
        assert_eq!(errors.len(), 2, "{json}");
        assert!(errors.iter().all(|error| error["stage"] == "read"), "{json}");
    }
    let json = answers(fed(root, &["check", "-", "--json"], REFUSED.as_bytes()), 3, "check/1");
    assert_eq!(json["faults"].as_array().unwrap().len(), 2, "{json}");
    // R-4
    let failed = fed(root, &["apply", "-", "--json"], FAILS.as_bytes());
    assert!(failed.err.contains("/nowhere"), "{failed:?}");
    let json = answers(failed, 1, "report/1");
    assert_eq!((&json["outcome"], &json["failed"]), (&"failed".into(), &1.into()));
}

#[test]
fn messages_never_come_between() {
    let scratch = Scratch::new("cli-json-messages");
    let root = scratch.path();
    let reconciled = at(root, &["reconcile", "--json"]).exits(0);
    assert!(reconciled.err.contains("nothing has been declared"), "{reconciled:?}");
    reconciled.json();
    fed(root, &["apply", "-"], ONE.as_bytes()).exits(0);
    let emptied = fed(root, &["apply", "-", "--json"], br#"{"version":1,"resources":[]}"#);
    assert!(emptied.err.contains("will remove file /one"), "{emptied:?}");
    assert_eq!(answers(emptied, 0, "report/1")["removed"], 1);
    at(root, &["pause", "--reason", "looking"]).exits(0);
    let held = fed(root, &["apply", "-", "--json"], ONE.as_bytes()).exits(0);
    assert!(held.err.contains("looking"), "{held:?}");
    assert_eq!(held.json()["outcome"], "paused");
    assert!(!scratch.join("one").exists());
}
