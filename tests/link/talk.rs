//! A link that comes about, and what goes over it.

use std::time::Duration;

use nox_mesh_host::link::{Happened, Layer, Standing, Taken, Unsent};

use crate::broker::{free_port, read_until, Broker, Manner, Mesh};
use crate::driver::Driver;

const DECLARATION: &str = "node/web-1/declaration";
const MESH: &str = "node/web-1/mesh";

/// A mesh with one broker, its signed message retained there, and the link of `web-1`.
fn set_up(name: &str) -> (Mesh, Broker, Driver) {
    let mesh = Mesh::new(name);
    let broker = Broker::start(&mesh, &Manner::default());
    let message = mesh.message(1, &[broker.address()], "key");
    broker.publish_signed(&mesh, MESH, &message, "key");
    let driver = Driver::new(&mesh.state("web-1", &message));
    (mesh, broker, driver)
}

fn declaration(driver: &mut Driver) -> String {
    match driver.until("declaration", |it| matches!(it, Happened::Declaration(_))) {
        Happened::Declaration(bytes) => String::from_utf8(bytes).unwrap(),
        _ => unreachable!("that is what was waited for"),
    }
}

fn report(driver: &mut Driver) -> Taken {
    match driver.until("report", |it| matches!(it, Happened::Report { .. })) {
        Happened::Report { taken, .. } => taken,
        _ => unreachable!("that is what was waited for"),
    }
}

fn refused(driver: &mut Driver) -> (Layer, String) {
    match driver.until("refused", |it| matches!(it, Happened::Refused(_))) {
        Happened::Refused(refusal) => (refusal.layer, refusal.to_string()),
        _ => unreachable!("that is what was waited for"),
    }
}

//
#[test]
fn a_node_links_proves_it_takes_a_declaration_and_reports() {
    if !crate::can_run("a_node_links_proves_it_takes_a_declaration_and_reports") {
        return;
    }
    let (mesh, broker, mut driver) = set_up("link-talk");
    assert_eq!(driver.link.report("r-0".into(), b"{}"), Err(Unsent::Down));
    driver.up();
    assert_eq!(driver.link.standing(), Standing::Up);
    let presence = broker.retained(&mesh, "node/web-1/presence");
    assert!(presence.contains("\"online\":true") && presence.contains("\"nonce\":"), "{presence}");

    broker.publish_signed(&mesh, DECLARATION, "{\"n\":1}", "key");
    assert_eq!(declaration(&mut driver), "{\"n\":1}");

    driver.link.report("r-1".into(), b"{\"id\":\"r-1\"}").unwrap();
    assert_eq!(report(&mut driver), Taken::Unheard, "nobody listens yet");
    let mut listener = broker.listen(&mesh, "node/web-1/report");
    driver.link.report("r-2".into(), b"{\"id\":\"r-2\"}").unwrap();
    assert_eq!(report(&mut driver), Taken::Heard);
    let line = read_until(listener.stdout.as_mut().unwrap(), "\"id\"");
    assert_eq!(line, "{\"id\":\"r-2\"}");
    listener.kill().unwrap();
    listener.wait().unwrap();

    driver.link.inventory(b"{\"inventory\":1}").unwrap();
    driver.until("inventory", |it| matches!(it, Happened::Inventory(_)));
    assert_eq!(broker.retained(&mesh, "node/web-1/inventory"), "{\"inventory\":1}");

    let mut told = driver.link.stop();
    if told.is_empty() {
        told.push(driver.until("stopped", |it| *it == Happened::Stopped));
    }
    assert_eq!(told, [Happened::Stopped]);
    let presence = broker.retained(&mesh, "node/web-1/presence");
    assert!(presence.contains("\"online\":false"), "{presence}");
}

#[test]
fn a_declaration_that_waits_there_comes_once_the_link_is_up() {
    if !crate::can_run("a_declaration_that_waits_there_comes_once_the_link_is_up") {
        return;
    }
    let (mesh, broker, mut driver) = set_up("link-waiting");
    let large = "x".repeat(5 << 20);
    broker.publish_signed(&mesh, DECLARATION, &large, "key");
    driver.up();
    assert_eq!(declaration(&mut driver), large);
}

#[test]
fn what_is_unsigned_or_wrongly_signed_is_refused_and_the_link_goes_on() {
    if !crate::can_run("what_is_unsigned_or_wrongly_signed_is_refused_and_the_link_goes_on") {
        return;
    }
    let (mesh, broker, mut driver) = set_up("link-unsigned");
    mesh.key("other");
    driver.up();
    let topic = DECLARATION;
    broker.publish(&mesh, topic, "{}", &[]);
    let (layer, said) = refused(&mut driver);
    assert_eq!(layer, Layer::Signature);
    assert!(said.contains("node/web-1/declaration: it is not signed"), "{said}");
    broker.publish_signed(&mesh, topic, "{}", "other");
    assert!(refused(&mut driver).1.contains("no control key in force signed it"));
    let elsewhere = mesh.signature("key", "node/web-2/declaration", b"{}");
    broker.publish(&mesh, topic, "{}", &[("signature", &elsewhere)]);
    assert!(refused(&mut driver).1.contains("no control key in force signed it"));
    broker.publish(&mesh, topic, "{}", &[("signature", "AAAA")]);
    assert!(refused(&mut driver).1.contains("not base64 of 64 bytes"));
    let good = mesh.signature("key", topic, b"{}");
    broker.publish(&mesh, topic, "{}", &[("signature", &good), ("signature", &good)]);
    assert!(refused(&mut driver).1.contains("more than one signature"));
    broker.publish_signed(&mesh, topic, "{}", "key");
    assert_eq!(declaration(&mut driver), "{}");
}

#[test]
fn a_mesh_message_moves_the_control_key_and_outlives_the_process() {
    if !crate::can_run("a_mesh_message_moves_the_control_key_and_outlives_the_process") {
        return;
    }
    let (mesh, broker, mut driver) = set_up("link-rollover");
    mesh.key("next");
    driver.up();
    // Signed by the key to come: refused, and asked for again once that is in force.
    broker.publish_signed(&mesh, DECLARATION, "{}", "next");
    assert_eq!(refused(&mut driver).0, Layer::Signature);
    let message = mesh.message(2, &[broker.address()], "next");
    broker.publish_signed(&mesh, MESH, &message, "key");
    driver.until("mesh", |it| matches!(it, Happened::Mesh(mesh) if mesh.serial == 2));
    assert_eq!(declaration(&mut driver), "{}");
    let kept = mesh.path("state-web-1/identity/mesh.json");
    assert_eq!(std::fs::read_to_string(kept).unwrap(), message);

    // What was in force before is stale, even where the key of then signs it again.
    let stale = mesh.message(1, &[broker.address()], "key");
    broker.publish_signed(&mesh, MESH, &stale, "next");
    let (layer, said) = refused(&mut driver);
    assert_eq!(layer, Layer::Declaration);
    assert!(said.contains("serial 1 is stale: 2 is in force"), "{said}");
}

#[test]
fn a_mesh_message_moves_the_node_to_another_broker() {
    if !crate::can_run("a_mesh_message_moves_the_node_to_another_broker") {
        return;
    }
    let (mesh, broker, mut driver) = set_up("link-move");
    let other = Broker::start(&mesh, &Manner::default());
    let message = mesh.message(2, &[other.address()], "key");
    other.publish_signed(&mesh, MESH, &message, "key");
    driver.up();
    broker.publish_signed(&mesh, MESH, &message, "key");
    assert!(driver.refusal().contains("moved to other brokers"));
    driver.link.hurry();
    driver.until(
        "up",
        |it| matches!(it, Happened::Up { broker } if broker.to_string() == other.address()),
    );
}

#[test]
fn brokers_are_tried_in_order_and_a_killed_one_is_found_again() {
    if !crate::can_run("brokers_are_tried_in_order_and_a_killed_one_is_found_again") {
        return;
    }
    let mesh = Mesh::new("link-order");
    let mut broker = Broker::start(&mesh, &Manner::default());
    let dead = format!("localhost:{}", free_port());
    let message = mesh.message(1, &[dead.clone(), broker.address()], "key");
    broker.publish_signed(&mesh, MESH, &message, "key");
    let mut driver = Driver::new(&mesh.state("web-1", &message));
    let said = driver.refusal();
    assert!(said.starts_with(&format!("{dead}: the broker refused at TCP")), "{said}");
    driver.up();
    broker.kill();
    match driver.until("down", |it| matches!(it, Happened::Down { .. })) {
        Happened::Down { was_up, .. } => assert!(was_up),
        _ => unreachable!("that is what was waited for"),
    }
    assert_eq!(driver.link.standing(), Standing::Waiting, "never at once");
    broker.restart();
    broker.publish_signed(&mesh, MESH, &message, "key");
    driver.link.hurry();
    driver.up();
}

#[test]
fn a_second_host_with_this_identity_takes_the_link_and_the_first_says_what_it_looks_like() {
    if !crate::can_run("a_second_host_with_this_identity_takes_the_link") {
        return;
    }
    let (mesh, _broker, mut driver) = set_up("link-twice");
    driver.up();
    let mut second = Driver::new(&mesh.path("state-web-1"));
    second.up();
    let said = driver.refusal();
    let named = said.contains("session taken over") || said.contains("a second host");
    assert!(named, "{said}");
}

//
#[test]
fn no_turn_of_the_loop_is_long_whatever_the_other_side_does() {
    if !crate::can_run("no_turn_of_the_loop_is_long_whatever_the_other_side_does") {
        return;
    }
    let (mesh, broker, mut driver) = set_up("link-turns");
    broker.publish_signed(&mesh, DECLARATION, &"x".repeat(1 << 20), "key");
    driver.up();
    declaration(&mut driver);
    // Ten times what is promised of a release build on a machine of its own.
    assert!(driver.longest < Duration::from_millis(500), "{:?}", driver.longest);
}
