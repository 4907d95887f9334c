//! One thing done to a container or a network.

use std::time::Duration;

use super::super::clock::{pause, Deadline};
use super::super::root::Root;
use super::run::Failure;
use super::{quoted, Engine, Names, SETTLING};
use crate::resource::container::{Act, Container, Whose};
use crate::resource::container_network::NetworkAct;
use crate::resource::Trouble;
use crate::tool::docker::{self, Health, Status};

/// How often it is looked at meanwhile.
const LOOKS: Duration = Duration::from_millis(200);
/// How long the engine may still take to remove what it has begun to.
const REMOVING: Duration = Duration::from_secs(30);
/// How many lines of a log are told.
const TAIL: &str = "--tail=5";
/// How long reading a log may take.
const PATIENCE: Duration = Duration::from_secs(10);

impl Engine {
    /// Does `act` to the container `name`.
    pub fn act(
        &mut self,
        (name, declared): (&str, Option<&Container>),
        act: &Act<'_>,
        root: &Root,
        limit: Duration,
    ) -> Result<(), Trouble> {
        let until = Deadline::after(limit);
        let verb = match act {
            Act::Pull => "pull the image of",
            Act::Replace => "make",
            Act::Start => "start",
            Act::Unpause => "unpause",
            Act::Restart => "restart",
            Act::Settle => "wait for",
            Act::Policy => "set the restart policy of",
            Act::Connect(_) | Act::Disconnect(_) => "set the networks of",
            Act::Remove => "remove",
        };
        let done = self.docker.refuse_foreign(until.left()).and_then(|()| match (act, declared) {
            (Act::Remove, _) => self.remove(name, until),
            (Act::Pull, Some(it)) => self.pull(it, until),
            (Act::Replace, Some(it)) => {
                refuse_mounts(it, root)?;
                self.replace(it, until)
            }
            (act, Some(it)) => self.mend(it, act, until),
            (_, None) => Err("nothing is declared of it".into()),
        });
        self.forget();
        done.map_err(|cause| Trouble::new(format!("{verb} container {name}"), cause))
    }

    fn mend(&mut self, it: &Container, act: &Act<'_>, until: Deadline) -> Result<(), String> {
        self.forget();
        self.look(until.left())?;
        let Whose::Ours(found) = self.whose(&it.name, &it.name, Some(it)) else {
            return Err("it is gone, or another has its name".into());
        };
        let id = &*found.told.id;
        let run = |argv: &[&str]| self.run(argv, until);
        match act {
            Act::Policy => run(&["docker", "update", &restart(it.restart()), "--", id]),
            Act::Connect(network) => run(&["docker", "network", "connect", "--", network, id]),
            Act::Disconnect(network) => {
                run(&["docker", "network", "disconnect", "--", network, id])
            }
            Act::Unpause => {
                self.unpause(&found.told, until)?;
                self.watch(it, id, None, until)
            }
            Act::Start => run(&["docker", "start", "--", id])
                .and_then(|()| self.watch(it, id, Some(0), until)),
            Act::Restart => {
                self.unpause(&found.told, until)?;
                run(&["docker", "restart", "--", id])
                    .and_then(|()| self.watch(it, id, Some(0), until))
            }
            Act::Settle => self.watch(it, id, None, until),
            Act::Pull | Act::Replace | Act::Remove => Ok(()),
        }
    }

    /// Has its image here; it is pulled only where it is not.
    fn pull(&self, it: &Container, until: Deadline) -> Result<(), String> {
        let asks = ["docker", "image", "inspect", "--format={{.Id}}", "--", &it.image];
        match self.docker.run(&asks, until.left()) {
            Ok(_) => Ok(()),
            Err(Failure { is_missing: true, .. }) if it.image.starts_with("sha256:") => Err(
                "the image is not here, and one without a repository cannot be pulled: load it \
                     first"
                    .into(),
            ),
            Err(Failure { is_missing: true, .. }) => {
                self.run(&["docker", "pull", "--quiet", "--", &it.image], until)
            }
            Err(failure) => Err(failure.cause),
        }
    }

    /// Watches a container that was just started: for as long as one that cannot work takes to end,
    /// or until it is well. It must not be started again more often than `restarts`; where that is
    /// none, it was not started just now: it may be unwell at first, as one is that was held still.
    pub(super) fn watch(
        &self,
        it: &Container,
        id: &str,
        restarts: Option<u32>,
        until: Deadline,
    ) -> Result<(), String> {
        let settled = Deadline::after(SETTLING.min(until.left()));
        let waits_s = it.wait_healthy_s;
        let well_by = waits_s.map(|seconds| Deadline::after(Duration::from_secs(seconds.into())));
        let mut first = restarts;
        loop {
            let seen = self.details(id, until)?;
            let again = seen.restarts > *first.get_or_insert(seen.restarts);
            let why = match (seen.status, well_by, seen.health) {
                (Status::Running, ..) if again => {
                    format!("it ended and was started again, {} times so far", seen.restarts)
                }
                (Status::Running, None, _) if settled.passed() => return Ok(()),
                (Status::Running, Some(_), Some(Health::Healthy)) => return Ok(()),
                (Status::Running, Some(_), None) => {
                    "it is to be waited for until it is healthy, and neither its declaration nor \
                     its image has a health check"
                        .into()
                }
                (Status::Running, Some(by), Some(Health::Unhealthy))
                    if restarts.is_some() || by.passed() =>
                {
                    let probed = scrubbed(it, seen.probed.trim());
                    format!("it is unhealthy, and its health check says {}", quoted(&probed))
                }
                (Status::Running, Some(by), _) if by.passed() => {
                    format!("it is not healthy after {} s", waits_s.unwrap_or_default())
                }
                (Status::Running, ..) if until.passed() => "it takes too long".into(),
                (Status::Running, ..) => {
                    pause(LOOKS);
                    continue;
                }
                (Status::Paused, ..) => "somebody paused it".into(),
                _ => {
                    let ended = scrubbed(it, &seen.ended);
                    let ended = String::from_utf8_lossy(&ended);
                    format!(
                        "it ended right after its start, {}",
                        crate::declaration::fault::quoted(&ended)
                    )
                }
            };
            return Err(format!("{why}{}", self.story(it, id)));
        }
    }

    /// The last lines of a container's log.
    fn story(&self, it: &Container, id: &str) -> String {
        let Ok((out, err)) = self.docker.both(&["docker", "logs", TAIL, "--", id], &[], PATIENCE)
        else {
            return String::new();
        };
        let text = scrubbed(it, &format!("{out}{err}"));
        let lines = text.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
        let lines: Vec<String> = lines.filter(|line| !line.is_empty()).map(quoted).collect();
        match lines.is_empty() {
            true => "; its log is empty".into(),
            false => format!("; its log ends {}", lines.join(", ")),
        }
    }

    /// Stops and removes everything of the container `name` that is the host's.
    fn remove(&mut self, name: &str, until: Deadline) -> Result<(), String> {
        self.expect_container(name);
        self.forget();
        self.look(until.left())?;
        for one in Names::of(name).all() {
            if let Whose::Ours(found) = self.whose(one, name, None) {
                self.discard(&found.told, until)?;
            }
        }
        Ok(())
    }

    /// Stops and removes a container, but not its volumes.
    pub(super) fn discard(&self, it: &docker::Container, until: Deadline) -> Result<(), String> {
        self.unpause(it, until)?;
        if matches!(it.status, Status::Running | Status::Paused | Status::Restarting) {
            self.run(&["docker", "stop", "--", &it.id], until)?;
        }
        let force = (it.status == Status::Going).then_some("--force");
        let argv: Vec<&str> =
            ["docker", "rm"].into_iter().chain(force).chain(["--", &it.id]).collect();
        match self.docker.run(&argv, until.left()) {
            Ok(_) | Err(Failure { is_missing: true, .. }) => Ok(()),
            Err(failure) if failure.cause.contains("already in progress") => {
                self.await_gone(&it.id)
            }
            Err(failure) => Err(failure.cause),
        }
    }

    fn await_gone(&self, id: &str) -> Result<(), String> {
        let until = Deadline::after(REMOVING);
        while !until.passed() {
            match self.docker.run(&docker::inspect([id]), until.left()) {
                Err(Failure { is_missing: true, .. }) => return Ok(()),
                Err(failure) => return Err(failure.cause),
                Ok(_) => pause(LOOKS),
            }
        }
        Err("its removal has been begun and does not end".into())
    }

    /// One that is held still can be neither stopped nor restarted.
    pub(super) fn unpause(&self, it: &docker::Container, until: Deadline) -> Result<(), String> {
        match it.status {
            Status::Paused => self.run(&["docker", "unpause", "--", &it.id], until),
            _ => Ok(()),
        }
    }

    /// What the engine tells of the container of this id.
    pub(super) fn details(&self, id: &str, until: Deadline) -> Result<docker::Container, String> {
        let told = self.docker.run(&docker::inspect([id]), until.left());
        let mut told = docker::inspected(&told.map_err(|failure| failure.cause)?)?;
        told.containers.remove(id).ok_or_else(|| "docker inspect told of another thing".into())
    }

    /// Runs a command of which nothing is wanted but that it succeeds.
    pub(super) fn run(&self, argv: &[&str], until: Deadline) -> Result<(), String> {
        self.docker.run(argv, until.left()).map(drop).map_err(|failure| failure.cause)
    }

    /// Does `act` to the network `name`.
    pub fn act_on_network(
        &mut self,
        name: &str,
        act: &NetworkAct<'_>,
        limit: Duration,
    ) -> Result<(), Trouble> {
        let until = Deadline::after(limit);
        let (verb, done) = match act {
            NetworkAct::Create(it) => {
                let done = self.docker.refuse_foreign(until.left());
                ("make", done.and_then(|()| self.create_network(it, until)))
            }
            NetworkAct::Remove => ("remove", self.remove_network(name, until)),
            NetworkAct::Replace(it, members) => {
                let replaced = members
                    .iter()
                    .try_for_each(|member| {
                        let argv =
                            ["docker", "network", "disconnect", "--force", "--", name, member];
                        self.run(&argv, until)
                    })
                    .and_then(|()| self.remove_network(name, until))
                    .and_then(|()| self.create_network(it, until))
                    .and_then(|()| {
                        members.iter().try_for_each(|member| {
                            self.run(&["docker", "network", "connect", "--", name, member], until)
                        })
                    });
                ("make anew", replaced)
            }
        };
        self.forget();
        done.map_err(|cause| Trouble::new(format!("{verb} container network {name}"), cause))
    }

    fn create_network(
        &self,
        it: &crate::resource::container_network::ContainerNetwork,
        until: Deadline,
    ) -> Result<(), String> {
        let mark = self.network_mark(&it.name).ok_or(NO_KEY)?;
        let argv = docker::create_network(it, &mark);
        self.run(&argv.iter().map(|it| &**it).collect::<Vec<_>>(), until)
    }

    /// By its id: a name that is gone may be the beginning of another's.
    fn remove_network(&mut self, name: &str, until: Deadline) -> Result<(), String> {
        self.expect_network(name);
        self.forget();
        self.look(until.left())?;
        let ids = self.known().networks.iter().filter(|it| *it.name == *name);
        let ids: Vec<&str> = ids.map(|it| &*it.id).collect();
        match *ids {
            [id] => self.run(&["docker", "network", "rm", id], until),
            [] => Ok(()),
            _ => Err("there are several of that name".into()),
        }
    }
}

/// The store has no key that what is made could be marked under.
pub(super) const NO_KEY: &str = "there is no key to mark it with";

/// The option that sets a restart policy.
pub(super) fn restart(policy: &str) -> String {
    format!("--restart={policy}")
}

/// Where the links on the way lead to what is the host's own, it is not handed to a container.
pub(in crate::machine) fn refuse_mounts(it: &Container, root: &Root) -> Result<(), String> {
    for mount in it.mounts.iter().filter(|mount| !mount.read_only) {
        if let Some(what) = root.refuses_mount(&mount.source) {
            return Err(format!("the mount of {} touches {what}", quoted(mount.source.as_bytes())));
        }
    }
    Ok(())
}

/// What is said of a container, without its secrets, nor any line of one.
fn scrubbed(it: &Container, text: &str) -> Vec<u8> {
    let values =
        it.secret_env.pairs().flat_map(|(_, value)| [value].into_iter().chain(value.lines()));
    let mut values: Vec<&str> = values.filter(|value| !value.trim().is_empty()).collect();
    values.sort_by_key(|value| std::cmp::Reverse(value.len()));
    let scrub = |text: String, value: &&str| text.replace(value, "(secret)");
    values.iter().fold(text.to_string(), scrub).into_bytes()
}
