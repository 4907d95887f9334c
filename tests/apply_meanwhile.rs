//! What a person puts where the host was about to make something stays that person's.

mod support;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::PathBuf;

use nox_mesh_host::digest::{hex, sha256};
use support::root::Root;

fn file(id: &str, text: &str) -> String {
    format!(r#"{{"id":"{id}","type":"file","path":"/s/{id}","content":"{text}"}}"#)
}

fn directory(id: &str, path: &str) -> String {
    format!(r#"{{"id":"{id}","type":"directory","path":"{path}"}}"#)
}

/// A file `z` that is fetched: everything before it in the declaration is complete and waits to be
/// put in place by the time `meanwhile` is run.
fn fetched(meanwhile: impl FnOnce() + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
        lines.find(String::is_empty);
        meanwhile();
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nz").unwrap();
    });
    let sha256 = hex(&sha256(b"z"));
    format!(
        r#"{{"id":"z","type":"file","path":"/s/z",
        "source":{{"url":"http://{address}/z","sha256":"{sha256}"}}}}"#
    )
}

/// Applies all of these while a person puts `names` in place; `a` is refused, and so ends the pass.
fn disturbed(root: &Root, before: &[String], names: &[&str]) {
    let theirs: Vec<PathBuf> = names.iter().map(|name| root.at(&format!("/s/{name}"))).collect();
    let put = move || theirs.iter().for_each(|path| fs::write(path, "mine").unwrap());
    let run = root.apply(&[before.join(","), fetched(put)].join(","));
    assert_eq!(run.code, 1, "{}{}", run.out, run.err);
    assert!(run.outcomes().contains(&"a failed".to_string()), "{}", run.out);
    assert!(run.err.contains("something appeared there meanwhile"), "{}{}", run.out, run.err);
}

// R-9
#[test]
fn what_a_person_put_there_meanwhile_is_never_ours() {
    let root = Root::new("meanwhile");
    disturbed(&root, &[file("a", "a"), file("b", "b")], &["a", "b", "z"]);
    let report = root.host(&["--json", "owned"]).out;
    for name in ["a", "b", "z"] {
        assert!(!report.contains(&format!("path:/s/{name}")), "{report}");
    }
    root.converge("");
    for name in ["a", "b", "z"] {
        assert_eq!(root.text(&format!("/s/{name}")), "mine");
    }
}

// R-9
#[test]
fn what_was_in_place_when_an_earlier_one_was_refused_is_ours() {
    let root = Root::new("meanwhile-made");
    let all = [file("a", "a"), directory("d", "/s/p/d"), file("b", "b")];
    disturbed(&root, &all, &["a"]);
    assert!(root.has("/s/p/d") && !root.has("/s/b"));
    root.converge("");
    assert!(!root.has("/s/p"), "what the host made goes");
    assert_eq!(root.text("/s/a"), "mine");
}
