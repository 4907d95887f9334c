//! The way back: a change of the packet filter that cuts the way to an address is undone, its
//! declaration quarantined; also where the host is killed before it can see that.

mod support;

use std::fs;
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nox_mesh_host::service::errand::ERRAND_ARGUMENT;
use serde_json::Value;
use support::net::{nft, own_network, Tool};
use support::root::{declared, run, Root, Run, HOST};

/// Runs the host on `/`, its store in the scratch directory.
fn on_host(root: &Root, args: &[&str]) -> Run {
    let state = root.scratch.join("state");
    run(Command::new(HOST).arg("--json").arg("--state").arg(state).args(args))
}

fn apply(root: &Root, way: &str, resources: &str) -> Run {
    let file = root.declare("local.json", &declared(resources));
    match way {
        "" => on_host(root, &["apply", &file]),
        way => on_host(root, &["apply", "--keep-reachable", way, &file]),
    }
}

/// A pass that the service makes for this reason, and nobody asked for.
struct Unasked {
    /// How it ended.
    outcome: String,
    /// What failed.
    errors: String,
}

fn unasked(root: &Root, trigger: &str) -> Unasked {
    let order = format!(r#"{{"pass":"{trigger}"}}"#);
    let state = root.scratch.join("state");
    let errand = [ERRAND_ARGUMENT, &order, "--state"];
    let run = run(Command::new(HOST).args(errand).arg(state));
    let told: Value = serde_json::from_str(run.out.lines().last().unwrap()).unwrap();
    let pass = &told["told"]["pass"];
    assert_eq!(pass["trigger"], trigger, "{told}");
    Unasked {
        outcome: pass["outcome"].as_str().unwrap().into(),
        errors: pass["errors"].to_string(),
    }
}

/// A table that lets these ports out, and nothing else.
fn only(ports: &str) -> String {
    format!(
        r#"{{"id":"fw","type":"packet_filter","table":"inet fw","chains":[{{"name":"out",
        "type":"filter","hook":"output","priority":0,"policy":"drop",
        "rules":["tcp dport {{ {ports} }} accept","tcp sport {{ {ports} }} accept"]}}]}}"#
    )
}

fn with(filter: &str) -> String {
    let file = |id: &str| {
        format!(r#"{{"id":"{id}","type":"sysctl","key":"net.ipv4.conf.all.{id}","value":"1"}}"#)
    };
    format!("{},{filter},{}", file("log_martians"), file("send_redirects"))
}

fn listen(port: u16) -> TcpListener {
    assert!(Command::new("ip").args(["link", "set", "lo", "up"]).status().unwrap().success());
    TcpListener::bind(("127.0.0.1", port)).unwrap()
}

const WAY: &str = "127.0.0.1:7000";

fn quarantined(root: &Root) -> bool {
    let status = on_host(root, &["status"]).report();
    status["declared"].as_array().unwrap().iter().any(|it| it.get("quarantined").is_some())
}

// R-4
#[test]
fn a_filter_that_cuts_the_way_is_put_back_and_its_declaration_quarantined() {
    if !own_network("a_filter_that_cuts_the_way_is_put_back_and_its_declaration_quarantined") {
        return;
    }
    let root = Root::new("keep");
    let _listener = listen(7000);
    apply(&root, WAY, &with(&only("7000, 22")))
        .expect(0, &["log_martians changed", "fw created", "send_redirects unchanged"]);
    let before = nft("list ruleset");
    let began = Instant::now();
    let run = apply(&root, WAY, &with(&only("22")));
    assert!(began.elapsed() < Duration::from_secs(20));
    let run = run.expect(1, &["log_martians unchanged", "fw failed", "send_redirects not_reached"]);
    let [[stage, id, cause]] = run.errors().try_into().unwrap();
    assert_eq!((&*stage, &*id), ("guard", "fw"));
    for part in [WAY, "packet_filter:inet fw", "before is put back", "can be reached again"] {
        assert!(run.err.contains(part), "{part}: {cause}");
    }
    assert_eq!(nft("list ruleset"), before);
    assert!(quarantined(&root));

    // As at boot, from the timer, or after a flush: what was before is held.
    for trigger in ["start", "timer"] {
        nft("flush ruleset");
        let pass = unasked(&root, trigger);
        assert_eq!(pass.outcome, "failed");
        assert!(pass.errors.contains("quarantined since"), "{}", pass.errors);
        assert_eq!(nft("list ruleset"), before);
    }
    // A person tries it again, with the same guard and then without.
    let run = on_host(&root, &["reconcile", "--keep-reachable", WAY]);
    assert_eq!((run.code, nft("list ruleset")), (1, before.clone()));
    // What is declared anew is no longer it.
    apply(&root, WAY, &only("7000"))
        .expect(0, &["fw changed", "send_redirects removed", "log_martians removed"]);
    assert!(!quarantined(&root));
    apply(&root, WAY, &only("22"));
    assert!(quarantined(&root));
    on_host(&root, &["reconcile"]).expect(0, &["fw changed"]);
    assert!(!quarantined(&root) && !nft("list ruleset").contains("7000"));
}

// R-9
#[test]
fn what_cuts_the_way_and_was_not_there_before_is_removed_again() {
    if !own_network("what_cuts_the_way_and_was_not_there_before_is_removed_again") {
        return;
    }
    let root = Root::new("keep-new");
    let _listener = listen(7000);
    let run = apply(&root, WAY, &only("22")).expect(1, &["fw failed"]);
    assert!(run.err.contains("removed again, and it can be reached"), "{}", run.err);
    assert_eq!(nft("list ruleset"), "");
    assert_eq!(on_host(&root, &["owned"]).report()["owned"].as_array().map(Vec::len), Some(0));
    // Nor is it made by a pass that nobody asked for.
    assert_eq!(unasked(&root, "timer").outcome, "failed");
    assert_eq!(nft("list ruleset"), "");
}

// R-6
#[test]
fn a_guard_that_outlives_its_host_is_finished_by_the_next() {
    if !own_network("a_guard_that_outlives_its_host_is_finished_by_the_next") {
        return;
    }
    let root = Root::new("keep-killed");
    let _listener = listen(7000);
    let tool = Tool::over(&root.scratch);
    let (good, bad) = (only("7000, 22"), only("22"));
    let kill = "/usr/sbin/nft \"$@\"; kill -9 $PPID; exit 1";
    // When the load is done, when it is listed, when what was listed is noted.
    for nth in 1..=3 {
        for before in ["", &good] {
            apply(&root, "", "");
            apply(&root, "", before);
            let was = nft("list ruleset");
            let count = root.scratch.join("count");
            fs::write(&count, "").unwrap();
            let from_load = r#"{ [ "$1" = -f ] || [ -s COUNT ]; } && echo >>COUNT"#;
            let script = format!("{from_load}; [ $(wc -l <COUNT) = {nth} ] && {{ {kill}; }}");
            tool.runs(&script.replace("COUNT", count.to_str().unwrap()));
            let file = root.declare("local.json", &declared(&bad));
            let mut host = Command::new(HOST);
            host.arg("--state").arg(root.scratch.join("state"));
            host.args(["apply", "--keep-reachable", WAY, &file]).stderr(Stdio::null());
            assert_eq!(host.stdout(Stdio::null()).status().unwrap().code(), None, "{nth}");
            tool.runs("");
            assert_ne!(nft("list ruleset"), was, "{nth}");
            let pass = unasked(&root, "start");
            assert_eq!(pass.outcome, "failed");
            assert!(pass.errors.contains("keep 127.0.0.1:7000 reachable"), "{}", pass.errors);
            assert_eq!(nft("list ruleset"), was, "{nth}");
            assert!(quarantined(&root));
            // And once is enough.
            assert!(!unasked(&root, "timer").errors.contains("keep 127"));
            assert_eq!(nft("list ruleset"), was, "{nth}");
        }
    }
}

// R-4
#[test]
fn another_declaration_finishes_the_guard_of_the_one_before_it() {
    if !own_network("another_declaration_finishes_the_guard_of_the_one_before_it") {
        return;
    }
    let root = Root::new("keep-other");
    let _listener = listen(7000);
    let tool = Tool::over(&root.scratch);
    tool.runs(r#"[ "$1" = -f ] && { /usr/sbin/nft -f -; kill -9 $PPID; exit 1; }"#);
    let file = root.declare("local.json", &declared(&only("22")));
    let mut host = Command::new(HOST);
    host.arg("--state").arg(root.scratch.join("state"));
    host.args(["apply", "--keep-reachable", WAY, &file]);
    assert_eq!(host.stderr(Stdio::null()).status().unwrap().code(), None);
    tool.runs("");
    let other = only("23").replace("inet fw", "inet other");
    let run = apply(&root, WAY, &format!("{},{}", only("7000"), other.replace("\"fw\"", "\"o\"")));
    assert!(run.err.contains("removed again"), "{}", run.err);
    let run = run.expect(1, &["fw created", "o failed"]);
    assert!(run.err.contains("packet_filter:inet other"), "{}", run.err);
    assert!(nft("list ruleset").contains("7000") && !nft("list ruleset").contains("other"));
}

// R-3, R-4
#[test]
fn a_correction_that_cuts_the_way_is_undone_to_what_was_there_by_hand() {
    if !own_network("a_correction_that_cuts_the_way_is_undone_to_what_was_there_by_hand") {
        return;
    }
    let root = Root::new("keep-drift");
    let _listener = listen(7000);
    apply(&root, "", &only("22")).expect(0, &["fw created"]);
    nft("insert rule inet fw out tcp dport 7000 accept");
    nft("insert rule inet fw out tcp sport 7000 accept");
    let before = nft("list ruleset");
    let run = on_host(&root, &["reconcile", "--keep-reachable", WAY]).expect(1, &["fw failed"]);
    assert!(run.err.contains("before is put back, and it can be reached"), "{}", run.err);
    assert_eq!(nft("list ruleset"), before);
    // Whoever asks for no way either: what is declared is what cut it.
    assert_eq!(unasked(&root, "timer").outcome, "failed");
    assert_eq!(nft("list ruleset"), before);
    on_host(&root, &["reconcile"]).expect(0, &["fw corrected"]);
    assert!(!quarantined(&root));
}

// R-9
#[test]
fn what_may_not_be_let_go_of_without_cutting_the_way_stays() {
    if !own_network("what_may_not_be_let_go_of_without_cutting_the_way_stays") {
        return;
    }
    let root = Root::new("keep-release");
    let _listener = listen(7001);
    let redirect = r#"{"id":"nat","type":"packet_filter","table":"ip ours","chains":[
        {"name":"out","type":"nat","hook":"output","priority":-100,
         "rules":["tcp dport 7000 redirect to :7001"]}]}"#;
    apply(&root, "", redirect).expect(0, &["nat created"]);
    let before = nft("list ruleset");
    let run = apply(&root, WAY, "").expect(1, &["nat failed"]);
    assert!(run.err.contains("can be reached again"), "{}", run.err);
    assert_eq!(nft("list ruleset"), before);
    assert!(quarantined(&root));
    assert_eq!(unasked(&root, "timer").outcome, "failed");
    assert_eq!(nft("list ruleset"), before);
    on_host(&root, &["reconcile"]).expect(0, &["nat removed"]);
}

// R-4
#[test]
fn a_way_that_is_closed_before_is_said_not_to_be_watched() {
    if !own_network("a_way_that_is_closed_before_is_said_not_to_be_watched") {
        return;
    }
    let root = Root::new("keep-closed");
    drop(listen(7000));
    let run = apply(&root, WAY, &only("22")).expect(0, &["fw created"]);
    assert!(run.err.contains("is not watched, since it cannot be reached"), "{}", run.err);
    assert!(run.err.contains("connection refused"), "{}", run.err);
    // What does not change asks for no way.
    let run = apply(&root, WAY, &only("22")).expect(0, &["fw unchanged"]);
    assert!(!run.err.contains("not watched"), "{}", run.err);
    for wrong in ["", "host", "host:", ":22", "host:0", "host:70000", "host:ssh"] {
        let run = on_host(&root, &["apply", "--keep-reachable", wrong, "/nowhere"]);
        assert_eq!(run.code, 2, "{wrong}: {}", run.err);
        assert!(run.err.contains("HOST:PORT"), "{wrong}: {}", run.err);
    }
    let before = nft("list ruleset");
    let run = apply(&root, "nowhere.invalid:22", &only("23"));
    assert!(run.code == 1 && run.err.contains("look up"), "{}", run.err);
    assert_eq!(nft("list ruleset"), before);
}
