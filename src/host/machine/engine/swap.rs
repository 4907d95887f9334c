//! Replacing a container: the new one is made beside the old, which stands aside until the new one
//! lasts, and runs again if it does not.
//!
//! Which names are taken tells how far an interrupted replacement came, and the next goes on from
//! there:
//!
//! | NAME | beside | aside | so far |
//! |---|---|---|---|
//! | old | | | nothing, or the old one is quieted |
//! | old | new | | made, and the old one is quieted or not |
//! | | new | old | the old one stands aside |
//! | new | | old | the new one is in place, and whether it lasts is not known |
//!
//! Before the old one is stopped, it loses its restart policy: a restart of the engine would have
//! both run on one volume. What it was is in its label.

use super::super::clock::Deadline;
use super::act::{restart, NO_KEY};
use super::{Engine, Names};
use crate::resource::container::{Container, Found, Whose};
use crate::tool::docker::{self, Status};

impl Engine {
    /// Makes the container `it`, in place of the one that there may be.
    pub(super) fn replace(&mut self, it: &Container, until: Deadline) -> Result<(), String> {
        self.expect_container(&it.name);
        self.forget();
        self.look(until.left())?;
        let names = Names::of(&it.name);
        if let Some(beside) = self.ours(&names.beside, it)? {
            self.discard(&beside.told, until)?;
        }
        let (named, aside) = (self.ours(&names.named, it)?, self.ours(&names.aside, it)?);
        let (new, old) = match (named, aside) {
            (Some(new), Some(old)) if new.is_as_declared => (new.told.id.into(), Some(old.told)),
            (named, aside) => {
                let old = self.one_before(&names, named, aside, until)?;
                let new = self.create(it, &names.beside, until)?;
                if let Some(old) = &old {
                    self.put_aside(old, &names, until).map_err(|why| {
                        format!("{why}{}", self.run_again(it, old, &names, until))
                    })?;
                }
                self.rename(&new, &names.named, until)?;
                (new, old)
            }
        };
        let started = self.run(&["docker", "start", "--", &new], until);
        match (started.and_then(|()| self.watch(it, &new, Some(0), until)), old) {
            (Ok(()), Some(old)) => self.discard(&self.details(&old.id, until)?, until),
            (lasts, None) => lasts,
            (Err(why), Some(old)) => {
                let gone = self.details(&new, until).and_then(|new| self.discard(&new, until));
                let after = match gone {
                    Ok(()) => self.run_again(it, &old, &names, until),
                    Err(why) => format!("; nor could it be removed: {why}"),
                };
                Err(format!("{why}{after}"))
            }
        }
    }

    /// The container of this name, which must be the host's.
    fn ours(&self, name: &str, it: &Container) -> Result<Option<Box<Found>>, String> {
        match self.whose(name, &it.name, Some(it)) {
            Whose::Ours(found) => Ok(Some(found)),
            Whose::Nobodys => Ok(None),
            Whose::Foreign => Err(format!(
                "the container {name} is in the way and not of the host's making: remove or rename \
                 it"
            )),
        }
    }

    /// The one to fall back on, under its own name again; what came after it and was never seen to
    /// last goes.
    fn one_before(
        &self,
        names: &Names,
        named: Option<Box<Found>>,
        aside: Option<Box<Found>>,
        until: Deadline,
    ) -> Result<Option<docker::Container>, String> {
        let Some(old) = aside else {
            let named = named.map(|named| named.told);
            return match named {
                // Nothing can be done with it any more but to end its removal.
                Some(named) if named.status == Status::Going => {
                    self.discard(&named, until).map(|()| None)
                }
                named => Ok(named),
            };
        };
        if let Some(unproven) = named {
            self.discard(&unproven.told, until)?;
        }
        self.rename(&old.told.id, &names.named, until)?;
        Ok(Some(old.told))
    }

    /// Makes it under this name, in all its networks, and does not start it; its id.
    fn create(&self, it: &Container, name: &str, until: Deadline) -> Result<String, String> {
        let form = self.form(it);
        let mark = self.container_mark(&it.name, &it.image, &form).ok_or(NO_KEY)?;
        let labels =
            [(docker::FORM, &*form), (docker::MARK, &mark), (docker::RESTART, it.restart())];
        let argv = docker::create(it, name, &labels);
        let argv: Vec<&str> = argv.iter().map(|it| &**it).collect();
        let secrets: Vec<(&str, &str)> = it.secret_env.pairs().collect();
        let said = self.docker.run_with(&argv, &secrets, until.left());
        let said = said.map_err(|failure| failure.cause)?;
        let id = said.lines().last().unwrap_or_default().trim().to_string();
        for network in it.networks.iter().skip(1) {
            self.run(&["docker", "network", "connect", "--", network, &id], until)?;
        }
        Ok(id)
    }

    fn put_aside(
        &self,
        old: &docker::Container,
        names: &Names,
        until: Deadline,
    ) -> Result<(), String> {
        self.run(&["docker", "update", &restart("no"), "--", &old.id], until)?;
        self.unpause(old, until)?;
        self.run(&["docker", "stop", "--", &old.id], until)?;
        self.rename(&old.id, &names.aside, until)
    }

    /// Has the old one run again, under its name and policy; what to say of it.
    fn run_again(
        &self,
        it: &Container,
        old: &docker::Container,
        names: &Names,
        until: Deadline,
    ) -> String {
        let policy = old.labels.get(docker::RESTART).map_or(it.restart(), |policy| policy);
        let runs = self
            .details(&old.id, until)
            .and_then(|now| match *now.name == *names.named {
                true => Ok(()),
                false => self.rename(&old.id, &names.named, until),
            })
            .and_then(|()| self.run(&["docker", "update", &restart(policy), "--", &old.id], until))
            .and_then(|()| self.run(&["docker", "start", "--", &old.id], until));
        match runs {
            Ok(()) => "; the one before it runs again".into(),
            Err(why) => format!("; the one before it does not run again: {why}"),
        }
    }

    fn rename(&self, id: &str, name: &str, until: Deadline) -> Result<(), String> {
        self.run(&["docker", "rename", "--", id, name], until)
    }
}
