//! A disk that is really full: tiny file systems in a mount namespace of their own, of every size
//! from one that holds nothing to one that holds everything.

mod support;

use std::process::{Command, Output};

use support::broken::{Course, Scenario};
use support::site::{told, Site, HOST};
use support::strace::can_trace;
use support::{has, skip, Lacks};

fn prepare(site: &Site) {
    site.put("/etc/kept", "a person's\n");
    let text = "contents ".repeat(200);
    let mut resources = r#"{"id":"dir","type":"directory","path":"/srv/app"}"#.to_string();
    for n in 0..20 {
        resources += &format!(
            r#",{{"id":"f{n}","type":"file","path":"/srv/app/f{n}","content":"{n} {text}"}}"#
        );
    }
    resources += r#",{"id":"key","type":"file","path":"/srv/key","content":"k","secret":true}"#;
    site.declare("many", &resources);
    site.declare("other", r#"{"id":"o","type":"file","path":"/etc/other","content":"o"}"#);
    site.declare("empty", "");
}

fn course() -> Course {
    Course::new(Scenario {
        prepare,
        run: "apply @many",
        other: &["apply @other"],
        release: &["apply @empty"],
        adopted: &[],
    })
}

fn can_mount(test: &str) -> bool {
    if !has("unshare", test) || !can_trace(test) {
        return false;
    }
    let mount = ["-m", "mount", "-t", "tmpfs", "none", "/mnt"];
    let mounted = Command::new("unshare").args(mount).output();
    let can = mounted.is_ok_and(|output| output.status.success());
    if !can {
        skip(test, &Lacks::Machine("the privilege of mount(2)"));
    }
    can
}

/// Runs `command` with the site's `part` on a file system of its own, mounted with `options`.
fn on_a_small_disk(site: &Site, part: &str, options: &str, command: &str) -> Output {
    const SCRIPT: &str = r#"
        set -e
        at=$1; options=$2; shift 2
        mkdir -p "$at"; cp -a "$at" "$at.there"
        mount -t tmpfs -o "$options" none "$at"
        cp -a "$at.there/." "$at"
        ended=0; "$@" || ended=$?
        rm -rf "$at.there"; cp -a "$at" "$at.there"
        umount "$at"
        cp -a "$at.there/." "$at"; rm -rf "$at.there"
        exit $ended"#;
    let mut script = Command::new("unshare");
    script.args(["-m", "sh", "-c", SCRIPT, "sh"]).arg(site.path().join(part)).arg(options);
    script.env_remove("LD_LIBRARY_PATH");
    script.arg(HOST).args(site.arguments(command)).output().unwrap()
}

/// On disks of each of these kinds: the run stops with the kernel's words, or is done.
fn must_stop_in_time(part: &str, kinds: impl Iterator<Item = String>) {
    let course = course();
    let (mut full, mut enough) = (0, 0);
    for options in kinds {
        let site = course.start().0.copy();
        let output = on_a_small_disk(&site, part, &options, "apply @many");
        let at = format!("{part} with {options}: {}", told(&output));
        match output.status.code() {
            Some(0) => enough += 1,
            Some(1) => {
                full += 1;
                let said = String::from_utf8_lossy(&output.stderr);
                assert!(said.to_lowercase().contains("no space left on device"), "{at}");
            }
            _ => panic!("{at}"),
        }
        let stray = site.tree().into_keys().find(|name| name.contains(".mesh-host~"));
        assert_eq!(stray, None, "{at}");
        course.must_be_honest(&site, &at);
        course.must_go_on(site, &at);
    }
    assert!(full >= 3 && enough >= 1, "{full} were too small, {enough} were not");
}

// R-6
#[test]
fn a_store_without_space_stops_the_apply_before_the_step() {
    if can_mount("a_store_without_space_stops_the_apply_before_the_step") {
        let sizes = (1..=26).map(|pages| format!("mode=0700,size={}k", 4 * pages));
        must_stop_in_time("state", sizes);
    }
}

// R-6
#[test]
fn a_store_without_inodes_stops_the_apply_before_the_step() {
    if can_mount("a_store_without_inodes_stops_the_apply_before_the_step") {
        let inodes = (1..=8).map(|inodes| format!("mode=0700,size=1m,nr_inodes={inodes}"));
        must_stop_in_time("state", inodes);
    }
}

// R-4
#[test]
fn a_root_without_space_fails_what_does_not_fit() {
    if can_mount("a_root_without_space_fails_what_does_not_fit") {
        let sizes = (1..=12).map(|tenths| format!("mode=0755,size={}k", 8 * tenths + 4));
        must_stop_in_time("root", sizes);
    }
}
