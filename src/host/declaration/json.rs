//! A small JSON tree that keeps what a map loses: order and duplicate keys. Pure.
//!
//! Text is borrowed where the document holds it unescaped. There is no `Debug`: a tree may hold a
//! secret.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// How deep arrays and objects may stand in one another.
pub const MAX_DEPTH: usize = 32;

/// A JSON value.
#[derive(Clone, PartialEq)]
pub enum Json<'a> {
    /// `null`
    Null,
    /// `true`, `false`
    Bool(bool),
    /// An integer that is not negative.
    Unsigned(u64),
    /// A negative integer.
    Negative(i64),
    /// A number that is not an integer, or no 64-bit one.
    Float(f64),
    /// A string.
    Text(Cow<'a, str>),
    /// An array.
    List(Vec<Json<'a>>),
    /// An object: its entries as they stand, duplicates among them.
    Object(Entries<'a>),
}

/// The entries of an object.
pub type Entries<'a> = Vec<(Cow<'a, str>, Json<'a>)>;

impl<'a> Json<'a> {
    /// Reads the one value that `text` holds. `spare` becomes the storage of the outermost object,
    /// so that a caller who reads many can use one allocation for all.
    pub fn parse(text: &'a str, spare: Entries<'a>) -> Result<Json<'a>, serde_json::Error> {
        let mut source = serde_json::Deserializer::from_str(text);
        let value = Tree::within(spare).deserialize(&mut source)?;
        source.end()?;
        Ok(value)
    }

    /// What a person calls this sort of value.
    pub fn sort(&self) -> &'static str {
        match self {
            Json::Null => "null",
            Json::Bool(_) => "a boolean",
            Json::Unsigned(_) | Json::Negative(_) => "an integer",
            Json::Float(_) => "a number",
            Json::Text(_) => "text",
            Json::List(_) => "a list",
            Json::Object(_) => "an object",
        }
    }

    /// The entry of an object's key, the first of its name.
    pub fn get(&self, key: &str) -> Option<&Json<'a>> {
        match self {
            Json::Object(entries) => entries.iter().find(|(k, _)| k == key).map(|(_, v)| v),
            _ => None,
        }
    }

    /// Appends the value to `out` as compact JSON, on one line.
    pub fn write(&self, out: &mut String) {
        match self {
            Json::Null => out.push_str("null"),
            Json::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
            Json::Unsigned(value) => write_scalar(value, out),
            Json::Negative(value) => write_scalar(value, out),
            Json::Float(value) => write_scalar(value, out),
            Json::Text(text) => write_scalar(text, out),
            Json::List(items) => {
                out.push('[');
                for (at, item) in items.iter().enumerate() {
                    comma(at, out);
                    item.write(out);
                }
                out.push(']');
            }
            Json::Object(entries) => {
                out.push('{');
                for (at, (key, value)) in entries.iter().enumerate() {
                    comma(at, out);
                    write_scalar(key, out);
                    out.push(':');
                    value.write(out);
                }
                out.push('}');
            }
        }
    }
}

/// Appends a comma before every element but the first.
pub fn comma(at: usize, out: &mut String) {
    if at > 0 {
        out.push(',');
    }
}

/// Appends a scalar as JSON.
pub fn write_scalar(value: &(impl serde::Serialize + ?Sized), out: &mut String) {
    out.push_str(&serde_json::to_string(value).expect("a scalar is always JSON"));
}

/// Reads a string, borrowed where it can be.
pub struct Text;

impl<'de> DeserializeSeed<'de> for Text {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, source: D) -> Result<Self::Value, D::Error> {
        source.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Text {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("text")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(text))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(text.to_owned()))
    }
}

/// Reads a value.
pub struct Tree<'a> {
    depth: usize,
    spare: Entries<'a>,
}

impl<'a> Tree<'a> {
    /// The value may be as deep as [`Json::parse`] has it, of which see for `spare`.
    pub fn within(spare: Entries<'a>) -> Tree<'a> {
        Tree { depth: 0, spare }
    }
}

impl<'de> DeserializeSeed<'de> for Tree<'de> {
    type Value = Json<'de>;

    fn deserialize<D: Deserializer<'de>>(self, source: D) -> Result<Json<'de>, D::Error> {
        source.deserialize_any(self)
    }
}

impl<'de> Tree<'de> {
    fn inner<E: Error>(&self) -> Result<usize, E> {
        if self.depth == MAX_DEPTH {
            return Err(E::custom(format_args!("nested more than {MAX_DEPTH} deep")));
        }
        Ok(self.depth + 1)
    }
}

impl<'de> Visitor<'de> for Tree<'de> {
    type Value = Json<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E: Error>(self) -> Result<Json<'de>, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Json<'de>, E> {
        Ok(Json::Bool(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Json<'de>, E> {
        Ok(Json::Unsigned(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Json<'de>, E> {
        Ok(Json::Negative(value))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Json<'de>, E> {
        Ok(Json::Float(value))
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Json<'de>, E> {
        Ok(Json::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Json<'de>, E> {
        Ok(Json::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut source: A) -> Result<Json<'de>, A::Error> {
        let depth = self.inner()?;
        let mut items = Vec::new();
        while let Some(item) = source.next_element_seed(Tree { depth, spare: Vec::new() })? {
            items.push(item);
        }
        Ok(Json::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut source: A) -> Result<Json<'de>, A::Error> {
        let depth = self.inner()?;
        let mut entries = self.spare;
        while let Some(key) = source.next_key_seed(Text)? {
            entries.push((key, source.next_value_seed(Tree { depth, spare: Vec::new() })?));
        }
        Ok(Json::Object(entries))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str) -> String {
        let mut out = String::new();
        Json::parse(text, Vec::new()).map(|json| json.write(&mut out)).expect("good JSON");
        out
    }

    #[test]
    fn order_and_duplicates_survive_and_text_is_borrowed() {
        let text = r#"{"b":[1,-2,0.5,"x\n",null,true],"a":{},"b":18446744073709551615}"#;
        assert_eq!(written(text), text);
        let Json::Text(Cow::Borrowed("plain")) = Json::parse(r#""plain""#, Vec::new()).unwrap()
        else {
            panic!("unescaped text is borrowed")
        };
    }

    #[test]
    fn depth_has_a_limit() {
        let deep = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
        assert!(Json::parse(&deep(MAX_DEPTH), Vec::new()).is_ok());
        let fault = Json::parse(&deep(MAX_DEPTH + 1), Vec::new()).err().expect("too deep");
        assert!(fault.to_string().contains("nested more than 32 deep"), "{fault}");
        assert!(Json::parse(&deep(100_000), Vec::new()).is_err());
    }
}
