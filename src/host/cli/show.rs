//! What a person reads: errors, plans, reports, holdings. Formats only.

use std::fmt::Write as _;
use std::io::Write as _;

use crate::error::Error;
pub(super) use crate::plain::{counted, plain};
use crate::report::{Failure, Line, Outcome, Report, PLAN};
use crate::resource::ABSENT;

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
    note(&error.to_string());
    if let Error::Damaged { .. } = error {
        note("nothing was touched; nox-mesh-host rescue --help says how to go on");
    }
    if let Error::Refused { faults, .. } = error {
        let faults = faults.iter().map(|fault| format!("  {}\n", plain(&fault.to_string())));
        say(&faults.collect::<String>());
    }
}

/// What a person should know, on standard error.
pub(super) fn note(text: &str) {
    say(&format!("nox-mesh-host: {}\n", plain(text)));
}

fn say(text: &str) {
    // Nobody is left to tell when standard error is gone.
    let _ = std::io::stderr().write_all(text.as_bytes());
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
    let mut out = String::new();
    for (_, declared, line) in report.turns() {
        match (declared, line) {
            (Some(declared), None) if verbose => {
                let resource = &declared.resource;
                let name = resource.object();
                put(
                    &mut out,
                    paint,
                    report,
                    &Row {
                        outcome: Outcome::Unchanged,
                        kind: resource.kind(),
                        name: name.name(),
                        id: &declared.id,
                        detail: "",
                    },
                );
            }
            (declared, Some(line)) if is_shown(line, verbose) => {
                let object = declared.map(|declared| declared.resource.object());
                // What was let go of has its name in its detail.
                let (name, detail) = match &object {
                    Some(object) => (object.name(), &*line.detail),
                    None => (&*line.detail, ""),
                };
                let (outcome, kind, id) = (line.outcome, &line.kind, &line.id);
                put(&mut out, paint, report, &Row { outcome, kind, name, id, detail });
                let wanted = report.schema == PLAN || verbose;
                for text in line.diff.iter().filter(|_| wanted).flat_map(|diff| diff.lines()) {
                    let _ = writeln!(out, "    {}", paint.diff(text));
                }
            }
            _ => {}
        }
    }
    let _ = writeln!(out, "{}", summary(report));
    out
}

/// A failure is said as an error, and what merely was not reached is counted.
fn is_shown(line: &Line, verbose: bool) -> bool {
    match line.outcome {
        Outcome::Failed => false,
        Outcome::NotReached => verbose || line.position.is_none(),
        _ => true,
    }
}

/// One line of a report.
struct Row<'r> {
    outcome: Outcome,
    kind: &'r str,
    name: &'r str,
    id: &'r str,
    detail: &'r str,
}

fn put(out: &mut String, paint: Paint, report: &Report, row: &Row) {
    let Row { outcome, kind, name, id, detail } = *row;
    let word = paint.outcome(outcome, &format!("{:<14}", word(outcome, report.schema)));
    let _ = write!(out, "{word} {kind:<9} {}", plain(name));
    if name != id {
        let _ = write!(out, "  [{}]", plain(id));
    }
    // That what is made was not there goes without saying.
    if !detail.is_empty() && (outcome, detail) != (Outcome::Created, ABSENT) {
        let _ = write!(out, ": {}", plain(detail));
    }
    out.push('\n');
}

/// What happened, or in a plan what would.
fn word(outcome: Outcome, schema: &str) -> String {
    match outcome {
        Outcome::Created if schema == PLAN => "create".into(),
        Outcome::Changed if schema == PLAN => "change".into(),
        Outcome::Corrected if schema == PLAN => "correct".into(),
        Outcome::Removed if schema == PLAN => "remove".into(),
        Outcome::Forgotten if schema == PLAN => "forget".into(),
        other => other.as_str().replace('_', " "),
    }
}

fn summary(report: &Report) -> String {
    const TOLD: [Outcome; 9] = [
        Outcome::Created,
        Outcome::Changed,
        Outcome::Corrected,
        Outcome::Removed,
        Outcome::Forgotten,
        Outcome::Left,
        Outcome::Claimed,
        Outcome::Failed,
        Outcome::NotReached,
    ];
    let told = TOLD.iter().map(|outcome| (report.count(&[*outcome]), *outcome));
    let mut parts: Vec<String> = told
        .filter(|(count, _)| *count > 0)
        .map(|(count, outcome)| {
            let word = word(outcome, report.schema);
            let to = if word == outcome.as_str().replace('_', " ") { "" } else { "to " };
            format!("{count} {to}{word}")
        })
        .collect();
    let idle = parts.is_empty();
    let settled = report.lines.iter().filter(|line| line.position.is_some()).count();
    let unchanged = report.declared() - settled + report.count(&[Outcome::Unchanged]);
    if unchanged > 0 || idle {
        parts.push(format!("{unchanged} unchanged"));
    }
    match report.count(&[Outcome::NotApplicable]) {
        0 => {}
        count => parts.push(format!("{count} not applicable")),
    }
    let parts = parts.join(", ");
    match (report.outcome, report.schema) {
        (Outcome::Converged, PLAN) if idle => {
            format!("nothing to do, the machine is as declared: {parts}")
        }
        (Outcome::Converged, PLAN) => format!("plan: {parts}"),
        (Outcome::Paused, _) => "paused: accepted, and applied by a pass after resume".into(),
        (Outcome::Converged, _) if idle => format!("converged, nothing to do: {parts}"),
        (outcome, _) => format!("{outcome}: {parts}"),
    }
}
