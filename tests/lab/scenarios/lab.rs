//! The lab itself: machines are what they claim to be, and leave nothing behind.

use lab::{eventually, shelf, Footprint, Lab, Package};
use serde_json::json;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{fs, panic, thread};

const SHORT: Duration = Duration::from_secs(20);

#[test]
fn a_machine_boots_and_systemd_is_running() {
    if lab::skipped() {
        return;
    }
    let web = Lab::machine("web");
    assert_eq!(web.run(["systemctl", "is-system-running"]).ok().stdout(), "running");
    assert_eq!(web.read("/proc/1/comm"), "systemd\n");
    assert_eq!(web.run(["hostname"]).ok().stdout(), "web");
    assert_eq!(web.run(["systemctl", "is-active", "cron"]).ok().stdout(), "active");
    // Commands stand where systemd may move them from.
    web.run(["systemd-run", "--quiet", "--scope", "--unit=trial", "true"]).ok();
    // Docker is there for those who start it, and for nobody else.
    web.run(["systemctl", "is-active", "docker"]).exits(3);
}

#[test]
fn two_machines_reach_each_other_and_a_pulled_cable_stops_that() {
    if lab::skipped() {
        return;
    }
    let (web, store) = (Lab::machine("web"), Lab::machine("store"));
    let address = store.address().to_string();
    let ping = || web.run(["ping", "-c1", "-W1", &address]).code();
    assert_eq!(ping(), 0);
    store.cable(false);
    assert_ne!(ping(), 0);
    store.reboot();
    assert_ne!(ping(), 0, "the cable stays where it is over a reboot");
    store.cable(true);
    eventually("store answers again", SHORT, || ping() == 0);
}

#[test]
fn machines_boot_side_by_side_with_addresses_of_their_own() {
    if lab::skipped() {
        return;
    }
    let boot = || thread::spawn(|| Lab::machine("twin"));
    let twins: Vec<_> = [boot(), boot(), boot()].map(|t| t.join().unwrap()).into();
    let ids: Vec<_> = twins.iter().map(lab::Machine::boot_id).collect();
    assert!(ids[0] != ids[1] && ids[1] != ids[2] && ids[0] != ids[2]);
    for twin in &twins[1..] {
        twins[0].run(["ping", "-c1", "-W2", &twin.address().to_string()]).ok();
    }
    twins[0].write("/etc/mine", "");
    assert!(!twins[1].exists("/etc/mine"));
}

#[test]
fn a_reboot_stops_units_in_order_and_keeps_the_disk_alone() {
    if lab::skipped() {
        return;
    }
    let web = Lab::machine("web");
    web.write(
        "/etc/systemd/system/mark.service",
        "[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=true\n\
         ExecStop=touch /var/stopped\n[Install]\nWantedBy=multi-user.target\n",
    );
    web.run(["systemctl", "enable", "--now", "--quiet", "mark"]).ok();
    web.run(["nft", "add", "table", "inet", "mine"]).ok();
    web.write("/tmp/mine", "");
    let before = web.boot_id();

    web.power_cut();
    assert_ne!(web.boot_id(), before);
    assert!(!web.exists("/var/stopped"), "a power cut stops nothing in order");
    web.run(["systemctl", "is-active", "mark"]).ok();

    let before = web.boot_id();
    web.reboot();
    assert_ne!(web.boot_id(), before);
    assert!(web.exists("/var/stopped"));
    assert!(!web.exists("/tmp/mine"));
    assert_eq!(web.run(["nft", "list", "tables"]).ok().stdout(), "");
}

#[test]
fn commands_have_limits_and_background_ones_an_end() {
    if lab::skipped() {
        return;
    }
    let web = Lab::machine("web");
    assert_eq!(web.command(["cat"]).input("said").run().ok().stdout(), "said");
    assert_eq!(web.sh("exit 7").code(), 7);
    assert_eq!(web.sh("kill -9 $$").code(), 137);
    let slow = || web.command(["sleep", "1234"]).within(Duration::from_millis(200)).run();
    assert!(panic::catch_unwind(panic::AssertUnwindSafe(slow)).is_err());
    let none = |name: &str| web.run(["pgrep", "-f", name]).code() == 1;
    eventually("it is over", SHORT, || none("^sleep 1234"));

    let mut clock =
        web.spawn(["sh", "-c", "trap 'echo bye; exit 3' TERM; echo up; sleep 99 & wait"]);
    clock.says("up", SHORT).signal(libc::SIGTERM);
    assert_eq!(clock.ends(SHORT), 3);
    clock.says("bye", SHORT);
    let mut dropped = web.spawn(["sleep", "1235"]);
    assert!(dropped.is_running());
    drop(dropped);
    eventually("it is over", SHORT, || none("^sleep 1235"));
}

#[test]
fn apply_hands_back_code_and_report() {
    if lab::skipped() {
        return;
    }
    // A stand-in that answers with the declaration's first resource, created.
    let stand_in = Path::new(env!("CARGO_TARGET_TMPDIR")).join("stand-in-host");
    let answer = r#"{"outcome": "converged", "changed": 1, "corrected": 0, "removed": 0,
        "resources": [.resources[0] + {"outcome": "created"}]}"#;
    fs::write(&stand_in, format!("#!/bin/sh\n[ \"$*\" = 'apply --json -' ] && jq '{answer}'\n"))
        .unwrap();
    let web = Lab::machine("web");
    web.place_host(&stand_in);
    let motd = json!({"id": "motd", "type": "file", "path": "/etc/motd", "content": ""});
    let declaration = json!({"version": 1, "resources": [motd]});
    let applied = web.apply(&declaration).converged();
    assert_eq!(applied.outcome_of("motd"), "created");
    assert_eq!(applied.outcome_of("nothing"), "");
    assert!(web.apply("{").code() != 0);
    assert!(
        panic::catch_unwind(panic::AssertUnwindSafe(|| web.apply(&declaration).idle())).is_err()
    );
}

#[test]
fn pacman_installs_and_fails_in_each_way_the_shelf_has() {
    if lab::skipped() {
        return;
    }
    let web = Lab::machine("web");
    web.pacman_repository(&shelf());
    let install = |name| web.run(["pacman", "-S", "--needed", "--noconfirm", "--", name]);
    install("hello").ok();
    assert_eq!(web.run(["hello"]).ok().stdout(), "hello 1.0");
    install("drinks").ok();
    assert_eq!(web.run(["pacman", "-Qq"]).ok().stdout(), "coffee\nhello\ntea");
    install("letters").ok();
    assert_eq!(web.run(["pacman", "-T", "mail-carrier"]).ok().stdout(), "");
    install("ticker").ok();
    web.sh("systemctl daemon-reload; systemctl start ticker; systemctl is-active ticker").ok();

    // The script fails and so does not pacman: the package is there.
    assert!(install("faulty").ok().stderr().contains("command failed to execute correctly"));
    web.run(["pacman", "-Q", "faulty"]).ok();
    assert!(install("vetoed").exits(1).stderr().contains("failed to run transaction hooks"));
    assert!(install("lost").exits(1).stderr().contains("failed retrieving file"));
    assert!(install("nowhere").exits(1).stderr().contains("target not found: nowhere"));
    web.small_disk("/opt/bulky", 1024);
    install("bulky").fails();
    web.run(["umount", "/opt/bulky"]).ok();
    install("bulky").ok();

    // A later call adds a version, and the mirror can be a real one.
    web.pacman_repository(&[Package::new("hello", "1.1").file("/etc/hello.conf", "new\n")]);
    web.run(["pacman", "-Qu", "hello"]).ok();
    web.pacman_mirror();
    assert!(install("lost").exits(1).stderr().contains("404"));
}

#[test]
fn apt_installs_and_fails_in_each_way_the_shelf_has() {
    if lab::skipped() {
        return;
    }
    let web = Lab::machine("web");
    web.apt_repository(&shelf());
    let install = |name| {
        let apt = web.command(["apt-get", "-y", "install", name]);
        apt.env("DEBIAN_FRONTEND", "noninteractive").env("LC_ALL", "C").run()
    };
    let state = |name| web.run(["dpkg-query", "-Wf", "${db:Status-Status}", name]).stdout();
    install("hello").ok();
    assert_eq!(web.run(["hello"]).ok().stdout(), "hello 1.0");
    install("mail-carrier").ok();
    assert_eq!(state("postbox"), "installed");
    install("letters").ok();
    install("ticker").ok();
    web.sh("systemctl daemon-reload; systemctl start ticker; systemctl is-active ticker").ok();

    assert!(install("lost").exits(100).stderr().contains("File not found"));
    assert!(install("nowhere").exits(100).stderr().contains("Unable to locate package nowhere"));
    assert!(install("vetoed").exits(100).stdout().contains("no vetoed here"));
    assert_eq!(state("vetoed"), "not-installed");
    web.small_disk("/opt/bulky", 1024);
    assert!(install("bulky").exits(100).stdout().contains("No space left on device"));
    web.run(["umount", "/opt/bulky"]).ok();
    install("bulky").ok();
    install("faulty").exits(100);
    assert_eq!(state("faulty"), "half-configured");

    let origins = web.run(["apt-cache", "policy"]).ok().stdout();
    assert!(!origins.contains("http"), "apt reaches outside: {origins}");
}

#[test]
fn nothing_is_left_of_a_machine_after_its_end() {
    if lab::skipped() {
        return;
    }
    let web = Lab::machine("web");
    let footprint = web.footprint();
    assert!(footprint.remains().len() > 5, "the search finds a machine that is up");
    web.sh("sleep 1000 & setsid sleep 1001 &").ok();
    let _beside = web.spawn(["sleep", "1002"]);
    drop(web);
    assert_eq!(footprint.remains(), Vec::<String>::new());
}

#[test]
fn nothing_is_left_after_a_panic_in_a_scenario() {
    if lab::skipped() {
        return;
    }
    let (send, receive) = std::sync::mpsc::channel();
    let scenario = thread::spawn(move || {
        let web = Lab::machine("web");
        send.send(web.footprint()).unwrap();
        web.run(["false"]).ok();
    });
    assert!(scenario.join().is_err());
    let footprint = receive.recv().unwrap();
    assert_eq!(footprint.remains(), Vec::<String>::new());
}

#[test]
fn what_a_killed_run_leaves_is_swept_by_the_next() {
    if lab::skipped() {
        return;
    }
    let mut shell = Command::new(env!("CARGO_BIN_EXE_lab"))
        .args(["shell", "orphan"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = shell.stdin.take().unwrap();
    stdin.write_all(b"echo here\nsleep 1000\n").unwrap();
    let mut line = String::new();
    BufReader::new(shell.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "here\n");
    let footprint = Footprint::of_process(shell.id());
    lab::sweep();
    assert!(footprint.remains().len() > 5, "the living are not swept");
    shell.kill().unwrap();
    shell.wait().unwrap();
    // The kernel ends the processes, and with them mounts and network; the rest is swept,
    // here or by another run beside this one.
    let processes = || footprint.remains().iter().filter(|r| r.starts_with("/proc")).count();
    eventually("no process is left", SHORT, || processes() == 0);
    eventually("all is swept", SHORT, || {
        lab::sweep();
        footprint.remains().is_empty()
    });
}

#[test]
fn an_interrupted_build_is_not_taken_for_a_tree() {
    if lab::skipped() {
        return;
    }
    let tree = Path::new("/var/tmp").join(format!("lab-trial.{}", std::process::id()));
    let lab = |word: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lab"));
        command.arg(word).env("MESH_LAB_TREE", &tree).stderr(Stdio::null());
        command
    };
    let mut build = lab("build").spawn().unwrap();
    let footprint = Footprint::of_process(build.id());
    let begun = || footprint.remains().iter().any(|r| r.ends_with("/cmdline"));
    eventually("the build has begun", SHORT, begun);
    build.kill().unwrap();
    build.wait().unwrap();
    assert!(!tree.exists());
    let begin = Instant::now();
    assert!(lab("clean").status().unwrap().success());
    assert!(begin.elapsed() < SHORT);
    assert_eq!(footprint.remains(), Vec::<String>::new());
    assert!(!Path::new(&format!("{}.lock", tree.display())).exists());
}

#[test]
fn without_its_packages_a_scenario_is_skipped_aloud_and_in_ci_fails() {
    // Laid out as cargo does, so that the trial's own skip is recorded beside it.
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("p{}", std::process::id()));
    let test = target.join("debug/deps/lab");
    fs::create_dir_all(test.parent().unwrap()).unwrap();
    fs::copy(std::env::current_exe().unwrap(), &test).unwrap();
    let name = "a_machine_boots_and_systemd_is_running";
    let trial = |ci: &str| {
        let mut command = Command::new(&test);
        command.args(["--exact", name]).env("PATH", "/nonexistent").env("CI", ci);
        command.output().unwrap()
    };
    let (here, ci) = (trial("false"), trial("true"));
    let skip = fs::read_to_string(target.join("skips").join(name)).unwrap();
    fs::remove_dir_all(&target).unwrap();
    assert!(here.status.success(), "{here:?}");
    // SAFETY: takes nothing and cannot fail.
    if unsafe { libc::geteuid() } == 0 {
        assert!(skip.starts_with("not installed: ip, mount, nsenter, systemd-nspawn"), "{skip}");
        assert!(!ci.status.success(), "{ci:?}");
    } else {
        assert_eq!(skip, "root, for machines (needs another machine)\n");
        assert!(ci.status.success(), "what only another computer has is skipped there too");
    }
}
