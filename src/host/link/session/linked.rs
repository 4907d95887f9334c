//! A connection that has been let in: what it waits for, and how its death is noticed. Pure.

use std::collections::BTreeMap;
use std::time::Duration;

use super::messages::Topic;
use super::PROVE;
use crate::link::mqtt::Connack;

/// How long a broker that owes an answer may show no sign of life.
pub(super) const ANSWER: Duration = Duration::from_secs(20);
/// Publications of this side that are not yet acknowledged, at most.
const MOST_IN_FLIGHT: usize = 16;
/// The time between two corrections of what somebody else wrote to our presence.
pub(super) const AGAIN: Duration = Duration::from_secs(10);

/// What waits for an acknowledgement.
#[derive(Debug)]
pub(super) enum Awaited {
    /// A subscription to these.
    Subscription(&'static [Topic]),
    /// That this node is there.
    Presence,
    Inventory,
    /// The report of this id.
    Report(String),
}

/// Whether the link is one.
#[derive(Debug)]
enum Proof {
    /// Not yet.
    Wanted { until: Duration, granted: bool, present: bool, mesh: bool },
    /// It is, since then.
    Seen { since: Duration },
}

/// A connection that has been let in.
#[derive(Debug)]
pub(super) struct Linked {
    proof: Proof,
    /// What the broker sends back to whoever published it.
    pub presence: String,
    /// When presence was last published.
    pub presented: Duration,
    /// A declaration that came before the link was proved: the newest.
    pub held: Option<Vec<u8>>,
    /// Why a `mesh` message that came was not taken.
    pub doubt: Option<crate::link::refusal::Refusal>,
    awaited: BTreeMap<u16, Awaited>,
    last_id: u16,
    pinging: bool,
    /// When something was last sent.
    sent: Duration,
    /// The last sign of life since an answer is owed.
    owed: Option<Duration>,
    ping_after: Duration,
    receive_maximum: usize,
    maximum_packet_size: usize,
}

impl Linked {
    pub fn new(connack: &Connack, keep_alive_s: u16, presence: String, now: Duration) -> Linked {
        // A broker that wants no keepalive gets it all the same: it is how we notice its death.
        let keep_alive_s = connack.keep_alive_s().filter(|s| *s > 0).unwrap_or(keep_alive_s);
        let until = now + PROVE;
        Linked {
            proof: Proof::Wanted { until, granted: false, present: false, mesh: false },
            presence,
            presented: now,
            held: None,
            doubt: None,
            awaited: BTreeMap::new(),
            last_id: 0,
            pinging: false,
            sent: now,
            owed: None,
            ping_after: Duration::from_secs(keep_alive_s.into()) * 3 / 4,
            receive_maximum: MOST_IN_FLIGHT.min(connack.receive_maximum().into()),
            maximum_packet_size: connack.maximum_packet_size().map_or(usize::MAX, |it| it as usize),
        }
    }

    pub fn is_up(&self) -> bool {
        self.up_since().is_some()
    }

    pub fn up_since(&self) -> Option<Duration> {
        match self.proof {
            Proof::Seen { since } => Some(since),
            Proof::Wanted { .. } => None,
        }
    }

    /// The first moment at which something is due.
    pub fn deadline(&self) -> Duration {
        let proof = match self.proof {
            Proof::Wanted { until, .. } => until,
            Proof::Seen { .. } => Duration::MAX,
        };
        let ping = if self.pinging { Duration::MAX } else { self.sent + self.ping_after };
        proof.min(ping).min(self.owed.map_or(Duration::MAX, |owed| owed + ANSWER))
    }

    /// The proof did not come in time: what of it is missing.
    pub fn unproved(&self, now: Duration) -> Option<Topic> {
        match self.proof {
            Proof::Wanted { until, present, .. } if now >= until => {
                Some(if present { Topic::Mesh } else { Topic::Presence })
            }
            _ => None,
        }
    }

    /// No answer came that was owed.
    pub fn is_dead(&self, now: Duration) -> bool {
        self.owed.is_some_and(|owed| now >= owed + ANSWER)
    }

    pub fn ping_is_due(&self, now: Duration) -> bool {
        !self.pinging && now >= self.sent + self.ping_after
    }

    pub fn pinged(&mut self, now: Duration) {
        self.pinging = true;
        self.sent(now);
        self.owes(now);
    }

    pub fn ponged(&mut self) {
        self.pinging = false;
        self.settle();
    }

    /// Something went out that no answer is owed for.
    pub fn sent(&mut self, now: Duration) {
        self.sent = now;
    }

    /// A sign of life.
    pub fn moved(&mut self, now: Duration) {
        self.owed = self.owed.map(|_| now);
    }

    /// Notes one part of the proof; true where this was the last.
    pub fn prove(&mut self, topic: Topic, now: Duration) -> bool {
        let Proof::Wanted { granted, present, mesh, .. } = &mut self.proof else { return false };
        match topic {
            Topic::Mesh => *mesh = true,
            Topic::Presence => *present = true,
            Topic::Declaration => *granted = true,
        }
        let proved = *granted && *present && *mesh;
        if proved {
            self.proof = Proof::Seen { since: now };
        }
        proved
    }

    /// How many more publications the broker takes now.
    pub fn room(&self) -> usize {
        self.receive_maximum.saturating_sub(self.publications())
    }

    /// The largest packet that the broker takes, in bytes.
    pub fn maximum_packet_size(&self) -> usize {
        self.maximum_packet_size
    }

    /// An identifier for what is about to be sent and waits for its acknowledgement.
    pub fn await_ack(&mut self, awaited: Awaited, now: Duration) -> u16 {
        // Far fewer are in flight than there are; what was just acknowledged is not used at once.
        loop {
            self.last_id = self.last_id.wrapping_add(1);
            if self.last_id != 0 && !self.awaited.contains_key(&self.last_id) {
                break;
            }
        }
        self.awaited.insert(self.last_id, awaited);
        self.sent(now);
        self.owes(now);
        self.last_id
    }

    /// What was acknowledged by this, which is over now.
    pub fn acked(&mut self, id: u16) -> Option<Awaited> {
        let awaited = self.awaited.remove(&id);
        self.settle();
        awaited
    }

    pub fn has_in_flight(&self, what: fn(&Awaited) -> bool) -> bool {
        self.awaited.values().any(what)
    }

    fn publications(&self) -> usize {
        let all = self.awaited.values();
        all.filter(|it| !matches!(it, Awaited::Subscription(_))).count()
    }

    fn owes(&mut self, now: Duration) {
        self.owed = self.owed.or(Some(now));
    }

    fn settle(&mut self) {
        if self.awaited.is_empty() && !self.pinging {
            self.owed = None;
        }
    }
}
