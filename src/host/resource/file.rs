//! `file`: a regular file with declared contents.

use super::access::Wanted;
use super::{Access, Answer, Entry, Found, Holds, Make, Object, Place, Question, Resource};
use super::{RootPath, Standing, Step, Trouble, Verdict};
use crate::digest::Sha256;

/// Permission bits where the declaration names none.
pub const DEFAULT_MODE: u16 = 0o644;

/// The same for a file whose contents are secret.
pub const DEFAULT_SECRET_MODE: u16 = 0o600;

/// A declared file.
#[derive(Debug)]
pub struct File {
    /// Where.
    pub path: RootPath,
    /// What it holds.
    pub body: Body,
    /// Permissions and ownership.
    pub access: Access,
    /// Its contents are shown nowhere.
    pub secret: bool,
}

/// What a file holds.
pub enum Body {
    /// These bytes.
    Bytes(Box<[u8]>),
    /// What this address serves.
    Source {
        /// `http` or `https`.
        url: Box<str>,
        /// What it must hash to.
        sha256: Box<Sha256>,
    },
}

impl std::fmt::Debug for Body {
    /// Contents may be secret: only their size is shown.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Body::Bytes(bytes) => write!(f, "{} bytes", bytes.len()),
            Body::Source { url, .. } => write!(f, "what {url:?} serves"),
        }
    }
}

impl Resource for File {
    fn kind(&self) -> &'static str {
        "file"
    }

    fn object(&self) -> Object {
        Object::new("path", self.path.as_str())
    }

    fn question(&self) -> Question<'_> {
        let holds = match &self.body {
            Body::Bytes(bytes) => Holds::Bytes(bytes),
            Body::Source { sha256, .. } => Holds::Digest(sha256),
        };
        Question::Path { path: &self.path, holds: Some(holds), access: &self.access }
    }

    fn judge(&self, answer: &Answer, standing: Standing) -> Result<Verdict<'_>, Trouble> {
        let answer = answer.path()?;
        let default_mode = if self.secret { DEFAULT_SECRET_MODE } else { DEFAULT_MODE };
        let wanted = self.access.wanted(answer, standing, default_mode);
        match &answer.found {
            Found::Nothing => Ok(self.absent(wanted)),
            Found::NoParent(_) => {
                Ok(Verdict { needs_parent: self.path.parent(), ..self.absent(wanted) })
            }
            Found::Entry { kind: Entry::File { size, holds }, mode, uid, gid, linked } => {
                let mut detail = wanted.difference(*mode, *uid, *gid);
                let same = *holds == Some(true);
                let steps = match (same, detail.is_empty()) {
                    (true, true) => vec![],
                    // Another name leads to the same inode, and is not ours to change.
                    (true, false) if !linked => vec![self.access_step(wanted)],
                    _ => vec![self.place(wanted, true)],
                };
                if !same {
                    detail = self.content_difference(*size, detail);
                }
                Ok(Verdict { existed: true, steps, detail, ..Verdict::default() })
            }
            Found::Entry { kind, .. } => Err(kind.in_the_way(&self.path, "file")),
        }
    }

    fn secret(&self) -> bool {
        self.secret
    }

    fn text(&self) -> Option<&[u8]> {
        match &self.body {
            Body::Bytes(bytes) if !self.secret => Some(bytes),
            _ => None,
        }
    }
}

impl File {
    fn absent(&self, wanted: Wanted) -> Verdict<'_> {
        let steps = vec![self.place(wanted, false)];
        Verdict { steps, detail: "absent".into(), ..Verdict::default() }
    }

    fn place(&self, Wanted { mode, uid, gid }: Wanted, over: bool) -> Step<'_> {
        let make = match &self.body {
            Body::Bytes(bytes) => Make::Bytes(bytes),
            Body::Source { url, sha256 } => Make::Fetched { url, sha256 },
        };
        Step::Place(Place { path: &self.path, make, mode, uid, gid, over })
    }

    fn access_step(&self, Wanted { mode, uid, gid }: Wanted) -> Step<'_> {
        Step::Access { path: &self.path, mode, uid, gid }
    }

    /// Sizes only: of a secret not even those.
    fn content_difference(&self, found: u64, access: String) -> String {
        let content = match &self.body {
            _ if self.secret => "other contents".into(),
            Body::Bytes(bytes) if bytes.len() as u64 == found => {
                format!("other contents of the same {found} bytes")
            }
            Body::Bytes(bytes) => format!("contents {found} → {} bytes", bytes.len()),
            Body::Source { .. } => format!("other contents ({found} bytes)"),
        };
        if access.is_empty() {
            content
        } else {
            format!("{content}, {access}")
        }
    }
}
