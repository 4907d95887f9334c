//! The running machine: kernel parameters in a network of the test's own, and a bundle's actions.

mod support;

use std::fs;
use std::process::Command;

use support::root::{declared, run, Root, Run, HOST};
use support::{skip, Lacks};

const FORWARD: &str = "/proc/sys/net/ipv4/ip_forward";

/// Gives this thread, and what it starts, a network of its own; `false` where it may not.
fn own_network(test: &str) -> bool {
    // SAFETY: changes what this thread sees of the network, and nothing else.
    let done = unsafe { libc::unshare(libc::CLONE_NEWNET) } == 0;
    if !done {
        skip(test, &Lacks::Machine("the privilege of unshare(2)"));
    }
    done
}

/// Runs the host on `/`, its store in the scratch directory.
fn on_host(root: &Root, args: &[&str]) -> Run {
    let state = root.scratch.join("state");
    run(Command::new(HOST).arg("--json").arg("--state").arg(state).args(args))
}

fn apply(root: &Root, resources: &str) -> Run {
    on_host(root, &["apply", &root.declare("local.json", &declared(resources))])
}

fn bundle(root: &Root, resources: &str) -> Run {
    on_host(root, &["apply", "--bundle", &root.declare("bundle.json", &declared(resources))])
}

fn plan(root: &Root, resources: &str) -> Vec<String> {
    let file = root.declare("planned.json", &declared(resources));
    on_host(root, &["plan", "--bundle", &file]).outcomes()
}

fn store_of(root: &Root) -> std::collections::BTreeMap<std::path::PathBuf, String> {
    support::root::tree(&root.scratch.join("state"))
}

fn kernel(path: &str) -> String {
    fs::read_to_string(path).unwrap().trim_end().to_string()
}

fn sysctl(value: &str) -> String {
    format!(r#"{{"id":"k","type":"sysctl","key":"net.ipv4.ip_forward","value":"{value}"}}"#)
}

// R-2, R-3, R-9
#[test]
fn a_kernel_parameter_is_set_held_and_put_back() {
    if !own_network("a_kernel_parameter_is_set_held_and_put_back") {
        return;
    }
    let root = Root::new("sysctl");
    fs::write(FORWARD, "0").unwrap();
    let range = "/proc/sys/net/ipv4/ip_local_port_range";
    let before_range = kernel(range);
    let both = format!(
        r#"{},{{"id":"r","type":"sysctl","key":"net/ipv4/ip_local_port_range",
        "value":"20000 30000"}}"#,
        sysctl("1")
    );
    apply(&root, &both).expect(0, &["k changed", "r changed"]);
    assert_eq!((kernel(FORWARD).as_str(), kernel(range).as_str()), ("1", "20000\t30000"));
    let store = store_of(&root);
    apply(&root, &both).expect(0, &["k unchanged", "r unchanged"]);
    assert_eq!(store_of(&root), store);
    fs::write(FORWARD, "0").unwrap();
    on_host(&root, &["reconcile"]).expect(0, &["k corrected", "r unchanged"]);
    assert_eq!(kernel(FORWARD), "1");
    fs::write(range, "40000 41000").unwrap();
    on_host(&root, &["reconcile"]).expect(0, &["k unchanged", "r corrected"]);
    apply(&root, "").expect(0, &["r removed", "k removed"]);
    assert_eq!((kernel(FORWARD).as_str(), kernel(range)), ("0", before_range));
}

// R-4, R-9
#[test]
fn a_value_that_the_kernel_refuses_fails_in_its_words() {
    if !own_network("a_value_that_the_kernel_refuses_fails_in_its_words") {
        return;
    }
    let root = Root::new("sysctl-refused");
    let ttl = "/proc/sys/net/ipv4/ip_default_ttl";
    let before = kernel(ttl);
    let set = |key: &str, value: &str| {
        apply(&root, &format!(r#"{{"id":"k","type":"sysctl","key":"{key}","value":"{value}"}}"#))
    };
    let run = set("net.ipv4.ip_default_ttl", "many").expect(1, &["k failed"]);
    assert!(run.err.contains("invalid argument"), "{}", run.err);
    let run = set("net.ipv4.no_such_key", "1").expect(1, &["k failed"]);
    assert!(run.err.contains("no such key"), "{}", run.err);
    let run = set("net.ipv4", "1").expect(1, &["k failed"]);
    assert!(run.err.contains("group of parameters"), "{}", run.err);
    assert_eq!(kernel(ttl), before);
    set("net.ipv4.ip_default_ttl", "99").expect(0, &["k changed"]);
    apply(&root, "").expect(0, &["k removed"]);
    assert_eq!(kernel(ttl), before);
}

// R-9
#[test]
fn the_value_put_back_is_the_one_before_the_host_s_first_change() {
    if !own_network("the_value_put_back_is_the_one_before_the_host_s_first_change") {
        return;
    }
    let root = Root::new("sysctl-before");
    let ttl = "/proc/sys/net/ipv4/ip_default_ttl";
    fs::write(ttl, "70").unwrap();
    let set = |value: u8| {
        let key = r#""key":"net.ipv4.ip_default_ttl""#;
        apply(&root, &format!(r#"{{"id":"k","type":"sysctl",{key},"value":{value}}}"#))
    };
    set(80).expect(0, &["k changed"]);
    set(90).expect(0, &["k changed"]);
    fs::write(ttl, "33").unwrap();
    on_host(&root, &["reconcile"]).expect(0, &["k corrected"]);
    assert_eq!(plan(&root, ""), Vec::<String>::new());
    let planned = root.declare("none.json", &declared(""));
    assert_eq!(on_host(&root, &["plan", &planned]).outcomes(), ["k removed"]);
    assert_eq!(kernel(ttl), "90");
    apply(&root, "").expect(0, &["k removed"]);
    assert_eq!(kernel(ttl), "70");
    // One that was right from the start goes back to that too.
    set(70).expect(0, &["k unchanged"]);
    fs::write(ttl, "71").unwrap();
    on_host(&root, &["reconcile"]).expect(0, &["k corrected"]);
    apply(&root, "").expect(0, &["k removed"]);
    assert_eq!(kernel(ttl), "70");
}

/// An action that makes `marker` by writing a line to `log`.
fn action(root: &Root) -> String {
    let (log, marker) = (root.scratch.join("log"), root.scratch.join("marker"));
    format!(
        r#"{{"id":"act","type":"action","env":{{"WHAT":"it ran"}},"workdir":"{}",
        "run":["sh","-c","echo $WHAT in $PWD >>'{}' && touch '{}'"],
        "verify":["test","-e","{2}"]}}"#,
        root.scratch.path().display(),
        log.display(),
        marker.display()
    )
}

// R-12, R-2, R-3
#[test]
fn an_action_runs_only_where_its_check_does_not_pass() {
    let root = Root::new("action");
    let act = action(&root);
    let runs = || fs::read_to_string(root.scratch.join("log")).unwrap_or_default().lines().count();
    assert_eq!(plan(&root, &act), ["act created"]);
    assert_eq!(runs(), 0);
    bundle(&root, &act).expect(0, &["act created"]);
    let said = format!("it ran in {}\n", root.scratch.path().display());
    assert_eq!(fs::read_to_string(root.scratch.join("log")).unwrap(), said);
    let store = store_of(&root);
    bundle(&root, &act).expect(0, &["act unchanged"]);
    assert_eq!((runs(), store_of(&root)), (1, store));
    fs::remove_file(root.scratch.join("marker")).unwrap();
    on_host(&root, &["reconcile"]).expect(0, &["act corrected"]);
    assert_eq!(runs(), 2);
    bundle(&root, "").expect(0, &["act forgotten"]);
    assert!(root.scratch.join("marker").exists());
}

// R-5, R-6, R-12
#[test]
fn an_action_that_reports_success_and_did_nothing_fails_the_read_back() {
    let root = Root::new("action-lies");
    let liar = r#"{"id":"liar","type":"action","run":["true"],"verify":["false"]}"#;
    let after = format!(r#"{liar},{}"#, action(&root));
    let run = bundle(&root, &after).expect(1, &["liar failed", "act not_reached"]);
    assert_eq!(run.errors()[0][..2], ["read_back", "liar"]);
    let store = fs::read_to_string(root.scratch.join("state/journal.jsonl")).unwrap();
    assert!(!store.contains(r#""kind":"applied""#) && !root.scratch.join("marker").exists());
}

// R-4, R-11
#[test]
fn an_action_that_fails_says_how_and_only_a_bundle_may_carry_one() {
    let root = Root::new("action-fails");
    let fails = r#"{"id":"a","type":"action","run":["sh","-c","echo no disk >&2; exit 7"],
        "verify":["false"]}"#;
    let run = bundle(&root, fails).expect(1, &["a failed"]);
    assert!(run.err.contains("7") && run.err.contains("no disk"), "{}", run.err);
    let absent = r#"{"id":"a","type":"action","run":["no-such-program"],"verify":["no-such"]}"#;
    let run = bundle(&root, absent).expect(1, &["a failed"]);
    assert!(run.err.contains("no-such-program"), "{}", run.err);
    let run = apply(&root, fails);
    assert_eq!(run.code, 3, "{}{}", run.out, run.err);
}

#[test]
fn an_action_that_failed_is_not_checked_once_more_for_nothing() {
    let root = Root::new("action-checked");
    let checks = root.scratch.join("checks");
    let fails = format!(
        r#"{{"id":"a","type":"action","run":["false"],
            "verify":["sh","-c","echo checked >>{}; false"]}}"#,
        checks.display()
    );
    bundle(&root, &fails).expect(1, &["a failed"]);
    assert_eq!(fs::read_to_string(checks).unwrap(), "checked\n");
}

// R-4
#[test]
fn a_resource_that_a_later_one_undid_fails_the_apply() {
    let root = Root::new("undone");
    let path = root.scratch.join("f");
    let file =
        format!(r#"{{"id":"f","type":"file","path":"{}","content":"mine"}}"#, path.display());
    let undo = format!(
        r#"{{"id":"undo","type":"action","run":["truncate","-s0","{0}"],
        "verify":["test","!","-s","{0}"]}}"#,
        path.display()
    );
    let run = bundle(&root, &format!("{file},{undo}")).expect(1, &["f failed", "undo created"]);
    let [stage, id, cause] = &run.errors()[0];
    assert_eq!((stage.as_str(), id.as_str()), ("closing", "f"));
    assert!(cause.contains("what came after it undid it"), "{cause}");
    let status = on_host(&root, &["status"]);
    assert!(status.out.contains(r#""whole":false"#), "{}", status.out);
    // The other way round both can be had.
    fs::remove_file(&path).unwrap();
    fs::write(&path, "").unwrap();
    let undo = undo.replace("test\",\"!\",\"-s", "test\",\"-e");
    bundle(&root, &format!("{undo},{file}")).expect(0, &["undo unchanged", "f corrected"]);
}

// R-2
#[test]
fn files_of_the_running_machine_converge_by_the_names_it_knows() {
    let root = Root::new("files");
    let dir = root.scratch.join("d");
    let both = format!(
        r#"{{"id":"d","type":"directory","path":"{0}","owner":"root","group":"root"}},
        {{"id":"f","type":"file","path":"{0}/f","content":"x","owner":"root"}}"#,
        dir.display()
    );
    if !support::root::is_root() {
        return skip(
            "files_of_the_running_machine_converge_by_the_names_it_knows",
            &Lacks::Machine("root"),
        );
    }
    apply(&root, &both).expect(0, &["d created", "f created"]);
    let store = store_of(&root);
    apply(&root, &both).expect(0, &["d unchanged", "f unchanged"]);
    assert_eq!(store_of(&root), store);
    let unknown = both.replace(r#""owner":"root"}"#, r#""owner":"nobody-at-all"}"#);
    let run = apply(&root, &unknown).expect(1, &["d unchanged", "f failed"]);
    assert!(run.err.contains("no user \"nobody-at-all\""), "{}", run.err);
    apply(&root, "").expect(0, &["f removed", "d removed"]);
    assert!(!dir.exists());
}
