//! Every packet, whole, cut short, gone on with, and with everything in the wrong place.

use crate::link::mqtt::{
    decode, disconnect, puback, Connect, Fault, Frame, Incoming, Publication, Subscribe, Will,
    PINGREQ,
};

/// One good packet of each kind that a broker sends, with every property that it may have.
const GOOD: [(&str, &[u8]); 10] = [
    ("connack", b"\x20\x03\x00\x00\x00"),
    (
        "connack with all",
        b"\x20\x3d\x01\x00\x3a\x11\x00\x00\x00\x09\x21\x00\x05\x24\x01\x25\x01\x27\x00\x01\x00\x00\
          \x12\x00\x01a\x22\x00\x00\x1f\x00\x02no\x26\x00\x01k\x00\x01v\x28\x01\x29\x00\x2a\x01\
          \x13\x00\x3c\x1a\x00\x00\x1c\x00\x00\x15\x00\x00\x16\x00\x01\xff",
    ),
    ("publish at 0", b"\x30\x06\x00\x01t\x00hi"),
    (
        "publish with all",
        b"\x3b\x2c\x00\x03a/b\x00\x01\x23\x01\x01\x02\x00\x00\x00\x01\x03\x00\x00\x08\x00\x00\x09\
          \x00\x00\x0b\x80\x01\x0b\x01\x26\x00\x01k\x00\x01v\x26\x00\x01k\x00\x01vx",
    ),
    ("puback", b"\x40\x02\x00\x07"),
    ("puback with a reason", b"\x40\x03\x00\x07\x10"),
    ("puback with all", b"\x40\x0d\x00\x07\x87\x09\x1f\x00\x00\x26\x00\x01k\x00\x00"),
    ("suback", b"\x90\x06\x00\x01\x00\x01\x87\x00"),
    ("pingresp", b"\xd0\x00"),
    ("disconnect with all", b"\xe0\x07\x8e\x05\x1f\x00\x02no"),
];

#[test]
fn every_good_packet_is_read_whole_and_refused_in_part_and_beyond_its_end() {
    for (name, packet) in GOOD {
        assert!(decode(packet).is_ok(), "{name}: {:?}", decode(packet));
        for cut in 0..packet.len() {
            assert!(decode(&packet[..cut]).is_err(), "{name} up to {cut}");
        }
        let longer = [packet, b"\0"].concat();
        assert_eq!(decode(&longer).unwrap_err(), Fault::Surplus, "{name}");
    }
}

#[test]
fn every_good_packet_with_one_byte_changed_is_read_or_refused() {
    for (_, packet) in GOOD {
        for at in 0..packet.len() {
            for byte in 0..=255 {
                let mut packet = packet.to_vec();
                packet[at] = byte;
                if let Err(fault) = decode(&packet) {
                    assert!(!fault.to_string().chars().any(char::is_control), "{fault}");
                }
            }
        }
    }
}

#[test]
fn a_packet_that_is_cut_short_inside_its_own_length_is_refused() {
    // As above, the length made to fit: what is cut is a field, not the packet.
    for (name, packet) in GOOD {
        let body = &packet[2..];
        for cut in 0..body.len() {
            let packet = [&[packet[0], cut as u8], &body[..cut]].concat();
            let may = match packet[0] >> 4 {
                // A payload ends where it ends, and reasons may be fewer; what may be left out may.
                3 | 9 => true,
                4 => matches!(cut, 2 | 3),
                14 => cut < 2,
                _ => false,
            };
            assert!(may || decode(&packet).is_err(), "{name} up to {cut}");
        }
    }
}

#[test]
fn what_stands_in_a_packet_is_found_there() {
    let Ok(Incoming::Connack(connack)) = decode(GOOD[1].1) else { panic!("it is one") };
    assert!(connack.session_present);
    assert_eq!((connack.why(), connack.assigned_client_id()), (Some("no"), Some("a")));
    assert_eq!((connack.receive_maximum(), connack.keep_alive_s()), (5, Some(60)));
    assert_eq!(connack.maximum_packet_size(), Some(0x1_0000));
    let Ok(Incoming::Connack(bare)) = decode(GOOD[0].1) else { panic!("it is one") };
    assert_eq!((bare.receive_maximum(), bare.keep_alive_s()), (u16::MAX, None));
    assert!(bare.takes_qos_1() && bare.retains());

    let Ok(Incoming::Publish(publish)) = decode(GOOD[3].1) else { panic!("it is one") };
    assert_eq!((publish.topic, publish.id, publish.payload), ("a/b", Some(1), &b"x"[..]));
    assert!(publish.dup && publish.retain);
    assert_eq!(publish.user("k").collect::<Vec<_>>(), ["v", "v"]);
    assert_eq!(publish.user("l").count(), 0);

    let Ok(Incoming::Puback(acked)) = decode(GOOD[6].1) else { panic!("it is one") };
    assert_eq!((acked.id, acked.reason, acked.why()), (7, 0x87, Some("")));
    let Ok(Incoming::Suback(said)) = decode(GOOD[7].1) else { panic!("it is one") };
    assert_eq!((said.id, said.reasons), (1, &[1, 0x87, 0][..]));
    let Ok(Incoming::Disconnect(parted)) = decode(GOOD[9].1) else { panic!("it is one") };
    assert_eq!((parted.reason, parted.why()), (0x8e, Some("no")));
    let Ok(Incoming::Disconnect(parted)) = decode(b"\xe0\x00") else { panic!("it is one") };
    assert_eq!((parted.reason, parted.why()), (0, None));
}

#[test]
fn only_what_a_broker_may_send_to_this_client_is_read() {
    for first in 0..=255u8 {
        let body: &[u8] = match first >> 4 {
            2 => b"\0\0\0",
            3 if first & 6 == 0 => b"\0\x01t\0",
            3 => b"\0\x01t\0\x01\0",
            9 => b"\0\x01\0\0",
            13 | 14 => b"",
            _ => b"\0\x01",
        };
        let packet = [&[first, body.len() as u8], body].concat();
        let may = matches!(first, 0x20 | 0x30 | 0x31 | 0x32 | 0x33 | 0x3a | 0x3b)
            || matches!(first, 0x40 | 0x90 | 0xd0 | 0xe0);
        assert_eq!(decode(&packet).is_ok(), may, "{first:#04x}: {:?}", decode(&packet));
    }
}

/// Each property with a good value, and the kinds of packet in which it may stand: CONNACK 2,
/// PUBLISH 3, PUBACK 4, SUBACK 9, DISCONNECT 14 (MQTT 5.0, table 2-4).
fn property(id: u8) -> (Vec<u8>, &'static [u8]) {
    let (value, kinds): (&[u8], &[u8]) = match id {
        0x01 => (b"\x01", &[3]),
        0x02 => (b"\0\0\0\0", &[3]),
        0x03 | 0x08 => (b"\0\x01x", &[3]),
        0x09 => (b"\0\x01\xff", &[3]),
        0x0b => (b"\x01", &[3]),
        0x11 => (b"\0\0\0\0", &[2]),
        0x12 | 0x15 | 0x1a => (b"\0\x01x", &[2]),
        0x13 => (b"\0\0", &[2]),
        0x16 => (b"\0\x01\xff", &[2]),
        0x1c => (b"\0\x01x", &[2, 14]),
        0x1f => (b"\0\x01x", &[2, 4, 9, 14]),
        0x21 => (b"\0\x01", &[2]),
        0x22 => (b"\0\0", &[2]),
        // Offered by nobody, and so never taken.
        0x23 => (b"\0\x01", &[]),
        0x24 | 0x25 | 0x28 | 0x29 | 0x2a => (b"\x01", &[2]),
        0x26 => (b"\0\x01x\0\0", &[2, 3, 4, 9, 14]),
        0x27 => (b"\0\0\0\x01", &[2]),
        _ => (b"\0\0\0\0\0\0\0\0", &[]),
    };
    ([&[id], value].concat(), kinds)
}

fn with_properties(kind: u8, properties: &[u8]) -> Vec<u8> {
    let (head, tail): (&[u8], &[u8]) = match kind {
        2 => (b"\0\0", b""),
        3 => (b"\0\x01t", b""),
        4 => (b"\0\x01\0", b""),
        9 => (b"\0\x01", b"\0"),
        _ => (b"\0", b""),
    };
    let body = [head, &[properties.len() as u8], properties, tail].concat();
    [&[kind << 4, body.len() as u8], &body[..]].concat()
}

#[test]
fn every_property_stands_where_it_may_and_nowhere_else_and_once() {
    for id in 0..=255 {
        let (bytes, kinds) = property(id);
        for kind in [2, 3, 4, 9, 14] {
            let once = with_properties(kind, &bytes);
            assert_eq!(decode(&once).is_ok(), kinds.contains(&kind), "{id:#04x} in {kind}");
            let twice = with_properties(kind, &[&bytes[..], &bytes].concat());
            match decode(&twice) {
                Ok(_) => assert!(matches!(id, 0x26 | 0x0b), "{id:#04x} twice in {kind}"),
                Err(fault) if kinds.contains(&kind) => assert_eq!(fault, Fault::Twice(id)),
                Err(fault) => assert!(fault == Fault::Property(id) || id == 0x23, "{fault}"),
            }
        }
    }
}

#[test]
fn values_that_no_field_may_have_are_refused() {
    for (what, packet) in [
        ("connack flags", &b"\x20\x03\x02\x00\x00"[..]),
        ("a session that is refused", b"\x20\x03\x01\x87\x00"),
        ("identifier 0", b"\x40\x02\x00\x00"),
        ("identifier 0 of a publication", b"\x32\x06\x00\x01t\x00\x00\x00"),
        ("an empty topic", b"\x30\x03\x00\x00\x00"),
        ("a wildcard", b"\x30\x04\x00\x01#\x00"),
        ("no text", b"\x30\x04\x00\x01\xff\x00"),
        ("NUL in text", b"\x30\x04\x00\x01\x00\x00"),
        ("a topic alias", b"\x30\x07\x00\x01t\x03\x23\x00\x01"),
        ("a receive maximum of 0", b"\x20\x06\x00\x00\x03\x21\x00\x00"),
        ("a packet size of 0", b"\x20\x08\x00\x00\x05\x27\x00\x00\x00\x00"),
        ("a flag of 2", b"\x20\x05\x00\x00\x02\x25\x02"),
        ("a subscription identifier of 0", b"\x30\x06\x00\x01t\x02\x0b\x00"),
        ("a padded length", b"\xd0\x80\x00"),
        ("a length of five bytes", b"\xd0\x80\x80\x80\x80\x00"),
        ("a suback of nothing", b"\x90\x03\x00\x01\x00"),
    ] {
        assert!(decode(packet).is_err(), "{what}: {:?}", decode(packet));
    }
}

#[test]
fn a_packet_arrives_in_pieces_and_none_of_the_next_with_it() {
    for (name, packet) in GOOD {
        let mut frame = Frame::default();
        let mut given = 0;
        loop {
            match frame.missing(1 << 20).unwrap() {
                0 => break,
                missing => {
                    assert!(given + missing <= packet.len(), "{name}: asks for what is not its");
                    frame.push(&packet[given..=given]);
                    given += 1;
                }
            }
        }
        assert_eq!(frame.take(), packet, "{name}");
        assert_eq!(frame.missing(1 << 20), Ok(2), "the next begins anew");
    }
}

#[test]
fn a_packet_too_large_is_refused_before_it_has_come() {
    let mut frame = Frame::default();
    frame.push(b"\x30\xff\xff\xff");
    assert_eq!(frame.missing(1 << 20), Ok(1));
    frame.push(b"\x7f");
    let size = 268_435_455 + 5;
    assert_eq!(frame.missing(1 << 20), Err(Fault::Large { size, most: 1 << 20 }));
    let mut frame = Frame::default();
    frame.push(b"\x30\xff\xff\xff\xff");
    assert_eq!(frame.missing(usize::MAX), Err(Fault::Length));
}

#[test]
fn packets_to_the_broker_are_written_as_the_standard_has_them() {
    let connect = Connect {
        client_id: "web-1",
        keep_alive_s: 60,
        receive_maximum: 16,
        maximum_packet_size: 0x0401_0000,
        will: Some(Will { topic: "w", payload: b"{}" }),
        credentials: Some(("u", "p")),
    };
    let expected = b"\x10\x28\x00\x04MQTT\x05\xee\x00\x3c\x08\x21\x00\x10\x27\x04\x01\x00\x00\
        \x00\x05web-1\x00\x00\x01w\x00\x02{}\x00\x01u\x00\x01p";
    assert_eq!(connect.encode(), expected);
    let bare = Connect { will: None, credentials: None, ..connect };
    assert_eq!(bare.encode()[9], 0x02, "a clean start and nothing else");

    let subscribe = Subscribe { id: 258, topics: &["a", "b/c"] };
    assert_eq!(subscribe.encode(), b"\x82\x0d\x01\x02\x00\x00\x01a\x01\x00\x03b/c\x01");
    assert_eq!(puback(258), *b"\x40\x02\x01\x02");
    assert_eq!(disconnect(4), *b"\xe0\x01\x04");
    assert_eq!(PINGREQ, *b"\xc0\x00");
}

#[test]
fn a_publication_of_any_size_reads_back_as_it_was_written() {
    for size in [0, 1, 100, 127, 128, 16_000, 16_383, 16_384, 2_097_151, 2_097_152] {
        let payload = vec![b'x'; size];
        let user = [("signature", "AAAA"), ("k", "")];
        let publication =
            Publication { id: 9, retain: false, topic: "a/b", user: &user, payload: &payload };
        let packet = publication.encode();
        assert_eq!(packet.len(), publication.size(), "{size}");
        let Ok(Incoming::Publish(read)) = decode(&packet) else { panic!("{size}") };
        assert_eq!((read.topic, read.id, read.payload), ("a/b", Some(9), &payload[..]));
        assert_eq!(read.user("signature").collect::<Vec<_>>(), ["AAAA"]);
    }
}
