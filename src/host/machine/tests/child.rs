//! Children: everything about them has an end.

use std::os::unix::fs::PermissionsExt;
use std::time::Instant;

use super::super::child::{run, run_by, Bond, Call, Ended, How, Unrun, PATH};
use super::*;
use crate::resource::{Command, Step};

const SHORT: Duration = Duration::from_millis(200);

fn shell(script: &str, limit: Duration) -> Ended {
    run(Call::new(&["sh", "-c", script]), limit).unwrap()
}

#[test]
fn a_child_says_how_it_ended_and_what_it_last_said() {
    let ended = shell("echo out; echo first >&2; echo last >&2; exit 3", LIMIT);
    assert_eq!((ended.how, ended.out.bytes()), (How::Exited(3), &b"out\n"[..]));
    assert_eq!(ended.said(), "exited 3: \"last\"");
    let ended = shell("kill -9 $$", LIMIT);
    assert_eq!(
        (ended.how, ended.said().as_str()),
        (How::Killed(9), "was killed by signal 9 and said nothing")
    );
    assert_eq!(shell("true", LIMIT).how, How::Exited(0));
}

#[test]
fn a_child_that_has_ended_and_let_go_of_its_pipes_is_not_waited_for() {
    let took = |_| {
        let started = Instant::now();
        shell("true", LIMIT);
        started.elapsed()
    };
    let fastest = (0..5).map(took).min().unwrap();
    assert!(fastest < Duration::from_millis(250), "{fastest:?}");
}

#[test]
fn a_childs_surroundings_are_the_hosts_and_not_ours() {
    let ended = shell("env; pwd; umask; cat", LIMIT);
    let mut lines: Vec<&str> = std::str::from_utf8(ended.out.bytes()).unwrap().lines().collect();
    lines.retain(|line| {
        !line.starts_with("PWD=") && !line.starts_with("_=") && !line.starts_with("SHLVL=")
    });
    lines.sort_unstable();
    assert_eq!(lines, ["/", "0022", "HOME=/root", "LC_ALL=C", &format!("PATH={PATH}")]);
    let call = Call {
        env: &[("A", "b c"), ("HOME", "/h")],
        workdir: Path::new("/proc"),
        ..Call::new(&["sh", "-c", "echo $A $HOME $PWD"])
    };
    assert_eq!(run(call, LIMIT).unwrap().out.bytes(), b"b c /h /proc\n");
}

#[test]
fn a_program_with_a_slash_is_looked_up_from_its_working_directory() {
    let scratch = Scratch::new();
    scratch.directory("/d").file("/d/go", "#!/bin/sh\necho here: $PWD\n");
    std::fs::set_permissions(scratch.at("/d/go"), PermissionsExt::from_mode(0o755)).unwrap();
    let go = |name, at: &str| {
        let workdir = &scratch.at(at);
        run(Call { workdir, ..Call::new(&[name]) }, LIMIT).map(|ended| ended.out.bytes().to_vec())
    };
    let here = format!("here: {}\n", scratch.at("/d").display());
    assert_eq!(go("./go", "/d").unwrap(), here.as_bytes());
    assert!(matches!(go("./go", "/"), Err(Unrun::NotFound(_))));
    // The caller's own directory has it, and is not asked.
    assert!(std::fs::exists("src/host/main.rs").unwrap());
    assert!(matches!(go("src/host/main.rs", "/d"), Err(Unrun::NotFound(_))));
}

#[test]
fn a_child_ends_with_the_host_and_minds_limits_that_the_host_does_not() {
    let status = shell("cat /proc/self/status", LIMIT);
    let text = String::from_utf8(status.out.bytes().to_vec()).unwrap();
    let ignored = text.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap().trim();
    let ignored = u64::from_str_radix(ignored, 16).unwrap();
    assert_eq!(ignored & 1 << (libc::SIGXFSZ - 1), 0);
}

#[test]
fn a_child_beyond_its_limit_is_ended_with_all_its_group() {
    let scratch = Scratch::new();
    let pid = scratch.at("/pid");
    let script = format!("sleep 1000 & echo $! > {}; echo waiting; wait", pid.display());
    let ended = shell(&script, SHORT);
    assert_eq!(ended.how, How::Overran(SHORT));
    assert_eq!(ended.said(), "was still running after 0.2 s: \"waiting\"");
    assert!(ends(pid_in(&scratch)));
}

#[test]
fn a_child_that_will_not_end_is_killed() {
    let scratch = Scratch::new();
    let (pid, deaf) = (scratch.at("/pid"), scratch.at("/deaf"));
    let deafness = format!("trap '' TERM; echo $$ > {}; while :; do sleep 9; done", pid.display());
    scratch.file("/deaf", deafness);
    let began = Instant::now();
    let ended = shell(&format!("trap '' TERM; sh {} & wait; wait", deaf.display()), SHORT);
    assert_eq!(ended.how, How::Overran(SHORT));
    assert!(began.elapsed() < Duration::from_secs(20));
    assert!(ends(pid_in(&scratch)));
}

fn pid_in(scratch: &Scratch) -> libc::pid_t {
    String::from_utf8(scratch.read("/pid")).unwrap().trim().parse().unwrap()
}

/// The process is gone, or goes within ten seconds: a kill is not done when kill(2) returns.
fn ends(pid: libc::pid_t) -> bool {
    // SAFETY: the arguments are those of pidfd_open(2), which takes no memory.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    if fd < 0 {
        return true;
    }
    let mut fd = libc::pollfd { fd: fd as i32, events: libc::POLLIN, revents: 0 };
    // SAFETY: `fd` is writable, and one entry.
    let ready = unsafe { libc::poll(&mut fd, 1, 10_000) };
    // SAFETY: the descriptor was opened above and is used nowhere else.
    unsafe { libc::close(fd.fd) };
    ready == 1
}

#[test]
fn a_grandchild_that_holds_the_pipes_holds_nobody_up_and_is_let_be() {
    let scratch = Scratch::new();
    let script = format!("sleep 1000 & echo $! > {}; echo done", scratch.at("/pid").display());
    let began = Instant::now();
    let ended = shell(&script, LIMIT);
    assert_eq!((ended.how, ended.out.bytes()), (How::Exited(0), &b"done\n"[..]));
    assert!(began.elapsed() < Duration::from_secs(20));
    let pid = pid_in(&scratch);
    // SAFETY: takes no memory; the process is the one that was just started here.
    let (still_there, killed) = unsafe { (libc::kill(pid, 0), libc::kill(pid, libc::SIGKILL)) };
    assert_eq!((still_there, killed), (0, 0));
}

#[test]
fn of_a_flood_the_last_is_kept() {
    let flood = "i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done; echo the end";
    let ended = run(Call { cap: 1000, ..Call::new(&["sh", "-c", flood]) }, LIMIT).unwrap();
    assert_eq!((ended.out.bytes().len(), ended.out.cut()), (1000, true));
    assert!(ended.out.bytes().ends_with(b"line 19999\nthe end\n"));
    let exact = run(Call { cap: 4, ..Call::new(&["echo", "abc"]) }, LIMIT).unwrap();
    assert_eq!((exact.out.bytes(), exact.out.cut()), (&b"abc\n"[..], false));
    let endless = run(Call { cap: 1000, ..Call::new(&["yes"]) }, SHORT).unwrap();
    assert_eq!((endless.how, endless.out.bytes().len()), (How::Overran(SHORT), 1000));
}

#[test]
fn a_kernel_without_pidfd_shows_a_childs_end_too() {
    let blind = |script, limit| run_by(Call::new(&["sh", "-c", script]), limit, |_| None).unwrap();
    let ended = blind("echo out; exit 5", LIMIT);
    assert_eq!((ended.how, ended.out.bytes()), (How::Exited(5), &b"out\n"[..]));
    assert_eq!(blind("exec >&- 2>&-; exit 6", LIMIT).how, How::Exited(6));
    assert_eq!(blind("kill -9 $$", LIMIT).how, How::Killed(9));
    assert_eq!(blind("sleep 1000", SHORT).how, How::Overran(SHORT));
}

#[test]
fn a_child_that_closes_its_output_is_still_waited_for() {
    let ended = shell("exec >&- 2>&-; sleep 0.1; exit 7", LIMIT);
    assert_eq!(ended.how, How::Exited(7));
}

#[test]
fn what_cannot_be_run_says_where_it_was_looked_for() {
    let scratch = Scratch::new();
    let plain = scratch.file("/plain", "x").at("/plain");
    let not_found = |argv: &[&str]| match run(Call::new(argv), LIMIT) {
        Err(Unrun::NotFound(cause)) => cause,
        other => panic!("{other:?}"),
    };
    assert_eq!(
        not_found(&["no-such-program"]),
        format!("no program \"no-such-program\" in {PATH}")
    );
    assert_eq!(not_found(&["/no/such"]), "no program \"/no/such\"");
    not_found(&[""]);
    not_found(&[]);
    fn failed(call: Call) -> String {
        match run(call, LIMIT) {
            Err(Unrun::Failed(cause)) => cause,
            other => panic!("{other:?}"),
        }
    }
    let plain = plain.to_str().unwrap();
    assert!(failed(Call::new(&[plain])).ends_with("permission denied"));
    assert!(failed(Call::new(&["echo", "a\0b"])).contains("nul byte"));
    let workdir = Path::new("/no/such");
    let cause = failed(Call { workdir, ..Call::new(&["true"]) });
    assert_eq!(cause, "its working directory \"/no/such\" is not there");
}

#[test]
fn no_child_is_left_a_zombie() {
    let mine = std::process::id().to_string();
    let script = format!("echo $$; test $PPID = {mine}");
    let ended = shell(&script, LIMIT);
    assert_eq!(ended.how, How::Exited(0));
    let pid = String::from_utf8(ended.out.bytes().to_vec()).unwrap();
    assert!(!Path::new(&format!("/proc/{}", pid.trim())).exists());
}

#[test]
fn a_check_passes_by_its_exit_code_alone() {
    //
    let mut machine = Machine::open(Path::new("/"), Own::default()).unwrap();
    let mut check = |argv: &[&str], limit| {
        let argv: Vec<Box<str>> = argv.iter().map(|&argument| argument.into()).collect();
        let command = Command { argv: &argv, env: &[], workdir: None };
        match machine.ask(&Question::Check(command), limit) {
            Ok(Answer::Check(answer)) => Ok((answer.passed, answer.said)),
            Ok(other) => panic!("{other:?}"),
            Err(trouble) => Err(trouble),
        }
    };
    assert!(check(&["true"], LIMIT).unwrap().0);
    let (passed, said) = check(&["sh", "-c", "echo no >&2; exit 1"], LIMIT).unwrap();
    assert_eq!((passed, said.as_str()), (false, "exited 1: \"no\""));
    let (passed, said) = check(&["no-such-program"], LIMIT).unwrap();
    assert!(!passed && said.starts_with("no program \"no-such-program\" in /usr/local/sbin:"));
    trouble(check(&["sleep", "1000"], SHORT), "it was still running after 0.2 s");
}

#[test]
fn a_run_that_does_not_exit_0_is_a_failure_in_its_own_words() {
    //
    let mut machine = Machine::open(Path::new("/"), Own::default()).unwrap();
    let mut run = |script: &str, limit| {
        let argv = ["sh".into(), "-c".into(), script.into()];
        machine.take(&Step::Run(Command { argv: &argv, env: &[], workdir: None }), limit)
    };
    run("true", LIMIT).unwrap();
    let failed = trouble(run("echo no such thing; exit 4", LIMIT), "exited 4: \"no such thing\"");
    assert_eq!(failed.doing, "run \"sh\"");
    trouble(run("sleep 1000", SHORT), "was still running after 0.2 s");
}

/// As a transaction is run: by this signal at its limit.
fn free(script: &str, limit: Duration) -> Ended {
    let argv = ["sh", "-c", script];
    run(Call { bond: Bond::Free(libc::SIGINT), cap: 1000, ..Call::new(&argv) }, limit).unwrap()
}

#[test]
fn what_must_be_finished_leads_a_session_and_does_not_end_with_us() {
    //
    let ended = free("read -r _ _ _ _ _ session _ </proc/self/stat; echo $session $$", LIMIT);
    let said = String::from_utf8_lossy(ended.out.bytes()).into_owned();
    let (session, own) = said.trim().split_once(' ').unwrap();
    assert_eq!(session, own);
    // Where a pipe would break with us, there is memory.
    assert!(ended.err.bytes().is_empty());
    let ended = free("readlink /proc/$$/fd/1 /proc/$$/fd/2", LIMIT);
    assert_eq!(String::from_utf8_lossy(ended.out.bytes()).matches("/memfd:said").count(), 2);
}

#[test]
fn both_its_streams_are_kept_in_their_order_and_of_a_flood_the_last() {
    let ended = free("echo one; echo two >&2; echo three; exit 3", LIMIT);
    assert_eq!((ended.how, ended.out.bytes()), (How::Exited(3), &b"one\ntwo\nthree\n"[..]));
    let ended = free("head -c 64M /dev/zero; sleep 1.2; echo end", LIMIT);
    assert!(ended.out.cut() && ended.out.bytes().ends_with(b"\0end\n"));
    assert_eq!(ended.out.bytes().len(), 1000);
}

#[test]
fn at_its_limit_it_alone_is_asked_to_end_and_may_finish_what_it_runs() {
    // Though we ignore that signal, as a shell has whom it starts in the background do: a shell
    // cannot trap what it found ignored.
    // SAFETY: takes no memory, and nothing here waits for that signal.
    unsafe { libc::signal(libc::SIGINT, libc::SIG_IGN) };
    let script = "trap 'echo asked' INT; sh -c 'sleep 0.4; echo finished'; echo end";
    let ended = free(script, SHORT);
    assert!(matches!(ended.how, How::Overran(_)));
    assert_eq!(String::from_utf8_lossy(ended.out.bytes()), "finished\nasked\nend\n");
}
