//! The service of a scratch site: started, asked how it is, and ended with the test.
#![allow(dead_code)] // each test binary uses a part of it

use std::fs::{self, File};
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::site::{Site, HOST};

/// Longer than anything here takes on a machine that has much else to do.
pub const LIMIT: Duration = Duration::from_secs(20);

/// A running service.
pub struct Service {
    child: Child,
    log: PathBuf,
    status: PathBuf,
}

impl Service {
    /// Starts it.
    pub fn start(site: &Site) -> Service {
        Service::start_with(site, &[])
    }

    /// Starts it with these variables set.
    pub fn start_with(site: &Site, env: &[(&str, &str)]) -> Service {
        let log = site.path().join("log");
        let out = File::options().create(true).append(true).open(&log).unwrap();
        let mut command = Command::new(HOST);
        command.args(site.arguments("run")).envs(env.iter().copied());
        command.env_remove("LD_LIBRARY_PATH").stdin(Stdio::null()).stderr(out);
        let child = command.spawn().unwrap();
        let status = site.root().join("run/mesh-host/status.json");
        Service { child, log, status }
    }

    /// Its process number.
    pub fn pid(&self) -> i32 {
        self.child.id().try_into().unwrap()
    }

    /// What it says of itself; null before it has.
    pub fn status(&self) -> Value {
        let text = fs::read_to_string(&self.status).unwrap_or_default();
        let said: Value = serde_json::from_str(&text).unwrap_or_default();
        if said["pid"] == self.pid() {
            said
        } else {
            Value::Null
        }
    }

    /// Waits until it waits, having made a pass that `is`; what it says then.
    pub fn rests(&self, is: impl Fn(&Value) -> bool) -> Value {
        self.says(|said| said["doing"] == "waiting" && is(&said["last_pass"]))
    }

    /// Waits until what it says `is`.
    pub fn says(&self, is: impl Fn(&Value) -> bool) -> Value {
        let mut said = Value::Null;
        let seen = until(|| {
            said = self.status();
            !said.is_null() && is(&said)
        });
        assert!(seen, "{said:#}\n{}", self.log());
        said
    }

    /// All it has written on standard error, earlier ones of the site included.
    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Lines of the log that hold `text`.
    pub fn logged(&self, text: &str) -> usize {
        self.log().lines().filter(|line| line.contains(text)).count()
    }

    /// Waits until the log holds `text`.
    pub fn logs(&self, text: &str) {
        assert!(until(|| self.logged(text) > 0), "no {text:?} in\n{}", self.log());
    }

    pub fn signal(&self, signal: i32) {
        // SAFETY: takes no memory; the child is not reaped, so the number is its.
        assert_eq!(unsafe { libc::kill(self.pid(), signal) }, 0);
    }

    /// Waits for its end.
    pub fn ends(&mut self) -> ExitStatus {
        let mut ended = None;
        let is_over = until(|| {
            ended = self.child.try_wait().unwrap();
            ended.is_some()
        });
        assert!(is_over, "it does not end\n{}", self.log());
        ended.unwrap()
    }

    /// Ends it in order.
    pub fn stop(mut self) {
        self.signal(libc::SIGTERM);
        let ended = self.ends();
        assert!(ended.success(), "{ended}\n{}", self.log());
    }

    /// A number that the kernel tells of it, by its name in /proc/PID/status.
    pub fn kernel(&self, name: &str) -> u64 {
        let path = format!("/proc/{}/status", self.pid());
        let text = fs::read_to_string(path).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim_start_matches(':').split_whitespace().next().unwrap().parse().unwrap()
    }

    /// Its children.
    pub fn children(&self) -> Vec<i32> {
        let pid = self.pid();
        let text = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
        text.split_whitespace().map(|it| it.parse().unwrap()).collect()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits for something, a while at most; whether it came about.
pub fn until(mut is: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    loop {
        if is() {
            return true;
        }
        if start.elapsed() > LIMIT {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The service manager's end of sd_notify(3).
pub struct Manager {
    socket: UnixDatagram,
    path: PathBuf,
}

impl Manager {
    pub fn new(site: &Site) -> Manager {
        let path = site.path().join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        socket.set_read_timeout(Some(LIMIT)).unwrap();
        Manager { socket, path }
    }

    pub fn path(&self) -> &str {
        self.path.to_str().unwrap()
    }

    /// The next message.
    pub fn told(&self) -> String {
        let mut message = [0; 4096];
        let len = self.socket.recv(&mut message).expect("the service says something");
        String::from_utf8_lossy(&message[..len]).into_owned()
    }

    /// Waits for a message with this line.
    pub fn is_told(&self, line: &str) {
        while !self.told().lines().any(|it| it == line) {}
    }
}
