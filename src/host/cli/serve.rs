//! `run`: hands over to the service, and says to its children where things are.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::commands::Place;
use super::Invocation;
use crate::config;
use crate::error::{Error, Stage};
use crate::service::side::Alone;
use crate::service::{self, Site};

/// Runs the service; the exit code when it was asked to end.
pub(super) fn run(it: &Invocation) -> Result<u8, Error> {
    let place = Place::of(it)?;
    // A child starts in another directory.
    let (root, state) = (absolute(&place.root)?, absolute(&place.state)?);
    let named = it.config.as_deref().map(absolute).transpose()?;
    let mut flags: Vec<OsString> =
        vec!["--root".into(), root.clone().into(), "--state".into(), state.clone().into()];
    flags.extend(named.iter().flat_map(|path| [OsString::from("--config"), path.into()]));
    let path = named.clone().unwrap_or_else(|| root.join("etc/mesh-host/config.json"));
    let configure = Box::new(move || config::read(&path, named.is_some()));
    service::run(Site { root, state, flags, configure }, &mut Alone).map(|()| 0)
}

fn absolute(path: &Path) -> Result<PathBuf, Error> {
    let doing = || format!("find {}", path.display());
    std::path::absolute(path).map_err(|error| Error::failed(Stage::Read, doing(), error))
}
