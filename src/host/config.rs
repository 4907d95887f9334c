//! The configuration file: read, and refused where it says what this host does not know.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

use crate::declaration::fault::quoted;
use crate::error::{Error, Stage};

/// The largest configuration, in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// From one pass by the timer to the next, where nobody says, in seconds.
const INTERVAL_S: u64 = 600;
/// The longest that may be said.
const LONGEST_INTERVAL_S: u64 = 86_400;

/// What may be configured. All of it is the service's: a one-shot run takes what it needs from its
/// command line, and reads the file so that what would have no effect is not passed over.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// From one pass by the timer to the next, in seconds.
    #[serde(alias = "interval")]
    pub interval_s: u64,
    /// Where metrics are written, for a collector of text files to read.
    pub metrics_file: Option<PathBuf>,
    /// Reports that leave this machine show what changed line by line.
    pub report_diffs: bool,
}

impl Default for Config {
    fn default() -> Config {
        Config { interval_s: INTERVAL_S, metrics_file: None, report_diffs: false }
    }
}

impl Config {
    /// The time from one pass by the timer to the next.
    pub fn interval(&self) -> Duration {
        Duration::from_secs(self.interval_s)
    }

    fn check(self) -> Result<Config, String> {
        if !(1..=LONGEST_INTERVAL_S).contains(&self.interval_s) {
            let (is, most) = (self.interval_s, LONGEST_INTERVAL_S);
            return Err(format!("interval_s is {is}, and may be 1 to {most}"));
        }
        match &self.metrics_file {
            Some(path) if !path.is_absolute() || path.file_name().is_none() => {
                Err("metrics_file is not the absolute path of a file".into())
            }
            _ => Ok(self),
        }
    }
}

/// Reads the configuration; where there is none and nobody `named` it, the defaults.
pub fn read(path: &Path, named: bool) -> Result<Config, Error> {
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
    // A list of nothing would pass for an object that says nothing.
    if text.iter().find(|byte| !byte.is_ascii_whitespace()) != Some(&b'{') {
        return Err(failed(&"it is not a JSON object"));
    }
    let read: Config = serde_json::from_slice(&text).map_err(|error| failed(&error))?;
    read.check().map_err(|why| failed(&why))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<Config, String> {
        let name = format!("mesh-host-config-{}-{}", std::process::id(), text.len());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, text).unwrap();
        let read = read(&path, true).map_err(|error| error.to_string());
        std::fs::remove_file(&path).unwrap();
        read
    }

    #[test]
    fn what_is_not_said_is_the_default_and_what_is_not_known_is_refused() {
        assert_eq!(of("{}").unwrap(), Config::default());
        let all = r#"{"interval_s": 60, "metrics_file": "/run/m.prom", "report_diffs": true}"#;
        let read = of(all).unwrap();
        assert_eq!(read.interval(), Duration::from_secs(60));
        assert_eq!(read.metrics_file, Some("/run/m.prom".into()));
        assert!(read.report_diffs);
        for bad in [
            r#"{"interval_s": 0}"#,
            r#"{"interval_s": 86401}"#,
            r#"{"interval_s": -1}"#,
            r#"{"interval_s": "600"}"#,
            r#"{"metrics_file": "m.prom"}"#,
            r#"{"metrics_file": "/"}"#,
            r#"{"report_diffs": 1}"#,
            r#"{"intervall_s": 60}"#,
            "",
            "[]",
        ] {
            assert!(of(bad).unwrap_err().starts_with("read configuration"), "{bad}");
        }
    }
}
