//! Whoever starts the host, and with whatever mask and limits: it does the same.

mod support;

use std::process::Command;

use support::root::{run, Root, Run, HOST};

/// A pass over `resources`, started by a shell that has done `first`.
fn after(first: &str, root: &Root, resources: &str) -> Run {
    let declaration = root.declare("d", &support::root::declared(resources));
    let script = format!("{first}; exec \"$@\"");
    let mut command = Command::new("sh");
    command.args(["-c", &script, "sh", HOST, "apply", &declaration, "--root"]);
    run(command.arg(root.dir()).current_dir("/"))
}

// R-30
#[test]
fn the_store_and_what_is_placed_have_their_modes_whatever_the_umask() {
    for umask in ["0777", "0000", "0077"] {
        let root = Root::new(&format!("umask-{umask}"));
        let file = r#"{"id":"f","type":"file","path":"/s/f","content":"x"}"#;
        let ran = after(&format!("umask {umask}"), &root, file);
        assert_eq!(ran.code, 0, "{umask}: {}", ran.err);
        let modes = ["/var", "/var/lib", "/var/lib/mesh-host", "/s/f"].map(|at| root.mode(at));
        assert_eq!(modes, [0o755, 0o755, 0o700, 0o644], "{umask}");
        assert_eq!(root.mode("/var/lib/mesh-host/journal.jsonl"), 0o600, "{umask}");
    }
}

// R-4
#[test]
fn a_limit_on_the_size_of_files_fails_the_pass_and_does_not_end_the_host() {
    let root = Root::new("fsize");
    let content = "x".repeat(300 << 10);
    let file = format!(r#"{{"id":"f","type":"file","path":"/s/f","content":"{content}"}}"#);
    let ran = after("ulimit -f 64", &root, &file);
    assert!(ran.code > 0 && ran.err.contains("File too large"), "{} {}", ran.code, ran.err);
    assert!(!root.has("/s/f"));
    root.converge(&file).expect(0, &["f created"]);
}
