//! `sysctl`: a kernel parameter's value.

use super::{Answer, Object, Question, Resource, Standing, Step, Trouble, Verdict};

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

    fn judge(&self, answer: &Answer, _standing: Standing) -> Result<Verdict<'_>, Trouble> {
        let found = match answer {
            Answer::Sysctl(Some(found)) => found,
            Answer::Sysctl(None) => {
                let doing = format!("read kernel parameter {}", self.key);
                return Err(Trouble::new(doing, "the running kernel has no such key"));
            }
            Answer::NotApplicable(why) => {
                return Ok(Verdict { not_applicable: Some(why), ..Verdict::default() })
            }
            other => return Err(other.mismatch()),
        };
        let same = same_words(found, &self.value);
        let step = Step::Sysctl { key: &self.key, value: &self.value };
        Ok(Verdict {
            existed: true,
            steps: if same { vec![] } else { vec![step] },
            detail: if same { String::new() } else { format!("{found:?} → {:?}", self.value) },
            before: Some(found.clone()),
            ..Verdict::default()
        })
    }
}

/// The kernel writes a list with tabs between its numbers, whatever it was given.
pub fn same_words(one: &str, other: &str) -> bool {
    one.split_whitespace().eq(other.split_whitespace())
}
