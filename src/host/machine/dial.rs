//! Connecting without waiting, and asking for addresses in a child, which may wait in our stead.
//!
//! What resolves a name blocks for as long as it likes and reads what strangers sent; so it runs in
//! a process of its own, which is this same binary, let go of root.

use std::fs::File;
use std::io::{self, Read};
use std::mem::size_of;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::path::Path;
use std::process::{Child, ExitCode};
use std::time::Duration;

use super::child::{self, Call};
use super::fetch::let_go_of_root;
use super::words::{last_line, words};

/// The argument that makes the binary a child which looks addresses up: `main` hands over to
/// [`look_up_main`] when it is the first, and the only one.
pub const LOOK_UP_ARGUMENT: &str = "look-up-addresses";

/// What the child reads `host:port` from.
const NAME: &str = "MESH_HOST_LOOK_UP";
/// The most addresses that are told.
const MOST: usize = 16;
/// The most bytes that are read of them, and of what went wrong.
const MOST_BYTES: u64 = 4096;
/// Children that were given up and have not died yet, at most.
const MOST_DYING: usize = 4;
/// How often a killed child is looked for once nobody asks any more, a millisecond apart.
const MOST_LAST_LOOKS: u32 = 30;
/// How long what was sent may stay unacknowledged before the kernel gives a connection up.
const UNACKNOWLEDGED: Duration = Duration::from_secs(30);

/// Begins to connect to `address`; [`dialled`] says when that has come about.
///
/// # Errors
/// Those of socket(2) and connect(2).
pub fn dial(address: SocketAddr) -> io::Result<TcpStream> {
    let family = if address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: takes no memory.
    let fd = unsafe { libc::socket(family, kind, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just handed out this descriptor; nobody else owns it.
    let stream = TcpStream::from(unsafe { OwnedFd::from_raw_fd(fd) });
    stream.set_nodelay(true)?;
    let unacknowledged = UNACKNOWLEDGED.as_millis() as libc::c_uint;
    // SAFETY: the value is readable and of the size that is given.
    let set = unsafe {
        libc::setsockopt(
            fd,
            libc::IPPROTO_TCP,
            libc::TCP_USER_TIMEOUT,
            (&raw const unacknowledged).cast(),
            size_of::<libc::c_uint>() as libc::socklen_t,
        )
    };
    if set != 0 {
        return Err(io::Error::last_os_error());
    }
    let connected = match address {
        SocketAddr::V4(address) => {
            let to = libc::sockaddr_in {
                sin_family: libc::AF_INET as libc::sa_family_t,
                sin_port: address.port().to_be(),
                sin_addr: libc::in_addr { s_addr: u32::from(*address.ip()).to_be() },
                sin_zero: [0; 8],
            };
            connect(fd, &to)
        }
        SocketAddr::V6(address) => {
            let to = libc::sockaddr_in6 {
                sin6_family: libc::AF_INET6 as libc::sa_family_t,
                sin6_port: address.port().to_be(),
                sin6_flowinfo: address.flowinfo(),
                sin6_addr: libc::in6_addr { s6_addr: address.ip().octets() },
                sin6_scope_id: address.scope_id(),
            };
            connect(fd, &to)
        }
    };
    match connected {
        Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => Err(error),
        _ => Ok(stream),
    }
}

fn connect<A>(fd: RawFd, to: &A) -> io::Result<()> {
    let size = size_of::<A>() as libc::socklen_t;
    // SAFETY: `to` is a socket address of that size.
    match unsafe { libc::connect(fd, (&raw const *to).cast(), size) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Whether the connection that was begun stands.
///
/// # Errors
/// It came to nothing.
pub fn dialled(stream: &TcpStream) -> io::Result<bool> {
    if let Some(error) = stream.take_error()? {
        return Err(error);
    }
    match stream.peer_addr() {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotConnected => Ok(false),
        Err(error) => Err(error),
    }
}

/// Asks for addresses, one name at a time.
#[derive(Debug, Default)]
pub struct Resolver {
    asked: Option<Asked>,
    /// Killed, and not reaped yet.
    dying: Vec<Child>,
}

/// A child that is asking.
#[derive(Debug)]
struct Asked {
    child: Child,
    pipes: [(Option<File>, Vec<u8>); 2],
}

impl Resolver {
    /// Begins to ask for the addresses of `host`, by the host's binary `program`.
    ///
    /// # Errors
    /// The child could not be started.
    pub fn ask(&mut self, program: &Path, host: &str, port: u16) -> Result<(), String> {
        self.give_up();
        if self.dying.len() >= MOST_DYING {
            return Err("the lookups before do not end, not even when killed".into());
        }
        let program = program.to_str().ok_or("the name of its program is not text")?;
        let name = match host.contains(':') {
            true => format!("[{host}]:{port}"),
            false => format!("{host}:{port}"),
        };
        let argv = [program, LOOK_UP_ARGUMENT];
        let call = Call { env: &[(NAME, &name)], ..Call::new(&argv) };
        let mut child = child::spawn(&call, None).map_err(child::Unrun::into_cause)?;
        let pipes = [
            child.stdout.take().map(|pipe| File::from(OwnedFd::from(pipe))),
            child.stderr.take().map(|pipe| File::from(OwnedFd::from(pipe))),
        ];
        pipes.iter().flatten().for_each(child::no_blocking);
        self.asked = Some(Asked { child, pipes: pipes.map(|pipe| (pipe, Vec::new())) });
        Ok(())
    }

    /// What becomes readable when there is news; `None` where nothing is asked.
    pub fn fd(&self) -> Option<RawFd> {
        let pipes = &self.asked.as_ref()?.pipes;
        pipes.iter().find_map(|(pipe, _)| pipe.as_ref()).map(AsRawFd::as_raw_fd)
    }

    /// The addresses, once they are there; `None` where they are not, or nothing is asked.
    pub fn answer(&mut self) -> Option<Result<Vec<SocketAddr>, String>> {
        self.reap();
        let asked = self.asked.as_mut()?;
        for (pipe, text) in &mut asked.pipes {
            read(pipe, text);
        }
        if asked.pipes.iter().any(|(pipe, _)| pipe.is_some()) {
            return None;
        }
        let [(_, out), (_, err)] = &asked.pipes;
        let lines = std::str::from_utf8(out).unwrap_or_default().lines();
        let addresses: Vec<SocketAddr> = lines.filter_map(|line| line.parse().ok()).collect();
        let answer = match addresses.is_empty() {
            true => Err(last_line(err).unwrap_or_else(|| "nothing was said of it".into())),
            false => Ok(addresses),
        };
        self.give_up();
        Some(answer)
    }

    /// Asks no more.
    pub fn give_up(&mut self) {
        if let Some(Asked { mut child, .. }) = self.asked.take() {
            // That it has ended already is the only way to fail.
            let _ = child.kill();
            self.dying.push(child);
        }
        self.reap();
    }

    fn reap(&mut self) {
        self.dying.retain_mut(|child| matches!(child.try_wait(), Ok(None)));
    }
}

impl Drop for Resolver {
    fn drop(&mut self) {
        self.give_up();
        // One that was killed is gone in a moment, unless the kernel holds it.
        for _ in 0..MOST_LAST_LOOKS {
            if self.dying.is_empty() {
                break;
            }
            super::clock::pause(Duration::from_millis(1));
            self.reap();
        }
    }
}

/// Reads what there is, and lets go of a pipe that is at its end, broken or tells too much.
fn read(pipe: &mut Option<File>, text: &mut Vec<u8>) {
    let Some(file) = pipe else { return };
    let left = MOST_BYTES.saturating_sub(text.len() as u64);
    match file.take(left).read_to_end(text) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
        Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
        Ok(_) | Err(_) => *pipe = None,
    }
}

/// The child: writes the addresses that the name in its environment has to standard output, one a
/// line. Exits 1 and says why in one line on standard error where there are none.
pub fn look_up_main() -> ExitCode {
    let name = std::env::var(NAME).unwrap_or_default();
    let found = let_go_of_root().and_then(|()| {
        name.to_socket_addrs().map_err(|error| words(&error).replace("failed to ", ""))
    });
    match found {
        Ok(addresses) => {
            addresses.take(MOST).for_each(|address| println!("{address}"));
            ExitCode::SUCCESS
        }
        Err(cause) => {
            eprintln!("{}", cause.escape_debug());
            ExitCode::FAILURE
        }
    }
}
