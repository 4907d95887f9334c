//! What is asked about overlays and their peers, what is found of them and done to them. Pure.

use std::net::IpAddr;

use super::RootPath;
use crate::tool::ip::Link;
use crate::tool::wg::{self, NewPeer};

/// What is asked about overlays.
#[derive(Clone, Copy, Debug)]
pub enum Ask<'a> {
    /// An interface.
    Interface(Interface<'a>),
    /// A peer of one.
    Peer {
        /// The interface's name.
        interface: &'a str,
        /// The peer's public key.
        public_key: &'a str,
    },
}

/// An interface, and where its private key is kept.
#[derive(Clone, Copy, Debug)]
pub struct Interface<'a> {
    /// Its name.
    pub name: &'a str,
    /// The file of its private key; `None` for the host's own state.
    pub key_file: Option<&'a RootPath>,
}

/// What is found of an interface.
#[derive(Debug)]
pub struct Found {
    /// The interface of that name, whatever its kind.
    pub link: Option<Link>,
    /// What WireGuard knows of it, its peers left out.
    pub device: Option<Device>,
    /// Its private key, where one is kept.
    pub kept: Option<Kept>,
}

/// What WireGuard knows of an interface.
#[derive(Debug)]
pub struct Device {
    /// Its public key, once it has one.
    pub public_key: Option<Box<str>>,
    /// The UDP port it listens on; 0 for none yet.
    pub port: u16,
}

/// A private key that is kept.
#[derive(Clone, Copy, Debug)]
pub struct Kept {
    /// The interface uses it.
    pub in_use: bool,
    /// Others than root can read it, or own its file.
    pub exposed: bool,
}

/// What is found of a peer.
#[derive(Debug)]
pub enum FoundPeer {
    /// There is no WireGuard interface of that name.
    NoInterface,
    /// It has no such peer.
    Nothing,
    /// This.
    Here {
        /// As WireGuard knows it.
        peer: wg::Peer,
        /// Seconds since it last proved who it is; `None` where it never has.
        silent_s: Option<u64>,
    },
}

/// What is done to overlays.
#[derive(Debug)]
pub enum Act<'a> {
    /// Keep a private key safely: the one that is kept, or the interface's, or a new one.
    KeepKey(Interface<'a>),
    /// Make the interface: the kernel's, or where that has none, one in user space.
    Make(&'a str),
    /// Give it the private key that is kept, and this port; `None` leaves that as it is.
    Configure(Interface<'a>, Option<u16>),
    /// Have it take packets, of at most this size; `None` leaves that as it is.
    SetUp(&'a str, Option<u32>),
    /// Give it an address, with the length of its network's prefix.
    Give(&'a str, (IpAddr, u8)),
    /// Take an address from it.
    Take(&'a str, (IpAddr, u8)),
    /// Take the interface away.
    Drop(&'a str),
    /// Remove the private key that the host's own state has of this interface.
    DropKey(&'a str),
    /// Have the interface know this peer, and no other networks behind it.
    Peer(&'a str, NewPeer<'a>),
    /// Take the peer of this public key away.
    DropPeer(&'a str, &'a str),
}
