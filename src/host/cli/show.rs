//! What a person reads: errors, plans, reports, holdings. Formats only.

use std::fmt::Write as _;
use std::io::Write as _;

use crate::error::Error;
use crate::report::{Failure, Outcome, Report};

/// Terminal colours, or none.
#[derive(Clone, Copy)]
pub(super) struct Paint {
    pub colored: bool,
}

impl Paint {
    /// `text` in the colour of `outcome`.
    fn outcome(self, outcome: Outcome, text: &str) -> String {
        let code = match outcome {
            Outcome::Created | Outcome::Changed | Outcome::Claimed => "32",
            Outcome::Corrected | Outcome::Left => "33",
            Outcome::Removed | Outcome::Forgotten => "36",
            Outcome::Failed => "31",
            _ => "2",
        };
        self.code(code, text)
    }

    /// A line of a diff.
    fn diff(self, line: &str) -> String {
        match line.as_bytes().first() {
            Some(b'+') => self.code("32", line),
            Some(b'-') => self.code("31", line),
            Some(b'@') => self.code("36", line),
            _ => line.into(),
        }
    }

    fn code(self, code: &str, text: &str) -> String {
        match self.colored {
            true => format!("\x1b[{code}m{text}\x1b[0m"),
            false => text.into(),
        }
    }
}

/// What an error has to say, each fault on its line, on standard error.
pub(super) fn error(error: &Error) {
    let mut text = format!("nox-mesh-host: {error}\n");
    if let Error::Refused { faults, .. } = error {
        for fault in faults {
            let _ = writeln!(text, "  {fault}");
        }
    }
    // Nobody is left to tell when standard error is gone.
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// What a person should know, on standard error.
pub(super) fn note(text: &str) {
    let _ = std::io::stderr().write_all(format!("nox-mesh-host: {text}\n").as_bytes());
}

/// One failure of a pass, on standard error.
pub(super) fn failure(failure: &Failure) {
    let Failure { resource, doing, cause, .. } = failure;
    match resource {
        Some(id) => note(&format!("{id}: {doing}: {cause}")),
        None => note(&format!("{doing}: {cause}")),
    }
}

/// A report or a plan.
pub(super) fn report(report: &Report, paint: Paint, verbose: bool) -> String {
    let plan = report.schema == crate::report::PLAN;
    let mut out = String::new();
    for line in &report.lines {
        if line.outcome == Outcome::Failed {
            continue; // said as an error
        }
        let word = line.outcome.as_str().replace('_', " ");
        let word = paint.outcome(line.outcome, &format!("{word:<14}"));
        let _ = write!(out, "{word} {} {}", line.kind, line.id);
        if !line.detail.is_empty() {
            let _ = write!(out, ": {}", line.detail);
        }
        out.push('\n');
        if let Some(diff) = line.diff.as_ref().filter(|_| plan || verbose) {
            for text in diff.lines() {
                let _ = writeln!(out, "    {}", paint.diff(text));
            }
        }
    }
    let _ = writeln!(out, "{}", summary(report, plan));
    out
}

fn summary(report: &Report, plan: bool) -> String {
    const COUNTED: [(Outcome, &str); 9] = [
        (Outcome::Created, "created"),
        (Outcome::Changed, "changed"),
        (Outcome::Corrected, "corrected"),
        (Outcome::Removed, "removed"),
        (Outcome::Forgotten, "forgotten"),
        (Outcome::Left, "left"),
        (Outcome::Claimed, "claimed"),
        (Outcome::Failed, "failed"),
        (Outcome::NotReached, "not reached"),
    ];
    let mut parts: Vec<String> = COUNTED
        .iter()
        .map(|(outcome, word)| (report.count(&[*outcome]), word))
        .filter(|(count, _)| *count > 0)
        .map(|(count, word)| format!("{count} {word}"))
        .collect();
    let settled = report.lines.iter().filter(|line| line.position.is_some()).count();
    let unchanged = report.declared() - settled + report.count(&[Outcome::Unchanged]);
    parts.push(format!("{unchanged} unchanged"));
    let ending = match (report.outcome, plan) {
        (Outcome::Converged, false) => "converged",
        (Outcome::Converged, true) => "plan",
        (Outcome::Failed, _) => "failed",
        (other, _) => other.as_str(),
    };
    format!("{ending}: {}", parts.join(", "))
}
