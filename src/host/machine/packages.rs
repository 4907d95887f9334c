//! Packages: which manager the machine has, what it lists, and installing.
//!
//! A manager that installs is not ended with us: pacman or dpkg cut off in the middle leaves a
//! package by half. It runs in a scope of its own where there is systemd, so that neither a stop
//! nor a kill of the host reaches it. What is left behind of one that was cut off all the same (a
//! power cut) is cleared away only where an intent of our own says that it was ours.

use std::collections::HashSet;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::child::{self, Bond, Call, Ended, How};
use super::clock::Deadline;
use super::package_lock::seconds;
use super::units;
use super::words::quoted;
use super::Machine;
use crate::resource::package::{Install, Presence};
use crate::resource::{Access, Entry, Found, RootPath, Trouble};
use crate::tool::apt::Apt;
use crate::tool::installer::{Argv, Installer, List, Manner, Offer, Said};
use crate::tool::pacman::Pacman;

/// Every manager that is known.
static INSTALLERS: [&dyn Installer; 2] = [&Pacman, &Apt];

/// The most that a list of packages may take, in bytes.
const LARGEST_LIST: usize = 32 << 20;
/// The most that is read of os-release(5), in bytes.
const LARGEST_RELEASE: u64 = 64 << 10;
/// What taking back may take, though the limit has passed.
const LEAST: Duration = Duration::from_secs(60);
/// How often an installation is tried: as it is, then over what was left in its way.
const TRIES: usize = 2;
/// How long systemd waits for an installation when the machine goes down.
const SCOPE: [&str; 7] = [
    "systemd-run",
    "--scope",
    "--collect",
    "--quiet",
    "--property=KillSignal=SIGINT",
    "--property=TimeoutStopSec=900",
    "--",
];

static ANY_ACCESS: Access = Access { mode: None, owner: None, group: None };

/// What is known of the packages of a machine until something may change them.
#[derive(Debug)]
pub(super) struct Packages {
    root: PathBuf,
    known: Option<Result<Known, Trouble>>,
    /// What this process installed and saw to its end.
    finished: HashSet<Box<str>>,
}

#[derive(Clone, Debug)]
struct Known {
    manager: &'static dyn Installer,
    list: List,
    /// The manager's lock was there: someone is at it, or was cut off.
    locked: bool,
}

impl Packages {
    /// Of the machine under `root`.
    pub fn of(root: &Path) -> Packages {
        Packages { root: root.to_path_buf(), known: None, finished: HashSet::new() }
    }

    pub fn forget(&mut self) {
        self.known = None;
    }
}

impl Machine {
    /// How far the package `name` is there.
    pub(super) fn presence(&mut self, name: &str, limit: Duration) -> Result<Presence, Trouble> {
        if self.packages.known.is_none() {
            let known = self.list_packages(limit);
            self.packages.known = Some(known);
        }
        let known = self.packages.known.take().expect("it has just been filled");
        let presence = match &known {
            Ok(known) => Ok(self.presence_in(known, name)),
            Err(trouble) => Err(trouble.clone()),
        };
        self.packages.known = Some(known);
        presence
    }

    fn presence_in(&mut self, known: &Known, name: &str) -> Presence {
        let Some(listed) = known.list.get(name) else { return Presence::Absent };
        if let Some(how) = &listed.by_half {
            return Presence::Half(format!("{how} only"));
        }
        if self.lacks_proof(known.manager, name, &listed.version) {
            return Presence::Half("listed, yet cut off while it was unpacked".into());
        }
        match known.locked && !self.packages.finished.contains(name) {
            true => Presence::Doubtful("an installation has not ended, or was cut off"),
            false => Presence::Whole,
        }
    }

    fn lacks_proof(&mut self, manager: &dyn Installer, name: &str, version: &str) -> bool {
        let Some(proof) = manager.proof(name, version) else { return false };
        let Ok(path) = RootPath::parse(&proof) else { return false };
        match self.entry(&path) {
            Some(Entry::File { size, .. }) => size == 0,
            _ => true,
        }
    }

    /// Lists all that there is, in one process.
    fn list_packages(&mut self, limit: Duration) -> Result<Known, Trouble> {
        let manager = self.manager()?;
        let doing = "list the packages that are there";
        let argv = manager.list(&self.package_root()?);
        let list = self.run_manager(manager, doing, &argv, limit, |said| manager.listed(said))?;
        let locked = self.held(manager)?.is_some();
        Ok(Known { manager, list, locked })
    }

    /// The package manager of the machine: by its database, and where there are several by the
    /// distribution's name.
    fn manager(&mut self) -> Result<&'static dyn Installer, Trouble> {
        let there = |machine: &mut Machine, manager: &dyn Installer| {
            RootPath::parse(manager.database()).is_ok_and(|path| machine.entry(&path).is_some())
        };
        let mut found: Vec<_> = INSTALLERS.into_iter().filter(|it| there(self, *it)).collect();
        if found.len() > 1 {
            let ids = self.distribution();
            let first = ids.iter().find_map(|id| found.iter().find(|it| it.serves(id)));
            if let Some(first) = first.copied() {
                found = vec![first];
            }
        }
        let doing = "choose the package manager";
        match found[..] {
            [one] => Ok(one),
            [] => {
                let known = INSTALLERS.map(|it| format!("{} ({})", it.name(), it.database()));
                let cause = format!("there is none that is known: no {}", known.join(", no "));
                Err(Trouble::new(doing, cause))
            }
            [..] => {
                let names: Vec<_> = found.iter().map(|it| it.name()).collect();
                let names = names.join(" and ");
                let cause = format!("{names} are there, and os-release(5) says for neither");
                Err(Trouble::new(doing, cause))
            }
        }
    }

    /// What os-release(5) calls the distribution, and then those that it is like.
    fn distribution(&mut self) -> Vec<String> {
        let places = ["/etc/os-release", "/usr/lib/os-release"];
        let mut paths = places.iter().filter_map(|path| RootPath::parse(path).ok());
        let text = paths.find_map(|path| self.read_text(&path, LARGEST_RELEASE));
        let text = String::from_utf8_lossy(&text.unwrap_or_default()).into_owned();
        let value = |key: &str| {
            let line = text.lines().rev().find_map(|line| line.strip_prefix(key));
            line.unwrap_or_default().trim_matches(['"', '\'']).to_string()
        };
        let all = [value("ID="), value("ID_LIKE=")].join(" ");
        all.split_whitespace().map(str::to_string).collect()
    }

    /// What is at `path`, as far as that can be seen.
    fn entry(&mut self, path: &RootPath) -> Option<Entry> {
        match self.look(path, None, &ANY_ACCESS, Duration::ZERO).ok()?.found {
            Found::Entry { kind, .. } => Some(kind),
            _ => None,
        }
    }

    fn package_root(&self) -> Result<String, Trouble> {
        if self.is_host {
            return Ok("/".into());
        }
        let path = self.packages.root.canonicalize().ok();
        let text = path.and_then(|path| path.to_str().map(str::to_string));
        let shown = || quoted(self.packages.root.as_os_str().as_encoded_bytes());
        text.ok_or_else(|| {
            Trouble::new(format!("name the root {}", shown()), "its path is not text")
        })
    }

    /// Installs a package, and finishes what an earlier run of ours left by half.
    pub(super) fn install(&mut self, install: Install, limit: Duration) -> Result<(), Trouble> {
        let done = self.try_install(install, Deadline::after(limit));
        if done.is_ok() {
            self.packages.finished.insert(install.name.into());
        }
        self.forget();
        done
    }

    fn try_install(&mut self, install: Install, until: Deadline) -> Result<(), Trouble> {
        let Install { name, begun } = install;
        let doing = format!("install package {name}");
        let manager = self.manager()?;
        let root = self.package_root()?;
        let was_cut = self.await_lock(manager, begun, &doing, until)?;
        if begun.is_some() {
            if let Some(argv) = manager.resume(&root) {
                self.change(manager, &doing, &argv, until)?;
            }
        }
        let mut known = self.list_packages(until.left())?;
        if begun.is_some() {
            self.unlist_halves(&mut known, &doing, until)?;
        }
        // It may have come while another had the lock.
        let there = known.list.get(name).cloned();
        let whole = there.as_ref().is_some_and(|it| it.by_half.is_none());
        if let Some(it) = there.as_ref().filter(|_| whole && !was_cut) {
            if self.lacks_proof(manager, name, &it.version) {
                let cause = "someone else was cut off while it was unpacked: take it out of the \
                             database, and move its files away";
                return Err(Trouble::new(doing, cause));
            }
            return Ok(());
        }
        let offered = self.offered(manager, name, &doing, until)?;
        // A newer one is not what was being installed: nobody asked for it.
        if whole && there.is_some_and(|it| *it.version != *offered) {
            return Ok(());
        }
        // What it needs may have been cut off as well, and comes along.
        let broken = known.list.iter().filter(|(other, it)| it.broken && &***other != name);
        let broken = broken.map(|(other, _)| &**other).filter(|_| begun.is_some());
        let names: Vec<&str> = broken.chain([name]).collect();
        let again = whole || known.list.get(name).is_some_and(|it| it.broken) || names.len() > 1;
        let mut manner = if again { Manner::Again } else { Manner::Missing };
        let mut ours = Vec::new();
        for _ in 0..TRIES {
            let argv = manager.install(&root, &names, manner);
            let ended = self.spawn(manager, &doing, &argv, until)?;
            let text = Text::of(&ended, manager.name());
            let Some(hitch) = manager.hitch(&text.said()) else { return Ok(()) };
            let left = begun.filter(|_| ours.is_empty() && !hitch.in_the_way.is_empty());
            match left {
                Some(begun) if self.all_since(&hitch.in_the_way, begun) => {
                    ours = hitch.in_the_way;
                    manner = Manner::Over(&ours);
                }
                _ => {
                    let cause = self.take_back(&known, hitch.by_half, hitch.cause, until);
                    return Err(Trouble::new(doing, cause));
                }
            }
        }
        Err(Trouble::new(doing, "files that an interruption left stay in its way"))
    }

    /// The version that is offered by exactly this name.
    fn offered(
        &mut self,
        manager: &'static dyn Installer,
        name: &str,
        doing: &str,
        until: Deadline,
    ) -> Result<String, Trouble> {
        let root = self.package_root()?;
        let argv = manager.inquire(&root, name);
        let read = |said: &Said| manager.offer(name, said);
        let others = match self.run_manager(manager, doing, &argv, until.left(), read)? {
            Offer::Package(version) => return Ok(version),
            Offer::Others(names) => names,
            Offer::Nothing(cause) => {
                let names = |said: &Said| Ok(said.out.lines().map(str::to_string).collect());
                let names: Vec<_> = match manager.instead(&root, name) {
                    Some(argv) => self.run_manager(manager, doing, &argv, until.left(), names)?,
                    None => Vec::new(),
                };
                if names.is_empty() {
                    return Err(Trouble::new(doing, cause));
                }
                names
            }
        };
        let is_group = match manager.group(&root, name) {
            None => false,
            Some(argv) => {
                let in_it = |said: &Said| Ok(said.well && !said.out.is_empty());
                self.run_manager(manager, doing, &argv, until.left(), in_it)?
            }
        };
        let names = quoted(others.join(", ").as_bytes());
        let cause = match is_group {
            true => format!("it is a group, of {names}; declare those that are wanted"),
            false => format!(
                "no package is called so, it is only provided by {names}; declare the one that \
                 is wanted"
            ),
        };
        Err(Trouble::new(doing, cause))
    }

    /// Takes out of the database what was cut off while it was unpacked: it can neither be
    /// installed again nor over. Its files stay, to be installed over.
    fn unlist_halves(
        &mut self,
        known: &mut Known,
        doing: &str,
        until: Deadline,
    ) -> Result<(), Trouble> {
        let all: Vec<_> =
            known.list.iter().map(|(name, it)| (name.clone(), it.version.clone())).collect();
        let halves: Vec<_> = all
            .into_iter()
            .filter(|(name, version)| self.lacks_proof(known.manager, name, version))
            .map(|(name, _)| name)
            .collect();
        let names: Vec<&str> = halves.iter().map(|name| &**name).collect();
        let argv = known.manager.unlist(&self.package_root()?, &names);
        let Some(argv) = argv.filter(|_| !names.is_empty()) else { return Ok(()) };
        self.change(known.manager, doing, &argv, until)?;
        known.list.retain(|name, _| !halves.contains(name));
        Ok(())
    }

    /// What came by half, and was not there before, goes again: it would pass for a package.
    fn take_back(
        &mut self,
        before: &Known,
        halves: Vec<String>,
        cause: String,
        until: Deadline,
    ) -> String {
        let names: Vec<&str> = halves.iter().map(String::as_str).collect();
        let new = |names: &[&str]| names.iter().all(|name| !before.list.contains_key(*name));
        let root = self.package_root().unwrap_or_default();
        let argv = before.manager.take_back(&root, &names);
        let Some(argv) = argv.filter(|_| !names.is_empty() && new(&names)) else { return cause };
        let until = Deadline::after(until.left().max(LEAST));
        match self.change(before.manager, "take it back", &argv, until) {
            Ok(()) => format!("{cause}; what had come of it is taken back"),
            Err(trouble) => {
                format!("{cause}; what had come of it stays, by half: {}", trouble.cause)
            }
        }
    }

    /// All of these were put there since `begun`.
    fn all_since(&mut self, paths: &[String], begun: u64) -> bool {
        paths.iter().all(|path| {
            let path = RootPath::parse(path).ok();
            path.and_then(|path| self.opened(&path))
                .and_then(|file| file.metadata().ok())
                .is_some_and(|meta| !meta.is_dir() && seconds(meta.ctime()) >= begun)
        })
    }

    /// Asks the manager something that changes nothing.
    fn run_manager<T>(
        &self,
        manager: &dyn Installer,
        doing: &str,
        argv: &Argv,
        limit: Duration,
        read: impl Fn(&Said) -> Result<T, String>,
    ) -> Result<T, Trouble> {
        let argv: Vec<&str> = argv.iter().map(String::as_str).collect();
        let program = argv.first().copied().unwrap_or_default();
        let call = Call { cap: LARGEST_LIST, env: manager.env(), ..Call::new(&argv) };
        let ended = child::run(call, limit);
        let ended = ended.map_err(|unrun| Trouble::new(doing, unrun.into_cause()))?;
        let complete = matches!(ended.how, How::Exited(_)) && !ended.out.cut();
        if !complete {
            return Err(Trouble::new(doing, format!("{program} {}", ended.said())));
        }
        let text = Text::of(&ended, program);
        read(&text.said()).map_err(|cause| Trouble::new(doing, cause))
    }

    /// Has the manager change something that can only work as a whole.
    fn change(
        &mut self,
        manager: &'static dyn Installer,
        doing: &str,
        argv: &Argv,
        until: Deadline,
    ) -> Result<(), Trouble> {
        let ended = self.spawn(manager, doing, argv, until)?;
        let program = argv.first().map_or("", String::as_str);
        let text = Text::of(&ended, program);
        match manager.hitch(&text.said()) {
            None => Ok(()),
            Some(hitch) => Err(Trouble::new(doing, hitch.cause)),
        }
    }

    /// Runs what must not end with us.
    fn spawn(
        &mut self,
        manager: &'static dyn Installer,
        doing: &str,
        argv: &Argv,
        until: Deadline,
    ) -> Result<Ended, Trouble> {
        self.forget();
        let scope: &[&str] = if units::is_managed() { &SCOPE } else { &[] };
        let argv: Vec<&str> =
            scope.iter().copied().chain(argv.iter().map(String::as_str)).collect();
        // Both managers finish what they have in hand at an interrupt, and die at a termination:
        // apt-get 2.6.2 then leaves dpkg behind, pacman 6.0.2 its lock.
        let bond = Bond::Free(libc::SIGINT);
        let call = Call { bond, env: manager.env(), cap: 256 << 10, ..Call::new(&argv) };
        child::run(call, until.left()).map_err(|unrun| Trouble::new(doing, unrun.into_cause()))
    }
}

/// What a child said, as text.
struct Text {
    well: bool,
    how: String,
    out: String,
    err: String,
}

impl Text {
    fn of(ended: &Ended, program: &str) -> Text {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (out, err) = (text(ended.out.bytes()), text(ended.err.bytes()));
        Text {
            well: ended.how == How::Exited(0),
            how: format!("{program} {}", ended.how),
            out,
            err,
        }
    }

    fn said(&self) -> Said<'_> {
        Said { well: self.well, how: &self.how, out: &self.out, err: &self.err }
    }
}
