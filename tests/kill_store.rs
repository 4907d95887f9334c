//! The host is killed while it rewrites, replaces or hands over what it knows, and knows no less
//! by it.

mod support;

use std::fs;

use support::broken::{Course, Scenario};
use support::site::Site;
use support::strace::can_trace;

const SOME: &str = r#"
    {"id":"dir","type":"directory","path":"/srv/app"},
    {"id":"conf","type":"file","path":"/srv/app/conf","content":"one\n"},
    {"id":"motd","type":"file","path":"/etc/motd","content":"made by the host\n"},
    {"id":"key","type":"file","path":"/etc/app.key","content":"a canary","secret":true}"#;

fn prepared(site: &Site) {
    site.put("/etc/motd", "a person's\n");
    site.declare("some", SOME);
    site.declare("other", r#"{"id":"o","type":"file","path":"/etc/other","content":"o"}"#);
    site.declare("empty", "");
}

fn applied(site: &Site) {
    prepared(site);
    site.ok("apply @some");
}

const APPLY: Scenario = Scenario {
    prepare: applied,
    run: "apply @some",
    other: &["apply @other"],
    release: &["apply @empty"],
    adopted: &["/etc/motd"],
};

// R-9
#[test]
fn taking_over_what_a_bundle_made_may_be_killed_anywhere() {
    const TAKEN: &str = r#"
        {"id":"mine","type":"file","path":"/srv/app/conf","content":"two\n","mode":"0600"},
        {"id":"motd","type":"file","path":"/etc/motd","content":"made by the host\n"},
        {"id":"new","type":"symlink","path":"/etc/app","target":"../srv/app"}"#;
    fn prepare(site: &Site) {
        prepared(site);
        site.declare("taken", TAKEN);
        site.ok("apply --bundle @some");
    }
    if can_trace("taking_over_what_a_bundle_made_may_be_killed_anywhere") {
        let scenario = Scenario {
            prepare,
            run: "apply --take @taken",
            // What was taken over is so for good: another declaration would let go of it.
            other: &["apply --take @taken", "apply @other"],
            release: &["apply @empty", "apply --bundle @empty"],
            ..APPLY
        };
        let course = Course::new(scenario);
        let left: Vec<&String> = course.released().keys().collect();
        assert_eq!(left, ["/etc", "/etc/motd"]);
        course.kill_at_every_call(|_| ());
    }
}

// R-6
#[test]
fn a_compaction_may_be_killed_anywhere() {
    fn prepare(site: &Site) {
        prepared(site);
        for (name, letter) in [("large", "a"), ("larger", "b")] {
            let text = letter.repeat(150 << 10);
            let file =
                format!(r#"{{"id":"big","type":"file","path":"/big","content":"{text}"}},{SOME}"#);
            site.declare(name, &file);
        }
        site.ok("apply @large");
    }
    if !can_trace("a_compaction_may_be_killed_anywhere") {
        return;
    }
    let course = Course::new(Scenario { prepare, run: "apply @larger", ..APPLY });
    let (_, calls) = course.start();
    let replaces = |shown: &str| shown.contains("journal.jsonl.new");
    let rewritten = calls.iter().any(|it| it.name.starts_with("rename") && replaces(&it.shown));
    assert!(rewritten, "the journal was not compacted: {calls:?}");
    course.kill_at_every_call(|_| ());
}

// R-32
#[test]
fn discarding_the_state_may_be_killed_anywhere() {
    if !can_trace("discarding_the_state_may_be_killed_anywhere") {
        return;
    }
    let course = Course::new(Scenario {
        run: "rescue --discard-state",
        other: &["rescue --discard-state", "apply @other"],
        release: &["apply @some", "apply @empty"],
        ..APPLY
    });
    let (before, _) = course.start();
    let journal = fs::read(before.journal()).unwrap();
    course.kill_at_every_call(|site| {
        let in_force = fs::read(site.journal()).unwrap() == journal;
        let aside = fs::read_dir(site.state()).unwrap().map(|entry| entry.unwrap().path());
        let kept = |dir: std::path::PathBuf| {
            let secrets = fs::read_dir(dir.join("secrets")).map_or(0, Iterator::count);
            fs::read(dir.join("journal.jsonl")).is_ok_and(|old| old == journal) && secrets == 2
        };
        assert!(in_force || aside.into_iter().any(kept), "the old store is lost");
    });
}

// R-6
#[test]
fn a_pause_may_be_killed_anywhere() {
    if can_trace("a_pause_may_be_killed_anywhere") {
        let scenario = Scenario {
            run: "pause --reason maintenance",
            other: &["resume", "apply @other"],
            release: &["resume", "apply @empty"],
            ..APPLY
        };
        let course = Course::new(scenario);
        course.kill_at_every_call(|site| assert!(!site.owned().is_empty()));
    }
}
