//! Which known word was meant. Pure.

/// The candidate that `word` most likely was meant to be, where one is near enough: at most one
/// edit for every three letters.
pub fn nearest<'c>(word: &str, candidates: impl Iterator<Item = &'c str>) -> Option<&'c str> {
    const LONGEST: usize = 64;
    if word.len() > LONGEST {
        return None;
    }
    candidates
        .filter(|candidate| candidate.len() <= LONGEST)
        .map(|candidate| (distance(word, candidate), candidate))
        .filter(|(edits, candidate)| *edits <= word.len().max(candidate.len()) / 3)
        .min_by_key(|(edits, _)| *edits)
        .map(|(_, candidate)| candidate)
}

/// `did you mean "content"?`, or nothing where no candidate is near.
pub fn did_you_mean<'c>(word: &str, candidates: impl Iterator<Item = &'c str>) -> String {
    nearest(word, candidates).map_or_else(String::new, |it| format!("did you mean {it:?}?"))
}

/// Levenshtein's distance, and a swap of neighbours counts once.
fn distance(a: &str, b: &str) -> usize {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for i in 0..a.len() {
        let mut row = vec![i + 1];
        for j in 0..b.len() {
            let change = above[j] + usize::from(a[i] != b[j]);
            let mut best = change.min(above[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j] {
                best = best.min(before[j - 1] + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut above, row);
    }
    above[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_finds_the_word_and_a_stranger_finds_none() {
        let known = || ["content", "content_base64", "mode", "owner", "group"].into_iter();
        for (word, meant) in [
            ("contents", Some("content")),
            ("cotnent", Some("content")),
            ("content_base_64", Some("content_base64")),
            ("mod", Some("mode")),
            ("onwer", Some("owner")),
            ("xyzzy", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, known()), meant, "{word}");
        }
        assert_eq!(nearest(&"m".repeat(10_000), known()), None);
    }
}
