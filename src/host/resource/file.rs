//! `file`: a regular file with declared contents.

use std::fmt;

use super::access::{claim_path, take_access, GROUP, OWNER};
use super::fields::{Fields, Value};
use super::form::{self, Text};
use super::kind::{Carrier, Field, Kind, Secrecy, Shape, Touch, TIMEOUT_S};
use super::wanted::Wanted;
use super::{Access, Answer, Entry, Found, Holds, Make, Object, Past, Place, Question};
use super::{Resource, RootPath, Step, Trouble, Verdict};
use crate::digest::{unhex, Sha256};

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

/// What a file holds. `Debug` shows no bytes: they may be a secret.
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

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Body::Bytes(bytes) => write!(f, "{} bytes", bytes.len()),
            Body::Source { .. } => f.write_str("what an address serves"),
        }
    }
}

impl Resource for File {
    fn kind(&self) -> &'static str {
        "file"
    }

    fn object(&self) -> Object {
        Object::at(&self.path)
    }

    fn question(&self) -> Question<'_> {
        let holds = match &self.body {
            Body::Bytes(bytes) => Holds::Bytes(bytes),
            Body::Source { sha256, .. } => Holds::Digest(sha256),
        };
        Question::Path { path: &self.path, holds: Some(holds), access: &self.access }
    }

    fn judge(&self, answer: &Answer, past: &Past<'_>) -> Result<Verdict<'_>, Trouble> {
        let answer = answer.path()?;
        let default_mode = if self.secret { DEFAULT_SECRET_MODE } else { DEFAULT_MODE };
        let wanted = self.access.wanted(answer, past.standing, default_mode);
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
        Verdict { steps, detail: super::ABSENT.into(), ..Verdict::default() }
    }

    fn place(&self, Wanted { mode, uid, gid }: Wanted, over: bool) -> Step<'_> {
        let make = match &self.body {
            Body::Bytes(bytes) => Make::Bytes(bytes),
            Body::Source { url, sha256 } => Make::Fetched { url, sha256 },
        };
        let keeps_list = self.access.mode.is_none() && !self.secret;
        Step::Place(Place { path: &self.path, make, mode, uid, gid, over, keeps_list })
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

/// How a declaration names a file.
pub static KIND: Kind = Kind {
    name: "file",
    doc: "A regular file. Its parent directory must exist when its turn comes. On leaving the \
          declaration it is removed if the host created it.",
    fields: &[
        Field::required("path", "Where it is.", Shape::Path),
        Field::optional("content", "What it holds, as text.", Shape::Text(&form::ANY))
            .kept(Secrecy::WhenMarked),
        Field::optional("content_base64", "What it holds, as base64.", Shape::Base64)
            .kept(Secrecy::WhenMarked),
        Field::optional("source", "Where to fetch what it holds.", Shape::Object(SOURCE)),
        Field::optional(
            "mode",
            "Permission bits. Absent: 0644 (secret: 0600) where the host creates it, unmanaged \
             where it was.",
            Shape::Mode,
        ),
        OWNER,
        GROUP,
        Field::optional(
            "secret",
            "What it holds is shown nowhere, and kept out of the journal.",
            Shape::Bool,
        )
        .or("false"),
    ],
    exactly_one: &["content", "content_base64", "source"],
    default_timeout_s: TIMEOUT_S,
    carrier: Carrier::Any,
    rules: |fields, judge| {
        claim_path(fields, judge);
        let Some(path) = fields.path("path") else { return };
        judge.touches("path", Touch::Entry(path));
        match (fields.get("content"), fields.get("content_base64")) {
            (Some(Value::Text(text)), _) => {
                judge.touches("content", Touch::Text(path, text.as_bytes()));
            }
            (_, Some(Value::Bytes(bytes))) => {
                judge.touches("content_base64", Touch::Text(path, bytes));
            }
            _ => {}
        }
    },
    build: Some(|_, fields| {
        let body = take_body(fields);
        let (path, access) = (fields.take_path("path"), take_access(fields));
        Box::new(File { path, body, access, secret: fields.is_true("secret") })
    }),
};

static SOURCE: &[Field] = &[
    Field::required("url", "An http or https address.", Shape::Text(&URL)),
    Field::required("sha256", "What it must hash to.", Shape::Text(&SHA256)),
];

static URL: Text = Text {
    what: "an http or https address",
    mend: "write http://host/path or https://host/path, without blanks or control characters",
    pattern: "^https?://[^\\s/][^\\s]*$",
    max: 4096,
    holds: |text| {
        let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
        let host = rest.and_then(|rest| rest.split(['/', '?', '#']).next()).unwrap_or("");
        !host.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic())
    },
};

static SHA256: Text = Text {
    what: "a SHA-256 digest",
    mend: "write its 64 hexadecimal digits",
    pattern: "^[0-9a-fA-F]{64}$",
    max: 64,
    holds: |text| unhex::<32>(text).is_some(),
};

fn take_body(fields: &mut Fields<'_>) -> Body {
    if let Some(text) = fields.take_text("content") {
        return Body::Bytes(text.into_boxed_bytes());
    }
    if let Some(Value::Bytes(bytes)) = fields.take("content_base64") {
        return Body::Bytes(bytes.into());
    }
    match fields.take("source") {
        Some(Value::Object(mut source)) => {
            let url = source.take_text("url").expect("the table requires url");
            let sha256 = source.take_text("sha256").expect("the table requires sha256");
            let sha256 = unhex(&sha256).expect("the form of sha256 is its digits");
            Body::Source { url, sha256: Box::new(sha256) }
        }
        _ => unreachable!("a file without fault has one of the three"),
    }
}
