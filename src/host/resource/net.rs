//! Forms of text that name something of a network. Pure.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::form::Text;

/// An IPv4 or IPv6 address.
pub static ADDRESS: Text = Text {
    what: "an IP address",
    mend: "write an IPv4 or IPv6 address in its usual form, not a name",
    pattern: "^[0-9A-Fa-f.:]+$",
    max: 45,
    holds: |text| text.parse::<IpAddr>().is_ok(),
};

/// An address with the length of its network's prefix.
pub static CIDR: Text = Text {
    what: "an address with a prefix length",
    mend: "write it as 10.0.0.1/24 or fd00::1/64",
    pattern: "^[0-9A-Fa-f.:]+/(0|[1-9][0-9]{0,2})$",
    max: 49,
    holds: |text| cidr(text).is_some(),
};

/// An address and a port.
pub static ENDPOINT: Text = Text {
    what: "an address and port",
    mend: "write it as 192.0.2.1:51820 or [2001:db8::1]:51820: an address, since a name may not \
           resolve when it is needed",
    pattern: "^([0-9.]+|\\[[0-9A-Fa-f.:]+\\]):[0-9]{1,5}$",
    max: 53,
    holds: |text| text.parse::<SocketAddr>().is_ok_and(|it| it.port() != 0) && !text.contains('%'),
};

/// The address and prefix length of a [`CIDR`].
pub fn cidr(text: &str) -> Option<(IpAddr, u8)> {
    let (address, length) = text.split_once('/')?;
    let address: IpAddr = address.parse().ok()?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    let plain = length == "0" || !length.starts_with(['0', '+']);
    let length = length.parse().ok().filter(|length| plain && *length <= most)?;
    Some((address, length))
}

/// The network that an address is in: its host bits are 0.
pub fn network((address, length): (IpAddr, u8)) -> (IpAddr, u8) {
    let network = match address {
        IpAddr::V4(it) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0);
            IpAddr::V4(Ipv4Addr::from(u32::from(it) & mask))
        }
        IpAddr::V6(it) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0);
            IpAddr::V6(Ipv6Addr::from(u128::from(it) & mask))
        }
    };
    (network, length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_has_no_host_bits() {
        for (address, expected) in [
            ("10.1.2.3/8", "10.0.0.0/8"),
            ("10.1.2.3/0", "0.0.0.0/0"),
            ("10.1.2.3/32", "10.1.2.3/32"),
            ("fd00::1:2/64", "fd00::/64"),
            ("fd00::1/0", "::/0"),
            ("fd00::1/128", "fd00::1/128"),
        ] {
            let network = network(cidr(address).unwrap());
            assert_eq!(format!("{}/{}", network.0, network.1), expected);
        }
    }

    #[test]
    fn what_only_looks_like_a_network_is_refused() {
        for bad in
            ["", "/", "10.0.0.1", "10.0.0.1/33", "10.0.0/8", "::/129", "10.0.0.1/+8", "10.0.0.1/08"]
        {
            assert_eq!(cidr(bad), None, "{bad}");
        }
    }
}
