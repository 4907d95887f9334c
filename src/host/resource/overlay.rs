//! `overlay`: a WireGuard interface.

use super::form::{word, Text};
use super::kind::{Carrier, Field, Kind, Shape, Touch, TIMEOUT_S};
use super::net::CIDR;

/// How a declaration names an overlay.
pub static KIND: Kind = Kind {
    name: "overlay",
    doc: "A WireGuard interface. Its private key is made on the machine and never leaves it. On \
          leaving the declaration it is removed if the host created it.",
    fields: &[
        Field::required("interface", "The interface's name.", Shape::Text(&INTERFACE)),
        Field::required(
            "addresses",
            "Its addresses, each with the length of its network's prefix.",
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
            "Where its private key is kept. Absent: with the host's own state.",
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
    build: None,
};

static INTERFACE: Text = Text {
    what: "an interface's name",
    mend: "use at most 15 letters, digits and any of _ . = + -, and begin with no -",
    pattern: "^[A-Za-z0-9_=+.][A-Za-z0-9_=+.-]{0,14}$",
    max: 15,
    holds: |text| word(text, "_=+.", "_=+.-") && !matches!(text, "." | ".."),
};
