//! Declarations without fault.

use super::{document, faults, lines, read, read_trusted};
use crate::declaration::json::Json;
use crate::resource::kind::{self, KINDS};
use crate::resource::Object;

pub const KEY: &str = "GV6zEpiLKQOgzJDCCJsGTkYeP0wIIqDCtrCBAVfUhwE=";
pub const OTHER_KEY: &str = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";

/// Resources of every type, each with every field that can stand with the others.
const EXAMPLES: &str = include_str!("../../../../tests/wire/declaration.json");

/// The examples, each with its type.
pub fn examples() -> Vec<(&'static str, String)> {
    let document = Json::parse(EXAMPLES, Vec::new()).unwrap();
    let Some(Json::List(resources)) = document.get("resources") else { panic!("a list") };
    let example = |resource: &Json<'_>| {
        let Some(Json::Text(name)) = resource.get("type") else { panic!("a type") };
        let mut text = String::new();
        resource.write(&mut text);
        (kind::find(name).expect("a known type").name, text)
    };
    resources.iter().map(example).collect()
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
    let text = document(r#"{"id":"p","type":"dataset","name":"tank/p"}"#);
    let found = read(&text).unwrap_err();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].place, r#"resources[0] "p""#);
    assert_eq!(found[0].wrong, r#"type "dataset" is not supported by this host yet"#);
    let bad = document(r#"{"id":"p","type":"dataset"}"#);
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
        "Directory { path: RootPath(\"/srv/d\"), ancestors: [RootPath(\"/srv\")], \
         access: Access { mode: Some(1023), owner: Some(Name(\"u$\")), group: Some(Id(7)) } }"
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
