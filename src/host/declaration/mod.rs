//! Reading a declaration: from bytes to resources that cannot be wrong. Pure.
//!
//! [`parse`] is all that an untrusted source can reach. [`parse_trusted`] takes a [`Bundle`], which
//! only opening a file that root owns (or the store's record of such a bundle) can make.

mod check;
pub mod fault;
mod json;
pub(crate) mod near;
mod one;
pub mod own;
mod read;
pub mod schema;
pub mod stored;
mod systemd;
mod whole;

#[cfg(test)]
mod tests;

pub use fault::Fault;
pub use own::Own;
pub use schema::schema;
pub use stored::{excerpts, form, journal_form, journal_len, journal_text, parse_stored};
pub use stored::{secret_names, Form, Stored};

use std::cell::OnceCell;
use std::fmt;
use std::ops::Range;
use std::time::Duration;

use crate::digest::{hex, sha256, Sha256};
use crate::resource::Resource;

/// The largest declaration, in bytes.
pub const MAX_BYTES: usize = 64 << 20;

/// The most resources of a declaration.
pub const MAX_RESOURCES: u32 = 1_000_000;

/// The version of a declaration that this host reads.
pub const VERSION: u64 = 1;

/// How far a declaration's source is trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    /// As the link is: no `action`.
    Untrusted,
    /// As a bundle is.
    Bundle,
}

/// A declaration every rule of which has been checked. `Debug` shows none of its text: it may hold
/// secrets.
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
    /// Where in these each resource stands, once somebody asked.
    spans: OnceCell<Vec<Range<usize>>>,
    /// The form of each resource, once all have been written down.
    forms: OnceCell<Vec<Form>>,
}

/// One resource of a declaration.
#[derive(Debug)]
pub struct Declared {
    /// Its id, unique in the declaration.
    pub id: Box<str>,
    /// How long one of its steps may take.
    pub timeout: Duration,
    /// Positions, in the declaration, of the resources that this one refers to, in the order of the
    /// fields that do; all are earlier. `None` where this is an excerpt that has it not.
    pub refers: Box<[Option<u32>]>,
    /// The thing itself.
    pub resource: Box<dyn Resource>,
}

/// The bytes of a trusted declaration. Only two callers may vouch for one: the opener of bundle
/// files, after it has seen who owns the file, and the store, for a declaration that it accepted
/// from such a file (`tests/tidy.rs` holds that list).
#[derive(Clone)]
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

impl fmt::Debug for Bundle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a bundle of {} bytes", self.0.len())
    }
}

impl fmt::Debug for Declaration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Declaration")
            .field("node", &self.node)
            .field("serial", &self.serial)
            .field("sha256", &hex(&self.sha256))
            .field("resources", &self.resources)
            .finish_non_exhaustive()
    }
}

/// Reads a declaration that anyone may have written. `own` is what of the host's own may not be
/// declared.
///
/// # Errors
/// Everything that is wrong with it, in the order of the document; nothing of it may be applied.
pub fn parse(text: Vec<u8>, own: &Own) -> Result<Declaration, Vec<Fault>> {
    declaration(text, Trust::Untrusted, own, None)
}

/// Reads a declaration that only root can have written.
///
/// # Errors
/// As [`parse`].
pub fn parse_trusted(bundle: Bundle, own: &Own) -> Result<Declaration, Vec<Fault>> {
    declaration(bundle.0, Trust::Bundle, own, None)
}

fn declaration<'r>(
    text: Vec<u8>,
    trust: Trust,
    own: &'r Own,
    vault: check::Vault<'r>,
) -> Result<Declaration, Vec<Fault>> {
    let read::Parts { node, serial, resources } = read::read(&text, trust, own, vault)?;
    let (sha256, spans, forms) = (sha256(&text), OnceCell::new(), OnceCell::new());
    Ok(Declaration { node, serial, sha256, resources, text, spans, forms })
}
