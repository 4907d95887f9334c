//! Declarations without fault.

use super::{document, faults, lines, read, read_trusted};
use crate::resource::kind::KINDS;
use crate::resource::Object;

const DIGEST: &str = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
pub const KEY: &str = "GV6zEpiLKQOgzJDCCJsGTkYeP0wIIqDCtrCBAVfUhwE=";
pub const OTHER_KEY: &str = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";

/// Resources of every type, each with every field that can stand with the others.
pub fn examples() -> Vec<(&'static str, String)> {
    let example = |kind: &'static str, fields: &str| {
        (kind, format!("{{\"id\":\"{kind}\",\"type\":\"{kind}\",\"timeout_s\":86400,{fields}}}"))
    };
    vec![
        example("directory", r#""path":"/srv/x","mode":"0750","owner":"www-data","group":"33""#),
        example(
            "file",
            r#""path":"/srv/x/y","content":"a\nb","mode":"644","owner":"0","group":"adm",
               "secret":true"#,
        ),
        example("symlink", r#""path":"/srv/z","target":"../x//y""#),
        example("package", r#""name":"gtk2+extra.0""#),
        example("group", r#""name":"store","gid":990,"system":true"#),
        example(
            "user",
            r#""name":"store","uid":990,"group":"store","groups":["adm","kvm"],"home":"/",
               "shell":"/usr/bin/nologin","system":true,"comment":"The store, 1",
               "authorized_keys":["ssh-ed25519 AAAAC3Nz me@home",
               "from=\"10.0.0.1\" ecdsa-sha2-nistp256 AAAAE2"]"#,
        ),
        example(
            "service",
            r#""unit":"getty@tty1","state":"running","enabled":true,
               "restart_on":["file","package"],"reload_on":["file"]"#,
        ),
        example(
            "container",
            &r#""name":"store","image":"registry:5000/a/b:1@sha256:DIGEST","command":["-x",""],
               "entrypoint":["/bin/x"],"env":{"discovery.type":"single"},"secret_env":{"P":"s"},
               "ports":[{"host":80,"container":8080,"protocol":"udp","address":"::1"},
               {"host":80,"container":8080}],
               "mounts":[{"source":"/","target":"/host","read_only":true},
               {"source":"vol","target":"/data"}],"networks":["inside"],"hostname":"a.b","user":"1:2",
               "workdir":"/","restart":"on-failure:3","health":{"command":["true"],"interval_s":5,
               "timeout_s":2,"retries":3,"start_period_s":0},"wait_healthy_s":60,
               "memory_bytes":6291456,"cpus":0.5,"cap_add":["NET_ADMIN"],"cap_drop":["ALL"],
               "read_only":true,"tmpfs":["/run:size=64m,mode=755","/tmp"],
               "devices":["/dev/fuse:/dev/fuse:rwm","/dev/kvm"],"privileged":false,
               "extra_hosts":["a:host-gateway","b:::1"],"dns":["9.9.9.9"],"labels":{"a.b/c":""},
               "stop_timeout_s":0,"restart_on":["file"]"#
                .replace("DIGEST", DIGEST),
        ),
        example(
            "container_network",
            r#""name":"inside","driver":"bridge","subnet":"10.9.0.0/16","internal":true"#,
        ),
        example("sysctl", r#""key":"net/ipv4/conf/eth0.1/forwarding","value":1"#),
        example(
            "packet_filter",
            r#""table":"inet guard",
               "chains":[{"name":"in","type":"filter","hook":"input","priority":"filter - 5",
               "policy":"drop","rules":["tcp dport { 22, 80 } accept","ct state invalid drop",
               "log prefix \"a;b#\" "]},
               {"name":"out","type":"filter","hook":"output","priority":-10},{"name":"plain"}],
               "sets":[{"name":"s","type":"ipv4_addr . inet_service","flags":["interval"],
               "elements":["10.0.0.1 . 22"],"timeout_s":60,"auto_merge":true}],
               "maps":[{"name":"m","type":"inet_service","value":"verdict","flags":[],
               "elements":{"22":"accept"}}]"#,
        ),
        example(
            "overlay",
            r#""interface":"mesh0","addresses":["10.0.0.1/24","fd00::1/64"],"listen_port":51820,
               "mtu":1420,"private_key_file":"/etc/wireguard/mesh0.key""#,
        ),
        example(
            "peer",
            &r#""overlay":"overlay","public_key":"KEY","allowed_ips":["10.0.0.2/32"],
               "endpoint":"[2001:db8::1]:51820","persistent_keepalive_s":25,"preshared_key":"KEY""#
                .replace("KEY", KEY),
        ),
        example(
            "dataset",
            r#""name":"tank/a-b","properties":{"compression":"lz4"},"mountpoint":"/srv/data""#,
        ),
        example(
            "action",
            r#""run":["make-ca","--now",""],"verify":["test","-e","/x"],"env":{"A_1":"b"},
               "workdir":"/srv""#,
        ),
    ]
}

/// The resources that an example refers to go before it.
fn with_references(examples: &[(&str, String)], kind: &str) -> String {
    let wanted: &[&str] = match kind {
        "service" => &["file", "package", "service"],
        "container" => &["file", "container"],
        "peer" => &["overlay", "peer"],
        _ => &[kind],
    };
    let texts = examples.iter().filter(|(kind, _)| wanted.contains(kind)).map(|(_, text)| &**text);
    texts.collect::<Vec<_>>().join(",")
}

#[test]
fn every_type_is_read_whole_with_all_of_its_fields() {
    let examples = examples();
    let kinds: Vec<&str> = KINDS.iter().map(|kind| kind.name).collect();
    assert_eq!(examples.iter().map(|(kind, _)| *kind).collect::<Vec<_>>(), kinds);
    for (kind, text) in &examples {
        let resources = with_references(&examples, kind);
        let expected = if *kind == "action" { "only a bundle may carry an action" } else { "" };
        let found = lines(&faults(&resources));
        assert!(found.is_empty() == expected.is_empty() && found.contains(expected), "{found}");
        for field in KINDS.iter().find(|it| it.name == *kind).unwrap().fields {
            let absent = ["content_base64", "source", "network_mode"].contains(&field.name);
            assert!(
                absent || text.contains(&format!("\"{}\":", field.name)),
                "{kind} {}",
                field.name
            );
        }
    }
}

#[test]
fn a_type_without_an_applier_is_refused_only_once_its_rules_hold() {
    // R-7
    let text = document(r#"{"id":"p","type":"package","name":"vim"}"#);
    let found = read(&text).unwrap_err();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].place, r#"resources[0] "p""#);
    assert_eq!(found[0].wrong, r#"type "package" is not supported by this host yet"#);
    let bad = document(r#"{"id":"p","type":"package","name":"vim=1"}"#);
    let found = lines(&read(&bad).unwrap_err());
    assert!(found.contains("name") && !found.contains("supported"), "{found}");
}

#[test]
fn resources_keep_the_stated_order() {
    // R-8
    let text = document(
        r#"{"id":"z","type":"directory","path":"/srv/z"},
           {"id":"a","type":"file","path":"/srv/z/f","content":""},
           {"id":"m","type":"sysctl","key":"kernel.panic","value":"10"},
           {"id":"b","type":"symlink","path":"/srv/a","target":"z"}"#,
    );
    let declaration = read(&text).unwrap();
    let ids: Vec<&str> = declaration.resources.iter().map(|it| &*it.id).collect();
    assert_eq!(ids, ["z", "a", "m", "b"]);
    let object = declaration.resources[1].resource.object();
    assert_eq!(object, Object::new("path", "/srv/z/f"));
}

#[test]
fn an_action_is_a_bundles_alone() {
    // R-11
    let (_, action) = examples().pop().unwrap();
    let refused = read(&document(&action)).unwrap_err();
    assert_eq!(refused.len(), 1);
    assert_eq!(refused[0].wrong, "only a bundle may carry an action");
    let declaration = read_trusted(&document(&action)).unwrap();
    assert_eq!(declaration.resources[0].resource.kind(), "action");
    assert_eq!(declaration.resources[0].timeout.as_secs(), 86_400);
    let rules = read_trusted(&document(r#"{"id":"a","type":"action","run":["x"]}"#)).unwrap_err();
    assert!(lines(&rules).contains("verify"), "{rules:?}"); // R-12
}

#[test]
fn a_list_of_nothing_is_a_declaration() {
    let text =
        "\n{\"resources\":[],\"serial\":18446744073709551615,\"node\":\"web-1\",\"version\":1}";
    let declaration = read(text).unwrap();
    assert!(declaration.resources.is_empty());
    assert_eq!(declaration.serial, Some(u64::MAX));
    assert_eq!(declaration.node.as_deref(), Some("web-1"));
    assert_eq!(declaration.sha256, crate::digest::sha256(text.as_bytes()));
}

#[test]
fn what_is_built_is_what_was_declared() {
    let text = document(
        r#"{"id":"d","type":"directory","path":"//srv/./d/","mode":"1777","owner":"u$","group":"7"},
           {"id":"e","type":"file","path":"/srv/e","content_base64":"AP8=","secret":true,
            "timeout_s":1},
           {"id":"f","type":"file","path":"/srv/f","source":{"url":"https://h/x",
            "sha256":"9F86D081884C7D659A2FEAA0C55AD015A3BF4F1B2B0B822CD15D6C15B0F00A08"}},
           {"id":"k","type":"sysctl","key":"net/ipv4/conf/eth0.1/forwarding","value":-1}"#,
    );
    let declaration = read(&text).unwrap();
    let shown: Vec<String> =
        declaration.resources.iter().map(|it| format!("{:?}", it.resource)).collect();
    assert_eq!(
        shown[0],
        "Directory { path: RootPath(\"/srv/d\"), access: Access { mode: Some(1023), \
         owner: Some(Name(\"u$\")), group: Some(Id(7)) } }"
    );
    assert!(
        shown[1].contains("body: 2 bytes") && shown[1].contains("secret: true"),
        "{}",
        shown[1]
    );
    assert!(
        shown[3].contains("\"net.ipv4.conf.eth0/1.forwarding\", value: \"-1\""),
        "{}",
        shown[3]
    );
    let seconds: Vec<u64> = declaration.resources.iter().map(|it| it.timeout.as_secs()).collect();
    assert_eq!(seconds, [60, 1, 60, 60]);
}

#[test]
fn a_name_written_with_escapes_is_the_same_name() {
    let text = document(r#"{"\u0069d":"\u0061","type":"file","path":"/srv/\u0061","content":""}"#);
    let declaration = read(&text).unwrap();
    assert_eq!(&*declaration.resources[0].id, "a");
    let twice = document(
        r#"{"id":"a","type":"file","path":"/srv/a","content":""},
           {"id":"\u0061","type":"file","path":"/srv/b","content":""}"#,
    );
    assert!(lines(&read(&twice).unwrap_err()).contains("is the id of resources[0] already"));
}
