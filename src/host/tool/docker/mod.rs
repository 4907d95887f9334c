//! docker(1): what it is asked, and what its answers mean. Pure.
//!
//! Three commands tell of everything: all containers by name, all networks by name, and the details
//! of those that matter by their ids. A name is never inspected: where there is no such thing, the
//! client goes on to look for an id that begins so. Of the details only a small set is read that
//! engines agree on. They hold the values of secrets, so no word of them is ever quoted.

mod create;
mod details;
#[cfg(test)]
mod tests;

pub use create::{create, create_network, settings, FORM, MARK, RESTART};
pub use details::{inspected, Container, Health, Inspected, Network, Status};

use crate::declaration::fault::quoted;
use crate::resource::container::Port;

/// Lists all containers. The last field shows that a line is whole.
pub const CONTAINERS: &[&str] = &[
    "docker",
    "ps",
    "--all",
    "--no-trunc",
    "--format",
    "{{json .ID}} {{json .Names}} {{json .Ports}} {{json .Networks}} ;",
];

/// Lists all networks, likewise.
pub const NETWORKS: &[&str] =
    &["docker", "network", "ls", "--no-trunc", "--format", "{{json .ID}} {{json .Name}} ;"];

/// Tells of the engine itself.
pub const ENGINE: &[&str] = &["docker", "version", "--format", "{{json .Server}}"];

/// Tells the details of these containers and networks, by their ids.
pub fn inspect<'a>(ids: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    ["docker", "inspect", "--"].into_iter().chain(ids).collect()
}

/// A container of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Its id, whole.
    pub id: Box<str>,
    /// Its name.
    pub name: Box<str>,
    /// The machine's ports that it offers now.
    pub ports: Vec<Offered>,
    /// The networks that it has joined, whether it runs or not.
    pub networks: Box<[Box<str>]>,
}

/// A network of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// Its id, whole.
    pub id: Box<str>,
    /// Its name.
    pub name: Box<str>,
}

/// Ports of the machine that a container offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offered {
    /// On which address; `None` is every one.
    pub address: Option<std::net::IpAddr>,
    /// From this on.
    pub first: u16,
    /// To this.
    pub last: u16,
    /// `tcp`, `udp` or `sctp`.
    pub protocol: Box<str>,
}

impl Offered {
    /// Both cannot be offered at once.
    pub fn clashes(&self, port: &Port) -> bool {
        let address = port.address.as_deref().and_then(|text| text.parse().ok());
        let address = address.filter(|address: &std::net::IpAddr| !address.is_unspecified());
        (self.first..=self.last).contains(&port.host)
            && *self.protocol == *port.protocol
            && (address.is_none() || self.address.is_none() || self.address == address)
    }
}

/// Reads the answer to [`CONTAINERS`].
///
/// # Errors
/// It is not one; says why in words fit for a message.
pub fn containers(said: &str) -> Result<Vec<Listed>, String> {
    said.lines().map(|line| listed(line).ok_or_else(|| odd("ps", line))).collect()
}

/// Reads the answer to [`NETWORKS`].
///
/// # Errors
/// It is not one; says why in words fit for a message.
pub fn networks(said: &str) -> Result<Vec<Named>, String> {
    let network = |line: &str| {
        let [id, name] = fields(line)?;
        is_id(&id).then(|| Named { id: id.into(), name: name.into() })
    };
    said.lines().map(|line| network(line).ok_or_else(|| odd("network ls", line))).collect()
}

/// The name of the engine behind the client where it is not docker's own; reads the answer to
/// [`ENGINE`].
///
/// # Errors
/// It is not an answer; says why in words fit for a message.
pub fn foreign_engine(said: &str) -> Result<Option<String>, String> {
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Server {
        #[serde(default)]
        components: Vec<Component>,
    }
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Component {
        name: String,
    }
    let server: Option<Server> =
        serde_json::from_str(said.trim()).map_err(|_| odd("version", said))?;
    // Podman's own client knows no server.
    let Some(server) = server else { return Ok(Some("one that names no server".into())) };
    let names = server.components.into_iter().map(|component| component.name);
    let foreign = names.into_iter().find(|name| name.to_ascii_lowercase().contains("podman"));
    Ok(foreign.map(|name| quoted(&name)))
}

/// Why a command failed: what the engine said first, else what was called an error last, else what
/// was said last, less where to find help. `docker start` ends with an error that names only an id.
pub fn reason(said: &str) -> Option<&str> {
    let mut lines = said.lines().map(str::trim).filter(|line| !line.is_empty());
    let is_error = |line: &&str| line.to_ascii_lowercase().contains("error");
    let engine = lines.clone().find(|line| line.contains("Error response from daemon"));
    let error = || lines.clone().rfind(is_error);
    engine.or_else(error).or_else(|| lines.rfind(|line| !line.starts_with("See '")))
}

/// Whether docker says that what it was asked for is not there.
pub fn says_missing(said: &str) -> bool {
    ["No such", "not found"].iter().any(|words| said.contains(words))
}

/// Whether a text that the shell would run as `docker` is podman's stand-in for it.
pub fn is_podman(program: &[u8]) -> bool {
    program.starts_with(b"#!") && program.windows(6).any(|word| word == b"podman")
}

fn listed(line: &str) -> Option<Listed> {
    let [id, names, ports, networks] = fields(line)?;
    // A link to it from another container is a second name, with that one's in it.
    let name = names.split(',').find(|name| !name.contains('/') && !name.is_empty())?;
    let ports = ports.split(", ").filter(|port| port.contains("->"));
    let networks = networks.split(',').filter(|name| !name.is_empty());
    is_id(&id).then_some(())?;
    Some(Listed {
        ports: ports.map(offered).collect::<Option<_>>()?,
        name: name.into(),
        networks: networks.map(Into::into).collect(),
        id: id.into(),
    })
}

/// `0.0.0.0:80->80/tcp`, `:::8000-8002->8000-8002/tcp`, or with brackets in engines from 27 on.
fn offered(text: &str) -> Option<Offered> {
    let (outside, inside) = text.split_once("->")?;
    let (address, range) = outside.rsplit_once(':')?;
    let (first, last) = range.split_once('-').unwrap_or((range, range));
    let address: std::net::IpAddr = address.trim_matches(['[', ']']).parse().ok()?;
    Some(Offered {
        address: Some(address).filter(|address| !address.is_unspecified()),
        first: first.parse().ok()?,
        last: last.parse().ok()?,
        protocol: inside.rsplit_once('/')?.1.into(),
    })
}

/// The texts of a line of the lists.
fn fields<const N: usize>(line: &str) -> Option<[String; N]> {
    let mut rest = line.strip_suffix(" ;")?.as_bytes();
    let mut found = Vec::with_capacity(N);
    while !rest.is_empty() {
        let mut texts = serde_json::Deserializer::from_slice(rest).into_iter::<String>();
        found.push(texts.next()?.ok()?);
        rest = rest[texts.byte_offset()..].trim_ascii_start();
    }
    found.try_into().ok()
}

fn is_id(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|it| matches!(it, b'0'..=b'9' | b'a'..=b'f'))
}

fn odd(verb: &str, line: &str) -> String {
    format!("docker {verb} said what is not understood: {}", quoted(line))
}
