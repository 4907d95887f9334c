//! What a mesh says, whose certificate is whose, and whose word counts.

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::CertificateDer;

use super::{message, public, publish, AUTHORITY, NODE};
use crate::link::mesh::{Broker, Mesh};
use crate::link::mqtt::Publication;
use crate::link::signed::{payload as payload_of, ControlKey, PROPERTY};
use crate::link::x509::Certificate;

#[test]
fn a_mesh_message_is_read_and_says_what_it_says_in_any_words() {
    let text = message(7, &["a:1", "[::1]:2"], 1);
    let mesh = Mesh::parse(text.as_bytes()).unwrap();
    assert_eq!((mesh.serial, mesh.serial_floor, mesh.cas.len()), (7, 0, 1));
    let brokers: Vec<String> = mesh.brokers.iter().map(Broker::to_string).collect();
    assert_eq!(brokers, ["a:1", "[::1]:2"]);
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    let pretty = serde_json::to_string_pretty(&value).unwrap();
    assert!(Mesh::parse(pretty.as_bytes()).unwrap().says(&mesh));
    let other = Mesh::parse(message(7, &["b:1"], 1).as_bytes()).unwrap();
    assert!(!other.says(&mesh));
}

#[test]
fn the_golden_message_is_read_and_its_signature_holds() {
    let text = include_str!("../../../../tests/wire/mesh.json");
    let mesh = Mesh::parse(text.as_bytes()).unwrap();
    assert_eq!(mesh.serial_floor, 40);
    let signed = include_str!("../../../../tests/wire/mesh.signature.json");
    let signed: serde_json::Value = serde_json::from_str(signed).unwrap();
    let said = |field: &str| signed[field].as_str().unwrap();
    let user = [(PROPERTY, said("signature"))];
    let (topic, payload) = (said("topic"), text.as_bytes());
    let packet = Publication { id: 1, retain: true, topic, user: &user, payload }.encode();
    let key = ControlKey::parse(said("key")).unwrap();
    assert_eq!(payload_of(packet, &[key]).unwrap(), payload);
    assert_eq!(mesh.control_keys, [key]);
}

#[test]
fn every_field_of_a_mesh_message_is_wanted_and_of_its_own_kind() {
    let good: serde_json::Value = serde_json::from_str(&message(7, &["a:1"], 1)).unwrap();
    let fields: Vec<String> = good.as_object().unwrap().keys().cloned().collect();
    for field in &fields {
        let mut absent = good.clone();
        absent.as_object_mut().unwrap().remove(field);
        assert!(Mesh::parse(absent.to_string().as_bytes()).is_err(), "without {field}");
        for wrong in [serde_json::json!(null), serde_json::json!("x"), serde_json::json!([])] {
            let mut bad = good.clone();
            bad[field] = wrong.clone();
            let why = Mesh::parse(bad.to_string().as_bytes()).unwrap_err();
            assert!(!why.chars().any(char::is_control), "{why}");
        }
        let twice = good.to_string().replacen('{', &format!("{{\"{field}\":0,"), 1);
        assert!(Mesh::parse(twice.as_bytes()).is_err(), "{field} twice");
    }
    let more = good.to_string().replacen('{', "{\"more\":1,", 1);
    assert!(Mesh::parse(more.as_bytes()).unwrap_err().contains("unknown field"));
    let mut newer = good.clone();
    newer["v"] = 2.into();
    assert_eq!(
        Mesh::parse(newer.to_string().as_bytes()).unwrap_err(),
        "v: is 2, and this host reads 1"
    );
    let mut many = good.clone();
    many["brokers"] = vec!["a:1"; 33].into();
    assert!(Mesh::parse(many.to_string().as_bytes()).unwrap_err().starts_with("brokers: has 33"));
    let mut no_ca = good;
    no_ca["cas"] = serde_json::json!([AUTHORITY, AUTHORITY.replace("MII", "AAA")]);
    let why = Mesh::parse(no_ca.to_string().as_bytes()).unwrap_err();
    assert!(why.starts_with("cas[1]: "), "{why}");
    let text = message(7, &["a:1"], 1);
    for cut in 0..text.len() {
        assert!(Mesh::parse(&text.as_bytes()[..cut]).is_err(), "up to {cut}");
    }
}

#[test]
fn a_broker_is_a_host_and_a_port() {
    for good in ["a:1", "broker.example:65535", "127.0.0.1:8883", "[fe80::1]:8883"] {
        assert_eq!(Broker::parse(good).unwrap().to_string(), good);
    }
    let long = format!("{}:1", "a".repeat(254));
    for bad in [
        "", ":", ":1", "a", "a:", "a:0", "a:65536", "a:+1", "a:1:2", "::1:2", "[::1]", "[a]:1",
        "a b:1", "a/b:1", "-a:1", "a\n:1", "[::1:1", &long,
    ] {
        assert!(Broker::parse(bad).is_err(), "{bad:?}");
    }
}

#[test]
fn a_control_key_is_32_bytes_in_base64() {
    let good = public(1);
    let key = ControlKey::parse(&good).unwrap();
    let url = good.replace('+', "-").replace('/', "_");
    assert_eq!(ControlKey::parse(url.trim_end_matches('=')).as_ref(), Ok(&key));
    for bad in ["", "ed25519:", "ed25519:AAAA", "rsa:AAAA", &good[8..], &format!("{good}AAAA")] {
        assert!(ControlKey::parse(bad).is_err(), "{bad:?}");
    }
    for cut in 0..good.len() - 1 {
        assert!(ControlKey::parse(&good[..cut]).is_err(), "up to {cut}");
    }
}

#[test]
fn only_what_a_key_in_force_signed_for_this_topic_is_taken() {
    let key = |seed| ControlKey::parse(&public(seed)).unwrap();
    let topic = "node/web-1/declaration";
    let packet = publish(topic, b"{}", Some(1));
    assert_eq!(payload_of(packet.clone(), &[key(1)]).unwrap(), b"{}");
    assert_eq!(payload_of(packet.clone(), &[key(2), key(1)]).unwrap(), b"{}");
    assert!(payload_of(packet.clone(), &[key(2)]).is_err());
    assert!(payload_of(packet.clone(), &[]).is_err());
    for at in packet.len() - 2..packet.len() {
        let mut changed = packet.clone();
        changed[at] ^= 1;
        assert!(payload_of(changed, &[key(1)]).is_err(), "byte {at}");
    }
    let empty = publish(topic, b"", Some(1));
    assert_eq!(payload_of(empty, &[key(1)]).unwrap(), b"");
    // What was signed for another topic, moved here.
    let elsewhere = super::sign(1, "node/web-2/declaration", b"{}");
    let user = [(PROPERTY, &*elsewhere)];
    let moved = Publication { id: 1, retain: true, topic, user: &user, payload: b"{}" };
    assert!(payload_of(moved.encode(), &[key(1)]).is_err());
}

//
#[test]
fn a_certificate_says_whose_it_is_and_when_it_is_good() {
    let der = CertificateDer::from_pem_slice(NODE.as_bytes()).unwrap();
    let read = Certificate::read(&der).unwrap();
    assert_eq!(read.common_name, Some("web-1"));
    assert_eq!(read.window.to_string(), "from 2020-01-01T00:00:00Z on");
    assert_eq!(read.public_key.len(), 44, "an Ed25519 key in its wrapping");
    let der = CertificateDer::from_pem_slice(AUTHORITY.as_bytes()).unwrap();
    let read = Certificate::read(&der).unwrap();
    assert_eq!(read.common_name, Some("mesh-ca"));
    assert!(read.window.until.is_some());
}

#[test]
fn a_certificate_cut_short_or_gone_on_with_is_none() {
    let der = CertificateDer::from_pem_slice(NODE.as_bytes()).unwrap();
    for cut in 0..der.len() {
        assert_eq!(Certificate::read(&der[..cut]), None, "up to {cut}");
    }
    assert_eq!(Certificate::read(&[&der[..], b"\0"].concat()), None);
    for at in 0..der.len() {
        for bit in 0..8 {
            let mut changed = der.to_vec();
            changed[at] ^= 1 << bit;
            // Read or refused, and never a panic; what is said of it is of a possible form.
            if let Some(read) = Certificate::read(&changed) {
                assert!(read.public_key.len() < changed.len());
            }
        }
    }
}
