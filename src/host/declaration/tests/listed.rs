//! How faults are listed, and the limits on what is read.

use super::{document, faults, lines, parse, read, Own};
use crate::declaration::fault::Faults;
use crate::declaration::{MAX_BYTES, MAX_RESOURCES};

#[test]
fn every_fault_is_listed_in_the_order_of_the_document() {
    // R-7
    let text = r#"{"version":1,"extra":0,"resources":[
        {"id":"a","type":"service","unit":"x","restart_on":["none"],"state":"on"},
        {"id":"b","type":"file","path":"b","mode":"9","owner":1,"content":"","source":{}},
        7,
        {"id":"c","type":"nothing"}]}"#;
    let found = read(text).unwrap_err();
    let told: Vec<_> = found.iter().map(|it| format!("{} {}", it.place, it.field)).collect();
    assert_eq!(
        told,
        [
            " \"extra\"",
            "resources[0] \"a\" state",
            "resources[0] \"a\" restart_on[0]",
            "resources[1] \"b\" path",
            "resources[1] \"b\" mode",
            "resources[1] \"b\" owner",
            "resources[1] \"b\" source.url",
            "resources[1] \"b\" source.sha256",
            "resources[1] \"b\" source",
            "resources[2] ",
            "resources[3] \"c\" type",
        ]
    );
    assert_eq!(
        found[3].to_string(),
        "resources[1] \"b\": path: \"b\" is not absolute: start it with /"
    );
}

#[test]
fn the_list_of_faults_ends() {
    let many = vec!["7"; Faults::LISTED + 5].join(",");
    let found = faults(&many);
    assert_eq!(found.len(), Faults::LISTED + 1);
    assert_eq!(found.last().unwrap().wrong, "and 5 more faults, not listed");
}

#[test]
fn another_version_is_judged_by_no_rule_of_this_one() {
    for text in [
        r#"{"version":2,"resources":[{"kind":"x"}]}"#,
        r#"{"resources":[{"kind":"x"}],"version":2}"#,
    ] {
        let found = read(text).unwrap_err();
        assert_eq!(found.len(), 1, "{}", lines(&found));
        assert_eq!(found[0].mend, "this host reads version 1");
    }
}

#[test]
fn hostile_text_is_quoted_and_capped() {
    let long = "x\u{1b}".repeat(5000);
    let text = serde_json::to_string(&long).unwrap();
    let list = format!(
        r#"{{"id":{text},"type":{text},{text}:1}},
           {{"id":"e","type":"container","name":{text},"env":{{{text}:1}},{text}:1}}"#
    );
    let found = faults(&list);
    assert!(found.len() >= 5, "{}", lines(&found));
    for fault in &found {
        let line = fault.to_string();
        assert!(line.len() < 600 && !line.contains('\u{1b}'), "{line}");
    }
}

#[test]
fn what_is_too_long_or_too_deep_is_refused() {
    let found = parse(vec![b' '; MAX_BYTES + 1], &Own::default()).unwrap_err();
    assert!(lines(&found).contains("is 67108865 bytes long, more than 67108864"));
    let deep = format!(r#"{{"id":"a","type":{}{}}}"#, "[".repeat(500), "]".repeat(500));
    let found = faults(&deep);
    assert_eq!(found[0].place, "resources[0]");
    assert!(found[0].wrong.starts_with("line 1 column "), "{}", lines(&found));
    assert!(found[0].wrong.ends_with("nested more than 32 deep"), "{}", lines(&found));
}

#[test]
fn a_fault_far_down_has_the_line_it_stands_on() {
    let text =
        format!("{{\"version\":1,\n\n\"resources\":[\n  {}{}]}}", "[".repeat(99), "]".repeat(99));
    let found = read(&text).unwrap_err();
    assert!(found[0].wrong.starts_with("line 4 column 3"), "{}", lines(&found));
}

#[test]
fn more_resources_than_a_machine_has_are_refused() {
    let many = "7,".repeat(MAX_RESOURCES as usize) + "7";
    let found = read(&document(&many)).unwrap_err();
    assert!(lines(&found).contains("not listed"));
    let none = format!("[{}7]", "7,".repeat(MAX_RESOURCES as usize));
    let text = format!("{{\"version\":2,\"resources\":{none}}}");
    assert!(lines(&read(&text).unwrap_err()).contains("has more than 1000000 elements"));
}

#[test]
fn a_declaration_as_large_as_a_machine_needs_is_read_in_time() {
    // Coarse on purpose: it finds a step that is taken once for every pair of resources.
    let each = |n: usize| {
        format!(
            r#"{{"id":"f{n}","type":"file","path":"/srv/d{}/f{n}","content":"{n}\n"}}"#,
            n % 1000
        )
    };
    let list: Vec<String> = (0..100_000).map(each).collect();
    let link = r#"{"id":"l","type":"symlink","path":"/srv/x","target":"y"}"#;
    let text = document(&format!("{},{link}", list.join(",")));
    assert_eq!(read(&text).unwrap().resources.len(), 100_001);
}
