//! One resource of a declaration: judged whole, and built if nothing is wrong with it. Pure.

use std::borrow::Cow;
use std::time::Duration;

use super::check::{At, Checker, Strangers, Vault};
use super::fault::{quoted, Faults};
use super::json::{Entries, Json};
use super::near::did_you_mean;
use super::whole::Whole;
use super::{Declared, Own, Trust};
use crate::resource::fields::{Fields, Slot, Value};
use crate::resource::kind::{self, Carrier, Judge, Kind, Shape, Touch, COMMON, KINDS};
use crate::resource::lost::Lost;
use crate::resource::{form, RootPath};

/// Storage that one resource hands on to the next.
#[derive(Default)]
pub(super) struct Spare<'a> {
    pub entries: Entries<'a>,
    common: Vec<Slot<'a>>,
    slots: Vec<Slot<'a>>,
    order: Vec<(usize, usize)>,
}

/// What it takes to judge one resource.
pub(super) struct Judging<'j, 'a> {
    pub position: u32,
    pub trust: Trust,
    pub own: &'j Own,
    pub vault: Vault<'j>,
    pub faults: &'j mut Faults,
    pub whole: &'j mut Whole<'a>,
    pub spare: &'j mut Spare<'a>,
}

impl<'a> Judging<'_, 'a> {
    /// The resource, or `None` after noting what is wrong with it.
    pub fn judge(mut self, mut entries: Entries<'a>) -> Option<Declared> {
        let faults_before = self.faults.count();
        let named = |name: &str| entries.iter().find(|(key, _)| key == name).map(|(_, it)| it);
        let id = match named("id") {
            Some(Json::Text(id)) if good_id(id) => Some(id.clone()),
            _ => None,
        };
        let kind = match named("type") {
            Some(Json::Text(name)) => kind::find(name),
            _ => None,
        };
        let marked = matches!(named("secret"), Some(Json::Bool(true)));
        let vault: Vault<'_> = match &mut self.vault {
            Some(vault) => Some(&mut **vault),
            None => None,
        };
        let (position, references) = (self.position, Vec::new());
        let (faults, lost) = (self.faults, None);
        let order = &mut self.spare.order;
        let mut checker = Checker { faults, position, id, vault, marked, lost, references, order };
        let mut common = Fields::new(COMMON, std::mem::take(&mut self.spare.common));
        let table = kind.map_or(&[][..], |kind| kind.fields);
        let mut fields = Fields::new(table, std::mem::take(&mut self.spare.slots));
        let strangers = if kind.is_some() { Strangers::Refused } else { Strangers::Passed };
        checker.fields(None, &mut entries, &mut [&mut common, &mut fields], strangers);
        check_type(&mut checker, self.trust, &common, kind);
        if !self.whole.enter(position, checker.id.clone(), kind) {
            let first = checker.id.as_ref().map_or_else(String::new, |id| self.whole.first(id));
            checker.wrong(&At::field("id"), format!("is the id of {first} already"), "");
        }
        if let Some(kind) = kind {
            exactly_one(&mut checker, kind, &fields);
            let (own, whole) = (self.own, &mut *self.whole);
            (kind.rules)(&fields, &mut Rules { checker: &mut checker, own, whole, position });
        }
        let refers = refer(&mut checker, self.whole);
        if let Some(kind) = kind.filter(|kind| kind.build.is_none()) {
            if checker.faults.count() == faults_before {
                let wrong = format!("type {:?} is not supported by this host yet", kind.name);
                let mend = "leave it out, or upgrade the host to one that applies it";
                checker.wrong(&At::field("type"), wrong, mend);
            }
        }
        let Checker { faults, id, lost, .. } = checker;
        let declared = match (kind.and_then(|kind| Some((kind, kind.build?))), id) {
            (Some((kind, build)), Some(id)) if faults.count() == faults_before => {
                name_whole(kind, &mut fields, refers.first().copied().flatten(), self.whole);
                let seconds = common.integer("timeout_s").map(|seconds| seconds as u64);
                let seconds = seconds.unwrap_or(kind.default_timeout_s.into());
                let resource = build(&id, &mut fields);
                Some(Declared {
                    timeout: Duration::from_secs(seconds),
                    refers,
                    resource: match lost {
                        None => resource,
                        Some(name) => Box::new(Lost { without: resource, name }),
                    },
                    id: id.into(),
                })
            }
            _ => None,
        };
        self.spare.entries = entries;
        self.spare.common = common.into_spare();
        self.spare.slots = fields.into_spare();
        declared
    }
}

fn good_id(id: &str) -> bool {
    id.len() <= form::ID.max && (form::ID.holds)(id)
}

/// The type must be known, and allowed here.
fn check_type(
    checker: &mut Checker<'_, '_>,
    trust: Trust,
    common: &Fields<'_>,
    kind: Option<&Kind>,
) {
    let at = At::field("type");
    let Some(name) = common.text("type") else { return };
    let Some(kind) = kind else {
        let mend = did_you_mean(name, KINDS.iter().map(|kind| kind.name));
        return checker.wrong(&at, format!("{} is not a type", quoted(name)), mend);
    };
    if kind.carrier == Carrier::Bundle && trust == Trust::Untrusted {
        let wrong = format!("only a bundle may carry an {}", kind.name);
        checker.wrong(&at, wrong, "apply it with --bundle, or leave it out");
    }
}

fn exactly_one(checker: &mut Checker<'_, '_>, kind: &Kind, fields: &Fields<'_>) {
    let there = || kind.exactly_one.iter().filter(|name| fields.has(name));
    if kind.exactly_one.is_empty() || there().count() == 1 {
        return;
    }
    let all = kind.exactly_one.join(", ");
    match there().copied().collect::<Vec<_>>().as_slice() {
        [] => {
            let wrong = format!("is missing, or another of {all}");
            checker.wrong(&At::field(kind.exactly_one[0]), wrong, "give exactly one of them");
        }
        [first, others @ ..] => {
            let wrong = format!("stands beside {first}");
            checker.wrong(&At::field(others[0]), wrong, format!("give exactly one of {all}"));
        }
    }
}

/// The positions of the resources that this one refers to.
fn refer<'a>(checker: &mut Checker<'_, 'a>, whole: &mut Whole<'a>) -> Box<[Option<u32>]> {
    let references = std::mem::take(&mut checker.references);
    let mut refers = Vec::with_capacity(references.len());
    for reference in references {
        match whole.refer(checker.position, &reference) {
            // What the store has was checked when it was accepted, and may be an excerpt.
            Ok(None) if checker.vault.is_none() => whole.miss(checker.position, reference),
            Ok(at) => refers.push(at),
            Err(wrong) => checker.wrong(&reference.field, wrong, ""),
        }
    }
    refers.into()
}

/// A part of something names that by id, and its own type has to know it by its name: that is put
/// in place of the id, or nothing where this is an excerpt that has not the whole.
fn name_whole<'a>(kind: &Kind, fields: &mut Fields<'a>, refers: Option<u32>, all: &Whole<'a>) {
    let of_type = |shape: &Shape| match *shape {
        Shape::Reference([of_type]) => Some(*of_type),
        _ => None,
    };
    let found = kind.fields.iter().enumerate().find_map(|(at, it)| Some((at, of_type(&it.shape)?)));
    if let Some((at, of_type)) = found {
        let name = refers.and_then(|position| all.claimed(of_type, position)).unwrap_or_default();
        fields.put(at, Some(Value::Text(name)));
    }
}

/// Hears what a type's rules say of one resource.
struct Rules<'r, 'c, 'a> {
    checker: &'r mut Checker<'c, 'a>,
    own: &'r Own,
    whole: &'r mut Whole<'a>,
    position: u32,
}

impl<'a> Judge<'a> for Rules<'_, '_, 'a> {
    fn wrong(&mut self, field: &str, wrong: String, mend: &str) {
        self.checker.wrong(&field, wrong, mend);
    }

    fn claims(&mut self, field: &str, space: &'static str, name: Cow<'a, str>) {
        if let Err((by, name)) = self.whole.claim(self.position, space, name) {
            let by = self.whole.place(by);
            let wrong = format!("{} is declared by {by} already", quoted(&name));
            self.checker.wrong(&field, wrong, "declare each object once");
        }
    }

    fn touches(&mut self, field: &str, touch: Touch<'_>) {
        let own = self.own;
        if let Touch::Link(path, target) = touch {
            self.whole.link(path, target);
        }
        let what = match touch {
            Touch::Entry(path)
            | Touch::Link(path, _)
            | Touch::Directory(path)
            | Touch::Access(path)
            | Touch::Text(path, _)
                if self.whole.is_calm(path, own) =>
            {
                None
            }
            Touch::Entry(path) => own.refuses(path),
            Touch::Link(path, target) => own.refuses_link(path, target),
            Touch::Directory(path) => own.refuses_directory(path),
            Touch::Access(path) => own.refuses_access(path),
            Touch::Tree(path) => {
                self.whole.reach(self.position, field, path);
                own.refuses_tree(path)
            }
            Touch::Home(path) => {
                self.whole.reach(self.position, field, path);
                RootPath::parse(path).ok().and_then(|path| own.refuses_directory(&path))
            }
            Touch::Text(path, bytes) => own.refuses_text(path, bytes),
            Touch::Unit(name) => own.refuses_unit(name),
            Touch::Package(name) => own.refuses_package(name),
        };
        if let Some(what) = what {
            let mend = "leave it out: the installation owns the host, not a declaration";
            self.checker.wrong(&field, format!("touches {what}"), mend);
        }
    }
}
