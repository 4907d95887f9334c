//! Containers on a real engine: what is declared of them comes to be, stays so and goes, and what
//! is not the host's is left alone.

mod support;

use std::fs;

use support::engine::Node;

/// Every field that a declaration can set; `dir` is a directory of the test's.
fn whole(node: &Node, dir: &str, more: &str) -> String {
    let fields = format!(
        r#","entrypoint":["/bin/sh","-c"],"command":["while :; do sleep 1; done","--flag"],
        "env":{{"LINES":"a\nb","EMPTY":"","PLAIN":"x y"}},"secret_env":{{"PW":"pa ss"}},
        "ports":[{{"host":18080,"container":80}},
            {{"host":18053,"container":53,"protocol":"udp","address":"127.0.0.1"}}],
        "mounts":[{{"source":"{dir}/with, \"care\"","target":"/srv"}},
            {{"source":"{dir}/conf","target":"/etc/conf","read_only":true}},
            {{"source":"whole-volume","target":"/data"}}],
        "networks":["whole-back","whole-front"],"hostname":"name.example","user":"root:0",
        "workdir":"/srv","restart":"on-failure:3",
        "health":{{"command":["test","-e","/etc/conf"],"interval_s":1,"timeout_s":5,"retries":2,
            "start_period_s":1}},
        "wait_healthy_s":60,"memory_bytes":67108864,"cpus":0.5,"cap_add":["NET_ADMIN"],
        "cap_drop":["MKNOD"],"read_only":true,"tmpfs":["/run:size=1m,mode=755"],
        "devices":["/dev/null:/dev/nil:r"],"privileged":false,
        "extra_hosts":["other:10.0.0.1","here:host-gateway"],"dns":["10.0.0.2"],
        "labels":{{"b":"2","a":"1=1,\"x\""}},"restart_on":["conf"]{more}"#
    );
    format!(
        r#"{{"id":"back","type":"container_network","name":"whole-back","subnet":"10.87.0.0/24"}},
        {{"id":"front","type":"container_network","name":"whole-front","internal":true}},
        {{"id":"conf","type":"file","path":"{dir}/conf","content":"one"}},
        {{"id":"dir","type":"directory","path":"{dir}/with, \"care\""}},
        {}"#,
        node.container("whole", &fields)
    )
}

// R-2 R-13 R-8
#[test]
fn a_container_with_every_field_is_made_once() {
    let Some(node) = Node::new("whole") else { return };
    let dir = node.scratch.path().to_str().unwrap().to_string();
    let declared = whole(&node, &dir, "");
    let applied = node.converge(&declared);
    let all = ["back", "front", "conf", "dir", "whole"].map(|id| format!("{id} created"));
    assert_eq!(applied.outcomes(), all);
    let engine = node.engine;
    let told = |template: &str| engine.told("whole", template);
    assert_eq!(told("{{.Config.Image}}"), engine.image);
    assert_eq!(told("{{json .Config.Entrypoint}}"), r#"["/bin/sh"]"#);
    assert_eq!(told("{{json .Config.Cmd}}"), r#"["-c","while :; do sleep 1; done","--flag"]"#);
    assert_eq!(told("{{.Config.Hostname}} {{.Config.User}}"), "name.example root:0");
    assert_eq!(told("{{len .NetworkSettings.Networks}} {{.HostConfig.NanoCpus}}"), "2 500000000");
    assert_eq!(told(r#"{{index .Config.Labels "a"}}"#), r#"1=1,"x""#);
    let inside = engine.docker(&["exec", "whole", "cat", "/etc/conf", "/proc/1/environ"]);
    for variable in ["one", "LINES=a\nb\0", "EMPTY=\0", "PLAIN=x y\0", "PW=pa ss\0"] {
        assert!(inside.contains(variable), "{variable}: {inside:?}");
    }
    let was = node.id("whole");
    let journal = node.journal();
    for _ in 0..20 {
        let again = node.converge(&declared);
        assert!(again.outcomes().iter().all(|it| it.ends_with("unchanged")), "{}", again.out);
    }
    // Another order of what has none, and defaults written out, are the same declaration.
    let same = declared
        .replace(r#""b":"2","a":"1=1,\"x\"""#, r#""a":"1=1,\"x\"","b":"2""#)
        .replace(r#""privileged":false,"#, "");
    assert_ne!(same, declared);
    node.converge(&same);
    assert_eq!(node.id("whole"), was);
    assert_eq!(node.converge(&declared).code, 0);
    assert_eq!(node.id("whole"), was);
    assert!(node.journal().starts_with(&journal));

    // R-9: volumes and images stay.
    let gone = node.converge("");
    assert!(gone.outcomes().iter().all(|it| it.ends_with("removed")), "{}", gone.out);
    assert_eq!(engine.containers("whole"), [""; 0]);
    let networks = engine.docker(&["network", "ls", "--format", "{{.Name}}"]);
    assert!(!networks.contains("whole"), "{networks}");
    assert_eq!(engine.docker(&["volume", "ls", "-q", "-f", "name=whole-volume"]), "whole-volume");
    engine.docker(&["image", "inspect", &engine.image]);
}

// R-3 R-5
#[test]
fn what_a_label_cannot_tell_is_seen_and_corrected() {
    let Some(node) = Node::new("drift") else { return };
    let dir = node.scratch.join("seen").to_str().unwrap().to_string();
    fs::create_dir(&dir).unwrap();
    let fields = format!(
        r#","command":["sleep","1000"],"restart":"unless-stopped","networks":["drift-one"],
        "memory_bytes":67108864,"mounts":[{{"source":"{dir}","target":"/seen"}}]"#
    );
    let network = r#"{"id":"one","type":"container_network","name":"drift-one"}"#;
    node.converge(&format!("{network},{}", node.container("drift", &fields)));
    let engine = node.engine;
    engine.docker(&["network", "create", "drift-other"]);
    let was = node.id("drift");
    for (drift, why, keeps) in [
        ("docker stop -t 0 drift", "it does not run", true),
        ("docker pause drift", "it is paused", true),
        ("docker update --restart=no drift", "its restart policy is no", true),
        ("docker network disconnect drift-one drift", "not in the network drift-one", true),
        ("docker network connect drift-other drift", "in the network \"drift-other\"", true),
        (
            "docker network disconnect -f drift-one drift; docker stop -t 0 drift;
          docker network rm drift-one",
            "not in the network",
            true,
        ),
        ("docker update --memory 32m --memory-swap 64m drift", "limited to 33554432 bytes", false),
        ("docker update --cpus 0.5 drift", "limited to 0.5 processors", false),
        ("docker update --cpu-shares 100 drift", "limits that are not declared", false),
        ("docker rm -f drift", "absent", false),
    ] {
        let id = engine.told("drift", "{{.Id}}");
        engine.sh(drift);
        let corrected = node.reconcile();
        assert_eq!(corrected.code, 0, "{drift}: {}{}", corrected.out, corrected.err);
        assert!(corrected.outcomes().contains(&"drift corrected".into()), "{}", corrected.out);
        assert!(corrected.detail("drift").contains(why), "{drift}: {}", corrected.detail("drift"));
        assert_eq!(engine.told("drift", "{{.Id}}") == id, keeps, "{drift}");
        node.idle();
    }
    assert_ne!(node.id("drift"), was);
    assert_eq!(engine.told("drift", "{{.HostConfig.RestartPolicy.Name}}"), "unless-stopped");

    // A directory that was made anew is not the one that the container sees.
    fs::remove_dir(&dir).unwrap();
    let refused = node.reconcile();
    let [[_, _, cause]] = &refused.errors()[..] else { panic!("{}", refused.out) };
    assert!(cause.contains("which it mounts, is not there"), "{cause}");
    fs::create_dir(&dir).unwrap();
    fs::write(format!("{dir}/new"), "").unwrap();
    let corrected = node.reconcile();
    assert!(corrected.detail("drift").contains("as it was before"), "{}", corrected.out);
    engine.docker(&["exec", "drift", "cat", "/seen/new"]);
    node.idle();
    node.converge("");
}

// R-9 R-13
#[test]
fn what_is_not_the_hosts_is_never_touched() {
    let Some(node) = Node::new("foreign") else { return };
    let engine = node.engine;
    let declared = node.container("foreign", r#","command":["sleep","1000"]"#);
    engine.docker(&["run", "-d", "--name", "foreign", &engine.image, "sleep", "1000"]);
    let was = node.id("foreign");
    let refused = node.apply(&declared);
    assert_eq!(refused.outcomes(), ["foreign failed"]);
    assert!(refused.errors()[0][2].contains("not of the host's making"), "{}", refused.out);
    assert_eq!(node.id("foreign"), was);
    engine.docker(&["rm", "-f", "foreign"]);
    node.converge(&declared);

    // An image that carries the labels of a container of the host's, and another's by hand.
    engine.docker(&["commit", "foreign", "spoof"]);
    let labels =
        engine.told("foreign", "{{range $k, $v := .Config.Labels}}--label={{$k}}={{$v}} {{end}}");
    let labels: Vec<&str> = labels.split_whitespace().collect();
    assert_eq!(labels.len(), 3, "{labels:?}");
    engine.docker(&["rm", "-f", "foreign"]);
    engine.docker(&["run", "-d", "--name", "foreign", "spoof", "sleep", "1000"]);
    let was = node.id("foreign");
    assert!(node.reconcile().errors()[0][2].contains("not of the host's making"));
    let left = node.converge("");
    assert_eq!(left.outcomes(), ["foreign left"]);
    assert_eq!(node.id("foreign"), was);
    engine.docker(&["rm", "-f", "foreign"]);

    // The names that a replacement needs.
    node.converge(&declared);
    engine.docker(&["create", "--name", "foreign.mesh-host-new", &engine.image]);
    let was = node.id("foreign");
    let refused = node.apply(&declared.replace("1000", "1001"));
    assert!(refused.errors()[0][2].contains("is in the way"), "{}", refused.out);
    assert_eq!(node.id("foreign"), was);
    engine.docker(&["rm", "foreign.mesh-host-new"]);
    node.converge("");
}

// R-9
#[test]
fn a_network_is_adopted_made_changed_and_left() {
    let Some(node) = Node::new("net") else { return };
    let engine = node.engine;
    let network = |name: &str, fields: &str| {
        format!(r#"{{"id":"{name}","type":"container_network","name":"{name}"{fields}}}"#)
    };
    let inside = node.container("net-in", r#","command":["sleep","1000"],"networks":["net-b"]"#);
    engine.docker(&["network", "create", "--subnet", "10.86.0.0/24", "net-a"]);
    let refused = node.apply(&network("net-a", r#","subnet":"10.86.1.0/24""#));
    assert!(refused.errors()[0][2].contains("not of the host's making"), "{}", refused.out);
    let b = |third: u8| network("net-b", &format!(r#","subnet":"10.85.{third}.0/24""#));
    let all = |third| format!("{},{},{inside}", network("net-a", ""), b(third));
    let made = node.converge(&all(0));
    assert_eq!(made.outcomes(), ["net-a unchanged", "net-b created", "net-in created"]);
    node.idle();
    let id = engine.told("net-in", "{{.Id}}");
    let changed = node.converge(&all(1));
    assert_eq!(changed.outcomes()[1], "net-b changed", "{}", changed.out);
    assert!(changed.detail("net-b").contains("10.85.0.0/24"), "{}", changed.out);
    let address = "{{(index .NetworkSettings.Networks \"net-b\").IPAddress}}";
    assert!(engine.told("net-in", address).starts_with("10.85.1."));
    assert_eq!(engine.told("net-in", "{{.Id}}"), id);
    node.idle();
    engine.docker(&["create", "--name", "net-other", "--network", "net-b", &engine.image]);
    let refused = node.apply(&all(2));
    assert!(refused.errors()[0][2].contains("net-other uses it"), "{}", refused.out);
    let left = node.converge("");
    let ends = ["net-in removed", "net-b left", "net-a forgotten"];
    assert_eq!(left.outcomes(), ends, "{}", left.out);
    assert!(left.detail("net-b").contains("net-other uses it"), "{}", left.out);
    engine.docker(&["rm", "net-other"]);
    engine.docker(&["network", "rm", "net-a", "net-b"]);
}

// R-2
#[test]
fn a_container_restarts_when_a_file_that_it_mounts_changes() {
    let Some(node) = Node::new("follow") else { return };
    let path = node.scratch.join("conf");
    let path = path.to_str().unwrap();
    let fields = format!(
        r#","command":["sleep","1000"],"restart_on":["conf"],
        "mounts":[{{"source":"{path}","target":"/conf","read_only":true}}]"#
    );
    let declared = |text: &str| {
        let file = format!(r#"{{"id":"conf","type":"file","path":"{path}","content":"{text}"}}"#);
        format!("{file},{}", node.container("follow", &fields))
    };
    let inside = || node.engine.docker(&["exec", "follow", "cat", "/conf"]);
    node.converge(&declared("one"));
    let id = node.engine.told("follow", "{{.Id}}");
    let changed = node.converge(&declared("two"));
    assert!(changed.detail("follow").contains("restart is due"), "{}", changed.out);
    assert_eq!(inside(), "two");
    node.idle();
    // R-6: killed before and after the restart, which stays due until it is recorded.
    for (when, text) in [("", "three"), ("\"$real\" \"$@\"; ", "four")] {
        node.intercept(&format!("[ \"$call\" != restart ] || {{ {when} kill -9 $PPID; exit; }}"));
        assert_ne!(node.apply(&declared(text)).code, 0);
        node.real();
        let finished = node.reconcile();
        assert!(finished.detail("follow").contains("restart is due"), "{}", finished.out);
        assert_eq!(inside(), text);
        node.idle();
    }
    assert_eq!(node.engine.told("follow", "{{.Id}}"), id);
    node.converge("");
}

// R-30
#[test]
fn a_secret_reaches_the_container_and_nothing_else() {
    let Some(node) = Node::new("secret") else { return };
    let calls = node.scratch.join("calls");
    node.intercept(&format!("echo \"$*\" >>{}", calls.display()));
    let fields = |last: &str| {
        format!(
            r#","secret_env":{{"PW":"canary-1\ncanary-2","HTTP_PROXY":"canary-3",
            "HOME":"canary-4"}},"command":["sh","-c","env; echo \"$PW\" >&2; {last}"]"#
        )
    };
    let mut said = String::new();
    let mut say = |run: support::root::Run| {
        said += &run.out;
        said += &run.err;
        run
    };
    say(node.converge(&node.container("secret", &fields("sleep 1000"))));
    let inside = node.engine.docker(&["exec", "secret", "cat", "/proc/1/environ"]);
    assert!(inside.contains("PW=canary-1\ncanary-2\0"), "{inside:?}");
    assert!(
        inside.contains("HTTP_PROXY=canary-3\0HOME=canary-4\0") || inside.contains("HOME=canary-4")
    );
    say(node.host(&["reconcile", "-v"]));
    // Another value is another declaration; one that cannot last is told of without its secrets.
    let other = fields("sleep 1000").replace("canary-3", "canary-5");
    let changed = say(node.converge(&node.container("secret", &other)));
    assert_eq!(changed.outcomes(), ["secret changed"]);
    let failed = say(node.apply(&node.container("secret", &fields("exit 3"))));
    assert!(failed.errors()[0][2].contains("(secret)"), "{}", failed.out);
    say(node.host(&["owned"]));
    say(node.host(&["journal"]));
    let argv = fs::read_to_string(&calls).unwrap();
    assert!(argv.contains("--env=PW "), "{argv}");
    for (what, text) in [("said", &said), ("argv", &argv), ("journal", &node.journal())] {
        assert!(!text.contains("canary"), "{what}: {text}");
    }
    node.converge("");
    let refused = node.apply(&node.container("secret", r#","secret_env":{"DOCKER_HOST":"x"}"#));
    assert_eq!(refused.code, 3, "{}", refused.out);
}

#[test]
fn a_port_is_free_before_it_is_wanted() {
    let Some(node) = Node::new("port") else { return };
    let port = r#","command":["sleep","1000"],"ports":[{"host":18081,"container":80}]"#;
    node.converge(&node.container("port-a", port));
    let planned = node.scratch.join("planned.json");
    let b = node.container("port-b", port);
    fs::write(&planned, support::root::declared(&b)).unwrap();
    let plan = node.host(&["plan", planned.to_str().unwrap()]);
    assert_eq!(plan.outcomes(), ["port-b created", "port-a removed"], "{}", plan.out);
    assert_eq!(node.engine.containers("port"), ["port-a running"]);
    let moved = node.converge(&b);
    assert_eq!(moved.outcomes(), ["port-b created", "port-a removed"]);
    assert_eq!(node.engine.containers("port"), ["port-b running"]);
    let image = &node.engine.image;
    node.converge("");
    node.engine.docker(&["run", "-d", "--name", "port-x", "-p", "18081:1", image, "sleep", "1000"]);
    let refused = node.apply(&b);
    let why = "tcp port 18081 is held by the container port-x";
    assert_eq!(refused.errors()[0][2], why);
    node.engine.docker(&["rm", "-f", "port-x"]);
}

// R-13
#[test]
fn an_image_is_pulled_only_when_it_is_absent() {
    let Some(node) = Node::new("pull") else { return };
    let engine = node.engine;
    let calls = node.scratch.join("calls");
    node.intercept(&format!("echo \"$call\" >>{}", calls.display()));
    let image = engine.import("pulled", &["LABEL mesh-host.form=x mesh-host.mark=y"]);
    let id = engine.docker(&["inspect", "-f", "{{.Id}}", &image]);
    let declared = node.container("pull", r#","command":["sleep","1000"]"#);
    let of = |image: &str| declared.replace(&engine.image, image);
    node.converge(&of(&image));
    assert!(!fs::read_to_string(&calls).unwrap().contains("pull"));
    node.converge("");
    engine.docker(&["rmi", "-f", &id]);
    node.converge(&of(&image));
    assert_eq!(fs::read_to_string(&calls).unwrap().matches("pull").count(), 1);
    assert_eq!(engine.docker(&["exec", "pull", "cat", "/etc/image"]), "pulled");
    let changed = node.converge(&of(&id));
    assert_eq!(changed.outcomes(), ["pull changed"]);
    assert_eq!(engine.told("pull", "{{.Config.Image}}"), id);
    let nowhere = format!("sha256:{}", "0".repeat(64));
    let was = node.id("pull");
    for (image, why) in [
        (nowhere.clone(), "load it first"),
        (format!("127.0.0.1:5000/bb@{nowhere}"), "manifest unknown"),
        (format!("127.0.0.1:5001/bb@{nowhere}"), "connection refused"),
    ] {
        let failed = node.apply(&of(&image));
        assert!(failed.errors()[0][2].contains(why), "{}", failed.out);
        assert_eq!(node.id("pull"), was, "nothing was touched");
    }
    node.converge("");
}
