//! The shapes that the host emits and stores, each against the one on record in `tests/wire/`.

mod support;

use std::collections::BTreeSet;

use support::golden::{assert_golden, settled, wire, Layout};
use support::said::{at, fed, Said};
use support::Scratch;

/// A declaration of everything that a root which is not the machine's own can be made to match.
const FULL: &str = r#"{"version":1,"node":"web-1","serial":7,"resources":[
    {"id":"dir","type":"directory","path":"/srv/site"},
    {"id":"page","type":"file","path":"/srv/site/page","content":"one\ntwo\n"},
    {"id":"there","type":"file","path":"/etc/there","content":"new\n"},
    {"id":"link","type":"symlink","path":"/srv/site/link","target":"page"},
    {"id":"key","type":"file","path":"/etc/key","content":"canary-9b1d","secret":true},
    {"id":"forwarding","type":"sysctl","key":"net.ipv4.ip_forward","value":1}]}"#;

/// The same later: something changed, something no longer declared.
const LATER: &str = r#"{"version":1,"node":"web-1","serial":8,"resources":[
    {"id":"dir","type":"directory","path":"/srv/site"},
    {"id":"page","type":"file","path":"/srv/site/page","content":"one\n2\n"}]}"#;

const FAILS: &str = r#"{"version":1,"node":"web-1","serial":9,"resources":[
    {"id":"page","type":"file","path":"/srv/site/page","content":"one\n"},
    {"id":"lost","type":"file","path":"/nowhere/lost","content":""},
    {"id":"after","type":"directory","path":"/after"}]}"#;

const BAD: &str = r#"{"version":1,"resources":[
    {"id":"x","type":"file","path":"x","content":""},{"id":"x","type":"fiel","path":"/y"}]}"#;

const BUNDLE: &str = r#"{"version":1,"resources":[
    {"id":"base","type":"directory","path":"/base"}]}"#;

/// A root that holds a file which was there before.
fn root(name: &str) -> Scratch {
    let scratch = Scratch::new(name);
    std::fs::create_dir(scratch.join("etc")).unwrap();
    std::fs::write(scratch.join("etc/there"), "old\n").unwrap();
    scratch
}

#[track_caller]
fn golden(scratch: &Scratch, said: Said, code: i32, name: &str) {
    let said = said.exits(code);
    said.json();
    assert_golden(name, &settled(&said.out, scratch.path(), Layout::Indented));
}

/// A store in which every kind of record stands that is reachable without a link.
fn busy(name: &str) -> Scratch {
    let scratch = root(name);
    let path = scratch.path();
    let bundle = scratch.join("bundle.json");
    std::fs::write(&bundle, BUNDLE).unwrap();
    at(path, &["apply", "--bundle", bundle.to_str().unwrap()]).exits(0);
    fed(path, &["apply", "-"], FULL.as_bytes()).exits(0);
    std::fs::remove_file(scratch.join("srv/site/page")).unwrap();
    at(path, &["reconcile"]).exits(0);
    fed(path, &["apply", "-"], LATER.as_bytes()).exits(0);
    fed(path, &["apply", "-"], FAILS.as_bytes()).exits(1);
    at(path, &["pause", "--reason", "looking", "--for", "2h"]).exits(0);
    at(path, &["resume"]).exits(0);
    std::fs::write(scratch.join("srv/site/stranger"), "").unwrap();
    let take = r#"{"version":1,"node":"web-1","serial":10,"resources":[
        {"id":"ours","type":"directory","path":"/base"}]}"#;
    fed(path, &["apply", "--take", "-"], take.as_bytes()).exits(0);
    scratch
}

#[test]
fn reports_and_plans_are_the_ones_on_record() {
    let scratch = root("wire-report");
    let path = scratch.path();
    let run = |arguments: &[&str], text: &str| fed(path, arguments, text.as_bytes());
    golden(&scratch, run(&["plan", "-", "--json"], FULL), 0, "plan.json");
    golden(&scratch, run(&["apply", "-", "--json"], FULL), 0, "report-applied.json");
    golden(&scratch, run(&["apply", "-", "--json"], FULL), 0, "report-unchanged.json");
    std::fs::remove_file(scratch.join("etc/key")).unwrap();
    std::fs::write(scratch.join("srv/site/page"), "drifted\n").unwrap();
    golden(&scratch, at(path, &["reconcile", "--json"]), 0, "report-corrected.json");
    golden(&scratch, run(&["apply", "-", "--json"], LATER), 0, "report-removed.json");
    golden(&scratch, run(&["apply", "-", "--json"], FAILS), 1, "report-failed.json");
    golden(&scratch, run(&["apply", "-", "--json"], BAD), 3, "report-refused.json");
    at(path, &["pause", "--reason", "looking"]).exits(0);
    golden(&scratch, at(path, &["reconcile", "--json"]), 0, "report-paused.json");
}

/// Panics unless these are the members of an object.
#[track_caller]
fn members(json: &serde_json::Value, wanted: &str, optional: &str) {
    let found: BTreeSet<&str> = json.as_object().unwrap().keys().map(|key| &**key).collect();
    let wanted: BTreeSet<&str> = wanted.split(' ').collect();
    let known: BTreeSet<&str> = wanted.iter().copied().chain(optional.split(' ')).collect();
    assert!(wanted.is_subset(&found) && found.is_subset(&known), "{found:?}");
}

#[test]
fn a_report_carries_what_the_contract_says_and_no_more() {
    let reports = wire().read_dir().unwrap().map(|entry| entry.unwrap().path());
    let is_report = |path: &std::path::PathBuf| {
        let name = path.file_name().unwrap().to_str().unwrap();
        name.starts_with("report-") || name == "plan.json"
    };
    let mut count = 0;
    for path in reports.filter(is_report) {
        count += 1;
        let report: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        let always = "schema id host trigger declarations started finished outcome changed \
                      corrected removed failed resources errors";
        members(&report, always, "node");
        for declaration in report["declarations"].as_array().unwrap() {
            members(declaration, "source sha256", "serial");
        }
        for resource in report["resources"].as_array().unwrap() {
            members(resource, "id source type outcome took_ms", "detail diff");
        }
        for error in report["errors"].as_array().unwrap() {
            members(error, "stage doing cause", "resource");
        }
    }
    assert!(count >= 7, "{count} reports on record");
}

#[test]
fn what_is_looked_up_is_shown_in_the_shapes_on_record() {
    let scratch = busy("wire-look");
    let path = scratch.path();
    let look = |arguments: &[&str]| at(path, &[arguments, &["--json"]].concat());
    golden(&scratch, look(&["owned"]), 0, "owned.json");
    golden(&scratch, look(&["journal", "-n", "3"]), 0, "journal.json");
    golden(&scratch, look(&["journal", "--verify"]), 0, "verify.json");
    fed(path, &["apply", "-"], FAILS.replace("\"serial\":9", "\"serial\":11").as_bytes()).exits(1);
    golden(&scratch, look(&["pause", "--reason", "looking", "--for", "2h"]), 0, "pause.json");
    golden(&scratch, look(&["status"]), 0, "status.json");
    golden(&scratch, look(&["resume"]), 0, "resume.json");
    golden(&scratch, look(&["rescue", "--discard-state"]), 0, "rescue.json");
    golden(&scratch, look(&["version"]), 0, "version.json");
    golden(&scratch, fed(path, &["check", "-", "--json"], FULL.as_bytes()), 0, "check.json");
    golden(&scratch, fed(path, &["check", "-", "--json"], BAD.as_bytes()), 3, "check-refused.json");
    golden(&scratch, look(&["apply"]), 2, "error.json");
}

// R-30
#[test]
fn the_journal_holds_the_lines_on_record_and_no_secret() {
    let scratch = busy("wire-journal");
    let journal = scratch.join("var/lib/mesh-host/journal.jsonl");
    let text = std::fs::read_to_string(journal).unwrap();
    assert!(!text.contains("canary-9b1d"));
    let lines = text.lines().map(|line| settled(line, scratch.path(), Layout::Compact));
    let lines: String = lines.map(|line| unkeyed(&line)).collect();
    for kind in [
        "snapshot",
        "accepted",
        "began",
        "applied",
        "removed",
        "forgotten",
        "left",
        "claimed",
        "failed",
        "pass",
        "paused",
        "resumed",
    ] {
        assert!(lines.contains(&format!("\"kind\":\"{kind}\"")), "no {kind} in {lines}");
    }
    assert_golden("journal.jsonl", &lines);
}

/// A line without what hangs on the store's own key: the names of secrets, and the form of what
/// has one.
fn unkeyed(line: &str) -> String {
    let mut line = line.to_owned();
    let keyed = if line.contains("\"object\":\"path:/etc/key\"") {
        "\"form\":\""
    } else {
        "\"$secret\":\""
    };
    if let Some(at) = line.find(keyed) {
        let from = at + keyed.len();
        let digits = line[from..].find('"').unwrap();
        line.replace_range(from..from + digits, &"0".repeat(digits));
    }
    line
}

#[test]
fn every_shape_on_record_is_explained() {
    let table = std::fs::read_to_string(wire().join("README.md")).unwrap();
    for entry in wire().read_dir().unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let is_explained = table.contains(&format!("| `{name}` |"));
        assert!(is_explained || name == "README.md", "{name}");
    }
}
