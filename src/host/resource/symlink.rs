//! `symlink`: a symbolic link.

use super::access::claim_path;
use super::form::Text;
use super::kind::{Carrier, Field, Kind, Shape, Touch, TIMEOUT_S};
use super::{
    Access, Answer, Entry, Found, Holds, Make, Object, Place, Question, Resource, RootPath,
};
use super::{Past, Step, Trouble, Verdict};

/// A link's own owner is whoever makes it, and its mode means nothing.
static UNMANAGED: Access = Access { mode: None, owner: None, group: None };

/// A declared symbolic link.
#[derive(Debug)]
pub struct Symlink {
    /// Where.
    pub path: RootPath,
    /// What it points to: any text that a link can hold.
    pub target: Box<str>,
}

impl Resource for Symlink {
    fn kind(&self) -> &'static str {
        "symlink"
    }

    fn object(&self) -> Object {
        Object::at(&self.path)
    }

    fn question(&self) -> Question<'_> {
        Question::Path {
            path: &self.path,
            holds: Some(Holds::Target(&self.target)),
            access: &UNMANAGED,
        }
    }

    fn judge(&self, answer: &Answer, _past: &Past<'_>) -> Result<Verdict<'_>, Trouble> {
        let answer = answer.path()?;
        let place = |over| {
            let (uid, gid) = (answer.euid, answer.egid);
            let make = Make::Symlink(&self.target);
            let (path, mode, keeps_list) = (&self.path, 0o777, false);
            vec![Step::Place(Place { path, make, mode, uid, gid, over, keeps_list })]
        };
        let absent =
            || Verdict { steps: place(false), detail: super::ABSENT.into(), ..Verdict::default() };
        match &answer.found {
            Found::Nothing => Ok(absent()),
            Found::NoParent(_) => Ok(Verdict { needs_parent: self.path.parent(), ..absent() }),
            Found::Entry { kind: Entry::Symlink(target), .. } => {
                let same = target == self.target.as_bytes();
                let found = String::from_utf8_lossy(target);
                let (steps, detail) = if same {
                    (vec![], String::new())
                } else {
                    (place(true), format!("target {found:?} → {:?}", self.target))
                };
                Ok(Verdict { existed: true, steps, detail, ..Verdict::default() })
            }
            Found::Entry { kind, .. } => Err(kind.in_the_way(&self.path, "symlink")),
        }
    }
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
