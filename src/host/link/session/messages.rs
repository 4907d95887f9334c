//! What the broker says once it answers, and what it is told. Pure.

use super::linked::{Awaited, Linked, AGAIN, ANSWER};
use super::{Effect, Happened, Moment, Session, State, Taken, PROVE};
use crate::link::mesh::Mesh;
use crate::link::mqtt::{self, Acked, Connack, Incoming, Publication, Subscribe, Subscribed};
use crate::link::refusal::{Layer, Refusal, Side, MESH, PRESENCE};
use crate::link::signed;
use crate::when::When;

/// This node's own topics that it reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Topic {
    Mesh,
    Presence,
    Declaration,
}

/// In this order, so that the keys in force are known before what they sign.
const ALL: [Topic; 3] = [Topic::Mesh, Topic::Presence, Topic::Declaration];

const ODD_BROKER: &str = "check that it is an MQTT 5 broker, and its version";

impl Topic {
    fn name(self) -> &'static str {
        match self {
            Topic::Mesh => "mesh",
            Topic::Presence => "presence",
            Topic::Declaration => "declaration",
        }
    }
}

/// Why a publication cannot be handed over now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsent {
    /// The link is not up.
    Down,
    /// As many wait for their acknowledgement as may: to be handed over after the next.
    Full,
    /// It has so many bytes, and the broker takes no packet of more than that.
    Large {
        /// Bytes of the packet.
        size: usize,
        /// Bytes that the broker takes.
        most: usize,
    },
}

impl Session {
    /// How many publications can be handed over now.
    pub fn room(&self) -> usize {
        match &self.state {
            State::Linked(linked) if linked.is_up() => linked.room(),
            _ => 0,
        }
    }

    /// Sends the report `id`. What becomes of it is told as [`Happened::Report`].
    ///
    /// # Errors
    /// It cannot be sent now, or never.
    pub fn report(
        &mut self,
        id: String,
        payload: &[u8],
        now: &Moment,
        out: &mut Vec<Effect>,
    ) -> Result<(), Unsent> {
        self.publish(Awaited::Report(id), ("report", false), payload, now, out)
    }

    /// Sends the inventory. What becomes of it is told as [`Happened::Inventory`].
    ///
    /// # Errors
    /// It cannot be sent now, or never.
    pub fn inventory(
        &mut self,
        payload: &[u8],
        now: &Moment,
        out: &mut Vec<Effect>,
    ) -> Result<(), Unsent> {
        self.publish(Awaited::Inventory, ("inventory", true), payload, now, out)
    }

    fn publish(
        &mut self,
        awaited: Awaited,
        (what, retain): (&str, bool),
        payload: &[u8],
        now: &Moment,
        out: &mut Vec<Effect>,
    ) -> Result<(), Unsent> {
        let topic = self.topic(what);
        let State::Linked(linked) = &mut self.state else { return Err(Unsent::Down) };
        if !linked.is_up() {
            return Err(Unsent::Down);
        }
        let mut publication = Publication { id: 1, retain, topic: &topic, user: &[], payload };
        let (size, most) = (publication.size(), linked.maximum_packet_size());
        if size > most.min(super::MOST_BYTES) {
            return Err(Unsent::Large { size, most: most.min(super::MOST_BYTES) });
        }
        if linked.room() == 0 {
            return Err(Unsent::Full);
        }
        publication.id = linked.await_ack(awaited, now.up);
        out.push(Effect::Send(publication.encode()));
        Ok(())
    }

    /// What time has made due on a connection that has been let in.
    pub(super) fn keep_alive(&mut self, now: &mut Moment, out: &mut Vec<Effect>) {
        let State::Linked(linked) = &mut self.state else { return };
        if linked.is_dead(now.up) {
            let what = "the broker showed no sign of life";
            return self.fail(Refusal::late(Layer::Mqtt, what, ANSWER), now, out);
        }
        if let Some(topic) = linked.unproved(now.up) {
            let what = if topic == Topic::Mesh { MESH } else { PRESENCE };
            let doubt = linked.doubt.take().filter(|_| topic == Topic::Mesh);
            let silent = || Refusal::silent(&self.topic(topic.name()), what, PROVE);
            let refusal = doubt.unwrap_or_else(silent);
            return self.fail(refusal, now, out);
        }
        if linked.ping_is_due(now.up) {
            linked.pinged(now.up);
            out.push(Effect::Send(mqtt::PINGREQ.to_vec()));
        }
    }

    /// A whole packet has come.
    pub(super) fn packet(&mut self, packet: Vec<u8>, now: &mut Moment, out: &mut Vec<Effect>) {
        let is_open = matches!(
            self.state,
            State::Settling { .. } | State::Greeting { .. } | State::Linked(_)
        );
        if !is_open {
            return;
        }
        if let State::Linked(linked) = &mut self.state {
            linked.moved(now.up);
        }
        let incoming = match mqtt::decode(&packet) {
            Ok(incoming) => incoming,
            Err(fault) => return self.refuse(Refusal::malformed(fault), now, out),
        };
        match (&mut self.state, incoming) {
            (_, Incoming::Disconnect(parted)) => {
                self.fail(Refusal::disconnected(parted.reason, parted.why()), now, out);
            }
            (State::Greeting { .. }, Incoming::Connack(connack)) => {
                self.greeted(&connack, now, out);
            }
            (State::Linked(linked), Incoming::Pingresp) => linked.ponged(),
            (State::Linked(_), Incoming::Puback(acked)) => self.acked(&acked, now, out),
            (State::Linked(_), Incoming::Suback(subscribed)) => {
                self.subscribed(&subscribed, now, out);
            }
            (State::Linked(linked), Incoming::Publish(publish)) => {
                if let Some(id) = publish.id {
                    linked.sent(now.up);
                    out.push(Effect::Send(mqtt::puback(id).to_vec()));
                }
                let topic = publish.topic.strip_prefix(&format!("node/{}/", self.me.node));
                let topic = topic.and_then(|it| ALL.into_iter().find(|known| known.name() == it));
                match topic {
                    Some(Topic::Presence) => {
                        let is_ours = publish.payload == linked.presence.as_bytes();
                        self.presence(is_ours, now, out);
                    }
                    Some(Topic::Mesh) => self.mesh_message(packet, now, out),
                    Some(Topic::Declaration) => self.declaration(packet, out),
                    None => {
                        let what = "the broker sent a message on a topic that nobody asked for";
                        self.refuse(Refusal::unexpected(what, ODD_BROKER), now, out);
                    }
                }
            }
            _ => {
                let what = "the broker sent a packet where it has no place";
                self.refuse(Refusal::unexpected(what, ODD_BROKER), now, out);
            }
        }
    }

    fn greeted(&mut self, connack: &Connack, now: &mut Moment, out: &mut Vec<Effect>) {
        let refusal = if connack.reason != 0 {
            Some(Refusal::connect(connack.reason, connack.why()))
        } else if connack.assigned_client_id().is_some() {
            let what = "the broker gave this node another client identifier than its own";
            let mend = "let nodes keep their identifiers, in the broker's configuration";
            Some(Refusal::unexpected(what, mend))
        } else if connack.session_present {
            let what = "the broker goes on with a session that was to be forgotten";
            Some(Refusal::unexpected(what, ODD_BROKER))
        } else if !connack.takes_qos_1() || !connack.retains() {
            let what = "the broker takes no message at QoS 1, or keeps none";
            let mend = "allow QoS 1 and retained messages, in the broker's configuration";
            Some(Refusal::unexpected(what, mend))
        } else {
            None
        };
        match refusal {
            Some(refusal) if refusal.side == Side::Host => return self.refuse(refusal, now, out),
            Some(refusal) => return self.fail(refusal, now, out),
            None => {}
        }
        let nonce = format!("{:016x}{:016x}", (now.random)(), (now.random)());
        let presence = presence(self.me.version, true, &nonce, now.at);
        let linked = Linked::new(connack, self.me.keep_alive_s, presence, now.up);
        self.state = State::Linked(Box::new(linked));
        self.subscribe(&ALL, now, out);
        self.present(now, out);
    }

    fn subscribe(&mut self, topics: &'static [Topic], now: &Moment, out: &mut Vec<Effect>) {
        let names: Vec<String> = topics.iter().map(|it| self.topic(it.name())).collect();
        let State::Linked(linked) = &mut self.state else { return };
        let id = linked.await_ack(Awaited::Subscription(topics), now.up);
        let topics: Vec<&str> = names.iter().map(String::as_str).collect();
        out.push(Effect::Send(Subscribe { id, topics: &topics }.encode()));
    }

    /// Says that this node is there.
    fn present(&mut self, now: &Moment, out: &mut Vec<Effect>) {
        let topic = self.topic(Topic::Presence.name());
        let State::Linked(linked) = &mut self.state else { return };
        let id = linked.await_ack(Awaited::Presence, now.up);
        linked.presented = now.up;
        let payload = linked.presence.as_bytes();
        let publication = Publication { id, retain: true, topic: &topic, user: &[], payload };
        out.push(Effect::Send(publication.encode()));
    }

    fn acked(&mut self, acked: &Acked, now: &mut Moment, out: &mut Vec<Effect>) {
        let State::Linked(linked) = &mut self.state else { return };
        let awaited = linked.acked(acked.id);
        let taken = |topic: String| match acked.reason {
            mqtt::NO_SUBSCRIBERS => Taken::Unheard,
            reason if reason < 0x80 => Taken::Heard,
            reason => Taken::Denied(Refusal::publication(&topic, reason, acked.why())),
        };
        match awaited {
            Some(Awaited::Report(id)) => {
                let taken = taken(self.topic("report"));
                out.push(Effect::Tell(Happened::Report { id, taken }));
            }
            Some(Awaited::Inventory) => {
                let taken = taken(self.topic("inventory"));
                out.push(Effect::Tell(Happened::Inventory(taken)));
            }
            Some(Awaited::Presence) => {
                if let Taken::Denied(refusal) = taken(self.topic("presence")) {
                    self.fail(refusal, now, out);
                }
            }
            Some(Awaited::Subscription(_)) | None => {
                let what = "the broker acknowledged what nobody published";
                self.refuse(Refusal::unexpected(what, ODD_BROKER), now, out);
            }
        }
    }

    fn subscribed(&mut self, said: &Subscribed, now: &mut Moment, out: &mut Vec<Effect>) {
        let State::Linked(linked) = &mut self.state else { return };
        let topics = match linked.acked(said.id) {
            Some(Awaited::Subscription(topics)) if topics.len() == said.reasons.len() => topics,
            _ => {
                let what = "the broker granted what nobody asked for";
                return self.refuse(Refusal::unexpected(what, ODD_BROKER), now, out);
            }
        };
        let refused = topics.iter().zip(said.reasons).find(|(_, reason)| **reason > 1);
        if let Some((topic, reason)) = refused {
            let topic = self.topic(topic.name());
            return self.fail(Refusal::subscription(&topic, *reason, said.why()), now, out);
        }
        self.prove(Topic::Declaration, now, out);
    }

    /// A part of the proof is there. With the last of it, the link is up.
    fn prove(&mut self, part: Topic, now: &Moment, out: &mut Vec<Effect>) {
        let State::Linked(linked) = &mut self.state else { return };
        if !linked.prove(part, now.up) {
            return;
        }
        let held = linked.held.take();
        out.push(Effect::Tell(Happened::Up { broker: self.broker().clone() }));
        if let Some(packet) = held {
            self.declaration(packet, out);
        }
    }

    /// A message on our presence: ours, or what a will or somebody else put in its place.
    fn presence(&mut self, is_ours: bool, now: &Moment, out: &mut Vec<Effect>) {
        let State::Linked(linked) = &self.state else { return };
        let is_again = now.up >= linked.presented + AGAIN;
        let pending = linked.has_in_flight(|it| matches!(it, Awaited::Presence));
        if is_ours {
            self.prove(Topic::Presence, now, out);
        } else if linked.room() > 0 && linked.is_up() && !pending && is_again {
            self.present(now, out);
        }
    }

    fn declaration(&mut self, packet: Vec<u8>, out: &mut Vec<Effect>) {
        let State::Linked(linked) = &mut self.state else { return };
        if !linked.is_up() {
            linked.held = Some(packet);
            return;
        }
        let happened = match signed::payload(packet, &self.mesh.control_keys) {
            Ok(payload) => {
                self.unsigned = false;
                Happened::Declaration(payload)
            }
            Err(refusal) => {
                self.unsigned = true;
                Happened::Refused(refusal.of(self.broker()))
            }
        };
        out.push(Effect::Tell(happened));
    }

    fn mesh_message(&mut self, packet: Vec<u8>, now: &mut Moment, out: &mut Vec<Effect>) {
        let topic = self.topic(Topic::Mesh.name());
        let read = signed::payload(packet, &self.mesh.control_keys)
            .and_then(|payload| self.judge(&topic, &payload));
        let mesh = match read {
            Ok(mesh) => mesh,
            Err(refusal) => {
                let refusal = refusal.of(self.broker());
                if let State::Linked(linked) = &mut self.state {
                    linked.doubt = Some(refusal.clone());
                }
                return out.push(Effect::Tell(Happened::Refused(refusal)));
            }
        };
        if let Some(mesh) = mesh {
            if !self.adopt(mesh, now, out) {
                return;
            }
        }
        self.prove(Topic::Mesh, now, out);
    }

    /// A `mesh` message that is newer than the one in force; `None` for that one itself.
    fn judge(&self, topic: &str, payload: &[u8]) -> Result<Option<Mesh>, Refusal> {
        let refuse = |why: String| {
            let grounds = format!("the message on {topic}: {why}");
            let mend = "publish a mesh message of a higher serial";
            Err(Refusal::new(Side::Host, Layer::Declaration, grounds, mend))
        };
        let mesh = match Mesh::parse(payload) {
            Ok(mesh) => mesh,
            Err(why) => return refuse(why),
        };
        let (serial, ours) = (mesh.serial, self.mesh.serial);
        if serial < ours {
            return refuse(format!("serial {serial} is stale: {ours} is in force"));
        }
        if serial > ours {
            return Ok(Some(mesh));
        }
        match mesh.says(&self.mesh) {
            true => Ok(None),
            false => refuse(format!("serial {serial} is in force with other contents")),
        }
    }

    /// Puts a newer mesh in force; false where this broker is none of it any more.
    fn adopt(&mut self, mesh: Mesh, now: &mut Moment, out: &mut Vec<Effect>) -> bool {
        let broker = self.broker().clone();
        let new_keys = mesh.control_keys != self.mesh.control_keys;
        self.mesh = mesh;
        out.push(Effect::Tell(Happened::Mesh(self.mesh.clone())));
        match self.mesh.brokers.iter().position(|it| *it == broker) {
            Some(at) => self.broker = at,
            None => {
                self.broker = 0;
                out.push(Effect::Send(mqtt::disconnect(mqtt::NORMAL).to_vec()));
                let what = "the mesh has moved to other brokers";
                let refusal = Refusal::unexpected(what, "nothing is wrong: they are tried next");
                self.fail(refusal, now, out);
                return false;
            }
        }
        // What was refused under the old keys is asked for once more: it is retained.
        if new_keys && std::mem::take(&mut self.unsigned) {
            self.subscribe(&[Topic::Declaration], now, out);
        }
        true
    }
}

/// What a node says of its being there. `nonce` is new with every connection.
pub(super) fn presence(version: &str, online: bool, nonce: &str, since: When) -> String {
    let nonce = if nonce.is_empty() { String::new() } else { format!("\"nonce\":\"{nonce}\",") };
    format!("{{\"online\":{online},{nonce}\"since\":\"{since}\",\"host\":\"{version}\"}}")
}
