//! Carrying out: the intents, the steps, the look back and the records of a group of resources.
//!
//! Files, directories and links that follow each other are carried out together, so that a
//! thousand of them wait for the disk three times and not three thousand:
//!
//! 1. every intent is written and made durable: whatever happens now, the store owns it;
//! 2. each file is written whole under a temporary name that follows from its own, each directory
//!    is made;
//! 3. all of that is made durable;
//! 4. each temporary is renamed into place; the names are made durable;
//! 5. each is looked at again, and the service manager reads its units again if they are some;
//! 6. each that matches is recorded as applied; the records are made durable with the next group's
//!    intents, or at the end of the pass.
//!
//! Killed after 1, the next run finds the intents, removes the temporaries they name and starts
//! over. Killed after 4, it finds the right things, with an intent to be closed. A record never
//! comes before the durable thing, so the store claims no more than the machine holds; an intent
//! always comes before it, so nothing the host made is ever anyone else's.
//!
//! Anything but files, directories and links makes a group of its own.

use std::time::{Duration, Instant};

use super::turn::{places, Turn};
use super::Pass;
use crate::declaration::Own;
use crate::error::{Error, Stage};
use crate::machine::Staged;
use crate::report::Outcome;
use crate::resource::{may_cut, Make, Object, RootPath, Standing, Step, Trouble, Verdict};

/// The most members of a group: bounds what an interruption has to wait for.
const MAX_MEMBERS: usize = 16_384;

/// The most bytes of file contents in a group.
const MAX_BYTES: usize = 64 << 20;

/// How long the service manager may take to read its units.
const RELOADING: Duration = Duration::from_secs(60);

/// A resource about to be made to match.
pub(super) struct Member<'d> {
    pub turn: Turn<'d>,
    pub object: Object,
    pub verdict: Verdict<'d>,
    pub outcome: Outcome,
    /// A digest of what is declared.
    pub form: [u8; 8],
    pub diff: Option<Box<str>>,
}

/// Resources to be carried out together.
#[derive(Default)]
pub(super) struct Group<'d> {
    members: Vec<Member<'d>>,
    bytes: usize,
    /// The directory of the last entry, and how often that was another than the one before.
    directory: Option<RootPath>,
    directories: usize,
    alone: bool,
}

impl<'d> Group<'d> {
    pub(super) fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Nothing more may join before it is carried out. Each directory that its entries stand in
    /// takes a descriptor, of which there are `descriptors`.
    pub(super) fn is_full(&self, descriptors: usize) -> bool {
        self.alone
            || self.members.len() >= MAX_MEMBERS
            || self.bytes >= MAX_BYTES
            || self.directories >= descriptors
    }

    pub(super) fn push(&mut self, member: Member<'d>) {
        for step in &member.verdict.steps {
            match step {
                Step::Place(place) => {
                    match place.make {
                        Make::Bytes(bytes) => self.bytes += bytes.len(),
                        // It takes what the network takes.
                        Make::Fetched { .. } => self.alone = true,
                        Make::Directory | Make::Symlink(_) => {}
                    }
                    self.enter(place.path);
                }
                Step::Access { path, .. } => self.enter(path),
                _ => self.alone = true,
            }
        }
        self.members.push(member);
    }

    fn enter(&mut self, path: &RootPath) {
        let parent = path.parent();
        if self.directory != parent {
            self.directories += 1;
            self.directory = parent;
        }
    }
}

/// How far a member has come.
enum Progress {
    /// Its steps are being taken, or have been.
    Going(Vec<Staged>),
    /// It failed, after as many of its steps as this took effect or may have.
    Failed(Stage, Trouble, usize),
    /// It went no further than this many steps, since an earlier member failed.
    Withdrawn(usize),
}

impl Progress {
    /// How many steps, the first ones, took effect: a file that waits beside its target has not.
    fn taken(&self) -> usize {
        match self {
            Progress::Going(staged) => staged.iter().take_while(|it| !it.waits()).count(),
            Progress::Failed(.., taken) | Progress::Withdrawn(taken) => *taken,
        }
    }

    fn fail(&mut self, stage: Stage, trouble: Trouble) {
        *self = Progress::Failed(stage, trouble, self.taken());
    }
}

impl Pass<'_> {
    /// Carries out what is pending, in the order of the members.
    ///
    /// # Errors
    /// Only of the store: a member that fails is answered for in the lines.
    pub(super) fn flush(&mut self, group: &mut Group<'_>) -> Result<(), Error> {
        let mut members = std::mem::take(group).members;
        if members.is_empty() {
            return Ok(());
        }
        self.promised.clear();
        self.relinked.clear();
        self.seen.1.clear();
        let started = Instant::now();
        let is_guarded = members.iter().any(Member::may_cut);
        let guard = if is_guarded { self.arm() } else { None };
        for member in &members {
            if guard.is_some() && member.may_cut() {
                self.note_found(&member.object);
            }
            self.intend(member, guard.as_deref())?;
        }
        self.ledger.flush()?;
        let mut course = self.stage(&members);
        // What is in place already is made durable with the names of the rest.
        self.make_durable(&mut course, Staged::waits);
        self.commit(&members, &mut course);
        self.make_durable(&mut course, |_| true);
        self.read_back(&mut members, &mut course);
        if guard.is_some() {
            self.keep_reachable(&members, &mut course)?;
        }
        self.tell_manager(&members, &mut course);
        let each = started.elapsed().as_millis() as u64 / members.len() as u64;
        for (member, progress) in members.into_iter().zip(course) {
            self.conclude(member, progress, each)?;
        }
        // The records become durable with the next intents, or the end of the pass: what they say
        // is so, and should they be lost, the intents tell the next pass to look.
        Ok(())
    }

    /// Writes the intent of everything that the member makes; what merely has to be noted has none.
    fn intend(&mut self, member: &Member<'_>, guard: Option<&str>) -> Result<(), Error> {
        if member.verdict.steps.is_empty() {
            return Ok(());
        }
        for parent in member.parents() {
            self.ledger.began_parent(member, &parent)?;
        }
        self.ledger.began(member, guard.filter(|_| member.may_cut()))
    }

    /// Takes each member's steps, as far as they go before the renames.
    fn stage(&mut self, members: &[Member<'_>]) -> Vec<Progress> {
        let mut course: Vec<Progress> = Vec::with_capacity(members.len());
        let mut failed = false;
        for member in members {
            if failed && self.stops_at_failure {
                course.push(Progress::Withdrawn(0));
                continue;
            }
            let limit = member.turn.declared().timeout;
            let doing = member.object.name();
            let steps = &member.verdict.steps;
            if steps.iter().any(is_slow) {
                self.options.watch.progress(self.done, self.all, doing);
            }
            let mut staged = Vec::with_capacity(steps.len());
            let trouble = steps.iter().find_map(|step| match self.machine.stage(step, limit) {
                Ok(one) => {
                    staged.push(one);
                    None
                }
                Err(trouble) => Some((trouble, !matches!(step, Step::Place(_)))),
            });
            let mut progress = Progress::Going(staged);
            if let Some((trouble, by_half)) = trouble {
                let taken = progress.taken() + usize::from(by_half);
                progress = Progress::Failed(Stage::Step, trouble, taken);
                failed = true;
            }
            course.push(progress);
        }
        course
    }

    /// Where the disk refuses, nothing of the group counts as done.
    fn make_durable(&mut self, course: &mut [Progress], which: fn(&Staged) -> bool) {
        let staged = course.iter().filter_map(|progress| match progress {
            Progress::Going(staged) => Some(staged),
            _ => None,
        });
        let staged = staged.flatten().filter(|staged| which(staged));
        let Err(trouble) = self.machine.sync(staged) else { return };
        for progress in course.iter_mut().filter(|it| matches!(it, Progress::Going(_))) {
            progress.fail(Stage::Step, trouble.clone());
        }
    }

    fn commit(&mut self, members: &[Member<'_>], course: &mut [Progress]) {
        let mut failed = false;
        for (_, progress) in members.iter().zip(course) {
            match progress {
                Progress::Going(_) if failed && self.stops_at_failure => {
                    *progress = Progress::Withdrawn(progress.taken());
                }
                Progress::Going(staged) => {
                    let renamed = staged.iter_mut().try_for_each(|it| self.machine.commit(it));
                    if let Err(trouble) = renamed {
                        progress.fail(Stage::Step, trouble);
                    }
                }
                Progress::Failed(..) | Progress::Withdrawn(_) => {}
            }
            failed |= matches!(progress, Progress::Failed(..));
        }
    }

    /// Setting a value is not evidence that it took: each member is judged anew. What the store is
    /// to keep may have come to be only with the steps.
    fn read_back(&mut self, members: &mut [Member<'_>], course: &mut [Progress]) {
        for (member, progress) in members.iter_mut().zip(course) {
            if member.verdict.steps.is_empty() || !matches!(progress, Progress::Going(_)) {
                continue;
            }
            let refreshed = member.verdict.refreshes;
            let trouble = match self.look_after(member.turn, &member.object, refreshed) {
                Ok(verdict) if verdict.steps.is_empty() => {
                    member.verdict.before = verdict.before.or(member.verdict.before.take());
                    self.saw(member.turn);
                    continue;
                }
                Ok(verdict) => {
                    Trouble::unread(format!("read back {}", member.object.name()), &verdict.detail)
                }
                Err(trouble) => trouble,
            };
            progress.fail(Stage::ReadBack, trouble);
        }
    }

    /// Whatever became of a step, the way must be open after it.
    fn keep_reachable(
        &mut self,
        members: &[Member<'_>],
        course: &mut [Progress],
    ) -> Result<(), Error> {
        for (member, progress) in members.iter().zip(course).filter(|(it, _)| it.may_cut()) {
            if let Some(trouble) = self.keep_way(member)? {
                progress.fail(Stage::Guard, trouble);
            }
        }
        Ok(())
    }

    /// Nothing has changed since the turn's resource was looked at, and found as declared.
    fn saw(&mut self, turn: Turn<'_>) {
        let (source, seen) = &mut self.seen;
        if *source != turn.source {
            (*source, *seen) = (turn.source, Vec::new());
        }
        // What is held in an earlier form is another thing than what is declared now.
        let declared = turn.answers.filter(|&answers| answers == turn.position);
        seen.extend(declared);
    }

    /// Has the service manager read its units again where a part of one is new, before that is
    /// recorded: it does not notice itself when a unit gets its first drop-in (systemd 252).
    fn tell_manager(&mut self, members: &[Member<'_>], course: &mut [Progress]) {
        let is_news = |(member, progress): (&Member<'_>, &Progress)| {
            let differs = !member.verdict.steps.is_empty() || member.outcome != Outcome::Unchanged;
            differs && is_of_unit(&member.object) && matches!(progress, Progress::Going(_))
        };
        let news: Vec<bool> = members.iter().zip(&*course).map(is_news).collect();
        if !news.contains(&true) {
            return;
        }
        let Err(trouble) = self.reload_manager() else { return };
        for (_, progress) in news.iter().zip(course).filter(|(is_news, _)| **is_news) {
            progress.fail(Stage::Step, trouble.clone());
        }
    }

    /// Has the service manager of this machine, if there is one, read its units again.
    pub(super) fn reload_manager(&mut self) -> Result<(), Trouble> {
        match self.machine.is_host() {
            true => self.machine.take(&Step::ReloadManager, RELOADING),
            false => Ok(()),
        }
    }

    /// Records how a member ended, and says so.
    fn conclude(
        &mut self,
        member: Member<'_>,
        progress: Progress,
        took_ms: u64,
    ) -> Result<(), Error> {
        // What a guard undid it has taken back itself.
        if !matches!(progress, Progress::Going(_) | Progress::Failed(Stage::Guard, ..)) {
            self.withdraw(&member, progress.taken())?;
        }
        match progress {
            Progress::Going(_) => {
                for parent in member.parents() {
                    self.ledger.applied_parent(&member, &parent)?;
                }
                self.ledger.applied(&member)?;
                let Member { turn, outcome, verdict, diff, .. } = member;
                let detail = match verdict.steps.is_empty() {
                    true => super::turn::noted(outcome),
                    false => verdict.detail,
                };
                self.line(turn, outcome, took_ms, detail, diff);
            }
            Progress::Failed(stage, trouble, _) => {
                self.fail(member.turn, &member.object, stage, trouble)?;
            }
            Progress::Withdrawn(_) => {
                self.line(member.turn, Outcome::NotReached, 0, String::new(), None);
            }
        }
        Ok(())
    }

    /// Takes an intent back as far as nothing came of it: what its steps did not put in place, or
    /// what is not there, was not made, and must not be taken for ours whoever puts it there. What
    /// a step did, or may have done by half, stays intended.
    fn withdraw(&mut self, member: &Member<'_>, taken: usize) -> Result<(), Error> {
        let taken: Vec<&RootPath> =
            member.verdict.steps[..taken].iter().filter_map(at_path).collect();
        for parent in member.parents() {
            if !taken.contains(&&parent) || self.is_there(&parent) == Some(false) {
                self.ledger.withdrawn(member, &Object::at(&parent))?;
            }
        }
        let Some(path) = path_of(&member.object) else {
            // What an interrupted run may have left is still that run's, though it is not there.
            let cut = |step: &Step| matches!(step, Step::Install(it) if it.begun.is_some());
            // Whether a command did anything cannot be seen from outside.
            let unseen = |step: &Step| matches!(step, Step::Run(_)) || cut(step);
            if member.verdict.existed || member.verdict.steps.iter().any(unseen) {
                return Ok(());
            }
            return match self.look(member.turn, &member.object) {
                Ok(verdict) if !verdict.existed => self.ledger.withdrawn(member, &member.object),
                _ => Ok(()),
            };
        };
        let untouched = !taken.contains(&&path) && !self.made_before(member);
        if untouched || self.is_there(&path) == Some(false) {
            self.ledger.withdrawn(member, &member.object)?;
        }
        Ok(())
    }

    /// What the member found was made by a pass that was interrupted: its intent is all that says
    /// that it is ours.
    fn made_before(&self, member: &Member<'_>) -> bool {
        let owned = self.ledger.state().get(member.object.as_str());
        let by_intent = owned.filter(|it| it.form.is_none());
        member.verdict.existed && by_intent.is_some_and(|it| it.standing == Standing::Created)
    }
}

impl Member<'_> {
    /// Its steps can cut the way to this machine.
    fn may_cut(&self) -> bool {
        !self.verdict.steps.is_empty() && may_cut(self.turn.declared().resource.kind())
    }

    /// The missing parents that are made with it.
    fn parents(&self) -> Vec<RootPath> {
        let steps = self.verdict.steps.iter().filter_map(places);
        steps.filter(|path| path.as_str() != self.object.name()).cloned().collect()
    }
}

/// What the service manager reads: a unit, or a part of one.
pub(super) fn is_of_unit(object: &Object) -> bool {
    object.space() == "path" && Own::is_unit_file(object.name())
}

/// The path that an object is at.
pub(super) fn path_of(object: &Object) -> Option<RootPath> {
    (object.space() == "path").then(|| RootPath::parse(object.name()).ok()).flatten()
}

/// The path that a step changes.
fn at_path<'a>(step: &Step<'a>) -> Option<&'a RootPath> {
    match step {
        Step::Access { path, .. } => Some(path),
        _ => places(step),
    }
}

/// The step may take longer than a person likes to wait without a word.
fn is_slow(step: &Step) -> bool {
    match step {
        Step::Run(_)
        | Step::Install(_)
        | Step::Unit { .. }
        | Step::Container { .. }
        | Step::Network { .. } => true,
        Step::Place(place) => matches!(place.make, Make::Fetched { .. }),
        _ => false,
    }
}
