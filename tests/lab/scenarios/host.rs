//! The host as a service of a real systemd: started, told of, killed, stopped in the middle of
//! something, hung, rebooted and cut off.

use lab::{eventually, host_binary, Lab, Machine};
use serde_json::{json, Value};
use std::time::Duration;

const HOST: &str = "/usr/bin/nox-mesh-host";
const UNIT: &str = "/usr/lib/systemd/system/nox-mesh-host.service";
const PRESET: &str = include_str!("../../../unit/80-nox-mesh-host.preset");
const LIMIT: Duration = Duration::from_secs(60);

/// A machine on which the host was installed without a package and is on by its preset.
fn machine(name: &str) -> Machine {
    let machine = Lab::machine(name);
    machine.place_host(&host_binary().unwrap());
    machine.sh(&format!("{HOST} unit > {UNIT}")).ok();
    machine.write("/usr/lib/systemd/system-preset/80-nox-mesh-host.preset", PRESET);
    machine.run(["systemctl", "daemon-reload"]).ok();
    machine.run(["systemctl", "preset", "nox-mesh-host"]).ok();
    machine.run(["systemctl", "start", "nox-mesh-host"]).ok();
    machine
}

fn told(machine: &Machine, property: &str) -> String {
    machine.run(["systemctl", "show", "--value", "-p", property, "nox-mesh-host"]).ok().stdout()
}

fn status(machine: &Machine) -> Value {
    let ran = machine.run([HOST, "status", "--json"]);
    serde_json::from_slice(ran.bytes()).unwrap_or(Value::Null)
}

/// Waits until the service waits, its last pass being one for `trigger`; its status.
fn rests(machine: &Machine, trigger: &str) -> Value {
    let mut said = Value::Null;
    eventually(&format!("a pass for {trigger}"), LIMIT, || {
        said = status(machine)["service"].clone();
        said["doing"] == "waiting" && said["last_pass"]["trigger"] == trigger
    });
    said
}

fn motd(content: &str) -> Value {
    let file = json!({"id": "motd", "type": "file", "path": "/etc/motd", "content": content});
    json!({"version": 1, "resources": [file]})
}

fn back(machine: &Machine) {
    eventually("the file is back", LIMIT, || machine.read("/etc/motd") == "right\n");
}

// R-16 R-17 R-19
#[test]
fn it_runs_from_boot_to_boot_comes_back_when_killed_and_listens_on_nothing() {
    if lab::skipped() {
        return;
    }
    let web = machine("web");
    assert_eq!(told(&web, "Type"), "notify");
    assert_eq!(told(&web, "ActiveState"), "active", "it is ready before its first pass");
    assert_eq!(told(&web, "UnitFileState"), "enabled");
    rests(&web, "start");
    assert!(told(&web, "StatusText").starts_with("waiting; last pass converged"));
    web.apply(motd("right\n")).converged();
    rests(&web, "command");
    web.write("/etc/motd", "wrong\n");
    back(&web);
    rests(&web, "drift");
    let ask = "journalctl -u nox-mesh-host -p notice..notice -o cat | grep corrected";
    assert!(web.sh(ask).ok().stdout().contains("corrected file motd (local)"));
    let pid = told(&web, "MainPID");
    // It holds no descriptor of a socket, and so nothing of it can listen.
    let sockets =
        web.sh(&format!("ls -l /proc/{pid}/fd | grep -v 'fd/2\\|[12] ->' | grep socket:"));
    let all = sockets.stdout();
    assert!(all.lines().count() <= 1, "the one to the manager at most:\n{all}");
    let listeners = web.sh("ss -Hlxntup").ok().stdout();
    assert!(!listeners.contains("nox-mesh-host"), "{listeners}");

    web.run(["kill", "-9", &pid]).ok();
    web.write("/etc/motd", "wrong\n");
    eventually("another process", LIMIT, || !["0", &pid].contains(&&*told(&web, "MainPID")));
    back(&web);
    rests(&web, "start");

    web.run(["systemctl", "reload", "nox-mesh-host"]).ok();
    rests(&web, "command");

    web.write("/etc/motd", "wrong\n");
    web.reboot();
    back(&web);
    rests(&web, "start");
    web.power_cut();
    web.write("/etc/motd", "wrong\n");
    back(&web);
    assert_eq!(told(&web, "NRestarts"), "0");
    assert_eq!(status(&web)["as_declared"], true);
}

/// A bundle with an action that takes some seconds and leaves a mark, and a file after it.
const SLOW: &str = r#"{"version":1,"resources":[
  {"id":"slow","type":"action","run":["sh","-c","touch /root/begun; sleep 4; touch /root/done"],
   "verify":["test","-e","/root/done"]},
  {"id":"motd","type":"file","path":"/etc/motd","content":"right\n"}]}"#;

fn begin_slowly(web: &Machine) {
    web.run(["rm", "-f", "/root/done", "/root/begun"]).ok();
    web.write("/etc/motd", "wrong\n");
    web.run(["systemctl", "kill", "-s", "HUP", "--kill-who=main", "nox-mesh-host"]).ok();
    eventually("the action has begun", LIMIT, || web.exists("/root/begun"));
}

// R-16 R-4
#[test]
fn a_stop_in_the_middle_of_a_step_lets_it_finish_and_begins_nothing_else() {
    if lab::skipped() {
        return;
    }
    let web = machine("web");
    web.write("/etc/mesh-host/substrate.lock", SLOW);
    let applied = web.command([HOST, "apply", "--bundle"]).within(LIMIT).run();
    applied.ok();
    web.run(["systemctl", "stop", "nox-mesh-host"]).ok();
    web.write("/etc/motd", "wrong\n");
    web.run(["systemctl", "start", "nox-mesh-host"]).ok();
    back(&web);
    rests(&web, "start");
    begin_slowly(&web);
    web.run(["systemctl", "stop", "nox-mesh-host"]).ok();
    assert!(web.exists("/root/done"), "what was in hand is finished");
    assert_eq!(told(&web, "Result"), "success");
    assert_eq!(web.read("/etc/motd"), "wrong\n", "nothing else is begun");
    let last = web.run([HOST, "journal", "-n", "1"]).ok().stdout();
    assert!(last.contains("pass") && last.contains("(command)"), "{last}");
    assert!(web.run(["pgrep", "-f", "nox-mesh-host"]).code() == 1, "nothing of it is left");
    web.run(["systemctl", "start", "nox-mesh-host"]).ok();
    back(&web);

    // Killed in the middle, it takes the pass along, and the next one begins where it fell.
    rests(&web, "start");
    begin_slowly(&web);
    web.run(["systemctl", "kill", "-s", "KILL", "--kill-who=main", "nox-mesh-host"]).ok();
    eventually("it is made whole", LIMIT, || web.exists("/root/done"));
    back(&web);
    rests(&web, "start");
    web.run([HOST, "journal", "--verify"]).ok();
}

// R-16
#[test]
fn a_service_that_hangs_is_started_anew_by_the_watchdog_and_one_with_a_slow_pass_is_not() {
    if lab::skipped() {
        return;
    }
    let web = machine("web");
    web.write("/etc/systemd/system/nox-mesh-host.service.d/t.conf", "[Service]\nWatchdogSec=2s\n");
    web.run(["systemctl", "daemon-reload"]).ok();
    web.run(["systemctl", "restart", "nox-mesh-host"]).ok();
    rests(&web, "start");
    web.write("/etc/mesh-host/substrate.lock", SLOW);
    let applied = web.command([HOST, "apply", "--bundle"]).within(LIMIT).run();
    applied.ok();
    rests(&web, "command");
    begin_slowly(&web);
    back(&web);
    assert_eq!(told(&web, "NRestarts"), "0", "twice the watchdog's time have passed");
    let pid = told(&web, "MainPID");
    web.run(["kill", "-STOP", &pid]).ok();
    eventually("another process", LIMIT, || !["0", &pid].contains(&&*told(&web, "MainPID")));
    web.write("/etc/motd", "wrong\n");
    back(&web);
    assert_eq!(told(&web, "NRestarts"), "1");
}
