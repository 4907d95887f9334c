//! systemctl(1): what it is asked, and what its answers mean. Pure.
//!
//! `show` is asked for all units at once and answers with one block of `Key=value` lines for each,
//! in the order asked, whatever became of the unit (systemd 252: exit 0 for a unit that is not
//! there). Only a template has no block: it ends the whole answer. `is-enabled` answers with one
//! line for each, up to the first that has no file.

use crate::declaration::fault::quoted;

/// The properties that [`units`] reads. `LoadError` is printed last, so that an answer which was
/// cut off anywhere is not taken for a whole one.
const PROPERTIES: &str = "--property=Id,Names,LoadState,LoadError,ActiveState,SubState,\
    UnitFileState,NeedDaemonReload,CanReload,Result,Type,RemainAfterExit,NRestarts,ExecMainCode,\
    ExecMainStatus,Conflicts,ConflictedBy,RequiredBy,BoundBy,ConsistsOf,PropagatesStopTo";

/// A unit, as the service manager knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    /// Its own name, which another that was asked for may stand for.
    pub id: Box<str>,
    /// All its names, its own among them, with spaces between.
    pub names: Box<str>,
    /// What became of reading its file.
    pub load: Load,
    /// Whether it runs.
    pub active: Active,
    /// Whether it is started at boot.
    pub file: FileState,
    /// Its file is not as it was when the manager read it.
    pub is_stale: bool,
    /// The units that its start stops, with spaces between.
    pub start_stops: Box<str>,
    /// The units that its stop stops, likewise.
    pub stop_stops: Box<str>,
    /// It can take in a change without starting anew.
    pub can_reload: bool,
    /// It is a command that runs to its end, after which nothing is left to be running.
    pub ends_by_itself: bool,
    /// Its start counts as a success before its program has done anything.
    pub starts_blindly: bool,
    /// How often it was started again since a person or the host started it.
    pub restarts: u32,
    /// How it ended last: the manager's word for it.
    pub result: Box<str>,
    /// How its main process ended last; empty where it has not.
    pub exit: Box<str>,
}

impl Unit {
    /// How it ended last, in the manager's words.
    pub fn ended(&self) -> String {
        let Unit { result, exit, .. } = self;
        if exit.is_empty() {
            return format!("result {result}");
        }
        format!("result {result}, {exit}")
    }
}

/// What became of reading a unit's file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Load {
    /// It was read.
    Loaded,
    /// There is none.
    NotFound,
    /// Somebody forbade the unit.
    Masked,
    /// It cannot be used; the manager's words.
    Broken(Box<str>),
}

/// Whether a unit runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Active {
    /// It does, or has run and counts as running.
    Up,
    /// It is being started.
    Starting,
    /// It ended by itself, and the manager waits to start it again.
    StartingAgain,
    /// It is being stopped.
    Stopping,
    /// It does not.
    Down,
    /// It does not, since it failed.
    Failed,
}

/// Whether a unit's file has it started at boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileState {
    /// It has.
    Enabled,
    /// Until the machine restarts.
    EnabledRuntime,
    /// It lies elsewhere and is linked to; otherwise as disabled.
    Linked,
    /// It has not, and could.
    Disabled,
    /// It does not say what would start it.
    Static,
    /// It says so only of other units, or stands for itself under another name.
    Indirect,
    /// It was made by a generator, at boot.
    Generated,
    /// It was made by a program, for as long as the unit runs.
    Transient,
    /// It is another name for another unit.
    Alias,
    /// Somebody forbade the unit.
    Masked,
    /// It cannot be read.
    Bad,
    /// There is none.
    Missing,
}

impl FileState {
    /// The manager's own word, as `show` and `is-enabled` have it.
    fn of(word: &str) -> Option<FileState> {
        Some(match word {
            "enabled" => FileState::Enabled,
            "enabled-runtime" => FileState::EnabledRuntime,
            "linked" | "linked-runtime" => FileState::Linked,
            "disabled" => FileState::Disabled,
            "static" => FileState::Static,
            "indirect" => FileState::Indirect,
            "generated" => FileState::Generated,
            "transient" => FileState::Transient,
            "alias" => FileState::Alias,
            "masked" | "masked-runtime" => FileState::Masked,
            "bad" => FileState::Bad,
            // is-enabled says not-found from systemd 254 on; show says nothing.
            "not-found" | "" => FileState::Missing,
            _ => return None,
        })
    }

    /// The unit is started at boot, this time or always.
    pub fn is_enabled(self) -> bool {
        matches!(self, FileState::Enabled | FileState::EnabledRuntime)
    }
}

/// What the manager is to do with a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Start it, or wait for a start that goes on.
    Start,
    /// Stop it.
    Stop,
    /// Stop and start it.
    Restart,
    /// Have it take in a change.
    Reload,
    /// Have it started at boot.
    Enable,
    /// No longer have it started at boot.
    Disable,
}

impl Verb {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Verb::Start => "start",
            Verb::Stop => "stop",
            Verb::Restart => "restart",
            Verb::Reload => "reload",
            Verb::Enable => "enable",
            Verb::Disable => "disable",
        }
    }
}

/// Whether `name` is a template's, of which only instances can run.
pub fn is_template(name: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(stem, _)| stem.ends_with('@'))
}

/// Asks what the manager knows of these units, none of which is a template.
pub fn show<'a>(units: &[&'a str]) -> Vec<&'a str> {
    ["systemctl", "show", PROPERTIES, "--"].iter().chain(units).copied().collect()
}

/// Asks for the state of these units' files, of the tree that `root` (`--root=…`) names if there
/// is one.
pub fn is_enabled<'a>(root: Option<&'a str>, units: &[&'a str]) -> Vec<&'a str> {
    with_root(root, &["is-enabled", "--"], units)
}

/// Has the manager do `verb` to a unit; what is only until the next boot where `runtime` says so.
pub fn act<'a>(root: Option<&'a str>, verb: Verb, runtime: bool, unit: &'a str) -> Vec<&'a str> {
    match runtime {
        true => with_root(root, &[verb.word(), "--runtime", "--"], &[unit]),
        false => with_root(root, &[verb.word(), "--"], &[unit]),
    }
}

/// Has the manager read its units' files again.
pub const RELOAD_MANAGER: [&str; 2] = ["systemctl", "daemon-reload"];

/// Asks for the last lines of the log that `which` picks: `--unit=…`, or a field and its value.
pub fn log(which: &str) -> [&str; 5] {
    ["journalctl", which, "--lines=5", "--no-pager", "--output=cat"]
}

/// A name for a service of `what`, made of `kind` and a `mark` that no other has.
pub fn unit_name(kind: &str, what: &str, mark: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let what: String = what.chars().map(plain).collect();
    format!("{kind}-{what}-{mark}.service")
}

/// Starts a program that forks once it is ready, in a unit of its own that is gone when it ends.
pub fn start_forking<'a>(unit: &str, argv: &[&'a str]) -> Vec<std::borrow::Cow<'a, str>> {
    let options = ["systemd-run", "--quiet", "--collect", "--service-type=forking"];
    let unit = [format!("--unit={unit}").into(), "--".into()];
    options
        .into_iter()
        .map(Into::into)
        .chain(unit)
        .chain(argv.iter().map(|it| (*it).into()))
        .collect()
}

fn with_root<'a>(root: Option<&'a str>, words: &[&'a str], units: &[&'a str]) -> Vec<&'a str> {
    let tool = std::iter::once("systemctl").chain(root);
    tool.chain(words.iter().copied()).chain(units.iter().copied()).collect()
}

/// What `show` said of the units `asked` for, in their order.
///
/// # Errors
/// What is not understood of it.
pub fn units(asked: &[&str], text: &str) -> Result<Vec<Unit>, String> {
    let whole = text.strip_suffix('\n').ok_or("its answer is cut off")?;
    let blocks: Vec<&str> = whole.split("\n\n").collect();
    if blocks.len() != asked.len() {
        return Err(format!("asked for {} units, it told of {}", asked.len(), blocks.len()));
    }
    asked.iter().zip(blocks).map(|(asked, block)| unit(asked, block)).collect()
}

fn unit(asked: &str, block: &str) -> Result<Unit, String> {
    let find = |key: &str| block.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
    let need = |key: &str| find(key).ok_or_else(|| format!("it says no {key} of {asked}"));
    let strange = |key: &str, value: &str| format!("its {key} of {asked} is {}", quoted(value));
    let yes = |key: &str| match need(key)? {
        "yes" => Ok(true),
        "no" => Ok(false),
        other => Err(strange(key, other)),
    };
    let names = need("Names")?;
    if !names.split(' ').any(|name| name == asked) {
        return Err(strange("Names", names));
    }
    let file = need("UnitFileState")?;
    // What a unit has none of is not told of every type.
    let all = |keys: &[&str]| {
        let lists = keys.iter().filter_map(|key| find(key)).filter(|list| !list.is_empty());
        lists.collect::<Vec<_>>().join(" ")
    };
    let mut unit = Unit {
        id: need("Id")?.into(),
        names: names.into(),
        active: active(need("ActiveState")?, need("SubState")?)
            .ok_or_else(|| strange("ActiveState", need("ActiveState").unwrap_or_default()))?,
        file: FileState::of(file).ok_or_else(|| strange("UnitFileState", file))?,
        start_stops: all(&["Conflicts", "ConflictedBy"]).into(),
        stop_stops: all(&["RequiredBy", "BoundBy", "ConsistsOf", "PropagatesStopTo"]).into(),
        is_stale: yes("NeedDaemonReload")?,
        can_reload: yes("CanReload")?,
        load: load(need("LoadState")?, need("LoadError")?),
        ends_by_itself: false,
        starts_blindly: false,
        restarts: 0,
        // A target has none.
        result: find("Result").unwrap_or_default().into(),
        exit: "".into(),
    };
    if asked.ends_with(".service") {
        let count = need("NRestarts")?;
        let status = need("ExecMainStatus")?;
        let kind = need("Type")?;
        unit.ends_by_itself = kind == "oneshot" && !yes("RemainAfterExit")?;
        unit.starts_blindly = matches!(kind, "simple" | "exec" | "idle");
        unit.restarts = count.parse().map_err(|_| strange("NRestarts", count))?;
        // The codes are those of waitid(2).
        unit.exit = match need("ExecMainCode")? {
            "1" => format!("exit status {status}").into(),
            "2" | "3" => format!("signal {status}").into(),
            _ => "".into(),
        };
    }
    Ok(unit)
}

fn load(state: &str, error: &str) -> Load {
    match state {
        "loaded" | "merged" => Load::Loaded,
        "not-found" => Load::NotFound,
        "masked" => Load::Masked,
        other => {
            // org.freedesktop.systemd1.BadUnitSetting "Unit x.service has a bad unit file setting."
            let words = error.split_once(' ').map_or("", |(_, words)| words).trim_matches('"');
            let words = if words.is_empty() { other } else { words };
            Load::Broken(words.trim_end_matches('.').into())
        }
    }
}

fn active(state: &str, sub: &str) -> Option<Active> {
    Some(match (state, sub) {
        // A unit that reloads or refreshes runs; systemd 257 brought the latter.
        ("active" | "reloading" | "refreshing", _) => Active::Up,
        ("activating", "auto-restart" | "auto-restart-queued") => Active::StartingAgain,
        ("activating", _) => Active::Starting,
        ("deactivating", _) => Active::Stopping,
        ("inactive" | "maintenance", _) => Active::Down,
        ("failed", _) => Active::Failed,
        _ => return None,
    })
}

/// What `is-enabled` said: of the units asked for, the first so many, up to one that has no file.
///
/// # Errors
/// What is not understood of it.
pub fn file_states(text: &str) -> Result<Vec<FileState>, String> {
    if !text.is_empty() && !text.ends_with('\n') {
        return Err("its answer is cut off".into());
    }
    let state = |line: &str| {
        FileState::of(line).ok_or_else(|| format!("it calls a unit's file {}", quoted(line)))
    };
    text.lines().map(state).collect()
}

/// These words of `is-enabled` say that `unit` has no file.
pub fn says_missing(unit: &str, error: &str) -> bool {
    // Failed to get unit file state for x.service: No such file or directory
    error.lines().any(|line| {
        line.strip_suffix(": No such file or directory")
            .is_some_and(|line| line.ends_with(&format!(" {unit}")))
    })
}

/// The line of what systemctl said that tells why it failed: neither the advice after it, nor the
/// warning before it that a file has changed.
pub fn reason(error: &str) -> Option<&str> {
    let mut lines = error.lines().map(str::trim).filter(|line| !line.is_empty());
    let is_reason = |line: &&str| !line.starts_with("Warning:") && !line.starts_with("See ");
    lines.find(is_reason).map(|line| line.trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    // systemd 252, in the order of the names below.
    const SHOW: &str = include_str!("../../../tests/transcripts/systemctl/show.txt");
    const ASKED: [&str; 29] = [
        "simple.service",
        "simple.service",
        "aka.service",
        "static.service",
        "oneshot.service",
        "remains.service",
        "falls.service",
        "flaps.service",
        "slow.service",
        "indirect.service",
        "tmpl@7.service",
        "gone.service",
        "changed.service",
        "masked.service",
        "bad.service",
        "noexec.service",
        "linked.service",
        "nosuch.service",
        "nosuch.socket",
        "w.socket",
        "w.timer",
        "-.mount",
        "dbus.service",
        "getty@tty1.service",
        "multi-user.target",
        "runlevel3.target",
        "systemd-fsck-root.service",
        "shutdown.target",
        "sysinit.target",
    ];
    const IS_ENABLED: &str = include_str!("../../../tests/transcripts/systemctl/is-enabled.txt");

    fn told(name: &str) -> Unit {
        let at = ASKED.iter().position(|asked| *asked == name).unwrap();
        units(&ASKED, SHOW).unwrap().swap_remove(at)
    }

    //
    #[test]
    fn every_unit_is_told_of_in_the_order_asked_for() {
        let units = units(&ASKED, SHOW).unwrap();
        for (asked, unit) in ASKED.iter().zip(&units) {
            assert!(unit.names.split(' ').any(|name| name == *asked), "{asked}: {unit:?}");
        }
        assert_eq!(&*told("aka.service").id, "aliased.service");
        assert_eq!(&*told("runlevel3.target").id, "multi-user.target");
    }

    #[test]
    fn what_a_unit_is_and_does_is_read() {
        let simple = told("simple.service");
        assert_eq!((simple.active, simple.file), (Active::Up, FileState::Enabled));
        assert!(simple.can_reload && simple.starts_blindly && !simple.ends_by_itself);
        assert!(told("oneshot.service").ends_by_itself);
        assert!(!told("remains.service").ends_by_itself && !told("remains.service").starts_blindly);
        let falls = told("falls.service");
        assert_eq!((falls.active, &*falls.exit), (Active::Failed, "exit status 7"));
        let flaps = told("flaps.service");
        assert_eq!((flaps.active, flaps.restarts), (Active::StartingAgain, 4));
        assert_eq!(&*flaps.result, "exit-code");
        assert_eq!(told("slow.service").active, Active::Starting);
        let gone = told("gone.service");
        assert_eq!((gone.active, gone.load), (Active::Up, Load::NotFound));
        assert!(told("changed.service").is_stale);
        assert_eq!(told("masked.service").load, Load::Masked);
        let broken = "Unit noexec.service has a bad unit file setting";
        assert_eq!(told("noexec.service").load, Load::Broken(broken.into()));
        assert_eq!(told("linked.service").file, FileState::Linked);
        assert_eq!(told("nosuch.socket").load, Load::NotFound);
        assert_eq!(told("-.mount").active, Active::Up);
        assert!(!told("-.mount").ends_by_itself);
        assert_eq!(told("w.timer").active, Active::Up);
        assert_eq!(told("indirect.service").file, FileState::Indirect);
        assert_eq!(&*told("simple.service").start_stops, "shutdown.target");
        let all = told("shutdown.target");
        assert!(all.start_stops.split(' ').any(|name| name == "simple.service"), "{all:?}");
        let base = told("sysinit.target");
        assert!(base.stop_stops.split(' ').any(|name| name == "simple.service"), "{base:?}");
    }

    #[test]
    fn an_answer_that_is_cut_off_anywhere_is_none() {
        for end in (0..SHOW.len()).filter(|end| SHOW.is_char_boundary(*end)) {
            assert!(units(&ASKED, &SHOW[..end]).is_err(), "of {end} bytes");
        }
        let one = SHOW.split("\n\n").next().unwrap();
        for end in 0..one.len() {
            assert!(units(&ASKED[..1], &one[..end]).is_err(), "of {end} bytes");
        }
        let all = file_states(IS_ENABLED).unwrap();
        assert_eq!(all.len(), 8);
        for end in 0..IS_ENABLED.len() {
            if let Ok(states) = file_states(&IS_ENABLED[..end]) {
                assert_eq!(states, all[..states.len()], "of {end} bytes");
            }
        }
    }

    #[test]
    fn what_is_strange_is_said_and_not_guessed_at() {
        let one = format!("{}\n", SHOW.split("\n\n").next().unwrap());
        let simple = &ASKED[..1];
        assert!(units(simple, &one).is_ok());
        for (from, to) in [
            ("ActiveState=active", "ActiveState=dancing"),
            ("UnitFileState=enabled", "UnitFileState=perhaps"),
            ("NeedDaemonReload=no", "NeedDaemonReload="),
            ("NRestarts=0", "NRestarts=-1"),
            ("Names=simple.service", "Names=other.service"),
            ("CanReload=yes\n", ""),
        ] {
            let key = from.split('=').next().unwrap();
            let error = units(simple, &one.replace(from, to)).unwrap_err();
            assert!(error.contains(key) && error.contains("simple.service"), "{error}");
        }
        assert!(units(&ASKED[..2], &one).unwrap_err().contains("asked for 2"));
        assert!(file_states("enabled\n\u{1b}[31m\n").unwrap_err().contains("\\u{1b}"));
    }

    #[test]
    fn the_reason_is_found_among_advice() {
        let said = "Warning: The unit file of x.service changed on disk.\n\
            Job for x.service failed because the control process exited with error code.\n\
            See \"systemctl status x.service\" and \"journalctl -xeu x.service\" for details.\n";
        let reason = reason(said).unwrap();
        assert_eq!(
            reason,
            "Job for x.service failed because the control process exited with error code"
        );
        let missing = "Failed to get unit file state for x.service: No such file or directory\n";
        assert!(says_missing("x.service", missing) && !says_missing("y.service", missing));
        assert!(!says_missing("x.service", "Failed to connect to bus: No such file or directory"));
    }

    #[test]
    fn a_template_is_told_from_its_instances() {
        assert!(is_template("getty@.service"));
        for name in ["getty@tty1.service", "getty.service", "a@.b.service", "@"] {
            assert!(!is_template(name), "{name}");
        }
    }
}
