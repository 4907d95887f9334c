//! The binary as a file: what it needs to be there before it runs.

mod support;

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use support::{has, skip, target, Lacks, Scratch};

//
#[test]
fn the_ordinary_build_asks_for_nothing_but_the_c_library() {
    let name = "the_ordinary_build_asks_for_nothing_but_the_c_library";
    if !has("ldd", name) {
        return;
    }
    let listed = Command::new("ldd").arg(env!("CARGO_BIN_EXE_nox-mesh-host")).output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    let ours = ["linux-vdso.", "libc.", "libgcc_s.", "libm.", "ld-linux", "ld-musl", "statically"];
    for line in listed.lines().map(str::trim) {
        let library = line.split(' ').next().unwrap_or_default();
        let library = library.rsplit('/').next().unwrap_or_default();
        assert!(ours.iter().any(|known| library.starts_with(known)), "{line}");
    }
}

//
#[test]
fn the_static_build_runs_where_there_is_nothing_else() {
    let name = "the_static_build_runs_where_there_is_nothing_else";
    let Some(binary) = static_build() else {
        return skip(name, &Lacks::Machine("a build by `make static`"));
    };
    let empty = Scratch::new("empty");
    let inside = empty.join("host");
    std::fs::copy(&binary, &inside).unwrap();
    std::fs::set_permissions(&inside, std::fs::Permissions::from_mode(0o755)).unwrap();
    let run = Command::new("chroot").arg(empty.path()).args(["/host", "version"]).output();
    let Ok(run) = run else {
        return skip(name, &Lacks::Program("chroot"));
    };
    let said = String::from_utf8_lossy(&run.stderr);
    if said.contains("Operation not permitted") {
        return skip(name, &Lacks::Machine("the privilege of chroot(2)"));
    }
    assert!(run.status.success(), "{}: {said}", binary.display());
    let version = String::from_utf8_lossy(&run.stdout);
    assert!(version.contains(env!("CARGO_PKG_VERSION")), "{version:?}");
}

/// The newest binary that `make static` left.
fn static_build() -> Option<PathBuf> {
    let triples = std::fs::read_dir(target()).ok()?.flatten();
    let built = triples.map(|triple| triple.path().join("static/nox-mesh-host"));
    built.filter(|path| path.is_file()).max_by_key(|path| path.metadata().ok()?.modified().ok())
}
