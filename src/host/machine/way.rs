//! Whether an address can be reached from here.

use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::Duration;

use super::clock::{pause, Deadline};
use super::words::words;

/// How long one attempt may take: a packet that is lost is sent again after one second.
const ATTEMPT: Duration = Duration::from_secs(2);
/// Between attempts: a refusal comes at once.
const BETWEEN: Duration = Duration::from_millis(250);
/// The most addresses of one name that are tried.
const MOST_ADDRESSES: usize = 8;

/// The addresses that `HOST:PORT` stands for; a name is looked up.
///
/// # Errors
/// It stands for none, and why.
pub fn addresses(text: &str) -> Result<Vec<SocketAddr>, String> {
    let found = text.to_socket_addrs().map_err(|error| words(&error))?;
    let found: Vec<SocketAddr> = found.take(MOST_ADDRESSES).collect();
    if found.is_empty() {
        Err("it has no address".into())
    } else {
        Ok(found)
    }
}

/// Whether one of these takes a new connection before `limit` is over.
///
/// # Errors
/// None did, and what became of the last attempt.
pub fn reach(addresses: &[SocketAddr], limit: Duration) -> Result<(), String> {
    let until = Deadline::after(limit);
    let mut cause = "no address".to_string();
    loop {
        for address in addresses {
            let left = until.left().clamp(Duration::from_millis(1), ATTEMPT);
            match TcpStream::connect_timeout(address, left) {
                Ok(_) => return Ok(()),
                Err(error) => cause = format!("{address}: {}", words(&error)),
            }
        }
        if until.passed() {
            return Err(cause);
        }
        pause(BETWEEN.min(until.left()));
    }
}
