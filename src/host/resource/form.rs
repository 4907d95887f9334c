//! Forms of text that more than one type knows. Pure.
//!
//! A form says itself twice: as a function, which decides, and as a pattern, which an editor can
//! check. The pattern may be the wider of the two, never the narrower.

/// A form of text.
pub struct Text {
    /// What it is, with its article: `a sysctl key`.
    pub what: &'static str,
    /// What would mend text of another form.
    pub mend: &'static str,
    /// The same as a regular expression (the part that ECMA-262 and others agree on); empty: any.
    pub pattern: &'static str,
    /// The longest, in bytes.
    pub max: usize,
    /// Whether text no longer than that has the form.
    pub holds: fn(&str) -> bool,
}

/// The id of a resource.
pub static ID: Text = Text {
    what: "an id",
    mend: "begin with a letter or digit and go on with letters, digits and any of . _ : / @ -",
    pattern: "^[A-Za-z0-9][A-Za-z0-9._:/@-]{0,199}$",
    max: 200,
    holds: |text| word(text, "", "._:/@-"),
};

/// The name of a type; which names there are is the registry's to say.
pub static TYPE: Text =
    Text { what: "a type", mend: "", pattern: "^[a-z_]+$", max: 64, holds: |_| true };

/// The name of a node.
pub static NODE: Text = Text {
    what: "a node's name",
    mend: "use lower-case letters, digits and -, at most 63, and begin with a letter or digit",
    pattern: "^[a-z0-9][a-z0-9-]{0,62}$",
    max: 63,
    holds: |text| word(text, "", "-") && !text.bytes().any(|byte| byte.is_ascii_uppercase()),
};

/// Text of any form.
pub static ANY: Text = Text {
    what: "text",
    mend: "",
    pattern: "",
    max: crate::declaration::MAX_BYTES,
    holds: |_| true,
};

/// One of a command's arguments, or the value of an environment variable.
pub static ARGUMENT: Text = Text {
    what: "an argument",
    mend: "leave the NUL byte out: no program can be given one",
    pattern: "^[^\\u0000]*$",
    max: 128 << 10,
    holds: |text| !text.contains('\0'),
};

/// The name of an environment variable.
pub static VARIABLE: Text = Text {
    what: "the name of an environment variable",
    mend: "use letters, digits and _, and begin with no digit",
    pattern: "^[A-Za-z_][A-Za-z0-9_]*$",
    max: 256,
    holds: |text| word(text, "_", "_") && !text.starts_with(|c: char| c.is_ascii_digit()),
};

/// An absolute path that may be `/` itself.
pub static ABSOLUTE: Text = Text {
    what: "an absolute path",
    mend: "start it with / and leave out .. and control characters",
    pattern: "^/[^\\u0000-\\u001f\\u007f]*$",
    max: 4095,
    holds: absolute,
};

/// The name of a user or group.
pub static ACCOUNT: Text = Text {
    what: "the name of a user or group",
    mend: "use letters, digits and any of _ . -, begin with no -, and not digits alone",
    pattern: "^[A-Za-z0-9_.][A-Za-z0-9_.-]{0,30}[A-Za-z0-9_.$-]?$",
    max: 32,
    holds: account,
};

/// One line of text.
pub static LINE: Text = Text {
    what: "one line of text",
    mend: "leave control characters out",
    pattern: "^[^\\u0000-\\u001f\\u007f]*$",
    max: 4096,
    holds: printable,
};

/// The text is not empty, begins with an ASCII letter, a digit or one of `first`, and goes on with
/// letters, digits and any of `rest`.
pub fn word(text: &str, first: &str, rest: &str) -> bool {
    let is = |byte: u8, more: &str| byte.is_ascii_alphanumeric() || more.as_bytes().contains(&byte);
    match text.as_bytes() {
        [] => false,
        [head, tail @ ..] => is(*head, first) && tail.iter().all(|byte| is(*byte, rest)),
    }
}

/// The text holds no ASCII control character.
pub fn printable(text: &str) -> bool {
    !text.bytes().any(|byte| byte.is_ascii_control())
}

/// The text is an absolute path without `..` and control characters.
pub fn absolute(text: &str) -> bool {
    text.starts_with('/') && printable(text) && !text.split('/').any(|name| name == "..")
}

/// The text is the name of an account, as shadow(5) tools take it: digits alone are a number.
pub fn account(text: &str) -> bool {
    let stem = text.strip_suffix('$').unwrap_or(text);
    word(stem, "_.", "_.-")
        && !matches!(stem, "." | "..")
        && !stem.bytes().all(|byte| byte.is_ascii_digit())
}

/// A command as a vector of arguments.
pub static ARGV: super::kind::Shape = super::kind::Shape::Text(&ARGUMENT);
