//! The life of a link, from the first name lookup to the last farewell: a state machine. Pure.
//!
//! Owns the order of things: whom to try, when to try again, what counts as being linked, what is
//! answered and what is refused. [`Session::step`] takes what happened and says what is to be done;
//! time, the clock and randomness come in with each step. Decision: a session of the broker's ends
//! with the connection (a clean start), so that what was not acknowledged is sent again from the
//! store, and what is retained comes again by itself; there is no second memory to get out of step.

mod linked;
mod messages;
mod retry;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use super::mesh::{Broker, Mesh};
use super::mqtt::{self, Connect, Will};
use super::refusal::{Layer, Refusal};
use crate::when::When;
use linked::Linked;
pub use messages::Unsent;

/// How long each step on the way to a link may take.
const LOOK_UP: Duration = Duration::from_secs(10);
const CONNECT: Duration = Duration::from_secs(10);
const SECURE: Duration = Duration::from_secs(15);
const GREET: Duration = Duration::from_secs(15);
const PROVE: Duration = Duration::from_secs(15);
/// How long a farewell may take.
const LEAVE: Duration = Duration::from_secs(1);
/// How long a broker that shows no other sign is given to say that it does not take our
/// certificate, beside two round trips: under TLS 1.3 it judges it after we think that we are
/// through.
const SETTLE: Duration = Duration::from_millis(250);
const MOST_SETTLE: Duration = Duration::from_secs(3);
/// The most addresses of one broker that are tried.
const MOST_ADDRESSES: usize = 8;

/// The largest packet that is taken: a declaration, and what stands around it.
pub const MOST_BYTES: usize = crate::declaration::MAX_BYTES + (1 << 16);

/// A moment: what time it is, and a die.
pub struct Moment<'m> {
    /// Since boot, time asleep included.
    pub up: Duration,
    /// By the clock on the wall.
    pub at: When,
    /// Random bits.
    pub random: &'m mut dyn FnMut() -> u64,
}

/// What happened.
#[derive(Debug)]
pub enum Event {
    /// Time passed, perhaps beyond [`Session::deadline`].
    Tick,
    /// The broker's name has these addresses.
    Found(Vec<SocketAddr>),
    /// The connection stands.
    Connected,
    /// TLS stands, as far as this side can know.
    Secured,
    /// The broker has taken our certificate, too.
    Judged,
    /// A whole packet has come.
    Packet(Vec<u8>),
    /// Bytes went out or came in.
    Moved,
    /// All that was to be sent has gone out.
    Drained,
    /// The connection is at its end; the kernel's words if it had any.
    Ended(Option<String>),
    /// It came to nothing, on these grounds.
    Failed(Refusal),
    /// Somebody wants the next attempt now.
    Hurry,
    /// The host stops.
    Stop,
}

/// What is to be done.
#[derive(Debug, PartialEq, Eq)]
pub enum Effect {
    /// Look the broker's name up.
    LookUp(Broker),
    /// Connect to this address.
    Connect(SocketAddr),
    /// Start TLS with a broker of this name.
    Secure(String),
    /// Send these bytes.
    Send(Vec<u8>),
    /// Let go of lookup and connection, after one try to send what is left.
    Close,
    /// Tell the host.
    Tell(Happened),
}

/// What the host is told.
#[derive(Debug, PartialEq, Eq)]
pub enum Happened {
    /// The link is up: proved, and ready for reports.
    Up {
        /// The broker.
        broker: Broker,
    },
    /// The link that was up, or an attempt, came to nothing. What was handed over and not taken
    /// is forgotten here, and is to be handed over again.
    Down {
        /// Why.
        refusal: Refusal,
        /// It had been up.
        was_up: bool,
    },
    /// A newer signed `mesh` message; in force already, and to be kept before anything else.
    Mesh(Mesh),
    /// A signed declaration, not yet parsed.
    Declaration(Vec<u8>),
    /// A message was not taken; the link goes on.
    Refused(Refusal),
    /// What became of a report that was handed over.
    Report {
        /// Its id.
        id: String,
        /// The end of it.
        taken: Taken,
    },
    /// What became of the inventory.
    Inventory(Taken),
    /// [`Event::Stop`] is done.
    Stopped,
}

/// What the broker did with a publication.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It took it, for somebody who listens.
    Heard,
    /// It took it, and nobody listens: to be kept.
    Unheard,
    /// It refused it.
    Denied(Refusal),
}

/// Who this is.
#[derive(Clone, Debug)]
pub struct Me {
    /// The node's id.
    pub node: String,
    /// The host's version.
    pub version: &'static str,
    /// The longest silence of this side, in seconds, unless the broker wants another.
    pub keep_alive_s: u16,
}

/// Where the link stands.
#[derive(Debug)]
enum State {
    Waiting { until: Duration },
    LookingUp { until: Duration },
    Connecting { since: Duration },
    Securing { until: Duration, round_trip: Duration },
    Settling { until: Duration },
    Greeting { until: Duration },
    Linked(Box<Linked>),
    Leaving { until: Duration },
    Stopped,
}

/// The name of where the link stands, as `status` shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// For the time of the next attempt.
    Waiting,
    /// For the addresses of a broker.
    LookingUp,
    /// To one of them.
    Connecting,
    /// In the TLS handshake, or in the moment after it.
    Securing,
    /// For the broker's answer to CONNECT.
    Greeting,
    /// For what proves the link.
    Proving,
    /// Linked and proved.
    Up,
    /// Saying farewell.
    Leaving,
    /// For good.
    Stopped,
}

/// A link, as far as it can be thought.
pub struct Session {
    me: Me,
    mesh: Mesh,
    state: State,
    /// The broker that is tried, of the mesh's.
    broker: usize,
    /// Addresses of it that have not been tried.
    addresses: VecDeque<SocketAddr>,
    /// Rounds through all brokers that came to nothing since a link stood.
    failures: u32,
    /// A declaration was refused for its signature under the keys in force.
    unsigned: bool,
}

impl Session {
    /// One that tries its first broker at once, with the first [`Event::Tick`].
    pub fn new(me: Me, mesh: Mesh) -> Session {
        Session {
            me,
            mesh,
            state: State::Waiting { until: Duration::ZERO },
            broker: 0,
            addresses: VecDeque::new(),
            failures: 0,
            unsigned: false,
        }
    }

    /// Where it stands.
    pub fn standing(&self) -> Standing {
        match &self.state {
            State::Waiting { .. } => Standing::Waiting,
            State::LookingUp { .. } => Standing::LookingUp,
            State::Connecting { .. } => Standing::Connecting,
            State::Securing { .. } | State::Settling { .. } => Standing::Securing,
            State::Greeting { .. } => Standing::Greeting,
            State::Linked(linked) if linked.is_up() => Standing::Up,
            State::Linked(_) => Standing::Proving,
            State::Leaving { .. } => Standing::Leaving,
            State::Stopped => Standing::Stopped,
        }
    }

    /// By when it wants an [`Event::Tick`], since boot; `None` for never.
    pub fn deadline(&self) -> Option<Duration> {
        match &self.state {
            State::Waiting { until }
            | State::LookingUp { until }
            | State::Securing { until, .. }
            | State::Settling { until }
            | State::Greeting { until }
            | State::Leaving { until } => Some(*until),
            State::Connecting { since } => Some(*since + CONNECT),
            State::Linked(linked) => Some(linked.deadline()),
            State::Stopped => None,
        }
    }

    /// The mesh in force.
    pub fn mesh(&self) -> &Mesh {
        &self.mesh
    }

    /// The broker that is tried, or linked to.
    pub fn broker(&self) -> &Broker {
        &self.mesh.brokers[self.broker]
    }

    /// Takes what happened, and adds what is to be done to `out`, in order.
    pub fn step(&mut self, event: Event, now: &mut Moment, out: &mut Vec<Effect>) {
        match event {
            Event::Stop => return self.stop(now, out),
            Event::Failed(refusal) => return self.fail(refusal, now, out),
            Event::Ended(ref cause) => {
                if let Some(refusal) = self.ended(cause.as_deref()) {
                    return self.fail(refusal, now, out);
                }
            }
            _ => {}
        }
        match (&mut self.state, event) {
            (State::Waiting { until }, Event::Tick) if now.up >= *until => {
                self.broker = 0;
                self.look_up(now, out);
            }
            (State::Waiting { until }, Event::Hurry) => *until = now.up,
            (State::LookingUp { .. }, Event::Found(mut addresses)) => {
                addresses.truncate(MOST_ADDRESSES);
                self.addresses = addresses.into();
                if !self.connect(now, out) {
                    let refusal = Refusal::lookup(&self.broker().host, "it has no address");
                    self.fail(refusal, now, out);
                }
            }
            (State::LookingUp { until }, Event::Tick) if now.up >= *until => {
                let what = format!("no addresses of {} came", self.broker().host);
                self.fail(Refusal::late(Layer::NameLookup, &what, LOOK_UP), now, out);
            }
            (State::Connecting { since }, Event::Connected) => {
                let round_trip = now.up.saturating_sub(*since);
                self.state = State::Securing { until: now.up + SECURE, round_trip };
                out.push(Effect::Secure(self.broker().host.clone()));
            }
            (State::Connecting { since }, Event::Tick) if now.up >= *since + CONNECT => {
                let refusal = Refusal::late(Layer::Tcp, "no connection came about", CONNECT);
                self.fail(refusal, now, out);
            }
            (State::Securing { round_trip, .. }, Event::Secured) => {
                let settle = (SETTLE + *round_trip * 2).min(MOST_SETTLE);
                self.state = State::Settling { until: now.up + settle };
            }
            (State::Securing { until, .. }, Event::Tick) if now.up >= *until => {
                let refusal = Refusal::late(Layer::Tls, "no handshake came to its end", SECURE);
                self.fail(refusal, now, out);
            }
            (State::Settling { .. }, Event::Judged) => self.greet(now, out),
            (State::Settling { until }, Event::Tick) if now.up >= *until => self.greet(now, out),
            (State::Greeting { until }, Event::Tick) if now.up >= *until => {
                let refusal = Refusal::late(Layer::Mqtt, "CONNECT was not answered", GREET);
                self.fail(refusal, now, out);
            }
            (State::Leaving { .. }, Event::Drained | Event::Ended(_)) => self.left(out),
            (State::Leaving { until }, Event::Tick) if now.up >= *until => self.left(out),
            (State::Linked(_), Event::Tick) => self.keep_alive(now, out),
            (State::Linked(linked), Event::Moved) => linked.moved(now.up),
            (_, Event::Packet(packet)) => self.packet(packet, now, out),
            // What is left is news of a connection that was let go of, or of no consequence here.
            _ => {}
        }
    }

    /// What the end of the connection means here; `None` where it was expected, or there is none.
    fn ended(&self, cause: Option<&str>) -> Option<Refusal> {
        let (layer, doing) = match &self.state {
            State::Waiting { .. }
            | State::LookingUp { .. }
            | State::Leaving { .. }
            | State::Stopped => return None,
            State::Connecting { .. } => (Layer::Tcp, "connecting"),
            State::Securing { .. } | State::Settling { .. } => (Layer::Tls, "in the handshake"),
            State::Greeting { .. } => (Layer::Mqtt, "it owed an answer to CONNECT"),
            State::Linked(linked) if linked.is_up() => (Layer::Mqtt, "the link was up"),
            State::Linked(_) => (Layer::Mqtt, "the link was being proved"),
        };
        Some(Refusal::ended(layer, doing, cause))
    }

    fn greet(&mut self, now: &mut Moment, out: &mut Vec<Effect>) {
        let will = messages::presence(self.me.version, false, "", now.at);
        let connect = Connect {
            client_id: &self.me.node,
            keep_alive_s: self.me.keep_alive_s,
            receive_maximum: 16,
            maximum_packet_size: MOST_BYTES as u32,
            will: Some(Will { topic: &self.topic("presence"), payload: will.as_bytes() }),
            credentials: None,
        };
        out.push(Effect::Send(connect.encode()));
        self.state = State::Greeting { until: now.up + GREET };
    }

    fn stop(&mut self, now: &mut Moment, out: &mut Vec<Effect>) {
        match self.state {
            State::Stopped => {}
            State::Linked(_) => {
                // The will says that this node is not there, which from now on is so.
                out.push(Effect::Send(mqtt::disconnect(mqtt::WITH_WILL).to_vec()));
                self.state = State::Leaving { until: now.up + LEAVE };
            }
            _ => self.left(out),
        }
    }

    fn left(&mut self, out: &mut Vec<Effect>) {
        self.state = State::Stopped;
        out.extend([Effect::Close, Effect::Tell(Happened::Stopped)]);
    }

    /// One of this node's own topics.
    fn topic(&self, what: &str) -> String {
        format!("node/{}/{what}", self.me.node)
    }
}
