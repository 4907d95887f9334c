//! Whether a user may log in, by its line of shadow(5). Pure.
//!
//! The host locks the login of an account that it lets go of with an expiry of its own, by which it
//! knows the account again. A day after the one that usermod(8) recommends for it, so that a lock
//! that a person put there is never taken for the host's.

/// The day of expiry (of those since 1970-01-01) that says that the host let the account go.
pub const LET_GO: &str = "2";

/// What shadow(5) says of a user. Not its password.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Login {
    /// No password opens it: a `!` stands before what there was.
    pub locked: bool,
    /// There is something behind that `!` which could be a password again.
    pub restorable: bool,
    /// It expires on the day by which the host knows what it let go of.
    pub let_go: bool,
}

/// The login of the user `name`; `None` where it has no line.
pub fn login_of(text: &[u8], name: &str) -> Option<Login> {
    if name.is_empty() || name.starts_with(['#', '+', '-']) || name.contains([':', '\n']) {
        return None;
    }
    text.split(|&byte| byte == b'\n').find_map(|line| {
        let rest = line.strip_prefix(name.as_bytes())?.strip_prefix(b":")?;
        let mut fields = rest.split(|&byte| byte == b':');
        let password = fields.next()?;
        // name:password:changed:min:max:warn:inactive:expires:
        let expires = fields.nth(5).unwrap_or_default();
        let behind = password.strip_prefix(b"!");
        Some(Login {
            locked: behind.is_some(),
            restorable: behind.is_some_and(|it| !it.is_empty() && !it.starts_with(b"!")),
            let_go: expires == LET_GO.as_bytes(),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As Debian 12's usermod 4.13 left it, passwords replaced.
    const SHADOW: &[u8] = include_bytes!("../../../../tests/transcripts/shadow/shadow");

    fn login(name: &str) -> Option<(bool, bool, bool)> {
        login_of(SHADOW, name).map(|it| (it.locked, it.restorable, it.let_go))
    }

    #[test]
    fn a_lock_is_told_from_what_it_locks() {
        assert_eq!(login("open"), Some((false, false, false)));
        assert_eq!(login("fresh"), Some((true, false, false)), "useradd gives no password");
        assert_eq!(login("locked"), Some((true, true, false)), "usermod --lock");
        assert_eq!(login("released"), Some((true, true, true)), "the host");
        assert_eq!(login("barely"), Some((true, false, true)), "the host, and no password");
        assert_eq!(login("disabled"), Some((true, true, false)), "a person, --expiredate 1");
        assert_eq!(login("expired"), Some((false, false, true)), "unlocked by a person");
        assert_eq!(login("daemon"), Some((false, false, false)), "a star opens nothing either");
        for nobody in ["", "ope", "# open", "+", "open:$6$salt$hash"] {
            assert_eq!(login(nobody), None, "{nobody:?}");
        }
    }

    #[test]
    fn a_file_cut_anywhere_never_shows_a_release_that_was_none() {
        for end in 0..SHADOW.len() {
            for name in ["open", "fresh", "locked", "disabled", "daemon"] {
                let seen = login_of(&SHADOW[..end], name);
                assert!(seen.is_none_or(|it| !it.let_go), "{name} in {end} bytes");
            }
        }
    }
}
