//! The walk: from a path inside the root to the directory that holds its last name.
//!
//! Owns how links on the way are followed (inside the root, and only where that is safe) and the
//! question whether the place reached is the host's own, also where a mount shows it again (of a
//! directory, not of a single file). It never follows the last name, changes
//! nothing, and hands out descriptors, so that what is checked is what is then acted upon.
//! Directories are opened one name at a time, which every kernel can do; the chain of the last
//! walk is kept, so that the files of one directory cost one walk.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::rc::Rc;

use super::sys::{self, Kind};
use super::words::{quoted, words};
use crate::declaration::Own;
use crate::resource::{Object, RootPath, Trouble};

/// Links that one walk follows: the kernel's own limit.
const MOST_LINKS: u32 = 40;
/// Directories that one walk opens.
const MOST_STEPS: u32 = 4096;
/// Directories kept open between walks.
const MOST_KEPT: usize = 64;

const DIRECTORY: i32 = libc::O_PATH | libc::O_DIRECTORY | libc::O_NOFOLLOW;

/// Device and inode.
type Identity = (u64, u64);

/// An open directory.
#[derive(Debug)]
pub(super) struct Dir {
    /// Opened with `O_PATH`: good for what is relative to it, and for nothing else.
    pub fd: OwnedFd,
    /// Where it is inside the root, every link resolved: empty for the root, else `/a/b`.
    pub path: Vec<u8>,
    /// The same, by the names that lead to the host's own: a mount can show that elsewhere too.
    real: Vec<u8>,
    /// Nothing directly in it can be the host's own, once that has been asked.
    calm: OnceCell<bool>,
}

impl Dir {
    /// It is, or lies in, a place for devices, the opening of which alone can do things.
    pub fn is_of_devices(&self) -> bool {
        self.path.starts_with(b"/dev") && matches!(self.path.get(4), None | Some(b'/'))
    }

    /// A descriptor of the directory itself, which can be synced.
    pub fn reopen(&self) -> io::Result<OwnedFd> {
        sys::open(&self.fd, c".", libc::O_RDONLY | libc::O_DIRECTORY, 0)
    }
}

/// Where a walk ended.
#[derive(Debug)]
pub(super) enum Reached {
    /// At the directory that holds the last name.
    Parent(Spot),
    /// Nowhere: this ancestor of the path, the topmost that is missing, is not there.
    Missing(RootPath),
}

/// A name in an open directory.
#[derive(Clone, Debug)]
pub(super) struct Spot {
    pub dir: Rc<Dir>,
    pub name: CString,
}

impl Spot {
    /// Where it is inside the root, links resolved.
    fn real(&self) -> String {
        let parent = String::from_utf8_lossy(&self.dir.real);
        format!("{parent}/{}", self.name.to_string_lossy())
    }

    /// It is, or `path` says it is, part of a unit of systemd's.
    pub fn is_unit_file(&self, path: &RootPath) -> bool {
        Own::is_unit_file(path.as_str()) || Own::is_unit_file(&self.real())
    }
}

/// What a walk is for, as far as the host's own places are concerned.
#[derive(Clone, Copy, Debug)]
pub(super) enum Intent<'a> {
    /// To see what is there, or to have a directory there.
    See,
    /// To make, change or remove what is there.
    Change,
    /// To have a file with these contents there.
    Text(&'a [u8]),
    /// To have a link to this target there.
    Link(&'a str),
}

/// The root and the chain of directories of the last walk.
#[derive(Debug)]
pub(super) struct Root {
    top: Rc<Dir>,
    own: Own,
    /// Where the host's own places really are, where links on this machine put them elsewhere.
    behind: Vec<(RootPath, &'static str)>,
    /// Those of the host's own places that are there, and all above them, each by its identity.
    known: Vec<(Identity, Vec<u8>)>,
    euid: u32,
    /// The parent that was walked to last, as it was declared.
    walked: String,
    /// The directory that the last walk found missing, as it was declared.
    missing: Option<String>,
    /// For prefixes of `walked`, each by its length, the directory that it leads to.
    kept: Vec<(usize, Rc<Dir>)>,
}

/// Why a walk does not go on.
enum Stop {
    /// The name is not there.
    Missing,
    /// A link leads by way of this place inside the root, which is not there, and on to `beyond`.
    Dangling { link: Vec<u8>, to: Vec<u8>, beyond: Vec<u8> },
    /// Something other than a directory is there.
    Obstructed(Vec<u8>),
    /// Anything else.
    Cause(String),
}

/// What one walk may still do.
struct Budget {
    links: u32,
    steps: u32,
}

impl Root {
    /// Opens the directory `root`.
    pub fn open(root: &Path, own: Own) -> io::Result<Root> {
        use std::os::unix::fs::OpenOptionsExt;
        let flags = libc::O_PATH | libc::O_DIRECTORY;
        let fd = std::fs::OpenOptions::new().read(true).custom_flags(flags).open(root)?.into();
        let (path, real, calm) = (Vec::new(), Vec::new(), OnceCell::new());
        let top = Rc::new(Dir { fd, path, real, calm });
        let (euid, _) = sys::effective_ids();
        let (behind, known) = (Vec::new(), Vec::new());
        let (walked, kept) = (String::new(), Vec::new());
        let missing = None;
        let mut root =
            Root { top, own: Own::default(), behind, known, euid, walked, missing, kept };
        root.behind = own.places().filter_map(|(at, what)| Some((root.real(at)?, what))).collect();
        root.known = root.known(&own)?;
        root.own = own;
        root.forget();
        Ok(root)
    }

    fn known(&mut self, own: &Own) -> io::Result<Vec<(Identity, Vec<u8>)>> {
        let mut known = vec![(sys::stat(&self.top.fd)?.identity, Vec::new())];
        let behind = std::mem::take(&mut self.behind);
        for place in own.places().map(|(at, _)| at).chain(behind.iter().map(|(at, _)| at.as_str()))
        {
            self.walk(place);
            for (_, dir) in &self.kept {
                let identity = sys::stat(&dir.fd)?.identity;
                if known.iter().all(|(other, _)| *other != identity) {
                    known.push((identity, dir.path.clone()));
                }
            }
        }
        self.behind = behind;
        Ok(known)
    }

    /// Where the directory of this identity is, if it is or is above one of the host's own places.
    fn real_name(&self, identity: Identity) -> Option<&[u8]> {
        let known = self.known.iter().find(|(known, _)| *known == identity);
        known.map(|(_, path)| path.as_slice())
    }

    /// Where `place` really is, or would be; `None` where that is where it says.
    fn real(&mut self, place: &str) -> Option<RootPath> {
        let (dir, stop) = self.walk(place);
        let at = self.kept.last().map_or(0, |(end, _)| *end);
        let real = match stop {
            Some(Stop::Dangling { to, beyond, .. }) => {
                [&*to, &beyond, &place.as_bytes()[first_name(place, at).as_str().len()..]].concat()
            }
            _ => [&dir.path, &place.as_bytes()[at..]].concat(),
        };
        lexical(&real).filter(|real| real.as_str() != place)
    }

    /// What is the host's own.
    pub fn own(&self) -> &Own {
        &self.own
    }

    /// The root's own directory.
    pub fn top(&self) -> &Dir {
        &self.top
    }

    /// What of the host's own the mount of `source`, a path of the machine whose links the kernel
    /// follows, would hand over, as far as it is there.
    pub fn refuses_mount(&self, source: &str) -> Option<&'static str> {
        let source = Path::new(source);
        let there = source.ancestors().find_map(|at| Some((at, at.canonicalize().ok()?)));
        let (at, there) = there?;
        let rest = source.strip_prefix(at).ok()?;
        let real = if rest.as_os_str().is_empty() { there } else { there.join(rest) };
        let real = RootPath::parse(real.to_str()?).ok();
        let Some(real) = real else { return self.own.refuses_tree("/") };
        let what = |path: &RootPath| {
            self.own.refuses_tree(path.as_str()).or_else(|| self.refuses(path, Intent::Change))
        };
        let stat = std::fs::metadata(real.as_str()).ok();
        let shown = stat.and_then(|stat| {
            use std::os::unix::fs::MetadataExt;
            lexical(self.real_name((stat.dev(), stat.ino()))?)
        });
        what(&real).or_else(|| shown.as_ref().and_then(what))
    }

    /// Forgets the directories of the last walk: the next one starts at the root.
    pub fn forget(&mut self) {
        self.kept.clear();
        self.missing = None;
    }

    /// Walks to the directory that holds `path`, for what `verb` says.
    pub fn reach(
        &mut self,
        path: &RootPath,
        intent: Intent,
        verb: &str,
    ) -> Result<Reached, Trouble> {
        let text = path.as_str();
        let parent = &text[..text.len() - path.name().len() - 1];
        let (dir, stop) = self.walk(parent);
        let at = self.kept.last().map_or(0, |(end, _)| *end).min(parent.len());
        let rest = if stop.is_some() { &text[at..] } else { &text[parent.len()..] };
        let behind = match &stop {
            Some(Stop::Dangling { to, beyond, .. }) => {
                let after = &text.as_bytes()[first_name(text, at).as_str().len()..];
                lexical(&[to, beyond, after].concat())
            }
            _ => None,
        };
        let reached = match stop {
            None => {
                let name = CString::new(path.name()).expect("a path holds no NUL");
                Ok(Reached::Parent(Spot { dir: dir.clone(), name }))
            }
            Some(Stop::Missing) => Ok(Reached::Missing(first_name(text, at))),
            Some(stop) => Err(stop.trouble(path, verb)),
        };
        // Even where the way ends early: the host's own places are refused before they exist.
        let refuse = |behind: RootPath| self.refuses(&behind, intent).map(Cow::from);
        let why = self.guard(path, &dir, rest, intent).or_else(|| behind.and_then(refuse));
        let why = why.or_else(|| match &reached {
            Ok(Reached::Parent(spot)) => self.shown_there(spot, intent).map(Cow::from),
            _ => None,
        });
        why.map_or(reached, |why| Err(refused(path, verb, why)))
    }

    /// The last directory on the way to `parent`, and why it is not the end of it.
    fn walk(&mut self, parent: &str) -> (Rc<Dir>, Option<Stop>) {
        if self.walked != parent {
            while self.kept.last().is_some_and(|(end, _)| !leads(&self.walked[..*end], parent)) {
                self.kept.pop();
            }
            self.walked.clear();
            self.walked.push_str(parent);
        }
        let (mut end, mut at) = match self.kept.last() {
            Some((end, dir)) => (*end, dir.clone()),
            None => (0, self.top.clone()),
        };
        let mut budget = Budget { links: MOST_LINKS, steps: MOST_STEPS };
        while end < parent.len() {
            let next = end + 1 + parent[end + 1..].find('/').unwrap_or(parent.len() - end - 1);
            if self.missing.as_deref() == Some(&parent[..next]) {
                return (at, Some(Stop::Missing));
            }
            match self.enter(&at, &parent.as_bytes()[end + 1..next], &mut budget) {
                Ok(dir) => at = dir,
                Err(stop) => {
                    if matches!(stop, Stop::Missing) {
                        self.missing = Some(parent[..next].to_owned());
                    }
                    return (at, Some(stop));
                }
            }
            end = next;
            if self.kept.len() == MOST_KEPT {
                self.kept.pop();
            }
            self.kept.push((end, at.clone()));
        }
        (at, None)
    }

    /// The directory `name` in `at`, or the one that a link of that name leads to.
    fn enter(&self, at: &Rc<Dir>, name: &[u8], budget: &mut Budget) -> Result<Rc<Dir>, Stop> {
        let entry = CString::new(name).expect("neither a path nor a link holds a NUL");
        let path = [&at.path, b"/".as_slice(), name].concat();
        if budget.steps == 0 {
            let cause =
                format!("more than {MOST_STEPS} directories on the way to {}", quoted(&path));
            return Err(Stop::Cause(cause));
        }
        budget.steps -= 1;
        match sys::open(&at.fd, &entry, DIRECTORY, 0) {
            Ok(fd) => {
                let stat = sys::stat(&fd);
                let identity = stat.map_err(|error| Stop::Cause(words(&error)))?.identity;
                let real = self.real_name(identity).map(<[u8]>::to_vec);
                let real = real.unwrap_or_else(|| [&at.real, b"/".as_slice(), name].concat());
                Ok(Rc::new(Dir { fd, path, real, calm: OnceCell::new() }))
            }
            Err(error) => match error.raw_os_error() {
                Some(libc::ENOENT) => Err(Stop::Missing),
                Some(libc::ELOOP | libc::ENOTDIR) => self.follow(at, &entry, path, budget),
                _ => Err(Stop::Cause(format!("{}: {}", quoted(&path), words(&error)))),
            },
        }
    }

    /// The directory that the link `name` in `at` leads to, inside the root.
    fn follow(
        &self,
        at: &Rc<Dir>,
        name: &CStr,
        link: Vec<u8>,
        budget: &mut Budget,
    ) -> Result<Rc<Dir>, Stop> {
        let failed =
            |error: io::Error| Stop::Cause(format!("{}: {}", quoted(&link), words(&error)));
        let fd = sys::open(&at.fd, name, libc::O_PATH | libc::O_NOFOLLOW, 0).map_err(failed)?;
        let stat = sys::stat(&fd).map_err(failed)?;
        if stat.kind != Kind::Symlink {
            return Err(Stop::Obstructed(link));
        }
        if budget.links == 0 {
            let cause = format!("more than {MOST_LINKS} links on the way, at {}", quoted(&link));
            return Err(Stop::Cause(cause));
        }
        budget.links -= 1;
        let target = sys::read_link(&fd, c"").map_err(failed)?;
        let mut dir = if target.starts_with(b"/") { self.top.clone() } else { at.clone() };
        let mut names = target.split(|&byte| byte == b'/');
        while let Some(name) = names.next() {
            let entered = match name {
                b"" | b"." => continue,
                b".." => self.above(&dir, budget),
                name => self.enter(&dir, name, budget),
            };
            dir = match entered {
                Ok(entered) => entered,
                Err(Stop::Missing) => {
                    let to = [&dir.path, b"/".as_slice(), name].concat();
                    let beyond = joined(names);
                    return Err(Stop::Dangling { link, to, beyond });
                }
                Err(Stop::Dangling { link, to, beyond }) => {
                    let beyond = [beyond, joined(names)].concat();
                    return Err(Stop::Dangling { link, to, beyond });
                }
                Err(stop) => return Err(stop),
            };
        }
        self.may_lead(stat.uid, &link, &dir)?;
        Ok(dir)
    }

    /// The directory that holds `dir`; the root holds itself. Walked from the root again, names
    /// only, since `..` of a directory that was moved away would lead out of it.
    fn above(&self, dir: &Dir, budget: &mut Budget) -> Result<Rc<Dir>, Stop> {
        let mut at = self.top.clone();
        let mut names = dir.path.split(|&byte| byte == b'/').skip(1).peekable();
        while let Some(name) = names.next() {
            if names.peek().is_some() {
                at = self.enter(&at, name, budget)?;
            }
        }
        Ok(at)
    }

    /// A link that is neither root's nor ours may only lead to what its owner already owns:
    /// otherwise whoever may make links would choose where root writes.
    fn may_lead(&self, owner: u32, link: &[u8], to: &Dir) -> Result<(), Stop> {
        if owner == 0 || owner == self.euid {
            return Ok(());
        }
        let shown = quoted(&to.path);
        let found = sys::stat(&to.fd)
            .map_err(|error| Stop::Cause(format!("{shown}: {}", words(&error))))?
            .uid;
        if found == owner {
            return Ok(());
        }
        Err(Stop::Cause(format!(
            "the link {} on the way belongs to user {owner} and leads to {shown}, which belongs to \
             user {found}: such a link is not followed",
            quoted(link),
        )))
    }

    /// What of the host's own lies at `path`: as declared, and as the links on the way have it,
    /// which lead to `rest` in `dir`.
    fn guard(
        &self,
        path: &RootPath,
        dir: &Dir,
        rest: &str,
        intent: Intent,
    ) -> Option<Cow<'_, str>> {
        let is_parent = rest.rfind('/') == Some(0);
        if is_parent && *dir.calm.get_or_init(|| self.is_calm(dir)) && leads_straight(path, dir) {
            return None;
        }
        if let Some(what) = self.refuses(path, intent) {
            return Some(what.into());
        }
        let declared = &path.as_str().as_bytes()[..path.as_str().len() - rest.len()];
        let others = [&dir.path, &dir.real].into_iter().filter(|at| **at != declared);
        let refused =
            |at: &Vec<u8>| match RootPath::parse(&format!("{}{rest}", String::from_utf8_lossy(at)))
            {
                Ok(resolved) => self.refuses(&resolved, intent).map(Cow::from),
                Err(why) => Some(format!("a place which, links resolved, {why}").into()),
            };
        others.into_iter().find_map(refused)
    }

    /// What of the host's own a mount shows at `spot` itself: a directory, which only these two
    /// intents can be for.
    fn shown_there(&self, spot: &Spot, intent: Intent) -> Option<&'static str> {
        if !matches!(intent, Intent::See | Intent::Change) {
            return None;
        }
        let stat = sys::stat_at(&spot.dir.fd, &spot.name).ok()?;
        let real = lexical(self.real_name(stat.identity)?)?;
        self.refuses(&real, intent)
    }

    fn is_calm(&self, dir: &Dir) -> bool {
        self.is_calm_at(&dir.path) && (dir.real == dir.path || self.is_calm_at(&dir.real))
    }

    fn is_calm_at(&self, path: &[u8]) -> bool {
        let Ok(path) = std::str::from_utf8(path) else { return false };
        let near = |place: &RootPath| {
            let beneath = |lower: &str, upper: &str| {
                lower
                    .strip_prefix(upper)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            };
            beneath(place.as_str(), path) || beneath(path, place.as_str())
        };
        self.own.is_calm(path) && !self.behind.iter().any(|(place, _)| near(place))
    }

    fn refuses(&self, path: &RootPath, intent: Intent) -> Option<&'static str> {
        for (place, what) in &self.behind {
            if path.is_within(place) {
                return Some(what);
            }
            if place.is_within(path) && !matches!(intent, Intent::See) {
                return Some("a directory above what is the host's own");
            }
        }
        match intent {
            Intent::See => self.own.refuses_directory(path),
            Intent::Change => self.own.refuses(path),
            Intent::Text(text) => {
                self.own.refuses(path).or_else(|| self.own.refuses_text(path, text))
            }
            Intent::Link(target) => {
                self.own.refuses(path).or_else(|| self.own.refuses_link(path, target))
            }
        }
    }
}

/// `dir` is the directory that `path` names, and no link was on the way.
fn leads_straight(path: &RootPath, dir: &Dir) -> bool {
    let text = path.as_str();
    text.as_bytes()[..text.len() - path.name().len() - 1] == *dir.path
}

impl Stop {
    fn trouble(self, path: &RootPath, verb: &str) -> Trouble {
        match self {
            Stop::Missing => trouble(path, verb, "its parent is not there"),
            Stop::Cause(cause) => trouble(path, verb, cause),
            Stop::Obstructed(at) => {
                let cause = format!("{} on the way is not a directory", quoted(&at));
                let awaits = String::from_utf8(at).ok().map(|at| Object::new("path", &at));
                Trouble { awaits, ..trouble(path, verb, cause) }
            }
            Stop::Dangling { link, to, .. } => {
                let (from, at) = (quoted(&link), quoted(&to));
                let cause = format!("the link {from} on the way leads to {at}, which is not there");
                let awaits = String::from_utf8(to).ok().map(|to| Object::new("path", &to));
                Trouble { awaits, ..trouble(path, verb, cause) }
            }
        }
    }
}

/// The refusal of `path`, which is `what` of the host's own.
fn refused(path: &RootPath, verb: &str, what: Cow<str>) -> Trouble {
    Trouble { touches_host: true, ..trouble(path, verb, format!("touches {what}")) }
}

/// A trouble with `path` while doing what `verb` says.
pub(super) fn trouble(path: &RootPath, verb: &str, cause: impl std::fmt::Display) -> Trouble {
    Trouble::new(format!("{verb} {}", quoted(path.as_str().as_bytes())), cause)
}

/// The path `text` up to the end of the name that starts after `at`.
fn first_name(text: &str, at: usize) -> RootPath {
    let end = text[at + 1..].find('/').map_or(text.len(), |next| at + 1 + next);
    RootPath::parse(&text[..end]).expect("the beginning of a path up to a name is a path")
}

/// Names as the end of a path.
fn joined<'n>(names: impl Iterator<Item = &'n [u8]>) -> Vec<u8> {
    names.flat_map(|name| [b"/".as_slice(), name]).flatten().copied().collect()
}

/// The path that `text` would name if every name on it were a directory.
fn lexical(text: &[u8]) -> Option<RootPath> {
    let text = String::from_utf8_lossy(text);
    let mut names = Vec::new();
    for name in text.split('/') {
        match name {
            "" | "." => {}
            ".." => drop(names.pop()),
            name => names.push(name),
        }
    }
    RootPath::parse(&format!("/{}", names.join("/"))).ok()
}

/// `prefix` is `path` or a directory on the way to it.
fn leads(prefix: &str, path: &str) -> bool {
    path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
