//! Tables of the packet filter, by the real nft in networks of the tests' own: loaded whole, held,
//! known again, and gone when they are no longer declared; whatever else the filter holds stays.

mod support;

use std::fs;
use std::net::UdpSocket;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::Duration;

use support::net::{nft, own_network, Tool};
use support::root::{declared, run, Root, Run, HOST};

/// Runs the host on `/`, its store in the scratch directory.
fn on_host(root: &Root, args: &[&str]) -> Run {
    let state = root.scratch.join("state");
    run(Command::new(HOST).arg("--json").arg("--state").arg(state).args(args))
}

fn apply(root: &Root, resources: &str) -> Run {
    on_host(root, &["apply", &root.declare("local.json", &declared(resources))])
}

fn plan(root: &Root, resources: &str) -> Run {
    on_host(root, &["plan", &root.declare("planned.json", &declared(resources))])
}

fn store_of(root: &Root) -> std::collections::BTreeMap<std::path::PathBuf, String> {
    support::root::tree(&root.scratch.join("state"))
}

/// A table with something of everything, written otherwise than nft lists it.
fn everything() -> String {
    r#"{"id":"fw","type":"packet_filter","table":"inet filter",
    "chains":[
      {"name":"input","type":"filter","hook":"input","priority":"filter + 5","policy":"drop",
       "rules":["ct state established,related accept","iif lo accept",
        "tcp dport { 443, ssh, 80-90, 85 } ip saddr @peers counter accept comment \"web; more\"",
        "ip saddr 10.1.2.3/8 jump more","add @seen { ip saddr timeout 10s }",
        "tcp dport vmap @fw",
        "ip saddr . tcp dport @pairs reject with icmpx type port-unreachable"]},
      {"name":"more","rules":["icmp type echo-request limit rate 10/second accept"]},
      {"name":"nat","type":"nat","hook":"postrouting","priority":"srcnat",
       "rules":["oifname \"eth0\" masquerade"]},
      {"name":"empty"}],
    "sets":[
      {"name":"peers","type":"ipv4_addr","flags":["interval"],"auto_merge":true,
       "elements":["10.0.0.0/25","10.0.0.128/25","192.0.2.7 comment \"bob\""]},
      {"name":"seen","type":"ipv4_addr","flags":["dynamic","timeout"],"timeout_s":60},
      {"name":"pairs","type":"ipv4_addr . inet_service","elements":["1.2.3.4 . http"]},
      {"name":"short","type":"ipv4_addr","flags":["timeout"],
       "elements":["1.2.3.4 timeout 1s","5.6.7.8"]}],
    "maps":[{"name":"fw","type":"inet_service","value":"verdict",
       "elements":{"ssh":"accept","23":"jump more"}}]}"#
        .into()
}

/// A table of this name with one chain of these rules, which packets enter at no hook.
fn small(id: &str, table: &str, rules: &[&str]) -> String {
    let chains = format!(r#"[{{"name":"c","rules":{rules:?}}}]"#);
    format!(r#"{{"id":"{id}","type":"packet_filter","table":"{table}","chains":{chains}}}"#)
}

/// What else the filter holds: a container engine's, and a person's.
fn others() -> String {
    nft("table ip nat { chain DOCKER { }; chain POSTROUTING { type nat hook postrouting priority \
         srcnat; ip saddr 172.17.0.0/16 masquerade; }; }; \
         table inet mine { set s { type mark; }; }");
    nft("list table ip nat") + &nft("list table inet mine")
}

fn others_now() -> String {
    nft("list table ip nat") + &nft("list table inet mine")
}

// R-2, R-3, R-9
#[test]
fn a_table_is_loaded_held_and_deleted_and_nothing_else_is_touched() {
    if !own_network("a_table_is_loaded_held_and_deleted_and_nothing_else_is_touched") {
        return;
    }
    let root = Root::new("filter");
    let others = others();
    plan(&root, &everything()).expect(0, &["fw created"]);
    assert!(!nft("list tables").contains("filter"), "a plan loads nothing");
    apply(&root, &everything()).expect(0, &["fw created"]);
    let loaded = nft("-s list table inet filter");
    assert!(loaded.contains("10.0.0.0/24, 192.0.2.7 comment \"bob\""), "{loaded}");
    let store = store_of(&root);
    // The set's own element has gone by then.
    std::thread::sleep(Duration::from_millis(1200));
    nft("add element inet filter seen { 198.51.100.7 timeout 9s }");
    apply(&root, &everything()).expect(0, &["fw unchanged"]);
    on_host(&root, &["reconcile"]).expect(0, &["fw unchanged"]);
    assert_eq!(store_of(&root), store, "a run with nothing to do writes nothing");

    for by_hand in [
        "add rule inet filter input tcp dport 9999 accept",
        "insert rule inet filter more accept",
        "flush chain inet filter nat",
        "add chain inet filter input { policy accept; }",
        "add chain inet filter back { type filter hook input priority -1; }",
        "delete chain inet filter empty",
        "add element inet filter peers { 203.0.113.9 }",
        "delete element inet filter short { 5.6.7.8 }",
        "delete element inet filter fw { 23 }",
        "add set inet filter more { type mark; }",
        "add counter inet filter hits",
        "add rule inet filter nox-mesh-host return comment \"chain back 0123456789abcdef\"",
        "flush table inet filter",
        "delete table inet filter",
    ] {
        nft(by_hand);
        on_host(&root, &["reconcile"]).expect(0, &["fw corrected"]);
        let now = nft("-s list table inet filter");
        assert_eq!(
            now.replace("1.2.3.4 timeout 1s, ", ""),
            loaded.replace("1.2.3.4 timeout 1s, ", ""),
            "{by_hand}"
        );
        on_host(&root, &["reconcile"]).expect(0, &["fw unchanged"]);
    }
    // A chain that stays is not made anew, so no packet finds it gone.
    let chain = || {
        let listed = nft("-a list chain inet filter input");
        listed.lines().find(|line| line.contains("chain input")).unwrap().to_string()
    };
    let stays = chain();
    assert!(stays.contains("# handle"), "{stays}");
    // The same rules in another order.
    let rules = nft("-a list chain inet filter input");
    let handle = rules.lines().find(|line| line.contains("iif \"lo\"")).unwrap();
    let handle = handle.rsplit(' ').next().unwrap();
    nft(&format!("delete rule inet filter input handle {handle}"));
    nft("add rule inet filter input iif lo accept");
    let run = on_host(&root, &["reconcile"]).expect(0, &["fw corrected"]);
    assert_eq!(run.detail("fw"), "chain input was changed since it was loaded");

    let less = everything().replace(r#""iif lo accept","#, "");
    apply(&root, &less).expect(0, &["fw changed"]);
    assert!(!nft("list table inet filter").contains("iif"));
    assert_eq!(chain(), stays);
    let moved = less.replace("filter + 5", "-7");
    apply(&root, &moved).expect(0, &["fw changed"]);
    assert_ne!(chain(), stays, "the place of a chain among others cannot change");
    assert!(nft("list table inet filter").contains("priority filter - 7"));
    assert_eq!(others_now(), others);
    apply(&root, "").expect(0, &["fw removed"]);
    assert!(!nft("list tables").contains("filter"));
    assert_eq!(others_now(), others);
}

// R-9
#[test]
fn a_table_without_the_host_s_mark_is_never_replaced() {
    if !own_network("a_table_without_the_host_s_mark_is_never_replaced") {
        return;
    }
    let root = Root::new("filter-foreign");
    nft("table inet filter { chain input { type filter hook input priority 0; accept; }; }");
    let theirs = nft("list ruleset");
    for run in [plan(&root, &everything()), apply(&root, &everything())] {
        assert!(run.err.contains("without the host's mark"), "{}", run.err);
        assert_eq!((run.code, nft("list ruleset")), (1, theirs.clone()));
    }
    apply(&root, "").expect(0, &[]);
    assert_eq!(nft("list ruleset"), theirs);

    // What was ours went, and somebody else's came in its place.
    nft("delete table inet filter");
    apply(&root, &everything()).expect(0, &["fw created"]);
    nft("flush ruleset");
    nft("table inet filter { chain input { type filter hook input priority 0; accept; }; }");
    on_host(&root, &["reconcile"]).expect(1, &["fw failed"]);
    let run = apply(&root, "").expect(0, &["fw left"]);
    assert!(run.detail("fw").contains("without the host's mark"));
    assert_eq!(nft("list ruleset"), theirs);
}

// R-9
#[test]
fn a_table_with_the_mark_and_without_a_record_is_adopted_and_stays() {
    if !own_network("a_table_with_the_mark_and_without_a_record_is_adopted_and_stays") {
        return;
    }
    let root = Root::new("filter-adopted");
    apply(&root, &everything()).expect(0, &["fw created"]);
    run(Command::new(HOST)
        .arg("--state")
        .arg(root.scratch.join("state"))
        .args(["rescue", "--discard-state"]));
    apply(&root, &everything()).expect(0, &["fw unchanged"]);
    apply(&root, "").expect(0, &["fw forgotten"]);
    assert!(nft("list tables").contains("filter"));
}

// R-4, R-7
#[test]
fn what_nft_refuses_is_told_with_its_chain_its_rule_and_its_words() {
    if !own_network("what_nft_refuses_is_told_with_its_chain_its_rule_and_its_words") {
        return;
    }
    let root = Root::new("filter-refused");
    apply(&root, &everything()).expect(0, &["fw created"]);
    // What is loaded anew has other handles.
    let handles = || nft("-a list chain inet filter input");
    let before = handles();
    for (from, to, told) in [
        (
            "ct state",
            "ct stat",
            r#"chain input, rule 1, "ct stat established,related accept": nft"#,
        ),
        ("iif lo", "iif nowhere", r#"rule 2, "iif nowhere accept": nft exited 1: "Interface does"#),
        ("@peers", "@nobody", "chain input, rule 3, "),
        ("8 jump more", "8 jump nowhere", "chain input, rule 4, "),
        ("1.2.3.4 . http", "1.2.3.4 . nothing", "set pairs, element 1, "),
        ("\"23\"", "\"99999\"", "map fw, element 2, "),
        ("ipv4_addr . inet", "ipv4_adr . inet", "set pairs: nft exited 1"),
    ] {
        let wrong = everything().replace(from, to);
        assert_ne!(wrong, everything(), "{from}");
        for run in [plan(&root, &wrong), apply(&root, &wrong)] {
            let [[stage, id, cause]] = run.errors().try_into().unwrap();
            assert_eq!((&*stage, &*id, run.code), ("observe", "fw", 1), "{to}");
            assert!(cause.contains(told), "{to}: {cause}");
        }
        assert_eq!(handles(), before, "{to}");
    }
    let reserved = everything().replace("\"more\"", "\"nox-mesh-host\"");
    assert_eq!(apply(&root, &reserved).code, 3);
}

// R-5
#[test]
fn an_nft_that_lies_fails_the_read_back() {
    if !own_network("an_nft_that_lies_fails_the_read_back") {
        return;
    }
    let root = Root::new("filter-lies");
    let tool = Tool::over(&root.scratch);
    let one = small("fw", "inet a", &["tcp dport 22 accept", "drop"]);
    // It says that it loaded, and did nothing.
    tool.runs(r#"[ "$1" = -f ] && exit 0"#);
    let run = apply(&root, &one).expect(1, &["fw failed"]);
    assert_eq!(run.errors()[0][0], "read_back");
    assert_eq!(on_host(&root, &["owned"]).report()["owned"].as_array().map(Vec::len), Some(0));
    // It loads something else than it was given.
    tool.runs(r#"[ "$1" = -f ] && { grep -v '^drop' | /usr/sbin/nft -f -; exit; }"#);
    let run = apply(&root, &one).expect(1, &["fw failed"]);
    assert!(run.errors()[0][2].contains("1 rule → 2 rules"), "{:?}", run.errors());
    tool.runs("");
    on_host(&root, &["reconcile"]).expect(0, &["fw created"]);
    // It says that it deleted, and did not.
    tool.runs(r#"[ "$1" = -f ] && exit 0"#);
    apply(&root, "").expect(1, &["fw failed"]);
    tool.runs("");
    on_host(&root, &["reconcile"]).expect(0, &["fw removed"]);
    // What it says is not what it ever says.
    for said in ["echo no JSON; exit 0", "echo '{\"nftables\":[{}]}'; exit 0", "exit 7", "kill $$"]
    {
        tool.runs(&format!(r#"[ "$1" = -j ] && {{ {said}; }}"#));
        let run = apply(&root, &one).expect(1, &["fw failed"]);
        assert!(run.err.contains("look at table inet a: nft"), "{said}: {}", run.err);
    }
}

// R-6
#[test]
fn a_host_that_is_killed_at_any_call_of_nft_has_lost_nothing() {
    if !own_network("a_host_that_is_killed_at_any_call_of_nft_has_lost_nothing") {
        return;
    }
    let root = Root::new("filter-killed");
    let tool = Tool::over(&root.scratch);
    let count = root.scratch.join("count");
    let one = small("fw", "inet a", &["tcp dport 22 accept", "drop"]);
    let other = small("fw", "inet a", &["tcp dport 23 accept"]);
    let mut kills = 0;
    for (before, after) in [("", &*one), (&*one, &*other), (&*other, "")] {
        for when in ["before", "after"] {
            for nth in 1.. {
                tool.runs("");
                apply(&root, "");
                apply(&root, before);
                let act = match when {
                    "before" => "kill -9 $PPID; exit 1",
                    _ => "/usr/sbin/nft \"$@\" >/dev/null 2>&1; kill -9 $PPID; exit 1",
                };
                let counts = format!("echo >>{0}; [ $(wc -l <{0}) = {nth} ]", count.display());
                tool.runs(&format!("{counts} && {{ {act}; }}"));
                fs::write(&count, "").unwrap();
                let file = root.declare("local.json", &declared(after));
                let mut host = Command::new(HOST);
                host.arg("--state").arg(root.scratch.join("state")).args(["apply", &file]);
                let ended = host.stderr(Stdio::null()).stdout(Stdio::null()).status().unwrap();
                if ended.code().is_some() {
                    break;
                }
                kills += 1;
                tool.runs("");
                // Before the first intent not even the declaration is sure to be kept.
                let run = apply(&root, after);
                assert_eq!(run.code, 0, "{when} {nth}: {}", run.err);
                let rules = match after {
                    "" => "",
                    after if after == one => "tcp dport 22 accept\n\t\tdrop\n",
                    _ => "chain c {\n\t\ttcp dport 23 accept\n\t}",
                };
                let now = nft("list ruleset");
                assert!(now.contains(rules) && now.is_empty() == after.is_empty(), "{nth}: {now}");
                let run = on_host(&root, &["reconcile"]);
                assert_eq!(run.report()["changed"], 0, "{when} {nth}: {}", run.out);
                assert_eq!(run.report()["corrected"], 0, "{when} {nth}: {}", run.out);
            }
        }
    }
    assert!(kills >= 20, "{kills}");
}

// R-2
#[test]
fn a_pass_that_finds_nothing_to_do_asks_once_for_all_tables() {
    if !own_network("a_pass_that_finds_nothing_to_do_asks_once_for_all_tables") {
        return;
    }
    let root = Root::new("filter-once");
    let tool = Tool::over(&root.scratch);
    let log = root.scratch.join("log");
    others();
    let all: Vec<String> = (0..5)
        .map(|n| small(&format!("t{n}"), &format!("inet t{n}"), &["accept", "drop"]))
        .collect();
    for count in [1, all.len()] {
        let some = all[..count].join(",");
        apply(&root, &some);
        tool.runs(&format!("echo \"$*\" >>{}", log.display()));
        fs::write(&log, "").unwrap();
        let run = apply(&root, &some);
        assert_eq!((run.code, &run.report()["changed"]), (0, &0.into()));
        let asked = fs::read_to_string(&log).unwrap();
        assert_eq!(asked.lines().count(), 1, "{asked}");
        tool.runs("");
    }
    // One of several that is gone is the only one that is loaded.
    nft("delete table inet t3");
    let run = on_host(&root, &["reconcile"]);
    let expected = ["t0 unchanged", "t1 unchanged", "t2 unchanged", "t3 corrected", "t4 unchanged"];
    run.expect(0, &expected);
}

// R-2
#[test]
fn a_thousand_rules_and_ten_thousand_elements_are_one_table() {
    if !own_network("a_thousand_rules_and_ten_thousand_elements_are_one_table") {
        return;
    }
    let root = Root::new("filter-large");
    let rules: Vec<String> =
        (0..1000).map(|n| format!("\"tcp dport {} counter accept\"", n + 1)).collect();
    let elements: Vec<String> =
        (0..10_000).map(|n| format!("\"10.{}.{}.0/25\"", n / 256, n % 256)).collect();
    let large = format!(
        r#"{{"id":"fw","type":"packet_filter","table":"inet large",
        "chains":[{{"name":"c","rules":[{}]}}],
        "sets":[{{"name":"s","type":"ipv4_addr","flags":["interval"],"elements":[{}]}}]}}"#,
        rules.join(","),
        elements.join(",")
    );
    apply(&root, &large).expect(0, &["fw created"]);
    apply(&root, &large).expect(0, &["fw unchanged"]);
    nft("delete element inet large s { 10.5.5.0/25 }");
    on_host(&root, &["reconcile"]).expect(0, &["fw corrected"]);
}

// R-3
#[test]
fn while_a_table_is_replaced_no_packet_meets_a_gap() {
    if !own_network("while_a_table_is_replaced_no_packet_meets_a_gap") {
        return;
    }
    let root = Root::new("filter-gap");
    assert!(Command::new("ip").args(["link", "set", "lo", "up"]).status().unwrap().success());
    let socket = |port: u16| UdpSocket::bind(("127.0.0.1", port)).unwrap();
    let (open, shut, from) = (socket(7001), socket(7002), socket(7003));
    open.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    shut.set_nonblocking(true).unwrap();
    let table = |more: usize| {
        let rules: Vec<String> =
            (0..more).map(|n| format!("\"udp dport {} drop\"", 8000 + n)).collect();
        format!(
            r#"{{"id":"fw","type":"packet_filter","table":"inet gap","chains":[{{"name":"input",
            "type":"filter","hook":"input","priority":0,"policy":"drop",
            "rules":["udp dport 7001 accept",{}]}}]}}"#,
            rules.join(",")
        )
    };
    apply(&root, &table(1)).expect(0, &["fw created"]);
    let (over, sent) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let (seen, counted) = (over.clone(), sent.clone());
    // A thread of this one, and so in its network.
    let probe = std::thread::spawn(move || {
        let (mut lost, mut leaked, mut bytes) = (0, 0, [0; 8]);
        while !seen.load(Ordering::Relaxed) {
            // A packet that the filter drops is not a failure to send.
            let _ = from.send_to(b"open", "127.0.0.1:7001");
            let _ = from.send_to(b"shut", "127.0.0.1:7002");
            lost += usize::from(open.recv(&mut bytes).is_err());
            leaked += usize::from(shut.recv(&mut bytes).is_ok());
            counted.fetch_add(1, Ordering::Relaxed);
        }
        (lost, leaked)
    });
    for round in 0..40 {
        apply(&root, &table(2 + 10 * round)).expect(0, &["fw changed"]);
    }
    over.store(true, Ordering::Relaxed);
    assert_eq!(probe.join().unwrap(), (0, 0), "lost, and let through");
    assert!(sent.load(Ordering::Relaxed) > 1000);
}

// R-3
#[test]
fn a_mounted_tree_has_no_packet_filter() {
    if !own_network("a_mounted_tree_has_no_packet_filter") {
        return;
    }
    let root = Root::new("filter-root");
    let run = root.apply(&everything()).expect(0, &["fw not_applicable"]);
    assert_eq!(run.report()["outcome"], "converged");
    assert_eq!(nft("list tables"), "");
}
