//! The values of a resource's fields, each of the shape that its table asks for. Pure.
//!
//! There is no `Debug`: a value may be a secret.

use std::borrow::Cow;

use super::kind::Field;
use super::{Principal, RootPath};

/// A value of a known shape.
pub enum Value<'a> {
    /// Of `Shape::Bool`.
    Bool(bool),
    /// Of `Shape::Integer`.
    Integer(i64),
    /// Of `Shape::Number`.
    Number(f64),
    /// Of the shapes that are text.
    Text(Cow<'a, str>),
    /// Of `Shape::Path`, with the text it was read from.
    Path(RootPath, Cow<'a, str>),
    /// Of `Shape::Mode`.
    Mode(u16),
    /// Of `Shape::Principal`.
    Principal(Principal),
    /// Of `Shape::Base64`.
    Bytes(Vec<u8>),
    /// Of `Shape::List`; elements in which a fault was found are left out.
    List(Vec<Value<'a>>),
    /// Of `Shape::Map`; entries in which a fault was found are left out.
    Map(Vec<(Cow<'a, str>, Value<'a>)>),
    /// Of `Shape::Object`.
    Object(Fields<'a>),
}

impl<'a> Value<'a> {
    /// The text of a value whose shape is text.
    pub fn as_text(&self) -> &str {
        match self {
            Value::Text(text) => text,
            _ => unreachable!("the type's table says that this is text"),
        }
    }

    /// The fields of a value whose shape is an object.
    pub fn as_fields(&self) -> &Fields<'a> {
        match self {
            Value::Object(fields) => fields,
            _ => unreachable!("the type's table says that this is an object"),
        }
    }
}

/// What stands in a field.
pub enum Slot<'a> {
    /// Nothing: the field is absent.
    Absent,
    /// Something, and a fault was found in it.
    Wrong,
    /// A value.
    Good(Value<'a>),
}

/// The fields of a resource or of an object within it. Asking for a field that the table does not
/// have, or for another shape than the table's, is a mistake in the type's own code and panics.
pub struct Fields<'a> {
    table: &'static [Field],
    slots: Vec<Slot<'a>>,
}

impl<'a> Fields<'a> {
    /// Fields of this table, all absent. `spare` becomes their storage.
    pub fn new(table: &'static [Field], mut spare: Vec<Slot<'a>>) -> Fields<'a> {
        spare.clear();
        spare.resize_with(table.len(), || Slot::Absent);
        Fields { table, slots: spare }
    }

    /// The table.
    pub fn table(&self) -> &'static [Field] {
        self.table
    }

    /// The storage, to be used again.
    pub fn into_spare(self) -> Vec<Slot<'a>> {
        self.slots
    }

    /// Puts `value` in the field at this position of the table.
    pub fn put(&mut self, at: usize, value: Option<Value<'a>>) {
        self.slots[at] = value.map_or(Slot::Wrong, Slot::Good);
    }

    /// The field at this position is there, whether a fault was found in it or not.
    pub fn is_put(&self, at: usize) -> bool {
        !matches!(self.slots[at], Slot::Absent)
    }

    /// The field is there, whether a fault was found in it or not.
    pub fn has(&self, name: &str) -> bool {
        self.is_put(self.at(name))
    }

    /// The field's value, where it is there and good.
    pub fn get(&self, name: &str) -> Option<&Value<'a>> {
        match &self.slots[self.at(name)] {
            Slot::Good(value) => Some(value),
            _ => None,
        }
    }

    /// The text of a field.
    pub fn text(&self, name: &str) -> Option<&Cow<'a, str>> {
        match self.get(name)? {
            Value::Text(text) => Some(text),
            _ => unreachable!("the type's table says that {name} is text"),
        }
    }

    /// The path in a field.
    pub fn path(&self, name: &str) -> Option<&RootPath> {
        match self.get(name)? {
            Value::Path(path, _) => Some(path),
            _ => unreachable!("the type's table says that {name} is a path"),
        }
    }

    /// The path in a field as text, borrowed where it was written in its normal form.
    pub fn path_text(&self, name: &str) -> Option<Cow<'a, str>> {
        match self.get(name)? {
            Value::Path(path, text) if path.as_str() == text => Some(text.clone()),
            Value::Path(path, _) => Some(Cow::Owned(path.as_str().to_owned())),
            _ => unreachable!("the type's table says that {name} is a path"),
        }
    }

    /// A field is there and true.
    pub fn is_true(&self, name: &str) -> bool {
        matches!(self.get(name), Some(Value::Bool(true)))
    }

    /// The integer in a field.
    pub fn integer(&self, name: &str) -> Option<i64> {
        match self.get(name)? {
            Value::Integer(value) => Some(*value),
            _ => unreachable!("the type's table says that {name} is an integer"),
        }
    }

    /// The number in a field.
    pub fn number(&self, name: &str) -> Option<f64> {
        match self.get(name)? {
            Value::Number(value) => Some(*value),
            _ => unreachable!("the type's table says that {name} is a number"),
        }
    }

    /// The values of a list; none where it is absent.
    pub fn list(&self, name: &str) -> &[Value<'a>] {
        match self.get(name) {
            None => &[],
            Some(Value::List(values)) => values,
            Some(_) => unreachable!("the type's table says that {name} is a list"),
        }
    }

    /// The entries of a map; none where it is absent.
    pub fn map(&self, name: &str) -> &[(Cow<'a, str>, Value<'a>)] {
        match self.get(name) {
            None => &[],
            Some(Value::Map(entries)) => entries,
            Some(_) => unreachable!("the type's table says that {name} is a map"),
        }
    }

    /// Takes a field's value out.
    pub fn take(&mut self, name: &str) -> Option<Value<'a>> {
        let at = self.at(name);
        match std::mem::replace(&mut self.slots[at], Slot::Absent) {
            Slot::Good(value) => Some(value),
            _ => None,
        }
    }

    /// Takes the text of a field.
    pub fn take_text(&mut self, name: &str) -> Option<Box<str>> {
        match self.take(name)? {
            Value::Text(text) => Some(text.into()),
            _ => unreachable!("the type's table says that {name} is text"),
        }
    }

    /// Takes a path that the table requires.
    pub fn take_path(&mut self, name: &str) -> RootPath {
        match self.take(name) {
            Some(Value::Path(path, _)) => path,
            _ => unreachable!("the type's table says that {name} is a path and required"),
        }
    }

    /// Takes a list of texts; an empty one where it is absent.
    pub fn take_texts(&mut self, name: &str) -> Box<[Box<str>]> {
        let text = |value| match value {
            Value::Text(text) => text.into(),
            _ => unreachable!("the type's table says that {name} is a list of texts"),
        };
        match self.take(name) {
            None => Box::default(),
            Some(Value::List(values)) => values.into_iter().map(text).collect(),
            Some(_) => unreachable!("the type's table says that {name} is a list"),
        }
    }

    /// Takes a map of texts; an empty one where it is absent.
    pub fn take_text_map(&mut self, name: &str) -> Box<[(Box<str>, Box<str>)]> {
        let pair = |(key, value): (Cow<'a, str>, Value<'a>)| match value {
            Value::Text(text) => (key.into(), text.into()),
            _ => unreachable!("the type's table says that {name} is a map of texts"),
        };
        match self.take(name) {
            None => Box::default(),
            Some(Value::Map(entries)) => entries.into_iter().map(pair).collect(),
            Some(_) => unreachable!("the type's table says that {name} is a map"),
        }
    }

    fn at(&self, name: &str) -> usize {
        let at = self.table.iter().position(|field| field.name == name);
        at.unwrap_or_else(|| unreachable!("the type's table has a field {name}"))
    }
}
