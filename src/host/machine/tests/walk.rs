//! Walking: links stay inside the root, and nothing is followed that should not be.

use std::os::unix::ffi::OsStrExt;

use super::*;
use crate::resource::{Object, Removable, Step};

#[test]
fn an_absolute_link_on_the_way_starts_again_at_the_root() {
    let scratch = Scratch::new();
    scratch.directory("/real/deep").file("/real/deep/f", "inside").link("/way", "/real");
    let mut machine = scratch.machine();
    assert!(holds(&mut machine, "/way/deep/f", b"inside"));
    scratch.link("/out", "/etc");
    assert_eq!(
        trouble(ask(&mut machine, "/out/passwd", None), "is not there").awaits,
        Some(Object::new("path", "/etc"))
    );
}

#[test]
fn no_number_of_dots_climbs_above_the_root() {
    let scratch = Scratch::new();
    scratch.directory("/a/b").directory("/etc").file("/etc/f", "inside");
    scratch.link("/a/b/up", "../../../../../../../../etc").link("/a/b/side", "./../../etc//./");
    let mut machine = scratch.machine();
    assert!(holds(&mut machine, "/a/b/up/f", b"inside"));
    assert!(holds(&mut machine, "/a/b/side/f", b"inside"));
}

#[test]
fn a_loop_and_a_chain_that_is_too_long_are_refused() {
    let scratch = Scratch::new();
    scratch.link("/one", "two").link("/two", "one").link("/self", "self/self");
    let mut machine = scratch.machine();
    for loop_ in ["/one/f", "/two/f", "/self/f"] {
        trouble(ask(&mut machine, loop_, None), "more than 40 links on the way");
    }
    scratch.directory("/0").file("/0/f", "end");
    for link in 1..=41 {
        scratch.link(&format!("/{link}"), (link - 1).to_string());
    }
    assert!(holds(&mut machine, "/40/f", b"end"));
    trouble(ask(&mut machine, "/41/f", None), "more than 40 links on the way");
}

#[test]
fn links_that_fan_out_do_not_walk_for_ever() {
    // Forty links alone could stand for many more directories: each passes thousands.
    let scratch = Scratch::new();
    scratch.directory("/d/e").link("/d/long", "./e/..".to_string() + &"/e/..".repeat(650));
    scratch.link("/d/longer", "long/".repeat(35));
    let mut machine = scratch.machine();
    trouble(ask(&mut machine, "/d/longer/f", None), "more than 4096 directories");
}

#[test]
fn the_last_name_is_never_followed() {
    let scratch = Scratch::new();
    scratch.file("/f", "x").link("/l", "f").link("/gone", "nowhere");
    let mut machine = scratch.machine();
    assert_eq!(kind(&mut machine, "/l"), Entry::Symlink(b"f".to_vec()));
    assert_eq!(kind(&mut machine, "/gone"), Entry::Symlink(b"nowhere".to_vec()));
}

#[test]
fn what_is_no_directory_on_the_way_is_named() {
    let scratch = Scratch::new();
    scratch.directory("/d").file("/d/f", "x").link("/l", "d/f");
    let mut machine = scratch.machine();
    trouble(ask(&mut machine, "/d/f/g/h", None), "\"/d/f\" on the way is not a directory");
    trouble(ask(&mut machine, "/l/g", None), "\"/d/f\" on the way is not a directory");
}

#[test]
fn the_topmost_missing_ancestor_is_answered_as_declared() {
    let scratch = Scratch::new();
    scratch.directory("/real").link("/way", "real");
    let mut machine = scratch.machine();
    let missing = |at: &str| Found::NoParent(path(at));
    assert_eq!(look(&mut machine, "/a/b/c/d"), missing("/a"));
    assert_eq!(look(&mut machine, "/real/b/c/d"), missing("/real/b"));
    assert_eq!(look(&mut machine, "/way/b/c/d"), missing("/way/b"));
    assert_eq!(look(&mut machine, "/way/b"), Found::Nothing);
}

#[test]
fn a_dangling_link_on_the_way_waits_for_what_it_leads_to() {
    let scratch = Scratch::new();
    scratch.directory("/a").link("/a/current", "../releases/7");
    let mut machine = scratch.machine();
    let trouble = trouble(ask(&mut machine, "/a/current/f", None), "is not there");
    assert_eq!(trouble.awaits, Some(Object::new("path", "/releases")));
}

#[test]
fn a_users_link_leads_only_to_what_is_the_users() {
    if !is_root("a link of another user") {
        return;
    }
    let scratch = Scratch::new();
    scratch.directory("/home").directory("/home/own").directory("/etc");
    scratch.link("/home/etc", "/etc").link("/home/mine", "own").link("/home/on", "etc");
    for at in ["/home", "/home/own", "/home/etc", "/home/mine"] {
        give(&scratch.at(at), 4242);
    }
    let mut machine = scratch.machine();
    assert_eq!(look(&mut machine, "/home/mine/f"), Found::Nothing);
    trouble(ask(&mut machine, "/home/etc/f", None), "belongs to user 4242 and leads to \"/etc\"");
    // Root's own link makes the user's no better.
    trouble(ask(&mut machine, "/home/on/f", None), "belongs to user 4242");
    let (target, bytes) = (path("/home/etc/f"), Make::Bytes(b"x"));
    trouble(
        machine.stage(&Step::Place(place(&target, bytes, false)), LIMIT),
        "such a link is not followed",
    );
    assert_eq!(scratch.names("/etc"), [""; 0]);
}

fn touches_host<T: std::fmt::Debug>(result: Result<T, Trouble>, what: &str) {
    let trouble = result.unwrap_err();
    assert!(trouble.touches_host && trouble.cause.contains(what), "{trouble:?}");
}

#[test]
fn the_hosts_own_places_are_refused_also_through_a_link() {
    //
    let scratch = Scratch::new();
    scratch.directory("/var/lib").link("/way", "var/lib").link("/up", "var/lib/mesh-host/..");
    let mut machine = scratch.machine();
    let own = "touches the host's own state";
    // Before it is there, after, and by way of itself.
    for at in ["/var/lib/mesh-host", "/way/mesh-host", "/way/mesh-host/identity/key.pem"] {
        touches_host(ask(&mut machine, at, None), own);
    }
    scratch.directory("/var/lib/mesh-host");
    for at in ["/way/mesh-host", "/way/mesh-host/journal.jsonl", "/up/mesh-host/journal.jsonl"] {
        touches_host(ask(&mut machine, at, None), own);
        let at = path(at);
        touches_host(machine.stage(&Step::Place(place(&at, Make::Bytes(b"x"), false)), LIMIT), own);
        for kind in [Removable::File, Removable::Directory] {
            touches_host(machine.take(&Step::Remove { path: &at, kind }, LIMIT), own);
        }
    }
    assert_eq!(scratch.names("/var/lib/mesh-host"), [""; 0]);
    assert_eq!(look(&mut machine, "/way/mesh-hosting"), Found::Nothing);
}

#[test]
fn where_a_link_of_the_machine_puts_the_hosts_own_is_refused_too() {
    //
    let scratch = Scratch::new();
    scratch.directory("/data/lib/mesh-host").directory("/var").link("/var/lib", "../data/lib");
    scratch.directory("/etc").link("/etc/mesh-host", "/data/config");
    let mut machine = scratch.machine();
    let (state, config) = ("the host's own state", "the host's own configuration");
    touches_host(ask(&mut machine, "/data/lib/mesh-host/journal.jsonl", None), state);
    touches_host(ask(&mut machine, "/data/config/config.json", None), config);
    let (uid, gid) = sys::effective_ids();
    let above = path("/data/lib");
    let step = Step::Access { path: &above, mode: 0o777, uid, gid };
    touches_host(machine.take(&step, LIMIT), "above what is the host's own");
    assert_eq!(kind(&mut machine, "/data/lib"), Entry::Directory);
    assert_eq!(look(&mut machine, "/data/lib/mesh-hosting"), Found::Nothing);
}

#[test]
fn what_makes_the_hosts_unit_another_is_refused_through_a_link() {
    //
    let scratch = Scratch::new();
    scratch.directory("/etc/systemd/system").link("/units", "etc/systemd/system");
    let mut machine = scratch.machine();
    let alias = b"[Install]\nAlias=nox-mesh-host.service\n";
    let at = path("/units/web.service");
    touches_host(ask(&mut machine, "/units/web.service", Some(Holds::Bytes(alias))), "own unit");
    for make in [Make::Bytes(alias), Make::Symlink("/lib/systemd/system/nox-mesh-host.service")] {
        touches_host(machine.stage(&Step::Place(place(&at, make, false)), LIMIT), "own unit");
    }
    machine.take(&Step::Place(place(&at, Make::Bytes(b"[Unit]\n"), false)), LIMIT).unwrap();
    assert_eq!(scratch.names("/etc/systemd/system"), ["web.service"]);
}

#[test]
fn names_that_are_not_utf_8_survive() {
    let scratch = Scratch::new();
    let odd = std::ffi::OsStr::from_bytes(b"\xff\xfe");
    std::fs::create_dir(scratch.0.join(odd)).unwrap();
    std::fs::write(scratch.0.join(odd).join("f"), "odd").unwrap();
    scratch.link("/way", odd).link("/last", odd);
    let mut machine = scratch.machine();
    assert!(holds(&mut machine, "/way/f", b"odd"));
    assert_eq!(kind(&mut machine, "/last"), Entry::Symlink(b"\xff\xfe".to_vec()));
    trouble(ask(&mut machine, "/way/f/g", None), "\"/\u{fffd}\u{fffd}/f\" on the way");
}

#[test]
fn the_kept_directories_answer_as_a_fresh_walk_does() {
    let scratch = Scratch::new();
    scratch
        .directory("/a/b/c")
        .directory("/ab")
        .directory("/x")
        .link("/a/l", "b")
        .link("/x/m", "/a");
    let paths = [
        "/f",
        "/a",
        "/a/f",
        "/a/b",
        "/a/b/f",
        "/a/b/c/f",
        "/ab/f",
        "/ab",
        "/a/l/f",
        "/a/l/c/f",
        "/x/m/b/c/f",
        "/x/m/l/f",
        "/x/f",
        "/none/f",
        "/a/none/deep/f",
        "/a/b/none/f",
    ];
    for at in paths {
        std::fs::write(scratch.at(at), at).ok();
    }
    let mut kept = scratch.machine();
    for first in paths {
        for second in paths {
            let fresh = look(&mut scratch.machine(), second);
            look(&mut kept, first);
            assert_eq!(look(&mut kept, second), fresh, "{second} after {first}");
        }
    }
}

#[test]
fn a_step_ends_what_was_kept() {
    let scratch = Scratch::new();
    scratch.directory("/old").directory("/new").file("/old/f", "old").file("/new/f", "new");
    scratch.link("/now", "old");
    let mut machine = scratch.machine();
    assert!(holds(&mut machine, "/now/f", b"old"));
    let now = path("/now");
    machine.take(&Step::Place(place(&now, Make::Symlink("new"), true)), LIMIT).unwrap();
    assert!(holds(&mut machine, "/now/f", b"new"));
}

#[test]
fn a_path_deeper_than_what_is_kept_is_walked_all_the_same() {
    let scratch = Scratch::new();
    let deep = "/d".repeat(200);
    scratch.directory(&deep).file(&format!("{deep}/f"), "deep");
    let mut machine = scratch.machine();
    assert!(holds(&mut machine, &format!("{deep}/f"), b"deep"));
    assert!(holds(&mut machine, &format!("{deep}/f"), b"deep"));
    assert_eq!(kind(&mut machine, &"/d".repeat(150)), Entry::Directory);
    assert_eq!(kind(&mut machine, &"/d".repeat(199)), Entry::Directory);
}

#[test]
fn a_root_that_is_no_directory_is_no_machine() {
    let scratch = Scratch::new();
    scratch.file("/f", "");
    let open = |at: &Path| Machine::open(at, Own::default()).map(|machine| machine.is_host());
    assert_eq!(open(Path::new("/")), Ok(true));
    assert_eq!(open(Path::new("/proc/self/root")), Ok(true));
    assert_eq!(open(&scratch.0), Ok(false));
    trouble(open(&scratch.at("/f")), "not a directory");
    trouble(open(&scratch.at("/none")), "no such file or directory");
}

#[test]
fn the_hosts_own_is_refused_where_a_mount_shows_it_again() {
    let scratch = Scratch::new();
    scratch.directory("/var/lib/mesh-host/secrets").directory("/etc/mesh-host").directory("/used");
    scratch.directory("/state").directory("/above").directory("/config").directory("/other");
    scratch.directory("/mine").directory("/shown");
    let own = Own { state: Some(path("/used")), ..Own::default() };
    let mut mounts = vec![];
    for (from, at) in [
        ("/var/lib/mesh-host", "/state"),
        ("/var", "/above"),
        ("/etc/mesh-host", "/config"),
        ("/used", "/other"),
        ("/mine", "/shown"),
    ] {
        let Some(mount) = Mount::bind(&scratch.at(from), &scratch.at(at)) else { return };
        mounts.push(mount);
    }
    let mut machine = Machine::open(&scratch.0, own).unwrap();
    let access = Access { mode: Some(0o755), ..Access::default() };
    let mut asked = |at: &str, access: &Access, holds| {
        machine.ask(&Question::Path { path: &path(at), holds, access }, LIMIT)
    };
    let text = Some(Holds::Bytes(b"x"));
    for at in [
        "/state/journal.jsonl",
        "/state/secrets/x",
        "/above/lib/mesh-host/journal.jsonl",
        "/config/config.json",
        "/other/journal.jsonl",
    ] {
        assert!(trouble(asked(at, &Access::default(), text), "host's own").touches_host, "{at}");
    }
    for at in ["/state", "/above", "/above/lib", "/above/lib/mesh-host", "/config", "/other"] {
        assert!(trouble(asked(at, &access, None), "host's own").touches_host, "{at}");
    }
    for at in ["/shown", "/mine", "/above/log"] {
        asked(at, &access, None).unwrap();
    }
    asked("/shown/f", &Access::default(), text).unwrap();
    asked("/above/lib/other", &Access::default(), text).unwrap();
}
