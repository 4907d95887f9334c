//! What is wrong with a declaration. Pure.

use std::fmt;

/// One fault of a declaration.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Fault {
    /// Where: `resources[3] "motd"`, or empty for the document itself. Quoted and capped.
    pub place: String,
    /// The JSON field, dotted (`source.sha256`); empty where it is no field's fault.
    pub field: String,
    /// What is wrong.
    pub wrong: String,
    /// What would mend it; empty where `wrong` says it all.
    pub mend: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.place.is_empty() {
            write!(f, "{}: ", self.place)?;
        }
        if !self.field.is_empty() {
            write!(f, "{}: ", self.field)?;
        }
        f.write_str(&self.wrong)?;
        if !self.mend.is_empty() {
            write!(f, "; {}", self.mend)?;
        }
        Ok(())
    }
}
