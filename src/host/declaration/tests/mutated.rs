//! Damaged declarations: whatever is done to a good one, the parser answers.

use super::{document, good, parse, parse_trusted, Bundle, Own};
use crate::declaration::stored::{form, journal_text, parse_stored, Stored};

/// Marsaglia's xorshift: the same damage in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }
}

const PIECES: &[&str] = &[
    "\"",
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "null",
    "1",
    "-1",
    "1e9",
    "true",
    "\\",
    "\\u0000",
    "\\ud800",
    "/",
    "..",
    "\n",
    "\u{0}",
    "é",
    "\"id\"",
    "\"secret\":true,",
    "{\"$secret\":\"x\"}",
    "\"path\":",
];

/// One change: a byte, a removal, a copy of another part, or a piece of JSON put in.
fn damage(text: &mut Vec<u8>, dice: &mut Dice) {
    if text.is_empty() {
        text.push(b'{');
    }
    let at = dice.below(text.len());
    let length = dice.below(12).min(text.len() - at);
    match dice.below(5) {
        0 => text[at] = dice.below(256) as u8,
        1 => drop(text.drain(at..at + length)),
        2 => {
            let from = dice.below(text.len() - length + 1);
            let copy = text[from..from + length].to_vec();
            text.splice(at..at, copy);
        }
        _ => {
            let piece = PIECES[dice.below(PIECES.len())];
            let cut = dice.below(2) * length;
            text.splice(at..at + cut, piece.bytes());
        }
    }
}

/// Reads `text` in every way there is; what is accepted must survive the journal.
fn read_in_every_way(text: &[u8], own: &Own) -> bool {
    for faults in
        [parse(text.to_vec(), own).err(), parse_trusted(Bundle::vouched(text.to_vec()), own).err()]
            .into_iter()
            .flatten()
    {
        assert!(!faults.is_empty() && faults.iter().all(|fault| !fault.wrong.is_empty()));
    }
    let stored = parse_stored(Stored::Trusted(Bundle::vouched(text.to_vec())), own, &mut |_| {
        Some(b"value".to_vec())
    });
    let Ok(declaration) = stored else { return false };
    let mut kept = std::collections::HashMap::new();
    let mut keep = |value: &[u8]| {
        let name = format!("v{}", kept.len());
        kept.insert(name.clone(), value.to_vec());
        name
    };
    let journal: String = journal_text(&declaration, &mut keep).collect();
    let journal = journal.into_bytes();
    let mut resolve =
        |name: &str| Some(kept.get(name).cloned().unwrap_or_else(|| b"value".to_vec()));
    let back = parse_stored(Stored::Trusted(Bundle::vouched(journal)), own, &mut resolve)
        .expect("what was accepted");
    assert_eq!(
        format!("{:?}", back.resources.iter().map(|it| &it.resource).collect::<Vec<_>>()),
        format!("{:?}", declaration.resources.iter().map(|it| &it.resource).collect::<Vec<_>>())
    );
    for index in 0..declaration.resources.len() {
        form(&declaration, index, &mut |_| "v".into());
    }
    true
}

#[test]
fn no_damage_makes_the_parser_panic() {
    let examples: Vec<String> = good::examples().into_iter().map(|(_, text)| text).collect();
    let applied = ["directory", "file", "symlink", "sysctl", "action"];
    let few: Vec<String> = good::examples()
        .into_iter()
        .filter(|(kind, _)| applied.contains(kind))
        .map(|(_, text)| text)
        .collect();
    let few = document(&few.join(","));
    let seeds = [document(&examples.join(",")), few.clone(), few];
    let (mut dice, own, mut accepted) = (Dice(0x9e37_79b9_7f4a_7c15), Own::default(), 0);
    for round in 0..6000 {
        let mut text = seeds[round % seeds.len()].clone().into_bytes();
        for _ in 0..=dice.below(3) {
            damage(&mut text, &mut dice);
        }
        accepted += u32::from(read_in_every_way(&text, &own));
    }
    assert!(accepted > 100, "the damage is too great to try what follows: {accepted}");
}

#[test]
fn a_declaration_cut_short_is_refused_at_every_byte() {
    let few: Vec<String> = good::examples().into_iter().map(|(_, text)| text).take(3).collect();
    let text = document(&few.join(",")).into_bytes();
    let own = Own::default();
    assert!(parse(text.clone(), &own).is_ok());
    for end in 0..text.len() {
        assert!(parse(text[..end].to_vec(), &own).is_err(), "cut at {end}");
    }
}
