//! Overlays: WireGuard interfaces and their peers, as wg(8) and ip(8) tell of them, and what is
//! done to them.
//!
//! Each of the two is asked once for all that there is, and the answers kept until something
//! changes. Where the kernel has no WireGuard, wireguard-go makes the interface; that runs in a
//! unit of its own, since it has to outlive the host. Keys reach wg by a file in memory: none
//! stands in an argument.

mod key;
mod make;

use std::path::PathBuf;
use std::time::Duration;

use super::child::{self, Call, Ended, How, Unrun};
use super::clock::now;
use super::files::Reader;
use super::place::Site;
use super::root::Root;
use super::sys;
use super::words::words;
use crate::declaration::Own;
use crate::resource::wireguard::{Act, Ask, Device, Found, FoundPeer, Interface, Kept};
use crate::resource::{Answer, Trouble};
use crate::tool::ip::{self, Links};
use crate::tool::wg::{self, Devices};

/// The longest answer, in bytes: a hundred thousand peers with a few networks each.
const LONGEST_ANSWER: usize = 64 << 20;

const NOT_MOUNTED: &str = "interfaces belong to the running kernel, not to a mounted tree";

/// What is known of overlays.
#[derive(Debug)]
pub(super) struct Overlays {
    /// Where the host's own state has the private keys; `None` for a mounted tree.
    keys: Option<PathBuf>,
    devices: Option<Result<Devices, Trouble>>,
    links: Option<Result<Links, Trouble>>,
}

impl Overlays {
    /// Those of this machine, where `is_host`; a mounted tree has none.
    pub fn new(own: &Own, is_host: bool) -> Overlays {
        let state = own.state.as_ref().map_or("/var/lib/mesh-host", |state| state.as_str());
        let keys = is_host.then(|| PathBuf::from(state).join("overlay"));
        Overlays { keys, devices: None, links: None }
    }

    /// Forgets every answer.
    pub fn forget(&mut self) {
        (self.devices, self.links) = (None, None);
    }

    /// What is known of what is asked for.
    pub fn ask(
        &mut self,
        ask: Ask,
        root: &mut Root,
        reader: &mut Reader,
        limit: Duration,
    ) -> Result<Answer, Trouble> {
        let Some(keys) = self.keys.clone() else { return Ok(Answer::NotApplicable(NOT_MOUNTED)) };
        match ask {
            Ask::Interface(of) => {
                let kept = key::read(&of, &keys, root, reader)?;
                let link = self.links(limit)?.get(of.name).cloned();
                let device = self.devices(limit)?.get(of.name);
                let kept = kept.map(|held| Kept {
                    in_use: device.is_some_and(|it| it.private.as_ref() == Some(&held.key)),
                    exposed: held.exposed,
                });
                let device =
                    device.map(|it| Device { public_key: it.public.clone(), port: it.port });
                Ok(Answer::Overlay(Found { link, device, kept }))
            }
            Ask::Peer { interface, public_key } => {
                Ok(Answer::Peer(match self.devices(limit)?.get(interface) {
                    None => FoundPeer::NoInterface,
                    Some(device) => match device.peers.get(public_key) {
                        None => FoundPeer::Nothing,
                        Some(peer) => FoundPeer::Here {
                            peer: peer.clone(),
                            silent_s: (peer.handshake > 0)
                                .then(|| now().0.saturating_sub(peer.handshake)),
                        },
                    },
                }))
            }
        }
    }

    /// Every WireGuard interface. That it cannot be told is kept too: each peer would ask again.
    fn devices(&mut self, limit: Duration) -> Result<&Devices, Trouble> {
        let devices = self.devices.get_or_insert_with(|| {
            told(&wg::SHOW, limit, wg::devices)
                .map_err(|cause| Trouble::new("look at WireGuard's interfaces", cause))
        });
        devices.as_ref().map_err(Clone::clone)
    }

    fn links(&mut self, limit: Duration) -> Result<&Links, Trouble> {
        let links = self.links.get_or_insert_with(|| {
            told(&ip::SHOW, limit, ip::links)
                .map_err(|cause| Trouble::new("look at the interfaces", cause))
        });
        links.as_ref().map_err(Clone::clone)
    }

    /// Does this.
    pub fn act(&mut self, act: &Act, site: Site) -> Result<(), Trouble> {
        let limit = site.limit;
        let failed = |cause| Trouble::new(doing(act), cause);
        let Some(keys) = self.keys.clone() else { return Err(failed(NOT_MOUNTED.into())) };
        match *act {
            Act::KeepKey(of) => {
                // Others know the interface by the key that it has, whether or not that was kept.
                let device = self.devices(limit)?.get(of.name);
                key::keep(&of, &keys, device.and_then(|it| it.private.clone()), site)
            }
            Act::Configure(of, port) => {
                let held = key::read(&of, &keys, site.root, site.reader)?;
                let held = held.ok_or_else(|| failed("its private key is not kept".into()))?;
                configure(of.name, &wg::interface_text(&held.key, port), limit).map_err(failed)
            }
            Act::DropKey(name) => {
                key::discard(&Interface { name, key_file: None }, &keys, site.root)
            }
            Act::Make(name) => make::make(name, limit).map_err(failed),
            Act::Peer(interface, ref peer) => {
                configure(interface, &wg::peer_text(peer), limit).map_err(failed)
            }
            Act::DropPeer(interface, key) => {
                run(&wg::drop_peer(interface, key), limit).map_err(failed)
            }
            Act::SetUp(name, mtu) => {
                let mtu = mtu.map(|mtu| mtu.to_string());
                run(&ip::set_up(name, mtu.as_deref()), limit).map_err(failed)
            }
            Act::Give(name, (address, length)) => {
                run(&ip::give(name, &format!("{address}/{length}")), limit).map_err(failed)
            }
            Act::Take(name, (address, length)) => {
                run(&ip::take(name, &format!("{address}/{length}")), limit).map_err(failed)
            }
            Act::Drop(name) => run(&ip::drop_link(name), limit).map_err(failed),
        }
    }
}

/// What is done, to what.
fn doing(act: &Act) -> String {
    match act {
        Act::KeepKey(of) => format!("keep the private key of {}", of.name),
        Act::Make(name) => format!("make interface {name}"),
        Act::Configure(of, _) => format!("configure interface {}", of.name),
        Act::SetUp(name, _) => format!("set interface {name} up"),
        Act::Give(name, (address, length)) => format!("give {name} the address {address}/{length}"),
        Act::Take(name, (address, length)) => {
            format!("take the address {address}/{length} from {name}")
        }
        Act::Drop(name) => format!("remove interface {name}"),
        Act::DropKey(name) => format!("remove the private key of {name}"),
        Act::Peer(name, peer) => format!("make peer {} of {name}", peer.public_key),
        Act::DropPeer(name, key) => format!("remove peer {key} of {name}"),
    }
}

/// What `argv` told, as `read` understands it.
fn told<T>(
    argv: &[&str],
    limit: Duration,
    read: fn(&str) -> Result<T, String>,
) -> Result<T, String> {
    let call = Call { cap: LONGEST_ANSWER, ..Call::new(argv) };
    let ended = child::run(call, limit).map_err(lacks)?;
    let answer = ended.answer().map_err(|cause| format!("{} {cause}", argv[0]))?;
    succeeded(argv, &ended)?;
    read(&answer)
}

/// Has wg take in a configuration, which may hold keys.
fn configure(interface: &str, text: &str, limit: Duration) -> Result<(), String> {
    let input = sys::in_memory(text.as_bytes()).map_err(|error| words(&error))?;
    let argv = wg::configure(interface);
    let call = Call { input: Some(input), ..Call::new(&argv) };
    succeeded(&argv, &child::run(call, limit).map_err(lacks)?)
}

fn run(argv: &[&str], limit: Duration) -> Result<(), String> {
    succeeded(argv, &child::run(Call::new(argv), limit).map_err(lacks)?)
}

fn succeeded(argv: &[&str], ended: &Ended) -> Result<(), String> {
    match ended.how {
        How::Exited(0) => Ok(()),
        // What it wrote on standard output may hold keys.
        _ if argv[0] == "wg" && ended.err.bytes().is_empty() => {
            Err(format!("wg ended with {:?}", ended.how))
        }
        _ => Err(format!("{} {}", argv[0], ended.said())),
    }
}

fn lacks(unrun: Unrun) -> String {
    match unrun {
        Unrun::NotFound(cause) => {
            format!("{cause}; they come with the packages wireguard-tools and iproute2")
        }
        Unrun::Failed(cause) => cause,
    }
}
