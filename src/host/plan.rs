//! What a pass has to do, from what is declared and what is owned. Pure.
//!
//! Which resources belong to another source, which objects are no longer declared and in what order
//! they go, and which of those stand in the way of something declared.

use std::collections::{HashMap, HashSet};

use crate::declaration::{Declaration, Declared};
use crate::resource::parting::{parting, Parting};
use crate::resource::{Object, Removable};
use crate::store::{Owned, Source, State};

/// What is special about a declared resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Another source has, or had, it for good: this one leaves it alone.
    Skip(Option<Source>),
    /// Another source owns it, and this one takes it over.
    Claim(Source),
    /// Another source owns it, and this one may not take it over unasked.
    Conflict(Source),
}

/// Whether a declaration may take over what another source owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claims {
    /// As its source has it: the link takes, the bundle stands back, `local` is refused.
    BySource,
    /// A person said `--take`.
    Take,
}

/// The fates of those resources, by position, that have one.
pub fn fates(
    source: Source,
    declaration: &Declaration,
    state: &State,
    claims: Claims,
) -> HashMap<usize, Fate> {
    let fate = |declared: &Declared| {
        let object = declared.resource.object();
        let owner = state.get(object.as_str()).map(|owned| owned.source);
        let takes = source == Source::Link || claims == Claims::Take;
        match owner {
            Some(owner) if owner == source => None,
            Some(owner) if takes => Some(Fate::Claim(owner)),
            None if takes => None,
            _ if state.ceded(source, object.as_str()) => Some(Fate::Skip(owner)),
            Some(owner) if source == Source::Bundle => Some(Fate::Skip(Some(owner))),
            Some(owner) => Some(Fate::Conflict(owner)),
            None => None,
        }
    };
    // Nothing owned and nothing ever taken away is the common case, and costs nothing.
    if !state.is_shared(source) && !state.has_ceded(source) {
        return HashMap::new();
    }
    let fates = declaration.resources.iter().map(fate).enumerate();
    fates.filter_map(|(position, fate)| Some((position, fate?))).collect()
}

/// What `source` owns and `declaration` does not name as what it is, in the order of making. A
/// directory that was made along with something stays while anything that stays lies beneath it.
pub fn released(source: Source, declaration: &Declaration, state: &State) -> Vec<Object> {
    if state.is_settled(source) && state.whole(source) == Some(&declaration.sha256) {
        return Vec::new();
    }
    let mut stays = vec![false; state.positions()];
    for declared in &declaration.resources {
        if let Some(owned) = state.get(declared.resource.object().as_str()) {
            stays[owned.position] = owned.of_type == declared.resource.kind();
        }
    }
    let implied: HashSet<&str> = state
        .owned()
        .filter(|owned| owned.implied && !stays[owned.position])
        .map(|owned| owned.object)
        .collect();
    let needed = needed(&implied, state, source, declaration);
    let goes = |owned: &Owned| {
        owned.source == source && !stays[owned.position] && !needed.contains(owned.object)
    };
    let goes = state.owned().filter(goes);
    let mut goes: Vec<Object> =
        goes.filter_map(|owned| Object::from_journal(owned.object)).collect();
    // A container may be older than the network that it has joined since, which cannot go before.
    goes.sort_by_key(|object| object.space() != "container_network");
    goes
}

/// What is claimed as another kind of thing than what its owner has there: its new owner lets go of
/// that, as of what is its own.
pub fn replaced(
    declaration: &Declaration,
    fates: &HashMap<usize, Fate>,
    state: &State,
) -> Vec<Object> {
    let is_other = |declared: &Declared| {
        let owned = state.get(declared.resource.object().as_str());
        owned.is_some_and(|owned| owned.of_type != declared.resource.kind())
    };
    let claimed = declaration.resources.iter().enumerate().filter(|(position, declared)| {
        matches!(fates.get(position), Some(Fate::Claim(_))) && is_other(declared)
    });
    claimed.map(|(_, declared)| declared.resource.object()).collect()
}

/// Those of `implied` that hold something which stays or comes.
fn needed<'s>(
    implied: &HashSet<&'s str>,
    state: &'s State,
    source: Source,
    declaration: &Declaration,
) -> HashSet<&'s str> {
    let mut needed = HashSet::new();
    if implied.is_empty() {
        return needed;
    }
    let mut hold = |object: &str| {
        let mut rest = object;
        while let Some((above, _)) = rest.rsplit_once('/') {
            needed.extend(implied.get(above));
            rest = above;
        }
    };
    state.owned().filter(|owned| owned.source != source).for_each(|owned| hold(owned.object));
    for declared in &declaration.resources {
        hold(declared.resource.object().as_str());
    }
    needed
}

/// Those of `released` that are links and will be removed.
pub fn leading(released: &[Object], state: &State) -> HashSet<Object> {
    let goes = |owned: Owned<'_>| {
        let parting = parting(owned.of_type, owned.standing);
        matches!(parting, Parting::Remove(Removable::Symlink))
    };
    let leads = |object: &&Object| state.get(object.as_str()).is_some_and(goes);
    released.iter().filter(leads).cloned().collect()
}

/// Those of `released` that stand in the way of making `object` a `kind`, the last made first: the
/// same name as another type, a file or link where a directory is wanted, what a directory holds
/// that is to become something else. What would only be forgotten makes no way, nor does what lies
/// in a directory that stays.
pub fn blockers(object: &Object, kind: &str, released: &[Object], state: &State) -> Vec<Object> {
    let goes = |other: &Object| {
        let owned = state.get(other.as_str());
        owned.filter(|it| matches!(parting(it.of_type, it.standing), Parting::Remove(_)))
    };
    let makes_way = kind != "directory" && released.contains(object) && goes(object).is_some();
    let blocks = |other: &&Object| {
        goes(other).is_some_and(|owned| {
            *other == object && owned.of_type != kind
                || beneath(object, other) && owned.of_type != "directory"
                || makes_way && beneath(other, object)
        })
    };
    let with_it = |blocker: &Object| match goes(blocker).map(|owned| owned.of_type) {
        Some("symlink") => beyond(blocker, released),
        _ => vec![blocker.clone()],
    };
    let mut seen = HashSet::new();
    let all = released.iter().rev().filter(blocks).flat_map(with_it);
    all.filter(|it| seen.insert(it.clone())).collect()
}

/// A link of `released` that goes, and before it those of `released` that lie beyond it, the last
/// made first: without it they would not be found again.
pub fn beyond(link: &Object, released: &[Object]) -> Vec<Object> {
    let further = released.iter().rev().filter(|other| beneath(other, link));
    further.chain([link]).cloned().collect()
}

/// `lower` has its name beneath that of `upper`.
pub fn beneath(lower: &Object, upper: &Object) -> bool {
    let rest = lower.as_str().strip_prefix(upper.as_str());
    rest.is_some_and(|rest| rest.starts_with('/'))
}
