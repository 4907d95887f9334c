//! `sysctl`: a kernel parameter's value.

use std::borrow::Cow;

use super::form::Text;
use super::kind::{Carrier, Field, Kind, Shape, TIMEOUT_S};
use super::parting::{Ends, Farewell, Leaving, Undo};
use super::{Answer, Object, Past, Question, Resource, Step, Trouble, Verdict};

/// A declared kernel parameter.
#[derive(Debug)]
pub struct Sysctl {
    /// Dotted key; a `/` stands for a dot inside a name, as sysctl(8) has it.
    pub key: Box<str>,
    /// The value as written to the kernel.
    pub value: Box<str>,
}

impl Resource for Sysctl {
    fn kind(&self) -> &'static str {
        "sysctl"
    }

    fn object(&self) -> Object {
        Object::new("sysctl", &self.key)
    }

    fn question(&self) -> Question<'_> {
        Question::Sysctl(&self.key)
    }

    fn judge(&self, answer: &Answer, past: &Past<'_>) -> Result<Verdict<'_>, Trouble> {
        let found = match answer {
            Answer::Sysctl(Some(found)) => found,
            Answer::Sysctl(None) => {
                let doing = format!("read kernel parameter {}", self.key);
                return Err(Trouble::new(doing, "the running kernel has no such key"));
            }
            Answer::NotApplicable(why) => return Ok(Verdict::not_applicable(why)),
            other => return Err(other.mismatch()),
        };
        let same = same_words(found, &self.value);
        let step = Step::Sysctl { key: &self.key, value: &self.value };
        Ok(Verdict {
            existed: true,
            steps: if same { vec![] } else { vec![step] },
            detail: if same { String::new() } else { format!("{found:?} → {:?}", self.value) },
            before: Some(past.before.unwrap_or(found).into()),
            ..Verdict::default()
        })
    }
}

/// The value that was found before is put back. One that was never read cannot be, and a kernel
/// that lost the key need not have it.
pub(super) struct PutBack;

impl Undo for PutBack {
    fn announces(&self, it: &Leaving<'_>) -> Option<String> {
        it.before.map(|before| format!("put sysctl {} back to {before:?}", it.name))
    }

    fn question<'a>(&self, it: &Leaving<'a>) -> Question<'a> {
        Question::Sysctl(it.name)
    }

    fn judge<'a>(&self, it: &Leaving<'a>, answer: &Answer) -> Result<Farewell<'a>, Trouble> {
        Ok(match (it.before, answer) {
            (None, _) => Farewell::ended(Ends::Forgotten, ""),
            (_, Answer::NotApplicable(why)) => Farewell::ended(Ends::Left, why),
            (_, Answer::Sysctl(None)) => {
                Farewell::ended(Ends::Forgotten, "the kernel has no such key now")
            }
            (Some(value), Answer::Sysctl(Some(found))) if same_words(found, value) => {
                Farewell::ended(Ends::Removed, &format!("{value:?} put back"))
            }
            (Some(value), Answer::Sysctl(Some(found))) => {
                let differs = Farewell::ended(Ends::Removed, &format!("{found:?} → {value:?}"));
                Farewell { steps: vec![Step::Sysctl { key: it.name, value }], ..differs }
            }
            (_, other) => return Err(other.mismatch()),
        })
    }
}

/// The kernel writes a list with tabs between its numbers, whatever it was given.
fn same_words(one: &str, other: &str) -> bool {
    one.split_whitespace().eq(other.split_whitespace())
}

/// How a declaration names a kernel parameter.
pub static KIND: Kind = Kind {
    name: "sysctl",
    doc: "A kernel parameter's value. On leaving the declaration the value found before is put \
          back.",
    fields: &[
        Field::required(
            "key",
            "Its name, with dots (net.ipv4.ip_forward) or slashes (net/ipv4/ip_forward) between \
             its parts; the other of the two then stands for a dot or slash inside a part.",
            Shape::Text(&KEY),
        ),
        Field::required("value", "Its value.", Shape::TextOrInteger(&VALUE)),
    ],
    exactly_one: &[],
    default_timeout_s: TIMEOUT_S,
    carrier: Carrier::Any,
    rules: |fields, judge| {
        if let Some(key) = fields.text("key") {
            judge.claims("key", "sysctl", dotted(key));
        }
    },
    build: Some(|_, fields| {
        let key = fields.take_text("key").expect("the table requires key");
        let value = fields.take_text("value").expect("the table requires value");
        Box::new(Sysctl { key: dotted(&Cow::Borrowed(&key)).into(), value })
    }),
};

static KEY: Text = Text {
    what: "a sysctl key",
    mend: "write its parts with dots between, such as net.ipv4.ip_forward",
    pattern: "^[!-~]+[./][!-~]+$",
    max: 512,
    holds: |text| {
        let key = dotted(&Cow::Borrowed(text));
        key.bytes().all(|byte| byte.is_ascii_graphic())
            && key.contains('.')
            && key.split('.').all(|part| !matches!(part, "" | "/" | "//"))
    },
};

static VALUE: Text = Text {
    what: "a kernel value",
    mend: "write it on one line",
    pattern: "^[^\\u0000-\\u0008\\u000a-\\u001f\\u007f]*$",
    max: 4000,
    holds: |text| !text.bytes().any(|byte| byte.is_ascii_control() && byte != b'\t'),
};

/// The key with dots between its parts, as sysctl(8) reads it: where a slash comes first, slashes
/// part it and a dot belongs to a part.
fn dotted<'a>(key: &Cow<'a, str>) -> Cow<'a, str> {
    match key.find(['.', '/']) {
        Some(at) if key.as_bytes()[at] == b'/' => {
            let swap = |c| match c {
                '/' => '.',
                '.' => '/',
                c => c,
            };
            Cow::Owned(key.chars().map(swap).collect())
        }
        _ => key.clone(),
    }
}
