//! The end of a pass: everything is looked at once more, what happened is recorded, and the report
//! is made.

use super::turn::Turn;
use super::{Pass, Work};
use crate::error::{Error, Stage};
use crate::machine;
use crate::plan::{self, Claims};
use crate::report::{Failure, Line, Outcome, Report, PLAN, REPORT};
use crate::resource::Trouble;
use crate::when::When;

impl Pass<'_> {
    /// Closes the pass. `covered` says of each work whether all of it is applied.
    pub(super) fn finish<'d>(
        mut self,
        started: When,
        mut covered: Vec<(Work<'d>, bool)>,
    ) -> Result<Report<'d>, Error> {
        if self.touched && !self.ledger.is_dry() {
            let works: Vec<Work<'d>> = covered.iter().map(|(work, _)| *work).collect();
            if self.options.watch.looking(self.machine, &works) {
                self.seen.1.clear();
            }
        }
        if self.touched && self.ended.is_none() && !self.ledger.is_dry() {
            for (work, whole) in &mut covered {
                *whole &= self.close(work);
            }
        }
        self.lines.sort_by_key(|line| line.position.unwrap_or(usize::MAX));
        for line in &mut self.lines {
            line.contested = matches!(line.outcome, Outcome::Corrected | Outcome::Failed)
                && self.options.watch.is_contested(line.source, &line.id);
        }
        let outcome = if self.errors.is_empty() { Outcome::Converged } else { Outcome::Failed };
        let mut report = Report {
            schema: if self.ledger.is_dry() { PLAN } else { REPORT },
            id: machine::random_id(),
            node: None,
            trigger: self.options.trigger,
            started: started.to_string(),
            finished: String::new(),
            outcome,
            declarations: covered.iter().map(|(it, _)| (it.source, it.declaration)).collect(),
            lines: self.lines,
            errors: self.errors,
        };
        if self.ended != Some(Stage::Record) {
            let recorded = self.ledger.passed(&report, &covered, self.touched);
            if let Err(error) = recorded {
                report.errors.push(Failure::of(error));
                report.outcome = Outcome::Failed;
            }
        }
        report.finished = machine::now().to_string();
        Ok(report)
    }

    /// A resource that a later one undid fails the apply, however well its own turn went. What was
    /// read back after the last step has been looked at already.
    fn close<'d>(&mut self, work: &Work<'d>) -> bool {
        let Work { source, declaration } = *work;
        let fates = plan::fates(source, declaration, self.ledger.state(), Claims::BySource);
        let unsettled: std::collections::HashSet<usize> = self
            .lines
            .iter()
            .filter(|line| line.source == source)
            .filter(|line| matches!(line.outcome, Outcome::Failed | Outcome::NotReached))
            .filter_map(|line| line.position)
            .collect();
        let mut whole = true;
        self.machine.forget();
        self.machine.expect(declaration);
        for (position, declared) in declaration.resources.iter().enumerate() {
            let (of, seen) = &self.seen;
            let is_seen = *of == source && seen.binary_search(&position).is_ok();
            if is_seen || unsettled.contains(&position) || fates.contains_key(&position) {
                continue;
            }
            let object = declared.resource.object();
            let trouble = match self.look(Turn::of(work, position), &object) {
                Ok(verdict) if verdict.steps.is_empty() => continue,
                Ok(verdict) => Trouble::new(
                    format!("look once more at {}", object.name()),
                    format_args!("what came after it undid it: {}", verdict.detail),
                ),
                Err(trouble) => trouble,
            };
            whole = false;
            self.undone(work, position, trouble);
        }
        whole
    }

    fn undone<'d>(&mut self, work: &Work<'d>, position: usize, trouble: Trouble) {
        let id = work.declaration.resources[position].id.clone();
        let mine = |line: &&mut Line| line.source == work.source && line.position == Some(position);
        if let Some(line) = self.lines.iter_mut().find(mine) {
            line.outcome = Outcome::Failed;
            line.detail = trouble.to_string().into();
        } else {
            self.line(Turn::of(work, position), Outcome::Failed, 0, trouble.to_string(), None);
        }
        self.failure(Stage::Closing, Some(id), trouble);
    }
}
