//! Values that stand in a record in a form of their own: borrowed text, and digests. Pure.

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;

use serde::{de, Deserialize, Deserializer, Serialize, Serializer};

use crate::digest;

/// Text that borrows from the line where nothing in it is escaped.
///
/// `Option<Cow<str>>` would always be copied: serde borrows only into a bare `Cow`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text<'a>(pub Cow<'a, str>);

impl<'a> From<&'a str> for Text<'a> {
    fn from(text: &'a str) -> Text<'a> {
        Text(Cow::Borrowed(text))
    }
}

impl From<String> for Text<'_> {
    fn from(text: String) -> Self {
        Text(Cow::Owned(text))
    }
}

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl Serialize for Text<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Text<'a>, D::Error> {
        struct Visitor;
        impl<'de> de::Visitor<'de> for Visitor {
            type Value = Text<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("text")
            }
            fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Borrowed(text)))
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Owned(text.into())))
            }
        }
        deserializer.deserialize_str(Visitor)
    }
}

/// One of many objects that a compaction restates together, written as a list: the object, its
/// type, its resource's id, the digest of its form, and the record of its last change.
#[derive(Debug, Serialize, Deserialize)]
pub struct Restated<'a>(
    #[serde(borrow)] pub Text<'a>,
    #[serde(borrow)] pub Text<'a>,
    #[serde(borrow)] pub Text<'a>,
    pub Hex<8>,
    pub u64,
);

/// `N` bytes, written as lower-case hexadecimal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hex<const N: usize>(pub [u8; N]);

impl Hex<32> {
    /// The first 16 digits.
    pub fn short(&self) -> Hex<8> {
        Hex(self.0[..8].try_into().expect("32 bytes have a first 8"))
    }
}

impl<const N: usize> fmt::Display for Hex<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&digest::hex(&self.0))
    }
}

impl<const N: usize> Serialize for Hex<N> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&digest::hex(&self.0))
    }
}

impl<'de, const N: usize> Deserialize<'de> for Hex<N> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Hex<N>, D::Error> {
        let text = <&str>::deserialize(deserializer)?;
        digest::unhex(text).map(Hex).ok_or_else(|| de::Error::custom("a digest is not one"))
    }
}
