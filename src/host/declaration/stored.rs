//! The form in which a declaration stands in the journal, and the way back. Pure.
//!
//! One line, fields in their table's order, and in place of every secret value a reference to
//! where the value is kept. What keeps the values is the caller's: `keep` takes one and names it,
//! always by the same name; `resolve` gives it back.

use std::collections::HashMap;
use std::ops::Range;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::check::{reference, SECRET};
use super::fault::Fault;
use super::json::{comma, write_scalar, Json};
use super::own::Own;
use super::{declaration, Bundle, Declaration, Declared, Trust, VERSION};
use crate::resource::kind::{self, Field, Secrecy, Shape, COMMON};
use crate::resource::Object;

/// Keeps a secret value and returns its reference.
pub type Keep<'k> = dyn FnMut(&[u8]) -> String + 'k;

/// The resource at `index` as the journal has it: compact JSON on one line.
pub fn journal_form(declaration: &Declaration, index: usize, keep: &mut Keep<'_>) -> String {
    resource(declaration, index, keep, COMMON)
}

/// The resource at `index` without what does not change the thing itself: its id and its timeout.
/// Equal for two resources that declare the same, however their text is laid out.
pub fn form(declaration: &Declaration, index: usize, keep: &mut Keep<'_>) -> String {
    let kind = COMMON.iter().position(|field| field.name == "type").expect("every type has it");
    resource(declaration, index, keep, &COMMON[kind..=kind])
}

/// The whole declaration as the journal has it, on one line, in pieces of about a resource.
pub fn journal_text<'t, 'k: 't>(
    declaration: &'t Declaration,
    keep: &'t mut Keep<'k>,
) -> impl Iterator<Item = String> + use<'t, 'k> {
    let mut head = format!("{{\"version\":{VERSION}");
    if let Some(node) = &declaration.node {
        head.push_str(",\"node\":");
        write_scalar(&**node, &mut head);
    }
    if let Some(serial) = declaration.serial {
        head.push_str(",\"serial\":");
        write_scalar(&serial, &mut head);
    }
    head.push_str(",\"resources\":[");
    let forms = (0..declaration.resources.len()).map(move |index| {
        let form = journal_form(declaration, index, keep);
        if index == 0 {
            form
        } else {
            format!(",{form}")
        }
    });
    std::iter::once(head).chain(forms).chain(std::iter::once("]}".into()))
}

/// A declaration from the store, and how far it is trusted.
#[derive(Clone, Debug)]
pub enum Stored {
    /// It came from a file that only root can write.
    Trusted(Bundle),
    /// It came from anywhere else.
    Untrusted(Vec<u8>),
}

impl Stored {
    /// The bytes, however far they are trusted.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Stored::Trusted(bundle) => bundle.bytes(),
            Stored::Untrusted(bytes) => bytes,
        }
    }
}

/// Reads what [`journal_text`] wrote, its secret values put back by `resolve`, by the same rules as
/// any declaration. Its `sha256` is that of `text`, not of the bytes that were accepted: those are
/// the record's to know.
///
/// # Errors
/// As [`super::parse`], and a fault for each value that `resolve` does not have.
pub fn parse_stored<'r>(
    stored: Stored,
    own: &'r Own,
    resolve: &'r mut dyn FnMut(&str) -> Option<Vec<u8>>,
) -> Result<Declaration, Vec<Fault>> {
    match stored {
        Stored::Trusted(Bundle(text)) => declaration(text, Trust::Bundle, own, Some(resolve)),
        Stored::Untrusted(text) => declaration(text, Trust::Untrusted, own, Some(resolve)),
    }
}

/// Where in its text each resource of a declaration stands. Reading one costs a second look at the
/// text, which only those take who have something to write down.
fn spans(declaration: &Declaration) -> &[Range<usize>] {
    #[derive(Deserialize)]
    struct Document<'a> {
        #[serde(borrow)]
        resources: Vec<&'a RawValue>,
    }
    declaration.spans.get_or_init(|| {
        let text = &declaration.text;
        let document: Document<'_> =
            serde_json::from_slice(text).expect("the parser read it before");
        let start = |raw: &str| raw.as_ptr() as usize - text.as_ptr() as usize;
        let span = |raw: &&RawValue| start(raw.get())..start(raw.get()) + raw.get().len();
        document.resources.iter().map(span).collect()
    })
}

/// Where in the text of `declaration` the resources that declare these objects stand.
pub fn excerpts(declaration: &Declaration, objects: &[&str]) -> Vec<Option<Range<usize>>> {
    let object = |declared: &Declared| declared.resource.object();
    let declared = declaration.resources.iter().map(object);
    let spans: HashMap<Object, Range<usize>> =
        declared.zip(spans(declaration).iter().cloned()).collect();
    let find = |object: &&str| spans.get(&Object::from_journal(object)?).cloned();
    objects.iter().map(find).collect()
}

/// The names of the secrets that the text of a stored declaration refers to. Quotes in a text are
/// escaped, so that nothing else looks like a reference.
pub fn secret_names(text: &[u8]) -> impl Iterator<Item = &str> {
    let mark = format!("{{\"{SECRET}\":\"");
    let mut rest = std::str::from_utf8(text).unwrap_or_default();
    std::iter::from_fn(move || {
        let (name, after) = rest[rest.find(&mark)? + mark.len()..].split_once('"')?;
        rest = after;
        Some(name)
    })
}

fn resource(
    declaration: &Declaration,
    index: usize,
    keep: &mut Keep<'_>,
    common: &'static [Field],
) -> String {
    let text = &declaration.text[spans(declaration)[index].clone()];
    let text = std::str::from_utf8(text).expect("the parser saw that it is UTF-8");
    let json = Json::parse(text, Vec::new()).expect("the parser read it before");
    let kind = match json.get("type") {
        Some(Json::Text(name)) => kind::find(name),
        _ => None,
    };
    let kind = kind.expect("the parser saw its type");
    let marked = json.get("secret") == Some(&Json::Bool(true));
    let mut writer = Writer { out: String::with_capacity(text.len()), marked, keep };
    writer.object(&json, common.iter().chain(kind.fields));
    writer.out
}

struct Writer<'w, 'k> {
    out: String,
    /// The resource marks its values as secret.
    marked: bool,
    keep: &'w mut Keep<'k>,
}

impl Writer<'_, '_> {
    fn object(&mut self, json: &Json<'_>, table: impl Iterator<Item = &'static Field>) {
        self.out.push('{');
        let present = table.filter_map(|field| Some((field, json.get(field.name)?)));
        for (at, (field, value)) in present.enumerate() {
            comma(at, &mut self.out);
            write_scalar(field.name, &mut self.out);
            self.out.push(':');
            self.value(&field.shape, field.secrecy, value);
        }
        self.out.push('}');
    }

    fn value(&mut self, shape: &'static Shape, secrecy: Secrecy, json: &Json<'_>) {
        let kept = match secrecy {
            Secrecy::Open => false,
            Secrecy::Always => true,
            Secrecy::WhenMarked => self.marked,
        };
        match (shape, json) {
            (Shape::Object(table), Json::Object(_)) => self.object(json, table.iter()),
            (Shape::List(of, ..), Json::List(items)) => {
                self.out.push('[');
                for (at, item) in items.iter().enumerate() {
                    comma(at, &mut self.out);
                    self.value(of, secrecy, item);
                }
                self.out.push(']');
            }
            (Shape::Map(_, of, _), Json::Object(entries)) => {
                self.out.push('{');
                for (at, (key, value)) in entries.iter().enumerate() {
                    comma(at, &mut self.out);
                    write_scalar(key, &mut self.out);
                    self.out.push(':');
                    self.value(of, secrecy, value);
                }
                self.out.push('}');
            }
            (_, Json::Text(secret)) if kept => {
                let name = (self.keep)(secret.as_bytes());
                self.reference(&name);
            }
            (_, json) => match reference(json).filter(|_| kept) {
                Some(name) => self.reference(name),
                None => json.write(&mut self.out),
            },
        }
    }

    fn reference(&mut self, name: &str) {
        self.out.push('{');
        write_scalar(SECRET, &mut self.out);
        self.out.push(':');
        write_scalar(name, &mut self.out);
        self.out.push('}');
    }
}
