//! `service`: a unit of the service manager.

use std::borrow::Cow;

use super::form::{word, Text};
use super::kind::{Carrier, Field, Kind, Shape, Touch, TIMEOUT_S};

/// How a declaration names a unit.
pub static KIND: Kind = Kind {
    name: "service",
    doc: "A unit's state. On leaving the declaration it is stopped and disabled as far as the \
          host started and enabled it.",
    fields: &[
        Field::required(
            "unit",
            "The unit's name; without suffix, a service's.",
            Shape::Text(&UNIT),
        ),
        Field::optional(
            "state",
            "Whether it runs. Absent: unmanaged.",
            Shape::Choice(&["running", "stopped"]),
        ),
        Field::optional(
            "enabled",
            "Whether it is started at boot. Absent: unmanaged.",
            Shape::Bool,
        ),
        RESTART_ON,
        Field::optional(
            "reload_on",
            "Resources, by id, whose change makes it reload.",
            Shape::List(&Shape::Reference(&[]), 0, 1000),
        ),
    ],
    exactly_one: &[],
    default_timeout_s: TIMEOUT_S,
    carrier: Carrier::Any,
    rules: |fields, judge| {
        let Some(unit) = fields.text("unit") else { return };
        judge.claims("unit", "service", full(unit));
        judge.touches("unit", Touch::Unit(unit));
        if fields.has("state") && unit.contains("@.") || fields.has("state") && unit.ends_with('@')
        {
            let mend = "name an instance, such as getty@tty1.service";
            judge.wrong("unit", "is a template, which can neither run nor stop".into(), mend);
        }
    },
    build: None,
};

/// Resources whose change makes something restart.
pub const RESTART_ON: Field = Field::optional(
    "restart_on",
    "Resources, by id, whose change makes it restart.",
    Shape::List(&Shape::Reference(&[]), 0, 1000),
);

// Slices, scopes and devices are systemd's own to start and stop: a slice ends all that is in it.
const SUFFIXES: [&str; 8] =
    [".service", ".socket", ".timer", ".path", ".mount", ".automount", ".swap", ".target"];

static UNIT: Text = Text {
    what: "the name of a unit that can be started and stopped",
    mend: "write a service's name, or one that ends in .socket, .timer, .path, .mount, \
           .automount, .swap or .target",
    pattern: "^[A-Za-z0-9:_.\\\\-][A-Za-z0-9:_.\\\\@-]*$",
    max: 255,
    holds: |text| {
        let others = [".slice", ".scope", ".device", ".snapshot"];
        word(text, ":_.\\-", ":_.\\-@")
            && !text.starts_with('.')
            && !others.iter().any(|suffix| text.ends_with(suffix))
            && full(&Cow::Borrowed(text)).len() <= 255
    },
};

/// The unit's name with its suffix, as systemctl(1) completes it.
fn full<'a>(unit: &Cow<'a, str>) -> Cow<'a, str> {
    if SUFFIXES.iter().any(|suffix| unit.ends_with(suffix)) {
        return unit.clone();
    }
    Cow::Owned(format!("{unit}.service"))
}
