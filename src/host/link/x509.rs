//! What this host reads in a certificate itself: whose it is, when it is good, whose key it holds.
//! Pure.
//!
//! Judges no signature and no chain, which is the TLS library's. Only what RFC 5280 needs to reach
//! those three fields is read; a certificate that is written another way is refused.

use std::fmt;

use crate::when::When;

/// What a certificate says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate<'d> {
    /// The common name of its subject; `None` where that has none, or more than one.
    pub common_name: Option<&'d str>,
    /// When it is good.
    pub window: Window,
    /// Its SubjectPublicKeyInfo, whole.
    pub public_key: &'d [u8],
}

/// From when until when a certificate is good.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// The first moment.
    pub from: When,
    /// The last one; `None` where it never ends (9999-12-31T23:59:59Z, RFC 5280 4.1.2.5).
    pub until: Option<When>,
}

impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.until {
            Some(until) => write!(f, "from {} until {until}", self.from),
            None => write!(f, "from {} on", self.from),
        }
    }
}

const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const OBJECT_ID: u8 = 0x06;
const UTF8: u8 = 0x0c;
const PRINTABLE: u8 = 0x13;
const UTC_TIME: u8 = 0x17;
const TIME: u8 = 0x18;
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
/// Of an explicit version.
const VERSION: u8 = 0xa0;

/// 2.5.4.3
const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];

impl<'d> Certificate<'d> {
    /// Reads a certificate in DER; `None` where that is none.
    pub fn read(der: &'d [u8]) -> Option<Certificate<'d>> {
        let mut outer = Der(der);
        let mut whole = outer.enter(SEQUENCE)?;
        let mut fields = whole.enter(SEQUENCE)?;
        if fields.0.first() == Some(&VERSION) {
            fields.enter(VERSION)?;
        }
        fields.enter(INTEGER)?;
        fields.enter(SEQUENCE)?;
        fields.enter(SEQUENCE)?;
        let mut validity = fields.enter(SEQUENCE)?;
        let (from, until) = (validity.time()?, validity.time()?);
        let window = Window { from, until: Some(until).filter(|it| *it != NEVER) };
        let common_name = fields.enter(SEQUENCE)?.common_name()?;
        let before = fields.0;
        fields.enter(SEQUENCE)?.enter(SEQUENCE)?;
        let public_key = &before[..before.len() - fields.0.len()];
        whole.enter(SEQUENCE)?;
        whole.enter(BIT_STRING)?;
        let ends = outer.0.is_empty() && whole.0.is_empty() && validity.0.is_empty();
        ends.then_some(Certificate { common_name, window, public_key })
    }
}

/// The last second of the year 9999, which stands for no end.
const NEVER: When = When(253_402_300_799);

/// What is left of a DER value.
struct Der<'d>(&'d [u8]);

impl<'d> Der<'d> {
    /// The contents of the next value, which must be of this tag.
    fn enter(&mut self, tag: u8) -> Option<Der<'d>> {
        let (found, contents) = self.next()?;
        (found == tag).then_some(Der(contents))
    }

    fn next(&mut self) -> Option<(u8, &'d [u8])> {
        let (&[tag, first], mut rest) = self.0.split_first_chunk()?;
        let mut length = usize::from(first);
        if first >= 0x80 {
            // Four bytes of length are more than any certificate needs.
            let count = usize::from(first & 0x7f);
            let digits;
            (digits, rest) = rest.split_at_checked(count).filter(|_| (1..=4).contains(&count))?;
            length = digits.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte));
            let padded = digits[0] == 0 || length < 0x80;
            if padded {
                return None;
            }
        }
        let contents;
        (contents, self.0) = rest.split_at_checked(length)?;
        Some((tag, contents))
    }

    fn time(&mut self) -> Option<When> {
        let (tag, digits) = self.next()?;
        let digits = std::str::from_utf8(digits).ok()?;
        let (year, rest) = match tag {
            // 1950 to 2049 (RFC 5280 4.1.2.5.1).
            UTC_TIME => {
                let (year, rest) = digits.split_at_checked(2)?;
                (format!("{}{year}", if year < "50" { 20 } else { 19 }), rest)
            }
            TIME => digits.split_at_checked(4).map(|(year, rest)| (year.to_string(), rest))?,
            _ => return None,
        };
        let part = |at: usize| rest.get(at..at + 2);
        if rest.len() != 11 || !rest.ends_with('Z') {
            return None;
        }
        let [month, day, hour, minute, second] = [part(0)?, part(2)?, part(4)?, part(6)?, part(8)?];
        let text = format!("{year}-{month}-{day}T{hour}:{minute}:{second}Z");
        // One that began before 1970 began long enough ago.
        When::parse(&text).or_else(|| (year.as_str() < "1970").then_some(When(0)))
    }

    /// The one common name of a distinguished name; `None` within where there is not one.
    fn common_name(&mut self) -> Option<Option<&'d str>> {
        let (mut name, mut count) = (None, 0);
        while !self.0.is_empty() {
            let mut set = self.enter(SET)?;
            while !set.0.is_empty() {
                let mut pair = set.enter(SEQUENCE)?;
                let kind = pair.enter(OBJECT_ID)?;
                let (tag, value) = pair.next()?;
                if kind.0 == COMMON_NAME {
                    count += 1;
                    let text = std::str::from_utf8(value).ok();
                    name = text.filter(|_| matches!(tag, UTF8 | PRINTABLE));
                }
            }
        }
        Some(name.filter(|_| count == 1))
    }
}
