//! Waiting for something that becomes true, always with a limit.

use std::time::{Duration, Instant};

const PAUSE: Duration = Duration::from_millis(20);

/// Asks again and again until `is_true` or the limit has passed; says which.
pub fn until(limit: Duration, mut is_true: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + limit;
    loop {
        if is_true() {
            return true;
        }
        if Instant::now() >= deadline {
            return false;
        }
        std::thread::sleep(PAUSE);
    }
}

/// [`until`], for a scenario: panics with `what` when the limit has passed.
#[track_caller]
pub fn eventually(what: &str, limit: Duration, is_true: impl FnMut() -> bool) {
    assert!(until(limit, is_true), "not within {} s: {what}", limit.as_secs());
}
