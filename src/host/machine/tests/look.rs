//! Looking: every kind of thing is told apart, and none holds us up.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;

use super::*;
use crate::digest::sha256;

/// Makes a node of `mode`, a character device being /dev/zero; says whether it could.
fn node(at: &Path, mode: u32) -> bool {
    let at = std::ffi::CString::new(at.as_os_str().as_bytes()).unwrap();
    // SAFETY: the name is NUL-terminated.
    unsafe { libc::mknod(at.as_ptr(), mode | 0o600, libc::makedev(1, 5)) == 0 }
}

#[test]
fn contents_are_compared_to_the_last_byte() {
    let scratch = Scratch::new();
    let mut machine = scratch.machine();
    for size in [0, 1, 65_535, 65_536, 65_537, 200_000] {
        let bytes: Vec<u8> = (0..size).map(|at| (at % 251) as u8).collect();
        scratch.file("/f", &bytes);
        assert!(holds(&mut machine, "/f", &bytes), "{size}");
        assert!(!holds(&mut machine, "/f", &[&bytes[..], b"x"].concat()), "{size}");
        if let Some((_, but_one)) = bytes.split_last() {
            assert!(!holds(&mut machine, "/f", but_one), "{size}");
            assert!(!holds(&mut machine, "/f", &[but_one, b"\xff"].concat()), "{size}");
        }
        let digest = |bytes: &[u8]| Some(sha256(bytes));
        for (right, digest) in [(true, digest(&bytes)), (false, digest(b"other"))] {
            let asked = digest.as_ref().map(Holds::Digest);
            let found = ask(&mut machine, "/f", asked).unwrap().found;
            let Found::Entry { kind, .. } = found else { panic!("{found:?}") };
            assert_eq!(kind, Entry::File { size: size as u64, holds: Some(right) });
        }
    }
}

#[test]
fn a_file_that_is_not_asked_about_is_not_read() {
    let scratch = Scratch::new();
    scratch.file("/f", "x");
    assert_eq!(kind(&mut scratch.machine(), "/f"), Entry::File { size: 1, holds: None });
}

#[test]
fn mode_owner_and_other_names_are_seen() {
    let scratch = Scratch::new();
    scratch.file("/f", "x").directory("/d");
    std::fs::set_permissions(scratch.at("/f"), PermissionsExt::from_mode(0o4750)).unwrap();
    let mut machine = scratch.machine();
    let answer = ask(&mut machine, "/f", None).unwrap();
    let Found::Entry { mode, uid, gid, linked, .. } = answer.found else { panic!() };
    assert_eq!((mode, uid, gid, linked), (0o4750, answer.euid, answer.egid, false));
    std::fs::hard_link(scratch.at("/f"), scratch.at("/g")).unwrap();
    scratch.directory("/d/below");
    let linked = |found| matches!(found, Found::Entry { linked: true, .. });
    assert!(linked(look(&mut machine, "/f")));
    assert!(!linked(look(&mut machine, "/d")));
}

#[test]
fn nothing_that_could_block_is_opened() {
    let scratch = Scratch::new();
    let _listener = UnixListener::bind(scratch.at("/socket")).unwrap();
    assert!(node(&scratch.at("/fifo"), libc::S_IFIFO));
    let mut machine = scratch.machine();
    let mut expect = |at: &str, name| {
        let found = ask(&mut machine, at, Some(Holds::Bytes(b"x"))).unwrap().found;
        assert!(matches!(found, Found::Entry { kind: Entry::Other(is), .. } if is == name), "{at}");
    };
    expect("/fifo", "fifo");
    expect("/socket", "socket");
    if node(&scratch.at("/char"), libc::S_IFCHR) && node(&scratch.at("/block"), libc::S_IFBLK) {
        expect("/char", "character device");
        expect("/block", "block device");
    } else {
        eprintln!("skipped: device nodes cannot be made here");
    }
}

#[test]
fn a_file_that_grows_without_end_is_not_read_without_end() {
    // Every file of /proc has no size and yet something to read.
    let mut machine = Machine::open(Path::new("/proc"), Own::default()).unwrap();
    let digest = sha256(b"");
    let found = ask(&mut machine, "/version", Some(Holds::Digest(&digest))).unwrap().found;
    let Found::Entry { kind, .. } = found else { panic!("{found:?}") };
    assert_eq!(kind, Entry::File { size: 0, holds: Some(false) });
    assert!(!holds(&mut machine, "/version", b"Linux"));
}

#[test]
fn reading_a_large_file_ends_at_its_limit() {
    let scratch = Scratch::new();
    std::fs::File::create(scratch.at("/f")).unwrap().set_len(1 << 40).unwrap();
    let (at, access) = (path("/f"), Access::default());
    let question =
        Question::Path { path: &at, holds: Some(Holds::Digest(&[0; 32])), access: &access };
    let answer = scratch.machine().ask(&question, Duration::from_millis(1));
    trouble(answer, "reading it took longer than 0.001 s");
}

#[test]
fn the_longest_name_is_looked_at_and_a_longer_one_is_the_kernels_to_refuse() {
    let scratch = Scratch::new();
    let name = format!("/{}", "n".repeat(255));
    scratch.file(&name, "x").link("/l", "n".repeat(256));
    let mut machine = scratch.machine();
    assert_eq!(kind(&mut machine, &name), Entry::File { size: 1, holds: None });
    trouble(ask(&mut machine, "/l/f", None), "too long");
}

#[test]
fn text_is_read_for_a_diff_only_where_it_is_small_and_a_file() {
    let scratch = Scratch::new();
    scratch.file("/f", "four").directory("/d").link("/l", "f");
    assert!(node(&scratch.at("/fifo"), libc::S_IFIFO));
    let mut machine = scratch.machine();
    assert_eq!(machine.read_text(&path("/f"), 4).as_deref(), Some(&b"four"[..]));
    for (at, cap) in [("/f", 3), ("/d", 99), ("/l", 99), ("/fifo", 99), ("/no", 9), ("/no/f", 9)] {
        assert_eq!(machine.read_text(&path(at), cap), None, "{at}");
    }
}
