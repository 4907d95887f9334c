//! A mesh for the tests: authorities, certificates and a mosquitto that knows them, each in a
//! scratch directory of its own.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustls::crypto::ring::sign::any_eddsa_type;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::sign::SigningKey;
use rustls::SignatureScheme;

use crate::support::Scratch;

/// Good from long ago and for ever, as a node's certificate is.
pub const EVER: (&str, &str) = ("20200101000000Z", "99991231235959Z");
/// Good no more.
pub const PAST: (&str, &str) = ("20200101000000Z", "20210101000000Z");
/// Not good yet.
pub const LATER: (&str, &str) = ("20990101000000Z", "99991231235959Z");

/// What a node may do, as the mesh's brokers have it.
pub const ACL: &str = "user control\ntopic readwrite node/#\n\
    pattern read node/%u/declaration\npattern read node/%u/mesh\n\
    pattern readwrite node/%u/presence\npattern write node/%u/report\n\
    pattern write node/%u/inventory\n";

/// Authorities and what they have signed.
pub struct Mesh {
    scratch: Scratch,
}

impl Mesh {
    /// One with the authority `mesh-ca`, a broker of it that is `localhost`, and the nodes `web-1`
    /// and `control`; the control plane's key is `key`.
    pub fn new(name: &str) -> Mesh {
        let mesh = Mesh { scratch: Scratch::new(name) };
        mesh.authority("mesh-ca", "mesh-ca");
        mesh.leaf("mesh-ca", "broker", "broker", Use::Server("DNS:localhost"), EVER);
        mesh.leaf("mesh-ca", "web-1", "web-1", Use::Client, EVER);
        mesh.leaf("mesh-ca", "control", "control", Use::Client, EVER);
        mesh.key("key");
        mesh
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.scratch.join(name)
    }

    pub fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    fn openssl(&self, args: &[&str]) {
        let mut command = Command::new("openssl");
        let output = command.args(args).current_dir(self.scratch.path()).output().unwrap();
        assert!(output.status.success(), "openssl {args:?}: {output:?}");
    }

    pub fn key(&self, name: &str) {
        self.openssl(&["genpkey", "-algorithm", "ed25519", "-out", &format!("{name}.key")]);
    }

    /// An authority in the file `file`, which calls itself `name`.
    pub fn authority(&self, file: &str, name: &str) {
        self.key(file);
        let (key, crt) = (format!("{file}.key"), format!("{file}.crt"));
        let (subject, uses) = (format!("/CN={name}"), "keyUsage=critical,keyCertSign,cRLSign");
        self.openssl(&[
            "req",
            "-x509",
            "-new",
            "-key",
            &key,
            "-days",
            "30",
            "-subj",
            &subject,
            "-addext",
            "basicConstraints=critical,CA:TRUE",
            "-addext",
            uses,
            "-out",
            &crt,
        ]);
        let config = format!(
            "[ca]\ndefault_ca=d\n[d]\ndatabase={file}.index\nserial={file}.serial\n\
             crlnumber={file}.crlnumber\ndefault_md=default\ndefault_crl_days=30\npolicy=p\n\
             new_certs_dir=.\nunique_subject=no\ncertificate={crt}\nprivate_key={key}\n\
             [p]\ncommonName=supplied\n[client]\nbasicConstraints=CA:FALSE\n\
             keyUsage=digitalSignature\nextendedKeyUsage=clientAuth\n"
        );
        fs::write(self.path(&format!("{file}.cnf")), config).unwrap();
        fs::write(self.path(&format!("{file}.index")), "").unwrap();
        fs::write(self.path(&format!("{file}.crlnumber")), "01\n").unwrap();
        fs::write(self.path(&format!("{file}.serial")), "1000\n").unwrap();
    }

    /// A certificate by `authority` in the file `file`, for `name`, good for `window`.
    pub fn leaf(&self, authority: &str, file: &str, name: &str, uses: Use, window: (&str, &str)) {
        self.key(file);
        let (key, csr) = (format!("{file}.key"), format!("{file}.csr"));
        let (subject, extensions) = (format!("/CN={name}"), format!("{file}.ext"));
        self.openssl(&["req", "-new", "-key", &key, "-subj", &subject, "-out", &csr]);
        let uses = match uses {
            Use::Client => "extendedKeyUsage=clientAuth\n".to_string(),
            Use::Server(names) => {
                format!("extendedKeyUsage=serverAuth\nsubjectAltName={names}\n")
            }
        };
        // Without the identifier of its authority's key, an authority of the same name is told from
        // it by the signature alone.
        let text = format!(
            "basicConstraints=CA:FALSE\nkeyUsage=digitalSignature\n\
             authorityKeyIdentifier=none\n{uses}"
        );
        fs::write(self.path(&extensions), text).unwrap();
        let config = format!("{authority}.cnf");
        self.openssl(&[
            "ca",
            "-batch",
            "-notext",
            "-config",
            &config,
            "-in",
            &csr,
            "-extfile",
            &extensions,
            "-startdate",
            window.0,
            "-enddate",
            window.1,
            "-out",
            &format!("{file}.crt"),
        ]);
    }

    /// The authority takes the certificate `file` back, if it is named, and says what it took.
    pub fn revocations(&self, authority: &str, file: Option<&str>) {
        let config = format!("{authority}.cnf");
        if let Some(file) = file {
            self.openssl(&["ca", "-config", &config, "-revoke", &format!("{file}.crt")]);
        }
        let list = format!("{authority}.crl");
        self.openssl(&["ca", "-config", &config, "-gencrl", "-out", &list]);
    }

    /// The words for the public half of the key `name`, as `mesh` messages have them.
    pub fn control_key(&self, name: &str) -> String {
        let signer = self.signer(name);
        let public = signer.public_key().unwrap();
        format!("ed25519:{}", base64(&public[public.len() - 32..]))
    }

    /// The signature of the key `name` over what `topic` carries.
    pub fn signature(&self, name: &str, topic: &str, payload: &[u8]) -> String {
        let signer = self.signer(name).choose_scheme(&[SignatureScheme::ED25519]).unwrap();
        base64(&signer.sign(&[topic.as_bytes(), b"\0", payload].concat()).unwrap())
    }

    fn signer(&self, name: &str) -> std::sync::Arc<dyn SigningKey> {
        let path = self.path(&format!("{name}.key"));
        any_eddsa_type(&PrivatePkcs8KeyDer::from_pem_file(path).unwrap()).unwrap()
    }

    /// A `mesh` message of the authority `mesh-ca` and the control key `key`.
    pub fn message(&self, serial: u64, brokers: &[String], key: &str) -> String {
        let (cas, keys) = ([self.text("mesh-ca.crt")], [self.control_key(key)]);
        serde_json::json!({
            "v": 1, "serial": serial, "brokers": brokers, "cas": cas, "control_keys": keys,
            "serial_floor": 0,
        })
        .to_string()
    }

    /// A state directory whose identity is the certificate `file`.
    pub fn state(&self, file: &str, message: &str) -> PathBuf {
        use std::os::unix::fs::PermissionsExt;
        let state = self.path(&format!("state-{file}"));
        let identity = state.join("identity");
        let _ = fs::remove_dir_all(&state);
        fs::create_dir_all(&identity).unwrap();
        fs::copy(self.path(&format!("{file}.key")), identity.join("key.pem")).unwrap();
        fs::copy(self.path(&format!("{file}.crt")), identity.join("cert.pem")).unwrap();
        fs::write(identity.join("mesh.json"), message).unwrap();
        let set = |path: &Path, mode| fs::set_permissions(path, PermissionsExt::from_mode(mode));
        set(&identity.join("key.pem"), 0o600).unwrap();
        state
    }
}

/// What a certificate is for.
pub enum Use {
    Client,
    /// With these names.
    Server(&'static str),
}

/// How a broker differs from what a mesh has.
pub struct Manner<'a> {
    /// The certificate that it shows.
    pub certificate: &'a str,
    /// The authority that it knows nodes by.
    pub authority: &'a str,
    pub acl: &'a str,
    /// More lines of its configuration.
    pub more: &'a str,
}

impl Default for Manner<'_> {
    fn default() -> Self {
        let more = "require_certificate true\nuse_identity_as_username true\n";
        Manner { certificate: "broker", authority: "mesh-ca", acl: ACL, more }
    }
}

/// A mosquitto, which ends with this.
pub struct Broker {
    child: Child,
    pub port: u16,
    config: PathBuf,
}

impl Broker {
    /// One that listens on a port of this machine's choice.
    pub fn start(mesh: &Mesh, manner: &Manner) -> Broker {
        let port = free_port();
        let at = |name: String| mesh.path(&name).display().to_string();
        let acl = at(format!("{port}.acl"));
        fs::write(&acl, manner.acl).unwrap();
        let (certificate, key) =
            (at(format!("{}.crt", manner.certificate)), at(format!("{}.key", manner.certificate)));
        let authority = at(format!("{}.crt", manner.authority));
        let text = format!(
            "per_listener_settings true\nuser root\nlog_type all\nlog_dest file {}\n\
             listener {port} 127.0.0.1\nallow_anonymous false\ncafile {authority}\n\
             certfile {certificate}\nkeyfile {key}\nacl_file {acl}\n{}",
            at(format!("{port}.log")),
            manner.more,
        );
        let config = mesh.path(&format!("{port}.conf"));
        fs::write(&config, text).unwrap();
        Broker { child: mosquitto(&config, port), port, config }
    }

    /// Its name and port, as a mesh knows it.
    pub fn address(&self) -> String {
        format!("localhost:{}", self.port)
    }

    /// Ends it at once.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Starts it anew, with nothing kept.
    pub fn restart(&mut self) {
        self.kill();
        self.child = mosquitto(&self.config, self.port);
    }

    /// Publishes as the control plane, retained if `retain`, with these user properties.
    pub fn publish(&self, mesh: &Mesh, topic: &str, payload: &str, user: &[(&str, &str)]) {
        let file = mesh.path("payload");
        fs::write(&file, payload).unwrap();
        let mut command = self.client(mesh, "mosquitto_pub");
        command.args(["-q", "1", "-r", "-t", topic, "-f"]).arg(&file);
        for (name, value) in user {
            command.args(["-D", "publish", "user-property", name, value]);
        }
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }

    /// As [`Broker::publish`], signed by the key `key`.
    pub fn publish_signed(&self, mesh: &Mesh, topic: &str, payload: &str, key: &str) {
        let signature = mesh.signature(key, topic, payload.as_bytes());
        self.publish(mesh, topic, payload, &[("signature", &signature)]);
    }

    /// What is retained on `topic`.
    pub fn retained(&self, mesh: &Mesh, topic: &str) -> String {
        let mut command = self.client(mesh, "mosquitto_sub");
        let output = command.args(["-t", topic, "-C", "1", "-W", "5", "-N"]).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    /// A client of the control plane's that has subscribed to `topic` by the time this returns, and
    /// prints what comes.
    pub fn listen(&self, mesh: &Mesh, topic: &str) -> Child {
        // Its words come as they are said, not when there are many.
        let mut command = self.client(mesh, "stdbuf");
        command.args(["-t", topic, "-q", "1", "-d", "-W", "30"]).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let out = child.stdout.as_mut().unwrap();
        read_until(out, "SUBACK");
        child
    }

    fn client(&self, mesh: &Mesh, program: &str) -> Command {
        let mut command = Command::new(program);
        if program == "stdbuf" {
            command.args(["-oL", "mosquitto_sub"]);
        }
        command.current_dir(mesh.scratch.path());
        command.args(["-V", "5", "-h", "localhost", "-p", &self.port.to_string()]);
        command.args(["--cafile", "mesh-ca.crt", "--cert", "control.crt", "--key", "control.key"]);
        command
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Reads a child's words up to the line that holds `word`, and returns that line.
pub fn read_until(from: &mut impl std::io::Read, word: &str) -> String {
    let mut text = Vec::new();
    let mut byte = [0];
    loop {
        assert_eq!(from.read(&mut byte).unwrap(), 1, "{}", String::from_utf8_lossy(&text));
        if byte[0] != b'\n' {
            text.push(byte[0]);
        } else if String::from_utf8_lossy(&text).contains(word) {
            return String::from_utf8(text).unwrap();
        } else {
            text.clear();
        }
    }
}

/// A port that nothing listens on.
pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn mosquitto(config: &Path, port: u16) -> Child {
    let mut command = Command::new("mosquitto");
    command.arg("-c").arg(config).stdout(Stdio::null()).stderr(Stdio::null());
    let child = command.spawn().unwrap();
    let began = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(began.elapsed() < Duration::from_secs(10), "mosquitto does not listen");
        std::thread::sleep(Duration::from_millis(10));
    }
    child
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let bits = group.iter().fold(0u32, |sum, byte| sum << 8 | u32::from(*byte));
        let bits = bits << (8 * (3 - group.len()));
        for at in 0..4 {
            let digit = char::from(DIGITS[(bits >> (18 - 6 * at) & 63) as usize]);
            text.push(if at > group.len() { '=' } else { digit });
        }
    }
    text
}
