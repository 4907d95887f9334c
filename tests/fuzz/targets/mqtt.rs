//! Any bytes as a packet of the broker's: read or refused, never a panic, and what is read of it
//! lies in it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nox_mesh_host::link::mqtt::{decode, Frame, Incoming};

fuzz_target!(|stream: &[u8]| {
    let (mut frame, mut at) = (Frame::default(), 0);
    // As they come over a connection: one packet, and then the next.
    loop {
        match frame.missing(1 << 20) {
            Ok(0) => look(&frame.take()),
            Ok(missing) => {
                let Some(piece) = stream.get(at..at + missing.min(4096)) else { break };
                frame.push(piece);
                at += piece.len();
            }
            Err(fault) => {
                let said = fault.to_string();
                assert!(!said.chars().any(char::is_control), "{said:?}");
                break;
            }
        }
    }
    look(stream);
});

fn look(packet: &[u8]) {
    match decode(packet) {
        Ok(Incoming::Publish(publish)) => {
            assert!(packet.ends_with(publish.payload));
            assert!(publish.topic.len() + publish.payload.len() + 5 <= packet.len());
            assert!(publish.user("signature").all(|text| text.len() < packet.len()));
        }
        Ok(Incoming::Connack(connack)) => {
            assert!(connack.receive_maximum() > 0);
            assert_ne!(connack.maximum_packet_size(), Some(0));
            let _ = (connack.why(), connack.assigned_client_id(), connack.keep_alive_s());
        }
        Ok(Incoming::Puback(acked)) => assert!(acked.id > 0 && acked.why().is_none_or(fits)),
        Ok(Incoming::Suback(said)) => assert!(!said.reasons.is_empty()),
        Ok(Incoming::Disconnect(parted)) => assert!(parted.why().is_none_or(fits)),
        Ok(Incoming::Pingresp) => assert_eq!(packet.len(), 2),
        Err(fault) => assert!(!fault.to_string().is_empty()),
    }
}

fn fits(text: &str) -> bool {
    text.len() <= usize::from(u16::MAX)
}
