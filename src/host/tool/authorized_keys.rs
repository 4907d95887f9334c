//! The host's own lines in authorized_keys(5). Pure.
//!
//! They stand together between two comments that name the host; everything else in the file is the
//! person's own, and is kept byte for byte. A block whose ends do not match is refused: whose the
//! lines after it are cannot be told.

/// The comment before the host's lines.
pub const BEGIN: &str = "# nox-mesh-host keeps the lines from here to its end; yours go outside";
/// The comment after them.
pub const END: &str = "# nox-mesh-host: end";

/// A file of keys, taken apart.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Parted {
    /// The host's lines, in their order; `None` where it has no block.
    pub ours: Option<Vec<String>>,
    /// What stands before the block; all of the file where there is none.
    before: Vec<u8>,
    /// What stands after it.
    after: Vec<u8>,
}

/// Takes `text` apart; the error says what is wrong with it.
pub fn part(text: &[u8]) -> Result<Parted, &'static str> {
    let mut parted = Parted::default();
    let mut is_open = false;
    for line in text.split_inclusive(|&byte| byte == b'\n') {
        let bare = line.trim_ascii();
        if bare == BEGIN.as_bytes() {
            if parted.ours.is_some() {
                return Err("the host's block of keys begins in it more than once");
            }
            parted.ours = Some(Vec::new());
            is_open = true;
        } else if bare == END.as_bytes() {
            if !is_open {
                return Err("the host's block of keys ends in it where none begins");
            }
            is_open = false;
        } else {
            match &mut parted.ours {
                Some(ours) if is_open => ours.push(String::from_utf8_lossy(bare).into_owned()),
                Some(_) => parted.after.extend_from_slice(line),
                None => parted.before.extend_from_slice(line),
            }
        }
    }
    match is_open {
        true => Err("the host's block of keys begins in it and does not end"),
        false => Ok(parted),
    }
}

impl Parted {
    /// The file with `keys` as the host's lines, in the place of those that it has; without a block
    /// where there are none.
    pub fn with(&self, keys: &[Box<str>]) -> Vec<u8> {
        let mut text = self.before.clone();
        if !keys.is_empty() {
            if text.last().is_some_and(|&byte| byte != b'\n') {
                text.push(b'\n');
            }
            for line in [BEGIN].into_iter().chain(keys.iter().map(|key| &**key)).chain([END]) {
                text.extend_from_slice(line.as_bytes());
                text.push(b'\n');
            }
        }
        text.extend_from_slice(&self.after);
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(keys: &[&str]) -> Vec<Box<str>> {
        keys.iter().map(|key| (*key).into()).collect()
    }

    fn block(keys: &str) -> String {
        format!("{BEGIN}\n{keys}{END}\n")
    }

    #[test]
    fn a_persons_lines_are_kept_byte_for_byte() {
        let one = keys(&["ssh-ed25519 AAAA1 a"]);
        for theirs in ["", "ssh-rsa AAAA me\n", "# note\r\n\n\tssh-rsa AAAA me\n", "x", "\u{e9}\n"]
        {
            let made = part(theirs.as_bytes()).unwrap().with(&one);
            let again = part(&made).unwrap();
            assert_eq!(again.ours.as_deref(), Some(&["ssh-ed25519 AAAA1 a".to_string()][..]));
            assert_eq!(again.with(&one), made, "a second time changes nothing");
            let kept = again.with(&[]);
            assert_eq!(kept.trim_ascii_end(), theirs.trim_ascii_end().as_bytes());
        }
        let odd = [b"\xff\xfe\n", block("ssh-rsa AAAA\n").as_bytes(), b"\0\xff"].concat();
        assert_eq!(part(&odd).unwrap().with(&[]), b"\xff\xfe\n\0\xff");
    }

    #[test]
    fn the_block_stays_where_it_is() {
        let text = format!("a\n{}b\n", block("ssh-rsa AAAA old\n"));
        let parted = part(text.as_bytes()).unwrap();
        let new = parted.with(&keys(&["ssh-rsa AAAA 1", "ssh-rsa AAAA 2"]));
        let wanted = format!("a\n{}b\n", block("ssh-rsa AAAA 1\nssh-rsa AAAA 2\n"));
        assert_eq!(String::from_utf8(new).unwrap(), wanted);
        assert_eq!(part(b"a\nb\n").unwrap().ours, None);
        assert_eq!(part(block("").as_bytes()).unwrap().ours, Some(vec![]));
    }

    #[test]
    fn a_block_whose_ends_do_not_match_is_refused() {
        for (text, why) in [
            (format!("{BEGIN}\nssh-rsa AAAA\nssh-rsa AAAA theirs\n"), "does not end"),
            (format!("ssh-rsa AAAA\n{END}\n"), "where none begins"),
            (format!("{}{END}\n", block("")), "where none begins"),
            (format!("{}{}", block(""), block("")), "more than once"),
            (format!("{BEGIN}\n{}", block("")), "more than once"),
        ] {
            let refused = part(text.as_bytes()).unwrap_err();
            assert!(refused.contains(why), "{text}: {refused}");
        }
    }

    #[test]
    fn a_file_cut_anywhere_is_refused_or_tells_the_truth() {
        let text = format!("theirs\n{}theirs too\n", block("ssh-rsa AAAA 1\nssh-rsa AAAA 2\n"));
        let whole = ["ssh-rsa AAAA 1", "ssh-rsa AAAA 2"];
        for end in 0..text.len() {
            if let Ok(parted) = part(&text.as_bytes()[..end]) {
                assert!(parted.ours.is_none_or(|ours| ours == whole), "in {end} bytes");
            }
        }
    }
}
