//! Children of this process: started so that none outlives it, awaited with a limit.
//!
//! The kernel kills them when the *thread* that forked them ends, so one thread that never
//! ends forks them all: a test's own thread would take a machine shared with others along.

use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{mpsc, LazyLock, Mutex};
use std::time::{Duration, Instant};

type Order = (Command, mpsc::Sender<io::Result<Child>>);

static FORKER: LazyLock<Mutex<mpsc::Sender<Order>>> = LazyLock::new(|| {
    let (orders, incoming) = mpsc::channel::<Order>();
    std::thread::spawn(move || {
        for (mut command, reply) in incoming {
            let child = command.spawn();
            // Nobody waiting any more means nobody to own it: it goes with the reply.
            if let Err(mpsc::SendError(Ok(mut child))) = reply.send(child) {
                let _ = child.kill();
                let _ = child.wait();
            }
        }
    });
    Mutex::new(orders)
});

/// Starts `command`; it is killed when this process ends, however it ends.
pub(crate) fn spawn(mut command: Command) -> io::Result<Child> {
    let parent = std::process::id();
    // SAFETY: only prctl and getppid are called between fork and exec, both async-signal-safe.
    unsafe {
        command.pre_exec(move || {
            if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) != 0 {
                return Err(io::Error::last_os_error());
            }
            // Between fork and prctl the parent may have died unnoticed.
            if libc::getppid() as u32 != parent {
                return Err(io::Error::other("the parent is gone"));
            }
            Ok(())
        });
    }
    let (reply, answer) = mpsc::channel();
    let orders = FORKER.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    orders.send((command, reply)).map_err(io::Error::other)?;
    drop(orders);
    answer.recv().map_err(io::Error::other)?
}

/// Lets `command` have the open file `fd`, under the same number. The caller keeps it open
/// until the command has been started.
pub(crate) fn pass(command: &mut Command, fd: RawFd) {
    // SAFETY: one fcntl, async-signal-safe, on the child's own copy of the descriptor table.
    unsafe {
        command.pre_exec(move || match libc::fcntl(fd, libc::F_SETFD, 0) {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        });
    }
}

/// Waits for the end of `child`, at most `limit`.
pub(crate) fn wait(child: &mut Child, limit: Duration) -> io::Result<Option<ExitStatus>> {
    let pidfd = pidfd(child)?;
    let deadline = Instant::now() + limit;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() >= deadline {
            return Ok(None);
        }
        poll(&mut [ready_to_read(pidfd.as_raw_fd())], deadline)?;
    }
}

/// Kills the process group that `child` leads, then waits for it. Safe against a pid used
/// again: until `child` is waited for, its pid names nothing else.
pub(crate) fn kill_group(child: &mut Child) {
    if matches!(child.try_wait(), Ok(None)) {
        // SAFETY: no memory is involved; the group is the child's own (`process_group(0)`).
        unsafe { libc::kill(-(child.id() as i32), libc::SIGKILL) };
        let _ = child.kill();
        let _ = child.wait();
    }
}

/// What a finished child left.
pub(crate) struct Finished {
    /// `None`: the limit passed and the child was killed.
    pub status: Option<ExitStatus>,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
}

/// Runs `command` with `input` on its standard input. Ends with the child, not with its
/// output: a daemon it left behind may hold the pipes open for good.
pub(crate) fn run(mut command: Command, input: &[u8], limit: Duration) -> io::Result<Finished> {
    command.process_group(0).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.stdin(if input.is_empty() { Stdio::null() } else { Stdio::piped() });
    let mut child = spawn(command)?;
    let done = converse(&mut child, input, limit);
    if !matches!(done, Ok(Finished { status: Some(_), .. })) {
        kill_group(&mut child);
    }
    done
}

fn converse(child: &mut Child, mut input: &[u8], limit: Duration) -> io::Result<Finished> {
    let deadline = Instant::now() + limit;
    let pidfd = pidfd(child)?;
    let mut stdin = child.stdin.take();
    let mut out = child.stdout.take().expect("stdout is piped");
    let mut err = child.stderr.take().expect("stderr is piped");
    let mut done = Finished { status: None, stdout: Vec::new(), stderr: Vec::new() };
    for fd in [out.as_raw_fd(), err.as_raw_fd()] {
        set_nonblocking(fd)?;
    }
    if let Some(pipe) = &stdin {
        set_nonblocking(pipe.as_raw_fd())?;
    }
    let (mut out_open, mut err_open) = (true, true);
    loop {
        let ended = child.try_wait()?;
        out_open = out_open && drain(&mut out, &mut done.stdout)?;
        err_open = err_open && drain(&mut err, &mut done.stderr)?;
        if ended.is_some() || Instant::now() >= deadline {
            done.status = ended;
            return Ok(done);
        }
        if let Some(pipe) = &mut stdin {
            match pipe.write(input) {
                Ok(n) => input = &input[n..],
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                // A child may end, or close its input, before it has read everything.
                Err(e) if e.kind() == io::ErrorKind::BrokenPipe => input = &[],
                Err(e) => return Err(e),
            }
            if input.is_empty() {
                stdin = None;
            }
        }
        let mut fds = vec![ready_to_read(pidfd.as_raw_fd())];
        fds.extend(out_open.then(|| ready_to_read(out.as_raw_fd())));
        fds.extend(err_open.then(|| ready_to_read(err.as_raw_fd())));
        if let Some(pipe) = &stdin {
            fds.push(libc::pollfd { fd: pipe.as_raw_fd(), events: libc::POLLOUT, revents: 0 });
        }
        poll(&mut fds, deadline)?;
    }
}

/// Reads what is there; false when the other end has been closed.
fn drain(from: &mut impl Read, into: &mut Vec<u8>) -> io::Result<bool> {
    match from.read_to_end(into) {
        Ok(_) => Ok(false),
        Err(e) if e.kind() == io::ErrorKind::WouldBlock => Ok(true),
        Err(e) => Err(e),
    }
}

fn pidfd(child: &Child) -> io::Result<OwnedFd> {
    // SAFETY: the call takes two integers; the descriptor it returns is new and ours.
    unsafe {
        let fd = libc::syscall(libc::SYS_pidfd_open, child.id() as libc::pid_t, 0);
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(OwnedFd::from_raw_fd(fd as RawFd))
    }
}

fn ready_to_read(fd: RawFd) -> libc::pollfd {
    libc::pollfd { fd, events: libc::POLLIN, revents: 0 }
}

fn poll(fds: &mut [libc::pollfd], deadline: Instant) -> io::Result<()> {
    let left = deadline.saturating_duration_since(Instant::now()).as_millis() + 1;
    let left = libc::c_int::try_from(left).unwrap_or(libc::c_int::MAX);
    // SAFETY: the pointer and the count describe `fds`, which outlives the call.
    let n = unsafe { libc::poll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, left) };
    match n {
        -1 if io::Error::last_os_error().kind() != io::ErrorKind::Interrupted => {
            Err(io::Error::last_os_error())
        }
        _ => Ok(()),
    }
}

fn set_nonblocking(fd: RawFd) -> io::Result<()> {
    // SAFETY: fcntl on a descriptor we hold, with integer arguments only.
    unsafe {
        let flags = libc::fcntl(fd, libc::F_GETFL);
        if flags < 0 || libc::fcntl(fd, libc::F_SETFL, flags | libc::O_NONBLOCK) < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str, input: &[u8], limit_ms: u64) -> Finished {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        run(command, input, Duration::from_millis(limit_ms)).unwrap()
    }

    #[test]
    fn much_input_and_output_pass_through() {
        let input = vec![b'x'; 1 << 20];
        let done = sh("cat; echo said >&2", &input, 20_000);
        assert!(done.status.unwrap().success());
        assert_eq!(done.stdout, input);
        assert_eq!(done.stderr, b"said\n");
    }

    #[test]
    fn a_child_over_its_limit_is_killed_with_its_children() {
        let done = sh("sleep 1000 & echo $!; wait", &[], 300);
        assert!(done.status.is_none());
        let pid = String::from_utf8(done.stdout).unwrap();
        let stat = format!("/proc/{}/stat", pid.trim());
        let is_over = || std::fs::read_to_string(&stat).map_or(true, |s| s.contains(") Z "));
        crate::eventually("the grandchild is over", Duration::from_secs(10), is_over);
    }

    #[test]
    fn a_daemon_left_behind_does_not_hold_the_run() {
        let begin = Instant::now();
        let done = sh("sleep 5 & echo gone", &[], 4_000);
        assert!(done.status.unwrap().success());
        assert_eq!(done.stdout, b"gone\n");
        assert!(begin.elapsed() < Duration::from_secs(3));
    }
}
