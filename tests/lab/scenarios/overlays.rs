//! Overlays on machines with a real systemd, ip and wg: interfaces and their peers come to be as
//! declared, carry packets, stay so, and go. This kernel may have no WireGuard: then it is
//! wireguard-go that makes them.

use lab::{host_binary, until, Applied, Lab, Machine};
use serde_json::{json, Value};
use std::time::Duration;

const HOST: &str = "/usr/bin/nox-mesh-host";
/// Two keys whose private halves nobody needs.
const KEY: &str = "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=";
const OTHER: &str = "xTIBA5rboUvnH4htodjb6e697QjLERt1NAB4mZqp8Dg=";
const SHARED: &str = "FpCyhws9cxwWoV4xELtfJvjJN+zQVRPISllRWgeopVE=";

fn machine(name: &str) -> Machine {
    let machine = Lab::machine(name);
    machine.place_host(&host_binary().unwrap());
    machine
}

fn all(resources: Vec<Value>) -> Value {
    json!({"version": 1, "resources": resources})
}

/// The overlay of the machine with this number.
fn overlay(number: u32) -> Value {
    json!({"id": "vpn", "type": "overlay", "interface": "wg0", "listen_port": 51820, "mtu": 1380,
           "addresses": [format!("10.99.0.{number}/24"), format!("fd99::{number}/64")]})
}

/// A peer by that number; its id follows.
fn peer(number: u32, key: &str) -> Value {
    json!({"id": format!("peer-{number}"), "type": "peer", "overlay": "vpn", "public_key": key,
           "allowed_ips": [format!("10.99.0.{number}/32"), format!("fd99::{number}/128")]})
}

fn with(mut resource: Value, field: &str, value: impl Into<Value>) -> Value {
    resource[field] = value.into();
    resource
}

fn host(machine: &Machine, argv: &[&str]) -> Value {
    let argv = [HOST, "--json"].iter().chain(argv);
    let ran = machine.run(argv);
    serde_json::from_slice(ran.bytes()).unwrap_or_else(|_| panic!("{}", ran.story()))
}

fn outcome(report: &Value, id: &str) -> String {
    let all = report["resources"].as_array().unwrap();
    let it = all.iter().find(|it| it["id"] == id);
    it.map_or("none", |it| it["outcome"].as_str().unwrap()).to_string()
}

#[track_caller]
fn idle(report: &Value, when: &str) {
    let all = report["resources"].as_array().unwrap();
    let is_idle = all.iter().all(|it| it["outcome"] == "unchanged");
    assert!(is_idle && report["outcome"] == "converged", "{when}: {report}");
}

fn detail(report: &Value, id: &str) -> String {
    let all = report["resources"].as_array().unwrap();
    let it = all.iter().find(|it| it["id"] == id);
    it.map_or("none", |it| it["detail"].as_str().unwrap()).to_string()
}

fn cause(applied: &Applied) -> String {
    applied.report["errors"][0]["cause"].as_str().unwrap_or_default().to_string()
}

/// The public key that the store says the overlay has.
fn public_key(machine: &Machine) -> String {
    let owned = host(machine, &["owned"]);
    let all = owned["owned"].as_array().unwrap();
    let it = all.iter().find(|it| it["type"] == "overlay").unwrap_or_else(|| panic!("{owned}"));
    it["public_key"].as_str().unwrap_or_else(|| panic!("{owned}")).to_string()
}

/// What WireGuard knows, its peers in the order of their keys.
fn dump(machine: &Machine) -> String {
    machine.sh("wg show all dump | sort").ok().stdout()
}

/// The fields of a peer's line, from its preshared key on.
fn of_peer(machine: &Machine, key: &str) -> Vec<String> {
    let dump = dump(machine);
    let line = dump.lines().find(|line| line.split('\t').nth(1) == Some(key));
    let fields = line.map(|line| line.split('\t').skip(2).map(String::from).collect());
    fields.unwrap_or_default()
}

/// Without those that the kernel makes by itself.
fn addresses(machine: &Machine) -> String {
    let told = machine.run(["ip", "-br", "address", "show", "dev", "wg0"]).ok().stdout();
    let words: Vec<&str> = told.split_whitespace().filter(|it| !it.starts_with("fe80")).collect();
    words.join(" ")
}

/// Wraps a tool: these cases of a shell's `case "$*" in` come first.
fn intercept(machine: &Machine, tool: &str, cases: &str) {
    let real = machine.run(["sh", "-c", &format!("command -v {tool}")]).ok().stdout();
    let script = format!("#!/bin/sh\ncase \"$*\" in\n{cases}\nesac\nexec {} \"$@\"\n", real.trim());
    machine.write(&format!("/usr/local/sbin/{tool}"), &script);
    machine.run(["chmod", "755", &format!("/usr/local/sbin/{tool}")]).ok();
}

fn real(machine: &Machine, tool: &str) {
    machine.run(["rm", &format!("/usr/local/sbin/{tool}")]).ok();
}

fn endpoint(machine: &Machine) -> String {
    format!("{}:51820", machine.address())
}

// R-3, R-33
#[test]
fn machines_reach_each_other_and_a_third_joins_without_a_lost_packet() {
    if lab::skipped() {
        return;
    }
    let (a, b, c) = (machine("a"), machine("b"), machine("c"));
    for (number, machine) in [(1, &a), (2, &b), (3, &c)] {
        let applied = machine.apply(all(vec![overlay(number)])).converged();
        assert_eq!(applied.outcome_of("vpn"), "created");
        machine.apply(all(vec![overlay(number)])).idle();
    }
    let (key_a, key_b, key_c) = (public_key(&a), public_key(&b), public_key(&c));
    let shared = |it| with(it, "preshared_key", SHARED);
    let to_a = shared(with(peer(1, &key_a), "endpoint", endpoint(&a)));
    let to_b = shared(with(peer(2, &key_b), "endpoint", endpoint(&b)));
    b.apply(all(vec![overlay(2), to_a.clone()])).converged();
    a.apply(all(vec![overlay(1), to_b.clone()])).converged();
    a.run(["ping", "-c", "2", "-W", "5", "10.99.0.2"]).ok();
    a.run(["ping", "-c", "1", "-W", "5", "fd99::2"]).ok();
    a.apply(all(vec![overlay(1), to_b.clone()])).idle();

    let mut ping = a.spawn(["ping", "-i", "0.02", "-W", "5", "10.99.0.2"]);
    ping.says("icmp_seq=2 ", Duration::from_secs(10));
    let to_c = with(peer(3, &key_c), "endpoint", endpoint(&c));
    c.apply(all(vec![overlay(3), peer(1, &key_a), peer(2, &key_b)])).converged();
    let applied = a.apply(all(vec![overlay(1), to_b.clone(), to_c.clone()])).converged();
    assert_eq!(applied.outcome_of("peer-3"), "created");
    b.apply(all(vec![overlay(2), to_a.clone(), to_c.clone()])).converged();
    a.run(["ping", "-c", "1", "-W", "5", "10.99.0.3"]).ok();
    b.run(["ping", "-c", "1", "-W", "5", "10.99.0.3"]).ok();
    ping.signal(libc::SIGINT).says("packet loss", Duration::from_secs(10));
    let summary = ping.output().lines().rev().take(2).collect::<Vec<_>>().join("; ");
    assert!(summary.contains(" 0% packet loss"), "{summary}");
    eprintln!("while the third joined: {summary}");
    c.run(["ping", "-c", "1", "-W", "5", "10.99.0.1"]).ok();

    // One that is heard from elsewhere, as behind a translation of addresses, is found there.
    let moved = format!("{}:51999", c.address());
    c.run(["wg", "set", "wg0", "listen-port", "51999"]).ok();
    c.run(["ping", "-c", "1", "-W", "5", "10.99.0.1"]).ok();
    assert_eq!(of_peer(&a, &key_c)[1], moved);
    a.apply(all(vec![overlay(1), to_b.clone(), to_c.clone()])).idle();
    idle(&host(&a, &["reconcile"]), "heard from elsewhere");
    assert_eq!(of_peer(&a, &key_c)[1], moved);
    // Until another place is declared.
    let elsewhere = with(to_c, "endpoint", "192.0.2.251:51820");
    let applied = a.apply(all(vec![overlay(1), to_b.clone(), elsewhere.clone()])).converged();
    assert_eq!(applied.outcome_of("peer-3"), "changed");
    assert_eq!(of_peer(&a, &key_c)[1], "192.0.2.251:51820");
    a.apply(all(vec![overlay(1), to_b.clone(), elsewhere.clone()])).idle();

    // The store brings everything back, with the same key.
    a.reboot();
    assert_eq!(dump(&a), "");
    let report = host(&a, &["reconcile"]);
    assert_eq!(report["outcome"], "converged", "{report}");
    for id in ["vpn", "peer-2", "peer-3"] {
        assert_eq!(outcome(&report, id), "corrected", "{id}: {report}");
    }
    assert_eq!(public_key(&a), key_a);
    a.run(["ping", "-c", "1", "-W", "9", "10.99.0.2"]).ok();
    idle(&host(&a, &["reconcile"]), "after a reboot");

    a.apply(all(vec![])).converged();
    assert_eq!(dump(&a), "");
    assert!(!a.exists("/sys/class/net/wg0"));
    assert!(!a.exists("/var/lib/mesh-host/overlay/wg0.key"));
    a.apply(all(vec![])).idle();
    let gone = || a.run(["pgrep", "wireguard-go"]).code() == 1;
    assert!(until(Duration::from_secs(10), gone), "wireguard-go ends with its interface");
}

// R-3, R-2
#[test]
fn what_was_changed_by_hand_is_brought_back() {
    if lab::skipped() {
        return;
    }
    let a = machine("a");
    let held = with(with(peer(7, KEY), "preshared_key", SHARED), "persistent_keepalive_s", 25);
    let silent = with(peer(8, OTHER), "endpoint", "192.0.2.77:51820");
    let declared = all(vec![overlay(1), held, silent]);
    a.apply(&declared).converged();
    let good = (dump(&a), addresses(&a));
    assert!(good.1.contains("10.99.0.1/24") && good.1.contains("fd99::1/64"), "{}", good.1);
    for (drift, id, words) in [
        ("wg set wg0 listen-port 51999", "vpn", "listens on port 51999, not 51820"),
        ("wg genkey >/k; wg set wg0 private-key /k", "vpn", "not the key that is kept"),
        ("ip link set dev wg0 mtu 1300", "vpn", "largest packet is 1300, not 1380"),
        ("ip link set dev wg0 down", "vpn", "it is down"),
        ("ip address add 10.98.0.1/24 dev wg0", "vpn", "has the address 10.98.0.1/24"),
        ("ip address del 10.99.0.1/24 dev wg0", "vpn", "has not the address 10.99.0.1/24"),
        ("ip address del fd99::1/64 dev wg0", "vpn", "has not the address fd99::1/64"),
        ("chmod 644 /var/lib/mesh-host/overlay/wg0.key", "vpn", "others than root"),
        ("ip link del dev wg0", "vpn", "absent"),
        (&format!("wg set wg0 peer {KEY} remove"), "peer-7", "absent"),
        (&format!("wg set wg0 peer {KEY} allowed-ips 10.0.0.0/8"), "peer-7", "10.0.0.0/8 is"),
        (
            &format!("wg set wg0 peer {OTHER} allowed-ips 10.99.0.7/32"),
            "peer-7",
            "10.99.0.7/32 is not behind it",
        ),
        (&format!("wg set wg0 peer {KEY} persistent-keepalive 0"), "peer-7", "is 0 s, not 25 s"),
        (&format!("wg set wg0 peer {KEY} preshared-key /dev/null"), "peer-7", "preshared key"),
        (&format!("wg set wg0 peer {OTHER} endpoint 192.0.2.9:7"), "peer-8", "is 192.0.2.9:7, not"),
    ] {
        a.sh(drift).ok();
        let report = host(&a, &["reconcile"]);
        assert_eq!(report["outcome"], "converged", "{drift}: {report}");
        assert_eq!(outcome(&report, id), "corrected", "{drift}: {report}");
        assert!(detail(&report, id).contains(words), "{drift}: {report}");
        assert_eq!((dump(&a), addresses(&a)), good, "{drift}");
        idle(&host(&a, &["reconcile"]), drift);
    }
    // The key of an interface that lost its file is kept anew, not made anew.
    a.sh("rm /var/lib/mesh-host/overlay/wg0.key").ok();
    host(&a, &["reconcile"]);
    assert_eq!(dump(&a), good.0);
    assert_eq!(a.stat("/var/lib/mesh-host/overlay/wg0.key", "%a %u"), "600 0");

    // A peer that nobody declared, and what else of the interface nobody did, is left alone.
    let stranger = a.sh("wg genkey | wg pubkey").ok().stdout();
    a.sh(&format!("wg set wg0 fwmark 7 peer {stranger} allowed-ips 10.50.0.0/24")).ok();
    a.apply(&declared).idle();
    assert!(!of_peer(&a, stranger.trim()).is_empty());
}

// R-2, R-9
#[test]
fn a_changed_declaration_is_followed_and_a_dry_run_does_nothing() {
    if lab::skipped() {
        return;
    }
    let a = machine("a");
    let planned = |declared: &Value| {
        a.write("/root/planned.json", declared.to_string());
        host(&a, &["plan", "/root/planned.json"])
    };
    let declared = all(vec![overlay(1), peer(7, KEY)]);
    let plan = planned(&declared);
    assert_eq!(plan["errors"], json!([]), "{plan}");
    assert_eq!(outcome(&plan, "vpn"), "created");
    assert!(detail(&plan, "peer-7").contains("unknown until overlay:wg0"), "{plan}");
    assert!(!a.exists("/sys/class/net/wg0"));
    assert!(!a.exists("/var/lib/mesh-host"));
    a.apply(&declared).converged();

    let moved = with(overlay(1), "addresses", json!(["10.99.0.9/16", "10.99.0.10/16"]));
    let moved = with(with(moved, "listen_port", 51821), "mtu", 1400);
    let other = with(peer(7, KEY), "allowed_ips", json!([]));
    let changed = all(vec![moved, with(other, "preshared_key", SHARED)]);
    let plan = planned(&changed);
    assert_eq!(outcome(&plan, "vpn"), "changed", "{plan}");
    assert_eq!(of_peer(&a, KEY)[0], "(none)");
    let key = public_key(&a);
    let applied = a.apply(&changed).converged();
    assert_eq!(applied.outcome_of("peer-7"), "changed");
    a.apply(&changed).idle();
    let found = addresses(&a);
    assert!(found.contains("10.99.0.9/16 10.99.0.10/16") && !found.contains("fd99"), "{found}");
    assert_eq!(public_key(&a), key);
    let fields = of_peer(&a, KEY);
    assert_eq!((&*fields[0], &*fields[2]), (SHARED, "(none)"));
    // The id names nothing on the machine.
    let renamed = changed.to_string().replace("\"vpn\"", "\"mesh\"");
    let applied = a.apply(&renamed).idle();
    assert_eq!(applied.report["removed"], 0);
    assert_eq!(a.read("/var/lib/mesh-host/overlay/wg0.key").len(), 45);
    let told = a.sh("cat /var/lib/mesh-host/journal.jsonl; journalctl -o cat").ok().stdout();
    let private = a.read("/var/lib/mesh-host/overlay/wg0.key");
    assert!(!told.contains(private.trim()) && !told.contains(SHARED));
    assert!(!applied.report.to_string().contains(SHARED));

    // A plan to let go of it all names what goes.
    let plan = planned(&all(vec![]));
    assert_eq!(outcome(&plan, "mesh"), "removed", "{plan}");
    assert!(a.exists("/sys/class/net/wg0"));
}

// R-4, R-5
#[test]
fn a_tool_that_lies_or_fails_is_found_out() {
    if lab::skipped() {
        return;
    }
    let a = machine("a");
    let declared = all(vec![overlay(1), peer(7, KEY)]);
    for (tool, lie, stage, id, words) in [
        ("ip", "'link add'*) exit 0;;", "step", "vpn", "Unable to modify interface"),
        ("ip", "'address replace'*) exit 0;;", "read_back", "vpn", "has not the address"),
        ("ip", "'link set'*) exit 0;;", "read_back", "vpn", "it is down"),
        ("wg", "addconf*) exit 0;;", "read_back", "vpn", "has not the key"),
        ("ip", "'link add'*) echo Broken. >&2; exit 2;;", "step", "vpn", "exited 2: \"Broken.\""),
        ("ip", "-j*) echo '[{'; exit 0;;", "observe", "vpn", "ip's answer is not understood"),
        ("wg", "show*) echo a b; exit 0;;", "observe", "vpn", "line 1 of wg's answer has 1 fields"),
        ("wg", "show*) echo secret; exit 1;;", "observe", "vpn", "wg ended with Exited(1)"),
    ] {
        intercept(&a, tool, lie);
        let applied = a.apply(&declared).failed();
        real(&a, tool);
        assert_eq!(applied.report["errors"][0]["stage"], stage, "{lie}: {}", cause(&applied));
        assert_eq!(applied.outcome_of(id), "failed", "{lie}: {}", cause(&applied));
        assert!(cause(&applied).contains(words), "{lie}: {}", cause(&applied));
        a.apply(all(vec![])).converged();
        assert_eq!(dump(&a), "", "{lie}");
    }
    a.apply(all(vec![overlay(1)])).converged();
    intercept(&a, "wg", "addconf*) exit 0;;");
    let applied = a.apply(&declared).failed();
    assert_eq!(applied.report["errors"][0]["stage"], "read_back");
    real(&a, "wg");
    a.apply(&declared).converged();
    intercept(&a, "wg", "*remove) exit 0;;");
    let applied = a.apply(all(vec![overlay(1)])).failed();
    assert!(cause(&applied).contains("it is there"), "{}", cause(&applied));
    real(&a, "wg");
    a.apply(all(vec![overlay(1)])).converged();

    // Neither the kernel nor anything else can make one.
    a.apply(all(vec![])).converged();
    a.sh("mv /usr/bin/wireguard-go /away").ok();
    if a.run(["ip", "link", "add", "dev", "probe", "type", "wireguard"]).code() != 0 {
        let applied = a.apply(&declared).failed();
        let why = cause(&applied);
        assert!(why.contains("no WireGuard") && why.contains("wireguard-go"), "{why}");
        assert_eq!(applied.outcome_of("peer-7"), "not_reached");
        a.write("/usr/bin/wireguard-go", "#!/bin/sh\necho the tunnel is blocked >&2\nexit 3\n");
        a.run(["chmod", "755", "/usr/bin/wireguard-go"]).ok();
        let why = cause(&a.apply(&declared).failed());
        assert!(why.contains("the tunnel is blocked"), "{why}");
    }
}

// R-6, R-3
#[test]
fn the_host_killed_anywhere_leaves_what_the_next_pass_finishes() {
    if lab::skipped() {
        return;
    }
    let a = machine("a");
    let declared = all(vec![overlay(1), with(peer(7, KEY), "endpoint", "192.0.2.77:51820")]);
    for (tool, at) in [
        ("ip", "'link add'*)"),
        ("systemd-run", "*)"),
        ("wg", "'addconf wg0'*)"),
        ("ip", "'link set'*)"),
        ("ip", "'address replace fd99'*)"),
        ("wg", "'addconf wg0'*) test -e /once || { touch /once; exec /usr/bin/wg \"$@\"; };"),
    ] {
        for when in ["before", "after"] {
            let real_tool = a.sh(&format!("command -v {tool}")).ok().stdout();
            let before = match when {
                "before" => String::new(),
                _ => format!("{} \"$@\";", real_tool.trim()),
            };
            intercept(&a, tool, &format!("{at} {before} kill -9 $PPID; exit 1;;"));
            let killed = a.apply(&declared);
            real(&a, tool);
            if tool != "systemd-run" || killed.code() != 0 {
                assert_eq!(killed.code(), 137, "{tool} {at} {when}: {}", killed.stderr());
            }
            a.apply(&declared).converged();
            a.apply(&declared).idle();
            assert_eq!(of_peer(&a, KEY)[1], "192.0.2.77:51820", "{tool} {at} {when}");
            let applied = a.apply(all(vec![])).converged();
            assert_eq!(applied.report["removed"], 2, "{tool} {at} {when}: it was ours");
            a.sh("rm -f /once").ok();
            assert!(!a.exists("/var/lib/mesh-host/overlay/wg0.key"), "{tool} {at} {when}");
            assert!(!a.exists("/sys/class/net/wg0"), "{tool} {at} {when}");
        }
    }
}

// R-6, R-9
#[test]
fn the_host_killed_while_it_lets_go_leaves_what_the_next_pass_finishes() {
    if lab::skipped() {
        return;
    }
    let a = machine("a");
    let declared = all(vec![overlay(1), peer(7, KEY)]);
    for (tool, at) in [("wg", "*remove)"), ("ip", "'link del'*)")] {
        for does in ["", "\"$real\" \"$@\";"] {
            a.apply(&declared).converged();
            let real_tool = a.sh(&format!("command -v {tool}")).ok().stdout();
            let does = does.replace("$real", real_tool.trim());
            intercept(&a, tool, &format!("{at} {does} kill -9 $PPID; exit 1;;"));
            let killed = a.apply(all(vec![]));
            real(&a, tool);
            assert_eq!(killed.code(), 137, "{tool} {does}: {}", killed.stderr());
            a.apply(all(vec![])).converged();
            a.apply(all(vec![])).idle();
            assert!(!a.exists("/sys/class/net/wg0"), "{tool} {does}");
            assert!(!a.exists("/var/lib/mesh-host/overlay/wg0.key"), "{tool} {does}");
            assert_eq!(host(&a, &["owned"])["owned"], json!([]), "{tool} {does}");
        }
    }
}

// R-16
#[test]
fn an_interface_outlives_whatever_the_host_runs_in() {
    if lab::skipped() {
        return;
    }
    let a = machine("a");
    a.write("/root/all.json", all(vec![overlay(1), peer(7, KEY)]).to_string());
    let run = ["systemd-run", "--wait", "--quiet", "--unit=once", HOST, "apply", "/root/all.json"];
    a.run(run).ok();
    assert!(!of_peer(&a, KEY).is_empty(), "the unit has ended, and its processes with it");
    if a.run(["pgrep", "wireguard-go"]).code() == 0 {
        let unit = a.sh("cat /proc/$(pgrep wireguard-go)/cgroup").ok().stdout();
        assert!(unit.contains("mesh-overlay-wg0-"), "{unit}");
    }
}

// R-9
#[test]
fn what_was_there_before_is_taken_over_and_left() {
    if lab::skipped() {
        return;
    }
    let a = machine("a");
    a.sh(&format!(
        "wireguard-go wg0 || ip link add dev wg0 type wireguard
         wg genkey >/k; wg set wg0 private-key /k peer {KEY} allowed-ips 10.99.0.7/32
         ip address add 10.99.0.1/24 dev wg0; ip link set dev wg0 up"
    ))
    .ok();
    let key = a.sh("wg pubkey </k").ok().stdout().trim().to_string();
    let plain = json!({"id": "vpn", "type": "overlay", "interface": "wg0",
                       "addresses": ["10.99.0.1/24"]});
    let declared = all(vec![plain, with(peer(7, KEY), "endpoint", "192.0.2.77:51820")]);
    let applied = a.apply(&declared).converged();
    assert_eq!(applied.outcome_of("vpn"), "changed");
    a.apply(&declared).idle();
    assert_eq!(public_key(&a), key, "its peers know it by that");
    assert_eq!(a.read("/var/lib/mesh-host/overlay/wg0.key"), a.read("/k"));
    let applied = a.apply(all(vec![])).converged();
    assert_eq!(applied.outcome_of("vpn"), "forgotten");
    assert_eq!(applied.outcome_of("peer-7"), "forgotten");
    assert_eq!(of_peer(&a, KEY)[1], "192.0.2.77:51820");
    assert!(!a.exists("/var/lib/mesh-host/overlay/wg0.key"));

    // An interface of another kind is not.
    a.sh("ip link del dev wg0; ip link add dev wg0 type veth peer name other").ok();
    let applied = a.apply(&declared).failed();
    assert!(cause(&applied).contains("of kind veth"), "{}", cause(&applied));
    assert_eq!(applied.report["errors"][0]["stage"], "observe");
    a.sh("ip link del dev wg0; ip tuntap add dev wg0 mode tun").ok();
    let applied = a.apply(&declared).failed();
    assert!(cause(&applied).contains("wg does not know it"), "{}", cause(&applied));
}

// R-3, R-15
#[test]
fn a_private_key_may_have_a_file_of_its_own() {
    if lab::skipped() {
        return;
    }
    let a = machine("a");
    let declared = |path: &str| all(vec![with(overlay(1), "private_key_file", path)]);
    let applied = a.apply(declared("/etc/vpn/key")).failed();
    assert!(cause(&applied).contains("/etc/vpn is not there"), "{}", cause(&applied));
    a.sh("mkdir /etc/vpn; wg genkey >/etc/vpn/key; chmod 644 /etc/vpn/key").ok();
    let given = a.read("/etc/vpn/key");
    a.apply(declared("/etc/vpn/key")).converged();
    a.apply(declared("/etc/vpn/key")).idle();
    assert_eq!(a.read("/etc/vpn/key"), given);
    assert_eq!(a.stat("/etc/vpn/key", "%a %u"), "600 0");
    assert_eq!(public_key(&a), a.sh("wg pubkey </etc/vpn/key").ok().stdout().trim());
    // Another is put there by hand.
    a.sh("wg genkey >/etc/vpn/key").ok();
    let report = host(&a, &["reconcile"]);
    assert_eq!(outcome(&report, "vpn"), "corrected", "{report}");
    assert_eq!(public_key(&a), a.sh("wg pubkey </etc/vpn/key").ok().stdout().trim());
    host(&a, &["reconcile"]);
    // It moves along to where it is declared next, so that the peers still know it.
    let key = public_key(&a);
    a.apply(declared("/etc/vpn/next")).converged();
    assert_eq!(public_key(&a), key);
    assert_eq!(a.read("/etc/vpn/next"), a.read("/etc/vpn/key"));
    for (bad, words) in [("no key", "does not hold a WireGuard key"), ("", "does not hold")] {
        a.write("/etc/vpn/next", bad);
        let applied = a.apply(declared("/etc/vpn/next")).failed();
        assert!(cause(&applied).contains(words), "{}", cause(&applied));
    }
    a.sh("rm /etc/vpn/next; ln -s /etc/vpn/key /etc/vpn/next").ok();
    let applied = a.apply(declared("/etc/vpn/next")).failed();
    assert!(cause(&applied).contains("no regular file"), "{}", cause(&applied));
    // By a link on the way, to the host's own.
    a.sh("ln -s /var/lib/mesh-host /etc/own").ok();
    let applied = a.apply(declared("/etc/own/secrets/key"));
    assert_eq!(applied.code(), 3, "{}", applied.stderr());
    a.sh("rm /etc/vpn/next").ok();
    a.apply(all(vec![])).converged();
    assert!(a.exists("/etc/vpn/key"), "the place was a person's choice");
}

// R-2
#[test]
fn five_hundred_peers_cost_two_processes() {
    if lab::skipped() {
        return;
    }
    let a = machine("a");
    let keys = a.sh("for i in $(seq 500); do wg genkey | wg pubkey; done").ok().stdout();
    let peers = keys.lines().zip(0..).map(|(key, nth)| {
        let networks = [format!("10.{}.{}.0/24", 100 + nth / 250, nth % 250)];
        json!({"id": format!("p{nth}"), "type": "peer", "overlay": "vpn", "public_key": key,
               "allowed_ips": networks, "endpoint": format!("192.0.2.9:{}", 20_000 + nth)})
    });
    let mut resources: Vec<Value> = [overlay(1)].into_iter().chain(peers).collect();
    let declared = all(resources.clone());
    let began = std::time::Instant::now();
    let applied = a.apply(&declared).converged();
    eprintln!("501 resources made in {:?}", began.elapsed());
    assert_eq!(applied.report["changed"], 501);
    a.write("/root/all.json", declared.to_string());
    let trace = format!(
        "strace -qq -f -e trace=execve -o /root/trace {HOST} --json apply /root/all.json >/dev/null
         grep -c 'execve.* = 0$' /root/trace"
    );
    let count: u32 = a.sh(&trace).ok().stdout().trim().parse().unwrap();
    assert_eq!(count - 1, 2, "{}", a.read("/root/trace"));
    let began = std::time::Instant::now();
    a.apply(&declared).idle();
    eprintln!("nothing to do in {:?}", began.elapsed());

    // The networks of one take more than an argument may be long.
    let many = (0..12_000).map(|nth| format!("11.{}.{}.0/24", nth / 250, nth % 250));
    resources.push(with(peer(9, KEY), "allowed_ips", many.collect::<Vec<_>>()));
    let declared = all(resources);
    assert_eq!(a.apply(&declared).converged().outcome_of("peer-9"), "created");
    a.apply(&declared).idle();
}

// R-9
#[test]
fn a_mounted_tree_has_no_interfaces() {
    if lab::skipped() {
        return;
    }
    let a = machine("a");
    a.sh("mkdir -p /mnt/etc").ok();
    let declared = all(vec![overlay(1), peer(7, KEY)]);
    let applied = a.apply_with(&["--root", "/mnt"], &declared).converged();
    assert_eq!(applied.outcome_of("vpn"), "not_applicable");
    assert_eq!(applied.outcome_of("peer-7"), "not_applicable");
    assert_eq!(dump(&a), "");
    assert!(!a.exists("/sys/class/net/wg0"));
}
