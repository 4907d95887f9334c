//! `service`: a unit of the service manager.

use std::borrow::Cow;

use super::form::{word, Text};
use super::kind::{Carrier, Field, Kind, Shape, Touch, TIMEOUT_S};
use super::unit_before::{runs, Before};
use super::{Answer, Due, Follows, Object, Past, Question, Resource, Step, Trouble, Verdict};
use crate::declaration::Own;
use crate::tool::systemctl::{is_template, Active, FileState, Load, Unit, Verb};

/// A declared unit.
#[derive(Debug)]
pub struct Service {
    /// Its whole name.
    pub unit: Box<str>,
    /// Whether it is to run; `None` leaves that alone.
    pub running: Option<bool>,
    /// Whether it is to be started at boot; `None` leaves that alone.
    pub enabled: Option<bool>,
    /// What makes it restart and reload.
    pub follows: Follows,
}

impl Resource for Service {
    fn kind(&self) -> &'static str {
        "service"
    }

    fn object(&self) -> Object {
        Object::new("service", &self.unit)
    }

    fn question(&self) -> Question<'_> {
        Question::Unit { unit: &self.unit, enabling: self.enabled.is_some() }
    }

    fn judge(&self, answer: &Answer, past: &Past<'_>) -> Result<Verdict<'_>, Trouble> {
        match answer {
            Answer::Unit(unit) => self.judge_unit(unit, past),
            Answer::UnitFile(file) => self.judge_file(*file, past),
            Answer::NotApplicable(why) => Ok(Verdict::not_applicable(why)),
            other => Err(other.mismatch()),
        }
    }

    fn follows(&self) -> Follows {
        self.follows
    }
}

impl Service {
    /// Of the running machine.
    fn judge_unit(&self, unit: &Unit, past: &Past<'_>) -> Result<Verdict<'_>, Trouble> {
        if *unit.id != *self.unit {
            let cause = format!("it is an alias of {}: declare that", unit.id);
            return Err(Trouble::new(format!("look at {}", self.unit), cause));
        }
        // What the manager says of a file that has changed since is not yet how it will be.
        if !unit.is_stale {
            self.may_run(unit, past.due)?;
            self.may_enable(unit.file)?;
        }
        let boot = self.boot_verb(unit.file);
        let run = self.run_verb(unit, past);
        self.spares_host(unit, run)?;
        let reload = unit.is_stale.then_some(Step::ReloadManager);
        let verbs = [boot, run].into_iter().flatten();
        let steps = verbs.map(|verb| Step::Unit { unit: &self.unit, verb });
        let stale = unit.is_stale.then(|| "its file has changed since it was read".to_string());
        let differs = stale.into_iter().chain(boot.map(|verb| lacks(verb, unit)));
        let differs: Vec<String> = differs.chain(run.map(|verb| lacks(verb, unit))).collect();
        let found = Before { ran: Some(runs(unit.active)), enabled: Some(unit.file.is_enabled()) };
        Ok(Verdict {
            existed: true,
            steps: reload.into_iter().chain(steps).collect(),
            detail: differs.join(", "),
            before: self.before(past, found),
            refreshes: match run {
                Some(Verb::Start | Verb::Restart) => Due::Restart,
                Some(Verb::Reload) => Due::Reload,
                _ => Due::Nothing,
            },
            ..Verdict::default()
        })
    }

    /// Of a mounted tree, or of a template: nothing runs.
    fn judge_file(&self, file: FileState, past: &Past<'_>) -> Result<Verdict<'_>, Trouble> {
        if self.enabled == Some(true) && file == FileState::Missing {
            return Err(self.trouble("enable", NO_UNIT));
        }
        self.may_enable(file)?;
        let boot = self.boot_verb(file);
        let step = |verb| Step::Unit { unit: &self.unit, verb };
        let found = Before { ran: None, enabled: Some(file.is_enabled()) };
        Ok(Verdict {
            existed: true,
            steps: boot.into_iter().map(step).collect(),
            detail: boot.map(at_boot).unwrap_or_default().into(),
            before: self.before(past, found),
            ..Verdict::default()
        })
    }

    /// Nothing stands against its running that starting it would not mend, or would hide.
    fn may_run(&self, unit: &Unit, due: Due) -> Result<(), Trouble> {
        let is_nowhere = unit.load == Load::NotFound && !runs(unit.active);
        // What is not there neither runs nor starts at boot.
        let may_be_nowhere = [self.running, self.enabled].contains(&Some(false));
        if is_nowhere && (self.enabled == Some(true) || !may_be_nowhere) {
            return Err(self.trouble("look for", NO_UNIT));
        }
        if self.running != Some(true) {
            return Ok(());
        }
        let cause = match &unit.load {
            Load::NotFound if runs(unit.active) => {
                "it still runs, and its file is gone: it could not be started again".into()
            }
            Load::NotFound => NO_UNIT.to_string(),
            Load::Masked => masked(&self.unit),
            Load::Broken(why) => format!("{why}; see what systemd-analyze verify says of it"),
            Load::Loaded if unit.ends_by_itself => {
                "it is a oneshot that is over once it has run: set RemainAfterExit=yes in it, or \
                 declare only whether it is enabled"
                    .into()
            }
            Load::Loaded if unit.active == Active::StartingAgain && due != Due::Restart => {
                let again = unit.restarts;
                format!("it keeps failing, {}; started again {again} times so far", unit.ended())
            }
            Load::Loaded => return Ok(()),
        };
        Err(Trouble::new(format!("keep {} running", self.unit), cause))
    }

    /// Doing that to it does not itself stop the host along with it.
    fn spares_host(&self, unit: &Unit, verb: Option<Verb>) -> Result<(), Trouble> {
        let Some(verb) = verb else { return Ok(()) };
        let stops = match verb {
            Verb::Start => [&*unit.start_stops, ""],
            Verb::Stop => ["", &*unit.stop_stops],
            Verb::Restart => [&*unit.start_stops, &*unit.stop_stops],
            Verb::Reload | Verb::Enable | Verb::Disable => return Ok(()),
        };
        let mut names = stops.iter().flat_map(|names| names.split(' '));
        match names.find_map(|name| Own::default().refuses_unit(name)) {
            Some(what) => {
                let cause = format!("that would stop {what} too");
                Err(Trouble { touches_host: true, ..self.trouble(verb.word(), &cause) })
            }
            None => Ok(()),
        }
    }

    /// Its file lets it be enabled, or not be, as is declared.
    fn may_enable(&self, file: FileState) -> Result<(), Trouble> {
        let Some(enabled) = self.enabled else { return Ok(()) };
        let cause = match file {
            FileState::Bad => "its file cannot be read".to_string(),
            FileState::Alias => "it is another name of a unit: declare that by its own".to_string(),
            _ if !enabled => return Ok(()),
            FileState::Masked => masked(&self.unit),
            FileState::Static => {
                "it is static, its file has no [Install] section: what needs it starts it, so \
                 leave enabled out"
                    .to_string()
            }
            FileState::Indirect if !is_template(&self.unit) => {
                "it is indirect: its file enables only other units, or it has an alias that its \
                 file does not name; declare the one that Also= names, or remove the alias"
                    .to_string()
            }
            FileState::Generated => {
                "it is generated at boot from other configuration: what that says decides, so \
                 leave enabled out"
                    .to_string()
            }
            FileState::Transient => {
                "it is transient, made by a program until it stops: leave enabled out".to_string()
            }
            FileState::Missing => "it has no file that could be enabled".to_string(),
            _ => return Ok(()),
        };
        let verb = if enabled { "enable" } else { "disable" };
        Err(self.trouble(verb, &cause))
    }

    fn boot_verb(&self, file: FileState) -> Option<Verb> {
        match (self.enabled?, file) {
            (true, FileState::Enabled) => None,
            (true, _) => Some(Verb::Enable),
            (false, file) => file.is_enabled().then_some(Verb::Disable),
        }
    }

    fn run_verb(&self, unit: &Unit, past: &Past<'_>) -> Option<Verb> {
        let due = past.due;
        let refresh = match due {
            Due::Reload if unit.can_reload => Verb::Reload,
            // What cannot reload takes a change in by starting anew.
            _ => Verb::Restart,
        };
        match (self.running, unit.active) {
            (Some(false), Active::Down | Active::Failed) => None,
            (Some(false), _) => Some(Verb::Stop),
            (_, Active::Up) => (due != Due::Nothing).then_some(refresh),
            // A start that takes longer than one pass waits is waited for by the next one. To start
            // it anew, since that is still due, would never come to an end. One that was under way
            // before what it follows changed may have read that already.
            (Some(true), Active::Starting) if past.due_under_way != Due::Nothing => {
                Some(Verb::Restart)
            }
            (Some(true), Active::StartingAgain) if due == Due::Restart => Some(Verb::Restart),
            (Some(true), _) => Some(Verb::Start),
            (None, _) => None,
        }
    }

    /// What is to be put back on leaving: for each part that is declared, how it was when that
    /// began. A part that is declared off has nothing to be put back but that it was on once.
    fn before(&self, past: &Past<'_>, found: Before) -> Option<String> {
        let known = Before::read(past.before.unwrap_or_default());
        let part = |wanted: Option<bool>, known: Option<bool>, found: Option<bool>| {
            let wanted = wanted?;
            known.or(found).filter(|was_on| *was_on || wanted)
        };
        let ran = part(self.running, known.ran, found.ran);
        let enabled = part(self.enabled, known.enabled, found.enabled);
        let before = Before { ran, enabled };
        (before != Before::default() || past.before.is_some()).then(|| before.write())
    }

    fn trouble(&self, verb: &str, cause: &str) -> Trouble {
        Trouble::new(format!("{verb} {}", self.unit), cause)
    }
}

const NO_UNIT: &str = "there is no such unit: declare earlier what brings it";

fn masked(unit: &str) -> String {
    format!("it is masked, which somebody decided: systemctl unmask {unit} would undo it")
}

/// What of a unit is not as declared, where it takes `verb` to mend that.
fn lacks(verb: Verb, unit: &Unit) -> String {
    match (verb, unit.active) {
        (Verb::Start, Active::Failed) => format!("it has failed, {}", unit.ended()),
        (Verb::Start, Active::Starting) => "it is still starting".into(),
        (Verb::Start, _) => "it does not run".into(),
        (Verb::Stop, _) => "it runs".into(),
        (Verb::Restart, _) => "a restart is due, since what it follows changed".into(),
        (Verb::Reload, _) => "a reload is due, since what it follows changed".into(),
        (Verb::Enable | Verb::Disable, _) => at_boot(verb).into(),
    }
}

fn at_boot(verb: Verb) -> &'static str {
    match verb {
        Verb::Enable => "it is not enabled",
        _ => "it is enabled",
    }
}

/// How a declaration names a unit.
pub static KIND: Kind = Kind {
    name: "service",
    doc: "A unit's state. On leaving the declaration it is stopped and disabled as far as the \
          host started and enabled it.",
    fields: &[
        Field::required(
            "unit",
            "The unit's name; without suffix, a service's.",
            Shape::Text(&UNIT),
        ),
        Field::optional(
            "state",
            "Whether it runs. Absent: unmanaged.",
            Shape::Choice(&["running", "stopped"]),
        ),
        Field::optional(
            "enabled",
            "Whether it is started at boot. Absent: unmanaged.",
            Shape::Bool,
        ),
        RESTART_ON,
        Field::optional(
            "reload_on",
            "Resources, by id, whose change makes it reload.",
            Shape::List(&Shape::Reference(&[]), 0, 1000),
        ),
    ],
    exactly_one: &[],
    default_timeout_s: TIMEOUT_S,
    carrier: Carrier::Any,
    rules: |fields, judge| {
        let Some(unit) = fields.text("unit") else { return };
        judge.claims("unit", "service", full(unit));
        judge.touches("unit", Touch::Unit(unit));
        if fields.has("state") && is_template(&full(unit)) {
            let mend = "name an instance, such as getty@tty1.service";
            judge.wrong("unit", "is a template, which can neither run nor stop".into(), mend);
        }
    },
    build: Some(|_, fields| {
        let follows = Follows {
            restarts: fields.list("restart_on").len(),
            reloads: fields.list("reload_on").len(),
        };
        let enabled = fields.has("enabled").then(|| fields.is_true("enabled"));
        let running = fields.take_text("state").map(|state| *state == *"running");
        let unit = fields.take_text("unit").expect("the table requires unit");
        Box::new(Service { unit: full(&Cow::Borrowed(&unit)).into(), running, enabled, follows })
    }),
};

/// Resources whose change makes something restart.
pub const RESTART_ON: Field = Field::optional(
    "restart_on",
    "Resources, by id, whose change makes it restart.",
    Shape::List(&Shape::Reference(&[]), 0, 1000),
);

// Slices, scopes and devices are systemd's own to start and stop: a slice ends all that is in it.
const SUFFIXES: [&str; 8] =
    [".service", ".socket", ".timer", ".path", ".mount", ".automount", ".swap", ".target"];

static UNIT: Text = Text {
    what: "the name of a unit that can be started and stopped",
    mend: "write a service's name, or one that ends in .socket, .timer, .path, .mount, \
           .automount, .swap or .target",
    pattern: "^[A-Za-z0-9:_.\\\\-][A-Za-z0-9:_.\\\\@-]*$",
    max: 255,
    holds: |text| {
        let others = [".slice", ".scope", ".device", ".snapshot"];
        word(text, ":_.\\-", ":_.\\-@")
            && !text.starts_with('.')
            && !others.iter().any(|suffix| text.ends_with(suffix))
            && full(&Cow::Borrowed(text)).len() <= 255
    },
};

/// The unit's name with its suffix, as systemctl(1) completes it.
fn full<'a>(unit: &Cow<'a, str>) -> Cow<'a, str> {
    if SUFFIXES.iter().any(|suffix| unit.ends_with(suffix)) {
        return unit.clone();
    }
    Cow::Owned(format!("{unit}.service"))
}
