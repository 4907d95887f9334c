//! Packets from the broker, decoded in place. Pure.

use super::kind::{CONNACK, DISCONNECT, PINGRESP, PUBACK, PUBLISH, SUBACK};
use super::property::TOPIC_ALIAS;
use super::property::{Properties, ASSIGNED_CLIENT_ID, MAXIMUM_PACKET_SIZE, MAXIMUM_QOS};
use super::property::{REASON_STRING, RECEIVE_MAXIMUM, RETAIN_AVAILABLE, SERVER_KEEP_ALIVE};
use super::read::Fields;
use super::Fault;

/// A packet from the broker.
#[derive(Clone, Copy, Debug)]
pub enum Incoming<'p> {
    /// The answer to CONNECT.
    Connack(Connack<'p>),
    /// A message.
    Publish(Publish<'p>),
    /// The answer to a publication at QoS 1.
    Puback(Acked<'p>),
    /// The answer to a subscription.
    Suback(Subscribed<'p>),
    /// The answer to PINGREQ.
    Pingresp,
    /// The broker ends the connection.
    Disconnect(Parted<'p>),
}

/// CONNACK (3.2).
#[derive(Clone, Copy, Debug)]
pub struct Connack<'p> {
    /// The broker goes on with a session from before.
    pub session_present: bool,
    /// 0 where the connection is accepted.
    pub reason: u8,
    properties: Properties<'p>,
}

/// PUBLISH (3.3), at QoS 0 or 1.
#[derive(Clone, Copy, Debug)]
pub struct Publish<'p> {
    /// May have been sent before.
    pub dup: bool,
    /// It was kept for whoever subscribes.
    pub retain: bool,
    /// Where it was published.
    pub topic: &'p str,
    /// What it is acknowledged by; `None` at QoS 0.
    pub id: Option<u16>,
    /// What was published.
    pub payload: &'p [u8],
    properties: Properties<'p>,
}

/// PUBACK (3.4).
#[derive(Clone, Copy, Debug)]
pub struct Acked<'p> {
    /// Of the publication.
    pub id: u16,
    /// From 0x80 on it was refused.
    pub reason: u8,
    properties: Properties<'p>,
}

/// SUBACK (3.9).
#[derive(Clone, Copy, Debug)]
pub struct Subscribed<'p> {
    /// Of the subscription.
    pub id: u16,
    /// One for each filter asked for; from 0x80 on it was refused.
    pub reasons: &'p [u8],
    properties: Properties<'p>,
}

/// DISCONNECT (3.14).
#[derive(Clone, Copy, Debug)]
pub struct Parted<'p> {
    /// Why.
    pub reason: u8,
    properties: Properties<'p>,
}

impl<'p> Connack<'p> {
    /// The broker's own words on its reason.
    pub fn why(&self) -> Option<&'p str> {
        self.properties.text(REASON_STRING)
    }

    /// The client identifier that the broker chose.
    pub fn assigned_client_id(&self) -> Option<&'p str> {
        self.properties.text(ASSIGNED_CLIENT_ID)
    }

    /// The keepalive that replaces ours, in seconds; 0 turns it off.
    pub fn keep_alive_s(&self) -> Option<u16> {
        self.properties.number(SERVER_KEEP_ALIVE).and_then(|value| value.try_into().ok())
    }

    /// Publications at QoS 1 that the broker takes before it has acknowledged one.
    pub fn receive_maximum(&self) -> u16 {
        let said = self.properties.number(RECEIVE_MAXIMUM);
        said.and_then(|value| value.try_into().ok()).unwrap_or(u16::MAX)
    }

    /// The largest packet that the broker takes, in bytes.
    pub fn maximum_packet_size(&self) -> Option<u32> {
        self.properties.number(MAXIMUM_PACKET_SIZE)
    }

    /// It takes QoS 1.
    pub fn takes_qos_1(&self) -> bool {
        self.properties.number(MAXIMUM_QOS) != Some(0)
    }

    /// It keeps messages for whoever subscribes.
    pub fn retains(&self) -> bool {
        self.properties.number(RETAIN_AVAILABLE) != Some(0)
    }
}

impl<'p> Publish<'p> {
    /// The values of the user properties of this name.
    pub fn user(&self, name: &'p str) -> impl Iterator<Item = &'p str> {
        self.properties.user(name)
    }
}

impl<'p> Acked<'p> {
    /// The broker's own words on its reason.
    pub fn why(&self) -> Option<&'p str> {
        self.properties.text(REASON_STRING)
    }
}

impl<'p> Subscribed<'p> {
    /// The broker's own words on its reason.
    pub fn why(&self) -> Option<&'p str> {
        self.properties.text(REASON_STRING)
    }
}

impl<'p> Parted<'p> {
    /// The broker's own words on its reason.
    pub fn why(&self) -> Option<&'p str> {
        self.properties.text(REASON_STRING)
    }
}

/// Decodes one whole packet.
///
/// # Errors
/// It is none that a broker may send to this client.
pub fn decode(packet: &[u8]) -> Result<Incoming<'_>, Fault> {
    let mut fields = Fields(packet);
    let first = fields.one()?;
    let length = fields.variable()?;
    let mut body = Fields(fields.bytes(length as usize)?);
    if !fields.is_empty() {
        return Err(Fault::Surplus);
    }
    let kind = first >> 4;
    if kind != PUBLISH && first & 0xf != 0 {
        return Err(Fault::Flags(first));
    }
    let incoming = match kind {
        CONNACK => connack(&mut body).map(Incoming::Connack),
        PUBLISH => publish(&mut body, first).map(Incoming::Publish),
        PUBACK => acked(&mut body).map(Incoming::Puback),
        SUBACK => subscribed(&mut body).map(Incoming::Suback),
        PINGRESP => Ok(Incoming::Pingresp),
        DISCONNECT => parted(&mut body).map(Incoming::Disconnect),
        kind => Err(Fault::Kind(kind)),
    }?;
    if body.is_empty() {
        Ok(incoming)
    } else {
        Err(Fault::Surplus)
    }
}

fn connack<'p>(body: &mut Fields<'p>) -> Result<Connack<'p>, Fault> {
    let session_present = match body.one()? {
        flag @ 0..=1 => flag == 1,
        _ => return Err(Fault::Value("connect acknowledge flags")),
    };
    let reason = body.one()?;
    if session_present && reason != 0 {
        return Err(Fault::Value("connect acknowledge flags"));
    }
    Ok(Connack { session_present, reason, properties: Properties::read(body, CONNACK)? })
}

fn publish<'p>(body: &mut Fields<'p>, first: u8) -> Result<Publish<'p>, Fault> {
    let (dup, qos, retain) = (first & 8 != 0, first >> 1 & 3, first & 1 != 0);
    if qos > 1 || dup && qos == 0 {
        return Err(Fault::Flags(first));
    }
    let topic = body.text()?;
    let id = if qos == 1 { Some(body.id()?) } else { None };
    let properties = Properties::read(body, PUBLISH)?;
    // None was offered, so that a topic is always written out (3.3.2.3.4).
    if properties.number(TOPIC_ALIAS).is_some() {
        return Err(Fault::Property(TOPIC_ALIAS));
    }
    if topic.is_empty() || topic.contains(['#', '+']) {
        return Err(Fault::Value("topic"));
    }
    let payload = body.bytes(body.0.len())?;
    Ok(Publish { dup, retain, topic, id, payload, properties })
}

/// What may be left out at the end of a short packet: a reason that is success, and properties.
fn ending<'p>(body: &mut Fields<'p>, kind: u8) -> Result<(u8, Properties<'p>), Fault> {
    let reason = if body.is_empty() { 0 } else { body.one()? };
    let none = body.is_empty();
    Ok((reason, if none { Properties::NONE } else { Properties::read(body, kind)? }))
}

fn acked<'p>(body: &mut Fields<'p>) -> Result<Acked<'p>, Fault> {
    let id = body.id()?;
    let (reason, properties) = ending(body, PUBACK)?;
    Ok(Acked { id, reason, properties })
}

fn subscribed<'p>(body: &mut Fields<'p>) -> Result<Subscribed<'p>, Fault> {
    let id = body.id()?;
    let properties = Properties::read(body, SUBACK)?;
    let reasons = body.bytes(body.0.len())?;
    if reasons.is_empty() {
        return Err(Fault::Short);
    }
    Ok(Subscribed { id, reasons, properties })
}

fn parted<'p>(body: &mut Fields<'p>) -> Result<Parted<'p>, Fault> {
    let (reason, properties) = ending(body, DISCONNECT)?;
    Ok(Parted { reason, properties })
}
