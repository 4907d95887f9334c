//! The pure parts of the link: every packet, every state at every event, every word of a mesh.

mod codec;
mod declared;
mod identity;
mod mesh;
mod session;
mod states;

use rustls::crypto::ring::sign::any_eddsa_type;
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::sign::SigningKey;
use rustls::SignatureScheme;

use super::mqtt::Publication;

/// An authority by openssl 3.0.22: `openssl req -x509 -newkey ed25519 -nodes -subj /CN=mesh-ca`.
const AUTHORITY: &str = include_str!("../../../../tests/transcripts/openssl/authority.pem");
/// A node's certificate of that authority, good from 2020 for ever.
const NODE: &str = include_str!("../../../../tests/transcripts/openssl/web-1.pem");

/// The key that this seed makes.
fn signer(seed: u8) -> std::sync::Arc<dyn SigningKey> {
    // RFC 8410, section 7: the seed as PKCS#8.
    let head = [0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20];
    any_eddsa_type(&PrivatePkcs8KeyDer::from([&head[..], &[seed; 32]].concat())).unwrap()
}

/// The words for the public half of a key.
fn public(seed: u8) -> String {
    let signer = signer(seed);
    let info = signer.public_key().unwrap();
    format!("ed25519:{}", base64(&info[info.len() - 32..]))
}

/// The signature of a key over what `topic` carries.
fn sign(seed: u8, topic: &str, payload: &[u8]) -> String {
    let signer = signer(seed).choose_scheme(&[SignatureScheme::ED25519]).unwrap();
    base64(&signer.sign(&[topic.as_bytes(), b"\0", payload].concat()).unwrap())
}

/// A publication as the broker passes it on, signed by a key if one is named.
fn publish(topic: &str, payload: &[u8], seed: Option<u8>) -> Vec<u8> {
    let signature = seed.map(|seed| sign(seed, topic, payload)).unwrap_or_default();
    let user = [("signature", &*signature)];
    let user = if seed.is_some() { &user[..] } else { &[] };
    Publication { id: 7, retain: true, topic, user, payload }.encode()
}

/// A `mesh` message.
fn message(serial: u64, brokers: &[&str], seed: u8) -> String {
    serde_json::json!({
        "v": 1, "serial": serial, "brokers": brokers, "cas": [AUTHORITY],
        "control_keys": [public(seed)], "serial_floor": 0,
    })
    .to_string()
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let bits = group.iter().fold(0u32, |sum, byte| sum << 8 | u32::from(*byte));
        let bits = bits << (8 * (3 - group.len()));
        for at in 0..4 {
            let digit = char::from(DIGITS[(bits >> (18 - 6 * at) & 63) as usize]);
            text.push(if at > group.len() { '=' } else { digit });
        }
    }
    text
}
