//! `packet_filter`: a table of the kernel's packet filter.

use super::fields::{Fields, Value};
use super::form::{printable, word, Text};
use super::kind::{Carrier, Field, Judge, Kind, Shape, TIMEOUT_S};
use super::parting::{Ends, Farewell, Leaving, Undo};
use super::{Answer, Object, Past, Question, Resource, Step, Trouble, Verdict, ABSENT};
use crate::declaration::fault::quoted;
use crate::tool::nft::{self, Base, Chain, Ruleset, Set};

/// A declared table.
#[derive(Debug)]
pub struct PacketFilter {
    /// All of it.
    pub ruleset: Ruleset,
}

impl Resource for PacketFilter {
    fn kind(&self) -> &'static str {
        "packet_filter"
    }

    fn object(&self) -> Object {
        Object::new("packet_filter", self.ruleset.table())
    }

    fn question(&self) -> Question<'_> {
        Question::Table { table: self.ruleset.table(), declared: Some(&self.ruleset) }
    }

    fn judge(&self, answer: &Answer, _: &Past<'_>) -> Result<Verdict<'_>, Trouble> {
        let found = match answer {
            Answer::Table(found) => found.as_ref(),
            Answer::NotApplicable(why) => return Ok(Verdict::not_applicable(why)),
            other => return Err(other.mismatch()),
        };
        let differs = match found.map(|table| (table, &table.mark)) {
            None => vec![ABSENT.to_string()],
            Some((table, Some(mark))) => nft::differences(&self.ruleset, mark, table),
            Some((_, None)) => {
                let doing = format!("load table {}", self.ruleset.table());
                return Err(Trouble::new(doing, FOREIGN));
            }
        };
        let steps = match differs.is_empty() {
            true => vec![],
            false => vec![Step::LoadTable(&self.ruleset)],
        };
        let detail = differs.join("; ");
        Ok(Verdict { existed: found.is_some(), steps, detail, ..Verdict::default() })
    }
}

const FOREIGN: &str =
    "a table of that name is there without the host's mark, so somebody else made it, and it is \
     not replaced: choose another name, or delete it with nft(8)";

/// A table that the host made goes whole.
pub(super) struct Delete;

impl Undo for Delete {
    fn announces(&self, it: &Leaving<'_>) -> Option<String> {
        Some(format!("delete table {}", it.name))
    }

    fn question<'a>(&self, it: &Leaving<'a>) -> Question<'a> {
        Question::Table { table: it.name, declared: None }
    }

    fn judge<'a>(&self, it: &Leaving<'a>, answer: &Answer) -> Result<Farewell<'a>, Trouble> {
        Ok(match answer {
            Answer::Table(None) => Farewell::ended(Ends::Removed, ""),
            Answer::Table(Some(table)) if table.mark.is_none() => {
                Farewell::ended(Ends::Left, "a table without the host's mark is there now")
            }
            Answer::Table(Some(_)) => Farewell {
                steps: vec![Step::DeleteTable(it.name)],
                ..Farewell::ended(Ends::Removed, "it is still there")
            },
            Answer::NotApplicable(why) => Farewell::ended(Ends::Left, why),
            other => return Err(other.mismatch()),
        })
    }
}

/// How a declaration names a table.
pub static KIND: Kind = Kind {
    name: "packet_filter",
    doc: "A table of nftables, whole. A table found without the host's mark is refused, never \
          replaced. On leaving the declaration it is deleted if the host created it.",
    fields: &[
        Field::required("table", "Its family and name: inet filter.", Shape::Text(&TABLE)),
        Field::optional("chains", "Its chains.", Shape::List(&Shape::Object(CHAIN), 0, 1024)),
        Field::optional("sets", "Its sets.", Shape::List(&Shape::Object(SET), 0, 1024)),
        Field::optional("maps", "Its maps.", Shape::List(&Shape::Object(MAP), 0, 1024)),
    ],
    exactly_one: &[],
    default_timeout_s: TIMEOUT_S,
    carrier: Carrier::Any,
    rules,
    build: Some(|_, fields| {
        let table = fields.take_text("table").expect("the table requires table");
        let chains = objects(fields, "chains", chain);
        let sets = objects(fields, "sets", |it| set(it, None));
        let maps = objects(fields, "maps", |it| {
            let value = it.take_text("value");
            set(it, value)
        });
        let sets = sets.into_iter().chain(maps).collect();
        Box::new(PacketFilter { ruleset: Ruleset::new(table, chains.into(), sets) })
    }),
};

/// What is made of each object of a list.
fn objects<'a, T>(
    fields: &mut Fields<'a>,
    list: &str,
    make: impl Fn(&mut Fields<'a>) -> T,
) -> Vec<T> {
    let Some(Value::List(all)) = fields.take(list) else { return Vec::new() };
    let each = all.into_iter().map(|value| match value {
        Value::Object(mut fields) => make(&mut fields),
        _ => unreachable!("the type's table says that these are objects"),
    });
    each.collect()
}

fn chain(fields: &mut Fields<'_>) -> Chain {
    let base = match (fields.take_text("type"), fields.take_text("hook")) {
        (Some(kind), Some(hook)) => Some(Base {
            kind,
            hook,
            priority: fields.take_text("priority").expect("it is there with type and hook"),
            policy: fields.take_text("policy").unwrap_or_else(|| "accept".into()),
        }),
        _ => None,
    };
    let name = fields.take_text("name").expect("the table requires name");
    Chain { name, base, rules: fields.take_texts("rules") }
}

/// A set, or with a `to` a map.
fn set(fields: &mut Fields<'_>, to: Option<Box<str>>) -> Set {
    let elements = match to {
        None => fields.take_texts("elements"),
        Some(_) => {
            let pairs = fields.take_text_map("elements");
            pairs.iter().map(|(key, value)| format!("{key} : {value}").into()).collect()
        }
    };
    let is_map = to.is_some();
    Set {
        name: fields.take_text("name").expect("the table requires name"),
        of: fields.take_text("type").expect("the table requires type"),
        to,
        flags: fields.take_texts("flags"),
        elements,
        timeout_s: if is_map { None } else { fields.integer("timeout_s") },
        merges: !is_map && fields.is_true("auto_merge"),
    }
}

static ONE_RULE: Shape = Shape::Text(&RULE);
const RULES: Shape = Shape::List(&ONE_RULE, 0, 65_536);
const FLAGS: Shape =
    Shape::List(&Shape::Choice(&["constant", "interval", "timeout", "dynamic"]), 0, 4);

static CHAIN: &[Field] = &[
    Field::required("name", "Its name.", Shape::Text(&NAME)),
    Field::optional(
        "type",
        "What it does. With hook and priority: the kernel enters it; without: other chains do.",
        Shape::Choice(&["filter", "nat", "route"]),
    ),
    Field::optional(
        "hook",
        "Where on its way a packet meets it.",
        Shape::Choice(&["prerouting", "input", "forward", "output", "postrouting"]),
    ),
    Field::optional(
        "priority",
        "Its place among the chains of that hook: a number, or filter, raw, mangle, dstnat, \
         security, srcnat or out, perhaps with + or - a number.",
        Shape::TextOrInteger(&PRIORITY),
    ),
    Field::optional(
        "policy",
        "What becomes of a packet that no rule decides on.",
        Shape::Choice(&["accept", "drop"]),
    ),
    Field::optional("rules", "Its rules, in order, as nft(8) writes them.", RULES),
];

static SET: &[Field] = &[
    Field::required("name", "Its name.", Shape::Text(&NAME)),
    Field::required("type", "Of what: ipv4_addr, or ipv4_addr . inet_service.", Shape::Text(&TYPE)),
    Field::optional("flags", "How it may be used.", FLAGS),
    Field::optional("elements", "Its elements, as nft(8) writes them.", RULES),
    Field::optional("timeout_s", "How long an element stays, in seconds.", TIMEOUT),
    Field::optional("auto_merge", "Ranges that meet become one.", Shape::Bool).or("false"),
];

static MAP: &[Field] = &[
    Field::required("name", "Its name.", Shape::Text(&NAME)),
    Field::required("type", "Of what it is a map.", Shape::Text(&TYPE)),
    Field::required("value", "To what: a type, or verdict.", Shape::Text(&TYPE)),
    Field::optional("flags", "How it may be used.", FLAGS),
    Field::optional("elements", "What each key stands for.", ELEMENTS),
];

const TIMEOUT: Shape = Shape::Integer(1, 31_536_000);
const ELEMENTS: Shape = Shape::Map(&RULE, &ONE_RULE, 65_536);

fn rules<'a>(fields: &Fields<'a>, judge: &mut dyn Judge<'a>) {
    let table = fields.text("table");
    if let Some(table) = table {
        judge.claims("table", "packet_filter", table.clone());
    }
    names(fields.list("chains"), "chains", &mut vec![nft::MARK], judge);
    let mut named = Vec::new();
    names(fields.list("sets"), "sets", &mut named, judge);
    names(fields.list("maps"), "maps", &mut named, judge);
    let family = table.and_then(|table| table.split(' ').next());
    for (at, chain) in fields.list("chains").iter().enumerate() {
        base(chain.as_fields(), family, at, judge);
    }
}

/// A name stands once among the things that share names.
fn names<'f, 'a>(
    things: &'f [Value<'a>],
    list: &str,
    seen: &mut Vec<&'f str>,
    judge: &mut dyn Judge<'a>,
) {
    for (at, thing) in things.iter().enumerate() {
        let Some(name) = thing.as_fields().text("name") else { continue };
        if seen.contains(&&**name) {
            let wrong = format!("{} stands here twice", quoted(name));
            judge.wrong(&format!("{list}[{at}].name"), wrong, "give each its own name");
        }
        seen.push(name);
    }
}

/// A chain that the kernel enters has a type, a hook and a priority that go together.
fn base<'a>(chain: &Fields<'a>, family: Option<&str>, at: usize, judge: &mut dyn Judge<'a>) {
    let field = |name: &str| format!("chains[{at}].{name}");
    let needed = ["type", "hook", "priority"];
    let any = needed.iter().chain(&["policy"]).any(|name| chain.has(name));
    for name in needed.iter().filter(|name| any && !chain.has(name)) {
        let mend = "give type, hook and priority together, or none of them and no policy";
        judge.wrong(&field(name), "is missing".into(), mend);
    }
    let (Some(kind), Some(hook)) = (chain.text("type"), chain.text("hook")) else { return };
    let hooks: &[&str] = match (&**kind, family.unwrap_or("inet")) {
        ("filter", "arp") => &["input", "output"],
        ("filter", _) => return,
        (_, "arp" | "bridge") => &[],
        ("nat", _) => &["prerouting", "input", "output", "postrouting"],
        _ => &["output"],
    };
    if !hooks.contains(&&**hook) {
        let wrong = format!("a chain of type {kind} cannot be at {hook} in this family");
        let mend = match hooks {
            [] => "use another type, or another family".into(),
            hooks => format!("it can be at {}", hooks.join(", ")),
        };
        judge.wrong(&field("hook"), wrong, &mend);
    }
}

static TABLE: Text = Text {
    what: "the family and name of a table",
    mend: "write inet, ip, ip6, arp or bridge, a blank, and the table's name",
    pattern: "^(inet|ip|ip6|arp|bridge) [A-Za-z][A-Za-z0-9_./-]*$",
    max: 80,
    holds: |text| {
        text.split_once(' ').is_some_and(|(family, name)| {
            matches!(family, "inet" | "ip" | "ip6" | "arp" | "bridge") && identifier(name)
        })
    },
};

static NAME: Text = Text {
    what: "a name that nft takes",
    mend: "begin with a letter and go on with letters, digits and any of _ . / -",
    pattern: "^[A-Za-z][A-Za-z0-9_./-]*$",
    max: 64,
    holds: identifier,
};

static TYPE: Text = Text {
    what: "a type that nft knows",
    mend: "write a type's name, or several with \" . \" between",
    pattern: "^[a-z][a-z0-9_]*( \\. [a-z][a-z0-9_]*)*$",
    max: 256,
    holds: |text| {
        let upper = text.bytes().any(|byte| byte.is_ascii_uppercase());
        !upper && text.split(" . ").all(|name| word(name, "", "_") && identifier(name))
    },
};

static PRIORITY: Text = Text {
    what: "a priority",
    mend: "write a number, or a name such as filter, perhaps with + 10 or - 10",
    pattern: "^(-?[0-9]{1,9}|(raw|mangle|dstnat|filter|security|srcnat|out)( [+-] [0-9]{1,9})?)$",
    max: 32,
    holds: |text| {
        let digits = |text: &str| {
            (1..=9).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
        };
        let names = ["raw", "mangle", "dstnat", "filter", "security", "srcnat", "out"];
        match text.split(' ').collect::<Vec<_>>().as_slice() {
            [one] => names.contains(one) || digits(one.strip_prefix('-').unwrap_or(one)),
            [name, "+" | "-", number] => names.contains(name) && digits(number),
            _ => false,
        }
    },
};

// What follows is put between others of its kind in one batch: it must not be able to end.
static RULE: Text = Text {
    what: "one statement of nft",
    mend: "write it on one line, with brackets and quotes closed, without ; # \\ $ but in quotes, \
           and not beginning with a word that is no rule's, such as include or type",
    pattern: "^[^\\u0000-\\u001f\\u007f]+$",
    max: 8192,
    holds: |text| {
        const NO_RULE: [&str; 10] = [
            "include", "define", "redefine", "undefine", "type", "policy", "flags", "devices",
            "hook", "elements",
        ];
        let first = text.split([' ', '{', '"', '=']).find(|word| !word.is_empty());
        printable(text) && first.is_some_and(|first| !NO_RULE.contains(&first)) && closed(text)
    },
};

/// Every bracket that opens closes, none closes that did not open, quotes come in pairs, and
/// nothing outside of them ends a statement, begins a comment or stands for other text.
fn closed(text: &str) -> bool {
    let (mut open, mut in_quotes) = (Vec::new(), false);
    for c in text.chars() {
        match c {
            '"' => in_quotes = !in_quotes,
            _ if in_quotes => {}
            ';' | '#' | '\\' | '$' => return false,
            '{' => open.push('}'),
            '(' => open.push(')'),
            '[' => open.push(']'),
            '}' | ')' | ']' if open.pop() != Some(c) => return false,
            _ => {}
        }
    }
    open.is_empty() && !in_quotes
}

fn identifier(name: &str) -> bool {
    word(name, "", "_./-") && name.starts_with(|c: char| c.is_ascii_alphabetic())
}
