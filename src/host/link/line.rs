//! The link as the service's loop holds it: carries out what the session says, and never waits.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsRawFd, RawFd};
use std::path::PathBuf;
use std::time::Duration;

use super::identity::Identity;
use super::mesh::Broker;
use super::mqtt::Frame;
use super::refusal::{Layer, Refusal, Side};
use super::session::{Effect, Event, Happened, Me, Moment, Session, Standing, Unsent, MOST_BYTES};
use super::tls::{Progress, Tls};
use crate::error::Error;
use crate::machine::{self, Resolver};

/// The longest silence of this side, in seconds, unless the broker wants another.
const KEEP_ALIVE_S: u16 = 60;
/// The most bytes that are read in one turn, so that the loop gets its turns, too.
const TURN: usize = 1 << 20;
/// The most steps that are taken in one turn.
const MOST_STEPS: usize = 256;
/// A buffer larger than this is not kept when it is empty.
const KEPT: usize = 64 << 10;

/// What the loop is to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interest {
    /// The descriptor.
    pub fd: RawFd,
    /// For poll(2).
    pub events: i16,
}

/// The link of an enrolled host.
pub struct Link {
    identity: Identity,
    session: Session,
    /// The binary that looks names up.
    program: PathBuf,
    resolver: Resolver,
    line: Option<Line>,
    /// The last turn ended before all was done that could be.
    is_behind: bool,
}

/// A connection, or one that is coming about.
struct Line {
    address: SocketAddr,
    stream: TcpStream,
    connected: bool,
    tls: Option<Tls>,
    progress: Progress,
    frame: Frame,
    /// What is to be sent, and how much of it TLS has.
    unsent: Vec<u8>,
    given: usize,
    /// Something was sent since the session was last told that all had gone.
    drained: bool,
}

impl Link {
    /// One that makes its first attempt with its first [`Link::turn`].
    pub fn new(identity: Identity) -> Link {
        let me = Me {
            node: identity.node.clone(),
            version: env!("CARGO_PKG_VERSION"),
            keep_alive_s: KEEP_ALIVE_S,
        };
        let session = Session::new(me, identity.mesh.clone());
        // Not the name it was started by: an upgrade may have put another version there.
        let program = PathBuf::from("/proc/self/exe");
        let (resolver, line, is_behind) = (Resolver::default(), None, false);
        Link { identity, session, program, resolver, line, is_behind }
    }

    /// Has names looked up by another binary of the host than the running one.
    pub fn look_up_by(&mut self, program: PathBuf) {
        self.program = program;
    }

    /// What to wait for; `None` where only [`Link::deadline`] matters. To be asked before each
    /// wait.
    pub fn interest(&self) -> Option<Interest> {
        if let Some(fd) = self.resolver.fd() {
            return Some(Interest { fd, events: libc::POLLIN });
        }
        let line = self.line.as_ref()?;
        let writes = !line.connected || line.wants_write();
        let events = libc::POLLIN | if writes { libc::POLLOUT } else { 0 };
        Some(Interest { fd: line.stream.as_raw_fd(), events })
    }

    /// By when [`Link::turn`] is to be called at the latest, as [`machine::uptime`] counts.
    pub fn deadline(&self) -> Option<Duration> {
        if self.is_behind {
            Some(Duration::ZERO)
        } else {
            self.session.deadline()
        }
    }

    /// Does what can be done now, without waiting, and says what happened. To be called when
    /// [`Link::interest`] is ready or [`Link::deadline`] has passed; at any other time it does no
    /// harm.
    ///
    /// [`Happened::Mesh`] is kept in the identity already, or is told with the error that prevented
    /// it as a refusal beside it.
    pub fn turn(&mut self) -> Vec<Happened> {
        let mut told = Vec::new();
        let mut left = TURN;
        self.is_behind = true;
        for _ in 0..MOST_STEPS {
            let Some(event) = self.next(&mut left) else {
                self.is_behind = false;
                break;
            };
            self.step(event, &mut told);
        }
        // Last: an answer that has come was in time, however long this machine slept.
        self.step(Event::Tick, &mut told);
        told
    }

    /// How many reports or inventories can be handed over now.
    pub fn room(&self) -> usize {
        self.session.room()
    }

    /// Sends the report `id`; [`Happened::Report`] tells what became of it.
    ///
    /// # Errors
    /// It cannot be sent now, or never.
    pub fn report(&mut self, id: String, payload: &[u8]) -> Result<(), Unsent> {
        let mut out = Vec::new();
        let sent = with_moment(|now| self.session.report(id, payload, now, &mut out));
        self.carry_out(out, &mut Vec::new());
        sent
    }

    /// Sends the inventory; [`Happened::Inventory`] tells what became of it.
    ///
    /// # Errors
    /// It cannot be sent now, or never.
    pub fn inventory(&mut self, payload: &[u8]) -> Result<(), Unsent> {
        let mut out = Vec::new();
        let sent = with_moment(|now| self.session.inventory(payload, now, &mut out));
        self.carry_out(out, &mut Vec::new());
        sent
    }

    /// Makes the next attempt at once, where one is waited for: a person asked for it.
    pub fn hurry(&mut self) {
        self.step(Event::Hurry, &mut Vec::new());
    }

    /// Says farewell, which takes a second at most: [`Happened::Stopped`] comes from a later
    /// [`Link::turn`], or from here.
    pub fn stop(&mut self) -> Vec<Happened> {
        let mut told = Vec::new();
        self.step(Event::Stop, &mut told);
        told
    }

    /// Where the link stands.
    pub fn standing(&self) -> Standing {
        self.session.standing()
    }

    /// The broker that is tried, or linked to.
    pub fn broker(&self) -> &Broker {
        self.session.broker()
    }

    /// Who this node is, and the mesh in force.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    fn step(&mut self, event: Event, told: &mut Vec<Happened>) {
        let mut out = Vec::new();
        with_moment(|now| self.session.step(event, now, &mut out));
        self.carry_out(out, told);
    }

    /// What has happened, if anything has that cost no waiting to see.
    fn next(&mut self, left: &mut usize) -> Option<Event> {
        match self.resolver.answer() {
            Some(Ok(addresses)) => return Some(Event::Found(addresses)),
            Some(Err(cause)) => {
                let host = &self.session.broker().host;
                return Some(Event::Failed(Refusal::lookup(host, &cause)));
            }
            None => {}
        }
        let window = self.identity.window;
        self.line.as_mut()?.next(left).map(|event| match event {
            Turned::Event(event) => event,
            Turned::Distrust(error) => Event::Failed(Refusal::tls(&error, machine::now(), &window)),
        })
    }

    fn carry_out(&mut self, effects: Vec<Effect>, told: &mut Vec<Happened>) {
        for effect in effects {
            let failed = match effect {
                Effect::LookUp(broker) => self.look_up(&broker),
                Effect::Connect(address) => self.connect(address),
                Effect::Secure(host) => self.secure(&host),
                Effect::Send(bytes) => {
                    if let Some(line) = &mut self.line {
                        line.send(&bytes);
                    }
                    Ok(())
                }
                Effect::Close => {
                    self.resolver.give_up();
                    if let Some(mut line) = self.line.take() {
                        line.close();
                    }
                    Ok(())
                }
                Effect::Tell(Happened::Mesh(mesh)) => {
                    if let Err(error) = self.identity.keep(&mesh) {
                        told.push(Happened::Refused(unkept(&error)));
                    }
                    told.push(Happened::Mesh(mesh));
                    Ok(())
                }
                Effect::Tell(happened) => {
                    told.push(happened);
                    Ok(())
                }
            };
            if let Err(refusal) = failed {
                // One step deep for each address and broker that is left, of which there are few.
                return self.step(Event::Failed(refusal), told);
            }
        }
    }

    fn look_up(&mut self, broker: &Broker) -> Result<(), Refusal> {
        let asked = self.resolver.ask(&self.program, &broker.host, broker.port);
        asked.map_err(|cause| Refusal::lookup(&broker.host, &cause))
    }

    fn connect(&mut self, address: SocketAddr) -> Result<(), Refusal> {
        let stream = machine::dial(address).map_err(|error| unconnected(address, &error))?;
        self.line = Some(Line {
            address,
            stream,
            connected: false,
            tls: None,
            progress: Progress::Shaking,
            frame: Frame::default(),
            unsent: Vec::new(),
            given: 0,
            drained: true,
        });
        Ok(())
    }

    fn secure(&mut self, host: &str) -> Result<(), Refusal> {
        let config = self.identity.config(self.session.mesh()).map_err(|error| {
            let mend = "look at this node's identity, or enrol it again";
            Refusal::new(Side::Host, Layer::Tls, error.to_string(), mend)
        })?;
        let tls = Tls::start(&config, host)?;
        if let Some(line) = &mut self.line {
            line.tls = Some(tls);
        }
        Ok(())
    }
}

/// What a line has to say.
enum Turned {
    Event(Event),
    /// TLS came to nothing.
    Distrust(rustls::Error),
}

impl Line {
    /// The next thing that happened on it, of what can be seen now.
    fn next(&mut self, left: &mut usize) -> Option<Turned> {
        let event = |event| Some(Turned::Event(event));
        if !self.connected {
            return match machine::dialled(&self.stream) {
                Ok(false) => None,
                Ok(true) => {
                    self.connected = true;
                    event(Event::Connected)
                }
                Err(error) => event(Event::Failed(unconnected(self.address, &error))),
            };
        }
        // One at a time: what is judged was secured before.
        match (self.progress, self.tls.as_ref()?.progress()) {
            (Progress::Shaking, Progress::Secured | Progress::Judged) => {
                self.progress = Progress::Secured;
                return event(Event::Secured);
            }
            (Progress::Secured, Progress::Judged) => {
                self.progress = Progress::Judged;
                return event(Event::Judged);
            }
            _ => {}
        }
        match self.packet() {
            Ok(Some(packet)) => return event(Event::Packet(packet)),
            Ok(None) => {}
            Err(fault) => return event(Event::Failed(Refusal::malformed(fault))),
        }
        // What has come is looked at before what is to go: a broker's reason arrives on reading,
        // and its connection may be closed to writing by then.
        if let Some(turned) = self.read(left) {
            return Some(turned);
        }
        match self.write() {
            Ok(0) => {}
            Ok(_) => return event(Event::Moved),
            Err(error) => return event(Event::Ended(Some(machine::words(&error)))),
        }
        if !self.drained && !self.wants_write() {
            self.drained = true;
            return event(Event::Drained);
        }
        None
    }

    /// Reads once from the socket.
    fn read(&mut self, left: &mut usize) -> Option<Turned> {
        let tls = self.tls.as_mut()?;
        if *left == 0 {
            return None;
        }
        let count = match tls.pull(&mut self.stream) {
            Ok(count) => count,
            Err(error) if is_later(&error) => return None,
            Err(error) => return Some(Turned::Event(Event::Ended(Some(machine::words(&error))))),
        };
        if count == 0 {
            return Some(Turned::Event(Event::Ended(None)));
        }
        *left = left.saturating_sub(count);
        if let Err(error) = tls.digest() {
            // The alert that says why is in there; what it cannot be written to does not matter.
            let _ = tls.push(&mut self.stream);
            return Some(Turned::Distrust(error));
        }
        Some(Turned::Event(Event::Moved))
    }

    /// The packet that is whole, if one is.
    fn packet(&mut self) -> Result<Option<Vec<u8>>, super::mqtt::Fault> {
        let Some(tls) = &mut self.tls else { return Ok(None) };
        let mut piece = [0; 4096];
        loop {
            let missing = self.frame.missing(MOST_BYTES)?;
            if missing == 0 {
                return Ok(Some(self.frame.take()));
            }
            let want = missing.min(piece.len());
            match tls.read(&mut piece[..want]) {
                0 => return Ok(None),
                count => self.frame.push(&piece[..count]),
            }
        }
    }

    fn send(&mut self, bytes: &[u8]) {
        self.unsent.extend_from_slice(bytes);
        self.drained = false;
    }

    fn wants_write(&self) -> bool {
        let Some(tls) = &self.tls else { return false };
        tls.wants_push() || self.given < self.unsent.len()
    }

    /// Writes what the socket takes; how many bytes that were.
    fn write(&mut self) -> io::Result<usize> {
        let Some(tls) = &mut self.tls else { return Ok(0) };
        let mut written = 0;
        loop {
            self.given += tls.write(&self.unsent[self.given..]);
            if self.given == self.unsent.len() {
                self.given = 0;
                self.unsent.clear();
                if self.unsent.capacity() > KEPT {
                    self.unsent = Vec::new();
                }
            }
            if !tls.wants_push() {
                return Ok(written);
            }
            match tls.push(&mut self.stream) {
                Ok(count) => written += count,
                Err(error) if is_later(&error) => return Ok(written),
                Err(error) => return Err(error),
            }
        }
    }

    /// Sends what can be sent at once, and says farewell.
    fn close(&mut self) {
        if let Some(tls) = &mut self.tls {
            self.given += tls.write(&self.unsent[self.given..]);
            tls.farewell();
        }
        // It is over, whatever the other side still takes.
        let _ = self.write();
    }
}

fn is_later(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

fn unconnected(address: SocketAddr, error: &io::Error) -> Refusal {
    Refusal::tcp(address, error.kind(), &machine::words(error))
}

fn unkept(error: &Error) -> Refusal {
    let mend = "make room, or the state directory writable: it is in force until the host ends";
    Refusal::new(Side::Host, Layer::Declaration, error.to_string(), mend)
}

/// Now, with dice from the kernel.
fn with_moment<T>(act: impl FnOnce(&mut Moment) -> T) -> T {
    let mut random = || {
        let mut bytes = [0; 8];
        machine::fill(&mut bytes);
        u64::from_ne_bytes(bytes)
    };
    act(&mut Moment { up: machine::uptime(), at: machine::now(), random: &mut random })
}
