//! Why there is no link, or why what came over it was not taken: in one sentence. Pure.
//!
//! Owns the words of every way in which linking fails. Each says which side refused, at which
//! layer, on what grounds, and what would mend it, for somebody who reads it in a log at night.

use std::fmt;
use std::io;
use std::time::Duration;

use rustls::{AlertDescription, CertificateError};

use super::mqtt::{self, Fault};
use super::x509::Window;
use crate::declaration::fault::quoted;
use crate::when::When;

/// Who refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// This host.
    Host,
    /// The broker, or the machine that it should run on.
    Broker,
    /// What lies between: nobody answered.
    Network,
}

/// Where it was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Layer {
    /// Asking for the broker's addresses.
    NameLookup,
    /// Connecting.
    Tcp,
    /// Proving to one another who one is.
    Tls,
    /// Speaking MQTT.
    Mqtt,
    /// Being sent what was asked for.
    Subscription,
    /// Who signed a message.
    Signature,
    /// What a message says.
    Declaration,
}

/// One refusal. `Display` gives it as one sentence.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Refusal {
    /// Who refused.
    pub side: Side,
    /// Where.
    pub layer: Layer,
    /// The broker it is about, `host:port`; empty where it is about none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub broker: String,
    /// On what grounds.
    pub grounds: String,
    /// What would mend it.
    pub mend: String,
}

impl Side {
    fn words(self) -> &'static str {
        match self {
            Side::Host => "this host refused",
            Side::Broker => "the broker refused",
            Side::Network => "nobody answered",
        }
    }
}

impl Layer {
    fn words(self) -> &'static str {
        match self {
            Layer::NameLookup => "name lookup",
            Layer::Tcp => "TCP",
            Layer::Tls => "TLS",
            Layer::Mqtt => "MQTT",
            Layer::Subscription => "subscription",
            Layer::Signature => "signature",
            Layer::Declaration => "declaration",
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.broker.is_empty() {
            write!(f, "{}: ", self.broker)?;
        }
        let (side, layer) = (self.side.words(), self.layer.words());
        write!(f, "{side} at {layer}: {}; {}", self.grounds, self.mend)
    }
}

const ENROL: &str = "enrol this node again";

impl Refusal {
    /// A refusal that is about no broker yet.
    pub fn new(
        side: Side,
        layer: Layer,
        grounds: impl Into<String>,
        mend: impl Into<String>,
    ) -> Refusal {
        let (grounds, mend) = (grounds.into(), mend.into());
        Refusal { side, layer, broker: String::new(), grounds, mend }
    }

    /// The same, about this broker.
    pub fn of(self, broker: impl fmt::Display) -> Refusal {
        Refusal { broker: broker.to_string(), ..self }
    }

    /// The broker's name has no address.
    pub fn lookup(host: &str, cause: &str) -> Refusal {
        let grounds = format!("the name {} was not found: {cause}", quoted(host));
        let mend = "check the name in the mesh's brokers, and this machine's resolver";
        Refusal::new(Side::Network, Layer::NameLookup, grounds, mend)
    }

    /// No connection came about.
    pub fn tcp(address: impl fmt::Display, kind: io::ErrorKind, cause: &str) -> Refusal {
        let (side, mend) = match kind {
            io::ErrorKind::ConnectionRefused => {
                (Side::Broker, "start the broker, or correct its port in the mesh's brokers")
            }
            io::ErrorKind::TimedOut => {
                (Side::Network, "check that the broker's machine is up and no filter is between")
            }
            _ => (Side::Network, "check this machine's network and the way to the broker"),
        };
        Refusal::new(side, Layer::Tcp, format!("connect to {address}: {cause}"), mend)
    }

    /// A step took too long.
    pub fn late(layer: Layer, what: &str, limit: Duration) -> Refusal {
        let grounds = format!("{what} within {} s", limit.as_secs());
        let mend = match layer {
            Layer::NameLookup => "check this machine's resolver",
            Layer::Tcp => "check that the broker's machine is up and no filter is between",
            _ => "check that it is a broker that listens there, and that it is not overloaded",
        };
        Refusal::new(Side::Network, layer, grounds, mend)
    }

    /// The connection ended while `doing`, without a word; `cause` is the kernel's, if it had one.
    pub fn ended(layer: Layer, doing: &str, cause: Option<&str>) -> Refusal {
        let how = cause.unwrap_or("the connection was closed without a word");
        let mend = match layer {
            Layer::Tls => "see the broker's log; it may not speak TLS there, or have refused us",
            // mosquitto 2.0.11 ends so when a second client takes the same identifier.
            _ => "see the broker's log; a second host with this identity ends it so, too",
        };
        Refusal::new(Side::Broker, layer, format!("{how} while {doing}"), mend)
    }

    /// TLS came to nothing. `ours` is the window of this node's certificate.
    pub fn tls(error: &rustls::Error, at: When, ours: &Window) -> Refusal {
        match error {
            rustls::Error::AlertReceived(alert) => alerted(*alert, at, ours),
            rustls::Error::InvalidCertificate(error) => {
                let (grounds, mend) = distrusted(error);
                Refusal::new(Side::Host, Layer::Tls, grounds, mend)
            }
            other => {
                let mend = "check that it is a TLS 1.2 or 1.3 broker that listens there";
                Refusal::new(Side::Host, Layer::Tls, capped(&other.to_string()), mend)
            }
        }
    }

    /// The broker answered CONNECT with a refusal.
    pub fn connect(reason: u8, why: Option<&str>) -> Refusal {
        let mend = match reason {
            0x84 => "use a broker that speaks MQTT 5",
            0x85 | 0x86 | mqtt::NOT_AUTHORIZED | 0x8a | 0x8c => {
                "let the broker know this node, or enrol it again"
            }
            _ => "see the broker's log; this host tries again by itself",
        };
        let grounds = format!("it answered CONNECT with {}", coded(reason, why));
        Refusal::new(Side::Broker, Layer::Mqtt, grounds, mend)
    }

    /// The broker said why it leaves.
    pub fn disconnected(reason: u8, why: Option<&str>) -> Refusal {
        let mend = match reason {
            mqtt::TAKEN_OVER => "find the second host with this identity, and enrol it anew",
            mqtt::NOT_AUTHORIZED | 0x98 => "see who took this node's access away, at the broker",
            0x95 | 0x97 => "raise the broker's limit",
            _ => "see the broker's log; this host tries again by itself",
        };
        let grounds = format!("it ended the connection with {}", coded(reason, why));
        Refusal::new(Side::Broker, Layer::Mqtt, grounds, mend)
    }

    /// The broker sent what it may not.
    pub fn malformed(fault: Fault) -> Refusal {
        let grounds = format!("the broker sent {fault}");
        let mend = "check that it is an MQTT 5 broker, and its version";
        Refusal::new(Side::Host, Layer::Mqtt, grounds, mend)
    }

    /// The broker sent what has no place there, or what this host does not go along with.
    pub fn unexpected(what: impl Into<String>, mend: &str) -> Refusal {
        Refusal::new(Side::Host, Layer::Mqtt, what, mend)
    }

    /// A subscription was refused.
    pub fn subscription(topic: &str, reason: u8, why: Option<&str>) -> Refusal {
        let grounds = format!("subscribe to {topic}: {}", coded(reason, why));
        let mend = "let this node read its own topics, in the broker's access list";
        Refusal::new(Side::Broker, Layer::Subscription, grounds, mend)
    }

    /// A subscription was granted, and what is certainly there has not come.
    pub fn silent(topic: &str, what: &str, limit: Duration) -> Refusal {
        let s = limit.as_secs();
        let grounds = format!(
            "the subscription to {topic} was granted and stayed silent: {what} did not come \
             within {s} s"
        );
        let mend = match what {
            MESH => {
                "let this node read the topic, in the broker's access list, and see that the \
                     control plane has published it"
            }
            _ => "let this node read and write the topic, in the broker's access list",
        };
        Refusal::new(Side::Broker, Layer::Subscription, grounds, mend)
    }

    /// A publication was refused.
    pub fn publication(topic: &str, reason: u8, why: Option<&str>) -> Refusal {
        let grounds = format!("publish to {topic}: {}", coded(reason, why));
        let mend = "let this node write its own topics, in the broker's access list";
        Refusal::new(Side::Broker, Layer::Mqtt, grounds, mend)
    }
}

/// What a silent `mesh` topic kept back.
pub(super) const MESH: &str = "the signed mesh message";
/// What a silent `presence` topic kept back.
pub(super) const PRESENCE: &str = "this node's own presence";

/// The broker judged our certificate, and said so.
fn alerted(alert: AlertDescription, at: When, ours: &Window) -> Refusal {
    use AlertDescription as A;
    let number = u8::from(alert);
    let clock = || format!("our clock says {at}, the certificate is good {ours}");
    let (what, mend) = match alert {
        A::CertificateRequired => {
            ("it was shown no certificate of ours".to_string(), ENROL.to_string())
        }
        A::CertificateRevoked => ("this node's certificate is revoked".into(), ENROL.into()),
        A::CertificateExpired => (
            format!("it takes this node's certificate for expired: {}", clock()),
            format!("set the broker's clock right, or {ENROL}"),
        ),
        // OpenSSL 3.0.11 says bad_certificate (42) of one that is not valid yet.
        A::BadCertificate => (
            format!("it takes this node's certificate for bad or not valid yet: {}", clock()),
            format!("set the broker's clock right, or {ENROL}"),
        ),
        A::UnknownCA => (
            "it does not know the authority that signed this node's certificate".into(),
            format!("check that it is this mesh's broker, or {ENROL}"),
        ),
        // OpenSSL 3.0.11 says so where an authority has the name of another.
        A::DecryptError => (
            "this node's certificate is signed by another authority of the same name".into(),
            format!("check that it is this mesh's broker, or {ENROL}"),
        ),
        A::AccessDenied | A::UnsupportedCertificate | A::CertificateUnknown => {
            ("it does not accept this node's certificate".into(), ENROL.into())
        }
        _ => ("it ended the handshake".into(), "see the broker's log".into()),
    };
    let grounds = format!("{what} (alert {number}, {alert:?})");
    Refusal::new(Side::Broker, Layer::Tls, grounds, mend)
}

/// Why this host did not take the broker for what it says, and what would mend it.
fn distrusted(error: &CertificateError) -> (String, String) {
    use CertificateError as C;
    let time = |time: &rustls::pki_types::UnixTime| When(time.as_secs());
    match error {
        C::ExpiredContext { time: now, not_after } => (
            format!(
                "the broker's certificate has expired: our clock says {}, it was good until {}",
                time(now),
                time(not_after),
            ),
            "renew the broker's certificate, or set this machine's clock right".into(),
        ),
        C::NotValidYetContext { time: now, not_before } => (
            format!(
                "the broker's certificate is not valid yet: our clock says {}, it is good from {}",
                time(now),
                time(not_before),
            ),
            "set this machine's clock right, or renew the broker's certificate".into(),
        ),
        C::UnknownIssuer | C::BadSignature => (
            "the broker's certificate is signed by no authority of this mesh".into(),
            format!("check that it is this mesh's broker, or {ENROL}"),
        ),
        C::NotValidForName | C::NotValidForNameContext { .. } => (
            "the broker's certificate is not for the name that the mesh knows it by".into(),
            "name the broker as its certificate does, or renew that with its name".into(),
        ),
        C::InvalidPurpose | C::InvalidPurposeContext { .. } => (
            "the broker's certificate is not for servers".into(),
            "renew it with server authentication among its uses".into(),
        ),
        C::Revoked => ("the broker's certificate is revoked".into(), "renew it".into()),
        other => (
            format!("the broker's certificate is not accepted: {}", capped(&other.to_string())),
            "renew the broker's certificate".into(),
        ),
    }
}

/// A reason code for a person, with the broker's own words on it.
fn coded(reason: u8, why: Option<&str>) -> String {
    let meaning = mqtt::meaning(reason);
    match why.filter(|why| !why.is_empty()) {
        Some(why) => format!("{reason:#04x}, {meaning}: {}", quoted(why)),
        None => format!("{reason:#04x}, {meaning}"),
    }
}

/// A library's words, which may quote the other side.
fn capped(words: &str) -> String {
    const LONGEST: usize = 200;
    let words: String = words.escape_debug().collect();
    match words.char_indices().nth(LONGEST) {
        None => words,
        Some((cut, _)) => format!("{}…", &words[..cut]),
    }
}
