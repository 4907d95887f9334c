//! An apt repository in a machine: packages by dpkg-deb, and an index written by hand, since
//! the tools that write one are not in a small tree.

use crate::package::put;
use crate::{Machine, Package};
use std::fmt::Write;

const REPOSITORY: &str = "/srv/apt";
const STAGE: &str = "/srv/stage/apt";
const SOURCES: &str = "deb [trusted=yes] file:/srv/apt ./\n";

impl Machine {
    /// Gives the machine an apt repository, `file:/srv/apt`, with these packages beside those of
    /// an earlier call, and has apt read its index. apt knows of no other.
    #[track_caller]
    pub fn apt_repository(&self, packages: &[Package]) {
        let mut script = format!("umask 022; mkdir -p {REPOSITORY}\n");
        put(&mut script, "/etc/apt/sources.list", "644", SOURCES);
        for package in packages {
            build(package, &mut script);
        }
        script.push_str("rm -rf /srv/stage; apt-get -qq update\n");
        self.command(["sh", "-es"]).input(script).run().ok();
    }
}

fn build(package: &Package, script: &mut String) {
    let Package { name, version, .. } = package;
    let stage = format!("{STAGE}/{name}");
    package.stage(&stage, script);
    let mut control = format!(
        "Package: {name}\nVersion: {version}\nArchitecture: all\n\
         Maintainer: lab <lab@lab.invalid>\n"
    );
    for (field, values) in [("Provides", &package.provides), ("Depends", &package.depends)] {
        if !values.is_empty() {
            let _ = writeln!(control, "{field}: {}", values.join(", "));
        }
    }
    let _ = writeln!(control, "Description: handmade {name}");
    put(script, &format!("{stage}/DEBIAN/control"), "644", &control);
    if let Some(body) = &package.after_install {
        put(script, &format!("{stage}/DEBIAN/postinst"), "755", &format!("#!/bin/sh\n{body}\n"));
    }
    if package.is_vetoed {
        let veto = format!("#!/bin/sh\necho no {name} here >&2\nexit 1\n");
        put(script, &format!("{stage}/DEBIAN/preinst"), "755", &veto);
    }
    let deb = format!("{name}_{version}_all.deb");
    let _ = writeln!(
        script,
        "cd {REPOSITORY}\n\
         dpkg-deb --root-owner-group -Zgzip -z1 --build '{stage}' {deb} > /dev/null\n\
         {{ cat '{stage}/DEBIAN/control'\n\
         echo \"Filename: ./{deb}\"\n\
         echo \"Size: $(stat --format=%s {deb})\"\n\
         echo \"SHA256: $(sha256sum {deb} | cut -d ' ' -f 1)\"\n\
         echo; }} >> Packages"
    );
    if package.is_lost {
        let _ = writeln!(script, "rm {deb}");
    }
}
