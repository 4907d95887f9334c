//! Changing accounts: by shadow's tools, which lock the files and know what belongs together.
//!
//! The tools are this machine's, the files the root's: in a mounted tree they are given `--root`
//! and change into it. Their `--prefix` would do without, and asks this machine's own files which
//! numbers are taken and which groups there are (seen with 4.13).

use std::os::fd::AsRawFd;
use std::time::Duration;

use super::keys::{make_home, put, Holder};
use super::{unknown, Accounts, Source};
use crate::machine::child::{self, How, Unrun};
use crate::machine::place::Site;
use crate::machine::root::Root;
use crate::resource::Trouble;
use crate::tool::shadow::{self, Call, File};

/// Runs `call` in the root, which is this machine's own where `is_host` says so.
pub(in crate::machine) fn run(
    call: &Call,
    root: &Root,
    is_host: bool,
    limit: Duration,
) -> Result<(), Trouble> {
    // The very directory that was opened, whatever has its name now.
    let tree = format!("/proc/{}/fd/{}", std::process::id(), root.top().fd.as_raw_fd());
    let mut argv = vec![call.tool];
    if !is_host {
        argv.extend(["--root", &tree]);
    }
    argv.extend(call.arguments.iter().map(String::as_str));
    let cause = match child::run(child::Call::new(&argv), limit) {
        Ok(ended) if ended.how == How::Exited(0) => return Ok(()),
        Ok(ended) => format!("{} {}", call.tool, ended.said()),
        Err(Unrun::NotFound(cause)) => {
            format!("{cause}; it comes with the package passwd, shadow or shadow-utils")
        }
        Err(Unrun::Failed(cause)) => cause,
    };
    Err(Trouble::new(&call.doing, cause))
}

/// What of a user's home is to be.
pub(in crate::machine) enum Home<'a> {
    /// That it is there.
    There,
    /// That these are the host's own lines in its authorized_keys; those in this home, if one is
    /// named.
    Keys(&'a [Box<str>], Option<&'a str>),
}

impl Accounts {
    /// Makes the home of the user `name` be so.
    pub fn settle_home(
        &mut self,
        name: &str,
        wanted: Home,
        is_host: bool,
        mut site: Site,
    ) -> Result<(), Trouble> {
        let Site { root, reader, .. } = &mut site;
        let text = self.users.text(File::Passwd, &mut Source { root, reader, is_host })?;
        let line = shadow::user_of(text, name).ok_or_else(|| unknown(File::Passwd, name))?;
        let (uid, gid, home) = (line.uid, line.gid, line.home.as_deref());
        let holder = Holder { name, uid, gid, home };
        match wanted {
            Home::There => make_home(holder, &mut site),
            Home::Keys(keys, None) => put(holder, keys, &mut site),
            Home::Keys(keys, home) => put(Holder { home, ..holder }, keys, &mut site),
        }
    }
}
