//! Packages, by the real pacman and the real apt: what is declared is there, is never upgraded or
//! uninstalled, and each thing that an installation can meet is told for what it is.

use lab::{eventually, host_binary, shelf, Background, Lab, Machine, Package};
use serde_json::{json, Value};
use std::time::Duration;

const HOST: &str = "/usr/bin/nox-mesh-host";
const SHORT: Duration = Duration::from_secs(30);
const LISTED: &str = "${Package} ${Version} ${db:Status-Status}\n";

/// Whose machine it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    Pacman,
    Apt,
}
use By::{Apt, Pacman};

/// A machine with the host, these packages beside the shelf's in its repository, and one manager.
fn machine(by: By, packages: &[Package]) -> Machine {
    let web = Lab::machine("web");
    web.place_host(&host_binary().unwrap());
    if by == Pacman {
        // dpkg is there too: what the machine calls itself decides.
        web.write("/usr/lib/os-release", "ID=manjaro\nID_LIKE=\"arch\"\n");
    }
    stock(&web, by, &[&shelf(), packages].concat());
    web
}

fn stock(web: &Machine, by: By, packages: &[Package]) {
    match by {
        Pacman => web.pacman_repository(packages),
        Apt => web.apt_repository(packages),
    }
}

/// The version of what the machine itself says is installed.
fn version(web: &Machine, by: By, name: &str) -> Option<String> {
    let said = match by {
        Pacman => web.run(["pacman", "-Q", name]),
        Apt => web.run(["dpkg-query", "-Wf", LISTED, name]),
    };
    let said = said.stdout();
    let mut words = said.split(' ');
    let version = words.nth(1)?.to_string();
    (by == Pacman || words.next() == Some("installed")).then_some(version)
}

fn declared(names: &[&str]) -> Value {
    let all = names
        .iter()
        .map(|name| json!({"id": name.replace('+', "-plus"), "type": "package", "name": name}));
    json!({"version": 1, "resources": all.collect::<Vec<_>>()})
}

fn within(name: &str, timeout_s: u32) -> Value {
    let package = json!({"id": name, "type": "package", "name": name, "timeout_s": timeout_s});
    json!({"version": 1, "resources": [package]})
}

fn owned(web: &Machine) -> Value {
    let ran = web.run([HOST, "--json", "owned"]).ok();
    serde_json::from_slice::<Value>(ran.bytes()).unwrap()["owned"].clone()
}

/// Applies one package, which fails in these words, claims nothing and brings nothing.
#[track_caller]
fn refuses(web: &Machine, by: By, declaration: Value, words: &[&str]) {
    let name = declaration["resources"][0]["name"].as_str().unwrap().to_string();
    let applied = web.apply(declaration).failed();
    let said = applied.report["errors"][0]["cause"].as_str().unwrap().to_string();
    for word in words {
        assert!(said.contains(word), "{by:?} {name}: no {word:?} in {said}");
    }
    assert_eq!(version(web, by, &name), None, "{said}");
    assert_eq!(owned(web), json!([]), "{by:?} {name}");
}

/// The programs that a run of the host starts, itself first.
fn spawned(web: &Machine, declaration: &Value) -> Vec<String> {
    let trace = ["strace", "-f", "-qq", "-e", "trace=execve", "-o", "/run/trace"];
    let argv = trace.iter().chain(&[HOST, "apply", "--json", "-"]);
    web.command(argv).input(declaration.to_string()).run().ok();
    let trace = web.read("/run/trace");
    let program = |line: &str| Some(line.split_once("execve(\"")?.1.split('"').next()?.to_string());
    trace.lines().filter(|line| line.ends_with("= 0")).filter_map(program).collect()
}

//
#[test]
fn a_package_is_there_stays_as_it_is_and_is_never_taken_away() {
    if lab::skipped() {
        return;
    }
    for (by, query) in [(Pacman, "/usr/bin/pacman"), (Apt, "/usr/bin/dpkg-query")] {
        let web = machine(by, &[]);
        match by {
            Pacman => web.run(["pacman", "-S", "--noconfirm", "tea"]).ok(),
            Apt => web.run(["apt-get", "install", "-qq", "tea"]).ok(),
        };
        let all = declared(&["hello", "tea", "letters", "ticker"]);
        let plan = web.command([HOST, "plan", "--exit-code", "-"]).input(all.to_string()).run();
        assert!(plan.exits(10).stdout().contains("hello"));
        assert_eq!(version(&web, by, "hello"), None, "a plan changes nothing");
        let applied = web.apply(&all).converged();
        assert_eq!(applied.outcome_of("hello"), "created");
        assert_eq!(applied.outcome_of("tea"), "unchanged");
        assert_eq!(web.run(["hello"]).ok().stdout(), "hello 1.0");
        assert!(version(&web, by, "letters").is_some() && version(&web, by, "postbox").is_some());
        web.apply(&all).idle();
        assert_eq!(spawned(&web, &all), [HOST, query], "one process, whatever the number");

        stock(&web, by, &[Package::new("hello", "1.1").file("/etc/hello.conf", "new\n")]);
        web.apply(&all).idle();
        assert!(version(&web, by, "hello").unwrap().starts_with("1.0"), "never upgraded");

        match by {
            Pacman => web.run(["pacman", "-R", "--noconfirm", "ticker"]).ok(),
            Apt => web.run(["dpkg", "--remove", "ticker"]).ok(),
        };
        assert_eq!(web.apply(&all).converged().outcome_of("ticker"), "corrected");
        assert!(version(&web, by, "ticker").is_some());

        let applied = web.apply(declared(&[])).converged();
        assert_eq!(applied.outcome_of("hello"), "forgotten");
        assert_eq!(applied.outcome_of("tea"), "forgotten");
        assert!(version(&web, by, "hello").is_some() && version(&web, by, "tea").is_some());
        assert_eq!(owned(&web), json!([]));
    }
}

//
#[test]
fn what_pacman_cannot_install_is_told_and_nothing_is_claimed() {
    if lab::skipped() {
        return;
    }
    let web = machine(Pacman, &[Package::new("rival", "1.0").file("/usr/bin/hello", "other\n")]);
    let no = |name: &str, words: &[&str]| refuses(&web, Pacman, declared(&[name]), words);
    no("drinks", &["it is a group", "coffee, tea", "declare"]);
    no("mail-carrier", &["only provided by \"postbox\"", "declare"]);
    no("nowhere", &["'nowhere' was not found", "no repository has it"]);
    no("lost", &["failed retrieving file", "repository on disk"]);
    no("vetoed", &["failed to run transaction hooks", "a hook of the machine refused"]);
    assert_eq!(web.run(["pacman", "-Q"]).stdout(), "");

    web.small_disk("/opt/bulky", 1024);
    no("bulky", &["Write failed", "the disk is full", "is taken back"]);
    web.run(["umount", "/opt/bulky"]).ok();

    web.write("/usr/bin/hello", "mine\n");
    no("hello", &["/usr/bin/hello exists in filesystem", "move it away"]);
    assert_eq!(web.read("/usr/bin/hello"), "mine\n");
    web.run(["rm", "/usr/bin/hello"]).ok();

    // It comes, and a script of its own that fails is told all the same, once.
    let applied = web.apply(declared(&["faulty"])).failed();
    assert!(applied.stderr().contains("cannot set up"), "{}", applied.stderr());
    web.apply(declared(&["faulty"])).converged();
    web.apply(declared(&[])).converged();

    web.sh("mv /var/lib/pacman/sync /run/sync; mkdir /var/lib/pacman/sync").ok();
    no("hello", &["database file for 'lab' does not exist", "its database is missing"]);
    web.sh("head -c 100 /run/sync/lab.db >/var/lib/pacman/sync/lab.db").ok();
    no("hello", &["truncated", "its database is damaged"]);
    web.sh("rm -r /var/lib/pacman/sync; mv /run/sync /var/lib/pacman/sync").ok();

    web.pacman_mirror();
    no("lost", &["404", "the database is stale"]);
    web.run(["systemctl", "stop", "mirror"]).ok();
    no("ticker", &["failed retrieving file", "the mirror cannot be used"]);
    web.pacman_mirror();
    web.apply(declared(&["hello"])).converged();
    web.apply(declared(&["hello", "rival"])).failed();
    assert_eq!(web.run(["hello"]).ok().stdout(), "hello 1.0");
}

//
#[test]
fn what_apt_cannot_install_is_told_and_nothing_is_claimed() {
    if lab::skipped() {
        return;
    }
    let web = machine(Apt, &[]);
    let no = |name: &str, words: &[&str]| refuses(&web, Apt, declared(&[name]), words);
    no("mail-carrier", &["only provided by \"postbox\"", "declare"]);
    no("nowhere", &["no source has it", "apt-get update"]);
    // Names that apt-get would take for patterns of the one that is there.
    no("he.lo", &["no source has it"]);
    no("hello+", &["no source has it"]);
    no("lost", &["File not found", "repository on disk"]);
    no("vetoed", &["no vetoed here", "a script of a package failed"]);
    web.small_disk("/opt/bulky", 1024);
    no("bulky", &["No space left on device", "the disk is full"]);
    web.run(["umount", "/opt/bulky"]).ok();
    web.sh("mv /var/lib/apt/lists /run/lists; mkdir /var/lib/apt/lists").ok();
    no("hello", &["read the indexes (apt-get update)"]);
    web.sh("rm -r /var/lib/apt/lists; mv /run/lists /var/lib/apt/lists").ok();
    assert!(!web.exists("/usr/bin/hello"));

    // It stays by half, as dpkg says, and is tried again until its script works.
    let applied = web.apply(declared(&["faulty"])).failed();
    assert!(applied.stderr().contains("cannot set up"), "{}", applied.stderr());
    assert_eq!(version(&web, Apt, "faulty"), None);
    web.apply(declared(&["faulty"])).failed();
    web.write("/var/lib/dpkg/info/faulty.postinst", "#!/bin/sh\n");
    web.apply(declared(&["faulty"])).converged();
    assert!(version(&web, Apt, "faulty").is_some());

    // A file that a person put there stays as it is.
    web.write("/etc/kept.conf", "mine\n");
    let kept = Package::new("kept", "1.0").file("/etc/kept.conf", "theirs\n");
    stock(&web, Apt, &[kept.file("/usr/share/kept", "here\n")]);
    web.apply(declared(&["kept"])).converged();
}

//
#[test]
fn another_that_holds_the_lock_is_waited_for_and_named() {
    if lab::skipped() {
        return;
    }
    let take = "use Fcntl; open F, '+>>', '/var/lib/dpkg/lock-frontend'; \
                my $all = pack('s s l! l! i', F_WRLCK, 0, 0, 0, 0); \
                fcntl(F, F_SETLK, $all) or die $!; ";
    let hold = "open F, '>', '/var/lib/pacman/db.lck' or die $!; ";
    for (by, hold) in [(Pacman, hold), (Apt, take)] {
        let web = machine(by, &[]);
        let script = format!("{hold} $| = 1; print \"held\"; sleep 1000");
        let mut holder = web.spawn(["perl", "-e", &script]);
        holder.says("held", SHORT);
        refuses(&web, by, within("hello", 2), &["(\"perl\") still holds the lock"]);

        let mut host = apply_beside(&web, "hello");
        eventually("the host waits", SHORT, || web.exists("/var/lib/mesh-host/journal.jsonl"));
        assert!(host.is_running());
        web.sh("rm -f /var/lib/pacman/db.lck; pkill -x perl").ok();
        assert_eq!(host.ends(SHORT), 0, "{}", host.output());
        assert!(version(&web, by, "hello").is_some());
        if by == Pacman {
            web.write("/var/lib/pacman/db.lck", "");
            let applied = web.apply(declared(&["hello", "tea"])).failed();
            let said = applied.stderr();
            assert!(said.contains("left behind by someone else"), "{said}");
            assert!(web.exists("/var/lib/pacman/db.lck"), "what is another's stays");
        }
    }
}

/// The host at work on one package, beside the scenario.
fn apply_beside(web: &Machine, name: &str) -> Background {
    web.write("/run/declared.json", declared(&[name]).to_string());
    web.spawn([HOST, "apply", "/run/declared.json"])
}

/// Its script waits, until the machine says go.
fn slow() -> Package {
    Package::new("slow", "1.0").file("/usr/share/slow", "here\n").after_install(
        "echo run >>/var/slow; touch /run/begun\nwhile [ ! -e /run/go ]; do sleep 0.1; done",
    )
}

//
#[test]
fn a_stop_or_a_kill_of_the_host_does_not_reach_the_manager() {
    if lab::skipped() {
        return;
    }
    for by in [Pacman, Apt] {
        let web = machine(by, &[slow()]);
        let begun = || web.exists("/run/begun");
        let mut host = apply_beside(&web, "slow");
        eventually("its script runs", SHORT, begun);
        host.signal(libc::SIGKILL).ends(SHORT);
        // The next run waits for the one that is still at it, and finds the work done.
        let mut next = web.spawn([HOST, "apply", "/run/declared.json"]);
        let waits = |next: &mut Background| next.is_running();
        assert!(waits(&mut next), "{}", next.output());
        web.write("/run/go", "");
        assert_eq!(next.ends(SHORT), 0, "{by:?} {}", next.output());
        assert!(version(&web, by, "slow").is_some());
        assert_eq!(web.read("/var/slow"), "run\n", "{by:?}: installed once");
        assert!(!web.exists("/var/lib/pacman/db.lck"));
        web.apply(declared(&["slow"])).idle();
    }
    for by in [Pacman, Apt] {
        let web = machine(by, &[slow()]);
        // As the service's control group ends it: the host and all that is in its group.
        web.write("/run/declared.json", declared(&["slow"]).to_string());
        let unit = ["systemd-run", "--quiet", "--unit=trial", "--property=KillMode=control-group"];
        web.run(unit.iter().chain(&[HOST, "apply", "/run/declared.json"])).ok();
        eventually("its script runs", SHORT, || web.exists("/run/begun"));
        web.run(["systemctl", "kill", "--signal=SIGTERM", "trial"]).ok();
        web.write("/run/go", "");
        let over = || web.run(["systemctl", "is-active", "trial"]).code() != 0;
        eventually("the host has ended", SHORT, over);
        assert!(version(&web, by, "slow").is_some(), "{by:?}: what is in hand is finished");
        assert_eq!(web.read("/var/slow"), "run\n");
        web.apply(declared(&["slow"])).idle();
    }
}

//
#[test]
fn a_power_cut_in_mid_installation_is_finished_by_the_next_run() {
    if lab::skipped() {
        return;
    }
    for by in [Pacman, Apt] {
        let web = machine(by, &[slow()]);
        let _host = apply_beside(&web, "slow");
        eventually("its script runs", SHORT, || web.exists("/run/begun"));
        web.power_cut();
        assert_eq!(web.exists("/var/lib/pacman/db.lck"), by == Pacman);
        web.write("/run/go", "");
        web.apply(declared(&["slow"])).converged();
        assert!(version(&web, by, "slow").is_some());
        assert!(!web.exists("/var/lib/pacman/db.lck"));
        web.apply(declared(&["slow", "hello"])).converged();
        web.apply(declared(&["slow", "hello"])).idle();
    }
}

//
#[test]
fn a_power_cut_while_files_are_unpacked_is_finished_by_the_next_run() {
    if lab::skipped() {
        return;
    }
    for by in [Pacman, Apt] {
        let needs = Package::new("needy", "1.0").depends("bulky").file("/usr/share/needy", "x\n");
        let web = machine(by, &[needs]);
        // The real tool, slowed down while it writes.
        let (name, heap) = match by {
            Pacman => ("pacman", "/opt/bulky/heap"),
            Apt => ("dpkg", "/opt/bulky/heap.dpkg-new"),
        };
        let slowed = format!("/usr/local/bin/{name}");
        let delay = "inject=write:delay_enter=100000:when=20+";
        web.write(
            &slowed,
            format!(
                "#!/bin/sh\ncase \"$*\" in *-S\\ *|*--unpack*)\n\
                 exec strace -f -qq -e trace=write -e {delay} -o /dev/null \
                 /usr/bin/{name} \"$@\";;\n\
                 esac\nexec /usr/bin/{name} \"$@\"\n"
            ),
        );
        web.run(["chmod", "755", &slowed]).ok();
        web.write("/etc/apt/apt.conf.d/slow", format!("Dir::Bin::dpkg \"{slowed}\";\n"));
        let _host = apply_beside(&web, "needy");
        eventually("it is being unpacked", SHORT, || web.exists(heap));
        web.power_cut();
        web.run(["rm", &slowed, "/etc/apt/apt.conf.d/slow"]).ok();
        assert!(!web.exists("/usr/share/needy"), "{by:?}");
        web.apply(declared(&["needy"])).converged();
        assert!(version(&web, by, "needy").is_some() && version(&web, by, "bulky").is_some());
        assert_eq!(web.stat("/opt/bulky/heap", "%s"), (32 << 20).to_string());
        web.apply(declared(&["needy"])).idle();
    }
}

//
#[test]
fn a_limit_that_passes_ends_an_installation_gently() {
    if lab::skipped() {
        return;
    }
    for by in [Pacman, Apt] {
        let script = "touch /run/begun; sleep 8";
        let web = machine(by, &[Package::new("late", "1.0").after_install(script)]);
        let applied = web.apply(within("late", 3)).failed();
        assert!(applied.stderr().contains("was still running after"), "{}", applied.stderr());
        assert!(!web.exists("/var/lib/pacman/db.lck"));
        web.apply(declared(&["late", "hello"])).converged();
        assert!(version(&web, by, "late").is_some());
    }
}

//
#[test]
fn a_lying_manager_fails_the_read_back() {
    if lab::skipped() {
        return;
    }
    for (by, tool) in [(Pacman, "pacman"), (Apt, "apt-get")] {
        let web = machine(by, &[]);
        let liar = format!("/usr/local/bin/{tool}");
        let script = "case \"$*\" in *-S\\ *|*install*) exit 0;; esac";
        web.write(&liar, format!("#!/bin/sh\n{script}\nexec /usr/bin/{tool} \"$@\"\n"));
        web.run(["chmod", "755", &liar]).ok();
        let applied = web.apply(declared(&["hello"])).failed();
        assert_eq!(applied.report["errors"][0]["stage"], "read_back");
        assert_eq!(owned(&web), json!([]));
    }
}

//
#[test]
fn a_mounted_tree_is_filled_by_the_managers_own_option() {
    if lab::skipped() {
        return;
    }
    for by in [Pacman, Apt] {
        let web = machine(by, &[]);
        match by {
            Pacman => web.sh("mkdir -p /mnt/tree/var/lib/pacman/local /mnt/tree/etc /mnt/tree/srv
                cp -r /var/lib/pacman/sync /mnt/tree/var/lib/pacman
                cp -r /srv/repo /mnt/tree/srv; cp /etc/pacman.conf /mnt/tree/etc"),
            Apt => web.sh("mkdir -p /mnt/tree/etc/apt/preferences.d /mnt/tree/var/lib/apt
                cd /mnt/tree; mkdir -p var/log/apt var/cache/apt/archives/partial
                mkdir -p var/lib/dpkg/info var/lib/dpkg/updates var/lib/dpkg/triggers
                touch var/lib/dpkg/status
                cp -r /var/lib/apt/lists var/lib/apt; cp /etc/apt/sources.list etc/apt"),
        }
        .ok();
        let apply = || web.apply_with(&["--root", "/mnt/tree"], declared(&["hello"]));
        assert_eq!(apply().converged().outcome_of("hello"), "created");
        assert!(web.exists("/mnt/tree/usr/bin/hello") && !web.exists("/usr/bin/hello"));
        assert_eq!(version(&web, by, "hello"), None);
        apply().idle();
    }
}

//
#[test]
fn a_machine_whose_manager_cannot_be_told_is_told_so() {
    if lab::skipped() {
        return;
    }
    let web = machine(Pacman, &[]);
    web.write("/usr/lib/os-release", "ID=other\n");
    refuses(&web, Pacman, declared(&["hello"]), &["pacman and apt-get are there", "os-release"]);
    let applied = web.apply_with(&["--root", "/srv"], declared(&["hello"])).failed();
    assert!(applied.stderr().contains("there is none that is known"), "{}", applied.stderr());
}
