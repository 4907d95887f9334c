//! What becomes of things that are declared no longer, or declared as something else.

mod support;

use std::fs;

use support::root::Root;

fn file(id: &str, path: &str) -> String {
    format!(r#"{{"id":"{id}","type":"file","path":"{path}","content":"{id}"}}"#)
}

fn directory(id: &str, path: &str) -> String {
    format!(r#"{{"id":"{id}","type":"directory","path":"{path}"}}"#)
}

fn symlink(id: &str, path: &str) -> String {
    format!(r#"{{"id":"{id}","type":"symlink","path":"{path}","target":"t"}}"#)
}

fn owned(root: &Root) -> Vec<String> {
    let json: serde_json::Value =
        serde_json::from_str(&root.host(&["--json", "owned"]).out).unwrap();
    let all = json["owned"].as_array().unwrap().iter();
    all.map(|it| it["object"].as_str().unwrap().to_string()).collect()
}

// R-9
#[test]
fn what_was_created_goes_and_what_was_there_is_only_forgotten() {
    let root = Root::new("created");
    root.put("/s/was", "was");
    root.link("/s/waslink", "t");
    let all = [
        directory("d", "/s/d"),
        file("f", "/s/d/f"),
        symlink("l", "/s/l"),
        file("was", "/s/was"),
        symlink("waslink", "/s/waslink"),
    ];
    root.converge(&all.join(","));
    let run = root.converge("");
    let mut outcomes = run.outcomes();
    outcomes.sort();
    let wanted = ["d removed", "f removed", "l removed", "was forgotten", "waslink forgotten"];
    assert_eq!(outcomes, wanted);
    assert!(run.err.contains("will remove file /s/d/f"), "{}", run.err);
    assert!(!run.err.contains("will remove file /s/was"), "{}", run.err);
    assert!(!root.has("/s/d") && !root.has("/s/l"));
    assert!(root.has("/s/waslink"));
    assert_eq!(root.text("/s/was"), "was");
    assert!(owned(&root).is_empty());
    let before = root.tree();
    root.apply("").expect(0, &[]);
    assert_eq!(root.tree(), before);
}

// R-9
#[test]
fn a_renamed_id_changes_nothing_on_the_machine() {
    let root = Root::new("rename");
    root.converge(&[directory("d", "/s/d"), file("f", "/s/d/f")].join(","));
    let before = support::root::tree(&root.at("/s"));
    let renamed = file("f", "/s/d/f").replace(r#""id":"f""#, r#""id":"other""#);
    let renamed = [directory("directory", "/s/d"), renamed].join(",");
    root.converge(&renamed).expect(0, &["directory unchanged", "other unchanged"]);
    assert_eq!(support::root::tree(&root.at("/s")), before);
    root.converge("").expect(0, &["other removed", "directory removed"]);
}

// R-9
#[test]
fn a_directory_that_holds_something_is_left_with_why() {
    let root = Root::new("left");
    root.converge(&directory("d", "/s/a/d"));
    root.put("/s/a/d/mine", "mine");
    assert_eq!(root.plan("").outcomes(), ["d left", "d left"]);
    let run = root.converge("").expect(0, &["d left", "d left"]);
    assert_eq!(run.detail("d"), "/s/a/d: it is not empty");
    assert_eq!(root.text("/s/a/d/mine"), "mine");
    let left: Vec<_> = root.records().into_iter().filter(|it| it["kind"] == "left").collect();
    assert_eq!(
        (left.len(), left[0]["reason"].as_str()),
        (2, Some("/s/a/d: it is not empty").map(|it| &it[8..]))
    );
    assert!(owned(&root).is_empty());
}

// R-9
#[test]
fn what_goes_is_looked_at_first() {
    let root = Root::new("looked");
    root.converge(&[file("f", "/s/f"), symlink("l", "/s/l"), file("gone", "/s/gone")].join(","));
    fs::remove_file(root.at("/s/f")).unwrap();
    root.link("/s/f", "/mine");
    fs::remove_file(root.at("/s/l")).unwrap();
    root.put("/s/l", "mine");
    fs::remove_file(root.at("/s/gone")).unwrap();
    let ends = ["gone removed", "l left", "f left"];
    assert_eq!(root.plan("").outcomes(), ends);
    let run = root.converge("").expect(0, &ends);
    assert_eq!(run.detail("f"), "/s/f: something else stands there now");
    assert_eq!(run.detail("gone"), "/s/gone: was gone already");
    assert!(root.has("/s/f"));
    assert_eq!(root.text("/s/l"), "mine");
}

// R-9
#[test]
fn a_path_declared_as_another_type_becomes_that_and_stays() {
    let forms: [(&str, Vec<String>); 4] = [
        ("file", vec![file("x", "/s/x")]),
        ("symlink", vec![symlink("x", "/s/x")]),
        ("directory", vec![directory("x", "/s/x"), file("y", "/s/x/y")]),
        ("deep", vec![directory("z", "/s/x/y/z")]),
    ];
    for (from, first) in &forms {
        for (to, then) in forms.iter().filter(|(to, _)| to != from) {
            let root = Root::new(&format!("retype-{from}-{to}"));
            root.converge(&first.join(","));
            let planned = root.plan(&then.join(","));
            let run = root.apply(&then.join(","));
            assert_eq!(run.code, 0, "{from} to {to}: {}", run.err);
            assert_eq!(run.outcomes(), planned.outcomes(), "{from} to {to}");
            let before = root.tree();
            let idle = root.apply(&then.join(","));
            assert!(idle.outcomes().iter().all(|it| it.ends_with("unchanged")), "{}", idle.out);
            assert_eq!(root.tree(), before, "{from} to {to}");
            root.converge("");
            // A directory that is declared no longer and not empty is left for good.
            assert_eq!(root.has("/s/x"), (*from, *to) == ("directory", "deep"), "{from} to {to}");
            assert!(owned(&root).is_empty(), "{from} to {to}");
        }
    }
}

// R-9
#[test]
fn a_file_that_someone_deleted_may_come_back_as_a_link() {
    let root = Root::new("retype-deleted");
    root.converge(&file("x", "/s/x"));
    fs::remove_file(root.at("/s/x")).unwrap();
    assert_eq!(root.plan(&symlink("x", "/s/x")).outcomes(), ["x created"]);
    root.converge(&symlink("x", "/s/x")).expect(0, &["x created"]);
    root.apply(&symlink("x", "/s/x")).expect(0, &["x unchanged"]);
    root.converge("").expect(0, &["x removed"]);
}

// R-8, R-9
#[test]
fn what_is_in_the_way_goes_just_before_what_it_blocks() {
    let root = Root::new("blockers");
    root.converge(&[file("a", "/s/a"), file("b", "/s/b"), file("c", "/s/c")].join(","));
    root.converge(&[file("n", "/s/n"), symlink("a", "/s/a"), file("m", "/s/m")].join(","));
    let steps: Vec<String> = root
        .records()
        .iter()
        .skip_while(|it| it["kind"] != "pass")
        .filter(|it| ["began", "removed"].contains(&it["kind"].as_str().unwrap()))
        .map(|it| format!("{} {}", it["kind"].as_str().unwrap(), it["object"].as_str().unwrap()))
        .collect();
    let wanted = [
        "began path:/s/n",
        "began path:/s/a",
        "removed path:/s/a",
        "began path:/s/a",
        "began path:/s/m",
        "began path:/s/c",
        "began path:/s/b",
        "removed path:/s/c",
        "removed path:/s/b",
    ];
    assert_eq!(steps, wanted);
}

// R-9
#[test]
fn what_was_there_before_makes_no_way_and_stays_owned() {
    let root = Root::new("adopted-blocker");
    root.put("/s/x", "was");
    root.converge(&file("x", "/s/x"));
    let planned = root.plan(&symlink("x", "/s/x"));
    let run = root.apply(&symlink("x", "/s/x")).expect(1, &["x failed"]);
    assert_eq!(planned.outcomes(), run.outcomes());
    assert_eq!((root.text("/s/x").as_str(), owned(&root)), ("x", vec!["path:/s/x".to_string()]));
    root.put("/s/x", "drift");
    root.converge(&file("x", "/s/x"));
    root.converge("").expect(0, &["x forgotten"]);
}

// R-9
#[test]
fn nothing_is_let_go_of_before_everything_declared_has_converged() {
    let root = Root::new("not-yet");
    root.converge(&[file("a", "/s/a"), file("b", "/s/b")].join(","));
    root.mkdir("/s/bad");
    let run = root.apply(&[file("c", "/s/c"), file("bad", "/s/bad")].join(","));
    run.expect(1, &["c created", "bad failed"]);
    assert!(root.has("/s/a") && root.has("/s/b") && root.recorded("removed").is_empty());
    fs::remove_dir(root.at("/s/bad")).unwrap();
    root.reconcile().expect(0, &["c unchanged", "bad created", "b removed", "a removed"]);
}

// R-9
#[test]
fn the_declared_parent_of_what_stays_is_left() {
    let root = Root::new("parent-left");
    root.converge(&[directory("d", "/s/d"), file("f", "/s/d/f")].join(","));
    let planned = root.plan(&file("f", "/s/d/f"));
    root.converge(&file("f", "/s/d/f")).expect(0, &["f unchanged", "d left"]);
    assert_eq!(planned.outcomes(), ["f unchanged", "d left"]);
    // And so is one that something new comes to lie in.
    root.converge("");
    root.converge(&directory("e", "/s/e"));
    let planned = root.plan(&file("g", "/s/e/g"));
    let run = root.converge(&file("g", "/s/e/g")).expect(0, &["g created", "e left"]);
    assert_eq!(planned.outcomes(), run.outcomes());
}

// R-9
#[test]
fn a_link_that_is_declared_no_longer_goes_before_what_takes_its_place() {
    for target in ["real", "nowhere"] {
        let root = Root::new(&format!("link-above-{target}"));
        root.mkdir("/s/real/d");
        let link = symlink("l", "/s/l").replace(r#""t""#, &format!("{target:?}"));
        root.converge(&link);
        let below = [directory("d", "/s/l/d"), file("f", "/s/l/d/f"), file("g", "/s/l/g")];
        let planned = root.plan(&below.join(","));
        let run = root.converge(&below.join(","));
        let all = ["d created", "f created", "g created", "l removed"];
        assert_eq!(
            (run.outcomes(), planned.outcomes()),
            (all.map(String::from).into(), all.map(String::from).into())
        );
        assert!(!root.has("/s/real/d/f") && root.has("/s/l/d/f"));
        root.apply(&below.join(",")).expect(0, &["d unchanged", "f unchanged", "g unchanged"]);
    }
}

// R-9
#[test]
fn nothing_goes_to_make_way_where_the_way_stays_blocked() {
    let root = Root::new("futile");
    root.mkdir("/s/x");
    root.converge(&file("y", "/s/x/y"));
    let planned = root.plan(&file("x", "/s/x"));
    let run = root.apply(&file("x", "/s/x")).expect(1, &["x failed"]);
    assert_eq!(planned.outcomes(), run.outcomes());
    assert_eq!(root.text("/s/x/y"), "y");
    assert_eq!(owned(&root), ["path:/s/x/y"]);
}

// R-9
#[test]
fn what_lay_in_a_directory_that_is_none_any_more_is_gone() {
    for (nth, replace) in
        [|root: &Root| root.link("/s/d", "nowhere"), |root: &Root| root.put("/s/d", "")]
            .into_iter()
            .enumerate()
    {
        let root = Root::new(&format!("none-{nth}"));
        root.converge(&[directory("d", "/s/d"), file("f", "/s/d/f")].join(","));
        fs::remove_dir_all(root.at("/s/d")).unwrap();
        replace(&root);
        let run = root.converge("").expect(0, &["f removed", "d left"]);
        assert_eq!(run.detail("f"), "/s/d/f: was gone already");
        assert!(root.has("/s/d"));
    }
}

// R-9
#[test]
fn what_lies_beyond_a_link_goes_before_the_link() {
    let link = symlink("l", "/s/a/b").replace(r#""t""#, r#""../b""#);
    for next in [directory("l", "/s/a/b"), directory("n", "/s/a/b/n"), String::new()] {
        let root = Root::new("beyond");
        root.mkdir("/s/a");
        root.mkdir("/s/b");
        let all = [link.clone(), directory("c", "/s/a/b/c"), file("f", "/s/a/b/c/f")];
        root.converge(&all.join(","));
        assert!(root.has("/s/b/c/f"));
        let planned = root.plan(&next);
        let run = root.converge(&next);
        assert_eq!(run.outcomes(), planned.outcomes(), "{next}");
        assert!(!root.has("/s/b/c") && !root.at("/s/a/b").is_symlink(), "{next}: {}", run.out);
        assert!(!run.out.contains("was gone already"), "{next}: {}", run.out);
        root.converge("");
        assert!(!root.has("/s/a/b") && owned(&root).is_empty(), "{next}");
    }
}

// R-9
#[test]
fn more_goes_at_once_than_may_be_open() {
    let root = Root::new("many");
    let all: Vec<String> =
        (0..150).map(|nth| file(&format!("f{nth}"), &format!("/s/d/{nth}"))).collect();
    root.converge(&[directory("d", "/s/d"), all.join(",")].join(","));
    let file = root.declare("none.json", r#"{"version":1,"resources":[]}"#);
    let mut shell = std::process::Command::new("sh");
    let script = r#"ulimit -n 128 && exec "$@""#;
    shell.args(["-c", script, "sh", support::root::HOST, "--root"]).arg(root.dir());
    let run = support::root::run(shell.args(["--json", "apply", &file]));
    assert_eq!(run.code, 0, "{}{}", run.out, run.err);
    let ends = run.outcomes();
    let goes: Vec<String> = (0..150).rev().map(|nth| format!("f{nth} removed")).collect();
    assert_eq!((&ends[..150], ends[150].as_str()), (&goes[..], "d removed"));
    assert!(!root.has("/s/d") && owned(&root).is_empty());
}

// R-9
#[test]
fn what_lies_beyond_a_link_that_leads_elsewhere_now_is_left() {
    let link = |target: &str| symlink("l", "/s/l").replace(r#""t""#, &format!("{target:?}"));
    let all = [link("b"), file("f", "/s/l/f")].join(",");
    for (nth, next) in [String::new(), link("home"), link("b")].iter().enumerate() {
        for drifts in [true, false] {
            let root = Root::new(&format!("astray-{nth}-{drifts}"));
            root.mkdir("/s/b");
            root.mkdir("/s/home");
            root.converge(&all);
            root.put("/s/home/f", "mine");
            if drifts {
                fs::remove_file(root.at("/s/l")).unwrap();
                root.link("/s/l", "home");
            }
            let planned = root.plan(next);
            let run = root.converge(next);
            assert_eq!(root.text("/s/home/f"), "mine", "{next}");
            // A link that was corrected leads to what was made.
            let leads = *next == link("b") || next.is_empty() && !drifts;
            assert_eq!(root.has("/s/b/f"), !leads, "{next} {drifts}: {}", run.out);
            if !leads {
                assert_eq!(run.detail("f"), "/s/l/f: /s/l leads elsewhere now");
            }
            assert_eq!(run.outcomes(), planned.outcomes(), "{next} {drifts}");
        }
    }
}
