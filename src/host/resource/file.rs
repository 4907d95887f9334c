//! `file`: a regular file with declared contents.

use std::fmt;

use super::access::{claim_path, take_access, GROUP, OWNER};
use super::fields::{Fields, Value};
use super::form::{self, Text};
use super::kind::{Carrier, Field, Kind, Secrecy, Shape, Touch, TIMEOUT_S};
use super::{Access, RootPath};
use crate::digest::{unhex, Sha256};

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
