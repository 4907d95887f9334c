//! The host is killed at every system call that changes something, and nothing is lost by it.
//!
//! A host without a journal must fail here, as must one that writes its journal after the fact.
//! What it had made when it was killed it would find on the next run, take for a person's, and
//! never remove; what it was about to replace it would not know from what it had made; a temporary
//! file whose name no record foretells would lie about for good once its resource is gone from the
//! declaration. And one that records before it acts claims what is not there.

mod support;

use support::broken::{Course, Scenario};
use support::site::Site;
use support::strace::can_trace;

/// A directory with parents that are missing, a file in it, one over a person's, a link, a secret.
const MIXED: &str = r#"
    {"id":"dir","type":"directory","path":"/srv/app/conf","mode":"0750"},
    {"id":"conf","type":"file","path":"/srv/app/conf/app.conf","content":"port = 80\n"},
    {"id":"motd","type":"file","path":"/etc/motd","content":"made by the host\n"},
    {"id":"link","type":"symlink","path":"/etc/app","target":"../srv/app/conf"},
    {"id":"key","type":"file","path":"/etc/app.key","content":"a canary","secret":true},
    {"id":"tmp","type":"directory","path":"/var/tmp","mode":"1777"}"#;

/// Nothing of the above, and something else.
const OTHER: &str = r#"
    {"id":"other","type":"file","path":"/etc/other","content":"another\n"}"#;

/// Some of it changed, some of it gone, something new.
const CHANGED: &str = r#"
    {"id":"dir","type":"directory","path":"/srv/app/conf","mode":"0700"},
    {"id":"conf","type":"file","path":"/srv/app/conf/app.conf","content":"port = 443\n"},
    {"id":"link","type":"symlink","path":"/etc/app","target":"../srv/app"},
    {"id":"more","type":"file","path":"/srv/app/more","content":"","mode":"0600"}"#;

fn person(site: &Site) {
    site.put("/etc/motd", "a person's\n");
    site.put("/etc/kept", "a person's too\n");
    site.put("/var/lib/kept", "");
    site.declare("mixed", MIXED);
    site.declare("changed", CHANGED);
    site.declare("other", OTHER);
    site.declare("empty", "");
}

fn applied(site: &Site) {
    person(site);
    site.ok("apply @mixed");
}

fn drifted(site: &Site) {
    applied(site);
    site.put("/srv/app/conf/app.conf", "port = 8080, by hand\n");
    std::fs::remove_file(site.root().join("etc/app")).unwrap();
    std::fs::remove_file(site.root().join("etc/app.key")).unwrap();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(site.root().join("srv/app/conf"), open).unwrap();
}

const FIRST: Scenario = Scenario {
    prepare: person,
    run: "apply @mixed",
    other: &["apply @other"],
    release: &["apply @empty"],
    adopted: &["/etc/motd"],
};

// R-6 R-9
#[test]
fn a_first_apply_may_be_killed_anywhere() {
    if !can_trace("a_first_apply_may_be_killed_anywhere") {
        return;
    }
    let course = Course::new(FIRST);
    let left: Vec<&String> = course.released().keys().collect();
    let there = ["/etc", "/etc/kept", "/etc/motd", "/var", "/var/lib", "/var/lib/kept"];
    assert_eq!(left, there, "what was there before stays, and nothing else");
    course.kill_at_every_call(|_| ());
}

// R-6 R-9
#[test]
fn a_changed_declaration_may_be_killed_anywhere() {
    if can_trace("a_changed_declaration_may_be_killed_anywhere") {
        let run = "apply @changed";
        Course::new(Scenario { prepare: applied, run, ..FIRST }).kill_at_every_call(|_| ());
    }
}

// R-3 R-6
#[test]
fn the_repair_of_drift_may_be_killed_anywhere() {
    if can_trace("the_repair_of_drift_may_be_killed_anywhere") {
        Course::new(Scenario { prepare: drifted, ..FIRST }).kill_at_every_call(|_| ());
    }
}

// R-9
#[test]
fn letting_go_of_everything_may_be_killed_anywhere() {
    if can_trace("letting_go_of_everything_may_be_killed_anywhere") {
        let run = "apply @empty";
        Course::new(Scenario { prepare: applied, run, ..FIRST }).kill_at_every_call(|_| ());
    }
}

// R-9
#[test]
fn things_that_become_another_kind_of_thing_may_be_killed_anywhere() {
    const BEFORE: &str = r#"
        {"id":"x","type":"file","path":"/srv-x","content":"x"},
        {"id":"y","type":"symlink","path":"/srv-y","target":"x"},
        {"id":"z","type":"directory","path":"/srv-z"},
        {"id":"zf","type":"file","path":"/srv-z/f","content":"zf"}"#;
    const AFTER: &str = r#"
        {"id":"x","type":"directory","path":"/srv-x/deep/er"},
        {"id":"xf","type":"file","path":"/srv-x/deep/f","content":"xf"},
        {"id":"y","type":"file","path":"/srv-y","content":"y"},
        {"id":"z","type":"symlink","path":"/srv-z","target":"elsewhere"}"#;
    fn prepare(site: &Site) {
        person(site);
        site.declare("before", BEFORE);
        site.declare("after", AFTER);
        site.ok("apply @before");
    }
    if can_trace("things_that_become_another_kind_of_thing_may_be_killed_anywhere") {
        let run = "apply @after";
        Course::new(Scenario { prepare, run, ..FIRST }).kill_at_every_call(|_| ());
    }
}

// R-6 R-9
#[test]
fn a_declared_parent_that_is_made_early_may_be_killed_anywhere() {
    const NESTED: &str = r#"
        {"id":"low","type":"directory","path":"/srv/p/q/r"},
        {"id":"high","type":"directory","path":"/srv/p","mode":"0700"}"#;
    fn prepare(site: &Site) {
        person(site);
        site.put("/srv/kept", "");
        site.declare("nested", NESTED);
        site.ok("apply @nested");
        std::fs::remove_dir_all(site.root().join("srv/p")).unwrap();
    }
    if can_trace("a_declared_parent_that_is_made_early_may_be_killed_anywhere") {
        let run = "apply @nested";
        Course::new(Scenario { prepare, run, ..FIRST }).kill_at_every_call(|_| ());
    }
}
