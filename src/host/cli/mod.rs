//! The command line: argv to an [`Invocation`], and its way to an exit code.
//!
//! A command or a flag is one entry of a table in `table`; the parser and the help text both read
//! it, so that neither can know what the other does not.

mod commands;
mod errand;
mod hold;
mod look;
mod serve;
mod show;
mod table;
mod watch;

use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use lexopt::{Arg, Parser, ValueExt};

use crate::declaration::fault::quoted;
use crate::declaration::near::nearest;
use crate::error::Error;
pub use errand::errand_main;
use table::{Command, Flag, COMMANDS, FLAGS};

/// What a person asked for.
#[derive(Debug, Default)]
pub(crate) struct Invocation {
    pub command: Option<Command>,
    pub operands: Vec<OsString>,
    pub json: bool,
    pub root: Option<PathBuf>,
    pub state: Option<PathBuf>,
    pub config: Option<PathBuf>,
    pub color: Color,
    pub quiet: bool,
    pub verbose: bool,
    pub help: bool,
    pub bundle: bool,
    pub take: bool,
    pub exit_code: bool,
    pub follow: bool,
    pub verify: bool,
    pub count: Option<u64>,
    pub reason: Option<String>,
    pub pause_for: Option<Duration>,
    pub discard_state: bool,
}

/// When to colour what a person reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Color {
    /// On a terminal that `NO_COLOR` does not forbid it.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// Runs the command line `args` (the program's own name not among them).
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args: Vec<OsString> = args.into_iter().collect();
    // A command line that was not understood is still answered in the form that it asked for.
    let json = args.iter().any(|arg| arg == "--json");
    let (command, result) = match parse(args) {
        Ok(invocation) => (invocation.command, commands::run(&invocation)),
        Err(error) => (None, Err(error)),
    };
    match result {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            show::error(&error);
            if json {
                // Where this cannot be written either, standard error has said it.
                let _ = commands::answer(command, &error);
            }
            ExitCode::from(error.exit_code())
        }
    }
}

fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Invocation, Error> {
    let mut parser = Parser::from_args(args);
    let mut invocation = Invocation::default();
    let mut given: Vec<&'static Flag> = Vec::new();
    while let Some(arg) = parser.next().map_err(usage)? {
        let flag = match arg {
            Arg::Value(value) if invocation.command.is_none() => {
                let name = value.to_string_lossy();
                invocation.command = Some(Command::named(&name).ok_or_else(|| unknown(&name))?);
                continue;
            }
            Arg::Value(value) => {
                invocation.operands.push(value);
                continue;
            }
            Arg::Short('V') | Arg::Long("version") if invocation.command.is_none() => {
                invocation.command = Some(Command::Version);
                continue;
            }
            Arg::Short(short) => FLAGS.iter().find(|flag| flag.short == Some(short)),
            Arg::Long(long) => FLAGS.iter().find(|flag| flag.long == long),
        };
        let Some(flag) = flag else {
            let shown = match arg {
                Arg::Short(short) => format!("-{short}"),
                Arg::Long(long) => format!("--{long}"),
                Arg::Value(_) => unreachable!("values were taken above"),
            };
            return Err(unknown_flag(&shown));
        };
        let value = match flag.value {
            Some(_) => Some(parser.value().map_err(usage)?),
            None => None,
        };
        (flag.set)(&mut invocation, value.unwrap_or_default())?;
        given.push(flag);
    }
    check(&invocation, &given)?;
    Ok(invocation)
}

/// A flag or operand that the command has no use for is a mistake, not a thing to pass over.
fn check(invocation: &Invocation, given: &[&'static Flag]) -> Result<(), Error> {
    let Some(command) = invocation.command else {
        return match invocation.help {
            true => Ok(()),
            false => Err(Error::Usage("no command given; see nox-mesh-host help".into())),
        };
    };
    if invocation.help {
        return Ok(());
    }
    let entry = command.entry();
    for flag in given {
        if !flag.everywhere && !entry.flags.contains(&flag.long) {
            let (long, name) = (flag.long, entry.name);
            return Err(Error::Usage(format!(
                "--{long} is not a flag of {name}; see {name} --help"
            )));
        }
    }
    let (least, most) = entry.operands;
    let least = if invocation.bundle { 0 } else { least };
    match invocation.operands.len() {
        count if count < least => {
            Err(Error::Usage(format!("{} wants {}; see {0} --help", entry.name, entry.wants)))
        }
        count if count > most => {
            let extra = quoted(&invocation.operands[most].to_string_lossy());
            Err(Error::Usage(format!("{} does not take {extra}; see {0} --help", entry.name)))
        }
        _ => Ok(()),
    }
}

fn usage(error: lexopt::Error) -> Error {
    const LONGEST: usize = 200;
    let mut said = error.to_string();
    if let Some((cut, _)) = said.char_indices().nth(LONGEST) {
        said.truncate(cut);
        said.push('…');
    }
    Error::Usage(said)
}

fn unknown(name: &str) -> Error {
    let hint = hint(name, COMMANDS.iter().map(|entry| entry.name));
    Error::Usage(format!("unknown command {}; {hint}see nox-mesh-host help", quoted(name)))
}

fn unknown_flag(shown: &str) -> Error {
    let longs = FLAGS.iter().map(|flag| flag.long);
    let hint = shown.strip_prefix("--").map_or(String::new(), |name| hint(name, longs));
    Error::Usage(format!("unknown flag {}; {hint}see nox-mesh-host help", quoted(shown)))
}

/// The name that was begun, or else the nearest, as a question with a `; ` after it.
fn hint<'n>(name: &str, names: impl Iterator<Item = &'n str> + Clone) -> String {
    let begun = names.clone().find(|it| it.starts_with(name) && !name.is_empty());
    let near = begun.or_else(|| nearest(name, names));
    near.map_or(String::new(), |near| format!("did you mean {near:?}? "))
}

/// A flag's value as text.
fn text(value: OsString) -> Result<String, Error> {
    value.string().map_err(usage)
}

impl Invocation {
    /// Whether what goes to `stream` is coloured.
    fn colored(&self, stream: &impl IsTerminal) -> bool {
        match self.color {
            Color::Always => true,
            Color::Never => false,
            // https://no-color.org: present and not empty.
            Color::Auto => {
                let forbidden = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
                stream.is_terminal() && !forbidden
            }
        }
    }
}

/// Writes `text` to standard output; a reader that went away ends the program quietly.
fn print(text: &str) -> Result<(), Error> {
    let mut out = std::io::stdout().lock();
    written_out(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
}

/// Writes one JSON document to standard output, as it is made.
fn print_json(document: &impl serde::Serialize) -> Result<(), Error> {
    let mut out = std::io::BufWriter::with_capacity(64 << 10, std::io::stdout().lock());
    let written = serde_json::to_writer(&mut out, document)
        .map_err(std::io::Error::from)
        .and_then(|()| out.write_all(b"\n"))
        .and_then(|()| out.flush());
    written_out(written)
}

fn written_out(written: std::io::Result<()>) -> Result<(), Error> {
    match written {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Error::failed(crate::error::Stage::Record, "write to standard output", error))
        }
        _ => Ok(()),
    }
}

/// Says that something was done: to a program in `shape`, to a person in words.
fn done(it: &Invocation, shape: &impl serde::Serialize, said: &str) -> Result<u8, Error> {
    if it.json {
        print_json(shape)?;
    } else if !it.quiet {
        print(&format!("{}\n", show::plain(said)))?;
    }
    Ok(0)
}

/// Prints a text that is what the command is for.
fn page(it: &Invocation, schema: &'static str, text: &str) -> Result<u8, Error> {
    #[derive(serde::Serialize)]
    struct Shape<'t> {
        schema: &'static str,
        text: &'t str,
    }
    match it.json {
        true => print_json(&Shape { schema, text }),
        false => print(text),
    }
    .map(|()| 0)
}

/// Whoever read standard output has closed it.
fn reader_left() -> bool {
    let mut poll = libc::pollfd { fd: 1, events: 0, revents: 0 };
    // SAFETY: one initialised pollfd is passed, with a count of one.
    let ready = unsafe { libc::poll(&mut poll, 1, 0) };
    ready > 0 && poll.revents & (libc::POLLERR | libc::POLLHUP) != 0
}
