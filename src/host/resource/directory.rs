//! `directory`: a directory, with its missing parents.

use super::access::{claim_path, take_access, GROUP, OWNER};
use super::kind::{Carrier, Field, Kind, Shape, Touch, TIMEOUT_S};
use super::wanted::Wanted;
use super::{Access, Answer, Entry, Found, Make, Object, Place, Question, Resource, RootPath};
use super::{Past, Step, Trouble, Verdict};

/// Permission bits where the declaration names none, and of parents made along the way.
pub const DEFAULT_MODE: u16 = 0o755;

/// A declared directory.
#[derive(Debug)]
pub struct Directory {
    /// Where.
    pub path: RootPath,
    /// The ancestors, topmost first: any that is missing is made with it.
    pub ancestors: Box<[RootPath]>,
    /// Permissions and ownership.
    pub access: Access,
}

impl Resource for Directory {
    fn kind(&self) -> &'static str {
        "directory"
    }

    fn object(&self) -> Object {
        Object::at(&self.path)
    }

    fn question(&self) -> Question<'_> {
        Question::Path { path: &self.path, holds: None, access: &self.access }
    }

    fn judge(&self, answer: &Answer, past: &Past<'_>) -> Result<Verdict<'_>, Trouble> {
        let answer = answer.path()?;
        let wanted = self.access.wanted(answer, past.standing, DEFAULT_MODE);
        let make = |path, Wanted { mode, uid, gid }| {
            let make = Make::Directory;
            Step::Place(Place { path, make, mode, uid, gid, over: false, keeps_list: false })
        };
        match &answer.found {
            Found::Nothing => Ok(Verdict {
                steps: vec![make(&self.path, wanted)],
                detail: super::ABSENT.into(),
                ..Verdict::default()
            }),
            Found::NoParent(topmost) => {
                let parent = Wanted { mode: DEFAULT_MODE, uid: answer.euid, gid: answer.egid };
                let missing = self.ancestors.iter().filter(|path| path.is_within(topmost));
                let mut steps: Vec<Step> = missing.map(|path| make(path, parent)).collect();
                steps.push(make(&self.path, wanted));
                Ok(Verdict { steps, detail: super::ABSENT.into(), ..Verdict::default() })
            }
            Found::Entry { kind: Entry::Directory, mode, uid, gid, .. } => {
                let detail = wanted.difference(*mode, *uid, *gid);
                let Wanted { mode, uid, gid } = wanted;
                let step = Step::Access { path: &self.path, mode, uid, gid };
                let steps = if detail.is_empty() { vec![] } else { vec![step] };
                Ok(Verdict { existed: true, steps, detail, ..Verdict::default() })
            }
            Found::Entry { kind, .. } => Err(kind.in_the_way(&self.path, "directory")),
        }
    }
}

/// How a declaration names a directory.
pub static KIND: Kind = Kind {
    name: "directory",
    doc: "A directory. Missing parents are made with it (0755, root) and go with it. On leaving \
          the declaration it is removed if the host created it and it is empty.",
    fields: &[
        Field::required("path", "Where it is.", Shape::Path),
        Field::optional(
            "mode",
            "Permission bits. Absent: 0755 where the host creates it, unmanaged where it was.",
            Shape::Mode,
        ),
        OWNER,
        GROUP,
    ],
    exactly_one: &[],
    default_timeout_s: TIMEOUT_S,
    carrier: Carrier::Any,
    rules: |fields, judge| {
        claim_path(fields, judge);
        if let Some(path) = fields.path("path") {
            let managed = ["mode", "owner", "group"].iter().any(|name| fields.has(name));
            let touch = if managed { Touch::Access } else { Touch::Directory };
            judge.touches("path", touch(path));
        }
    },
    build: Some(|_, fields| {
        let (path, access) = (fields.take_path("path"), take_access(fields));
        let ancestors = path.ancestors().into();
        Box::new(Directory { path, ancestors, access })
    }),
};
