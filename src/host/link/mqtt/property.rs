//! The properties that a broker's packets carry (2.2.2). Pure.

use super::kind::{CONNACK, DISCONNECT, PUBACK, PUBLISH, SUBACK};
use super::read::Fields;
use super::Fault;

pub(super) const ASSIGNED_CLIENT_ID: u8 = 0x12;
pub(super) const SERVER_KEEP_ALIVE: u8 = 0x13;
pub(super) const REASON_STRING: u8 = 0x1f;
pub(super) const RECEIVE_MAXIMUM: u8 = 0x21;
pub(super) const TOPIC_ALIAS: u8 = 0x23;
pub(super) const MAXIMUM_QOS: u8 = 0x24;
pub(super) const RETAIN_AVAILABLE: u8 = 0x25;
pub(super) const USER: u8 = 0x26;
pub(super) const MAXIMUM_PACKET_SIZE: u8 = 0x27;
const SUBSCRIPTION_ID: u8 = 0x0b;

/// How a value is written.
#[derive(Clone, Copy)]
enum Shape {
    /// One byte that is 0 or 1.
    Flag,
    Two,
    /// Two bytes that are not 0.
    Some,
    Four,
    /// Four bytes that are not 0.
    Much,
    Variable,
    Text,
    Binary,
    Pair,
}

/// A value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value<'p> {
    Number(u32),
    Text(&'p str),
    Binary,
    Pair(&'p str, &'p str),
}

/// Every property of a packet that a broker sends: its identifier, how it is written, and where it
/// may stand.
const TABLE: [(u8, Shape, &[u8]); 24] = [
    (0x01, Shape::Flag, &[PUBLISH]),
    (0x02, Shape::Four, &[PUBLISH]),
    (0x03, Shape::Text, &[PUBLISH]),
    (0x08, Shape::Text, &[PUBLISH]),
    (0x09, Shape::Binary, &[PUBLISH]),
    (SUBSCRIPTION_ID, Shape::Variable, &[PUBLISH]),
    (0x11, Shape::Four, &[CONNACK]),
    (ASSIGNED_CLIENT_ID, Shape::Text, &[CONNACK]),
    (SERVER_KEEP_ALIVE, Shape::Two, &[CONNACK]),
    (0x15, Shape::Text, &[CONNACK]),
    (0x16, Shape::Binary, &[CONNACK]),
    (0x1a, Shape::Text, &[CONNACK]),
    (0x1c, Shape::Text, &[CONNACK, DISCONNECT]),
    (REASON_STRING, Shape::Text, &[CONNACK, PUBACK, SUBACK, DISCONNECT]),
    (RECEIVE_MAXIMUM, Shape::Some, &[CONNACK]),
    (0x22, Shape::Two, &[CONNACK]),
    (TOPIC_ALIAS, Shape::Some, &[PUBLISH]),
    (MAXIMUM_QOS, Shape::Flag, &[CONNACK]),
    (RETAIN_AVAILABLE, Shape::Flag, &[CONNACK]),
    (USER, Shape::Pair, &[CONNACK, PUBLISH, PUBACK, SUBACK, DISCONNECT]),
    (MAXIMUM_PACKET_SIZE, Shape::Much, &[CONNACK]),
    (0x28, Shape::Flag, &[CONNACK]),
    (0x29, Shape::Flag, &[CONNACK]),
    (0x2a, Shape::Flag, &[CONNACK]),
];

/// The properties of one packet, every one of which has been read before.
#[derive(Clone, Copy, Debug)]
pub(super) struct Properties<'p> {
    all: Fields<'p>,
    kind: u8,
}

impl<'p> Properties<'p> {
    /// None.
    pub const NONE: Properties<'static> = Properties { all: Fields(&[]), kind: 0 };

    /// Reads and checks those of a packet of this kind.
    pub fn read(fields: &mut Fields<'p>, kind: u8) -> Result<Properties<'p>, Fault> {
        let length = fields.variable()?;
        let all = Fields(fields.bytes(length as usize)?);
        let (mut rest, mut seen) = (all, 0u64);
        while !rest.is_empty() {
            let (id, _) = one(&mut rest, kind)?;
            let may_repeat = matches!(id, USER | SUBSCRIPTION_ID);
            if seen & 1 << id != 0 && !may_repeat {
                return Err(Fault::Twice(id));
            }
            seen |= 1 << id;
        }
        Ok(Properties { all, kind })
    }

    pub fn number(self, id: u8) -> Option<u32> {
        self.values(id).find_map(|value| match value {
            Value::Number(number) => Some(number),
            _ => None,
        })
    }

    pub fn text(self, id: u8) -> Option<&'p str> {
        self.values(id).find_map(|value| match value {
            Value::Text(text) => Some(text),
            _ => None,
        })
    }

    /// The values of the user properties of this name.
    pub fn user(self, name: &str) -> impl Iterator<Item = &'p str> + use<'p, '_> {
        self.values(USER).filter_map(move |value| match value {
            Value::Pair(found, value) if found == name => Some(value),
            _ => None,
        })
    }

    fn values(self, wanted: u8) -> impl Iterator<Item = Value<'p>> {
        let mut rest = self.all;
        std::iter::from_fn(move || {
            let more = !rest.is_empty();
            more.then(|| one(&mut rest, self.kind).expect("they were all read before"))
        })
        .filter_map(move |(id, value)| (id == wanted).then_some(value))
    }
}

/// Reads one property of a packet of this kind.
fn one<'p>(fields: &mut Fields<'p>, kind: u8) -> Result<(u8, Value<'p>), Fault> {
    let id = fields.one()?;
    let known = TABLE.iter().find(|(known, _, kinds)| *known == id && kinds.contains(&kind));
    let Some((_, shape, _)) = known else { return Err(Fault::Property(id)) };
    let value = match shape {
        Shape::Flag => match fields.one()? {
            flag @ 0..=1 => Value::Number(flag.into()),
            _ => return Err(Fault::Value("a property")),
        },
        Shape::Two => Value::Number(fields.two()?.into()),
        Shape::Some => match fields.two()? {
            0 => return Err(Fault::Value("a property")),
            number => Value::Number(number.into()),
        },
        Shape::Four => Value::Number(fields.four()?),
        Shape::Much => match fields.four()? {
            0 => return Err(Fault::Value("a property")),
            number => Value::Number(number),
        },
        Shape::Variable => match fields.variable()? {
            0 => return Err(Fault::Value("a property")),
            number => Value::Number(number),
        },
        Shape::Text => Value::Text(fields.text()?),
        Shape::Binary => fields.binary().map(|_| Value::Binary)?,
        Shape::Pair => Value::Pair(fields.text()?, fields.text()?),
    };
    Ok((id, value))
}
