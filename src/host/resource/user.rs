//! `user`: an account.
//!
//! Made and changed with shadow's tools, read back from the account files themselves. An account
//! that was there is adopted as it is, its number never changed. Letting go of one that the host
//! made locks its login in a way that is known again, so that it can be declared once more.

use super::access::take_principal;
use super::account::{elsewhere, renumbered, Ask, AskUser, FoundUser, Keys, Shadow, Whereabouts};
use super::form::{absolute, printable, Text, ACCOUNT};
use super::group::{number, ID};
use super::kind::{Carrier, Field, Kind, Shape, Touch, TIMEOUT_S};
use super::parting::{Ends, Farewell, Leaving, Undo};
use super::{
    Answer, Object, Past, Principal, Question, Resource, Standing, Step, Trouble, Verdict,
};
use crate::tool::shadow::{self, Change, Login, NewUser};

/// A declared user.
#[derive(Debug)]
pub struct User {
    /// Its name.
    pub name: Box<str>,
    /// Its number.
    pub uid: Option<u32>,
    /// Its primary group.
    pub group: Option<Principal>,
    /// Its further groups, all of them.
    pub groups: Option<Box<[Box<str>]>>,
    /// Its home.
    pub home: Option<Box<str>>,
    /// What it logs in to.
    pub shell: Option<Box<str>>,
    /// Whose it is, or what for.
    pub comment: Option<Box<str>>,
    /// Its number comes from the system's range.
    pub system: bool,
    /// The keys that the host puts into its authorized_keys.
    pub keys: Option<Box<[Box<str>]>>,
}

impl Resource for User {
    fn kind(&self) -> &'static str {
        "user"
    }

    fn object(&self) -> Object {
        Object::new("user", &self.name)
    }

    fn question(&self) -> Question<'_> {
        Question::Account(Ask::User(AskUser {
            name: &self.name,
            group: self.group.as_ref(),
            groups: self.groups.as_deref().unwrap_or_default(),
            home: self.home.as_deref(),
            keys: if self.keys.is_some() { Keys::Asked } else { Keys::Unasked },
        }))
    }

    fn judge(&self, answer: &Answer, past: &Past<'_>) -> Result<Verdict<'_>, Trouble> {
        let answer = answer.user()?;
        let found = match &answer.user {
            Whereabouts::Nowhere => return Ok(self.absent(answer.gid.or(answer.namesake))),
            Whereabouts::Elsewhere => return Err(elsewhere("user", &self.name)),
            Whereabouts::Here(found) => found,
        };
        match self.uid {
            Some(uid) if uid != found.line.uid => {
                return Err(renumbered("user", &self.name, found.line.uid, uid))
            }
            _ => {}
        }
        let mut work = Work::default();
        let let_go = self.welcome(found, &mut work);
        if past.standing == Standing::Created {
            self.complete(found, answer.namesake, &mut work);
        }
        self.change(found, answer.gid, &mut work);
        self.settle_home(found, past.standing, &mut work)?;
        // What the host itself locked when it let go is its own once more.
        let existed = past.standing != Standing::Unowned || !let_go;
        let Work { steps, differs } = work;
        Ok(Verdict { existed, steps, detail: differs.join(", "), ..Verdict::default() })
    }
}

/// What there is to do, and why.
#[derive(Default)]
struct Work<'a> {
    steps: Vec<Step<'a>>,
    differs: Vec<String>,
}

impl<'a> Work<'a> {
    fn add(&mut self, step: Step<'a>, differs: impl Into<String>) {
        self.steps.push(step);
        self.differs.push(differs.into());
    }
}

impl User {
    fn absent(&self, gid: Option<u32>) -> Verdict<'_> {
        let keys = self.keys.as_deref().unwrap_or_default();
        let mut steps = vec![Step::Account(shadow::add_user(&NewUser {
            name: &self.name,
            uid: self.uid,
            gid,
            groups: self.groups.as_deref().unwrap_or_default(),
            home: self.home.as_deref(),
            shell: self.shell.as_deref(),
            comment: self.comment.as_deref(),
            system: self.system,
            makes_home: !self.system || !keys.is_empty(),
        }))];
        if !keys.is_empty() {
            steps.push(Step::Keys { user: &self.name, keys, home: None });
        }
        Verdict { steps, detail: super::ABSENT.into(), ..Verdict::default() }
    }

    /// Opens the login that the host locked when it let go of the user; says whether it had.
    fn welcome(&self, found: &FoundUser, work: &mut Work<'_>) -> bool {
        let Shadow::Line(Login { let_go: true, restorable, .. }) = found.login else {
            return false;
        };
        let unlock = shadow::unlock(&self.name, restorable);
        work.add(Step::Account(unlock), "locked when it was let go of");
        true
    }

    /// What useradd had not come to when it was cut off: it writes the user's line first.
    fn complete(&self, found: &FoundUser, namesake: Option<u32>, work: &mut Work<'_>) {
        if found.login == Shadow::Missing {
            let mend = shadow::mend_login(&self.name);
            work.add(Step::Account(mend), "not in /etc/shadow");
        }
        // A number without a name may also be the machine's default for all users. One of its own
        // is the user's number where that was free, and useradd makes the home after the group.
        let own = found.line.gid == found.line.uid
            || found.login == Shadow::Missing
            || !self.system && found.has_home == Some(false);
        if self.group.is_none() && !found.has_group && namesake.is_none() && own {
            let group = shadow::add_group(&self.name, Some(found.line.gid), self.system);
            work.add(Step::Account(group), format!("no group has its {}", found.line.gid));
        }
    }

    /// The fields of its line, and its groups.
    fn change(&self, found: &FoundUser, gid: Option<u32>, work: &mut Work<'_>) {
        let (line, mut differs) = (&found.line, Vec::new());
        let gid = gid.filter(|gid| *gid != line.gid);
        differs.extend(gid.map(|gid| format!("group {} → {gid}", line.gid)));
        let groups = self.groups.as_deref().filter(|groups| !same(groups, &found.groups));
        differs.extend(groups.map(|it| format!("groups {:?} → {it:?}", found.groups)));
        let mut other = |name: &str, declared: &Option<Box<str>>, found: &str| {
            let differing = declared.as_deref().filter(|it| *it != found)?;
            differs.push(format!("{name} {found:?} → {differing:?}"));
            Some(())
        };
        let home = other("home", &self.home, line.home.as_deref().unwrap_or_default());
        let shell = other("shell", &self.shell, &line.shell);
        let comment = other("comment", &self.comment, &line.comment);
        let change = Change {
            gid,
            groups,
            home: home.and(self.home.as_deref()),
            shell: shell.and(self.shell.as_deref()),
            comment: comment.and(self.comment.as_deref()),
        };
        if let Some(call) = shadow::change_user(&self.name, &change) {
            work.add(Step::Account(call), differs.join(", "));
        }
    }

    /// Its home, which a user that the host made has, and its keys.
    fn settle_home<'a>(
        &'a self,
        found: &FoundUser,
        standing: Standing,
        work: &mut Work<'a>,
    ) -> Result<(), Trouble> {
        if standing == Standing::Created && !self.system && found.has_home == Some(false) {
            work.add(Step::Home(&self.name), "its home is not there");
        }
        let Some(keys) = self.keys.as_deref() else { return Ok(()) };
        let there = found.keys.as_ref().map_err(Trouble::clone)?;
        let (user, old) = (&*self.name, found.line.home.as_deref());
        let put = Step::Keys { user, keys, home: None };
        if self.home.is_some() && self.home.as_deref() != old {
            // What the host put into a home that the user has left goes first: both may be one.
            if !there.lines.is_empty() {
                let home = old.map(Box::from);
                work.steps.push(Step::Keys { user, keys: &[], home });
            }
            work.steps.push(put);
        } else if !there.lines.iter().map(String::as_str).eq(keys.iter().map(|key| &**key)) {
            let differs = match (there.lines.len(), keys.len()) {
                (found, declared) if found == declared => "other keys".into(),
                (found, declared) => format!("keys {found} → {declared}"),
            };
            work.add(put, differs);
        } else if there.exposed && !keys.is_empty() {
            work.add(put, "others may write where its keys are");
        }
        Ok(())
    }
}

/// The same names, in any order.
fn same(declared: &[Box<str>], found: &[String]) -> bool {
    declared.iter().all(|name| found.iter().any(|it| **it == **name))
        && found.iter().all(|name| declared.iter().any(|it| **it == **name))
}

/// Nobody logs in as the user any more; it and its files stay.
pub struct LockOut;

impl Undo for LockOut {
    fn announces(&self, it: &Leaving<'_>) -> Option<String> {
        Some(format!("lock user {} out", it.name))
    }

    fn question<'a>(&self, it: &Leaving<'a>) -> Question<'a> {
        let keys = Keys::Asked;
        Question::Account(Ask::User(AskUser { name: it.name, keys, ..AskUser::default() }))
    }

    fn judge<'a>(&self, it: &Leaving<'a>, answer: &Answer) -> Result<Farewell<'a>, Trouble> {
        let Whereabouts::Here(found) = &answer.user()?.user else {
            return Ok(Farewell::ended(Ends::Removed, "was gone already"));
        };
        let mut steps = Vec::new();
        let is_locked =
            matches!(found.login, Shadow::Line(Login { locked: true, let_go: true, .. }));
        if !is_locked {
            steps.push(Step::Account(shadow::lock(it.name)));
        }
        match &found.keys {
            Ok(keys) if keys.lines.is_empty() => {}
            Ok(_) => steps.push(Step::Keys { user: it.name, keys: &[], home: None }),
            // Whatever its home is like, its login is locked first.
            Err(_) if !is_locked => {}
            Err(trouble) => return Err(trouble.clone()),
        }
        let detail = match steps.is_empty() {
            true => "its login is locked; its files would become someone else's",
            false => "its login is to be locked, and its keys are to go",
        };
        Ok(Farewell { steps, ends: Ends::Left, detail: detail.into() })
    }
}

/// How a declaration names a user.
pub static KIND: Kind = Kind {
    name: "user",
    doc: "An account. On leaving the declaration, if the host created it, its login is locked and \
          its keys are taken away; the account is left.",
    fields: &[
        Field::required("name", "Its name.", Shape::Text(&ACCOUNT)),
        Field::optional(
            "uid",
            "Its number. Absent: the next free one. That of a user that was there is never \
             changed.",
            ID,
        ),
        Field::optional(
            "group",
            "Its primary group, by name or number. Absent: the group of the user's own name if \
             there is one when it is made, else the machine's default; unmanaged later.",
            Shape::Principal,
        ),
        Field::optional(
            "groups",
            "Its further groups, all of them. Absent: unmanaged.",
            Shape::List(&Shape::Text(&ACCOUNT), 0, 1000),
        ),
        Field::optional(
            "home",
            "Its home directory. Nothing is moved there when it changes.",
            Shape::Text(&PLACE),
        ),
        Field::optional("shell", "What it logs in to.", Shape::Text(&PLACE)),
        Field::optional(
            "system",
            "Its number comes from the system's range, and it has no home unless keys need one.",
            Shape::Bool,
        )
        .or("false"),
        Field::optional("comment", "Whose it is, or what for.", Shape::Text(&COMMENT)),
        Field::optional(
            "authorized_keys",
            "The keys that may log in over SSH; lines of authorized_keys(5), kept between two \
             comments of the host's in the user's file. Lines outside of them are a person's own. \
             Absent: unmanaged.",
            Shape::List(&Shape::Text(&KEY), 0, 10_000),
        ),
    ],
    exactly_one: &[],
    default_timeout_s: TIMEOUT_S,
    carrier: Carrier::Any,
    rules: |fields, judge| {
        if let Some(name) = fields.text("name") {
            judge.claims("name", "user", name.clone());
        }
        if let Some(home) = fields.text("home") {
            judge.touches("home", Touch::Home(home));
        }
    },
    build: Some(|_, fields| {
        let (uid, system) = (fields.integer("uid").map(number), fields.is_true("system"));
        let groups = fields.has("groups").then(|| fields.take_texts("groups"));
        let keys = fields.has("authorized_keys").then(|| fields.take_texts("authorized_keys"));
        let group = take_principal(fields, "group");
        let name = fields.take_text("name").expect("the table requires name");
        let mut text = |field| fields.take_text(field);
        let (home, shell, comment) = (text("home"), text("shell"), text("comment"));
        let home = home.map(|home| trimmed(&home));
        Box::new(User { name, uid, group, groups, home, shell, comment, system, keys })
    }),
};

/// A home as the tools write it: usermod 4.13 takes slashes off its end.
fn trimmed(home: &str) -> Box<str> {
    match home.trim_end_matches('/') {
        "" => "/".into(),
        bare => bare.into(),
    }
}

// passwd(5) parts its fields with colons.
static PLACE: Text = Text {
    what: "an absolute path without colon",
    mend: "start it with / and leave out .., colons and control characters",
    pattern: "^/[^:\\u0000-\\u001f\\u007f]*$",
    max: 4095,
    holds: |text| absolute(text) && !text.contains(':'),
};

static COMMENT: Text = Text {
    what: "an account's comment",
    mend: "leave colons and control characters out",
    pattern: "^[^:\\u0000-\\u001f\\u007f]*$",
    max: 1024,
    holds: |text| printable(text) && !text.contains(':'),
};

static KEY: Text = Text {
    what: "a line of authorized_keys",
    mend: "write options, if any, then the key's type and the key, such as ssh-ed25519 AAAA…",
    pattern:
        "^[^#\\u0000-\\u001f\\u007f][^\\u0000-\\u001f\\u007f]* AAAA[^\\u0000-\\u001f\\u007f]*$",
    max: 16 << 10,
    holds: |text| {
        const TYPES: [&str; 4] = ["ssh-", "ecdsa-sha2-", "sk-ssh-", "sk-ecdsa-sha2-"];
        let words: Vec<&str> = text.split(' ').collect();
        let key = |pair: &[&str]| {
            TYPES.iter().any(|name| pair[0].starts_with(name)) && pair[1].starts_with("AAAA")
        };
        printable(text) && !text.starts_with('#') && words.windows(2).any(key)
    },
};

#[cfg(test)]
mod tests;
