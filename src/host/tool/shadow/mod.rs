//! The account files, passwd(5), group(5) and shadow(5), and the tools that change them. Pure.
//!
//! The first two begin `name:password:id:`. A line that the C library would not take for an account
//! is not one here either: blank, a comment, a NIS line (`+`, `-`), too few fields, an id that is
//! no number or that the kernel reserves. No password leaves here, not even as its hash.

mod calls;
mod login;
mod user;

pub use calls::{
    add_group, add_user, change_user, lock, mend_login, unlock, Call, Change, NewUser,
};
pub use login::{login_of, Login};
pub use user::{groups_of, has_group, user_of, User};

/// Which of the two files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum File {
    /// passwd(5): users.
    Passwd,
    /// group(5).
    Group,
}

/// The id of the account `name`: of several, the first, as the C library has it.
pub fn id_of(file: File, text: &[u8], name: &str) -> Option<u32> {
    text.split(|&byte| byte == b'\n').find_map(|line| {
        let rest = line.trim_ascii_start().strip_prefix(name.as_bytes())?.strip_prefix(b":")?;
        id(file, name, rest)
    })
}

/// The id in an account's line, less its name and the colon after it.
fn id(file: File, name: &str, rest: &[u8]) -> Option<u32> {
    if name.is_empty() || name.starts_with(['#', '+', '-']) || name.contains([':', '\n']) {
        return None;
    }
    let mut fields = rest.splitn(4, |&byte| byte == b':').skip(1);
    let id = number(fields.next()?)?;
    // A user's line is not one without its group.
    if file == File::Passwd {
        number(fields.next()?)?;
    }
    // The kernel takes -1 for "leave it as it is".
    (id != u32::MAX).then_some(id)
}

/// The number that these digits are.
fn number(digits: &[u8]) -> Option<u32> {
    let digits = std::str::from_utf8(digits).ok()?;
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWD: &[u8] = b"root:x:0:0:root:/root:/bin/bash\n\
        \n\
        # alice:x:7:7::/:/bin/sh\n\
        #bob:x:7:7::/:/bin/sh\n\
        +carol:x:7:7::/:/bin/sh\n\
        -:x:7:7::/:/bin/sh\n\
        +::::::\n\
        short:x:7\n\
        shorter:x\n\
        bare\n\
        noid:x::7::/:/bin/sh\n\
        words:x:seven:7::/:/bin/sh\n\
        signed:x:+7:7::/:/bin/sh\n\
        below:x:-1:7::/:/bin/sh\n\
        spaced:x: 7:7::/:/bin/sh\n\
        above:x:4294967296:7::/:/bin/sh\n\
        reserved:x:4294967295:7::/:/bin/sh\n\
        largest:x:4294967294:7::/:/bin/sh\n\
        twice:x:8:7::/:/bin/sh\n\
        twice:x:9:7::/:/bin/sh\n\
        mended:x:oops:7::/:/bin/sh\n\
        mended:x:10:7::/:/bin/sh\n  \
        indented:x:11:7::/:/bin/sh\n\
        J\xc3\xb6rg:x:12:7:\xff\xfe:/:/bin/sh\n\
        last:x:13:7::/:/bin/sh";

    fn user(name: &str) -> Option<u32> {
        id_of(File::Passwd, PASSWD, name)
    }

    #[test]
    fn an_account_is_found_by_its_whole_name_first_line_first() {
        let found = [("root", 0), ("largest", u32::MAX - 1), ("twice", 8), ("mended", 10)];
        for (name, id) in found.into_iter().chain([("indented", 11), ("Jörg", 12), ("last", 13)]) {
            assert_eq!(user(name), Some(id), "{name}");
        }
        for prefix in ["roo", "oot", "rooty", "Root", ""] {
            assert_eq!(user(prefix), None, "{prefix:?}");
        }
    }

    #[test]
    fn a_line_that_is_no_account_is_none() {
        let kinds = ["alice", "# alice", "bob", "#bob", "carol", "+carol", "+", "-", "bare"];
        let fields = ["short", "shorter", "noid", "words", "signed", "below", "spaced"];
        let hostile = ["above", "reserved", "root:x", "root:x:0", "bare\nnoid"];
        for name in kinds.into_iter().chain(fields).chain(hostile) {
            assert_eq!(user(name), None, "{name:?}");
        }
    }

    #[test]
    fn a_group_needs_no_members() {
        let text = b"wheel:x:998\nadm:x:4:alice,bob\nbad:x\ndocker:!:999:";
        let group = |name| id_of(File::Group, text, name);
        assert_eq!(group("wheel"), Some(998));
        assert_eq!(group("adm"), Some(4));
        assert_eq!(group("docker"), Some(999));
        assert_eq!(group("bad"), None);
    }

    #[test]
    fn a_file_cut_anywhere_gives_a_true_answer_or_none() {
        for end in 0..PASSWD.len() {
            for (name, id) in [("root", 0), ("twice", 8), ("last", 13)] {
                let answer = id_of(File::Passwd, &PASSWD[..end], name);
                assert!(answer.is_none() || answer == Some(id), "{name} in {end} bytes");
            }
        }
    }

    #[test]
    fn a_huge_line_is_passed_over() {
        let mut text = vec![b'x'; 8 << 20];
        text.extend_from_slice(b"\nalice:x:7:7::/:/bin/sh\n");
        assert_eq!(id_of(File::Passwd, &text, "alice"), Some(7));
    }
}
