//! A secret stands in its file and in `secrets/`, and nowhere else.

mod support;

use std::fs;
use std::path::Path;

use support::root::{Root, Run};

const CANARY: &str = "canary-5cf1e0";
const SECRET: &str =
    r#"{"id":"s","type":"file","path":"/s/key","content":"canary-5cf1e0","secret":true}"#;

/// Everything said so far, searched for the canary in the forms that a value can take.
fn silent(run: &Run) {
    let forms =
        [CANARY.to_string(), "Y2FuYXJ5LTVjZjFlM".into(), format!("{:?}", CANARY.as_bytes())];
    for form in forms {
        assert!(!run.out.contains(&form) && !run.err.contains(&form), "{}{}", run.out, run.err);
    }
}

/// Where beneath `dir` the canary stands, in text or base64.
fn stands_in(dir: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            stands_in(&path, found);
        } else if let Ok(bytes) = fs::read(&path) {
            let text = String::from_utf8_lossy(&bytes);
            if text.contains(CANARY) || text.contains("Y2FuYXJ5LTVjZjFlM") {
                found.push(path.to_string_lossy().into_owned());
            }
        }
    }
}

fn holders(root: &Root) -> Vec<String> {
    let mut found = Vec::new();
    stands_in(root.dir(), &mut found);
    let name = |path: String| path.replace(root.dir().to_str().unwrap(), "");
    let mut found: Vec<String> = found.into_iter().map(name).collect();
    found.sort();
    found
}

fn kept(root: &Root) -> Vec<String> {
    let names = fs::read_dir(root.state().join("secrets")).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name != "key").collect()
}

// R-30
#[test]
fn a_secret_is_shown_nowhere() {
    let root = Root::new("nowhere");
    let encoded = SECRET
        .replace(r#""content":"canary-5cf1e0""#, r#""content_base64":"Y2FuYXJ5LTVjZjFlMA==""#);
    let encoded = encoded.replace(r#""id":"s""#, r#""id":"b""#).replace("/s/key", "/s/b");
    let both = format!("{SECRET},{encoded}");
    silent(&root.plan(&both));
    silent(&root.converge(&both));
    assert_eq!((root.mode("/s/key"), root.text("/s/b").as_str()), (0o600, CANARY));
    assert_eq!(root.text("/s/key"), CANARY);
    for args in [
        &["owned"][..],
        &["--json", "owned"],
        &["journal"],
        &["--json", "journal"],
        &["status"],
        &["-v", "reconcile"],
    ] {
        silent(&root.host(args));
    }
    let changed =
        both.replace("canary-5cf1e0", "other").replace("Y2FuYXJ5LTVjZjFlMA==", "b3RoZXI=");
    silent(&root.plan(&changed));
    root.put("/s/key", "drift");
    let file = root.declare("again.json", &support::root::declared(&both));
    silent(&root.host(&["-v", "apply", &file]));
    let places = holders(&root);
    assert_eq!(places.iter().filter(|path| path.starts_with("/s/")).count(), 2, "{places:?}");
    let elsewhere =
        |path: &&String| !path.starts_with("/s/") && !path.contains("/mesh-host/secrets/");
    assert_eq!(places.iter().find(elsewhere), None);
    assert!(root.journal().contains("$secret"));
    silent(&root.converge(&changed));
}

// R-30
#[test]
fn a_failure_of_a_secret_file_tells_nothing_of_it() {
    let root = Root::new("failing");
    root.mkdir("/s/key");
    silent(&root.apply(SECRET).expect(1, &["s failed"]));
    fs::remove_dir(root.at("/s/key")).unwrap();
    silent(&root.apply(&SECRET.replace("/s/key", "/s/no/key")));
    silent(&root.apply(&SECRET.replace("\"secret\"", "\"owner\":\"nobody-knows\",\"secret\"")));
    for broken in [
        SECRET.replace("\"secret\":true", "\"secret\":\"canary-5cf1e0\""),
        SECRET.replace("\"content\":\"canary-5cf1e0\"", "\"content\":{\"a\":\"canary-5cf1e0\"}"),
        SECRET.replace("\"content\":", "\"content_base64\":"),
        SECRET.replace("\"content\":", "\"contents\":"),
        SECRET.replace("5cf1e0\"", "5cf1e0"),
        SECRET.replace("5cf1e0", "5cf1e0\\ud800"),
        SECRET.replace("5cf1e0", "5cf1e0\n"),
        format!("{SECRET},{SECRET}"),
    ] {
        let run = root.apply(&broken);
        assert_eq!(run.code, 3, "{}{}", run.out, run.err);
        silent(&run);
    }
    assert!(holders(&root).iter().all(|path| path.contains("/mesh-host/secrets/")));
}

// R-30
#[test]
fn what_was_secret_is_not_shown_by_a_plain_declaration_of_the_same_path() {
    let root = Root::new("plain");
    root.converge(SECRET);
    let plain = r#"{"id":"s","type":"file","path":"/s/key","content":"plain\n"}"#;
    let run = root.plan(plain);
    silent(&run);
    assert_eq!(run.outcomes(), ["s changed"]);
    // Nor after an intent that came to nothing.
    root.mkdir("/s/other");
    silent(&root.converge(plain));
    root.put("/s/key", "drift\n");
    let run = root.reconcile();
    assert!(
        run.report()["resources"][0]["diff"].as_str().unwrap().contains("-drift"),
        "{}",
        run.out
    );
}

// R-30, R-18
#[test]
fn a_deleted_secret_file_comes_back_from_the_store_alone() {
    let root = Root::new("offline");
    root.converge(SECRET);
    fs::remove_file(root.at("/s/key")).unwrap();
    let run = root.reconcile().expect(0, &["s corrected"]);
    silent(&run);
    assert_eq!((root.text("/s/key").as_str(), root.mode("/s/key")), (CANARY, 0o600));
    let before = root.tree();
    root.reconcile().expect(0, &["s unchanged"]);
    assert_eq!(root.tree(), before);
}

// R-30
#[test]
fn a_secret_is_kept_no_longer_than_something_in_force_needs_it() {
    let root = Root::new("swept");
    root.converge(SECRET);
    assert_eq!(kept(&root).len(), 1);
    let first = kept(&root);
    let other = SECRET.replace(CANARY, "another");
    let bad = r#"{"id":"bad","type":"file","path":"/s/no/f","content":"x"}"#;
    // What could not be reached is held to its old value, which is needed for that.
    root.apply(&format!("{bad},{other}")).expect(1, &["bad failed", "s not_reached"]);
    assert_eq!(kept(&root).len(), 2);
    fs::remove_file(root.at("/s/key")).unwrap();
    root.reconcile();
    assert_eq!(root.text("/s/key"), CANARY);
    root.converge(&other);
    assert_eq!(kept(&root).len(), 1);
    assert_ne!(kept(&root), first);
    root.converge("");
    assert!(kept(&root).is_empty() && holders(&root).is_empty());
}

// R-30
#[test]
fn a_secret_lost_from_the_store_is_said_and_given_again_by_applying() {
    let root = Root::new("lost");
    root.converge(SECRET);
    let lost = root.state().join("secrets").join(&kept(&root)[0]);
    for spoil in [None, Some(""), Some("other")] {
        match spoil {
            None => fs::remove_file(&lost).unwrap(),
            Some(text) => fs::write(&lost, text).unwrap(),
        }
        let before = root.tree();
        let run = root.reconcile().expect(1, &["s failed"]);
        assert!(run.err.contains("take the secret value of /s/key from the store"), "{}", run.err);
        silent(&run);
        let key = std::path::Path::new("s/key");
        assert_eq!(root.tree().get(key), before.get(key));
        root.apply(SECRET).expect(0, &["s unchanged"]);
        fs::remove_file(root.at("/s/key")).unwrap();
        root.reconcile().expect(0, &["s corrected"]);
    }
}
