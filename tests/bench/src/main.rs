//! Measures the host against a bare loop (`floor`) and, where it is installed, cf-agent.
//!
//! Every tool gets a tree of its own on the same file system and applies W(n) to it: from nothing,
//! to what already stands, and to what was damaged in one file of a hundred. Within each of these
//! the tools take turns, so that a noisy machine disturbs all alike; medians count. After every
//! run the tree is compared with what was declared. Trees are set aside rather than removed until
//! the end: creating files is slow for a while after many were removed.

mod run;
mod table;
mod workload;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use run::{found, run, writes, Run};
use table::{Key, Phase, Results, Tool};
use workload::Workload;

const USAGE: &str = "usage: mesh-bench [--dir DIR] [--host BIN] [--floor BIN] [--rounds R] [N …]";

/// Beyond this cf-agent takes minutes a run and teaches nothing more.
const CF_AGENT_MOST: usize = 10_000;

/// cf-agent's runs of one kind: it is slow, and its figure is compared with a factor of 45.
const CF_AGENT_ROUNDS: usize = 3;

/// Beyond this strace says nothing that it does not say of less.
const TRACED_MOST: usize = 10_000;

struct Options {
    dir: PathBuf,
    host: PathBuf,
    floor: PathBuf,
    rounds: Option<usize>,
    sizes: Vec<usize>,
}

fn main() -> ExitCode {
    let options = match options() {
        Ok(options) => options,
        Err(why) => {
            eprintln!("mesh-bench: {why}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let base = options.dir.join(format!("mesh-bench-{}", std::process::id()));
    let outcome = std::fs::create_dir_all(base.join("aside")).and_then(|()| all(&options, &base));
    if let Err(cause) = std::fs::remove_dir_all(&base) {
        eprintln!("mesh-bench: remove {}: {cause}", base.display());
    }
    match outcome {
        Ok(results) => {
            print!("{}", results.markdown());
            ExitCode::from(u8::from(results.anything_failed()))
        }
        Err(cause) => {
            eprintln!("mesh-bench: in {}: {cause}", base.display());
            ExitCode::FAILURE
        }
    }
}

fn options() -> Result<Options, String> {
    use lexopt::prelude::*;
    let beside = |name: &str| -> Result<PathBuf, String> {
        let me = std::env::current_exe().map_err(|cause| cause.to_string())?;
        Ok(me.with_file_name(name))
    };
    let mut options = Options {
        dir: "/var/tmp".into(),
        host: beside("nox-mesh-host")?,
        floor: beside("floor")?,
        rounds: None,
        sizes: Vec::new(),
    };
    let mut parser = lexopt::Parser::from_env();
    let mut fill = || -> Result<(), lexopt::Error> {
        while let Some(argument) = parser.next()? {
            match argument {
                Long("dir") => options.dir = parser.value()?.into(),
                Long("host") => options.host = parser.value()?.into(),
                Long("floor") => options.floor = parser.value()?.into(),
                Long("rounds") => options.rounds = Some(parser.value()?.parse()?),
                Value(n) => options.sizes.push(n.parse()?),
                other => return Err(other.unexpected()),
            }
        }
        Ok(())
    };
    fill().map_err(|error| error.to_string())?;
    if options.sizes.iter().any(|n| !(10..=1_000_000).contains(n)) || options.rounds == Some(0) {
        return Err("N is from 10 to 1000000, R at least 1".into());
    }
    if options.sizes.is_empty() {
        options.sizes = vec![100, 1000, 10_000, 100_000];
    }
    Ok(options)
}

fn all(options: &Options, base: &Path) -> io::Result<Results> {
    let mut results = Results::default();
    if !found("cf-agent") {
        results.note("cf-agent is not installed (Debian: cfengine3): not compared".into());
    }
    let mut sizes = options.sizes.clone();
    sizes.push(table::TEN);
    sizes.sort_unstable();
    sizes.dedup();
    for n in sizes {
        eprintln!("mesh-bench: n = {n}");
        Round::new(options, base, n)?.measure(&mut results)?;
    }
    Ok(results)
}

/// Everything at one n.
struct Round<'a> {
    options: &'a Options,
    base: &'a Path,
    n: usize,
    rounds: usize,
    /// The tools that still take part, each with its own tree.
    places: BTreeMap<Tool, Place>,
    aside: usize,
}

/// One tool's directory: its declaration, its tree, its state.
struct Place {
    dir: PathBuf,
    declaration: PathBuf,
    workload: Workload,
    bytes: u64,
}

impl<'a> Round<'a> {
    fn new(options: &'a Options, base: &'a Path, n: usize) -> io::Result<Round<'a>> {
        let rounds = options.rounds.unwrap_or(match n {
            0..=100 => 15,
            101..=1000 => 9,
            1001..=10_000 => 5,
            _ => 3,
        });
        let mut places = BTreeMap::new();
        for tool in [Tool::Floor, Tool::Host, Tool::CfAgent] {
            let absent = !found("cf-agent") || n > CF_AGENT_MOST || n == table::TEN;
            if tool == Tool::CfAgent && absent {
                continue;
            }
            places.insert(tool, Place::new(base, tool, n)?);
        }
        Ok(Round { options, base, n, rounds, places, aside: 0 })
    }

    fn measure(mut self, results: &mut Results) -> io::Result<()> {
        if let Some(place) = self.places.get(&Tool::Host) {
            results.declaration(self.n, place.bytes);
        }
        for phase in Phase::ALL {
            self.turns(phase, self.rounds, results)?;
        }
        if !found("strace") {
            if self.n == table::TEN {
                let note = "strace is not installed: the calls of a no-op were not looked at";
                results.note(note.into());
            }
        } else if self.places.contains_key(&Tool::Host) && self.n <= TRACED_MOST {
            let argv = self.argv(Tool::Host, Phase::Noop);
            match writes(&argv, &self.base.join("strace")) {
                Ok(calls) => results.writes(self.n, calls),
                Err(cause) => results.note(format!("strace did not run: {cause}")),
            }
        }
        Ok(())
    }

    /// Lets every tool run `phase` in turn, `rounds` times. A tool that fails takes no further
    /// part at this n.
    fn turns(&mut self, phase: Phase, rounds: usize, results: &mut Results) -> io::Result<()> {
        for round in 0..rounds {
            for tool in self.places.keys().copied().collect::<Vec<_>>() {
                if tool == Tool::CfAgent && round >= CF_AGENT_ROUNDS {
                    continue;
                }
                self.prepare(tool, phase)?;
                match self.once(tool, phase) {
                    Ok(run) => results.add(Key { n: self.n, phase, tool }, run),
                    Err(cause) => {
                        eprintln!("mesh-bench: {tool} n = {} {phase}: {cause}", self.n);
                        results.failed(format!("{tool}, n = {}, {phase}: {cause}", self.n));
                        self.places.remove(&tool);
                    }
                }
            }
        }
        Ok(())
    }

    fn once(&self, tool: Tool, phase: Phase) -> io::Result<Run> {
        let run = run(&self.argv(tool, phase), &self.base.join("said"))?;
        self.places[&tool].workload.verify()?;
        Ok(run)
    }

    /// Brings the tool's tree to where `phase` begins, and what is dirty to the disk.
    fn prepare(&mut self, tool: Tool, phase: Phase) -> io::Result<()> {
        let place = &self.places[&tool];
        match phase {
            Phase::First => {
                for name in ["tree", "state"] {
                    let from = place.dir.join(name);
                    if from.exists() {
                        self.aside += 1;
                        let to = format!("aside/{tool}-{}-{}", self.n, self.aside);
                        std::fs::rename(from, self.base.join(to))?;
                    }
                }
            }
            Phase::Noop => {}
            Phase::Repair => place.workload.damage()?,
        }
        // SAFETY: sync(2) takes nothing and cannot fail.
        unsafe { libc::sync() };
        Ok(())
    }

    fn argv(&self, tool: Tool, phase: Phase) -> Vec<String> {
        let place = &self.places[&tool];
        let text = |path: &Path| path.display().to_string();
        let declaration = text(&place.declaration);
        match tool {
            Tool::Floor => {
                let verb = match phase {
                    Phase::First => "make",
                    Phase::Noop => "check",
                    Phase::Repair => "repair",
                };
                vec![text(&self.options.floor), verb.into(), declaration]
            }
            Tool::Host => {
                let (host, state) = (text(&self.options.host), text(&place.dir.join("state")));
                vec![host, "--state".into(), state, "apply".into(), declaration]
            }
            Tool::CfAgent => vec!["cf-agent".into(), "-K".into(), "-f".into(), declaration],
        }
    }
}

impl Place {
    fn new(base: &Path, tool: Tool, n: usize) -> io::Result<Place> {
        let dir = base.join(format!("{tool}-{n}"));
        std::fs::create_dir(&dir)?;
        let workload = Workload { n, tree: dir.join("tree") };
        let declaration = dir.join("declaration");
        let bytes = match tool {
            Tool::CfAgent => workload.policy(&declaration).map(|()| 0)?,
            Tool::Floor | Tool::Host => workload.declaration(&declaration)?,
        };
        Ok(Place { dir, declaration, workload, bytes })
    }
}
