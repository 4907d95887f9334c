//! A moment as journal and reports write it: RFC 3339, UTC, whole seconds. Pure; the clock is the
//! caller's.

use std::fmt;

use serde::{de, Deserialize, Deserializer, Serialize, Serializer};

/// Seconds since 1970, written `2026-01-02T03:04:05Z`. Years past 9999 are written as its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct When(pub u64);

/// The last second of the year 9999.
const LAST: u64 = 253_402_300_799;

impl When {
    /// Reads exactly what `Display` writes; `None` for anything else.
    pub fn parse(text: &str) -> Option<When> {
        let bytes: &[u8; 20] = text.as_bytes().try_into().ok()?;
        let fixed = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':'), (19, b'Z')];
        if fixed.iter().any(|&(at, byte)| bytes[at] != byte) {
            return None;
        }
        let number = |from: usize, to: usize| {
            bytes[from..to].iter().try_fold(0u64, |sum, &byte| {
                byte.is_ascii_digit().then(|| sum * 10 + u64::from(byte - b'0'))
            })
        };
        let days = days_from_civil(number(0, 4)?, number(5, 7)?, number(8, 10)?)?;
        let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
        let in_range = hour < 24 && minute < 60 && second < 60;
        in_range.then_some(When(days * 86_400 + hour * 3600 + minute * 60 + second))
    }
}

impl fmt::Display for When {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.min(LAST);
        let (year, month, day) = civil_from_days(seconds / 86_400);
        let time = seconds % 86_400;
        let (hour, minute, second) = (time / 3600, time / 60 % 60, time % 60);
        let mut text = *b"0000-00-00T00:00:00Z";
        let parts = [(0, 4, year), (5, 7, month), (8, 10, day)];
        let clock = [(11, 13, hour), (14, 16, minute), (17, 19, second)];
        for (from, to, mut value) in parts.into_iter().chain(clock) {
            for digit in text[from..to].iter_mut().rev() {
                *digit = b'0' + (value % 10) as u8;
                value /= 10;
            }
        }
        f.write_str(std::str::from_utf8(&text).expect("digits and separators are ASCII"))
    }
}

impl Serialize for When {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for When {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<When, D::Error> {
        let text = <&str>::deserialize(deserializer)?;
        When::parse(text).ok_or_else(|| de::Error::custom("a time is not written as one"))
    }
}

/// Days since 1970 of a date from 1970 on; `None` where there is no such date.
fn days_from_civil(year: u64, month: u64, day: u64) -> Option<u64> {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let longest = match month {
        2 => 28 + u64::from(leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    if year < 1970 || !(1..=longest).contains(&day) {
        return None;
    }
    let (shifted_year, shifted_month) =
        if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let day_of_year = (153 * shifted_month + 2) / 5 + day - 1;
    let days = shifted_year * 365 + shifted_year / 4 - shifted_year / 100
        + shifted_year / 400
        + day_of_year
        - 719_468;
    Some(days)
}

/// The date so many days after 1970-01-01 (Hinnant, "chrono-compatible low-level date algorithms").
fn civil_from_days(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let day_of_era = shifted % 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_reads_back_as_it_was_written() {
        // `date -u -d @N +%FT%TZ`.
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_767_323_045, "2026-01-02T03:04:05Z"),
            (4_107_542_399, "2100-02-28T23:59:59Z"),
            (LAST, "9999-12-31T23:59:59Z"),
        ] {
            assert_eq!(When(seconds).to_string(), text);
            assert_eq!(When::parse(text), Some(When(seconds)));
        }
        for day in 0..60_000 {
            let when = When(day * 86_400 + day % 86_400);
            assert_eq!(When::parse(&when.to_string()), Some(when));
        }
    }

    #[test]
    fn what_is_no_moment_is_refused() {
        for bad in [
            "",
            "2026-01-02T03:04:05",
            "2026-01-02T03:04:05+00:00",
            "2026-02-29T00:00:00Z",
            "2026-13-01T00:00:00Z",
            "2026-01-00T00:00:00Z",
            "2026-01-01T24:00:00Z",
            "1969-12-31T23:59:59Z",
            "+026-01-02T03:04:05Z",
            "2026-01-02T03:04:0\u{e9}",
        ] {
            assert_eq!(When::parse(bad), None, "{bad}");
        }
    }
}
