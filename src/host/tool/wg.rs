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

#[cfg(test)]
mod tests {
    use super::*;

    // wireguard-tools 1.0.20210914 with wireguard-go 0.0.20220316; the keys were made for it.
    const DUMP: &str = include_str!("../../../tests/transcripts/wg/dump.txt");
    const KEY: &str = "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=";

    //
    #[test]
    fn every_interface_and_peer_is_told_of() {
        let devices = devices(DUMP).unwrap();
        assert_eq!(devices.keys().map(|name| &**name).collect::<Vec<_>>(), ["wg0", "wg1", "wg2"]);
        let (wg0, wg1, wg2) = (&devices["wg0"], &devices["wg1"], &devices["wg2"]);
        assert_eq!((wg0.port, wg1.port, wg0.peers.len(), wg1.peers.len()), (51820, 51821, 3, 1));
        assert_eq!((&wg2.private, &wg2.public, wg2.peers.len()), (&None, &None, 0));
        let of = |device: &Device| device.public.clone().unwrap();
        let (near, far) = (&wg0.peers[&of(wg1)], &wg1.peers[&of(wg0)]);
        assert!(near.preshared.is_some() && near.preshared == far.preshared);
        assert_eq!(near.endpoint.as_deref(), Some("127.0.0.1:51821"));
        assert!(near.handshake > 1_700_000_000 && near.handshake == far.handshake);
        assert_eq!((near.keepalive, far.keepalive), (1, 0));
        let networks = ["10.99.0.2/32", "fd99::2/128"].map(|it| cidr(it).unwrap());
        assert_eq!(near.allowed, networks);
        let others: Vec<_> = wg0.peers.values().filter(|it| it.preshared.is_none()).collect();
        let open = others.iter().find(|it| it.endpoint.is_some()).unwrap();
        assert_eq!(open.endpoint.as_deref(), Some("[2001:db8::7]:51820"));
        let networks = ["0.0.0.0/0", "10.1.0.0/16", "::/0"].map(|it| cidr(it).unwrap());
        assert_eq!((&open.allowed[..], open.handshake), (&networks[..], 0));
        assert!(others.iter().any(|it| it.endpoint.is_none() && it.allowed.is_empty()));
        assert!(super::devices("").unwrap().is_empty());
    }

    #[test]
    fn an_answer_that_is_cut_off_anywhere_tells_of_whole_lines_or_nothing() {
        let ends: Vec<usize> = DUMP.match_indices('\n').map(|(at, _)| at + 1).collect();
        for cut in 1..DUMP.len() {
            let read = devices(&DUMP[..cut]);
            assert_eq!(read.is_ok(), ends.contains(&cut), "{cut}: {read:?}");
        }
    }

    #[test]
    fn what_is_strange_is_said_without_a_key() {
        let secrets: Vec<&str> = DUMP.split(['\t', '\n']).filter(|it| is_key(it)).collect();
        for (from, to, words) in [
            ("\t51820\t", "\tmany\t", "has the port \"many\""),
            ("10.1.0.0/16", "10.1.0.0/99", "has the network \"10.1.0.0/99\""),
            ("\t1\n", "\tnow\n", "has the keepalive \"now\""),
            ("wg1\t", "wg7\t", ""),
            ("\t51821\toff", "\t51821", ""),
            ("(none)\t(none)\t", "(none)\tx\t", ""),
            ("=\t", "=", ""),
            ("wg2\t", "\u{1b}[2J\t", ""),
        ] {
            match devices(&DUMP.replacen(from, to, 1)) {
                Ok(_) => assert!(words.is_empty(), "{from:?} → {to:?}"),
                Err(why) => {
                    assert!(why.contains(words), "{why}");
                    assert!(!secrets.iter().any(|key| why.contains(key)), "{why}");
                    assert!(!why.chars().any(char::is_control), "{why:?}");
                }
            }
        }
        for twice in [DUMP.repeat(2), DUMP.lines().last().unwrap().to_string() + "\n"] {
            assert!(devices(&twice).is_err());
        }
        let shown = format!("{:?}", devices(DUMP).unwrap());
        let private = DUMP.lines().nth(1).unwrap().split('\t').nth(1).unwrap();
        assert!(is_key(private) && !shown.contains(private));
    }

    #[test]
    fn what_is_configured_is_said_in_full() {
        let private = Secret::private([0xff; 32]);
        let text = interface_text(&private, Some(7));
        assert_eq!(text, format!("[Interface]\nPrivateKey = {}\nListenPort = 7\n", private.0));
        assert!(!interface_text(&private, None).contains("ListenPort"));
        assert!(is_key(private.reveal()));
        let networks = ["10.0.0.0/8", "fd99::/64"].map(|it| cidr(it).unwrap());
        let none = NewPeer {
            public_key: KEY,
            preshared: None,
            endpoint: None,
            allowed: &[],
            keepalive: 0,
        };
        let whole = NewPeer { endpoint: Some("[::1]:7"), allowed: &networks, keepalive: 9, ..none };
        let head = format!("[Peer]\nPublicKey = {KEY}\nPresharedKey = {NO_KEY}\n");
        assert_eq!(peer_text(&none), format!("{head}PersistentKeepalive = off\n"));
        let rest =
            "AllowedIPs = 10.0.0.0/8,fd99::/64\nEndpoint = [::1]:7\nPersistentKeepalive = 9\n";
        assert_eq!(peer_text(&whole), format!("{head}{rest}"));
    }
}
