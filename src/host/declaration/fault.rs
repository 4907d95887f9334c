//! What is wrong with a declaration. Pure.

use std::fmt;

/// One fault of a declaration.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
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

/// Untrusted text, quoted as a Rust literal and cut to a length that fits a line.
pub fn quoted(text: &str) -> String {
    const LONGEST: usize = 80;
    match text.char_indices().nth(LONGEST) {
        None => format!("{text:?}"),
        Some((cut, _)) => format!("{:?}…", &text[..cut]),
    }
}

/// The faults of one declaration, in the order in which they are to be listed, up to a limit.
#[derive(Default)]
pub(super) struct Faults {
    list: Vec<(u32, Fault)>,
    more: usize,
}

impl Faults {
    /// How many faults are listed.
    pub const LISTED: usize = 1000;
    /// The order of a fault of the document itself: before every resource.
    pub const DOCUMENT: u32 = 0;

    /// Adds a fault; `order` is one more than the resource's position, or [`Faults::DOCUMENT`].
    pub fn push(&mut self, order: u32, fault: Fault) {
        if self.is_full() {
            self.more += 1;
            // What is wrong with the whole explains more than one more resource.
            match self.list.last_mut() {
                Some(last) if order == Faults::DOCUMENT => *last = (order, fault),
                _ => {}
            }
        } else {
            self.list.push((order, fault));
        }
    }

    /// No further fault would be listed.
    pub fn is_full(&self) -> bool {
        self.list.len() >= Faults::LISTED
    }

    /// How many there are, listed or not.
    pub fn count(&self) -> usize {
        self.list.len() + self.more
    }

    /// Forgets every fault of a resource.
    pub fn keep_document(&mut self) {
        self.list.retain(|(order, _)| *order == Faults::DOCUMENT);
        self.more = 0;
    }

    /// The list.
    pub fn into_list(mut self) -> Vec<Fault> {
        self.list.sort_by_key(|(order, _)| *order);
        let mut list: Vec<Fault> = self.list.into_iter().map(|(_, fault)| fault).collect();
        if self.more > 0 {
            let wrong = format!("and {} more faults, not listed", self.more);
            list.push(Fault { wrong, ..Fault::default() });
        }
        list
    }
}
