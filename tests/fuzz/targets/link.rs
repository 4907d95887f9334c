//! Any bytes as what a mesh says and as a certificate, and any row of events as what happens to a
//! link: never a panic, and the session keeps its own rules.
#![no_main]

use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use nox_mesh_host::link::mesh::{Broker, Mesh};
use nox_mesh_host::link::session::{Effect, Event, Happened, Me, Moment, Session, Standing};
use nox_mesh_host::link::signed::ControlKey;
use nox_mesh_host::link::x509::Certificate;
use nox_mesh_host::link::{Layer, Refusal, Side};
use nox_mesh_host::when::When;

const AUTHORITY: &str = include_str!("../../transcripts/openssl/authority.pem");

fuzz_target!(|data: &[u8]| {
    if let Err(why) = Mesh::parse(data) {
        assert!(!why.chars().any(char::is_control), "{why:?}");
    }
    if let Some(read) = Certificate::read(data) {
        assert!(read.public_key.len() < data.len());
    }
    let text = String::from_utf8_lossy(data);
    if let Ok(broker) = Broker::parse(&text) {
        assert_eq!(Broker::parse(&broker.to_string()), Ok(broker));
    }
    let _ = ControlKey::parse(&text);
    play(data);
});

/// A first byte that says what happens, and for a packet its length and itself.
fn play(mut data: &[u8]) {
    let mesh = serde_json::json!({
        "v": 1, "serial": 5, "brokers": ["a:1", "b:2"], "cas": [AUTHORITY],
        "control_keys": [format!("ed25519:{}=", "A".repeat(43))], "serial_floor": 0,
    });
    let mesh = Mesh::parse(mesh.to_string().as_bytes()).expect("it is one");
    let me = Me { node: "web-1".into(), version: "1", keep_alive_s: 60 };
    let mut session = Session::new(me, mesh);
    let mut up = Duration::from_secs(1);
    while let Some((kind, rest)) = data.split_first() {
        data = rest;
        let event = match kind % 12 {
            0 => Event::Tick,
            1 => Event::Found(vec![([127, 0, 0, 1], 1).into()]),
            2 => Event::Connected,
            3 => Event::Secured,
            4 => Event::Judged,
            5 => Event::Moved,
            6 => Event::Drained,
            7 => Event::Ended(None),
            8 => Event::Failed(Refusal::new(Side::Network, Layer::Tcp, "x", "y")),
            9 if kind % 5 == 0 => Event::Stop,
            10 => Event::Hurry,
            _ => {
                let length = usize::from(data.first().copied().unwrap_or(0)).min(data.len());
                let packet = data[..length].to_vec();
                data = &data[length..];
                Event::Packet(packet)
            }
        };
        up += Duration::from_secs(u64::from(kind / 12));
        let was = session.standing();
        let mut out = Vec::new();
        let mut random = || u64::from(*kind);
        let mut now = Moment { up, at: When(0), random: &mut random };
        session.step(event, &mut now, &mut out);
        let is_up = session.standing() == Standing::Up;
        let ups = out.iter().filter(|it| matches!(it, Effect::Tell(Happened::Up { .. }))).count();
        assert_eq!(ups, usize::from(is_up && was != Standing::Up));
        assert!(!is_up, "nobody here can sign a mesh message");
        assert_eq!(session.deadline().is_none(), session.standing() == Standing::Stopped);
    }
}
