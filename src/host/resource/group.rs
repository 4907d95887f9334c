//! `group`: a group of users.

use super::account::{elsewhere, renumbered, Ask, Whereabouts};
use super::form::ACCOUNT;
use super::kind::{Carrier, Field, Kind, Shape, TIMEOUT_S};
use super::parting::{Ends, Farewell, Leaving, Undo};
use super::{Answer, Object, Past, Question, Resource, Step, Trouble, Verdict};
use crate::tool::shadow;

/// A declared group.
#[derive(Debug)]
pub struct Group {
    /// Its name.
    pub name: Box<str>,
    /// Its number.
    pub gid: Option<u32>,
    /// Its number comes from the system's range.
    pub system: bool,
}

impl Resource for Group {
    fn kind(&self) -> &'static str {
        "group"
    }

    fn object(&self) -> Object {
        Object::new("group", &self.name)
    }

    fn question(&self) -> Question<'_> {
        Question::Account(Ask::Group(&self.name))
    }

    fn judge(&self, answer: &Answer, _past: &Past<'_>) -> Result<Verdict<'_>, Trouble> {
        match (answer.group()?, self.gid) {
            (Whereabouts::Nowhere, gid) => Ok(Verdict {
                steps: vec![Step::Account(shadow::add_group(&self.name, gid, self.system))],
                detail: super::ABSENT.into(),
                ..Verdict::default()
            }),
            (Whereabouts::Elsewhere, _) => Err(elsewhere("group", &self.name)),
            (Whereabouts::Here(found), Some(gid)) if *found != gid => {
                Err(renumbered("group", &self.name, *found, gid))
            }
            (Whereabouts::Here(_), _) => Ok(Verdict { existed: true, ..Verdict::default() }),
        }
    }
}

/// A group is left.
pub struct Leave;

impl Undo for Leave {
    fn announces(&self, _it: &Leaving<'_>) -> Option<String> {
        None
    }

    fn question<'a>(&self, it: &Leaving<'a>) -> Question<'a> {
        Question::Account(Ask::Group(it.name))
    }

    fn judge<'a>(&self, _it: &Leaving<'a>, answer: &Answer) -> Result<Farewell<'a>, Trouble> {
        let (ends, detail) = match answer.group()? {
            Whereabouts::Here(_) => (Ends::Left, "its files would become someone else's"),
            _ => (Ends::Removed, "was gone already"),
        };
        Ok(Farewell::ended(ends, detail))
    }
}

/// How a declaration names a group.
pub static KIND: Kind = Kind {
    name: "group",
    doc: "A group. On leaving the declaration it is left: its files would become someone else's.",
    fields: &[
        Field::required("name", "Its name.", Shape::Text(&ACCOUNT)),
        Field::optional(
            "gid",
            "Its number. Absent: the next free one. That of a group that was there is never \
             changed.",
            ID,
        ),
        Field::optional("system", "Its number comes from the system's range.", Shape::Bool)
            .or("false"),
    ],
    exactly_one: &[],
    default_timeout_s: TIMEOUT_S,
    carrier: Carrier::Any,
    rules: |fields, judge| {
        if let Some(name) = fields.text("name") {
            judge.claims("name", "group", name.clone());
        }
    },
    build: Some(|_, fields| {
        let gid = fields.integer("gid").map(number);
        let name = fields.take_text("name").expect("the table requires name");
        Box::new(Group { name, gid, system: fields.is_true("system") })
    }),
};

/// A user's or group's number; the last one is what the kernel takes for "no change".
pub const ID: Shape = Shape::Integer(0, u32::MAX as i64 - 1);

/// The value of an [`ID`].
pub fn number(value: i64) -> u32 {
    u32::try_from(value).expect("the shape of an id is its range")
}
