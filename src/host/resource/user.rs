//! `user`: an account.

use super::form::{absolute, printable, Text, ACCOUNT};
use super::group::ID;
use super::kind::{Carrier, Field, Kind, Shape, Touch, TIMEOUT_S};

/// How a declaration names a user.
pub static KIND: Kind = Kind {
    name: "user",
    doc: "An account. On leaving the declaration, if the host created it, its login is locked and \
          its keys are taken away; the account is left.",
    fields: &[
        Field::required("name", "Its name.", Shape::Text(&ACCOUNT)),
        Field::optional("uid", "Its number. Absent: the next free one.", ID),
        Field::optional("group", "Its primary group, by name or number.", Shape::Principal),
        Field::optional(
            "groups",
            "Its further groups, all of them.",
            Shape::List(&Shape::Text(&ACCOUNT), 0, 1000),
        ),
        Field::optional("home", "Its home directory.", Shape::Text(&PLACE)),
        Field::optional("shell", "What it logs in to.", Shape::Text(&PLACE)),
        Field::optional("system", "Its number comes from the system's range.", Shape::Bool)
            .or("false"),
        Field::optional("comment", "Whose it is, or what for.", Shape::Text(&COMMENT)),
        Field::optional(
            "authorized_keys",
            "The keys that may log in over SSH, all of them; lines of authorized_keys(5).",
            Shape::List(&Shape::Text(&KEY), 0, 10_000),
        ),
    ],
    exactly_one: &[],
    default_timeout_s: TIMEOUT_S,
    carrier: Carrier::Any,
    rules: |fields, judge| {
        if let Some(name) = fields.text("name") {
            judge.claims("name", "user", name.clone());
        }
        if let Some(home) = fields.text("home") {
            judge.touches("home", Touch::Home(home));
        }
    },
    build: None,
};

// passwd(5) parts its fields with colons.
static PLACE: Text = Text {
    what: "an absolute path without colon",
    mend: "start it with / and leave out .., colons and control characters",
    pattern: "^/[^:\\u0000-\\u001f\\u007f]*$",
    max: 4095,
    holds: |text| absolute(text) && !text.contains(':'),
};

static COMMENT: Text = Text {
    what: "an account's comment",
    mend: "leave colons and control characters out",
    pattern: "^[^:\\u0000-\\u001f\\u007f]*$",
    max: 1024,
    holds: |text| printable(text) && !text.contains(':'),
};

static KEY: Text = Text {
    what: "a line of authorized_keys",
    mend: "write options, if any, then the key's type and the key, such as ssh-ed25519 AAAA…",
    pattern:
        "^[^#\\u0000-\\u001f\\u007f][^\\u0000-\\u001f\\u007f]* AAAA[^\\u0000-\\u001f\\u007f]*$",
    max: 16 << 10,
    holds: |text| {
        const TYPES: [&str; 4] = ["ssh-", "ecdsa-sha2-", "sk-ssh-", "sk-ecdsa-sha2-"];
        let words: Vec<&str> = text.split(' ').collect();
        let key = |pair: &[&str]| {
            TYPES.iter().any(|name| pair[0].starts_with(name)) && pair[1].starts_with("AAAA")
        };
        printable(text) && !text.starts_with('#') && words.windows(2).any(key)
    },
};
