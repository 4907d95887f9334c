//! Running a tool to its end: how long it took, how much memory it held, what it wrote.

use std::fs::File;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// A run that takes longer is killed by its own alarm clock.
const LIMIT_S: u32 = 900;

/// One run.
#[derive(Clone, Copy)]
pub struct Run {
    /// From the start of the process to its end.
    pub wall: Duration,
    /// The largest resident set that it or a child it waited for had, in bytes.
    pub peak: u64,
}

/// Runs `argv` with no input and its output thrown away; what it says on stderr goes to `said` and
/// becomes the error where it does not exit 0.
pub fn run(argv: &[String], said: &Path) -> io::Result<Run> {
    let mut command = Command::new(&argv[0]);
    command.args(&argv[1..]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(File::create(said)?);
    // SAFETY: between fork and exec only alarm(2) is called, which is async-signal-safe.
    unsafe {
        command.pre_exec(|| {
            libc::alarm(LIMIT_S);
            Ok(())
        });
    }
    let start = Instant::now();
    let child = command.spawn()?;
    let (status, usage) = wait(child.id())?;
    let wall = start.elapsed();
    if !status.success() {
        let said = std::fs::read(said)?;
        let said = String::from_utf8_lossy(&said[said.len().saturating_sub(600)..]).into_owned();
        return Err(io::Error::other(format!("{status}: {}", said.trim())));
    }
    Ok(Run { wall, peak: usage.ru_maxrss as u64 * 1024 })
}

fn wait(pid: u32) -> io::Result<(ExitStatus, libc::rusage)> {
    let (mut status, mut usage) = (0, std::mem::MaybeUninit::<libc::rusage>::zeroed());
    loop {
        // SAFETY: both pointers are to live values of the types that wait4 writes, and the pid is
        // of a child that nobody else waits for.
        let got = unsafe { libc::wait4(pid as i32, &mut status, 0, usage.as_mut_ptr()) };
        if got == pid as i32 {
            // SAFETY: all zeros is a valid rusage, and wait4 has filled it in.
            return Ok((ExitStatus::from_raw(status), unsafe { usage.assume_init() }));
        }
        let cause = io::Error::last_os_error();
        if cause.kind() != io::ErrorKind::Interrupted {
            return Err(cause);
        }
    }
}

/// Where `program` is, if a plain search of `PATH` finds it.
pub fn found(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(program).is_file())
}

/// The calls of a run of `argv` that write, name, remove or sync anything. Writing to stdout and
/// stderr does not count, nor does a call that the kernel refused. Needs strace.
pub fn writes(argv: &[String], log: &Path) -> io::Result<Vec<String>> {
    const CALLS: &str = "trace=write,pwrite64,writev,pwritev,pwritev2,sendfile,copy_file_range,\
        fsync,fdatasync,sync,syncfs,sync_file_range,msync,fallocate,ftruncate,truncate,\
        rename,renameat,renameat2,unlink,unlinkat,rmdir,mkdir,mkdirat,mknod,mknodat,\
        symlink,symlinkat,link,linkat,creat,chmod,fchmod,fchmodat,chown,fchown,lchown,fchownat,\
        utimensat,setxattr,fsetxattr,lsetxattr";
    let mut traced =
        ["strace", "-f", "-qq", "-e", "signal=none", "-e", CALLS, "-o"].map(String::from).to_vec();
    traced.push(log.display().to_string());
    traced.extend_from_slice(argv);
    run(&traced, &log.with_extension("said"))?;
    let text = std::fs::read_to_string(log)?;
    let counts = |line: &&str| !is_output(line) && !line.contains(" = -1 E");
    Ok(text.lines().filter(counts).map(String::from).collect())
}

/// `PID write(1, …` or `2`.
fn is_output(line: &str) -> bool {
    let call = line.trim_start_matches(|c: char| c.is_ascii_digit() || c == ' ');
    ["write(", "writev("].iter().any(|name| {
        call.strip_prefix(name).is_some_and(|rest| rest.starts_with("1,") || rest.starts_with("2,"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_output_is_output() {
        for line in ["12 write(1, \"x\", 1) = 1", "9  writev(2, [{}], 1) = 4"] {
            assert!(is_output(line), "{line}");
        }
        for line in ["12 write(3, \"x\", 1) = 1", "12 fsync(1) = 0", "write(11, \"\", 0) = 0", ""] {
            assert!(!is_output(line), "{line}");
        }
    }

    #[test]
    fn a_run_that_fails_is_an_error_in_its_own_words() {
        let said = std::env::temp_dir().join(format!("mesh-bench-said-{}", std::process::id()));
        let argv = ["sh", "-c", "echo no luck >&2; exit 3"].map(String::from);
        let cause = run(&argv, &said).err().expect("it exits 3").to_string();
        assert!(cause.contains("exit status: 3") && cause.contains("no luck"), "{cause}");
        let quick = run(&["true".to_owned()], &said).expect("true is true");
        assert!(quick.peak > 0 && quick.wall > Duration::ZERO);
        std::fs::remove_file(&said).unwrap();
    }
}
