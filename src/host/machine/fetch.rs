//! Fetching a file's contents over HTTP, in a child of its own.
//!
//! The child is this same binary; it reads from the network and writes to its standard output,
//! which is the temporary file, and can do little else: it is given no secret and lets go of root.
//! The parent judges what has come by its SHA-256 alone, so that who served it does not matter.

use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig};

use super::child::{self, Call, How};
use super::place::Filling;
use super::words::{quoted, words};
use crate::digest::{hex, Sha256};

/// The argument that makes the binary a fetching child: `main` hands over to [`fetch_main`] when
/// it is the first, and the only one.
pub const FETCH_ARGUMENT: &str = "fetch-to-standard-output";

/// What the child reads the address from: arguments are for everyone on the machine to see.
const ADDRESS: &str = "MESH_HOST_FETCH";
/// And the size cap, in bytes.
const CAP: &str = "MESH_HOST_FETCH_CAP";

/// The largest file that is fetched, in bytes.
const LARGEST: u64 = 4 << 30;
/// Redirects that are followed.
const MOST_REDIRECTS: u32 = 5;
/// How long a server may take to accept a connection, and to begin its answer.
const SILENCE: Duration = Duration::from_secs(30);
/// The user and group `nobody`, by the number that every Linux knows it by.
const NOBODY: u32 = 65_534;

/// Where distributions keep the certificates that their machine trusts.
const TRUSTED: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/ssl/cert.pem",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
];

/// How files are fetched.
#[derive(Debug)]
pub(super) struct Fetcher {
    /// The binary that is run.
    pub program: PathBuf,
    /// The largest file, in bytes.
    pub largest: u64,
}

impl Default for Fetcher {
    fn default() -> Fetcher {
        // Not the name it was started by: an upgrade may have put another version there.
        Fetcher { program: PathBuf::from("/proc/self/exe"), largest: LARGEST }
    }
}

/// Fills the empty `file` with what `url` serves and gives it back, once its SHA-256 has been seen
/// to be `expected`.
pub(super) fn into_file(
    file: File,
    url: &str,
    expected: &Sha256,
    filling: Filling,
) -> Result<File, String> {
    let Filling { reader, fetcher, limit } = filling;
    let public = public(url);
    let address = quoted(public.as_bytes());
    run(&file, url, fetcher, limit)
        .map_err(|cause| format!("fetch {address}: {}", cause.replace(url, &public)))?;
    let failed = |error: io::Error| format!("read what came from {address}: {}", words(&error));
    (&file).rewind().map_err(failed)?;
    let size = file.metadata().map_err(failed)?.len();
    let fd = OwnedFd::from(file);
    let digest = reader.digest(&fd, size, limit).map_err(failed)?;
    match digest {
        Some(digest) if digest == *expected => Ok(File::from(fd)),
        Some(digest) => Err(format!(
            "{address} served {size} bytes of sha256 {}, not {}",
            hex(&digest),
            hex(expected),
        )),
        None => Err(format!("what came from {address} changed while it was read")),
    }
}

/// What of `url` may be shown: a name and a password before the host, and what is asked after the
/// path, are often what lets one in.
fn public(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let host = rest[..end].rfind('@').map_or(0, |at| at + 1);
    let (shown, more) = match rest.find(['?', '#']) {
        Some(at) => (&rest[host..at], "?…"),
        None => (&rest[host..], ""),
    };
    format!("{scheme}://{shown}{more}")
}

fn run(into: &File, url: &str, fetcher: &Fetcher, limit: Duration) -> Result<(), String> {
    let program = fetcher.program.to_str().ok_or("the name of its program is not text")?;
    let cap = fetcher.largest.to_string();
    let proxies = proxies(url, |name| std::env::var(name).ok());
    let mut env = vec![(ADDRESS, url), (CAP, cap.as_str())];
    env.extend(proxies.iter().map(|(name, value)| (*name, value.as_str())));
    let into = Some(into.try_clone().map_err(|error| words(&error))?);
    let argv = [program, FETCH_ARGUMENT];
    let call = Call { env: &env, into, ..Call::new(&argv) };
    let ended = child::run(call, limit).map_err(child::Unrun::into_cause)?;
    match ended.how {
        How::Exited(0) => Ok(()),
        How::Exited(1) => Err(String::from_utf8_lossy(ended.err.bytes()).trim().to_string()),
        How::Overran(limit) => Err(format!("not done within {} s", limit.as_secs_f32())),
        _ => Err(ended.said()),
    }
}

/// The proxy that this machine uses for `url`, in the variables that the child looks at. As
/// curl(1) has it, `HTTP_PROXY` in capitals is not one: a web server can set it for its children.
fn proxies(url: &str, set: impl Fn(&str) -> Option<String>) -> Vec<(&'static str, String)> {
    let first = |names: &[&str]| {
        let set = names.iter().find_map(|name| set(name));
        set.filter(|value| !value.is_empty())
    };
    let proxy = match url.split_once(':') {
        Some((scheme, _)) if scheme.eq_ignore_ascii_case("https") => {
            first(&["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"])
        }
        _ => first(&["http_proxy", "all_proxy", "ALL_PROXY"]),
    };
    let exempt = first(&["no_proxy", "NO_PROXY"]);
    let named = [("ALL_PROXY", proxy), ("NO_PROXY", exempt)];
    named.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

/// The fetching child: writes what the address in its environment serves to standard output.
/// Exits 1 and says why in one line on standard error where that fails.
pub fn fetch_main() -> ExitCode {
    let address = std::env::var(ADDRESS).unwrap_or_default();
    let cap = std::env::var(CAP).ok().and_then(|cap| cap.parse().ok()).unwrap_or(LARGEST);
    match let_go_of_root().and_then(|()| fetch(&address, cap)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(cause) => {
            eprintln!("{}", cause.escape_debug());
            ExitCode::FAILURE
        }
    }
}

/// What reads from the network shall not be able to change the machine. In a container that maps
/// no such user there is nobody to become.
pub(super) fn let_go_of_root() -> Result<(), String> {
    // SAFETY: takes nothing and cannot fail.
    let parent = unsafe { libc::getppid() };
    // SAFETY: none of these takes memory of ours but the empty list.
    let results = unsafe {
        if libc::geteuid() != 0 {
            return Ok(());
        }
        [libc::setgroups(0, std::ptr::null()), libc::setgid(NOBODY), libc::setuid(NOBODY)]
    };
    let error = io::Error::last_os_error();
    child::end_with(parent, libc::SIGKILL)
        .map_err(|error| format!("end with the host: {}", words(&error)))?;
    match results {
        [0, 0, 0] => Ok(()),
        _ if matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EPERM)) => Ok(()),
        _ => Err(format!("let go of root: {}", words(&error))),
    }
}

fn fetch(address: &str, cap: u64) -> Result<(), String> {
    // No limit on name lookup: ureq would start a thread for it, and the parent has one on it all.
    let config = ureq::Agent::config_builder()
        .max_redirects(MOST_REDIRECTS)
        // A connection that was kept for a redirect is one that the server may just have closed.
        .max_idle_connections(0)
        .timeout_connect(Some(SILENCE))
        .timeout_recv_response(Some(SILENCE))
        .tls_config(tls(address)?)
        .user_agent(concat!("nox-mesh-host/", env!("CARGO_PKG_VERSION")))
        .build();
    let answer = config.new_agent().get(address).call();
    let mut body = answer.map_err(|error| error.to_string())?.into_body();
    let file = io::stdout();
    let mut body = io::Read::take(body.as_reader(), cap.saturating_add(1));
    let mut into = file.lock();
    let copied = io::copy(&mut body, &mut into).map_err(|error| words(&error))?;
    into.flush().map_err(|error| words(&error))?;
    if copied > cap {
        Err(format!("it has more than {cap} bytes"))
    } else {
        Ok(())
    }
}

/// How servers are known: by the certificates that the machine trusts, and by no others. The binary
/// carries none of its own, which would outlive their trust.
fn tls(address: &str) -> Result<TlsConfig, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = TlsConfig::builder().unversioned_rustls_crypto_provider(provider);
    let is_secure = address.get(..8).is_some_and(|start| start.eq_ignore_ascii_case("https://"));
    match trusted() {
        roots if !roots.is_empty() || !is_secure => {
            Ok(config.root_certs(RootCerts::from(roots)).build())
        }
        _ => {
            Err("this machine trusts no certificate authority to know the server by; install its \
                  certificates, or fetch over http: the sha256 vouches for the bytes there too"
                .into())
        }
    }
}

/// The certificates that the machine trusts.
fn trusted() -> Vec<Certificate<'static>> {
    let Some(pem) = TRUSTED.iter().map(Path::new).find_map(|path| std::fs::read(path).ok()) else {
        return Vec::new();
    };
    let certificate = |item| match item {
        PemItem::Certificate(certificate) => Some(certificate),
        _ => None,
    };
    ureq::tls::parse_pem(&pem).filter_map(Result::ok).filter_map(certificate).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_an_address_the_place_is_shown_and_no_key_to_it() {
        for (url, shown) in [
            ("http://a/b@c", "http://a/b@c"),
            ("https://me:p@ss@a:8/b", "https://a:8/b"),
            ("http://me@a?k=v@w/x", "http://a?…"),
            ("http://a/b?k=v", "http://a/b?…"),
            ("http://me:p@", "http://"),
        ] {
            assert_eq!(public(url), shown);
        }
    }

    #[test]
    fn the_proxy_is_the_one_of_the_addresss_scheme() {
        let machine = |set: &[(&str, &str)], url| {
            let set = |name: &str| {
                let found = set.iter().find(|(variable, _)| *variable == name);
                found.map(|(_, value)| value.to_string())
            };
            let proxies = proxies(url, set);
            proxies.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>()
        };
        let all = [("http_proxy", "plain"), ("HTTPS_PROXY", "tls"), ("no_proxy", "here")];
        assert_eq!(machine(&all, "http://a/"), ["ALL_PROXY=plain", "NO_PROXY=here"]);
        assert_eq!(machine(&all, "HTTPS://a/"), ["ALL_PROXY=tls", "NO_PROXY=here"]);
        assert_eq!(machine(&[("all_proxy", "any")], "https://a/"), ["ALL_PROXY=any"]);
        for none in [("HTTP_PROXY", "set by a request"), ("http_proxy", ""), ("PATH", "/bin")] {
            assert_eq!(machine(&[none], "http://a/"), [""; 0]);
        }
    }
}
