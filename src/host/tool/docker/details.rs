//! The details of containers and networks, as `docker inspect` tells them. Pure.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::when::When;

/// What was inspected, by id.
#[derive(Debug, Default)]
pub struct Inspected {
    /// The containers.
    pub containers: BTreeMap<Box<str>, Container>,
    /// The networks.
    pub networks: BTreeMap<Box<str>, Network>,
}

/// A container, as far as engines agree on what they tell of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Container {
    /// Its id, whole.
    pub id: Box<str>,
    /// Its name.
    pub name: Box<str>,
    /// What it was made from, in the words of whoever made it.
    pub image: Box<str>,
    /// Its labels, its image's among them.
    pub labels: BTreeMap<Box<str>, Box<str>>,
    /// What it does.
    pub status: Status,
    /// What it said of its end: the engine's words, or its exit code.
    pub ended: Box<str>,
    /// Its first process on the machine; 0 where it does not run.
    pub pid: u32,
    /// When it was started last, as the engine writes it.
    pub started: Box<str>,
    /// How often the engine has started it again since it was started on purpose.
    pub restarts: u32,
    /// What its health check has come to; `None` where it has none.
    pub health: Option<Health>,
    /// What its health check said last.
    pub probed: Box<str>,
    /// When the engine starts it again, as a declaration says it.
    pub restart: Box<str>,
    /// The most memory it may use, in bytes; 0 is no limit.
    pub memory_bytes: u64,
    /// The most processors it may use, in billionths; 0 is no limit.
    pub nano_cpus: u64,
    /// Some other limit stands, which no declaration can set.
    pub otherwise_limited: bool,
    /// The networks that it has joined.
    pub networks: Box<[Box<str>]>,
    /// The places of the machine that it sees, each with where it sees it.
    pub binds: Box<[(Box<str>, Box<str>)]>,
}

/// What a container does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It has never run.
    Created,
    /// It runs.
    Running,
    /// It is held still.
    Paused,
    /// It ended by itself, and the engine waits to start it again.
    Restarting,
    /// It has ended.
    Exited,
    /// It is being removed, or that was tried and did not succeed.
    Going,
}

/// What a health check has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// It has not yet passed, nor failed often enough.
    Starting,
    /// It passes.
    Healthy,
    /// It has failed too often.
    Unhealthy,
}

/// A network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Network {
    /// Its id, whole.
    pub id: Box<str>,
    /// Its name.
    pub name: Box<str>,
    /// What made it.
    pub driver: Box<str>,
    /// Its ranges of addresses.
    pub subnets: Box<[Box<str>]>,
    /// It leads nowhere outside.
    pub internal: bool,
    /// Its labels.
    pub labels: BTreeMap<Box<str>, Box<str>>,
}

/// Reads what `docker inspect` told.
///
/// # Errors
/// It is not that, or of another shape; says where, and nothing of what stands there.
pub fn inspected(said: &str) -> Result<Inspected, String> {
    let odd = |why: String| format!("docker inspect told what is not understood: {why}");
    let place =
        |error: serde_json::Error| odd(format!("line {}, column {}", error.line(), error.column()));
    let told: Vec<Told> = serde_json::from_str(said).map_err(place)?;
    let mut all = Inspected::default();
    for (nth, told) in told.into_iter().enumerate() {
        let lacks = |what: &str| odd(format!("no {what} of object {}", nth + 1));
        let id = told.id.clone();
        match (&told.state, &told.ipam) {
            (Some(_), _) => all.containers.insert(id, told.container().map_err(lacks)?).is_none(),
            (_, Some(_)) => all.networks.insert(id, told.network().map_err(lacks)?).is_none(),
            _ => return Err(lacks("State or IPAM")),
        };
    }
    Ok(all)
}

type Labels = Option<BTreeMap<Box<str>, Box<str>>>;

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Told {
    id: Box<str>,
    name: Box<str>,
    state: Option<State>,
    restart_count: Option<u32>,
    host_config: Option<HostConfig>,
    mounts: Option<Vec<Mount>>,
    config: Option<Config>,
    network_settings: Option<NetworkSettings>,
    #[serde(rename = "IPAM")]
    ipam: Option<Ipam>,
    driver: Option<Box<str>>,
    internal: Option<bool>,
    labels: Labels,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct State {
    status: Box<str>,
    pid: u32,
    exit_code: i64,
    started_at: Box<str>,
    #[serde(default)]
    error: Box<str>,
    #[serde(default, rename = "OOMKilled")]
    oom_killed: bool,
    health: Option<Checked>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Checked {
    status: Box<str>,
    log: Option<Vec<Probe>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Probe {
    #[serde(default)]
    output: Box<str>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct HostConfig {
    restart_policy: RestartPolicy,
    memory: u64,
    nano_cpus: u64,
    #[serde(default)]
    cpu_shares: i64,
    #[serde(default)]
    cpu_quota: i64,
    #[serde(default)]
    cpuset_cpus: Box<str>,
    #[serde(default)]
    memory_reservation: i64,
    pids_limit: Option<i64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct RestartPolicy {
    name: Box<str>,
    #[serde(default)]
    maximum_retry_count: u32,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Mount {
    #[serde(rename = "Type")]
    kind: Box<str>,
    source: Option<Box<str>>,
    destination: Box<str>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Config {
    image: Box<str>,
    labels: Labels,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct NetworkSettings {
    networks: Option<BTreeMap<Box<str>, serde::de::IgnoredAny>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Ipam {
    config: Option<Vec<Range>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Range {
    subnet: Option<Box<str>>,
}

impl Container {
    /// The engine started it again, and that was less than `seconds` before `now`.
    pub fn is_back_since(&self, now: When, seconds: u64) -> bool {
        let whole = self.started.get(..19).and_then(|it| When::parse(&format!("{it}Z")));
        let age = whole.and_then(|started| now.0.checked_sub(started.0));
        self.restarts > 0 && age.is_some_and(|age| age < seconds)
    }
}

impl Told {
    fn container(self) -> Result<Container, &'static str> {
        let state = self.state.ok_or("State")?;
        let limits = self.host_config.ok_or("HostConfig")?;
        let config = self.config.ok_or("Config")?;
        let networks = self.network_settings.ok_or("NetworkSettings")?.networks;
        let binds = self.mounts.unwrap_or_default().into_iter();
        let binds = binds.filter(|mount| *mount.kind == *"bind");
        let (health, probed) = match state.health {
            None => (None, Box::default()),
            Some(checked) => {
                let last = checked.log.and_then(|mut log| log.pop());
                (health(&checked.status)?, last.map_or(Box::default(), |probe| probe.output))
            }
        };
        let ended = match (&*state.error, state.oom_killed) {
            ("", false) => format!("exit code {}", state.exit_code).into(),
            ("", true) => "out of memory".into(),
            _ => state.error,
        };
        let RestartPolicy { name, maximum_retry_count: most } = limits.restart_policy;
        let restart = match (&*name, most) {
            ("", _) => "no".into(),
            ("on-failure", 1..) => format!("on-failure:{most}").into(),
            _ => name,
        };
        Ok(Container {
            name: self.name.trim_start_matches('/').into(),
            id: self.id,
            image: config.image,
            labels: config.labels.unwrap_or_default(),
            status: status(&state.status)?,
            ended,
            pid: state.pid,
            started: state.started_at,
            restarts: self.restart_count.ok_or("RestartCount")?,
            health,
            probed,
            restart,
            memory_bytes: limits.memory,
            nano_cpus: limits.nano_cpus,
            otherwise_limited: limits.cpu_shares != 0
                || limits.cpu_quota > 0
                || !limits.cpuset_cpus.is_empty()
                || limits.memory_reservation != 0
                || limits.pids_limit.is_some_and(|most| most > 0),
            networks: networks.unwrap_or_default().into_keys().collect(),
            binds: binds.filter_map(|mount| Some((mount.source?, mount.destination))).collect(),
        })
    }

    fn network(self) -> Result<Network, &'static str> {
        let ranges = self.ipam.ok_or("IPAM")?.config.unwrap_or_default();
        Ok(Network {
            id: self.id,
            name: self.name,
            driver: self.driver.ok_or("Driver")?,
            subnets: ranges.into_iter().filter_map(|range| range.subnet).collect(),
            internal: self.internal.ok_or("Internal")?,
            labels: self.labels.unwrap_or_default(),
        })
    }
}

fn status(word: &str) -> Result<Status, &'static str> {
    Ok(match word {
        "created" => Status::Created,
        "running" => Status::Running,
        "paused" => Status::Paused,
        "restarting" => Status::Restarting,
        "exited" => Status::Exited,
        "removing" | "dead" => Status::Going,
        _ => return Err("Status that is known"),
    })
}

fn health(word: &str) -> Result<Option<Health>, &'static str> {
    Ok(match word {
        "starting" => Some(Health::Starting),
        "healthy" => Some(Health::Healthy),
        "unhealthy" => Some(Health::Unhealthy),
        "none" | "" => None,
        _ => return Err("Health that is known"),
    })
}
