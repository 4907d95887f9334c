//! `overlay`: a WireGuard interface.

use std::net::IpAddr;

use super::fields::Value;
use super::form::{word, Text};
use super::kind::{Carrier, Field, Kind, Shape, Touch, TIMEOUT_S};
use super::net::{cidr, CIDR};
use super::parting::{Ends, Farewell, Leaving, Undo};
use super::wireguard::{Act, Ask, Found, Interface};
use super::{Answer, Object, Past, Question, Resource, RootPath, Standing, Step, Trouble, Verdict};
use crate::tool::ip::{is_of_link, Link};

/// A declared WireGuard interface.
#[derive(Debug)]
pub struct Overlay {
    /// Its name.
    pub interface: Box<str>,
    /// All its addresses.
    pub addresses: Box<[(IpAddr, u8)]>,
    /// The UDP port it listens on; `None` leaves that alone.
    pub port: Option<u16>,
    /// The largest packet, in bytes; `None` leaves that alone.
    pub mtu: Option<u32>,
    /// Where its private key is kept; `None` for the host's own state.
    pub key_file: Option<RootPath>,
}

impl Resource for Overlay {
    fn kind(&self) -> &'static str {
        "overlay"
    }

    fn object(&self) -> Object {
        Object::new("overlay", &self.interface)
    }

    fn question(&self) -> Question<'_> {
        Question::Overlay(Ask::Interface(self.named()))
    }

    fn judge(&self, answer: &Answer, past: &Past<'_>) -> Result<Verdict<'_>, Trouble> {
        let found = match answer {
            Answer::Overlay(found) => found,
            Answer::NotApplicable(why) => return Ok(Verdict::not_applicable(why)),
            other => return Err(other.mismatch()),
        };
        let here = match (&found.link, &found.device) {
            (None, _) => None,
            (Some(link), Some(device)) => Some((link, device)),
            (Some(link), None) => return Err(self.in_the_way(link)),
        };
        let mut acts = Vec::new();
        let mut differs = Vec::new();
        let name = &*self.interface;
        let kept = found.kept;
        if kept.is_none_or(|kept| kept.exposed) {
            acts.push(Act::KeepKey(self.named()));
            differs.push(match kept {
                None => "its private key is not kept".to_string(),
                Some(_) => "others than root can get at its private key".to_string(),
            });
        }
        if here.is_none() {
            acts.push(Act::Make(name));
        }
        // One that is there and whose key was not kept keeps it: others know it by that.
        let has_key = here.is_some_and(|(_, device)| device.public_key.is_some());
        let has_key = has_key && kept.is_none_or(|kept| kept.in_use);
        let found_port = here.map(|(_, device)| device.port);
        let port = self.port.filter(|port| found_port != Some(*port));
        if !has_key || port.is_some() {
            acts.push(Act::Configure(self.named(), port));
            differs.extend((!has_key).then(|| "it has not the key that is kept".to_string()));
            differs.extend(port.map(|port| {
                format!("it listens on port {}, not {port}", found_port.unwrap_or_default())
            }));
        }
        let (is_up, found_mtu) =
            here.map_or((false, None), |(link, _)| (link.is_up, Some(link.mtu)));
        let mtu = self.mtu.filter(|mtu| found_mtu != Some(*mtu));
        if !is_up || mtu.is_some() {
            acts.push(Act::SetUp(name, mtu));
            differs.extend((!is_up).then(|| "it is down".to_string()));
            differs.extend(mtu.map(|mtu| {
                format!("its largest packet is {}, not {mtu}", found_mtu.unwrap_or_default())
            }));
        }
        self.readdress(here.map_or(&[], |(link, _)| &link.addresses), &mut acts, &mut differs);
        let public_key = here.and_then(|(_, device)| device.public_key.as_deref());
        Ok(Verdict {
            existed: here.is_some(),
            steps: acts.into_iter().map(Step::Overlay).collect(),
            detail: if here.is_some() { differs.join(", ") } else { super::ABSENT.into() },
            before: public_key.map(remembered).or_else(|| past.before.map(Into::into)),
            ..Verdict::default()
        })
    }
}

impl Overlay {
    fn named(&self) -> Interface<'_> {
        Interface { name: &self.interface, key_file: self.key_file.as_ref() }
    }

    fn in_the_way(&self, link: &Link) -> Trouble {
        let cause = match &*link.kind {
            // One of wireguard-go looks so while its process does not answer for it.
            "tun" | "wireguard" => {
                format!("its kind is {}, and wg does not know it", link.kind)
            }
            "" => "another kind of interface is there, which is never replaced".into(),
            kind => format!("an interface of kind {kind} is there, which is never replaced"),
        };
        Trouble::new(format!("make interface {}", self.interface), cause)
    }

    /// What takes it from the addresses `found` to those declared.
    fn readdress<'a>(
        &'a self,
        found: &[(IpAddr, u8)],
        acts: &mut Vec<Act<'a>>,
        differs: &mut Vec<String>,
    ) {
        let name = &*self.interface;
        let is_extra = |it: &&(IpAddr, u8)| !self.addresses.contains(it) && !is_of_link(&it.0);
        let before = acts.len();
        for &(address, length) in found.iter().filter(is_extra) {
            acts.push(Act::Take(name, (address, length)));
            differs.push(format!("it has the address {address}/{length}"));
        }
        // The first address of a network takes the others along, as promote_secondaries has it.
        let all = acts.len() > before;
        for &(address, length) in &self.addresses {
            let lacks = !found.contains(&(address, length));
            if lacks || all {
                acts.push(Act::Give(name, (address, length)));
            }
            if lacks {
                differs.push(format!("it has not the address {address}/{length}"));
            }
        }
    }
}

const PUBLIC_KEY: &str = "public_key=";

/// What the store keeps of an interface.
fn remembered(public_key: &str) -> String {
    format!("{PUBLIC_KEY}{public_key}")
}

/// The public key of an interface, by what the store keeps of it.
pub fn public_key(kept: &str) -> Option<&str> {
    kept.strip_prefix(PUBLIC_KEY)
}

/// An interface that the host made goes, with the key that the host's own state has of it. Of one
/// that was there, only that copy of its key goes.
pub(super) struct TakeDown;

impl Undo for TakeDown {
    fn announces(&self, it: &Leaving<'_>) -> Option<String> {
        let made = it.standing == Standing::Created;
        made.then(|| format!("remove interface {} and its private key", it.name))
    }

    fn question<'a>(&self, it: &Leaving<'a>) -> Question<'a> {
        Question::Overlay(Ask::Interface(Interface { name: it.name, key_file: None }))
    }

    fn judge<'a>(&self, it: &Leaving<'a>, answer: &Answer) -> Result<Farewell<'a>, Trouble> {
        let found = match answer {
            Answer::Overlay(found) => found,
            Answer::NotApplicable(why) => return Ok(Farewell::ended(Ends::Left, why)),
            other => return Err(other.mismatch()),
        };
        let Found { link, device, kept } = found;
        let made = it.standing == Standing::Created;
        let drops = made && link.is_some() && device.is_some();
        let link_goes = drops.then_some(Act::Drop(it.name));
        let key_goes = kept.map(|_| Act::DropKey(it.name));
        let steps: Vec<Step> = link_goes.into_iter().chain(key_goes).map(Step::Overlay).collect();
        Ok(match (made, link, device) {
            _ if drops => Farewell { steps, ..Farewell::ended(Ends::Removed, "it is there") },
            _ if !steps.is_empty() => {
                Farewell { steps, ..Farewell::ended(Ends::Removed, "its private key is kept") }
            }
            (false, ..) => Farewell::ended(Ends::Forgotten, ""),
            (true, Some(_), None) => {
                Farewell::ended(Ends::Left, "another kind of interface is there now")
            }
            _ => Farewell::ended(Ends::Removed, ""),
        })
    }
}

/// How a declaration names an overlay.
pub static KIND: Kind = Kind {
    name: "overlay",
    doc: "A WireGuard interface. Its private key is made on the machine and never leaves it. On \
          leaving the declaration it is removed if the host created it.",
    fields: &[
        Field::required("interface", "The interface's name.", Shape::Text(&INTERFACE)),
        Field::required(
            "addresses",
            "Its addresses, each with the length of its network's prefix. What lies within these \
             networks is reached through it; no other routes are made.",
            Shape::List(&Shape::Text(&CIDR), 1, 64),
        ),
        Field::optional(
            "listen_port",
            "The UDP port it listens on. Absent: any free one.",
            Shape::Integer(1, 65_535),
        ),
        Field::optional("mtu", "The largest packet, in bytes.", Shape::Integer(576, 65_535)),
        Field::optional(
            "private_key_file",
            "Where its private key is kept; made there if there is none, and left there. Absent: \
             with the host's own state.",
            Shape::Path,
        ),
    ],
    exactly_one: &[],
    default_timeout_s: TIMEOUT_S,
    carrier: Carrier::Any,
    rules: |fields, judge| {
        if let Some(interface) = fields.text("interface") {
            judge.claims("interface", "overlay", interface.clone());
        }
        if let Some(path) = fields.path_text("private_key_file") {
            judge.touches("private_key_file", Touch::Tree(&path));
            judge.claims("private_key_file", "path", path);
        }
    },
    build: Some(|_, fields| {
        let addresses = networks(fields.list("addresses"));
        let port = fields.integer("listen_port").and_then(|port| u16::try_from(port).ok());
        let mtu = fields.integer("mtu").and_then(|mtu| u32::try_from(mtu).ok());
        let key_file = fields.has("private_key_file").then(|| fields.take_path("private_key_file"));
        let interface = fields.take_text("interface").expect("the table requires interface");
        Box::new(Overlay { interface, addresses, port, mtu, key_file })
    }),
};

/// The values of a list of [`CIDR`]s.
pub(super) fn networks(values: &[Value<'_>]) -> Box<[(IpAddr, u8)]> {
    let network = |value: &Value<'_>| cidr(value.as_text()).expect("the shape is a CIDR");
    values.iter().map(network).collect()
}

static INTERFACE: Text = Text {
    what: "an interface's name",
    mend: "use at most 15 letters, digits and any of _ . = + -, and begin with no -",
    pattern: "^[A-Za-z0-9_=+.][A-Za-z0-9_=+.-]{0,14}$",
    max: 15,
    holds: |text| word(text, "_=+.", "_=+.-") && !matches!(text, "." | ".."),
};
