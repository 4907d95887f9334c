//! The table of a type: what its fields are called, what they may hold and what they are for. Pure.
//!
//! One table serves the parser, the JSON Schema and the suggestions for a misspelt field, so none
//! of the three can know another language than the others.

use std::borrow::Cow;

use super::fields::Fields;
use super::form::{self, Text};
use super::{Resource, RootPath};

/// A type of resource.
pub struct Kind {
    /// Its name in a declaration.
    pub name: &'static str,
    /// What it is, for a person.
    pub doc: &'static str,
    /// Its own fields; [`COMMON`] come on top.
    pub fields: &'static [Field],
    /// Exactly one of these fields must be there.
    pub exactly_one: &'static [&'static str],
    /// How long one of its steps may take where the declaration does not say, in seconds.
    pub default_timeout_s: u32,
    /// Who may declare it.
    pub carrier: Carrier,
    /// What holds between the fields, and what the resource claims and touches. Called for a
    /// resource with faults too, so that every fault is found at once.
    pub rules: for<'f, 'a> fn(&'f Fields<'a>, &mut dyn Judge<'a>),
    /// Makes the resource of this id from fields in which no fault was found; `None` where this
    /// host knows the type and cannot apply it yet.
    pub build: Option<Build>,
}

/// Makes a resource of an id and its fields.
pub type Build = fn(&str, &mut Fields<'_>) -> Box<dyn Resource>;

/// Who may declare a type.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Carrier {
    /// Every source.
    Any,
    /// A bundle only.
    Bundle,
}

/// A field of a type, or of an object within it.
pub struct Field {
    /// Its name.
    pub name: &'static str,
    /// What it is for.
    pub doc: &'static str,
    /// What it may hold.
    pub shape: Shape,
    /// Whether it may be absent.
    pub need: Need,
    /// Whether its value may be shown.
    pub secrecy: Secrecy,
    /// What its absence means, as JSON; empty where absence is no value.
    pub default: &'static str,
}

/// Whether a field may be absent.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// It may not.
    Required,
    /// It may.
    Optional,
}

/// Whether a field's value may be shown, and stand in the journal.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Secrecy {
    /// It may.
    Open,
    /// It may not. Of a map, that is every value, and the keys may.
    Always,
    /// It may not where the resource's own `secret` is true.
    WhenMarked,
}

impl Field {
    /// A field that must be there.
    pub const fn required(name: &'static str, doc: &'static str, shape: Shape) -> Field {
        let (need, secrecy) = (Need::Required, Secrecy::Open);
        Field { name, doc, shape, need, secrecy, default: "" }
    }

    /// A field that may be absent.
    pub const fn optional(name: &'static str, doc: &'static str, shape: Shape) -> Field {
        let (need, secrecy) = (Need::Optional, Secrecy::Open);
        Field { name, doc, shape, need, secrecy, default: "" }
    }

    /// The same field, its value kept from being shown.
    pub const fn kept(mut self, secrecy: Secrecy) -> Field {
        self.secrecy = secrecy;
        self
    }

    /// The same field, its absence meaning this JSON value.
    pub const fn or(mut self, default: &'static str) -> Field {
        self.default = default;
        self
    }
}

/// What a field may hold.
pub enum Shape {
    /// `true` or `false`.
    Bool,
    /// An integer in this range, both ends included.
    Integer(i64, i64),
    /// A number in this range, both ends included.
    Number(f64, f64),
    /// Text of a form.
    Text(&'static Text),
    /// Text of a form, or an integer that stands for its digits.
    TextOrInteger(&'static Text),
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A path inside the root, and not the root itself.
    Path,
    /// Permission bits, as text of three or four octal digits.
    Mode,
    /// A user or group: a name, or a number in digits.
    Principal,
    /// Bytes in base64.
    Base64,
    /// The id of a resource earlier in the list, of one of these types (none: of any). Where it is
    /// of one type alone, what is declared is a part of that: `build` finds in place of the id what
    /// that resource claims in the space of its type's name.
    Reference(&'static [&'static str]),
    /// A list of values of one shape, with its least and greatest length.
    List(&'static Shape, usize, usize),
    /// An object whose keys have this form and whose values have this shape; at most so many.
    Map(&'static Text, &'static Shape, usize),
    /// An object with these fields.
    Object(&'static [Field]),
}

/// What a type's rules say about one resource.
pub trait Judge<'a> {
    /// A field, or several together, is wrong: what is wrong and what would mend it.
    fn wrong(&mut self, field: &str, wrong: String, mend: &str);

    /// The resource claims `name` in `space` by this field; no other may claim it too.
    fn claims(&mut self, field: &str, space: &'static str, name: Cow<'a, str>);

    /// The resource would touch this by this field.
    fn touches(&mut self, field: &str, touch: Touch<'_>);
}

/// What a resource would touch, to be held against what is the host's own.
pub enum Touch<'v> {
    /// An entry is put at this path, or what is there is changed.
    Entry(&'v RootPath),
    /// The entry that is put at this path is a symbolic link to this target.
    Link(&'v RootPath, &'v str),
    /// A directory is made at this path, and left alone where it was there before.
    Directory(&'v RootPath),
    /// The directory at this path is given a mode or an owner.
    Access(&'v RootPath),
    /// Anything at this path or beneath it may be written or hidden. May be `/`.
    Tree(&'v str),
    /// Files are put beneath this path, a user's home. May be `/`.
    Home(&'v str),
    /// A file of a service manager's, perhaps, with these contents.
    Text(&'v RootPath, &'v [u8]),
    /// The unit of this name is started, stopped, enabled or disabled.
    Unit(&'v str),
    /// The package of this name is installed.
    Package(&'v str),
}

/// Fields that every type has.
pub static COMMON: &[Field] = &[
    Field::required(
        "id",
        "Names the resource in reports and references; unique in the declaration. Renaming it \
         changes nothing: what is owned is the object.",
        Shape::Text(&form::ID),
    ),
    Field::required("type", "What kind of thing is declared.", Shape::Text(&form::TYPE)),
    Field::optional(
        "timeout_s",
        "How long one step of this resource may take, in seconds.",
        Shape::Integer(1, 86_400),
    ),
];

/// Seconds that a step may take, but for the types that say otherwise.
pub const TIMEOUT_S: u32 = 60;

/// The types, in the order in which they are presented.
pub static KINDS: &[&Kind] = &[
    &super::directory::KIND,
    &super::file::KIND,
    &super::symlink::KIND,
    &super::package::KIND,
    &super::group::KIND,
    &super::user::KIND,
    &super::service::KIND,
    &super::container::KIND,
    &super::container_network::KIND,
    &super::sysctl::KIND,
    &super::packet_filter::KIND,
    &super::overlay::KIND,
    &super::peer::KIND,
    &super::dataset::KIND,
    &super::action::KIND,
];

/// The type of this name.
pub fn find(name: &str) -> Option<&'static Kind> {
    KINDS.iter().copied().find(|kind| kind.name == name)
}
