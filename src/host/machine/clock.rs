//! The clock: the time of day as the wire writes it, deadlines that count time spent asleep, and
//! random bytes.

use std::io;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Seconds since 1970-01-01T00:00:00Z; 0 for a clock that stands before it.
pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Time since boot, suspended time included (`CLOCK_BOOTTIME`): what limits are measured by, since
/// `Instant` stands still while a machine sleeps.
pub fn uptime() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is writable and of the size that the kernel fills.
    let result = unsafe { libc::clock_gettime(libc::CLOCK_BOOTTIME, &mut time) };
    assert_eq!(result, 0, "every kernel since 2.6.39 has CLOCK_BOOTTIME");
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// An instant of [`uptime`] by which something must be done.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deadline(Duration);

impl Deadline {
    /// `limit` from now.
    pub(super) fn after(limit: Duration) -> Deadline {
        Deadline(uptime().saturating_add(limit))
    }

    /// What is left; zero once it has passed.
    pub(super) fn left(self) -> Duration {
        self.0.saturating_sub(uptime())
    }

    /// Nothing is left.
    pub(super) fn passed(self) -> bool {
        self.left().is_zero()
    }
}

/// Fills `bytes` from the kernel's generator.
pub fn random(bytes: &mut [u8]) -> io::Result<()> {
    let mut done = 0;
    while done < bytes.len() {
        let rest = &mut bytes[done..];
        // SAFETY: `rest` is writable for its length.
        let got = unsafe { libc::getrandom(rest.as_mut_ptr().cast(), rest.len(), 0) };
        match usize::try_from(got) {
            Ok(got) => done += got,
            Err(_) => match io::Error::last_os_error() {
                interrupted if interrupted.kind() == io::ErrorKind::Interrupted => {}
                error => return Err(error),
            },
        }
    }
    Ok(())
}

/// `unix` (seconds since 1970) as RFC 3339 in UTC, whole seconds: `2026-02-28T23:59:59Z`. Years
/// beyond 9999, which the format cannot write, come out as its last second.
pub fn rfc3339(unix: u64) -> String {
    let unix = unix.min(253_402_300_799);
    let (year, month, day) = civil(unix / 86_400);
    let (hour, minute, second) = (unix / 3600 % 24, unix / 60 % 60, unix % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// Seconds since 1970 of an RFC 3339 time in UTC (`Z`); a fraction of a second is dropped. `None`
/// for anything else, years before 1970 included.
pub fn from_rfc3339(text: &str) -> Option<u64> {
    let bare = text.strip_suffix('Z')?;
    let whole = match bare.split_once('.') {
        None => bare,
        Some((whole, fraction)) => {
            let digits = fraction.bytes().all(|c| c.is_ascii_digit());
            (digits && (1..=9).contains(&fraction.len())).then_some(whole)?
        }
    };
    let shape = b"0000-00-00T00:00:00";
    let fits = |(c, s): (u8, &u8)| if *s == b'0' { c.is_ascii_digit() } else { c == *s };
    if whole.len() != shape.len() || !whole.bytes().zip(shape).all(fits) {
        return None;
    }
    let number = |from: usize, to: usize| whole[from..to].parse::<u64>().ok();
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    let days = days(year, month, day)?;
    let valid = civil(days) == (year, month, day) && hour < 24 && minute < 60 && second < 60;
    valid.then_some(days * 86_400 + hour * 3600 + minute * 60 + second)
}

/// Year, month and day of a day counted from 1970-01-01. Years are taken to begin in March, so
/// that the leap day is the last of its year.
fn civil(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468; // from 0000-03-01
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12 + 1;
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

/// The inverse of [`civil`]; a day that no calendar has gives some other one's number.
fn days(year: u64, month: u64, day: u64) -> Option<u64> {
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let year = year.checked_sub(u64::from(month <= 2))?;
    let (era, year_of_era) = (year / 400, year % 400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + of_year;
    (era * 146_097 + of_era).checked_sub(719_468)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_instants_are_written_and_read() {
        for (unix, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_000_000_000, "2001-09-09T01:46:40Z"),
            (2_147_483_648, "2038-01-19T03:14:08Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
            (253_402_300_799, "9999-12-31T23:59:59Z"),
        ] {
            assert_eq!(rfc3339(unix), text);
            assert_eq!(from_rfc3339(text), Some(unix), "{text}");
        }
        assert_eq!(rfc3339(u64::MAX), "9999-12-31T23:59:59Z");
        assert_eq!(from_rfc3339("2001-09-09T01:46:40.999Z"), Some(1_000_000_000));
    }

    #[test]
    fn every_day_of_five_centuries_survives_the_round() {
        for day in 0..182_621 {
            let (year, month, of_month) = civil(day);
            assert_eq!(days(year, month, of_month), Some(day));
        }
    }

    #[test]
    fn what_is_no_time_in_utc_is_none() {
        for bad in [
            "",
            "Z",
            "2001-09-09T01:46:40",
            "2001-09-09T01:46:40+00:00",
            "2001-09-09 01:46:40Z",
            "2001-02-29T00:00:00Z",
            "2001-13-01T00:00:00Z",
            "2001-00-01T00:00:00Z",
            "2001-01-32T00:00:00Z",
            "2001-01-01T24:00:00Z",
            "2001-01-01T00:60:00Z",
            "2001-01-01T00:00:60Z",
            "1969-12-31T23:59:59Z",
            "0000-01-01T00:00:00Z",
            "+001-01-01T00:00:00Z",
            "2001-01-01T00:00:00.Z",
            "2001-01-01T00:00:00.1234567890Z",
            "２001-01-01T00:00:00Z",
        ] {
            assert_eq!(from_rfc3339(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn a_deadline_passes_when_its_limit_is_over() {
        assert!(Deadline::after(Duration::ZERO).passed());
        let far = Deadline::after(Duration::MAX);
        assert!(!far.passed() && far.left() > Duration::from_secs(1 << 40));
    }

    #[test]
    fn random_bytes_differ_and_fill_the_whole_of_a_large_buffer() {
        let (mut one, mut other) = ([0; 1024], [0; 1024]);
        random(&mut one).unwrap();
        random(&mut other).unwrap();
        assert_ne!(one[1000..], other[1000..]);
    }
}
