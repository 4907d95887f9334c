//! `overlay`: every state that an interface can be found in against what can be declared.

use std::net::IpAddr;

use crate::resource::net::cidr;
use crate::resource::overlay::{public_key, Overlay};
use crate::resource::parting::{parting, Ends, Leaving, Parting};
use crate::resource::wireguard::{Act, Device, Found, Kept};
use crate::resource::{Answer, Past, Resource, Standing, Step, Verdict};
use crate::tool::ip::Link;

fn networks(texts: &[&str]) -> Vec<(IpAddr, u8)> {
    texts.iter().map(|text| cidr(text).unwrap()).collect()
}

fn overlay() -> Overlay {
    Overlay {
        interface: "wg0".into(),
        addresses: networks(&["10.0.0.1/24", "10.0.0.2/24"]).into(),
        port: Some(51820),
        mtu: Some(1400),
        key_file: None,
    }
}

/// As the overlay is declared.
fn found() -> Found {
    Found {
        link: Some(Link {
            kind: "tun".into(),
            is_up: true,
            mtu: 1400,
            addresses: networks(&["10.0.0.1/24", "10.0.0.2/24", "fe80::1/64"]),
        }),
        device: Some(Device { public_key: Some("PUBLIC".into()), port: 51820 }),
        kept: Some(Kept { in_use: true, exposed: false }),
    }
}

fn words(steps: &[Step<'_>]) -> Vec<String> {
    let word = |step: &Step<'_>| match step {
        Step::Overlay(act) => match act {
            Act::KeepKey(_) => "keep".into(),
            Act::Make(name) => format!("make {name}"),
            Act::Configure(_, port) => format!("configure {}", port.unwrap_or_default()),
            Act::SetUp(_, mtu) => format!("up {}", mtu.unwrap_or_default()),
            Act::Give(_, (address, length)) => format!("+{address}/{length}"),
            Act::Take(_, (address, length)) => format!("-{address}/{length}"),
            other => format!("{other:?}"),
        },
        other => panic!("{other:?}"),
    };
    steps.iter().map(word).collect()
}

fn judged(found: Found, check: impl FnOnce(&Verdict<'_>)) {
    check(&overlay().judge(&Answer::Overlay(found), &Past::NONE).unwrap());
}

// R-2, R-3
#[test]
fn each_part_that_differs_takes_its_own_step() {
    judged(found(), |verdict| {
        assert!(verdict.existed && verdict.steps.is_empty() && verdict.detail.is_empty());
        assert_eq!(verdict.before.as_deref().and_then(public_key), Some("PUBLIC"));
    });
    judged(Found { link: None, device: None, kept: None }, |verdict| {
        let all =
            ["keep", "make wg0", "configure 51820", "up 1400", "+10.0.0.1/24", "+10.0.0.2/24"];
        assert_eq!(words(&verdict.steps), all);
        assert!(!verdict.existed && verdict.detail == "absent");
        assert_eq!(verdict.before, None);
    });
    // After a reboot: the key that is kept is used again.
    let kept = Some(Kept { in_use: false, exposed: false });
    judged(Found { link: None, device: None, kept }, |verdict| {
        assert_eq!(words(&verdict.steps)[..2], ["make wg0", "configure 51820"]);
    });
    // Killed between the making and the key.
    let bare = Some(Device { public_key: None, port: 0 });
    judged(Found { device: bare, kept, ..found() }, |verdict| {
        assert_eq!(words(&verdict.steps), ["configure 51820"]);
    });
    judged(Found { kept: None, ..found() }, |verdict| {
        assert_eq!(words(&verdict.steps), ["keep"], "its own key is kept, not replaced");
    });
    judged(Found { kept, ..found() }, |verdict| {
        assert_eq!(words(&verdict.steps), ["configure 0"], "the port is left as it is");
    });
    let exposed = Some(Kept { in_use: true, exposed: true });
    judged(Found { kept: exposed, ..found() }, |verdict| {
        assert_eq!(words(&verdict.steps), ["keep"]);
    });
}

// R-3
#[test]
fn what_an_address_takes_along_is_given_back() {
    let with = |texts: &[&str], check: &dyn Fn(Vec<String>)| {
        let link = Link { addresses: networks(texts), ..found().link.unwrap() };
        judged(Found { link: Some(link), ..found() }, |verdict| check(words(&verdict.steps)));
    };
    with(&["10.0.0.1/24"], &|words| assert_eq!(words, ["+10.0.0.2/24"]));
    with(&["10.0.0.1/24", "10.0.0.2/24", "10.0.0.9/24"], &|words| {
        assert_eq!(words, ["-10.0.0.9/24", "+10.0.0.1/24", "+10.0.0.2/24"]);
    });
    with(&["10.0.0.1/16", "10.0.0.2/24"], &|words| {
        assert_eq!(words, ["-10.0.0.1/16", "+10.0.0.1/24", "+10.0.0.2/24"]);
    });
}

#[test]
fn another_kind_of_interface_is_never_replaced() {
    for (kind, words) in [("", "another kind"), ("bridge", "kind bridge"), ("tun", "wg does not")] {
        let link = Link { kind: kind.into(), ..found().link.unwrap() };
        let answer = Answer::Overlay(Found { link: Some(link), device: None, kept: None });
        let trouble = overlay().judge(&answer, &Past::NONE).unwrap_err();
        assert!(trouble.cause.contains(words), "{trouble}");
    }
}

// R-9
#[test]
fn only_what_the_host_made_is_taken_down() {
    use Standing::{Adopted, Created};
    let gone = || Found { link: None, device: None, kept: None };
    let other = || Found { device: None, kept: None, ..found() };
    let drop = r#"Drop("wg0")"#;
    let key = r#"DropKey("wg0")"#;
    for (standing, found, steps, ends) in [
        (Created, found(), &[drop, key][..], Ends::Removed),
        (Created, Found { kept: None, ..found() }, &[drop], Ends::Removed),
        (Created, Found { kept: found().kept, ..gone() }, &[key], Ends::Removed),
        (Created, gone(), &[], Ends::Removed),
        (Created, other(), &[], Ends::Left),
        (Adopted, found(), &[key], Ends::Removed),
        (Adopted, Found { kept: None, ..found() }, &[], Ends::Forgotten),
        (Adopted, gone(), &[], Ends::Forgotten),
    ] {
        let Parting::Undo(undo) = parting("overlay", standing) else { panic!("it is undone") };
        let leaving = Leaving { name: "wg0", standing, before: None };
        assert_eq!(undo.announces(&leaving).is_some(), standing == Created);
        let answer = Answer::Overlay(found);
        let farewell = undo.judge(&leaving, &answer).unwrap();
        assert_eq!(words(&farewell.steps), steps, "{standing:?} {answer:?}");
        if farewell.steps.is_empty() || standing == Created {
            assert_eq!(farewell.ends, ends, "{standing:?} {answer:?}");
        }
    }
}
