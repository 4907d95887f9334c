//! `file`: a regular file with declared contents.

use super::{Access, RootPath};
use crate::digest::Sha256;

/// A declared file.
#[derive(Debug)]
pub struct File {
    /// Where.
    pub path: RootPath,
    /// What it holds.
    pub body: Body,
    /// Permissions and ownership.
    pub access: Access,
    /// Its contents are shown nowhere.
    pub secret: bool,
}

/// What a file holds.
#[derive(Debug)]
pub enum Body {
    /// These bytes.
    Bytes(Box<[u8]>),
    /// What this address serves.
    Source {
        /// `http` or `https`.
        url: Box<str>,
        /// What it must hash to.
        sha256: Box<Sha256>,
    },
}
