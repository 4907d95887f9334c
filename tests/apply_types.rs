//! What a pass makes of files, directories and links: they converge, stay, and are put right.

mod support;

use std::fs;
use std::os::unix::fs::{lchown, MetadataExt};

use support::root::{is_root, Root};
use support::{skip, Lacks};

/// One of each type that lives at a path.
const ALL: &str = r#"
    {"id":"dir","type":"directory","path":"/s/d","mode":"0750"},
    {"id":"text","type":"file","path":"/s/d/text","content":"one\n","mode":"0640"},
    {"id":"bytes","type":"file","path":"/s/d/bytes","content_base64":"AP8K"},
    {"id":"link","type":"symlink","path":"/s/d/link","target":"text"}"#;

// R-2
#[test]
fn the_second_run_of_every_type_writes_nothing() {
    let root = Root::new("idle");
    root.converge(ALL).expect(0, &["dir created", "text created", "bytes created", "link created"]);
    assert_eq!(root.text("/s/d/text"), "one\n");
    assert_eq!(fs::read(root.at("/s/d/bytes")).unwrap(), [0, 255, 10]);
    assert_eq!(fs::read_link(root.at("/s/d/link")).unwrap().to_str(), Some("text"));
    assert_eq!((root.mode("/s/d"), root.mode("/s/d/text"), root.mode("/s/d/bytes")), {
        (0o750, 0o640, 0o644)
    });
    let before = root.tree();
    let idle = ["dir unchanged", "text unchanged", "bytes unchanged", "link unchanged"];
    root.apply(ALL).expect(0, &idle);
    root.reconcile().expect(0, &idle);
    assert_eq!(root.tree(), before);
}

// R-8
#[test]
fn the_journal_keeps_the_declared_order() {
    let root = Root::new("order");
    let file = |n: usize| format!(r#"{{"id":"{n}","type":"file","path":"/s/{n}","content":"x"}}"#);
    let order = [7, 3, 9, 1, 8, 2];
    root.converge(&order.map(file).join(","));
    let wanted: Vec<String> = order.map(|n| format!("path:/s/{n}")).into();
    assert_eq!(root.recorded("began"), wanted);
    assert_eq!(root.recorded("applied"), wanted);
    root.converge("");
    let reversed: Vec<String> = wanted.into_iter().rev().collect();
    assert_eq!(root.recorded("removed"), reversed);
}

// R-3
#[test]
fn drift_in_every_dimension_is_corrected() {
    let root = Root::new("drift");
    root.converge(ALL);
    let whole = fs::metadata(root.at("/s/d/text")).unwrap();
    let drifts: [(&str, &str, &dyn Fn()); 7] = [
        ("text", "contents of the same size and time", &|| {
            fs::write(root.at("/s/d/text"), "eno\n").unwrap();
            let times = fs::FileTimes::new().set_modified(whole.modified().unwrap());
            let file = fs::File::options().write(true).open(root.at("/s/d/text")).unwrap();
            file.set_times(times).unwrap();
        }),
        ("text", "mode", &|| root.chmod("/s/d/text", 0o4777)),
        ("text", "deleted", &|| fs::remove_file(root.at("/s/d/text")).unwrap()),
        ("dir", "mode of a directory", &|| root.chmod("/s/d", 0o1777)),
        ("link", "target", &|| {
            fs::remove_file(root.at("/s/d/link")).unwrap();
            root.link("/s/d/link", "elsewhere");
        }),
        ("link", "deleted link", &|| fs::remove_file(root.at("/s/d/link")).unwrap()),
        ("bytes", "emptied", &|| fs::write(root.at("/s/d/bytes"), "").unwrap()),
    ];
    for (id, what, drift) in drifts {
        drift();
        let run = root.reconcile();
        assert_eq!(run.code, 0, "{what}: {}", run.err);
        let corrected: Vec<String> =
            run.outcomes().into_iter().filter(|line| !line.ends_with("unchanged")).collect();
        assert_eq!(corrected, [format!("{id} corrected")], "{what}");
        assert_eq!(run.report()["corrected"], 1, "{what}");
        assert_eq!(root.text("/s/d/text"), "one\n", "{what}");
        assert_eq!((root.mode("/s/d"), root.mode("/s/d/text")), (0o750, 0o640), "{what}");
        assert_eq!(fs::read_link(root.at("/s/d/link")).unwrap().to_str(), Some("text"), "{what}");
    }
    fs::remove_dir_all(root.at("/s/d")).unwrap();
    let all = ["dir corrected", "text corrected", "bytes corrected", "link corrected"];
    root.reconcile().expect(0, &all);
}

// R-3
#[test]
fn a_drifted_owner_or_group_is_corrected() {
    if !is_root() {
        return skip("a_drifted_owner_or_group_is_corrected", &Lacks::Machine("root"));
    }
    let root = Root::new("owner");
    root.put("/etc/passwd", "app:x:4711:4712::/:/bin/false\n");
    root.put("/etc/group", "apps:x:4712:\n");
    let owned = r#"{"id":"d","type":"directory","path":"/s/d","owner":"app","group":"apps"},
        {"id":"f","type":"file","path":"/s/f","content":"x","owner":"app","group":"apps"}"#;
    root.converge(owned);
    for path in ["/s/d", "/s/f"] {
        assert_eq!(root.owner(path), (4711, 4712));
        for (uid, gid) in [(Some(0), None), (None, Some(0)), (Some(4712), Some(4711))] {
            lchown_of(&root, path, uid, gid);
            let run = root.reconcile();
            assert_eq!(run.report()["corrected"], 1, "{}", run.err);
            assert_eq!(root.owner(path), (4711, 4712));
        }
    }
}

fn lchown_of(root: &Root, path: &str, uid: Option<u32>, gid: Option<u32>) {
    lchown(root.at(path), uid, gid).unwrap();
}

// R-3, R-4
#[test]
fn another_kind_of_thing_is_a_failure_and_stays_as_it_is() {
    let root = Root::new("kind");
    type Make<'a> = &'a dyn Fn(&str);
    let kinds: [(&str, &str, Make); 3] = [
        ("file", r#""content":"x""#, &|path| root.link(path, "/nowhere")),
        ("file", r#""content":"x""#, &|path| root.mkdir(path)),
        ("symlink", r#""target":"x""#, &|path| root.put(path, "mine")),
    ];
    for (at, (kind, field, make)) in kinds.into_iter().enumerate() {
        let path = format!("/s/{at}");
        make(&path);
        let before = root.at(&path).symlink_metadata().unwrap();
        let run = root.apply(&format!(r#"{{"id":"r","type":"{kind}","path":"{path}",{field}}}"#));
        let run = run.expect(1, &["r failed"]);
        assert!(run.err.contains("another kind of thing is never replaced"), "{}", run.err);
        let after = root.at(&path).symlink_metadata().unwrap();
        assert_eq!((before.ino(), before.ctime_nsec()), (after.ino(), after.ctime_nsec()));
        assert!(run_owned(&root).is_empty());
    }
    root.put("/s/in-the-way", "mine");
    let dir = r#"{"id":"r","type":"directory","path":"/s/in-the-way"}"#;
    root.apply(dir).expect(1, &["r failed"]);
    let below = r#"{"id":"r","type":"directory","path":"/s/in-the-way/below"}"#;
    root.apply(below).expect(1, &["r failed"]);
    assert_eq!(root.text("/s/in-the-way"), "mine");
}

fn run_owned(root: &Root) -> String {
    root.host(&["owned", "-q"]).out
}

// R-9
#[test]
fn what_is_not_declared_of_an_adopted_file_stays() {
    let root = Root::new("adopted");
    root.put("/s/f", "old");
    root.chmod("/s/f", 0o604);
    root.mkdir("/s/d");
    root.chmod("/s/d", 0o1703);
    let ids = if is_root() { (4711, 4712) } else { root.owner("/s/f") };
    lchown_of(&root, "/s/f", Some(ids.0), Some(ids.1));
    let both = r#"{"id":"d","type":"directory","path":"/s/d"},
        {"id":"f","type":"file","path":"/s/f","content":"new"}"#;
    root.converge(both).expect(0, &["d unchanged", "f changed"]);
    assert_eq!((root.text("/s/f").as_str(), root.mode("/s/f")), ("new", 0o604));
    assert_eq!((root.owner("/s/f"), root.mode("/s/d")), (ids, 0o1703));
    root.chmod("/s/f", 0o600);
    root.reconcile().expect(0, &["d unchanged", "f unchanged"]);
    root.converge(&both.replace(r#""new""#, r#""new","mode":"0640""#));
    assert_eq!((root.mode("/s/f"), root.owner("/s/f")), (0o640, ids));
    let mut gone = root.converge("").outcomes();
    gone.sort();
    assert_eq!(gone, ["d forgotten", "f forgotten"]);
    assert_eq!((root.text("/s/f").as_str(), root.mode("/s/d")), ("new", 0o1703));
}

// R-3
#[test]
fn the_other_name_of_a_hard_linked_file_is_not_altered() {
    let root = Root::new("hard-link");
    for (declared, differs) in [
        (r#"{"id":"f","type":"file","path":"/s/f","content":"new"}"#, "contents"),
        (r#"{"id":"f","type":"file","path":"/s/f","content":"old","mode":"0600"}"#, "mode"),
    ] {
        root.put("/s/other", "old");
        root.chmod("/s/other", 0o644);
        fs::hard_link(root.at("/s/other"), root.at("/s/f")).unwrap();
        root.converge(declared).expect(0, &["f changed"]);
        assert_eq!((root.text("/s/other").as_str(), root.mode("/s/other")), ("old", 0o644));
        assert_ne!(
            root.at("/s/other").metadata().unwrap().ino(),
            root.at("/s/f").metadata().unwrap().ino(),
            "{differs}"
        );
        root.converge("").expect(0, &["f forgotten"]);
        fs::remove_file(root.at("/s/f")).unwrap();
    }
}

// R-9
#[test]
fn attributes_and_access_lists_outlive_a_replacement() {
    let name = "attributes_and_access_lists_outlive_a_replacement";
    let root = Root::new("xattr");
    root.put("/s/f", "old");
    // acl(5) as the kernel has it: version 2, then tag, permissions and id of each entry.
    let list: Vec<u8> = [2u32.to_le_bytes().to_vec()]
        .into_iter()
        .chain([(1u16, 6u16, !0u32), (2, 4, 4711), (4, 4, !0), (16, 4, !0), (32, 0, !0)].map(
            |(tag, may, id)| {
                [&tag.to_le_bytes()[..], &may.to_le_bytes(), &id.to_le_bytes()].concat()
            },
        ))
        .flatten()
        .collect();
    let kept = [(c"user.note", b"somebody's".to_vec()), (c"system.posix_acl_access", list)];
    for (attribute, value) in &kept {
        if !set_attribute(&root, attribute, value) {
            return skip(name, &Lacks::Machine("a file system with attributes"));
        }
    }
    root.converge(r#"{"id":"f","type":"file","path":"/s/f","content":"new"}"#);
    assert_eq!(root.text("/s/f"), "new");
    for (attribute, value) in &kept {
        assert_eq!(attribute_of(&root, attribute), *value, "{attribute:?}");
    }
}

fn set_attribute(root: &Root, name: &std::ffi::CStr, value: &[u8]) -> bool {
    let path = std::ffi::CString::new(root.at("/s/f").to_str().unwrap()).unwrap();
    let (path, name) = (path.as_ptr(), name.as_ptr());
    // SAFETY: both names are NUL-terminated, and the value is of the length given.
    unsafe { libc::setxattr(path, name, value.as_ptr().cast(), value.len(), 0) == 0 }
}

fn attribute_of(root: &Root, name: &std::ffi::CStr) -> Vec<u8> {
    let path = std::ffi::CString::new(root.at("/s/f").to_str().unwrap()).unwrap();
    let mut value = vec![0u8; 256];
    let (room, len) = (value.as_mut_ptr().cast(), value.len());
    // SAFETY: both names are NUL-terminated, and `room` has `len` writable bytes.
    let read = unsafe { libc::getxattr(path.as_ptr(), name.as_ptr(), room, len) };
    value.truncate(usize::try_from(read).unwrap_or(0));
    value
}

// R-9
#[test]
fn missing_parents_are_made_and_go_with_what_needed_them() {
    let root = Root::new("parents");
    let deep = r#"{"id":"d","type":"directory","path":"/s/a/b/c","mode":"0700"}"#;
    root.converge(deep).expect(0, &["d created"]);
    assert_eq!((root.mode("/s/a"), root.mode("/s/a/b"), root.mode("/s/a/b/c")), {
        (0o755, 0o755, 0o700)
    });
    let beside = r#"{"id":"f","type":"file","path":"/s/a/f","content":"x"}"#;
    root.converge(&format!("{deep},{beside}"));
    root.converge(beside).expect(0, &["f unchanged", "d removed", "d removed"]);
    assert!(root.has("/s/a/f") && !root.has("/s/a/b"));
    root.converge("").expect(0, &["f removed", "d removed"]);
    assert!(!root.has("/s/a") && root.has("/s"));
    assert!(run_owned(&root).is_empty());
}

// R-9
#[test]
fn a_parent_may_be_declared_after_what_made_it() {
    let root = Root::new("late-parent");
    let both = r#"{"id":"d","type":"directory","path":"/s/a/b"},
        {"id":"a","type":"directory","path":"/s/a","mode":"0711"}"#;
    assert_eq!(root.plan(both).outcomes(), ["d created", "a changed"]);
    root.converge(both).expect(0, &["d created", "a changed"]);
    assert_eq!((root.mode("/s/a"), root.mode("/s/a/b")), (0o711, 0o755));
    root.apply(both).expect(0, &["d unchanged", "a unchanged"]);
    root.converge("").expect(0, &["d removed", "a removed"]);
}

// R-3
#[test]
fn a_file_beyond_a_link_follows_the_link_of_the_same_pass() {
    let root = Root::new("beyond");
    root.mkdir("/s/one");
    root.mkdir("/s/two");
    let through = |to: &str| {
        format!(
            r#"{{"id":"l","type":"symlink","path":"/s/l","target":"{to}"}},
            {{"id":"f","type":"file","path":"/s/l/f","content":"x"}}"#
        )
    };
    root.converge(&through("one")).expect(0, &["l created", "f created"]);
    assert_eq!(root.text("/s/one/f"), "x");
    let planned = root.plan(&through("two"));
    assert_eq!(planned.detail("f"), "unknown until path:/s/l is there");
    let run = root.converge(&through("two"));
    assert_eq!((run.outcomes(), root.text("/s/two/f")), (planned.outcomes(), "x".into()));
    root.apply(&through("two")).expect(0, &["l unchanged", "f unchanged"]);
}

// R-4
#[test]
fn a_file_whose_directory_is_not_there_fails_and_says_so() {
    let root = Root::new("no-parent");
    let run = root.apply(r#"{"id":"f","type":"file","path":"/s/no/f","content":"x"}"#);
    let run = run.expect(1, &["f failed"]);
    assert!(run.err.contains("/s/no is not there; declare it earlier"), "{}", run.err);
    assert!(!root.has("/s/no") && root.recorded("began").is_empty());
}
