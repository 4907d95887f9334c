//! A table as it is declared, and as nft reads it.

use std::collections::BTreeMap;
use std::ops::Range;

use super::{Part, Table, DECLARED, MARK};
use crate::digest::{hex, sha256};

/// How many lines make room for the table.
const HEAD: usize = 2;

/// A table, whole.
#[derive(Debug)]
pub struct Ruleset {
    table: Box<str>,
    chains: Box<[Chain]>,
    sets: Box<[Set]>,
    digest: Box<str>,
}

/// A chain.
#[derive(Debug)]
pub struct Chain {
    /// Its name.
    pub name: Box<str>,
    /// Where the kernel enters it; `None` where only other chains do.
    pub base: Option<Base>,
    /// Its rules, each one line of nft's own language.
    pub rules: Box<[Box<str>]>,
}

/// Where the kernel enters a chain.
#[derive(Debug)]
pub struct Base {
    /// `filter`, `nat` or `route`.
    pub kind: Box<str>,
    /// Where on its way a packet meets it.
    pub hook: Box<str>,
    /// A number, or a name with perhaps a number added.
    pub priority: Box<str>,
    /// `accept` or `drop`.
    pub policy: Box<str>,
}

/// A set, or a map.
#[derive(Debug)]
pub struct Set {
    /// Its name.
    pub name: Box<str>,
    /// Of what type its keys are.
    pub of: Box<str>,
    /// Of what type they stand for something; `None` of a set.
    pub to: Option<Box<str>>,
    /// How it may be used.
    pub flags: Box<[Box<str>]>,
    /// What it holds, as nft reads it.
    pub elements: Box<[Box<str>]>,
    /// How long an element stays, in seconds.
    pub timeout_s: Option<i64>,
    /// Ranges that meet become one.
    pub merges: bool,
}

/// What a line of the text is about.
#[derive(Clone, Copy)]
enum About<'r> {
    /// What holds the others together.
    Frame,
    Chain(&'r Chain),
    Rule(&'r Chain, usize),
    Set(&'r Set),
    Element(&'r Set, usize),
}

impl Set {
    fn kind(&self) -> &'static str {
        if self.to.is_some() {
            "map"
        } else {
            "set"
        }
    }
}

impl Ruleset {
    /// The table `family name` with all that is declared of it.
    pub fn new(table: Box<str>, chains: Box<[Chain]>, sets: Box<[Set]>) -> Ruleset {
        let mut it = Ruleset { table, chains, sets, digest: "".into() };
        it.digest = hex(&sha256(it.text().as_bytes())[..16]).into();
        it
    }

    /// Its family and name.
    pub fn table(&self) -> &str {
        &self.table
    }

    /// A digest of what is declared.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// What makes it of the table of ours that was `found`, in one transaction. Chains stay where
    /// they are and only their rules are exchanged, which the kernel does between two packets:
    /// where a chain goes and comes anew in one transaction, a packet may still meet the one with
    /// its policy and no rules, or the other with its rules and no policy (Linux 6.18).
    pub fn text_over(&self, found: &Table) -> String {
        let table = &self.table;
        let mut text = format!("flush table {table}\n");
        let outline: BTreeMap<String, String> = self.outline().collect();
        let hook = |shape: &str| shape.split_once(", ").map(|(hook, _)| hook.to_string());
        let stays = |name: &String, part: &Part| {
            let is_chain = name.starts_with("chain ");
            is_chain && outline.get(name).is_some_and(|shape| hook(shape) == hook(&part.shape))
        };
        // A map may lead to a chain, so chains go last.
        let goes = found.parts.iter().filter(|(name, part)| !stays(name, part));
        let (chains, others): (Vec<_>, Vec<_>) =
            goes.map(|(name, _)| name).partition(|name| name.starts_with("chain "));
        for name in others.into_iter().chain(chains) {
            let (kind, name) = name.rsplit_once(' ').unwrap_or((name, ""));
            text += &format!("delete {kind} {table} {name}\n");
        }
        let whole = self.text();
        text + whole.splitn(HEAD + 1, '\n').last().unwrap_or_default()
    }

    /// What puts it in place of whatever table is there, or makes it, in one transaction; what else
    /// there is stays untouched.
    pub fn text(&self) -> String {
        let mut text = String::new();
        self.lines(&mut |_, line| {
            text.push_str(line);
            text.push('\n');
        });
        text
    }

    /// What a person calls what stands at a line, counted from 1, of the text.
    pub fn at(&self, wanted: usize) -> Option<String> {
        let (mut number, mut found) = (0, None);
        self.lines(&mut |about, _| {
            number += 1;
            if number == wanted {
                found = match about {
                    About::Frame => None,
                    About::Chain(chain) => Some(format!("chain {}", chain.name)),
                    About::Rule(chain, nth) => {
                        let rule = &chain.rules[nth];
                        Some(format!("chain {}, rule {}, {rule:?}", chain.name, nth + 1))
                    }
                    About::Set(set) => Some(format!("{} {}", set.kind(), set.name)),
                    About::Element(set, nth) => {
                        let (kind, element) = (set.kind(), &set.elements[nth]);
                        Some(format!("{kind} {}, element {}, {element:?}", set.name, nth + 1))
                    }
                };
            }
        });
        found
    }

    /// The words at these bytes of that line.
    pub fn words(&self, wanted: usize, bytes: Range<usize>) -> Option<String> {
        let text = self.text();
        let line = text.lines().nth(wanted.checked_sub(1)?)?;
        line.get(bytes).map(String::from)
    }

    /// Each chain, set and map by its name, with what can be told of it whatever nft makes of its
    /// words: as [`super::Part::shape`] has it.
    pub fn outline(&self) -> impl Iterator<Item = (String, String)> + '_ {
        let chains = self.chains.iter().map(|chain| {
            let base = chain.base.as_ref().map(|base| self.base(base));
            (format!("chain {}", chain.name), shape(base, chain.rules.len()))
        });
        let sets = self.sets.iter().map(|set| {
            let to = set.to.as_ref().map_or(String::new(), |to| format!(" : {to}"));
            (format!("{} {}", set.kind(), set.name), format!("{}{to}", set.of))
        });
        chains.chain(sets)
    }

    fn base(&self, base: &Base) -> String {
        let priority = number(&base.priority, self.table.starts_with("bridge "));
        super::listing::base(&base.kind, &base.hook, priority, &base.policy)
    }

    /// The text line by line, each with what it is about.
    fn lines<'r>(&'r self, put: &mut dyn FnMut(About<'r>, &str)) {
        let table = &self.table;
        // What a delete needs is there, and a load over what is there would double its rules.
        put(About::Frame, &format!("add table {table}"));
        put(About::Frame, &format!("delete table {table}"));
        put(About::Frame, &format!("table {table} {{"));
        put(About::Frame, &format!("chain {MARK} {{"));
        if !self.digest.is_empty() {
            let comment = format!("return comment \"{DECLARED}{}\"", self.digest);
            put(About::Frame, &comment);
        }
        put(About::Frame, "}");
        for set in &self.sets {
            set.lines(put);
        }
        for chain in &self.chains {
            put(About::Chain(chain), &format!("chain {} {{", chain.name));
            if let Some(Base { kind, hook, priority, policy }) = &chain.base {
                let base = format!("type {kind} hook {hook} priority {priority}; policy {policy};");
                put(About::Chain(chain), &base);
            }
            for (nth, rule) in chain.rules.iter().enumerate() {
                put(About::Rule(chain, nth), rule);
            }
            put(About::Frame, "}");
        }
        put(About::Frame, "}");
    }
}

impl Set {
    fn lines<'r>(&'r self, put: &mut dyn FnMut(About<'r>, &str)) {
        let mut head = |line: &str| put(About::Set(self), line);
        head(&format!("{} {} {{", self.kind(), self.name));
        match &self.to {
            None => head(&format!("type {}", self.of)),
            Some(to) => head(&format!("type {} : {to}", self.of)),
        }
        if !self.flags.is_empty() {
            head(&format!("flags {}", self.flags.join(",")));
        }
        if let Some(timeout_s) = self.timeout_s {
            head(&format!("timeout {timeout_s}s"));
        }
        if self.merges {
            head("auto-merge");
        }
        if !self.elements.is_empty() {
            head("elements = {");
            for (nth, element) in self.elements.iter().enumerate() {
                put(About::Element(self, nth), &format!("{element},"));
            }
            put(About::Frame, "}");
        }
        put(About::Frame, "}");
    }
}

/// What can be told of a chain.
pub(super) fn shape(base: Option<String>, rules: usize) -> String {
    let base = base.map_or(String::new(), |base| format!("{base}, "));
    format!("{base}{rules} rule{}", if rules == 1 { "" } else { "s" })
}

/// The number of a declared priority, as nft(8) has it.
fn number(priority: &str, in_bridge: bool) -> i64 {
    let (name, sign, more) = match priority.split(' ').collect::<Vec<_>>().as_slice() {
        [name, sign, more] => (*name, if *sign == "-" { -1 } else { 1 }, more.parse().unwrap_or(0)),
        _ => (priority, 1, 0),
    };
    let base = match (name, in_bridge) {
        ("filter", false) => 0,
        ("filter", true) => -200,
        ("dstnat", false) => -100,
        ("dstnat", true) => -300,
        ("srcnat", false) => 100,
        ("srcnat", true) => 300,
        ("raw", _) => -300,
        ("mangle", _) => -150,
        ("security", _) => 50,
        ("out", _) => 100,
        (number, _) => number.parse().unwrap_or(0),
    };
    base + sign * more
}
