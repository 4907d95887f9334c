//! Packets to the broker. Pure.

use super::kind::{CONNECT, DISCONNECT, PINGREQ as PING, PUBACK, PUBLISH, SUBSCRIBE};
use super::property::{MAXIMUM_PACKET_SIZE, RECEIVE_MAXIMUM, USER};

/// PINGREQ (3.12).
pub const PINGREQ: [u8; 2] = [PING << 4, 0];

/// This client leaves, and its will is not to be published.
pub const NORMAL: u8 = 0x00;
/// This client leaves, and its will is to be published.
pub const WITH_WILL: u8 = 0x04;
/// The broker sent what it may not.
pub const PROTOCOL_ERROR: u8 = 0x82;

/// The largest remaining length (1.5.5).
const LARGEST: usize = 268_435_455;

/// CONNECT (3.1), for a session that ends with the connection.
#[derive(Clone, Copy, Debug)]
pub struct Connect<'a> {
    /// Who connects.
    pub client_id: &'a str,
    /// The longest silence of this client, in seconds.
    pub keep_alive_s: u16,
    /// Publications at QoS 1 that this client takes before it has acknowledged one.
    pub receive_maximum: u16,
    /// The largest packet that this client takes, in bytes.
    pub maximum_packet_size: u32,
    /// What the broker publishes when the connection ends.
    pub will: Option<Will<'a>>,
    /// Name and password.
    pub credentials: Option<(&'a str, &'a str)>,
}

/// A will, at QoS 1 and retained.
#[derive(Clone, Copy, Debug)]
pub struct Will<'a> {
    /// Where it is published.
    pub topic: &'a str,
    /// What is published.
    pub payload: &'a [u8],
}

/// SUBSCRIBE (3.8): each topic at QoS 1, what is retained on it sent at once.
#[derive(Clone, Copy, Debug)]
pub struct Subscribe<'a> {
    /// Not 0, and of no other packet in flight.
    pub id: u16,
    /// At least one, each taken by its very name.
    pub topics: &'a [&'a str],
}

/// PUBLISH (3.3) at QoS 1.
#[derive(Clone, Copy, Debug)]
pub struct Publication<'a> {
    /// Not 0, and of no other packet in flight.
    pub id: u16,
    /// Kept for whoever subscribes.
    pub retain: bool,
    /// Where it is published.
    pub topic: &'a str,
    /// User properties.
    pub user: &'a [(&'a str, &'a str)],
    /// What is published.
    pub payload: &'a [u8],
}

impl Connect<'_> {
    /// The packet.
    pub fn encode(&self) -> Vec<u8> {
        let mut body = Vec::new();
        text(&mut body, "MQTT");
        let will = self.will.map_or(0, |_| 0x04 | 0x08 | 0x20);
        let credentials = self.credentials.map_or(0, |_| 0x80 | 0x40);
        // Bit 1: a clean start. What is retained and what waits in the store make a session of the
        // broker's superfluous, and one that it lost cannot be missed.
        body.extend([5, 0x02 | will | credentials]);
        body.extend(self.keep_alive_s.to_be_bytes());
        let mut properties = vec![RECEIVE_MAXIMUM];
        properties.extend(self.receive_maximum.to_be_bytes());
        properties.push(MAXIMUM_PACKET_SIZE);
        properties.extend(self.maximum_packet_size.to_be_bytes());
        variable(&mut body, properties.len());
        body.extend(properties);
        text(&mut body, self.client_id);
        if let Some(Will { topic, payload }) = self.will {
            body.push(0);
            text(&mut body, topic);
            binary(&mut body, payload);
        }
        if let Some((name, password)) = self.credentials {
            text(&mut body, name);
            text(&mut body, password);
        }
        packet(CONNECT << 4, body)
    }
}

impl Subscribe<'_> {
    /// The packet.
    pub fn encode(&self) -> Vec<u8> {
        let mut body = self.id.to_be_bytes().to_vec();
        body.push(0);
        for topic in self.topics {
            text(&mut body, topic);
            body.push(1);
        }
        packet(SUBSCRIBE << 4 | 2, body)
    }
}

impl Publication<'_> {
    /// The packet.
    pub fn encode(&self) -> Vec<u8> {
        let mut body = Vec::with_capacity(self.topic.len() + self.payload.len() + 16);
        text(&mut body, self.topic);
        body.extend(self.id.to_be_bytes());
        let mut properties = Vec::new();
        for (name, value) in self.user {
            properties.push(USER);
            text(&mut properties, name);
            text(&mut properties, value);
        }
        variable(&mut body, properties.len());
        body.extend(properties);
        body.extend(self.payload);
        packet(PUBLISH << 4 | 2 | u8::from(self.retain), body)
    }

    /// Bytes of the packet, without making it.
    pub fn size(&self) -> usize {
        let user = self.user.iter().map(|(name, value)| 5 + name.len() + value.len());
        let properties: usize = user.sum();
        let body = 4 + self.topic.len() + width(properties) + properties + self.payload.len();
        1 + width(body) + body
    }
}

/// PUBACK (3.4) of a publication that was taken.
pub fn puback(id: u16) -> [u8; 4] {
    let [high, low] = id.to_be_bytes();
    [PUBACK << 4, 2, high, low]
}

/// DISCONNECT (3.14).
pub fn disconnect(reason: u8) -> [u8; 3] {
    [DISCONNECT << 4, 1, reason]
}

fn packet(first: u8, body: Vec<u8>) -> Vec<u8> {
    assert!(body.len() <= LARGEST, "what is sent was bounded long before");
    let mut packet = Vec::with_capacity(body.len() + 5);
    packet.push(first);
    variable(&mut packet, body.len());
    packet.extend(body);
    packet
}

fn text(into: &mut Vec<u8>, text: &str) {
    binary(into, text.as_bytes());
}

fn binary(into: &mut Vec<u8>, bytes: &[u8]) {
    let length = u16::try_from(bytes.len()).expect("names and wills are short");
    into.extend(length.to_be_bytes());
    into.extend(bytes);
}

fn variable(into: &mut Vec<u8>, mut value: usize) {
    loop {
        let (low, rest) = ((value & 0x7f) as u8, value >> 7);
        into.push(if rest > 0 { low | 0x80 } else { low });
        if rest == 0 {
            return;
        }
        value = rest;
    }
}

/// How many bytes a variable byte integer takes.
fn width(value: usize) -> usize {
    match value {
        0..=0x7f => 1,
        0x80..=0x3fff => 2,
        0x4000..=0x1f_ffff => 3,
        _ => 4,
    }
}
