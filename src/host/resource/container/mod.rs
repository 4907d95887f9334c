//! `container`: a container, its image pinned by digest. Pure.

mod judge;
mod table;

use std::fmt;

pub use judge::{Act, ContainerAnswer, Found, Lost, Remove, Whose};
pub use table::KIND;

use super::fields::Fields;
use super::{Answer, Follows, Object, Past, Question, Resource, Trouble, Verdict};
use crate::tool::docker;

/// Named texts.
type Pairs = Box<[(Box<str>, Box<str>)]>;

/// A declared container.
#[derive(Debug)]
pub struct Container {
    /// Its name.
    pub name: Box<str>,
    /// What it is made from, pinned.
    pub image: Box<str>,
    /// Arguments in place of the image's.
    pub command: Box<[Box<str>]>,
    /// A program, and arguments before those, in place of the image's.
    pub entrypoint: Box<[Box<str>]>,
    /// Variables, in the order of their names.
    pub env: Pairs,
    /// Variables whose values are shown nowhere.
    pub secret_env: SecretEnv,
    /// What it offers.
    pub ports: Box<[Port]>,
    /// What of the machine it sees.
    pub mounts: Box<[Mount]>,
    /// The networks it joins.
    pub networks: Box<[Box<str>]>,
    /// In place of networks: `bridge`, `host`, `none` or `container:NAME`.
    pub network_mode: Option<Box<str>>,
    /// What it calls itself.
    pub hostname: Option<Box<str>>,
    /// Who it runs as.
    pub user: Option<Box<str>>,
    /// Where it starts.
    pub workdir: Option<Box<str>>,
    /// When it is started again; absent: never.
    pub restart: Option<Box<str>>,
    /// How to tell whether it is well; absent: as its image has it.
    pub health: Option<HealthCheck>,
    /// How long it may take to be well, in seconds; absent: it is not waited for.
    pub wait_healthy_s: Option<u32>,
    /// The most memory it may use, in bytes.
    pub memory_bytes: Option<u64>,
    /// The most processors it may use, in billionths.
    pub nano_cpus: Option<u64>,
    /// Capabilities it has besides the usual.
    pub cap_add: Box<[Box<str>]>,
    /// Capabilities it has not.
    pub cap_drop: Box<[Box<str>]>,
    /// Its root cannot be written.
    pub read_only: bool,
    /// Paths in it that hold memory.
    pub tmpfs: Box<[Box<str>]>,
    /// Devices it sees.
    pub devices: Box<[Box<str>]>,
    /// It is held back by nothing.
    pub privileged: bool,
    /// Names it knows.
    pub extra_hosts: Box<[Box<str>]>,
    /// Name servers it asks.
    pub dns: Box<[Box<str>]>,
    /// Labels, in the order of their names.
    pub labels: Pairs,
    /// How long it may take to stop, in seconds.
    pub stop_timeout_s: Option<u64>,
    /// What makes it restart.
    pub follows: Follows,
}

/// A port of the machine that leads to one of the container.
#[derive(Debug)]
pub struct Port {
    /// The machine's.
    pub host: u16,
    /// The container's.
    pub container: u16,
    /// `tcp`, `udp` or `sctp`.
    pub protocol: Box<str>,
    /// The machine's address; absent: any.
    pub address: Option<Box<str>>,
}

/// A place of the machine that the container sees.
#[derive(Debug)]
pub struct Mount {
    /// A path, or the name of a volume.
    pub source: Box<str>,
    /// Where the container sees it.
    pub target: Box<str>,
    /// It cannot be written there.
    pub read_only: bool,
}

/// How to tell whether a container is well.
#[derive(Debug)]
pub struct HealthCheck {
    /// Exits 0 while it is.
    pub command: Box<[Box<str>]>,
    /// How often.
    pub interval_s: i64,
    /// How long it may take.
    pub timeout_s: i64,
    /// How many failures make it unwell.
    pub retries: i64,
    /// How long failures at the start do not count.
    pub start_period_s: i64,
}

/// Variables whose values are shown nowhere, in the order of their names.
pub struct SecretEnv(Pairs);

impl SecretEnv {
    /// Variables with these values.
    pub fn new(mut pairs: Pairs) -> SecretEnv {
        pairs.sort();
        SecretEnv(pairs)
    }

    /// Their names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| &**name)
    }

    /// Names and values.
    pub fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (&**name, &**value))
    }
}

impl fmt::Debug for SecretEnv {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}

impl Container {
    /// When it is started again, as an engine reads it back.
    pub fn restart(&self) -> &str {
        let restart = self.restart.as_deref().unwrap_or("no");
        restart.strip_suffix(":0").unwrap_or(restart)
    }

    /// All that it is made from, in one order, for a digest; `keyed` stands in for the value of a
    /// secret.
    pub fn form(&self, keyed: &dyn Fn(&str) -> String) -> Vec<u8> {
        let (options, image) = docker::settings(self);
        let networks = self.networks.iter().map(|name| name.to_string());
        let secrets =
            self.secret_env.pairs().map(|(name, value)| keyed(&format!("{name}={value}")));
        let parts = [options, image, networks.collect(), secrets.collect()];
        // Neither an argument nor a name can hold a NUL; two end a part.
        let part = |part: &Vec<String>| part.iter().map(|it| format!("{it}\0")).collect::<String>();
        parts.iter().map(part).collect::<Vec<_>>().join("\0").into_bytes()
    }

    /// It has no network of its own, but that of another container.
    pub fn leans_on_another(&self) -> bool {
        self.network_mode.as_ref().is_some_and(|mode| mode.starts_with("container:"))
    }

    /// The networks that it should have joined; `None` where that is another's affair.
    pub fn joins(&self) -> Option<Vec<&str>> {
        match (self.network_mode.as_deref(), &*self.networks) {
            (Some(mode), _) if mode.starts_with("container:") => None,
            (Some(mode), _) => Some(vec![mode]),
            (None, []) => Some(vec!["bridge"]),
            (None, names) => Some(names.iter().map(|name| &**name).collect()),
        }
    }
}

impl Resource for Container {
    fn kind(&self) -> &'static str {
        "container"
    }

    fn object(&self) -> Object {
        Object::new("container", &self.name)
    }

    fn question(&self) -> Question<'_> {
        Question::Container { name: &self.name, declared: Some(self) }
    }

    fn judge(&self, answer: &Answer, past: &Past<'_>) -> Result<Verdict<'_>, Trouble> {
        self.compare(answer, past)
    }

    fn follows(&self) -> Follows {
        self.follows
    }

    fn secret(&self) -> bool {
        self.secret_env.names().next().is_some()
    }

    fn is_marked(&self) -> bool {
        true
    }
}

fn build(_: &str, fields: &mut Fields<'_>) -> Box<dyn Resource> {
    let sorted = |mut pairs: Pairs| {
        pairs.sort();
        pairs
    };
    let follows = Follows { restarts: fields.list("restart_on").len(), reloads: 0 };
    let ports = fields.list("ports").iter().map(|port| {
        let port = port.as_fields();
        let number = |name| port.integer(name).and_then(|number| u16::try_from(number).ok());
        Port {
            host: number("host").expect("the table requires a port"),
            container: number("container").expect("the table requires a port"),
            protocol: port.text("protocol").map_or("tcp", |it| it).into(),
            address: port.text("address").map(|it| (**it).into()),
        }
    });
    let mounts = fields.list("mounts").iter().map(|mount| {
        let mount = mount.as_fields();
        let text = |name| mount.text(name).expect("the table requires it");
        let (source, target) = ((**text("source")).into(), (**text("target")).into());
        Mount { source, target, read_only: mount.is_true("read_only") }
    });
    let (ports, mounts) = (ports.collect(), mounts.collect());
    let health = fields.get("health").map(|health| {
        let health = health.as_fields();
        let number = |name, absent| health.integer(name).unwrap_or(absent);
        HealthCheck {
            command: health.list("command").iter().map(|it| it.as_text().into()).collect(),
            interval_s: number("interval_s", 30),
            timeout_s: number("timeout_s", 30),
            retries: number("retries", 3),
            start_period_s: number("start_period_s", 0),
        }
    });
    let natural = |fields: &Fields<'_>, name| fields.integer(name).map(|it| it.unsigned_abs());
    let required = "the table requires it";
    Box::new(Container {
        name: fields.take_text("name").expect(required),
        image: fields.take_text("image").expect(required),
        command: fields.take_texts("command"),
        entrypoint: fields.take_texts("entrypoint"),
        env: sorted(fields.take_text_map("env")),
        secret_env: SecretEnv::new(fields.take_text_map("secret_env")),
        ports,
        mounts,
        networks: fields.take_texts("networks"),
        network_mode: fields.take_text("network_mode"),
        hostname: fields.take_text("hostname"),
        user: fields.take_text("user"),
        workdir: fields.take_text("workdir"),
        restart: fields.take_text("restart"),
        health,
        wait_healthy_s: natural(fields, "wait_healthy_s").map(|it| it as u32),
        memory_bytes: natural(fields, "memory_bytes"),
        nano_cpus: fields.number("cpus").map(|cpus| (cpus * 1e9).round() as u64),
        cap_add: fields.take_texts("cap_add"),
        cap_drop: fields.take_texts("cap_drop"),
        read_only: fields.is_true("read_only"),
        tmpfs: fields.take_texts("tmpfs"),
        devices: fields.take_texts("devices"),
        privileged: fields.is_true("privileged"),
        extra_hosts: fields.take_texts("extra_hosts"),
        dns: fields.take_texts("dns"),
        labels: sorted(fields.take_text_map("labels")),
        stop_timeout_s: natural(fields, "stop_timeout_s"),
        follows,
    })
}
