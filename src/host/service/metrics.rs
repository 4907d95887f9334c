//! Counters, and their text in the exposition format that Prometheus's textfile collector reads.
//! Pure.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::errand::Told;
use crate::store::Source;

/// What has been counted since the service started.
#[derive(Debug, Default)]
pub struct Metrics {
    passes: BTreeMap<(&'static str, &'static str), u64>,
    changed: u64,
    corrected: u64,
    removed: u64,
    failed: u64,
    overflows: u64,
    /// Passes of which no word came.
    lost: u64,
    last_pass: Option<u64>,
    last_success: BTreeMap<Source, u64>,
}

/// What is so at the moment.
#[derive(Clone, Copy, Debug, Default)]
pub struct Moment {
    /// How many resources are contested.
    pub contested: usize,
    /// The link is up.
    pub linked: bool,
    /// Passes can be made.
    pub able: bool,
    /// The longest time in which the loop attended to nothing, in milliseconds.
    pub longest_turn_ms: u64,
}

impl Metrics {
    /// A pass has ended at `now`.
    pub fn pass(&mut self, told: &Told, now: u64) {
        let Some(pass) = &told.pass else { return };
        let key = (pass.trigger.as_str(), pass.outcome.as_str());
        *self.passes.entry(key).or_default() += 1;
        self.changed += pass.changed as u64;
        self.corrected += pass.corrected as u64;
        self.removed += pass.removed as u64;
        self.failed += pass.failed as u64;
        self.last_pass = Some(now);
        for declared in told.declared.iter().filter(|it| it.holds && told.paused.is_none()) {
            self.last_success.insert(declared.source, now);
        }
    }

    /// A pass has ended without a word, or could not begin.
    pub fn lost(&mut self) {
        self.lost += 1;
    }

    /// Signs of drift were lost.
    pub fn overflow(&mut self) {
        self.overflows += 1;
    }

    /// The file's text.
    pub fn text(&self, told: &Told, moment: Moment) -> String {
        let mut out = String::new();
        let mut one = |name: &str, kind: &str, help: &str, values: &[(String, u64)]| {
            let name = format!("nox_mesh_host_{name}");
            let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
            for (labels, value) in values {
                let _ = writeln!(out, "{name}{labels} {value}");
            }
        };
        let plain = |value: u64| [(String::new(), value)];
        let version = format!("{{version=\"{}\"}}", env!("CARGO_PKG_VERSION"));
        one("info", "gauge", "The host that writes this.", &[(version, 1)]);
        let labels = |(trigger, outcome): &(&str, &str)| {
            format!("{{trigger=\"{trigger}\",outcome=\"{outcome}\"}}")
        };
        let passes: Vec<_> = self.passes.iter().map(|(key, &n)| (labels(key), n)).collect();
        one("passes_total", "counter", "Passes, by what started them and how they ended.", &passes);
        one("passes_lost_total", "counter", "Passes that ended without a word.", &plain(self.lost));
        for (name, help, value) in [
            ("changed_total", "Resources created or changed.", self.changed),
            ("drift_corrected_total", "Resources that had drifted and were put right.", {
                self.corrected
            }),
            ("removed_total", "Resources removed.", self.removed),
            ("failed_total", "Resources that failed, once for each pass.", self.failed),
            ("watch_overflows_total", "Times that signs of drift were lost.", self.overflows),
        ] {
            one(name, "counter", help, &plain(value));
        }
        let count = |count: usize| count as u64;
        for (name, help, value) in [
            ("failing_resources", "Resources that keep failing.", count(told.failing_count)),
            ("contested_resources", "Resources that something else keeps altering.", {
                count(moment.contested)
            }),
            ("owned_objects", "Objects that the host owns.", count(told.owned)),
            ("watched_paths", "Declared paths of which drift is seen at once.", {
                count(told.watched)
            }),
            ("unwatched_paths", "Declared paths that have only the timer.", count(told.unwatched)),
            ("reports_waiting", "Reports that wait to be sent.", count(told.waiting)),
            ("link_up", "The link to the mesh is up.", u64::from(moment.linked)),
            ("able", "Passes can be made, the store not being damaged.", u64::from(moment.able)),
            ("paused", "A person holds the machine still.", u64::from(told.paused.is_some())),
            ("longest_turn_milliseconds", "The longest that the loop was not waiting.", {
                moment.longest_turn_ms
            }),
        ] {
            one(name, "gauge", help, &plain(value));
        }
        if let Some(last) = self.last_pass {
            one("last_pass_timestamp_seconds", "gauge", "When a pass ended last.", &plain(last));
        }
        let of = |(source, &at): (&Source, &u64)| (format!("{{source=\"{source}\"}}"), at);
        let last: Vec<_> = self.last_success.iter().map(of).collect();
        let help = "When all that a source declares was last seen to be so.";
        one("last_success_timestamp_seconds", "gauge", help, &last);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_a_comment_or_a_name_with_labels_and_a_number() {
        let metrics = Metrics {
            passes: [(("timer", "converged"), 2)].into(),
            last_pass: Some(5),
            last_success: [(Source::Local, 4)].into(),
            ..Metrics::default()
        };
        let text = metrics.text(&Told::default(), Moment::default());
        for line in text.lines() {
            if line.starts_with("# HELP nox_mesh_host_") || line.starts_with("# TYPE nox_mesh") {
                continue;
            }
            let (name, value) = line.rsplit_once(' ').unwrap();
            assert!(value.parse::<u64>().is_ok(), "{line}");
            let bare = name.split('{').next().unwrap();
            assert!(text.contains(&format!("# TYPE {bare} ")), "{line}");
            assert!(bare.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'), "{line}");
        }
        let pass = "nox_mesh_host_passes_total{trigger=\"timer\",outcome=\"converged\"} 2\n";
        assert!(text.contains(pass), "{text}");
        let last = "nox_mesh_host_last_success_timestamp_seconds{source=\"local\"} 4\n";
        assert!(text.contains(last), "{text}");
    }
}
