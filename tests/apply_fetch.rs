//! Files whose contents an address serves, over a server of the test's own.

mod support;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

use nox_mesh_host::digest::{hex, sha256};
use support::root::Root;

/// Serves whatever lies under a path's name: `/hello` serves `hello`; `/absent` is not there.
struct Server {
    address: String,
    asked: Arc<AtomicUsize>,
}

impl Server {
    fn new() -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(AtomicUsize::new(0));
        let count = asked.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map(Result::unwrap) {
                count.fetch_add(1, Ordering::SeqCst);
                answer(stream);
            }
        });
        Server { address, asked }
    }

    /// How often it was asked since this was last looked at.
    fn asked(&self) -> usize {
        self.asked.swap(0, Ordering::SeqCst)
    }

    fn file(&self, serves: &str, holds: &str) -> String {
        let (address, sha256) = (&self.address, hex(&sha256(holds.as_bytes())));
        format!(
            r#"{{"id":"f","type":"file","path":"/s/f",
            "source":{{"url":"{address}/{serves}","sha256":"{sha256}"}}}}"#
        )
    }
}

fn answer(mut stream: TcpStream) {
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
    let first = lines.next().unwrap_or_default();
    lines.find(String::is_empty);
    let name = first.split(' ').nth(1).unwrap_or_default().trim_start_matches('/');
    let status = if name == "absent" { "404 Not Found" } else { "200 OK" };
    let len = name.len();
    // Whoever asked may have gone.
    let _ = write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Length: {len}\r\nConnection: close\r\n\r\n{name}"
    );
}

// R-2, R-3
#[test]
fn a_fetched_file_converges_and_is_not_asked_for_again() {
    let server = Server::new();
    let root = Root::new("fetched");
    let file = server.file("hello", "hello");
    assert_eq!(root.plan(&file).outcomes(), ["f created"]);
    assert_eq!(server.asked(), 0);
    root.converge(&file).expect(0, &["f created"]);
    assert_eq!(
        (root.text("/s/f").as_str(), root.mode("/s/f"), server.asked()),
        ("hello", 0o644, 1)
    );
    let before = root.tree();
    root.apply(&file).expect(0, &["f unchanged"]);
    root.reconcile().expect(0, &["f unchanged"]);
    assert_eq!((root.tree(), server.asked()), (before, 0));
    root.put("/s/f", "olleh");
    root.reconcile().expect(0, &["f corrected"]);
    assert_eq!((root.text("/s/f").as_str(), server.asked()), ("hello", 1));
    root.chmod("/s/f", 0o600);
    root.reconcile().expect(0, &["f corrected"]);
    assert_eq!((root.mode("/s/f"), server.asked()), (0o644, 0));
    root.converge(&server.file("next", "next")).expect(0, &["f changed"]);
    assert_eq!(root.text("/s/f"), "next");
    root.converge("").expect(0, &["f removed"]);
}

// R-4, R-6
#[test]
fn what_is_not_what_was_declared_never_takes_its_place() {
    let server = Server::new();
    let root = Root::new("wrong");
    root.put("/s/f", "old");
    let tree = support::root::tree(&root.at("/s/f"));
    for (serves, words) in [("wrong", "served 5 bytes of sha256"), ("absent", "404")] {
        let run = root.apply(&server.file(serves, "right")).expect(1, &["f failed"]);
        assert!(run.err.contains(words), "{}", run.err);
        assert_eq!(support::root::tree(&root.at("/s/f")), tree);
        assert_eq!(root.recorded("applied").len(), 0);
        assert_eq!(fs::read_dir(root.at("/s")).unwrap().count(), 1);
    }
    root.converge(&server.file("right", "right")).expect(0, &["f changed"]);
    root.converge("").expect(0, &["f forgotten"]);
}

// R-6
#[test]
fn a_fetch_ends_with_the_host_that_began_it() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let root = Root::new("killed");
    let sha256 = hex(&sha256(b""));
    let file = format!(
        r#"{{"id":"f","type":"file","path":"/s/f",
        "source":{{"url":"{address}/f","sha256":"{sha256}"}}}}"#
    );
    let declaration = root.declare("d", &support::root::declared(&file));
    let mut host = std::process::Command::new(support::root::HOST);
    host.arg("--root").arg(root.dir()).args(["apply", &declaration]);
    let mut host = host.spawn().unwrap();
    let (mut stream, _) = listener.accept().unwrap();
    host.kill().unwrap();
    host.wait().unwrap();
    // The child would wait for an answer for half a minute.
    stream.set_read_timeout(Some(std::time::Duration::from_secs(10))).unwrap();
    let ended = std::io::copy(&mut stream, &mut std::io::sink());
    let kind = ended.err().map(|error| error.kind());
    assert!(matches!(kind, None | Some(std::io::ErrorKind::ConnectionReset)), "{kind:?}");
}

// R-30
#[test]
fn what_an_address_says_in_confidence_is_in_no_message() {
    let server = Server::new();
    let root = Root::new("userinfo");
    for serves in ["wrong", "absent"] {
        let file = server.file(&format!("{serves}?token=hunter3"), "right");
        let run = root.apply(&file.replace("http://", "http://me:hunter2@"));
        let run = run.expect(1, &["f failed"]);
        let failed: Vec<_> =
            root.records().into_iter().filter(|record| record["kind"] != "accepted").collect();
        let said = format!("{}{}{failed:?}", run.out, run.err);
        assert!(said.contains(&format!("{}/", &server.address[7..])), "{said}");
        assert!(!said.contains("hunter"), "{said}");
    }
}

// R-18
#[test]
fn a_server_that_went_away_matters_only_to_what_must_be_fetched() {
    let server = Server::new();
    let gone = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", gone.local_addr().unwrap());
    drop(gone);
    let root = Root::new("gone");
    root.converge(&server.file("hello", "hello"));
    let elsewhere = server.file("hello", "hello").replace(&server.address, &address);
    root.converge(&elsewhere).expect(0, &["f unchanged"]);
    root.put("/s/f", "drift");
    let run = root.reconcile().expect(1, &["f failed"]);
    assert!(run.err.contains("fetch \"http://127.0.0.1"), "{}", run.err);
    assert_eq!(root.text("/s/f"), "drift");
    root.put("/s/f", "hello");
    assert_eq!(root.reconcile().code, 0);
    root.reconcile().expect(0, &["f unchanged"]);
}
