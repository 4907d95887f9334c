//! What a declaration must say to be this node's, over the link.

use super::message;
use crate::declaration::Own;
use crate::link::declared::parse;
use crate::link::mesh::Mesh;

/// What is wrong with it, each in one line.
fn wrong(text: &str, floor: u64) -> Vec<String> {
    let message = message(1, &["a:1"], 1);
    let message = message.replace("\"serial_floor\":0", &format!("\"serial_floor\":{floor}"));
    let mesh = Mesh::parse(message.as_bytes()).unwrap();
    let read = parse(text.as_bytes().to_vec(), "web-1", &mesh, &Own::default());
    read.map_or_else(|faults| faults.iter().map(ToString::to_string).collect(), |_| Vec::new())
}

// R-10
#[test]
fn a_declaration_over_the_link_is_this_nodes_and_has_a_serial() {
    let good = r#"{"version":1,"node":"web-1","serial":5,"resources":[]}"#;
    assert_eq!(wrong(good, 0), [""; 0]);
    assert_eq!(wrong(good, 5), [""; 0]);
    let stale = wrong(good, 6);
    assert!(stale[0].starts_with("serial: 5 is stale: the mesh takes none below 6"), "{stale:?}");
    let elsewhere = wrong(&good.replace("web-1", "web-2"), 0);
    assert!(elsewhere[0].starts_with("node: it is addressed to \"web-2\""), "{elsewhere:?}");
    let bare = wrong(r#"{"version":1,"resources":[]}"#, 0);
    assert!(bare[0].starts_with("node: is absent"), "{bare:?}");
    assert!(bare[1].starts_with("serial: is absent"), "{bare:?}");
}

// R-11
// R-22
#[test]
fn no_command_comes_over_the_link_however_it_is_signed() {
    let action = r#"{"version":1,"node":"web-1","serial":5,"resources":[
        {"id":"a","type":"action","run":["true"],"verify":["true"]}]}"#;
    let faults = wrong(action, 0);
    assert!(faults[0].contains("action"), "{faults:?}");
    assert!(!wrong(r#"{"command":"reboot"}"#, 0).is_empty());
}
