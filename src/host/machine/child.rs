//! Running another program: its own process group, a fixed environment, a limit on everything.
//!
//! A child never has a terminal, nor an input but what it is given, never outlives its limit, and
//! leaves no zombie. What it leaves running on purpose (a daemon that it started) is let be, and
//! cannot hold us up. It ends with us, since the next run would start a second one beside it; all
//! but what must not be left half done, which is [`Bond::Free`].

use std::borrow::Cow;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::clock::Deadline;
use super::sys;
use super::words::{last_line, quoted, words};

/// Where programs are looked up, ours and our children's.
pub(super) const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// How much is kept of each output stream of a child whose words are only for a person, in bytes.
const SAID: usize = 64 << 10;
/// From the request to end to the kill.
const GRACE: Duration = Duration::from_secs(2);
/// The same for what must not be left half done.
const LONG_GRACE: Duration = Duration::from_secs(120);
/// Of what a child writes to memory, this much lies there at most before the rest is let go of.
const MOST_IN_MEMORY: u64 = 4 << 20;
/// From the kill to giving up on a process that the kernel does not let die.
const UNKILLABLE: Duration = Duration::from_secs(5);
/// How long the pipes are still read once the child itself has ended.
const DRAIN: Duration = Duration::from_millis(300);
/// The longest wait: poll(2) does not count the time that a machine sleeps, our limits do.
const LONGEST_WAIT: Duration = Duration::from_secs(1);
/// The longest wait where the kernel has no pidfd to wait for.
const BLIND_WAIT: Duration = Duration::from_millis(10);

/// What to run, and how.
#[derive(Debug)]
pub(super) struct Call<'a> {
    /// The program and its arguments.
    pub argv: &'a [&'a str],
    /// Variables added to the fixed ones.
    pub env: &'a [(&'a str, &'a str)],
    /// Working directory.
    pub workdir: &'a Path,
    /// What is on standard input instead of nothing.
    pub input: Option<File>,
    /// Where standard output goes instead of being kept.
    pub into: Option<File>,
    /// How much is kept of each output stream, in bytes: the last of it.
    pub cap: usize,
    /// What becomes of it when we end, or its limit passes.
    pub bond: Bond,
}

/// What becomes of a child when we end, and how it is ended at its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bond {
    /// It ends with us; at its limit its group is asked to end, and soon killed.
    Tied,
    /// It goes on without us, in a session of its own, and writes both its streams to memory, which
    /// unlike a pipe does not break when we end: pacman 6.0.2 dies of that with its lock held.
    /// At its limit it alone, not what it runs, is sent this signal and given a generous time.
    Free(i32),
}

impl Bond {
    /// The signal that asks it to end.
    fn asks(self) -> libc::c_int {
        match self {
            Bond::Tied => libc::SIGTERM,
            Bond::Free(signal) => signal,
        }
    }
}

impl<'a> Call<'a> {
    /// A plain call.
    pub fn new(argv: &'a [&'a str]) -> Call<'a> {
        let (env, workdir) = (&[], Path::new("/"));
        Call { argv, env, workdir, input: None, into: None, cap: SAID, bond: Bond::Tied }
    }
}

/// Why nothing was run, or its end was not seen.
#[derive(Debug)]
pub(super) enum Unrun {
    /// There is no such program; says where it was looked for.
    NotFound(String),
    /// Anything else.
    Failed(String),
}

impl Unrun {
    /// The words for it.
    pub fn into_cause(self) -> String {
        match self {
            Unrun::NotFound(cause) | Unrun::Failed(cause) => cause,
        }
    }
}

/// How a child ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    Exited(i32),
    /// By this signal, and not by us.
    Killed(i32),
    /// It was still running after this limit, and was ended.
    Overran(Duration),
}

impl fmt::Display for How {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            How::Exited(code) => write!(f, "exited {code}"),
            How::Killed(signal) => write!(f, "was killed by signal {signal}"),
            How::Overran(limit) => write!(f, "was still running after {} s", limit.as_secs_f32()),
        }
    }
}

/// What became of a child.
#[derive(Debug)]
pub(super) struct Ended {
    pub how: How,
    pub out: Tail,
    pub err: Tail,
}

impl Ended {
    /// All that it wrote on standard output. The error, which follows its name, says that this was
    /// more than is kept.
    pub fn answer(&self) -> Result<Cow<'_, str>, String> {
        match self.out.cut() {
            true => Err(format!("answered with more than {} bytes", self.out.cap)),
            false => Ok(String::from_utf8_lossy(self.out.bytes())),
        }
    }

    /// One line for a person: how it ended and the last that it said.
    pub fn said(&self) -> String {
        let how = self.how;
        let last = last_line(self.err.bytes()).or_else(|| last_line(self.out.bytes()));
        match last {
            Some(line) => format!("{how}: {line}"),
            None => format!("{how} and said nothing"),
        }
    }
}

/// The last of what a child wrote.
#[derive(Debug)]
pub(super) struct Tail {
    bytes: Vec<u8>,
    cap: usize,
    cut: bool,
}

impl Tail {
    fn new(cap: usize) -> Tail {
        Tail { bytes: Vec::new(), cap, cut: false }
    }

    /// At most the cap.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[self.bytes.len().saturating_sub(self.cap)..]
    }

    /// There was more, and it is gone.
    pub fn cut(&self) -> bool {
        self.cut
    }

    fn push(&mut self, piece: &[u8]) {
        self.bytes.extend_from_slice(piece);
        let surplus = self.bytes.len().saturating_sub(self.cap);
        self.cut |= surplus > 0;
        // Moving the kept part only once as much again has come keeps the cost linear.
        if surplus >= self.cap {
            self.bytes.drain(..surplus);
        }
    }
}

/// Runs `call` to its end, which it must reach within `limit`.
pub(super) fn run(call: Call, limit: Duration) -> Result<Ended, Unrun> {
    run_by(call, limit, pidfd)
}

/// As [`run`], the child's end being seen by what `pidfd` gives, or by asking where that is none.
pub(super) fn run_by(
    call: Call,
    limit: Duration,
    pidfd: fn(&Child) -> Option<OwnedFd>,
) -> Result<Ended, Unrun> {
    let memory = match call.bond {
        Bond::Tied => None,
        Bond::Free(_) => Some(sys::memory(c"said").map_err(|error| Unrun::Failed(words(&error)))?),
    };
    let mut child = spawn(&call, memory.as_ref())?;
    let pipes = [
        child.stdout.take().map(|pipe| File::from(OwnedFd::from(pipe))),
        child.stderr.take().map(|pipe| File::from(OwnedFd::from(pipe))),
    ];
    pipes.iter().flatten().for_each(no_blocking);
    let (pidfd, until) = (pidfd(&child), Deadline::after(limit));
    let tails = [Tail::new(call.cap), Tail::new(call.cap)];
    let phase = Phase::Running;
    Watch { child, bond: call.bond, pidfd, pipes, memory, tails, phase, until }.finish(limit)
}

/// Starts `call`, whose end is for the caller to see. What it says goes to `memory`, if there is
/// such a file.
pub(super) fn spawn(call: &Call, memory: Option<&File>) -> Result<Child, Unrun> {
    let name = call.argv.first().copied().unwrap_or_default();
    let program = find(name, call.workdir)?;
    if !call.workdir.is_dir() {
        let shown = quoted(call.workdir.as_os_str().as_encoded_bytes());
        return Err(Unrun::Failed(format!("its working directory {shown} is not there")));
    }
    let mut command = Command::new(&program);
    command
        .arg0(name)
        .args(call.argv.get(1..).unwrap_or_default())
        .env_clear()
        .envs([("PATH", PATH), ("LC_ALL", "C"), ("HOME", "/root")])
        .envs(call.env.iter().copied())
        .current_dir(call.workdir)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    if call.bond == Bond::Tied {
        command.process_group(0);
    }
    let failed = |error: io::Error| {
        Unrun::Failed(format!(
            "run {}: {}",
            quoted(program.as_os_str().as_encoded_bytes()),
            words(&error)
        ))
    };
    if let Some(input) = &call.input {
        command.stdin(input.try_clone().map_err(failed)?);
    }
    if let Some(into) = &call.into {
        command.stdout(into.try_clone().map_err(failed)?);
    }
    if let Some(memory) = memory {
        command.stdout(memory.try_clone().map_err(failed)?);
        command.stderr(memory.try_clone().map_err(failed)?);
    }
    let bond = call.bond;
    let parent = libc::pid_t::try_from(std::process::id()).expect("a process number is a pid_t");
    // SAFETY: what is called there is async-signal-safe and takes no memory.
    unsafe {
        command.pre_exec(move || {
            libc::umask(0o022);
            // What we ignore, it would go on ignoring.
            libc::signal(libc::SIGXFSZ, libc::SIG_DFL);
            libc::signal(bond.asks(), libc::SIG_DFL);
            match bond {
                Bond::Tied => end_with(parent, libc::SIGKILL),
                Bond::Free(_) if libc::setsid() < 0 => Err(io::Error::last_os_error()),
                Bond::Free(_) => Ok(()),
            }
        });
    }
    command.spawn().map_err(failed)
}

/// Has the kernel send this process `signal` when its parent ends, which is `parent` or has ended
/// already. A change of user undoes it.
pub(super) fn end_with(parent: libc::pid_t, signal: libc::c_int) -> io::Result<()> {
    // SAFETY: neither takes memory, and both are async-signal-safe.
    let (set, now) = unsafe { (libc::prctl(libc::PR_SET_PDEATHSIG, signal), libc::getppid()) };
    match set {
        0 if now == parent => Ok(()),
        0 => Err(io::Error::from_raw_os_error(libc::ESRCH)),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The file of the program `name`, which is looked up in `PATH`, or from the working directory of
/// the child where it holds a slash.
pub(super) fn find(name: &str, workdir: &Path) -> Result<PathBuf, Unrun> {
    use std::os::unix::fs::PermissionsExt;
    let runs = |path: &Path| {
        path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    };
    let shown = quoted(name.as_bytes());
    if name.contains('/') {
        let path = workdir.join(name);
        return match path.exists() {
            true => Ok(path),
            false => Err(Unrun::NotFound(format!("no program {shown}"))),
        };
    }
    let found = PATH.split(':').map(|dir| Path::new(dir).join(name)).find(|path| runs(path));
    found
        .filter(|_| !name.is_empty())
        .ok_or_else(|| Unrun::NotFound(format!("no program {shown} in {PATH}")))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Within its limit.
    Running,
    /// Asked to end.
    Asked,
    /// Killed.
    Killed,
    /// Ended; only its pipes are still read.
    Draining { overran: bool },
}

/// A child being waited for.
struct Watch {
    child: Child,
    bond: Bond,
    pidfd: Option<OwnedFd>,
    pipes: [Option<File>; 2],
    /// Where it writes instead.
    memory: Option<File>,
    tails: [Tail; 2],
    phase: Phase,
    /// When the phase is over.
    until: Deadline,
}

impl Watch {
    fn finish(mut self, limit: Duration) -> Result<Ended, Unrun> {
        let overran = loop {
            if let Phase::Draining { overran } = self.phase {
                if self.until.passed() || self.pipes.iter().all(Option::is_none) {
                    break overran;
                }
            }
            let ended = match self.wait_a_turn() {
                Ok(ended) => ended,
                Err(error) => {
                    self.signal(libc::SIGKILL);
                    return Err(Unrun::Failed(words(&error)));
                }
            };
            match self.phase {
                Phase::Draining { .. } => {}
                _ if ended => self.enter(Phase::Draining { overran: self.phase != Phase::Running }),
                _ if !self.until.passed() => {}
                Phase::Running => self.enter(Phase::Asked),
                Phase::Asked => self.enter(Phase::Killed),
                Phase::Killed => {
                    let cause = "it does not end, not even when killed";
                    return Err(Unrun::Failed(cause.to_string()));
                }
            }
        };
        if overran {
            // The group may have outlived its leader, whose number is ours until it is reaped.
            self.signal(libc::SIGKILL);
        }
        let status = self.child.wait().map_err(|error| Unrun::Failed(words(&error)))?;
        let how = match (overran, status.code()) {
            (true, _) => How::Overran(limit),
            (false, Some(code)) => How::Exited(code),
            (false, None) => How::Killed(status.signal().unwrap_or(0)),
        };
        if let Some(memory) = &self.memory {
            read_memory(memory, &mut self.tails[0])
                .map_err(|error| Unrun::Failed(words(&error)))?;
        }
        let [out, err] = self.tails;
        Ok(Ended { how, out, err })
    }

    fn enter(&mut self, phase: Phase) {
        self.phase = phase;
        self.until = Deadline::after(match phase {
            Phase::Running => Duration::MAX,
            Phase::Asked if self.bond == Bond::Tied => GRACE,
            Phase::Asked => LONG_GRACE,
            Phase::Killed => UNKILLABLE,
            Phase::Draining { .. } => DRAIN,
        });
        match phase {
            Phase::Asked if self.bond == Bond::Tied => self.signal(self.bond.asks()),
            Phase::Asked => {
                // SAFETY: takes no memory; the child has not been reaped.
                unsafe { libc::kill(self.number(), self.bond.asks()) };
            }
            Phase::Killed => self.signal(libc::SIGKILL),
            _ => {}
        }
    }

    /// Sends `signal` to the child's group. The child has not been reaped, so the number is its.
    fn signal(&self, signal: i32) {
        // SAFETY: takes no memory. That the group is gone already is the only way to fail.
        unsafe { libc::kill(-self.number(), signal) };
    }

    fn number(&self) -> i32 {
        i32::try_from(self.child.id()).expect("a process number is an i32")
    }

    /// Waits for something to happen, a little at most, and reads what there is: of each pipe one
    /// piece a turn, so that a flood does not hold up the clock. Says whether the child has ended.
    fn wait_a_turn(&mut self) -> io::Result<bool> {
        let draining = matches!(self.phase, Phase::Draining { .. });
        if let Some(memory) = &self.memory {
            trim(memory)?;
        }
        let watched = self.pidfd.as_ref().filter(|_| !draining);
        let longest = if self.pidfd.is_none() { BLIND_WAIT } else { LONGEST_WAIT };
        let wait = self.until.left().min(longest);
        let fd = |fd: Option<RawFd>| libc::pollfd {
            fd: fd.unwrap_or(-1),
            events: libc::POLLIN,
            revents: 0,
        };
        let mut fds = [
            fd(self.pipes[0].as_ref().map(AsRawFd::as_raw_fd)),
            fd(self.pipes[1].as_ref().map(AsRawFd::as_raw_fd)),
            fd(watched.map(AsRawFd::as_raw_fd)),
        ];
        // Rounded up, so that the end of a phase is not approached in turns of no time.
        let wait_ms = i32::try_from(wait.as_micros().div_ceil(1000)).unwrap_or(i32::MAX);
        // SAFETY: `fds` is writable and holds three entries.
        let ready = unsafe { libc::poll(fds.as_mut_ptr(), 3, wait_ms) };
        if ready < 0 {
            let error = io::Error::last_os_error();
            return match error.kind() {
                io::ErrorKind::Interrupted => Ok(false),
                _ => Err(error),
            };
        }
        for (at, polled) in fds[..2].iter().enumerate() {
            if polled.revents != 0 {
                self.read(at);
            }
        }
        Ok(match self.pidfd {
            Some(_) => fds[2].revents != 0,
            None => !draining && has_ended(&self.child),
        })
    }

    /// Reads one piece of a pipe, and lets go of one that is at its end or broken.
    fn read(&mut self, at: usize) {
        let Some(pipe) = &mut self.pipes[at] else { return };
        let mut piece = [0; 16 << 10];
        match pipe.read(&mut piece) {
            Ok(read @ 1..) => self.tails[at].push(&piece[..read]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Ok(0) | Err(_) => self.pipes[at] = None,
        }
    }
}

/// Lets go of the beginning of what lies in memory, where that has become much.
fn trim(memory: &File) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt;
    let meta = memory.metadata()?;
    if meta.blocks() * 512 <= MOST_IN_MEMORY {
        return Ok(());
    }
    let surplus = meta.len().saturating_sub(MOST_IN_MEMORY / 2);
    let surplus = libc::off_t::try_from(surplus).unwrap_or(libc::off_t::MAX);
    let flags = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    // SAFETY: takes no memory.
    match unsafe { libc::fallocate(memory.as_raw_fd(), flags, 0, surplus) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The last of what lies in memory. The child's own place in it is not moved.
fn read_memory(memory: &File, into: &mut Tail) -> io::Result<()> {
    use std::os::unix::fs::FileExt;
    let len = memory.metadata()?.len();
    let from = len.saturating_sub(into.cap as u64);
    let mut last = vec![0; usize::try_from(len - from).unwrap_or(into.cap)];
    memory.read_exact_at(&mut last, from)?;
    into.cut = from > 0;
    into.bytes = last;
    Ok(())
}

/// Has reads of `pipe` return at once.
pub(super) fn no_blocking(pipe: &File) {
    // SAFETY: takes no memory, and neither request can fail on an open pipe.
    unsafe {
        let flags = libc::fcntl(pipe.as_raw_fd(), libc::F_GETFL);
        libc::fcntl(pipe.as_raw_fd(), libc::F_SETFL, flags | libc::O_NONBLOCK);
    }
}

/// A descriptor that becomes readable when the child ends; `None` before Linux 5.3.
pub(super) fn pidfd(child: &Child) -> Option<OwnedFd> {
    // SAFETY: the arguments are those of pidfd_open(2), which takes no memory.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, child.id(), 0) };
    let fd = RawFd::try_from(fd).ok().filter(|fd| *fd >= 0)?;
    // SAFETY: the kernel has just handed out this descriptor; nobody else owns it.
    Some(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// The child has ended; it is not reaped yet.
fn has_ended(child: &Child) -> bool {
    // SAFETY: all zeroes is a valid `siginfo_t`, which is plain data.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: `info` is writable and of the size that the kernel fills.
    let result = unsafe { libc::waitid(libc::P_PID, child.id(), &mut info, flags) };
    // SAFETY: the kernel has filled `info`; zero means that nothing has ended.
    result == 0 && unsafe { info.si_pid() } != 0
}
