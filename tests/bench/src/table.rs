//! What was measured, and the table and the bars made of it.

use std::collections::BTreeMap;
use std::fmt::{self, Write};

use crate::run::Run;

/// The size at which the wall time of a small apply is judged.
pub const TEN: usize = 10;

/// The size at which the ratios are judged.
const JUDGED: usize = 10_000;

/// The size that must take ten times as long as [`JUDGED`].
const LARGE: usize = 100_000;

/// Who runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tool {
    /// The bare loop.
    Floor,
    /// nox-mesh-host.
    Host,
    /// CFEngine's agent.
    CfAgent,
}

impl fmt::Display for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Tool::Floor => "floor",
            Tool::Host => "host",
            Tool::CfAgent => "cf-agent",
        })
    }
}

/// What it runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Nothing is there yet.
    First,
    /// Everything is as declared.
    Noop,
    /// One file of a hundred was overwritten.
    Repair,
}

impl Phase {
    /// In the order in which they are run.
    pub const ALL: [Phase; 3] = [Phase::First, Phase::Noop, Phase::Repair];
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Phase::First => "first",
            Phase::Noop => "no-op",
            Phase::Repair => "repair 1 %",
        })
    }
}

/// What a figure belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// Files in the workload.
    pub n: usize,
    /// What the tool ran on.
    pub phase: Phase,
    /// The tool.
    pub tool: Tool,
}

/// Everything measured.
#[derive(Default)]
pub struct Results {
    runs: BTreeMap<Key, Vec<Run>>,
    declarations: BTreeMap<usize, u64>,
    writes: BTreeMap<usize, Vec<String>>,
    failures: Vec<String>,
    notes: Vec<String>,
}

impl Results {
    /// Adds a run.
    pub fn add(&mut self, key: Key, run: Run) {
        self.runs.entry(key).or_default().push(run);
    }

    /// The host's declaration of `n` files has this many bytes.
    pub fn declaration(&mut self, n: usize, bytes: u64) {
        self.declarations.insert(n, bytes);
    }

    /// A no-op of the host at `n` made these calls that write or sync.
    pub fn writes(&mut self, n: usize, calls: Vec<String>) {
        self.writes.insert(n, calls);
    }

    /// A run failed, or left something else than was declared.
    pub fn failed(&mut self, what: String) {
        self.failures.push(what);
    }

    /// Something that a reader of the table should know.
    pub fn note(&mut self, what: String) {
        self.notes.push(what);
    }

    /// Whether any run failed.
    pub fn anything_failed(&self) -> bool {
        !self.failures.is_empty()
    }

    /// The report: figures, bars, failures and notes.
    pub fn markdown(&self) -> String {
        let mut out = String::new();
        self.figures(&mut out);
        self.bars(&mut out);
        let said = self.failures.iter().map(|f| format!("failed: {f}"));
        for line in said.chain(self.notes.iter().cloned()) {
            let _ = writeln!(out, "- {}", line.replace('\n', " "));
        }
        out
    }

    fn figures(&self, out: &mut String) {
        out.push_str(
            "| n | | floor ms | host ms | cf-agent ms | host/floor | host/cf-agent \
             | floor MiB | host MiB | cf-agent MiB | declaration MiB |\n\
             |--:|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n",
        );
        let mut lines: Vec<(usize, Phase)> = self.runs.keys().map(|k| (k.n, k.phase)).collect();
        lines.dedup();
        for (n, phase) in lines {
            let wall = |tool| self.wall(n, phase, tool);
            let peak = |tool| cell(self.peak(n, &[phase], tool).map(mib), 1);
            let ms = |tool| cell(wall(tool).map(|s| s * 1e3), 1);
            let ratio = |tool, digits| cell(ratio(wall(Tool::Host), wall(tool)), digits);
            let cells = [
                ms(Tool::Floor),
                ms(Tool::Host),
                ms(Tool::CfAgent),
                ratio(Tool::Floor, 2),
                ratio(Tool::CfAgent, 4),
                peak(Tool::Floor),
                peak(Tool::Host),
                peak(Tool::CfAgent),
                cell(self.declarations.get(&n).map(|&bytes| mib(bytes)), 1),
            ];
            let _ = writeln!(out, "| {n} | {phase} | {} |", cells.join(" | "));
        }
        out.push('\n');
    }

    fn bars(&self, out: &mut String) {
        let wall = |n, phase, tool| self.wall(n, phase, tool);
        let host = |n, phase| wall(n, phase, Tool::Host);
        let over = |phase| ratio(host(JUDGED, phase), wall(JUDGED, phase, Tool::Floor));
        let faster = ratio(wall(JUDGED, Phase::Noop, Tool::CfAgent), host(JUDGED, Phase::Noop));
        let ten = host(TEN, Phase::First).map(|s| s * 1e3);
        let linear = ratio(host(LARGE, Phase::Noop), host(JUDGED, Phase::Noop));
        out.push_str("| bar | wanted | measured | |\n|---|--:|--:|---|\n");
        bar(out, "no-op, host/floor, n = 10000", Limit::Most(1.5), over(Phase::Noop), 2);
        bar(out, "first, host/floor, n = 10000", Limit::Most(1.5), over(Phase::First), 2);
        bar(out, "no-op, cf-agent/host, n = 10000", Limit::Least(45.0), faster, 0);
        bar(out, "first apply of ten files, ms", Limit::Most(15.0), ten, 1);
        bar(out, "no-op, n = 100000 / n = 10000", Limit::Most(12.0), linear, 1);
        let peak = self.peak(LARGE, &[Phase::Noop], Tool::Host).map(mib);
        let room = self.declarations.get(&LARGE).map_or(f64::NAN, |&n| 3.0 * mib(n) + 4.0);
        let name = "peak MiB of a no-op, n = 100000 (3x declaration + 4)";
        bar(out, name, Limit::Most(room), peak, 1);
        for (n, calls) in &self.writes {
            let name = format!("calls of a no-op that write or sync, n = {n}");
            bar(out, &name, Limit::Most(0.0), Some(calls.len() as f64), 0);
        }
        out.push('\n');
        for (n, calls) in self.writes.iter().filter(|(_, calls)| !calls.is_empty()) {
            let _ = writeln!(out, "- a no-op at n = {n} called: {}", calls[0]);
        }
    }

    /// Median wall time in seconds.
    fn wall(&self, n: usize, phase: Phase, tool: Tool) -> Option<f64> {
        let runs = self.runs.get(&Key { n, phase, tool })?;
        median(runs.iter().map(|run| run.wall.as_secs_f64()).collect())
    }

    /// The highest peak, in bytes.
    fn peak(&self, n: usize, phases: &[Phase], tool: Tool) -> Option<u64> {
        let runs = phases.iter().filter_map(|&phase| self.runs.get(&Key { n, phase, tool }));
        runs.flatten().map(|run| run.peak).max()
    }
}

enum Limit {
    Most(f64),
    Least(f64),
}

fn bar(out: &mut String, name: &str, limit: Limit, measured: Option<f64>, digits: usize) {
    let (wanted, met) = match limit {
        Limit::Most(most) => (format!("<= {most:.digits$}"), measured.map(|m| m <= most)),
        Limit::Least(least) => (format!(">= {least:.digits$}"), measured.map(|m| m >= least)),
    };
    let verdict = match met {
        Some(true) => "met",
        Some(false) => "**missed**",
        None => "not measured",
    };
    let _ = writeln!(out, "| {name} | {wanted} | {} | {verdict} |", cell(measured, digits));
}

fn cell(value: Option<f64>, digits: usize) -> String {
    value.map_or("-".into(), |value| format!("{value:.digits$}"))
}

fn ratio(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    Some(a? / b?)
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        odd if odd % 2 == 1 => Some(values[middle]),
        _ => Some((values[middle - 1] + values[middle]) / 2.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn the_median_is_the_middle_of_the_sorted() {
        assert_eq!(median(vec![]), None);
        assert_eq!(median(vec![3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), Some(2.5));
    }

    #[test]
    fn a_bar_is_met_missed_or_not_measured() {
        let mut results = Results::default();
        let run = |ms| Run { wall: Duration::from_millis(ms), peak: 30 << 20 };
        for (tool, ms) in [(Tool::Floor, 100), (Tool::Host, 160), (Tool::CfAgent, 9600)] {
            results.add(Key { n: JUDGED, phase: Phase::Noop, tool }, run(ms));
        }
        results.declaration(JUDGED, 9 << 20);
        results.declaration(LARGE, 9 << 20);
        results.add(Key { n: LARGE, phase: Phase::Noop, tool: Tool::Host }, run(1000));
        results.writes(JUDGED, vec!["1 fsync(3) = 0".into()]);
        let text = results.markdown();
        for line in [
            "| 10000 | no-op | 100.0 | 160.0 | 9600.0 | 1.60 | 0.0167 | 30.0 | 30.0 | 30.0 | 9.0 |",
            "| no-op, host/floor, n = 10000 | <= 1.50 | 1.60 | **missed** |",
            "| no-op, cf-agent/host, n = 10000 | >= 45 | 60 | met |",
            "| first, host/floor, n = 10000 | <= 1.50 | - | not measured |",
            "| peak MiB of a no-op, n = 100000 (3x declaration + 4) | <= 31.0 | 30.0 | met |",
            "| calls of a no-op that write or sync, n = 10000 | <= 0 | 1 | **missed** |",
        ] {
            assert!(text.lines().any(|have| have == line), "no {line} in\n{text}");
        }
    }
}
