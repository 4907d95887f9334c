//! `peer`: what is drift of a peer and what is its own business.

use crate::resource::net::cidr;
use crate::resource::peer::Peer;
use crate::resource::wireguard::{Act, FoundPeer};
use crate::resource::{Answer, Past, Resource, Standing, Step};
use crate::tool::wg;

const KEY: &str = "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=";
const SHARED: &str = "FpCyhws9cxwWoV4xELtfJvjJN+zQVRPISllRWgeopVE=";
const HERE: &str = "192.0.2.1:51820";

fn peer() -> Peer {
    Peer {
        interface: "wg0".into(),
        public_key: KEY.into(),
        allowed: [cidr("10.0.0.2/32").unwrap()].into(),
        endpoint: Some(HERE.into()),
        keepalive: 0,
        preshared: wg::Secret::of(SHARED),
    }
}

fn found() -> wg::Peer {
    wg::Peer {
        preshared: wg::Secret::of(SHARED),
        endpoint: Some(HERE.into()),
        allowed: vec![cidr("10.0.0.2/32").unwrap()],
        handshake: 0,
        keepalive: 0,
    }
}

/// What differs, and the endpoint that is told.
fn judge(found: wg::Peer, silent_s: Option<u64>, before: Option<&str>) -> (String, Option<String>) {
    let past = Past { standing: Standing::Created, before, ..Past::NONE };
    let declared = peer();
    let answer = Answer::Peer(FoundPeer::Here { peer: found, silent_s });
    let verdict = declared.judge(&answer, &past).unwrap();
    assert!(verdict.existed && verdict.steps.is_empty() == verdict.detail.is_empty());
    assert!(!verdict.detail.contains(SHARED) && !format!("{verdict:?}").contains(SHARED));
    let told = match verdict.steps.first() {
        Some(Step::Overlay(Act::Peer("wg0", new))) => new.endpoint.map(String::from),
        None => None,
        other => panic!("{other:?}"),
    };
    (verdict.detail, told)
}

//
#[test]
fn a_peer_that_roams_is_told_its_endpoint_only_when_that_helps() {
    let told = Some("endpoint=192.0.2.1:51820");
    let roamed = || wg::Peer { endpoint: Some("192.0.2.9:1".into()), ..found() };
    let nowhere = || wg::Peer { endpoint: None, ..found() };
    for (found, silent_s, before, is_told) in [
        (found(), None, told, false),
        (found(), Some(9), None, false),
        (roamed(), Some(0), told, false),
        (roamed(), Some(179), told, false),
        (roamed(), Some(180), told, true),
        (roamed(), None, told, true),
        (nowhere(), None, told, true),
        // Another was declared, or it was there before anything was.
        (roamed(), Some(0), Some("endpoint=192.0.2.8:1"), true),
        (roamed(), Some(0), None, true),
    ] {
        let (detail, endpoint) = judge(found.clone(), silent_s, before);
        let expected = is_told.then(|| HERE.to_string());
        assert_eq!(endpoint, expected, "{found:?} {silent_s:?} {before:?}: {detail}");
        assert_eq!(detail.is_empty(), !is_told);
    }
    // However it is written.
    let mut six = peer();
    six.endpoint = Some("[2001:DB8:0::1]:7".into());
    let peer = wg::Peer { endpoint: Some("[2001:db8::1]:7".into()), ..found() };
    let answer = Answer::Peer(FoundPeer::Here { peer, silent_s: None });
    assert!(six.judge(&answer, &Past::NONE).unwrap().steps.is_empty());
}

//
#[test]
fn everything_else_of_a_peer_is_as_declared() {
    let told = Some("endpoint=192.0.2.1:51820");
    let extra = ["10.0.0.2/32", "10.9.0.0/16"].map(|it| cidr(it).unwrap()).to_vec();
    for (found, words) in [
        (wg::Peer { allowed: vec![], ..found() }, "10.0.0.2/32 is not behind it"),
        (wg::Peer { allowed: extra, ..found() }, "10.9.0.0/16 is behind it"),
        (wg::Peer { keepalive: 25, ..found() }, "its persistent keepalive is 25 s, not 0 s"),
        (wg::Peer { preshared: None, ..found() }, "its preshared key is another"),
    ] {
        let (detail, endpoint) = judge(found, Some(1), told);
        assert_eq!((&*detail, endpoint), (words, None));
    }
}

#[test]
fn a_peer_waits_for_its_interface() {
    let declared = peer();
    let trouble = declared.judge(&Answer::Peer(FoundPeer::NoInterface), &Past::NONE).unwrap_err();
    assert_eq!(trouble.awaits.unwrap().as_str(), "overlay:wg0");
    let verdict = declared.judge(&Answer::Peer(FoundPeer::Nothing), &Past::NONE).unwrap();
    assert!(!verdict.existed && verdict.steps.len() == 1);
}
