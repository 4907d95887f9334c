//! What the installation brings besides the binary: the man page says what the help text says, and
//! both it and the unit are what their readers accept.

mod support;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;

use support::{has, skip, Lacks, Scratch};

fn unit(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("unit").join(name)
}

fn host(arguments: &[&str]) -> String {
    let ran = Command::new(env!("CARGO_BIN_EXE_nox-mesh-host")).args(arguments).output().unwrap();
    assert!(ran.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&ran.stderr));
    String::from_utf8(ran.stdout).unwrap()
}

/// The commands that the help text lists: its first block of lines indented by two.
fn commands(help: &str) -> BTreeSet<String> {
    let rows = help.lines().skip_while(|line| *line != "commands:").skip(1);
    let rows = rows.take_while(|line| line.starts_with("  "));
    rows.filter_map(|line| line.split_whitespace().next()).map(String::from).collect()
}

/// The long flags that a help text lists, without their dashes.
fn flags(help: &str) -> BTreeSet<String> {
    let rows = help.lines().filter(|line| line.starts_with("  "));
    let words = rows.flat_map(str::split_whitespace).filter_map(|word| word.strip_prefix("--"));
    let plain = |word: &str| word.trim_end_matches(|c: char| !c.is_alphanumeric()).to_owned();
    words.map(plain).filter(|word| !word.is_empty()).collect()
}

/// What the entries of the man page's lists begin with: commands, and long flags.
fn entries(page: &str) -> (BTreeSet<String>, BTreeSet<String>) {
    let (mut commands, mut flags) = (BTreeSet::new(), BTreeSet::new());
    for line in page.lines() {
        if let Some(entry) = line.strip_prefix(".It Cm ") {
            commands.extend(entry.split(' ').next().map(String::from));
        }
        if line.starts_with(".It Fl ") {
            let long = line.split(' ').filter_map(|word| word.strip_prefix('-'));
            flags.extend(long.map(String::from));
        }
    }
    (commands, flags)
}

#[test]
fn the_man_page_names_every_command_and_flag_and_no_other() {
    let page = std::fs::read_to_string(unit("nox-mesh-host.8")).unwrap();
    let (written_commands, written_flags) = entries(&page);
    let help = host(&["help"]);
    let known = commands(&help);
    assert!(known.contains("apply"), "no commands in {help}");
    assert_eq!(written_commands, known);
    let mut known_flags = flags(&help);
    for command in &known {
        known_flags.extend(flags(&host(&["help", command])));
    }
    assert_eq!(written_flags, known_flags);
}

#[test]
fn the_man_page_is_clean() {
    if !has("man", "the_man_page_is_clean") {
        return;
    }
    let path = unit("nox-mesh-host.8");
    let man = Command::new("man").arg("--warnings").arg("-l").arg(&path).output().unwrap();
    let said = String::from_utf8_lossy(&man.stderr);
    assert!(man.status.success() && said.is_empty(), "{said}");
    assert!(String::from_utf8_lossy(&man.stdout).contains("EXIT STATUS"));
    // mandoc has no --version; where it is not installed, man has looked at the page.
    let lint = ["-Tlint", "-Wwarning"];
    if let Ok(lint) = Command::new("mandoc").args(lint).arg(&path).output() {
        assert!(lint.status.success(), "{}", String::from_utf8_lossy(&lint.stdout));
    }
}

//
#[test]
fn the_unit_is_one_that_systemd_accepts() {
    let name = "the_unit_is_one_that_systemd_accepts";
    if Command::new("systemd-analyze").arg("--version").output().is_err() {
        return skip(name, &Lacks::Machine("systemd"));
    }
    // The check wants the program to be there, which it is under another name.
    let text = std::fs::read_to_string(unit("nox-mesh-host.service")).unwrap();
    let here = text.replace("/usr/bin/nox-mesh-host", env!("CARGO_BIN_EXE_nox-mesh-host"));
    assert_ne!(text, here, "the unit starts something else");
    let here: String = here
        .lines()
        .filter(|line| !line.starts_with("Documentation="))
        .fold(String::new(), |text, line| text + line + "\n");
    let scratch = Scratch::new("unit");
    let path = scratch.join("nox-mesh-host.service");
    std::fs::write(&path, here).unwrap();
    let verify = Command::new("systemd-analyze").arg("verify").arg(&path).output().unwrap();
    let said = String::from_utf8_lossy(&verify.stderr);
    let ours: Vec<&str> = said.lines().filter(|line| line.contains("nox-mesh-host")).collect();
    assert!(verify.status.success() && ours.is_empty(), "{said}");
}

//
#[test]
fn the_unit_restarts_always_and_is_told_when_the_host_is_ready() {
    let text = std::fs::read_to_string(unit("nox-mesh-host.service")).unwrap();
    for line in [
        "Type=notify",
        "Restart=always",
        "RestartSec=5s",
        "StateDirectory=mesh-host",
        "StateDirectoryMode=0700",
        "RuntimeDirectory=mesh-host",
        "KillMode=mixed",
        "WantedBy=multi-user.target",
    ] {
        assert!(text.lines().any(|have| have == line), "no {line}");
    }
}
