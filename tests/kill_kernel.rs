//! The host is killed around what is no file: a kernel parameter and a command, on the machine
//! itself, in a network namespace of its own.

mod support;

use std::fs;
use std::process::{Command, Output};

use serde_json::Value;
use support::site::{told, Site, HOST};
use support::strace::can_trace;
use support::{has, skip, Lacks};

/// Runs the host under strace with what is injected, and looks; then again to its end; then lets
/// go. What it says of each is kept in files.
const SCRIPT: &str = r#"
    set -e
    at=$1; inject=$2; host=$3
    key=/proc/sys/net/ipv4/ip_forward
    look() { cat $key >"$at/$1.value"; "$host" owned --json --state "$at/state" >"$at/$1.owned"; }
    echo 0 >$key
    strace -qq -o "$at/trace" --trace=write,pwrite64,fdatasync,openat $inject -- \
        "$host" apply --bundle "$at/bundle" --state "$at/state" >/dev/null || true
    look broken
    "$host" apply --bundle "$at/bundle" --state "$at/state" >/dev/null
    look again
    "$host" apply --bundle "$at/empty" --state "$at/state" >/dev/null
    look released"#;

fn run(site: &Site, inject: &str) -> Output {
    let mut script = Command::new("unshare");
    script.args(["-n", "sh", "-c", SCRIPT, "sh"]).arg(site.path()).arg(inject).arg(HOST);
    script.env_remove("LD_LIBRARY_PATH").output().unwrap()
}

fn site() -> Site {
    let site = Site::new();
    let mark = site.root().join("mark");
    let resources = format!(
        r#"{{"id":"forward","type":"sysctl","key":"net.ipv4.ip_forward","value":"1"}},
        {{"id":"mark","type":"action","run":["touch",{mark:?}],"verify":["test","-e",{mark:?}]}}"#
    );
    site.declare("bundle", &resources);
    site.declare("empty", "");
    site
}

fn value(site: &Site, when: &str) -> String {
    fs::read_to_string(site.path().join(format!("{when}.value"))).unwrap().trim().into()
}

fn owned(site: &Site, when: &str) -> Vec<Value> {
    let text = fs::read(site.path().join(format!("{when}.owned"))).unwrap();
    let said: Value = serde_json::from_slice(&text).unwrap();
    said["owned"].as_array().unwrap().clone()
}

// R-6 R-9 R-12
#[test]
fn a_kernel_parameter_and_an_action_may_be_killed_anywhere() {
    let name = "a_kernel_parameter_and_an_action_may_be_killed_anywhere";
    if !has("unshare", name) || !can_trace(name) {
        return;
    }
    let whole = site();
    let output = run(&whole, "");
    if !output.status.success() && told(&output).contains("unshare") {
        return skip(name, &Lacks::Machine("the privilege of a network namespace"));
    }
    assert!(output.status.success(), "{}", told(&output));
    let trace = fs::read_to_string(whole.path().join("trace")).unwrap();
    let mut killed = 0;
    for call in ["write", "pwrite64", "fdatasync"] {
        let count = trace.lines().filter(|line| line.starts_with(&format!("{call}("))).count();
        for nth in 1..=count {
            let site = site();
            let output = run(&site, &format!("--inject={call}:signal=KILL:when={nth}"));
            let at = format!("killed at {call} {nth}: {}", told(&output));
            assert!(output.status.success(), "{at}");
            for holding in owned(&site, "broken") {
                let is_sysctl = holding["type"] == "sysctl" && holding["pending"] != true;
                assert!(!is_sysctl || value(&site, "broken") == "1", "{at}");
            }
            assert_eq!(value(&site, "again"), "1", "{at}");
            assert_eq!(owned(&site, "again").len(), 2, "{at}");
            assert!(owned(&site, "again").iter().all(|it| it["pending"] != true), "{at}");
            assert_eq!(value(&site, "released"), "0", "what was found is put back, {at}");
            assert!(owned(&site, "released").is_empty(), "{at}");
            assert!(site.root().join("mark").exists(), "{at}");
            killed += 1;
        }
    }
    assert!(killed > 6, "{killed}: {trace}");
}
