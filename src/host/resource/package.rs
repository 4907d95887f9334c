//! `package`: a package of the machine's own package manager.

use super::form::{word, Text};
use super::kind::{Carrier, Field, Kind, Shape, Touch};

/// How a declaration names a package.
pub static KIND: Kind = Kind {
    name: "package",
    doc: "A package that is present. Never upgraded, and never uninstalled: on leaving the \
          declaration it is forgotten.",
    fields: &[Field::required("name", "Its name, without version.", Shape::Text(&NAME))],
    exactly_one: &[],
    default_timeout_s: 900,
    carrier: Carrier::Any,
    rules: |fields, judge| {
        if let Some(name) = fields.text("name") {
            judge.claims("name", "package", name.clone());
            judge.touches("name", Touch::Package(name));
        }
    },
    build: None,
};

// A trailing - would ask apt-get for a removal; = / : would choose a version, source or machine.
static NAME: Text = Text {
    what: "a package's name",
    mend: "write the bare name: no version, repository or architecture",
    pattern: "^[A-Za-z0-9@_]([A-Za-z0-9@._+-]*[A-Za-z0-9@._+])?$",
    max: 200,
    holds: |text| word(text, "@_", "@._+-") && !text.ends_with('-'),
};
