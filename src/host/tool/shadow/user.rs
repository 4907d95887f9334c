//! A user's line of passwd(5), and the groups that list it in group(5). Pure.

use super::{id, number, File};

/// A user as passwd(5) has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// Its number.
    pub uid: u32,
    /// Its primary group's number.
    pub gid: u32,
    /// Whose it is, or what for.
    pub comment: String,
    /// Its home; `None` where that is no UTF-8.
    pub home: Option<String>,
    /// What it logs in to.
    pub shell: String,
}

/// The user `name`: of several lines the first, as the C library has it.
pub fn user_of(text: &[u8], name: &str) -> Option<User> {
    text.split(|&byte| byte == b'\n').find_map(|line| {
        let rest = line.trim_ascii_start().strip_prefix(name.as_bytes())?.strip_prefix(b":")?;
        user(id(File::Passwd, name, rest)?, rest)
    })
}

/// The user of this line, less its name. The C library fills up what a short line lacks.
fn user(uid: u32, rest: &[u8]) -> Option<User> {
    let mut fields = rest.splitn(6, |&byte| byte == b':').skip(2);
    let gid = number(fields.next()?)?;
    let mut field = || fields.next().unwrap_or_default();
    let comment = String::from_utf8_lossy(field()).into_owned();
    let home = String::from_utf8(field().to_vec()).ok();
    let shell = String::from_utf8_lossy(field()).into_owned();
    Some(User { uid, gid, comment, home, shell })
}

/// The names of the groups whose lines list `user` as a member, in their order.
pub fn groups_of<'t>(text: &'t [u8], user: &str) -> Vec<&'t str> {
    let lists = |(_, _, members): &(&str, u32, &[u8])| {
        !user.is_empty() && members.split(|&byte| byte == b',').any(|it| it == user.as_bytes())
    };
    groups(text).filter(lists).map(|(name, ..)| name).collect()
}

/// Some group has this number.
pub fn has_group(text: &[u8], gid: u32) -> bool {
    groups(text).any(|(_, found, _)| found == gid)
}

/// The groups of group(5): name, number, members.
fn groups(text: &[u8]) -> impl Iterator<Item = (&str, u32, &[u8])> {
    text.split(|&byte| byte == b'\n').filter_map(|line| {
        let line = line.trim_ascii_start();
        let (name, rest) = line.split_at(line.iter().position(|&byte| byte == b':')?);
        let (name, rest) = (std::str::from_utf8(name).ok()?, &rest[1..]);
        let members = rest.splitn(3, |&byte| byte == b':').nth(2).unwrap_or_default();
        Some((name, id(File::Group, name, rest)?, members))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As Debian 12's useradd 4.13 and a person's hand left them.
    const PASSWD: &[u8] = include_bytes!("../../../../tests/transcripts/shadow/passwd");
    const GROUP: &[u8] = include_bytes!("../../../../tests/transcripts/shadow/group");

    #[test]
    fn a_users_line_is_read_field_by_field() {
        let bob = User {
            uid: 1700,
            gid: 1500,
            comment: "Bob, the \"b\"".into(),
            home: Some("/srv/bob".into()),
            shell: "/bin/bash".into(),
        };
        assert_eq!(user_of(PASSWD, "bob"), Some(bob));
        let root = user_of(PASSWD, "root").unwrap();
        assert_eq!((root.uid, root.gid, root.shell.as_str()), (0, 0, "/bin/bash"));
        let alice = user_of(PASSWD, "alice").unwrap();
        assert_eq!((alice.comment.as_str(), alice.home.as_deref()), ("", Some("/home/alice")));
        for nobody in ["", "bo", "ob", "bob:x", "# carl", "+", "-"] {
            assert_eq!(user_of(PASSWD, nobody), None, "{nobody:?}");
        }
    }

    #[test]
    fn a_line_that_is_cut_short_or_odd_is_no_other_user() {
        let user = |line: &str| user_of(line.as_bytes(), "x");
        let short = user("x:!:7:8").unwrap();
        assert_eq!((short.gid, short.home.as_deref(), short.shell.as_str()), (8, Some(""), ""));
        for line in ["x:!:7", "x:!:7:", "x:!:7:eight::/:/", "x:!:7:+8::/:/", "x:!:-1:8::/:/", "x"] {
            assert!(user(line).is_none_or(|it| it.gid == 8 || line.ends_with("7:")), "{line}");
        }
        assert_eq!(user("x:!:7:eight::/:/"), None);
        assert_eq!(user_of(b"x:!:7:8:\xff:/\xff:/bin/sh", "x").unwrap().home, None);
        assert_eq!(user("x:!:7:8:a:/h:/bin/sh:more").unwrap().shell, "/bin/sh:more");
    }

    #[test]
    fn a_users_groups_are_those_that_list_it() {
        assert_eq!(groups_of(GROUP, "bob"), ["daemon", "adm"]);
        assert_eq!(groups_of(GROUP, "alice"), ["adm"]);
        assert_eq!(groups_of(GROUP, "bo"), Vec::<&str>::new());
        assert_eq!(groups_of(GROUP, ""), Vec::<&str>::new());
        assert!(has_group(GROUP, 1500) && !has_group(GROUP, 150) && !has_group(b"", 0));
        assert_eq!(
            groups_of(b"a:x:1:bob\n#b:x:2:bob\n+c:x:3:bob\nd:x:bob\ne:x:5:bob", "bob"),
            ["a", "e"]
        );
    }

    #[test]
    fn a_file_cut_anywhere_gives_a_true_answer_or_none() {
        let whole = user_of(PASSWD, "bob").unwrap();
        for end in 0..PASSWD.len() {
            if let Some(bob) = user_of(&PASSWD[..end], "bob") {
                assert_eq!(bob.uid, whole.uid);
                assert!(whole.gid.to_string().starts_with(&bob.gid.to_string()));
                assert!(whole.comment.starts_with(&bob.comment));
                assert!(whole.shell.starts_with(&bob.shell));
            }
        }
        for end in 0..GROUP.len() {
            let groups = groups_of(&GROUP[..end], "bob");
            assert!(["daemon", "adm"].starts_with(&groups), "{groups:?} in {end} bytes");
        }
    }
}
