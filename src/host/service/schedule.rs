//! When the next pass is due, and why. Pure: a state machine over instants that are passed in.
//!
//! A pass serves every reason there was for one when it began. The timer is the floor: nothing else
//! puts it off, and what is slowed down (drift, reconnects, what is contested) is due by then at
//! the latest.

use std::time::Duration;

use crate::report::Trigger;

/// From the first sign of drift to the pass: an editor writes more than once.
pub const QUIET: Duration = Duration::from_millis(200);

/// What drifts as often in a row is still put right at once.
const FREE: u32 = 5;
/// For so long at least, a row goes on.
const ROW: Duration = Duration::from_secs(60);
/// From then on the next one waits, twice as long each time.
const FIRST_DELAY: Duration = Duration::from_secs(1);
/// What is contested waits so long from the start.
const CONTESTED_DELAY: Duration = Duration::from_secs(5);

/// A reason for a pass, the weightiest first: where there is more than one, the pass names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The service has started.
    Start,
    /// A declaration was accepted.
    Declaration,
    /// A person asked for it, or changed the store.
    Command,
    /// The link is back.
    Reconnect,
    /// Something was altered.
    Drift,
    /// Something was altered that somebody else keeps altering.
    Contested,
    /// It is time.
    Timer,
}

const CAUSES: [Cause; 7] = [
    Cause::Start,
    Cause::Declaration,
    Cause::Command,
    Cause::Reconnect,
    Cause::Drift,
    Cause::Contested,
    Cause::Timer,
];

impl Cause {
    /// The word for it in the report.
    pub fn trigger(self) -> Trigger {
        match self {
            Cause::Start => Trigger::Start,
            Cause::Declaration => Trigger::Declaration,
            Cause::Command => Trigger::Command,
            Cause::Reconnect => Trigger::Reconnect,
            Cause::Drift | Cause::Contested => Trigger::Drift,
            Cause::Timer => Trigger::Timer,
        }
    }
}

/// How often something came in a row.
#[derive(Clone, Copy, Debug, Default)]
struct Row {
    count: u32,
    /// The row is over where nothing comes until then.
    until: Duration,
}

/// What is due.
#[derive(Debug)]
pub struct Schedule {
    interval: Duration,
    timer: Duration,
    wanted: [Option<Duration>; CAUSES.len()],
    drift: Row,
    contested: Row,
}

impl Schedule {
    /// Nothing but a pass at once, since the service starts.
    pub fn new(interval: Duration, now: Duration) -> Schedule {
        let (drift, contested) = (Row::default(), Row::default());
        let mut it =
            Schedule { interval, timer: now, wanted: Default::default(), drift, contested };
        it.want(Cause::Start, now);
        it.timer = now + interval;
        it
    }

    /// From now on the timer goes by `interval`; what it is set to stands.
    pub fn set_interval(&mut self, interval: Duration, now: Duration) {
        self.interval = interval;
        self.timer = self.timer.min(now + interval);
    }

    /// A pass is due at `at` or sooner.
    pub fn want(&mut self, cause: Cause, at: Duration) {
        let slot = &mut self.wanted[cause as usize];
        *slot = Some(slot.map_or(at, |due| due.min(at)));
    }

    /// A pass is due now, unless there were many for the like of it in a row.
    pub fn want_slowly(&mut self, cause: Cause, now: Duration) {
        let delay = self.delay(cause, now);
        self.want(cause, now + delay);
    }

    fn row(&mut self, cause: Cause) -> Option<&mut Row> {
        match cause {
            Cause::Drift | Cause::Reconnect => Some(&mut self.drift),
            Cause::Contested => Some(&mut self.contested),
            _ => None,
        }
    }

    fn delay(&mut self, cause: Cause, now: Duration) -> Duration {
        let most = self.interval;
        let (free, first) = match cause {
            Cause::Contested => (0, CONTESTED_DELAY),
            _ => (FREE, FIRST_DELAY),
        };
        let Some(row) = self.row(cause) else { return Duration::ZERO };
        if now > row.until {
            row.count = 0;
        }
        match row.count.checked_sub(free) {
            None => Duration::ZERO,
            Some(times) => first.saturating_mul(1 << times.min(20)).min(most),
        }
    }

    /// When the next pass is due.
    pub fn next(&self) -> Duration {
        self.wanted.iter().flatten().fold(self.timer, |next, &due| next.min(due))
    }

    /// Begins the pass that is due, if one is; the reason that it names.
    pub fn take(&mut self, now: Duration) -> Option<Cause> {
        if self.timer <= now {
            self.want(Cause::Timer, self.timer);
        }
        let due = |cause: &&Cause| self.wanted[**cause as usize].is_some_and(|due| due <= now);
        let cause = *CAUSES.iter().find(due)?;
        self.wanted = Default::default();
        Some(cause)
    }

    /// The pass is over. `dice` is a random number of which the jitter of the timer comes.
    pub fn ended(&mut self, cause: Cause, now: Duration, dice: u32) {
        let delay = self.delay(cause, now);
        match self.row(cause) {
            Some(row) => {
                row.count = row.count.saturating_add(1);
                row.until = now + ROW.max(delay * 4);
            }
            // Between nine and eleven tenths: machines that start together do not stay together.
            None => self.timer = now + self.interval * 9 / 10 + self.jitter(dice),
        }
    }

    fn jitter(&self, dice: u32) -> Duration {
        let fifth = self.interval / 5;
        fifth.mul_f64(f64::from(dice) / f64::from(u32::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Duration = Duration::from_secs(600);

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn started() -> Schedule {
        let mut it = Schedule::new(INTERVAL, at(0));
        assert_eq!(it.take(at(0)), Some(Cause::Start));
        it.ended(Cause::Start, at(1), u32::MAX / 2);
        it
    }

    //
    #[test]
    fn a_pass_is_due_at_the_start_and_then_by_the_jittered_timer() {
        let mut it = started();
        assert_eq!(it.take(at(2)), None);
        assert!((600..=602).contains(&it.next().as_secs()), "{:?}", it.next());
        for (dice, due) in [(0, 540), (u32::MAX, 660)] {
            let mut it = Schedule::new(INTERVAL, at(0));
            it.take(at(0));
            it.ended(Cause::Start, at(0), dice);
            assert_eq!(it.next().as_secs(), due);
            assert_eq!(it.take(at(due - 1)), None);
            assert_eq!(it.take(at(due)), Some(Cause::Timer));
        }
    }

    #[test]
    fn the_weightiest_reason_is_named_and_all_are_served() {
        for (nth, &cause) in CAUSES.iter().enumerate() {
            for &other in &CAUSES[nth..] {
                let mut it = started();
                it.want(other, at(5));
                it.want(cause, at(5));
                assert_eq!(it.take(at(4)), None);
                assert_eq!(it.take(at(5)), Some(cause), "{cause:?} and {other:?}");
                it.ended(cause, at(6), 0);
                assert_eq!(it.take(at(7)), None, "{cause:?} and {other:?}");
            }
        }
    }

    #[test]
    fn drift_in_a_row_is_slowed_down_but_never_below_the_timer() {
        let mut it = started();
        let mut now = at(10);
        let mut waits = Vec::new();
        for _ in 0..30 {
            it.want_slowly(Cause::Drift, now);
            let due = it.wanted[Cause::Drift as usize].unwrap();
            waits.push((due - now).as_secs());
            it.wanted = Default::default();
            it.ended(Cause::Drift, due, 0);
            now = due;
        }
        assert_eq!(waits[..9], [0, 0, 0, 0, 0, 1, 2, 4, 8]);
        assert_eq!(waits[29], 600);
        assert!(it.timer < at(700), "drift does not put the timer off: {:?}", it.timer);
        let later = now + at(601 * 4);
        it.want_slowly(Cause::Drift, later);
        assert_eq!(it.wanted[Cause::Drift as usize], Some(later), "the row is over");
    }

    #[test]
    fn what_is_contested_waits_and_what_else_drifts_does_not() {
        let mut it = started();
        it.want_slowly(Cause::Contested, at(10));
        assert_eq!(it.next(), at(15));
        it.want_slowly(Cause::Drift, at(11));
        assert_eq!(it.take(at(11)), Some(Cause::Drift));
        it.ended(Cause::Drift, at(12), 0);
        assert_eq!(it.take(at(15)), None, "the pass has served both");
    }

    #[test]
    fn a_shorter_interval_counts_from_now() {
        let mut it = started();
        it.set_interval(at(60), at(100));
        assert_eq!(it.next(), at(160));
        it.set_interval(at(6000), at(100));
        assert_eq!(it.next(), at(160), "what it is set to stands");
    }
}
