//! The machine: the only place of the host that looks at it or changes it.
//!
//! Owns how a question is answered and a step taken, and with it every system call and child of a
//! pass. It decides nothing: what to ask and what to do comes from `resource` and `reconcile`.
//! Paths are relative to a root and never leave it; nothing here follows a last name.

mod accounts;
mod beside;
mod bundle;
mod change;
mod child;
mod clock;
mod dial;
mod drift;
mod engine;
mod events;
mod fetch;
mod files;
mod filter;
mod notify;
mod overlays;
mod package_lock;
mod packages;
mod place;
mod root;
mod sync;
mod sys;
mod sysctl;
#[cfg(test)]
mod tests;
mod units;
mod way;
mod words;
mod xattr;

pub use beside::{Beside, End};
pub use bundle::{open_bundle, read_declaration};
pub use clock::{dice, fill, monotonic_us, now, pause, random_id, uptime};
pub use dial::{dial, dialled, look_up_main, Resolver, LOOK_UP_ARGUMENT};
pub use drift::{Armed, Drift, Watched};
pub use events::{wait, Inotify, Seen, Signals, Timer};
pub use fetch::{fetch_main, FETCH_ARGUMENT};
pub use notify::Notify;
pub use place::Staged;
pub use sys::set_out;
pub use way::{addresses, reach};

use std::path::{Path, PathBuf};
use std::time::Duration;

use accounts::{Accounts, Home, Source};
use change::Unremoved;
use child::{Call, Ended, How, Unrun};
use engine::Engine;
use fetch::Fetcher;
use files::Reader;
use filter::Tables;
use overlays::Overlays;
use packages::Packages;
use place::{Dirty, Filling, Site};
use root::{trouble, Intent, Reached, Root, Spot};
use sys::Kind;
use units::Units;
use words::quoted;
pub(crate) use words::words;

use crate::declaration::{Declaration, Own};
use crate::resource::account::{Ask, AskUser};
use crate::resource::wireguard::{Ask as OfOverlay, Interface};
use crate::resource::{
    Access, Answer, CheckAnswer, Command, Found, Holds, Make, Object, PathAnswer, Place, Question,
    Removable, RootPath, Step, Trouble,
};

/// As many descriptors as a large group can use.
const MOST_DESCRIPTORS: usize = 4096;

const NO_KERNEL: &str = "kernel parameters belong to the running kernel, not to a mounted tree";
const NO_FILTER: &str = "the packet filter is the running kernel's, not a mounted tree's";
const NO_ENGINE: &str = "containers belong to the running machine, not to a mounted tree";
const NO_COMMANDS: &str = "commands act on the running machine, not on a mounted tree";

/// How long a tool may take to answer whether a declaration is to be refused.
const PATIENCE: Duration = Duration::from_secs(60);

/// The largest file of systemd's that is fetched, in bytes: its text must be looked at.
const LARGEST_UNIT: u64 = 1 << 20;

/// The machine under one root.
#[derive(Debug)]
pub struct Machine {
    root: Root,
    /// The root is `/` itself.
    is_host: bool,
    /// What it runs as.
    ids: (u32, u32),
    reader: Reader,
    accounts: Accounts,
    units: Units,
    tables: Tables,
    overlays: Overlays,
    engine: Engine,
    fetcher: Fetcher,
    packages: Packages,
    /// The last thing it did was to look.
    looking: bool,
    /// What may be open at once, less what a pass and its children need.
    descriptors: usize,
}

impl Machine {
    /// The machine whose root is the directory `root`; `own` is what no question or step may touch.
    pub fn open(root: &Path, own: Own) -> Result<Machine, Trouble> {
        let failed = |error: std::io::Error| {
            let shown = quoted(root.as_os_str().as_encoded_bytes());
            Trouble::new(format!("open the root {shown}"), words(&error))
        };
        let opened = Root::open(root, own.clone()).map_err(failed)?;
        let host = Root::open(Path::new("/"), own).map_err(failed)?;
        let identity = |root: &Root| sys::stat(&root.top().fd).map(|stat| stat.identity);
        let is_host = identity(&opened).map_err(failed)? == identity(&host).map_err(failed)?;
        let overlays = Overlays::new(opened.own(), is_host);
        Ok(Machine {
            root: opened,
            is_host,
            ids: sys::effective_ids(),
            reader: Reader::new(),
            accounts: Accounts::default(),
            units: Units::new(root.canonicalize().map_err(failed)?, is_host),
            tables: Tables::default(),
            overlays,
            engine: Engine::default(),
            fetcher: Fetcher::default(),
            packages: Packages::of(root),
            looking: true,
            descriptors: sys::raise_descriptors(MOST_DESCRIPTORS).saturating_sub(64).max(8),
        })
    }

    /// How many directories a group of staged steps may stand in, each of which takes a descriptor.
    pub fn descriptors(&self) -> usize {
        self.descriptors
    }

    /// The root is this machine's own: the running kernel and its programs are part of it.
    pub fn is_host(&self) -> bool {
        self.is_host
    }

    /// Has files fetched by another binary of the host than the running one, and none larger than
    /// `largest` bytes.
    pub fn fetch_by(&mut self, program: PathBuf, largest: u64) {
        self.fetcher = Fetcher { program, largest };
    }

    /// Has what the machine makes for the host bear its mark under `key`.
    pub fn mark_by(&mut self, key: [u8; 32]) {
        self.engine.mark_by(key);
    }

    /// Notes what will be asked, so that each tool can be asked once for all of it.
    pub fn expect(&mut self, declaration: &Declaration) {
        for declared in &declaration.resources {
            match declared.resource.question() {
                Question::Path { .. }
                | Question::Sysctl(_)
                | Question::Account(_)
                | Question::Check(_) => {}
                Question::Container { name, .. } => self.engine.expect_container(name),
                Question::Network(name) => self.engine.expect_network(name),
                // Their tools tell of everything that there is, whatever is asked.
                Question::Package(_) | Question::Overlay(_) => {}
                Question::Unit { unit, enabling } => self.units.expect(unit, enabling),
                Question::Table { table, .. } => self.tables.expect(table),
            }
        }
    }

    /// Answers `question`, which may take `limit` where it runs something or reads much.
    pub fn ask(&mut self, question: &Question, limit: Duration) -> Result<Answer, Trouble> {
        match *question {
            Question::Path { path, holds, access } => {
                self.look(path, holds, access, limit).map(Answer::Path)
            }
            Question::Sysctl(_) if !self.is_host => Ok(Answer::NotApplicable(NO_KERNEL)),
            Question::Sysctl(key) => sysctl::read(key)
                .map(Answer::Sysctl)
                .map_err(|cause| Trouble::new(format!("read sysctl {}", told(key)), cause)),
            Question::Account(ask) => {
                self.see();
                let Machine { root, reader, is_host, accounts, .. } = self;
                accounts.look(ask, &mut Source { root, reader, is_host: *is_host })
            }
            Question::Check(_) if !self.is_host => Ok(Answer::NotApplicable(NO_COMMANDS)),
            Question::Check(command) => self.check(command, limit).map(Answer::Check),
            Question::Container { .. } | Question::Network(_) if !self.is_host => {
                Ok(Answer::NotApplicable(NO_ENGINE))
            }
            Question::Container { name, declared } => self.engine.container(name, declared, limit),
            Question::Network(name) => self.engine.network(name, limit),
            Question::Package(name) => self.presence(name, limit).map(Answer::Package),
            Question::Unit { unit, enabling } => {
                self.units.ask(unit, enabling, &mut self.root, limit)
            }
            Question::Table { .. } if !self.is_host => Ok(Answer::NotApplicable(NO_FILTER)),
            Question::Table { table, declared } => self.tables.ask(table, declared, limit),
            Question::Overlay(ask) => {
                self.see();
                self.overlays.ask(ask, &mut self.root, &mut self.reader, limit)
            }
        }
    }

    /// Takes `step` as far as it goes without being seen by half: a file or link is made complete
    /// beside its target and waits for [`Machine::commit`]; everything else is done at once. What
    /// has been done to the file system is durable after [`Machine::sync`] only. Holds a descriptor
    /// of the directory, which neighbours share.
    pub fn stage(&mut self, step: &Step, limit: Duration) -> Result<Staged, Trouble> {
        self.act();
        match *step {
            Step::Place(ref place) => self.place(place, limit),
            Step::Access { path, mode, uid, gid } => {
                let spot = self.spot(path, Intent::Change, "set the access of")?;
                change::access(&spot, mode, uid, gid)
                    .map(|kind| Staged::done(spot, path, kind, Dirty::Itself))
                    .map_err(|cause| trouble(path, "set the access of", cause))
            }
            Step::Remove { path, kind } => self.remove(path, kind),
            Step::Account(ref call) => {
                self.forget();
                accounts::run(call, &self.root, self.is_host, limit)?;
                // Each file is made durable by the tool, its name in /etc is not.
                let path = RootPath::parse("/etc/passwd").expect("it is a path");
                let spot = self.spot(&path, Intent::See, "make durable")?;
                Ok(Staged::done(spot, &path, Kind::File, Dirty::Name))
            }
            _ => {
                self.forget();
                self.do_at_once(step, limit).map(|()| Staged::nothing())
            }
        }
    }

    /// Takes a step of which nothing is left to be made durable.
    fn do_at_once(&mut self, step: &Step, limit: Duration) -> Result<(), Trouble> {
        match *step {
            Step::Place(_) | Step::Access { .. } | Step::Remove { .. } | Step::Account(_) => {
                unreachable!("these are staged")
            }
            Step::Sysctl { key, value } => {
                let written =
                    if self.is_host { sysctl::write(key, value) } else { Err(NO_KERNEL.into()) };
                let doing = || format!("write sysctl {}", told(key));
                written.map_err(|cause| Trouble::new(doing(), cause))
            }
            Step::Home(user) => self.settle_home(user, Home::There, limit),
            Step::Keys { user, keys, ref home } => {
                self.settle_home(user, Home::Keys(keys, home.as_deref()), limit)
            }
            Step::Run(command) => self.run(command, limit),
            Step::Container { .. } | Step::Network { .. } if !self.is_host => {
                Err(Trouble::new("change a container", NO_ENGINE))
            }
            Step::Container { name, declared, ref act } => {
                self.engine.act((name, declared), act, &self.root, limit)
            }
            Step::Network { name, ref act } => self.engine.act_on_network(name, act, limit),
            Step::Install(install) => self.install(install, limit),
            Step::Unit { unit, verb } => self.units.act(unit, verb, limit),
            Step::ReloadManager => self.units.reload_manager(limit),
            Step::LoadTable(ruleset) => self.filter(|| filter::load(ruleset, limit)),
            Step::DeleteTable(table) => self.filter(|| filter::delete(table, limit)),
            Step::Overlay(ref act) => {
                let Machine { root, reader, fetcher, overlays, .. } = self;
                overlays.act(act, Site { root, reader, fetcher, limit })?;
                self.forget();
                Ok(())
            }
        }
    }

    /// Takes one step by itself, durably.
    pub fn take(&mut self, step: &Step, limit: Duration) -> Result<(), Trouble> {
        let mut staged = self.stage(step, limit)?;
        self.sync([&staged])?;
        self.commit(&mut staged)?;
        self.sync([&staged])
    }

    /// Makes a group durable: called when it has been staged, its contents; when it has been
    /// committed, its names.
    pub fn sync<'s>(&mut self, group: impl IntoIterator<Item = &'s Staged>) -> Result<(), Trouble> {
        sync::sync(group)
    }

    /// Puts what was staged in place of its target, in one visible instant.
    pub fn commit(&mut self, staged: &mut Staged) -> Result<(), Trouble> {
        self.forget();
        place::commit(staged)
    }

    /// Whether what `question` asks about is, by the links that stand there now, the host's own.
    pub fn guard(&mut self, question: &Question) -> Result<(), Trouble> {
        let seen = match *question {
            Question::Path { path, holds, access } => {
                self.root.reach(path, intent(holds, access), "touch").map(drop)
            }
            Question::Account(Ask::User(AskUser { home: Some(home), .. })) => {
                let Ok(keys) = RootPath::parse(&format!("{home}/.ssh")) else { return Ok(()) };
                self.root.reach(&keys, Intent::Change, "touch").map(drop)
            }
            Question::Unit { .. } => self.ask(question, PATIENCE).map(drop),
            Question::Overlay(OfOverlay::Interface(Interface { key_file: Some(path), .. })) => {
                self.root.reach(path, Intent::Change, "touch").map(drop)
            }
            Question::Container { name, declared: Some(it) } if self.is_host => {
                engine::refuse_mounts(it, &self.root).map_err(|cause| Trouble {
                    touches_host: true,
                    ..Trouble::new(format!("make container {name}"), cause)
                })
            }
            Question::Sysctl(_)
            | Question::Account(_)
            | Question::Check(_)
            | Question::Container { .. }
            | Question::Network(_)
            | Question::Package(_)
            | Question::Overlay(_)
            | Question::Table { .. } => Ok(()),
        };
        match seen {
            Err(trouble) if trouble.touches_host => Err(trouble),
            _ => Ok(()),
        }
    }

    /// Removes what an interrupted run staged for `path` and did not commit, if there is such a
    /// thing; says whether there was.
    pub fn sweep(&mut self, path: &RootPath) -> Result<bool, Trouble> {
        self.act();
        let Reached::Parent(spot) = self.root.reach(path, Intent::See, "clean up beside")? else {
            return Ok(false);
        };
        place::unlink_stray(&spot.dir, &place::temporary(path))
            .map_err(|error| trouble(path, "clean up beside", words(&error)))
    }

    /// A table of the packet filter as it is, in nft's words, to be put back by
    /// [`Machine::restore_table`]; `None` where there is none, or none that can be listed.
    pub fn table_text(&mut self, table: &str, limit: Duration) -> Option<String> {
        if self.is_host {
            filter::text_of(table, limit)
        } else {
            None
        }
    }

    /// Puts a table back as [`Machine::table_text`] gave it: where that was nothing, it goes.
    pub fn restore_table(
        &mut self,
        table: &str,
        text: Option<&str>,
        limit: Duration,
    ) -> Result<(), Trouble> {
        self.forget();
        self.filter(|| filter::restore(table, text, limit))
    }

    /// The contents of the regular file at `path`, for a person to compare; `None` where there is
    /// none of at most `cap` bytes that can be read.
    pub fn read_text(&mut self, path: &RootPath, cap: u64) -> Option<Vec<u8>> {
        let Ok(Reached::Parent(spot)) = self.root.reach(path, Intent::See, "read") else {
            return None;
        };
        let stat = sys::stat_at(&spot.dir.fd, &spot.name).ok()?;
        if stat.kind != Kind::File || stat.size > cap {
            return None;
        }
        self.reader.whole(&spot, cap).ok()
    }

    /// Whether the directory at `path` holds anything but what `goes` says will have gone.
    pub fn holds_more(
        &mut self,
        path: &RootPath,
        goes: &dyn Fn(&RootPath) -> bool,
    ) -> Result<bool, Trouble> {
        let spot = self.spot(path, Intent::See, "look into")?;
        let failed = |error: std::io::Error| trouble(path, "look into", words(&error));
        let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_NOFOLLOW;
        let dir = sys::open(&spot.dir.fd, &spot.name, flags, 0).map_err(failed)?;
        let stays = |name: &[u8]| match std::str::from_utf8(name) {
            Ok(name) => RootPath::parse(&format!("{path}/{name}")).map_or(true, |it| !goes(&it)),
            Err(_) => true,
        };
        sys::any_entry(dir, &stays).map_err(failed)
    }

    fn look(
        &mut self,
        path: &RootPath,
        holds: Option<Holds>,
        access: &Access,
        limit: Duration,
    ) -> Result<PathAnswer, Trouble> {
        self.see();
        let found = match self.root.reach(path, intent(holds, access), "look at")? {
            Reached::Missing(ancestor) => Found::NoParent(ancestor),
            Reached::Parent(spot) => self
                .reader
                .look(&spot, holds, limit)
                .map_err(|error| trouble(path, "look at", words(&error)))?,
        };
        let Machine { root, reader, is_host, accounts, .. } = self;
        let mut source = Source { root, reader, is_host: *is_host };
        let (owner, group) = (access.owner.as_ref(), access.group.as_ref());
        let uid = owner.map(|owner| accounts.user(owner, &mut source)).transpose()?;
        let gid = group.map(|group| accounts.group(group, &mut source)).transpose()?;
        let (euid, egid) = self.ids;
        Ok(PathAnswer { found, uid, gid, euid, egid })
    }

    /// The directory that holds `path`, which must be there, and its last name.
    fn spot(&mut self, path: &RootPath, intent: Intent, verb: &str) -> Result<Spot, Trouble> {
        match self.root.reach(path, intent, verb)? {
            Reached::Parent(spot) => Ok(spot),
            Reached::Missing(ancestor) => {
                let awaits = Some(Object::new("path", ancestor.as_str()));
                let cause = format!("{} is not there", told(ancestor.as_str()));
                Err(Trouble { awaits, ..trouble(path, verb, cause) })
            }
        }
    }

    fn place(&mut self, place: &Place, limit: Duration) -> Result<Staged, Trouble> {
        let intent = match place.make {
            Make::Directory => Intent::See,
            Make::Bytes(bytes) => Intent::Text(bytes),
            Make::Fetched { .. } => Intent::Change,
            Make::Symlink(target) => Intent::Link(target),
        };
        let spot = self.spot(place.path, intent, "make")?;
        let Machine { reader, fetcher, .. } = self;
        let staged = place::stage(spot, place, Filling { reader, fetcher, limit })?;
        if matches!(place.make, Make::Fetched { .. }) {
            self.judge_fetched(&staged)?;
        }
        Ok(staged)
    }

    /// What was fetched is refused where it would have been had the declaration held it.
    fn judge_fetched(&mut self, staged: &Staged) -> Result<(), Trouble> {
        let Some(entry) = &staged.0 else { return Ok(()) };
        let (path, Some(name)) = (&entry.path, &entry.temporary) else { return Ok(()) };
        if !entry.spot.is_unit_file(path) {
            return Ok(());
        }
        let fetched = Spot { name: name.clone(), dir: entry.spot.dir.clone() };
        let text = self.reader.whole(&fetched, LARGEST_UNIT);
        let text =
            text.map_err(|error| trouble(path, "read what was fetched for", words(&error)))?;
        self.root.reach(path, Intent::Text(&text), "make").map(drop)
    }

    fn remove(&mut self, path: &RootPath, kind: Removable) -> Result<Staged, Trouble> {
        let intent = match kind {
            Removable::Directory => Intent::See,
            Removable::File | Removable::Symlink => Intent::Change,
        };
        let spot = match self.root.reach(path, intent, "remove")? {
            Reached::Missing(_) => return Ok(Staged::nothing()),
            Reached::Parent(spot) => spot,
        };
        match change::remove(&spot, kind) {
            Ok(kind) => Ok(Staged::done(spot, path, kind, Dirty::Name)),
            Err(Unremoved::NotEmpty) => {
                let trouble = trouble(path, "remove", "it is not empty");
                Err(Trouble { not_empty: true, ..trouble })
            }
            Err(Unremoved::Because(cause)) => Err(trouble(path, "remove", cause)),
        }
    }

    /// A check whose program is not there has not passed; one that cannot be run, or does not end,
    /// has no answer.
    fn check(&mut self, command: Command, limit: Duration) -> Result<CheckAnswer, Trouble> {
        // It is to look and nothing else, so what other tools told stands.
        self.forget_files();
        let doing = || format!("check with {}", shown(command));
        match call(command, limit) {
            Ok(Ended { how: How::Overran(_), .. }) => {
                let cause = format!("it was still running after {} s", limit.as_secs_f32());
                Err(Trouble::new(doing(), cause))
            }
            Ok(ended) => {
                Ok(CheckAnswer { passed: ended.how == How::Exited(0), said: ended.said() })
            }
            Err(Unrun::NotFound(said)) => Ok(CheckAnswer { passed: false, said }),
            Err(Unrun::Failed(cause)) => Err(Trouble::new(doing(), cause)),
        }
    }

    fn run(&mut self, command: Command, limit: Duration) -> Result<(), Trouble> {
        let ended = match self.is_host {
            true => call(command, limit),
            false => Err(Unrun::Failed(NO_COMMANDS.to_string())),
        };
        let cause = match ended {
            Ok(Ended { how: How::Exited(0), .. }) => return Ok(()),
            Ok(ended) => ended.said(),
            Err(unrun) => unrun.into_cause(),
        };
        Err(Trouble::new(format!("run {}", shown(command)), cause))
    }

    fn filter(&self, act: impl FnOnce() -> Result<(), Trouble>) -> Result<(), Trouble> {
        match self.is_host {
            true => act(),
            false => Err(Trouble::new("change the packet filter", NO_FILTER)),
        }
    }

    fn settle_home(&mut self, user: &str, home: Home, limit: Duration) -> Result<(), Trouble> {
        let Machine { root, reader, is_host, accounts, fetcher, .. } = self;
        let site = Site { root, reader, fetcher, limit };
        let settled = accounts.settle_home(user, home, *is_host, site);
        self.forget();
        settled
    }

    /// Before a look: what was walked to for a change may have become another thing.
    fn see(&mut self) {
        if !self.looking {
            self.root.forget();
            self.looking = true;
        }
    }

    /// Before anything is changed: what is acted upon is walked to afresh, whatever a look saw.
    fn act(&mut self) {
        if self.looking {
            self.root.forget();
            self.looking = false;
        }
    }

    /// Nothing that was answered so far counts any more: something changed, or may have.
    pub fn forget(&mut self) {
        self.forget_files();
        self.packages.forget();
        self.units.forget();
        self.tables.forget();
        self.overlays.forget();
        self.engine.forget();
    }

    fn forget_files(&mut self) {
        self.root.forget();
        self.accounts.forget();
    }
}

/// What a question about a path is asked for.
fn intent<'a>(holds: Option<Holds<'a>>, access: &Access) -> Intent<'a> {
    match holds {
        Some(Holds::Bytes(bytes)) => Intent::Text(bytes),
        Some(Holds::Target(target)) => Intent::Link(target),
        None if *access == Access::default() => Intent::See,
        Some(Holds::Digest(_)) | None => Intent::Change,
    }
}

fn call(command: Command, limit: Duration) -> Result<Ended, Unrun> {
    let argv: Vec<&str> = command.argv.iter().map(|argument| &**argument).collect();
    let env: Vec<(&str, &str)> =
        command.env.iter().map(|(name, value)| (&**name, &**value)).collect();
    let workdir = Path::new(command.workdir.map_or("/", RootPath::as_str));
    child::run(Call { env: &env, workdir, ..Call::new(&argv) }, limit)
}

/// The program of a command: its arguments are shown nowhere.
fn shown(command: Command) -> String {
    told(command.argv.first().map_or("", |program| program))
}

fn told(text: &str) -> String {
    quoted(text.as_bytes())
}
