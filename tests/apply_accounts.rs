//! Users and groups of a mounted tree, by this machine's own shadow tools: nothing but the tree is
//! read or changed.

mod support;

use std::fs;
use std::os::unix::fs::chown;

use support::root::{is_root, Root};
use support::{skip, Lacks};

const ALICE: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA alice";
const BOB: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIB bob";
const KEYS: &str = "/home/alice/.ssh/authorized_keys";

/// A tree with the account files of a small machine; `None` where the test has to be skipped.
fn tree(name: &str) -> Option<Root> {
    if !is_root() {
        skip(name, &Lacks::Machine("root"));
        return None;
    }
    if !support::has("useradd", name) {
        return None;
    }
    let root = Root::new(name);
    root.put(
        "/etc/passwd",
        "root:x:0:0:root:/root:/bin/sh\nold:x:1200:1200:Old:/home/old:/bin/sh\n",
    );
    root.put("/etc/group", "root:x:0:\nadm:x:4:old\nold:x:1200:\nwheel:x:10:\n");
    root.put("/etc/shadow", "root:*:19000::::::\nold:!:19000:0:99999:7:::\n");
    root.put("/etc/gshadow", "root:*::\nadm:*::old\nold:!::\nwheel:*::\n");
    root.put("/etc/login.defs", "USERGROUPS_ENAB yes\nUID_MIN 1000\nGID_MIN 1000\n");
    root.mkdir("/home");
    Some(root)
}

fn user(fields: &str) -> String {
    format!(r#"{{"id":"u","type":"user","name":"alice"{fields}}}"#)
}

fn with_keys(keys: &[&str]) -> String {
    user(&format!(r#","authorized_keys":{keys:?}"#))
}

/// The line of `name` in a file of accounts.
fn line(root: &Root, file: &str, name: &str) -> String {
    let text = root.text(file);
    let found = text.lines().find(|line| line.split(':').next() == Some(name));
    found.unwrap_or_default().to_string()
}

/// The groups that list a user.
fn groups(root: &Root, user: &str) -> Vec<String> {
    let text = root.text("/etc/group");
    let lists = |line: &&str| line.rsplit(':').next().unwrap().split(',').any(|it| it == user);
    text.lines().filter(lists).map(|it| it.split(':').next().unwrap().into()).collect()
}

// R-9
#[test]
fn keys_go_though_the_login_cannot_be_locked() {
    let Some(root) = tree("accounts-unlockable") else { return };
    root.converge(&with_keys(&[ALICE]));
    assert!(root.text(KEYS).contains(ALICE));
    fs::remove_file(root.at("/etc/shadow")).unwrap();
    let run = root.apply("").expect(1, &["u failed"]);
    assert!(run.err.contains("lock user alice"), "{}", run.err);
    assert!(!root.has(KEYS));
}

// R-2 R-14
#[test]
fn an_account_is_made_as_declared_and_a_second_run_has_nothing_to_do() {
    let Some(root) = tree("accounts-made") else { return };
    let all = format!(
        r#"{{"id":"g","type":"group","name":"shop","gid":1500}},
        {},
        {{"id":"f","type":"file","path":"/home/alice/hello","content":"x","owner":"alice",
          "group":"shop"}}"#,
        user(&format!(
            r#","uid":1700,"group":"shop","groups":["wheel","adm"],"shell":"/bin/bash",
            "comment":"Alice, the \"a\"","authorized_keys":["{ALICE}"]"#
        )),
    );
    let before = root.tree();
    let plan = root.plan(&all).expect(10, &["g created", "u created", "f created"]);
    assert!(plan.detail("u").contains("unknown until group:shop"), "{}", plan.detail("u"));
    assert!(plan.detail("f").contains("unknown until"), "{}", plan.detail("f"));
    assert_eq!(root.tree(), before, "a dry run changes nothing");

    root.converge(&all);
    assert_eq!(line(&root, "/etc/group", "shop"), "shop:x:1500:");
    let passwd = "alice:x:1700:1500:Alice, the \"a\":/home/alice:/bin/bash";
    assert_eq!(line(&root, "/etc/passwd", "alice"), passwd);
    assert!(line(&root, "/etc/shadow", "alice").starts_with("alice:!:"));
    assert_eq!(groups(&root, "alice"), ["adm", "wheel"]);
    for (path, mode) in [("/home/alice/.ssh", 0o700), (KEYS, 0o600), ("/home/alice/hello", 0o644)] {
        assert_eq!((root.mode(path), root.owner(path)), (mode, (1700, 1500)), "{path}");
    }
    assert!(root.text(KEYS).contains(ALICE));

    let before = root.tree();
    let idle = ["g unchanged", "u unchanged", "f unchanged"];
    root.apply(&all).expect(0, &idle);
    assert_eq!(root.tree(), before, "a run with nothing to do writes nothing");
    assert!(fs::read_to_string("/etc/passwd").is_ok_and(|own| !own.contains("Alice, the")));
}

// R-2 R-3
#[test]
fn what_drifts_is_put_back_and_what_changes_is_changed() {
    let Some(root) = tree("accounts-drift") else { return };
    let first = user(r#","shell":"/bin/sh","groups":["adm"],"comment":"one""#);
    root.converge(&first);
    let passwd = root.text("/etc/passwd").replace(":one:/home/alice:/bin/sh", "::/home/x:/bin/no");
    root.put("/etc/passwd", &passwd);
    let group = root.text("/etc/group").replace("adm:x:4:old,alice", "adm:x:4:old");
    root.put("/etc/group", &group.replace("wheel:x:10:", "wheel:x:10:alice"));
    root.reconcile().expect(0, &["u corrected"]);
    assert!(
        line(&root, "/etc/passwd", "alice").ends_with(":one:/home/x:/bin/sh"),
        "home unmanaged"
    );
    assert_eq!(
        (groups(&root, "alice"), groups(&root, "old")),
        (vec!["adm".into()], vec!["adm".into()])
    );

    let second = r#","shell":"/bin/bash","groups":[],"group":"wheel","home":"/home/alice""#;
    let changed = root.converge(&user(second)).expect(0, &["u changed"]);
    assert!(changed.detail("u").contains("shell \"/bin/sh\" → \"/bin/bash\""));
    assert_eq!(groups(&root, "alice"), Vec::<String>::new());
    assert!(line(&root, "/etc/passwd", "alice").ends_with(":10:one:/home/alice:/bin/bash"));
    root.apply(&user(second)).expect(0, &["u unchanged"]);
}

// R-2
#[test]
fn an_account_that_was_there_is_adopted_and_its_number_never_changed() {
    let Some(root) = tree("accounts-adopted") else { return };
    let old = |uid: u32, gid: u32| {
        format!(
            r#"{{"id":"g","type":"group","name":"old","gid":{gid}}},
            {{"id":"u","type":"user","name":"old","uid":{uid},"comment":"Older"}}"#
        )
    };
    let run = root.apply(&old(1201, 1200)).expect(1, &["g unchanged", "u failed"]);
    assert!(run.err.contains("its number is 1200 and not 1201"), "{}", run.err);
    let run = root.apply(&old(1200, 1201)).expect(1, &["g failed", "u not_reached"]);
    assert!(run.err.contains("its number is 1200 and not 1201"), "{}", run.err);
    root.apply(&old(1200, 1200)).expect(0, &["g unchanged", "u changed"]);
    assert_eq!(line(&root, "/etc/passwd", "old"), "old:x:1200:1200:Older:/home/old:/bin/sh");

    root.apply("").expect(0, &["u forgotten", "g left"]);
    assert_eq!(line(&root, "/etc/shadow", "old"), "old:!:19000:0:99999:7:::");
    assert_eq!(line(&root, "/etc/group", "old"), "old:x:1200:");
    root.apply("").expect(0, &[]);
}

// R-9
#[test]
fn an_account_that_is_let_go_of_is_locked_and_opens_when_it_is_declared_again() {
    let Some(root) = tree("accounts-let-go") else { return };
    root.converge(&with_keys(&[ALICE]));
    let theirs = format!("{}ssh-rsa AAAA mine\n", root.text(KEYS));
    root.put(KEYS, &theirs);
    let hash = line(&root, "/etc/shadow", "alice").replace(":!:", ":$6$salt$hash:");
    let shadow = root.text("/etc/shadow").replace(&line(&root, "/etc/shadow", "alice"), &hash);
    root.put("/etc/shadow", &shadow);

    let before = root.tree();
    root.plan("").expect(10, &["u left"]);
    assert_eq!(root.tree(), before);
    let run = root.apply("").expect(0, &["u left"]);
    assert!(run.err.contains("will lock user alice out"), "{}", run.err);
    let locked = line(&root, "/etc/shadow", "alice");
    assert!(locked.starts_with("alice:!$6$salt$hash:") && locked.ends_with(":2:"), "{locked}");
    assert_eq!(root.text(KEYS), "ssh-rsa AAAA mine\n", "a person's own key stays");
    assert!(root.has("/home/alice/.profile") || root.has("/home/alice"));
    root.apply("").expect(0, &[]);

    let again = root.apply(&with_keys(&[BOB])).expect(0, &["u created"]);
    assert!(again.detail("u").contains("locked when it was let go of"), "{}", again.detail("u"));
    assert_eq!(line(&root, "/etc/shadow", "alice"), hash, "as it was");
    assert!(root.text(KEYS).contains(BOB) && !root.text(KEYS).contains(ALICE));
    root.apply(&with_keys(&[BOB])).expect(0, &["u unchanged"]);
    root.apply("").expect(0, &["u left"]);
    assert!(line(&root, "/etc/shadow", "alice").ends_with(":2:"), "locked once more");
}

// R-9
#[test]
fn what_is_gone_already_needs_no_parting() {
    let Some(root) = tree("accounts-gone") else { return };
    let all = format!(r#"{{"id":"g","type":"group","name":"shop"}},{}"#, user(""));
    root.converge(&all);
    for file in ["/etc/passwd", "/etc/group", "/etc/shadow", "/etc/gshadow"] {
        let text = root.text(file);
        let kept = text.lines().filter(|it| !it.starts_with("alice:") && !it.starts_with("shop:"));
        let kept: String = kept.map(|line| format!("{line}\n")).collect();
        root.put(file, &kept);
    }
    let run = root.apply("").expect(0, &["u removed", "g removed"]);
    assert!(run.detail("u").contains("gone already"));
}

// R-2 R-3
#[test]
fn keys_come_and_go_and_a_persons_own_stay() {
    let Some(root) = tree("accounts-keys") else { return };
    root.converge(&user(""));
    assert!(!root.has("/home/alice/.ssh"), "keys that nobody declares are nobody's business");
    let run = root.apply(&with_keys(&[ALICE, BOB])).expect(0, &["u changed"]);
    assert!(run.detail("u").contains("keys 0 → 2"), "{}", run.detail("u"));
    root.put(KEYS, &format!("# mine\n{}ssh-rsa AAAA mine\n", root.text(KEYS)));
    root.apply(&with_keys(&[ALICE, BOB])).expect(0, &["u unchanged"]);

    let spoilt = root.text(KEYS).replace(BOB, "ssh-rsa AAAA intruder");
    root.put(KEYS, &spoilt);
    root.chmod(KEYS, 0o644);
    root.reconcile().expect(0, &["u corrected"]);
    let text = root.text(KEYS);
    assert!(text.contains(BOB) && !text.contains("intruder"), "{text}");
    assert!(text.starts_with("# mine\n") && text.ends_with("ssh-rsa AAAA mine\n"), "{text}");
    assert_eq!(root.mode(KEYS), 0o644, "a person's own mode, as long as no other may write");
    for path in [KEYS, "/home/alice/.ssh"] {
        root.chmod(path, 0o777);
        root.reconcile().expect(0, &["u corrected"]);
        assert_eq!(root.mode(path) & 0o022, 0, "{path}");
    }
    root.apply(&with_keys(&[])).expect(0, &["u changed"]);
    assert_eq!(root.text(KEYS), "# mine\nssh-rsa AAAA mine\n");
    root.apply(&user("")).expect(0, &["u unchanged"]);
    root.put(KEYS, "");
    root.converge(&with_keys(&[BOB]));
    root.converge(&with_keys(&[]));
    assert!(!root.has(KEYS), "a file that held nothing else goes");
}

// R-9 R-15
#[test]
fn nothing_in_a_home_is_followed_read_or_given_away() {
    let Some(root) = tree("accounts-hostile") else { return };
    root.converge(&user(""));
    let (uid, gid) = root.owner("/home/alice");
    let give = |path: &str| chown(root.at(path), Some(uid), Some(gid)).unwrap();
    root.mkdir("/s/theirs");
    root.put("/s/theirs/authorized_keys", "secret of root's\n");
    root.chmod("/s/theirs/authorized_keys", 0o600);
    let clear = || {
        let ssh = root.at("/home/alice/.ssh");
        match ssh.symlink_metadata().map(|meta| meta.is_dir()) {
            Ok(true) => fs::remove_dir_all(ssh).unwrap(),
            Ok(false) => fs::remove_file(ssh).unwrap(),
            Err(_) => {}
        }
    };
    let makers: [(&str, &dyn Fn()); 8] = [
        ("no link is followed", &|| root.link("/home/alice/.ssh", "/s/theirs")),
        ("no link is followed", &|| root.link("/home/alice/.ssh", "/nowhere")),
        ("no link is followed", &|| {
            root.mkdir("/home/alice/own");
            give("/home/alice/own");
            root.link("/home/alice/.ssh", "own");
        }),
        ("no directory", &|| root.put("/home/alice/.ssh", "a file\n")),
        ("belongs to user 0", &|| root.mkdir("/home/alice/.ssh")),
        ("no regular file", &|| {
            root.mkdir("/home/alice/.ssh");
            give("/home/alice/.ssh");
            root.link(KEYS, "/s/theirs/authorized_keys");
            std::os::unix::fs::lchown(root.at(KEYS), Some(uid), Some(gid)).unwrap();
        }),
        ("second name", &|| {
            root.mkdir("/home/alice/.ssh");
            root.put("/home/alice/mine", "mine\n");
            give("/home/alice/.ssh");
            give("/home/alice/mine");
            fs::hard_link(root.at("/home/alice/mine"), root.at(KEYS)).unwrap();
        }),
        ("belongs to user 0", &|| {
            root.mkdir("/home/alice/.ssh");
            give("/home/alice/.ssh");
            fs::copy(root.at("/s/theirs/authorized_keys"), root.at(KEYS)).unwrap();
        }),
    ];
    for (nth, (why, make)) in makers.iter().enumerate() {
        clear();
        make();
        let before = support::root::tree(&root.at("/home"));
        let theirs = support::root::tree(&root.at("/s"));
        let run = root.apply(&with_keys(&[ALICE])).expect(1, &["u failed"]);
        assert!(run.err.contains(why), "{nth}: {why}: {}", run.err);
        assert!(!run.err.contains("secret of"), "{}", run.err);
        assert_eq!(support::root::tree(&root.at("/home")), before, "{nth}: {why}");
        assert_eq!(support::root::tree(&root.at("/s")), theirs, "{nth}: {why}");
    }
    // However the home is, letting go locks the login before it stumbles over it.
    let run = root.apply("").expect(1, &["u failed"]);
    assert!(run.err.contains("belongs to user 0"), "{}", run.err);
    assert!(line(&root, "/etc/shadow", "alice").ends_with(":2:"));
    clear();
    root.apply("").expect(0, &["u left"]);
}

// R-9
#[test]
fn keys_move_with_a_home_that_is_declared_elsewhere() {
    let Some(root) = tree("accounts-home") else { return };
    let at = |home: &str| user(&format!(r#","home":"{home}","authorized_keys":["{ALICE}"]"#));
    root.converge(&at("/home/alice"));
    root.apply(&at("/srv/deep/alice")).expect(0, &["u changed"]);
    assert!(!root.has(KEYS), "no key of the host's stays behind");
    let new = "/srv/deep/alice/.ssh/authorized_keys";
    assert!(root.text(new).contains(ALICE));
    assert_eq!(root.owner("/srv/deep/alice"), root.owner(new));
    assert_eq!(root.mode("/srv/deep/alice"), 0o700);
    root.apply(&at("/srv/deep/alice")).expect(0, &["u unchanged"]);
    // The same place by another name.
    root.link("/data", "srv");
    root.apply(&at("/data/deep/alice/")).expect(0, &["u changed"]);
    assert!(root.text(new).contains(ALICE));
    root.apply(&at("/srv/deep/alice")).expect(0, &["u changed"]);
    fs::remove_dir_all(root.at("/srv/deep")).unwrap();
    root.reconcile().expect(0, &["u corrected"]);
    assert!(root.text(new).contains(ALICE));
}

// R-15
#[test]
fn a_home_in_what_is_the_hosts_own_is_refused() {
    let Some(root) = tree("accounts-own") else { return };
    root.link("/s/innocent", "/var/lib");
    let before = root.text("/etc/passwd");
    for home in ["/var/lib/mesh-host", "/s/innocent/mesh-host/x"] {
        let run = root.apply(&user(&format!(r#","home":"{home}""#)));
        assert_eq!(run.code, 3, "{home}: {}{}", run.out, run.err);
    }
    root.put("/etc/passwd", &format!("{before}alice:x:1300:1200::/s/innocent/mesh-host:/bin/sh\n"));
    let run = root.apply(&with_keys(&[ALICE]));
    assert_ne!(run.code, 0, "{}{}", run.out, run.err);
    assert!(!root.has("/var/lib/mesh-host/.ssh"));
}

// R-4
#[test]
fn what_the_tools_refuse_is_told_in_their_words() {
    let Some(root) = tree("accounts-refused") else { return };
    let group = r#"{"id":"g","type":"group","name":"shop","gid":4}"#;
    let run = root.apply(group).expect(1, &["g failed"]);
    let words = "make group shop: groupadd exited 4: \"groupadd: GID '4' already exists\"";
    assert!(run.err.contains(words), "{}", run.err);
    let run = root.apply(&user(r#","uid":1200"#)).expect(1, &["u failed"]);
    assert!(run.err.contains("UID 1200 is not unique"), "{}", run.err);
    let run = root.apply(&user(r#","groups":["nowhere"]"#)).expect(1, &["u failed"]);
    assert!(run.err.contains("no group \"nowhere\" in /etc/group"), "{}", run.err);
    let run = root.apply(&user(r#","group":"nowhere""#)).expect(1, &["u failed"]);
    assert!(run.err.contains("no group \"nowhere\" in /etc/group"), "{}", run.err);
    // A process that lives holds the file: this one.
    root.put("/etc/passwd.lock", &format!("{}\0", std::process::id()));
    let run = root.apply(&user("")).expect(1, &["u failed"]);
    assert!(run.err.contains("useradd: cannot lock /etc/passwd; try again later."), "{}", run.err);
    fs::remove_file(root.at("/etc/passwd.lock")).unwrap();
    root.converge(&user(""));
}

// R-9
#[test]
fn what_could_not_be_made_is_not_taken_for_ours_when_a_person_makes_it() {
    let Some(root) = tree("accounts-withdrawn") else { return };
    root.apply(&user(r#","uid":1200"#)).expect(1, &["u failed"]);
    let owned = root.host(&["--json", "owned"]);
    assert_eq!(owned.report()["owned"].as_array().unwrap().len(), 0, "{}", owned.out);
    root.put("/etc/passwd", &format!("{}alice:x:1300:1200::/:/bin/sh\n", root.text("/etc/passwd")));
    root.put("/etc/shadow", &format!("{}alice:*:19000::::::\n", root.text("/etc/shadow")));
    root.converge(&user(""));
    root.apply("").expect(0, &["u forgotten"]);
    assert_eq!(line(&root, "/etc/shadow", "alice"), "alice:*:19000::::::");
}

// R-14
#[test]
fn a_group_of_the_users_own_name_is_its_own() {
    let Some(root) = tree("accounts-namesake") else { return };
    let all = format!(r#"{{"id":"g","type":"group","name":"alice","gid":1900}},{}"#, user(""));
    root.converge(&all);
    assert!(line(&root, "/etc/passwd", "alice").contains(":1900:"));
    root.apply(&all).expect(0, &["g unchanged", "u unchanged"]);
}

// R-2
#[test]
fn a_tree_with_no_account_files_but_passwd_will_do() {
    let Some(root) = tree("accounts-bare") else { return };
    for file in ["/etc/group", "/etc/shadow", "/etc/gshadow", "/etc/login.defs"] {
        fs::remove_file(root.at(file)).unwrap();
    }
    root.converge(&with_keys(&[ALICE]));
    assert!(line(&root, "/etc/passwd", "alice").starts_with("alice:!:"));
    root.apply(&with_keys(&[ALICE])).expect(0, &["u unchanged"]);
    let run = root.apply("").expect(1, &["u failed"]);
    assert!(run.err.contains("lock user alice: usermod exited"), "{}", run.err);
    assert!(run.err.contains("shadow passwords required"), "{}", run.err);
    fs::remove_file(root.at("/etc/passwd")).unwrap();
    root.apply("").expect(0, &["u removed"]);
}

// R-9
#[test]
fn a_home_that_is_somebody_elses_gets_no_keys_and_holds_up_no_parting() {
    let Some(root) = tree("accounts-foreign") else { return };
    root.mkdir("/s/www");
    chown(root.at("/s/www"), Some(1200), Some(1200)).unwrap();
    let at = |keys: &str| user(&format!(r#","home":"/s/www"{keys}"#));
    root.converge(&at(""));
    let with_keys = at(&format!(r#","authorized_keys":["{ALICE}"]"#));
    let run = root.apply(&with_keys).expect(1, &["u failed"]);
    assert!(run.err.contains("/s/www\": it belongs to user 1200 and not to alice"), "{}", run.err);
    assert!(!root.has("/s/www/.ssh"));
    root.apply("").expect(0, &["u left"]);
    assert!(line(&root, "/etc/shadow", "alice").ends_with(":2:"));
}

// R-2
#[test]
fn roots_own_keys_can_be_declared_and_are_let_be() {
    let Some(root) = tree("accounts-root") else { return };
    let keys = |key: &str| {
        format!(r#"{{"id":"r","type":"user","name":"root","authorized_keys":["{key}"]}}"#)
    };
    let file = "/root/.ssh/authorized_keys";
    root.apply(&keys(ALICE)).expect(0, &["r changed"]);
    assert!(root.text(file).contains(ALICE));
    assert_eq!((root.mode("/root"), root.mode(file), root.owner(file)), (0o700, 0o600, (0, 0)));
    root.apply(&keys(BOB)).expect(0, &["r changed"]);
    root.apply(&keys(BOB)).expect(0, &["r unchanged"]);
    root.apply("").expect(0, &["r forgotten"]);
    assert!(root.text(file).contains(BOB), "an adopted account is forgotten as it is");
    assert_eq!(line(&root, "/etc/shadow", "root"), "root:*:19000::::::");
}

// R-9
#[test]
fn an_account_that_was_made_by_half_is_completed() {
    let Some(root) = tree("accounts-half") else { return };
    root.converge(&with_keys(&[ALICE]));
    let gid = root.owner("/home/alice").1;
    // As useradd leaves it when it is cut off after its first file.
    for file in ["/etc/group", "/etc/shadow", "/etc/gshadow"] {
        let text = root.text(file);
        let kept = text.lines().filter(|it| !it.starts_with("alice:"));
        let kept: String = kept.map(|line| format!("{line}\n")).collect();
        root.put(file, &kept);
    }
    fs::remove_dir_all(root.at("/home/alice")).unwrap();
    root.reconcile().expect(0, &["u corrected"]);
    assert_eq!(line(&root, "/etc/group", "alice"), format!("alice:x:{gid}:"));
    assert!(line(&root, "/etc/shadow", "alice").starts_with("alice:"));
    assert!(root.text(KEYS).contains(ALICE));
    assert_eq!(root.mode("/home/alice"), 0o700);
    root.reconcile().expect(0, &["u unchanged"]);
}
