//! What the README shows is what a person sees: its example is the example, and its console blocks
//! are run, word for word.

mod support;

use std::process::{Command, Stdio};

use support::Scratch;

const README: &str = include_str!("../README.md");

/// The fenced blocks of this language, in their order.
fn blocks(language: &str) -> Vec<&'static str> {
    let fence = format!("```{language}\n");
    let after = README.match_indices(&fence).map(|(at, _)| &README[at + fence.len()..]);
    after.map(|rest| rest.split("```").next().unwrap()).collect()
}

#[test]
fn the_example_shown_is_the_example_that_is_run() {
    assert_eq!(blocks("json"), [include_str!("example.json")]);
}

#[test]
fn what_the_readme_shows_is_what_is_printed() {
    let scratch = Scratch::new("readme");
    std::fs::write(scratch.join("example.json"), include_str!("example.json")).unwrap();
    let mistakes = r#"{"version":1,"resources":[
        {"id":"motd","type":"file","path":"/etc/../motd","contents":"hello\n"}]}"#;
    std::fs::write(scratch.join("mistakes.json"), mistakes).unwrap();
    std::fs::create_dir(scratch.join("tree")).unwrap();
    let mut commands = 0;
    for block in blocks("console") {
        let mut shown = String::new();
        for line in block.lines() {
            let Some(command) = line.strip_prefix("$ ") else { continue };
            shown += &format!("{line}\n{}", said(&scratch, command));
            commands += 1;
        }
        assert_eq!(block, shown);
    }
    assert!(commands >= 6);
}

/// What a command of the README prints: errors first, as they stand above results.
fn said(scratch: &Scratch, command: &str) -> String {
    let host = env!("CARGO_BIN_EXE_nox-mesh-host");
    let run = Command::new("sh")
        .args(["-c", &command.replace("nox-mesh-host", host)])
        .current_dir(scratch.path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let (err, out) =
        (String::from_utf8(run.stderr).unwrap(), String::from_utf8(run.stdout).unwrap());
    err + &out
}
