//! `dataset`: a part of a storage pool.

use super::form::{printable, word, Text, LINE};
use super::kind::{Carrier, Field, Kind, Shape, Touch, TIMEOUT_S};

/// How a declaration names a dataset.
pub static KIND: Kind = Kind {
    name: "dataset",
    doc: "A dataset or subvolume. On leaving the declaration it is forgotten: data is never \
          destroyed.",
    fields: &[
        Field::required("name", "Its name, from the pool downwards.", Shape::Text(&NAME)),
        Field::optional(
            "properties",
            "Its properties.",
            Shape::Map(&PROPERTY, &Shape::Text(&LINE), 256),
        ),
        Field::optional("mountpoint", "Where it is mounted.", Shape::Path),
    ],
    exactly_one: &[],
    default_timeout_s: TIMEOUT_S,
    carrier: Carrier::Any,
    rules: |fields, judge| {
        if let Some(name) = fields.text("name") {
            judge.claims("name", "dataset", name.clone());
        }
        if let Some(path) = fields.path_text("mountpoint") {
            judge.touches("mountpoint", Touch::Tree(&path));
            judge.claims("mountpoint", "mountpoint", path);
        }
    },
    build: None,
};

static NAME: Text = Text {
    what: "a dataset's name",
    mend: "write pool/name: parts of letters, digits and any of _ . : -, with / between",
    pattern: "^/?[A-Za-z0-9_.:@-]+(/[A-Za-z0-9_.:@-]+)*$",
    max: 255,
    holds: |text| {
        let name = |name: &str| word(name, "_.:@", "_.:@-") && !matches!(name, "." | "..");
        text.strip_prefix('/').unwrap_or(text).split('/').all(name)
    },
};

static PROPERTY: Text = Text {
    what: "a property's name",
    mend: "use letters, digits and any of _ . : -",
    pattern: "^[A-Za-z0-9][A-Za-z0-9_.:-]*$",
    max: 255,
    holds: |text| printable(text) && word(text, "", "_.:-"),
};
