//! What each command does.

use std::ffi::OsStr;
use std::io::stdout;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;

use super::hold;
use super::show::{self, Paint};
use super::table::{help, Command};
use super::watch::Terminal;
use super::{page, print, print_json, Invocation};
use crate::accept;
use crate::config::{self, Config};
use crate::declaration::fault::quoted;
use crate::declaration::{self, Declaration, Declared, Fault, Own};
use crate::error::{Error, Stage};
use crate::machine::{self, Machine};
use crate::plan::Claims;
use crate::reconcile::{paused_report, reconcile, refused_report, Ledger, Options, Work};
use crate::report::{Failure, Outcome, Report, Trigger, PLAN, REPORT};
use crate::resource::RootPath;
use crate::spool;
use crate::store::{self, Reading, Secrets, Source, Store, When};

/// How long a pass waits for another one to let go of the lock.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// The exit code of `plan --exit-code` where there is something to change.
const CHANGES: u8 = 10;

/// Where things are, for one run.
pub(super) struct Place {
    pub root: PathBuf,
    pub state: PathBuf,
    pub own: Own,
    pub config: Config,
}

/// Runs the command; the process's exit code.
pub(super) fn run(it: &Invocation) -> Result<u8, Error> {
    let command = match it.command {
        Some(command) if !it.help => command,
        named => return page(it, "help/1", &help(named)),
    };
    match command {
        Command::Run => super::serve::run(it),
        Command::Apply => apply(it),
        Command::Plan => plan(it),
        Command::Check => check(it),
        Command::Reconcile => reconcile_store(it),
        Command::Status => super::look::status(it, &Place::of(it)?),
        Command::Owned => super::look::owned(it, &Place::of(it)?.state),
        Command::Journal => super::look::journal(it, &Place::of(it)?.state),
        Command::Pause => hold::pause(it),
        Command::Resume => hold::resume(it),
        Command::Rescue => hold::rescue(it),
        Command::Schema => schema(it),
        Command::Unit => page(it, "unit/1", &unit()),
        Command::Version => version(it),
        Command::Help => match it.operands.first() {
            None => page(it, "help/1", &help(None)),
            Some(name) => {
                let name = name.to_string_lossy();
                let command = Command::named(&name).ok_or_else(|| super::unknown(&name))?;
                page(it, "help/1", &help(Some(command)))
            }
        },
    }
}

/// The unit, for the program where it stands.
fn unit() -> String {
    let text = include_str!("../../../unit/nox-mesh-host.service");
    // What systemd would read as more than a name is left to whoever put it there.
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._+-".contains(&byte);
    let here =
        std::env::current_exe().ok().and_then(|path| path.into_os_string().into_string().ok());
    match here.filter(|path| path.bytes().all(is_plain)) {
        Some(path) => text.replace("=/usr/bin/nox-mesh-host ", &format!("={path} ")),
        None => text.into(),
    }
}

impl Place {
    pub fn of(it: &Invocation) -> Result<Place, Error> {
        let root = it.root.clone().unwrap_or_else(|| "/".into());
        // Nothing, the host's own state least of all, is made where there is no root.
        let doing = || format!("open the root {}", quoted(&root.to_string_lossy()));
        let found =
            std::fs::metadata(&root).map_err(|error| Error::failed(Stage::Read, doing(), error))?;
        if !found.is_dir() {
            return Err(Error::failed(Stage::Read, doing(), "it is not a directory"));
        }
        let state = it.state.clone().unwrap_or_else(|| root.join("var/lib/mesh-host"));
        let config = it.config.clone().unwrap_or_else(|| root.join("etc/mesh-host/config.json"));
        let read = config::read(&config, it.config.is_some())?;
        let binary = std::env::current_exe().ok();
        let own = Own {
            state: within(&root, &state),
            config: it.config.as_deref().and_then(|config| within(&root, config)),
            binary: binary.and_then(|binary| within(&root, &binary)),
        };
        Ok(Place { root, state, own, config: read })
    }

    pub fn machine(&self) -> Result<Machine, Error> {
        Machine::open(&self.root, self.own.clone())
            .map_err(|trouble| Error::failed(Stage::Observe, trouble.doing, trouble.cause))
    }

    pub fn store(&self) -> Result<Store, Error> {
        self.store_within(PATIENCE)
    }

    /// The store, which another process lets go of within `patience`.
    pub fn store_within(&self, patience: Duration) -> Result<Store, Error> {
        let mut store = Store::open(&self.state, patience, machine::now())?;
        for notice in store.take_notices() {
            show::note(&notice);
        }
        Ok(store)
    }

    /// Where the secrets of `declaration` are, or can be, kept, and the key of the host's mark. Who
    /// never needed either has no place for them.
    fn secrets(&self, declaration: &Declaration) -> Result<Option<Secrets>, Error> {
        let needs = |it: &Declared| it.resource.secret() || it.resource.is_marked();
        match declaration.resources.iter().any(needs) {
            true => Secrets::open(&self.state, &mut machine::fill).map(Some),
            false => Secrets::read(&self.state),
        }
    }
}

/// `path` as one inside `root`, where it is that; links on the way are resolved as far as they are
/// there.
fn within(root: &Path, path: &Path) -> Option<RootPath> {
    let root = root.canonicalize().ok()?;
    let mut rest = Vec::new();
    let absolute = std::path::absolute(path).ok()?;
    let mut there = absolute.as_path();
    let resolved = loop {
        match there.canonicalize() {
            Ok(resolved) => break resolved,
            Err(_) => {
                rest.push(there.file_name()?);
                there = there.parent()?;
            }
        }
    };
    let resolved = rest.iter().rev().fold(resolved, |path, name| path.join(name));
    let inside = Path::new("/").join(resolved.strip_prefix(&root).ok()?);
    RootPath::parse(inside.to_str()?).ok()
}

/// What the operand names, read and checked; and whose it is.
fn declared(it: &Invocation, place: &Place) -> Result<(Source, Declaration, String), Error> {
    let default = place.root.join("etc/mesh-host/substrate.lock");
    let operand = it.operands.first().map_or(default.as_os_str(), |file| file);
    let what = match operand == OsStr::new("-") {
        true => "standard input".to_string(),
        false => operand.to_string_lossy().into_owned(),
    };
    let refused = |faults| Error::Refused { what: what.clone(), faults };
    let (source, parsed) = match it.bundle {
        true if operand == "-" => {
            let why = "a bundle is a file, so that it can be seen whose it is, not standard input";
            return Err(Error::Usage(why.into()));
        }
        true => {
            let bundle = machine::open_bundle(Path::new(operand))?;
            (Source::Bundle, declaration::parse_trusted(bundle, &place.own))
        }
        false => {
            let text = machine::read_declaration(Path::new(operand))?;
            (Source::Local, declaration::parse(text, &place.own))
        }
    };
    Ok((source, parsed.map_err(refused)?, what))
}

fn apply(it: &Invocation) -> Result<u8, Error> {
    let place = Place::of(it)?;
    let (source, declaration, what) = declared(it, &place)?;
    let mut machine = place.machine()?;
    let fresh = !place.state.join(store::JOURNAL).exists();
    if fresh {
        accept::guard(&mut machine, &declaration, &what)?;
    }
    let mut store = place.store()?;
    // Another pass may have come before, and what it made has not been looked at.
    machine.forget();
    let claims = claims(it);
    accept::may(source, &declaration, store.state(), claims, &what)?;
    let known = store.state().accepted(source).map(|accepted| accepted.sha256);
    if !fresh && known != Some(declaration.sha256) {
        accept::guard(&mut machine, &declaration, &what)?;
    }
    let mut secrets = place.secrets(&declaration)?;
    accept::accept(&mut store, &mut secrets, source, &declaration, machine::now())?;
    // The process ends with the pass, and all at once is quicker than piece by piece.
    let declaration = std::mem::ManuallyDrop::new(declaration);
    let (machine, store, secrets) = (&mut machine, &mut store, secrets.as_ref());
    let works = [Work { source, declaration: &declaration }];
    pass(it, Hands { place: &place, machine, store, secrets }, &works)
}

fn reconcile_store(it: &Invocation) -> Result<u8, Error> {
    let place = Place::of(it)?;
    let mut machine = place.machine()?;
    let mut store = place.store()?;
    let secrets = Secrets::read(&place.state)?;
    let declared = in_force(&place, &store, secrets.as_ref())?;
    if declared.is_empty() && !it.quiet {
        show::note("nothing has been declared to this host yet; apply a declaration first");
    }
    let (machine, store, secrets) = (&mut machine, &mut store, secrets.as_ref());
    pass(it, Hands { place: &place, machine, store, secrets }, &works(&declared))
}

/// Has the machine know by the host's key what the host made.
fn mark(machine: &mut Machine, secrets: Option<&Secrets>) {
    if let Some(secrets) = secrets {
        machine.mark_by(secrets.key());
    }
}

/// What each source has declared, in the order of a pass.
pub(super) fn in_force(
    place: &Place,
    store: &Store,
    secrets: Option<&Secrets>,
) -> Result<Vec<(Source, Declaration)>, Error> {
    let mut declared = Vec::new();
    for source in Source::ALL {
        let Some(accepted) = store.state().accepted(source) else { continue };
        let mut declaration = accept::stored(store.words(accepted.words)?, secrets, &place.own)?;
        // The store keeps it without its secrets, and so in other bytes than it came in.
        declaration.sha256 = accepted.sha256;
        declared.push((source, declaration));
    }
    Ok(declared)
}

/// The work that these make.
pub(super) fn works(declared: &[(Source, Declaration)]) -> Vec<Work<'_>> {
    declared.iter().map(|(source, declaration)| Work { source: *source, declaration }).collect()
}

/// What a pass is made with.
pub(super) struct Hands<'h> {
    pub place: &'h Place,
    pub machine: &'h mut Machine,
    pub store: &'h mut Store,
    pub secrets: Option<&'h Secrets>,
}

/// A pass over `works`, unless a person holds the machine still; its report is said.
fn pass(it: &Invocation, mut hands: Hands<'_>, works: &[Work]) -> Result<u8, Error> {
    if let Some(paused) = accept::paused(hands.store.state(), machine::now()).filter(|_| !it.quiet)
    {
        let until = paused.until.map_or("resume".into(), |until| When(until).to_string());
        show::note(&format!("paused until {until}: {}", paused.reason));
    }
    let mut watch = Terminal::new(it);
    let options = Options {
        trigger: Trigger::Command,
        diffs: it.json || it.verbose,
        claims: claims(it),
        own: &hands.place.own,
        watch: &mut watch,
    };
    let report = recorded_pass(&mut hands, works, options)?;
    let announced = watch.announced;
    drop(watch);
    if announced && report.outcome == Outcome::Failed && report.count(&[Outcome::Removed]) == 0 {
        show::note("nothing was removed: that waits until everything declared matches");
    }
    said(it, &report)
}

/// A pass as a command and the service's child both make it: the pause is heeded, the report waits
/// to be sent where there is somebody to send it to, and the store is tidied. Its report.
pub(super) fn recorded_pass<'d>(
    hands: &mut Hands<'_>,
    works: &[Work<'d>],
    options: Options<'_>,
) -> Result<Report<'d>, Error> {
    let Hands { place, machine, store, secrets } = hands;
    let Options { trigger, diffs, claims, own, watch } = options;
    if let Some(paused) = accept::paused(store.state(), machine::now()) {
        let report = paused_report(works, trigger, &paused.reason);
        store.flush()?;
        return Ok(report);
    }
    mark(machine, *secrets);
    let sends_diffs = place.config.report_diffs;
    let options = Options { trigger, diffs: diffs || sends_diffs, claims, own, watch };
    let mut report = reconcile(machine, Ledger::live(store, *secrets), works, options)?;
    let is_news = store.state().last_pass().is_some_and(|pass| *pass.id == *report.id);
    if is_news && spool::is_wanted(&place.state) {
        if let Err(error) = spool::keep(store, &report, sends_diffs, machine::now()) {
            report.errors.push(Failure::of(error));
            report.outcome = Outcome::Failed;
        }
    }
    // After a pass that wrote nothing too: the one before may have been cut short just before this.
    // What could not be tidied now is tidied after another pass.
    if let Err(error) = accept::tidy(store, *secrets, &place.own, machine::now()) {
        show::note(&error.to_string());
    }
    Ok(report)
}

fn plan(it: &Invocation) -> Result<u8, Error> {
    let place = Place::of(it)?;
    let (source, declaration, what) = declared(it, &place)?;
    let mut machine = place.machine()?;
    accept::guard(&mut machine, &declaration, &what)?;
    let reading = Reading::of(&place.state)?;
    accept::may(source, &declaration, &reading.state, claims(it), &what)?;
    let secrets = Secrets::read(&place.state)?;
    mark(&mut machine, secrets.as_ref());
    let mut watch = Terminal::new(it);
    let options = Options {
        trigger: Trigger::Command,
        diffs: true,
        claims: claims(it),
        own: &place.own,
        watch: &mut watch,
    };
    let ledger = Ledger::dry(&reading, secrets.as_ref());
    let works = [Work { source, declaration: &declaration }];
    let report = reconcile(&mut machine, ledger, &works, options)?;
    drop(watch);
    let code = said(it, &report)?;
    let idle = |line: &crate::report::Line| {
        matches!(line.outcome, Outcome::Unchanged | Outcome::NotApplicable | Outcome::Claimed)
    };
    match it.exit_code && code == 0 && !report.lines.iter().all(idle) {
        true => Ok(CHANGES),
        false => Ok(code),
    }
}

fn check(it: &Invocation) -> Result<u8, Error> {
    let place = Place::of(it)?;
    let (_, declaration, what) = declared(it, &place)?;
    let count = declaration.resources.len();
    if it.json {
        let sha256 = crate::digest::hex(&declaration.sha256);
        let (resources, sha256) = (Some(count), Some(sha256));
        return print_json(&Checked { schema: CHECK, resources, sha256, faults: &[] }).map(|()| 0);
    }
    if !it.quiet {
        let said = format!("{what}: {}, no fault", show::counted(count, "resource"));
        print(&format!("{}\n", show::plain(&said)))?;
    }
    Ok(0)
}

const CHECK: &str = "check/1";

/// What `check` has to say to a program.
#[derive(Serialize)]
struct Checked<'f> {
    schema: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    resources: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sha256: Option<String>,
    faults: &'f [Fault],
}

/// Says to a program how a command ended that could not do what it was to: in the shape that the
/// command would have answered in where it has words for that, else as an error.
pub(super) fn answer(command: Option<Command>, error: &Error) -> Result<(), Error> {
    #[derive(Serialize)]
    struct Shape {
        schema: &'static str,
        exit: u8,
        error: String,
    }
    match (command, error) {
        (Some(Command::Check), Error::Refused { faults, .. }) => {
            print_json(&Checked { schema: CHECK, resources: None, sha256: None, faults })
        }
        (Some(command), Error::Refused { what, faults }) => {
            let schema = if command == Command::Plan { PLAN } else { REPORT };
            print_json(&refused_report(schema, what, faults))
        }
        _ => {
            let (exit, error) = (error.exit_code(), error.to_string());
            print_json(&Shape { schema: "error/1", exit, error })
        }
    }
}

/// An editor reads the same document with and without `--json`, which names it as all others.
fn schema(it: &Invocation) -> Result<u8, Error> {
    let mut schema = declaration::schema();
    if it.json {
        schema.insert_str(1, "\n  \"schema\": \"schema/1\",");
    }
    print(&schema).map(|()| 0)
}

fn claims(it: &Invocation) -> Claims {
    match it.take {
        true => Claims::Take,
        false => Claims::BySource,
    }
}

/// Shows a report; the exit code that it stands for.
fn said(it: &Invocation, report: &Report) -> Result<u8, Error> {
    for failure in &report.errors {
        show::failure(failure);
    }
    if it.json {
        print_json(report)?;
    } else if !it.quiet {
        let paint = Paint { colored: it.colored(&stdout()) };
        print(&show::report(report, paint, it.verbose))?;
    }
    Ok(if report.outcome == Outcome::Failed { 1 } else { 0 })
}

fn version(it: &Invocation) -> Result<u8, Error> {
    #[derive(Serialize)]
    struct Shape {
        schema: &'static str,
        version: &'static str,
    }
    let version = env!("CARGO_PKG_VERSION");
    match it.json {
        true => print_json(&Shape { schema: "version/1", version }),
        false => print(&format!("nox-mesh-host {version}\n")),
    }
    .map(|()| 0)
}
