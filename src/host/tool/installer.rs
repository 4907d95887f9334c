//! What every package manager is asked and has to answer; each is one file beside this. Pure.
//!
//! A manager never upgrades or removes here, and never looks anything up by half a name: what it
//! would take for a group, a pattern or the name of something provided is found out beforehand.

use std::collections::HashMap;
use std::fmt;

use crate::declaration::fault::quoted;

/// A program and its arguments.
pub type Argv = Vec<String>;

/// How a program ended and what it said; where it wrote both to one place, all of that is `out`.
#[derive(Clone, Copy, Debug)]
pub struct Said<'a> {
    /// It exited 0.
    pub well: bool,
    /// How it ended, in a person's words.
    pub how: &'a str,
    /// Its standard output.
    pub out: &'a str,
    /// Its standard error.
    pub err: &'a str,
}

/// A package that a manager's database lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Its version; empty where it does not matter.
    pub version: Box<str>,
    /// How far it is there; `None` for all of it.
    pub by_half: Option<Box<str>>,
    /// So little that only unpacking it again would help.
    pub broken: bool,
}

/// All that is listed, by name.
pub type List = HashMap<Box<str>, Listed>;

/// What a manager can offer by a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Offer {
    /// A package of that very name, in this version.
    Package(String),
    /// None, though these stand for it: they provide it, or are the group of that name.
    Others(Vec<String>),
    /// Nothing, and why, with what would mend it.
    Nothing(String),
}

/// How a manager keeps others out.
#[derive(Clone, Copy, Debug)]
pub enum Lock {
    /// By a file that is there for as long as it works, and may be left behind.
    Made(&'static str),
    /// By record locks on these files, which end with their holder.
    Taken(&'static [&'static str]),
}

/// How to install.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner<'a> {
    /// Unless it is there.
    Missing,
    /// Though it is listed, since not all of it may be there.
    Again,
    /// What is missing, over these files, which an interrupted installation left.
    Over(&'a [String]),
}

/// Why an installation did not work.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hitch {
    /// How it ended, in the tool's own words, and what would mend it.
    pub cause: String,
    /// Files in the way that no package owns.
    pub in_the_way: Vec<String>,
    /// Packages that are listed now though not all of them is there.
    pub by_half: Vec<String>,
}

/// A package manager. `root` is the tree it is to work on: `/`, or where one is mounted.
pub trait Installer: fmt::Debug + Sync {
    /// The program that installs.
    fn name(&self) -> &'static str;

    /// What it keeps its records in, which tells a machine that has it.
    fn database(&self) -> &'static str;

    /// It is the one of the distribution that os-release(5) calls so.
    fn serves(&self, id: &str) -> bool;

    /// How it keeps others out.
    fn lock(&self) -> Lock;

    /// What its processes, and those of others on the same database, are called.
    fn processes(&self) -> &'static [&'static str];

    /// Variables that it is to run with.
    fn env(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    /// Lists all packages in one process.
    fn list(&self, root: &str) -> Argv;

    /// What it listed.
    fn listed(&self, said: &Said) -> Result<List, String>;

    /// A file without which, or with which empty, `name` is not there in full, whatever is listed.
    fn proof(&self, _name: &str, _version: &str) -> Option<String> {
        None
    }

    /// Asks what there is by the name `name`.
    fn inquire(&self, root: &str, name: &str) -> Argv;

    /// What there is.
    fn offer(&self, name: &str, said: &Said) -> Result<Offer, String>;

    /// Asks what would be installed by a name that no package has, a name a line; `None` where
    /// [`Installer::offer`] tells.
    fn instead(&self, _root: &str, _name: &str) -> Option<Argv> {
        None
    }

    /// Asks who is in the group `name`; `None` where there are no groups.
    fn group(&self, _root: &str, _name: &str) -> Option<Argv> {
        None
    }

    /// Installs all of these.
    fn install(&self, root: &str, names: &[&str], manner: Manner) -> Argv;

    /// Why an installation did not work; `None` where it did.
    fn hitch(&self, said: &Said) -> Option<Hitch>;

    /// Finishes what an interruption left in the database; `None` where nothing does.
    fn resume(&self, _root: &str) -> Option<Argv> {
        None
    }

    /// Takes packages out of the database and leaves their files.
    fn unlist(&self, _root: &str, _names: &[&str]) -> Option<Argv> {
        None
    }

    /// Takes back packages that were put there by half just now, with their files.
    fn take_back(&self, _root: &str, _names: &[&str]) -> Option<Argv> {
        None
    }
}

/// What a piece of a tool's words means, and what would mend it.
pub(super) type Mends = [(&'static str, &'static str)];

/// The most lines of a tool's words that are told.
const MOST_LINES: usize = 4;
/// The most characters of such a line.
const LONGEST: usize = 300;

/// How it ended, those of its lines that tell why, and what would mend it.
pub(super) fn cause(said: &Said, tells: impl Fn(&[&str], usize) -> bool, mends: &Mends) -> String {
    let mut cause = said.how.to_string();
    let lines = lines(said);
    let told = (0..lines.len()).filter(|&at| tells(&lines, at));
    let told: Vec<String> = told.take(MOST_LINES).map(|at| shown(lines[at])).collect();
    match (told.is_empty(), lines.last()) {
        (false, _) => cause += &format!(": {}", told.join(", ")),
        (true, Some(last)) => cause += &format!(": {}", shown(last)),
        (true, None) => cause += " and said nothing",
    }
    let meant = mends.iter().find(|(words, _)| lines.iter().any(|line| line.contains(words)));
    if let Some((_, mend)) = meant {
        cause += &format!("; {mend}");
    }
    cause
}

/// The lines of both streams with something on them; of one that was overwritten, its last form.
pub(super) fn lines<'a>(said: &Said<'a>) -> Vec<&'a str> {
    let all = said.err.lines().chain(said.out.lines());
    let all = all.map(|line| line.trim_end().rsplit('\r').next().unwrap_or(line));
    // Control sequences alone are no words: pacman 6.0.2 shows the cursor again as its last.
    all.filter(|line| line.contains(char::is_alphabetic) && !line.starts_with('\u{1b}')).collect()
}

/// `program` with `arguments`.
pub(super) fn argv(program: &str, arguments: &[&str]) -> Argv {
    std::iter::once(&program).chain(arguments).map(|word| word.to_string()).collect()
}

/// A line of a tool's, quoted; of a long one the beginning.
fn shown(line: &str) -> String {
    let line = line.trim();
    match line.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{:?}…", &line[..end]),
        None => format!("{line:?}"),
    }
}

/// Standard output, which ends with a whole line.
pub(super) fn whole<'a>(said: &Said<'a>) -> Result<&'a str, String> {
    match said.out.is_empty() || said.out.ends_with('\n') {
        true => Ok(said.out),
        false => Err("its answer ends in the middle of a line".into()),
    }
}

/// An answer that is not understood.
pub(super) fn strange(line: &str) -> String {
    format!("a line is not understood: {}", quoted(line))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// What a tool that ended so, and said `out`, comes to.
    pub fn said(well: bool, out: &str) -> Said<'_> {
        Said { well, how: if well { "it exited 0" } else { "it exited 1" }, out, err: "" }
    }

    /// Reads `text` cut off at each byte, which must not panic; hands back what was read.
    pub fn cut_anywhere<T>(text: &str, read: impl Fn(&Said) -> Result<T, String>) -> Vec<T> {
        let ends = (0..text.len()).filter(|&end| text.is_char_boundary(end));
        ends.filter_map(|end| read(&said(true, &text[..end])).ok()).collect()
    }

    #[test]
    fn what_a_tool_says_is_quoted_and_capped() {
        let long = "é".repeat(100_000);
        let hostile = format!("error: \u{1b}[2J\nerror: {long}\n");
        let cause = cause(&said(false, &hostile), |_, _| true, &[("error: é", "mend it")]);
        assert!(cause.starts_with("it exited 1: \"error: \\u{1b}[2J\""), "{cause}");
        assert!(cause.ends_with("; mend it") && cause.chars().count() < 2 * LONGEST);
        let silent = super::cause(&said(false, ""), |_, _| true, &[]);
        assert_eq!(silent, "it exited 1 and said nothing");
    }
}
