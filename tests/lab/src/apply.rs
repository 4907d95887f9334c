//! The node host in a machine, driven as a person would: by its command line.

use crate::{Machine, Ran};
use serde_json::Value;
use std::env;
use std::path::{Path, PathBuf};
use std::time::Duration;

const HOST: &str = "/usr/bin/nox-mesh-host";
/// Above the contract's own limit on a package or a container, 900 s.
const LIMIT: Duration = Duration::from_secs(1000);

/// The host binary to try: `$MESH_LAB_HOST`, else the one cargo built beside this test.
pub fn host_binary() -> Result<PathBuf, String> {
    if let Some(path) = env::var_os("MESH_LAB_HOST").map(PathBuf::from) {
        let found = path.is_file();
        return if found { Ok(path) } else { Err(format!("MESH_LAB_HOST: no {}", path.display())) };
    }
    let test = env::current_exe().map_err(|e| format!("this test's own path: {e}"))?;
    let mut beside = test.ancestors().skip(1).take(2).map(|d| d.join("nox-mesh-host"));
    beside.find(|path| path.is_file()).ok_or_else(|| {
        format!("no nox-mesh-host beside {}: build it or set MESH_LAB_HOST", test.display())
    })
}

/// What an apply came to.
#[derive(Debug)]
pub struct Applied {
    ran: Ran,
    /// The report; `Null` if there was none to be read on standard output.
    pub report: Value,
}

impl Machine {
    /// Installs a host binary where the package would.
    #[track_caller]
    pub fn place_host(&self, binary: &Path) {
        self.place(binary, HOST);
    }

    /// Applies a declaration, JSON as text or value, through `apply --json -`.
    #[track_caller]
    pub fn apply(&self, declaration: impl ToString) -> Applied {
        self.apply_with(&[], declaration)
    }

    /// [`Machine::apply`] with more flags, for instance `--take`.
    #[track_caller]
    pub fn apply_with(&self, flags: &[&str], declaration: impl ToString) -> Applied {
        let argv = [HOST, "apply", "--json"].iter().chain(flags).chain(&["-"]);
        let ran = self.command(argv).input(declaration.to_string()).within(LIMIT).run();
        let report = serde_json::from_slice(ran.bytes()).unwrap_or(Value::Null);
        Applied { ran, report }
    }
}

impl Applied {
    pub fn code(&self) -> i32 {
        self.ran.code()
    }

    pub fn stderr(&self) -> String {
        self.ran.stderr()
    }

    /// The outcome of the whole, or of nothing: an empty string.
    pub fn outcome(&self) -> &str {
        self.report["outcome"].as_str().unwrap_or_default()
    }

    /// The outcome of one resource; empty if the report does not name it.
    pub fn outcome_of(&self, id: &str) -> &str {
        self.resource(id)["outcome"].as_str().unwrap_or_default()
    }

    /// The report's entry on one resource; `Null` if there is none.
    pub fn resource(&self, id: &str) -> &Value {
        let resources = self.report["resources"].as_array().map_or(&[][..], Vec::as_slice);
        resources.iter().find(|resource| resource["id"] == id).unwrap_or(&Value::Null)
    }

    /// Panics, with all that was said, unless the machine converged.
    #[track_caller]
    pub fn converged(self) -> Applied {
        assert!(self.outcome() == "converged" && self.code() == 0, "{}", self.ran.story());
        self
    }

    /// Panics unless it converged and nothing was changed, corrected or removed.
    #[track_caller]
    pub fn idle(self) -> Applied {
        let applied = self.converged();
        for count in ["changed", "corrected", "removed"] {
            assert!(applied.report[count] == 0, "{count} is not 0: {}", applied.ran.story());
        }
        applied
    }

    /// Panics, with all that was said, unless the apply failed, exit 1.
    #[track_caller]
    pub fn failed(self) -> Applied {
        assert!(self.outcome() == "failed" && self.code() == 1, "{}", self.ran.story());
        self
    }

    /// Panics, with all that was said, unless the declaration was refused, exit 3.
    #[track_caller]
    pub fn refused(self) -> Applied {
        assert!(self.code() == 3, "{}", self.ran.story());
        self
    }
}
