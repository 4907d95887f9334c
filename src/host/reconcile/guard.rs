//! The way back: a change of the packet filter or of an overlay can cut the way that would carry
//! its correction.
//!
//! What must stay reachable, and is before the first such change, must be after each of them. The
//! intent names it, so that a change is never without its guard: where the way is closed once the
//! change has been made, or the host died before it could see to that, what was there before is put
//! back. That is as it was found, or after such a death the form that the store holds, or nothing
//! where the host had made it. The apply then fails, and the declaration is quarantined: it is not
//! tried again but by a person, and what it replaced is held.
//!
//! Each change is guarded by itself, so the order of a declaration decides what is reachable
//! meanwhile.

use std::net::SocketAddr;
use std::time::Duration;

use super::group::Member;
use super::release::{Gone, Parted};
use super::turn::Turn;
use super::{Pass, Work};
use crate::error::{Error, Stage};
use crate::machine;
use crate::report::{Outcome, Trigger};
use crate::resource::parting::{parting, Parting};
use crate::resource::{Object, Trouble};
use crate::store::{Guarded, Hex, Source};
use crate::when::When;

/// How long the way may take to be open, before a change, after it, and once that is undone.
const LIMIT: Duration = Duration::from_secs(10);

/// What must stay reachable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Way {
    /// What a person calls it.
    name: Box<str>,
    /// Looked up once: a change that cuts the way may cut the one to a name server too.
    addresses: Vec<SocketAddr>,
}

/// The way of a pass, and whether it has been seen to be open.
pub(super) struct Watched {
    way: Way,
    is_open: bool,
}

impl Way {
    /// The way to `HOST:PORT`.
    ///
    /// # Errors
    /// It has no address.
    pub fn to(text: &str) -> Result<Way, Error> {
        let failed = |cause| {
            let doing = format!("look up {}", crate::declaration::fault::quoted(text));
            Error::failed(Stage::Guard, doing, cause)
        };
        Ok(Way { name: text.into(), addresses: machine::addresses(text).map_err(failed)? })
    }

    /// As an intent names it.
    fn written(&self) -> String {
        let addresses = self.addresses.iter().map(|address| format!(" {address}"));
        self.name.to_string() + &addresses.collect::<String>()
    }

    fn read(text: &str) -> Way {
        let mut words = text.split(' ');
        let name = words.next().unwrap_or_default().into();
        Way { name, addresses: words.filter_map(|word| word.parse().ok()).collect() }
    }
}

impl Watched {
    pub(super) fn new(way: Way) -> Watched {
        Watched { way, is_open: false }
    }
}

impl Pass<'_> {
    /// What guards a change that is about to be made: the way, if there is one that is open.
    pub(super) fn arm(&mut self) -> Option<String> {
        let Watched { way, is_open } = self.watched.as_ref()?;
        if !is_open {
            let name = way.name.clone();
            self.options.watch.progress(self.done, self.all, &format!("reaching {name}"));
            if let Err(cause) = machine::reach(&way.addresses, LIMIT) {
                let said = format!("{name} is not watched, since it cannot be reached: {cause}");
                self.options.watch.notice(&said);
                self.watched = None;
                return None;
            }
        }
        let watched = self.watched.as_mut()?;
        watched.is_open = true;
        Some(watched.way.written())
    }

    /// Before a guarded change: keeps what is there, where it can be put back as it was found.
    pub(super) fn note_found(&mut self, object: &Object) {
        if object.space() == "packet_filter" {
            let text = self.machine.table_text(object.name(), LIMIT);
            self.found.insert(object.clone(), text.map(Into::into));
        }
    }

    /// Once a member has been changed, or half: where that closed the way, the change is undone.
    pub(super) fn keep_way(&mut self, member: &Member<'_>) -> Result<Option<Trouble>, Error> {
        let turn = member.turn;
        let declared_by = Hex(turn.declaration.sha256).short();
        self.keep(&member.object, turn.source, &turn.declared().id, declared_by)
    }

    /// The same of what was let go of.
    pub(super) fn keep_way_without(&mut self, source: Source, it: &Parted) -> Result<Gone, Error> {
        let accepted = self.ledger.state().accepted(source).map(|it| Hex(it.sha256).short());
        let trouble = self.keep(&it.object, source, &it.id, accepted.unwrap_or(Hex([0; 8])))?;
        Ok(trouble.map_or(Gone::As(Outcome::Removed, String::new()), Gone::Not))
    }

    fn keep(
        &mut self,
        object: &Object,
        source: Source,
        id: &str,
        declared_by: Hex<8>,
    ) -> Result<Option<Trouble>, Error> {
        let Some(Watched { way, is_open: true }) = &self.watched else { return Ok(None) };
        let way = way.clone();
        self.options.watch.progress(self.done, self.all, &format!("reaching {}", way.name));
        match machine::reach(&way.addresses, LIMIT) {
            Ok(()) => Ok(None),
            Err(cause) => {
                let cut = Cut { object, source, id, declared_by, way, cause };
                self.undo_cut(cut).map(|(trouble, _)| Some(trouble))
            }
        }
    }

    /// Finishes what a host that died has left guarded. Where the way is closed, what was before is
    /// put back. Where it is open, the guard stays, as long as the object has not had its turn or
    /// been released: a boot may have taken the change away, and this pass would make it again.
    pub(super) fn finish_guards(&mut self) -> Result<(), Error> {
        let guarded: Vec<(Object, Guarded)> = self
            .ledger
            .state()
            .guarded()
            .filter_map(|(object, it)| Some((Object::from_journal(object)?, it.clone())))
            .collect();
        for (object, Guarded { way, declared_by }) in guarded {
            let way = Way::read(&way);
            let Err(cause) = machine::reach(&way.addresses, LIMIT) else {
                self.watched.get_or_insert(Watched { way, is_open: true });
                continue;
            };
            let Some(owned) = self.ledger.state().get(object.as_str()) else { continue };
            let (source, id) = (owned.source, owned.id.to_string());
            let declared_by = declared_by.unwrap_or(Hex([0; 8]));
            let cut = Cut { object: &object, source, id: &id, declared_by, way, cause };
            let (trouble, is_quarantined) = self.undo_cut(cut)?;
            match is_quarantined {
                true => {
                    self.tripped.push(source);
                    self.ledger.failed(source, &object, &id, Stage::Guard, &trouble)?;
                    self.failure(Stage::Guard, Some(id.into()), trouble);
                }
                // Of a declaration that another has replaced since.
                false => self.options.watch.notice(&trouble.to_string()),
            }
        }
        Ok(())
    }

    /// Why the declaration at hand is not to be tried.
    pub(super) fn quarantined(&self, work: &Work<'_>) -> Option<Trouble> {
        let it = self.ledger.state().quarantined(work.source)?;
        let is_asked = self.options.trigger == Trigger::Command;
        let is_tried = is_asked && !self.tripped.contains(&work.source);
        if it.sha256 != work.declaration.sha256 || is_tried || self.ledger.is_dry() {
            return None;
        }
        let serial = work.declaration.serial.map_or(String::new(), |it| format!(", serial {it}"));
        let doing = format!("apply what {} declares{serial}", work.source);
        let cause = format!(
            "it is quarantined since {}, and what it replaced is held until another is declared, \
             or a person runs reconcile: {}",
            When(it.since),
            it.reason
        );
        Some(Trouble::new(doing, cause))
    }

    /// Puts back what was there before a change that closed the way, and quarantines what declares
    /// the change; says what came of it, and whether it did the latter.
    fn undo_cut(&mut self, cut: Cut<'_>) -> Result<(Trouble, bool), Error> {
        let Cut { object, source, id, declared_by, way, cause } = cut;
        let name = &way.name;
        let back = self.put_back(object);
        let mut said = format!("it could not be reached any more once {object} was changed");
        said += &format!(" ({cause})");
        match back {
            Ok(what) => {
                self.ledger.undone(source, id, object)?;
                said += &format!("; {what}, and ");
                said += &match machine::reach(&way.addresses, LIMIT) {
                    Ok(()) => "it can be reached again".to_string(),
                    Err(cause) => format!("it still cannot be reached ({cause})"),
                };
            }
            Err(trouble) => said += &format!("; what was before could not be put back: {trouble}"),
        }
        let trouble = Trouble::new(format!("keep {name} reachable"), said);
        let accepted = self.ledger.state().accepted(source).map(|it| it.sha256);
        let is_of_it = accepted.filter(|sha256| Hex(*sha256).short() == declared_by);
        if let Some(sha256) = is_of_it {
            self.ledger.quarantined(source, sha256, &trouble.cause)?;
        }
        self.ledger.flush()?;
        Ok((trouble, is_of_it.is_some()))
    }

    /// Puts an object back as it was before the change; says what that was. Where it was not there
    /// although the store has a form of it, a boot had taken it: then that form counts.
    fn put_back(&mut self, object: &Object) -> Result<String, Trouble> {
        self.machine.forget();
        let (text, said) = match self.found.get(object).cloned() {
            None => return self.put_back_form(object),
            Some(None) => match self.put_back_form(object) {
                Ok(said) => return Ok(said),
                Err(_) => (None, "it is removed again"),
            },
            Some(Some(text)) => (Some(text), "what was there before is put back"),
        };
        self.machine.restore_table(object.name(), text.as_deref(), LIMIT)?;
        Ok(said.into())
    }

    /// Puts an object back into the form that the store has of it, or removes it.
    fn put_back_form(&mut self, object: &Object) -> Result<String, Trouble> {
        let doing = || format!("put back {object}");
        let unknown = || Trouble::new(doing(), "what it was before is not known");
        let owned = self.ledger.state().get(object.as_str()).ok_or_else(unknown)?;
        let source = owned.source;
        if owned.form.is_none() {
            let it = Parted::of(&owned).ok_or_else(unknown)?;
            let Parting::Undo(undo) = parting(owned.of_type, owned.standing) else {
                return Err(unknown());
            };
            return match self.undo(&it, undo) {
                Gone::As(Outcome::Removed, _) => Ok("it is removed again".into()),
                Gone::Not(trouble) => Err(trouble),
                Gone::As(_, why) => Err(Trouble::new(doing(), why)),
                Gone::Removing(_) => Err(unknown()),
            };
        }
        let held = self.ledger.held(source, &[object], self.options.own);
        let held = held.map_err(|error| Trouble::new(doing(), error))?;
        let Some((_, nth, position)) = held.forms.first() else { return Err(unknown()) };
        let declaration = &held.declarations[*nth];
        let turn = Turn { source, declaration, position: *position, answers: None };
        let verdict = self.look(turn, object)?;
        if verdict.steps.is_empty() {
            let cause = "it is as it was declared before, and how it was then changed by hand is \
                         not known";
            return Err(Trouble::new(doing(), cause));
        }
        let limit = turn.declared().timeout;
        verdict.steps.iter().try_for_each(|step| self.machine.take(step, limit))?;
        match self.look(turn, object)? {
            verdict if verdict.steps.is_empty() => {
                Ok("what was declared of it before is put back".into())
            }
            verdict => Err(Trouble::unread(doing(), &verdict.detail)),
        }
    }
}

/// A change that closed the way.
struct Cut<'c> {
    object: &'c Object,
    source: Source,
    id: &'c str,
    /// The declaration that the change is of.
    declared_by: Hex<8>,
    way: Way,
    /// How it is seen to be closed.
    cause: String,
}
