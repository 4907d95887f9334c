//! One resource held against the table of its type. Pure.
//!
//! Owns the rules that a table states. What holds between the fields of one resource is its type's
//! to say, what holds between resources is `whole`'s.

use std::borrow::Cow;
use std::fmt;

use super::fault::{quoted, Fault, Faults};
use super::json::{Entries, Json};
use super::near::did_you_mean;
use super::whole::place;
use crate::base64;
use crate::resource::fields::{Fields, Value};
use crate::resource::form::{self, Text};
use crate::resource::kind::{Need, Secrecy, Shape};
use crate::resource::{Principal, RootPath};

/// What turns a reference in the journal back into the secret value that it stands for, where a
/// declaration comes from the journal.
pub(super) type Vault<'v> = Option<&'v mut dyn FnMut(&str) -> Option<Vec<u8>>>;

/// Whether entries that no table knows are faults.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Strangers {
    /// They are.
    Refused,
    /// They are not: the type is unknown, and its fields with it.
    Passed,
}

/// Where in a resource a value stands, as a chain up to the resource itself.
#[derive(Clone, Copy)]
pub(super) struct At<'p> {
    up: Option<&'p At<'p>>,
    step: Step<'p>,
}

#[derive(Clone, Copy)]
enum Step<'p> {
    Field(&'p str),
    Key(&'p str),
    Item(usize),
}

impl<'p> At<'p> {
    /// A field of the resource itself.
    pub fn field(name: &'p str) -> At<'p> {
        At { up: None, step: Step::Field(name) }
    }

    fn inner(&'p self, step: Step<'p>) -> At<'p> {
        At { up: Some(self), step }
    }
}

impl fmt::Display for At<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(up) = self.up {
            up.fmt(f)?;
        }
        let dot = if self.up.is_some() { "." } else { "" };
        match self.step {
            Step::Item(at) => write!(f, "[{at}]"),
            Step::Field(name) => write!(f, "{dot}{name}"),
            Step::Key(name) if form::word(name, "_", "_-") && name.len() <= 80 => {
                write!(f, "{dot}{name}")
            }
            Step::Key(name) => write!(f, "{dot}{}", quoted(name)),
        }
    }
}

/// Of how many keys of a resource it is remembered where they were found: more than any type has.
const MOST_KEYS: usize = 40;

/// A reference that a resource makes.
pub(super) struct Reference<'a> {
    /// The field it stands in.
    pub field: String,
    /// The id it names.
    pub id: Cow<'a, str>,
    /// The types it may name; none: any.
    pub types: &'static [&'static str],
}

/// Holds the values of one resource against its table.
pub(super) struct Checker<'r, 'a> {
    /// Where faults go.
    pub faults: &'r mut Faults,
    /// Its position in the list.
    pub position: u32,
    /// Its id, where it has a good one.
    pub id: Option<Cow<'a, str>>,
    /// What has the values that the journal does not.
    pub vault: Vault<'r>,
    /// The resource marks its values as secret.
    pub marked: bool,
    /// The name of a value that was to be in the vault and is not.
    pub lost: Option<Box<str>>,
    /// The references it makes.
    pub references: Vec<Reference<'a>>,
    /// Where the fields of the last resource were found, in the order of its keys: the next one is
    /// mostly written alike.
    pub order: &'r mut Vec<(usize, usize)>,
}

impl<'a> Checker<'_, 'a> {
    /// Notes a fault.
    pub fn wrong(&mut self, at: &dyn fmt::Display, wrong: String, mend: impl Into<String>) {
        let place = place(self.position, self.id.as_deref());
        let (field, mend) = (at.to_string(), mend.into());
        self.faults.push(self.position + 1, Fault { place, field, wrong, mend });
    }

    /// Fills the fields of one object, whichever of their tables a name is in, with its entries.
    pub fn fields(
        &mut self,
        up: Option<&At<'_>>,
        entries: &mut Entries<'a>,
        into: &mut [&mut Fields<'a>],
        strangers: Strangers,
    ) {
        for (nth, (key, value)) in entries.drain(..).enumerate() {
            let at = At { up, step: Step::Field(&key) };
            let is_there = |(n, slot): (usize, usize)| {
                into.get(n).and_then(|it| it.table().get(slot)).is_some_and(|it| it.name == key)
            };
            let find = |fields: &Fields<'a>| fields.table().iter().position(|it| it.name == key);
            let last = self.order.get(nth).copied().filter(|&last| is_there(last));
            let found = last.or_else(|| (0..into.len()).find_map(|n| Some((n, find(into[n])?))));
            if let (Some(found), None, None) = (found, last, up) {
                self.order.truncate(nth.min(MOST_KEYS));
                self.order.push(found);
            }
            match found {
                Some((n, slot)) if into[n].is_put(slot) => self.duplicate(&at),
                Some((n, slot)) => {
                    let field = &into[n].table()[slot];
                    let value = self.value(&at, &field.shape, field.secrecy, value);
                    into[n].put(slot, value);
                }
                None if strangers == Strangers::Passed => {}
                None => {
                    let names = into.iter().flat_map(|it| it.table()).map(|field| field.name);
                    let mend = did_you_mean(&key, names);
                    let at = At { up, step: Step::Key(&key) };
                    self.wrong(&at, "is not a field here".into(), mend);
                }
            }
        }
        for fields in into {
            for (slot, field) in fields.table().iter().enumerate() {
                if field.need == Need::Required && !fields.is_put(slot) {
                    let at = At { up, step: Step::Field(field.name) };
                    self.wrong(&at, "is missing, and required".into(), "");
                }
            }
        }
    }

    /// Notes a key that stands twice.
    pub fn duplicate(&mut self, at: &dyn fmt::Display) {
        self.wrong(at, "stands here twice".into(), "keep one of the two");
    }

    /// The value of a field whose secret may lie in the vault, or `None` after noting its faults.
    pub fn value(
        &mut self,
        at: &At<'_>,
        shape: &'static Shape,
        secrecy: Secrecy,
        json: Json<'a>,
    ) -> Option<Value<'a>> {
        let kept = match secrecy {
            Secrecy::Open => false,
            Secrecy::Always => true,
            Secrecy::WhenMarked => self.marked,
        };
        let json = match (kept, shape) {
            (true, Shape::Text(_) | Shape::Base64) => self.open(json),
            _ => json,
        };
        match (shape, json) {
            (Shape::Bool, Json::Bool(value)) => Some(Value::Bool(value)),
            (
                Shape::Integer(..) | Shape::Number(..),
                json @ (Json::Unsigned(_) | Json::Negative(_)),
            )
            | (Shape::Number(..), json @ Json::Float(_)) => self.number(at, shape, &json),
            (Shape::Text(form) | Shape::TextOrInteger(form), Json::Text(text)) => {
                self.text(at, form, kept, text).map(Value::Text)
            }
            (Shape::TextOrInteger(_), Json::Unsigned(value)) => {
                Some(Value::Text(value.to_string().into()))
            }
            (Shape::TextOrInteger(_), Json::Negative(value)) => {
                Some(Value::Text(value.to_string().into()))
            }
            (Shape::Choice(words), Json::Text(text)) => self.choice(at, words, text),
            (Shape::Path, Json::Text(text)) => self.path(at, text),
            (Shape::Mode, Json::Text(text)) => self.mode(at, &text),
            (Shape::Principal, Json::Text(text)) => self.principal(at, text),
            (Shape::Base64, Json::Text(text)) => self.base64(at, &text),
            (Shape::Reference(types), Json::Text(id)) => {
                let (field, value) = (at.to_string(), Value::Text(id.clone()));
                self.references.push(Reference { field, id, types });
                Some(value)
            }
            (Shape::List(of, min, max), Json::List(items)) => {
                self.list(at, (of, *min, *max), secrecy, items)
            }
            (Shape::Map(form, of, max), Json::Object(entries)) => {
                self.map(at, (form, of, *max), secrecy, entries)
            }
            (Shape::Object(table), Json::Object(mut entries)) => {
                let mut fields = Fields::new(table, Vec::new());
                self.fields(Some(at), &mut entries, &mut [&mut fields], Strangers::Refused);
                Some(Value::Object(fields))
            }
            (shape, json) => {
                self.sort(at, shape, &json);
                None
            }
        }
    }

    fn sort(&mut self, at: &At<'_>, shape: &Shape, json: &Json<'_>) {
        let (wanted, mend) = match shape {
            Shape::Bool => ("a boolean", "write true or false, without quotes"),
            Shape::Integer(..) => ("an integer", "write digits alone, without quotes"),
            Shape::Number(..) => ("a number", "write digits, without quotes"),
            Shape::Mode => ("text", "write octal digits in quotes, such as \"0644\""),
            Shape::TextOrInteger(_) => ("text or an integer", ""),
            Shape::List(..) => ("a list", "put it in [ ]"),
            Shape::Map(..) | Shape::Object(_) => ("an object", ""),
            _ => ("text", "put it in quotes"),
        };
        let mend = match (json, shape) {
            (Json::Null, _) => "a field without a value is left out",
            (Json::List(_) | Json::Object(_), Shape::List(..)) => "",
            (Json::List(_) | Json::Object(_), _) => "",
            _ => mend,
        };
        self.wrong(at, format!("is {}, not {wanted}", json.sort()), mend);
    }

    /// Puts back a value that was kept out of the journal.
    fn open(&mut self, json: Json<'a>) -> Json<'a> {
        let Some(resolve) = self.vault.as_mut() else { return json };
        let Some(reference) = reference(&json) else { return json };
        let value = resolve(reference).and_then(|bytes| String::from_utf8(bytes).ok());
        if value.is_none() {
            self.lost = Some(reference.into());
        }
        Json::Text(value.unwrap_or_default().into())
    }

    fn number(&mut self, at: &At<'_>, shape: &Shape, json: &Json<'_>) -> Option<Value<'a>> {
        let (value, integer) = match json {
            Json::Unsigned(value) => (*value as f64, i64::try_from(*value).ok()),
            Json::Negative(value) => (*value as f64, Some(*value)),
            Json::Float(value) => (*value, None),
            _ => return None,
        };
        match shape {
            Shape::Integer(min, max) => {
                match integer.filter(|value| (min..=max).contains(&value)) {
                    Some(value) => return Some(Value::Integer(value)),
                    None => self.wrong(at, format!("is not within {min} to {max}"), ""),
                }
            }
            Shape::Number(min, max) if (*min..=*max).contains(&value) => {
                return Some(Value::Number(value));
            }
            Shape::Number(min, max) => {
                self.wrong(at, format!("is not within {min} to {max}"), "");
            }
            _ => {}
        }
        None
    }

    fn text(
        &mut self,
        at: &dyn fmt::Display,
        form: &Text,
        kept: bool,
        text: Cow<'a, str>,
    ) -> Option<Cow<'a, str>> {
        if text.len() > form.max {
            self.wrong(at, format!("is longer than {} bytes", form.max), "");
        } else if (form.holds)(&text) {
            return Some(text);
        } else {
            let it = if kept { "its value".into() } else { quoted(&text) };
            self.wrong(at, format!("{it} is not {}", form.what), form.mend);
        }
        None
    }

    fn choice(
        &mut self,
        at: &At<'_>,
        words: &[&'static str],
        text: Cow<'a, str>,
    ) -> Option<Value<'a>> {
        if words.contains(&&*text) {
            return Some(Value::Text(text));
        }
        let wrong = format!("{} is not one of {}", quoted(&text), words.join(", "));
        self.wrong(at, wrong, did_you_mean(&text, words.iter().copied()));
        None
    }

    fn path(&mut self, at: &At<'_>, text: Cow<'a, str>) -> Option<Value<'a>> {
        match RootPath::parse(&text) {
            Ok(path) => Some(Value::Path(path, text)),
            Err(why) => {
                self.wrong(at, format!("{} {why}", quoted(&text)), "");
                None
            }
        }
    }

    fn mode(&mut self, at: &At<'_>, text: &str) -> Option<Value<'a>> {
        let octal = text.bytes().all(|byte| matches!(byte, b'0'..=b'7'));
        if octal && matches!(text.len(), 3 | 4) {
            let mode = u16::from_str_radix(text, 8).expect("four octal digits fit 16 bits");
            return Some(Value::Mode(mode));
        }
        let wrong = format!("{} is not a mode", quoted(text));
        self.wrong(at, wrong, "write three or four octal digits, such as \"0644\"");
        None
    }

    fn principal(&mut self, at: &At<'_>, text: Cow<'a, str>) -> Option<Value<'a>> {
        if text == "root" {
            return Some(Value::Principal(Principal::Id(0))); // on every system there is
        }
        if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
            // The last number is what the kernel takes for "no change".
            if let Some(id) = text.parse().ok().filter(|id| *id != u32::MAX) {
                return Some(Value::Principal(Principal::Id(id)));
            }
            self.wrong(at, format!("{} is no id that the kernel has", quoted(&text)), "");
            return None;
        }
        let name = self.text(at, &form::ACCOUNT, false, text)?;
        Some(Value::Principal(Principal::Name(name.into())))
    }

    fn base64(&mut self, at: &At<'_>, text: &str) -> Option<Value<'a>> {
        match base64::decode(text) {
            Ok(bytes) => Some(Value::Bytes(bytes)),
            Err(offset) => {
                let wrong = format!("is not base64: wrong at byte {offset}");
                let mend = "encode it in the standard alphabet, padded, without line breaks";
                self.wrong(at, wrong, mend);
                None
            }
        }
    }

    fn list(
        &mut self,
        at: &At<'_>,
        (of, min, max): (&'static Shape, usize, usize),
        secrecy: Secrecy,
        items: Vec<Json<'a>>,
    ) -> Option<Value<'a>> {
        if items.len() < min || items.len() > max {
            let wrong = format!("has {} elements, not {min} to {max}", items.len());
            self.wrong(at, wrong, "");
            return None;
        }
        let check = |(n, item)| self.value(&at.inner(Step::Item(n)), of, secrecy, item);
        Some(Value::List(items.into_iter().enumerate().filter_map(check).collect()))
    }

    fn map(
        &mut self,
        at: &At<'_>,
        (form, of, max): (&'static Text, &'static Shape, usize),
        secrecy: Secrecy,
        entries: Entries<'a>,
    ) -> Option<Value<'a>> {
        if entries.len() > max {
            self.wrong(at, format!("has {} entries, not at most {max}", entries.len()), "");
            return None;
        }
        let mut seen = std::collections::HashSet::with_capacity(entries.len());
        for (key, _) in &entries {
            if !seen.insert(&**key) {
                self.duplicate(&at.inner(Step::Key(key)));
            }
        }
        drop(seen);
        let mut values = Vec::with_capacity(entries.len());
        for (key, json) in entries {
            let inner = at.inner(Step::Key(&key));
            let value = self.value(&inner, of, secrecy, json);
            let key = self.text(at, form, false, key);
            values.extend(key.zip(value));
        }
        Some(Value::Map(values))
    }
}

/// The key of the object that stands in the journal for a secret value.
pub(super) const SECRET: &str = "$secret";

/// The reference that stands for a secret value, where `json` is one.
pub(super) fn reference<'j>(json: &'j Json<'_>) -> Option<&'j str> {
    match json {
        Json::Object(entries) => match entries.as_slice() {
            [(key, Json::Text(reference))] if key == SECRET => Some(reference),
            _ => None,
        },
        _ => None,
    }
}
