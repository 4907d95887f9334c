//! What docker really said, whole, cut short and twisted. Recorded with Debian's engine 20.10.24,
//! by its own client and by that of docker 28.2.2.

use super::*;
use crate::declaration::{self, Own};
use crate::resource::Question;
use crate::when::When;

const PS: [&str; 2] = [
    include_str!("../../../../tests/transcripts/docker/ps-20.10.txt"),
    include_str!("../../../../tests/transcripts/docker/ps-28.2.txt"),
];
const NETWORK_LS: [&str; 2] = [
    include_str!("../../../../tests/transcripts/docker/network-ls-20.10.txt"),
    include_str!("../../../../tests/transcripts/docker/network-ls-28.2.txt"),
];
const INSPECT: [&str; 2] = [
    include_str!("../../../../tests/transcripts/docker/inspect-20.10.json"),
    include_str!("../../../../tests/transcripts/docker/inspect-28.2.json"),
];
const VERSION: [&str; 2] = [
    include_str!("../../../../tests/transcripts/docker/version-20.10.json"),
    include_str!("../../../../tests/transcripts/docker/version-28.2.json"),
];

const SHOP: &str = "f45e6ea1bc173bffc90f7c59859669906d8587c23255ae2e318f86080ff7cd80";

fn port(text: &str) -> Port {
    let (address, host) = text.rsplit_once(':').unwrap_or(("", text));
    let address = Some(address).filter(|it| !it.is_empty()).map(Into::into);
    Port { host: host.parse().unwrap(), container: 1, protocol: "tcp".into(), address }
}

#[test]
fn the_lists_are_read_as_both_clients_write_them() {
    for (ps, networks_said) in PS.into_iter().zip(NETWORK_LS) {
        let all = containers(ps).unwrap();
        let [spare, shop] = &all[..] else { panic!("{all:?}") };
        assert_eq!((&*spare.name, &*spare.networks), ("spare", &["bridge".into()][..]));
        assert_eq!((&*shop.name, &*shop.id, shop.ports.len()), ("shop", SHOP, 5));
        let held = |text: &str| shop.ports.iter().any(|it| it.clashes(&port(text)));
        for (text, is_held) in [
            ("8080", true),
            ("127.0.0.1:8080", true),
            ("[::]:8080", true),
            ("9001", true),
            ("9002", false),
            ("53", false),
        ] {
            assert_eq!(held(text.trim_start_matches("[::]:")), is_held, "{text}");
        }
        let udp = Port { protocol: "udp".into(), ..port("127.0.0.1:53") };
        assert!(shop.ports.iter().any(|it| it.clashes(&udp)));
        let elsewhere = Port { protocol: "udp".into(), ..port("127.0.0.2:53") };
        assert!(!shop.ports.iter().any(|it| it.clashes(&elsewhere)));
        let names: Vec<Box<str>> =
            networks(networks_said).unwrap().into_iter().map(|it| it.name).collect();
        assert_eq!(names.join(" "), "back bakk bridge host none");
    }
}

#[test]
fn the_details_are_read_as_both_clients_write_them() {
    for said in INSPECT {
        let all = inspected(said).unwrap();
        assert_eq!((all.containers.len(), all.networks.len()), (2, 1));
        let shop = &all.containers[SHOP];
        assert_eq!((&*shop.name, shop.status), ("shop", Status::Running));
        assert_eq!((shop.health, &*shop.probed), (Some(Health::Healthy), "fine\n"));
        assert_eq!((&*shop.restart, shop.memory_bytes), ("on-failure:3", 64 << 20));
        assert_eq!((shop.nano_cpus, shop.otherwise_limited), (500_000_000, false));
        assert_eq!(&*shop.networks, &["back".into()]);
        assert_eq!(&*shop.binds, &[("/srv".into(), "/srv".into())]);
        assert_eq!(shop.labels[&Box::from("a")], "b".into());
        assert!(shop.pid > 0 && shop.image.contains("@sha256:"));
        let spare = all.containers.values().find(|it| *it.name == *"spare").unwrap();
        assert_eq!((spare.status, &*spare.restart, spare.pid), (Status::Created, "no", 0));
        let back = all.networks.values().next().unwrap();
        assert_eq!((&*back.name, &*back.driver, back.internal), ("back", "bridge", false));
        assert_eq!(&*back.subnets, &["10.88.0.0/24".into()]);
        assert_eq!(back.labels[MARK], "m".into());
    }
}

#[test]
fn what_is_cut_short_is_refused_and_never_quoted_with_a_secret() {
    for said in INSPECT.into_iter().map(str::trim_end) {
        assert!(said.contains("canary"));
        for (was, is) in [
            ("\"SECRET=canary\"", "{\"canary\": []}"),
            ("\"Status\": \"running\"", "\"Status\": \"canary\""),
            ("\"Memory\": 67108864", "\"Memory\": \"canary\""),
            ("\"RestartCount\"", "\"Restarts\""),
            ("\"Name\": \"/shop\"", "\"Name\": null"),
        ] {
            assert!(said.contains(was), "{was}");
            if let Err(why) = inspected(&said.replace(was, is)) {
                assert!(!why.contains("canary"), "{why}");
            }
        }
    }
    // One of them, without its blanks: there are bytes enough.
    let all: Vec<serde_json::Value> = serde_json::from_str(INSPECT[0]).unwrap();
    let said = serde_json::to_string(&all[1..2]).unwrap();
    assert!(said.contains("canary") && inspected(&said).is_ok());
    for end in 0..said.len() {
        let why = inspected(&said[..end]).unwrap_err();
        assert!(!why.contains("canary"), "{why}");
    }
    for (said, read) in [
        (PS[0], (|it| containers(it).map(|all| all.len())) as fn(&str) -> Result<usize, String>),
        (NETWORK_LS[0], |it| networks(it).map(|all| all.len())),
    ] {
        for end in 0..said.len() {
            // What is left of it is whole lines, or it is refused.
            match read(&said[..end]) {
                Ok(count) => assert_eq!(count, said[..end].matches(" ;").count()),
                Err(why) => assert!(why.contains("not understood"), "{why}"),
            }
        }
    }
}

#[test]
fn an_engine_that_is_not_dockers_is_told_by_its_name() {
    for said in VERSION {
        assert_eq!(foreign_engine(said), Ok(None));
        for end in 0..said.trim_end().len() {
            assert!(foreign_engine(&said[..end]).is_err(), "{end}");
        }
    }
    let podman = r#"{"Components":[{"Name":"Podman Engine","Version":"4.3.1"}]}"#;
    assert_eq!(foreign_engine(podman), Ok(Some("\"Podman Engine\"".into())));
    assert!(foreign_engine("null\n").unwrap().is_some());
    assert!(is_podman(b"#!/usr/bin/sh\nexec /usr/bin/podman \"$@\"\n"));
    assert!(!is_podman(b"\x7fELF podman"));
}

#[test]
fn the_reason_of_a_failure_is_the_engines_own() {
    for (said, why) in [
        (
            "Error response from daemon: no such image\nError: failed to start containers: a\n",
            Some("Error response from daemon: no such image"),
        ),
        ("unknown flag: --x\nSee 'docker create --help'.\n", Some("unknown flag: --x")),
        ("Warning: x\nerror during connect: y\nmore\n", Some("error during connect: y")),
        (" \n", None),
    ] {
        assert_eq!(reason(said), why);
    }
}

#[test]
fn one_that_the_engine_started_again_just_now_is_told() {
    let shop = inspected(INSPECT[0]).unwrap().containers.remove(SHOP).unwrap();
    let started = When::parse(&format!("{}Z", &shop.started[..19])).unwrap();
    let again = Container { restarts: 1, ..shop.clone() };
    assert!(again.is_back_since(When(started.0 + 1), 2));
    assert!(!again.is_back_since(When(started.0 + 2), 2));
    assert!(!again.is_back_since(When(started.0 - 1), 2), "a clock that was put back");
    assert!(!shop.is_back_since(When(started.0 + 1), 2));
}

// R-13 R-30
#[test]
fn what_makes_a_container_is_pinned_since_its_label_stands_for_it() {
    let text = format!(
        r#"{{"version":1,"resources":[{{"id":"c","type":"container","name":"c",
        "image":"repo@sha256:{}","command":["-x",""],"entrypoint":["/bin/a b","c"],
        "env":{{"B":"2\n","A":"1"}},"secret_env":{{"PW":"canary"}},
        "ports":[{{"host":80,"container":8080}},
            {{"host":53,"container":53,"protocol":"udp","address":"::1"}}],
        "mounts":[{{"source":"/a,\"b","target":"/c"}},
            {{"source":"data","target":"/d","read_only":true}}],
        "networks":["n","m"],"hostname":"h","user":"1:2","workdir":"/w",
        "health":{{"command":["it's","$x"]}},"memory_bytes":6291456,"cpus":0.25,
        "cap_add":["SYS_TIME"],"read_only":true,"stop_timeout_s":0}}]}}"#,
        "0".repeat(64)
    );
    let parsed = declaration::parse(text.into_bytes(), &Own::default()).unwrap();
    let Question::Container { declared: Some(it), .. } = parsed.resources[0].resource.question()
    else {
        panic!("a container asks of itself")
    };
    let argv = create(it, "c.new", &[(MARK, "m")]).join(" ");
    let expected = "docker create --pull=never --name=c.new --network=n --hostname=h --user=1:2 \
        --workdir=/w --entrypoint=/bin/a b --stop-timeout=0 --memory=6291456 \
        --cpus=0.250000000 --restart=no --cap-add=SYS_TIME --env=A=1 --env=B=2\n --env=PW \
        --read-only=true --publish=80:8080/tcp --publish=[::1]:53:53/udp \
        --mount=type=bind,\"source=/a,\"\"b\",target=/c \
        --mount=type=volume,source=data,target=/d,readonly --health-cmd=exec 'it'\\''s' '$x' \
        --health-interval=30s --health-timeout=30s --health-start-period=0s --health-retries=3 \
        --label=mesh-host.mark=m -- repo@sha256:";
    assert!(argv.starts_with(expected), "{argv}");
    assert!(argv.ends_with(" c -x "), "{argv}");
    let form = |secret: &'static str| it.form(&|_| secret.into());
    assert_ne!(form("one"), form("two"));
    assert!(!format!("{it:?}{}", String::from_utf8_lossy(&form("x"))).contains("canary"));
    let seen = std::cell::RefCell::new(Vec::new());
    it.form(&|value| {
        seen.borrow_mut().push(value.to_string());
        String::new()
    });
    assert_eq!(*seen.borrow(), ["PW=canary"]);
}
