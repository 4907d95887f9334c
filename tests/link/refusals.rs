//! Every way in which a link does not come about: who refused, where, on what grounds.

use crate::broker::{free_port, Broker, Manner, Mesh, Use, EVER, LATER, PAST};
use crate::driver::Driver;
use nox_mesh_host::link::{Happened, Standing};
use std::time::Duration;

/// What the first attempt at a broker says, of the node whose certificate is `file`.
fn said(mesh: &Mesh, broker: &Broker, file: &str) -> String {
    let message = mesh.message(1, &[broker.address()], "key");
    Driver::new(&mesh.state(file, &message)).refusal()
}

#[track_caller]
fn says(said: &str, parts: &[&str]) {
    for part in parts {
        assert!(said.contains(part), "{part:?} is not in {said:?}");
    }
    assert!(!said.contains('\n') && said.len() < 400, "not one sentence: {said:?}");
}

//
#[test]
fn no_address_and_no_listener_are_told_apart() {
    if !crate::can_run("no_address_and_no_listener_are_told_apart") {
        return;
    }
    let mesh = Mesh::new("refused-early");
    let refusal = |broker: String| {
        Driver::new(&mesh.state("web-1", &mesh.message(1, &[broker], "key"))).refusal()
    };
    let lost = refusal("broker.invalid:8883".into());
    says(&lost, &["nobody answered at name lookup", "\"broker.invalid\" was not found"]);
    let port = free_port();
    let shut = refusal(format!("127.0.0.1:{port}"));
    says(&shut, &["the broker refused at TCP", "connection refused", "start the broker"]);
}

//
#[test]
fn a_broker_that_is_not_the_meshs_is_refused_by_this_host() {
    if !crate::can_run("a_broker_that_is_not_the_meshs_is_refused_by_this_host") {
        return;
    }
    let mesh = Mesh::new("refused-broker");
    mesh.authority("other-ca", "other-ca");
    mesh.authority("namesake", "mesh-ca");
    mesh.leaf("other-ca", "stranger", "stranger", Use::Server("DNS:localhost"), EVER);
    mesh.leaf("namesake", "double", "double", Use::Server("DNS:localhost"), EVER);
    mesh.leaf("mesh-ca", "old", "old", Use::Server("DNS:localhost"), PAST);
    mesh.leaf("mesh-ca", "young", "young", Use::Server("DNS:localhost"), LATER);
    mesh.leaf("mesh-ca", "elsewhere", "elsewhere", Use::Server("DNS:elsewhere"), EVER);
    mesh.leaf("mesh-ca", "node", "node", Use::Client, EVER);
    for (certificate, parts) in [
        ("stranger", ["signed by no authority of this mesh", "enrol this node again"]),
        ("double", ["signed by no authority of this mesh", "enrol this node again"]),
        ("old", ["has expired: our clock says 20", "it was good until 2021-01-01T00:00:00Z"]),
        ("young", ["not valid yet: our clock says 20", "it is good from 2099-01-01T00:00:00Z"]),
        ("elsewhere", ["not for the name", "name the broker as its certificate does"]),
        ("node", ["certificate is not", "renew"]),
    ] {
        let broker = Broker::start(&mesh, &Manner { certificate, ..Manner::default() });
        let said = said(&mesh, &broker, "web-1");
        says(&said, &["this host refused at TLS", parts[0], parts[1]]);
    }
}

//
#[test]
fn a_node_that_is_not_the_meshs_is_told_so_by_the_broker() {
    if !crate::can_run("a_node_that_is_not_the_meshs_is_told_so_by_the_broker") {
        return;
    }
    let mesh = Mesh::new("refused-node");
    mesh.authority("other-ca", "other-ca");
    mesh.authority("namesake", "mesh-ca");
    mesh.leaf("other-ca", "web-2", "web-2", Use::Client, EVER);
    mesh.leaf("namesake", "web-3", "web-3", Use::Client, EVER);
    mesh.leaf("mesh-ca", "web-4", "web-4", Use::Client, EVER);
    mesh.leaf("mesh-ca", "web-5", "web-5", Use::Client, PAST);
    mesh.leaf("mesh-ca", "web-6", "web-6", Use::Client, LATER);
    mesh.revocations("mesh-ca", Some("web-4"));
    let crl = mesh.path("mesh-ca.crl");
    let more = format!("{}crlfile {}\n", Manner::default().more, crl.display());
    for version in ["tlsv1.3", "tlsv1.2"] {
        let more = format!("{more}tls_version {version}\n");
        let broker = Broker::start(&mesh, &Manner { more: &more, ..Manner::default() });
        for (file, parts) in [
            ("web-2", ["does not know the authority", "(alert 48"]),
            ("web-3", ["another authority of the same name", "(alert 51"]),
            ("web-4", ["this node's certificate is revoked", "(alert 44"]),
            ("web-5", ["good from 2020-01-01T00:00:00Z until 2021-01-01T00:00:00Z", "(alert 45"]),
            ("web-6", ["good from 2099-01-01T00:00:00Z on", "(alert 42"]),
        ] {
            let said = said(&mesh, &broker, file);
            says(&said, &["the broker refused at TLS", parts[0], parts[1], "; "]);
        }
    }
}

//
#[test]
fn a_broker_that_answers_with_a_code_or_speaks_no_tls_is_told() {
    if !crate::can_run("a_broker_that_answers_with_a_code_or_speaks_no_tls_is_told") {
        return;
    }
    let mesh = Mesh::new("refused-code");
    let nobody = Manner { more: "require_certificate true\n", ..Manner::default() };
    let broker = Broker::start(&mesh, &nobody);
    let refused = said(&mesh, &broker, "web-1");
    says(&refused, &["the broker refused at MQTT", "0x87, not authorized", "enrol it again"]);

    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let plain = std::thread::spawn(move || {
        use std::io::Write;
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").unwrap();
        stream
    });
    let message = mesh.message(1, &[format!("127.0.0.1:{port}")], "key");
    let said = Driver::new(&mesh.state("web-1", &message)).refusal();
    says(&said, &["this host refused at TLS", "check that it is a TLS"]);
    plain.join().unwrap();
}

//
#[test]
fn a_lookup_and_a_handshake_that_hang_cost_the_loop_nothing_and_leave_nothing() {
    if !crate::can_run("a_lookup_and_a_handshake_that_hang_cost_the_loop_nothing") {
        return;
    }
    use std::os::unix::fs::PermissionsExt;
    let mesh = Mesh::new("refused-hang");
    let (program, pid) = (mesh.path("hangs"), mesh.path("hangs.pid"));
    let text =
        format!("#!/bin/sh\necho $$ >{0}.new\nmv {0}.new {0}\nexec sleep 60\n", pid.display());
    std::fs::write(&program, text).unwrap();
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    let message = mesh.message(1, &["broker.example:8883".into()], "key");
    let mut driver = Driver::new(&mesh.state("web-1", &message));
    driver.link.look_up_by(program);
    while !pid.exists() {
        driver.turn();
    }
    assert_eq!(driver.link.standing(), Standing::LookingUp);
    assert_eq!(driver.link.stop(), [Happened::Stopped]);
    assert!(driver.longest < Duration::from_millis(500), "{:?}", driver.longest);
    drop(driver);
    let pid = std::fs::read_to_string(pid).unwrap();
    assert!(!std::path::Path::new("/proc").join(pid.trim()).exists(), "the child is still there");

    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let mut driver = Driver::new(&mesh.state("web-1", &mesh.message(1, &[address], "key")));
    while driver.link.standing() != Standing::Securing {
        driver.turn();
    }
    (0..3).for_each(|_| driver.turn());
    assert_eq!(driver.link.standing(), Standing::Securing);
    assert!(driver.longest < Duration::from_millis(500), "{:?}", driver.longest);
}

//
#[test]
fn a_denied_topic_and_a_silent_one_are_told_apart() {
    if !crate::can_run("a_denied_topic_and_a_silent_one_are_told_apart") {
        return;
    }
    let mesh = Mesh::new("refused-topic");
    let control = "user control\ntopic readwrite node/#\n";
    let denied = format!("{control}pattern read node/%u/#\n");
    let broker = Broker::start(&mesh, &Manner { acl: &denied, ..Manner::default() });
    let refused = said(&mesh, &broker, "web-1");
    says(&refused, &["refused at MQTT: publish to node/web-1/presence: 0x87", "access list"]);

    let mute = format!("{control}pattern write node/%u/#\n");
    let broker = Broker::start(&mesh, &Manner { acl: &mute, ..Manner::default() });
    let silent = said(&mesh, &broker, "web-1");
    says(
        &silent,
        &["refused at subscription", "node/web-1/presence was granted and stayed silent"],
    );

    let bare = Broker::start(&mesh, &Manner::default());
    let bare = said(&mesh, &bare, "web-1");
    says(&bare, &["node/web-1/mesh was granted and stayed silent", "control plane has published"]);

    // One that comes and is not signed is why, and not silence.
    let broker = Broker::start(&mesh, &Manner::default());
    broker.publish(&mesh, "node/web-1/mesh", &mesh.message(1, &[broker.address()], "key"), &[]);
    let unsigned = said(&mesh, &broker, "web-1");
    says(&unsigned, &["this host refused at signature", "node/web-1/mesh: it is not signed"]);
}
