//! Whom to try next, and when. Pure.
//!
//! A round tries every address of every broker in order. After a round that came to nothing, and
//! after a link that was lost, the next begins after a random time: a broker that comes back meets
//! its nodes one by one, not as a herd.

use std::time::Duration;

use super::{Effect, Happened, Moment, Session, State, LOOK_UP};
use crate::link::mqtt;
use crate::link::refusal::Refusal;

/// The first time is uniform over this; it doubles with every round, up to [`LONGEST`].
const FIRST: Duration = Duration::from_secs(30);
/// The longest time between two rounds.
const LONGEST: Duration = Duration::from_secs(300);
/// A link that stood for less did not end the row of failures.
const STEADY: Duration = Duration::from_secs(60);

impl Session {
    /// Asks for the addresses of the broker whose turn it is.
    pub(super) fn look_up(&mut self, now: &Moment, out: &mut Vec<Effect>) {
        self.addresses.clear();
        self.state = State::LookingUp { until: now.up + LOOK_UP };
        out.push(Effect::LookUp(self.broker().clone()));
    }

    /// Connects to the next address, if there is one.
    pub(super) fn connect(&mut self, now: &Moment, out: &mut Vec<Effect>) -> bool {
        let Some(address) = self.addresses.pop_front() else { return false };
        self.state = State::Connecting { since: now.up };
        out.push(Effect::Connect(address));
        true
    }

    /// What was tried or stood came to nothing: the next address, the next broker, the next round.
    pub(super) fn fail(&mut self, refusal: Refusal, now: &mut Moment, out: &mut Vec<Effect>) {
        let up_since = match &self.state {
            State::Waiting { .. } | State::Stopped => return,
            State::Leaving { .. } => return self.left(out),
            State::Linked(linked) => linked.up_since(),
            _ => None,
        };
        let refusal = refusal.of(self.broker());
        let was_up = up_since.is_some();
        out.extend([Effect::Close, Effect::Tell(Happened::Down { refusal, was_up })]);
        if let Some(since) = up_since {
            if now.up.saturating_sub(since) >= STEADY {
                self.failures = 0;
            }
            return self.wait(now);
        }
        if self.connect(now, out) {
            return;
        }
        match self.broker + 1 < self.mesh.brokers.len() {
            true => {
                self.broker += 1;
                self.look_up(now, out);
            }
            false => self.wait(now),
        }
    }

    /// As [`Session::fail`], the broker being told that it did what it may not.
    pub(super) fn refuse(&mut self, refusal: Refusal, now: &mut Moment, out: &mut Vec<Effect>) {
        out.push(Effect::Send(mqtt::disconnect(mqtt::PROTOCOL_ERROR).to_vec()));
        self.fail(refusal, now, out);
    }

    /// Waits for the next round.
    pub(super) fn wait(&mut self, now: &mut Moment) {
        let most = FIRST.saturating_mul(1 << self.failures.min(8)).min(LONGEST);
        self.failures = self.failures.saturating_add(1);
        let span_ms = most.as_millis() as u64;
        let wait = Duration::from_millis((now.random)() % (span_ms + 1));
        self.addresses.clear();
        self.broker = 0;
        self.state = State::Waiting { until: now.up + wait };
    }
}
