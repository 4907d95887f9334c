//! What is declared becomes another kind of thing, and what was there before is no longer there:
//! nothing that is declared goes, and nothing of a person's is taken for what went.

mod support;

use support::site::Site;

fn site(before: &str, after: &str) -> Site {
    let site = Site::new();
    site.declare("before", before);
    site.declare("after", after);
    site.declare("empty", "");
    site.ok("apply @before");
    site
}

// R-9
#[test]
fn a_link_that_takes_the_place_of_a_vanished_directory_leads_to_no_removal() {
    let before = r#"{"id":"d","type":"directory","path":"/srv/d"},
        {"id":"f","type":"file","path":"/srv/d/f","content":"ours"}"#;
    let after = r#"{"id":"d","type":"symlink","path":"/srv/d","target":"/data"}"#;
    let site = site(before, after);
    site.put("/data/f", "a person's");
    std::fs::remove_dir_all(site.root().join("srv/d")).unwrap();
    site.ok("apply @after");
    assert_eq!(site.tree()["/data/f"], "file 0644 \"a person's\"");
    assert_eq!(site.tree()["/srv/d"], "symlink /data");
    let owned: Vec<String> = site.owned().into_keys().collect();
    assert_eq!(owned, ["path:/srv", "path:/srv/d"]);
    site.ok("apply @empty");
    let left: Vec<String> = site.tree().into_keys().collect();
    assert_eq!(left, ["/data", "/data/f"]);
}

// R-2 R-9
#[test]
fn what_becomes_another_kind_of_thing_stays_though_the_old_one_had_vanished() {
    let before = r#"{"id":"x","type":"file","path":"/x","content":"a"},
        {"id":"y","type":"directory","path":"/y"},
        {"id":"z","type":"symlink","path":"/z","target":"a"}"#;
    let after = r#"{"id":"x","type":"directory","path":"/x"},
        {"id":"y","type":"symlink","path":"/y","target":"b"},
        {"id":"z","type":"file","path":"/z","content":"c"}"#;
    for vanished in [false, true] {
        let site = site(before, after);
        if vanished {
            std::fs::remove_file(site.root().join("x")).unwrap();
            std::fs::remove_dir(site.root().join("y")).unwrap();
            std::fs::remove_file(site.root().join("z")).unwrap();
        }
        for _ in 0..2 {
            site.ok("apply @after");
            let found: Vec<String> = site.tree().into_values().collect();
            let declared = ["directory 0755", "symlink b", "file 0644 \"c\""];
            assert_eq!(found, declared, "vanished before: {vanished}");
        }
        assert!(site.owned().into_values().all(|it| it["made"] == "created"));
        site.ok("apply @empty");
        assert!(site.tree().is_empty());
    }
}

// R-8
#[test]
fn a_directory_declared_after_what_lies_in_it_is_made_once() {
    let low = r#"{"id":"low","type":"directory","path":"/p/q/r"}"#;
    let high = r#"{"id":"high","type":"directory","path":"/p","mode":"0700"}"#;
    let both = format!("{low},{high}");
    let site = site("", &both);
    site.ok("apply @after");
    assert_eq!(site.tree()["/p"], "directory 0700");
    let journal = std::fs::read(site.journal()).unwrap();
    site.ok("apply @after");
    assert_eq!(std::fs::read(site.journal()).unwrap(), journal);
    site.ok("apply @empty");
    assert!(site.tree().is_empty());
}
