//! A machine's life: made, booted, rebooted, cut off, and taken away with all it left.

use crate::footprint::Footprint;
use crate::inside::Inside;
use crate::owner::fresh_mark;
use crate::switch::{lock, Port};
use crate::tree::Tree;
use crate::{child, sweep, wait};
use std::fs::{self, File};
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const BOOT: &str = include_str!("boot.sh");
const BOOT_LIMIT: Duration = Duration::from_secs(90);
const SHUTDOWN_LIMIT: Duration = Duration::from_secs(150);
/// nspawn's exit code for a machine that asked to be rebooted, under `--keep-unit`.
const REBOOT: i32 = 133;

/// A machine that is up. Gone, with everything it left, when it is dropped.
pub struct Machine {
    name: String,
    mark: String,
    directory: PathBuf,
    tree: &'static Tree,
    port: Port,
    cable: Mutex<&'static str>,
    running: Mutex<Option<Running>>,
}

struct Running {
    unshare: Child,
    inside: Arc<Inside>,
    boot_id: String,
}

impl Machine {
    pub(crate) fn boot_new(name: &str) -> Result<Machine, String> {
        let tree = Tree::ready()?;
        let mark = fresh_mark();
        let machine = Machine {
            name: name.to_owned(),
            directory: Path::new(sweep::STATE).join(&mark),
            mark,
            tree,
            port: Port::free().map_err(|e| format!("machine {name}: switch: {e}"))?,
            cable: Mutex::new("up"),
            running: Mutex::new(None),
        };
        // From here on the drop of `machine` takes away whatever has been made.
        machine.lay_out().map_err(|e| format!("machine {name}: {e}"))?;
        machine.start()?;
        Ok(machine)
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its address on `eth0`, the same for all its boots.
    pub fn address(&self) -> Ipv4Addr {
        self.port.address()
    }

    /// Another one after each boot.
    #[track_caller]
    pub fn boot_id(&self) -> String {
        lock(&self.running).as_ref().expect("the machine is up").boot_id.clone()
    }

    /// Reboots in order: units are stopped, file systems left, everything in the kernel gone.
    #[track_caller]
    pub fn reboot(&self) {
        // The manager takes the connection down with it, so the code says nothing.
        self.run(["systemctl", "reboot"]);
        let mut running = lock(&self.running).take().expect("the machine is up");
        match child::wait(&mut running.unshare, SHUTDOWN_LIMIT) {
            Ok(Some(status)) if status.code() == Some(REBOOT) => {}
            Ok(Some(status)) => panic!("{}: reboot: {status}\n{}", self.name, self.console()),
            ended => {
                running.end();
                panic!("{}: reboot: {ended:?} in {SHUTDOWN_LIMIT:?}", self.name);
            }
        }
        drop(running);
        self.start_or_panic();
    }

    /// Pulls the plug and boots again: every process ends at once, nothing is stopped in order.
    /// The disk keeps what was written, synced or not: the computer's own memory stays.
    #[track_caller]
    pub fn power_cut(&self) {
        lock(&self.running).take().expect("the machine is up").end();
        self.start_or_panic();
    }

    /// Plugs the network cable in, or pulls it; it stays so over a reboot.
    #[track_caller]
    pub fn cable(&self, plugged: bool) {
        let state = if plugged { "up" } else { "down" };
        *lock(&self.cable) = state;
        if let Err(e) = self.port.set(state) {
            panic!("{}: cable {state}: {e}", self.name);
        }
    }

    /// The last lines of the machine's console.
    pub fn console(&self) -> String {
        let text = fs::read(self.directory.join("console")).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(40)..].join("\n")
    }

    /// What to look for after its end.
    pub fn footprint(&self) -> Footprint {
        Footprint::new(&self.mark, &self.inside())
    }

    #[track_caller]
    pub(crate) fn inside(&self) -> Arc<Inside> {
        Arc::clone(&lock(&self.running).as_ref().expect("the machine is up").inside)
    }

    fn lay_out(&self) -> io::Result<()> {
        fs::create_dir(&self.directory)?;
        for part in ["upper", "work", "root", "docker", "upper/etc"] {
            let part = self.directory.join(part);
            fs::create_dir(&part)?;
            // The upper directories show through as the machine's own.
            fs::set_permissions(part, fs::Permissions::from_mode(0o755))?;
        }
        let etc = self.directory.join("upper/etc");
        fs::write(etc.join("hostname"), format!("{}\n", self.name))?;
        fs::write(etc.join("hosts"), format!("127.0.0.1 localhost {}\n", self.name))
    }

    #[track_caller]
    fn start_or_panic(&self) {
        if let Err(e) = self.start() {
            panic!("{e}");
        }
    }

    /// Boots and waits until systemd says that the boot is over.
    fn start(&self) -> Result<(), String> {
        let told = |e: io::Error| format!("{}: boot: {e}", self.name);
        let mut unshare = child::spawn(self.boot_command().map_err(told)?).map_err(told)?;
        match self.come_up(&mut unshare) {
            Ok((inside, boot_id)) => {
                let inside = Arc::new(inside);
                *lock(&self.running) = Some(Running { unshare, inside, boot_id });
                Ok(())
            }
            Err(e) => {
                let _ = unshare.kill();
                let _ = unshare.wait();
                Err(format!("{}: boot: {e}; its console:\n{}", self.name, self.console()))
            }
        }
    }

    fn boot_command(&self) -> io::Result<Command> {
        let console =
            File::options().create(true).append(true).open(self.directory.join("console"))?;
        let mut command = Command::new("unshare");
        command
            .args(["--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"])
            .args(["--propagation=private", "sh", "-c", BOOT])
            .env("MARK", &self.mark)
            .env("NAME", &self.name)
            .env("ADDRESS", format!("{}/24", self.address()))
            .env("PORT", self.port.name())
            .env("MAC", self.port.mac())
            .env("CABLE", *lock(&self.cable))
            .env("LOWER", self.tree.lower()?)
            .env("DIR", &self.directory)
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(console.try_clone()?)
            .stderr(console);
        let switch = self.port.switch().as_raw_fd();
        command.env("SWITCH", format!("/proc/self/fd/{switch}"));
        child::pass(&mut command, switch);
        Ok(command)
    }

    fn come_up(&self, unshare: &mut Child) -> Result<(Inside, String), String> {
        let mut inside = None;
        let mut state = String::from("no init yet");
        let up = wait::until(BOOT_LIMIT, || {
            match unshare.try_wait() {
                Ok(None) => {}
                ended => {
                    state = format!("ended, {ended:?}");
                    return true;
                }
            }
            if inside.is_none() {
                inside = Inside::open(unshare.id()).ok().flatten();
            }
            let Some(inside) = &inside else { return false };
            // Degraded is up too: whether a unit may fail is the scenario's to say.
            state = ask(inside, &["systemctl", "is-system-running"]);
            state == "running" || state == "degraded"
        });
        match inside {
            Some(inside) if up && !state.starts_with("ended") => {
                let boot_id = ask(&inside, &["cat", "/proc/sys/kernel/random/boot_id"]);
                Ok((inside, boot_id))
            }
            _ => Err(state),
        }
    }
}

impl Running {
    fn end(mut self) {
        self.inside.kill_init(self.unshare.id());
        // nspawn ends by itself once every process of the machine has, and what is around it ends
        // with it: the next boot, or the
        // removal of the directory, then meets none of them.
        if !matches!(child::wait(&mut self.unshare, Duration::from_secs(20)), Ok(Some(_))) {
            child::kill_group(&mut self.unshare);
        }
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("--- console of {}\n{}", self.name, self.console());
        }
        if let Some(running) = lock(&self.running).take() {
            running.end();
        }
        let cgroup = sweep::cgroup_root().map(|root| root.join(&self.mark));
        let swept = cgroup.map_or(Ok(()), |cgroup| sweep::end_cgroup(&cgroup));
        if let Err(e) = swept.and_then(|()| sweep::remove_tree(&self.directory)) {
            eprintln!("lab: {} leaves something of {}: {e}", self.name, self.mark);
        }
    }
}

/// The first thing a command inside says; what went wrong instead, if it did.
fn ask(inside: &Inside, argv: &[&str]) -> String {
    let mut command = inside.command();
    command.args(argv);
    match child::run(command, &[], Duration::from_secs(30)) {
        Ok(done) => String::from_utf8_lossy(&done.stdout).trim().to_owned(),
        Err(e) => format!("{}: {e}", argv[0]),
    }
}
