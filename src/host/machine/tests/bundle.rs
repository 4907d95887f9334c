//! Opening declarations and bundles.

use std::os::unix::fs::PermissionsExt;

use super::super::{open_bundle, read_declaration};
use super::*;
use crate::declaration::MAX_BYTES;
use crate::error::Error;

fn wrong(result: Result<impl Sized, Error>) -> String {
    match result.err().unwrap() {
        Error::Refused { faults, .. } => faults[0].to_string(),
        other => other.to_string(),
    }
}

fn mode(at: &Path, mode: u32) {
    std::fs::set_permissions(at, PermissionsExt::from_mode(mode)).unwrap();
}

#[test]
fn a_bundle_is_a_file_that_only_its_owner_may_write() {
    //
    let scratch = Scratch::new();
    let at = scratch.file("/b", "{}").at("/b");
    for good in [0o644, 0o600, 0o444] {
        mode(&at, good);
        assert!(open_bundle(&at).is_ok(), "{good:o}");
    }
    for bad in [0o664, 0o646, 0o666, 0o622] {
        mode(&at, bad);
        assert!(wrong(open_bundle(&at)).contains("others may write it; chmod go-w"), "{bad:o}");
    }
}

#[test]
fn a_bundle_of_another_user_is_refused() {
    //
    if !is_root("a bundle of another user") {
        return;
    }
    let scratch = Scratch::new();
    let at = scratch.file("/b", "{}").at("/b");
    mode(&at, 0o644);
    give(&at, 4242);
    assert!(wrong(open_bundle(&at)).contains("belongs to user 4242"));
}

#[test]
fn what_is_no_file_is_no_bundle() {
    //
    let scratch = Scratch::new();
    let fifo = std::ffi::CString::new(scratch.at("/fifo").to_str().unwrap()).unwrap();
    // SAFETY: the name is NUL-terminated.
    assert_eq!(unsafe { libc::mkfifo(fifo.as_ptr(), 0o600) }, 0);
    assert!(wrong(open_bundle(&scratch.at("/fifo"))).contains("is not a regular file"));
    assert!(wrong(open_bundle(&scratch.0)).contains("is not a regular file"));
    assert!(wrong(open_bundle(&scratch.at("/none"))).contains("no such file or directory"));
    assert!(wrong(read_declaration(&scratch.at("/none"))).contains("no such file or directory"));
    assert!(wrong(read_declaration(&scratch.0)).contains("is a directory"));
}

#[test]
fn a_declaration_is_read_whole_up_to_the_limit() {
    //
    let scratch = Scratch::new();
    let at = scratch.file("/d", "{}\n").at("/d");
    assert_eq!(read_declaration(&at).unwrap(), b"{}\n");
    let file = std::fs::File::options().write(true).open(&at).unwrap();
    file.set_len(MAX_BYTES as u64).unwrap();
    assert_eq!(read_declaration(&at).unwrap().len(), MAX_BYTES);
    file.set_len(MAX_BYTES as u64 + 1).unwrap();
    assert!(wrong(read_declaration(&at)).contains("more than 64 MiB"));
    file.set_len(1 << 40).unwrap();
    assert!(wrong(open_bundle(&at)).contains("more than 64 MiB"));
    // A pipe has no size beforehand, and neither have most files of /proc.
    assert!(!read_declaration(Path::new("/proc/version")).unwrap().is_empty());
}
