//! A user's authorized_keys, read and written.
//!
//! The home is the user's to change at any time, so nothing in it is trusted: no link there is
//! followed, what does not belong to the user or has a second name is neither read nor written, and
//! everything goes by descriptors. Else a user could have root copy, or give away, what is not
//! theirs.

use std::fs::File;
use std::io::{self, Read};

use crate::machine::change;
use crate::machine::place::{self, Filling, Site};
use crate::machine::root::{trouble, Intent, Reached, Root, Spot};
use crate::machine::sys::{self, Kind, Stat};
use crate::machine::words::{quoted, words};
use crate::resource::account::FoundKeys;
use crate::resource::{Make, Place, RootPath, Trouble};
use crate::tool::authorized_keys::{part, Parted};

/// The largest file of keys, in bytes.
const LARGEST: u64 = 16 << 20;
/// What lets others than the owner write: sshd(8) takes no key from there.
const EXPOSED: u16 = 0o022;

/// A user, as far as its home is concerned.
#[derive(Clone, Copy)]
pub(super) struct Holder<'a> {
    pub name: &'a str,
    pub uid: u32,
    pub gid: u32,
    /// `None` where passwd(5) has no text there.
    pub home: Option<&'a str>,
}

/// How much of the way to the file is there.
enum Reach {
    /// Not even the home.
    Nothing,
    /// The home, which is somebody else's: no key is taken from there, nor put there.
    Foreign(Trouble),
    /// The home; this is where its `.ssh` would be.
    Home(Spot),
    /// `.ssh`; this is where the file would be.
    Directory(Spot),
    /// The file.
    File(Spot, Stat),
}

impl Holder<'_> {
    /// Where its home is.
    pub fn home(&self) -> Result<RootPath, Trouble> {
        self.beneath("")
    }

    fn beneath(&self, rest: &str) -> Result<RootPath, Trouble> {
        let failed = |cause| Trouble::new(format!("find the home of user {}", self.name), cause);
        // Without one, `rest` would lead to the top of the root.
        let home = self.home.filter(|home| home.starts_with('/'));
        let home = home.ok_or_else(|| failed("passwd(5) names no absolute path".to_string()))?;
        RootPath::parse(&format!("{home}{rest}"))
            .map_err(|why| failed(format!("{} {why}", quoted(home.as_bytes()))))
    }

    /// Refuses what is not the user's own.
    fn owns(&self, stat: &Stat, path: &RootPath) -> Result<(), Trouble> {
        if stat.uid == self.uid {
            return Ok(());
        }
        let (name, uid, owner) = (self.name, self.uid, stat.uid);
        let cause = format!(
            "it belongs to user {owner} and not to {name} ({uid}): it is neither read nor changed"
        );
        Err(trouble(path, "use the keys in", cause))
    }
}

/// The host's own lines.
pub(super) fn look(holder: Holder, root: &mut Root) -> Result<FoundKeys, Trouble> {
    let path = holder.beneath("/.ssh/authorized_keys")?;
    let Reach::File(spot, stat) = reach(&holder, root)? else { return Ok(FoundKeys::default()) };
    let directory = sys::stat(&spot.dir.fd).map_err(|e| trouble(&path, "read", words(&e)))?;
    let lines = read(&spot, stat, &path)?.ours.unwrap_or_default();
    Ok(FoundKeys { lines, exposed: (directory.mode | stat.mode) & EXPOSED != 0 })
}

/// Has `keys`, and no others, as the host's own lines. For any, the home is made too.
pub(super) fn put(holder: Holder, keys: &[Box<str>], site: &mut Site) -> Result<(), Trouble> {
    let path = holder.beneath("/.ssh/authorized_keys")?;
    if !keys.is_empty() {
        make_directory(&holder, site)?;
    }
    match reach(&holder, site.root)? {
        Reach::Directory(spot) if !keys.is_empty() => {
            close(&spot, &path)?;
            let text = bounded(Parted::default().with(keys), &path)?;
            in_place(spot, &made(&holder, &path, Make::Bytes(&text), 0o600), site)
        }
        Reach::File(spot, stat) => {
            close(&spot, &path)?;
            let text = bounded(read(&spot, stat, &path)?.with(keys), &path)?;
            if text.is_empty() {
                return change::remove_file(&spot, &path);
            }
            let place = made(&holder, &path, Make::Bytes(&text), stat.mode & !EXPOSED);
            in_place(spot, &Place { over: true, gid: stat.gid, ..place }, site)
        }
        Reach::Foreign(trouble) if !keys.is_empty() => Err(trouble),
        Reach::Nothing | Reach::Home(_) if !keys.is_empty() => {
            Err(trouble(&path, "write", "its directory went away meanwhile"))
        }
        _ => Ok(()),
    }
}

/// Makes the directory of keys, if there is none.
fn make_directory(holder: &Holder, site: &mut Site) -> Result<(), Trouble> {
    if let Reach::Nothing = reach(holder, site.root)? {
        make_home(*holder, site)?;
    }
    let Reach::Home(spot) = reach(holder, site.root)? else { return Ok(()) };
    let directory = holder.beneath("/.ssh")?;
    in_place(spot, &made(holder, &directory, Make::Directory, 0o700), site)
}

/// Makes the home of a user who has none, and what is missing above it.
pub(super) fn make_home(holder: Holder, site: &mut Site) -> Result<(), Trouble> {
    let home = holder.home()?;
    let (uid, gid) = sys::effective_ids();
    let above = Holder { uid, gid, ..holder };
    for path in home.ancestors() {
        if let Some(spot) = vacant(site.root, &path)? {
            in_place(spot, &made(&above, &path, Make::Directory, 0o755), site)?;
        }
    }
    match vacant(site.root, &home)? {
        Some(spot) => in_place(spot, &made(&holder, &home, Make::Directory, 0o700), site),
        None => Ok(()),
    }
}

/// Where `path` would be, if nothing is there.
fn vacant(root: &mut Root, path: &RootPath) -> Result<Option<Spot>, Trouble> {
    let Reached::Parent(spot) = root.reach(path, Intent::See, "make")? else {
        return Err(trouble(path, "make", "what is above it is not there"));
    };
    match sys::stat_at(&spot.dir.fd, &spot.name) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Some(spot)),
        Err(error) => Err(trouble(path, "make", words(&error))),
        Ok(_) => Ok(None),
    }
}

/// Goes to the file as far as there is a way that may be gone.
fn reach(holder: &Holder, root: &mut Root) -> Result<Reach, Trouble> {
    const VERB: &str = "use the keys in";
    let (directory, path) = (holder.beneath("/.ssh")?, holder.beneath("/.ssh/authorized_keys")?);
    let failed = |at: &RootPath, error: &io::Error| trouble(at, VERB, words(error));
    let Reached::Parent(home) = root.reach(&directory, Intent::Change, VERB)? else {
        return Ok(Reach::Nothing);
    };
    let stat = sys::stat(&home.dir.fd).map_err(|error| failed(&directory, &error))?;
    if let (true, Err(foreign)) = (stat.uid != 0, holder.owns(&stat, &holder.home()?)) {
        return Ok(Reach::Foreign(foreign));
    }
    let no_link = "in a user's home no link is followed, and nothing else is taken for it";
    match sys::stat_at(&home.dir.fd, &home.name) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Reach::Home(home)),
        Err(error) => return Err(failed(&directory, &error)),
        Ok(stat) if stat.kind != Kind::Directory => {
            let cause = format!("it is no directory; {no_link}");
            return Err(trouble(&directory, VERB, cause));
        }
        Ok(_) => {}
    }
    let Reached::Parent(spot) = root.reach(&path, Intent::Change, VERB)? else {
        return Err(trouble(&path, VERB, "its directory went away meanwhile"));
    };
    // It may have become a link since: what was opened is what counts.
    if spot.dir.path != [&*home.dir.path, b"/.ssh"].concat() {
        return Err(trouble(&directory, VERB, no_link));
    }
    let stat = sys::stat(&spot.dir.fd).map_err(|error| failed(&directory, &error))?;
    holder.owns(&stat, &directory)?;
    let stat = match sys::stat_at(&spot.dir.fd, &spot.name) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Reach::Directory(spot)),
        stat => stat.map_err(|error| failed(&path, &error))?,
    };
    holder.owns(&stat, &path)?;
    match () {
        () if stat.kind != Kind::File => {
            Err(trouble(&path, VERB, format!("it is no regular file; {no_link}")))
        }
        () if stat.linked => Err(trouble(&path, VERB, "it has a second name, elsewhere")),
        () => Ok(Reach::File(spot, stat)),
    }
}

/// Takes apart the file that was seen at `spot`, and no other.
fn read(spot: &Spot, seen: Stat, path: &RootPath) -> Result<Parted, Trouble> {
    let failed = |cause: String| trouble(path, "read", cause);
    let (fd, _) = change::open_seen(spot, seen).map_err(failed)?;
    let mut text = Vec::new();
    let read = File::from(fd).take(LARGEST + 1).read_to_end(&mut text);
    read.map_err(|error| failed(words(&error)))?;
    if text.len() as u64 > LARGEST {
        return Err(failed(format!("it has more than {LARGEST} bytes")));
    }
    part(&text).map_err(|why| failed(format!("{why}; mend it, or take the block out")))
}

/// What could not be read again is not written.
fn bounded(text: Vec<u8>, path: &RootPath) -> Result<Vec<u8>, Trouble> {
    match text.len() as u64 {
        0..=LARGEST => Ok(text),
        size => {
            let cause = format!("it would have {size} bytes, and {LARGEST} are the most");
            Err(trouble(path, "write", cause))
        }
    }
}

/// Lets nobody but its owner write into the directory of keys.
fn close(spot: &Spot, path: &RootPath) -> Result<(), Trouble> {
    let closed = sys::stat(&spot.dir.fd).and_then(|stat| match stat.mode & EXPOSED {
        0 => Ok(()),
        _ => sys::chmod(&spot.dir.reopen()?, stat.mode & !EXPOSED),
    });
    closed.map_err(|error| trouble(path, "close the directory of", words(&error)))
}

fn made<'a>(holder: &Holder, path: &'a RootPath, make: Make<'a>, mode: u16) -> Place<'a> {
    let (uid, gid) = (holder.uid, holder.gid);
    Place { path, make, mode, uid, gid, over: false, keeps_list: false }
}

/// Puts it in place, durably. What was walked to before need not be so any more.
fn in_place(spot: Spot, place: &Place, site: &mut Site) -> Result<(), Trouble> {
    site.root.forget();
    let Site { reader, fetcher, limit, .. } = site;
    place::durably(spot, place, Filling { reader, fetcher, limit: *limit })
}
