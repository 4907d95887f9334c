//! Reason codes in words (2.4). Pure.

/// A publication was taken, and nobody listens to its topic.
pub const NO_SUBSCRIBERS: u8 = 0x10;
/// What was asked for is not allowed to this client.
pub const NOT_AUTHORIZED: u8 = 0x87;
/// The broker stops.
pub const SERVER_SHUTTING_DOWN: u8 = 0x8b;
/// Another connection has taken this client's identifier.
pub const TAKEN_OVER: u8 = 0x8e;

/// What the code says, in the standard's words.
pub fn meaning(code: u8) -> &'static str {
    match code {
        0x00 => "success",
        0x04 => "disconnect with will message",
        0x10 => "no matching subscribers",
        0x80 => "unspecified error",
        0x81 => "malformed packet",
        0x82 => "protocol error",
        0x83 => "implementation specific error",
        0x84 => "unsupported protocol version",
        0x85 => "client identifier not valid",
        0x86 => "bad user name or password",
        0x87 => "not authorized",
        0x88 => "server unavailable",
        0x89 => "server busy",
        0x8a => "banned",
        0x8b => "server shutting down",
        0x8c => "bad authentication method",
        0x8d => "keep alive timeout",
        0x8e => "session taken over",
        0x8f => "topic filter invalid",
        0x90 => "topic name invalid",
        0x91 => "packet identifier in use",
        0x93 => "receive maximum exceeded",
        0x94 => "topic alias invalid",
        0x95 => "packet too large",
        0x96 => "message rate too high",
        0x97 => "quota exceeded",
        0x98 => "administrative action",
        0x99 => "payload format invalid",
        0x9a => "retain not supported",
        0x9b => "QoS not supported",
        0x9c => "use another server",
        0x9d => "server moved",
        0x9e => "shared subscriptions not supported",
        0x9f => "connection rate exceeded",
        0xa0 => "maximum connect time",
        0xa1 => "subscription identifiers not supported",
        0xa2 => "wildcard subscriptions not supported",
        _ => "a code that the standard does not have",
    }
}
