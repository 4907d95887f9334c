//! wg(8): what it is asked and told, and what it answers. Pure.
//!
//! One `wg show all dump` tells of every WireGuard interface and all of their peers, the kernel's
//! and those of wireguard-go alike: a line of 5 fields for an interface, then one of 9 for each
//! peer, tabs between. It holds every private and preshared key, so no line of it is ever quoted.
//! What is to be set goes in as a configuration on standard input: no key stands in an argument.

use std::collections::BTreeMap;
use std::fmt;
use std::fmt::Write as _;
use std::net::IpAddr;

use crate::base64;
use crate::declaration::fault::quoted;
use crate::resource::net::cidr;

/// Asks for everything.
pub const SHOW: [&str; 4] = ["wg", "show", "all", "dump"];

/// The preshared key that stands for none.
const NO_KEY: &str = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
/// How wg writes that there is nothing.
const NONE: &str = "(none)";

/// A private or preshared key. `Debug` shows nothing of it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Box<str>);

impl Secret {
    /// The key that `text` is.
    pub fn of(text: &str) -> Option<Secret> {
        is_key(text).then(|| Secret(text.into()))
    }

    /// A private key made of random bytes, as `wg genkey` does it.
    pub fn private(mut random: [u8; 32]) -> Secret {
        random[0] &= 0xf8;
        random[31] = random[31] & 0x7f | 0x40;
        Secret(base64::encode(&random).into())
    }

    /// The key in base64.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a secret key")
    }
}

/// The text is a key: 32 bytes in base64.
pub fn is_key(text: &str) -> bool {
    text.len() == 44 && base64::decode(text).is_ok_and(|key| key.len() == 32)
}

/// Every WireGuard interface, by its name.
pub type Devices = BTreeMap<Box<str>, Device>;

/// A WireGuard interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// Its private key.
    pub private: Option<Secret>,
    /// The public key that belongs to it.
    pub public: Option<Box<str>>,
    /// The UDP port it listens on; 0 for none yet.
    pub port: u16,
    /// Its peers, by public key.
    pub peers: BTreeMap<Box<str>, Peer>,
}

/// A peer of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// The further key that both know.
    pub preshared: Option<Secret>,
    /// Where it was heard from last or, until then, is expected.
    pub endpoint: Option<Box<str>>,
    /// The networks behind it, in order.
    pub allowed: Vec<(IpAddr, u8)>,
    /// When it last proved who it is, in seconds since 1970; 0 for never.
    pub handshake: u64,
    /// How often a packet is sent to keep the way open, in seconds; 0 for never.
    pub keepalive: u16,
}

/// What [`SHOW`] was answered with.
///
/// # Errors
/// What is not understood of it, by the number of its line.
pub fn devices(text: &str) -> Result<Devices, String> {
    let mut devices = Devices::new();
    let Some(text) = text.strip_suffix('\n') else {
        return match text {
            "" => Ok(devices),
            _ => Err("wg's answer is cut off".into()),
        };
    };
    let mut last: Option<Box<str>> = None;
    for (nth, line) in text.split('\n').enumerate() {
        let wrong = |what: &str| format!("line {} of wg's answer {what}", nth + 1);
        let fields: Vec<&str> = line.split('\t').collect();
        match fields[..] {
            [name, private, public, port, _mark] => {
                let device = device(private, public, port).map_err(|what| wrong(&what))?;
                if name.is_empty() || devices.insert(name.into(), device).is_some() {
                    return Err(wrong("names no further interface"));
                }
                last = Some(name.into());
            }
            [name, public, ref rest @ ..] if rest.len() == 7 => {
                let known = last.as_deref().filter(|last| *last == name);
                let device = known.and_then(|name| devices.get_mut(name));
                let device = device.ok_or_else(|| wrong("is of a peer of no interface"))?;
                let peer = peer(rest).map_err(|what| wrong(&what))?;
                if !is_key(public) || device.peers.insert(public.into(), peer).is_some() {
                    return Err(wrong("is of no further peer"));
                }
            }
            _ => return Err(wrong(&format!("has {} fields", fields.len()))),
        }
    }
    Ok(devices)
}

fn device(private: &str, public: &str, port: &str) -> Result<Device, String> {
    let private = key(private)?;
    let public = key(public)?.map(|key| key.0);
    Ok(Device { private, public, port: number(port, "port")?, peers: BTreeMap::new() })
}

fn peer(rest: &[&str]) -> Result<Peer, String> {
    let [preshared, endpoint, allowed, handshake, _received, _sent, keepalive] = *rest else {
        return Err(format!("has {} fields", rest.len() + 2));
    };
    let mut networks = Vec::new();
    for network in allowed.split(',').filter(|_| allowed != NONE) {
        let read = cidr(network);
        networks.push(read.ok_or_else(|| format!("has the network {}", quoted(network)))?);
    }
    networks.sort_unstable();
    Ok(Peer {
        preshared: key(preshared)?,
        endpoint: Some(endpoint).filter(|it| *it != NONE).map(Into::into),
        allowed: networks,
        handshake: number(handshake, "time")?,
        keepalive: if keepalive == "off" { 0 } else { number(keepalive, "keepalive")? },
    })
}

fn key(text: &str) -> Result<Option<Secret>, String> {
    match Secret::of(text) {
        None if text != NONE => Err("has something else in place of a key".into()),
        key => Ok(key),
    }
}

fn number<N: std::str::FromStr>(text: &str, what: &str) -> Result<N, String> {
    text.parse().map_err(|_| format!("has the {what} {}", quoted(text)))
}

/// Takes in a configuration from standard input; what that does not name stays as it is.
pub fn configure(interface: &str) -> [&str; 4] {
    ["wg", "addconf", interface, "/dev/stdin"]
}

/// Takes a peer away; that it is not there is as good.
pub fn drop_peer<'a>(interface: &'a str, public_key: &'a str) -> [&'a str; 6] {
    ["wg", "set", interface, "peer", public_key, "remove"]
}

/// The configuration of an interface itself; no port leaves that as it is.
pub fn interface_text(private: &Secret, port: Option<u16>) -> String {
    let port = port.map_or_else(String::new, |port| format!("ListenPort = {port}\n"));
    format!("[Interface]\nPrivateKey = {}\n{port}", private.reveal())
}

/// A peer as it is to be.
#[derive(Clone, Copy, Debug)]
pub struct NewPeer<'a> {
    /// Its public key.
    pub public_key: &'a str,
    /// The further key that both know.
    pub preshared: Option<&'a Secret>,
    /// Where it is to be expected; `None` leaves that as it is.
    pub endpoint: Option<&'a str>,
    /// The networks behind it.
    pub allowed: &'a [(IpAddr, u8)],
    /// How often a packet is sent to keep the way open, in seconds; 0 for never.
    pub keepalive: u16,
}

/// The configuration of one peer. Without a line of networks it has none: `addconf` replaces those
/// it had, and takes no empty list (wireguard-tools 1.0.20210914: "Line unrecognized").
pub fn peer_text(peer: &NewPeer<'_>) -> String {
    let preshared = peer.preshared.map_or(NO_KEY, Secret::reveal);
    let mut text = format!("[Peer]\nPublicKey = {}\nPresharedKey = {preshared}\n", peer.public_key);
    for (nth, (address, length)) in peer.allowed.iter().enumerate() {
        let before = if nth == 0 { "AllowedIPs = " } else { "," };
        let _ = write!(text, "{before}{address}/{length}");
    }
    if !peer.allowed.is_empty() {
        text.push('\n');
    }
    if let Some(endpoint) = peer.endpoint {
        let _ = writeln!(text, "Endpoint = {endpoint}");
    }
    match peer.keepalive {
        0 => text.push_str("PersistentKeepalive = off\n"),
        seconds => drop(writeln!(text, "PersistentKeepalive = {seconds}")),
    }
    text
}
