//! The `mesh` message: where the mesh's brokers are, and whose word counts in it. Pure.

use std::fmt;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::CertificateDer;
use serde::Deserialize;

use super::signed::ControlKey;
use crate::declaration::fault::quoted;

/// The largest `mesh` message, in bytes.
pub const MAX_BYTES: usize = 1 << 20;
/// The most brokers, authorities and control keys of a mesh, each.
pub const MOST: usize = 32;
/// The version that this host reads.
const VERSION: u64 = 1;

/// A mesh as a node needs to know it. Nothing in it is secret.
#[derive(Clone, PartialEq, Eq)]
pub struct Mesh {
    /// Grows with each new message.
    pub serial: u64,
    /// In the order in which they are to be tried; at least one.
    pub brokers: Vec<Broker>,
    /// The authorities that brokers are known by; at least one.
    pub cas: Vec<CertificateDer<'static>>,
    /// Whose signature counts; at least one.
    pub control_keys: Vec<ControlKey>,
    /// Declarations below it are stale.
    pub serial_floor: u64,
    /// The message itself.
    pub text: Vec<u8>,
}

/// Where a broker listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broker {
    /// Name or address.
    pub host: String,
    /// TCP port, not 0.
    pub port: u16,
}

/// The message as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wire {
    v: u64,
    serial: u64,
    brokers: Vec<String>,
    cas: Vec<String>,
    control_keys: Vec<String>,
    serial_floor: u64,
}

impl Mesh {
    /// Reads a message.
    ///
    /// # Errors
    /// What is wrong with it, in words fit for a terminal.
    pub fn parse(text: &[u8]) -> Result<Mesh, String> {
        if text.len() > MAX_BYTES {
            return Err(format!("is {} bytes long, more than {MAX_BYTES}", text.len()));
        }
        let wire: Wire = serde_json::from_slice(text)
            .map_err(|error| error.to_string().escape_debug().take(300).collect::<String>())?;
        if wire.v != VERSION {
            return Err(format!("v: is {}, and this host reads {VERSION}", wire.v));
        }
        Ok(Mesh {
            serial: wire.serial,
            brokers: list("brokers", &wire.brokers, |it| Broker::parse(it).map(|it| vec![it]))?,
            cas: list("cas", &wire.cas, authorities)?,
            control_keys: list("control_keys", &wire.control_keys, |it| {
                ControlKey::parse(it).map(|key| vec![key])
            })?,
            serial_floor: wire.serial_floor,
            text: text.to_vec(),
        })
    }

    /// It says the same as `other`, in whatever words.
    pub fn says(&self, other: &Mesh) -> bool {
        let alike = |it: &Mesh| Mesh { text: Vec::new(), ..it.clone() };
        alike(self) == alike(other)
    }
}

impl fmt::Debug for Mesh {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "mesh {} with brokers {:?}", self.serial, self.brokers)
    }
}

/// Reads each element of a list that must hold something and not too much.
fn list<T>(
    field: &str,
    texts: &[String],
    read: impl Fn(&str) -> Result<Vec<T>, String>,
) -> Result<Vec<T>, String> {
    if texts.is_empty() || texts.len() > MOST {
        return Err(format!("{field}: has {} elements, not 1 to {MOST}", texts.len()));
    }
    let mut all = Vec::new();
    for (at, text) in texts.iter().enumerate() {
        all.extend(read(text).map_err(|why| format!("{field}[{at}]: {why}"))?);
    }
    Ok(all)
}

fn authorities(pem: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    let certificates: Result<Vec<_>, _> =
        CertificateDer::pem_slice_iter(pem.as_bytes()).take(MOST).collect();
    let certificates = certificates.map_err(|_| "is no PEM".to_string())?;
    let known = |der: &CertificateDer| super::x509::Certificate::read(der).is_some();
    match certificates.iter().all(known) && !certificates.is_empty() {
        true => Ok(certificates),
        false => Err("holds no certificate in PEM".into()),
    }
}

impl Broker {
    /// Reads `host:port`; an IPv6 address stands in brackets.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Broker, String> {
        let wrong = |why: &str| format!("{} {why}", quoted(text));
        let (host, port) = text.rsplit_once(':').ok_or_else(|| wrong("has no port"))?;
        let digits = port.bytes().all(|byte| byte.is_ascii_digit());
        let port = port.parse().ok().filter(|port| *port != 0 && digits);
        let port = port.ok_or_else(|| wrong("has no port from 1 to 65535"))?;
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let is_v6 = bare.is_some_and(|host| host.parse::<std::net::Ipv6Addr>().is_ok());
        let named = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
        let is_name = (1..=253).contains(&host.len()) && host.bytes().all(named);
        match (is_v6, bare) {
            (true, Some(bare)) => Ok(Broker { host: bare.into(), port }),
            (false, None) if is_name && !host.starts_with('-') => {
                Ok(Broker { host: host.into(), port })
            }
            _ => Err(wrong("names no host")),
        }
    }
}

impl fmt::Display for Broker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}
