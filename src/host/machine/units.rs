//! The service manager: its units as systemctl(1) tells of them, and what is done to them.
//!
//! All units that will be asked for are asked for at once, and the answers kept until something
//! changes. What runs is started by the manager, so nothing of it ends with the host. A mounted
//! tree has no manager: of its units only the files count.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::ffi::CString;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::child::{self, Call, Ended, How, Unrun};
use super::clock::{pause, Deadline};
use super::root::{Intent, Reached, Root};
use super::sys;
use super::words::{quoted, words as kernel};
use crate::declaration::Own;
use crate::resource::{Answer, RootPath, Trouble};
use crate::tool::systemctl::{self, is_template, Active, FileState, Unit, Verb};

/// The most bytes of names in one command: the kernel takes a good deal more.
const MOST_NAMES: usize = 64 << 10;
/// The longest answer, in bytes: half a kilobyte for each of as many units as fit a command.
const LONGEST_ANSWER: usize = 32 << 20;
/// How long a unit is watched once it has been started: one that cannot work ends at once.
const SETTLING: Duration = Duration::from_secs(1);
/// How often it is looked at meanwhile.
const LOOKS: Duration = Duration::from_millis(100);
/// How long the log of a unit that failed may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// Names a mounted tree to systemctl.
const ROOT_OPTION: &str = "--root=";
/// The most aliases of aliases.
const MOST_LINKS: usize = 8;

const NO_MANAGER: &str = "systemd does not run here: /run/systemd/system is not there";
const NOT_MOUNTED: &str = "what runs belongs to the running machine, not to a mounted tree";

/// What is known of units.
#[derive(Debug)]
pub(super) struct Units {
    /// `--root=…` of a mounted tree.
    tree: Option<String>,
    expected: BTreeSet<Box<str>>,
    known: HashMap<Box<str>, Result<Known, Trouble>>,
}

#[derive(Clone, Debug)]
enum Known {
    Unit(Unit),
    File(FileState),
}

impl Units {
    /// Of the machine under `root`, which is this one's own where `is_host`.
    pub fn new(root: PathBuf, is_host: bool) -> Units {
        let tree = (!is_host).then(|| format!("{ROOT_OPTION}{}", root.display()));
        Units { tree, expected: BTreeSet::new(), known: HashMap::new() }
    }

    /// Notes that `unit` will be asked for.
    pub fn expect(&mut self, unit: &str, enabling: bool) {
        if self.tree.is_none() || enabling {
            self.expected.insert(unit.into());
        }
    }

    /// Forgets every answer.
    pub fn forget(&mut self) {
        self.known.clear();
    }

    /// What is known of `unit`; `enabling` says that its file matters.
    pub fn ask(
        &mut self,
        unit: &str,
        enabling: bool,
        root: &mut Root,
        limit: Duration,
    ) -> Result<Answer, Trouble> {
        if let Some(tree) = &self.tree {
            self.refuse_links(unit, root)?;
            if !enabling {
                return Ok(Answer::NotApplicable(NOT_MOUNTED));
            }
            let tree = Path::new(tree.trim_start_matches(ROOT_OPTION));
            self.refuse_ways_out(unit, tree, root)?;
        }
        if !self.known.contains_key(unit) {
            self.look(unit, limit)?;
        }
        match self.known.get(unit).cloned() {
            Some(Ok(Known::Unit(unit))) => {
                let is_ours = |name| root.own().refuses_unit(name);
                let ours = unit.names.split(' ').find_map(is_ours);
                ours.map_or(Ok(()), |what| Err(touches(&unit.id, what)))?;
                Ok(Answer::Unit(unit))
            }
            Some(Ok(Known::File(file))) => Ok(Answer::UnitFile(file)),
            Some(Err(trouble)) => Err(trouble),
            None => Err(looking(unit, "systemctl did not tell of it")),
        }
    }

    /// Asks for everything that is expected, and for `unit`; where that fails, for it alone.
    fn look(&mut self, unit: &str, limit: Duration) -> Result<(), Trouble> {
        if self.tree.is_none() && !is_managed() {
            return Err(looking(unit, NO_MANAGER));
        }
        let files_only = |name: &&str| self.tree.is_some() || is_template(name);
        let expected = self.expected.iter().map(|name| &**name).filter(|name| *name != unit);
        let (files, units): (Vec<&str>, Vec<&str>) = expected.chain([unit]).partition(files_only);
        // Of the two commands, only the one that tells of this unit.
        let told =
            if files.contains(&unit) { self.files(files, limit) } else { show(units, limit) };
        let told = match told {
            Err(_) if self.expected.len() > 1 && !files_only(&unit) => show(vec![unit], limit),
            told => told,
        };
        self.known.extend(told.map_err(|cause| looking(unit, &cause))?);
        Ok(())
    }

    /// The states of the files of these units.
    fn files(&self, units: Vec<&str>, limit: Duration) -> Result<Told, String> {
        let mut told = Told::new();
        for some in chunks(&units) {
            let mut rest = some;
            while !rest.is_empty() {
                let ended = run(&systemctl::is_enabled(self.tree.as_deref(), rest), limit)?;
                let states = systemctl::file_states(&text(&ended)?)?;
                let answered = rest.iter().zip(&states);
                told.extend(
                    answered.map(|(unit, state)| ((*unit).into(), Ok(Known::File(*state)))),
                );
                let Some(unit) = rest.get(states.len()) else { break };
                // It goes no further than the first that has no file.
                let why = words(&ended);
                let known = match systemctl::says_missing(unit, &why) {
                    true => Ok(Known::File(FileState::Missing)),
                    false if why.contains(unit) => Err(looking(unit, &said(&ended))),
                    false => return Err(said(&ended)),
                };
                told.push(((*unit).into(), known));
                rest = &rest[states.len() + 1..];
            }
        }
        Ok(told)
    }

    /// systemctl follows links as the kernel does, and not inside the tree.
    fn refuse_ways_out(&self, unit: &str, tree: &Path, root: &mut Root) -> Result<(), Trouble> {
        for dir in ["/etc", "/etc/systemd", "/etc/systemd/system"] {
            let path = RootPath::parse(&format!("{dir}/{unit}")).expect("a unit's name is a name");
            let inside = match root.reach(&path, Intent::See, "look at")? {
                Reached::Missing(_) => None,
                Reached::Parent(spot) => Some(sys::stat(&spot.dir.fd)),
            };
            let inside = inside.transpose().map_err(|error| looking(unit, &kernel(&error)))?;
            let followed = std::fs::metadata(tree.join(&dir[1..])).ok();
            let followed = followed.map(|it| (it.dev(), it.ino()));
            if inside.map(|it| it.identity) != followed {
                let cause = format!("a link on the way to {dir} leads out of the tree");
                return Err(looking(unit, &cause));
            }
        }
        Ok(())
    }

    /// In a mounted tree another name is a link; where one leads to the host's own unit, it is not
    /// followed any further.
    fn refuse_links(&self, unit: &str, root: &mut Root) -> Result<(), Trouble> {
        let mut name = unit.to_string();
        for _ in 0..MOST_LINKS {
            let Some(next) = leads_to(&name, root) else { return Ok(()) };
            if let Some(what) = root.own().refuses_unit(&next) {
                return Err(touches(unit, what));
            }
            name = next;
        }
        Ok(())
    }

    /// Does `verb` to `unit`, and watches whether what was started lasts.
    pub fn act(&mut self, unit: &str, verb: Verb, limit: Duration) -> Result<(), Trouble> {
        let failed = |cause: String| Trouble::new(format!("{} {unit}", verb.word()), cause);
        let files_only = matches!(verb, Verb::Enable | Verb::Disable);
        if self.tree.is_some() && !files_only {
            return Err(failed(NOT_MOUNTED.into()));
        }
        let tree = self.tree.as_deref();
        let ended = run(&systemctl::act(tree, verb, false, unit), limit).map_err(failed)?;
        match ended.how {
            How::Exited(0) => {}
            How::Overran(limit) if !files_only => {
                let seconds = limit.as_secs_f32();
                return Err(failed(format!(
                    "it took longer than {seconds} s and goes on; the next pass waits for it again"
                )));
            }
            _ if files_only => return Err(failed(said(&ended))),
            _ => return Err(failed(format!("{}{}", said(&ended), story(unit)))),
        }
        match verb {
            // The links of this boot are another set.
            Verb::Disable if tree.is_none() => {
                let ended = run(&systemctl::act(tree, verb, true, unit), limit).map_err(failed)?;
                match ended.how {
                    How::Exited(0) => Ok(()),
                    _ => Err(failed(said(&ended))),
                }
            }
            Verb::Start | Verb::Restart => settle(unit).map_err(failed),
            _ => Ok(()),
        }
    }

    /// Has the manager read its units' files again, if there is one.
    pub fn reload_manager(&mut self, limit: Duration) -> Result<(), Trouble> {
        if self.tree.is_some() || !is_managed() {
            return Ok(());
        }
        let failed = |cause| Trouble::new("have systemd read its units again", cause);
        let ended = run(&systemctl::RELOAD_MANAGER, limit).map_err(failed)?;
        match ended.how {
            How::Exited(0) => Ok(()),
            _ => Err(failed(said(&ended))),
        }
    }
}

/// systemd runs here, as sd_booted(3) tells it.
pub(super) fn is_managed() -> bool {
    Path::new("/run/systemd/system").is_dir()
}

/// Units, each with what is known of it or why that is nothing.
type Told = Vec<(Box<str>, Result<Known, Trouble>)>;

/// What the manager knows of these units.
fn show(units: Vec<&str>, limit: Duration) -> Result<Told, String> {
    let mut told = Told::new();
    for some in chunks(&units) {
        let ended = run(&systemctl::show(some), limit)?;
        if ended.how != How::Exited(0) {
            return Err(said(&ended));
        }
        let known = systemctl::units(some, &text(&ended)?)?;
        told.extend(some.iter().zip(known).map(|(unit, it)| ((*unit).into(), Ok(Known::Unit(it)))));
    }
    Ok(told)
}

/// Watches a unit that was just started: one whose start says nothing may have ended already.
fn settle(unit: &str) -> Result<(), String> {
    let until = Deadline::after(SETTLING);
    let mut first = None;
    loop {
        let seen = look_at(unit)?;
        if !seen.starts_blindly {
            return Ok(());
        }
        let again = seen.restarts > *first.get_or_insert(seen.restarts);
        let is_over = matches!(seen.active, Active::StartingAgain | Active::Down | Active::Failed);
        if is_over || again {
            return Err(format!("it ended right after its start{}", story_of(&seen)));
        }
        if until.passed() {
            return Ok(());
        }
        pause(LOOKS);
    }
}

fn look_at(unit: &str) -> Result<Unit, String> {
    match show(vec![unit], PATIENCE)?.pop() {
        Some((_, Ok(Known::Unit(unit)))) => Ok(unit),
        _ => Err("systemctl did not tell of it".into()),
    }
}

/// What is known of why a unit does not run.
fn story(unit: &str) -> String {
    look_at(unit).map_or_else(|_| String::new(), |unit| story_of(&unit))
}

fn story_of(unit: &Unit) -> String {
    let ended = unit.ended();
    let lines = log_of(&format!("--unit={}", unit.id));
    match lines.is_empty() {
        true => format!(" ({ended})"),
        false => format!(" ({ended}); its log ends {}", lines.join(", ")),
    }
}

/// The last lines of the log that `which` picks, quoted.
pub(super) fn log_of(which: &str) -> Vec<String> {
    let log = run(&systemctl::log(which), PATIENCE).ok();
    let log = log.map(|ended| text(&ended).unwrap_or_default()).unwrap_or_default();
    log.lines().map(|line| quoted(line.as_bytes())).collect()
}

/// The name that the entry of this name in a directory of units leads to, where it is a link.
fn leads_to(name: &str, root: &mut Root) -> Option<String> {
    Own::unit_directories().iter().find_map(|dir| {
        let path = RootPath::parse(&format!("{dir}/{name}")).ok()?;
        let Ok(Reached::Parent(spot)) = root.reach(&path, Intent::See, "look at") else {
            return None;
        };
        let target = sys::read_link(&spot.dir.fd, &CString::new(name).ok()?).ok()?;
        let target = String::from_utf8(target).ok()?;
        target.rsplit('/').find(|name| !name.is_empty()).map(String::from)
    })
}

/// As many of these names at once as fit a command.
fn chunks<'u, 'a>(units: &'u [&'a str]) -> impl Iterator<Item = &'u [&'a str]> {
    let mut rest = units;
    std::iter::from_fn(move || {
        let mut bytes = 0;
        let fits = |name: &&&str| {
            bytes += name.len() + 1;
            bytes <= MOST_NAMES
        };
        let count = rest.iter().take_while(fits).count();
        let (some, more) = rest.split_at(count);
        rest = more;
        (!some.is_empty()).then_some(some)
    })
}

fn run(argv: &[&str], limit: Duration) -> Result<Ended, String> {
    let call = Call { cap: LONGEST_ANSWER, ..Call::new(argv) };
    child::run(call, limit).map_err(Unrun::into_cause)
}

/// All that a child wrote on its standard output.
fn text(ended: &Ended) -> Result<String, String> {
    ended.answer().map(Cow::into_owned).map_err(|cause| format!("it {cause}"))
}

fn words(ended: &Ended) -> String {
    String::from_utf8_lossy(ended.err.bytes()).into_owned()
}

/// How systemctl ended, and why in its own words.
fn said(ended: &Ended) -> String {
    match (ended.how, systemctl::reason(&words(ended))) {
        (How::Exited(code), Some(reason)) => {
            format!("systemctl exited {code}: {}", quoted(reason.as_bytes()))
        }
        _ => format!("systemctl {}", ended.said()),
    }
}

fn looking(unit: &str, cause: &str) -> Trouble {
    Trouble::new(format!("look at {unit}"), cause)
}

fn touches(unit: &str, what: &str) -> Trouble {
    Trouble { touches_host: true, ..looking(unit, &format!("touches {what}")) }
}
