//! MQTT 5 as a client speaks it: packets to bytes and bytes to packets. Pure.
//!
//! Owns what OASIS MQTT 5.0 says of one packet, and nothing of their order, which is the session's.
//! What has arrived is decoded in place: everything borrows from the packet, and nothing is taken
//! from the heap. Decision: what this client never asks for (QoS 2, topic aliases, shared
//! subscriptions, AUTH) is a fault when it comes, so that there is no half-kept state of it.

mod fault;
mod frame;
mod incoming;
mod outgoing;
mod property;
mod read;
mod reason;

pub use fault::Fault;
pub use frame::Frame;
pub use incoming::{decode, Acked, Connack, Incoming, Parted, Publish, Subscribed};
pub use outgoing::{disconnect, NORMAL, PROTOCOL_ERROR, WITH_WILL};
pub use outgoing::{puback, Connect, Publication, Subscribe, Will, PINGREQ};
pub use reason::{meaning, NOT_AUTHORIZED, NO_SUBSCRIBERS, SERVER_SHUTTING_DOWN, TAKEN_OVER};

/// Kinds of packet, the upper half of the first byte (2.1.2).
mod kind {
    pub const CONNECT: u8 = 1;
    pub const CONNACK: u8 = 2;
    pub const PUBLISH: u8 = 3;
    pub const PUBACK: u8 = 4;
    pub const SUBSCRIBE: u8 = 8;
    pub const SUBACK: u8 = 9;
    pub const PINGREQ: u8 = 12;
    pub const PINGRESP: u8 = 13;
    pub const DISCONNECT: u8 = 14;
}
