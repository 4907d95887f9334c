//! `action`: a command that a bundle may carry, with the check that says whether it is needed.

use super::Verdict;
use super::{Answer, Command, Object, Question, Resource, RootPath, Standing, Step, Trouble};

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

    fn judge(&self, answer: &Answer, standing: Standing) -> Result<Verdict<'_>, Trouble> {
        let check = match answer {
            Answer::Check(check) => check,
            Answer::NotApplicable(why) => {
                return Ok(Verdict { not_applicable: Some(why), ..Verdict::default() })
            }
            other => return Err(other.mismatch()),
        };
        let run = Step::Run(self.command(&self.run));
        Ok(Verdict {
            existed: check.passed || standing != Standing::Unowned,
            steps: if check.passed { vec![] } else { vec![run] },
            detail: if check.passed { String::new() } else { format!("verify {}", check.said) },
            ..Verdict::default()
        })
    }
}
