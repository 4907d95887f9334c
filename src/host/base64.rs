//! Base64 (RFC 4648, section 4), strict. Pure.
//!
//! Only what an encoder writes is read back: padding is required, and no line break, no blank and
//! no stray bit is let through, so that one value has one spelling.

/// The bytes that `text` stands for; the error is the offset, in bytes, of what is wrong.
pub fn decode(text: &str) -> Result<Vec<u8>, usize> {
    let text = text.as_bytes();
    if text.len() % 4 != 0 {
        return Err(text.len());
    }
    let padding = text.iter().rev().take(2).take_while(|byte| **byte == b'=').count();
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let digits = text.len() - padding;
    for (group, quad) in text[..digits].chunks(4).enumerate() {
        let mut bits = 0;
        for (at, byte) in quad.iter().enumerate() {
            bits |= sextet(*byte).ok_or(group * 4 + at)? << (18 - 6 * at);
        }
        let whole = quad.len() * 6 / 8;
        if bits & (0xff_ffff >> (8 * whole)) != 0 {
            return Err(group * 4 + quad.len() - 1);
        }
        bytes.extend_from_slice(&bits.to_be_bytes()[1..=whole]);
    }
    Ok(bytes)
}

/// `bytes` as [`decode`] reads them.
pub fn encode(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let byte = |at| group.get(at).copied().map_or(0, u32::from);
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for digit in 0..4 {
            text.push(match digit <= group.len() {
                true => char::from(DIGITS[(bits >> (18 - 6 * digit)) as usize & 63]),
                false => '=',
            });
        }
    }
    text
}

fn sextet(byte: u8) -> Option<u32> {
    Some(u32::from(match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_vectors_are_read() {
        // RFC 4648, section 10.
        let vectors = [
            ("", ""),
            ("Zg==", "f"),
            ("Zm8=", "fo"),
            ("Zm9v", "foo"),
            ("Zm9vYg==", "foob"),
            ("Zm9vYmE=", "fooba"),
            ("Zm9vYmFy", "foobar"),
        ];
        for (text, bytes) in vectors {
            assert_eq!(decode(text).as_deref(), Ok(bytes.as_bytes()), "{text}");
            assert_eq!(encode(bytes.as_bytes()), text);
        }
        assert_eq!(decode("/+8A"), Ok(vec![0xff, 0xef, 0x00]));
        assert_eq!(encode(&[0xff, 0xef, 0x00]), "/+8A");
    }

    #[test]
    fn what_no_encoder_writes_is_refused_with_its_offset() {
        let bad = [
            ("Zg", 2),
            ("Zg=", 3),
            ("Z===", 1),
            ("====", 0),
            ("Zh==", 1),
            ("Zm9=", 2),
            ("Zg==Zg==", 2),
            ("Zm9v\n", 5),
            ("Zm 9", 2),
            ("Zm-_", 2),
            ("Zm9é", 5),
        ];
        for (text, at) in bad {
            assert_eq!(decode(text), Err(at), "{text:?}");
        }
    }
}
