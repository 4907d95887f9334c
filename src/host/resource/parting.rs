//! What becomes of an object that is no longer declared. Pure.

use super::{Removable, Standing};

/// How the host parts with an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parting {
    /// The machine keeps it; the host no longer cares.
    Forget,
    /// It is removed, if it is still what was made.
    Remove(Removable),
    /// The value found before is put back.
    PutBack,
}

/// How the host parts with what was declared as a `kind`.
pub fn parting(kind: &str, standing: Standing) -> Parting {
    match (kind, standing) {
        ("file", Standing::Created) => Parting::Remove(Removable::File),
        ("directory", Standing::Created) => Parting::Remove(Removable::Directory),
        ("symlink", Standing::Created) => Parting::Remove(Removable::Symlink),
        ("sysctl", _) => Parting::PutBack,
        _ => Parting::Forget,
    }
}
