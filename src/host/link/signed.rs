//! Whose word counts: signatures of the control plane over what a topic carries. Pure.
//!
//! A signature covers `topic NUL payload`, so that what was signed for one node or purpose is
//! nothing for another. The arithmetic is the TLS library's, so that no second one is linked.

use std::fmt;

use rustls::crypto::ring::default_provider;
use rustls::pki_types::alg_id;

use super::mqtt::Publish;
use super::refusal::{Layer, Refusal, Side};
use crate::base64;
use crate::declaration::fault::quoted;

/// The user property that carries a signature.
pub const PROPERTY: &str = "signature";

/// An Ed25519 public key of the control plane.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ControlKey([u8; 32]);

impl ControlKey {
    /// Reads `ed25519:` and the base64 of 32 bytes, in either alphabet, padded or not: the same
    /// words stand in tokens, which are base64url.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<ControlKey, String> {
        let wrong = || format!("{} is no ed25519:BASE64 of 32 bytes", quoted(text));
        let key = text.strip_prefix("ed25519:").ok_or_else(wrong)?;
        let mut key = key.replace('-', "+").replace('_', "/");
        if key.len() == 43 {
            key.push('=');
        }
        let bytes = base64::decode(&key).map_err(|_| wrong())?;
        bytes.try_into().map(ControlKey).map_err(|_| wrong())
    }
}

impl fmt::Debug for ControlKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ed25519 {}", crate::digest::hex(&self.0))
    }
}

/// The payload of the publication `packet`, which one of `keys` has signed for its topic.
///
/// # Errors
/// Who refused it, and on what grounds.
pub fn payload(packet: Vec<u8>, keys: &[ControlKey]) -> Result<Vec<u8>, Refusal> {
    let super::mqtt::Incoming::Publish(publish) =
        super::mqtt::decode(&packet).map_err(Refusal::malformed)?
    else {
        unreachable!("only a publication has a payload")
    };
    let signature = signature(&publish)?;
    let topic = publish.topic.to_string();
    let start = packet.len() - publish.payload.len();
    let mut message = packet;
    // What is signed takes the place of the packet's head, which is longer: a payload can be large.
    let head = topic.len() + 1;
    let from = start.checked_sub(head).expect("a head holds the topic, its length and more");
    message[from..start - 1].copy_from_slice(topic.as_bytes());
    message[start - 1] = 0;
    if !is_signed(&message[from..], &signature, keys) {
        let grounds = "no control key in force signed it";
        let mend = "publish it signed by the mesh's control key, over its topic, NUL and itself";
        return Err(refusal(&topic, grounds, mend));
    }
    message.drain(..start);
    Ok(message)
}

fn signature(publish: &Publish) -> Result<Vec<u8>, Refusal> {
    let mut all = publish.user(PROPERTY);
    let mend = "publish it with one user property signature, base64 of 64 bytes";
    let refuse = |grounds: &str| refusal(publish.topic, grounds, mend);
    let text = all.next().ok_or_else(|| refuse("it is not signed"))?;
    if all.next().is_some() {
        return Err(refuse("it carries more than one signature"));
    }
    let bytes = base64::decode(text).ok().filter(|bytes| bytes.len() == 64);
    bytes.ok_or_else(|| refuse("its signature is not base64 of 64 bytes"))
}

fn refusal(topic: &str, grounds: &str, mend: &str) -> Refusal {
    let grounds = format!("the message on {topic}: {grounds}");
    Refusal::new(Side::Host, Layer::Signature, grounds, mend)
}

/// One of `keys` made this signature over `message`.
pub fn is_signed(message: &[u8], signature: &[u8], keys: &[ControlKey]) -> bool {
    let algorithms = default_provider().signature_verification_algorithms.all;
    let ed25519 = algorithms
        .iter()
        .find(|it| it.public_key_alg_id() == alg_id::ED25519)
        .expect("the provider verifies Ed25519");
    keys.iter().any(|key| ed25519.verify_signature(&key.0, message, signature).is_ok())
}
