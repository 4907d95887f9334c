//! The host's own, reached through the links that stand on the machine: refused before anything is
//! touched, whichever way the links lead, and also where what they lead to is yet to be made.
// R-15

mod support;

use std::fs::create_dir_all;
use std::os::unix::fs::symlink;
use std::path::Path;

use support::said::{at, fed, Said};
use support::snapshot::{assert_same, snapshot};
use support::Scratch;

/// A root with the host's own places in it, and links to them from elsewhere.
fn linked(name: &str) -> Scratch {
    let scratch = Scratch::new(name);
    for directory in [
        "etc/systemd/system/multi-user.target.wants",
        "etc/mesh-host",
        "usr/lib/systemd/system",
        "usr/bin",
        "usr/local/bin",
        "var/lib",
        "srv/state",
        "opt",
        "run",
    ] {
        create_dir_all(scratch.join(directory)).unwrap();
    }
    for (link, target) in [
        ("opt/units", "/etc/systemd/system"),
        ("opt/relative", "../etc/systemd/system"),
        ("opt/twice", "units"),
        ("opt/systemd", "../etc/systemd"),
        ("opt/vendor", "/usr/lib/systemd"),
        ("opt/config", "/etc/mesh-host"),
        ("opt/etc", "/etc"),
        ("opt/lib", "/var/lib"),
        ("opt/default", "/var/lib/mesh-host"),
        ("opt/deep", "/var/lib/mesh-host/gone/deep"),
        ("opt/through", "default/gone"),
        ("opt/dots", "/nowhere/gone//../../var/lib"),
        ("opt/state", "/srv/state"),
        ("opt/srv", "../srv"),
        ("opt/bin", "/usr/local/bin"),
        ("opt/up", "/opt/../opt/../../../etc"),
        ("opt/loop", "loop"),
        ("lib", "usr/lib"),
        ("bin", "usr/bin"),
    ] {
        symlink(target, scratch.join(link)).unwrap();
    }
    scratch
}

/// A resource of the list, all but its id.
const DISGUISED: &[&str] = &[
    r#""type":"file","path":"/opt/units/nox-mesh-host.service","content":"x""#,
    r#""type":"file","path":"/opt/relative/nox-mesh-host.service","content":"x""#,
    r#""type":"file","path":"/opt/twice/nox-mesh-host.service","content":"x""#,
    r#""type":"file","path":"/opt/systemd/system/nox-mesh-host.service","content":"x""#,
    r#""type":"file","path":"/opt/vendor/system/nox-mesh-host.service","content":"x""#,
    r#""type":"file","path":"/opt/units/nox-mesh-host.service.d/10.conf","content":"x""#,
    r#""type":"directory","path":"/opt/units/nox-mesh-host.service.d""#,
    r#""type":"file","path":"/opt/units/service.d/10.conf","content":"x""#,
    r#""type":"file","path":"/opt/units/nox-.service.d/10.conf","content":"x""#,
    r#""type":"symlink","path":"/opt/units/nox-mesh-host.service","target":"/dev/null""#,
    r#""type":"symlink","path":"/opt/units/other.service","target":"nox-mesh-host.service""#,
    r#""type":"symlink","path":"/opt/units/multi-user.target.wants/nox-mesh-host.service",
        "target":"x""#,
    r#""type":"file","path":"/opt/units/other.service",
        "content":"[Install]\nAlias=nox-mesh-host.service\n""#,
    r#""type":"file","path":"/opt/config/config.json","content":"{}""#,
    r#""type":"file","path":"/opt/config/substrate.lock","content":"{}""#,
    r#""type":"directory","path":"/opt/config/sub/sub""#,
    r#""type":"file","path":"/opt/etc/mesh-host/config.json","content":"{}""#,
    r#""type":"file","path":"/opt/up/mesh-host/config.json","content":"{}""#,
    r#""type":"directory","path":"/opt/etc/mesh-host","mode":"0777""#,
    r#""type":"directory","path":"/opt/etc/systemd","mode":"0777""#,
    r#""type":"directory","path":"/opt/lib/mesh-host""#,
    r#""type":"file","path":"/opt/lib/mesh-host/journal.jsonl","content":"""#,
    r#""type":"file","path":"/opt/default/journal.jsonl","content":"""#,
    r#""type":"file","path":"/opt/deep/x","content":"""#,
    r#""type":"directory","path":"/opt/through/x/y""#,
    r#""type":"file","path":"/opt/dots/mesh-host/x","content":"""#,
    r#""type":"file","path":"/opt/bin/nox-mesh-host","content":"x""#,
    r#""type":"symlink","path":"/opt/bin/nox-mesh-host","target":"/bin/true""#,
    r#""type":"file","path":"/bin/nox-mesh-host","content":"x""#,
    r#""type":"file","path":"/lib/systemd/system/nox-mesh-host.service","content":"x""#,
];

/// The same of a state directory in use that lies at `/srv/state`.
const STATE: &[&str] = &[
    r#""type":"file","path":"/srv/state/journal.jsonl","content":"""#,
    r#""type":"file","path":"/opt/state/journal.jsonl","content":"""#,
    r#""type":"directory","path":"/opt/state/secrets""#,
    r#""type":"file","path":"/opt/srv/state/x","content":"""#,
    r#""type":"directory","path":"/opt/srv/state","mode":"0777""#,
    r#""type":"directory","path":"/srv","owner":"1""#,
    r#""type":"symlink","path":"/srv/state","target":"/tmp""#,
];

fn declaration(resource: &str) -> String {
    format!(
        r#"{{"version":1,"resources":[
        {{"id":"good","type":"file","path":"/opt/good",
        "content":"x"}},{{"id":"bad",{resource}}}]}}"#
    )
}

#[track_caller]
fn is_refused(said: Said, resource: &str) {
    let said = said.exits(3);
    let faults: Vec<&str> = said.err.lines().skip(1).collect();
    assert!(faults.len() == 1, "{resource}: {said:#?}");
    assert!(faults[0].starts_with("  resources[1] \"bad\": "), "{resource}: {said:?}");
    assert!(faults[0].contains("; "), "no mend: {said:?}");
    assert!(said.out.is_empty(), "{said:?}");
}

fn refuses_all(root: &Path, flags: &[&str], resources: &[&str]) {
    let before = snapshot(root);
    for resource in resources {
        for command in ["apply", "plan"] {
            let arguments = [flags, &[command, "-"]].concat();
            is_refused(fed(root, &arguments, declaration(resource).as_bytes()), resource);
        }
        assert_same(root, &before, resource);
    }
}

#[test]
fn links_on_a_machine_without_a_store_lead_nowhere_near_the_host() {
    let scratch = linked("links-fresh");
    refuses_all(scratch.path(), &[], DISGUISED);
    assert!(!scratch.join("var/lib/mesh-host").exists());
}

#[test]
fn links_on_a_machine_with_a_store_lead_nowhere_near_it_either() {
    let scratch = linked("links-used");
    let one = r#"{"version":1,"resources":[
        {"id":"one","type":"file","path":"/opt/one","content":"1"}]}"#;
    fed(scratch.path(), &["apply", "-"], one.as_bytes()).exits(0);
    refuses_all(scratch.path(), &[], DISGUISED);
}

#[test]
fn a_state_directory_in_use_is_the_hosts_own_however_it_is_named() {
    let scratch = linked("links-state");
    let root = scratch.path();
    let straight = scratch.join("srv/state");
    // A link that the shell follows: its target is inside the root.
    symlink(&straight, scratch.join("run/state")).unwrap();
    for named in ["srv/state", "run/state", "srv/../srv/./state"] {
        let named = scratch.join(named);
        refuses_all(root, &["--state", named.to_str().unwrap()], STATE);
    }
    assert_eq!(straight.read_dir().unwrap().count(), 0);
    // Where it is not in use it is a directory like any other.
    let free = declaration(STATE[1]);
    fed(root, &["apply", "-"], free.as_bytes()).exits(0);
}

#[test]
fn a_link_that_comes_to_stand_there_later_is_seen_too() {
    let scratch = linked("links-later");
    let root = scratch.path();
    let text =
        declaration(r#""type":"file","path":"/opt/later/nox-mesh-host.service","content":"x""#);
    create_dir_all(scratch.join("opt/later")).unwrap();
    fed(root, &["apply", "-"], text.as_bytes()).exits(0);
    std::fs::rename(scratch.join("opt/later"), scratch.join("opt/before")).unwrap();
    symlink("/etc/systemd/system", scratch.join("opt/later")).unwrap();
    let before = snapshot(&scratch.join("etc"));
    for arguments in [&["apply", "-"][..], &["reconcile"]] {
        let said = fed(root, arguments, text.as_bytes());
        assert!(matches!(said.code, 1 | 3), "{said:?}");
        assert!(said.err.contains("the host's own unit"), "{said:?}");
    }
    // Nor is anything removed there once it is no longer declared.
    std::fs::write(scratch.join("etc/systemd/system/nox-mesh-host.service"), "x").unwrap();
    let said = fed(root, &["apply", "-"], br#"{"version":1,"resources":[]}"#);
    assert!(scratch.join("etc/systemd/system/nox-mesh-host.service").exists(), "{said:?}");
    std::fs::remove_file(scratch.join("etc/systemd/system/nox-mesh-host.service")).unwrap();
    let after = snapshot(&scratch.join("etc"));
    assert_eq!(before.keys().collect::<Vec<_>>(), after.keys().collect::<Vec<_>>());
    at(root, &["status"]).exits(0);
}

#[test]
fn neighbours_of_the_hosts_own_are_nobodys_business() {
    let scratch = linked("links-neighbours");
    for resource in [
        r#""type":"file","path":"/opt/units/other.service",
        "content":"[Unit]\nAfter=nox-mesh-host.service\n""#,
        r#""type":"directory","path":"/opt/units/other.service.d""#,
        r#""type":"file","path":"/opt/etc/motd","content":"x""#,
        r#""type":"directory","path":"/opt/lib/other""#,
        r#""type":"file","path":"/opt/bin/nox-mesh","content":"x""#,
        r#""type":"directory","path":"/etc""#,
    ] {
        fed(scratch.path(), &["apply", "-"], declaration(resource).as_bytes()).exits(0);
    }
}
