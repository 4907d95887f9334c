//! `action`: a command that a bundle may carry, with the check that says whether it is needed.

use super::form::{self, ARGV};
use super::kind::{Carrier, Field, Kind, Shape, TIMEOUT_S};
use super::Verdict;
use super::{Answer, Command, Object, Past, Question, Resource, RootPath, Standing, Step, Trouble};
use crate::declaration::fault::quoted;

/// A declared action.
#[derive(Debug)]
pub struct Action {
    /// The resource's id: an action has no other name.
    pub id: Box<str>,
    /// What to run.
    pub run: Box<[Box<str>]>,
    /// What must exit 0 for the action to count as done: asked before, and again after, it ran.
    pub verify: Box<[Box<str>]>,
    /// Variables for both.
    pub env: Box<[(Box<str>, Box<str>)]>,
    /// Working directory of both.
    pub workdir: Option<RootPath>,
}

impl Action {
    fn command<'a>(&'a self, argv: &'a [Box<str>]) -> Command<'a> {
        Command { argv, env: &self.env, workdir: self.workdir.as_ref() }
    }
}

impl Resource for Action {
    fn kind(&self) -> &'static str {
        "action"
    }

    fn object(&self) -> Object {
        Object::new("action", &self.id)
    }

    fn question(&self) -> Question<'_> {
        Question::Check(self.command(&self.verify))
    }

    fn judge(&self, answer: &Answer, past: &Past<'_>) -> Result<Verdict<'_>, Trouble> {
        let check = match answer {
            Answer::Check(check) => check,
            Answer::NotApplicable(why) => return Ok(Verdict::not_applicable(why)),
            other => return Err(other.mismatch()),
        };
        let run = Step::Run(self.command(&self.run));
        Ok(Verdict {
            existed: check.passed || past.standing != Standing::Unowned,
            steps: if check.passed { vec![] } else { vec![run] },
            detail: if check.passed { String::new() } else { format!("verify {}", check.said) },
            ..Verdict::default()
        })
    }
}

/// How a declaration names an action.
pub static KIND: Kind = Kind {
    name: "action",
    doc: "A command that is run where its check does not exit 0, and must make it do so. Only a \
          bundle may carry one.",
    fields: &[
        Field::required("run", "The program and its arguments.", Shape::List(&ARGV, 1, 1024)),
        Field::required(
            "verify",
            "The program, and its arguments, that exits 0 when there is nothing to do.",
            Shape::List(&ARGV, 1, 1024),
        ),
        Field::optional(
            "env",
            "Variables for both.",
            Shape::Map(&form::VARIABLE, &form::ARGV, 1024),
        ),
        Field::optional("workdir", "The working directory of both.", Shape::Text(&form::ABSOLUTE))
            .or("\"/\""),
    ],
    exactly_one: &[],
    default_timeout_s: TIMEOUT_S,
    carrier: Carrier::Bundle,
    rules: |fields, judge| {
        for name in ["run", "verify"] {
            if fields.list(name).first().is_some_and(|program| program.as_text().is_empty()) {
                judge.wrong(name, "names no program".into(), "begin with the program to run");
            }
        }
        if let Some(workdir) = fields.text("workdir").filter(|dir| !is_root(dir)) {
            if let Err(why) = RootPath::parse(workdir) {
                judge.wrong("workdir", format!("{} {why}", quoted(workdir)), "");
            }
        }
    },
    build: Some(|id, fields| {
        let workdir = fields.take_text("workdir").filter(|dir| !is_root(dir));
        Box::new(Action {
            id: id.into(),
            run: fields.take_texts("run"),
            verify: fields.take_texts("verify"),
            env: fields.take_text_map("env"),
            workdir: workdir.map(|dir| RootPath::parse(&dir).expect("the rules saw the path")),
        })
    }),
};

fn is_root(path: &str) -> bool {
    path.split('/').all(|name| matches!(name, "" | "."))
}
