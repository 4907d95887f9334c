//! `symlink`: a symbolic link.

use super::RootPath;

/// A declared symbolic link.
#[derive(Debug)]
pub struct Symlink {
    /// Where.
    pub path: RootPath,
    /// What it points to: any text that a link can hold.
    pub target: Box<str>,
}
