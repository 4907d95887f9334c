//! The order of one run's system calls, by which a power failure loses nothing that was claimed:
//! what a record says is durable before the record, and a record before the report.
//!
//! What a power failure drops cannot be shown without a machine that fails; that each thing waits
//! for the one it depends on can.

mod support;

use support::site::Site;
use support::strace::{calls, can_trace, Call};

/// Positions of the calls in the run that `is` picks.
fn at(calls: &[Call], is: impl Fn(&Call) -> bool) -> Vec<usize> {
    calls.iter().enumerate().filter(|(_, call)| is(call)).map(|(position, _)| position).collect()
}

fn renames(call: &Call, what: &str) -> bool {
    call.name.starts_with("rename") && call.shown.contains(what)
}

/// Some call of `these` lies between `from` and `to`.
fn between(these: &[usize], from: usize, to: usize) -> bool {
    these.iter().any(|it| (from..to).contains(it))
}

fn site(files: usize) -> Site {
    let site = Site::new();
    site.put("/etc/motd", "a person's\n");
    let mut resources = r#"
        {"id":"dir","type":"directory","path":"/srv/app"},
        {"id":"motd","type":"file","path":"/etc/motd","content":"made by the host\n"},
        {"id":"link","type":"symlink","path":"/srv/app/motd","target":"/etc/motd"},
        {"id":"key","type":"file","path":"/srv/key","content":"a canary","secret":true}"#
        .to_string();
    for n in 0..files {
        resources += &format!(
            r#",{{"id":"f{n}","type":"file","path":"/srv/app/f{n}","content":"contents {n}"}}"#
        );
    }
    site.declare("new", &resources);
    site
}

/// Every promise about the order of calls, of a run that applies `files` files more.
fn must_be_in_order(files: usize) {
    let site = site(files);
    let calls = calls(&site, "apply @new");
    let journal = |call: &Call, kind: &str| {
        call.name == "pwrite64" && call.shown.contains(&format!(r#"\"kind\":\"{kind}\""#))
    };
    let first = |these: &[usize]| *these.first().expect("there is one");
    let last = |these: &[usize]| *these.last().expect("there is one");
    let syncs = at(&calls, |call| matches!(&*call.name, "fsync" | "syncfs"));
    let journal_syncs = at(&calls, |call| call.name == "fdatasync");
    let accepted = first(&at(&calls, |call| journal(call, "accepted")));
    // What is accepted and the first intents go to the disk in one piece, of which a trace shows
    // the beginning.
    let began = at(&calls, |call| journal(call, "began") || journal(call, "accepted"));
    let applied = at(&calls, |call| journal(call, "applied"));
    let temporary = |call: &Call| call.shown.contains(".mesh-host~");
    let steps = at(&calls, temporary);
    let said = first(&at(&calls, Call::says));

    // The store itself: whole and durable before it gets its name, and the name before its use.
    let named = first(&at(&calls, |call| renames(call, "journal.jsonl.new")));
    let made = first(&at(&calls, |call| journal(call, "snapshot")));
    assert!(between(&journal_syncs, made, named), "the journal is named before it is durable");
    assert!(between(&syncs, named, accepted), "the journal is used before its name is durable");

    // A secret's value and name before the declaration that refers to it; likewise the key.
    for secret in at(&calls, |call| renames(call, "/secrets/")) {
        let made = last(&at(&calls[..secret], |call| {
            call.name == "openat" && call.shown.contains("/secrets/") && call.changes()
        }));
        assert!(between(&syncs, made, secret), "a secret is named before its value is durable");
        assert!(between(&syncs, secret, accepted), "a secret is accepted before it is durable");
    }

    // The declaration, and every intent, before anything is touched.
    assert!(between(&journal_syncs, accepted, first(&steps)), "accepted, yet not durable");
    assert!(last(&began) < first(&steps), "a step comes before an intent: {calls:?}");
    assert!(between(&journal_syncs, last(&began), first(&steps)), "an intent is not durable");

    // Contents before names, names before records, records before what is said.
    let files = |call: &Call| temporary(call) && call.name == "openat" && call.changes();
    let written = at(&calls, files);
    let is_directory =
        |name: &str| calls.iter().any(|it| it.name == "mkdirat" && it.shown.contains(name));
    let put = at(&calls, |call| {
        let name = call.shown.split('"').nth(1).unwrap_or_default();
        renames(call, ".mesh-host~") && !is_directory(name)
    });
    assert_eq!(put.len(), written.len() + 1, "every file and the link: {calls:?}");
    assert!(last(&written) < first(&put), "a name comes before the last contents");
    assert!(between(&syncs, last(&written), first(&put)), "contents are not durable");
    assert!(last(&put) < first(&applied), "a record comes before a name");
    assert!(between(&syncs, last(&put), first(&applied)), "names are not durable");
    assert!(last(&applied) < said && last(&journal_syncs) < said, "said before it is recorded");
    let records = at(&calls, |call| call.name == "pwrite64");
    assert!(between(&journal_syncs, last(&records), said), "said before the record is durable");
}

// R-6 R-31
#[test]
fn every_thing_is_durable_before_what_relies_on_it() {
    if can_trace("every_thing_is_durable_before_what_relies_on_it") {
        must_be_in_order(2);
    }
}

// R-6 R-31
#[test]
fn many_things_are_durable_together_before_what_relies_on_them() {
    if can_trace("many_things_are_durable_together_before_what_relies_on_them") {
        must_be_in_order(100);
    }
}

// R-31
#[test]
fn each_file_of_a_few_is_synced_before_it_is_named() {
    if !can_trace("each_file_of_a_few_is_synced_before_it_is_named") {
        return;
    }
    let calls = calls(&site(2), "apply @new");
    let temporary = |call: &Call| call.shown.contains(".mesh-host~");
    let put = at(&calls, |call| renames(call, ".mesh-host~"));
    // Opened anew by its name and synced at once: nothing between but the syncs of others.
    let files = calls.iter().filter(|it| temporary(it) && it.name == "openat" && it.changes());
    for file in files {
        let name = file.shown.split('"').nth(1).unwrap();
        let opened =
            at(&calls, |it| it.name == "openat" && it.shown.contains(name) && !it.changes());
        let named = put.iter().find(|at| calls[**at].shown.contains(name)).unwrap();
        let synced = opened.iter().any(|at| at < named && calls[at + 1].name == "fsync");
        assert!(synced, "{name} is named before it is synced: {calls:?}");
    }
}

// R-6 R-31
#[test]
fn a_removal_is_intended_before_and_durable_before_its_record() {
    if !can_trace("a_removal_is_intended_before_and_durable_before_its_record") {
        return;
    }
    let site = site(2);
    site.declare("empty", "");
    site.ok("apply @new");
    let calls = calls(&site, "apply @empty");
    let record = |kind: &str| {
        let text = format!(r#"\"kind\":\"{kind}\""#);
        *at(&calls, |it| it.name == "pwrite64" && it.shown.contains(&text)).first().unwrap()
    };
    let removed = at(&calls, |it| it.name == "unlinkat");
    let (first, last) = (removed[0], removed[removed.len() - 1]);
    let syncs = |name: &'static str| at(&calls, move |it| it.name == name);
    assert!(removed.len() >= 5, "{calls:?}");
    assert!(between(&syncs("fdatasync"), record("began"), first), "{calls:?}");
    assert!(between(&syncs("fsync"), last, record("removed")), "{calls:?}");
}
