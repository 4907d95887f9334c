//! Reads the document of a declaration, one resource at a time. Pure.
//!
//! Each element of `resources` becomes a small tree, is checked, built and dropped before the next
//! is read, so that memory holds the text and the resources and no third copy of them.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::check::Vault;
use super::fault::{quoted, Fault, Faults};
use super::json::{self, Json, Tree};
use super::near::did_you_mean;
use super::one::{Judging, Spare};
use super::whole::{place, Whole};
use super::{Declared, Own, Trust, MAX_BYTES, MAX_RESOURCES, VERSION};
use crate::resource::form::NODE;
use crate::resource::{Holds, Question};

/// The fields of the document itself.
const FIELDS: [&str; 4] = ["version", "node", "serial", "resources"];

/// What a declaration without fault holds.
#[derive(Default)]
pub(super) struct Parts {
    pub node: Option<Box<str>>,
    pub serial: Option<u64>,
    pub resources: Vec<Declared>,
}

/// Reads `text` by the rules for `trust`, its secret values perhaps in `vault`.
pub(super) fn read<'r>(
    text: &[u8],
    trust: Trust,
    own: &'r Own,
    vault: Vault<'r>,
) -> Result<Parts, Vec<Fault>> {
    let text = document(text).map_err(|fault| vec![fault])?;
    let mut vault = vault;
    let mut again = |manner| {
        let vault: Vault<'_> = match &mut vault {
            Some(vault) => Some(&mut **vault),
            None => None,
        };
        read_as(text, trust, own, vault, manner)
    };
    // What cannot be read in one go is read once more, to tell all that is wrong with it.
    again(Manner::Straight).or_else(|_| again(Manner::Careful))
}

/// How the resources are read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Manner {
    /// Each as it comes: a syntax error in one ends it all.
    Straight,
    /// Each delimited first, so that one which cannot be read does not hide what follows it.
    Careful,
}

fn read_as<'r>(
    text: &str,
    trust: Trust,
    own: &'r Own,
    vault: Vault<'r>,
    manner: Manner,
) -> Result<Parts, Vec<Fault>> {
    let mut reader = Reader {
        text,
        manner,
        trust,
        own,
        vault,
        faults: Faults::default(),
        whole: Whole::of(text.len()),
        spare: Spare::default(),
        parts: Parts::default(),
        seen: [false; FIELDS.len()],
        version: false,
        count: 0,
        reading: None,
    };
    let mut source = serde_json::Deserializer::from_str(text);
    match source.deserialize_map(&mut reader).and_then(|()| source.end()) {
        Ok(()) => reader.finish(),
        Err(error) => {
            let place = reader.reading.map_or_else(String::new, |position| place(position, None));
            let wrong = syntax(&error, (error.line(), error.column()));
            reader.faults.push(Faults::DOCUMENT, Fault { place, wrong, ..Fault::default() });
            Err(reader.faults.into_list())
        }
    }
}

/// The text, if it can be an object at all.
fn document(text: &[u8]) -> Result<&str, Fault> {
    let fault =
        |wrong: String, mend: &str| Err(Fault { wrong, mend: mend.to_owned(), ..Fault::default() });
    if text.len() > MAX_BYTES {
        let wrong = format!("is {} bytes long, more than {MAX_BYTES}", text.len());
        return fault(wrong, "fetch large files by source instead of carrying their contents");
    }
    let text = match std::str::from_utf8(text) {
        Ok(text) => text,
        Err(error) => {
            let wrong = format!("is not UTF-8: wrong at byte {}", error.valid_up_to());
            return fault(wrong, "save it as UTF-8, and bytes that are no text as content_base64");
        }
    };
    match text.bytes().find(|byte| !matches!(byte, b' ' | b'\t' | b'\r' | b'\n')) {
        Some(b'{') => Ok(text),
        None => fault("is empty".into(), "to declare nothing, write an empty list of resources"),
        Some(b'[' | b'"') => {
            fault("is not an object".into(), "write {\"version\":1,\"resources\":[…]}")
        }
        Some(0xef) if text.starts_with('\u{feff}') => {
            fault("begins with a byte order mark".into(), "save it as UTF-8 without one")
        }
        Some(_) => fault("is not JSON".into(), "write {\"version\":1,\"resources\":[…]}"),
    }
}

/// A syntax error as `line 3 column 7: what is wrong`.
fn syntax(error: &serde_json::Error, (line, column): (usize, usize)) -> String {
    let said = error.to_string();
    let what = said.rfind(" at line ").map_or(&*said, |cut| &said[..cut]);
    format!("line {line} column {column}: {what}")
}

struct Reader<'a, 'r> {
    text: &'a str,
    manner: Manner,
    trust: Trust,
    own: &'r Own,
    vault: Vault<'r>,
    faults: Faults,
    whole: Whole<'a>,
    spare: Spare<'a>,
    parts: Parts,
    /// Which of [`FIELDS`] have been seen.
    seen: [bool; FIELDS.len()],
    /// The version is one that this host reads.
    version: bool,
    /// How many resources have been seen.
    count: u32,
    /// The resource being read.
    reading: Option<u32>,
}

impl<'de> Visitor<'de> for &mut Reader<'de, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut source: A) -> Result<(), A::Error> {
        while let Some(key) = source.next_key_seed(json::Text)? {
            let Some(at) = FIELDS.iter().position(|name| *name == key) else {
                source.next_value::<&RawValue>()?;
                let mend = did_you_mean(&key, FIELDS.into_iter());
                self.wrong(&quoted(&key), "is not a field of a declaration".into(), mend);
                continue;
            };
            if std::mem::replace(&mut self.seen[at], true) {
                source.next_value::<&RawValue>()?;
                self.wrong(FIELDS[at], "stands here twice".into(), "keep one of the two".into());
            } else if FIELDS[at] == "resources" {
                source.next_value_seed(Resources(self))?;
                self.reading = None;
            } else {
                let raw = source.next_value::<&RawValue>()?;
                self.value(FIELDS[at], raw.get());
            }
        }
        Ok(())
    }
}

impl<'de> Reader<'de, '_> {
    /// Notes a fault of the document.
    fn wrong(&mut self, field: &str, wrong: String, mend: String) {
        let fault = Fault { place: String::new(), field: field.to_owned(), wrong, mend };
        self.faults.push(Faults::DOCUMENT, fault);
    }

    /// Reads a value of the document that is not its resources.
    fn value(&mut self, name: &str, raw: &'de str) {
        let json = match Json::parse(raw, Vec::new()) {
            Ok(json) => json,
            Err(error) => return self.unread(name, raw, &error),
        };
        match (name, json) {
            ("version", json) => self.read_version(raw, &json),
            ("node", Json::Text(node)) if node.len() <= NODE.max && (NODE.holds)(&node) => {
                self.parts.node = Some(node.into());
            }
            ("node", Json::Text(node)) => {
                let wrong = format!("{} is not {}", quoted(&node), NODE.what);
                self.wrong(name, wrong, NODE.mend.into());
            }
            ("node", json) => {
                self.wrong(name, format!("is {}, not text", json.sort()), String::new());
            }
            (_, Json::Unsigned(serial)) => self.parts.serial = Some(serial),
            (_, json) => {
                let wrong = match json {
                    Json::Negative(_) => "is negative".to_owned(),
                    json => format!("is {}, not an integer of 64 bits", json.sort()),
                };
                self.wrong(name, wrong, "count from 0 upwards".into());
            }
        }
    }

    fn read_version(&mut self, raw: &str, json: &Json<'_>) {
        let found = match json {
            Json::Unsigned(VERSION) => {
                self.version = true;
                return;
            }
            Json::Unsigned(_) | Json::Negative(_) | Json::Float(_) => {
                raw.chars().take(20).collect()
            }
            json => json.sort().to_owned(),
        };
        let mend = format!("this host reads version {VERSION}");
        self.wrong("version", format!("is {found}, which is unknown"), mend);
    }

    /// Reads the next resource, which stands in `raw`.
    fn resource(&mut self, raw: &'de str) {
        let spare = std::mem::take(&mut self.spare.entries);
        match Json::parse(raw, spare) {
            Ok(json) => self.judge(json),
            Err(error) => {
                self.whole.enter(self.count, None, None);
                self.count += 1;
                self.unread("", raw, &error);
            }
        }
    }

    /// Judges the next resource.
    fn judge(&mut self, json: Json<'de>) {
        let position = self.count;
        self.count += 1;
        let place = || place(position, None);
        match json {
            Json::Object(entries) => {
                let judging = Judging {
                    position,
                    trust: self.trust,
                    own: self.own,
                    vault: match &mut self.vault {
                        Some(vault) => Some(&mut **vault),
                        None => None,
                    },
                    faults: &mut self.faults,
                    whole: &mut self.whole,
                    spare: &mut self.spare,
                };
                self.parts.resources.extend(judging.judge(entries));
            }
            json => {
                self.whole.enter(position, None, None);
                let wrong = format!("is {}, not an object", json.sort());
                let fault = Fault { place: place(), wrong, ..Fault::default() };
                self.faults.push(position + 1, fault);
            }
        }
    }

    /// Notes that a value could be delimited and not be read.
    fn unread(&mut self, field: &str, raw: &str, error: &serde_json::Error) {
        let before = &self.text.as_bytes()[..self.start(raw)];
        let lines = before.iter().filter(|byte| **byte == b'\n').count();
        let on_line = before.iter().rev().take_while(|byte| **byte != b'\n').count();
        let column = error.column() + if error.line() == 1 { on_line } else { 0 };
        let wrong = syntax(error, (lines + error.line(), column));
        let (order, place) = match self.reading {
            Some(position) => (position + 1, place(position, None)),
            None => (Faults::DOCUMENT, String::new()),
        };
        let fault = Fault { place, field: field.to_owned(), wrong, mend: String::new() };
        self.faults.push(order, fault);
    }

    /// Where in the text `raw`, which is a part of it, begins.
    fn start(&self, raw: &str) -> usize {
        raw.as_ptr() as usize - self.text.as_ptr() as usize
    }

    fn finish(mut self) -> Result<Parts, Vec<Fault>> {
        let missing =
            [(0, "begin with \"version\":1"), (3, "to declare nothing, write \"resources\":[]")];
        for (at, mend) in missing {
            if !self.seen[at] {
                self.wrong(FIELDS[at], "is missing".into(), mend.into());
            }
        }
        if self.seen[0] && !self.version {
            // Another version has other rules: what these find wrong is no help.
            self.faults.keep_document();
            return Err(self.faults.into_list());
        }
        let resources = &self.parts.resources;
        let text = |at| match resources.get(at as usize)?.resource.question() {
            Question::Path { holds: Some(Holds::Bytes(bytes)), .. } => Some(bytes),
            _ => None,
        };
        self.whole.finish(self.own, &text, &mut self.faults);
        match self.faults.count() {
            0 => Ok(self.parts),
            _ => Err(self.faults.into_list()),
        }
    }
}

/// Reads the value of `resources`.
struct Resources<'s, 'de, 'r>(&'s mut Reader<'de, 'r>);

impl<'de> DeserializeSeed<'de> for Resources<'_, 'de, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, source: D) -> Result<(), D::Error> {
        source.deserialize_any(self)
    }
}

impl Resources<'_, '_, '_> {
    fn no_list<E>(self, sort: &str) -> Result<(), E> {
        self.0.wrong("resources", format!("is {sort}, not a list"), "put it in [ ]".into());
        Ok(())
    }
}

impl<'de> Visitor<'de> for Resources<'_, 'de, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut source: A) -> Result<(), A::Error> {
        loop {
            self.0.reading = Some(self.0.count);
            if self.0.count == MAX_RESOURCES {
                if source.next_element::<IgnoredAny>()?.is_none() {
                    break;
                }
                let wrong = format!("has more than {MAX_RESOURCES} elements");
                self.0.wrong("resources", wrong, String::new());
                while source.next_element::<IgnoredAny>()?.is_some() {}
                break;
            }
            if self.0.manner == Manner::Careful {
                let Some(raw) = source.next_element::<&RawValue>()? else { break };
                self.0.resource(raw.get());
            } else {
                let spare = std::mem::take(&mut self.0.spare.entries);
                let Some(json) = source.next_element_seed(Tree::within(spare))? else { break };
                self.0.judge(json);
            }
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut source: A) -> Result<(), A::Error> {
        while source.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        self.no_list("an object")
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        self.no_list("null")
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<(), E> {
        self.no_list("a boolean")
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<(), E> {
        self.no_list("an integer")
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<(), E> {
        self.no_list("an integer")
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<(), E> {
        self.no_list("a number")
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<(), E> {
        self.no_list("text")
    }
}
