//! An identity is read whole, or the file that is wrong is named; what others could have written
//! is no identity.

use std::fs;
use std::os::unix::fs::{symlink, PermissionsExt};
use std::path::{Path, PathBuf};

use super::{message, NODE};
use crate::link::identity::Identity;

/// The key of [`NODE`].
const KEY: &str = include_str!("../../../../tests/transcripts/openssl/web-1.key");

/// A state directory with an identity, removed at the end.
struct State(PathBuf);

impl State {
    fn new(name: &str) -> State {
        let path = std::env::temp_dir().join(format!("identity-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(path.join("identity")).unwrap();
        let state = State(path);
        state.write("key.pem", KEY);
        state.write("cert.pem", NODE);
        state.write("mesh.json", &message(5, &["a:1"], 1));
        state
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join("identity").join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let _ = fs::remove_file(self.path(name));
        fs::write(self.path(name), text).unwrap();
        self.mode(&self.path(name), 0o600);
    }

    fn mode(&self, path: &Path, mode: u32) {
        fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    }

    #[track_caller]
    fn refuses(&self, file: &str, part: &str) {
        let said = Identity::read(&self.0).unwrap_err().to_string();
        let named = said.starts_with(&format!("read the identity {}", self.path(file).display()));
        assert!(named && said.contains(part), "{part:?} of {file:?} is not in {said:?}");
        let secret = KEY.lines().nth(1).unwrap();
        assert!(!said.contains(secret), "the key is in {said:?}");
    }
}

impl Drop for State {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

//
#[test]
fn an_identity_is_read_and_keeps_the_newest_mesh() {
    let state = State::new("good");
    let mut identity = Identity::read(&state.0).unwrap().unwrap();
    assert_eq!((&*identity.node, identity.mesh.serial), ("web-1", 5));
    let newer = message(6, &["b:1"], 1);
    let newer = crate::link::mesh::Mesh::parse(newer.as_bytes()).unwrap();
    identity.keep(&newer).unwrap();
    assert_eq!(Identity::read(&state.0).unwrap().unwrap().mesh, newer);
    let mode = fs::metadata(state.path("mesh.json")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let secret = KEY.lines().nth(1).unwrap();
    assert!(!format!("{identity:?}").contains(secret));
}

#[test]
fn no_identity_is_no_error_and_half_of_one_is() {
    let state = State::new("half");
    let empty = state.0.join("nothing");
    fs::create_dir(&empty).unwrap();
    assert!(Identity::read(&empty).unwrap().is_none());
    for file in ["key.pem", "cert.pem", "mesh.json"] {
        let text = fs::read_to_string(state.path(file)).unwrap();
        fs::remove_file(state.path(file)).unwrap();
        state.refuses(file, "no such file");
        state.write(file, "");
        state.refuses(file, "");
        state.write(file, &text[..text.len() / 2]);
        state.refuses(file, "");
        state.write(file, &"x".repeat(2 << 20));
        state.refuses(file, "larger than");
        fs::remove_file(state.path(file)).unwrap();
        fs::create_dir(state.path(file)).unwrap();
        state.refuses(file, "not a regular file");
        fs::remove_dir(state.path(file)).unwrap();
        symlink("/etc/hostname", state.path(file)).unwrap();
        state.refuses(file, "symbolic link");
        state.write(file, &text);
    }
    assert!(Identity::read(&state.0).unwrap().is_some());
}

#[test]
fn an_identity_that_is_open_to_others_is_refused() {
    let state = State::new("open");
    for (file, mode) in
        [("key.pem", 0o640), ("key.pem", 0o604), ("cert.pem", 0o660), ("mesh.json", 0o602)]
    {
        state.mode(&state.path(file), mode);
        state.refuses(file, "it is open to others");
        state.mode(&state.path(file), 0o600);
    }
    state.mode(&state.0.join("identity"), 0o770);
    let said = Identity::read(&state.0).unwrap_err().to_string();
    assert!(said.contains("it is open to others (mode 0770)"), "{said}");
}

#[test]
fn a_key_that_is_not_the_certificates_is_refused() {
    let state = State::new("mixed");
    let other = include_str!("../../../../tests/transcripts/openssl/web-2.key");
    state.write("key.pem", other);
    let said = Identity::read(&state.0).unwrap_err().to_string();
    assert!(said.to_lowercase().contains("key"), "{said}");
    state.write("key.pem", KEY);
    let authority = super::AUTHORITY;
    state.write("cert.pem", &format!("{NODE}{authority}"));
    assert!(Identity::read(&state.0).unwrap().is_some(), "a chain");
    state.write("cert.pem", authority);
    let said = Identity::read(&state.0).unwrap_err().to_string();
    assert!(said.to_lowercase().contains("key"), "{said}");
}
