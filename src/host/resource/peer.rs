//! `peer`: a peer of an overlay.

use std::borrow::Cow;

use super::form::Text;
use super::kind::{Carrier, Field, Kind, Secrecy, Shape, TIMEOUT_S};
use super::net::{cidr, network, CIDR, ENDPOINT};
use crate::base64;

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
        Field::optional("endpoint", "Where it is reached.", Shape::Text(&ENDPOINT)),
        Field::optional(
            "persistent_keepalive_s",
            "How often a packet is sent to keep the way open, in seconds; 0: never.",
            Shape::Integer(0, 65_535),
        ),
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
    build: None,
};

static KEY: Text = Text {
    what: "a WireGuard key",
    mend: "write its 32 bytes in base64, 44 characters",
    pattern: "^[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$",
    max: 44,
    holds: |text| base64::decode(text).is_ok_and(|key| key.len() == 32),
};
