//! The journal's form and the way back.

use std::collections::HashMap;

use super::{document, lines, read, read_trusted, Own};
use crate::declaration::stored::{form, journal_form, journal_len, journal_text};
use crate::declaration::stored::{parse_stored, Stored};
use crate::declaration::{Bundle, Declaration, Declared};
use crate::digest::{hex, keyed};
use crate::resource::file::{Body, File};
use crate::resource::{Answer, Found, Past, PathAnswer, Question};

const CANARY: &str = "CANARY-7e1f";

/// A stand-in for the store's secrets.
#[derive(Default)]
struct Secrets(HashMap<String, Vec<u8>>);

impl Secrets {
    fn keep(&mut self, value: &[u8]) -> String {
        let name = hex(&keyed(&[7; 32], value));
        self.0.insert(name.clone(), value.to_vec());
        name
    }

    fn text(&mut self, declaration: &Declaration) -> String {
        let mut keep = |value: &[u8]| self.keep(value);
        let pieces: Vec<String> = journal_text(declaration, &mut keep).collect();
        assert!(pieces.len() > declaration.resources.len());
        pieces.concat()
    }
}

fn with_secrets() -> String {
    let list = format!(
        r#"{{"type":"file" , "content":"{CANARY}\n\"", "id":"s","path":"/srv/s","secret":true}},
           {{"id":"b","type":"file","secret":true,"path":"/srv/b","content_base64":"Q0FOQVJZ"}},
           {{"id":"o","type":"file","path":"/srv/o","content":"open \u00e9","secret":false}},
           {{"id":"k","type":"sysctl","key":"kernel.panic","value":7,"timeout_s":3}}"#
    );
    document(&list).replacen('{', "{\"node\":\"web-1\",\"serial\":42,", 1)
}

#[test]
fn the_journal_has_no_secret_and_gives_equal_resources_back() {
    // R-30
    let declaration = read(&with_secrets()).unwrap();
    let mut secrets = Secrets::default();
    let text = secrets.text(&declaration);
    assert!(!text.contains(CANARY) && !text.contains("Q0FOQVJZ") && !text.contains('\n'), "{text}");
    assert!(text.contains("open é"), "{text}");
    assert_eq!(secrets.0.len(), 2);

    let mut resolve = |name: &str| secrets.0.get(name).cloned();
    let back =
        parse_stored(Stored::Untrusted(text.clone().into_bytes()), &Own::default(), &mut resolve)
            .unwrap();
    assert_eq!(
        format!("{:?}", back.resources.iter().map(|it| &it.resource).collect::<Vec<_>>()),
        format!("{:?}", declaration.resources.iter().map(|it| &it.resource).collect::<Vec<_>>())
    );
    assert_eq!((back.node.clone(), back.serial), (declaration.node.clone(), declaration.serial));
    for (one, other) in back.resources.iter().zip(&declaration.resources) {
        assert_eq!((&one.id, one.timeout), (&other.id, other.timeout));
        assert_eq!(one.resource.object(), other.resource.object());
    }
    // And the journal's form of what came from the journal is the same again.
    let mut again = Secrets::default();
    assert_eq!(again.text(&back), text);
    assert!(again.0.is_empty());
}

#[test]
fn the_values_put_back_are_the_values_taken_out() {
    let declaration = read(&with_secrets()).unwrap();
    let mut secrets = Secrets::default();
    let text = secrets.text(&declaration);
    let mut given = Vec::new();
    let mut resolve = |name: &str| {
        let value = secrets.0.get(name).cloned();
        given.extend(value.clone());
        value
    };
    parse_stored(Stored::Untrusted(text.into_bytes()), &Own::default(), &mut resolve).unwrap();
    assert_eq!(given, [format!("{CANARY}\n\"").into_bytes(), b"Q0FOQVJZ".to_vec()]);
}

#[test]
fn a_secret_that_the_store_lost_fails_its_own_resource_and_no_other() {
    let declaration = read(&with_secrets()).unwrap();
    let text = Secrets::default().text(&declaration);
    let stored = Stored::Untrusted(text.into_bytes());
    let lost = parse_stored(stored, &Own::default(), &mut |_| None).unwrap();
    let judged = |declared: &Declared| {
        let found = Found::Nothing;
        let answer = PathAnswer { found, uid: None, gid: None, euid: 0, egid: 0 };
        let verdict = declared.resource.judge(&Answer::Path(answer), &Past::NONE);
        // Of a kernel parameter the answer is no answer.
        let is_path = matches!(declared.resource.question(), Question::Path { .. });
        verdict.err().filter(|_| is_path).map(|trouble| trouble.cause)
    };
    let troubles: Vec<_> = lost.resources.iter().map(judged).collect();
    let whole = declaration.resources.iter().map(|it| it.resource.object());
    assert!(lost.resources.iter().map(|it| it.resource.object()).eq(whole));
    for (declared, trouble) in declaration.resources.iter().zip(troubles) {
        assert_eq!(trouble.is_some(), declared.resource.secret(), "{declared:?}");
        assert!(trouble.is_none_or(|cause| cause.contains("apply its declaration again")));
    }
}

#[test]
fn a_form_does_not_know_the_name_the_limit_or_the_layout() {
    let one = r#"{"id":"a","type":"file","path":"/srv/a","content":"x","mode":"0600"}"#;
    let other = r#"{ "timeout_s":9, "mode":"06\u00300", "content":"x", "path":"/srv/a",
                     "type":"file", "id":"other" }"#;
    let third = r#"{"id":"a","type":"file","path":"/srv/a","content":"y","mode":"0600"}"#;
    let form = |resource: &str| {
        form(&read(&document(resource)).unwrap(), 0, &mut |_| unreachable!("nothing is secret"))
    };
    let text = r#"{"type":"file","path":"/srv/a","content":"x","mode":"0600"}"#;
    assert_eq!(form(one), crate::digest::sha256(text.as_bytes())[..8]);
    assert_eq!(form(one), form(other));
    assert_ne!(form(one), form(third));
}

#[test]
fn what_is_known_of_the_whole_is_what_each_resource_would_say() {
    let declaration = read(&with_secrets()).unwrap();
    let mut secrets = Secrets::default();
    let form = |nth: usize, secrets: &mut Secrets| {
        form(&declaration, nth, &mut |value| secrets.keep(value))
    };
    let all = 0..declaration.resources.len();
    let alone: Vec<_> = all.clone().map(|nth| form(nth, &mut secrets)).collect();
    let len = journal_len(&declaration, &mut |value| secrets.keep(value));
    assert_eq!(len, secrets.text(&declaration).len() as u64);
    assert!(all.map(|nth| form(nth, &mut secrets)).eq(alone));
}

#[test]
fn trust_is_the_same_on_the_way_back() {
    // R-11
    let (_, action) = super::good::examples().pop().unwrap();
    let declaration = read_trusted(&document(&action)).unwrap();
    let text = Secrets::default().text(&declaration).into_bytes();
    let back = |stored| parse_stored(stored, &Own::default(), &mut |_| None);
    let trusted = Stored::Trusted(Bundle::vouched(text.clone()));
    assert_eq!(back(trusted).unwrap().resources.len(), 1);
    assert_eq!(
        back(Stored::Untrusted(text.clone())).unwrap_err()[0].wrong,
        "only a bundle may carry an action"
    );
}

#[test]
fn one_resource_is_written_as_it_stands_in_the_whole() {
    let declaration = read(&with_secrets()).unwrap();
    let mut secrets = Secrets::default();
    let whole = secrets.text(&declaration);
    for index in 0..declaration.resources.len() {
        let one = journal_form(&declaration, index, &mut |value| secrets.keep(value));
        assert!(whole.contains(&one), "{one}");
    }
}

#[test]
fn a_part_that_stands_without_its_whole_is_told_by_its_object() {
    const KEY: &str = "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=";
    let overlay = r#"{"id":"v","type":"overlay","interface":"wg7","addresses":["10.0.0.1/8"]}"#;
    let peer = format!(
        r#"{{"id":"p","type":"peer","overlay":"v","public_key":"{KEY}","allowed_ips":[]}}"#
    );
    let whole = read(&document(&format!("{overlay},{peer}"))).unwrap();
    let object = whole.resources[1].resource.object();
    assert_eq!(object.as_str(), format!("peer:wg7 {KEY}"));
    let text = Secrets::default().text(&whole);
    let range = super::super::excerpts(&whole, &[object.as_str()])[0].clone().unwrap();
    assert!(text.contains(&document(&format!("{overlay},{peer}"))[range.clone()]));
    let alone = document(&document(&format!("{overlay},{peer}"))[range]);
    let stored = Stored::Untrusted(alone.into_bytes());
    let mut back = parse_stored(stored, &Own::default(), &mut |_| None).unwrap();
    let [one] = &mut back.resources[..] else { panic!("one resource") };
    one.resource.complete(&object);
    assert_eq!(one.resource.object(), object);
    let asked = format!("{:?}", one.resource.question());
    assert_eq!(asked, format!("{:?}", whole.resources[1].resource.question()));
}

#[test]
fn no_secret_is_ever_shown() {
    // R-30
    let declaration = read(&with_secrets()).unwrap();
    let shown = format!("{declaration:?}");
    assert!(!shown.contains(CANARY) && !shown.contains("67, 65, 78"), "{shown}");
    let bundle = super::Bundle::vouched(CANARY.into());
    assert!(!format!("{bundle:?}").contains(CANARY));
    let bytes = Body::Bytes(CANARY.as_bytes().into());
    assert!(!format!("{bytes:?}").contains("67"));
    // Faults beside a secret, and in one.
    for wrong in [
        format!(r#"{{"id":"a","type":"file","path":"x","secret":true,"content":"{CANARY}"}}"#),
        format!(r#"{{"id":"a","type":"file","path":"/x","secret":true,"content":["{CANARY}"]}}"#),
        format!(
            r#"{{"id":"a","type":"file","path":"/x","secret":true,"content_base64":"{CANARY}"}}"#
        ),
        format!(
            r#"{{"id":"a","type":"container","name":"c","secret_env":{{"P":"{CANARY}\u0000"}}}}"#
        ),
        format!(r#"{{"id":"a","type":"peer","overlay":"w","preshared_key":"{CANARY}"}}"#),
        format!(r#"{{"id":"a","type":"file","path":"/x","content":"{CANARY}""#),
    ] {
        let faults = read(&document(&wrong)).unwrap_err();
        assert!(!lines(&faults).contains(CANARY), "{}", lines(&faults));
        assert!(!format!("{faults:?}").contains(CANARY));
    }
}

#[test]
fn a_file_is_told_by_its_size_alone() {
    let path = crate::resource::RootPath::parse("/x").unwrap();
    let body = Body::Bytes(b"abc"[..].into());
    let file = File { path, body, access: Default::default(), secret: true };
    assert!(format!("{file:?}").contains("3 bytes"));
}
