//! After a failure in a new declaration: what follows keeps its last applied form, and is held to
//! it. So is what would have been let go of.

use std::collections::{HashMap, HashSet};

use super::group::Group;
use super::ledger::Held;
use super::turn::Turn;
use super::{Pass, Work};
use crate::error::Error;
use crate::report::Outcome;
use crate::resource::{may_cut, Object};
use crate::store::Source;

impl Pass<'_> {
    /// Says of every resource from `from` on that its turn did not come, unless it was answered
    /// for.
    pub(super) fn not_reached<'d>(&mut self, work: &Work<'d>, from: usize) {
        let Work { source, declaration } = *work;
        let answered: HashSet<usize> = self.positions(source, |_| true).collect();
        for position in from..declaration.resources.len() {
            if !answered.contains(&position) {
                let turn = Turn::of(work, position);
                self.line(turn, Outcome::NotReached, 0, String::new(), None);
            }
        }
    }

    /// Holds what a failure kept from being reached.
    pub(super) fn hold_rest<'d>(&mut self, work: &Work<'d>) -> Result<(), Error> {
        let Work { source, declaration } = *work;
        let is_failed = |outcome| outcome == Outcome::Failed;
        let failed = self.positions(source, is_failed).min();
        self.not_reached(work, failed.map_or(declaration.resources.len(), |first| first + 1));
        let waiting: HashMap<Object, usize> = self
            .positions(source, |outcome| outcome == Outcome::NotReached)
            .map(|position| (declaration.resources[position].resource.object(), position))
            .collect();
        let mut objects: Vec<&Object> = waiting.keys().collect();
        objects.sort_by_key(|object| waiting[*object]);
        let going: Vec<Object> = self.still_owned(work).into_iter().rev().collect();
        objects.extend(going.iter().filter(|object| !waiting.contains_key(object)));
        let held = self.ledger.held(source, &objects, self.options.own)?;
        // What is held is let go of by nobody, whatever is in its way.
        self.releasing.clear();
        self.leading.clear();
        self.names_releasing.clear();
        let mark = self.lines.len();
        self.hold(source, &held, |object| waiting.get(object).copied())?;
        self.fold_held(source, mark);
        Ok(())
    }

    /// One turn for each resource, in the form that is at hand.
    fn hold(
        &mut self,
        source: Source,
        held: &Held,
        position: impl Fn(&Object) -> Option<usize>,
    ) -> Result<(), Error> {
        let mut group = Group::default();
        self.stops_at_failure = false;
        for (object, nth, form) in &held.forms {
            let declaration = &held.declarations[*nth];
            if self.hands_off && may_cut(declaration.resources[*form].resource.kind()) {
                continue;
            }
            let answers = position(object);
            self.turn(Turn { source, declaration, position: *form, answers }, &mut group)?;
        }
        self.hands_off = false;
        self.flush(&mut group)
    }

    /// What holding did is told in the line that says the resource was not reached.
    fn fold_held(&mut self, source: Source, mark: usize) {
        for held in self.lines.split_off(mark) {
            let mine = |line: &&mut super::Line| {
                line.source == source && line.position.is_some() && line.position == held.position
            };
            let detail = format!("held in its last form: {} {}", held.outcome, held.detail);
            match self.lines.iter_mut().find(mine) {
                Some(line) => line.detail = detail.into(),
                None => self.lines.push(super::Line {
                    outcome: Outcome::NotReached,
                    detail: detail.into(),
                    position: None,
                    ..held
                }),
            }
        }
    }

    /// Positions of the lines of `source` that ended so.
    fn positions(
        &self,
        source: Source,
        wanted: impl Fn(Outcome) -> bool + 'static,
    ) -> std::vec::IntoIter<usize> {
        let mine = |line: &&super::Line| line.source == source && wanted(line.outcome);
        let all: Vec<usize> =
            self.lines.iter().filter(mine).filter_map(|line| line.position).collect();
        all.into_iter()
    }
}
