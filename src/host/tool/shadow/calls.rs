//! What useradd(8), usermod(8) and groupadd(8) are asked. Pure.
//!
//! Numbers are given for primary groups, names for the others: usermod 4.13 knows no name of a
//! primary group under `--prefix`, and dies of a number among the further groups.

use super::login::LET_GO;

/// A call of one of the tools, but for the root that it works in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The tool.
    pub tool: &'static str,
    /// What it is for, for a person: `make user alice`.
    pub doing: String,
    /// Its arguments.
    pub arguments: Vec<String>,
}

/// A user to be made; what is absent is the machine's own default.
#[derive(Clone, Copy, Debug)]
pub struct NewUser<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its number.
    pub uid: Option<u32>,
    /// Its primary group's number.
    pub gid: Option<u32>,
    /// The names of its further groups.
    pub groups: &'a [Box<str>],
    /// Its home.
    pub home: Option<&'a str>,
    /// What it logs in to.
    pub shell: Option<&'a str>,
    /// Whose it is, or what for.
    pub comment: Option<&'a str>,
    /// Its number comes from the system's range.
    pub system: bool,
    /// Its home is made.
    pub makes_home: bool,
}

/// What of a user is changed; what is absent stays.
#[derive(Clone, Copy, Debug, Default)]
pub struct Change<'a> {
    /// Its primary group's number.
    pub gid: Option<u32>,
    /// The names of all its further groups.
    pub groups: Option<&'a [Box<str>]>,
    /// Its home, which is not moved.
    pub home: Option<&'a str>,
    /// What it logs in to.
    pub shell: Option<&'a str>,
    /// Whose it is, or what for.
    pub comment: Option<&'a str>,
}

/// Makes a group.
pub fn add_group(name: &str, gid: Option<u32>, system: bool) -> Call {
    let mut arguments = Vec::new();
    option(&mut arguments, "--gid", gid);
    flag(&mut arguments, "--system", system);
    call("groupadd", "make group", name, arguments)
}

/// Makes a user.
pub fn add_user(user: &NewUser<'_>) -> Call {
    let mut arguments = Vec::new();
    option(&mut arguments, "--uid", user.uid);
    option(&mut arguments, "--gid", user.gid);
    let groups = Some(user.groups.join(",")).filter(|groups| !groups.is_empty());
    option(&mut arguments, "--groups", groups);
    option(&mut arguments, "--home-dir", user.home);
    option(&mut arguments, "--shell", user.shell);
    option(&mut arguments, "--comment", user.comment);
    flag(&mut arguments, "--system", user.system);
    // Said either way: which of the two is the default differs between distributions.
    let home = if user.makes_home { "--create-home" } else { "--no-create-home" };
    flag(&mut arguments, home, true);
    call("useradd", "make user", user.name, arguments)
}

/// Changes the user `name`; `None` where nothing is to be changed.
pub fn change_user(name: &str, change: &Change<'_>) -> Option<Call> {
    let mut arguments = Vec::new();
    option(&mut arguments, "--gid", change.gid);
    option(&mut arguments, "--groups", change.groups.map(|groups| groups.join(",")));
    option(&mut arguments, "--home", change.home);
    option(&mut arguments, "--shell", change.shell);
    option(&mut arguments, "--comment", change.comment);
    (!arguments.is_empty()).then(|| call("usermod", "change user", name, arguments))
}

/// Locks the login of the user `name` in the way by which the host knows it again. The expiry keeps
/// keys out too, which a locked password does not.
pub fn lock(name: &str) -> Call {
    let mut arguments = vec!["--lock".into()];
    option(&mut arguments, "--expiredate", Some(LET_GO));
    call("usermod", "lock user", name, arguments)
}

/// Undoes [`lock`]. There is a password behind the lock where `restores` says so: usermod 4.13
/// warns of the passwordless account that it does not make, and others fail.
pub fn unlock(name: &str, restores: bool) -> Call {
    let mut arguments = Vec::new();
    flag(&mut arguments, "--unlock", restores);
    option(&mut arguments, "--expiredate", Some(""));
    call("usermod", "change user", name, arguments)
}

/// Gives the user `name`, which has none, a line in shadow(5) that no password opens.
pub fn mend_login(name: &str) -> Call {
    unlock(name, false)
}

fn call(tool: &'static str, doing: &str, name: &str, mut arguments: Vec<String>) -> Call {
    arguments.extend(["--".into(), name.into()]);
    Call { tool, doing: format!("{doing} {name}"), arguments }
}

fn flag(arguments: &mut Vec<String>, name: &str, is_set: bool) {
    arguments.extend(is_set.then(|| name.into()));
}

fn option<T: ToString>(arguments: &mut Vec<String>, name: &str, value: Option<T>) {
    if let Some(value) = value {
        arguments.extend([name.into(), value.to_string()]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(call: &Call) -> String {
        format!("{} {}", call.tool, call.arguments.join(" "))
    }

    #[test]
    fn what_is_absent_is_not_said() {
        assert_eq!(line(&add_group("shop", None, false)), "groupadd -- shop");
        assert_eq!(line(&add_group("shop", Some(7), true)), "groupadd --gid 7 --system -- shop");
        let bare = NewUser {
            name: "bob",
            uid: None,
            gid: None,
            groups: &[],
            home: None,
            shell: None,
            comment: None,
            system: false,
            makes_home: true,
        };
        assert_eq!(line(&add_user(&bare)), "useradd --create-home -- bob");
        assert_eq!(change_user("bob", &Change::default()), None);
    }

    #[test]
    fn what_is_declared_is_said_in_full() {
        let groups = ["adm".into(), "shop".into()];
        let user = NewUser {
            name: "bob",
            uid: Some(7),
            gid: Some(8),
            groups: &groups,
            home: Some("/srv/b b"),
            shell: Some("/bin/sh"),
            comment: Some("--help"),
            system: true,
            makes_home: false,
        };
        assert_eq!(
            line(&add_user(&user)),
            "useradd --uid 7 --gid 8 --groups adm,shop --home-dir /srv/b b --shell /bin/sh \
             --comment --help --system --no-create-home -- bob"
        );
        let change = Change { groups: Some(&[]), comment: Some(""), ..Change::default() };
        let change = change_user("bob", &change).unwrap();
        assert_eq!(change.arguments, ["--groups", "", "--comment", "", "--", "bob"]);
        assert_eq!(line(&lock("bob")), "usermod --lock --expiredate 2 -- bob");
        assert_eq!(unlock("bob", true).arguments, ["--unlock", "--expiredate", "", "--", "bob"]);
        assert_eq!(mend_login("bob").arguments, ["--expiredate", "", "--", "bob"]);
    }
}
