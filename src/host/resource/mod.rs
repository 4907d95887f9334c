//! What a resource is: the trait every type implements, and the data that flows through it. Pure.
//!
//! A resource holds no effect. It says what to ask of the machine, judges the answer against what
//! is declared, and yields steps; no steps means it has converged. `reconcile` gives every type
//! its read-back, dry run, drift report and idempotence, so that no type can forget them.

pub mod access;
pub mod account;
pub mod action;
pub mod container;
pub mod container_network;
pub mod dataset;
pub mod directory;
pub mod fields;
pub mod file;
pub mod form;
pub mod group;
pub mod kind;
pub mod lost;
pub mod net;
pub mod overlay;
pub mod package;
pub mod packet_filter;
pub mod parting;
pub mod path;
pub mod peer;
pub mod service;
pub mod symlink;
pub mod sysctl;
#[cfg(test)]
mod tests;
mod unit_before;
pub mod user;
pub mod wanted;
pub mod wireguard;

use std::fmt;

pub use path::RootPath;

use crate::tool::nft::{Ruleset, Table};
use crate::tool::systemctl::{FileState, Unit, Verb};

/// The `detail` of a thing that is not there at all.
pub const ABSENT: &str = "absent";

/// What is owned: a thing on the machine, whatever the id of the resource that declares it.
///
/// Written `space:name`: `path:/etc/motd`, `sysctl:net.ipv4.ip_forward`, `action:make-ca`. Every
/// type whose thing is a path shares the space `path`, so a file and a symlink of one path are one
/// object.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Object(Box<str>);

impl Object {
    /// The object `space:name`.
    pub fn new(space: &str, name: &str) -> Object {
        let mut whole = String::with_capacity(space.len() + 1 + name.len());
        whole.push_str(space);
        whole.push(':');
        whole.push_str(name);
        Object(whole.into())
    }

    /// What is, or should be, at `path`.
    pub fn at(path: &RootPath) -> Object {
        Object::new("path", path.as_str())
    }

    /// The object as the journal wrote it; `None` where it has no space.
    pub fn from_journal(text: &str) -> Option<Object> {
        text.split_once(':').filter(|(space, _)| !space.is_empty())?;
        Some(Object(text.into()))
    }

    /// Which kind of name it is: `path`, `sysctl`, `action`, …
    pub fn space(&self) -> &str {
        self.0.split_once(':').map_or("", |(space, _)| space)
    }

    /// The name within its space.
    pub fn name(&self) -> &str {
        self.0.split_once(':').map_or("", |(_, name)| name)
    }

    /// The whole, `space:name`.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A user or group as a declaration names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Principal {
    /// A numeric id, written in digits.
    Id(u32),
    /// A name, to be looked up in the root's own account files.
    Name(Box<str>),
}

/// The permissions and ownership that a declaration asks for; what is absent is the host's default
/// for what the host creates, and nobody's business where the thing was there before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// Permission bits, at most 0o7777.
    pub mode: Option<u16>,
    /// Owning user.
    pub owner: Option<Principal>,
    /// Owning group.
    pub group: Option<Principal>,
}

/// A change of what is declared as a `kind` can cut the way to this machine.
pub fn may_cut(kind: &str) -> bool {
    matches!(kind, "packet_filter" | "overlay" | "peer")
}

/// What the store says of an object before its resource is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The host does not own it: what is found there, if anything, would be adopted.
    Unowned,
    /// The host owns it and made it.
    Created,
    /// The host owns it, and it was there before.
    Adopted,
}

/// What the store knows of an object before its resource is judged.
#[derive(Clone, Copy, Debug)]
pub struct Past<'a> {
    /// Whose it is.
    pub standing: Standing,
    /// What the store keeps of it, as [`Verdict::before`] had it.
    pub before: Option<&'a str>,
    /// What the resource owes to a change of something that it follows.
    pub due: Due,
    /// The same of a start that is under way: one that began after those changes takes them in.
    pub due_under_way: Due,
    /// A run began to make it so and was never seen to end: when, in seconds since 1970.
    pub begun: Option<u64>,
}

impl Past<'_> {
    /// Of an object that nobody owns and that follows nothing.
    pub const NONE: Past<'static> = Past {
        standing: Standing::Unowned,
        before: None,
        due: Due::Nothing,
        due_under_way: Due::Nothing,
        begun: None,
    };
}

/// How something takes in what it reads only when it starts. Each does what those before it do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Due {
    /// Not at all.
    #[default]
    Nothing,
    /// By reading it again.
    Reload,
    /// By starting anew.
    Restart,
}

/// How many of the resources that a resource refers to it follows, and how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Follows {
    /// The first so many make it restart when they change.
    pub restarts: usize,
    /// The next so many make it reload.
    pub reloads: usize,
}

/// What a resource asks of the machine.
#[derive(Debug)]
pub enum Question<'a> {
    /// What is at this path, the last name not followed?
    Path {
        /// Where.
        path: &'a RootPath,
        /// What should be there; of a regular file, whether it holds that is answered.
        holds: Option<Holds<'a>>,
        /// Names to be resolved along with it.
        access: &'a Access,
    },
    /// The value of a kernel parameter, by its dotted key.
    Sysctl(&'a str),
    /// What do the account files say of a user or group?
    Account(account::Ask<'a>),
    /// Does this command exit 0?
    Check(Command<'a>),
    /// What does the engine know of this container?
    Container {
        /// Its name.
        name: &'a str,
        /// What it should be made from, where it should.
        declared: Option<&'a container::Container>,
    },
    /// What does the engine know of this network of containers, by its name?
    Network(&'a str),
    /// How far is the package of this name there?
    Package(&'a str),
    /// What does the service manager know of this unit?
    Unit {
        /// Its whole name.
        unit: &'a str,
        /// Whether it is started at boot matters: all that a mounted tree can tell.
        enabling: bool,
    },
    /// What does the packet filter hold under this name?
    Table {
        /// Its family and name.
        table: &'a str,
        /// What it should be: where it is not, whether nft would take this is answered too.
        declared: Option<&'a Ruleset>,
    },
    /// What is an overlay's interface, or a peer of one, like?
    Overlay(wireguard::Ask<'a>),
}

/// What a regular file is compared with. `Debug` shows no bytes: they may be a secret.
#[derive(Clone, Copy)]
pub enum Holds<'a> {
    /// These bytes.
    Bytes(&'a [u8]),
    /// Any bytes of this SHA-256.
    Digest(&'a crate::digest::Sha256),
    /// Nothing, since it should be a symbolic link to this.
    Target(&'a str),
}

impl fmt::Debug for Holds<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Holds::Bytes(bytes) => write!(f, "{} bytes", bytes.len()),
            Holds::Digest(digest) => f.write_str(&crate::digest::hex(*digest)),
            Holds::Target(target) => write!(f, "a link to {target:?}"),
        }
    }
}

/// A command as a vector of arguments; never a shell string.
#[derive(Clone, Copy, Debug)]
pub struct Command<'a> {
    /// The program (a bare name is looked up in the host's own fixed path) and its arguments.
    pub argv: &'a [Box<str>],
    /// Variables added to the host's own fixed environment.
    pub env: &'a [(Box<str>, Box<str>)],
    /// Working directory; `/` where absent.
    pub workdir: Option<&'a RootPath>,
}

/// What the machine answered.
#[derive(Debug)]
pub enum Answer {
    /// To [`Question::Path`].
    Path(PathAnswer),
    /// To [`Question::Sysctl`]: the value, trailing newline removed; `None` where the kernel has no
    /// such key.
    Sysctl(Option<String>),
    /// To [`account::Ask::Group`]: its number.
    Group(account::Whereabouts<u32>),
    /// To [`account::Ask::User`].
    User(account::UserAnswer),
    /// To [`Question::Check`].
    Check(CheckAnswer),
    /// To [`Question::Container`].
    Container(container::ContainerAnswer),
    /// To [`Question::Network`].
    Network(container_network::NetworkAnswer),
    /// To [`Question::Package`].
    Package(package::Presence),
    /// To [`Question::Unit`], of the running machine.
    Unit(Unit),
    /// To [`Question::Unit`], of a mounted tree or a template.
    UnitFile(FileState),
    /// To [`Question::Table`]; `None` where there is no such table.
    Table(Option<Table>),
    /// To [`wireguard::Ask::Interface`].
    Overlay(wireguard::Found),
    /// To [`wireguard::Ask::Peer`].
    Peer(wireguard::FoundPeer),
    /// The question makes no sense here (a kernel value of a mounted tree), and why.
    NotApplicable(&'static str),
}

impl Entry {
    /// The trouble of finding this where a `wanted` was declared.
    fn in_the_way(&self, path: &RootPath, wanted: &str) -> Trouble {
        let found = match self {
            Entry::File { .. } => "regular file",
            Entry::Directory => "directory",
            Entry::Symlink(_) => "symbolic link",
            Entry::Other(name) => name,
        };
        let cause = format!("a {found} is there, and another kind of thing is never replaced");
        Trouble::new(format!("make {wanted} {path}"), cause)
    }
}

/// What is at a path, and the ids that the declared names stand for.
#[derive(Debug)]
pub struct PathAnswer {
    /// What is there.
    pub found: Found,
    /// The declared owner's id.
    pub uid: Option<u32>,
    /// The declared group's id.
    pub gid: Option<u32>,
    /// The user that the host runs as: the default owner of what it makes. 0 but in a trial run.
    pub euid: u32,
    /// The group that the host runs as, likewise.
    pub egid: u32,
}

/// What is at a path.
#[derive(Debug, PartialEq, Eq)]
pub enum Found {
    /// Nothing, and its parent directory is there.
    Nothing,
    /// Nothing, and this ancestor (the topmost that is missing) is not there either.
    NoParent(RootPath),
    /// Something of this kind.
    Entry {
        /// What sort of thing.
        kind: Entry,
        /// Its permission bits, 0o7777 at most.
        mode: u16,
        /// Its owner.
        uid: u32,
        /// Its group.
        gid: u32,
        /// More than one name leads to it (never so for a directory).
        linked: bool,
    },
}

/// A kind of directory entry.
#[derive(Debug, PartialEq, Eq)]
pub enum Entry {
    /// A regular file, its size in bytes, and whether it holds what was asked (`None`: not asked).
    File {
        /// Size in bytes.
        size: u64,
        /// The answer to [`Holds`].
        holds: Option<bool>,
    },
    /// A directory.
    Directory,
    /// A symbolic link and its target, in the bytes that the file system has.
    Symlink(Vec<u8>),
    /// Anything else, named as `ls` would: `socket`, `fifo`, `block device`, `character device`.
    Other(&'static str),
}

/// How a check command ended.
#[derive(Debug)]
pub struct CheckAnswer {
    /// It exited 0.
    pub passed: bool,
    /// One line for a person: how it ended and the last of what it said, quoted and capped.
    pub said: String,
}

/// One change to the machine.
#[derive(Debug)]
pub enum Step<'a> {
    /// Put a directory entry in place, whole, with its access, in one visible instant.
    Place(Place<'a>),
    /// Give the regular file or directory at this path another mode or owner.
    Access {
        /// Which.
        path: &'a RootPath,
        /// The new permission bits.
        mode: u16,
        /// The new owner.
        uid: u32,
        /// The new group.
        gid: u32,
    },
    /// Write a kernel parameter.
    Sysctl {
        /// Dotted key.
        key: &'a str,
        /// New value.
        value: &'a str,
    },
    /// Change the account files, by one of the tools for it.
    Account(crate::tool::shadow::Call),
    /// Make the home of this user, which is not there.
    Home(&'a str),
    /// Have these, and no others, as the host's own lines in the user's authorized_keys.
    Keys {
        /// Whose.
        user: &'a str,
        /// The lines; none take the host's block away.
        keys: &'a [Box<str>],
        /// In this home, which was the user's before; absent: in its own.
        home: Option<Box<str>>,
    },
    /// Run a command to its end; anything but exit 0 is a failure.
    Run(Command<'a>),
    /// Have the engine do this to a container.
    Container {
        /// Its name.
        name: &'a str,
        /// What it should be made from, where it should.
        declared: Option<&'a container::Container>,
        /// What is done.
        act: container::Act<'a>,
    },
    /// Have the engine do this to a network of containers.
    Network {
        /// Its name.
        name: &'a str,
        /// What is done.
        act: container_network::NetworkAct<'a>,
    },
    /// Install a package.
    Install(package::Install<'a>),
    /// Have the service manager do this to a unit, and see that it lasts.
    Unit {
        /// The unit's whole name.
        unit: &'a str,
        /// What is done.
        verb: Verb,
    },
    /// Have the service manager read its units' files again.
    ReloadManager,
    /// Put this table of the packet filter in place, whole, in one instant.
    LoadTable(&'a Ruleset),
    /// Delete the table of this family and name.
    DeleteTable(&'a str),
    /// Do this to an overlay.
    Overlay(wireguard::Act<'a>),
    /// Remove the entry at this path if it is still of this kind; a directory only when empty.
    Remove {
        /// Where.
        path: &'a RootPath,
        /// What it must still be.
        kind: Removable,
    },
}

impl Step<'_> {
    /// Nobody knows what will be there once it has been taken: accounts, units, files.
    pub fn may_bring_anything(&self) -> bool {
        matches!(self, Step::Run(_) | Step::Install(_))
    }
}

/// What [`Step::Remove`] removes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removable {
    /// A regular file.
    File,
    /// An empty directory.
    Directory,
    /// A symbolic link.
    Symlink,
}

/// A directory entry to be put in place.
#[derive(Debug)]
pub struct Place<'a> {
    /// Where.
    pub path: &'a RootPath,
    /// What.
    pub make: Make<'a>,
    /// Permission bits (unused for a symlink).
    pub mode: u16,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Something of the same kind stands there and is replaced; otherwise nothing may stand there.
    pub over: bool,
    /// Who else may use what is replaced, by its access list, still may: no mode is declared.
    pub keeps_list: bool,
}

/// What [`Place`] makes. `Debug` shows no bytes: they may be a secret.
pub enum Make<'a> {
    /// A directory. Missing ancestors are steps of their own, before it.
    Directory,
    /// A regular file with these bytes.
    Bytes(&'a [u8]),
    /// A regular file with what this address serves, once its SHA-256 has been seen to be right.
    Fetched {
        /// `http` or `https`.
        url: &'a str,
        /// What the bytes must hash to.
        sha256: &'a crate::digest::Sha256,
    },
    /// A symbolic link to this target.
    Symlink(&'a str),
}

impl fmt::Debug for Make<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Make::Directory => f.write_str("a directory"),
            Make::Bytes(bytes) => write!(f, "a file of {} bytes", bytes.len()),
            Make::Fetched { .. } => f.write_str("a file that is fetched"),
            Make::Symlink(target) => write!(f, "a link to {target:?}"),
        }
    }
}

/// A resource compared with what was found.
#[derive(Debug, Default)]
pub struct Verdict<'a> {
    /// The thing was there, in whatever state.
    pub existed: bool,
    /// What would make it match; empty when it does.
    pub steps: Vec<Step<'a>>,
    /// What differs, for a person; empty when nothing does.
    pub detail: String,
    /// What the store is to keep of the object in place of what it holds, for when it is released
    /// (a kernel parameter's value, to be put back) or looked at again (a peer's endpoint).
    pub before: Option<String>,
    /// What the steps amount to for what it follows.
    pub refreshes: Due,
    /// The parent directory that is not there and that this resource does not make.
    pub needs_parent: Option<RootPath>,
    /// The question does not apply to this root, and why.
    pub not_applicable: Option<&'static str>,
}

impl Verdict<'_> {
    /// Of a resource that makes no sense in this root.
    pub fn not_applicable(why: &'static str) -> Verdict<'static> {
        Verdict { not_applicable: Some(why), ..Verdict::default() }
    }
}

/// Why an observation, a judgement or a step did not succeed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// What was being done, to what.
    pub doing: String,
    /// The cause, in the tool's or the kernel's own words.
    pub cause: String,
    /// The object whose coming would lift it: a user not yet made, a parent not yet there.
    pub awaits: Option<Object>,
    /// The object whose going would lift it, if it is to go: what holds a port that is wanted.
    pub in_the_way: Option<Object>,
    /// The declaration reaches for the host itself; nothing of it may be applied.
    pub touches_host: bool,
    /// A directory was to be removed and holds something.
    pub not_empty: bool,
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.doing, self.cause)
    }
}

impl Answer {
    /// The answer to [`Question::Path`].
    fn path(&self) -> Result<&PathAnswer, Trouble> {
        match self {
            Answer::Path(path) => Ok(path),
            other => Err(other.mismatch()),
        }
    }

    /// A machine that answers what it was not asked is not to be believed.
    fn mismatch(&self) -> Trouble {
        Trouble::new(
            "read the machine's answer",
            format_args!("it is to another question: {self:?}"),
        )
    }
}

impl Trouble {
    /// The steps of doing it reported success, and what was read back differs all the same.
    pub fn unread(doing: impl Into<String>, differs: &str) -> Trouble {
        Trouble::new(doing, format_args!("the steps reported success, yet {differs}"))
    }

    /// A trouble that waits for nothing.
    pub fn new(doing: impl Into<String>, cause: impl fmt::Display) -> Trouble {
        let (doing, cause) = (doing.into(), cause.to_string());
        Trouble {
            doing,
            cause,
            awaits: None,
            in_the_way: None,
            touches_host: false,
            not_empty: false,
        }
    }
}

/// A declared thing. Implementations are pure.
pub trait Resource: fmt::Debug {
    /// The type's name in a declaration.
    fn kind(&self) -> &'static str;

    /// What would be owned.
    fn object(&self) -> Object;

    /// What an excerpt does not tell, since what this is a part of is not in it, the name of the
    /// object does: takes it from there.
    fn complete(&mut self, _object: &Object) {}

    /// What to ask to know whether the machine matches.
    fn question(&self) -> Question<'_>;

    /// What the answer means, given what the store knows of the object.
    fn judge(&self, answer: &Answer, past: &Past<'_>) -> Result<Verdict<'_>, Trouble>;

    /// What makes it restart or reload.
    fn follows(&self) -> Follows {
        Follows::default()
    }

    /// What the machine makes of it bears the host's own mark, so that the host knows it again.
    fn is_marked(&self) -> bool {
        false
    }

    /// Its values must not be shown anywhere.
    fn secret(&self) -> bool {
        false
    }

    /// The text that a regular file should hold, for a diff; `None` where there is none to show.
    fn text(&self) -> Option<&[u8]> {
        None
    }
}
