//! `package`: a package of the machine's own package manager.

use super::form::{word, Text};
use super::kind::{Carrier, Field, Kind, Shape, Touch};
use super::{Answer, Object, Past, Question, Resource, Step, Trouble, Verdict, ABSENT};

/// A declared package.
#[derive(Debug)]
pub struct Package {
    /// Its name, of the machine's own package manager.
    pub name: Box<str>,
}

/// How far a package is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Presence {
    /// Not at all.
    Absent,
    /// As the manager says, in full.
    Whole,
    /// Not in full, and how far.
    Half(String),
    /// In full as the manager says, which may be at it still or have been cut off, as this tells.
    Doubtful(&'static str),
}

/// A package to be installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Install<'a> {
    /// Its name.
    pub name: &'a str,
    /// Since when an earlier run may have been at it, in seconds since 1970: what was left behind
    /// since then may be the host's own.
    pub begun: Option<u64>,
}

impl Resource for Package {
    fn kind(&self) -> &'static str {
        "package"
    }

    fn object(&self) -> Object {
        Object::new("package", &self.name)
    }

    fn question(&self) -> Question<'_> {
        Question::Package(&self.name)
    }

    fn judge(&self, answer: &Answer, past: &Past<'_>) -> Result<Verdict<'_>, Trouble> {
        let presence = match answer {
            Answer::Package(presence) => presence,
            other => return Err(other.mismatch()),
        };
        let missing = match presence {
            Presence::Whole => None,
            Presence::Absent => Some(ABSENT.to_string()),
            Presence::Half(how) => Some(how.clone()),
            // What others left so is theirs to finish.
            Presence::Doubtful(why) => past.begun.map(|_| why.to_string()),
        };
        let step = Step::Install(Install { name: &self.name, begun: past.begun });
        Ok(Verdict {
            existed: *presence != Presence::Absent,
            steps: missing.is_some().then_some(step).into_iter().collect(),
            detail: missing.unwrap_or_default(),
            ..Verdict::default()
        })
    }
}

/// How a declaration names a package.
pub static KIND: Kind = Kind {
    name: "package",
    doc: "A package that is present. Never upgraded, and never uninstalled: on leaving the \
          declaration it is forgotten.",
    fields: &[Field::required("name", "Its name, without version.", Shape::Text(&NAME))],
    exactly_one: &[],
    default_timeout_s: 900,
    carrier: Carrier::Any,
    rules: |fields, judge| {
        if let Some(name) = fields.text("name") {
            judge.claims("name", "package", name.clone());
            judge.touches("name", Touch::Package(name));
        }
    },
    build: Some(|_, fields| {
        let name = fields.take_text("name").expect("the table requires name");
        Box::new(Package { name })
    }),
};

// A trailing - would ask apt-get for a removal; = / : would choose a version, source or machine.
static NAME: Text = Text {
    what: "a package's name",
    mend: "write the bare name: no version, repository or architecture",
    pattern: "^[A-Za-z0-9@_]([A-Za-z0-9@._+-]*[A-Za-z0-9@._+])?$",
    max: 200,
    holds: |text| word(text, "@_", "@._+-") && !text.ends_with('-'),
};

#[cfg(test)]
mod tests {
    use super::super::Standing;
    use super::*;

    fn judged(presence: Presence, begun: Option<u64>) -> (usize, bool) {
        let package = Package { name: "x".into() };
        let standing = if begun.is_some() { Standing::Created } else { Standing::Unowned };
        let past = Past { standing, begun, ..Past::NONE };
        let verdict = package.judge(&Answer::Package(presence), &past).unwrap();
        let told = !verdict.detail.is_empty();
        assert_eq!(told, !verdict.steps.is_empty(), "a step is told");
        (verdict.steps.len(), verdict.existed)
    }

    #[test]
    fn present_is_enough_and_half_is_not() {
        for begun in [None, Some(7)] {
            assert_eq!(judged(Presence::Whole, begun), (0, true));
            assert_eq!(judged(Presence::Absent, begun), (1, false));
            assert_eq!(judged(Presence::Half("unpacked only".into()), begun), (1, true));
        }
    }

    #[test]
    fn what_another_was_cut_off_at_is_not_ours_to_finish() {
        assert_eq!(judged(Presence::Doubtful("cut"), None), (0, true));
        assert_eq!(judged(Presence::Doubtful("cut"), Some(7)), (1, true));
    }

    #[test]
    fn an_answer_to_another_question_is_not_believed() {
        let package = Package { name: "x".into() };
        assert!(package.judge(&Answer::Sysctl(None), &Past::NONE).is_err());
    }
}
