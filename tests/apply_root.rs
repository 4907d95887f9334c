//! A mounted tree: nothing leaves it, its own accounts are asked, and what needs a running system
//! does not apply.

mod support;

use std::fs;

use support::root::{is_root, Root};
use support::{skip, Lacks};

// R-9
#[test]
fn links_inside_the_root_never_lead_out_of_it() {
    let root = Root::new("links");
    let outside = root.scratch.join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("f"), "theirs").unwrap();
    root.mkdir("/s/real");
    root.link("/s/absolute", "/s/real");
    root.link("/s/up", "../../../../../../../../../s/real");
    root.link("/s/out", outside.to_str().unwrap());
    root.link("/s/outup", "../../outside");
    root.link("/s/last", outside.join("f").to_str().unwrap());
    for (nth, path) in ["/s/absolute/a", "/s/up/b"].iter().enumerate() {
        let file = format!(r#"{{"id":"f","type":"file","path":"{path}","content":"{nth}"}}"#);
        assert_eq!(root.converge(&file).outcomes()[0], "f created");
    }
    assert_eq!((root.text("/s/real/b").as_str(), root.has("/s/real/a")), ("1", false));
    let before = support::root::tree(&outside);
    for path in ["/s/out/f", "/s/outup/f", "/s/last", "/s/out/new"] {
        for (kind, field) in [("file", r#","content":"x""#), ("directory", r#","mode":"0700""#)] {
            let run =
                root.apply(&format!(r#"{{"id":"r","type":"{kind}","path":"{path}"{field}}}"#));
            run.expect(1, &["r failed"]);
        }
    }
    let climbing =
        root.apply(r#"{"id":"r","type":"file","path":"/s/../../outside/f","content":""}"#);
    assert_eq!(climbing.code, 3, "{}", climbing.err);
    assert_eq!(support::root::tree(&outside), before);
}

// R-9
#[test]
fn nothing_is_removed_through_a_link_that_came_later() {
    let root = Root::new("later-link");
    let outside = root.scratch.join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("f"), "theirs").unwrap();
    root.converge(
        r#"{"id":"d","type":"directory","path":"/s/d"},
        {"id":"f","type":"file","path":"/s/d/f","content":"x"}"#,
    );
    fs::remove_dir_all(root.at("/s/d")).unwrap();
    root.link("/s/d", outside.to_str().unwrap());
    root.apply("");
    assert_eq!(fs::read_to_string(outside.join("f")).unwrap(), "theirs");
    assert!(root.has("/s/d"));
}

#[test]
fn names_are_those_of_the_root_s_own_accounts() {
    let root = Root::new("names");
    let owned = |owner: &str| {
        format!(r#"{{"id":"f","type":"file","path":"/s/f","content":"x","owner":"{owner}"}}"#)
    };
    // The machine that runs the test has such a user; this root has no accounts at all.
    let run = root.apply(&owned("daemon")).expect(1, &["f failed"]);
    assert!(run.err.contains("no user \"daemon\" in /etc/passwd"), "{}", run.err);
    assert!(!root.has("/s/f") && root.recorded("began").is_empty());
    assert_eq!(root.plan(&owned("daemon")).outcomes(), ["f failed"]);
    if !is_root() {
        return skip("names_are_those_of_the_root_s_own_accounts", &Lacks::Machine("root"));
    }
    root.put("/etc/passwd", "root:x:0:0::/:/bin/sh\ndaemon:x:77001:77001::/:/bin/false\n");
    root.converge(&owned("daemon"));
    assert_eq!(root.owner("/s/f").0, 77001);
    root.converge(&owned("12345"));
    assert_eq!(root.owner("/s/f").0, 12345);
}

#[test]
fn what_needs_a_running_system_does_not_apply_and_fails_nothing() {
    let root = Root::new("not-applicable");
    let marker = root.scratch.join("marker");
    let all = format!(
        r#"{{"id":"k","type":"sysctl","key":"net.ipv4.ip_forward","value":"1"}},
        {{"id":"a","type":"action","run":["touch","{0}"],"verify":["test","-e","{0}"]}},
        {{"id":"f","type":"file","path":"/s/f","content":"x"}}"#,
        marker.display()
    );
    let kernel = fs::read_to_string("/proc/sys/net/ipv4/ip_forward").unwrap();
    let wanted = ["k not_applicable", "a not_applicable", "f created"];
    root.bundle(&all).expect(0, &wanted);
    assert_eq!(fs::read_to_string("/proc/sys/net/ipv4/ip_forward").unwrap(), kernel);
    assert!(!marker.exists());
    let before = root.tree();
    let idle = ["k not_applicable", "a not_applicable", "f unchanged"];
    let run = root.bundle(&all).expect(0, &idle);
    assert_eq!(run.report()["outcome"], "converged");
    let file = root.declare("bundle.json", &support::root::declared(&all));
    assert_eq!(root.host(&["plan", "--exit-code", "--bundle", &file]).code, 0);
    assert_eq!(root.tree(), before);
    root.bundle("").expect(0, &["f removed"]);
}

// R-15
#[test]
fn the_host_s_own_places_are_refused_behind_links_too() {
    let root = Root::new("own");
    root.mkdir("/var/lib/mesh-host");
    root.link("/s/innocent", "/var/lib");
    root.link("/s/etc", "../etc");
    let before = root.tree();
    for (path, code) in [
        ("/s/innocent/mesh-host/x", 3),
        ("/s/etc/mesh-host/config.json", 3),
        ("/var/lib/mesh-host/journal.jsonl", 3),
    ] {
        let file = format!(r#"{{"id":"f","type":"file","path":"{path}","content":"x"}}"#);
        let run = root.apply(&file);
        assert_eq!(run.code, code, "{path}: {}{}", run.out, run.err);
        assert_eq!(root.plan(&file).code, code, "{path}");
    }
    let above = r#"{"id":"d","type":"directory","path":"/s/innocent/mesh-host","mode":"0777"}"#;
    assert_eq!(root.apply(above).code, 3);
    assert_eq!(root.tree(), before);
}
