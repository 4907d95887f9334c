//! A pacman repository in a machine: packages made by hand, without makepkg, which takes
//! seconds for each, and an index by repo-add.

use crate::package::put;
use crate::{eventually, Machine, Package};
use std::fmt::Write;
use std::time::Duration;

const REPOSITORY: &str = "/srv/repo";
const STAGE: &str = "/srv/stage/pacman";
const MIRROR: &str = "http://127.0.0.1:8080/repo";

impl Machine {
    /// Gives the machine a pacman repository, `lab` at `file:///srv/repo`, with these packages
    /// beside those of an earlier call, and has pacman read its index.
    #[track_caller]
    pub fn pacman_repository(&self, packages: &[Package]) {
        let mut script = format!("umask 022; mkdir -p {REPOSITORY}\n");
        put(&mut script, "/etc/pacman.conf", "644", &conf(&format!("file://{REPOSITORY}")));
        for package in packages {
            build(package, &mut script);
        }
        let files: Vec<String> = packages.iter().map(file).collect();
        if !files.is_empty() {
            let files = files.join(" ");
            let _ = writeln!(script, "cd {REPOSITORY}; repo-add -q lab.db.tar.gz {files}");
        }
        for lost in packages.iter().filter(|package| package.is_lost) {
            let _ = writeln!(script, "rm {REPOSITORY}/{}", file(lost));
        }
        script.push_str("rm -rf /srv/stage; pacman -Sy\n");
        self.command(["sh", "-es"]).input(script).run().ok();
    }

    /// Serves the machine's repository by HTTP instead, as a mirror would: what is not there
    /// answers 404. It is a unit, `mirror.service`, which can be stopped; gone with a reboot.
    #[track_caller]
    pub fn pacman_mirror(&self) {
        let server = ["busybox", "httpd", "-f", "-p", "127.0.0.1:8080", "-h", "/srv"];
        self.run(["systemd-run", "--quiet", "--unit=mirror"].iter().chain(&server)).ok();
        self.write("/etc/pacman.conf", conf(MIRROR));
        let answers = || self.run(["curl", "-sf", &format!("{MIRROR}/lab.db")]).code() == 0;
        eventually("the mirror answers", Duration::from_secs(10), answers);
    }
}

fn conf(server: &str) -> String {
    format!(
        "[options]\nHoldPkg = pacman\nArchitecture = auto\nSigLevel = Never\n\
         [lab]\nServer = {server}\n"
    )
}

fn file(package: &Package) -> String {
    format!("{}-{}-1-any.pkg.tar.zst", package.name, package.version)
}

fn build(package: &Package, script: &mut String) {
    let Package { name, version, .. } = package;
    let stage = format!("{STAGE}/{name}");
    package.stage(&stage, script);
    let mut info = format!(
        "pkgname = {name}\npkgbase = {name}\npkgver = {version}-1\npkgdesc = handmade {name}\n\
         url = http://lab.invalid\nbuilddate = 1\npackager = lab\nsize = 1\narch = any\n\
         license = none\n"
    );
    let lists =
        [("group", &package.groups), ("provides", &package.provides), ("depend", &package.depends)];
    for (field, values) in lists {
        for value in values {
            let _ = writeln!(info, "{field} = {value}");
        }
    }
    put(script, &format!("{stage}/.PKGINFO"), "644", &info);
    if let Some(body) = &package.after_install {
        let install = format!("post_install() {{\n{body}\n}}\n");
        put(script, &format!("{stage}/.INSTALL"), "644", &install);
    }
    if package.is_vetoed {
        // A package's own script cannot stop pacman; a hook of the machine can.
        let hook = format!(
            "[Trigger]\nOperation = Install\nType = Package\nTarget = {name}\n\n\
             [Action]\nDescription = asking about {name}\nWhen = PreTransaction\n\
             Exec = /bin/false\nAbortOnFail\n"
        );
        put(script, &format!("/etc/pacman.d/hooks/{name}.hook"), "644", &hook);
    }
    let to = format!("{REPOSITORY}/{}", file(package));
    // The package's description must come first in the archive.
    let _ = writeln!(
        script,
        "(cd '{stage}'; bsdtar --zstd --uid 0 --gid 0 -cf {to} $(ls -A | LC_ALL=C sort))"
    );
}
