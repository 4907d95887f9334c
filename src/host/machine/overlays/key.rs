//! The private key of an interface: read, made and kept, in a file that root alone can read.
//!
//! It is in the file that the declaration names, or in the host's own state, in a directory of its
//! own: it is not a value of a declaration, which the store would let go of, but this machine's
//! identity to its peers. Never shown.

use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use crate::declaration::Own;
use crate::machine::change;
use crate::machine::clock::fill;
use crate::machine::files::Reader;
use crate::machine::place::{self, Filling, Site};
use crate::machine::root::{trouble, Intent, Reached, Root, Spot};
use crate::machine::sys;
use crate::machine::words::words;
use crate::resource::wireguard::Interface;
use crate::resource::{Make, Object, Place, RootPath, Trouble};
use crate::tool::wg::Secret;

/// The largest file that is looked at for a key, in bytes.
const LARGEST: u64 = 4096;
/// What lets others than its owner use it.
const OTHERS: u16 = 0o077;

/// A key that is kept.
pub(super) struct Held {
    pub key: Secret,
    /// Others than root can get at it.
    pub exposed: bool,
}

/// Where the key of `of` is; `None` where the host's own state has no directory `keys` yet.
fn spot(of: &Interface, keys: &Path, root: &mut Root) -> Result<Option<(Spot, RootPath)>, Trouble> {
    let (path, reached) = match of.key_file {
        Some(path) => (path.clone(), root.reach(path, Intent::Change, "keep a key in")?),
        None => {
            let path = format!("{}/{}.key", keys.display(), of.name);
            let path = RootPath::parse(&path)
                .map_err(|why| Trouble::new(format!("keep a key in {path}"), why))?;
            let name = RootPath::parse(&format!("/{}", path.name())).expect("it is one name");
            // Its own root, since no walk from the top may lead into the host's own state.
            let mut home = match Root::open(keys, Own::default()) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                home => home.map_err(|error| trouble(&path, "look for", words(&error)))?,
            };
            (path, home.reach(&name, Intent::Change, "keep a key in")?)
        }
    };
    match reached {
        Reached::Parent(spot) => Ok(Some((spot, path))),
        Reached::Missing(ancestor) => {
            let cause = format!("its directory {ancestor} is not there; declare it earlier");
            let awaits = Some(Object::at(&ancestor));
            Err(Trouble { awaits, ..trouble(&path, "keep a key in", cause) })
        }
    }
}

/// The key of `of` that is kept.
pub(super) fn read(
    of: &Interface,
    keys: &Path,
    root: &mut Root,
    reader: &mut Reader,
) -> Result<Option<Held>, Trouble> {
    let Some((spot, path)) = spot(of, keys, root)? else { return Ok(None) };
    held(&spot, &path, reader)
}

fn held(spot: &Spot, path: &RootPath, reader: &mut Reader) -> Result<Option<Held>, Trouble> {
    let failed = |cause: String| trouble(path, "read the private key in", cause);
    let stat = match sys::stat_at(&spot.dir.fd, &spot.name) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        stat => stat.map_err(|error| failed(words(&error)))?,
    };
    if stat.kind != sys::Kind::File {
        return Err(failed("it is no regular file".into()));
    }
    let bytes = reader.whole(spot, LARGEST).map_err(|error| failed(words(&error)))?;
    let text = std::str::from_utf8(&bytes).unwrap_or_default();
    let cause = "it does not hold a WireGuard key, as wg genkey makes one";
    let key = Secret::of(text.trim_ascii()).ok_or_else(|| failed(cause.into()))?;
    let exposed = stat.mode & OTHERS != 0 || stat.uid != sys::effective_ids().0;
    Ok(Some(Held { key, exposed }))
}

/// Keeps the key of `of` where root alone can read it: the one that is kept, or else the one that
/// is in use, or else a new one.
pub(super) fn keep(
    of: &Interface,
    keys: &Path,
    in_use: Option<Secret>,
    site: Site,
) -> Result<(), Trouble> {
    let Site { root, reader, fetcher, limit } = site;
    if of.key_file.is_none() {
        make_home(keys).map_err(|error| {
            Trouble::new(format!("make the directory {}", keys.display()), words(&error))
        })?;
    }
    let Some((spot, path)) = spot(of, keys, root)? else {
        let doing = format!("keep the private key of {}", of.name);
        return Err(Trouble::new(doing, "its directory went away meanwhile"));
    };
    let held = held(&spot, &path, reader)?;
    let over = held.is_some();
    let key = held.map(|held| held.key).or(in_use).unwrap_or_else(|| {
        let mut random = [0; 32];
        fill(&mut random);
        Secret::private(random)
    });
    let text = format!("{}\n", key.reveal());
    let (make, (uid, gid)) = (Make::Bytes(text.as_bytes()), sys::effective_ids());
    let place = Place { path: &path, make, mode: 0o600, uid, gid, over, keeps_list: false };
    place::durably(spot, &place, Filling { reader, fetcher, limit })
}

/// Makes the directory of keys in the host's own state.
fn make_home(keys: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(keys) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made.and_then(|()| File::open(keys.parent().unwrap_or(keys))?.sync_all()),
    }
}

/// Removes the key of `of`; that there is none is as good.
pub(super) fn discard(of: &Interface, keys: &Path, root: &mut Root) -> Result<(), Trouble> {
    let Some((spot, path)) = spot(of, keys, root)? else { return Ok(()) };
    change::remove_file(&spot, &path)
}
