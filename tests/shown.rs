//! What a person reads: each thing is called by its name, what happens is said in order and in
//! sentences, and nothing that a declaration or a machine holds reaches the terminal as a command.

mod support;

use support::said::{at, fed};
use support::Scratch;

const DECLARED: &str = r#"{"version":1,"resources":[
    {"id":"site","type":"directory","path":"/srv/site"},
    {"id":"page","type":"file","path":"/srv/site/page","content":"one\n"},
    {"id":"motd","type":"file","path":"/motd","content":"hello\n"},
    {"id":"now","type":"symlink","path":"/srv/site/now","target":"page"},
    {"id":"forwarding","type":"sysctl","key":"net.ipv4.ip_forward","value":1}]}"#;

/// `text` with every time made the same.
fn timeless(text: &str) -> String {
    let word = |word: &str| {
        let is_time = word.len() >= 20 && word.as_bytes()[10] == b'T' && &word[19..20] == "Z";
        if is_time {
            format!("TIME{}", &word[20..])
        } else {
            word.to_owned()
        }
    };
    let line = |line: &str| line.split(' ').map(word).collect::<Vec<_>>().join(" ") + "\n";
    text.lines().map(line).collect()
}

#[test]
fn each_thing_is_called_by_its_name_and_counted() {
    let scratch = Scratch::new("shown-names");
    let root = scratch.path();
    std::fs::write(scratch.join("motd"), "hi\n").unwrap();
    let run = |command: &str| fed(root, &[command, "-"], DECLARED.as_bytes()).exits(0).out;
    assert_eq!(
        run("plan"),
        "\
create         directory /srv/site  [site]
create         file      /srv/site/page  [page]
    --- /dev/null
    +++ /srv/site/page
    @@ -0,0 +1 @@
    +one
change         file      /motd  [motd]: contents 3 → 6 bytes
    --- /motd
    +++ /motd
    @@ -1 +1 @@
    -hi
    +hello
create         symlink   /srv/site/now  [now]
not applicable sysctl    net.ipv4.ip_forward  [forwarding]: kernel parameters belong to the \
running kernel, not to a mounted tree
plan: 3 to create, 1 to change, 1 not applicable
"
    );
    let applied = run("apply");
    let first: Vec<&str> = applied.lines().take(3).collect();
    assert_eq!(
        first,
        [
            "created        directory /srv/site  [site]",
            "created        file      /srv/site/page  [page]",
            "changed        file      /motd  [motd]: contents 3 → 6 bytes",
        ]
    );
    assert!(
        applied.ends_with("\nconverged: 3 created, 1 changed, 1 not applicable\n"),
        "{applied}"
    );
    let idle = "4 unchanged, 1 not applicable\n";
    assert!(run("plan").ends_with(&format!("nothing to do, the machine is as declared: {idle}")));
    assert!(run("apply").ends_with(&format!("\nconverged, nothing to do: {idle}")));
}

#[test]
fn what_will_go_is_said_in_the_order_in_which_it_goes_and_before_anything_does() {
    let scratch = Scratch::new("shown-going");
    let root = scratch.path();
    fed(root, &["apply", "-"], DECLARED.as_bytes()).exits(0);
    let none = br#"{"version":1,"resources":[]}"#;
    let lines = |word: &str| {
        [
            "symlink   /srv/site/now  [now]",
            "file      /motd  [motd]",
            "file      /srv/site/page  [page]",
            "directory /srv/site  [site]",
            "directory /srv  [site]",
        ]
        .map(|it| format!("{word:<14} {it}\n"))
        .concat()
    };
    let plan = fed(root, &["plan", "-"], none).exits(0);
    assert_eq!(plan.out, lines("remove") + "plan: 5 to remove\n");
    // Held still, nothing goes, and nothing is said to.
    at(root, &["pause", "--reason", "looking"]).exits(0);
    let held = fed(root, &["apply", "-"], none).exits(0);
    assert_eq!(held.err, "nox-mesh-host: paused until resume: looking\n");
    assert_eq!(held.out, "paused: accepted, and applied by a pass after resume\n");
    at(root, &["resume"]).exits(0);
    // What fails first has said what it would have removed, and has removed nothing.
    let fails = br#"{"version":1,"resources":[
        {"id":"y","type":"directory","path":"/y"}]}"#;
    std::fs::write(scratch.join("y"), "").unwrap();
    let failed = fed(root, &["apply", "-"], fails).exits(1);
    assert!(failed.err.contains("will remove symlink /srv/site/now\n"), "{failed:?}");
    assert!(scratch.join("srv/site/now").is_symlink());
    let emptied = fed(root, &["apply", "-"], none).exits(0);
    let said: Vec<&str> = emptied.err.lines().collect();
    let going = |line: &str| line.starts_with("nox-mesh-host: will remove ");
    assert!(said.iter().all(|line| going(line)), "{emptied:?}");
    let told = said.iter().filter_map(|line| line.rsplit(' ').next());
    let gone = emptied.out.lines().filter_map(|line| line.split("  [").next()?.rsplit(' ').next());
    let gone: Vec<&str> = gone.take(said.len()).collect();
    assert_eq!(told.collect::<Vec<_>>(), gone, "{emptied:#?}");
}

#[test]
fn the_store_is_shown_in_lines_that_a_person_can_read() {
    let scratch = Scratch::new("shown-store");
    let root = scratch.path();
    let look = |arguments: &[&str]| timeless(&at(root, arguments).exits(0).out);
    let nothing =
        "nothing has been declared to this host yet\nowns 0 objects\nservice: not running\n";
    assert_eq!(look(&["status"]), nothing);
    assert_eq!(at(root, &["owned"]).exits(0).err, "nox-mesh-host: this host owns nothing\n");
    assert_eq!(look(&["journal"]), "");
    let fails = r#"{"version":1,"serial":3,"resources":[
        {"id":"one","type":"file","path":"/one","content":"1\n"},
        {"id":"lost","type":"file","path":"/gone/lost","content":""}]}"#;
    fed(root, &["apply", "-"], fails.as_bytes()).exits(1);
    let cause = "make /gone/lost: its directory /gone is not there; declare it earlier";
    assert_eq!(
        look(&["status"]),
        format!(
            "not as declared: 1 resource failing\n\
             local serial 3 accepted TIME, not yet applied whole\nowns 1 object\n\
             last pass with news: TIME failed (command)\n\
             failing since TIME: lost (local): {cause}\n\
             service: not running\n"
        )
    );
    assert_eq!(look(&["owned"]), "created TIME local  file      /one  [one]\n");
    let journal = look(&["journal"]);
    let lines: Vec<&str> = journal.lines().map(|line| &line[7..]).collect();
    assert_eq!(lines[0], "TIME snapshot");
    assert!(lines[1].starts_with("TIME accepted  ") && lines[1].ends_with("… serial 3 (local)"));
    assert_eq!(
        lines[2..],
        [
            "TIME began     file /one (local) [one]",
            "TIME applied   created file /one (local) [one]",
            &*format!("TIME failed    {cause} (local) [lost]"),
            "TIME pass      failed 1 changed, 1 failed (command)",
        ]
    );
    assert_eq!(look(&["journal", "--verify"]), "6 lines, every one intact; last record 6\n");
}

#[test]
fn nothing_reaches_the_terminal_as_a_command() {
    let scratch = Scratch::new("shown-hostile");
    let root = scratch.path();
    let evil = "e\u{1b}]0;owned\u{7}\u{9b}2J\u{202e}\r\n\u{200b}vil";
    let declared = |content: &str| {
        serde_json::json!({"version": 1, "resources": [
            {"id": "f", "type": "file", "path": format!("/{evil}"), "content": content},
            {"id": "l", "type": "symlink", "path": "/l", "target": evil},
            {"id": "d", "type": "directory", "path": format!("/d{evil}/{evil}")},
        ]})
        .to_string()
    };
    let fails = serde_json::json!({"version": 1, "resources": [
        {"id": "f", "type": "directory", "path": "/there"},
        {"id": "n", "type": "file", "path": format!("/no{evil}/{evil}"), "content": ""},
    ]});
    let run = |arguments: &[&str], text: &str| {
        let said = fed(root, arguments, text.as_bytes());
        said.is_plain();
        let hidden = |it: char| matches!(it, '\u{9b}' | '\u{202e}' | '\u{200b}');
        assert!(!said.out.contains(hidden) && !said.err.contains(hidden), "{said:?}");
        said
    };
    run(&["plan", "-"], &declared(evil)).exits(0);
    run(&["apply", "-v", "-"], &declared(evil)).exits(0);
    run(&["apply", "-v", "-"], &declared("other")).exits(0);
    std::fs::remove_file(scratch.join("l")).unwrap();
    std::os::unix::fs::symlink(format!("x{evil}"), scratch.join("l")).unwrap();
    run(&["reconcile", "-v"], "").exits(0);
    run(&["apply", "-v", "-"], &declared("other")).exits(0);
    for look in ["owned", "status", "journal"] {
        run(&[look], "").exits(0);
    }
    run(&["plan", "-"], r#"{"version":1,"resources":[]}"#).exits(0);
    run(&["apply", "-v", "-"], &fails.to_string()).exits(1);
    for look in ["owned", "status", "journal"] {
        run(&[look], "").exits(0);
    }
    run(&["pause", "--reason", evil], "").exits(0);
    run(&["apply", "-"], &declared("other")).exits(0);
    for look in ["status", "journal"] {
        run(&[look], "").exits(0);
    }
}
