//! The clock: the time of day, deadlines that count time spent asleep, and random bytes.

use std::io;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::when::When;

/// The time of day; the beginning of 1970 for a clock that stands before it.
pub fn now() -> When {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    When(since.map_or(0, |since| since.as_secs()))
}

/// Time since boot, suspended time included (`CLOCK_BOOTTIME`): what limits are measured by, since
/// `Instant` stands still while a machine sleeps.
pub fn uptime() -> Duration {
    clock(libc::CLOCK_BOOTTIME)
}

fn clock(which: libc::clockid_t) -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is writable and of the size that the kernel fills.
    let result = unsafe { libc::clock_gettime(which, &mut time) };
    assert_eq!(result, 0, "every kernel since 2.6.39 has both clocks");
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
fn random(bytes: &mut [u8]) -> io::Result<()> {
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

/// Random bytes for those who have no use for a reason why there are none.
pub fn fill(bytes: &mut [u8]) {
    random(bytes).expect("getrandom(2) has been there since Linux 3.17")
}

/// An id that no other will have: 128 random bits in hexadecimal.
pub fn random_id() -> String {
    let mut bytes = [0; 16];
    fill(&mut bytes);
    crate::digest::hex(&bytes)
}

/// A random number.
pub fn dice() -> u32 {
    let mut bytes = [0; 4];
    fill(&mut bytes);
    u32::from_ne_bytes(bytes)
}

/// `CLOCK_MONOTONIC` in microseconds, as the service manager wants to be told it.
pub fn monotonic_us() -> u128 {
    clock(libc::CLOCK_MONOTONIC).as_micros()
}

/// Waits for `span`, or less where a signal comes.
pub fn pause(span: Duration) {
    let millis = span.as_millis().min(i32::MAX as u128) as libc::c_int;
    // SAFETY: no descriptor is passed, so none is read.
    unsafe { libc::poll(std::ptr::null_mut(), 0, millis) };
}
