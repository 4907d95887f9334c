//! Running docker(1): which engine it speaks to, and what is made of how it ended.

use std::cell::OnceCell;
use std::path::Path;
use std::time::Duration;

use super::super::words::last_line;
use super::{child, is_podman, quoted};
use crate::machine::child::{Call, How, Unrun};
use crate::tool::docker;

/// The engine's own socket.
const SOCKET: &str = "unix:///var/run/docker.sock";
/// The longest answer, in bytes: ten kilobytes for each of as many as fit a machine.
const LONGEST: usize = 64 << 20;

/// The client.
#[derive(Default)]
pub(super) struct Docker {
    /// What is known of the program, and of the engine behind it.
    program: OnceCell<Result<(), String>>,
    engine: OnceCell<Result<(), String>>,
}

/// Why a command came to nothing.
pub(super) struct Failure {
    /// In words fit for a message.
    pub cause: String,
    /// What it was about is not there.
    pub is_missing: bool,
    /// It did not end in time.
    pub is_late: bool,
}

impl From<String> for Failure {
    fn from(cause: String) -> Failure {
        Failure { cause, is_missing: false, is_late: false }
    }
}

impl Docker {
    /// What a command says on its standard output.
    pub fn run(&self, argv: &[&str], limit: Duration) -> Result<String, Failure> {
        self.run_with(argv, &[], limit)
    }

    /// The same, with variables added to the client's environment.
    pub fn run_with(
        &self,
        argv: &[&str],
        secrets: &[(&str, &str)],
        limit: Duration,
    ) -> Result<String, Failure> {
        let (out, _) = self.both(argv, secrets, limit)?;
        Ok(out)
    }

    /// What a command says on both its outputs.
    pub fn both(
        &self,
        argv: &[&str],
        secrets: &[(&str, &str)],
        limit: Duration,
    ) -> Result<(String, String), Failure> {
        // Named, whatever context a person's configuration prefers: that may be another machine's.
        let socket = std::env::var("DOCKER_HOST").ok().filter(|it| it.starts_with("unix://"));
        let socket = ("DOCKER_HOST", socket.as_deref().unwrap_or(SOCKET));
        let env: Vec<(&str, &str)> = secrets.iter().copied().chain([socket]).collect();
        let call = Call { env: &env, cap: LONGEST, ..Call::new(argv) };
        let ended = child::run(call, limit).map_err(Unrun::into_cause)?;
        let err = String::from_utf8_lossy(ended.err.bytes()).into_owned();
        // Of `docker network inspect`, no more than the verb: what follows are names.
        let verb = argv.get(1).copied().unwrap_or_default();
        let cause = match ended.how {
            How::Exited(0) => match ended.answer() {
                Ok(out) => return Ok((out.into_owned(), err)),
                Err(cause) => format!("docker {verb} {cause}"),
            },
            How::Exited(code) => match docker::reason(&err).map(|it| last_line(it.as_bytes())) {
                Some(Some(why)) => format!("docker {verb} exited {code}: {why}"),
                _ => format!("docker {verb} exited {code} and said nothing"),
            },
            How::Killed(signal) => format!("docker {verb} was killed by signal {signal}"),
            How::Overran(limit) => {
                let seconds = limit.as_secs_f32();
                format!("docker {verb} was still running after {seconds} s: the engine hangs")
            }
        };
        let is_late = matches!(ended.how, How::Overran(_));
        Err(Failure { cause, is_missing: docker::says_missing(&err), is_late })
    }

    /// The program is docker's.
    pub fn refuse_podman(&self) -> Result<(), String> {
        let looked = self.program.get_or_init(|| {
            let path = child::find("docker", Path::new("/")).map_err(Unrun::into_cause)?;
            match is_podman(&path) {
                true => Err(format!(
                    "{} is podman's, which is not supported: install docker itself",
                    quoted(path.as_os_str().as_encoded_bytes()),
                )),
                false => Ok(()),
            }
        });
        looked.clone()
    }

    /// The engine is docker's, as far as it tells; asked before anything is done to it.
    pub fn refuse_foreign(&self, limit: Duration) -> Result<(), String> {
        let asked = self.engine.get_or_init(|| {
            let said = self.run(docker::ENGINE, limit).map_err(|failure| failure.cause)?;
            match docker::foreign_engine(&said)? {
                Some(name) => Err(format!("the engine is {name}, which is not supported")),
                None => Ok(()),
            }
        });
        asked.clone()
    }
}
