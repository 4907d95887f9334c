//! The streams: what goes to which, in what colour, and what happens when one is gone or full.

mod support;

use std::fs::{File, OpenOptions};
use std::os::fd::OwnedFd;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};

use support::said::{at, command, fed, Said};
use support::{has, skip, Lacks, Scratch};

const TWO: &str = r#"{"version":1,"resources":[
    {"id":"dir","type":"directory","path":"/d"},
    {"id":"one","type":"file","path":"/d/one","content":"1\n"}]}"#;
const NONE: &str = r#"{"version":1,"resources":[]}"#;

#[test]
fn quiet_says_errors_only_and_verbose_names_what_was_unchanged() {
    let scratch = Scratch::new("cli-quiet");
    let root = scratch.path();
    let said = fed(root, &["apply", "-", "-q"], TWO.as_bytes()).exits(0);
    assert!(said.out.is_empty() && said.err.is_empty(), "{said:?}");
    let said = fed(root, &["apply", "-"], TWO.as_bytes()).exits(0);
    assert_eq!(said.out, "converged, nothing to do: 2 unchanged\n");
    let said = fed(root, &["apply", "-", "-v"], TWO.as_bytes()).exits(0);
    assert!(said.out.contains("unchanged      file      /d/one  [one]\n"), "{said:?}");
    for quiet in [&["check", "-", "-q"][..], &["plan", "-q", "-"]] {
        let said = fed(root, quiet, NONE.as_bytes()).exits(0);
        assert!(said.out.is_empty() && said.err.is_empty(), "{said:?}");
    }
    let said = fed(root, &["apply", "-q", "-"], NONE.as_bytes()).exits(0);
    assert!(said.out.is_empty() && said.err.is_empty(), "{said:?}");
    let said = fed(root, &["apply", "-q", "-"], b"{}").exits(3);
    assert!(said.out.is_empty() && said.err.contains("version"), "{said:?}");
}

#[test]
fn colour_is_for_terminals_or_whoever_asks() {
    let scratch = Scratch::new("cli-color");
    let root = scratch.path();
    for (arguments, no_color, colored) in [
        (&["plan", "-"][..], None, false),
        (&["plan", "-", "--color", "always"], None, true),
        (&["plan", "-", "--color=always"], Some("1"), true),
        (&["plan", "-", "--color", "never"], None, false),
        (&["plan", "-", "--color", "always", "--json"], None, false),
    ] {
        let mut host = command(arguments);
        host.arg("--root").arg(root).stdin(declaration(&scratch, TWO));
        host.envs(no_color.map(|value| ("NO_COLOR", value)));
        let said = Said::of(host.output().unwrap()).exits(0);
        assert_eq!(said.out.contains("\x1b["), colored, "{arguments:?}: {said:?}");
        assert!(!said.err.contains('\x1b'), "{said:?}");
    }
}

/// `text` as an open file.
fn declaration(scratch: &Scratch, text: &str) -> File {
    let path = scratch.join("declaration.json");
    std::fs::write(&path, text).unwrap();
    File::open(path).unwrap()
}

/// What a terminal sees of the host run with `arguments` and this environment.
fn on_a_terminal(arguments: &str, environment: &str) -> String {
    let host = env!("CARGO_BIN_EXE_nox-mesh-host");
    let line = format!("{environment} '{host}' {arguments}");
    let mut script = Command::new("script");
    script.args(["-qec", &line, "/dev/null"]).stdin(Stdio::null()).env_remove("NO_COLOR");
    Said::of(script.output().unwrap()).exits(0).out
}

#[test]
fn a_terminal_gets_colour_and_progress_and_a_pipe_neither() {
    let name = "a_terminal_gets_colour_and_progress_and_a_pipe_neither";
    if !has("script", name) {
        return;
    }
    let scratch = Scratch::new("cli-terminal");
    let file = scratch.join("two.json");
    std::fs::write(&file, TWO).unwrap();
    let (root, file) = (scratch.path().display(), file.display());
    let plan = format!("--root '{root}' plan '{file}'");
    assert!(on_a_terminal(&plan, "NO_COLOR=").contains("\x1b[32mcreate"));
    assert!(!on_a_terminal(&plan, "NO_COLOR=1").contains('\x1b'));
    assert!(!on_a_terminal(&format!("{plan} --color never"), "").contains('\x1b'));

    // An action is a step that may be slow, and only the real root runs one: it makes a file here.
    if support::euid() != 0 {
        return skip(name, &Lacks::Machine("root"));
    }
    let (made, bundle) = (scratch.join("made"), scratch.join("bundle.json"));
    let action = serde_json::json!({"version": 1, "resources": [
        {"id": "make-it", "type": "action", "run": ["touch", made], "verify": ["test", "-e", made]},
    ]});
    std::fs::write(&bundle, action.to_string()).unwrap();
    let bundle = bundle.display();
    let arguments = |state: &str, more: &str| {
        let config = scratch.join("config.json");
        std::fs::write(&config, "{}").unwrap();
        let (state, config) = (scratch.join(state), config.display());
        let state = state.display();
        format!("--state '{state}' --config '{config}' apply --bundle '{bundle}' {more}")
    };
    let seen = on_a_terminal(&arguments("one", ""), "");
    assert!(seen.contains("\r\x1b[K1/1 make-it\r\x1b[K"), "{seen:?}");
    for (state, more) in [("two", "-q"), ("three", "--json"), ("four", "2>&1 | cat")] {
        std::fs::remove_file(&made).unwrap();
        let seen = on_a_terminal(&arguments(state, more), "");
        assert!(!seen.contains("\x1b[K"), "{more}: {seen:?}");
        assert!(made.exists());
    }
}

#[test]
fn a_reader_that_left_is_no_error_and_a_full_disk_is() {
    let scratch = Scratch::new("cli-closed");
    let root = scratch.path();
    fed(root, &["apply", "-", "-q"], TWO.as_bytes()).exits(0);
    for arguments in [
        &["help"][..],
        &["schema"],
        &["status"],
        &["owned"],
        &["journal"],
        &["journal", "--follow"],
        &["journal", "--verify"],
        &["version", "--json"],
        &["reconcile", "--json"],
    ] {
        let (reader, writer) = UnixStream::pair().unwrap();
        drop(reader);
        let mut host = command(arguments);
        host.arg("--root").arg(root).stdout(OwnedFd::from(writer)).stderr(Stdio::piped());
        let said = Said::of(host.spawn().unwrap().wait_with_output().unwrap()).exits(0);
        assert!(said.err.is_empty(), "{arguments:?}: {said:?}");
        if arguments.contains(&"--follow") {
            continue;
        }
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut host = command(arguments);
        host.arg("--root").arg(root).stdout(full).stderr(Stdio::piped());
        let said = Said::of(host.spawn().unwrap().wait_with_output().unwrap()).exits(1);
        assert!(said.err.contains("write to standard output: No space left"), "{said:?}");
    }
    // Standard error that is gone or full changes nothing of what is done.
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut host = command(&["apply", "-"]);
    host.arg("--root").arg(root).stdin(declaration(&scratch, NONE)).stderr(full);
    assert_eq!(host.output().unwrap().status.code(), Some(0));
    assert!(!scratch.join("d").exists());
}

#[test]
fn a_declaration_is_read_from_what_can_be_read_and_nothing_else() {
    let scratch = Scratch::new("cli-files");
    let root = scratch.path();
    let file = scratch.join("two.json");
    std::fs::write(&file, TWO).unwrap();
    symlink(&file, scratch.join("link")).unwrap();
    for operand in ["two.json", "./two.json", "link", "/dev/stdin"] {
        let mut host = command(&["check", operand]);
        host.current_dir(root).stdin(declaration(&scratch, TWO));
        let said = Said::of(host.output().unwrap()).exits(0);
        assert_eq!(said.out, format!("{operand}: 2 resources, no fault\n"));
    }
    // A pipe by name, as a shell's <(command) makes it.
    let fifo = scratch.join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let feeder = Command::new("cp").arg(&file).arg(&fifo).spawn().unwrap();
    at(root, &["check", fifo.to_str().unwrap()]).exits(0);
    feeder.wait_with_output().unwrap();
    for (arguments, code, why) in [
        (&["check", "gone.json"][..], 1, "no such file"),
        (&["apply", "two.json/x"], 1, "not a directory"),
        (&["apply", "."], 3, "is a directory"),
        (&["apply", "--bundle", "."], 3, "not a regular file"),
        (&["apply", "--bundle", "fifo"], 3, "not a regular file"),
        (&["apply", "--bundle"], 1, "substrate.lock"),
        (&["apply", "/dev/null"], 3, "is empty"),
        (&["apply", ""], 1, "no such file"),
    ] {
        let mut host = command(arguments);
        let host = host.current_dir(root).arg("--root").arg(root);
        let said = Said::of(host.output().unwrap()).exits(code);
        assert!(said.err.contains(why), "{arguments:?}: {said:?}");
        assert!(said.out.is_empty() && !scratch.join("var").exists());
    }
    let mut host = command(&["check", "-"]);
    let said = Said::of(host.stdin(File::open(root).unwrap()).output().unwrap()).exits(1);
    assert!(said.err.contains("s a directory"), "{said:?}");
}
