//! The link to the mesh: MQTT 5 over TLS, to the first broker that lets this node in.
//!
//! `mqtt`, `session`, `signed`, `mesh`, `refusal` and `x509` are pure: bytes and events in, effects
//! out. `line` carries them out by the sockets of `machine`, TLS and a child that looks names up;
//! [`Link`] is the whole as the service's loop holds it, which it never keeps waiting:
//!
//! ```text
//! loop {
//!     poll(link.interest() + others, until link.deadline());
//!     for happened in link.turn() { … }       // also when only the deadline has passed
//!     while link.room() > 0 { link.report(oldest unsent …) }
//! }
//! ```
//!
//! Absent on purpose: a queue. What was not acknowledged is in the store, and is handed over again
//! after the next [`Happened::Up`].

pub mod declared;
pub mod identity;
mod line;
pub mod mesh;
pub mod mqtt;
pub mod refusal;
pub mod session;
pub mod signed;
#[cfg(test)]
mod tests;
pub mod tls;
pub mod x509;

pub use identity::Identity;
pub use line::{Interest, Link};
pub use refusal::{Layer, Refusal, Side};
pub use session::{Happened, Standing, Taken, Unsent};
