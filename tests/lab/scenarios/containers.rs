//! Containers on a machine where the engine is a service of systemd's, as on a real one.

use lab::{host_binary, until, Lab, Machine};
use serde_json::{json, Value};
use std::time::Duration;

const HOST: &str = "/usr/bin/nox-mesh-host";
const REGISTRY: &str = "/etc/docker/registry/config.yml";

/// Serves images on a port of the machine's own.
const SERVED: &str =
    "version: 0.1\nstorage: {filesystem: {rootdirectory: /var/lib/docker-registry}}\n\
                      http: {addr: \"127.0.0.1:5000\"}\n";

/// Makes a small image, pushes it and forgets it; its pinned name.
const IMPORT: &str = "
d=/root/rootfs; mkdir -p $d/bin; cp /bin/busybox $d/bin/
for it in sh sleep cat true; do ln -sf busybox $d/bin/$it; done
tar -C $d -cf - . | docker import - 127.0.0.1:5000/small:1 >/dev/null
docker push -q 127.0.0.1:5000/small:1 >/dev/null
docker inspect -f '{{index .RepoDigests 0}}' 127.0.0.1:5000/small:1
docker rmi -f 127.0.0.1:5000/small:1 >/dev/null";

fn machine() -> Machine {
    let machine = Lab::machine("store");
    machine.place_host(&host_binary().unwrap());
    machine
}

fn declared(resources: &[Value]) -> Value {
    json!({"version": 1, "resources": resources})
}

fn reconcile(machine: &Machine) -> Value {
    let ran = machine.run([HOST, "--json", "reconcile"]);
    serde_json::from_slice(ran.bytes()).unwrap_or_else(|_| panic!("{}", ran.story()))
}

fn outcome(report: &Value, id: &str) -> String {
    let all = report["resources"].as_array().unwrap();
    let it = all.iter().find(|it| it["id"] == id);
    it.map_or("none", |it| it["outcome"].as_str().unwrap()).to_string()
}

fn told(machine: &Machine, name: &str, template: &str) -> String {
    machine.run(["docker", "inspect", "-f", template, name]).ok().stdout()
}

// R-2 R-3 R-4 R-9 R-13
#[test]
fn a_container_comes_with_its_engine_outlives_a_reboot_and_goes() {
    if lab::skipped() {
        return;
    }
    let store = machine();
    store.write(REGISTRY, SERVED);
    store.run(["systemctl", "restart", "docker-registry"]).ok();
    store.run(["systemctl", "start", "docker"]).ok();
    let mut image = String::new();
    let mut story = String::new();
    let is_up = until(Duration::from_secs(30), || {
        let ran = store.sh(IMPORT);
        (image, story) = (ran.stdout(), ran.story());
        ran.code() == 0
    });
    assert!(is_up, "{story}");
    store.run(["systemctl", "stop", "-q", "docker.socket", "docker"]).ok();
    let engine = json!({"id": "engine", "type": "service", "unit": "docker", "state": "running"});
    let net = json!({"id": "net", "type": "container_network", "name": "back"});
    let conf = json!({"id": "conf", "type": "file", "path": "/etc/store.conf", "content": "one"});
    let container = |command: &[&str]| {
        json!({"id": "store", "type": "container", "name": "store", "image": image,
               "command": command, "networks": ["back"], "restart": "always", "stop_timeout_s": 0,
               "mounts": [{"source": "/etc/store.conf", "target": "/conf"}],
               "ports": [{"host": 8080, "container": 80}], "restart_on": ["conf"]})
    };
    let it = container(&["sleep", "1000"]);
    let bare = declared(&[net.clone(), conf.clone(), it.clone()]);
    let dead = store.apply(&bare);
    assert_eq!((dead.code(), dead.outcome_of("net")), (1, "failed"));
    let cause = dead.report["errors"][0]["cause"].to_string();
    assert!(cause.contains("Cannot connect to the Docker daemon"), "{cause}");

    let all = declared(&[engine.clone(), net.clone(), conf.clone(), it]);
    let applied = store.apply(&all).converged();
    assert_eq!(applied.outcome_of("store"), "created");
    let id = told(&store, "store", "{{.Id}}");
    store.apply(&all).idle();

    store.run(["systemctl", "restart", "docker"]).ok();
    store.apply(&all).idle();
    store.reboot();
    store.run(["systemctl", "restart", "docker-registry"]).ok();
    let report = reconcile(&store);
    assert_eq!(report["outcome"], "converged", "{report}");
    store.apply(&all).idle();
    assert_eq!(told(&store, "store", "{{.Id}} {{.State.Running}}"), format!("{id} true"));
    store.run(["docker", "stop", "store"]).ok();
    assert_eq!(outcome(&reconcile(&store), "store"), "corrected");

    let mut changed = conf.clone();
    changed["content"] = "two".into();
    let started = told(&store, "store", "{{.State.StartedAt}}");
    let it = container(&["sleep", "1000"]);
    store.apply(declared(&[engine.clone(), net.clone(), changed.clone(), it])).converged();
    assert_ne!(told(&store, "store", "{{.State.StartedAt}}"), started);
    assert_eq!(store.run(["docker", "exec", "store", "cat", "/conf"]).ok().stdout(), "two");

    let broken = container(&["sh", "-c", "echo no such book; exit 4"]);
    let failed = store.apply(declared(&[engine.clone(), net.clone(), changed.clone(), broken]));
    assert_eq!(failed.code(), 1);
    let cause = failed.report["errors"][0]["cause"].to_string();
    assert!(cause.contains("no such book") && cause.contains("runs again"), "{cause}");
    assert_eq!(told(&store, "store", "{{.Id}} {{.State.Running}}"), format!("{id} true"));

    let gone = store.apply(declared(&[engine])).converged();
    assert_eq!((gone.outcome_of("store"), gone.outcome_of("net")), ("removed", "removed"));
    assert_eq!(store.run(["docker", "ps", "-aq"]).ok().stdout(), "");
    store.run(["docker", "image", "inspect", &image]).ok();
}
