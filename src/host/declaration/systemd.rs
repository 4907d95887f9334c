//! What systemd reads out of a unit's file and out of a preset, as far as names go. Pure.
//!
//! Lines, comments, continuations, quotes and specifiers are systemd's; whose names they are is
//! for `own` to say. What cannot be told from the text alone may be any name.

/// A word that stands for one name, or for all that fit it.
pub(super) struct Pattern(Vec<Piece>);

#[derive(Clone, Copy)]
enum Piece {
    /// This byte.
    This(u8),
    /// Any one byte.
    One,
    /// Any bytes, or none.
    Any,
}

impl Pattern {
    /// The one name that it stands for, where it stands for one.
    pub fn name(&self) -> Option<String> {
        let byte = |piece: &Piece| match piece {
            Piece::This(byte) => Some(*byte),
            Piece::One | Piece::Any => None,
        };
        String::from_utf8(self.0.iter().map(byte).collect::<Option<_>>()?).ok()
    }

    /// It stands for `name` among others.
    pub fn fits(&self, name: &str) -> bool {
        let name = name.as_bytes();
        let (mut piece, mut at, mut retry) = (0, 0, None);
        while piece < self.0.len() || at < name.len() {
            let takes = match self.0.get(piece) {
                Some(Piece::Any) => {
                    retry = Some((piece, at));
                    piece += 1;
                    continue;
                }
                Some(Piece::One) => at < name.len(),
                Some(Piece::This(byte)) => name.get(at) == Some(byte),
                None => false,
            };
            match retry {
                _ if takes => (piece, at) = (piece + 1, at + 1),
                Some((any, from)) if from < name.len() => {
                    retry = Some((any, from + 1));
                    (piece, at) = (any + 1, from + 1);
                }
                _ => return false,
            }
        }
        true
    }

    /// A word of a setting in the file of `unit`, its quotes and escapes undone and its specifiers
    /// expanded.
    fn of_word(word: &[u8], unit: Option<Unit<'_>>) -> Pattern {
        let mut pieces = Vec::new();
        let mut bytes = word.iter().copied();
        while let Some(byte) = bytes.next() {
            match byte {
                b'"' | b'\'' => {}
                b'\\' => {
                    let digits = match bytes.next() {
                        Some(b'x' | b'0'..=b'7') => 2,
                        Some(b'u') => 4,
                        Some(b'U') => 8,
                        _ => 0,
                    };
                    bytes.by_ref().take(digits).for_each(drop);
                    pieces.push(Piece::Any);
                }
                b'%' => match bytes.next() {
                    Some(b'%') => pieces.push(Piece::This(b'%')),
                    Some(letter) => match unit.and_then(|unit| unit.expand(letter)) {
                        Some(text) => pieces.extend(text.bytes().map(Piece::This)),
                        None => pieces.push(Piece::Any),
                    },
                    None => {}
                },
                byte => pieces.push(Piece::This(byte)),
            }
        }
        Pattern(pieces)
    }

    /// A pattern of a preset, as glob(7) has it; any one byte for a range.
    fn of_glob(glob: &[u8]) -> Pattern {
        let mut pieces = Vec::new();
        let mut rest = glob;
        while let [first, after @ ..] = rest {
            rest = after;
            pieces.push(match first {
                b'*' => Piece::Any,
                b'?' => Piece::One,
                b'[' => {
                    // The first in a range may be the bracket itself, and an exclamation mark.
                    let shut = after.iter().skip(1).position(|byte| *byte == b']');
                    rest = shut.map_or(after, |at| &after[at + 2..]);
                    shut.map_or(Piece::This(b'['), |_| Piece::One)
                }
                byte => Piece::This(*byte),
            });
        }
        Pattern(pieces)
    }
}

/// The name of a unit, as its own file's specifiers take it apart.
#[derive(Clone, Copy)]
struct Unit<'n> {
    full: &'n str,
    /// Up to the type, or the instance.
    prefix: &'n str,
    /// Empty for a template.
    instance: Option<&'n str>,
}

impl<'n> Unit<'n> {
    /// The one unit whose settings a file holds, by its path beneath a directory of units; `None`
    /// where it holds those of several.
    fn of(path: &'n str) -> Option<Unit<'n>> {
        let full = match path.split_once('/') {
            None => path,
            Some((dir, _)) => dir.strip_suffix(".d")?,
        };
        let (stem, _) = full.rsplit_once('.').filter(|(stem, _)| !stem.ends_with('-'))?;
        Some(match stem.split_once('@') {
            None => Unit { full, prefix: stem, instance: None },
            Some((prefix, instance)) => Unit { full, prefix, instance: Some(instance) },
        })
    }

    /// What a specifier stands for; `None` where the name does not say.
    fn expand(self, letter: u8) -> Option<&'n str> {
        let is_template = self.instance == Some("");
        match letter {
            b'p' => Some(self.prefix),
            b'j' => self.prefix.rsplit('-').next(),
            b'i' if !is_template => Some(self.instance.unwrap_or_default()),
            b'n' if !is_template => Some(self.full),
            b'N' if !is_template => self.full.rsplit_once('.').map(|(stem, _)| stem),
            _ => None,
        }
    }
}

/// The file at `path`, beneath a directory of units, names one that `is_sought` by the settings
/// `keys`.
pub(super) fn names(
    path: &str,
    text: &[u8],
    keys: &[&str],
    is_sought: impl Fn(&Pattern) -> bool,
) -> bool {
    let unit = Unit::of(path);
    settings(text).any(|line| {
        let (key, value) = line.split_at(line.iter().position(|byte| *byte == b'=').unwrap_or(0));
        let mut words = value.get(1..).unwrap_or_default().split(is_blank);
        keys.iter().any(|known| known.as_bytes() == trim(key))
            && words.any(|word| is_sought(&Pattern::of_word(word, unit)))
    })
}

/// A preset does not enable one that `is_sought`, by a pattern that not every unit of a type fits.
pub(super) fn withholds(text: &[u8], is_sought: impl Fn(&Pattern) -> bool) -> bool {
    lines(text).any(|line| {
        let line = trim(line);
        let (verb, glob) = line.split_at(line.iter().position(is_blank).unwrap_or(0));
        let glob = trim(glob);
        let stem = glob.strip_suffix(b".service").unwrap_or(glob);
        matches!(verb, b"disable" | b"ignore")
            && !stem.iter().all(|byte| matches!(byte, b'*' | b'?'))
            && is_sought(&Pattern::of_glob(glob))
    })
}

fn is_blank(byte: &u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

fn trim(text: &[u8]) -> &[u8] {
    let Some(start) = text.iter().position(|byte| !is_blank(byte)) else { return &[] };
    let end = text.iter().rposition(|byte| !is_blank(byte)).map_or(start, |at| at + 1);
    &text[start..end]
}

/// The lines of a unit's file, the continued ones joined. A comment within one is passed over.
fn settings(text: &[u8]) -> impl Iterator<Item = Vec<u8>> + '_ {
    const MARK: &[u8] = "\u{feff}".as_bytes();
    let mut lines = lines(text);
    std::iter::from_fn(move || {
        let mut whole: Option<Vec<u8>> = None;
        for line in lines.by_ref() {
            if matches!(trim(line).first(), Some(b'#' | b';')) {
                continue;
            }
            let whole = whole.get_or_insert_default();
            whole.extend(line.strip_prefix(MARK).unwrap_or(line));
            // A backslash that is itself escaped continues nothing.
            if whole.iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 0 {
                break;
            }
            whole.pop();
            whole.push(b' ');
        }
        whole
    })
}

/// Lines end at a line feed, a return or both, or at a NUL.
fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let is_end = |byte: &u8| matches!(byte, b'\n' | b'\r' | 0);
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let at = rest.iter().position(is_end).unwrap_or(rest.len());
        let (line, end) = rest.split_at(at);
        let ends = match end {
            [b'\n', b'\r', 0, ..] | [b'\r', b'\n', 0, ..] => 3,
            [b'\n', b'\r' | 0, ..] | [b'\r', b'\n' | 0, ..] => 2,
            _ => end.len().min(1),
        };
        rest = &end[ends..];
        Some(line)
    })
}
