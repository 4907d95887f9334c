//! ip(8): interfaces and their addresses, and wireguard-go, which makes one where the kernel
//! cannot. Pure.
//!
//! One `ip -j -d address show` tells of every interface and all of their addresses. Interfaces of
//! wireguard-go are of the kind `tun`.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::Deserialize;

use crate::declaration::fault::quoted;

/// Asks for everything.
pub const SHOW: [&str; 5] = ["ip", "-j", "-d", "address", "show"];

/// Every interface, by its name.
pub type Links = BTreeMap<Box<str>, Link>;

/// An interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// What the kernel calls its kind; empty where it is hardware.
    pub kind: Box<str>,
    /// It takes packets.
    pub is_up: bool,
    /// The largest packet, in bytes.
    pub mtu: u32,
    /// Its addresses, each with the length of its network's prefix.
    pub addresses: Vec<(IpAddr, u8)>,
}

#[derive(Deserialize)]
struct Told {
    ifname: Option<Box<str>>,
    #[serde(default)]
    flags: Vec<Box<str>>,
    #[serde(default)]
    mtu: u32,
    #[serde(default)]
    linkinfo: Info,
    #[serde(default)]
    addr_info: Vec<Address>,
}

#[derive(Default, Deserialize)]
struct Info {
    #[serde(default)]
    info_kind: Box<str>,
}

#[derive(Deserialize)]
struct Address {
    local: Option<IpAddr>,
    #[serde(default)]
    prefixlen: u8,
}

/// What [`SHOW`] was answered with.
///
/// # Errors
/// It is not understood.
pub fn links(text: &str) -> Result<Links, String> {
    let strange = |why: serde_json::Error| {
        format!("ip's answer is not understood: {}", quoted(&why.to_string()))
    };
    let told: Vec<Told> = serde_json::from_str(text).map_err(strange)?;
    let link = |told: Told| {
        let addresses = told.addr_info.iter().filter_map(|it| Some((it.local?, it.prefixlen)));
        let link = Link {
            kind: told.linkinfo.info_kind,
            is_up: told.flags.iter().any(|flag| **flag == *"UP"),
            mtu: told.mtu,
            addresses: addresses.collect(),
        };
        // What is filtered out of its list, ip leaves as an empty object (iproute2 4.20).
        Some((told.ifname?, link))
    };
    Ok(told.into_iter().filter_map(link).collect())
}

/// The address holds on its link alone: the kernel gives such a one by itself.
pub fn is_of_link(address: &IpAddr) -> bool {
    matches!(address, IpAddr::V6(address) if address.segments()[0] & 0xffc0 == 0xfe80)
}

/// Has the kernel make a WireGuard interface.
pub fn make(interface: &str) -> [&str; 7] {
    ["ip", "link", "add", "dev", interface, "type", "wireguard"]
}

/// The kernel has no such kind of interface: its words with iproute2 6.1, and older ones.
pub fn says_no_such_kind(said: &str) -> bool {
    ["Unknown device type", "Operation not supported"].iter().any(|words| said.contains(words))
}

/// Starts a WireGuard interface in user space. It ends when the interface goes.
pub fn make_in_user_space(interface: &str) -> [&str; 2] {
    ["wireguard-go", interface]
}

/// Takes an interface away.
pub fn drop_link(interface: &str) -> [&str; 5] {
    ["ip", "link", "del", "dev", interface]
}

/// Has an interface take packets, of at most this size where one is given.
pub fn set_up<'a>(interface: &'a str, mtu: Option<&'a str>) -> Vec<&'a str> {
    let mtu = mtu.map(|mtu| ["mtu", mtu]);
    let words = ["ip", "link", "set", "dev", interface].into_iter();
    words.chain(mtu.into_iter().flatten()).chain(["up"]).collect()
}

/// Gives an interface this address, or sees that it has it.
pub fn give<'a>(interface: &'a str, address: &'a str) -> [&'a str; 6] {
    ["ip", "address", "replace", address, "dev", interface]
}

/// Takes this address from an interface.
pub fn take<'a>(interface: &'a str, address: &'a str) -> [&'a str; 6] {
    ["ip", "address", "del", address, "dev", interface]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resource::net::cidr;

    // iproute2 6.1; the second where the kernel itself, 6.1, has WireGuard.
    const KERNEL: &str = include_str!("../../../tests/transcripts/ip/kernel.json");
    const SHOW: &str = include_str!("../../../tests/transcripts/ip/address.json");

    // R-5
    #[test]
    fn every_interface_and_address_is_told_of() {
        let links = links(SHOW).unwrap();
        let names = ["lo", "veth0", "veth1", "wg0", "wg1", "wg2"];
        assert_eq!(links.keys().map(|name| &**name).collect::<Vec<_>>(), names);
        let kinds = ["", "veth", "veth", "tun", "tun", "tun"];
        assert_eq!(links.values().map(|it| &*it.kind).collect::<Vec<_>>(), kinds);
        let wg0 = &links["wg0"];
        assert!(wg0.is_up && wg0.mtu == 1380 && !links["wg2"].is_up);
        let (own, others): (Vec<(IpAddr, u8)>, Vec<_>) =
            wg0.addresses.iter().copied().partition(|it| is_of_link(&it.0));
        assert_eq!(own.len(), 1, "the kernel's: {own:?}");
        let declared = ["10.99.0.1/24", "10.99.0.9/24", "fd99::1/64"].map(|it| cidr(it).unwrap());
        assert_eq!(others, declared);
        let kernel = &super::links(KERNEL).unwrap()["wg0"];
        assert_eq!((&*kernel.kind, kernel.is_up, kernel.mtu), ("wireguard", true, 1380));
        assert_eq!(kernel.addresses, [declared[0], declared[2]]);
        // As older ones print what their list leaves out.
        assert!(super::links("[{},{}]").unwrap().is_empty());
    }

    #[test]
    fn an_answer_that_is_cut_off_anywhere_is_none() {
        let whole = SHOW.trim_end().len();
        for cut in 0..whole {
            assert!(links(&SHOW[..cut]).is_err(), "{cut}");
        }
        for bad in ["{}", "[1]", r#"[{"ifname":1}]"#, r#"[{"addr_info":[{"local":"x"}]}]"#] {
            assert!(links(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_kernel_without_wireguard_is_told_by_its_words() {
        assert!(says_no_such_kind("Error: Unknown device type.\n"));
        assert!(says_no_such_kind("RTNETLINK answers: Operation not supported\n"));
        assert!(!says_no_such_kind("RTNETLINK answers: File exists\n"));
        assert!(!says_no_such_kind("RTNETLINK answers: Operation not permitted\n"));
    }
}
