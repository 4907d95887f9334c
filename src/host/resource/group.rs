//! `group`: a group of users.

use super::form::ACCOUNT;
use super::kind::{Carrier, Field, Kind, Shape, TIMEOUT_S};

/// How a declaration names a group.
pub static KIND: Kind = Kind {
    name: "group",
    doc: "A group. On leaving the declaration it is left: its files would become someone else's.",
    fields: &[
        Field::required("name", "Its name.", Shape::Text(&ACCOUNT)),
        Field::optional("gid", "Its number. Absent: the next free one.", ID),
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
    build: None,
};

/// A user's or group's number; the last one is what the kernel takes for "no change".
pub const ID: Shape = Shape::Integer(0, u32::MAX as i64 - 1);
