//! Who this node is in the mesh: `identity/` in the state directory.
//!
//! `key.pem` (nobody but root may look at it), `cert.pem` and `mesh.json`. Read strictly: an
//! identity that is damaged or open to others is an error and never an absent one. Enrolment makes
//! it; the link reads it, and keeps the newest signed `mesh` in it.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::ClientConfig;

use super::mesh::{self, Mesh};
use super::tls::{self, Chain};
use super::x509::{Certificate, Window};
use crate::error::{Error, Stage};
use crate::machine;
use crate::resource::form::NODE;
use crate::store;

/// The directory's name in the state directory.
pub const DIRECTORY: &str = "identity";
/// Its files.
pub const KEY: &str = "key.pem";
/// The node's certificate, and those that signed it, if any.
pub const CERTIFICATE: &str = "cert.pem";
/// The `mesh` message in force.
pub const MESH: &str = "mesh.json";

/// The largest key or chain, in bytes.
const LARGEST: usize = 64 << 10;

/// A node's identity.
#[derive(Debug)]
pub struct Identity {
    /// The node's id: its certificate's common name.
    pub node: String,
    /// When its certificate is good.
    pub window: Window,
    /// The mesh in force.
    pub mesh: Mesh,
    chain: Chain,
    key: PrivateKeyDer<'static>,
    directory: PathBuf,
}

impl Identity {
    /// Reads the identity in the state directory; `None` where there is none: the host has not
    /// been enrolled.
    ///
    /// # Errors
    /// What is there is not to be relied on, and which file it is.
    pub fn read(state: &Path) -> Result<Option<Identity>, Error> {
        let directory = state.join(DIRECTORY);
        match std::fs::symlink_metadata(&directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(&directory, machine::words(&error))),
            Ok(meta) if !meta.is_dir() => return Err(failed(&directory, "it is no directory")),
            Ok(meta) => private(&meta, 0o022).map_err(|why| failed(&directory, why))?,
        }
        let (key, certificate) = (directory.join(KEY), directory.join(CERTIFICATE));
        let bytes = bytes(&key, LARGEST, 0o077)?;
        let private_key = PrivateKeyDer::from_pem_slice(&bytes)
            .map_err(|_| failed(&key, "it holds no private key in PEM"))?;
        let (chain, node, window) = read_chain(&certificate)?;
        let path = directory.join(MESH);
        let bytes = self::bytes(&path, mesh::MAX_BYTES, 0o022)?;
        let mesh = Mesh::parse(&bytes).map_err(|why| failed(&path, why))?;
        let identity = Identity { node, window, mesh, chain, key: private_key, directory };
        // Key and certificate belong together, and the authorities are some: said now, not later.
        identity.config(&identity.mesh).map_err(|error| failed(&identity.directory, error))?;
        Ok(Some(identity))
    }

    /// How it proves itself to the brokers of `mesh`.
    ///
    /// # Errors
    /// The key is not the certificate's, or an authority is none.
    pub fn config(&self, mesh: &Mesh) -> Result<Arc<ClientConfig>, rustls::Error> {
        tls::config(self.chain.clone(), self.key.clone_key(), &mesh.cas)
    }

    /// Keeps `mesh` in place of the one before, durably.
    ///
    /// # Errors
    /// It could not be written; the one before is still there.
    pub fn keep(&mut self, mesh: &Mesh) -> Result<(), Error> {
        let path = self.directory.join(MESH);
        let temporary = self.directory.join("mesh.json.new");
        store::replace(&path, &temporary, &mesh.text).map_err(|error| {
            Error::failed(Stage::Record, format!("write {}", path.display()), error)
        })?;
        self.mesh = mesh.clone();
        Ok(())
    }
}

fn read_chain(path: &Path) -> Result<(Chain, String, Window), Error> {
    let bytes = bytes(path, LARGEST, 0o022)?;
    let chain: Result<Chain, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    let chain = chain.map_err(|_| failed(path, "it is no PEM"))?;
    let first = chain.first().ok_or_else(|| failed(path, "it holds no certificate in PEM"))?;
    let read = Certificate::read(first)
        .ok_or_else(|| failed(path, "its certificate is not written as RFC 5280 has it"))?;
    let node = read.common_name.filter(|name| name.len() <= NODE.max && (NODE.holds)(name));
    let node = node.ok_or_else(|| failed(path, "its certificate names no node"))?.to_string();
    let window = read.window;
    Ok((chain, node, window))
}

/// The bytes of a regular file that only its owner, root or this user, could have written; `open`
/// are the bits of its mode that must not be set.
fn bytes(path: &Path, most: usize, open: u32) -> Result<Vec<u8>, Error> {
    let fail = |cause: io::Error| match cause.raw_os_error() {
        Some(libc::ELOOP) => failed(path, "it is a symbolic link"),
        _ => failed(path, machine::words(&cause)),
    };
    let mut options = File::options();
    options.read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY);
    let file = options.open(path).map_err(fail)?;
    let meta = file.metadata().map_err(fail)?;
    if !meta.is_file() {
        return Err(failed(path, "it is not a regular file"));
    }
    private(&meta, open).map_err(|why| failed(path, why))?;
    let mut bytes = Vec::new();
    file.take(most as u64 + 1).read_to_end(&mut bytes).map_err(fail)?;
    match bytes.len() <= most {
        true => Ok(bytes),
        false => Err(failed(path, format!("it is larger than {most} bytes"))),
    }
}

fn private(meta: &std::fs::Metadata, open: u32) -> Result<(), String> {
    // SAFETY: geteuid takes nothing and cannot fail.
    let euid = unsafe { libc::geteuid() };
    let mode = meta.mode() & 0o7777;
    if meta.uid() != 0 && meta.uid() != euid {
        return Err(format!("it belongs to user {}, who decides what it says", meta.uid()));
    }
    match mode & open {
        0 => Ok(()),
        _ => Err(format!("it is open to others (mode {mode:04o}): chmod it, or enrol again")),
    }
}

fn failed(path: &Path, cause: impl std::fmt::Display) -> Error {
    Error::failed(Stage::Read, format!("read the identity {}", path.display()), cause)
}
