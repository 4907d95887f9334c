//! The journal, damaged: what was not written whole is cut off, anything else is refused, and
//! rescue begins anew without losing a thing.

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use nox_mesh_host::digest::{hex, sha256};
use serde_json::Value;
use support::site::{told, Site};

const SOME: &str = r#"
    {"id":"dir","type":"directory","path":"/srv/app"},
    {"id":"conf","type":"file","path":"/srv/app/conf","content":"one\n"},
    {"id":"key","type":"file","path":"/srv/key","content":"a canary","secret":true}"#;

/// A machine with a history: made, changed, let go of.
fn site() -> Site {
    let site = Site::new();
    site.put("/etc/kept", "a person's\n");
    site.declare("some", SOME);
    site.declare("less", r#"{"id":"d","type":"directory","path":"/srv/app","mode":"0700"}"#);
    site.declare("empty", "");
    site.ok("apply @some");
    site.ok("apply @less");
    site
}

/// What the records add up to: each object, and whether only an intent is known of it.
fn folded(lines: &[&str]) -> BTreeMap<String, bool> {
    let mut owned = BTreeMap::new();
    for line in lines {
        let record: Value = serde_json::from_str(line).unwrap();
        let object = || record["object"].as_str().unwrap().to_string();
        match record["kind"].as_str().unwrap() {
            "began" => drop(owned.insert(object(), true)),
            "applied" => drop(owned.insert(object(), false)),
            "removed" | "forgotten" | "left" => drop(owned.remove(&object())),
            _ => {}
        }
    }
    owned
}

// R-31
#[test]
fn a_journal_cut_off_at_any_byte_says_what_its_whole_lines_say() {
    let site = Site::new();
    site.declare("one", r#"{"id":"a","type":"file","path":"/a","content":""}"#);
    site.declare("empty", "");
    site.ok("apply @one");
    site.ok("apply @empty");
    let journal = fs::read_to_string(site.journal()).unwrap();
    for cut in (0..journal.len()).rev() {
        fs::write(site.journal(), &journal.as_bytes()[..cut]).unwrap();
        let owned = site.owned();
        let said: BTreeMap<String, bool> =
            owned.into_iter().map(|(object, it)| (object, it["pending"] == true)).collect();
        let whole = journal[..cut].rsplit_once('\n').map_or("", |(whole, _)| whole);
        assert_eq!(said, folded(&whole.lines().collect::<Vec<_>>()), "cut at {cut}");
    }
}

// R-31
#[test]
fn a_journal_cut_off_anywhere_is_written_on() {
    let site = site();
    let journal = fs::read(site.journal()).unwrap();
    let tree = site.tree();
    let ends = journal.iter().enumerate().filter(|(_, &byte)| byte == b'\n').map(|(at, _)| at);
    // Before, in and after the end of each line, and in its middle.
    let cuts = ends.flat_map(|end| [end - 60, end - 1, end, end + 1]);
    for cut in cuts {
        let site = site.copy();
        fs::write(site.journal(), &journal[..cut]).unwrap();
        let output = site.host("apply @less");
        let torn = journal[..cut].last() != Some(&b'\n');
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "cut at {cut}: {}", told(&output));
        assert_eq!(said.contains("was not written whole"), torn, "cut at {cut}: {said}");
        assert_eq!(site.tree().get("/srv/app"), tree.get("/srv/app"), "cut at {cut}");
        site.ok("journal --verify");
    }
}

// R-31
#[test]
fn any_bit_that_flipped_in_the_middle_is_found_and_its_line_named() {
    let site = site();
    let journal = fs::read(site.journal()).unwrap();
    let lines: Vec<&[u8]> = journal.split_inclusive(|&byte| byte == b'\n').collect();
    let is_it = |line: &&&[u8]| line.windows(9).any(|it| it == b"\"removed\"");
    let (nth, _) = lines.iter().enumerate().find(|(_, line)| is_it(line)).unwrap();
    let start: usize = lines[..nth].iter().map(|line| line.len()).sum();
    for at in start..start + lines[nth].len() {
        for bit in 0..8 {
            let mut damaged = journal.clone();
            damaged[at] ^= 1 << bit;
            fs::write(site.journal(), &damaged).unwrap();
            let output = site.host("owned");
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(6), "bit {bit} of {at}: {}", told(&output));
            let line = format!("journal.jsonl line {}:", nth + 1);
            assert!(said.contains(&line) && output.stdout.is_empty(), "bit {bit} of {at}: {said}");
        }
    }
}

/// Damages the journal's third line.
fn damage(site: &Site) {
    let mut journal = fs::read(site.journal()).unwrap();
    let ends: Vec<usize> = (0..journal.len()).filter(|&at| journal[at] == b'\n').collect();
    journal[ends[1] + 30] ^= 1;
    fs::write(site.journal(), journal).unwrap();
}

fn aside(site: &Site) -> PathBuf {
    let entries = fs::read_dir(site.state()).unwrap().map(|entry| entry.unwrap().path());
    let name = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
    let mut aside = entries.filter(|path| name(path).starts_with("discarded-"));
    aside.next().expect("the store was set aside")
}

// R-31 R-32
#[test]
fn a_damaged_store_is_touched_by_nothing_but_rescue() {
    let site = site();
    damage(&site);
    let (tree, journal) = (site.tree(), fs::read(site.journal()).unwrap());
    let names = site.state_names();
    for command in [
        "apply @some",
        "apply --bundle @some",
        "apply @empty",
        "plan @some",
        "reconcile",
        "status",
        "owned",
        "journal",
        "journal --verify",
        "pause --reason R",
        "resume",
    ] {
        let output = site.host(command);
        assert_eq!(output.status.code(), Some(6), "{command}: {}", told(&output));
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("journal.jsonl line 3: its sum is wrong"), "{command}: {said}");
        assert_eq!(site.tree(), tree, "{command}");
        assert_eq!(fs::read(site.journal()).unwrap(), journal, "{command}");
        assert_eq!(site.state_names(), names, "{command}");
    }

    site.ok("rescue --discard-state");
    assert_eq!(site.tree(), tree, "rescue touches nothing but the store");
    assert_eq!(fs::read(aside(&site).join("journal.jsonl")).unwrap(), journal);
    assert!(site.owned().is_empty());
    site.ok("journal --verify");

    // What the mesh, or a person, declares now is found there, and adopted.
    site.ok("apply @less");
    let owned = site.owned();
    assert_eq!(owned["path:/srv/app"]["made"], "adopted");
    site.ok("apply @empty");
    assert_eq!(site.tree(), tree, "what was adopted stays");
}

// R-32
#[test]
fn rescue_keeps_secrets_aside_and_none_in_force() {
    let site = site();
    site.ok("apply @some");
    let secrets = || fs::read_dir(site.state().join("secrets")).unwrap().count();
    assert_eq!(secrets(), 2, "the key and one value");
    site.ok("rescue --discard-state");
    let kept = fs::read_dir(aside(&site).join("secrets")).unwrap().count();
    assert_eq!(kept, 2);
    assert_eq!(secrets(), 1, "the key alone: by it the host knows what it marked as its own");
    site.ok("apply @some");
    assert_eq!(secrets(), 2);
}

/// A journal's first line, with its sum.
fn first_line(members: &str) -> String {
    let start = format!(r#"{{"seq":1,"at":"2026-01-02T03:04:05Z","kind":"snapshot",{members}"#);
    let sum = &hex(&sha256(format!("{start}}}").as_bytes()))[..16];
    format!("{start},\"sum\":\"{sum}\"}}\n")
}

// R-32
#[test]
fn rescue_keeps_the_lowest_serial_that_may_be_accepted() {
    let site = Site::new();
    site.declare("some", SOME);
    site.ok("apply @some");
    let journal = fs::read_to_string(site.journal()).unwrap();
    let (_, rest) = journal.split_once('\n').unwrap();
    fs::write(site.journal(), first_line(r#""schema":1,"floor":41"#) + rest).unwrap();
    site.ok("journal --verify");
    damage(&site);
    site.ok("rescue --discard-state");
    assert_eq!(site.records()[0]["floor"], 41);
    site.ok("apply @some");
    site.ok("rescue --discard-state");
    assert_eq!(site.records()[0]["floor"], 41, "however often");
}

// R-31
#[test]
fn a_store_of_a_later_host_is_refused_and_left_alone() {
    let site = Site::new();
    site.declare("some", SOME);
    site.ok("apply @some");
    let later = first_line(r#""schema":2,"something":"new""#) + "{\"what\":\"ever\"}\n";
    fs::write(site.journal(), &later).unwrap();
    let tree = site.tree();
    for command in ["apply @some", "owned", "status", "journal", "reconcile"] {
        let output = site.host(command);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(6), "{command}: {}", told(&output));
        assert!(said.contains("schema 2") && said.contains("up to 1"), "{command}: {said}");
        assert_eq!(fs::read_to_string(site.journal()).unwrap(), later, "{command}");
        assert_eq!(site.tree(), tree, "{command}");
    }
}
