//! Words as a person may be shown them, whoever wrote them. Pure.

use std::borrow::Cow;

use crate::diff;

/// `text` with nothing in it that a terminal acts on, or that hides what is written.
pub fn plain(text: &str) -> Cow<'_, str> {
    let acts = |it: char| it.is_control() || diff::is_invisible(it);
    if !text.contains(acts) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for it in text.chars() {
        match acts(it) {
            true => out.extend(it.escape_default()),
            false => out.push(it),
        }
    }
    Cow::Owned(out)
}

/// So many of a thing.
pub fn counted(count: usize, thing: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {thing}{plural}")
}
