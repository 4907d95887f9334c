//! What is asked about users and groups, and what the account files say of them. Pure.

use super::{Answer, Principal, Trouble};
use crate::tool::shadow::{Login, User};

/// What is asked of the account files.
#[derive(Clone, Copy, Debug)]
pub enum Ask<'a> {
    /// The group of this name.
    Group(&'a str),
    /// A user.
    User(AskUser<'a>),
}

/// What is asked about a user.
#[derive(Clone, Copy, Debug, Default)]
pub struct AskUser<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its declared primary group, to be resolved.
    pub group: Option<&'a Principal>,
    /// Its declared further groups, each of which must be there.
    pub groups: &'a [Box<str>],
    /// Its declared home.
    pub home: Option<&'a str>,
    /// Whether the host's own lines in its authorized_keys are asked too.
    pub keys: Keys,
}

/// Whether keys are asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Keys {
    /// They are nobody's business.
    #[default]
    Unasked,
    /// They are.
    Asked,
}

/// Where an account is.
#[derive(Debug)]
pub enum Whereabouts<T> {
    /// Nowhere.
    Nowhere,
    /// Not in the machine's own files, and known to a directory service.
    Elsewhere,
    /// In the machine's own files.
    Here(T),
}

/// What is known of a user.
#[derive(Debug)]
pub struct UserAnswer {
    /// The user itself.
    pub user: Whereabouts<Box<FoundUser>>,
    /// The declared primary group's number.
    pub gid: Option<u32>,
    /// The number of the group that has the user's name.
    pub namesake: Option<u32>,
}

/// A user in the machine's own files.
#[derive(Debug)]
pub struct FoundUser {
    /// Its line of passwd(5).
    pub line: User,
    /// The names of the groups that list it as a member.
    pub groups: Vec<String>,
    /// Its primary group has a name.
    pub has_group: bool,
    /// What shadow(5) says.
    pub login: Shadow,
    /// Something stands where its home should be (the declared one, if one is); `None` where that
    /// cannot be seen.
    pub has_home: Option<bool>,
    /// The host's own part of its authorized_keys, if that was asked.
    pub keys: Result<FoundKeys, Trouble>,
}

/// The host's own part of a user's authorized_keys.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct FoundKeys {
    /// Its lines.
    pub lines: Vec<String>,
    /// Others than the user may write there, so that sshd(8) takes no key from it.
    pub exposed: bool,
}

/// What shadow(5) says of a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shadow {
    /// The machine has no such file.
    Unused,
    /// The file lacks the user.
    Missing,
    /// Its line.
    Line(Login),
}

impl Answer {
    /// The answer to [`Ask::Group`].
    pub(super) fn group(&self) -> Result<&Whereabouts<u32>, Trouble> {
        match self {
            Answer::Group(group) => Ok(group),
            other => Err(other.mismatch()),
        }
    }

    /// The answer to [`Ask::User`].
    pub(super) fn user(&self) -> Result<&UserAnswer, Trouble> {
        match self {
            Answer::User(user) => Ok(user),
            other => Err(other.mismatch()),
        }
    }
}

/// Why an account that a directory service has is not made: the tools would refuse.
pub(super) fn elsewhere(kind: &str, name: &str) -> Trouble {
    let cause = format!(
        "a directory service has a {kind} of this name (getent knows it, the machine's own files \
         do not), which the host neither makes nor changes"
    );
    Trouble::new(format!("make {kind} {name}"), cause)
}

/// How a number that differs from the declared one is met: the files of the account would become
/// someone else's.
pub(super) fn renumbered(kind: &str, name: &str, found: u32, declared: u32) -> Trouble {
    let cause = format!(
        "its number is {found} and not {declared}, and a number is never changed: its files would \
         become someone else's"
    );
    Trouble::new(format!("have {kind} {name} as declared"), cause)
}
