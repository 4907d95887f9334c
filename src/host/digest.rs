//! SHA-256, its keyed form, and hexadecimal. Pure.
//!
//! The arithmetic is the TLS library's: its cipher suites carry a hash, so no second
//! implementation is linked.

use rustls::crypto::hash::{Context, Hash};
use rustls::crypto::ring::cipher_suite::TLS13_AES_128_GCM_SHA256;
use rustls::crypto::tls13::OkmBlock;
use rustls::SupportedCipherSuite;

/// A SHA-256 digest.
pub type Sha256 = [u8; 32];

/// SHA-256 of `bytes`.
pub fn sha256(bytes: &[u8]) -> Sha256 {
    to_array(provider().hash(bytes).as_ref())
}

/// SHA-256 over bytes that arrive in pieces.
pub struct Hasher(Box<dyn Context>);

impl Hasher {
    /// Starts a digest of nothing yet.
    #[allow(clippy::new_without_default)]
    pub fn new() -> Hasher {
        Hasher(provider().start())
    }

    /// Adds `bytes`.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The digest of everything added.
    pub fn finish(self) -> Sha256 {
        to_array(self.0.finish().as_ref())
    }
}

/// HMAC-SHA-256 (RFC 2104) of `message` under `key`.
pub fn keyed(key: &[u8; 32], message: &[u8]) -> Sha256 {
    let SupportedCipherSuite::Tls13(suite) = TLS13_AES_128_GCM_SHA256 else {
        unreachable!("the suite is a TLS 1.3 one by its name")
    };
    to_array(suite.hkdf_provider.hmac_sign(&OkmBlock::new(key), message).as_ref())
}

/// Lower-case hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |nibble: u8| char::from(DIGITS[usize::from(nibble)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// The bytes that `text`, lower- or upper-case hexadecimal, stands for; `None` where it is not
/// exactly `N` bytes of that.
pub fn unhex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digits = text.as_bytes();
    if digits.len() != 2 * N {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
        let high = char::from(pair[0]).to_digit(16)?;
        let low = char::from(pair[1]).to_digit(16)?;
        *byte = (high * 16 + low) as u8;
    }
    Some(bytes)
}

fn provider() -> &'static dyn Hash {
    let SupportedCipherSuite::Tls13(suite) = TLS13_AES_128_GCM_SHA256 else {
        unreachable!("the suite is a TLS 1.3 one by its name")
    };
    suite.common.hash_provider
}

fn to_array(bytes: &[u8]) -> Sha256 {
    bytes.try_into().expect("the hash is SHA-256, 32 bytes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_the_published_vectors() {
        // FIPS 180-2 appendix B.1 and RFC 4231 test case 1 with its key padded to a block.
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(hex(&sha256(b"abc")), abc);
        let mut pieces = Hasher::new();
        pieces.update(b"a");
        pieces.update(b"bc");
        assert_eq!(hex(&pieces.finish()), abc);
        let mut key = [0; 32];
        key[..20].fill(0x0b);
        let tag = "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7";
        assert_eq!(hex(&keyed(&key, b"Hi There")), tag);
    }

    #[test]
    fn unhex_refuses_what_hex_never_writes() {
        assert_eq!(unhex::<2>("00ff"), Some([0, 255]));
        for bad in ["", "0", "00f", "00fff", "00fg", "+0ff"] {
            assert_eq!(unhex::<2>(bad), None, "{bad}");
        }
    }
}
