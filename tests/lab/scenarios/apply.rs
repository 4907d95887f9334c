//! The host itself on a whole machine: what it declares converged is asked of the machine, by the
//! machine's own tools.

use lab::{host_binary, Lab, Lack, Machine};
use serde_json::{json, Value};
use std::fs;
use std::path::{Path, PathBuf};

const KEY: &str = "net.ipv4.conf.all.log_martians";
const SECRET: &str = "canary-of-the-lab";

/// A machine with the host where its package would put it.
fn machine(name: &str) -> Machine {
    let machine = Lab::machine(name);
    machine.place_host(&host_binary().unwrap());
    machine
}

fn everything() -> Value {
    json!({"version": 1, "resources": [
        {"id": "place", "type": "directory", "path": "/srv/shop/data", "mode": "0750",
         "owner": "daemon", "group": "adm"},
        {"id": "greeting", "type": "file", "path": "/srv/shop/data/greeting",
         "content": "welcome\n", "mode": "0640", "owner": "daemon"},
        {"id": "key", "type": "file", "path": "/srv/shop/key", "content": SECRET, "secret": true},
        {"id": "now", "type": "symlink", "path": "/srv/shop/now", "target": "data/greeting"},
        {"id": "martians", "type": "sysctl", "key": KEY, "value": "1"},
    ]})
}

fn kernel(machine: &Machine) -> String {
    machine.run(["sysctl", "-n", KEY]).ok().stdout()
}

#[track_caller]
fn assert_everything_is_so(machine: &Machine) {
    assert_eq!(machine.stat("/srv", "%F %a %U:%G"), "directory 755 root:root");
    assert_eq!(machine.stat("/srv/shop/data", "%F %a %U:%G"), "directory 750 daemon:adm");
    assert_eq!(
        machine.stat("/srv/shop/data/greeting", "%F %a %U:%G"),
        "regular file 640 daemon:root"
    );
    assert_eq!(machine.read("/srv/shop/data/greeting"), "welcome\n");
    assert_eq!(machine.stat("/srv/shop/key", "%F %a %U:%G"), "regular file 600 root:root");
    assert_eq!(machine.read("/srv/shop/key"), SECRET);
    assert_eq!(machine.run(["readlink", "/srv/shop/now"]).ok().stdout(), "data/greeting");
    assert_eq!(kernel(machine), "1");
}

/// What changes when the host writes anything at all.
fn writes(machine: &Machine) -> String {
    let script = "cd /var/lib/mesh-host; find . /srv -printf '%p %i %C@ %s\\n' | sort";
    machine.sh(script).ok().stdout()
}

fn host(machine: &Machine, command: &str) -> Value {
    let ran = machine.run(["/usr/bin/nox-mesh-host", "--json", command]).ok();
    serde_json::from_slice(ran.bytes()).unwrap()
}

/// The ids that a report lists with another outcome than `unchanged`, with that outcome.
fn told(report: &Value) -> Vec<String> {
    let all = report["resources"].as_array().unwrap().iter();
    let all = all.map(|it| (it["id"].as_str().unwrap(), it["outcome"].as_str().unwrap()));
    let others = all.filter(|(_, outcome)| *outcome != "unchanged");
    others.map(|(id, outcome)| format!("{id} {outcome}")).collect()
}

//
#[test]
fn a_machine_is_what_was_declared_and_is_brought_back_to_it() {
    if lab::skipped() {
        return;
    }
    let web = machine("web");
    assert_eq!(kernel(&web), "0");
    let applied = web.apply(everything()).converged();
    assert_eq!(applied.outcome_of("greeting"), "created");
    assert_eq!(applied.outcome_of("martians"), "changed");
    assert_everything_is_so(&web);

    let before = writes(&web);
    web.apply(everything()).idle();
    assert_eq!(told(&host(&web, "reconcile")), Vec::<String>::new());
    assert_eq!(writes(&web), before, "a run with nothing to do writes nothing");

    web.sh(&format!(
        "echo else >/srv/shop/data/greeting; chmod 777 /srv/shop/data; chown games /srv/shop/key
         ln -sfn /etc/passwd /srv/shop/now; sysctl -qw {KEY}=0"
    ))
    .ok();
    let report = host(&web, "reconcile");
    let wanted =
        ["place", "greeting", "key", "now", "martians"].map(|id| format!("{id} corrected"));
    assert_eq!(told(&report), wanted);
    assert_everything_is_so(&web);
    web.sh("rm -r /srv/shop").ok();
    host(&web, "reconcile");
    assert_everything_is_so(&web);

    // In the journal, what is running, or anything else that was written: nowhere but in its own.
    let found = web.run(["grep", "-rl", "--devices=skip", SECRET, "/var", "/etc", "/run", "/srv"]);
    let found = found.stdout();
    let ours =
        |path: &str| path == "/srv/shop/key" || path.starts_with("/var/lib/mesh-host/secrets/");
    assert!(found.contains("/srv/shop/key") && found.lines().all(ours), "{found}");
}

//
#[test]
fn what_a_reboot_takes_is_put_back() {
    if lab::skipped() {
        return;
    }
    let web = machine("web");
    web.apply(everything()).converged();
    web.reboot();
    assert_eq!(kernel(&web), "0", "the kernel of a new boot knows nothing of it");
    assert_eq!(told(&host(&web, "reconcile")), ["martians corrected"]);
    assert_everything_is_so(&web);
    web.power_cut();
    web.run(["/usr/bin/nox-mesh-host", "journal", "--verify"]).ok();
    assert_eq!(told(&host(&web, "reconcile")), ["martians corrected"]);
    web.apply(everything()).idle();
}

//
#[test]
fn what_was_made_goes_and_what_was_there_stays() {
    if lab::skipped() {
        return;
    }
    let web = machine("web");
    web.run(["sysctl", "-qw", "net.ipv4.conf.default.log_martians=1"]).ok();
    web.write("/etc/motd", "mine\n");
    let mut all = everything();
    let list = all["resources"].as_array_mut().unwrap();
    list.push(json!({"id": "motd", "type": "file", "path": "/etc/motd", "content": "theirs\n"}));
    let other = "net.ipv4.conf.default.log_martians";
    list.push(json!({"id": "other", "type": "sysctl", "key": other, "value": "0"}));
    web.apply(&all).converged();
    assert_eq!(web.run(["sysctl", "-n", other]).ok().stdout(), "0");

    let applied = web.apply(json!({"version": 1, "resources": []})).converged();
    assert_eq!(applied.outcome_of("greeting"), "removed");
    assert_eq!(applied.outcome_of("motd"), "forgotten");
    assert!(!web.exists("/srv/shop"), "parents made with it go with it");
    assert_eq!(web.stat("/srv", "%F %a %U:%G"), "directory 755 root:root");
    assert_eq!(web.read("/etc/motd"), "theirs\n");
    assert_eq!(kernel(&web), "0");
    assert_eq!(web.run(["sysctl", "-n", other]).ok().stdout(), "1");
    assert_eq!(host(&web, "owned")["owned"], json!([]));
    web.apply(json!({"version": 1, "resources": []})).idle();
}

//
#[test]
fn the_static_build_alone_makes_an_empty_root_match() {
    if lab::skipped() {
        return;
    }
    let Some(binary) = static_build() else {
        return lab::skip(&Lack::Machine("a build by `make static`".into()));
    };
    let web = Lab::machine("web");
    web.place(&binary, "/empty/host");
    let resources = json!([
        {"id": "d", "type": "directory", "path": "/etc/shop"},
        {"id": "f", "type": "file", "path": "/etc/shop/f", "content": "alone\n", "mode": "0600"},
        {"id": "l", "type": "symlink", "path": "/l", "target": "etc/shop/f"},
    ]);
    let declaration = json!({"version": 1, "resources": resources}).to_string();
    for made in [3, 0] {
        let host = web.command(["chroot", "/empty", "/host", "apply", "--json", "-"]);
        let report: Value =
            serde_json::from_slice(host.input(&declaration).run().ok().bytes()).unwrap();
        assert_eq!((&report["outcome"], &report["changed"]), (&json!("converged"), &json!(made)));
    }
    assert_eq!(web.read("/empty/l"), "alone\n");
    assert_eq!(web.stat("/empty/etc/shop/f", "%a %u:%g"), "600 0:0");
}

/// The newest binary that `make static` left.
fn static_build() -> Option<PathBuf> {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent()?;
    let triples = fs::read_dir(target).ok()?.flatten();
    let built = triples.map(|triple| triple.path().join("static/nox-mesh-host"));
    built.filter(|path| path.is_file()).max_by_key(|path| path.metadata().ok()?.modified().ok())
}
