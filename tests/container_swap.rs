//! Replacing a container, on a real engine: whatever comes between, one runs, and it is the right
//! one; and an engine that does not do as it is asked is told of.

mod support;

use std::fs;
use std::time::{Duration, Instant};

use support::engine::{Engine, Node};

const RUNS: &str = r#","command":["sh","-c","echo up; exec sleep 1000"],"restart":"always""#;

/// Another declaration than [`RUNS`], with this script for its command.
fn script(node: &Node, name: &str, script: &str, more: &str) -> String {
    let fields = format!(r#","command":["sh","-c","{script}"],"restart":"always"{more}"#);
    node.container(name, &fields)
}

// R-4 R-6
#[test]
fn the_one_before_runs_again_where_the_new_one_fails() {
    let well = |command: &str| {
        format!(
            r#","health":{{"command":{command},"interval_s":1,"retries":1}},"wait_healthy_s":2"#
        )
    };
    let never = well(r#"["sh","-c","sleep 9"]"#);
    let unwell = well(r#"["sh","-c","echo not well; exit 1"]"#);
    let cases = [
        ("echo one; echo two >&2; exit 7", "", &["its log ends", r#""two""#][..]),
        ("echo late; sleep 1; exit 1", "", &["its log ends", r#""late""#]),
        ("exec sleep 1000", &unwell, &["it is unhealthy", "not well"]),
        ("exec sleep 1000", &never, &["it is not healthy after 2 s"]),
        ("exec sleep 1000", r#","wait_healthy_s":2"#, &["has a health check"]),
        (
            "exec sleep 1000",
            r#","entrypoint":["/bin/none"]"#,
            &["docker start exited 1", "/bin/none"],
        ),
        (
            "exec sleep 1000",
            r#","hostname":"x","network_mode":"host","dns":["10.0.0.1"],
            "ports":[{"host":1,"container":1}],"devices":["/dev/none"]"#,
            &["/dev/none"],
        ),
        ("exec sleep 1000", r#","networks":["nowhere"]"#, &["nowhere"]),
        (
            "exec sleep 1000",
            r#","mounts":[{"source":"/none/here","target":"/x"}]"#,
            &["bind source path does not exist"],
        ),
    ];
    Node::each("fallback", &cases, |node, name, (command, more, why)| {
        node.converge(&node.container(name, RUNS));
        let id = node.engine.told(name, "{{.Id}}");
        let failed = node.apply(&script(node, name, command, more));
        assert_eq!(failed.code, 1, "{command}{more}: {}", failed.out);
        let [[stage, _, cause]] = &failed.errors()[..] else { panic!("{}", failed.out) };
        assert_eq!(stage, "step");
        for word in *why {
            assert!(cause.contains(word), "{word}: {cause}");
        }
        let runs = [format!("{name} running")];
        assert_eq!(node.engine.containers(name), runs, "{cause}");
        assert_eq!(node.engine.told(name, "{{.HostConfig.RestartPolicy.Name}}"), "always");
        let back = node.converge(&node.container(name, RUNS));
        assert_eq!(back.detail(name), "finished before an interruption could record it");
        assert_eq!(node.engine.told(name, "{{.Id}}"), id, "{cause}");
        node.idle();
    });
}

// R-4
#[test]
fn what_fails_with_none_before_it_stays_and_is_looked_at_again() {
    let Some(node) = Node::new("first") else { return };
    let first = node.apply(&script(&node, "first", "echo no; exit 1", ""));
    assert_eq!(first.outcomes(), ["first failed"]);
    let again = node.reconcile();
    assert!(again.errors()[0][2].contains(r#"its log ends "no""#), "{}", again.out);
    let mended = node.converge(&node.container("first", RUNS));
    assert!(mended.outcomes()[0].starts_with("first c"), "{}", mended.out);
    assert_eq!(node.engine.containers("first"), ["first running"]);
    node.converge("");
}

// R-6
#[test]
fn killed_at_every_step_of_a_replacement_the_next_run_ends_with_the_right_one() {
    let steps = ["create", "network connect", "update", "stop", "rename", "rename", "start", "rm"];
    // Before each, which is after the one before it; and after the last.
    let cases: Vec<usize> = (1..=steps.len() + 1).collect();
    Node::each("killed", &cases, |node, name, &step| {
        let networks = ["a", "b"].map(|it| {
            format!(r#"{{"id":"{it}","type":"container_network","name":"{name}-{it}"}}"#)
        });
        let declared = |nth: &str| {
            let more = format!(
                r#","env":{{"N":"{nth}"}},"networks":["{name}-a","{name}-b"],"wait_healthy_s":30,
                "health":{{"command":["true"],"interval_s":1}}"#
            );
            format!("{},{}", networks.join(","), script(node, name, "exec sleep 1000", &more))
        };
        let calls = node.scratch.join("calls");
        let _ = fs::remove_file(&calls);
        let kill = |at: usize, first: &str| {
            format!(
                "case $call in create|update|stop|rename|start|rm|'network connect')
                echo $call >>{0}; if [ $(wc -l <{0}) = {at} ]; then
                {first} kill -9 $PPID; exit; fi;; esac",
                calls.display()
            )
        };
        let (old, new) = (format!("{step}-old"), format!("{step}-new"));
        node.converge(&declared(&old));
        match step > steps.len() {
            false => node.intercept(&kill(step, "")),
            true => node.intercept(&kill(steps.len(), "\"$real\" \"$@\" >/dev/null;")),
        }
        let killed = node.apply(&declared(&new));
        assert_ne!(killed.code, 0, "{}", killed.err);
        let made = fs::read_to_string(&calls).unwrap();
        assert!(made.lines().eq(steps.into_iter().take(step)), "{made}");
        node.real();
        let at = format!("killed at step {step}");
        // Every second time another declaration comes after it.
        let last = match step % 2 {
            0 => format!("{step}-other"),
            _ => new,
        };
        let run = node.apply(&declared(&last));
        assert_eq!(run.code, 0, "{at}: {}{}", run.out, run.err);
        assert_eq!(node.engine.containers(name), [format!("{name} running")], "{at}");
        assert_eq!(node.engine.told(name, "{{json .Config.Env}}"), format!(r#"["N={last}"]"#));
        let told = "{{len .NetworkSettings.Networks}} {{.HostConfig.RestartPolicy.Name}}";
        assert_eq!(node.engine.told(name, told), "2 always", "{at}");
        node.idle();
    });
}

// R-6 R-9
#[test]
fn killed_in_a_fallback_or_a_removal_the_next_run_ends_it() {
    let cases = [("rm", 1), ("rename", 3), ("update", 2), ("start", 2)];
    Node::each("fell", &cases, |node, name, (step, nth)| {
        let good = node.container(name, RUNS);
        node.converge(&good);
        let calls = node.scratch.join("calls");
        let _ = fs::remove_file(&calls);
        node.intercept(&format!(
            "[ $call != {step} ] || {{ echo >>{0}; [ $(wc -l <{0}) != {nth} ] || \
             {{ kill -9 $PPID; exit; }}; }}",
            calls.display()
        ));
        let killed = node.apply(&script(node, name, "exit 1", ""));
        assert!(killed.out.is_empty(), "{}", killed.out);
        node.real();
        let failed = node.reconcile();
        assert_eq!(failed.outcomes(), [format!("{name} failed")], "{step}: {}", failed.out);
        assert_eq!(node.engine.containers(name), [format!("{name} running")], "{step}");
        node.converge(&good);
        assert_eq!(node.engine.containers(name), [format!("{name} running")], "{step}");
        node.idle();
    });
    Node::each("left", &["stop", "rm"], |node, name, step| {
        node.converge(&node.container(name, RUNS));
        node.intercept(&format!("[ $call != {step} ] || {{ kill -9 $PPID; exit; }}"));
        node.apply("");
        node.real();
        let gone = node.converge("");
        assert_eq!(gone.outcomes(), [format!("{name} removed")], "{step}");
        assert_eq!(node.engine.containers(name), [""; 0]);
    });
}

// R-5
#[test]
fn a_lying_docker_fails_the_read_back() {
    let Some(node) = Node::new("lies") else { return };
    let network = r#"{"id":"net","type":"container_network","name":"lies-net"}"#;
    let joined = format!(r#"{RUNS},"networks":["lies-net"]"#);
    let it = node.container("lies", &joined);
    let all = format!("{network},{it}");
    let lie = |call: &str| node.intercept(&format!("[ \"$call\" != '{call}' ] || exit 0"));
    lie("network create");
    let lied = node.apply(&all);
    assert_eq!(lied.errors()[0][0], "read_back", "{}", lied.out);
    node.real();
    node.converge(network);
    for call in ["create", "rename", "start"] {
        lie(call);
        let lied = node.apply(&all);
        assert_eq!(lied.outcomes()[1], "lies failed", "{call}: {}", lied.out);
        node.real();
        node.converge(&all);
        node.converge(network);
    }
    node.converge(&all);
    for (drift, call) in [
        ("docker stop -t 0 lies", "start"),
        ("docker pause lies", "unpause"),
        ("docker update --restart=no lies", "update"),
        ("docker network disconnect lies-net lies", "network connect"),
        ("docker network connect bridge lies", "network disconnect"),
    ] {
        node.engine.sh(drift);
        lie(call);
        let lied = node.reconcile();
        assert_eq!(lied.code, 1, "{call}: {}", lied.out);
        node.real();
        assert_eq!(node.reconcile().code, 0, "{call}");
        node.idle();
    }
    for call in ["stop", "rm", "network rm"] {
        lie(call);
        let lied = node.apply("");
        assert_eq!(lied.code, 1, "{call}: {}", lied.out);
        node.real();
    }
    node.converge("");
    assert_eq!(node.engine.containers("lies"), [""; 0]);
}

// R-4 R-23
#[test]
fn an_engine_that_cannot_be_worked_with_is_told_of_in_time() {
    let Some(node) = Node::new("engine") else { return };
    let some =
        |name: &str, limit_s: u8| node.container(name, &format!(r#"{RUNS},"timeout_s":{limit_s}"#));
    let both = |limit_s| format!("{},{}", some("engine-a", limit_s), some("engine-b", limit_s));
    let all = both(2);
    let why = |what: &str, words: &[&str]| {
        let began = Instant::now();
        let failed = node.apply(&all);
        assert!(began.elapsed() < Duration::from_secs(20), "{what}");
        assert_eq!(failed.code, 1, "{what}: {}", failed.out);
        let cause = &failed.errors()[0][2];
        for word in words {
            assert!(cause.contains(word), "{what}: {word}: {cause}");
        }
        assert!(
            node.host(&["plan", node.scratch.join("declared.json").to_str().unwrap()]).code == 1
        );
    };
    node.intercept("export DOCKER_HOST=unix:///run/nowhere.sock");
    why("dead", &["docker ps exited 1", "Cannot connect", "/run/nowhere.sock"]);
    node.intercept("exec sleep 60");
    why("hanging", &["docker ps was still running after 2 s"]);
    node.intercept("[ $call != ps ] || { printf 'a\\033[31mb\\n'; exit; }");
    why("other words", &["not understood", "a\\u{1b}[31mb"]);
    node.intercept("[ $call != ps ] || exit 139");
    why("broken", &["docker ps exited 139 and said nothing"]);
    node.intercept_whole("#!/bin/sh\nexec /usr/bin/podman \"$@\"\n");
    why("podman", &["is podman's, which is not supported"]);
    node.intercept("[ $call != version ] || { echo null; exit; }");
    let failed = node.apply(&all);
    assert!(failed.errors()[0][2].contains("not supported"), "{}", failed.out);
    node.real();
    // Shapes of another version: the details of a container that it has.
    node.converge(&both(60));
    for (was, is) in [("\"State\"", "\"Stats\""), ("\"running\"", "\"walking\""), ("0,", "\"x\",")]
    {
        let edit =
            format!(r#"[ $call != inspect ] || {{ "$real" "$@" | sed 's/{was}/{is}/'; exit; }}"#);
        node.intercept(&edit);
        let failed = node.reconcile();
        assert_eq!(failed.code, 1, "{is}: {}", failed.out);
        assert!(failed.errors()[0][2].contains("not understood"), "{is}: {}", failed.out);
    }
    node.real();
    assert_eq!(node.reconcile().code, 0);
    node.idle();
    // Not asked again, once it has hung: each would take as long.
    node.converge(&all);
    node.intercept("exec sleep 60");
    let began = Instant::now();
    assert_eq!(node.reconcile().outcomes(), ["engine-a failed", "engine-b failed"]);
    assert!(began.elapsed() < Duration::from_secs(6));
    node.real();
    node.converge("");
}

// R-3
#[test]
fn what_an_engine_lost_when_it_restarted_runs_again() {
    let Some(node) = Node::new("restarted") else { return };
    // One of its own: the containers of others would not survive it.
    let engine: &'static Engine = Box::leak(Box::new(Engine::start("restarted-engine").unwrap()));
    let node = Node { engine, ..node };
    let plain = node.container("restarted-no", r#","command":["sleep","1000"]"#);
    let network = r#"{"id":"n","type":"container_network","name":"restarted-n"}"#;
    let always =
        node.container("restarted-always", &format!(r#"{RUNS},"networks":["restarted-n"]"#));
    node.converge(&format!("{network},{plain},{always}"));
    for signal in ["TERM", "KILL"] {
        engine.restart(signal);
        let run = node.reconcile();
        assert_eq!(run.code, 0, "{signal}: {}{}", run.out, run.err);
        let all = ["restarted-always running", "restarted-no running"];
        assert_eq!(engine.containers("restarted"), all, "{signal}");
        node.idle();
    }
    // Full: what cannot be made says why, and the one before it still runs.
    engine.sh("fill=$(df --output=avail -k /run | tail -1); fallocate -l ${fill}K /run/fill");
    let failed = node.apply(&format!(
        "{network},{plain},{}",
        node.container("restarted-always", &RUNS.replace("up", "again"))
    ));
    assert_eq!(failed.outcomes()[2], "restarted-always failed", "{}", failed.out);
    assert!(failed.errors()[0][2].contains("no space left"), "{}", failed.out);
    engine.sh("rm /run/fill");
    let all = ["restarted-always running", "restarted-no running"];
    assert_eq!(engine.containers("restarted"), all);
    let before = node.reconcile();
    assert_eq!(before.code, 0, "{}{}", before.out, before.err);
    node.converge("");
}

// R-2
#[test]
fn nothing_to_do_for_thirty_containers_takes_three_calls() {
    let Some(node) = Node::new("thirty") else { return };
    let names: Vec<String> = (0..30).map(|nth| format!("thirty-{nth:02}")).collect();
    let networks = (0..3).map(|nth| {
        format!(r#"{{"id":"n{nth}","type":"container_network","name":"thirty-n{nth}"}}"#)
    });
    let fields = |nth: usize| format!(r#"{RUNS},"networks":["thirty-n{}"]"#, nth % 3);
    let containers = names.iter().enumerate().map(|(nth, name)| node.container(name, &fields(nth)));
    let all: Vec<String> = networks.chain(containers).collect();
    node.converge(&all.join(","));
    let calls = node.scratch.join("calls");
    node.intercept(&format!("echo \"$*\" >>{}", calls.display()));
    node.idle();
    let made = fs::read_to_string(&calls).unwrap();
    assert_eq!(made.lines().count(), 3, "{made}");
    node.real();
    let by_hand = format!(
        "docker ps --all --no-trunc --format '{{{{json .}}}}' >/dev/null
        docker network ls --no-trunc >/dev/null; docker inspect {} >/dev/null",
        made.lines().last().unwrap().trim_start_matches("inspect -- ")
    );
    let quickest = |of: &dyn Fn()| {
        let took = (0..7).map(|_| {
            let began = Instant::now();
            of();
            began.elapsed()
        });
        took.min().unwrap()
    };
    let file = node.scratch.join("calls.sh");
    fs::write(&file, by_hand).unwrap();
    let host = quickest(&|| drop(node.reconcile()));
    let hand = quickest(&|| {
        let mut shell = node.engine.command("unshare");
        shell.args(["--mount", "sh", "-ec", r#"exec sh "$0""#]).arg(&file);
        assert!(shell.output().unwrap().status.success());
    });
    eprintln!("a pass over 30 containers: {host:?}; the same calls by hand: {hand:?}");
    // 1.3 times in a release build; the tests' own is a good deal slower.
    let most = if cfg!(debug_assertions) { 2.0 } else { 1.3 };
    assert!(host.as_secs_f64() < hand.as_secs_f64() * most, "{host:?}, by hand {hand:?}");
    node.converge("");
}
