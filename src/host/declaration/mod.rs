//! Reading a declaration: from bytes to resources that cannot be wrong. Pure.
//!
//! [`parse`] is all that an untrusted source can reach. [`parse_trusted`] takes a [`Bundle`], which
//! only opening a file that root owns (or the store's record of such a bundle) can make.

pub mod fault;
pub mod own;

pub use fault::Fault;
pub use own::Own;

use std::ops::Range;
use std::time::Duration;

use crate::digest::Sha256;
use crate::resource::Resource;

/// The largest declaration, in bytes.
pub const MAX_BYTES: usize = 64 << 20;

/// A declaration every rule of which has been checked.
#[derive(Debug)]
pub struct Declaration {
    /// The node it is addressed to.
    pub node: Option<Box<str>>,
    /// Its serial.
    pub serial: Option<u64>,
    /// SHA-256 of the bytes it was read from.
    pub sha256: Sha256,
    /// The resources, in their order.
    pub resources: Vec<Declared>,
    /// The bytes it was read from.
    text: Vec<u8>,
}

/// One resource of a declaration.
#[derive(Debug)]
pub struct Declared {
    /// Its id, unique in the declaration.
    pub id: Box<str>,
    /// How long one of its steps may take.
    pub timeout: Duration,
    /// Positions, in the declaration, of the resources that this one refers to; all are earlier.
    pub refers: Box<[u32]>,
    /// The thing itself.
    pub resource: Box<dyn Resource>,
    /// Where in the text it stands.
    span: Range<u32>,
}

/// The bytes of a trusted declaration. Only two callers may vouch for one: the opener of bundle
/// files, after it has seen who owns the file, and the store, for a declaration that it accepted
/// from such a file (`tests/tidy.rs` holds that list).
#[derive(Debug)]
pub struct Bundle(Vec<u8>);

impl Bundle {
    /// Vouches that `bytes` come from a file that only root can write.
    pub(crate) fn vouched(bytes: Vec<u8>) -> Bundle {
        Bundle(bytes)
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}
