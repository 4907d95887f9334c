//! A docker engine of a test binary's own, with a registry, in namespaces of its own, and the built
//! host beside it. Everything of it ends with the test process.
#![allow(dead_code)] // each test binary uses a part of it

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use super::root::{declared, Run, HOST};
use super::{euid, has, skip, Lacks, Scratch};

/// What holds the namespaces: it ends when its input does, and all in them with it.
const INIT: &str = r#"
read -r pid rest </proc/self/stat
mount -t proc proc /proc && mount -t tmpfs tmpfs /run && mount -t tmpfs tmpfs /usr/local/sbin
[ ! -d /etc/docker ] || mount -t tmpfs tmpfs /etc/docker
ip link set lo up
serve() {
  dockerd --data-root /run/data --exec-root /run/exec --pidfile /run/docker.pid \
    --exec-opt native.cgroupdriver=cgroupfs >>"$1/log" 2>&1 &
}
printf '%s\n' 'version: 0.1' 'storage: {filesystem: {rootdirectory: /run/registry}}' \
  'http: {addr: "127.0.0.1:5000"}' >/run/registry.yml
docker-registry serve /run/registry.yml >/dev/null 2>&1 &
serve "$1"
echo "$pid" >"$1/pid.new" && mv "$1/pid.new" "$1/pid"
while read -r order; do
  kill "-$order" "$(cat /run/docker.pid)" && wait "$!"
  # What it started outlives its being killed, and would keep the next one from starting its own.
  kill -KILL "$(cat /run/exec/containerd/containerd.pid)" 2>/dev/null
  rm -f /run/docker.pid && serve "$1"
done
ids=$(docker ps -aq) && [ -z "$ids" ] || docker rm -f $ids >/dev/null 2>&1
"#;

/// A running engine.
pub struct Engine {
    scratch: Scratch,
    pid: String,
    init: Mutex<(Child, ChildStdin)>,
    /// A small image, pinned, that the registry has.
    pub image: String,
}

impl Engine {
    /// The engine that the tests of this binary share; `None` where the test has to be skipped.
    pub fn shared() -> Option<&'static Engine> {
        let thread = std::thread::current();
        let test = thread.name().unwrap_or("containers");
        static SHARED: OnceLock<Result<Engine, String>> = OnceLock::new();
        let programs = ["dockerd", "docker", "docker-registry", "busybox", "nsenter", "ip"];
        if euid() != 0 {
            skip(test, &Lacks::Machine("root"));
            return None;
        }
        if !programs.iter().all(|program| has(program, test)) {
            return None;
        }
        match SHARED.get_or_init(|| Engine::start("engine")) {
            Ok(engine) => Some(engine),
            Err(why) => {
                skip(test, &Lacks::Machine(why));
                None
            }
        }
    }

    /// Another one.
    pub fn start(name: &str) -> Result<Engine, String> {
        let scratch = Scratch::new(name);
        let mut unshare = Command::new("unshare");
        unshare.args(["--mount", "--net", "--pid", "--fork", "--kill-child", "sh", "-c", INIT]);
        unshare.arg("engine").arg(scratch.path()).stdin(Stdio::piped());
        let mut init = unshare.spawn().map_err(|error| format!("unshare: {error}"))?;
        let input = init.stdin.take().expect("it is a pipe");
        let mut engine = Engine {
            pid: within(|| fs::read_to_string(scratch.join("pid")).ok())
                .ok_or("namespaces of its own")?
                .trim()
                .into(),
            init: Mutex::new((init, input)),
            image: String::new(),
            scratch,
        };
        engine.await_up()?;
        engine.image = engine.import("bb", &[]);
        Ok(engine)
    }

    fn await_up(&self) -> Result<(), String> {
        let up =
            || self.command("docker").arg("version").output().ok()?.status.success().then_some(());
        within(up).ok_or_else(|| {
            let log = fs::read_to_string(self.scratch.join("log")).unwrap_or_default();
            format!("an engine that starts: {}", log.lines().last().unwrap_or_default())
        })
    }

    /// Ends the engine by this signal and starts it again.
    pub fn restart(&self, signal: &str) {
        let pid = self.sh("cat /run/docker.pid");
        let mut init = self.init.lock().unwrap();
        writeln!(init.1, "{signal}").unwrap();
        within(|| (self.sh("cat /run/docker.pid 2>/dev/null || true") != pid).then_some(()))
            .unwrap();
        self.await_up().unwrap();
    }

    /// A command inside its namespaces.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["--target", &self.pid, "--mount", "--net", "--pid", "--", program]);
        command.stdin(Stdio::null()).env_remove("DOCKER_HOST");
        command
    }

    /// What docker says; it must succeed.
    #[track_caller]
    pub fn docker(&self, args: &[&str]) -> String {
        text(self.command("docker").args(args).output().unwrap(), args)
    }

    /// What a shell script says; it must succeed.
    #[track_caller]
    pub fn sh(&self, script: &str) -> String {
        text(self.command("sh").args(["-ec", script]).output().unwrap(), &[script])
    }

    /// Makes an image of busybox with these changes and pushes it; its pinned name.
    pub fn import(&self, name: &str, changes: &[&str]) -> String {
        let changes: Vec<String> = changes.iter().map(|it| format!("-c '{it}'")).collect();
        let tag = format!("127.0.0.1:5000/{name}:1");
        self.sh(&format!(
            "d=/run/rootfs-{name}; mkdir -p $d/bin $d/etc; cp $(command -v busybox) $d/bin/
            for it in sh sleep echo cat true env test; do ln -sf busybox $d/bin/$it; done
            echo root:x:0:0::/:/bin/sh >$d/etc/passwd; echo {name} >$d/etc/image
            tar -C $d -cf - . | docker import -c 'CMD [\"sleep\",\"1000\"]' {} - {tag} >/dev/null",
            changes.join(" ")
        ));
        within(|| {
            let pushed = self.command("docker").args(["push", "-q", &tag]).output().unwrap();
            pushed.status.success().then_some(())
        })
        .expect("the registry is up");
        self.docker(&["inspect", "-f", "{{index .RepoDigests 0}}", &tag])
    }

    /// A field of a container, by a template.
    pub fn told(&self, name: &str, template: &str) -> String {
        self.docker(&["container", "inspect", "-f", template, name])
    }

    /// The containers whose names begin so, each with whether it runs, in the order of names.
    pub fn containers(&self, prefix: &str) -> Vec<String> {
        let format = "{{.Names}} {{.State}}";
        let all = self.docker(&["ps", "-a", "--format", format]);
        let mut all: Vec<String> =
            all.lines().filter(|it| it.starts_with(prefix)).map(String::from).collect();
        all.sort();
        all
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        let _ = self.init.get_mut().unwrap().0.kill();
    }
}

/// The host of one test, beside an engine that others use too.
pub struct Node {
    pub engine: &'static Engine,
    pub scratch: Scratch,
}

impl Node {
    /// `name` is this one's alone, and begins the names of its containers.
    pub fn new(name: &str) -> Option<Node> {
        let engine = Engine::shared()?;
        Some(Node { engine, scratch: Scratch::new(name) })
    }

    /// Has `test` try each of `cases`, on a few nodes at once: what they do is mostly to wait.
    pub fn each<T: Sync>(name: &str, cases: &[T], test: impl Fn(&Node, &str, &T) + Sync) {
        if Engine::shared().is_none() {
            return;
        }
        let few = cases.len().div_ceil(3);
        std::thread::scope(|scope| {
            for (nth, some) in cases.chunks(few).enumerate() {
                let (name, test) = (format!("{name}-{nth}"), &test);
                scope.spawn(move || {
                    let Some(node) = Node::new(&name) else { return };
                    some.iter().for_each(|case| test(&node, &name, case));
                });
            }
        });
    }

    /// Runs the host on the engine's machine, whose files are this machine's.
    pub fn host(&self, args: &[&str]) -> Run {
        let mut command = self.engine.command("unshare");
        let shim = self.shim();
        let script = r#"[ ! -e "$0/docker" ] || mount --bind "$0" /usr/local/sbin; exec "$@""#;
        command.args(["--mount", "sh", "-c", script]).arg(&shim).arg(HOST);
        command.args(["--json", "--state"]).arg(self.scratch.join("state")).args(args);
        let Output { status, stdout, stderr } = command.output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Run { code: status.code().unwrap_or(-1), out: text(stdout), err: text(stderr) }
    }

    pub fn apply(&self, resources: &str) -> Run {
        let path = self.scratch.join("declared.json");
        fs::write(&path, declared(resources)).unwrap();
        self.host(&["apply", path.to_str().unwrap()])
    }

    #[track_caller]
    pub fn converge(&self, resources: &str) -> Run {
        let run = self.apply(resources);
        assert_eq!(run.code, 0, "{}{}", run.out, run.err);
        run
    }

    pub fn reconcile(&self) -> Run {
        self.host(&["reconcile"])
    }

    /// A second run that finds nothing to do and writes nothing.
    #[track_caller]
    pub fn idle(&self) {
        let before = self.journal();
        let run = self.reconcile();
        let all = run.outcomes();
        assert!(all.iter().all(|it| it.ends_with(" unchanged")), "{}{}", run.out, run.err);
        assert!(self.journal() == before, "an idle pass wrote");
    }

    pub fn journal(&self) -> String {
        fs::read_to_string(self.scratch.join("state/journal.jsonl")).unwrap_or_default()
    }

    fn shim(&self) -> PathBuf {
        self.scratch.join("shim")
    }

    /// A docker before the real one: these lines of a shell run first, with `call` the verb.
    pub fn intercept(&self, lines: &str) {
        let real = ["/usr/local/bin/docker", "/usr/bin/docker"];
        let real = real.iter().find(|path| Path::new(path).exists()).expect("there is one");
        let script = format!(
            "#!/bin/sh\nreal={real}\ncall=$1\ncase $1 in network|image) call=\"$1 $2\";; esac\n\
             {lines}\nexec $real \"$@\"\n"
        );
        self.intercept_whole(&script);
    }

    /// The same, with nothing else in it.
    pub fn intercept_whole(&self, script: &str) {
        fs::create_dir_all(self.shim()).unwrap();
        let path = self.shim().join("docker");
        fs::write(&path, script).unwrap();
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// The real one alone, again.
    pub fn real(&self) {
        fs::remove_dir_all(self.shim()).unwrap();
    }

    /// A container of the small image that runs until it is stopped.
    pub fn container(&self, name: &str, fields: &str) -> String {
        let image = &self.engine.image;
        format!(
            r#"{{"id":"{name}","type":"container","name":"{name}","image":"{image}",
            "stop_timeout_s":0{fields}}}"#
        )
    }

    pub fn id(&self, name: &str) -> String {
        self.engine.told(name, "{{.Id}} {{.State.StartedAt}}")
    }
}

/// What `found` comes to within half a minute.
fn within<T>(found: impl Fn() -> Option<T>) -> Option<T> {
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(30) {
        if let Some(found) = found() {
            return Some(found);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    None
}

#[track_caller]
fn text(output: Output, args: &[&str]) -> String {
    let said = String::from_utf8_lossy(&output.stdout).trim().to_string();
    let why = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {said}{why}");
    said
}
