//! `directory`: a directory, with its missing parents.

use super::{Access, RootPath};

/// A declared directory.
#[derive(Debug)]
pub struct Directory {
    /// Where.
    pub path: RootPath,
    /// Permissions and ownership.
    pub access: Access,
}
