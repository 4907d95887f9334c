//! Tables as `nft -j list` tells of them.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::ruleset::shape;
use super::{DECLARED, MARK};
use crate::digest::{hex, Hasher};

/// A table that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// Its chains, sets and maps, as `chain input`, but for the host's mark.
    pub parts: BTreeMap<String, Part>,
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
    pub seals: BTreeMap<String, Box<str>>,
    /// Something else stands there too.
    pub is_strange: bool,
}

/// What nft listed of a table.
#[derive(Default)]
struct Listed<'a> {
    /// Each with what can be told of where it is entered.
    chains: Vec<(Box<str>, Option<String>)>,
    rules: Vec<(Box<str>, Entry)>,
    /// Each with its elements, of which there may be many: they are kept as text.
    sets: Vec<(&'static str, Entry, Vec<&'a RawValue>)>,
    /// The names of whatever else there is.
    others: Vec<String>,
}

type Entry = Map<String, Value>;

/// The tables `asked` for (`inet filter`), in that order, from all that nft said; `None` for one
/// that it does not tell of.
///
/// # Errors
/// Something in it is not understood.
pub fn tables(asked: &[&str], said: &str) -> Result<Vec<Option<Table>>, String> {
    let document: Document = parse(said)?;
    let mut all: BTreeMap<&str, Listed> = BTreeMap::new();
    for entry in document.nftables {
        let Some((kind, it)) = entry.into_iter().next() else {
            return Err("it lists something without a kind".into());
        };
        let mut fields: BTreeMap<String, &RawValue> = parse(it.get())?;
        let elements = fields.remove("elem").map(|it| parse(it.get())).transpose()?;
        let value = |(name, value): (String, &RawValue)| Ok((name, parse(value.get())?));
        let it = fields.into_iter().map(value).collect::<Result<Entry, String>>()?;
        let name = text(&it, if kind == "table" { "name" } else { "table" });
        // What is of no table is of none of these.
        let (Ok(family), Ok(name)) = (text(&it, "family"), name) else { continue };
        let name = format!("{family} {name}");
        if let Some(table) = asked.iter().find(|table| **table == name) {
            all.entry(table).or_default().take(&kind, it, elements.unwrap_or_default())?;
        }
    }
    asked.iter().map(|table| all.remove(table).map(read).transpose()).collect()
}

/// The shape of every answer.
#[derive(Deserialize)]
struct Document<'a> {
    #[serde(borrow)]
    nftables: Vec<BTreeMap<String, &'a RawValue>>,
}

fn parse<'a, T: Deserialize<'a>>(said: &'a str) -> Result<T, String> {
    serde_json::from_str(said).map_err(|error| format!("its answer is not as nft writes: {error}"))
}

impl<'a> Listed<'a> {
    fn take(
        &mut self,
        kind: &str,
        mut it: Entry,
        elements: Vec<&'a RawValue>,
    ) -> Result<(), String> {
        it.remove("handle");
        match kind {
            "table" => {}
            "chain" => self.chains.push((text(&it, "name")?.into(), chain(&it)?)),
            "rule" => self.rules.push((text(&it, "chain")?.into(), it)),
            "set" => self.sets.push(("set", it, elements)),
            "map" => self.sets.push(("map", it, elements)),
            _ => self.others.push(format!("{kind} {}", text(&it, "name")?)),
        }
        Ok(())
    }
}

/// What can be told of where a chain is entered.
pub(super) fn base(kind: &str, hook: &str, priority: i64, policy: &str) -> String {
    format!("{kind} at {hook} {priority}, {policy}")
}

fn chain(it: &Entry) -> Result<Option<String>, String> {
    if !it.contains_key("hook") {
        return Ok(None);
    }
    let priority = it.get("prio").and_then(Value::as_i64).ok_or("a chain has no prio")?;
    let policy = it.get("policy").and_then(Value::as_str).unwrap_or("accept");
    Ok(Some(base(text(it, "type")?, text(it, "hook")?, priority, policy)))
}

fn read(listed: Listed) -> Result<Table, String> {
    let Listed { chains, rules, sets, others } = listed;
    let mut fed = BTreeSet::new();
    let mut of: BTreeMap<Box<str>, Vec<Entry>> = BTreeMap::new();
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
        let rules = rules.into_iter().map(|rule| written(Value::Object(rule)).into());
        let digest = digest(std::iter::once(shape.as_str().into()).chain(rules));
        parts.insert(format!("chain {name}"), Part { shape, digest });
    }
    // Nothing of the kind can be declared: it stands for having been added.
    let other = || Part { shape: String::new(), digest: "".into() };
    parts.extend(others.into_iter().map(|name| (name, other())));
    for (kind, set, mut elements) in sets {
        let name = text(&set, "name")?.to_string();
        if fed.contains(&name) {
            // What rules put there comes and goes.
            elements.clear();
        }
        let part = read_set(set, &elements)?;
        parts.insert(format!("{kind} {name}"), part);
    }
    Ok(Table { parts, mark })
}

fn read_set(set: Entry, elements: &[&RawValue]) -> Result<Part, String> {
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
    let lasting = elements.iter().filter_map(|it| lasting(it.get()).transpose());
    let mut elements = lasting.collect::<Result<Vec<Cow<str>>, String>>()?;
    // A hash table lists its elements in an order of its own.
    elements.sort_unstable();
    let head = written(Value::Object(set)).into();
    Ok(Part { shape, digest: digest(std::iter::once(head).chain(elements)) })
}

/// An element as it is compared; `None` of one that goes by itself when its time is over.
fn lasting(element: &str) -> Result<Option<Cow<'_, str>>, String> {
    // Only with something to be said of it beyond its value is it more than that.
    if !element.contains("\"elem\"") {
        return Ok(Some(element.into()));
    }
    let value: Value = parse(element)?;
    let it = value.get(0).unwrap_or(&value);
    let passes = it.get("elem").is_some_and(|it| it.get("expires").is_some());
    Ok((!passes).then(|| written(value).into()))
}

fn read_mark(is_base: bool, rules: &[Entry]) -> Mark {
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

fn digest<'l>(lines: impl Iterator<Item = Cow<'l, str>>) -> Box<str> {
    let mut hasher = Hasher::new();
    for line in lines {
        hasher.update(line.as_bytes());
        hasher.update(b"\n");
    }
    hex(&hasher.finish()[..8]).into()
}

fn text<'v>(it: &'v Entry, key: &str) -> Result<&'v str, String> {
    it.get(key).and_then(Value::as_str).ok_or_else(|| format!("it lists something without {key}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    // nft 1.0.6: a table that the host had loaded, and one of a person's.
    const LIST: &str = include_str!("../../../../tests/transcripts/nft/list.json");

    fn read_one(name: &str, said: &str) -> Table {
        tables(&[name], said).unwrap().pop().flatten().unwrap()
    }

    fn changed(from: &str, to: &str) -> String {
        assert!(LIST.contains(from), "{from}");
        LIST.replacen(from, to, 1)
    }

    /// The parts whose digest is another one once `from` has become `to`.
    fn differ(from: &str, to: &str) -> Vec<String> {
        let before = read_one("inet filter", LIST);
        let after = read_one("inet filter", &changed(from, to));
        let is_other = |(name, part): &(&String, &Part)| before.parts.get(*name) != Some(*part);
        after.parts.iter().filter(is_other).map(|(name, _)| name.clone()).collect()
    }

    // R-5
    #[test]
    fn a_table_of_ours_is_told_from_another_and_read_whole() {
        let asked = ["ip foreign", "inet nowhere", "inet filter"];
        let found = tables(&asked, LIST).unwrap();
        let [Some(foreign), None, Some(ours)] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!(foreign.mark, None);
        let names: Vec<&str> = foreign.parts.keys().map(String::as_str).collect();
        assert_eq!(names, ["chain input", "counter hits", "set known"]);
        let shapes: Vec<String> =
            ours.parts.iter().map(|(name, part)| format!("{name}: {}", part.shape)).collect();
        assert_eq!(
            shapes,
            [
                "chain input: filter at input 5, drop, 6 rules",
                "chain more: 1 rule",
                "chain nat: nat at postrouting 100, accept, 1 rule",
                "map fw: inet_service : verdict",
                "set pairs: ipv4_addr . inet_service",
                "set peers: ipv4_addr",
                "set seen: ipv4_addr",
                "set tmp: ipv4_addr",
            ]
        );
        let mark = ours.mark.as_ref().unwrap();
        assert!(!mark.is_strange && mark.declared.as_ref().is_some_and(|it| it.len() == 32));
        for (name, part) in &ours.parts {
            assert_eq!(mark.seals.get(name), Some(&part.digest), "{name}");
        }
    }

    // R-2
    #[test]
    fn what_counts_up_or_goes_by_itself_is_no_difference() {
        let none: [&str; 0] = [];
        assert_eq!(differ(r#""packets": 0, "bytes": 0"#, r#""packets": 7, "bytes": 588"#), none);
        assert_eq!(differ(r#""handle": 9"#, r#""handle": 1009"#), none);
        // Of a set that a rule adds to, and of one whose element has a time of its own.
        let fed = r#""elem": [{"elem": {"val": "9.9.9.9", "timeout": 10, "expires": 3}}]"#;
        let seen = r#""name": "seen", "#;
        assert_eq!(differ(seen, &format!("{seen}{fed}, ")), none);
        assert_eq!(differ(r#""expires": 1"#, r#""expires": 0"#), none);
        let order = [r#"[22, {"accept": null}]"#, r#"[23, {"jump": {"target": "more"}}]"#];
        let (one, other) = (order.join(", "), format!("{}, {}", order[1], order[0]));
        assert_eq!(differ(&one, &other), none);
    }

    // R-3
    #[test]
    fn what_a_person_changed_is_a_difference() {
        assert_eq!(differ(r#""policy": "drop""#, r#""policy": "accept""#), ["chain input"]);
        assert_eq!(differ(r#""right": "lo""#, r#""right": "eth0""#), ["chain input"]);
        assert_eq!(differ(r#""comment": "web""#, r#""comment": "wed""#), ["chain input"]);
        assert_eq!(differ(r#""rate": 10"#, r#""rate": 11"#), ["chain more"]);
        assert_eq!(differ(r#""192.0.2.7""#, r#""192.0.2.8""#), ["set peers"]);
        assert_eq!(differ(r#""5.6.7.8""#, r#""5.6.7.9""#), ["set tmp"]);
        let (accept, drop) = (r#"[22, {"accept": null}]"#, r#"[22, {"drop": null}]"#);
        assert_eq!(differ(accept, drop), ["map fw"]);
    }

    #[test]
    fn an_answer_that_is_cut_off_anywhere_is_none() {
        let whole = LIST.trim_end();
        for end in (0..whole.len()).filter(|end| whole.is_char_boundary(*end)) {
            assert!(tables(&["inet filter"], &whole[..end]).is_err(), "of {end} bytes");
        }
    }

    #[test]
    fn what_is_strange_is_said_and_not_guessed_at() {
        for (from, to) in [
            (r#"{"nftables": "#, r#"{"tables": "#),
            (r#""prio": 5"#, r#""prio": "soon""#),
            (r#""chain": "input""#, r#""chain": 7"#),
            (r#""type": "ipv4_addr", "handle""#, r#""type": 4, "handle""#),
        ] {
            let answer = tables(&["inet filter"], &changed(from, to));
            assert!(answer.is_err(), "{to}: {answer:?}");
        }
    }

    #[test]
    fn a_mark_that_somebody_wrote_to_is_seen_to_be_strange() {
        let comment = r#""comment": "chain more"#;
        for to in
            [r#""comment": "chain input"#, r#""comment": "declared again"#, r#""command": "x"#]
        {
            let table = read_one("inet filter", &changed(comment, to));
            assert!(table.mark.is_some_and(|mark| mark.is_strange), "{to}");
        }
    }
}
