//! Bad declarations through the binary: each refused as a whole, every fault of it listed with its
//! place, its field and its mend, and the machine and the store left as they were to the inode.
// R-7

mod support;

use support::said::{fed, Said};
use support::snapshot::{assert_same, snapshot};
use support::Scratch;

/// What a fault's line must hold: its place and field, what is wrong, what would mend it.
type Faults = &'static [&'static str];

/// A declaration of one resource, which `rest` goes on to describe.
macro_rules! one {
    ($rest:literal) => {
        concat!(r#"{"version":1,"resources":[{"id":"x","#, $rest, "}]}")
    };
}

/// Declarations whose text can be written down, each with all its faults in order.
#[rustfmt::skip] // a row a declaration
const TABLE: &[(&str, Faults)] = &[
    // No document.
    ("", &["is empty; to declare nothing, write an empty list"]),
    (" \n\t", &["is empty"]),
    ("null", &["is not JSON; write {\"version\":1"]),
    ("[]", &["is not an object; write"]),
    ("\"text\"", &["is not an object; write"]),
    ("1", &["is not JSON; write"]),
    ("\u{feff}{\"version\":1,\"resources\":[]}", &["begins with a byte order mark"]),
    ("{\"version\":1,\"resources\":[]}\0", &["line 1 column 29: trailing characters"]),
    ("{\"version\":1,\"resources\":[]}{}", &["line 1 column 29: trailing characters"]),
    ("{\"version\":1,\"resources\":[\0]}", &["line 1 column 27: expected value"]),
    ("{\"version\":1,\"resources\":[", &["line 1 column 26: EOF"]),
    ("{\"version\":1,\n\"resources\":[{\"id\":\"x\"", &["resources[0]: line 2 column 22: EOF"]),
    ("{'version':1}", &["line 1 column 2: key must be a string"]),
    ("{\"version\":1,\"resources\":[],}", &["line 1 column 29: trailing comma"]),
    ("{\"version\":1,\"resources\":[{\"id\":\"\u{1b}[2J\"}]}",
        &["resources[0]: line 1 column 33: control character"]),
    ("{\"version\":1,\"resources\":[{\"id\":\"\\ud800\"}]}", &["resources[0]: line 1 column"]),
    // The fields of the document.
    ("{}", &["version: is missing; begin with", "resources: is missing; to declare nothing"]),
    (r#"{"resources":[]}"#, &["version: is missing; begin with \"version\":1"]),
    (r#"{"version":1}"#, &["resources: is missing; to declare nothing"]),
    (r#"{"version":2,"resources":[{"x":1}]}"#, &["version: is 2, which is unknown; this host"]),
    (r#"{"version":"1","resources":[]}"#, &["version: is text, which is unknown; this host"]),
    (r#"{"version":1.0,"resources":[]}"#, &["version: is 1.0, which is unknown; this host"]),
    (r#"{"version":1,"version":1,"resources":[]}"#, &["version: stands here twice; keep one"]),
    (r#"{"version":1,"resources":[],"resources":[]}"#, &["resources: stands here twice; keep"]),
    (r#"{"version":1,"resource":[]}"#, &["\"resource\": is not a field of a declaration; did you \
         mean \"resources\"?", "resources: is missing"]),
    (r#"{"version":1,"resources":{}}"#, &["resources: is an object, not a list; put it in [ ]"]),
    (r#"{"version":1,"resources":null}"#, &["resources: is null, not a list; put it in [ ]"]),
    (r#"{"version":1,"node":"Web","resources":[]}"#, &["node: \"Web\" is not"]),
    (r#"{"version":1,"node":7,"resources":[]}"#, &["node: is an integer, not text"]),
    (r#"{"version":1,"serial":-1,"resources":[]}"#, &["serial: is negative; count from 0"]),
    (r#"{"version":1,"serial":1.5,"resources":[]}"#, &["serial: is a number, not an integer"]),
    (r#"{"version":1,"serial":18446744073709551616,"resources":[]}"#, &["serial: is a number"]),
    // What every resource has.
    (r#"{"version":1,"resources":[null,1,"x",[]]}"#, &[
        "resources[0]: is null, not an object",
        "resources[1]: is an integer, not an object",
        "resources[2]: is text, not an object",
        "resources[3]: is a list, not an object",
    ]),
    (r#"{"version":1,"resources":[{}]}"#, &[
        "resources[0]: id: is missing, and required",
        "resources[0]: type: is missing, and required",
    ]),
    (one!(r#""type":"fil","path":"/x""#), &["resources[0] \"x\": type: \"fil\" is not a type; \
         did you mean \"file\"?"]),
    (one!(r#""type":7"#), &["resources[0] \"x\": type: is an integer, not text"]),
    (one!(r#""type":"action","run":["true"],"verify":["true"]"#),
        &["type: only a bundle may carry an action; apply it"]),
    (r#"{"version":1,"resources":[{"id":"../x","type":"directory","path":"/x"}]}"#, &[
        "resources[0]: id: \"../x\" is not"]),
    (one!(r#""id":"y","type":"directory","path":"/x""#), &["id: stands here twice; keep one"]),
    (one!(r#""type":"directory","path":"/x","timeout_s":0"#), &["timeout_s: is not within 1 to"]),
    (one!(r#""type":"directory","path":"/x","timeout_s":"9""#), &["timeout_s: is text, not an \
         integer; write digits alone, without quotes"]),
    // Fields of a type.
    (one!(r#""type":"directory","path":"/x","mdoe":"0755""#), &[
        "resources[0] \"x\": mdoe: is not a field here; did you mean \"mode\"?"]),
    (one!(r#""type":"directory","path":"/x","path":"/y""#), &["path: stands here twice; keep"]),
    (one!(r#""type":"directory""#), &["resources[0] \"x\": path: is missing, and required"]),
    (one!(r#""type":"directory","path":null"#), &["path: is null, not text; a field without"]),
    (one!(r#""type":"directory","path":["/x"]"#), &["path: is a list, not text"]),
    (one!(r#""type":"directory","path":"/x","mode":755"#), &["mode: is an integer, not text; write \
         octal digits in quotes"]),
    (one!(r#""type":"directory","path":"/x","mode":"9999""#), &["mode: \"9999\" is not a mode; \
         write three or four octal digits"]),
    (one!(r#""type":"directory","path":"/x","owner":"4294967295""#), &["owner: \"4294967295\" is \
         no id that the kernel has"]),
    (one!(r#""type":"directory","path":"/x","owner":"a b""#), &["owner: \"a b\" is not"]),
    (one!(r#""type":"file","path":"/x""#), &["content: is missing, or another of content, cont"]),
    (one!(r#""type":"file","path":"/x","content":"","content_base64":"""#),
        &["content_base64: stands beside content"]),
    (one!(r#""type":"file","path":"/x","content":7"#), &["content: is an integer, not text; put"]),
    (one!(r#""type":"file","path":"/x","content_base64":"a""#), &["content_base64: is not base64: \
         wrong at byte"]),
    (one!(r#""type":"file","path":"/x","content":"","secret":"yes""#), &["secret: is text, not a \
         boolean; write true or false"]),
    (one!(r#""type":"file","path":"/x","source":{"url":"ftp://h/x","sha256":"12","sha256":"13"}"#),
     &["source.url: \"ftp://h/x\" is not an http", "source.sha256: \"12\" is not a SHA-256",
       "source.sha256: stands here twice; keep one"]),
    (one!(r#""type":"symlink","path":"/x""#), &["target: is missing, and required"]),
    (one!(r#""type":"symlink","path":"/x","target":"""#), &["target: \"\" is not"]),
    (one!(r#""type":"sysctl","key":"kernel","value":1"#), &["key: \"kernel\" is not a sysctl key; \
         write its parts with dots"]),
    (one!(r#""type":"sysctl","key":"a..b","value":1"#), &["key: \"a..b\" is not a sysctl key"]),
    (one!(r#""type":"sysctl","key":"a.b","value":"1\n2""#), &["value: \"1\\n2\" is not a kernel \
         value; write it on one line"]),
    // Paths that are none.
    (one!(r#""type":"directory","path":"x""#), &["path: \"x\" is not absolute: start it with /"]),
    (one!(r#""type":"directory","path":"/a/../b""#), &["path: \"/a/../b\" climbs with .."]),
    (one!(r#""type":"directory","path":"/""#), &["path: \"/\" is the root itself"]),
    (one!(r#""type":"directory","path":"/a\u0000b""#), &["path: \"/a\\0b\" holds a NUL byte"]),
    (one!(r#""type":"symlink","path":"/a/.0123456789abcdef.mesh-host~","target":"x""#),
        &["path: \"/a/.0123456789abcdef.mesh-host~\" has a name that the host gives to unfinished \
         files; choose another name"]),
    (one!(r#""type":"directory","path":"//a/.0123456789abcdef.mesh-host~/""#),
        &["has a name that the host gives to unfinished files; choose another name"]),
    // Between resources.
    (r#"{"version":1,"resources":[
        {"id":"x","type":"directory","path":"/x"},{"id":"x","type":"directory","path":"/y"}]}"#,
     &["resources[1] \"x\": id: is the id of resources[0] already"]),
    (r#"{"version":1,"resources":[
        {"id":"x","type":"directory","path":"/x"},{"id":"y","type":"file","path":"//x/./",
        "content":""}]}"#,
     &["resources[1] \"y\": path: \"/x\" is declared by resources[0] \"x\" already; declare each"]),
    (r#"{"version":1,"resources":[{"id":"x","type":"sysctl","key":"net.ipv4.ip_forward","value":1},
        {"id":"y","type":"sysctl","key":"net/ipv4/ip_forward","value":0}]}"#,
     &["resources[1] \"y\": key: \"net.ipv4.ip_forward\" is declared by resources[0] \"x\""]),
    (r#"{"version":1,"resources":[{"id":"l","type":"symlink","path":"/l","target":"/etc"},
        {"id":"x","type":"directory","path":"/etc/x"},{"id":"y","type":"directory",
        "path":"/l/x"}]}"#,
     &["resources[2] \"y\": path: leads, by a declared link, to what resources[1] \"x\" declares; \
        declare the place"]),
    // References, by a type that has them.
    (one!(r#""type":"service","unit":"u.service","restart_on":["nobody"]"#), &[
        "restart_on[0]: no resource has the id \"nobody\""]),
    (one!(r#""type":"service","unit":"u.service","restart_on":["x"]"#), &[
        "restart_on[0]: \"x\" is this resource itself"]),
    // The host's own, in its disguises.
    // R-15
    (one!(r#""type":"file","path":"/etc/mesh-host/config.json","content":"{}""#),
        &["configuration"]),
    (one!(r#""type":"directory","path":"/var/lib/mesh-host/x""#), &["the host's own state"]),
    (one!(r#""type":"directory","path":"/var/lib","mode":"0777""#), &["a directory above"]),
    (one!(r#""type":"directory","path":"/etc","owner":"nobody""#), &["a directory above what"]),
    (one!(r#""type":"file","path":"/bin/nox-mesh-host","content":"""#), &["own binary"]),
    (one!(r#""type":"file","path":"/lib/systemd/system/nox-mesh-host.service","content":"""#),
     &["the host's own unit"]),
    (one!(r#""type":"file","path":"/etc/systemd/system/nox-mesh-host.timer","content":"""#),
     &["the host's own unit"]),
    (one!(r#""type":"file","path":"/etc/systemd/system/service.d/a.conf","content":"""#),
     &["a drop-in that the host's own unit inherits"]),
    (one!(r#""type":"file","path":"/run/systemd/system/nox-.service.d/a.conf","content":"""#),
     &["a drop-in that the host's own unit inherits"]),
    (one!(r#""type":"symlink","path":"/etc/systemd/system/x.service",
        "target":"nox-mesh-host.service""#),
     &["the host's own unit"]),
    (one!(r#""type":"symlink","path":"/etc/systemd/system/nox-mesh-host.service",
        "target":"/dev/null""#),
     &["the host's own unit"]),
    (one!(r#""type":"symlink","path":"/etc/systemd/system/a.target.wants/nox-mesh-host.service",
        "target":"/x""#),
     &["the host's own unit"]),
    (one!(r#""type":"file","path":"/etc/systemd/system/x.service",
        "content":"[Install]\nAlias=nox-mesh-host.service\n""#),
     &["the host's own unit"]),
    (one!(r#""type":"file","path":"/etc/systemd/system/host.service",
        "content":"[Install]\nAlias=nox-mesh-%p.service\n""#),
     &["the host's own unit"]),
    (one!(r#""type":"file","path":"/etc/systemd/system/x.service",
        "content":"[Unit]\nConflicts=a.service \\\n# x\n\"nox-mesh-host.service\"\n""#),
     &["the host's own unit"]),
    (one!(r#""type":"file","path":"/etc/systemd/system-preset/00-x.preset",
        "content":"disable nox-*\n""#),
     &["the host's own unit"]),
    (r#"{"version":1,"resources":[{"id":"l","type":"symlink","path":"/l","target":"etc/systemd"},
        {"id":"x","type":"file","path":"/l/system/nox-mesh-host.service","content":""}]}"#,
     &["resources[1] \"x\": path: leads, by a declared link, to"]),
    // R-29
    (one!(r#""type":"package","name":"nox-mesh-host""#), &["the host's own package"]),
    (one!(r#""type":"service","unit":"nox-mesh-host","state":"stopped""#), &["own unit"]),
    // Types that this host does not apply yet.
    (one!(r#""type":"dataset","name":"tank/x""#), &["type: type \"dataset\" is not supported by"]),
];

/// A root with something in it, and a store that has applied something.
fn furnished(name: &str) -> Scratch {
    let scratch = Scratch::new(name);
    for directory in ["etc/systemd/system", "x", "srv"] {
        std::fs::create_dir_all(scratch.join(directory)).unwrap();
    }
    std::fs::write(scratch.join("etc/motd"), "hello\n").unwrap();
    std::os::unix::fs::symlink("motd", scratch.join("etc/link")).unwrap();
    scratch
}

fn with_store(scratch: &Scratch) {
    let owned = r#"{"version":1,"serial":5,"resources":[
        {"id":"kept","type":"file","path":"/srv/kept","content":"kept\n"}]}"#;
    fed(scratch.path(), &["apply", "-"], owned.as_bytes()).exits(0);
}

/// The lines of standard error after the first, which counts them.
#[track_caller]
fn faults(said: &Said) -> Vec<&str> {
    let mut lines = said.err.lines();
    let first = lines.next().unwrap_or_default();
    let rest: Vec<&str> = lines.collect();
    let plural = if rest.len() == 1 { "fault" } else { "faults" };
    let counted = format!(": {} {plural}", rest.len());
    assert!(first.starts_with("nox-mesh-host: refused ") && first.ends_with(&counted), "{said:?}");
    assert!(rest.iter().all(|line| line.starts_with("  ")), "{said:?}");
    rest
}

#[test]
fn every_bad_declaration_is_refused_whole_and_nothing_is_touched() {
    assert!(TABLE.len() >= 50);
    let (fresh, used) = (furnished("refused-fresh"), furnished("refused-used"));
    with_store(&used);
    let before = [&fresh, &used].map(|scratch| snapshot(scratch.path()));
    let mut odd = Vec::new();
    for (text, wanted) in TABLE {
        for (scratch, before) in [&fresh, &used].into_iter().zip(&before) {
            let said = fed(scratch.path(), &["apply", "-"], text.as_bytes()).exits(3);
            assert!(said.out.is_empty(), "{text}: {said:?}");
            said.is_plain();
            let faults = faults(&said);
            assert!(faults.iter().all(|line| line.len() < 600), "{text}: {said:?}");
            let holds = faults.iter().zip(*wanted).all(|(line, wanted)| line.contains(wanted));
            if faults.len() != wanted.len() || !holds {
                odd.push(format!("{text}\nwanted {wanted:#?}\nfound {faults:#?}"));
            }
            assert_same(scratch.path(), before, text);
        }
    }
    assert!(odd.is_empty(), "{}", odd.join("\n\n"));
    // The other commands that read one judge it no less.
    for (text, _) in TABLE {
        for command in ["check", "plan"] {
            fed(used.path(), &[command, "-"], text.as_bytes()).exits(3);
        }
    }
    assert_same(used.path(), &before[1], "check and plan");
}

/// Bad declarations that are made and not written down.
fn made() -> Vec<(&'static str, Vec<u8>, &'static str)> {
    let one = |rest: &str| {
        format!(r#"{{"version":1,"resources":[{{"id":"x","type":"file",{rest}}}]}}"#).into_bytes()
    };
    let deep = |open: &str, shut: &str| {
        one(&format!("\"path\":\"/x\",\"content\":{}1{}", open.repeat(50_000), shut.repeat(50_000)))
    };
    let mut latin = one(r#""path":"/x","content":"caf?""#);
    let at = latin.iter().position(|byte| *byte == b'?').unwrap();
    latin[at] = 0xe9;
    let mut large = vec![b' '; (64 << 20) + 1];
    large[0] = b'{';
    let many = r#"{"id":"x y","type":"directory","path":"x"},"#.repeat(20_000);
    let name = "n".repeat(300_000);
    let utf16: Vec<u8> = "{}".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let stranger = format!("\"path\":\"/x\",\"content\":\"\",\"\\u001b[2J{name}\":1");
    vec![
        ("lists nested deep", deep("[", "]"), "nested more than 32 deep"),
        ("objects nested deep", deep("{\"a\":", "}"), "nested more than 32 deep"),
        ("nested deep in the document", "[".repeat(1 << 20).into_bytes(), "is not an object"),
        ("Latin-1", latin, "is not UTF-8: wrong at byte 76; save it as UTF-8"),
        ("UTF-16", utf16, "line 1 column 2"),
        ("zeros", vec![0; 4096], "is not JSON"),
        ("too large", large, "has more than 64 MiB; fetch large contents by source"),
        ("many faults", format!(r#"{{"version":1,"resources":[{many}1]}}"#).into(), "more faults"),
        ("a long path", one(&format!("\"path\":\"/{name}\",\"content\":\"\"")), "more than 255"),
        ("a long field", one(&stranger), "is not a field here"),
        ("a long type", one("\"path\":\"/x\"").repeat(1), "resources[0] \"x\""),
        ("a long id", format!(r#"{{"version":1,"resources":[{{"id":"{name}"}}]}}"#).into(), "id:"),
    ]
}

#[test]
fn monstrous_declarations_are_refused_in_few_words() {
    let scratch = furnished("refused-made");
    with_store(&scratch);
    let before = snapshot(scratch.path());
    for (what, text, wanted) in made() {
        let said = fed(scratch.path(), &["apply", "-"], &text).exits(3);
        assert!(said.err.contains(wanted), "{what}: {:.2000}", said.err);
        assert!(said.err.lines().all(|line| line.len() < 600), "{what}: {:.2000}", said.err);
        assert!(said.err.lines().count() <= 1002, "{what}");
        said.is_plain();
        assert_same(scratch.path(), &before, what);
    }
}

#[test]
fn a_declaration_cut_off_anywhere_is_refused() {
    let scratch = furnished("refused-cut");
    let text = include_str!("example.json").trim_end();
    let before = snapshot(scratch.path());
    // Every seventh place: a process each.
    for cut in (0..text.len()).step_by(7) {
        fed(scratch.path(), &["apply", "-"], &text.as_bytes()[..cut]).exits(3);
    }
    assert_same(scratch.path(), &before, "cut off");
}

// R-10 stands over the link; what an earlier declaration said stands here.
#[test]
fn a_stale_serial_is_refused_with_the_one_that_was_accepted() {
    let scratch = furnished("refused-stale");
    with_store(&scratch);
    let before = snapshot(scratch.path());
    for (serial, wrong) in [(4, "4 is stale: 5 was accepted"), (5, "5 was accepted before, with")] {
        let text = format!(r#"{{"version":1,"serial":{serial},"resources":[]}}"#);
        for command in ["apply", "plan"] {
            let said = fed(scratch.path(), &[command, "-"], text.as_bytes()).exits(3);
            assert!(faults(&said)[0].contains(wrong), "{said:?}");
        }
        assert_same(scratch.path(), &before, "stale");
    }
}

// R-11
#[test]
fn an_action_is_refused_from_all_but_a_bundle_that_only_its_owner_writes() {
    use std::os::unix::fs::PermissionsExt;
    let scratch = furnished("refused-action");
    let text = r#"{"version":1,"resources":[
        {"id":"x","type":"action","run":["touch","/x/ran"],"verify":["test","-e","/x/ran"]}]}"#;
    let file = scratch.join("action.json");
    let path = file.to_str().unwrap();
    std::fs::write(&file, text).unwrap();
    for mode in [0o666, 0o620, 0o602] {
        std::fs::set_permissions(&file, PermissionsExt::from_mode(mode)).unwrap();
        let said = support::said::at(scratch.path(), &["apply", "--bundle", path]).exits(3);
        assert!(faults(&said)[0].contains("others may write it; chmod go-w"), "{said:?}");
    }
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
    let said = support::said::at(scratch.path(), &["apply", path]).exits(3);
    assert!(faults(&said)[0].contains("bundle"), "{said:?}");
    assert!(!scratch.join("var").exists());
    let said = support::said::at(scratch.path(), &["apply", "--bundle", path]).exits(0);
    assert!(said.out.contains("1 not applicable"), "{said:?}");
    if support::euid() == 0 {
        std::os::unix::fs::chown(&file, Some(65534), None).unwrap();
        let said = support::said::at(scratch.path(), &["apply", "--bundle", path]).exits(3);
        assert!(faults(&said)[0].contains("belongs to user 65534"), "{said:?}");
    }
}
