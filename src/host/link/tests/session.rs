//! A session led through its life by hand: what it does and says at each turn of it.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use super::{message, publish};
use crate::link::mesh::Mesh;
use crate::link::mqtt::{decode, disconnect, puback, PINGREQ, WITH_WILL};
use crate::link::refusal::{Layer, Refusal, Side};
use crate::link::session::{Effect, Event, Happened, Me, Moment, Session, Standing, Taken, Unsent};
use crate::when::When;

pub(super) const CONNACK: &[u8] = b"\x20\x03\x00\x00\x00";
pub(super) const GRANTED: &[u8] = b"\x90\x06\x00\x01\x00\x01\x01\x01";
const MESH: &str = "node/web-1/mesh";
const PRESENCE: &str = "node/web-1/presence";
const DECLARATION: &str = "node/web-1/declaration";

/// A session, its clock, and dice that always fall the same.
pub(super) struct Play {
    pub session: Session,
    pub up: Duration,
    pub random: u64,
}

impl Play {
    pub fn new(brokers: &[&str]) -> Play {
        let me = Me { node: "web-1".into(), version: "1.0.0", keep_alive_s: 60 };
        let mesh = Mesh::parse(message(5, brokers, 1).as_bytes()).unwrap();
        Play { session: Session::new(me, mesh), up: Duration::from_secs(1000), random: 7 }
    }

    pub fn step(&mut self, event: Event) -> Vec<Effect> {
        let mut out = Vec::new();
        self.with(|session, now| session.step(event, now, &mut out));
        out
    }

    pub fn with<T>(&mut self, act: impl FnOnce(&mut Session, &mut Moment) -> T) -> T {
        let mut random = || self.random;
        let mut now = Moment { up: self.up, at: When(1_800_000_000), random: &mut random };
        act(&mut self.session, &mut now)
    }

    pub fn packet(&mut self, packet: &[u8]) -> Vec<Effect> {
        self.step(Event::Packet(packet.to_vec()))
    }

    pub fn after(&mut self, span: Duration) -> Vec<Effect> {
        self.up += span;
        self.step(Event::Tick)
    }

    pub fn report(&mut self, id: &str, payload: &[u8]) -> Result<Vec<Effect>, Unsent> {
        let mut out = Vec::new();
        let sent = self.with(|it, now| it.report(id.into(), payload, now, &mut out));
        sent.map(|()| out)
    }

    /// Up to the broker's answer to CONNECT.
    pub fn greet(&mut self) {
        self.step(Event::Tick);
        self.step(Event::Found(vec![address(1)]));
        self.step(Event::Connected);
        self.step(Event::Secured);
        let out = self.step(Event::Judged);
        assert!(matches!(&out[..], [Effect::Send(connect)] if connect[0] == 0x10), "{out:?}");
    }

    /// Up to the proof; what this node says of its being there.
    pub fn prove(&mut self, connack: &[u8]) -> Vec<u8> {
        self.greet();
        let out = self.packet(connack);
        let [Effect::Send(subscribe), Effect::Send(presence)] = &out[..] else { panic!("{out:?}") };
        assert_eq!(subscribe[0], 0x82);
        let Ok(crate::link::mqtt::Incoming::Publish(publish)) = decode(presence) else { panic!() };
        assert_eq!((publish.topic, publish.retain), (PRESENCE, true));
        publish.payload.to_vec()
    }

    /// Until the link is up.
    pub fn link(&mut self) {
        let presence = self.prove(CONNACK);
        self.packet(GRANTED);
        self.packet(&puback(2));
        self.packet(&publish(MESH, message(5, &["a:1"], 1).as_bytes(), Some(1)));
        let out = self.packet(&publish(PRESENCE, &presence, None));
        assert!(matches!(&out[1..], [Effect::Tell(Happened::Up { .. })]), "{out:?}");
        assert_eq!(self.session.standing(), Standing::Up);
    }
}

pub(super) fn address(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

/// Why it is down, of what was done.
#[track_caller]
fn down(out: &[Effect]) -> (&Refusal, bool) {
    let mut downs = out.iter().filter_map(|effect| match effect {
        Effect::Tell(Happened::Down { refusal, was_up }) => Some((refusal, *was_up)),
        _ => None,
    });
    let found = downs.next().unwrap_or_else(|| panic!("not down: {out:?}"));
    assert!(out.contains(&Effect::Close) && downs.next().is_none(), "{out:?}");
    found
}

fn refused() -> Refusal {
    Refusal::tcp("a:1", io::ErrorKind::ConnectionRefused, "connection refused")
}

#[test]
fn the_first_attempt_is_at_once_and_every_address_and_broker_is_tried() {
    let mut play = Play::new(&["a:1", "b:2"]);
    let asked = |play: &Play, out: &[Effect]| {
        assert!(matches!(out.last(), Some(Effect::LookUp(_))), "{out:?}");
        play.session.broker().to_string()
    };
    let out = play.step(Event::Tick);
    assert_eq!(asked(&play, &out), "a:1");
    assert_eq!(
        play.step(Event::Found(vec![address(1), address(2)])),
        [Effect::Connect(address(1))]
    );
    let out = play.step(Event::Failed(refused()));
    assert_eq!(down(&out).0.broker, "a:1");
    assert_eq!(out.last(), Some(&Effect::Connect(address(2))));
    let out = play.step(Event::Failed(refused()));
    assert_eq!(asked(&play, &out), "b:2");
    let out = play.step(Event::Failed(Refusal::lookup("b", "no such name")));
    assert_eq!(down(&out).0.broker, "b:2");
    assert_eq!(play.session.standing(), Standing::Waiting);
}

#[test]
fn what_a_node_says_of_its_being_there_is_as_the_golden_files_have_it() {
    let mut play = Play::new(&["a:1"]);
    let presence = play.prove(CONNACK);
    let golden = include_str!("../../../../tests/wire/presence.json").trim_end();
    assert_eq!(String::from_utf8(presence).unwrap(), golden);
    let mut play = Play::new(&["a:1"]);
    for event in [Event::Tick, Event::Found(vec![address(1)]), Event::Connected, Event::Secured] {
        play.step(event);
    }
    let out = play.step(Event::Judged);
    let [Effect::Send(connect)] = &out[..] else { panic!("{out:?}") };
    let will = include_str!("../../../../tests/wire/presence-gone.json").trim_end();
    let topic_and_will =
        [&b"\x00\x13node/web-1/presence\x00"[..], &[will.len() as u8], will.as_bytes()];
    assert!(connect.ends_with(&topic_and_will.concat()), "{}", String::from_utf8_lossy(connect));
    let refusal = refused().of("a:1");
    let golden = include_str!("../../../../tests/wire/refusal.json").trim_end();
    assert_eq!(serde_json::to_string_pretty(&refusal).unwrap(), golden);
}

#[test]
fn rounds_are_spread_over_30_s_then_over_twice_that_up_to_5_min() {
    for (random, share) in [(u64::MAX / 2, None), (0, Some(0))] {
        let mut play = Play::new(&["a:1"]);
        play.random = random;
        for most in [30, 60, 120, 240, 300, 300, 300] {
            play.step(Event::Tick);
            play.step(Event::Failed(refused()));
            let wait = play.session.deadline().unwrap() - play.up;
            let most = Duration::from_secs(most);
            assert!(wait <= most && share.is_none_or(|share| wait == most * share), "{wait:?}");
            play.up += wait;
        }
    }
    // Uniform: each second of the first 30 gets its share of the dice.
    let mut seconds = [0; 30];
    for n in 0..3000 {
        let mut play = Play::new(&["a:1"]);
        play.random = n * 10;
        play.step(Event::Tick);
        play.step(Event::Failed(refused()));
        let wait = play.session.deadline().unwrap() - play.up;
        seconds[wait.as_secs().min(29) as usize] += 1;
    }
    assert!(seconds.iter().all(|count| (90..=110).contains(count)), "{seconds:?}");
}

// R-18
#[test]
fn a_week_without_a_broker_is_a_week_of_patient_attempts_and_the_first_answer_ends_it() {
    let mut play = Play::new(&["a:1"]);
    let (end, mut attempts) = (play.up + Duration::from_secs(7 * 86_400), 0u64);
    while play.up < end {
        play.random = play.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1) >> 1;
        let out = play.step(Event::Tick);
        assert!(matches!(out[..], [Effect::LookUp(_)]), "{out:?}");
        assert!(down(&play.step(Event::Failed(refused()))).0.grounds.contains("refused"));
        attempts += 1;
        play.up = play.session.deadline().unwrap();
    }
    // One in 150 s on average.
    assert!((3500..=4600).contains(&attempts), "{attempts}");
    play.link();
    // From here on it is as if nothing had been, once the link has stood a while.
    play.up += Duration::from_secs(60);
    play.random = u64::MAX;
    assert!(down(&play.step(Event::Ended(None))).1);
    assert!(play.session.deadline().unwrap() - play.up <= Duration::from_secs(30));
}

#[test]
fn a_link_that_stands_and_falls_at_once_is_tried_more_and_more_slowly() {
    let mut play = Play::new(&["a:1"]);
    for most in [30, 60, 120, 240, 300, 300] {
        // The longest of each span.
        play.random = most * 1000;
        play.link();
        play.step(Event::Ended(None));
        let wait = play.session.deadline().unwrap() - play.up;
        assert_eq!(wait, Duration::from_secs(most));
        play.up += wait;
    }
}

#[test]
fn a_link_is_up_only_with_its_own_nonce_and_the_signed_mesh_message() {
    let mut play = Play::new(&["a:1"]);
    let presence = play.prove(CONNACK);
    // Neither what was there before nor a mesh message that nobody signed proves anything.
    play.packet(&publish(PRESENCE, b"{\"online\":false}", None));
    let text = message(5, &["a:1"], 1);
    let out = play.packet(&publish(MESH, text.as_bytes(), None));
    assert!(matches!(&out[1..], [Effect::Tell(Happened::Refused(_))]), "{out:?}");
    play.packet(&publish(PRESENCE, &presence, None));
    play.packet(GRANTED);
    assert_eq!(play.session.standing(), Standing::Proving);
    assert_eq!(play.report("r", b"{}"), Err(Unsent::Down));
    let out = play.packet(&publish(MESH, text.as_bytes(), Some(1)));
    assert!(matches!(&out[1..], [Effect::Tell(Happened::Up { .. })]), "{out:?}");
}

// R-21
#[test]
fn a_granted_subscription_that_stays_silent_is_said_to_be_that() {
    let mut play = Play::new(&["a:1"]);
    play.prove(CONNACK);
    play.packet(GRANTED);
    let out = play.after(Duration::from_secs(15));
    let (refusal, was_up) = down(&out);
    assert_eq!((refusal.side, refusal.layer), (Side::Broker, Layer::Subscription));
    assert!(refusal.grounds.contains("presence was granted and stayed silent") && !was_up);

    let mut play = Play::new(&["a:1"]);
    let presence = play.prove(CONNACK);
    play.packet(GRANTED);
    play.packet(&publish(PRESENCE, &presence, None));
    let out = play.after(Duration::from_secs(15));
    assert!(down(&out).0.grounds.contains("mesh was granted and stayed silent"), "{out:?}");
}

#[test]
fn the_newest_declaration_that_comes_before_the_proof_is_judged_after_it() {
    let mut play = Play::new(&["a:1"]);
    let presence = play.prove(CONNACK);
    play.packet(GRANTED);
    for text in [b"old", b"new"] {
        let out = play.packet(&publish(DECLARATION, text, Some(2)));
        assert_eq!(out, [Effect::Send(puback(7).to_vec())]);
    }
    play.packet(&publish(PRESENCE, &presence, None));
    // By the keys that the mesh message brought.
    let out = play.packet(&publish(MESH, message(6, &["a:1"], 2).as_bytes(), Some(1)));
    let told: Vec<&Effect> = out.iter().filter(|it| matches!(it, Effect::Tell(_))).collect();
    assert!(matches!(told[0], Effect::Tell(Happened::Mesh(mesh)) if mesh.serial == 6));
    assert!(matches!(told[1], Effect::Tell(Happened::Up { .. })));
    assert_eq!(told[2], &Effect::Tell(Happened::Declaration(b"new".into())));
}

#[test]
fn publications_keep_to_what_the_broker_takes() {
    let mut play = Play::new(&["a:1"]);
    // A receive maximum of 3, packets of at most 100 bytes.
    let connack = b"\x20\x0b\x00\x00\x08\x21\x00\x03\x27\x00\x00\x00\x64";
    let presence = play.prove(connack);
    play.packet(GRANTED);
    play.packet(&puback(2));
    play.packet(&publish(PRESENCE, &presence, None));
    play.packet(&publish(MESH, message(5, &["a:1"], 1).as_bytes(), Some(1)));
    assert_eq!(play.session.room(), 3);
    for id in ["r-1", "r-2", "r-3"] {
        play.report(id, b"{}").unwrap();
    }
    assert_eq!(play.report("r-4", b"{}"), Err(Unsent::Full));
    let large = play.report("r-5", &[b'x'; 200]);
    assert!(matches!(large, Err(Unsent::Large { size, most: 100 }) if size > 200), "{large:?}");
    let taken = |out: Vec<Effect>| match &out[..] {
        [Effect::Tell(Happened::Report { id, taken })] => (id.clone(), taken.clone()),
        _ => panic!("{out:?}"),
    };
    assert_eq!(taken(play.packet(b"\x40\x03\x00\x03\x10")), ("r-1".into(), Taken::Unheard));
    assert_eq!(taken(play.packet(b"\x40\x02\x00\x04")), ("r-2".into(), Taken::Heard));
    let (id, denied) = taken(play.packet(b"\x40\x03\x00\x05\x87"));
    assert!(matches!(denied, Taken::Denied(it) if it.grounds.contains("node/web-1/report")));
    assert_eq!((&*id, play.session.room()), ("r-3", 3));
}

#[test]
fn identifiers_go_round_and_none_is_given_twice() {
    let mut play = Play::new(&["a:1"]);
    play.link();
    // The first stays unacknowledged while all the others are used up.
    play.report("first", b"{}").unwrap();
    for n in 0..70_000u32 {
        let out = play.report("r", b"{}").unwrap();
        let [Effect::Send(packet)] = &out[..] else { panic!("{out:?}") };
        let Ok(crate::link::mqtt::Incoming::Publish(sent)) = decode(packet) else { panic!() };
        let id = sent.id.unwrap();
        assert_ne!(id, 3, "turn {n}: the first one's");
        let out = play.packet(&puback(id));
        assert!(matches!(&out[..], [Effect::Tell(Happened::Report { .. })]), "{out:?}");
    }
}

#[test]
fn a_silent_link_is_asked_and_one_that_does_not_answer_is_dead() {
    let mut play = Play::new(&["a:1"]);
    play.link();
    let due = play.session.deadline().unwrap();
    assert_eq!(due - play.up, Duration::from_secs(45), "three quarters of the keepalive");
    assert_eq!(play.after(Duration::from_secs(44)), []);
    assert_eq!(play.after(Duration::from_secs(1)), [Effect::Send(PINGREQ.to_vec())]);
    assert_eq!(play.step(Event::Tick), [], "once");
    play.packet(b"\xd0\x00");
    assert_eq!(play.after(Duration::from_secs(45)), [Effect::Send(PINGREQ.to_vec())]);
    assert_eq!(play.after(Duration::from_secs(19)), []);
    // A large message on its way is a sign of life.
    play.step(Event::Moved);
    assert_eq!(play.after(Duration::from_secs(19)), []);
    let out = play.after(Duration::from_secs(1));
    let (refusal, was_up) = down(&out);
    assert!(was_up && refusal.layer == Layer::Mqtt && refusal.side == Side::Network);
}

#[test]
fn the_brokers_keepalive_replaces_ours_and_none_does_not() {
    for (connack, due) in [
        (&b"\x20\x06\x00\x00\x03\x13\x00\x08"[..], 6),
        (&b"\x20\x06\x00\x00\x03\x13\x00\x00"[..], 45),
    ] {
        let mut play = Play::new(&["a:1"]);
        let presence = play.prove(connack);
        play.packet(GRANTED);
        play.packet(&puback(2));
        play.packet(&publish(MESH, message(5, &["a:1"], 1).as_bytes(), Some(1)));
        play.packet(&publish(PRESENCE, &presence, None));
        assert_eq!(play.session.deadline().unwrap() - play.up, Duration::from_secs(due));
    }
}

#[test]
fn after_a_night_asleep_a_link_that_owed_an_answer_is_dead_at_once() {
    let mut play = Play::new(&["a:1"]);
    play.link();
    play.after(Duration::from_secs(45));
    let out = play.after(Duration::from_secs(8 * 3600));
    assert!(down(&out).1);
    assert_eq!(play.session.standing(), Standing::Waiting);
    let wait = play.session.deadline().unwrap() - play.up;
    assert!(wait <= Duration::from_secs(30), "{wait:?}");
}

#[test]
fn a_connack_that_a_node_cannot_live_with_is_refused() {
    for (connack, part) in [
        (&b"\x20\x03\x00\x87\x00"[..], "not authorized"),
        (b"\x20\x08\x00\x88\x05\x1f\x00\x02no", "\"no\""),
        (b"\x20\x07\x00\x00\x04\x12\x00\x01x", "another client identifier"),
        (b"\x20\x03\x01\x00\x00", "a session that was to be forgotten"),
        (b"\x20\x05\x00\x00\x02\x24\x00", "at QoS 1"),
        (b"\x20\x05\x00\x00\x02\x25\x00", "keeps none"),
    ] {
        let mut play = Play::new(&["a:1"]);
        play.greet();
        let out = play.packet(connack);
        let refusal = down(&out).0;
        assert!(refusal.grounds.contains(part) && refusal.layer == Layer::Mqtt, "{refusal}");
    }
}

#[test]
fn a_farewell_publishes_the_will_and_takes_a_second_at_most() {
    let mut play = Play::new(&["a:1"]);
    play.link();
    assert_eq!(play.step(Event::Stop), [Effect::Send(disconnect(WITH_WILL).to_vec())]);
    assert_eq!(play.session.standing(), Standing::Leaving);
    let gone = [Effect::Close, Effect::Tell(Happened::Stopped)];
    assert_eq!(play.after(Duration::from_secs(1)), gone);
    assert_eq!((play.session.standing(), play.session.deadline()), (Standing::Stopped, None));
    assert_eq!(play.step(Event::Stop), []);
}

#[test]
fn a_will_that_comes_late_does_not_leave_a_linked_node_shown_as_gone() {
    let mut play = Play::new(&["a:1"]);
    play.link();
    let gone = publish(PRESENCE, b"{\"online\":false}", None);
    assert_eq!(play.packet(&gone).len(), 1, "only just published");
    play.up += Duration::from_secs(10);
    let out = play.packet(&gone);
    assert!(matches!(&out[1..], [Effect::Send(packet)] if packet[0] == 0x33), "{out:?}");
    assert_eq!(play.packet(&gone).len(), 1, "and not in a circle");
}

#[test]
fn a_broker_that_the_mesh_has_left_is_left() {
    let mut play = Play::new(&["a:1"]);
    play.link();
    let out = play.packet(&publish(MESH, message(6, &["b:1"], 1).as_bytes(), Some(1)));
    assert!(matches!(&out[1], Effect::Tell(Happened::Mesh(mesh)) if mesh.serial == 6));
    assert!(down(&out).0.grounds.contains("moved to other brokers"));
    assert_eq!(play.session.broker().to_string(), "b:1");
    assert_eq!(play.session.standing(), Standing::Waiting);
}

#[test]
fn what_was_refused_under_the_old_keys_is_asked_for_again_under_the_new() {
    let mut play = Play::new(&["a:1"]);
    play.link();
    let out = play.packet(&publish(DECLARATION, b"{}", Some(2)));
    assert!(matches!(&out[1..], [Effect::Tell(Happened::Refused(_))]), "{out:?}");
    let out = play.packet(&publish(MESH, message(6, &["a:1"], 2).as_bytes(), Some(1)));
    assert!(matches!(out.last(), Some(Effect::Send(it)) if it[0] == 0x82), "{out:?}");
    let out = play.packet(&publish(MESH, message(7, &["a:1"], 3).as_bytes(), Some(2)));
    assert!(!matches!(out.last(), Some(Effect::Send(_))), "not where nothing was: {out:?}");
}
