//! What was found of a container, compared with what is declared of it. Pure.

use std::time::Duration;

use super::{Container, KIND};
use crate::declaration::fault::quoted;
use crate::resource::parting::{Ends, Farewell, Leaving, Undo};
use crate::resource::{Answer, Due, Object, Past, Question, Step, Trouble, Verdict, ABSENT};
use crate::tool::docker::{self, Health, Status};

/// What the engine knows of a container.
#[derive(Debug)]
pub struct ContainerAnswer {
    /// What has its name.
    pub named: Whose,
    /// What has the name that a replacement is made under.
    pub beside: Whose,
    /// What has the name that the replaced one waits under until the other lasts.
    pub aside: Whose,
    /// Which other containers offer ports of the machine that it should offer, and which those are.
    pub holders: Vec<(String, Box<str>)>,
}

/// A container that has one of the names.
#[derive(Debug)]
pub enum Whose {
    /// There is none.
    Nobodys,
    /// It is not of the host's making.
    Foreign,
    /// It is.
    Ours(Box<Found>),
}

/// A container of the host's own.
#[derive(Debug)]
pub struct Found {
    /// What the engine says of it.
    pub told: docker::Container,
    /// It was made from what is declared now.
    pub is_as_declared: bool,
    /// It ended by itself a moment ago, and was started again: it may be about to end once more.
    pub is_back: bool,
    /// Of the places that it sees, those that are another thing by now.
    pub lost: Vec<Lost>,
}

/// A place of the machine that a container saw when it started.
#[derive(Debug)]
pub struct Lost {
    /// Where.
    pub source: Box<str>,
    /// A new one is there in its place.
    pub is_back: bool,
}

/// One thing done to a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act<'a> {
    /// Have its image here.
    Pull,
    /// Make it, in place of the one that there may be, which runs again if the new one does not.
    Replace,
    /// Start it, and see that it lasts.
    Start,
    /// Let it go on.
    Unpause,
    /// Start it anew, and see that it lasts.
    Restart,
    /// See that it is well.
    Settle,
    /// Have the engine start it again as declared.
    Policy,
    /// Have it join this network.
    Connect(&'a str),
    /// Have it leave this network.
    Disconnect(Box<str>),
    /// Stop and remove it.
    Remove,
}

impl Whose {
    fn ours(&self) -> Option<&Found> {
        match self {
            Whose::Ours(found) => Some(found),
            _ => None,
        }
    }
}

impl Container {
    pub(super) fn compare(&self, answer: &Answer, past: &Past<'_>) -> Result<Verdict<'_>, Trouble> {
        let answer = match answer {
            Answer::Container(answer) => answer,
            Answer::NotApplicable(why) => return Ok(Verdict::not_applicable(why)),
            other => return Err(other.mismatch()),
        };
        if matches!(answer.named, Whose::Foreign) {
            let cause = "a container of that name is there that is not of the host's making, and \
                         is never touched: remove or rename it";
            return Err(self.trouble("look at", cause));
        }
        let existed = answer.named.ours().or(answer.aside.ours()).is_some();
        let verdict = match self.replaced_for(answer, past) {
            Some(why) => Verdict {
                steps: vec![self.step(Act::Pull), self.step(Act::Replace)],
                detail: why,
                refreshes: Due::Restart,
                ..Verdict::default()
            },
            None => match answer.named.ours() {
                Some(found) => self.mended(found, past)?,
                None => Verdict::default(),
            },
        };
        let starts = verdict.refreshes == Due::Restart;
        if let Some((port, holder)) = answer.holders.first().filter(|_| starts) {
            let cause = format!("{port} is held by the container {holder}");
            let in_the_way = Some(Object::new("container", holder));
            return Err(Trouble { in_the_way, ..self.trouble("start", &cause) });
        }
        Ok(Verdict { existed, ..verdict })
    }

    /// Why it has to be made anew, if it has to.
    fn replaced_for(&self, answer: &ContainerAnswer, past: &Past<'_>) -> Option<String> {
        let Some(found) = answer.named.ours() else {
            return Some(match answer.aside.ours() {
                Some(_) => UNFINISHED.into(),
                None => ABSENT.into(),
            });
        };
        let told = &found.told;
        if !found.is_as_declared {
            return Some("it was made from another declaration".into());
        }
        if answer.beside.ours().or(answer.aside.ours()).is_some() {
            return Some(UNFINISHED.into());
        }
        if told.status == Status::Going {
            return Some("its removal was begun".into());
        }
        let (memory, cpus) = (self.memory_bytes.unwrap_or(0), self.nano_cpus.unwrap_or(0));
        if told.memory_bytes != memory {
            return Some(format!("it is limited to {} bytes of memory", told.memory_bytes));
        }
        if told.nano_cpus != cpus {
            let cpus = told.nano_cpus as f64 / 1e9;
            return Some(format!("it is limited to {cpus} processors"));
        }
        if told.otherwise_limited {
            return Some("it has limits that are not declared".into());
        }
        let starts = past.due == Due::Restart || told.status != Status::Running;
        // It holds the other by its id, which may be gone.
        (self.leans_on_another() && starts).then(|| match told.status {
            Status::Running => DUE.into(),
            _ => format!("it does not run, {}", told.ended),
        })
    }

    /// What makes this one as it should be.
    fn mended(&self, found: &Found, past: &Past<'_>) -> Result<Verdict<'_>, Trouble> {
        let told = &found.told;
        if let Some(lost) = found.lost.iter().find(|lost| !lost.is_back) {
            let cause = format!("{}, which it mounts, is not there", quoted(&lost.source));
            return Err(self.trouble("look at", &cause));
        }
        let mut acts = Vec::new();
        let mut differs = Vec::new();
        if *told.restart != *self.restart() {
            acts.push(Act::Policy);
            differs.push(format!("its restart policy is {}", told.restart));
        }
        let joins = self.joins();
        for name in joins.iter().flatten() {
            if !told.networks.iter().any(|joined| **joined == **name) {
                acts.push(Act::Connect(name));
                differs.push(format!("it is not in the network {name}"));
            }
        }
        for joined in &told.networks {
            if joins.as_ref().is_some_and(|joins| !joins.contains(&&**joined)) {
                acts.push(Act::Disconnect(joined.clone()));
                differs.push(format!("it is in the network {}", quoted(joined)));
            }
        }
        let is_due = past.due == Due::Restart;
        let stale = found.lost.first();
        let waits = self.wait_healthy_s.is_some() && told.health != Some(Health::Healthy);
        let mut refreshes = Due::Restart;
        match told.status {
            Status::Created => {
                acts.push(Act::Start);
                differs.push("it was never started".into());
            }
            Status::Exited | Status::Going => {
                acts.push(Act::Start);
                differs.push(format!("it does not run, {}", told.ended));
            }
            Status::Running | Status::Paused | Status::Restarting if is_due => {
                acts.push(Act::Restart);
                differs.push(DUE.into());
            }
            Status::Running | Status::Paused if stale.is_some() => {
                acts.push(Act::Restart);
                let source = stale.map_or("", |lost| &lost.source);
                differs.push(format!("it still sees {} as it was before", quoted(source)));
            }
            Status::Paused => {
                refreshes = Due::Nothing;
                acts.push(Act::Unpause);
                differs.push("it is paused".into());
            }
            Status::Restarting => {
                refreshes = Due::Nothing;
                acts.push(Act::Settle);
                let again = told.restarts;
                differs.push(format!("it keeps ending, {}, {again} times so far", told.ended));
            }
            Status::Running => {
                refreshes = Due::Nothing;
                if waits {
                    acts.push(Act::Settle);
                    differs.push(format!("it is not healthy, but {}", state(told.health)));
                } else if found.is_back {
                    acts.push(Act::Settle);
                    differs
                        .push(format!("it was just started again, {} times so far", told.restarts));
                }
            }
        }
        Ok(Verdict {
            steps: acts.into_iter().map(|act| self.step(act)).collect(),
            detail: differs.join(", "),
            refreshes,
            ..Verdict::default()
        })
    }

    fn step<'a>(&'a self, act: Act<'a>) -> Step<'a> {
        Step::Container { name: &self.name, declared: Some(self), act }
    }

    fn trouble(&self, verb: &str, cause: &str) -> Trouble {
        Trouble::new(format!("{verb} container {}", self.name), cause)
    }
}

const UNFINISHED: &str = "its replacement was begun and not finished";
const DUE: &str = "a restart is due, since what it follows changed";

fn state(health: Option<Health>) -> &'static str {
    match health {
        None => "has no health check",
        Some(Health::Starting) => "starting",
        Some(Health::Healthy) => "healthy",
        Some(Health::Unhealthy) => "unhealthy",
    }
}

/// A container that leaves is removed if it is still the one that the host made. Volumes and images
/// stay.
pub struct Remove;

impl Undo for Remove {
    fn announces(&self, it: &Leaving<'_>) -> Option<String> {
        Some(format!("remove container {}", it.name))
    }

    // It may take its time to stop.
    fn limit(&self) -> Duration {
        Duration::from_secs(KIND.default_timeout_s.into())
    }

    fn question<'a>(&self, it: &Leaving<'a>) -> Question<'a> {
        Question::Container { name: it.name, declared: None }
    }

    fn judge<'a>(&self, it: &Leaving<'a>, answer: &Answer) -> Result<Farewell<'a>, Trouble> {
        let answer = match answer {
            Answer::Container(answer) => answer,
            Answer::NotApplicable(why) => return Ok(Farewell::ended(Ends::Left, why)),
            other => return Err(other.mismatch()),
        };
        let all = [&answer.named, &answer.beside, &answer.aside];
        if all.iter().any(|whose| whose.ours().is_some()) {
            let step = Step::Container { name: it.name, declared: None, act: Act::Remove };
            return Ok(Farewell {
                steps: vec![step],
                ..Farewell::ended(Ends::Removed, "it is there")
            });
        }
        Ok(match answer.named {
            Whose::Foreign => {
                Farewell::ended(Ends::Left, "it is another than the one that the host made")
            }
            _ => Farewell::ended(Ends::Removed, ""),
        })
    }
}
