//! Bundle and person beside each other: each is complete for what it owns, and only that.

mod support;

use std::fs;
use std::os::unix::fs::{chown, symlink};

use support::root::{declared, is_root, Root};
use support::{skip, Lacks};

fn file(id: &str, text: &str) -> String {
    format!(r#"{{"id":"{id}","type":"file","path":"/s/{id}","content":"{text}"}}"#)
}

fn take(root: &Root, resources: &str) -> support::root::Run {
    let file = root.declare("taken.json", &declared(resources));
    root.host(&["--json", "apply", "--take", &file])
}

// R-9, R-25
#[test]
fn a_source_removes_nothing_that_another_raised() {
    let root = Root::new("beside");
    root.bundle(&file("b", "bundle")).expect(0, &["b created"]);
    root.converge(&file("l", "local"));
    root.converge("").expect(0, &["l removed"]);
    assert_eq!(root.text("/s/b"), "bundle");
    root.converge(&file("l", "local"));
    root.bundle("").expect(0, &["b removed"]);
    assert_eq!(root.text("/s/l"), "local");
    root.put("/s/l", "drift");
    let run = root.reconcile().expect(0, &["l corrected"]);
    let sources: Vec<_> = run.report()["declarations"].as_array().unwrap().clone();
    let sources: Vec<_> = sources.iter().map(|it| it["source"].as_str().unwrap()).collect();
    assert_eq!(sources, ["bundle", "local"]);
}

// R-9
#[test]
fn a_person_who_declares_what_the_bundle_owns_is_refused_by_name() {
    let root = Root::new("refused");
    root.bundle(&file("b", "bundle"));
    let before = root.tree();
    for run in [
        root.apply(&format!("{},{}", file("l", "x"), file("b", "local"))),
        root.plan(&file("b", "local")),
        root.apply(r#"{"id":"other","type":"directory","path":"/s/b"}"#),
    ] {
        assert_eq!(run.code, 3, "{}{}", run.out, run.err);
        assert!(run.err.contains("path:/s/b is owned by bundle"), "{}", run.err);
        assert!(run.err.contains("--take"), "{}", run.err);
    }
    assert_eq!(root.tree(), before);
}

// R-9
#[test]
fn what_is_taken_over_is_taken_for_good() {
    let root = Root::new("taken");
    let both = format!("{},{}", file("b", "bundle"), file("c", "bundle"));
    root.bundle(&both);
    let file_of = fs::metadata(root.at("/s/b")).unwrap();
    // Nothing changes on the machine but what is declared otherwise.
    take(&root, &file("b", "bundle")).expect(0, &["b claimed"]);
    let still = fs::metadata(root.at("/s/b")).unwrap();
    assert_eq!(file_of.modified().unwrap(), still.modified().unwrap());
    root.apply(&file("b", "mine")).expect(0, &["b changed"]);
    let before = root.tree();
    root.bundle(&both).expect(0, &["b claimed", "c unchanged"]);
    root.reconcile().expect(0, &["b claimed", "c unchanged", "b unchanged"]);
    assert_eq!(root.tree(), before);
    root.put("/s/b", "drift");
    root.bundle(&both).expect(0, &["b claimed", "c unchanged"]);
    assert_eq!(root.text("/s/b"), "drift");
    // It inherited that the host created it, and so it goes with its new owner, for good.
    root.apply("").expect(0, &["b removed"]);
    root.bundle(&both).expect(0, &["b claimed", "c unchanged"]);
    assert!(!root.has("/s/b"));
    root.bundle("").expect(0, &["c removed"]);
    let claims: Vec<_> = root.records().into_iter().filter(|it| it["kind"] == "claimed").collect();
    assert_eq!((claims.len(), &claims[0]["from"], &claims[0]["to"]), {
        (1, &"bundle".into(), &"local".into())
    });
}

// R-9
#[test]
fn a_take_over_changes_what_is_declared_otherwise_and_keeps_adopted_adopted() {
    let root = Root::new("inherited");
    root.put("/s/b", "was");
    root.bundle(&file("b", "bundle"));
    let planned = take_plan(&root, &file("b", "mine"));
    take(&root, &file("b", "mine")).expect(0, &["b changed"]);
    assert_eq!(planned, ["b changed"]);
    root.apply("").expect(0, &["b forgotten"]);
    assert_eq!(root.text("/s/b"), "mine");
}

fn take_plan(root: &Root, resources: &str) -> Vec<String> {
    let file = root.declare("taken.json", &declared(resources));
    root.host(&["--json", "plan", "--take", &file]).outcomes()
}

// R-11, R-25
#[test]
fn a_bundle_that_others_could_have_written_is_refused() {
    let root = Root::new("bundle-file");
    let path = root.at("/etc/mesh-host/substrate.lock");
    fs::write(&path, declared(&file("b", "bundle"))).unwrap();
    let before = support::root::tree(&root.at("/s"));
    for mode in [0o666, 0o664, 0o646, 0o622] {
        root.chmod("/etc/mesh-host/substrate.lock", mode);
        let run = root.host(&["apply", "--bundle"]);
        assert_eq!(run.code, 3, "{}{}", run.out, run.err);
        assert!(run.err.contains("others may write it"), "{}", run.err);
        assert_eq!(root.host(&["plan", "--bundle"]).code, 3);
    }
    root.chmod("/etc/mesh-host/substrate.lock", 0o644);
    assert_eq!(root.host(&["apply", "--bundle", root.dir().to_str().unwrap()]).code, 3);
    if is_root() {
        chown(&path, Some(4711), None).unwrap();
        let run = root.host(&["apply", "--bundle"]);
        assert_eq!(run.code, 3, "{}{}", run.out, run.err);
        assert!(run.err.contains("belongs to user 4711"), "{}", run.err);
        // A link of root's to it is judged by what it leads to.
        symlink(&path, root.scratch.join("link")).unwrap();
        let link = root.scratch.join("link");
        assert_eq!(root.host(&["apply", "--bundle", link.to_str().unwrap()]).code, 3);
        chown(&path, Some(0), None).unwrap();
    } else {
        skip("a_bundle_that_others_could_have_written_is_refused", &Lacks::Machine("root"));
    }
    assert_eq!(support::root::tree(&root.at("/s")), before);
    assert!(!root.state().exists());
    assert_eq!(root.host(&["apply", "--bundle"]).code, 0);
    assert_eq!(root.text("/s/b"), "bundle");
}

// R-9
#[test]
fn an_empty_declaration_is_not_no_declaration() {
    let root = Root::new("empty");
    root.put("/s/was", "was");
    root.converge(&format!("{},{}", file("was", "x"), file("made", "x")));
    root.converge("").expect(0, &["made removed", "was forgotten"]);
    assert_eq!((root.text("/s/was").as_str(), root.has("/s/made")), ("x", false));
    let run = root.reconcile().expect(0, &[]);
    assert!(!run.err.contains("nothing has been declared"), "{}", run.err);
}

// R-9
#[test]
fn what_is_claimed_as_another_kind_of_thing_is_replaced_at_once() {
    let root = Root::new("otherwise");
    let file = r#"{"id":"x","type":"file","path":"/x","content":"one"}"#;
    root.bundle(file).expect(0, &["x created"]);
    let link = r#"{"id":"x","type":"symlink","path":"/x","target":"y"}"#;
    assert_eq!(take_plan(&root, link), ["x created", "x removed"]);
    let run = take(&root, link).expect(0, &["x created", "x removed"]);
    assert!(run.err.contains("will remove file /x"), "{}", run.err);
    assert_eq!(fs::read_link(root.at("/x")).unwrap(), std::path::Path::new("y"));
    take(&root, link).expect(0, &["x unchanged"]);
}
