//! Users and groups on a whole machine, made by its own tools and asked of its own tools.

use lab::{host_binary, Lab, Lack, Machine};
use serde_json::{json, Value};
use std::path::Path;
use std::time::Duration;

const HOST: &str = "/usr/bin/nox-mesh-host";
const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA alice";
const KEYS: &str = "/home/alice/.ssh/authorized_keys";
/// Where a tool of that name is found before the machine's own.
const BEFORE: &str = "/usr/local/sbin";

/// A machine with the host where its package would put it.
fn machine() -> Machine {
    let machine = Lab::machine("web");
    machine.place_host(&host_binary().unwrap());
    machine
}

fn declared(resources: &[Value]) -> Value {
    json!({"version": 1, "resources": resources})
}

fn shop() -> Value {
    json!({"id": "shop", "type": "group", "name": "shop", "gid": 1500})
}

fn alice() -> Value {
    json!({"id": "alice", "type": "user", "name": "alice", "group": "shop", "groups": ["adm"],
           "shell": "/bin/bash", "comment": "Alice", "authorized_keys": [KEY]})
}

fn greeting() -> Value {
    json!({"id": "greeting", "type": "file", "path": "/home/alice/greeting", "content": "hello\n",
           "mode": "0600", "owner": "alice", "group": "shop"})
}

fn all() -> Value {
    declared(&[shop(), alice(), greeting()])
}

/// Puts a program of this script before the machine's own tool.
fn stand_in(machine: &Machine, tool: &str, script: &str) {
    let path = format!("{BEFORE}/{tool}");
    machine.write(&path, format!("#!/bin/sh\n{script}\n"));
    machine.run(["chmod", "755", &path]).ok();
}

/// What the machine says when somebody logs in as the user.
fn log_in(machine: &Machine, user: &str) -> lab::Ran {
    machine.run(["su", user, "-s", "/bin/sh", "-c", "id -un; id -Gn; cat ~/greeting"])
}

fn host(machine: &Machine, command: &str) -> Value {
    let ran = machine.run([HOST, "--json", command]).ok();
    serde_json::from_slice(ran.bytes()).unwrap()
}

fn outcome(report: &Value, id: &str) -> String {
    let all = report["resources"].as_array().unwrap();
    let line = all.iter().find(|line| line["id"] == id).unwrap();
    line["outcome"].as_str().unwrap().to_owned()
}

// R-2, R-3, R-14
#[test]
fn a_user_made_here_owns_a_file_declared_after_it_and_is_brought_back() {
    if lab::skipped() {
        return;
    }
    let web = machine();
    let plan = web.command([HOST, "plan", "-"]).input(all().to_string()).run().ok().stdout();
    assert!(plan.contains("unknown until group:shop is there"), "{plan}");
    assert!(plan.contains("unknown until user:alice is there"), "{plan}");
    web.run(["getent", "passwd", "alice"]).fails();

    web.apply(all()).converged();
    assert_eq!(log_in(&web, "alice").ok().stdout(), "alice\nshop adm\nhello");
    assert_eq!(web.stat(KEYS, "%a %U:%G"), "600 alice:shop");
    assert_eq!(web.stat("/home/alice/.ssh", "%a %U:%G"), "700 alice:shop");
    assert_eq!(web.run(["passwd", "--status", "alice"]).ok().stdout().split(' ').nth(1), Some("L"));

    web.write("/all.json", all().to_string());
    let script =
        format!("strace -f -qq -e trace=execve -o /trace {HOST} apply /all.json; cat /trace");
    let ran = web.sh(&script).ok();
    assert_eq!(ran.stdout().matches("execve(").count(), 1, "{}", ran.story());
    web.apply(all()).idle();

    web.sh("usermod -s /bin/sh -c other -G daemon alice; : >/home/alice/.ssh/authorized_keys").ok();
    let report = host(&web, "reconcile");
    assert_eq!(outcome(&report, "alice"), "corrected");
    assert_eq!(log_in(&web, "alice").ok().stdout(), "alice\nshop adm\nhello");
    assert!(web.read(KEYS).contains(KEY));
    web.sh("userdel -r alice && groupdel shop").ok();
    host(&web, "reconcile");
    assert_eq!(log_in(&web, "alice").ok().stdout(), "alice\nshop adm\nhello");
}

// R-9
#[test]
fn who_is_let_go_of_cannot_log_in_until_declared_again() {
    if lab::skipped() {
        return;
    }
    let web = machine();
    web.apply(all()).converged();
    let applied = web.apply(declared(&[])).converged();
    assert_eq!((applied.outcome_of("alice"), applied.outcome_of("shop")), ("left", "left"));
    let refused = log_in(&web, "alice").fails().stderr();
    assert!(refused.contains("expired"), "{refused}");
    assert!(!web.exists(KEYS));
    assert_eq!(web.stat("/home/alice", "%U:%G"), "alice:shop", "the account is left");
    web.apply(declared(&[])).idle();

    let applied = web.apply(all()).converged();
    assert_eq!(applied.outcome_of("alice"), "created");
    log_in(&web, "alice").ok();
    web.apply(all()).idle();
    web.apply(declared(&[])).converged();
    log_in(&web, "alice").fails();
}

// R-9
#[test]
fn the_host_killed_in_the_middle_leaves_what_the_next_run_finishes() {
    if lab::skipped() {
        return;
    }
    let web = machine();
    // Between the account and its keys, and then within useradd, at each file that it replaces.
    let between = r#"/usr/sbin/useradd "$@"; kill -9 $PPID; sleep 9"#.to_owned();
    let within = (1..=6).map(|nth| {
        format!(
            "pid=$PPID; strace -f -qq -o /dev/null -e inject=rename:signal=KILL:when={nth} \
             /usr/sbin/useradd \"$@\"; kill -9 $pid; sleep 9"
        )
    });
    let bare = json!({"id": "alice", "type": "user", "name": "alice", "authorized_keys": [KEY]});
    for script in [between].into_iter().chain(within) {
        stand_in(&web, "useradd", &script);
        let cut = web.apply(declared(std::slice::from_ref(&bare)));
        assert_eq!(cut.code(), 128 + 9, "{script}: {}", cut.stderr());
        web.run(["rm", &format!("{BEFORE}/useradd")]).ok();
        let owned = host(&web, "owned");
        assert_eq!(owned["owned"][0]["object"], "user:alice", "an intent counts as owned: {owned}");
        web.apply(declared(std::slice::from_ref(&bare))).converged();
        web.apply(declared(std::slice::from_ref(&bare))).idle();
        web.sh("pwck -qr; getent group alice").ok();
        assert_eq!(web.run(["su", "alice", "-c", "id -un"]).ok().stdout(), "alice", "{script}");
        assert_eq!(web.stat("/home/alice", "%U:%G"), "alice:alice", "{script}");
        assert!(web.read(KEYS).contains(KEY), "{script}");
        assert_eq!(host(&web, "owned")["owned"][0]["made"], "created");
        web.apply(declared(&[])).converged();
        web.sh(
            "userdel -rf alice 2>&1; ! getent group alice || groupdel alice; ! getent passwd alice",
        )
        .ok();
    }
}

// R-3, R-4
#[test]
fn a_tool_that_lies_or_is_missing_or_waits_is_told() {
    if lab::skipped() {
        return;
    }
    let web = machine();
    for (tool, declaration, why) in [
        ("groupadd", declared(&[shop()]), "the steps reported success, yet absent"),
        ("useradd", all(), "no user \"alice\" in /etc/passwd"),
        ("usermod", all(), "the steps reported success, yet comment \"other\" → \"Alice\""),
    ] {
        stand_in(&web, tool, "exit 0");
        let said = web.apply(&declaration).failed().stderr();
        assert!(said.contains(why), "{tool}: {said}");
        web.run(["rm", &format!("{BEFORE}/{tool}")]).ok();
        web.apply(&declaration).converged();
        web.sh("! getent passwd alice || usermod -c other alice").ok();
    }
    web.apply(all()).converged();
    stand_in(&web, "usermod", "exit 0");
    let applied = web.apply(declared(&[])).failed();
    assert!(applied.stderr().contains("to be locked"), "{}", applied.stderr());
    web.run(["rm", &format!("{BEFORE}/usermod")]).ok();
    web.apply(declared(&[])).converged();

    let bob = declared(&[json!({"id": "bob", "type": "user", "name": "bob"})]);
    web.sh("mv /usr/sbin/useradd /usr/sbin/useradd.away").ok();
    let applied = web.apply(&bob).failed();
    assert!(applied.stderr().contains("no program \"useradd\""), "{}", applied.stderr());
    assert!(applied.stderr().contains("package passwd"), "{}", applied.stderr());
    web.sh("mv /usr/sbin/useradd.away /usr/sbin/useradd").ok();

    let mut editor = web.command(["vipw"]).env("VISUAL", "sh -c 'echo editing; sleep 100'").spawn();
    editor.says("editing", Duration::from_secs(20));
    let applied = web.apply(&bob).failed();
    assert!(applied.stderr().contains("useradd: cannot lock /etc/passwd"), "{}", applied.stderr());
    web.run(["getent", "passwd", "bob"]).fails();
    web.run(["pkill", "-f", "sleep 100"]).ok();
    editor.ends(Duration::from_secs(20));
    web.apply(&bob).converged();
}

// R-14
#[test]
fn a_user_of_a_directory_service_is_neither_made_nor_changed() {
    if lab::skipped() {
        return;
    }
    let library = ["x86_64-linux-gnu/", "aarch64-linux-gnu/", ""]
        .map(|place| format!("/usr/lib/{place}libnss_systemd.so.2"))
        .into_iter()
        .find(|path| Path::new(path).is_file());
    let Some(library) = library else {
        return lab::skip(&Lack::Machine("libnss_systemd, which knows users of no file".into()));
    };
    let web = machine();
    web.place(Path::new(&library), &library);
    web.sh("sed -i 's/^\\(passwd\\|group\\):.*/& systemd/' /etc/nsswitch.conf").ok();
    let record = json!({"userName": "dave", "uid": 4001, "gid": 4001});
    web.write("/etc/userdb/dave.user", record.to_string());
    let record = json!({"groupName": "dave", "gid": 4001});
    web.write("/etc/userdb/dave.group", record.to_string());
    assert!(web.run(["getent", "passwd", "dave"]).ok().stdout().starts_with("dave:x:4001:"));

    let file = json!({"id": "file", "type": "file", "path": "/srv/daves", "content": "",
                      "owner": "dave", "group": "dave"});
    web.apply(declared(&[file])).converged();
    assert_eq!(web.stat("/srv/daves", "%u:%g"), "4001:4001");
    for kind in ["user", "group"] {
        let dave = declared(&[json!({"id": "dave", "type": kind, "name": "dave"})]);
        let applied = web.apply(&dave).failed();
        let said = format!("a directory service has a {kind} of this name");
        assert!(applied.stderr().contains(&said), "{}", applied.stderr());
        web.command([HOST, "plan", "-"]).input(dave.to_string()).run().exits(1);
    }
    let eve = json!({"id": "eve", "type": "user", "name": "eve", "groups": ["dave"]});
    let applied = web.apply(declared(&[eve])).failed();
    assert!(applied.stderr().contains("no group \"dave\" in /etc/group"), "{}", applied.stderr());
}

// R-2
#[test]
fn an_account_that_is_in_use_is_changed_under_its_owner() {
    if lab::skipped() {
        return;
    }
    let web = machine();
    web.sh("useradd -m -u 1234 bob; echo 'bob:secret' | chpasswd").ok();
    let hash = web.sh("grep ^bob: /etc/shadow").ok().stdout();
    let mut session = web.spawn(["su", "bob", "-c", "echo in; sleep 100"]);
    session.says("in", Duration::from_secs(20));
    let bob = |home: &str| {
        declared(&[json!({"id": "bob", "type": "user", "name": "bob", "uid": 1234, "home": home,
                          "groups": ["adm"], "shell": "/bin/bash", "authorized_keys": [KEY]})])
    };
    web.apply(bob("/home/bob")).converged();
    web.apply(bob("/home/bob")).idle();
    assert!(web.read("/home/bob/.ssh/authorized_keys").contains(KEY));
    let applied = web.apply(bob("/srv/bob")).failed();
    assert!(applied.stderr().contains("user bob is currently used by"), "{}", applied.stderr());
    assert!(web.read("/home/bob/.ssh/authorized_keys").contains(KEY), "no key goes in vain");

    web.run(["pkill", "-u", "bob"]).ok();
    session.ends(Duration::from_secs(20));
    web.apply(bob("/srv/bob")).converged();
    web.apply(bob("/srv/bob")).idle();
    let passwd = web.run(["getent", "passwd", "bob"]).ok().stdout();
    assert_eq!(passwd, "bob:x:1234:1234::/srv/bob:/bin/bash");
    assert!(web.read("/srv/bob/.ssh/authorized_keys").contains(KEY));
    assert!(!web.exists("/home/bob/.ssh/authorized_keys"), "no key stays where it was");
    let applied = web.apply(declared(&[])).converged();
    assert_eq!(applied.outcome_of("bob"), "forgotten", "it was there before");
    assert_eq!(web.sh("grep ^bob: /etc/shadow").ok().stdout(), hash, "nor is it locked");
}
