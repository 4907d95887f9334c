//! A scenario that is broken off at each of its system calls in turn, and what must hold then.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;

use serde_json::Value;

use super::site::{told, Site, Tree};
use super::strace::{calls, traced, Call};

/// A command on a machine in a given state.
pub struct Scenario {
    /// Lays out what is there when the command is run, and declares what it and the others name.
    pub prepare: fn(&Site),
    /// The command that is broken off, and then run again.
    pub run: &'static str,
    /// What may be done instead of running it again.
    pub other: &'static [&'static str],
    /// What lets go of everything.
    pub release: &'static [&'static str],
    /// Files that a person had there before, and that the host is told to change.
    pub adopted: &'static [&'static str],
}

/// A scenario and how it goes when nothing breaks it off.
pub struct Course {
    scenario: Scenario,
    /// As it is when the command is run.
    site: Site,
    before: Tree,
    seq: u64,
    after: Ending,
    /// How it ends when the other thing is done instead.
    other: Ending,
    /// What is left when everything was let go of.
    released: Tree,
    calls: Vec<Call>,
}

#[derive(PartialEq, Debug)]
struct Ending {
    tree: Tree,
    owned: BTreeMap<String, Value>,
    state: Vec<String>,
}

impl Ending {
    fn of(site: &Site) -> Ending {
        // The place for secrets is made with the first of them and stays, whatever comes after.
        let mut state = site.state_names();
        state.retain(|name| !matches!(&**name, "/secrets" | "/secrets/key"));
        Ending { tree: site.tree(), owned: site.owned(), state }
    }
}

impl Course {
    pub fn new(scenario: Scenario) -> Course {
        let site = Site::new();
        (scenario.prepare)(&site);
        let (run, other) = (site.copy(), site.copy());
        let calls = calls(&run, scenario.run);
        scenario.other.iter().for_each(|command| drop(other.ok(command)));
        let (after, other) = (Ending::of(&run), Ending::of(&other));
        scenario.release.iter().for_each(|command| drop(run.ok(command)));
        let (before, seq) = (site.tree(), last_seq(&site));
        let released = run.tree();
        Course { scenario, site, before, seq, after, other, released, calls }
    }

    /// What is left of an undisturbed run when everything was let go of.
    pub fn released(&self) -> &Tree {
        &self.released
    }

    /// The site as it is before the command, and the calls of the command.
    pub fn start(&self) -> (&Site, &[Call]) {
        (&self.site, &self.calls)
    }

    /// The calls at which the command can be broken off.
    pub fn breaks(&self) -> impl Iterator<Item = &Call> {
        self.calls.iter().filter(|call| call.changes())
    }

    /// Kills the command at each system call that changes something, in turn. `also` must hold
    /// of what is left.
    pub fn kill_at_every_call(&self, also: impl Fn(&Site)) {
        let breaks: Vec<&Call> = self.breaks().collect();
        assert!(breaks.len() > 3, "the trace is too short to be one: {breaks:?}");
        for call in breaks {
            let site = self.site.copy();
            let output = traced(&site, self.scenario.run, &call.inject("signal=KILL"));
            let at = format!("killed at {call:?}");
            assert_eq!(output.status.signal(), Some(9), "{at}: {}", told(&output));
            also(&site);
            self.must_be_honest(&site, &at);
            self.must_go_on(site, &at);
        }
    }

    /// Has each of those calls fail in turn with one of `errors` (as strace names it, and in the
    /// kernel's words), once.
    pub fn fail_every_call(&self, errors: &[(&str, &str)]) {
        for (turn, call) in self.breaks().enumerate() {
            let (error, words) = errors[turn % errors.len()];
            let site = self.site.copy();
            let output = traced(&site, self.scenario.run, &call.inject(&format!("error={error}")));
            let at = format!("{error} at {call:?}: {}", told(&output));
            let said = String::from_utf8_lossy(&output.stderr);
            match output.status.code() {
                // What is only tidied up is said and left to the next run.
                Some(0) if said.contains(words) => assert_eq!(site.tree(), self.after.tree, "{at}"),
                Some(0) => assert_eq!(Ending::of(&site), self.after, "{at}"),
                Some(1) if call.says() => {}
                Some(1) => {
                    let line = said.lines().find(|line| line.contains(words));
                    let line = line.unwrap_or_else(|| panic!("no word of the cause: {at}"));
                    // What was being done, to what, and the kernel's words.
                    assert!(line.matches(": ").count() >= 2, "{at}");
                }
                _ => panic!("{at}"),
            }
            let stray = site.tree().into_keys().find(|name| name.contains(".mesh-host~"));
            assert_eq!(stray, None, "{at}");
            self.must_be_honest(&site, &at);
            self.must_go_on(site, &at);
        }
    }

    /// Sends a signal at each of those calls in turn: the run ends before it began, or finishes
    /// what it has in hand and says that it was asked to, or was done anyway.
    pub fn interrupt_at_every_call(&self, signal: &str, number: i32) {
        let mut interrupted = 0;
        for call in self.breaks() {
            let site = self.site.copy();
            let inject = call.inject(&format!("signal={signal}"));
            let output = traced(&site, self.scenario.run, &inject);
            let at = format!("{signal} at {call:?}: {}", told(&output));
            match (output.status.code(), output.status.signal()) {
                (Some(0), _) => assert_eq!(Ending::of(&site), self.after, "{at}"),
                (Some(1), _) => {
                    let said = String::from_utf8_lossy(&output.stderr);
                    assert!(said.contains("a signal asked for it"), "{at}");
                    interrupted += 1;
                }
                (_, ended) => assert_eq!(ended, Some(number), "{at}"),
            }
            if output.status.signal().is_none() {
                // What was in hand was finished and recorded.
                let pending = site.owned().into_values().find(|it| it["pending"] == true);
                assert_eq!(pending, None, "{at}");
                let stray = site.tree().into_keys().find(|name| name.contains(".mesh-host~"));
                assert_eq!(stray, None, "{at}");
            }
            self.must_be_honest(&site, &at);
            self.must_go_on(site, &at);
        }
        assert!(interrupted > 3, "no run was interrupted in its middle");
    }

    /// Whatever happened: the journal can be read, claims no more than there is, and everything
    /// that was changed stands under an intent.
    pub fn must_be_honest(&self, site: &Site, at: &str) {
        site.ok("journal --verify");
        let (now, owned) = (site.tree(), site.owned());
        let applied = last_applied(site);
        for (object, holding) in &owned {
            let Some(path) = object.strip_prefix("path:") else { continue };
            if holding["pending"] == true {
                continue;
            }
            let claimed = match applied.get(object).is_some_and(|seq| *seq > self.seq) {
                true => self.after.tree.get(path),
                false => self.before.get(path),
            };
            assert_eq!(now.get(path), claimed, "{path} is not what is claimed, {at}");
        }
        for (path, found) in &now {
            let pending =
                owned.get(&format!("path:{path}")).is_some_and(|it| it["pending"] == true);
            let known = [self.before.get(path), self.after.tree.get(path)].contains(&Some(found));
            let beside = path.ends_with(".mesh-host~")
                && owned.values().any(|it| it["pending"] == true && is_beside(it, path));
            assert!(known || pending || beside, "{path} ({found}) is nobody's, {at}");
        }
    }

    /// The next run ends as an undisturbed one, the one after it has nothing to do, and what was
    /// made can be let go of; or another declaration is applied and nothing is left over.
    pub fn must_go_on(&self, site: Site, at: &str) {
        let elsewhere = site.copy();
        site.ok(self.scenario.run);
        assert_eq!(Ending::of(&site), self.after, "after the next run, {at}");
        let journal = std::fs::read(site.journal()).unwrap();
        if self.scenario.run.starts_with("apply") {
            site.ok(self.scenario.run);
            let again = std::fs::read(site.journal()).unwrap();
            assert!(journal == again, "the third run wrote, {at}");
            assert_eq!(Ending::of(&site), self.after, "after the third run, {at}");
        }
        self.scenario.release.iter().for_each(|command| drop(site.ok(command)));
        assert_eq!(site.tree(), self.released, "after letting go, {at}");

        self.scenario.other.iter().for_each(|command| drop(elsewhere.ok(command)));
        let mut ending = Ending::of(&elsewhere);
        for path in self.scenario.adopted {
            let (found, changed) = (ending.tree.get(*path), self.after.tree.get(*path));
            if found == changed && found.is_some() {
                // A person's file that was changed and is no longer declared stays as it is.
                let untouched = self.other.tree[*path].clone();
                ending.tree.insert(path.to_string(), untouched);
            }
        }
        assert_eq!(ending, self.other, "after another declaration, {at}");
    }
}

/// A temporary name lies in the directory of what it is for.
fn is_beside(holding: &Value, stray: &str) -> bool {
    let object = holding["object"].as_str().unwrap();
    let above = |path: &str| path.rsplit_once('/').map(|(above, _)| above.to_string());
    object.strip_prefix("path:").and_then(above) == above(stray)
}

fn last_seq(site: &Site) -> u64 {
    site.records().last().map_or(0, |record| record["seq"].as_u64().unwrap())
}

/// For each object, the number of the last record that says it was applied.
fn last_applied(site: &Site) -> BTreeMap<String, u64> {
    let mut applied = BTreeMap::new();
    for record in site.records().iter().filter(|record| record["kind"] == "applied") {
        // A compaction restates many together.
        let together = record["objects"].as_array().into_iter().flatten().map(|it| &it[0]);
        let objects = together.chain([&record["object"]]).filter_map(|it| it.as_str());
        let seq = record["seq"].as_u64().unwrap();
        applied.extend(objects.map(|object| (object.to_string(), seq)));
    }
    applied
}
