//! `container_network`: a network that containers join. Pure.

use super::form::{word, Text};
use super::kind::{Carrier, Field, Kind, Shape, TIMEOUT_S};
use super::net::{cidr, network, CIDR};
use super::parting::{Ends, Farewell, Leaving, Undo};
use super::{Answer, Object, Past, Question, Resource, Step, Trouble, Verdict, ABSENT};
use crate::declaration::fault::quoted;
use crate::tool::docker;

/// A declared network.
#[derive(Debug)]
pub struct ContainerNetwork {
    /// Its name.
    pub name: Box<str>,
    /// What makes it.
    pub driver: Box<str>,
    /// Its range of addresses; absent: the engine's choice.
    pub subnet: Option<Box<str>>,
    /// It leads nowhere outside.
    pub internal: bool,
}

/// What the engine knows of a network.
#[derive(Debug)]
pub struct NetworkAnswer {
    /// What it says of it; `None` where there is none.
    pub found: Option<docker::Network>,
    /// It is of the host's making.
    pub is_ours: bool,
    /// The containers that have joined it, whether they run or not, and whether each is the host's.
    pub members: Vec<(Box<str>, bool)>,
}

/// One thing done to a network.
#[derive(Clone, Debug)]
pub enum NetworkAct<'a> {
    /// Make it.
    Create(&'a ContainerNetwork),
    /// Make it anew, with these containers in it as before.
    Replace(&'a ContainerNetwork, Vec<Box<str>>),
    /// Remove it.
    Remove,
}

impl Resource for ContainerNetwork {
    fn kind(&self) -> &'static str {
        "container_network"
    }

    fn object(&self) -> Object {
        Object::new("container_network", &self.name)
    }

    fn question(&self) -> Question<'_> {
        Question::Network(&self.name)
    }

    fn judge(&self, answer: &Answer, _past: &Past<'_>) -> Result<Verdict<'_>, Trouble> {
        let answer = match answer {
            Answer::Network(answer) => answer,
            Answer::NotApplicable(why) => return Ok(Verdict::not_applicable(why)),
            other => return Err(other.mismatch()),
        };
        let step = |act| Step::Network { name: &self.name, act };
        let Some(found) = &answer.found else {
            let steps = vec![step(NetworkAct::Create(self))];
            return Ok(Verdict { steps, detail: ABSENT.into(), ..Verdict::default() });
        };
        let differs = self.differs(found);
        if differs.is_empty() {
            return Ok(Verdict { existed: true, ..Verdict::default() });
        }
        let strangers = answer.members.iter().filter(|(_, is_ours)| !is_ours);
        let strangers: Vec<&str> = strangers.map(|(name, _)| &**name).collect();
        let cause = match (answer.is_ours, &*strangers) {
            (false, _) => "it is not of the host's making, and so is never changed".into(),
            (true, []) => {
                let members = answer.members.iter().map(|(name, _)| name.clone()).collect();
                let steps = vec![step(NetworkAct::Replace(self, members))];
                return Ok(Verdict { existed: true, steps, detail: differs, ..Verdict::default() });
            }
            (true, strangers) => {
                format!("it would have to be made anew, and {} uses it", { strangers.join(", ") })
            }
        };
        let in_the_way = strangers.first().map(|name| Object::new("container", name));
        let doing = format!("change container network {}: {differs}", self.name);
        Err(Trouble { in_the_way, ..Trouble::new(doing, cause) })
    }

    fn is_marked(&self) -> bool {
        true
    }
}

impl ContainerNetwork {
    /// What of it is not as declared.
    fn differs(&self, found: &docker::Network) -> String {
        let mut differs = Vec::new();
        if found.driver != self.driver {
            differs.push(format!("its driver is {}", quoted(&found.driver)));
        }
        if found.internal != self.internal {
            differs.push(match found.internal {
                true => "it leads nowhere outside".into(),
                false => "it leads outside".into(),
            });
        }
        if let Some(wanted) = self.subnet.as_deref().map(cidr) {
            if !found.subnets.iter().any(|subnet| cidr(subnet) == wanted) {
                differs.push(format!("its subnet is {}", quoted(&found.subnets.join(", "))));
            }
        }
        differs.join(", ")
    }
}

/// A network that leaves is removed if it is still the one that the host made and nothing uses it.
pub struct Remove;

impl Undo for Remove {
    fn announces(&self, it: &Leaving<'_>) -> Option<String> {
        Some(format!("remove container network {}", it.name))
    }

    fn question<'a>(&self, it: &Leaving<'a>) -> Question<'a> {
        Question::Network(it.name)
    }

    fn judge<'a>(&self, it: &Leaving<'a>, answer: &Answer) -> Result<Farewell<'a>, Trouble> {
        let answer = match answer {
            Answer::Network(answer) => answer,
            Answer::NotApplicable(why) => return Ok(Farewell::ended(Ends::Left, why)),
            other => return Err(other.mismatch()),
        };
        let members: Vec<&str> = answer.members.iter().map(|(name, _)| &**name).collect();
        Ok(match (&answer.found, answer.is_ours, &*members) {
            (None, ..) => Farewell::ended(Ends::Removed, ""),
            (_, false, _) => {
                Farewell::ended(Ends::Left, "it is another than the one that the host made")
            }
            (_, true, []) => {
                let steps = vec![Step::Network { name: it.name, act: NetworkAct::Remove }];
                Farewell { steps, ..Farewell::ended(Ends::Removed, "it is there") }
            }
            (_, true, members) => {
                Farewell::ended(Ends::Left, &format!("{} uses it", members.join(", ")))
            }
        })
    }
}

/// How a declaration names a network of containers.
pub static KIND: Kind = Kind {
    name: "container_network",
    doc: "A network that containers join. On leaving the declaration it is removed if the host \
          created it and nothing uses it.",
    fields: &[
        Field::required("name", "Its name.", Shape::Text(&CONTAINER_NAME)),
        Field::optional("driver", "What makes it.", Shape::Text(&CONTAINER_NAME)).or("\"bridge\""),
        Field::optional("subnet", "Its network.", Shape::Text(&CIDR)),
        Field::optional("internal", "It leads nowhere outside.", Shape::Bool).or("false"),
    ],
    exactly_one: &[],
    default_timeout_s: TIMEOUT_S,
    carrier: Carrier::Any,
    rules: |fields, judge| {
        if let Some(name) = fields.text("name") {
            judge.claims("name", "container_network", name.clone());
            if ["bridge", "host", "none", "default"].contains(&&**name) {
                let wrong = format!("{name:?} is the container engine's own network");
                judge.wrong("name", wrong, "choose another name");
            }
        }
        if let Some(range) = fields.text("subnet").and_then(|text| cidr(text)) {
            let (address, length) = network(range);
            if address != range.0 {
                let mend = format!("write {address}/{length}");
                judge.wrong("subnet", "is an address within a network, not one".into(), &mend);
            }
        }
    },
    build: Some(|_, fields| {
        let internal = fields.is_true("internal");
        Box::new(ContainerNetwork {
            driver: fields.take_text("driver").unwrap_or_else(|| "bridge".into()),
            subnet: fields.take_text("subnet"),
            name: fields.take_text("name").expect("the table requires a name"),
            internal,
        })
    }),
};

/// The name of a container, of a network or of a volume.
pub static CONTAINER_NAME: Text = Text {
    what: "a name that a container engine takes",
    mend: "begin with a letter or digit and go on with letters, digits and any of _ . -",
    pattern: "^[A-Za-z0-9][A-Za-z0-9_.-]*$",
    max: 200,
    holds: |text| word(text, "", "_.-"),
};
