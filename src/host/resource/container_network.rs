//! `container_network`: a network that containers join.

use super::form::{word, Text};
use super::kind::{Carrier, Field, Kind, Shape, TIMEOUT_S};
use super::net::{cidr, network, CIDR};

/// How a declaration names a network of containers.
pub static KIND: Kind = Kind {
    name: "container_network",
    doc: "A network that containers join. On leaving the declaration it is removed if the host \
          created it and nothing uses it.",
    fields: &[
        Field::required("name", "Its name.", Shape::Text(&CONTAINER_NAME)),
        Field::optional("driver", "What makes it.", Shape::Text(&CONTAINER_NAME)).or("\"bridge\""),
        Field::optional("subnet", "Its network.", Shape::Text(&CIDR)),
        Field::optional("internal", "It leads nowhere outside.", Shape::Bool).or("false"),
    ],
    exactly_one: &[],
    default_timeout_s: TIMEOUT_S,
    carrier: Carrier::Any,
    rules: |fields, judge| {
        if let Some(name) = fields.text("name") {
            judge.claims("name", "container_network", name.clone());
            if ["bridge", "host", "none", "default"].contains(&&**name) {
                let wrong = format!("{name:?} is the container engine's own network");
                judge.wrong("name", wrong, "choose another name");
            }
        }
        if let Some(range) = fields.text("subnet").and_then(|text| cidr(text)) {
            let (address, length) = network(range);
            if address != range.0 {
                let mend = format!("write {address}/{length}");
                judge.wrong("subnet", "is an address within a network, not one".into(), &mend);
            }
        }
    },
    build: None,
};

/// The name of a container, of a network or of a volume.
pub static CONTAINER_NAME: Text = Text {
    what: "a name that a container engine takes",
    mend: "begin with a letter or digit and go on with letters, digits and any of _ . -",
    pattern: "^[A-Za-z0-9][A-Za-z0-9_.-]*$",
    max: 200,
    holds: |text| word(text, "", "_.-"),
};
