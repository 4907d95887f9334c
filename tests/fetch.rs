//! Fetching a file's contents: from a small server of the test's own, through the real binary.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nox_mesh_host::declaration::Own;
use nox_mesh_host::digest::{hex, sha256};
use nox_mesh_host::machine::{fill, Machine, FETCH_ARGUMENT};
use nox_mesh_host::resource::{Make, Place, RootPath, Step, Trouble};

const LIMIT: Duration = Duration::from_secs(60);
const LARGEST: u64 = 1 << 20;
const HOST: &str = env!("CARGO_BIN_EXE_nox-mesh-host");

/// Takes one request; gives what it asks for and where the answer goes.
fn request(stream: TcpStream) -> (String, TcpStream) {
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
    let first = lines.next().unwrap_or_default();
    lines.find(String::is_empty);
    (first.split(' ').nth(1).unwrap_or_default().to_string(), stream)
}

/// Answers each request for as long as the process lives; gives its address.
fn serve(answer: impl Fn(&str, TcpStream) + Send + Copy + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming().map(Result::unwrap) {
            std::thread::spawn(move || {
                let (asked, stream) = request(stream);
                answer(&asked, stream);
            });
        }
    });
    address
}

fn say(stream: &mut TcpStream, text: &str) {
    stream.write_all(text.as_bytes()).unwrap();
}

fn whole(mut stream: TcpStream, body: &str) {
    say(&mut stream, &format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()));
}

fn redirect(mut stream: TcpStream, to: &str) {
    say(&mut stream, &format!("HTTP/1.1 302 Found\r\nLocation: {to}\r\nContent-Length: 0\r\n\r\n"));
}

/// A root with the file `/f` in it, removed when the test ends.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Scratch {
        let mut name = [0; 8];
        fill(&mut name);
        let path = std::env::temp_dir().join(format!("mesh-host-test-{}", hex(&name)));
        std::fs::create_dir(&path).unwrap();
        std::fs::write(path.join("f"), "old").unwrap();
        Scratch(path)
    }

    /// Replaces `/f` by what `url` serves, which must be `expected`.
    fn fetch(&self, url: &str, expected: &str, limit: Duration) -> Result<(), Trouble> {
        self.fetch_to("/f", url, expected, limit)
    }

    fn fetch_to(
        &self,
        path: &str,
        url: &str,
        expected: &str,
        limit: Duration,
    ) -> Result<(), Trouble> {
        let mut machine = Machine::open(&self.0, Own::default()).unwrap();
        machine.fetch_by(PathBuf::from(HOST), LARGEST);
        let (path, sha256) = (RootPath::parse(path).unwrap(), sha256(expected.as_bytes()));
        let make = Make::Fetched { url, sha256: &sha256 };
        let (uid, gid) = ids(&self.0);
        let (over, keeps_list) = (path.name() == "f", true);
        let place = Place { path: &path, make, mode: 0o644, uid, gid, over, keeps_list };
        machine.take(&Step::Place(place), limit)
    }

    /// The fetch fails, says `cause` in one line, replaces nothing and leaves nothing behind.
    fn refuse(&self, url: &str, limit: Duration, cause: &str) -> String {
        let trouble = self.fetch(url, "expected", limit).unwrap_err();
        assert!(trouble.cause.contains(cause), "{cause:?} is not in {trouble:?}");
        assert!(!trouble.cause.contains(char::is_control), "{trouble:?}");
        assert_eq!(self.holds(), "old");
        trouble.cause
    }

    /// What `/f` holds; nothing else is there.
    fn holds(&self) -> String {
        assert_eq!(std::fs::read_dir(&self.0).unwrap().count(), 1);
        std::fs::read_to_string(self.0.join("f")).unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn ids(at: &Path) -> (u32, u32) {
    use std::os::unix::fs::MetadataExt;
    let meta = at.metadata().unwrap();
    (meta.uid(), meta.gid())
}

#[test]
fn what_is_served_is_placed_once_its_digest_is_right() {
    //
    let url = serve(|_, stream| whole(stream, "expected"));
    let scratch = Scratch::new();
    scratch.fetch(&url, "expected", LIMIT).unwrap();
    assert_eq!(scratch.holds(), "expected");
}

#[test]
fn other_bytes_than_the_declared_ones_replace_nothing() {
    //
    let url = serve(|_, stream| whole(stream, "other"));
    let cause = Scratch::new().refuse(&url, LIMIT, "served 5 bytes of sha256 ");
    for bytes in ["other", "expected"] {
        assert!(cause.contains(&hex(&sha256(bytes.as_bytes()))), "{cause}");
    }
}

#[test]
fn a_refusal_is_told_with_its_status() {
    //
    let url = serve(|_, mut stream| {
        say(&mut stream, "HTTP/1.1 404 Not Found\r\nContent-Length: 8\r\n\r\nexpected");
    });
    Scratch::new().refuse(&url, LIMIT, "http status: 404");
}

#[test]
fn a_body_that_ends_early_replaces_nothing() {
    //
    let url = serve(|_, mut stream| {
        say(&mut stream, "HTTP/1.1 200 OK\r\nContent-Length: 800\r\n\r\nexpected");
    });
    Scratch::new().refuse(&url, LIMIT, "fetch \"http://127.0.0.1:");
}

#[test]
fn a_body_without_end_is_cut_off() {
    let url = serve(|_, mut stream| {
        say(&mut stream, "HTTP/1.1 200 OK\r\n\r\n");
        while stream.write_all(&[b'x'; 4096]).is_ok() {}
    });
    Scratch::new().refuse(&url, LIMIT, "it has more than 1048576 bytes");
}

#[test]
fn redirects_are_followed_but_not_for_ever() {
    let url = serve(|asked, stream| match asked[1..].parse::<u64>() {
        Ok(0) => whole(stream, "expected"),
        Ok(left) => redirect(stream, &format!("/{}", left - 1)),
        Err(_) => redirect(stream, "/loop"),
    });
    let scratch = Scratch::new();
    scratch.refuse(&format!("{url}/loop"), LIMIT, "too many redirects");
    scratch.refuse(&format!("{url}/6"), LIMIT, "too many redirects");
    scratch.fetch(&format!("{url}/5"), "expected", LIMIT).unwrap();
    assert_eq!(scratch.holds(), "expected");
}

#[test]
fn a_fetched_unit_that_takes_the_hosts_name_is_refused() {
    //
    let alias = "[Install]\nAlias=nox-mesh-host.service\n";
    let url = serve(|_, stream| whole(stream, "[Install]\nAlias=nox-mesh-host.service\n"));
    let scratch = Scratch::new();
    std::fs::create_dir_all(scratch.0.join("etc/systemd/system")).unwrap();
    std::os::unix::fs::symlink("etc/systemd/system", scratch.0.join("units")).unwrap();
    for at in ["/etc/systemd/system/web.service", "/units/web.service"] {
        let trouble = scratch.fetch_to(at, &url, alias, LIMIT).unwrap_err();
        assert!(trouble.touches_host && trouble.cause.contains("own unit"), "{trouble:?}");
    }
    let units = scratch.0.join("etc/systemd/system");
    assert_eq!(std::fs::read_dir(units).unwrap().count(), 0);
    scratch.fetch_to("/web.service", &url, alias, LIMIT).unwrap();
}

#[test]
fn no_address_leads_to_a_file_of_the_machine() {
    let url = serve(|_, stream| redirect(stream, "file:///etc/passwd"));
    let scratch = Scratch::new();
    scratch.refuse(&url, LIMIT, "fetch \"http://");
    scratch.refuse("file:///etc/passwd", LIMIT, "fetch \"file:///etc/passwd\": ");
}

#[test]
fn a_server_that_says_nothing_is_given_up_on() {
    let url = serve(|_, stream| {
        // Until the other side has given up.
        let _ = BufReader::new(stream).fill_buf();
    });
    let began = Instant::now();
    Scratch::new().refuse(&url, Duration::from_millis(300), "not done within 0.3 s");
    assert!(began.elapsed() < Duration::from_secs(20));
}

#[test]
fn a_server_that_is_not_there_is_told() {
    //
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", taken.local_addr().unwrap());
    drop(taken);
    Scratch::new().refuse(&url, LIMIT, "onnection refused");
    Scratch::new().refuse("http://name.invalid/", LIMIT, "fetch \"http://name.invalid/\": ");
}

#[test]
fn a_server_that_does_not_speak_tls_is_told() {
    //
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        say(&mut listener.accept().unwrap().0, "HTTP/1.1 400 Bad Request\r\n\r\n");
    });
    Scratch::new().refuse(&url, LIMIT, "fetch \"https://127.0.0.1:");
}

#[test]
fn a_hostile_answer_stands_escaped_in_the_message() {
    let url = serve(|_, mut stream| {
        say(&mut stream, "HTTP/1.1 999 \x1b[2J\r\n\x1b]0;x\x07: y\r\n\r\n");
    });
    Scratch::new().refuse(&url, LIMIT, "fetch \"http://");
}

#[test]
fn the_child_lets_go_of_root_and_shows_its_address_to_nobody() {
    //
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/?token=canary", listener.local_addr().unwrap());
    let mut child = std::process::Command::new(HOST);
    child.arg(FETCH_ARGUMENT).env_clear().env("MESH_HOST_FETCH", url);
    let child = child.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let (asked, stream) = request(listener.accept().unwrap().0);
    assert_eq!(asked, "/?token=canary");
    let about = |what| std::fs::read_to_string(format!("/proc/{}/{what}", child.id())).unwrap();
    assert!(!about("cmdline").contains("canary"));
    let (uids, status) = ("Uid:\t65534\t65534\t65534\t65534\n", about("status"));
    let (parent, _) = ids(Path::new("/proc/self"));
    assert!(parent != 0 || status.contains(uids), "{status}");
    whole(stream, "expected");
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success() && output.stdout == b"expected");
}
