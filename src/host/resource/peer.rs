//! `peer`: a peer of an overlay.

use std::borrow::Cow;
use std::net::{IpAddr, SocketAddr};

use super::form::Text;
use super::kind::{Carrier, Field, Kind, Secrecy, Shape, TIMEOUT_S};
use super::net::{cidr, network, CIDR, ENDPOINT};
use super::overlay::networks;
use super::parting::{Ends, Farewell, Leaving, Undo};
use super::wireguard::{Act, Ask, FoundPeer};
use super::{Answer, Object, Past, Question, Resource, Step, Trouble, Verdict};
use crate::tool::wg::{is_key, NewPeer, Secret};

/// How long after a peer last proved who it is its keys are good for, in seconds (REJECT_AFTER_TIME
/// of the protocol). Heard from within that, it is where WireGuard says, wherever it is declared.
const FRESH_S: u64 = 180;

/// A declared peer.
#[derive(Debug)]
pub struct Peer {
    /// The name of the overlay's interface; empty in an excerpt, until it is completed.
    pub interface: Box<str>,
    /// Its public key.
    pub public_key: Box<str>,
    /// The networks behind it, in order.
    pub allowed: Box<[(IpAddr, u8)]>,
    /// Where it is reached; `None` leaves that to it.
    pub endpoint: Option<Box<str>>,
    /// How often a packet is sent to keep the way open, in seconds; 0 for never.
    pub keepalive: u16,
    /// The further key that both know.
    pub preshared: Option<Secret>,
}

impl Resource for Peer {
    fn kind(&self) -> &'static str {
        "peer"
    }

    fn object(&self) -> Object {
        Object::new("peer", &format!("{} {}", self.interface, self.public_key))
    }

    fn complete(&mut self, object: &Object) {
        self.interface = parts(object.name()).0.into();
    }

    fn question(&self) -> Question<'_> {
        let (interface, public_key) = (&*self.interface, &*self.public_key);
        Question::Overlay(Ask::Peer { interface, public_key })
    }

    fn judge(&self, answer: &Answer, past: &Past<'_>) -> Result<Verdict<'_>, Trouble> {
        let (found, silent_s) = match answer {
            Answer::Peer(FoundPeer::Here { peer, silent_s }) => (peer, *silent_s),
            Answer::Peer(FoundPeer::Nothing) => {
                return Ok(Verdict {
                    steps: vec![self.step(self.endpoint.as_deref())],
                    detail: super::ABSENT.into(),
                    before: self.remembered(),
                    ..Verdict::default()
                })
            }
            Answer::Peer(FoundPeer::NoInterface) => {
                let doing = format!("make peer {} of {}", self.public_key, self.interface);
                let trouble = Trouble::new(doing, "there is no WireGuard interface of that name");
                let awaits = Some(Object::new("overlay", &self.interface));
                return Err(Trouble { awaits, ..trouble });
            }
            Answer::NotApplicable(why) => return Ok(Verdict::not_applicable(why)),
            other => return Err(other.mismatch()),
        };
        let is_fresh = silent_s.is_some_and(|silent_s| silent_s < FRESH_S);
        let was_told = past.before == self.remembered().as_deref();
        let elsewhere = self.endpoint.as_deref().filter(|endpoint| {
            let found = found.endpoint.as_deref();
            !(found.is_some_and(|found| is_same(found, endpoint)) || is_fresh && was_told)
        });
        let mut differs = Vec::new();
        if let Some(endpoint) = elsewhere {
            let found = found.endpoint.as_deref().unwrap_or("nowhere");
            differs.push(format!("its endpoint is {found}, not {endpoint}"));
        }
        if *found.allowed != *self.allowed {
            differs.push(self.networks_differ(&found.allowed));
        }
        if found.keepalive != self.keepalive {
            let (found, declared) = (found.keepalive, self.keepalive);
            differs.push(format!("its persistent keepalive is {found} s, not {declared} s"));
        }
        if found.preshared != self.preshared {
            differs.push("its preshared key is another".into());
        }
        Ok(Verdict {
            existed: true,
            steps: if differs.is_empty() { vec![] } else { vec![self.step(elsewhere)] },
            detail: differs.join(", "),
            before: self.remembered(),
            ..Verdict::default()
        })
    }

    fn secret(&self) -> bool {
        self.preshared.is_some()
    }
}

impl Peer {
    fn step<'a>(&'a self, endpoint: Option<&'a str>) -> Step<'a> {
        let Peer { interface, public_key, allowed, keepalive, preshared, .. } = self;
        let preshared = preshared.as_ref();
        let peer = NewPeer { public_key, preshared, endpoint, allowed, keepalive: *keepalive };
        Step::Overlay(Act::Peer(interface, peer))
    }

    /// What the store keeps: the endpoint that was told last. Where the peer is by now is its own
    /// business, until another is declared.
    fn remembered(&self) -> Option<String> {
        self.endpoint.as_ref().map(|endpoint| format!("endpoint={endpoint}"))
    }

    /// Both are in order: there may be very many.
    fn networks_differ(&self, found: &[(IpAddr, u8)]) -> String {
        let extra = found.iter().find(|it| self.allowed.binary_search(it).is_err());
        let lacks = self.allowed.iter().find(|it| found.binary_search(it).is_err());
        match (extra, lacks) {
            (Some((address, length)), _) => format!("{address}/{length} is behind it"),
            (None, Some((address, length))) => format!("{address}/{length} is not behind it"),
            (None, None) => "a network is behind it twice".into(),
        }
    }
}

/// Both are the same address and port, however they are written.
fn is_same(one: &str, other: &str) -> bool {
    let read = |text: &str| text.parse::<SocketAddr>();
    one == other || matches!((read(one), read(other)), (Ok(one), Ok(other)) if one == other)
}

/// A peer that the host made goes.
pub(super) struct TakeAway;

/// The interface and the public key in the name of a peer's object.
fn parts(name: &str) -> (&str, &str) {
    name.split_once(' ').unwrap_or((name, ""))
}

impl Undo for TakeAway {
    fn announces(&self, it: &Leaving<'_>) -> Option<String> {
        let (interface, public_key) = parts(it.name);
        Some(format!("remove peer {public_key} of {interface}"))
    }

    fn question<'a>(&self, it: &Leaving<'a>) -> Question<'a> {
        let (interface, public_key) = parts(it.name);
        Question::Overlay(Ask::Peer { interface, public_key })
    }

    fn judge<'a>(&self, it: &Leaving<'a>, answer: &Answer) -> Result<Farewell<'a>, Trouble> {
        let (interface, public_key) = parts(it.name);
        match answer {
            Answer::Peer(FoundPeer::Here { .. }) => {
                let step = Step::Overlay(Act::DropPeer(interface, public_key));
                Ok(Farewell { steps: vec![step], ..Farewell::ended(Ends::Removed, "it is there") })
            }
            Answer::Peer(_) => Ok(Farewell::ended(Ends::Removed, "")),
            Answer::NotApplicable(why) => Ok(Farewell::ended(Ends::Left, why)),
            other => Err(other.mismatch()),
        }
    }
}

/// How a declaration names a peer.
pub static KIND: Kind = Kind {
    name: "peer",
    doc: "A WireGuard peer of an overlay declared earlier. On leaving the declaration it is \
          removed if the host created it.",
    fields: &[
        Field::required("overlay", "The overlay, by id.", Shape::Reference(&["overlay"])),
        Field::required("public_key", "The peer's public key.", Shape::Text(&KEY)),
        Field::required(
            "allowed_ips",
            "The networks that lie behind it; each belongs to one peer.",
            Shape::List(&Shape::Text(&CIDR), 0, 65_536),
        ),
        Field::optional(
            "endpoint",
            "Where it is reached, told to WireGuard when the peer is made, when another is \
             declared, and when the peer has not been heard from for three minutes.",
            Shape::Text(&ENDPOINT),
        ),
        Field::optional(
            "persistent_keepalive_s",
            "How often a packet is sent to keep the way open, in seconds; 0: never.",
            Shape::Integer(0, 65_535),
        )
        .or("0"),
        Field::optional("preshared_key", "A further key, known to both.", Shape::Text(&KEY))
            .kept(Secrecy::Always),
    ],
    exactly_one: &[],
    default_timeout_s: TIMEOUT_S,
    carrier: Carrier::Any,
    rules: |fields, judge| {
        let Some(overlay) = fields.text("overlay") else { return };
        if let Some(key) = fields.text("public_key") {
            judge.claims("public_key", "peer", Cow::Owned(format!("{key} of {overlay}")));
        }
        for range in fields.list("allowed_ips").iter().filter_map(|it| cidr(it.as_text())) {
            let (address, length) = network(range);
            let name = format!("{address}/{length} of {overlay}");
            judge.claims("allowed_ips", "allowed_ip", Cow::Owned(name));
        }
    },
    build: Some(|_, fields| {
        let mut allowed: Vec<_> = networks(fields.list("allowed_ips")).into_vec();
        allowed.iter_mut().for_each(|it| *it = network(*it));
        allowed.sort_unstable();
        allowed.dedup();
        let keepalive = fields.integer("persistent_keepalive_s").unwrap_or(0);
        let preshared = fields.take_text("preshared_key").and_then(|key| Secret::of(&key));
        Box::new(Peer {
            interface: fields.take_text("overlay").expect("the table requires overlay"),
            public_key: fields.take_text("public_key").expect("the table requires public_key"),
            allowed: allowed.into(),
            endpoint: fields.take_text("endpoint"),
            keepalive: u16::try_from(keepalive).expect("the shape is a u16's range"),
            preshared,
        })
    }),
};

static KEY: Text = Text {
    what: "a WireGuard key",
    mend: "write its 32 bytes in base64, 44 characters",
    pattern: "^[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$",
    max: 44,
    holds: is_key,
};
