//! The service in scratch roots: why it makes passes, what it sees, how it ends, what it costs.

mod support;

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use serde_json::Value;
use support::golden::{assert_golden, settled, Layout};
use support::service::{until, Manager, Service, LIMIT};
use support::site::{told, Site};

const FILE: &str = r#"{"id":"f","type":"file","path":"/f","content":"right\n"}"#;

fn site(resources: &str) -> Site {
    let site = Site::new();
    site.declare("it", resources);
    let applied = site.host("apply @it");
    assert!(applied.status.code().is_some_and(|code| code < 2), "{}", told(&applied));
    site
}

fn configure(site: &Site, text: &str) {
    site.put("/etc/mesh-host/config.json", text);
}

fn read(site: &Site, path: &str) -> String {
    fs::read_to_string(site.root().join(path)).unwrap_or_default()
}

fn after(trigger: &'static str) -> impl Fn(&Value) -> bool {
    move |pass| pass["trigger"] == trigger
}

fn passes(site: &Site) -> Vec<String> {
    let passes = site.records().into_iter().filter(|record| record["kind"] == "pass");
    passes.map(|record| record["trigger"].as_str().unwrap().to_string()).collect()
}

// R-17 R-3
#[test]
fn each_reason_for_a_pass_is_named_in_its_report() {
    let site = site(FILE);
    let service = Service::start(&site);
    service.rests(after("start"));
    site.put("/f", "wrong\n");
    service.rests(after("drift"));
    assert_eq!(read(&site, "f"), "right\n");
    service.signal(libc::SIGHUP);
    let said = service.rests(after("command"));
    assert_eq!(said["last_pass"]["outcome"], "converged");
    configure(&site, r#"{"interval_s": 1}"#);
    service.signal(libc::SIGHUP);
    service.rests(after("timer"));
    service.stop();
    assert_eq!(passes(&site), ["command", "drift"], "a pass without news is not on record");
}

// R-3
#[test]
fn what_is_altered_removed_or_replaced_is_back_within_a_second() {
    let resources = r#"{"id":"d","type":"directory","path":"/d","mode":"0750"},
        {"id":"f","type":"file","path":"/d/f","content":"right\n","mode":"0640"},
        {"id":"l","type":"symlink","path":"/l","target":"d/f"}"#;
    let site = site(resources);
    let service = Service::start(&site);
    service.rests(after("start"));
    let whole = site.tree();
    let ours = |mut tree: support::site::Tree| {
        tree.retain(|name, _| !name.starts_with("/run"));
        tree
    };
    let root = site.root();
    let (d, f, l) = (root.join("d"), root.join("d/f"), root.join("l"));
    let replace = || {
        fs::write(root.join("new"), "wrong\n").unwrap();
        fs::rename(root.join("new"), &f).unwrap();
    };
    let alter: [(&str, &dyn Fn()); 7] = [
        ("contents", &|| fs::write(&f, "wrong\n").unwrap()),
        ("replaced", &replace),
        ("mode", &|| fs::set_permissions(&f, fs::Permissions::from_mode(0o666)).unwrap()),
        ("mode of the directory", &|| {
            fs::set_permissions(&d, fs::Permissions::from_mode(0o777)).unwrap();
        }),
        ("file removed", &|| fs::remove_file(&f).unwrap()),
        ("link removed", &|| fs::remove_file(&l).unwrap()),
        ("all removed", &|| fs::remove_dir_all(&d).unwrap()),
    ];
    // One after the other they would be a row of drift, which is slowed down on purpose.
    drop(service);
    for (what, alter) in alter {
        let service = Service::start(&site);
        service.rests(after("start"));
        let start = Instant::now();
        alter();
        assert_ne!(ours(site.tree()), ours(whole.clone()), "{what}");
        assert!(until(|| ours(site.tree()) == ours(whole.clone())), "{what}");
        let took = start.elapsed();
        assert!(took < Duration::from_secs(1), "{what}: {took:?}");
        service.rests(after("drift"));
        assert!(service.log().contains("corrected"), "{what}");
        service.stop();
    }
}

#[test]
fn a_name_that_was_missing_is_seen_to_come_up() {
    let site = site(r#"{"id":"x","type":"file","path":"/a/b/x","content":"y"}"#);
    let service = Service::start(&site);
    service.rests(|pass| pass["outcome"] == "failed");
    fs::create_dir(site.root().join("other")).unwrap();
    fs::create_dir(site.root().join("a")).unwrap();
    service.rests(after("drift"));
    fs::create_dir(site.root().join("a/b")).unwrap();
    service.rests(|pass| pass["outcome"] == "converged");
    assert_eq!(read(&site, "a/b/x"), "y");
    service.stop();
}

/// A server that takes connections and says nothing until it is dropped or told to.
fn silent() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    let sum = "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae";
    let source = format!("{{\"url\":\"http://{at}/foo\",\"sha256\":\"{sum}\"}}");
    let text =
        format!("{{\"id\":\"slow\",\"type\":\"file\",\"path\":\"/slow\",\"source\":{source}}}");
    (listener, text)
}

/// Answers every request, also those of who has been killed meanwhile, with the three bytes `foo`,
/// until that has come about.
fn answer(listener: &TcpListener, is_done: impl Fn() -> bool) -> bool {
    listener.set_nonblocking(true).unwrap();
    until(|| {
        if let Ok((mut stream, _)) = listener.accept() {
            stream.set_nonblocking(false).unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
            let _ = stream.read(&mut [0; 2048]);
            let head = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\n";
            let _ = stream.write_all(format!("{head}foo").as_bytes());
        }
        is_done()
    })
}

// R-16
#[test]
fn it_is_ready_before_the_first_pass_and_gives_signs_of_life_while_a_step_hangs() {
    let (listener, slow) = silent();
    let site = Site::new();
    site.declare("it", &slow);
    let manager = Manager::new(&site);
    // What is declared is taken in by a command that is not waited for.
    let mut apply = std::process::Command::new(support::site::HOST);
    let mut apply = apply.args(site.arguments("apply -q @it")).spawn().unwrap();
    assert!(until(|| !site.records().is_empty() && passes_or_accepted(&site)));
    apply.kill().unwrap();
    apply.wait().unwrap();
    let env = [("NOTIFY_SOCKET", manager.path()), ("WATCHDOG_USEC", "100000")];
    let mut service = Service::start_with(&site, &env);
    assert!(manager.told().starts_with("READY=1\n"), "the first thing said");
    let said = service.says(|said| said["doing"] == "passing");
    assert_eq!(said["passing"], "start");
    // The loop is never busy for longer than 50 ms: signs of life that are due every 50 ms come so.
    let (mut last, mut longest, mut seen) = (Instant::now(), Duration::ZERO, 0);
    while seen < 40 {
        if manager.told() == "WATCHDOG=1" {
            longest = longest.max(last.elapsed());
            (last, seen) = (Instant::now(), seen + 1);
        }
    }
    assert_eq!(service.status()["doing"], "passing", "the step hangs all the while");
    assert!(longest < Duration::from_millis(100), "{longest:?} without a sign of life");
    service.signal(libc::SIGHUP);
    while !manager.told().starts_with("RELOADING=1\nMONOTONIC_USEC=") {}
    manager.is_told("READY=1");
    // The resource in hand is finished and recorded, and nothing else is begun.
    service.signal(libc::SIGTERM);
    manager.is_told("STOPPING=1");
    assert!(answer(&listener, || read(&site, "slow") == "foo"), "{}", service.log());
    assert!(service.ends().success(), "{}", service.log());
    let applied = site.records().into_iter().filter(|it| it["kind"] == "applied").count();
    assert_eq!(applied, 1);
}

fn passes_or_accepted(site: &Site) -> bool {
    site.records().iter().any(|record| record["kind"] == "began" || record["kind"] == "accepted")
}

#[test]
fn a_service_that_is_killed_leaves_a_pass_that_ends_by_itself_and_the_next_takes_over() {
    let (listener, slow) = silent();
    let site = site(&format!("{FILE},{}", slow.replace("/slow", "/gone/slow")));
    site.declare(
        "it",
        &format!("{FILE},{slow},{}", FILE.replace("\"f\"", "\"g\"").replace("/f", "/g")),
    );
    let mut apply = std::process::Command::new(support::site::HOST);
    let mut apply = apply.args(site.arguments("apply -q @it")).spawn().unwrap();
    assert!(until(|| site.records().iter().filter(|it| it["kind"] == "accepted").count() == 2));
    apply.kill().unwrap();
    apply.wait().unwrap();
    let service = Service::start(&site);
    service.says(|said| said["doing"] == "passing");
    assert!(until(|| !service.children().is_empty()));
    let pass = service.children()[0];
    service.signal(libc::SIGKILL);
    drop(service);
    let next = Service::start(&site);
    next.says(|said| said["doing"] == "passing");
    // Whatever the first pass asked and was cut off at, the next asks for again.
    let converged = answer(&listener, || read(&site, "g") == "right\n");
    assert!(converged, "{}", next.log());
    assert!(until(|| !std::path::Path::new(&format!("/proc/{pass}")).exists()));
    assert_eq!(read(&site, "slow"), "foo");
    next.stop();
}

#[test]
fn there_is_one_service_for_a_state_directory() {
    let site = site(FILE);
    let service = Service::start(&site);
    service.rests(after("start"));
    let second = site.host("run");
    assert_eq!(second.status.code(), Some(4), "{}", told(&second));
    let said = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(said.contains(&format!("process {}", service.pid())), "{said}");
    assert!(site.ok("status").contains(&format!("process {}", service.pid())));
    let status: Value = serde_json::from_str(&site.ok("status --json")).unwrap();
    assert_eq!(status["service"]["schema"], "service/1");
    service.stop();
    assert!(site.ok("status").contains("service: not running"));
    let status: Value = serde_json::from_str(&site.ok("status --json")).unwrap();
    assert_eq!(status["service"], Value::Null);
}

// R-31
#[test]
fn with_a_damaged_store_it_stays_up_applies_nothing_and_says_so_until_that_is_mended() {
    let site = site(FILE);
    let journal = fs::read_to_string(site.journal()).unwrap();
    fs::write(site.journal(), journal.replacen("applied", "bpplied", 1)).unwrap();
    site.put("/f", "wrong\n");
    configure(&site, r#"{"interval_s": 1}"#);
    let service = Service::start(&site);
    service.says(|said| said["unable"].as_str().is_some_and(|why| why.contains("journal.jsonl")));
    let status = site.host("status");
    assert_eq!(status.status.code(), Some(6));
    let said = String::from_utf8_lossy(&status.stderr).into_owned();
    assert!(said.contains("no pass was made"), "{said}");
    // Tried by the timer, said once.
    let next = service.status()["next_pass"].clone();
    service.says(|said| said["next_pass"] != next && said["doing"] == "waiting");
    assert_eq!(service.logged("no pass was made"), 1, "{}", service.log());
    assert_eq!(read(&site, "f"), "wrong\n");
    site.ok("rescue --discard-state");
    service.rests(|pass| pass["outcome"] == "converged");
    site.ok("apply @it");
    service.says(|said| said["drift"]["watched"] == 1);
    assert_eq!(service.logged("passes are made again"), 1, "{}", service.log());
    service.stop();
}

#[test]
fn with_nothing_declared_it_stays_up_and_notices_what_a_person_applies() {
    let site = Site::new();
    let service = Service::start(&site);
    let said = service.rests(after("start"));
    assert_eq!(said["last_pass"]["declared"], 0);
    site.declare("it", FILE);
    site.ok("apply @it");
    let said = service.says(|said| said["drift"]["watched"] == 1);
    assert_eq!(said["last_pass"]["trigger"], "command");
    site.put("/f", "wrong\n");
    service.rests(after("drift"));
    assert_eq!(read(&site, "f"), "right\n");
    service.stop();
}

#[test]
fn a_pass_waits_for_a_person_s_apply_and_comes_after_it() {
    let site = site(FILE);
    let service = Service::start(&site);
    service.rests(after("start"));
    let (listener, slow) = silent();
    site.declare("it", &format!("{FILE},{slow}"));
    let mut apply = std::process::Command::new(support::site::HOST);
    let mut apply = apply.args(site.arguments("apply -q @it")).spawn().unwrap();
    service.logs("a pass waits: process");
    assert!(service.log().contains(&format!("process {}", apply.id())), "{}", service.log());
    // Nor does that keep it from ending.
    assert!(answer(&listener, || read(&site, "slow") == "foo"));
    assert!(apply.wait().unwrap().success());
    service.says(|said| said["drift"]["watched"] == 2);
    assert_eq!(service.logged("a pass waits"), 1, "{}", service.log());
    service.stop();
}

#[test]
fn a_pause_is_heeded_and_ends_by_itself() {
    let site = site(FILE);
    let service = Service::start(&site);
    service.rests(after("start"));
    site.ok("pause --reason moving --for 2s");
    service.says(|said| said["doing"] == "paused");
    site.put("/f", "wrong\n");
    service.signal(libc::SIGHUP);
    service.says(|said| said["doing"] == "paused" && said["last_pass"]["trigger"] == "command");
    assert_eq!(read(&site, "f"), "wrong\n");
    service.rests(after("timer"));
    assert_eq!(read(&site, "f"), "right\n");
    site.ok("pause --reason again");
    service.says(|said| said["doing"] == "paused");
    site.put("/f", "wrong\n");
    site.ok("resume");
    service.rests(after("command"));
    assert_eq!(read(&site, "f"), "right\n");
    assert_eq!(service.logged("no longer paused"), 2, "{}", service.log());
    service.stop();
}

#[test]
fn what_something_else_keeps_altering_is_contested_and_slowed_down_and_the_rest_is_not() {
    let site = site(&format!("{FILE},{}", FILE.replace("\"f\"", "\"g\"").replace("/f", "/g")));
    fs::create_dir(site.state().join("identity")).unwrap();
    fs::write(site.state().join("identity/key.pem"), "").unwrap();
    let service = Service::start(&site);
    service.rests(after("start"));
    let mut alterations = 0;
    let contested = until(|| {
        if read(&site, "f") == "right\n" {
            site.put("/f", "wrong\n");
            alterations += 1;
        }
        service.status()["contested"][0]["times"].as_u64().is_some_and(|times| times > 3)
    });
    assert!(contested, "{}", service.log());
    assert_eq!(service.status()["contested"][0]["id"], "f");
    assert_eq!(service.logged("contested: f (local)"), 1, "{}", service.log());
    assert!(alterations >= 4);
    assert!(site.ok("status").contains("contested since"));
    // What is not contested is still back at once, and takes the other along.
    let last = service.status()["last_pass"]["id"].clone();
    site.put("/f", "wrong\n");
    site.put("/g", "wrong\n");
    let start = Instant::now();
    assert!(until(|| read(&site, "g") == "right\n"));
    assert!(start.elapsed() < Duration::from_secs(4), "{:?}", start.elapsed());
    service.rests(|pass| pass["id"] != last);
    // By itself it waits some seconds.
    site.put("/f", "wrong\n");
    let start = Instant::now();
    assert!(until(|| read(&site, "f") == "right\n"));
    assert!(start.elapsed() > Duration::from_secs(1), "{:?}", start.elapsed());
    let line = |record: Value| record["detail"]["resources"][0].clone();
    let reports = site.records().into_iter().filter(|record| record["kind"] == "reported");
    let lines: Vec<Value> = reports.map(line).collect();
    assert_eq!(lines.first().unwrap().get("contested"), None);
    assert_eq!(lines.last().unwrap()["contested"], true, "{lines:?}");
    service.stop();
}

// R-17
#[test]
fn what_fails_is_tried_by_every_timer_and_said_once() {
    let site = site(&format!("{FILE},{}", FILE.replace("\"f\"", "\"x\"").replace("/f", "/no/x")));
    configure(&site, r#"{"interval_s": 1}"#);
    let service = Service::start(&site);
    let mut ids = std::collections::BTreeSet::new();
    let tried = until(|| {
        let pass = service.status()["last_pass"].clone();
        if pass["trigger"] == "timer" && pass["failed"] == 1 {
            ids.insert(pass["id"].to_string());
        }
        ids.len() == 3
    });
    assert!(tried, "{}", service.log());
    assert_eq!(service.logged("failing: x (local): make /no/x"), 1, "{}", service.log());
    // It does not keep the others from being held.
    site.put("/f", "wrong\n");
    assert!(until(|| read(&site, "f") == "right\n"));
    fs::create_dir(site.root().join("no")).unwrap();
    service.logs("no longer failing: x (local)");
    service.stop();
}

#[test]
fn what_it_says_of_itself_is_the_shape_on_record() {
    let site = site(&format!("{FILE},{}", FILE.replace("\"f\"", "\"x\"").replace("/f", "/no/x")));
    let service = Service::start(&site);
    service.rests(after("start"));
    let said = fs::read_to_string(site.root().join("run/mesh-host/status.json")).unwrap();
    let said = settled(&said, site.path(), Layout::Indented);
    assert_golden("service.json", &said);
    service.stop();
}

#[test]
fn what_is_altered_while_a_pass_runs_is_put_right_after_it() {
    let site = site(FILE);
    let (listener, slow) = silent();
    site.declare("it", &format!("{FILE},{slow}"));
    let mut apply = std::process::Command::new(support::site::HOST);
    let mut apply = apply.args(site.arguments("apply -q @it")).spawn().unwrap();
    let asked = listener.accept().unwrap();
    apply.kill().unwrap();
    apply.wait().unwrap();
    drop(asked);
    let service = Service::start(&site);
    let (mut stream, _) = listener.accept().unwrap();
    // The file has been looked at: what comes after it is being fetched.
    site.put("/f", "wrong\n");
    assert!(stream.read(&mut [0; 2048]).unwrap() > 0);
    let foo = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nfoo";
    stream.write_all(foo).unwrap();
    assert!(until(|| read(&site, "f") == "right\n"), "{}", service.log());
    service.rests(|pass| pass["outcome"] == "converged");
    service.stop();
}

// R-30
#[test]
fn a_secret_is_in_nothing_that_the_service_says() {
    let canary = "canary-of-the-service";
    let secret = FILE.replace("right", canary).replace("\"type\"", "\"secret\":true,\"type\"");
    let site = site(&secret);
    fs::create_dir(site.state().join("identity")).unwrap();
    fs::write(site.state().join("identity/key.pem"), "").unwrap();
    let metrics = site.path().join("host.prom");
    configure(&site, &format!("{{\"metrics_file\": {metrics:?}, \"report_diffs\": true}}"));
    let service = Service::start(&site);
    service.rests(after("start"));
    site.put("/f", "wrong\n");
    service.rests(after("drift"));
    assert!(read(&site, "f").contains(canary));
    let status = fs::read_to_string(site.root().join("run/mesh-host/status.json")).unwrap();
    let journal = fs::read_to_string(site.journal()).unwrap();
    assert!(journal.contains("\"reported\""));
    for said in [service.log(), status, journal, fs::read_to_string(metrics).unwrap()] {
        assert!(!said.contains(canary), "{said}");
    }
    service.stop();
}

#[test]
fn metrics_are_a_file_for_a_collector() {
    let site = site(FILE);
    let file = site.path().join("metrics/host.prom");
    configure(&site, &format!("{{\"metrics_file\": {file:?}}}"));
    let service = Service::start(&site);
    service.rests(after("start"));
    site.put("/f", "wrong\n");
    service.rests(after("drift"));
    let text = fs::read_to_string(&file).unwrap();
    for line in [
        "nox_mesh_host_passes_total{trigger=\"drift\",outcome=\"converged\"} 1",
        "nox_mesh_host_drift_corrected_total 1",
        "nox_mesh_host_watched_paths 1",
        "nox_mesh_host_failing_resources 0",
        "nox_mesh_host_able 1",
    ] {
        assert!(text.lines().any(|it| it == line), "no {line} in\n{text}");
    }
    assert!(text.contains("nox_mesh_host_last_success_timestamp_seconds{source=\"local\"} "));
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o644);
    let names: Vec<_> = fs::read_dir(file.parent().unwrap()).unwrap().collect();
    assert_eq!(names.len(), 1, "{names:?}");
    service.stop();
}

#[test]
fn a_configuration_that_is_not_understood_is_refused_and_a_new_one_leaves_the_old_in_force() {
    let site = site(FILE);
    configure(&site, r#"{"intervall_s": 5}"#);
    let run = site.host("run");
    assert_eq!(run.status.code(), Some(1), "{}", told(&run));
    assert!(String::from_utf8_lossy(&run.stderr).contains("intervall_s"));
    configure(&site, "{}");
    let service = Service::start(&site);
    service.rests(after("start"));
    configure(&site, "no");
    service.signal(libc::SIGHUP);
    service.logs("what was configured before stays in force");
    service.stop();
}

// R-19
#[test]
fn ten_thousand_watched_files_cost_nothing_while_nothing_happens() {
    let site = Site::new();
    let mut resources = vec![r#"{"id":"d","type":"directory","path":"/d"}"#.to_string()];
    let file = |n: usize| {
        format!("{{\"id\":\"f{n}\",\"type\":\"file\",\"path\":\"/d/f{n}\",\"content\":\"{n}\"}}")
    };
    resources.extend((0..10_000).map(file));
    site.declare("it", &resources.join(","));
    site.ok("apply -q @it");
    let metrics = site.path().join("host.prom");
    configure(&site, &format!("{{\"metrics_file\": {metrics:?}}}"));
    let service = Service::start(&site);
    let said = service.rests(after("start"));
    let drift = &said["drift"];
    let all = drift["watched"].as_u64().unwrap() + drift["unwatched"].as_u64().unwrap();
    assert_eq!(all, 10_001, "{drift}");
    if drift["unwatched"] != 0 {
        let what = support::Lacks::Machine("a kernel that allows as many inotify watches");
        return support::skip("ten_thousand_watched_files", &what);
    }
    // What follows a pass is a last look at the journal.
    assert!(until(|| service.kernel("voluntary_ctxt_switches") > 0 && is_still(&service)));
    let (wakeups, journal) = (service.kernel("voluntary_ctxt_switches"), site.journal());
    let written = fs::metadata(&journal).unwrap().modified().unwrap();
    let status = fs::metadata(site.root().join("run/mesh-host/status.json")).unwrap();
    // There is nothing to wait for but time.
    std::thread::sleep(Duration::from_secs(3));
    assert_eq!(service.kernel("voluntary_ctxt_switches"), wakeups, "it woke up");
    assert_eq!(service.children(), [] as [i32; 0]);
    assert_eq!(fs::metadata(&journal).unwrap().modified().unwrap(), written);
    let now = fs::metadata(site.root().join("run/mesh-host/status.json")).unwrap();
    assert_eq!(now.modified().unwrap(), status.modified().unwrap());
    let fds = fs::read_dir(format!("/proc/{}/fd", service.pid())).unwrap();
    let sockets = fds.filter_map(|fd| fs::read_link(fd.unwrap().path()).ok());
    let sockets = sockets.filter(|to| to.to_string_lossy().starts_with("socket:")).count();
    assert_eq!(sockets, 0, "it listens on nothing, having no socket at all");
    assert!(service.kernel("RssAnon") < 6 << 10, "{} KiB", service.kernel("RssAnon"));
    let start = Instant::now();
    site.put("/d/f7777", "wrong");
    assert!(until(|| read(&site, "d/f7777") == "7777"));
    eprintln!("one of ten thousand is back after {:?}", start.elapsed());
    assert!(start.elapsed() < LIMIT);
    // The watches of the last pass are let go of then.
    service.rests(after("drift"));
    let text = fs::read_to_string(&metrics).unwrap();
    let longest = text.lines().find_map(|it| it.strip_prefix("nox_mesh_host_longest_turn_milli"));
    let longest: u64 = longest.unwrap().rsplit_once(' ').unwrap().1.parse().unwrap();
    eprintln!("the longest turn of the loop took {longest} ms");
    assert!(longest <= 50, "{longest} ms");
    service.stop();
}

/// It has not woken up for a while.
fn is_still(service: &Service) -> bool {
    let before = service.kernel("voluntary_ctxt_switches");
    std::thread::sleep(Duration::from_millis(400));
    service.kernel("voluntary_ctxt_switches") == before
}

#[test]
fn reports_of_passes_with_news_wait_for_a_mesh_and_for_none_where_there_is_none() {
    let site = site(FILE);
    let reported = || {
        let records = site.records().into_iter().filter(|it| it["kind"] == "reported");
        records.collect::<Vec<_>>()
    };
    assert_eq!(reported().len(), 0, "nobody is there to send it to");
    fs::create_dir(site.state().join("identity")).unwrap();
    fs::write(site.state().join("identity/key.pem"), "").unwrap();
    let service = Service::start(&site);
    service.rests(after("start"));
    site.put("/f", "wrong\n");
    let said = service.rests(after("drift"));
    let all = reported();
    assert_eq!(all.len(), 1);
    assert_eq!(all[0]["id"], said["last_pass"]["id"]);
    let report = &all[0]["detail"];
    assert_eq!((&report["schema"], &report["trigger"]), (&"report/1".into(), &"drift".into()));
    assert_eq!(report["resources"][0].get("diff"), None, "{report}");
    assert_eq!(said["reports_waiting"], 1);
    configure(&site, r#"{"report_diffs": true}"#);
    service.signal(libc::SIGHUP);
    service.rests(after("command"));
    site.put("/f", "wrong\n");
    service.says(|said| said["reports_waiting"] == 2);
    let diff = reported()[1]["detail"]["resources"][0]["diff"].clone();
    assert!(diff.as_str().is_some_and(|diff| diff.contains("+right")), "{diff}");
    service.stop();
}
