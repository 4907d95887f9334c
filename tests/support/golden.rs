//! Golden files: a shape that the host emits or stores, kept in `tests/wire/` and compared in full.

use std::path::{Path, PathBuf};

/// Where they lie.
pub fn wire() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wire")
}

/// Compares `found` with the golden file `name`; with `UPDATE` set, rewrites it.
#[track_caller]
pub fn assert_golden(name: &str, found: &str) {
    let path = wire().join(name);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, found).unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    if golden == found {
        return;
    }
    let first = golden.lines().zip(found.lines()).position(|(one, other)| one != other);
    let first = first.unwrap_or(golden.lines().count().min(found.lines().count()));
    let line = |text: &str| text.lines().nth(first).unwrap_or("(nothing)").to_owned();
    panic!(
        "{} line {} differs; UPDATE=1 rewrites it\n  golden: {}\n   found: {}",
        path.display(),
        first + 1,
        line(&golden),
        line(found),
    );
}

/// How a document is laid out.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// A member a line.
    Indented,
    /// As the host writes it.
    Compact,
}

/// The document `json`, which the host wrote, with what differs from run to run made the same:
/// times, ids of passes, checksums, how long things took, the host's version, and `scratch`, the
/// directory that it all happened in. The order of the members stays.
pub fn settled(json: &str, scratch: &Path, layout: Layout) -> String {
    let (mut out, mut depth, mut key) = (String::new(), 0, "");
    let line = |out: &mut String, depth: usize| {
        if layout == Layout::Indented {
            *out += "\n";
            *out += &"  ".repeat(depth);
        }
    };
    let mut rest = json.trim_end();
    while let Some(first) = rest.chars().next() {
        let (token, after) = rest.split_at(token_length(rest));
        match first {
            '"' if after.starts_with(':') => {
                key = token.trim_matches('"');
                out += token;
            }
            '{' | '[' => {
                out += token;
                if !after.starts_with(['}', ']']) {
                    line(&mut out, depth + 1);
                }
                depth += 1;
            }
            '}' | ']' => {
                depth -= 1;
                if !out.ends_with(['{', '[']) {
                    line(&mut out, depth);
                }
                out += token;
            }
            ',' => {
                out += token;
                line(&mut out, depth);
            }
            ':' => out += if layout == Layout::Indented { ": " } else { ":" },
            _ => out += &settled_value(key, token, scratch),
        }
        rest = after;
    }
    out + "\n"
}

fn settled_value(key: &str, token: &str, scratch: &Path) -> String {
    let is_id = token.len() == 34 && token[1..33].bytes().all(|byte| byte.is_ascii_hexdigit());
    match key {
        "at" | "started" | "finished" | "accepted" | "since" | "until" | "next_pass"
            if token.ends_with("Z\"") =>
        {
            "\"2026-01-01T00:00:00Z\"".into()
        }
        "id" if is_id => format!("\"{}\"", "0".repeat(32)),
        "sum" => format!("\"{}\"", "0".repeat(16)),
        "host" | "version" if token.starts_with('"') => "\"0.0.0\"".into(),
        "took_ms" | "pid" => "0".into(),
        "aside" => "\"/SCRATCH/discarded-20260101T000000Z-1\"".into(),
        _ => token.replace(scratch.to_str().unwrap(), "/SCRATCH"),
    }
}

/// Length of the token at the start of `json`.
fn token_length(json: &str) -> usize {
    let bytes = json.as_bytes();
    match bytes[0] {
        b'"' => {
            let mut end = 1;
            while bytes[end] != b'"' {
                end += if bytes[end] == b'\\' { 2 } else { 1 };
            }
            end + 1
        }
        b'{' | b'}' | b'[' | b']' | b',' | b':' => 1,
        _ => json.find([',', '}', ']']).unwrap_or(json.len()),
    }
}
