//! The container engine: what it tells of containers and networks, and what is done to them, by
//! docker(1) alone.
//!
//! Everything that will be asked for is asked for at once, in three commands, and the answers kept
//! until something changes. What the host makes bears its mark: a digest, under a key that never
//! leaves the machine, of the name, of the image that was asked for, and of the digest of what it
//! was made from. No image can carry the mark of a container that is made from it.

mod act;
mod run;
mod swap;

use std::collections::BTreeSet;
use std::time::Duration;

pub(super) use act::refuse_mounts;
use run::{Docker, Failure};

use super::child;
use super::clock::now;
use super::words::quoted;
use crate::digest::{hex, keyed, sha256};
use crate::resource::container::{Container, ContainerAnswer, Found, Lost, Whose};
use crate::resource::container_network::NetworkAnswer;
use crate::resource::{Answer, Trouble};
use crate::tool::docker::{self, Inspected, Listed, Named, Status};

/// How long the engine may take to tell what there is.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long a container is watched once it has been started: one that cannot work ends at once.
const SETTLING: Duration = Duration::from_secs(2);
/// How often it is asked anew, where something goes while it is asked for.
const TRIES: usize = 3;
/// The most ids in one command.
const MOST_IDS: usize = 1000;
/// The length of a digest in a label.
const DIGITS: usize = 32;
/// The largest list of mounts that is read, in bytes.
const MOST_MOUNTS: u64 = 1 << 20;

/// What is known of the engine.
#[derive(Default)]
pub(super) struct Engine {
    docker: Docker,
    /// The key of the host's mark; none where it never made anything.
    key: Option<[u8; 32]>,
    containers: BTreeSet<Box<str>>,
    networks: BTreeSet<Box<str>>,
    known: Option<Result<Known, String>>,
    /// It was asked and did not answer: not asked again in this pass.
    hung: Option<String>,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").finish_non_exhaustive()
    }
}

/// What the engine told.
#[derive(Debug, Default)]
struct Known {
    listed: Vec<Listed>,
    networks: Vec<Named>,
    details: Inspected,
}

/// The names that a container and its replacement have.
struct Names {
    named: String,
    beside: String,
    aside: String,
}

impl Names {
    fn of(name: &str) -> Names {
        let with = |suffix: &str| format!("{name}.mesh-host-{suffix}");
        Names { named: name.into(), beside: with("new"), aside: with("old") }
    }

    fn all(&self) -> [&str; 3] {
        [&self.named, &self.beside, &self.aside]
    }
}

impl Engine {
    /// Has what the host makes bear a mark under `key`.
    pub fn mark_by(&mut self, key: [u8; 32]) {
        self.key = Some(key);
    }

    /// Notes that this container will be asked for.
    pub fn expect_container(&mut self, name: &str) {
        if self.containers.insert(name.into()) {
            self.forget();
        }
    }

    /// Notes that this network will be asked for.
    pub fn expect_network(&mut self, name: &str) {
        if self.networks.insert(name.into()) {
            self.forget();
        }
    }

    /// Forgets every answer.
    pub fn forget(&mut self) {
        self.known = None;
    }

    /// What is known of the container `name`, and whether that was made from what is `declared`.
    pub fn container(
        &mut self,
        name: &str,
        declared: Option<&Container>,
        limit: Duration,
    ) -> Result<Answer, Trouble> {
        self.expect_container(name);
        self.look(limit).map_err(|why| Trouble::new(format!("look at container {name}"), why))?;
        let names = Names::of(name);
        let others = |it: &&Listed| names.all().iter().all(|name| *it.name != **name);
        let ports = declared.map_or(&[][..], |it| &it.ports);
        let listed = self.known().listed.iter().filter(others);
        let held = |it: &Listed| {
            let port = ports.iter().find(|port| it.ports.iter().any(|held| held.clashes(port)))?;
            Some((format!("{} port {}", port.protocol, port.host), it.name.clone()))
        };
        Ok(Answer::Container(ContainerAnswer {
            holders: listed.filter_map(held).collect(),
            named: self.whose(&names.named, name, declared),
            beside: self.whose(&names.beside, name, declared),
            aside: self.whose(&names.aside, name, declared),
        }))
    }

    /// What is known of the network `name`.
    pub fn network(&mut self, name: &str, limit: Duration) -> Result<Answer, Trouble> {
        self.expect_network(name);
        let doing = || format!("look at container network {name}");
        self.look(limit).map_err(|why| Trouble::new(doing(), why))?;
        let known = self.known();
        let ids = known.networks.iter().filter(|it| *it.name == *name);
        let ids: Vec<&str> = ids.map(|it| &*it.id).collect();
        if ids.len() > 1 {
            let cause = format!("there are {} of that name: remove all but one", ids.len());
            return Err(Trouble::new(doing(), cause));
        }
        let found = ids.first().and_then(|id| known.details.networks.get(*id)).cloned();
        let mark = self.network_mark(name);
        let joined = |it: &&Listed| it.networks.iter().any(|joined| **joined == *name);
        let members = known.listed.iter().filter(joined);
        let member = |it: &Listed| {
            let is_ours = |base: &str| {
                Names::of(base).all().contains(&&*it.name)
                    && matches!(self.whose(&it.name, base, None), Whose::Ours(_))
            };
            (it.name.clone(), self.containers.iter().any(|base| is_ours(base)))
        };
        Ok(Answer::Network(NetworkAnswer {
            is_ours: found.as_ref().is_some_and(|it| {
                mark.is_some() && it.labels.get(docker::MARK).map(|it| &**it) == mark.as_deref()
            }),
            members: members.map(member).collect(),
            found,
        }))
    }

    /// Whose the container of this name is, should it stand for the container `base`.
    fn whose(&self, name: &str, base: &str, declared: Option<&Container>) -> Whose {
        let known = self.known();
        let Some(listed) = known.listed.iter().find(|it| *it.name == *name) else {
            return Whose::Nobodys;
        };
        let Some(told) = known.details.containers.get(&*listed.id) else { return Whose::Foreign };
        let label = |label: &str| told.labels.get(label).map_or("", |value| value);
        let form = label(docker::FORM);
        match self.container_mark(base, &told.image, form) {
            Some(mark) if label(docker::MARK) == mark => {}
            _ => return Whose::Foreign,
        }
        Whose::Ours(Box::new(Found {
            is_as_declared: declared.is_some_and(|it| self.form(it) == form),
            is_back: told.is_back_since(now(), SETTLING.as_secs()),
            lost: lost(told),
            told: told.clone(),
        }))
    }

    /// The digest of what a container is made from.
    fn form(&self, it: &Container) -> String {
        let key = self.key.unwrap_or_default();
        let mut form = hex(&sha256(&it.form(&|value| hex(&keyed(&key, value.as_bytes())))));
        form.truncate(DIGITS);
        form
    }

    fn container_mark(&self, name: &str, image: &str, form: &str) -> Option<String> {
        self.mark(&format!("container\0{name}\0{image}\0{form}"))
    }

    fn network_mark(&self, name: &str) -> Option<String> {
        self.mark(&format!("network\0{name}"))
    }

    fn mark(&self, text: &str) -> Option<String> {
        let mut mark = hex(&keyed(self.key.as_ref()?, text.as_bytes()));
        mark.truncate(DIGITS);
        Some(mark)
    }

    fn known(&self) -> &Known {
        match &self.known {
            Some(Ok(known)) => known,
            _ => unreachable!("it was looked at before"),
        }
    }

    /// Asks for everything that is expected, unless that is known.
    fn look(&mut self, limit: Duration) -> Result<(), String> {
        if self.known.is_none() {
            let told = match &self.hung {
                Some(why) => Err(why.clone()),
                None => self.told(limit.min(PATIENCE)),
            };
            self.known = Some(told);
        }
        match &self.known {
            Some(Err(why)) => Err(why.clone()),
            _ => Ok(()),
        }
    }

    fn told(&mut self, limit: Duration) -> Result<Known, String> {
        self.docker.refuse_podman()?;
        for _ in 1..TRIES {
            match self.tell(limit) {
                Err(Failure { is_missing: true, .. }) => {}
                told => return self.noted(told),
            }
        }
        let told = self.tell(limit);
        self.noted(told)
    }

    fn noted(&mut self, told: Result<Known, Failure>) -> Result<Known, String> {
        told.map_err(|failure| {
            if failure.is_late {
                self.hung = Some(failure.cause.clone());
            }
            failure.cause
        })
    }

    fn tell(&self, limit: Duration) -> Result<Known, Failure> {
        let mut known = Known {
            listed: docker::containers(&self.docker.run(docker::CONTAINERS, limit)?)?,
            ..Known::default()
        };
        if !self.networks.is_empty() {
            known.networks = docker::networks(&self.docker.run(docker::NETWORKS, limit)?)?;
        }
        let names: Vec<Names> = self.containers.iter().map(|name| Names::of(name)).collect();
        let names: BTreeSet<&str> = names.iter().flat_map(Names::all).collect();
        let containers = known.listed.iter().filter(|it| names.contains(&*it.name));
        let networks = known.networks.iter().filter(|it| self.networks.contains(&it.name));
        let ids: Vec<&str> =
            containers.map(|it| &*it.id).chain(networks.map(|it| &*it.id)).collect();
        for some in ids.chunks(MOST_IDS) {
            let told = self.docker.run(&docker::inspect(some.iter().copied()), limit)?;
            let told = docker::inspected(&told)?;
            known.details.containers.extend(told.containers);
            known.details.networks.extend(told.networks);
        }
        Ok(known)
    }
}

/// Of the places of the machine that a container sees, those that are not there any more, or are
/// directories that were made anew since it started: it still sees the old ones.
fn lost(told: &docker::Container) -> Vec<Lost> {
    if told.binds.is_empty() {
        return Vec::new();
    }
    let deleted = match told.status {
        Status::Running | Status::Paused => deleted_mounts(told.pid),
        _ => Vec::new(),
    };
    let lost = |(source, target): &(Box<str>, Box<str>)| {
        let found = std::fs::metadata(&**source).ok();
        let is_stale = deleted.iter().any(|at| **at == **target);
        match found {
            None => Some(Lost { source: source.clone(), is_back: false }),
            Some(found) if is_stale && found.is_dir() => {
                Some(Lost { source: source.clone(), is_back: true })
            }
            // A file is replaced whenever it is written: what follows it says so in `restart_on`.
            Some(_) => None,
        }
    };
    told.binds.iter().filter_map(lost).collect()
}

/// Where a process sees what has been deleted, by its list of mounts (proc(5)).
fn deleted_mounts(pid: u32) -> Vec<String> {
    use std::io::Read;
    let mut text = Vec::new();
    let file = std::fs::File::open(format!("/proc/{pid}/mountinfo"));
    // One that has ended by now has no list.
    let Ok(Ok(_)) = file.map(|file| file.take(MOST_MOUNTS).read_to_end(&mut text)) else {
        return Vec::new();
    };
    let text = String::from_utf8_lossy(&text);
    let deleted = |line: &str| {
        let mut fields = line.split(' ').skip(3);
        let root = fields.next()?;
        let target = fields.next()?;
        root.ends_with("//deleted").then(|| unescaped(target))
    };
    text.lines().filter_map(deleted).collect()
}

/// A path of a list of mounts: blanks, tabs, newlines and backslashes are written in octal.
fn unescaped(text: &str) -> String {
    let codes = [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")];
    codes.iter().fold(text.to_string(), |text, (code, char)| text.replace(code, char))
}

/// The program that `docker` stands for is podman's: it answers alike and is another thing.
fn is_podman(path: &std::path::Path) -> bool {
    use std::io::Read;
    let real = path.canonicalize().unwrap_or_else(|_| path.into());
    let name = real.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut start = Vec::new();
    let file = std::fs::File::open(&real);
    let read = file.map(|file| file.take(4096).read_to_end(&mut start));
    name.contains("podman") || read.is_ok() && docker::is_podman(&start)
}
