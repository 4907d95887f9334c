//! The commands and flags: one entry each, read by the parser and by the help text.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use super::{text, Color, Invocation};
use crate::declaration::fault::quoted;
use crate::error::Error;

/// A command that this host knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Run,
    Apply,
    Plan,
    Check,
    Reconcile,
    Status,
    Owned,
    Journal,
    Pause,
    Resume,
    Rescue,
    Schema,
    Unit,
    Version,
    Help,
}

/// What a command looks like from outside.
pub(crate) struct CommandEntry {
    pub command: Command,
    pub name: &'static str,
    /// Its operands as help shows them.
    pub usage: &'static str,
    /// What is missing when there are too few.
    pub wants: &'static str,
    /// Fewest and most operands.
    pub operands: (usize, usize),
    /// Long names of the flags it takes besides those that every command takes.
    pub flags: &'static [&'static str],
    pub summary: &'static str,
    pub detail: &'static str,
}

/// What a flag looks like from outside, and what it sets.
pub(crate) struct Flag {
    pub long: &'static str,
    pub short: Option<char>,
    /// The name of its value, where it takes one.
    pub value: Option<&'static str>,
    /// Every command takes it.
    pub everywhere: bool,
    pub summary: &'static str,
    pub set: fn(&mut Invocation, OsString) -> Result<(), Error>,
}

impl Command {
    pub(crate) fn named(name: &str) -> Option<Command> {
        COMMANDS.iter().find(|entry| entry.name == name).map(|entry| entry.command)
    }

    pub(crate) fn entry(self) -> &'static CommandEntry {
        let mine = |entry: &&CommandEntry| entry.command == self;
        COMMANDS.iter().find(mine).expect("every command has its entry")
    }
}

pub(crate) static COMMANDS: &[CommandEntry] = &[
    CommandEntry {
        command: Command::Run,
        name: "run",
        usage: "",
        wants: "",
        operands: (0, 0),
        flags: &[],
        summary: "be the service: hold the machine to what it was told",
        detail:
            "Stays in the foreground. A pass is made at the start, by the timer, when somebody \
                 changed the store, and within a second of the moment at which something declared \
                 was altered. SIGHUP reads the configuration again and makes a pass at once; \
                 SIGTERM lets the pass that runs finish the resource in hand. The service manager \
                 is told what is going on, and log lines carry priorities where the journal reads \
                 them.",
    },
    CommandEntry {
        command: Command::Apply,
        name: "apply",
        usage: "FILE | --bundle [FILE]",
        wants: "a declaration FILE, - for standard input, or --bundle",
        operands: (1, 1),
        flags: &["bundle", "take"],
        summary: "make this machine match a declaration, once",
        detail: "FILE holds a declaration; - reads it from standard input. Nothing is touched \
                 unless all of it is understood. Each resource is made to match in the order \
                 given, looked at again, and recorded; what an earlier declaration made and \
                 this one no longer names is removed, last of all. A second run finds nothing \
                 to do.\n\n\
                 With --bundle the file must belong to root, or to the user the host runs as, and \
                 be writable by nobody else; then it may carry actions. Without a FILE it is \
                 ROOT/etc/mesh-host/substrate.lock.",
    },
    CommandEntry {
        command: Command::Plan,
        name: "plan",
        usage: "FILE | --bundle [FILE]",
        wants: "a declaration FILE, - for standard input, or --bundle",
        operands: (1, 1),
        flags: &["bundle", "take", "exit-code"],
        summary: "show what apply would do, with diffs; changes nothing",
        detail: "Looks at the machine as apply would and shows each difference. Nothing is \
                 written, not even to the host's own state. Where the outcome hangs on a \
                 resource that is not there yet, it says which. The checks of a bundle's actions \
                 are run: they are how it looks.",
    },
    CommandEntry {
        command: Command::Check,
        name: "check",
        usage: "FILE | --bundle [FILE]",
        wants: "a declaration FILE, - for standard input, or --bundle",
        operands: (1, 1),
        flags: &["bundle"],
        summary: "read a declaration and list what is wrong with it",
        detail: "Only the declaration is read: no machine is looked at. Every fault is listed, \
                 with the resource, the field and what would mend it.",
    },
    CommandEntry {
        command: Command::Reconcile,
        name: "reconcile",
        usage: "",
        wants: "",
        operands: (0, 0),
        flags: &[],
        summary: "hold this machine to what it was told before",
        detail: "One pass over the declarations that the store holds: bundle, local, link. \
                 Drift is corrected; what failed before is tried again.",
    },
    CommandEntry {
        command: Command::Status,
        name: "status",
        usage: "",
        wants: "",
        operands: (0, 0),
        flags: &[],
        summary: "say whether this machine is what it was told to be",
        detail: "What each source declared and whether it was applied whole, the last pass, \
                 what keeps failing, since when and why, and whether a person holds the machine \
                 still.",
    },
    CommandEntry {
        command: Command::Owned,
        name: "owned",
        usage: "",
        wants: "",
        operands: (0, 0),
        flags: &[],
        summary: "list what this host owns",
        detail: "From the store, in order of making: each object with the id and source that \
                 declare it, since when, and whether the host created or adopted it.",
    },
    CommandEntry {
        command: Command::Journal,
        name: "journal",
        usage: "",
        wants: "",
        operands: (0, 0),
        flags: &["count", "follow", "verify"],
        summary: "show the store's records",
        detail: "The newest last. --verify checks every line instead and says what it found.",
    },
    CommandEntry {
        command: Command::Pause,
        name: "pause",
        usage: "--reason WHY [--for TIME]",
        wants: "a reason",
        operands: (0, 0),
        flags: &["reason", "for"],
        summary: "hold still: accept declarations, apply nothing",
        detail: "Until resume, or for as long as --for says, declarations are accepted and \
                 stored but nothing is applied. The reason is shown wherever somebody will \
                 look.",
    },
    CommandEntry {
        command: Command::Resume,
        name: "resume",
        usage: "",
        wants: "",
        operands: (0, 0),
        flags: &[],
        summary: "end a pause; the next pass applies what was accepted",
        detail: "Nothing is applied by resume itself: run reconcile to apply at once.",
    },
    CommandEntry {
        command: Command::Rescue,
        name: "rescue",
        usage: "--discard-state",
        wants: "--discard-state",
        operands: (0, 0),
        flags: &["discard-state"],
        summary: "set local state aside, so that it is derived anew",
        detail: "The journal and the secrets are moved into a directory of their own beside \
                 them, never deleted; identity and serial floor are kept. The host then owns \
                 nothing: what it made stays on the machine and is adopted by the next \
                 declaration that names it.",
    },
    CommandEntry {
        command: Command::Schema,
        name: "schema",
        usage: "",
        wants: "",
        operands: (0, 0),
        flags: &[],
        summary: "print the JSON Schema of a declaration, for editors",
        detail: "JSON Schema 2020-12, made from the tables that the parser itself reads.",
    },
    CommandEntry {
        command: Command::Unit,
        name: "unit",
        usage: "",
        wants: "",
        operands: (0, 0),
        flags: &[],
        summary: "print the systemd unit, where no package brought it",
        detail: "Redirect it to /etc/systemd/system/nox-mesh-host.service.",
    },
    CommandEntry {
        command: Command::Version,
        name: "version",
        usage: "",
        wants: "",
        operands: (0, 0),
        flags: &[],
        summary: "print the version",
        detail: "",
    },
    CommandEntry {
        command: Command::Help,
        name: "help",
        usage: "[COMMAND]",
        wants: "",
        operands: (0, 1),
        flags: &[],
        summary: "print this, or what a command does",
        detail: "",
    },
];

pub(crate) static FLAGS: &[Flag] = &[
    Flag {
        long: "root",
        short: None,
        value: Some("DIR"),
        everywhere: true,
        summary: "work on the tree at DIR, such as a mounted disk [/]",
        set: |it, value| set(&mut it.root, path("root", value)?),
    },
    Flag {
        long: "state",
        short: None,
        value: Some("DIR"),
        everywhere: true,
        summary: "the host's own state [ROOT/var/lib/mesh-host]",
        set: |it, value| set(&mut it.state, path("state", value)?),
    },
    Flag {
        long: "config",
        short: None,
        value: Some("FILE"),
        everywhere: true,
        summary: "the configuration [ROOT/etc/mesh-host/config.json]",
        set: |it, value| set(&mut it.config, path("config", value)?),
    },
    Flag {
        long: "json",
        short: None,
        value: None,
        everywhere: true,
        summary: "print one JSON document",
        set: |it, _| raise(&mut it.json),
    },
    Flag {
        long: "color",
        short: None,
        value: Some("WHEN"),
        everywhere: true,
        summary: "auto, always or never [auto]; NO_COLOR is honoured",
        set: |it, value| {
            it.color = match text(value)?.as_str() {
                "auto" => Color::Auto,
                "always" => Color::Always,
                "never" => Color::Never,
                other => {
                    let why = format!("--color wants auto, always or never, not {}", quoted(other));
                    return Err(Error::Usage(why));
                }
            };
            Ok(())
        },
    },
    Flag {
        long: "quiet",
        short: Some('q'),
        value: None,
        everywhere: true,
        summary: "print errors only",
        set: |it, _| raise(&mut it.quiet),
    },
    Flag {
        long: "verbose",
        short: Some('v'),
        value: None,
        everywhere: true,
        summary: "name what was found unchanged too, and show diffs",
        set: |it, _| raise(&mut it.verbose),
    },
    Flag {
        long: "help",
        short: Some('h'),
        value: None,
        everywhere: true,
        summary: "say what the command does",
        set: |it, _| raise(&mut it.help),
    },
    Flag {
        long: "bundle",
        short: None,
        value: None,
        everywhere: false,
        summary: "the file is a bundle: root's own, and may carry actions",
        set: |it, _| raise(&mut it.bundle),
    },
    Flag {
        long: "take",
        short: None,
        value: None,
        everywhere: false,
        summary: "take over what another source owns, for good",
        set: |it, _| raise(&mut it.take),
    },
    Flag {
        long: "exit-code",
        short: None,
        value: None,
        everywhere: false,
        summary: "exit 10 when there is something to change",
        set: |it, _| raise(&mut it.exit_code),
    },
    Flag {
        long: "count",
        short: Some('n'),
        value: Some("N"),
        everywhere: false,
        summary: "the last N records only [20]",
        set: |it, value| {
            let value = text(value)?;
            let count = value.parse().map_err(|_| {
                Error::Usage(format!("-n wants a number of records, not {}", quoted(&value)))
            })?;
            set(&mut it.count, count)
        },
    },
    Flag {
        long: "follow",
        short: Some('f'),
        value: None,
        everywhere: false,
        summary: "go on, with each record as it is written",
        set: |it, _| raise(&mut it.follow),
    },
    Flag {
        long: "verify",
        short: None,
        value: None,
        everywhere: false,
        summary: "check every line",
        set: |it, _| raise(&mut it.verify),
    },
    Flag {
        long: "reason",
        short: None,
        value: Some("WHY"),
        everywhere: false,
        summary: "why, for whoever looks next",
        set: |it, value| set(&mut it.reason, text(value)?),
    },
    Flag {
        long: "for",
        short: None,
        value: Some("TIME"),
        everywhere: false,
        summary: "how long: 90s, 30m, 2h, 3d",
        set: |it, value| set(&mut it.pause_for, duration(&text(value)?)?),
    },
    Flag {
        long: "discard-state",
        short: None,
        value: None,
        everywhere: false,
        summary: "set the journal and the secrets aside",
        set: |it, _| raise(&mut it.discard_state),
    },
];

fn set<T>(slot: &mut Option<T>, value: T) -> Result<(), Error> {
    *slot = Some(value);
    Ok(())
}

fn raise(slot: &mut bool) -> Result<(), Error> {
    *slot = true;
    Ok(())
}

fn path(flag: &str, value: OsString) -> Result<PathBuf, Error> {
    match value.is_empty() {
        true => Err(Error::Usage(format!("--{flag} wants a path, not nothing"))),
        false => Ok(value.into()),
    }
}

/// A span of time as people write it: a whole number and `s`, `m`, `h` or `d`.
fn duration(text: &str) -> Result<Duration, Error> {
    let wrong = || {
        Error::Usage(format!(
            "--for wants a span such as 30m, 2h or 3d, at most 366d, not {}",
            quoted(text)
        ))
    };
    let unit = text.chars().last().ok_or_else(wrong)?;
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3600,
        'd' => 86400,
        _ => return Err(wrong()),
    };
    let count: u64 = text[..text.len() - 1].parse().map_err(|_| wrong())?;
    match count.checked_mul(seconds) {
        Some(span @ 1..=31_622_400) => Ok(Duration::from_secs(span)),
        _ => Err(wrong()),
    }
}

/// The help text of the program, or of one command.
pub(crate) fn help(command: Option<Command>) -> String {
    let mut out = String::new();
    match command.map(Command::entry) {
        None => {
            out.push_str("Makes this machine match a declaration, and records what it made.\n");
            out.push_str("usage: nox-mesh-host COMMAND [FLAG ...]\ncommands:\n");
            for entry in COMMANDS {
                let operand = if entry.operands == (1, 1) { "FILE" } else { "" };
                out.push_str(&row(&format!("{} {operand}", entry.name), entry.summary));
            }
            out.push_str("flags, before or after the command:\n");
            flags(&mut out, |flag| flag.everywhere);
            out.push_str(
                "exit codes: 0 done, 1 failed, 2 usage, 3 declaration refused, 4 another pass\n\
                 holds the lock, 5 link refused, 6 store damaged, 10 plan --exit-code: changes\n",
            );
        }
        Some(entry) => {
            let usage = format!("{} {}", entry.name, entry.usage);
            out.push_str(&format!("usage: nox-mesh-host {} [FLAG ...]\n\n", usage.trim_end()));
            out.push_str(&format!("{}.\n", capitalised(entry.summary)));
            if !entry.detail.is_empty() {
                out.push_str(&format!("\n{}\n", wrapped(entry.detail)));
            }
            if !entry.flags.is_empty() {
                out.push_str("\nflags:\n");
                flags(&mut out, |flag| entry.flags.contains(&flag.long));
            }
            out.push_str("\nflags of every command:\n");
            flags(&mut out, |flag| flag.everywhere);
        }
    }
    out
}

fn flags(out: &mut String, wanted: impl Fn(&Flag) -> bool) {
    for flag in FLAGS.iter().filter(|flag| wanted(flag)) {
        let short = flag.short.map_or("    ".into(), |short| format!("-{short}, "));
        let value = flag.value.map_or(String::new(), |value| format!(" {value}"));
        out.push_str(&row(&format!("{short}--{}{value}", flag.long), flag.summary));
    }
}

fn row(left: &str, right: &str) -> String {
    format!("  {:<19} {right}\n", left.trim_end())
}

fn capitalised(text: &str) -> String {
    let mut rest = text.chars();
    rest.next().map_or(String::new(), |first| first.to_uppercase().chain(rest).collect())
}

/// Paragraphs filled to 80 columns.
fn wrapped(text: &str) -> String {
    let paragraph = |text: &str| {
        let mut lines = vec![String::new()];
        for word in text.split_whitespace() {
            let line = lines.last_mut().expect("there is always a line");
            if line.len() + 1 + word.len() > 80 {
                lines.push(word.into());
            } else if line.is_empty() {
                line.push_str(word);
            } else {
                line.push(' ');
                line.push_str(word);
            }
        }
        lines.join("\n")
    };
    text.split("\n\n").map(paragraph).collect::<Vec<_>>().join("\n\n")
}
