//! Every system call by which the host changes something fails in turn, once, and the host stops
//! there, says so, leaves nothing half done, and goes on the next time.

mod support;

use support::broken::{Course, Scenario};
use support::site::Site;
use support::strace::can_trace;

const MIXED: &str = r#"
    {"id":"dir","type":"directory","path":"/srv/app/conf","mode":"0750"},
    {"id":"conf","type":"file","path":"/srv/app/conf/app.conf","content":"port = 80\n"},
    {"id":"motd","type":"file","path":"/etc/motd","content":"made by the host\n"},
    {"id":"link","type":"symlink","path":"/etc/app","target":"../srv/app/conf"},
    {"id":"key","type":"file","path":"/etc/app.key","content":"a canary","secret":true}"#;

const CHANGED: &str = r#"
    {"id":"dir","type":"directory","path":"/srv/app/conf","mode":"0700"},
    {"id":"conf","type":"file","path":"/srv/app/conf/app.conf","content":"port = 443\n"},
    {"id":"link","type":"symlink","path":"/etc/app","target":"../srv/app"}"#;

const FULL: (&str, &str) = ("ENOSPC", "o space left on device");
const BROKEN: (&str, &str) = ("EIO", "nput/output error");
const READ_ONLY: (&str, &str) = ("EROFS", "ead-only file system");
const OVER_QUOTA: (&str, &str) = ("EDQUOT", "uota exceeded");
const INTERRUPTED: (&str, &str) = ("EINTR", "nterrupted system call");

fn person(site: &Site) {
    site.put("/etc/motd", "a person's\n");
    site.put("/etc/kept", "a person's too\n");
    site.declare("mixed", MIXED);
    site.declare("changed", CHANGED);
    site.declare("other", r#"{"id":"o","type":"file","path":"/etc/other","content":"o"}"#);
    site.declare("empty", "");
}

fn applied(site: &Site) {
    person(site);
    site.ok("apply @mixed");
}

const FIRST: Scenario = Scenario {
    prepare: person,
    run: "apply @mixed",
    other: &["apply @other"],
    release: &["apply @empty"],
    adopted: &["/etc/motd"],
};

fn fail(test: &str, scenario: Scenario, errors: &[(&str, &str)]) {
    if can_trace(test) {
        Course::new(scenario).fail_every_call(errors);
    }
}

// R-4 R-6
#[test]
fn a_first_apply_stops_where_the_disk_is_full() {
    fail("a_first_apply_stops_where_the_disk_is_full", FIRST, &[FULL]);
}

// R-4 R-6
#[test]
fn a_first_apply_stops_where_the_disk_is_broken() {
    fail("a_first_apply_stops_where_the_disk_is_broken", FIRST, &[BROKEN]);
}

// R-4 R-6
#[test]
fn a_first_apply_stops_at_a_read_only_disk_or_a_quota() {
    let name = "a_first_apply_stops_at_a_read_only_disk_or_a_quota";
    fail(name, FIRST, &[READ_ONLY, OVER_QUOTA]);
}

// R-4
#[test]
fn a_first_apply_goes_on_or_stops_where_a_signal_interrupts() {
    fail("a_first_apply_goes_on_or_stops_where_a_signal_interrupts", FIRST, &[INTERRUPTED]);
}

// R-4 R-9
#[test]
fn a_changed_declaration_stops_at_every_fault() {
    let scenario = Scenario { prepare: applied, run: "apply @changed", ..FIRST };
    fail("a_changed_declaration_stops_at_every_fault", scenario, &[FULL, BROKEN, INTERRUPTED]);
}

// R-4 R-9
#[test]
fn letting_go_stops_at_every_fault() {
    let scenario = Scenario { prepare: applied, run: "apply @empty", ..FIRST };
    fail("letting_go_stops_at_every_fault", scenario, &[READ_ONLY, BROKEN]);
}

// R-32
#[test]
fn discarding_the_state_stops_at_every_fault() {
    let scenario = Scenario {
        prepare: applied,
        run: "rescue --discard-state",
        other: &["rescue --discard-state", "apply @other"],
        release: &["apply @mixed", "apply @empty"],
        ..FIRST
    };
    fail("discarding_the_state_stops_at_every_fault", scenario, &[FULL, BROKEN]);
}
