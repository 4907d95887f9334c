//! A path inside the root. Pure.

use std::fmt;

/// An absolute path, normalised: one `/` between names, no `.`, no `..`, no trailing `/`, at least
/// one name. It says where inside the root a thing is, whatever the root.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RootPath(Box<str>);

impl RootPath {
    /// Normalises `text`; the error says what is wrong with it and how to mend it.
    pub fn parse(text: &str) -> Result<RootPath, &'static str> {
        if is_normal(text) {
            return Ok(RootPath(text.into()));
        }
        if !text.starts_with('/') {
            return Err("is not absolute: start it with /");
        }
        if text.contains('\0') {
            return Err("holds a NUL byte, which no file name can");
        }
        let mut normal = String::with_capacity(text.len());
        for name in text.split('/') {
            match name {
                "" | "." => continue,
                ".." => return Err("climbs with ..: write the path it leads to"),
                name if name.len() > 255 => return Err("has a name of more than 255 bytes"),
                name => {
                    normal.push('/');
                    normal.push_str(name);
                }
            }
        }
        match normal.len() {
            0 => Err("is the root itself, which is not a resource"),
            1..=4095 => Ok(RootPath(normal.into())),
            _ => Err("is longer than 4095 bytes"),
        }
    }

    /// The path as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The last name.
    pub fn name(&self) -> &str {
        self.split().1
    }

    /// The last name is of the form that the machine gives to what is not yet in its place.
    pub fn is_temporary(&self) -> bool {
        let digits = self.name().strip_prefix('.').and_then(|it| it.strip_suffix(".mesh-host~"));
        let is_hex = |byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        digits.is_some_and(|digits| digits.len() == 16 && digits.bytes().all(is_hex))
    }

    /// The directory that holds it; `None` where that is the root itself.
    pub fn parent(&self) -> Option<RootPath> {
        let (parent, _) = self.split();
        (!parent.is_empty()).then(|| RootPath(parent.into()))
    }

    /// The directories above it, topmost first.
    pub fn ancestors(&self) -> Vec<RootPath> {
        let mut above: Vec<RootPath> =
            std::iter::successors(self.parent(), RootPath::parent).collect();
        above.reverse();
        above
    }

    /// This path is `other` or lies beneath it.
    pub fn is_within(&self, other: &RootPath) -> bool {
        match self.0.strip_prefix(&*other.0) {
            Some(rest) => rest.is_empty() || rest.starts_with('/'),
            None => false,
        }
    }

    fn split(&self) -> (&str, &str) {
        // Asked of every file several times: names are short, and a plain loop is quickest.
        let slash = self.0.bytes().rposition(|byte| byte == b'/').unwrap_or(0);
        (&self.0[..slash], &self.0[slash + 1..])
    }
}

/// The text is a path in its normal form already, as nearly all are. A name that begins with a dot
/// is for the longer way to judge.
fn is_normal(text: &str) -> bool {
    let mut length = 0;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'/' if at > 0 && length == 0 => return false,
            b'/' => length = 0,
            0 => return false,
            b'.' if length == 0 => return false,
            _ if at == 0 || length == 255 => return false,
            _ => length += 1,
        }
    }
    length > 0 && text.len() <= 4095
}

impl fmt::Display for RootPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_one_spelling() {
        let long = format!("/{}", "n".repeat(255));
        for (text, normal) in [
            ("/a", "/a"),
            ("/a/b.c/d..", "/a/b.c/d.."),
            ("//a///b/", "/a/b"),
            ("/./a/./.b/...", "/a/.b/..."),
            (&*long, &*long),
            ("/é", "/é"),
        ] {
            assert_eq!(RootPath::parse(text).unwrap().as_str(), normal);
        }
    }

    #[test]
    fn what_leads_elsewhere_is_refused() {
        let (long, deep) = (format!("/{}", "n".repeat(256)), "/ab".repeat(1366));
        for text in ["", "a", "/", "//", "/.", "/a/..", "/../a", "/a\0", "a/", &long, &deep] {
            assert!(RootPath::parse(text).is_err(), "{text}");
        }
    }
}
