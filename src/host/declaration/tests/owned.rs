//! What is the host's own is refused in every disguise.

use super::{document, faults, lines, parse, read, Own};
use crate::resource::RootPath;

/// The fields of one resource, each naming the host itself.
const REFUSED: &[&str] = &[
    // Its unit, with or without suffix, and what belongs to a unit of its name.
    r#""type":"service","unit":"nox-mesh-host""#,
    r#""type":"service","unit":"nox-mesh-host.service""#,
    r#""type":"service","unit":"nox-mesh-host.timer""#,
    // Its package.
    r#""type":"package","name":"nox-mesh-host""#,
    r#""type":"package","name":"nox-mesh-host-git""#,
    // Its places.
    r#""type":"directory","path":"/etc/mesh-host""#,
    r#""type":"file","path":"/etc/mesh-host/config.json","content":"""#,
    r#""type":"file","path":"/etc//mesh-host/./substrate.lock","content":"""#,
    r#""type":"file","path":"/var/lib/mesh-host/journal.jsonl","content":"""#,
    r#""type":"symlink","path":"/var/lib/mesh-host","target":"/tmp""#,
    r#""type":"directory","path":"/run/mesh-host/x""#,
    r#""type":"directory","path":"/var/run/mesh-host/x""#,
    r#""type":"file","path":"/usr/bin/nox-mesh-host","content":"""#,
    r#""type":"file","path":"/bin/nox-mesh-host","content":"""#,
    r#""type":"symlink","path":"/usr/local/bin/nox-mesh-host","target":"x""#,
    // Its unit's file and drop-ins, wherever systemd reads them.
    r#""type":"file","path":"/etc/systemd/system/nox-mesh-host.service","content":"""#,
    r#""type":"symlink","path":"/run/systemd/system/nox-mesh-host.service","target":"/dev/null""#,
    r#""type":"file","path":"/lib/systemd/system/nox-mesh-host.service","content":"""#,
    r#""type":"file","path":"/usr/local/lib/systemd/system/nox-mesh-host.service","content":"""#,
    r#""type":"directory","path":"/etc/systemd/system/nox-mesh-host.service.d""#,
    r#""type":"file","path":"/etc/systemd/system.control/nox-mesh-host.service.d/a.conf",
       "content":"""#,
    r#""type":"file","path":"/run/systemd/transient/nox-mesh-host.service","content":"""#,
    r#""type":"file","path":"/run/systemd/generator.late/nox-mesh-host.service","content":"""#,
    r#""type":"file","path":"/etc/systemd/system.attached/nox-mesh-host.service","content":"""#,
    r#""type":"file","path":"/etc/systemd/system/service.d/a.conf","content":"""#,
    r#""type":"file","path":"/usr/lib/systemd/system/nox-.service.d/a.conf","content":"""#,
    r#""type":"directory","path":"/etc/systemd/system/nox-mesh-.service.d""#,
    // Links by which it is started, or by another name.
    r#""type":"symlink","path":"/etc/systemd/system/multi-user.target.wants/nox-mesh-host.service",
       "target":"../x.service""#,
    r#""type":"symlink","path":"/etc/systemd/system/a.target.requires/nox-mesh-host.service",
       "target":"x""#,
    r#""type":"symlink","path":"/etc/systemd/system/a.target.upholds/nox-mesh-host.service",
       "target":"x""#,
    r#""type":"symlink","path":"/etc/systemd/system/other.service",
       "target":"/usr/lib/systemd/system/nox-mesh-host.service""#,
    r#""type":"symlink","path":"/etc/systemd/system/other.service",
       "target":"nox-mesh-host.service/""#,
    r#""type":"file","path":"/etc/systemd/system/other.service",
       "content":"[Install]\nAlias = a.service nox-mesh-host.service\n""#,
    r#""type":"file","path":"/etc/systemd/system/other.service.d/x.conf",
       "content":"[Unit]\nConflicts=\\\n  nox-mesh-host.service""#,
    // W0luc3RhbGxdCkFsaWFzPW5veC1tZXNoLWhvc3Quc2VydmljZQo= is an [Install] section with an alias.
    r#""type":"file","path":"/etc/systemd/system/other.service",
       "content_base64":"W0luc3RhbGxdCkFsaWFzPW5veC1tZXNoLWhvc3Quc2VydmljZQo=""#,
    // The package's own preset, and one that takes its word back.
    r#""type":"symlink","path":"/etc/systemd/system-preset/80-nox-mesh-host.preset",
       "target":"/dev/null""#,
    r#""type":"file","path":"/lib/systemd/system-preset/00-a.preset",
       "content":";a\n disable\tnox-mesh-host.service\n""#,
    r#""type":"file","path":"/etc/systemd/system-preset/00-a.preset",
       "content":"disable n[!x]?-*\n""#,
    r#""type":"symlink","path":"/etc/systemd/system-preset","target":"/srv/presets""#,
    // The mode and owner of what is above it, and other things put in its place.
    r#""type":"directory","path":"/etc","mode":"0755""#,
    r#""type":"directory","path":"/var/lib","owner":"root""#,
    r#""type":"directory","path":"/usr/local/bin","group":"staff""#,
    r#""type":"directory","path":"/bin","mode":"0700""#,
    r#""type":"directory","path":"/etc/systemd/system","mode":"0700""#,
    r#""type":"directory","path":"/etc/systemd/system/multi-user.target.wants","mode":"0700""#,
    r#""type":"symlink","path":"/etc/systemd/system.control","target":"/srv/units""#,
    r#""type":"file","path":"/usr/lib/systemd","content":"""#,
    // Other types that would write there.
    r#""type":"container","name":"c","image":"sha256:DIGEST",
       "mounts":[{"source":"/var/lib/mesh-host","target":"/x"}]"#,
    r#""type":"container","name":"c","image":"sha256:DIGEST",
       "mounts":[{"source":"/","target":"/x","read_only":false}]"#,
    r#""type":"container","name":"c","image":"sha256:DIGEST",
       "mounts":[{"source":"/etc/systemd/system/","target":"/x"}]"#,
    r#""type":"user","name":"u","home":"/var/lib/mesh-host""#,
    r#""type":"overlay","interface":"w","addresses":["10.0.0.1/8"],
       "private_key_file":"/etc/mesh-host/key""#,
    r#""type":"dataset","name":"a","mountpoint":"/var/lib""#,
];

/// What only looks like it, and is declared by people in good faith.
const ALLOWED: &[&str] = &[
    r#""type":"directory","path":"/etc""#,
    r#""type":"directory","path":"/var/lib""#,
    r#""type":"directory","path":"/etc/systemd/system""#,
    r#""type":"file","path":"/etc/mesh-hosts","content":"""#,
    r#""type":"file","path":"/usr/bin/nox-mesh-host-lint","content":"""#,
    r#""type":"file","path":"/srv/doc/nox-mesh-host.service","content":"""#,
    r#""type":"file","path":"/etc/systemd/system/other.service",
       "content":"[Unit]\nAfter=nox-mesh-host.service\n""#,
    r#""type":"file","path":"/etc/systemd/system/other.service.d/a.conf","content":"""#,
    r#""type":"file","path":"/etc/systemd/system-preset/99-a.preset",
       "content":"enable nox-mesh-host.service\ndisable nox-other*\ndisable *.service\ndisable *""#,
    r#""type":"symlink","path":"/srv/mesh","target":"/var/lib/mesh-host""#,
    r#""type":"service","unit":"nox-mesh-hostile""#,
    r#""type":"package","name":"nox-mesh""#,
    r#""type":"container","name":"c","image":"sha256:DIGEST",
       "mounts":[{"source":"/","target":"/x","read_only":true}]"#,
    r#""type":"user","name":"u","home":"/""#,
];

/// Files of units, by their names, as systemd 252 was seen to honour them.
const UNITS: &[(&str, &str)] = &[
    ("host.service", "Alias=nox-mesh-%p.service"),
    ("host.service", "Alias=nox-mesh-%N.service"),
    ("host.service", "Alias=nox-mesh-%n"),
    ("x-host.service", "Alias=nox-mesh-%j.service"),
    ("x@host.service", "Conflicts=nox-mesh-%i.service"),
    ("nox@host.service", "Conflicts=%p-mesh-%i.service"),
    ("x@.service", "Conflicts=nox-mesh-%i.service"),
    ("x@.service", "Conflicts=%I"),
    ("x.service", "PropagatesStopTo=nox-mesh-%H.service"),
    ("host.service.d/a.conf", "Alias=nox-mesh-%p.service"),
    ("x-.service.d/a.conf", "Conflicts=%p-host.service"),
    ("x.service", "Alias=\"nox-mesh-host.service\""),
    ("x.service", "Alias=nox-'mesh'-host.service"),
    ("x.service", "Conflicts=nox\\x2dmesh\\055host.service"),
    ("x.service", "Alias=a.service \\\n# comment\n ;\\\n nox-mesh-host.service"),
    ("x.service", "Conflicts=a.service\\\r\nnox-mesh-host.service"),
    ("x.service", "Conflicts=a \\\n\u{c}# nox-mesh-host.service"),
    ("x.service", "Description=a\rAlias=nox-mesh-host.service"),
    ("x.service", "#a\0Alias=nox-mesh-host.service"),
    ("x.service", "Description=a \\\n\nAlias=nox-mesh-host.service"),
    ("x.service", "Description=a\\\\\nAlias=nox-mesh-host.service"),
    ("x.service", "\u{feff}Alias=nox-mesh-host.service"),
    ("x.service", "PropagatesStopTo = a.service\tnox-mesh-host.service"),
    ("x.service", "Also=nox-mesh-host.service"),
    ("x.service", "RequiredBy=nox-mesh-host.service"),
];

/// Files of units that systemd takes to name others.
const OTHER_UNITS: &[(&str, &str)] = &[
    ("x.service", "Alias=nox-mesh-%p.service"),
    ("x.service", "Alias=nox-mesh-%%p.service"),
    ("x.service", "Conflicts=%p-%H.service %i.service"),
    ("x@.service", "Conflicts=%p-%i.service rescue.service a@%i.socket"),
    ("x.service", "After=nox-mesh-host.service\nBindsTo=nox-mesh-host.service"),
    ("x.service", "#Alias=a \\\n#nox-mesh-host.service"),
    ("x.service", "Description=a \\\nAlias=nox-mesh-host.service"),
    ("x.service", "Alias\nConflicts=\n=\nnox-mesh-host.service"),
    ("x.service", "Conflicts=nox-mesh-hostile.service %"),
];

#[test]
fn a_unit_names_the_host_in_every_way_that_systemd_reads() {
    // R-15
    let own = Own::default();
    for (units, refused) in [(UNITS, true), (OTHER_UNITS, false)] {
        for (name, text) in units {
            let path = RootPath::parse(&format!("/etc/systemd/system/{name}")).unwrap();
            let found = own.refuses_text(&path, text.as_bytes()).is_some();
            assert_eq!(found, refused, "{name}: {text:?}");
        }
    }
}

fn resource(id: &str, fields: &str) -> String {
    format!("{{\"id\":\"{id}\",{}}}", fields.replace("DIGEST", &"0".repeat(64)))
}

#[test]
fn a_declaration_of_the_host_itself_is_refused() {
    // R-15, R-29
    for fields in REFUSED {
        let found = faults(&resource("a", fields));
        assert_eq!(found.len(), 1, "{fields}\n{}", lines(&found));
        assert!(found[0].wrong.starts_with("touches "), "{fields}\n{}", lines(&found));
    }
}

#[test]
fn what_only_looks_like_the_host_is_not_refused() {
    for fields in ALLOWED {
        let found = faults(&resource("a", fields));
        assert!(found.is_empty(), "{fields}\n{}", lines(&found));
    }
}

#[test]
fn the_places_in_use_are_the_hosts_own_too() {
    // R-15
    let place = |path| Some(RootPath::parse(path).unwrap());
    let own = Own {
        state: place("/srv/mesh/state"),
        binary: place("/opt/mesh/bin/nox"),
        config: place("/opt/mesh/config.json"),
    };
    for (fields, refused) in [
        (r#""type":"file","path":"/srv/mesh/state/journal.jsonl","content":"""#, true),
        (r#""type":"file","path":"/opt/mesh/bin/nox","content":"""#, true),
        (r#""type":"file","path":"/opt/mesh/config.json","content":"""#, true),
        (r#""type":"directory","path":"/srv","mode":"0755""#, true),
        (r#""type":"directory","path":"/srv""#, false),
        (r#""type":"file","path":"/opt/mesh/other","content":"""#, false),
    ] {
        let text = document(&resource("a", fields)).into_bytes();
        assert_eq!(parse(text, &own).is_err(), refused, "{fields}");
    }
}

#[test]
fn a_declared_link_is_no_way_to_the_host() {
    // R-15
    let file =
        |path: &str| resource("f", &format!(r#""type":"file","path":"{path}","content":"""#));
    let link = |id: &str, path: &str, target: &str| {
        resource(id, &format!(r#""type":"symlink","path":"{path}","target":"{target}""#))
    };
    let etc = link("l", "/srv/a", "/etc/mesh-host");
    for (list, refused) in [
        (vec![etc.clone(), file("/srv/a/config.json")], true),
        (vec![file("/srv/a/config.json"), etc.clone()], true),
        (vec![etc.clone(), file("/srv/b/config.json")], false),
        (vec![link("l", "/srv/a", "../etc"), file("/srv/a/mesh-host/x")], true),
        (
            vec![link("l", "/srv/a", "b"), link("m", "/srv/b", "/"), file("/srv/a/run/mesh-host")],
            true,
        ),
        (
            vec![
                link("l", "/srv/a", "/usr/lib/systemd/system/x/../nox-mesh-host.service"),
                link("m", "/etc/systemd/system/other.service", "/srv/a"),
            ],
            true,
        ),
        (
            vec![
                link("l", "/etc/systemd/system/a.wants", "/srv/wants"),
                file("/srv/wants/nox-mesh-host.service"),
            ],
            true,
        ),
        (
            vec![
                etc.clone(),
                resource(
                    "c",
                    r#""type":"container","name":"c","image":"sha256:DIGEST",
                       "mounts":[{"source":"/srv/a/x","target":"/x"}]"#,
                ),
            ],
            true,
        ),
        (
            vec![
                link("l", "/srv/a", "/"),
                resource("d", r#""type":"directory","path":"/srv/a/etc","mode":"0700""#),
            ],
            true,
        ),
    ] {
        let list = list.join(",");
        let found = faults(&list);
        assert_eq!(!found.is_empty(), refused, "{list}\n{}", lines(&found));
    }
}

#[test]
fn a_declared_link_makes_no_unit_of_a_file_that_names_the_host() {
    // R-15
    let link = |path: &str, target: &str| {
        resource("l", &format!(r#""type":"symlink","path":"{path}","target":"{target}""#))
    };
    let file = |path: &str, text: &str| {
        resource("f", &format!(r#""type":"file","path":"{path}","content":"{text}""#))
    };
    let alias = "[Install]\\nAlias=nox-mesh-%p.service";
    let unit = "/etc/systemd/system/host.service";
    for (link, file, refused) in [
        (link(unit, "/srv/a"), file("/srv/a", alias), true),
        (link(unit, "../../../srv/./a"), file("/srv/a", alias), true),
        (link(&format!("{unit}.d"), "/srv"), file("/srv/a.conf", alias), true),
        (link("/l", "/etc/systemd"), file("/l/system/host.service", alias), true),
        (link(unit, "/srv/b"), file("/srv/a", alias), false),
        (link(unit, "/srv/a"), file("/srv/a", "[Install]\\nAlias=%p-a.service"), false),
        (link("/etc/systemd/system/x.service", "/srv/a"), file("/srv/a", alias), false),
    ] {
        for list in [[&*link, &*file].join(","), [&*file, &*link].join(",")] {
            let found = faults(&list);
            assert_eq!(!found.is_empty(), refused, "{list}\n{}", lines(&found));
        }
    }
}

#[test]
fn the_refusal_comes_before_anything_else_of_the_list() {
    // R-7, R-15
    let list = [
        resource("a", r#""type":"file","path":"/srv/x","content":"""#),
        resource("b", r#""type":"file","path":"/etc/mesh-host/x","content":"""#),
    ];
    assert!(read(&document(&list.join(","))).is_err());
}

#[test]
fn the_machine_can_ask_of_the_paths_it_finds() {
    let own = Own::default();
    let path = |text| RootPath::parse(text).unwrap();
    assert!(own.refuses(&path("/var/lib/mesh-host/secrets/x")).is_some());
    assert!(own.refuses(&path("/srv/x")).is_none());
    assert!(own.refuses_access(&path("/var")).is_some());
    assert!(own.refuses_directory(&path("/var")).is_none());
    assert!(own.refuses_tree("/").is_some());
}
