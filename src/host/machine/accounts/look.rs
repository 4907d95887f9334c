//! What the account files say of a user or group.

use super::keys::{self, Holder};
use super::{unknown, Accounts, Source};
use crate::machine::root::{Intent, Reached};
use crate::machine::sys;
use crate::resource::account::{
    Ask, AskUser, FoundKeys, FoundUser, Keys, Shadow, UserAnswer, Whereabouts,
};
use crate::resource::{Answer, RootPath, Trouble};
use crate::tool::shadow::{self, File};

impl Accounts {
    /// Answers `ask`. Who is not in the machine's own files may be known to a directory service.
    pub fn look(&mut self, ask: Ask, source: &mut Source) -> Result<Answer, Trouble> {
        match ask {
            Ask::Group(name) => {
                let gid = shadow::id_of(File::Group, self.groups.text(File::Group, source)?, name);
                let elsewhere =
                    gid.is_none() && self.groups.is_elsewhere(File::Group, name, source)?;
                Ok(Answer::Group(match gid {
                    Some(gid) => Whereabouts::Here(gid),
                    None if elsewhere => Whereabouts::Elsewhere,
                    None => Whereabouts::Nowhere,
                }))
            }
            Ask::User(ask) => self.look_at_user(ask, source).map(Answer::User),
        }
    }

    fn look_at_user(&mut self, ask: AskUser, source: &mut Source) -> Result<UserAnswer, Trouble> {
        let gid = ask.group.map(|group| self.group(group, source)).transpose()?;
        let text = self.groups.text(File::Group, source)?;
        // A member can be entered into the machine's own groups only.
        let missing = ask.groups.iter().find(|it| shadow::id_of(File::Group, text, it).is_none());
        if let Some(missing) = missing {
            return Err(unknown(File::Group, missing));
        }
        let namesake = shadow::id_of(File::Group, text, ask.name);
        let line = shadow::user_of(self.users.text(File::Passwd, source)?, ask.name);
        let user = match line {
            Some(line) => Whereabouts::Here(Box::new(self.found(ask, line, source)?)),
            None if self.users.is_elsewhere(File::Passwd, ask.name, source)? => {
                Whereabouts::Elsewhere
            }
            None => {
                vet(ask.home, source)?;
                Whereabouts::Nowhere
            }
        };
        Ok(UserAnswer { user, gid, namesake })
    }

    fn found(
        &mut self,
        ask: AskUser,
        line: shadow::User,
        source: &mut Source,
    ) -> Result<FoundUser, Trouble> {
        let text = self.groups.text(File::Group, source)?;
        let groups = shadow::groups_of(text, ask.name).into_iter().map(Into::into).collect();
        let has_group = shadow::has_group(text, line.gid);
        let login = match self.logins(source)? {
            None => Shadow::Unused,
            Some(text) => shadow::login_of(text, ask.name).map_or(Shadow::Missing, Shadow::Line),
        };
        let has_home = has_home(ask.home.or(line.home.as_deref()), source);
        let (uid, gid, home) = (line.uid, line.gid, line.home.as_deref());
        let keys = match ask.keys {
            Keys::Asked => keys::look(Holder { name: ask.name, uid, gid, home }, source.root),
            Keys::Unasked => Ok(FoundKeys::default()),
        };
        match keys {
            // The whole is refused, whatever else is found.
            Err(trouble) if trouble.touches_host => Err(trouble),
            keys => Ok(FoundUser { line, groups, has_group, login, has_home, keys }),
        }
    }
}

/// Something stands where the home should be; `None` where that cannot be seen.
fn has_home(home: Option<&str>, source: &mut Source) -> Option<bool> {
    let home = RootPath::parse(home?).ok()?;
    match source.root.reach(&home, Intent::See, "look at").ok()? {
        Reached::Missing(_) => Some(false),
        Reached::Parent(spot) => Some(sys::stat_at(&spot.dir.fd, &spot.name).is_ok()),
    }
}

/// The tools follow every link on the way to a home: it must be one that may be followed.
fn vet(home: Option<&str>, source: &mut Source) -> Result<(), Trouble> {
    let Some(home) = home.and_then(|home| RootPath::parse(home).ok()) else { return Ok(()) };
    source.root.reach(&home, Intent::See, "make the home").map(drop)
}
