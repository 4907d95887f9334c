//! Tables as `nft -j list table` tells of them: one JSON document for each.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::ruleset::shape;
use super::{DECLARED, MARK};
use crate::digest::{hex, Hasher};

/// A table that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// Its chains, sets and maps, as `chain input`, but for the host's mark.
    pub parts: BTreeMap<Box<str>, Part>,
    /// The host's mark, if it bears one.
    pub mark: Option<Mark>,
}

/// A chain, set or map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// What can be told of it whatever nft made of the words that it was declared in.
    pub shape: String,
    /// A digest of all of it but what changes by itself: counters, and elements that will go by
    /// themselves or that rules put there.
    pub digest: Box<str>,
}

/// What the host's own chain says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    /// The digest of what was declared.
    pub declared: Option<Box<str>>,
    /// The digest of each part once it had been loaded.
    pub seals: BTreeMap<Box<str>, Box<str>>,
    /// Something else stands there too.
    pub is_strange: bool,
}

/// What nft listed.
struct Listed {
    table: String,
    /// Each with what can be told of where it is entered.
    chains: Vec<(Box<str>, Option<String>)>,
    rules: Vec<(Box<str>, Map<String, Value>)>,
    sets: Vec<(&'static str, Map<String, Value>)>,
    /// The names of whatever else there is.
    others: Vec<String>,
}

/// The tables `asked` for (`inet filter`), in that order, from all that nft said.
///
/// # Errors
/// Something in it is not understood, or one of them is not told of.
pub fn tables(asked: &[&str], said: &[u8]) -> Result<Vec<Table>, String> {
    let mut all = BTreeMap::new();
    for document in serde_json::Deserializer::from_slice(said).into_iter::<Value>() {
        let document = document.map_err(|error| format!("its answer is not JSON: {error}"))?;
        let listed = listed(document)?;
        let table = listed.table.clone();
        all.insert(table, read(listed)?);
    }
    let find =
        |table: &&str| all.remove(*table).ok_or_else(|| format!("it did not tell of {table}"));
    asked.iter().map(find).collect()
}

/// The names of all tables, from what nft said.
///
/// # Errors
/// Something in it is not understood.
pub fn names(said: &[u8]) -> Result<BTreeSet<String>, String> {
    let document = serde_json::from_slice(said);
    let document = document.map_err(|error| format!("its answer is not JSON: {error}"))?;
    let entries = entries(document)?.into_iter();
    let tables = entries.filter(|(kind, _)| kind == "table");
    tables
        .map(|(_, table)| Ok(format!("{} {}", text(&table, "family")?, text(&table, "name")?)))
        .collect()
}

/// What can be told of where a chain is entered.
pub(super) fn base(kind: &str, hook: &str, priority: i64, policy: &str) -> String {
    format!("{kind} at {hook} {priority}, {policy}")
}

/// Each thing that a document lists, by its kind.
fn entries(document: Value) -> Result<Vec<(String, Map<String, Value>)>, String> {
    let Value::Object(mut document) = document else { return Err(strange(&document)) };
    let Some(Value::Array(entries)) = document.remove("nftables") else {
        return Err("its answer does not begin with nftables".into());
    };
    let entry = |entry: Value| match entry {
        Value::Object(entry) if entry.len() == 1 => match entry.into_iter().next() {
            Some((kind, Value::Object(it))) => Ok((kind, it)),
            other => Err(format!("it lists {other:.60?}")),
        },
        other => Err(strange(&other)),
    };
    entries.into_iter().map(entry).collect()
}

fn listed(document: Value) -> Result<Listed, String> {
    let mut table = None;
    let (mut chains, mut rules) = (Vec::new(), Vec::new());
    let (mut sets, mut others) = (Vec::new(), Vec::new());
    for (kind, mut it) in entries(document)? {
        it.remove("handle");
        match &*kind {
            "metainfo" => {}
            "table" => table = Some(format!("{} {}", text(&it, "family")?, text(&it, "name")?)),
            "chain" => chains.push((text(&it, "name")?.into(), chain(&it)?)),
            "rule" => rules.push((text(&it, "chain")?.into(), it)),
            "set" => sets.push(("set", it)),
            "map" => sets.push(("map", it)),
            _ => others.push(format!("{kind} {}", text(&it, "name")?)),
        }
    }
    let table = table.ok_or("its answer names no table")?;
    Ok(Listed { table, chains, rules, sets, others })
}

fn chain(it: &Map<String, Value>) -> Result<Option<String>, String> {
    if !it.contains_key("hook") {
        return Ok(None);
    }
    let priority = it.get("prio").and_then(Value::as_i64).ok_or("a chain has no prio")?;
    let policy = it.get("policy").and_then(Value::as_str).unwrap_or("accept");
    Ok(Some(base(text(it, "type")?, text(it, "hook")?, priority, policy)))
}

fn read(listed: Listed) -> Result<Table, String> {
    let Listed { table: _, chains, rules, sets, others } = listed;
    let mut fed = BTreeSet::new();
    let mut of: BTreeMap<Box<str>, Vec<Map<String, Value>>> = BTreeMap::new();
    for (chain, rule) in rules {
        rule.values().for_each(|it| feeds(it, &mut fed));
        of.entry(chain).or_default().push(rule);
    }
    let (mut parts, mut mark) = (BTreeMap::new(), None);
    for (name, base) in chains {
        let rules = of.remove(&name).unwrap_or_default();
        if *name == *MARK {
            mark = Some(read_mark(base.is_some(), &rules));
            continue;
        }
        let shape = shape(base, rules.len());
        let rules = rules.into_iter().map(|rule| written(Value::Object(rule)));
        let digest = digest(std::iter::once(shape.clone()).chain(rules));
        parts.insert(format!("chain {name}").into(), Part { shape, digest });
    }
    // Nothing of the kind can be declared: it stands for having been added.
    let other = || Part { shape: String::new(), digest: "".into() };
    parts.extend(others.into_iter().map(|name| (name.into(), other())));
    for (kind, set) in sets {
        let name = text(&set, "name")?.to_string();
        let part = read_set(set, fed.contains(&name))?;
        parts.insert(format!("{kind} {name}").into(), part);
    }
    Ok(Table { parts, mark })
}

fn read_set(mut set: Map<String, Value>, is_fed: bool) -> Result<Part, String> {
    let kind = |value: Option<&Value>| match value {
        Some(Value::String(one)) => Ok(one.clone()),
        Some(Value::Array(all)) => {
            Ok(all.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" . "))
        }
        _ => Err("a set has no type"),
    };
    let mut shape = kind(set.get("type"))?;
    if let Some(to) = set.get("map") {
        shape = format!("{shape} : {}", kind(Some(to))?);
    }
    let elements = match set.remove("elem") {
        // What rules put there comes and goes.
        _ if is_fed => Vec::new(),
        Some(Value::Array(elements)) => elements,
        _ => Vec::new(),
    };
    // A hash table lists its elements in an order of its own.
    let mut elements: Vec<String> =
        elements.into_iter().filter(|it| !passes(it)).map(written).collect();
    elements.sort_unstable();
    let head = written(Value::Object(set));
    Ok(Part { shape, digest: digest(std::iter::once(head).chain(elements)) })
}

/// The element goes by itself when its time is over.
fn passes(element: &Value) -> bool {
    let it = match element {
        Value::Array(pair) => pair.first(),
        it => Some(it),
    };
    it.and_then(|it| it.get("elem")).is_some_and(|it| it.get("expires").is_some())
}

fn read_mark(is_base: bool, rules: &[Map<String, Value>]) -> Mark {
    let mut mark = Mark { is_strange: is_base, ..Mark::default() };
    for rule in rules {
        let comment = rule.get("comment").and_then(Value::as_str).unwrap_or_default();
        match (comment.strip_prefix(DECLARED), comment.rsplit_once(' ')) {
            (Some(digest), _) if mark.declared.is_none() => mark.declared = Some(digest.into()),
            (None, Some((name, digest))) => {
                mark.is_strange |= mark.seals.insert(name.into(), digest.into()).is_some();
            }
            _ => mark.is_strange = true,
        }
    }
    mark
}

/// Notes the sets that an expression adds to, changes or takes from.
fn feeds(expr: &Value, fed: &mut BTreeSet<String>) {
    match expr {
        Value::Array(all) => all.iter().for_each(|it| feeds(it, fed)),
        Value::Object(it) => {
            if it.contains_key("op") && it.contains_key("elem") {
                let names = ["set", "map"].iter().filter_map(|key| it.get(*key)?.as_str());
                fed.extend(names.map(|name| name.trim_start_matches('@').to_string()));
            }
            it.values().for_each(|it| feeds(it, fed));
        }
        _ => {}
    }
}

/// A value as text, its members in the order of their names, without what counts up by itself.
fn written(mut value: Value) -> String {
    settle(&mut value);
    value.to_string()
}

fn settle(value: &mut Value) {
    match value {
        Value::Array(all) => all.iter_mut().for_each(settle),
        Value::Object(it) => {
            for (key, value) in it.iter_mut() {
                match (&**key, &mut *value) {
                    ("counter", Value::Object(_)) => *value = Value::Null,
                    ("quota", Value::Object(quota)) => {
                        quota.remove("used");
                        quota.remove("used_unit");
                    }
                    _ => settle(value),
                }
            }
        }
        _ => {}
    }
}

fn digest(lines: impl Iterator<Item = String>) -> Box<str> {
    let mut hasher = Hasher::new();
    for line in lines {
        hasher.update(line.as_bytes());
        hasher.update(b"\n");
    }
    hex(&hasher.finish()[..8]).into()
}

fn text<'v>(it: &'v Map<String, Value>, key: &str) -> Result<&'v str, String> {
    it.get(key).and_then(Value::as_str).ok_or_else(|| format!("it lists something without {key}"))
}

fn strange(value: &Value) -> String {
    let text: String = value.to_string().chars().take(60).collect();
    format!("it lists {text:?}")
}
