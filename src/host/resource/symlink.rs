//! `symlink`: a symbolic link.

use super::access::claim_path;
use super::form::Text;
use super::kind::{Carrier, Field, Kind, Shape, Touch, TIMEOUT_S};
use super::RootPath;

/// A declared symbolic link.
#[derive(Debug)]
pub struct Symlink {
    /// Where.
    pub path: RootPath,
    /// What it points to: any text that a link can hold.
    pub target: Box<str>,
}

/// How a declaration names a symbolic link.
pub static KIND: Kind = Kind {
    name: "symlink",
    doc: "A symbolic link. On leaving the declaration it is removed if the host created it.",
    fields: &[
        Field::required("path", "Where it is.", Shape::Path),
        Field::required("target", "What it points to; need not exist.", Shape::Text(&TARGET)),
    ],
    exactly_one: &[],
    default_timeout_s: TIMEOUT_S,
    carrier: Carrier::Any,
    rules: |fields, judge| {
        claim_path(fields, judge);
        let Some(path) = fields.path("path") else { return };
        judge.touches("path", Touch::Entry(path));
        if let Some(target) = fields.text("target") {
            judge.touches("target", Touch::Link(path, target));
        }
    },
    build: Some(|_, fields| {
        let path = fields.take_path("path");
        let target = fields.take_text("target").expect("the table requires target");
        Box::new(Symlink { path, target })
    }),
};

static TARGET: Text = Text {
    what: "a link's target",
    mend: "write at least one byte and no NUL",
    pattern: "^[^\\u0000]+$",
    max: 4095,
    holds: |text| !text.is_empty() && !text.contains('\0'),
};
