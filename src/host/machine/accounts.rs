//! Names of users and groups, from the root's own account files.
//!
//! A static binary has no getpwnam(3). The files of the root are read, and where the root is this
//! machine's own, getent(1) is asked for what they do not have (a directory service's accounts).
//! Answers are kept until a step is taken, since a step may make an account.

use std::collections::HashMap;
use std::io;
use std::time::Duration;

use super::child::{self, Call, How};
use super::files::Reader;
use super::root::{Intent, Reached, Root};
use super::sys::{self, Kind};
use super::words::{quoted, words};
use crate::resource::{Object, Principal, RootPath, Trouble};
use crate::tool::shadow::{self, File};

/// The largest account file, in bytes.
const LARGEST: u64 = 16 << 20;
/// The longest answer of getent(1), in bytes: a group's names its members.
const LONGEST_ANSWER: usize = 4 << 20;
/// How long getent(1) may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// What is known of accounts.
#[derive(Debug, Default)]
pub(super) struct Accounts {
    users: Names,
    groups: Names,
}

#[derive(Debug, Default)]
struct Names {
    /// The file, once it has been read.
    text: Option<Vec<u8>>,
    /// What has been asked so far; `None` for what is nowhere.
    ids: HashMap<Box<str>, Option<u32>>,
}

/// Where names are looked up.
pub(super) struct Source<'a> {
    pub root: &'a mut Root,
    pub reader: &'a mut Reader,
    /// The root is this machine's own.
    pub is_host: bool,
}

impl Accounts {
    /// Forgets everything.
    pub fn forget(&mut self) {
        *self = Accounts::default();
    }

    /// The id of the user that `principal` names.
    pub fn user(&mut self, principal: &Principal, source: &mut Source) -> Result<u32, Trouble> {
        id(&mut self.users, File::Passwd, principal, source)
    }

    /// The id of the group that `principal` names.
    pub fn group(&mut self, principal: &Principal, source: &mut Source) -> Result<u32, Trouble> {
        id(&mut self.groups, File::Group, principal, source)
    }
}

fn id(
    names: &mut Names,
    file: File,
    principal: &Principal,
    source: &mut Source,
) -> Result<u32, Trouble> {
    let name = match principal {
        Principal::Id(id) => return Ok(*id),
        Principal::Name(name) if **name == *"root" => return Ok(0),
        Principal::Name(name) => name,
    };
    let known = match names.ids.get(name) {
        Some(known) => *known,
        None => {
            let found = names.find(file, name, source)?;
            names.ids.insert(name.clone(), found);
            found
        }
    };
    known.ok_or_else(|| unknown(file, name))
}

fn unknown(file: File, name: &str) -> Trouble {
    let (kind, path) = told(file);
    let awaits = Some(Object::new(kind, name));
    let shown = quoted(name.as_bytes());
    let cause = format!("no {kind} {shown} in {path}");
    Trouble { awaits, ..Trouble::new(format!("look up {kind} {shown}"), cause) }
}

/// What the accounts of `file` are called, and where it is.
fn told(file: File) -> (&'static str, &'static str) {
    match file {
        File::Passwd => ("user", "/etc/passwd"),
        File::Group => ("group", "/etc/group"),
    }
}

impl Names {
    fn find(
        &mut self,
        file: File,
        name: &str,
        source: &mut Source,
    ) -> Result<Option<u32>, Trouble> {
        let text = match self.text.take() {
            Some(text) => text,
            None => read(file, source)?,
        };
        let found = shadow::id_of(file, self.text.insert(text), name);
        match found {
            None if source.is_host => ask_getent(file, name),
            found => Ok(found),
        }
    }
}

/// The account file of the root; empty where there is none.
fn read(file: File, source: &mut Source) -> Result<Vec<u8>, Trouble> {
    let (_, path) = told(file);
    let path = RootPath::parse(path).expect("both are paths");
    let Reached::Parent(spot) = source.root.reach(&path, Intent::See, "read")? else {
        return Ok(Vec::new());
    };
    let failed = |cause: String| Trouble::new(format!("read {path}"), cause);
    let stat = match sys::stat_at(&spot.dir.fd, &spot.name) {
        Ok(stat) => stat,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(words(&error))),
    };
    if stat.kind != Kind::File || stat.size > LARGEST {
        return Err(failed(format!("it is not a regular file of at most {LARGEST} bytes")));
    }
    source.reader.whole(&spot, LARGEST).map_err(|error| failed(words(&error)))
}

/// What getent(1) knows of `name`; nothing where there is no getent.
fn ask_getent(file: File, name: &str) -> Result<Option<u32>, Trouble> {
    let database = match file {
        File::Passwd => "passwd",
        File::Group => "group",
    };
    let failed = |cause: String| {
        Trouble::new(format!("ask getent {database} for {}", quoted(name.as_bytes())), cause)
    };
    if name.starts_with('-') {
        return Ok(None); // no account begins so, and not every getent knows `--`
    }
    let argv = ["getent", database, name];
    let call = Call { cap: LONGEST_ANSWER, ..Call::new(&argv) };
    let ended = match child::run(call, PATIENCE) {
        Ok(ended) => ended,
        Err(child::Unrun::NotFound(_)) => return Ok(None),
        Err(child::Unrun::Failed(cause)) => return Err(failed(cause)),
    };
    match ended.how {
        How::Exited(0) if ended.out.cut() => {
            Err(failed(format!("it answered with more than {LONGEST_ANSWER} bytes")))
        }
        How::Exited(0) => Ok(shadow::id_of(file, ended.out.bytes(), name)),
        // 2: "one or more supplied key could not be found in the database" (getent(1)).
        How::Exited(2) => Ok(None),
        _ => Err(failed(ended.said())),
    }
}
