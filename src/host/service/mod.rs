//! The service: a loop around one poll(2), in which everything takes its turn and nothing waits.
//!
//! A pass is a child (`running`), so plain blocking code can neither hold up a sign of life nor
//! take the service down with it; `errand` is what crosses between the two. When a pass is due is
//! `schedule`'s to say, and what else the loop attends to stands behind `side`.
//!
//! Absent on purpose: the store, which only children open; threads; a listening socket.

pub mod contest;
pub mod errand;
mod known;
mod log;
mod metrics;
mod publish;
mod running;
pub mod schedule;
pub mod side;
pub mod status;

use std::collections::HashSet;
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::path::PathBuf;
use std::time::Duration;

use crate::config::Config;
use crate::error::{Error, Stage};
use crate::machine::{self, uptime, Inotify, Notify, Signals, Timer};
use crate::store::{self, Lock, Name};
use errand::{Order, Told};
use known::Known;
use log::{Log, Priority};
use running::{Running, Unable};
use schedule::{Cause, Schedule, QUIET};
use side::Side;
use status::Doing;

/// How long a pass has, once the service was asked to end, to finish the resource in hand: a little
/// less than the unit's TimeoutStopSec.
const STOP_LIMIT: Duration = Duration::from_secs(285);

/// A pass that found the lock held by another is tried again after this long.
const LOCKED_PAUSE: Duration = Duration::from_secs(5);

/// Reports that were taken wait this long for a pass that records it along with its own news.
const RECORD_PAUSE: Duration = Duration::from_secs(2);

/// What of the state directory matters: the journal, whoever writes it.
const STORE_EVENTS: u32 = libc::IN_MODIFY | libc::IN_CREATE | libc::IN_MOVED_TO;

/// Where things are.
pub struct Site {
    /// The root, absolute.
    pub root: PathBuf,
    /// The state directory, absolute.
    pub state: PathBuf,
    /// The flags that tell a child the same.
    pub flags: Vec<OsString>,
    /// Reads the configuration.
    pub configure: Box<dyn Fn() -> Result<Config, Error>>,
}

/// The service.
struct Service<'s> {
    site: Site,
    config: Config,
    side: &'s mut dyn Side,
    notify: Notify,
    log: Log,
    timer: Timer,
    signals: Signals,
    schedule: Schedule,
    running: Option<Running>,
    /// Armed by the last pass.
    drift: Option<Inotify>,
    /// It has something to read, which waits until then.
    drift_at: Option<Duration>,
    /// On the state directory.
    store: Option<Inotify>,
    store_at: Option<Duration>,
    /// Names and watches that the drift of the last pass is judged by.
    awaited: HashSet<(i32, Box<str>)>,
    contested: HashSet<i32>,
    known: Known,
    /// Taken reports that are not recorded yet, and when they are to be.
    sent: Vec<String>,
    sent_at: Option<Duration>,
    life_at: Option<Duration>,
    stopping: bool,
}

/// Runs the service until it is asked to end.
///
/// # Errors
/// Another one runs on this state directory, or the kernel refuses what the loop is made of.
pub fn run(site: Site, side: &mut dyn Side) -> Result<(), Error> {
    let failed = |error: io::Error| Error::failed(Stage::Observe, "set up the service", error);
    let config = (site.configure)()?;
    store::private_directory(&site.state)?;
    let _lock = Lock::take(&site.state, Name::Run, Duration::ZERO)?;
    // Before anything else is opened: a signal must not end us by half.
    let signals = Signals::new(&[libc::SIGTERM, libc::SIGINT, libc::SIGHUP]).map_err(failed)?;
    let store = Inotify::new()
        .and_then(|inotify| inotify.add(&site.state, STORE_EVENTS).map(|_| inotify))
        .ok();
    let now = uptime();
    let mut service = Service {
        schedule: Schedule::new(config.interval(), now),
        known: Known::new(machine::now()),
        config,
        side,
        notify: Notify::of_environment(),
        log: Log::of_environment(),
        timer: Timer::new().map_err(failed)?,
        signals,
        running: None,
        drift: None,
        drift_at: None,
        store,
        store_at: None,
        awaited: HashSet::new(),
        contested: HashSet::new(),
        sent: Vec::new(),
        sent_at: None,
        life_at: None,
        stopping: false,
        site,
    };
    service.begin(now);
    service.attend().map_err(|error| Error::failed(Stage::Observe, "wait", error))
}

impl Service<'_> {
    fn begin(&mut self, now: Duration) {
        if self.store.is_none() {
            let text = "changes to the store by others are seen at the next pass only: inotify(7) \
                        has no instance left (fs.inotify.max_user_instances)";
            self.log.say(Priority::Warning, text);
        }
        self.life_at = self.notify.every().map(|every| now + every);
        let version = env!("CARGO_PKG_VERSION");
        self.log.say(Priority::Info, &format!("service started, version {version}"));
        // Before the first pass, which may take long or bring up what waits for us.
        self.notify.say("READY=1\nSTATUS=the first pass is due");
        self.publish();
    }

    /// The loop.
    fn attend(&mut self) -> io::Result<()> {
        loop {
            let now = uptime();
            self.due(now);
            if self.stopping && self.running.is_none() {
                self.log.say(Priority::Info, "service stopped");
                return Ok(());
            }
            self.timer.set(self.next())?;
            let (mut fds, of_side) = self.descriptors();
            self.known.waits(uptime().saturating_sub(now));
            machine::wait(&mut fds)?;
            let now = uptime();
            let is_ready = |fd: RawFd| fds.iter().any(|it| it.fd == fd && it.revents != 0);
            if is_ready(self.timer.as_raw_fd()) {
                self.timer.drain();
            }
            if self.drift.as_ref().is_some_and(|drift| is_ready(drift.as_raw_fd())) {
                self.drift_at = Some(now + QUIET);
            }
            if self.store.as_ref().is_some_and(|store| is_ready(store.as_raw_fd())) {
                self.store_at = Some(now + QUIET);
            }
            let ready: Vec<(RawFd, i16)> = fds[of_side..]
                .iter()
                .filter(|it| it.revents != 0)
                .map(|it| (it.fd, it.revents))
                .collect();
            self.side_turn(&ready, now);
            while let Some(signal) = self.signals.take() {
                self.signalled(signal, now);
            }
        }
    }

    /// What is polled, and from where on it is the side's. Drift is not read while a pass runs,
    /// which looks at everything anyway, nor a second time before it has been judged.
    fn descriptors(&self) -> (Vec<libc::pollfd>, usize) {
        let entry = |fd, events| libc::pollfd { fd, events, revents: 0 };
        let mut fds = vec![
            entry(self.timer.as_raw_fd(), libc::POLLIN),
            entry(self.signals.as_raw_fd(), libc::POLLIN),
        ];
        match &self.running {
            Some(running) => fds.extend(running.descriptors().map(|fd| entry(fd, libc::POLLIN))),
            None => {
                let drift = self.drift.as_ref().filter(|_| self.drift_at.is_none());
                let drift = drift.filter(|_| !self.known.is_paused());
                let store = self.store.as_ref().filter(|_| self.store_at.is_none());
                let both = [drift, store].into_iter().flatten();
                fds.extend(both.map(|it| entry(it.as_raw_fd(), libc::POLLIN)));
            }
        }
        let of_side = fds.len();
        fds.extend(self.side.interests().into_iter().map(|(fd, events)| entry(fd, events)));
        (fds, of_side)
    }

    /// When something is to be done at the latest.
    fn next(&self) -> Duration {
        let running = self.running.as_ref().map(Running::deadline);
        let idle = self.running.is_none() && !self.stopping;
        let pass = idle.then(|| self.schedule.next());
        let idle = |at: Option<Duration>| at.filter(|_| idle);
        let all = [
            running,
            pass,
            idle(self.drift_at),
            idle(self.store_at),
            idle(self.sent_at),
            self.life_at,
            self.side.deadline(),
        ];
        all.into_iter().flatten().min().unwrap_or(Duration::MAX)
    }

    /// Does what is due.
    fn due(&mut self, now: Duration) {
        if let Some(at) = self.life_at.filter(|&at| at <= now) {
            self.notify.say("WATCHDOG=1");
            let every = self.notify.every().unwrap_or(Duration::MAX);
            self.life_at = Some(at.max(now.saturating_sub(every)) + every);
        }
        if let Some(mut running) = self.running.take() {
            let before = running.doing.clone();
            if running.turn(now) {
                self.ended(running, now);
            } else {
                if running.doing != before {
                    let doing = running.doing.as_deref().unwrap_or_default();
                    self.notify.say(&format!("STATUS=pass: {}", crate::plain::plain(doing)));
                }
                self.running = Some(running);
            }
        }
        if self.running.is_some() || self.stopping {
            return;
        }
        if self.drift_at.is_some_and(|at| at <= now) {
            self.drift_at = None;
            self.judge_drift(now);
        }
        if self.store_at.is_some_and(|at| at <= now) {
            self.store_at = None;
            self.judge_store(now);
        }
        if let Some(cause) = self.schedule.take(now) {
            self.pass(Some(cause), now);
        } else if self.sent_at.is_some_and(|at| at <= now) {
            self.pass(None, now);
        }
    }

    fn side_turn(&mut self, ready: &[(RawFd, i16)], now: Duration) {
        let is_due = self.side.deadline().is_some_and(|at| at <= now);
        if ready.is_empty() && !is_due {
            return;
        }
        let before = self.side.is_up();
        for cause in self.side.turn(ready, now) {
            match cause {
                Cause::Reconnect => self.schedule.want_slowly(cause, now),
                _ => self.schedule.want(cause, now),
            }
        }
        let sent = self.side.sent();
        if !sent.is_empty() {
            self.sent.extend(sent);
            self.sent_at.get_or_insert(now + RECORD_PAUSE);
        }
        if self.side.is_up() != before {
            self.publish();
        }
    }

    fn signalled(&mut self, signal: libc::c_int, now: Duration) {
        if signal == libc::SIGHUP {
            return self.reload(now);
        }
        if self.stopping {
            return;
        }
        self.stopping = true;
        self.notify.say("STOPPING=1\nSTATUS=finishing the resource in hand");
        self.log.say(Priority::Info, "asked to end");
        self.side.stop();
        if let Some(running) = &mut self.running {
            running.ask(now, STOP_LIMIT);
        }
        self.publish();
    }

    /// The configuration again, and a pass.
    fn reload(&mut self, now: Duration) {
        self.notify.say(&format!("RELOADING=1\nMONOTONIC_USEC={}", machine::monotonic_us()));
        match (self.site.configure)() {
            Ok(config) => {
                self.schedule.set_interval(config.interval(), now);
                self.config = config;
                self.log.say(Priority::Info, "configuration read again; a pass is due");
            }
            Err(error) => {
                let text = format!("{error}; what was configured before stays in force");
                self.log.say(Priority::Error, &text);
            }
        }
        self.schedule.want(Cause::Command, now);
        self.notify.say("READY=1");
    }

    /// Starts a child: for a pass, or only to record what was taken.
    fn pass(&mut self, cause: Option<Cause>, now: Duration) {
        let fresh = cause.and_then(|_| match Inotify::new() {
            Ok(inotify) => Some(inotify),
            Err(error) => {
                let text =
                    format!("drift waits for the timer: make an inotify(7) instance: {error}");
                self.log.say_once("instance", Priority::Warning, &text);
                None
            }
        });
        let order = Order {
            pass: cause.map(Cause::trigger),
            drift: None,
            contested: self.known.contested_keys(),
            sent: std::mem::take(&mut self.sent),
        };
        self.sent_at = None;
        match Running::start(cause, order, &self.site.flags, fresh, now) {
            Ok(running) => self.running = Some(running),
            Err(error) => {
                let said = format!("start a pass: {error}");
                self.lost(cause, &Unable { exit: 1, said }, now);
            }
        }
        self.publish();
    }

    /// A child is over.
    fn ended(&mut self, running: Running, now: Duration) {
        let Running { cause, fresh, sent, outcome, .. } = running;
        match outcome {
            Some(Ok(told)) => {
                if cause.is_some() {
                    // The old one saw what the pass itself did.
                    (self.drift, self.drift_at) = (fresh, None);
                    let pair = |(watch, name): &(i32, String)| (*watch, name.as_str().into());
                    self.awaited = told.awaited.iter().map(pair).collect();
                    self.contested = told.contested.iter().copied().collect();
                }
                self.told(cause, *told, now);
            }
            Some(Err(unable)) => {
                self.sent.extend(sent);
                self.lost(cause, &unable, now);
            }
            None => unreachable!("what is over has come to something"),
        }
        // Whoever wrote the store meanwhile, or right after: it is looked at, and judged by length.
        self.store_at = self.store.as_ref().map(|_| now + QUIET);
        self.publish();
    }

    fn told(&mut self, cause: Option<Cause>, told: Told, now: Duration) {
        self.side.told(&told);
        self.known.take(&mut self.log, told, 2 * self.config.interval(), now);
        if let Some(cause) = cause {
            self.schedule.ended(cause, now, machine::dice());
            if let Some(span) = self.known.pause_ends(machine::now()) {
                self.schedule.want(Cause::Timer, now + span);
            }
            if self.known.was_undone() {
                self.schedule.want_slowly(Cause::Contested, now);
            }
        }
    }

    fn lost(&mut self, cause: Option<Cause>, unable: &Unable, now: Duration) {
        if let Some(cause) = cause {
            self.schedule.ended(cause, now, machine::dice());
            if unable.exit == 4 {
                self.schedule.want(cause, now + LOCKED_PAUSE);
            }
        } else if !self.sent.is_empty() {
            self.sent_at = Some(now + self.config.interval());
        }
        self.known.unable(&mut self.log, unable, store::journal_place(&self.site.state));
    }

    /// What of the signs of drift is about something declared.
    fn judge_drift(&mut self, now: Duration) {
        let Some(drift) = &self.drift else { return };
        let (mut fast, mut slow, mut lost) = (false, false, false);
        for _ in 0..64 {
            let read = drift.read(&mut |seen| {
                let name = || String::from_utf8_lossy(seen.name).into_owned().into_boxed_str();
                if seen.mask & libc::IN_Q_OVERFLOW != 0 {
                    lost = true;
                } else if seen.mask & libc::IN_IGNORED != 0 {
                } else if !seen.name.is_empty() {
                    let comes = libc::IN_CREATE | libc::IN_MOVED_TO;
                    fast |= seen.mask & comes != 0 && self.awaited.contains(&(seen.watch, name()));
                } else if self.contested.contains(&seen.watch) {
                    slow = true;
                } else {
                    fast = true;
                }
            });
            if !matches!(read, Ok(true)) {
                break;
            }
        }
        if lost {
            self.known.overflow(&mut self.log);
            self.publish();
        }
        if fast || lost {
            self.schedule.want_slowly(Cause::Drift, now);
        } else if slow {
            self.schedule.want_slowly(Cause::Contested, now);
        }
    }

    /// Whether somebody else has written the journal since the last pass.
    fn judge_store(&mut self, now: Duration) {
        if let Some(store) = &self.store {
            for _ in 0..64 {
                if !matches!(store.read(&mut |_| ()), Ok(true)) {
                    break;
                }
            }
        }
        if self.known.journal() != store::journal_place(&self.site.state) {
            self.schedule.want(Cause::Command, now);
        }
    }

    /// Writes the status, tells the manager, and writes the metrics, where they are another's.
    fn publish(&mut self) {
        let doing = match (&self.running, self.stopping) {
            (_, true) => Doing::Stopping,
            (Some(Running { cause: Some(_), .. }), _) => Doing::Passing,
            _ if self.known.is_paused() => Doing::Paused,
            _ => Doing::Waiting,
        };
        let passing = self.running.as_ref().and_then(|it| it.cause).map(Cause::trigger);
        let wait = self.schedule.next().saturating_sub(uptime());
        let next = (doing == Doing::Waiting).then(|| machine::now().0 + wait.as_secs());
        let status = self.known.status(doing, passing, next, self.side);
        let text = serde_json::to_string(&status).expect("a status is plain JSON") + "\n";
        let place = status::place(&self.site.root);
        match publish::publish(&place, &text, 0o600) {
            Ok(()) => drop(self.log.settle("status")),
            Err(error) => {
                let text = format!("write {}: {error}", place.display());
                self.log.say_once("status", Priority::Warning, &text);
            }
        }
        if doing != Doing::Stopping {
            self.notify.say(&format!("STATUS={}", self.known.words(doing)));
        }
        let Some(path) = &self.config.metrics_file else { return };
        let text = self.known.metrics(self.side.is_up());
        match publish::publish(path, &text, 0o644) {
            Ok(()) => drop(self.log.settle("metrics")),
            Err(error) => {
                let text = format!("write metrics_file {}: {error}", path.display());
                self.log.say_once("metrics", Priority::Warning, &text);
            }
        }
    }
}
