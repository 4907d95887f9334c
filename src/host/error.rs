//! The one error of the host, and the exit codes that hang off it.

use std::fmt;

use crate::declaration::Fault;

/// Where in a pass something went wrong; stands in a report as `stage`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Reading a declaration or a configuration.
    Read,
    /// Looking at the machine.
    Observe,
    /// Writing the intent or the record.
    Record,
    /// Changing the machine.
    Step,
    /// Looking again after the change.
    ReadBack,
    /// Letting go of what is no longer declared.
    Release,
    /// The observation of everything after a pass that changed something.
    Closing,
    /// Seeing whether what must stay reachable still is.
    Guard,
    /// A person or the service manager asked the pass to end.
    Interrupted,
}

/// What went wrong. `Display` gives one line for a person.
#[derive(Debug)]
pub enum Error {
    /// The command line is not one that the host knows. Exit 2.
    Usage(String),
    /// A declaration was refused before anything was touched. Exit 3.
    Refused {
        /// What was refused, as a person named it: a file name or `-`.
        what: String,
        /// Everything that is wrong with it.
        faults: Vec<Fault>,
    },
    /// Another process holds a lock and did not let go in time. Exit 4.
    Locked {
        /// The lock's file.
        path: String,
        /// The holder, as the kernel names it; 0 where it would not say.
        pid: i32,
    },
    /// The store holds something that was never written by a host. Exit 6.
    Damaged {
        /// The damaged file.
        path: String,
        /// The line, from 1; 0 where the damage is not one line's.
        line: u64,
        /// What is wrong with it.
        why: String,
    },
    /// Something failed. Exit 1.
    Failed {
        /// Where in the pass.
        stage: Stage,
        /// The resource's id, where it is one resource's failure.
        resource: Option<Box<str>>,
        /// What was being done, to what.
        doing: String,
        /// The cause, in the tool's or the kernel's own words.
        cause: String,
    },
}

impl Error {
    /// A failure that belongs to no single resource.
    pub fn failed(stage: Stage, doing: impl Into<String>, cause: impl fmt::Display) -> Error {
        let (doing, cause) = (doing.into(), cause.to_string());
        Error::Failed { stage, resource: None, doing, cause }
    }

    /// The process's exit code.
    pub fn exit_code(&self) -> u8 {
        match self {
            Error::Failed { .. } => 1,
            Error::Usage(_) => 2,
            Error::Refused { .. } => 3,
            Error::Locked { .. } => 4,
            Error::Damaged { .. } => 6,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Usage(why) => f.write_str(why),
            Error::Refused { what, faults } => {
                let plural = if faults.len() == 1 { "fault" } else { "faults" };
                write!(f, "refused {what}: {} {plural}", faults.len())
            }
            Error::Locked { path, pid: 0 } => write!(f, "another pass holds {path}"),
            Error::Locked { path, pid } => write!(f, "process {pid} holds {path}"),
            Error::Damaged { path, line: 0, why } => write!(f, "{path} is damaged: {why}"),
            Error::Damaged { path, line, why } => write!(f, "{path} line {line}: {why}"),
            Error::Failed { resource: Some(id), doing, cause, .. } => {
                write!(f, "{id}: {doing}: {cause}")
            }
            Error::Failed { doing, cause, .. } => write!(f, "{doing}: {cause}"),
        }
    }
}

impl std::error::Error for Error {}
