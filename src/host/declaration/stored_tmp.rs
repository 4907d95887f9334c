//! Temporary.
use super::*;
pub fn place(position: usize, id: &str) -> String {
    whole::place(position as u32, Some(id))
}
pub fn journal_form(
    d: &Declaration,
    _keep: &mut dyn FnMut(&[u8]) -> String,
    sink: &mut dyn FnMut(&[u8]),
) {
    sink(&d.text)
}
pub fn form(d: &Declaration, at: usize, _name: &mut dyn FnMut(&[u8]) -> String) -> String {
    let s = &d.resources[at].span;
    String::from_utf8_lossy(&d.text[s.start as usize..s.end as usize]).into_owned()
}
pub fn parse_stored(
    s: crate::store::Stored,
    own: &Own,
    _r: &mut dyn FnMut(&str) -> Option<Vec<u8>>,
) -> Result<Declaration, Vec<Fault>> {
    match s {
        crate::store::Stored::Trusted(b) => parse_trusted(b, own),
        crate::store::Stored::Untrusted(t) => parse(t, own),
    }
}
pub fn schema() -> String {
    String::new()
}
