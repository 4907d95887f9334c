//! The configuration file: read, and refused where it says what this host does not know.

use std::path::Path;

use serde::Deserialize;

use crate::declaration::fault::quoted;
use crate::error::{Error, Stage};

/// The largest configuration, in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// What may be configured. Nothing yet: a one-shot run takes all it needs from its command line.
/// The file is read all the same, so that a key which would have no effect is not passed over.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Config {}

/// Reads the configuration; where there is none and nobody `named` it, the defaults.
pub(super) fn read(path: &Path, named: bool) -> Result<Config, Error> {
    use std::io::Read;
    use std::os::unix::fs::OpenOptionsExt;
    let doing = || format!("read configuration {}", quoted(&path.to_string_lossy()));
    let failed = |cause: &dyn std::fmt::Display| Error::failed(Stage::Read, doing(), cause);
    // A pipe that nobody writes to must not hold the host up.
    let mut options = std::fs::OpenOptions::new();
    options.read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY);
    let file = match options.open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && !named => {
            return Ok(Config::default())
        }
        Err(error) => return Err(failed(&error)),
    };
    let found = file.metadata().map_err(|error| failed(&error))?;
    if !found.is_file() {
        return Err(failed(&"it is not a regular file"));
    }
    let mut text = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut text).map_err(|error| failed(&error))?;
    if text.len() as u64 > MAX_BYTES {
        return Err(failed(&format_args!("it is larger than {MAX_BYTES} bytes")));
    }
    serde_json::from_slice(&text).map_err(|error| failed(&error))
}
