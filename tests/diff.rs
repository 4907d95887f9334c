//! The diff shown to a person: right, bounded, and harmless to a terminal.

mod support;

use std::process::{Command, Stdio};

use nox_mesh_host::diff::{unified, MAX_BYTES, MAX_LINES, MAX_LINE_BYTES};
use support::{has, Dice, Scratch};

/// Applies `diff` to `old` by its hunks alone, checking every context line and every count.
fn patched(old: &str, diff: &str) -> String {
    let old: Vec<&str> = old.split_inclusive('\n').collect();
    let (mut new, mut at) = (String::new(), 0);
    let mut lines = diff.lines().skip(2).peekable();
    while let Some(head) = lines.next() {
        let spans = head.strip_prefix("@@ -").and_then(|rest| rest.strip_suffix(" @@"));
        let (before, after) = spans.and_then(|spans| spans.split_once(" +")).expect("a hunk head");
        let (start, mut removes) = numbers(before);
        let (_, mut adds) = numbers(after);
        new.extend(old[at..start].iter().copied());
        at = start;
        while removes + adds > 0 {
            let line = lines.next().expect("as many lines as the head says");
            let bare = lines.next_if(|next| next.starts_with('\\')).is_some();
            let body = if bare { line[1..].to_owned() } else { format!("{}\n", &line[1..]) };
            if !line.starts_with('+') {
                assert_eq!(old[at], body, "in\n{diff}");
                (at, removes) = (at + 1, removes - 1);
            }
            if !line.starts_with('-') {
                new.push_str(&body);
                adds -= 1;
            }
        }
    }
    new.extend(old[at..].iter().copied());
    new
}

/// The first line (from 0) and the number of lines that `span` names.
fn numbers(span: &str) -> (usize, usize) {
    let (start, length) = span.split_once(',').unwrap_or((span, "1"));
    let (start, length): (usize, usize) =
        (start.parse().expect("a number"), length.parse().expect("a number"));
    (if length == 0 { start } else { start - 1 }, length)
}

/// Length of the longest common subsequence of lines, by the textbook table.
fn common(old: &str, new: &str) -> usize {
    let old: Vec<&str> = old.split_inclusive('\n').collect();
    let mut row = vec![0; old.len() + 1];
    for line in new.split_inclusive('\n') {
        let mut diagonal = 0;
        for (i, other) in old.iter().enumerate() {
            let above = row[i + 1];
            row[i + 1] = if line == *other { diagonal + 1 } else { above.max(row[i]) };
            diagonal = above;
        }
    }
    row[old.len()]
}

/// Text of up to `most` lines over an alphabet of `letters`; half of them lack the last newline.
fn any_text(dice: &mut Dice, most: usize, letters: usize) -> String {
    let mut text = String::new();
    for _ in 0..dice.below(most + 1) {
        text.push(char::from(b'a' + dice.below(letters) as u8));
        text.push('\n');
    }
    if dice.below(2) == 0 {
        text.pop();
    }
    text
}

fn count(diff: &str, sign: char) -> usize {
    diff.lines().skip(2).filter(|line| line.starts_with(sign)).count()
}

#[test]
fn applying_a_diff_gives_the_new_contents_and_no_shorter_diff_exists() {
    let mut dice = Dice::new(7);
    for round in 0..4000 {
        let letters = 1 + dice.below(6);
        let (old, new) = (any_text(&mut dice, 24, letters), any_text(&mut dice, 24, letters));
        let diff = unified("/f", Some(old.as_bytes()), Some(new.as_bytes()));
        assert_eq!(diff.is_empty(), old == new);
        assert_eq!(patched(&old, &diff), new, "round {round}: {old:?} to {new:?}:\n{diff}");
        let context_and_kept = common(&old, &new);
        assert_eq!(count(&diff, '-'), old.split_inclusive('\n').count() - context_and_kept);
        assert_eq!(count(&diff, '+'), new.split_inclusive('\n').count() - context_and_kept);
    }
}

#[test]
fn patch_understands_the_diff() {
    if !has("patch", "patch_understands_the_diff") {
        return;
    }
    let scratch = Scratch::new("patch");
    let file = scratch.join("f");
    let mut dice = Dice::new(11);
    for round in 0..40 {
        let (old, new) = (any_text(&mut dice, 60, 20), any_text(&mut dice, 60, 20));
        let diff = unified("/f", Some(old.as_bytes()), Some(new.as_bytes()));
        std::fs::write(&file, &old).unwrap();
        let mut child = Command::new("patch")
            .args(["--silent", "--fuzz=0"])
            .arg(&file)
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), diff.as_bytes()).unwrap();
        assert!(child.wait().unwrap().success() || diff.is_empty(), "round {round}:\n{diff}");
        let got = std::fs::read_to_string(&file).unwrap_or_default();
        assert_eq!(got, new, "round {round}:\n{diff}");
    }
}

#[test]
fn a_small_change_reads_as_diff_writes_it() {
    let old = "a\nb\nc\nd\ne\nf\ng\nh\n";
    let new = "a\nb\nc\nd\nE\nf\ng\nh\ni";
    let want = "--- /etc/x\n+++ /etc/x\n@@ -2,7 +2,8 @@\n b\n c\n d\n-e\n+E\n f\n g\n h\n+i\n\
                \\ No newline at end of file\n";
    assert_eq!(unified("/etc/x", Some(old.as_bytes()), Some(new.as_bytes())), want);
}

#[test]
fn an_absent_side_is_dev_null() {
    let made = unified("/etc/x", None, Some(b"one\n"));
    assert_eq!(made, "--- /dev/null\n+++ /etc/x\n@@ -0,0 +1 @@\n+one\n");
    let gone = unified("/etc/x", Some(b"one\ntwo"), None);
    let want = "--- /etc/x\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-one\n-two\n\
                \\ No newline at end of file\n";
    assert_eq!(gone, want);
    assert_eq!(unified("/etc/x", None, Some(b"")), "--- /dev/null\n+++ /etc/x\n");
    assert_eq!(unified("/etc/x", None, None), "");
}

#[test]
fn what_is_not_text_is_shown_by_size_and_digest() {
    let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    for bad in [&b"a\0b"[..], b"\xff\xfe", b"cut \xe2\x82"] {
        let diff = unified("/f", Some(bad), Some(b"abc"));
        let lines: Vec<&str> = diff.lines().collect();
        assert!(lines[2].starts_with(&format!("-not text, {} bytes, sha256 ", bad.len())));
        assert_eq!(lines[3], format!("+text, 3 bytes, sha256 {abc}"));
        assert_eq!(lines.len(), 4);
    }
    let large = vec![b'x'; MAX_BYTES + 1];
    let diff = unified("/f", None, Some(&large));
    assert!(diff.contains(&format!("+large, {} bytes, sha256 ", large.len())), "{diff}");
}

// What a file holds must not drive the terminal that shows it.
#[test]
fn nothing_that_a_terminal_acts_on_is_shown() {
    let hostile = "\x1b]0;owned\x07\x1b[2J\r\x7f\u{9b}31m\u{202e}gpj.exe\u{feff}\tkept\x0b\n";
    let diff = unified("/tmp/\x1b[31m\nx", Some(b""), Some(hostile.as_bytes()));
    let plain = |c: char| c == '\n' || c == '\t' || !c.is_control();
    assert!(diff.chars().all(plain), "{diff:?}");
    let line = "+^[]0;owned^G^[[2J^M^?<U+009B>31m<U+202E>gpj.exe<U+FEFF>\tkept^K";
    assert_eq!(diff.lines().last(), Some(line));
    assert_eq!(diff.lines().nth(1), Some("+++ /tmp/^[[31m^Jx"));
}

#[test]
fn long_lines_and_long_diffs_are_cut_and_say_so() {
    let long = "é".repeat(MAX_LINE_BYTES);
    let diff = unified("/f", None, Some(long.as_bytes()));
    let line = diff.lines().nth(3).unwrap();
    let shown = line.chars().filter(|c| *c == 'é').count() * 2;
    assert!(shown <= MAX_LINE_BYTES && shown > MAX_LINE_BYTES - 4);
    assert!(line.ends_with(&format!("… ({} more bytes)", long.len() - shown)), "{line}");

    let many: String = (0..1000).map(|i| format!("{i}\n")).collect();
    let diff = unified("/f", None, Some(many.as_bytes()));
    assert_eq!(diff.lines().count(), 2 + MAX_LINES + 1);
    let last = format!("… {} more lines", 1000 + 1 - MAX_LINES);
    assert_eq!(diff.lines().last(), Some(last.as_str()));
}

#[test]
fn contents_with_nothing_in_common_cost_little() {
    // The worst that the size limit lets in: every line is new and no two lines are equal.
    let side = |from: u32| -> String {
        (from..)
            .map(|i| format!("{i:x}\n"))
            .scan(0, |bytes, line| {
                *bytes += line.len();
                (*bytes <= MAX_BYTES).then_some(line)
            })
            .collect()
    };
    let (old, new) = (side(0x1_0000), side(0x8_0000));
    let diff = unified("/f", Some(old.as_bytes()), Some(new.as_bytes()));
    let head = format!("@@ -1,{} +1,{} @@", old.lines().count(), new.lines().count());
    assert_eq!(diff.lines().nth(2), Some(head.as_str()));
    // Lines of one letter in two orders: as many matches as can be, and far apart.
    let (old, new) = ("a\nb\n".repeat(MAX_BYTES / 4), "b\na\na\n".repeat(MAX_BYTES / 6));
    let diff = unified("/f", Some(old.as_bytes()), Some(new.as_bytes()));
    assert_eq!(diff.lines().count(), 2 + MAX_LINES + 1);
}
