//! Users and groups, from the root's own account files.
//!
//! Names are looked up for whoever needs a number; accounts are looked at, and changed by the tools
//! for it. A static binary has no getpwnam(3). The files of the root are read, and where it is this
//! machine's own, getent(1) is asked for what they do not have (a directory service's accounts).
//! Answers are kept until a step is taken, since a step may make an account.

mod keys;
mod look;
mod tools;

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::time::Duration;

pub(super) use tools::{run, Home};

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
    logins: Logins,
}

/// shadow(5), once it has been read; within, `None` where the root has none.
#[derive(Default)]
struct Logins(Option<Option<Vec<u8>>>);

impl fmt::Debug for Logins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("hashes of passwords, perhaps")
    }
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

    /// shadow(5), if the root has it.
    fn logins(&mut self, source: &mut Source) -> Result<Option<&[u8]>, Trouble> {
        let text = match self.logins.0.take() {
            Some(text) => text,
            None => read("/etc/shadow", source)?,
        };
        Ok(self.logins.0.insert(text).as_deref())
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
    let known = names.find(file, name, source)?;
    known.ok_or_else(|| unknown(file, name))
}

fn unknown(file: File, name: &str) -> Trouble {
    let (kind, path) = told(file);
    let awaits = Some(Object::new(kind, name));
    let shown = quoted(name.as_bytes());
    let cause = format!("no {kind} {shown} in {path}; declare it earlier, or mend the name");
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
    /// The id of the account `name`; `None` where it is nowhere.
    fn find(
        &mut self,
        file: File,
        name: &str,
        source: &mut Source,
    ) -> Result<Option<u32>, Trouble> {
        if let Some(known) = self.ids.get(name) {
            return Ok(*known);
        }
        let found = match shadow::id_of(file, self.text(file, source)?, name) {
            None if source.is_host => ask_getent(file, name)?,
            found => found,
        };
        self.ids.insert(name.into(), found);
        Ok(found)
    }

    /// An account that the root's own file lacks is known to a directory service.
    fn is_elsewhere(
        &mut self,
        file: File,
        name: &str,
        source: &mut Source,
    ) -> Result<bool, Trouble> {
        self.find(file, name, source).map(|found| found.is_some())
    }

    /// The root's own file.
    fn text(&mut self, file: File, source: &mut Source) -> Result<&[u8], Trouble> {
        let text = match self.text.take() {
            Some(text) => text,
            None => read(told(file).1, source)?.unwrap_or_default(),
        };
        Ok(self.text.insert(text))
    }
}

/// The account file of the root at `path`; `None` where there is none.
fn read(path: &str, source: &mut Source) -> Result<Option<Vec<u8>>, Trouble> {
    let path = RootPath::parse(path).expect("all of them are paths");
    let Reached::Parent(spot) = source.root.reach(&path, Intent::See, "read")? else {
        return Ok(None);
    };
    let failed = |cause: String| Trouble::new(format!("read {path}"), cause);
    let stat = match sys::stat_at(&spot.dir.fd, &spot.name) {
        Ok(stat) => stat,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(words(&error))),
    };
    if stat.kind != Kind::File || stat.size > LARGEST {
        return Err(failed(format!("it is not a regular file of at most {LARGEST} bytes")));
    }
    source.reader.whole(&spot, LARGEST).map(Some).map_err(|error| failed(words(&error)))
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
