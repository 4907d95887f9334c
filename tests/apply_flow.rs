//! How a pass goes on after a failure, holds what it did not reach, and waits for a person.

mod support;

use std::fs;

use nox_mesh_host::store::{Kind, Record, Store, When};
use support::root::{declared, run_with, Root, HOST};

fn file(id: &str, text: &str) -> String {
    format!(r#"{{"id":"{id}","type":"file","path":"/s/{id}","content":"{text}"}}"#)
}

/// A resource that fails for as long as a directory stands at its path.
fn bad(root: &Root) -> String {
    if !root.has("/s/bad") {
        root.mkdir("/s/bad");
    }
    file("bad", "x")
}

fn status(root: &Root) -> serde_json::Value {
    serde_json::from_str(&root.host(&["--json", "status"]).out).unwrap()
}

// R-4
#[test]
fn the_first_failure_stops_a_new_declaration() {
    let root = Root::new("stops");
    let all = [file("a", "1"), bad(&root), file("b", "1"), file("c", "1")].join(",");
    let run = root.apply(&all);
    let run = run.expect(1, &["a created", "bad failed", "b not_reached", "c not_reached"]);
    assert_eq!(run.report()["outcome"], "failed");
    assert_eq!((&run.report()["failed"], &run.report()["changed"]), (&1.into(), &1.into()));
    assert!(root.has("/s/a") && !root.has("/s/b") && !root.has("/s/c"));
    assert_eq!(root.recorded("applied"), ["path:/s/a"]);
    assert!(!root.recorded("began").contains(&"path:/s/b".to_string()));
    let failing = status(&root)["failing"].clone();
    assert_eq!((failing.as_array().unwrap().len(), &failing[0]["id"]), (1, &"bad".into()));
    // What failed is tried again; once it can be made, so is the rest.
    root.reconcile().expect(1, &["a unchanged", "bad failed", "b not_reached", "c not_reached"]);
    fs::remove_dir(root.at("/s/bad")).unwrap();
    root.reconcile().expect(0, &["a unchanged", "bad created", "b created", "c created"]);
    assert_eq!(status(&root)["failing"], serde_json::json!([]));
    let before = root.tree();
    root.reconcile();
    assert_eq!(root.tree(), before);
}

// R-4, R-3
#[test]
fn what_a_failure_keeps_from_its_turn_is_held_in_its_last_form() {
    let root = Root::new("holds");
    root.converge(&[file("a", "1"), file("b", "1"), file("goes", "1")].join(","));
    let next = [file("a", "2"), bad(&root), file("b", "2"), file("c", "2")].join(",");
    root.apply(&next).expect(1, &["a changed", "bad failed", "b not_reached", "c not_reached"]);
    assert_eq!((root.text("/s/a"), root.text("/s/b")), ("2".into(), "1".into()));
    assert!(root.has("/s/goes") && !root.has("/s/c"));
    for _ in 0..2 {
        for name in ["a", "b", "goes"] {
            root.put(&format!("/s/{name}"), "drift");
        }
        let run = root.reconcile();
        assert_eq!(run.code, 1, "{}", run.out);
        assert_eq!(run.detail("b"), "held in its last form: corrected contents 5 → 1 bytes");
        let held = ["/s/a", "/s/b", "/s/goes"].map(|path| root.text(path));
        assert_eq!(held, ["2", "1", "1"].map(String::from));
    }
    fs::remove_dir(root.at("/s/bad")).unwrap();
    root.reconcile()
        .expect(0, &["a unchanged", "bad created", "b changed", "c created", "goes removed"]);
    assert_eq!(root.text("/s/b"), "2");
}

// R-4, R-9
#[test]
fn what_is_held_is_not_let_go_of_for_what_was_not_reached() {
    let root = Root::new("holds-link");
    root.mkdir("/s/real");
    let link = r#"{"id":"l","type":"symlink","path":"/s/d","target":"real"}"#;
    let beyond = file("f", "1").replace("/s/f", "/s/d/f");
    root.converge(&[link, beyond.as_str()].join(","));
    let next = [&bad(&root), r#"{"id":"d","type":"directory","path":"/s/d"}"#].join(",");
    for _ in 0..2 {
        let run = root.apply(&next);
        assert_eq!((run.code, run.outcomes()[0].as_str()), (1, "bad failed"), "{}", run.out);
        assert!(root.at("/s/d").is_symlink() && root.recorded("removed").is_empty());
        // It is put back where it went, too.
        root.put("/s/real/f", "drift");
        fs::remove_file(root.at("/s/d")).unwrap();
    }
    root.reconcile();
    assert_eq!((root.at("/s/d").is_symlink(), root.text("/s/real/f")), (true, "1".into()));
    fs::remove_dir(root.at("/s/bad")).unwrap();
    root.reconcile();
    assert!(root.at("/s/d").is_dir() && !root.at("/s/d").is_symlink());
}

// R-3, R-4
#[test]
fn a_declaration_once_applied_whole_goes_on_past_failures() {
    let root = Root::new("goes-on");
    let all = [file("one", "1"), file("a", "1"), file("two", "1"), file("b", "1")].join(",");
    root.converge(&all);
    for path in ["/s/one", "/s/two"] {
        fs::remove_file(root.at(path)).unwrap();
        root.mkdir(path);
    }
    root.put("/s/a", "drift");
    fs::remove_file(root.at("/s/b")).unwrap();
    let run = root.reconcile();
    let run = run.expect(1, &["one failed", "a corrected", "two failed", "b corrected"]);
    let failed: Vec<String> = run.errors().into_iter().map(|[_, id, _]| id).collect();
    assert_eq!(failed, ["one", "two"]);
    assert_eq!((root.text("/s/a"), root.text("/s/b")), ("1".into(), "1".into()));
    root.apply(&all).expect(1, &["one failed", "a unchanged", "two failed", "b unchanged"]);
    for path in ["/s/one", "/s/two"] {
        fs::remove_dir(root.at(path)).unwrap();
    }
    root.reconcile().expect(0, &["one corrected", "a unchanged", "two corrected", "b unchanged"]);
}

// R-4
#[test]
fn one_source_s_success_leaves_another_s_failure_on_record() {
    let root = Root::new("two-sources");
    root.bundle(&bad(&root)).expect(1, &["bad failed"]);
    root.converge(&file("a", "1"));
    let failing = status(&root)["failing"].clone();
    assert_eq!((&failing[0]["id"], &failing[0]["source"]), (&"bad".into(), &"bundle".into()));
    let before = root.tree();
    root.apply(&file("a", "1")).expect(0, &["a unchanged"]);
    assert_eq!(root.tree(), before);
}

// R-7
#[test]
fn a_stale_serial_and_other_words_under_the_same_are_refused() {
    let root = Root::new("serial");
    let serial = |serial: u32, resources: &str| {
        let text = format!(r#"{{"version":1,"serial":{serial},"resources":[{resources}]}}"#);
        root.host(&["--json", "apply", &root.declare("serial.json", &text)])
    };
    assert_eq!(serial(5, &file("a", "5")).code, 0);
    let before = root.tree();
    for (number, text, words) in [
        (4, "4", "4 is stale: 5 was accepted before"),
        (5, "other", "5 was accepted before, with other contents"),
        (0, "0", "0 is stale"),
    ] {
        let run = serial(number, &file("a", text));
        assert_eq!(run.code, 3, "{}", run.out);
        assert!(run.err.contains(words), "{}", run.err);
    }
    assert_eq!(serial(5, &file("a", "5")).code, 0);
    assert_eq!(root.tree(), before);
    assert_eq!(serial(6, &file("a", "6")).code, 0);
    assert_eq!(root.text("/s/a"), "6");
}

// R-7
#[test]
fn what_is_refused_touches_nothing_not_even_an_absent_store() {
    let root = Root::new("refused");
    let before = root.tree();
    for text in [
        "",
        "{",
        "null",
        r#"{"version":2,"resources":[]}"#,
        r#"{"version":1,"resources":[],"more":1}"#,
        r#"{"version":1,"resources":[{"id":"a","type":"fail","path":"/s/a"}]}"#,
        &declared(&format!("{},{}", file("a", "1"), file("a", "2"))),
        &declared(&format!("{},{}", file("ok", "1"), r#"{"id":"b","type":"file"}"#)),
        &declared(r#"{"id":"a","type":"action","run":["true"],"verify":["true"]}"#),
        &declared(r#"{"id":"a","type":"file","path":"/etc/mesh-host/config.json","content":""}"#),
    ] {
        let run = root.host(&["apply", &root.declare("bad.json", text)]);
        assert_eq!(run.code, 3, "{text}: {}{}", run.out, run.err);
        let planned = root.host(&["plan", &root.declare("bad.json", text)]);
        assert_eq!(planned.code, 3, "{text}: {}{}", planned.out, planned.err);
    }
    assert_eq!(root.host(&["apply", "/no/such/file"]).code, 1);
    assert_eq!(root.tree(), before);
}

#[test]
fn a_declaration_is_read_from_standard_input_too() {
    let root = Root::new("stdin");
    let mut command = std::process::Command::new(HOST);
    command.arg("--root").arg(root.dir()).args(["apply", "-"]);
    assert_eq!(run_with(&mut command, &declared(&file("a", "1"))).code, 0);
    assert_eq!(root.text("/s/a"), "1");
}

#[test]
fn a_pause_accepts_and_applies_nothing_until_it_is_over() {
    let root = Root::new("pause");
    root.converge(&file("a", "1"));
    for span in [None, Some("2h")] {
        let mut args = vec!["pause", "--reason", "moving house"];
        args.extend(span.map(|_| "--for").into_iter().chain(span));
        assert_eq!(root.host(&args).code, 0);
        assert_eq!(status(&root)["paused"]["reason"], "moving house");
        assert_eq!(status(&root)["paused"]["until"].is_string(), span.is_some());
        let text = span.unwrap_or("forever");
        let before = support::root::tree(&root.at("/s"));
        let run = root.apply(&file("a", text)).expect(0, &["a not_reached"]);
        assert_eq!(run.report()["outcome"], "paused");
        root.reconcile().expect(0, &["a not_reached"]);
        assert_eq!(support::root::tree(&root.at("/s")), before);
        assert_eq!(root.host(&["resume"]).code, 0);
        root.reconcile().expect(0, &["a changed"]);
        assert_eq!(root.text("/s/a"), text);
    }
    // One whose time is over holds nothing.
    let mut store = Store::open(&root.state(), Default::default(), When(3)).unwrap();
    let (reason, until) = (Some("short".into()), Some(When(2)));
    store.append(Record { reason, until, ..Record::new(Kind::Paused) }, When(1)).unwrap();
    store.flush().unwrap();
    drop(store);
    root.converge(&file("a", "on")).expect(0, &["a changed"]);
}

#[test]
fn a_machine_to_which_nothing_was_declared_has_nothing_to_reconcile() {
    let root = Root::new("nothing");
    let run = root.reconcile().expect(0, &[]);
    assert!(run.err.contains("nothing has been declared"), "{}", run.err);
    assert_eq!(root.recorded("began").len(), 0);
}
