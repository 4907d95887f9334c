//! What is wrong with a packet. Pure.

use std::fmt;

/// Why bytes from the broker are no packet that it may send to this client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The remaining length takes more than four bytes.
    Length,
    /// The packet would be larger than this client said that it takes.
    Large {
        /// Bytes it would have.
        size: usize,
        /// Bytes it may have.
        most: usize,
    },
    /// A kind of packet that no broker sends to this client.
    Kind(u8),
    /// Flags that its kind does not have.
    Flags(u8),
    /// It ends in the middle of a field.
    Short,
    /// Bytes follow its last field.
    Surplus,
    /// Text that is not UTF-8, or holds U+0000.
    Text,
    /// A property that is unknown or has no place in its kind of packet.
    Property(u8),
    /// A property that stands twice.
    Twice(u8),
    /// A property, or a field of this name, has a value that it may not have.
    Value(&'static str),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Length => f.write_str("a length of more than four bytes"),
            Fault::Large { size, most } => {
                write!(f, "a packet of {size} bytes, where at most {most} are taken")
            }
            Fault::Kind(kind) => write!(f, "a packet of kind {kind}, which has no place here"),
            Fault::Flags(first) => write!(f, "a first byte of {first:#04x}, with wrong flags"),
            Fault::Short => f.write_str("a packet that ends in the middle of a field"),
            Fault::Surplus => f.write_str("a packet that goes on after its last field"),
            Fault::Text => f.write_str("text that is no MQTT text"),
            Fault::Property(id) => write!(f, "property {id:#04x}, which has no place there"),
            Fault::Twice(id) => write!(f, "property {id:#04x} twice"),
            Fault::Value(what) => write!(f, "{what} of no possible value"),
        }
    }
}
