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
use crate::digest::Hasher;
use crate::resource::kind::{self, Field, Secrecy, Shape, COMMON};
use crate::resource::Object;

/// Keeps a secret value and returns its reference.
pub type Keep<'k> = dyn FnMut(&[u8]) -> String + 'k;

/// What a resource declares, whatever its id and timeout, however its text is laid out, and without
/// giving a secret away: the first 8 bytes of a SHA-256.
pub type Form = [u8; 8];

/// The resource at `index` as the journal has it: compact JSON on one line.
pub fn journal_form(declaration: &Declaration, index: usize, keep: &mut Keep<'_>) -> String {
    resource(declaration, index, keep).text
}

/// The form of the resource at `index`.
pub fn form(declaration: &Declaration, index: usize, keep: &mut Keep<'_>) -> Form {
    match declaration.forms.get() {
        Some(forms) => forms[index],
        None => resource(declaration, index, keep).form(),
    }
}

/// How many bytes the whole declaration takes in the journal. The forms, which are a part of that,
/// are kept for those who will ask.
pub fn journal_len(declaration: &Declaration, keep: &mut Keep<'_>) -> u64 {
    let mut len = head(declaration).len() + TAIL.len();
    let mut forms = Vec::with_capacity(declaration.resources.len());
    for index in 0..declaration.resources.len() {
        let written = resource(declaration, index, keep);
        len += written.text.len() + usize::from(index > 0);
        forms.push(written.form());
    }
    // Whoever was first knew the same.
    let _ = declaration.forms.set(forms);
    len as u64
}

/// The whole declaration as the journal has it, on one line, in pieces of about a resource.
pub fn journal_text<'t, 'k: 't>(
    declaration: &'t Declaration,
    keep: &'t mut Keep<'k>,
) -> impl Iterator<Item = String> + use<'t, 'k> {
    let forms = (0..declaration.resources.len()).map(move |index| {
        let form = journal_form(declaration, index, keep);
        if index == 0 {
            form
        } else {
            format!(",{form}")
        }
    });
    std::iter::once(head(declaration)).chain(forms).chain(std::iter::once(TAIL.into()))
}

/// What follows the last resource.
const TAIL: &str = "]}";

/// What stands before the first resource.
fn head(declaration: &Declaration) -> String {
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
    head
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

/// A resource as the journal has it.
struct Written {
    text: String,
    /// Where, after what is not part of its form, its type begins.
    form_at: usize,
}

impl Written {
    fn form(&self) -> Form {
        let mut hasher = Hasher::new();
        hasher.update(b"{");
        hasher.update(&self.text.as_bytes()[self.form_at..]);
        hasher.finish()[..8].try_into().expect("a digest has a first 8 bytes")
    }
}

fn resource(declaration: &Declaration, index: usize, keep: &mut Keep<'_>) -> Written {
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
    writer.out.push('{');
    let is_type = |field: &&Field| field.name == "type";
    writer.members(&json, COMMON.iter().filter(|field| !is_type(field)));
    writer.out.push(',');
    let form_at = writer.out.len();
    writer.members(&json, COMMON.iter().filter(is_type).chain(kind.fields));
    writer.out.push('}');
    Written { text: writer.out, form_at }
}

struct Writer<'w, 'k> {
    out: String,
    /// The resource marks its values as secret.
    marked: bool,
    keep: &'w mut Keep<'k>,
}

impl Writer<'_, '_> {
    fn members(&mut self, json: &Json<'_>, table: impl Iterator<Item = &'static Field>) {
        let present = table.filter_map(|field| Some((field, json.get(field.name)?)));
        for (at, (field, value)) in present.enumerate() {
            comma(at, &mut self.out);
            write_scalar(field.name, &mut self.out);
            self.out.push(':');
            self.value(&field.shape, field.secrecy, value);
        }
    }

    fn value(&mut self, shape: &'static Shape, secrecy: Secrecy, json: &Json<'_>) {
        let kept = match secrecy {
            Secrecy::Open => false,
            Secrecy::Always => true,
            Secrecy::WhenMarked => self.marked,
        };
        match (shape, json) {
            (Shape::Object(table), Json::Object(_)) => {
                self.out.push('{');
                self.members(json, table.iter());
                self.out.push('}');
            }
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
