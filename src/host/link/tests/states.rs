//! Every state at every event: where the session stands afterwards, and what must hold whatever
//! happens.

use std::time::Duration;

use super::session::{address, Play, CONNACK, GRANTED};
use super::{message, publish};
use crate::link::mqtt::{disconnect, puback};
use crate::link::refusal::Refusal;
use crate::link::session::{Effect, Event, Happened, Standing};

/// A state, led to by hand.
type Lead = fn(&mut Play);

const STATES: [(&str, Lead); 10] = [
    ("waiting", |play| {
        play.step(Event::Tick);
        play.step(failed());
    }),
    ("looking up", |play| drop(play.step(Event::Tick))),
    ("connecting", |play| {
        play.step(Event::Tick);
        play.step(Event::Found(vec![address(1)]));
    }),
    ("securing", |play| {
        play.step(Event::Tick);
        play.step(Event::Found(vec![address(1)]));
        play.step(Event::Connected);
    }),
    ("settling", |play| {
        play.step(Event::Tick);
        play.step(Event::Found(vec![address(1)]));
        play.step(Event::Connected);
        play.step(Event::Secured);
    }),
    ("greeting", Play::greet),
    ("proving", |play| drop(play.prove(CONNACK))),
    ("up", Play::link),
    ("leaving", |play| {
        play.link();
        play.step(Event::Stop);
    }),
    ("stopped", |play| drop(play.step(Event::Stop))),
];

fn failed() -> Event {
    Event::Failed(Refusal::lookup("a", "no such name"))
}

/// What a packet is, for each event that is one.
fn packets() -> Vec<Vec<u8>> {
    let topic = |what: &str| format!("node/web-1/{what}");
    let mesh = message(5, &["a:1"], 1);
    vec![
        CONNACK.to_vec(),
        b"\x20\x03\x00\x87\x00".to_vec(),
        GRANTED.to_vec(),
        b"\x90\x06\x00\x01\x00\x01\x87\x01".to_vec(),
        puback(2).to_vec(),
        b"\x40\x03\x00\x02\x87".to_vec(),
        puback(999).to_vec(),
        b"\xd0\x00".to_vec(),
        disconnect(0x8e).to_vec(),
        publish(&topic("presence"), b"{}", None),
        publish(&topic("mesh"), mesh.as_bytes(), Some(1)),
        publish(&topic("mesh"), mesh.as_bytes(), Some(2)),
        publish(&topic("mesh"), b"{}", Some(1)),
        publish(&topic("declaration"), b"{}", Some(1)),
        publish(&topic("declaration"), b"{}", None),
        publish("node/web-2/declaration", b"{}", Some(1)),
        b"\xf0\x00".to_vec(),
    ]
}

/// For each state, a letter for where each event leads: first those that are no packet, in the
/// order of [`event`], then those of [`packets`]. `w`aiting, look`i`ng up, `c`onnecting,
/// `s`ecuring, `g`reeting, `p`roving, `u`p, `l`eaving, st`o`pped.
const LEADS: [(&str, &str, &str); 10] = [
    ("waiting", "wiwwwwwwwwwo", "wwwwwwwwwwwwwwwww"),
    ("looking up", "iwciiiiiiiwo", "iiiiiiiiiiiiiiiii"),
    ("connecting", "cwccsccccwwo", "ccccccccccccccccc"),
    ("securing", "swssssssswwo", "sssssssssssssssss"),
    ("settling", "sgssssgsswwo", "wwwwwwwwwwwwwwwww"),
    ("greeting", "gwgggggggwwo", "pwwwwwwwwwwwwwwww"),
    ("proving", "pwpppppppwwl", "wwpwpwwpwppppppww"),
    ("up", "uwuuuuuuuwwl", "wwwwwwwuwuuuuuuww"),
    ("leaving", "lolllllloooo", "lllllllllllllllll"),
    ("stopped", "oooooooooooo", "ooooooooooooooooo"),
];

/// An event that is no packet.
fn event(nth: usize) -> Option<Event> {
    Some(match nth {
        0 | 1 => Event::Tick,
        2 => Event::Found(vec![address(2)]),
        3 => Event::Hurry,
        4 => Event::Connected,
        5 => Event::Secured,
        6 => Event::Judged,
        7 => Event::Moved,
        8 => Event::Drained,
        9 => Event::Ended(None),
        10 => failed(),
        11 => Event::Stop,
        _ => return None,
    })
}

fn letter(standing: Standing) -> char {
    match standing {
        Standing::Waiting => 'w',
        Standing::LookingUp => 'i',
        Standing::Connecting => 'c',
        Standing::Securing => 's',
        Standing::Greeting => 'g',
        Standing::Proving => 'p',
        Standing::Up => 'u',
        Standing::Leaving => 'l',
        Standing::Stopped => 'o',
    }
}

#[test]
fn every_event_in_every_state_leads_where_the_table_says() {
    let mut wrong = Vec::new();
    for ((state, lead), (name, plain, packed)) in STATES.iter().zip(LEADS) {
        assert_eq!(*state, name);
        let mut events: Vec<Event> = (0..).map_while(event).collect();
        assert_eq!((plain.len(), packed.len()), (events.len(), packets().len()), "{state}");
        events.extend(packets().into_iter().map(Event::Packet));
        let mut found = String::new();
        for (nth, event) in events.into_iter().enumerate() {
            let mut play = Play::new(&["a:1"]);
            play.random = 12_345;
            lead(&mut play);
            if nth == 1 {
                // As late as anything is waited for.
                play.up += Duration::from_secs(400);
                if *state == "up" {
                    play.step(Event::Tick);
                    play.up += Duration::from_secs(400);
                }
            }
            let before = play.session.standing();
            let out = play.step(event);
            holds(&play, before, &out);
            found.push(letter(play.session.standing()));
        }
        let expected = format!("{plain}{packed}");
        if found != expected {
            wrong.push(format!("{state}: {found}, not {expected}"));
        }
    }
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

/// What must hold after any event in any state.
fn holds(play: &Play, before: Standing, out: &[Effect]) {
    let after = play.session.standing();
    let told = |is: fn(&Happened) -> bool| {
        out.iter().filter(|it| matches!(it, Effect::Tell(happened) if is(happened))).count()
    };
    let (ups, downs) = (
        told(|it| matches!(it, Happened::Up { .. })),
        told(|it| matches!(it, Happened::Down { .. })),
    );
    assert_eq!(ups, usize::from(before != Standing::Up && after == Standing::Up));
    assert_eq!(downs > 0, out.contains(&Effect::Close) && after != Standing::Stopped);
    assert_eq!(told(|it| *it == Happened::Stopped) > 0, out.contains(&Effect::Close) && downs == 0);
    assert_eq!(play.session.deadline().is_none(), after == Standing::Stopped);
    assert_eq!(play.session.room() > 0, after == Standing::Up, "room only for a link that is up");
    let sends = out.iter().filter(|it| matches!(it, Effect::Send(_))).count();
    assert!(sends <= 3, "an event costs little: {out:?}");
}
