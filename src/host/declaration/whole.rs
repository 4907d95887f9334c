//! What holds between the resources of one declaration. Pure.
//!
//! Owns ids, references, claims to objects, and the paths behind symbolic links that the
//! declaration itself makes.

use std::borrow::Cow;
use std::collections::hash_map::Entry;

use super::check::Reference;
use super::fault::{quoted, Fault, Faults};
use super::near::did_you_mean;
use super::own::Own;
use crate::hash::Map;
use crate::resource::kind::{Kind, KINDS};
use crate::resource::RootPath;

/// What has been seen of a declaration so far.
#[derive(Default)]
pub(super) struct Whole<'a> {
    /// The position of each id.
    ids: Map<Cow<'a, str>, u32>,
    /// The type of each resource, as its position among [`KINDS`].
    kinds: Vec<u8>,
    /// Who claims what, by space.
    claims: Map<&'static str, Map<Cow<'a, str>, u32>>,
    /// References to ids that had not been seen.
    pending: Vec<(u32, Reference<'a>)>,
    /// The targets of declared links, by path.
    links: Map<String, String>,
    /// The last directory that was asked about, and whether it is calm.
    calm: (String, bool),
    /// Paths that must not lead to the host's own: all but those of the space `path`.
    reaches: Vec<(u32, String, String)>,
}

const UNKNOWN: u8 = u8::MAX;

/// About how many bytes of a declaration one resource takes.
const TYPICAL: usize = 350;

impl<'a> Whole<'a> {
    /// Makes room for what a declaration of so many bytes may hold.
    pub fn of(bytes: usize) -> Whole<'a> {
        let mut whole = Whole::default();
        whole.ids.reserve(bytes / TYPICAL);
        whole.claims.entry("path").or_default().reserve(bytes / TYPICAL);
        whole
    }

    /// The place of a resource, with its id where it has a good one.
    pub fn place(&self, position: u32) -> String {
        let id = self.ids.iter().find(|(_, at)| **at == position).map(|(id, _)| id);
        place(position, id.map(|id| &**id))
    }

    /// The place of the first resource of this id.
    pub fn first(&self, id: &str) -> String {
        place(self.ids.get(id).copied().unwrap_or_default(), None)
    }

    /// Nothing that stands directly in the directory of `path` can be the host's own.
    pub fn is_calm(&mut self, path: &RootPath, own: &Own) -> bool {
        let parent = &path.as_str()[..path.as_str().len() - path.name().len() - 1];
        if self.calm.0 != parent || parent.is_empty() {
            self.calm = (parent.to_owned(), own.is_calm(parent));
        }
        self.calm.1
    }

    /// Notes the next resource, its id and its type, as far as it has good ones;
    /// false where an earlier resource has the id.
    pub fn enter(&mut self, position: u32, id: Option<Cow<'a, str>>, kind: Option<&Kind>) -> bool {
        let at = kind.and_then(|kind| KINDS.iter().position(|known| std::ptr::eq(*known, kind)));
        self.kinds.push(at.map_or(UNKNOWN, |at| at as u8));
        match id.map(|id| self.ids.entry(id)) {
            None => true,
            Some(Entry::Occupied(_)) => false,
            Some(Entry::Vacant(free)) => {
                free.insert(position);
                true
            }
        }
    }

    /// The earlier resource that a reference names, if there is one; where it is of the wrong type,
    /// the error says so.
    pub fn refer(&self, position: u32, to: &Reference<'a>) -> Result<Option<u32>, String> {
        let Some(at) = self.ids.get(&to.id).copied().filter(|at| *at < position) else {
            return Ok(None);
        };
        match KINDS.get(usize::from(self.kinds[at as usize])) {
            Some(kind) if !to.types.is_empty() && !to.types.contains(&kind.name) => Err(format!(
                "{} is a resource of type {}, not {}",
                quoted(&to.id),
                kind.name,
                to.types.join(" or ")
            )),
            _ => Ok(Some(at)),
        }
    }

    /// Keeps a reference that names no earlier resource, for [`Whole::finish`] to explain.
    pub fn miss(&mut self, position: u32, to: Reference<'a>) {
        self.pending.push((position, to));
    }

    /// Notes that a resource claims `name` in `space`; the error is who claimed it before, and the
    /// name again.
    pub fn claim(
        &mut self,
        position: u32,
        space: &'static str,
        name: Cow<'a, str>,
    ) -> Result<(), (u32, Cow<'a, str>)> {
        match self.claims.entry(space).or_default().entry(name) {
            Entry::Occupied(taken) if *taken.get() != position => {
                Err((*taken.get(), taken.key().clone()))
            }
            Entry::Occupied(_) => Ok(()),
            Entry::Vacant(free) => {
                free.insert(position);
                Ok(())
            }
        }
    }

    /// What the resource at `position` claims in `space`.
    pub fn claimed(&self, space: &str, position: u32) -> Option<Cow<'a, str>> {
        let mut claims = self.claims.get(space)?.iter();
        claims.find(|(_, at)| **at == position).map(|(name, _)| name.clone())
    }

    /// Notes a declared link.
    pub fn link(&mut self, path: &RootPath, target: &str) {
        self.links.insert(path.as_str().to_owned(), target.to_owned());
    }

    /// Notes a path that a resource reaches without claiming it.
    pub fn reach(&mut self, position: u32, field: &str, path: &str) {
        self.reaches.push((position, field.to_owned(), path.to_owned()));
    }

    /// Judges what could not be judged before the last resource had been read. What the file of a
    /// position is to hold, `text` says, asked only where no fault was found.
    pub fn finish<'t>(
        mut self,
        own: &Own,
        text: &dyn Fn(u32) -> Option<&'t [u8]>,
        faults: &mut Faults,
    ) {
        for (position, to) in std::mem::take(&mut self.pending) {
            if faults.is_full() {
                break;
            }
            let (wrong, mend) = self.explain(position, &to);
            let fault = Fault { place: self.place(position), field: to.field, wrong, mend };
            faults.push(position + 1, fault);
        }
        if !self.links.is_empty() {
            self.follow(own, faults);
            if faults.count() == 0 {
                self.read_as_units(own, text, faults);
            }
        }
    }

    fn explain(&self, position: u32, to: &Reference<'a>) -> (String, String) {
        const FEW: usize = 1000;
        let id = quoted(&to.id);
        match self.ids.get(&to.id) {
            Some(at) if *at == position => (format!("{id} is this resource itself"), String::new()),
            Some(at) => {
                let wrong = format!("{id} stands later in the list, at resources[{at}]");
                (wrong, "move it before this one".into())
            }
            None if self.ids.len() > FEW => (format!("no resource has the id {id}"), String::new()),
            None => {
                let mend = did_you_mean(&to.id, self.ids.keys().map(|id| &**id));
                (format!("no resource has the id {id}"), mend)
            }
        }
    }

    /// Follows the declared links on the way to every declared path: what lies behind them may be
    /// the host's own, or another resource's.
    fn follow(&self, own: &Own, faults: &mut Faults) {
        let none = Map::default();
        let claimed = self.claims.get("path").unwrap_or(&none);
        let units = self.unit_links();
        let paths = claimed.iter().map(|(path, at)| (*at, "path", &**path));
        let reaches = self.reaches.iter().map(|(at, field, path)| (*at, &**field, &**path));
        let mut met: Vec<_> = paths
            .chain(reaches)
            .filter_map(|(at, field, path)| Some((at, field, self.lead(path, &units)?)))
            .collect();
        met.extend(units.iter().filter_map(|(link, target)| {
            let path = RootPath::parse(link).ok()?;
            let seen = own.refuses_link(&path, self.links.get(*link)?).is_some();
            let found = !seen && own.refuses_link(&path, target).is_some();
            found.then_some((*claimed.get(*link)?, "target", target.clone()))
        }));
        met.sort();
        let mut found: Map<String, u32> = Map::default();
        for (at, field, behind) in met {
            let other = || claimed.get(&*behind).or_else(|| found.get(&behind)).copied();
            let wrong = if behind.is_empty() {
                "goes through a loop of declared links".into()
            } else if let Some(what) = own.refuses_tree(&behind) {
                format!("leads, by a declared link, to {}: {what}", quoted(&behind))
            } else if let Some(other) = other().filter(|other| field == "path" && *other != at) {
                format!("leads, by a declared link, to what {} declares", self.place(other))
            } else {
                found.insert(behind, at);
                continue;
            };
            let mend = "declare the place that it leads to, or leave the link out".into();
            let fault = Fault { place: self.place(at), field: field.into(), wrong, mend };
            faults.push(at + 1, fault);
        }
    }

    /// Holds what declared links make units of against the host's own: a file anywhere is one that
    /// a link among the units leads to.
    fn read_as_units<'t>(
        &self,
        own: &Own,
        text: &dyn Fn(u32) -> Option<&'t [u8]>,
        faults: &mut Faults,
    ) {
        let units = self.unit_links();
        for (path, at) in self.claims.get("path").into_iter().flatten() {
            let Some(text) = text(*at) else { continue };
            let real = self.behind(path, Last::Kept).unwrap_or_else(|| path.to_string());
            let name = |(link, target): &(&str, String)| {
                let rest = real.strip_prefix(&**target)?;
                (rest.is_empty() || rest.starts_with('/')).then(|| format!("{link}{rest}"))
            };
            let mut names = units.iter().filter_map(name).chain([real.clone()]);
            let found = names.find_map(|name| {
                Some((own.refuses_text(&RootPath::parse(&name).ok()?, text)?, name))
            });
            if let Some((what, name)) = found {
                let wrong = format!("is, by a declared link, {}: {what}", quoted(&name));
                let mend = "leave out what it says of the host, or the link".into();
                let fault = Fault { place: self.place(*at), field: "path".into(), wrong, mend };
                faults.push(at + 1, fault);
            }
        }
    }

    /// Where `path` leads: the place behind declared links, or the place among the units that a
    /// declared link makes of it; empty where it does not end, `None` where it meets no link.
    fn lead(&self, path: &str, units: &[(&str, String)]) -> Option<String> {
        if let Some(behind) = self.behind(path, Last::Kept) {
            return Some(behind);
        }
        units.iter().find_map(|(link, target)| {
            let rest = path.strip_prefix(&**target).filter(|rest| rest.starts_with('/'))?;
            Some(format!("{link}{rest}"))
        })
    }

    /// The declared links among the units, and where they lead.
    fn unit_links(&self) -> Vec<(&str, String)> {
        let among = self.links.keys().filter(|path| Own::is_unit_file(path));
        among.filter_map(|path| Some((&**path, self.behind(path, Last::Followed)?))).collect()
    }

    /// Where `path` leads by declared links; `None` where it meets none of them, empty where it
    /// does not end.
    fn behind(&self, path: &str, last: Last) -> Option<String> {
        const HOPS: usize = 40;
        let meets = |(at, _)| at > 0 && self.links.contains_key(&path[..at]);
        let met = path.match_indices('/').any(meets);
        if !(met || last == Last::Followed && self.links.contains_key(path)) {
            return None;
        }
        let mut names: Vec<String> = path.rsplit('/').map(str::to_owned).collect();
        let (mut so_far, mut hops) = (String::new(), 0);
        while let Some(name) = names.pop() {
            match &*name {
                "" | "." => continue,
                ".." => so_far.truncate(so_far.rfind('/').unwrap_or(0)),
                name => {
                    so_far.push('/');
                    so_far.push_str(name);
                }
            }
            let is_last = names.iter().all(|name| matches!(&**name, "" | "."));
            if is_last && last == Last::Kept {
                continue;
            }
            if let Some(target) = self.links.get(&so_far) {
                hops += 1;
                if hops > HOPS || so_far.len() + target.len() > 16 * 4096 {
                    return Some(String::new());
                }
                let parent =
                    if target.starts_with('/') { 0 } else { so_far.rfind('/').unwrap_or(0) };
                so_far.truncate(parent);
                names.extend(target.rsplit('/').map(str::to_owned));
            }
        }
        Some(so_far)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Last {
    Kept,
    Followed,
}

/// `resources[3] "id"`, the id quoted and capped.
pub(super) fn place(position: u32, id: Option<&str>) -> String {
    match id {
        Some(id) => format!("resources[{position}] {}", quoted(id)),
        None => format!("resources[{position}]"),
    }
}
