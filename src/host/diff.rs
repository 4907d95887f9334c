//! What changed between two contents of a file, as a unified diff for a person. Pure.
//!
//! Myers' greedy O(ND) algorithm over lines, on what is left after the common head and tail are
//! cut away. Time, memory and output are bounded whatever the contents: past a limit on the edit
//! distance the whole middle is shown as one change, and what is large or not text is shown as its
//! size and SHA-256. Nothing that a terminal would act on passes: control characters stand in
//! caret notation, the invisible ones of Unicode by their number. A secret must not come here.

use std::fmt::Write;
use std::ops::Range;

use crate::digest::{hex, sha256};

/// Contents of more bytes than this are shown by size and SHA-256.
pub const MAX_BYTES: usize = 256 << 10;

/// A diff shows this many lines below its header and says how many it left out.
pub const MAX_LINES: usize = 200;

/// A line shows this many bytes of its text and says how many it left out.
pub const MAX_LINE_BYTES: usize = 500;

/// Lines of context around a change.
const CONTEXT: usize = 3;

/// The edit distance past which a finer diff than "all of this for all of that" is not sought.
const MAX_EDITS: usize = 500;

/// Bound on lines times edits, hence on time.
const MAX_WORK: usize = 16 << 20;

/// The unified diff from `old` to `new`, the contents of the file at `path`; `None` stands for no
/// file. Empty where nothing differs. It ends with a newline.
pub fn unified(path: &str, old: Option<&[u8]>, new: Option<&[u8]>) -> String {
    let mut out = String::new();
    if old == new {
        return out;
    }
    for (sign, side) in [("---", old), ("+++", new)] {
        let name = if side.is_some() { shown(path) } else { "/dev/null".into() };
        let _ = writeln!(out, "{sign} {name}");
    }
    match (text(old), text(new)) {
        (Ok(old), Ok(new)) => hunks(&mut out, &lines(old), &lines(new)),
        _ => digests(&mut out, old, new),
    }
    out
}

/// `bytes` as text that can be shown, or why it is not.
fn text(bytes: Option<&[u8]>) -> Result<&str, &'static str> {
    let bytes = bytes.unwrap_or_default();
    if bytes.len() > MAX_BYTES {
        return Err("large");
    }
    if bytes.contains(&0) {
        return Err("not text");
    }
    std::str::from_utf8(bytes).map_err(|_| "not text")
}

/// Sizes and digests, in place of contents.
fn digests(out: &mut String, old: Option<&[u8]>, new: Option<&[u8]>) {
    for (sign, side) in [('-', old), ('+', new)] {
        let Some(bytes) = side else { continue };
        let what = text(side).err().unwrap_or("text");
        let digest = hex(&sha256(bytes));
        let _ = writeln!(out, "{sign}{what}, {} bytes, sha256 {digest}", bytes.len());
    }
}

/// The lines of `text`, each with its newline; only the last can be without.
fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

/// Lines `old` were replaced by lines `new`; one of the two may be empty.
#[derive(Debug, PartialEq, Eq)]
struct Change {
    old: Range<usize>,
    new: Range<usize>,
}

/// Writes every hunk, as far as [`MAX_LINES`] goes.
fn hunks(out: &mut String, old: &[&str], new: &[&str]) {
    let mut sheet = Sheet { out, left: MAX_LINES, hidden: 0 };
    let changes = changes(old, new);
    for group in changes.chunk_by(|a, b| b.old.start - a.old.end <= 2 * CONTEXT) {
        hunk(&mut sheet, old, new, group);
    }
    if sheet.hidden > 0 {
        let plural = if sheet.hidden == 1 { "line" } else { "lines" };
        let _ = writeln!(sheet.out, "… {} more {plural}", sheet.hidden);
    }
}

/// Writes the changes of one hunk with their context.
fn hunk(sheet: &mut Sheet, old: &[&str], new: &[&str], group: &[Change]) {
    let (Some(first), Some(last)) = (group.first(), group.last()) else { return };
    let head = first.old.start.min(CONTEXT);
    let tail = (old.len() - last.old.end).min(CONTEXT);
    let before = span(first.old.start - head..last.old.end + tail);
    let after = span(first.new.start - head..last.new.end + tail);
    sheet.put(|out| {
        let _ = writeln!(out, "@@ -{before} +{after} @@");
    });
    let mut at = first.old.start - head;
    for change in group {
        sheet.lines(' ', &old[at..change.old.start]);
        sheet.lines('-', &old[change.old.clone()]);
        sheet.lines('+', &new[change.new.clone()]);
        at = change.old.end;
    }
    sheet.lines(' ', &old[at..at + tail]);
}

/// A range of lines as a hunk's head has it: from 1, the length left out where it is 1, and an
/// empty range named by the line before it.
fn span(lines: Range<usize>) -> String {
    match lines.len() {
        0 => format!("{},0", lines.start),
        1 => format!("{}", lines.start + 1),
        length => format!("{},{length}", lines.start + 1),
    }
}

/// The output, and how many lines of it are left.
struct Sheet<'a> {
    out: &'a mut String,
    left: usize,
    hidden: usize,
}

impl Sheet<'_> {
    fn put(&mut self, write: impl FnOnce(&mut String)) {
        if self.left == 0 {
            self.hidden += 1;
        } else {
            self.left -= 1;
            write(self.out);
        }
    }

    fn lines(&mut self, sign: char, lines: &[&str]) {
        for line in lines {
            let body = line.strip_suffix('\n');
            self.put(|out| {
                let _ = writeln!(out, "{sign}{}", shown(body.unwrap_or(line)));
            });
            if body.is_none() {
                self.put(|out| out.push_str("\\ No newline at end of file\n"));
            }
        }
    }
}

/// `text` with nothing in it that a terminal acts on, cut after [`MAX_LINE_BYTES`].
fn shown(text: &str) -> String {
    let mut cut = text.len().min(MAX_LINE_BYTES);
    while !text.is_char_boundary(cut) {
        cut -= 1;
    }
    let mut out = String::with_capacity(cut);
    for c in text[..cut].chars() {
        match c {
            '\t' => out.push(c),
            '\0'..='\x1f' => out.extend(['^', char::from(c as u8 + 0x40)]),
            '\x7f' => out.push_str("^?"),
            c if is_invisible(c) => {
                let _ = write!(out, "<U+{:04X}>", u32::from(c));
            }
            c => out.push(c),
        }
    }
    if cut < text.len() {
        let _ = write!(out, "… ({} more bytes)", text.len() - cut);
    }
    out
}

/// The second set of control characters, line separators, and what turns or hides text.
pub(crate) fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{80}'..='\u{9f}' | '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
        | '\u{e0000}'..='\u{e007f}')
}

/// What turns `old` into `new`, in order.
fn changes(old: &[&str], new: &[&str]) -> Vec<Change> {
    let head = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let (old, new) = (&old[head..], &new[head..]);
    let tail = old.iter().rev().zip(new.iter().rev()).take_while(|(a, b)| a == b).count();
    let (old, new) = (&old[..old.len() - tail], &new[..new.len() - tail]);
    let mut changes =
        finest(old, new).unwrap_or_else(|| vec![Change { old: 0..old.len(), new: 0..new.len() }]);
    for side in changes.iter_mut().flat_map(|change| [&mut change.old, &mut change.new]) {
        *side = side.start + head..side.end + head;
    }
    changes
}

/// The fewest edits that turn `old` into `new`; `None` where they are more than the limits allow.
fn finest(old: &[&str], new: &[&str]) -> Option<Vec<Change>> {
    if old.is_empty() && new.is_empty() {
        return Some(Vec::new());
    }
    let limit = (MAX_WORK / (old.len() + new.len())).min(MAX_EDITS);
    // rows[d][i] is how far into `old` d edits can come on diagonal k = 2i - d, where k is the
    // position in `old` less the one in `new`. It may point beyond either end: no path comes back
    // from there, so such an entry is never part of the way to the end.
    let mut rows: Vec<Vec<usize>> = Vec::new();
    for d in 0..=limit {
        let mut row = Vec::with_capacity(d + 1);
        for i in 0..=d {
            let mut x = rows.last().map_or(0, |above| step(above, i).0);
            let mut y = x + d - 2 * i;
            while x < old.len() && y < new.len() && old[x] == new[y] {
                (x, y) = (x + 1, y + 1);
            }
            row.push(x);
            if x == old.len() && y == new.len() {
                return Some(walk_back(&rows, i));
            }
        }
        rows.push(row);
    }
    None
}

/// How row `d` reaches its diagonal `i` from the row above: the position in `old` right after the
/// edit, and whether the edit takes a line away (from diagonal `i - 1`) or adds one (from `i`).
fn step(above: &[usize], i: usize) -> (usize, bool) {
    let adding = above.get(i);
    match i.checked_sub(1).map(|left| above[left] + 1) {
        Some(removing) if adding.is_none_or(|&adding| removing > adding) => (removing, true),
        _ => (above[i], false),
    }
}

/// Follows the rows back from the end, which was reached on diagonal `i` of the row after them.
fn walk_back(rows: &[Vec<usize>], mut i: usize) -> Vec<Change> {
    let mut changes: Vec<Change> = Vec::new();
    for d in (1..=rows.len()).rev() {
        let (x, removes) = step(&rows[d - 1], i);
        let y = x + d - 2 * i;
        let from = if removes { (x - 1, y) } else { (x, y - 1) };
        match changes.last_mut() {
            Some(next) if (x, y) == (next.old.start, next.new.start) => {
                (next.old.start, next.new.start) = from;
            }
            _ => changes.push(Change { old: from.0..x, new: from.1..y }),
        }
        i -= usize::from(removes);
    }
    changes.reverse();
    changes
}
