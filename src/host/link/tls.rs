//! TLS with a broker: who this node is, and by whom brokers are known.
//!
//! Owns the configuration and the bytes of one connection; which socket they come from is the
//! caller's. No session is resumed: what was revoked since must not come back by an old ticket.

use std::io::{self, Read, Write};
use std::sync::Arc;

use rustls::client::Resumption;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, ProtocolVersion, RootCertStore};

use super::refusal::{Layer, Refusal, Side};

/// What this node shows of itself: its certificate, and those that signed it, if any.
pub type Chain = Vec<CertificateDer<'static>>;

/// A connection's TLS.
pub struct Tls(ClientConnection);

/// How far the handshake is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Progress {
    /// Under way.
    Shaking,
    /// Through, as far as this side can know.
    Secured,
    /// The other side, too, has taken our certificate.
    Judged,
}

/// How this node proves itself to a broker that one of `authorities` knows.
///
/// # Errors
/// The key is not the certificate's, or an authority is none.
pub fn config(
    chain: Chain,
    key: PrivateKeyDer<'static>,
    authorities: &[CertificateDer<'static>],
) -> Result<Arc<ClientConfig>, rustls::Error> {
    let mut roots = RootCertStore::empty();
    for authority in authorities {
        roots.add(authority.clone())?;
    }
    let mut config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_client_auth_cert(chain, key)?;
    config.resumption = Resumption::disabled();
    Ok(Arc::new(config))
}

impl Tls {
    /// Starts a handshake with a broker of this name or address.
    ///
    /// # Errors
    /// No certificate could be for such a name.
    pub fn start(config: &Arc<ClientConfig>, host: &str) -> Result<Tls, Refusal> {
        let name = ServerName::try_from(host.to_string()).map_err(|_| {
            let mend = "name the broker otherwise in the mesh's brokers";
            Refusal::new(Side::Host, Layer::Tls, "no certificate is for such a name", mend)
        })?;
        ClientConnection::new(config.clone(), name).map(Tls).map_err(|error| {
            let mend = "look at this node's identity, or enrol it again";
            Refusal::new(Side::Host, Layer::Tls, error.to_string(), mend)
        })
    }

    /// How far it is.
    pub fn progress(&self) -> Progress {
        if self.0.is_handshaking() {
            Progress::Shaking
        } else if self.0.protocol_version() == Some(ProtocolVersion::TLSv1_2)
            // A server sends tickets once it is through (RFC 8446, 4.6.1); OpenSSL 3.0.11 does.
            || self.0.tls13_tickets_received() > 0
        {
            Progress::Judged
        } else {
            Progress::Secured
        }
    }

    /// Takes in what `from` has, once; how many bytes there were, 0 at its end.
    ///
    /// # Errors
    /// Those of `from`. What is wrong with the bytes shows in [`Tls::digest`].
    pub fn pull(&mut self, from: &mut impl Read) -> io::Result<usize> {
        self.0.read_tls(from)
    }

    /// Makes sense of what was taken in.
    ///
    /// # Errors
    /// Why the other side is not to be trusted, or does not trust us.
    pub fn digest(&mut self) -> Result<(), rustls::Error> {
        self.0.process_new_packets().map(drop)
    }

    /// Moves plain bytes into `into`; how many there were, 0 where none is left for now.
    pub fn read(&mut self, into: &mut [u8]) -> usize {
        // That there is none, and that there never will be: the socket's end says so, too.
        self.0.reader().read(into).unwrap_or(0)
    }

    /// Takes plain bytes to be sent, as far as there is room.
    pub fn write(&mut self, bytes: &[u8]) -> usize {
        self.0.writer().write(bytes).unwrap_or(0)
    }

    /// There is something for [`Tls::push`].
    pub fn wants_push(&self) -> bool {
        self.0.wants_write()
    }

    /// Puts out what is due, once.
    ///
    /// # Errors
    /// Those of `into`.
    pub fn push(&mut self, into: &mut impl Write) -> io::Result<usize> {
        self.0.write_tls(into)
    }

    /// Says that no more is to come from this side.
    pub fn farewell(&mut self) {
        self.0.send_close_notify();
    }
}
