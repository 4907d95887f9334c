//! What is the host's own, and may not be declared. Pure.
//!
//! The installation owns the host, the host owns everything else. Every question here is about
//! names alone, so that it can be asked of a declaration as it stands and again of the path that
//! the machine found behind symbolic links. Each answer is `None`, or what of the host's own it is.

use std::borrow::Cow;

use super::systemd;
use crate::resource::RootPath;

/// The host's own places, as paths inside the root.
#[derive(Clone, Debug, Default)]
pub struct Own {
    /// The state directory in use, where it lies inside the root and is not the default one.
    pub state: Option<RootPath>,
    /// The running binary, where it lies inside the root.
    pub binary: Option<RootPath>,
    /// The configuration file in use, where it lies inside the root and is not the default one.
    pub config: Option<RootPath>,
}

const NAME: &str = "nox-mesh-host";
const SERVICE: &str = "nox-mesh-host.service";
const PRESET: &str = "80-nox-mesh-host.preset";
const BINARY: &str = "the host's own binary";
const CONFIG: &str = "the host's own configuration";
const STATE: &str = "the host's own state";
const UNIT: &str = "the host's own unit";
const DROP_IN: &str = "a drop-in that the host's own unit inherits";
const ABOVE: &str = "a directory above what is the host's own";

/// Where an installation puts the host, whichever way it was installed.
static PLACES: &[(&str, &str)] = &[
    ("/etc/mesh-host", CONFIG),
    ("/var/lib/mesh-host", STATE),
    ("/run/mesh-host", STATE),
    ("/usr/bin/nox-mesh-host", BINARY),
    ("/usr/sbin/nox-mesh-host", BINARY),
    ("/usr/local/bin/nox-mesh-host", BINARY),
    ("/usr/local/sbin/nox-mesh-host", BINARY),
    // Not itself the host's, but what the unit is enabled by lies in it.
    ("/etc/systemd/system/multi-user.target.wants/nox-mesh-host.service", UNIT),
];

/// Every directory that systemd reads system units from (systemd.unit(5)).
static UNIT_DIRECTORIES: &[&str] = &[
    "/etc/systemd/system",
    "/etc/systemd/system.control",
    "/etc/systemd/system.attached",
    "/run/systemd/system",
    "/run/systemd/system.control",
    "/run/systemd/system.attached",
    "/run/systemd/transient",
    "/run/systemd/generator",
    "/run/systemd/generator.early",
    "/run/systemd/generator.late",
    "/usr/lib/systemd/system",
    "/usr/local/lib/systemd/system",
];

/// Every directory that systemd reads presets of system units from (systemd.preset(5)).
static PRESET_DIRECTORIES: &[&str] = &[
    "/etc/systemd/system-preset",
    "/run/systemd/system-preset",
    "/usr/lib/systemd/system-preset",
    "/usr/local/lib/systemd/system-preset",
];

/// Drop-in directories that the unit inherits from its type and from its name's beginnings.
static INHERITED: &[&str] = &["service.d", "nox-.service.d", "nox-mesh-.service.d"];

/// Names that stand for other names on nearly every machine.
static USUAL_LINKS: &[(&str, &str)] =
    &[("/bin", "/usr/bin"), ("/sbin", "/usr/sbin"), ("/lib", "/usr/lib"), ("/var/run", "/run")];

/// Settings by which another unit's file can take the host's name, disable the host or end it.
static REACHING: &[&str] = &["Alias", "Also", "Conflicts", "PropagatesStopTo", "RequiredBy"];

impl Own {
    /// Putting an entry other than a directory at `path`, or changing what is there.
    pub fn refuses(&self, path: &RootPath) -> Option<&'static str> {
        self.refuses_access(path)
    }

    /// Making a directory at `path`, or finding it there, without a say in its mode or owner.
    pub fn refuses_directory(&self, path: &RootPath) -> Option<&'static str> {
        self.holds(&usual(path.as_str()))
    }

    /// Giving the directory at `path` a mode or an owner.
    pub fn refuses_access(&self, path: &RootPath) -> Option<&'static str> {
        self.refuses_tree(path.as_str())
    }

    /// Writing to, or hiding, anything at or beneath `path`, which may be `/`.
    pub fn refuses_tree(&self, path: &str) -> Option<&'static str> {
        let path = usual(path.trim_end_matches('/'));
        self.holds(&path).or_else(|| self.is_above(&path).then_some(ABOVE))
    }

    /// The name that a symbolic link at `path` to `target` gives to what it leads to: among the
    /// units, another name for the host's own. That `path` may be used at all,
    /// [`Own::refuses`] says.
    pub fn refuses_link(&self, path: &RootPath, target: &str) -> Option<&'static str> {
        unit_name(&usual(path.as_str()))?;
        let name = target.rsplit('/').find(|name| !name.is_empty())?;
        is_unit(name).then_some(UNIT)
    }

    /// A file at `path` that holds `bytes`, as far as its contents go: a unit that takes the
    /// host's name or can end it, or a preset that withholds it.
    pub fn refuses_text(&self, path: &RootPath, bytes: &[u8]) -> Option<&'static str> {
        let path = usual(path.as_str());
        let is_ours = |word: &systemd::Pattern| {
            word.fits(SERVICE) || word.name().is_some_and(|name| is_unit(&name))
        };
        let refused = match unit_name(&path) {
            Some(name) => systemd::names(name, bytes, REACHING, is_ours),
            None => preset_name(&path).is_some() && systemd::withholds(bytes, is_ours),
        };
        refused.then_some(UNIT)
    }

    /// Starting, stopping, enabling or disabling the unit `name`, with or without its suffix.
    pub fn refuses_unit(&self, name: &str) -> Option<&'static str> {
        is_unit(name).then_some(UNIT)
    }

    /// Installing the package `name`, or a variant of it that would replace it.
    pub fn refuses_package(&self, name: &str) -> Option<&'static str> {
        let rest = name.strip_prefix(NAME)?;
        (rest.is_empty() || rest.starts_with('-')).then_some("the host's own package")
    }

    /// Whatever stands directly in the directory `dir` is neither the host's own, nor above it, nor
    /// a unit: nothing here would refuse it.
    pub fn is_calm(&self, dir: &str) -> bool {
        let dir = usual(dir);
        self.holds(&dir).is_none() && !self.is_above(&dir) && !Own::is_unit_file(&dir)
    }

    /// `path` lies in a directory of system units or of their presets: it is one, or part of one.
    pub fn is_unit_file(path: &str) -> bool {
        let path = usual(path);
        unit_name(&path).or_else(|| preset_name(&path)).is_some()
    }

    /// `path` is one of the host's own places or lies in one.
    fn holds(&self, path: &str) -> Option<&'static str> {
        let place = self.places().find(|(place, _)| beneath(path, place).is_some());
        let preset = || (preset_name(path)? == PRESET).then_some(UNIT);
        place.map(|(_, what)| what).or_else(|| unit_entry(unit_name(path)?)).or_else(preset)
    }

    /// `path` is above one of the host's own places, or may come to hold one of its units.
    fn is_above(&self, path: &str) -> bool {
        let above = |place: &str| beneath(place, path).is_some();
        self.places().any(|(place, _)| above(place))
            || UNIT_DIRECTORIES.iter().chain(PRESET_DIRECTORIES).any(|dir| above(dir))
    }

    /// Every directory that systemd reads system units from.
    pub fn unit_directories() -> &'static [&'static str] {
        UNIT_DIRECTORIES
    }

    /// The host's own places, each with what it is; the machine looks what links make of them.
    pub fn places(&self) -> impl Iterator<Item = (&str, &'static str)> {
        let used = [(&self.state, STATE), (&self.binary, BINARY), (&self.config, CONFIG)];
        let used =
            used.into_iter().filter_map(|(path, what)| Some((path.as_ref()?.as_str(), what)));
        PLACES.iter().copied().chain(used)
    }
}

/// What of `path` is left beneath `place`: empty where they are the same, else beginning with `/`.
fn beneath<'p>(path: &'p str, place: &str) -> Option<&'p str> {
    // Both begin with /: most pairs part at the next letter, and every path is asked about.
    if let (Some(one), Some(other)) = (path.as_bytes().get(1), place.as_bytes().get(1)) {
        if one != other {
            return None;
        }
    }
    path.strip_prefix(place).filter(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// `path` with the usual links followed.
fn usual(path: &str) -> Cow<'_, str> {
    for (link, target) in USUAL_LINKS {
        if let Some(rest) = beneath(path, link) {
            return Cow::Owned(format!("{target}{rest}"));
        }
    }
    Cow::Borrowed(path)
}

/// What of `path` is left beneath a directory of units, where it lies in one.
fn unit_name(path: &str) -> Option<&str> {
    entry_of(UNIT_DIRECTORIES, path)
}

/// What of `path` is left beneath a directory of presets, where it lies in one.
fn preset_name(path: &str) -> Option<&str> {
    entry_of(PRESET_DIRECTORIES, path)
}

fn entry_of<'p>(directories: &[&str], path: &'p str) -> Option<&'p str> {
    let name = |dir: &&str| beneath(path, dir).filter(|rest| !rest.is_empty());
    directories.iter().find_map(name).map(|rest| &rest[1..])
}

/// What of the host's own an entry of a unit directory is.
fn unit_entry(name: &str) -> Option<&'static str> {
    let first = name.split('/').next().unwrap_or(name);
    if INHERITED.contains(&first) {
        return Some(DROP_IN);
    }
    name.split('/').any(is_unit).then_some(UNIT)
}

/// A unit of the host's name, whatever its suffix (a timer of that name would start it), or
/// something that belongs to one, such as its drop-in directory.
fn is_unit(name: &str) -> bool {
    name.strip_prefix(NAME).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}
