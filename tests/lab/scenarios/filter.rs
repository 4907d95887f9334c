//! The packet filter of whole machines: beside a container engine's, over a reboot and a power cut,
//! and with the way to another machine at stake.

use lab::{eventually, host_binary, Lab, Machine};
use serde_json::{json, Value};
use std::time::{Duration, Instant};

const HOST: &str = "/usr/bin/nox-mesh-host";

fn machine(name: &str) -> Machine {
    let machine = Lab::machine(name);
    machine.place_host(&host_binary().unwrap());
    machine
}

/// A machine that takes connections at port 7000.
fn hub() -> Machine {
    let hub = Lab::machine("hub");
    let units = "/etc/systemd/system";
    hub.write(&format!("{units}/door.socket"), "[Socket]\nListenStream=7000\nAccept=yes\n");
    hub.write(&format!("{units}/door@.service"), "[Service]\nExecStart=/bin/true\n");
    hub.sh("systemctl daemon-reload; systemctl start door.socket").ok();
    hub
}

/// A table that lets these rules' packets out, and drops the rest; nothing comes in but answers.
fn only(out: &[&str]) -> Value {
    let chain = |name: &str, rules: &[&str]| {
        json!({"name": name, "type": "filter", "hook": name, "priority": "filter",
            "policy": "drop", "rules": rules})
    };
    json!({"version": 1, "resources": [
        {"id": "martians", "type": "sysctl", "key": "net.ipv4.conf.all.log_martians", "value": "1"},
        {"id": "fw", "type": "packet_filter", "table": "inet fw", "chains": [
            chain("input", &["ct state established accept", "icmp type echo-request accept"]),
            chain("output", out)]}]})
}

fn good() -> Value {
    only(&["ct state established accept", "tcp dport 7000 accept"])
}

fn drops_everything() -> Value {
    only(&["tcp dport 7001 accept"])
}

fn fw(machine: &Machine) -> String {
    machine.run(["nft", "-s", "list", "table", "inet", "fw"]).stdout()
}

fn answers(from: &Machine, to: &Machine) -> bool {
    from.run(["ping", "-c1", "-W1", &to.address().to_string()]).code() == 0
}

fn host(machine: &Machine, argv: &[&str]) -> Value {
    let ran = machine.run([HOST, "--json"].iter().chain(argv));
    serde_json::from_slice(ran.bytes()).unwrap_or_else(|_| panic!("{}", ran.story()))
}

/// A pass that the service makes for this reason, and nobody asked for.
fn unasked(machine: &Machine, trigger: &str) -> Value {
    let order = json!({"pass": trigger}).to_string();
    let ran = machine.run([HOST, "errand-for-the-service", &order]).ok();
    let last = ran.stdout().lines().last().unwrap_or_default().to_string();
    let told: Value = serde_json::from_str(&last).unwrap_or_else(|_| panic!("{}", ran.story()));
    told["told"]["pass"].clone()
}

/// All rules but the host's own.
fn engine_s(machine: &Machine) -> String {
    let script = "for table in $(nft list tables | grep -v ' fw$' | sed 's/table //;s/ /:/'); do \
                  nft -s list table ${table%%:*} ${table#*:}; done";
    machine.sh(script).ok().stdout()
}

//
#[test]
fn a_filter_that_drops_everything_is_gone_within_seconds_and_an_engine_s_rules_are_left_alone() {
    if lab::skipped() {
        return;
    }
    let (web, hub) = (machine("web"), hub());
    web.run(["systemctl", "start", "docker"]).ok();
    let engine = engine_s(&web);
    assert!(engine.contains("chain DOCKER"), "{engine}");
    let way = format!("{}:7000", hub.address());
    let keep = ["--keep-reachable", way.as_str()];
    web.apply_with(&keep, good()).converged();
    let before = fw(&web);
    assert!(answers(&hub, &web));

    let began = Instant::now();
    let applied = web.apply_with(&keep, drops_everything()).failed();
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    assert_eq!(applied.report["errors"][0]["stage"], "guard");
    assert!(applied.stderr().contains("can be reached again"), "{}", applied.stderr());
    assert!(answers(&hub, &web));
    assert_eq!(fw(&web), before);
    assert_eq!(engine_s(&web), engine);

    // At boot too: nobody asked for it.
    web.reboot();
    assert_eq!(fw(&web), "");
    let report = unasked(&web, "start");
    assert_eq!(report["outcome"], "failed");
    assert_eq!(fw(&web), before);
    let status = host(&web, &["status"]);
    assert!(status["declared"][0]["quarantined"].as_str().unwrap().contains(&way), "{status}");
    web.apply_with(&keep, good()).idle();
    assert_eq!(unasked(&web, "timer")["outcome"], "converged");
}

//
#[test]
fn a_machine_that_is_switched_off_while_it_is_cut_off_comes_back_as_it_was() {
    if lab::skipped() {
        return;
    }
    let (web, hub) = (machine("web"), hub());
    let way = format!("{}:7000", hub.address());
    web.apply_with(&["--keep-reachable", &way], good()).converged();
    let before = fw(&web);
    web.write("/root/bad.json", drops_everything().to_string());
    let apply = web.spawn([HOST, "apply", "--keep-reachable", &way, "/root/bad.json"]);
    eventually("the machine is cut off", Duration::from_secs(5), || !answers(&hub, &web));
    web.power_cut();
    drop(apply);
    let report = unasked(&web, "start");
    assert_eq!(report["outcome"], "failed", "{report}");
    assert_eq!(fw(&web), before);
    assert!(answers(&hub, &web));
    // And by the next pass, which knows of no way, it is not tried again.
    assert_eq!(unasked(&web, "timer")["outcome"], "failed");
    assert_eq!(fw(&web), before);
}

//
#[test]
fn after_a_reboot_the_first_pass_loads_every_table_again() {
    if lab::skipped() {
        return;
    }
    let web = machine("web");
    web.apply(good()).converged();
    let before = fw(&web);
    web.reboot();
    assert_eq!(fw(&web), "");
    let report = unasked(&web, "start");
    assert_eq!(report["corrected"], 2, "{report}");
    assert_eq!(fw(&web), before);
}
