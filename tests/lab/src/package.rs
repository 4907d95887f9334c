//! Handmade packages: what one holds, said once for pacman and for apt, and a shelf of them,
//! one for each thing that an installation can meet.

use std::fmt::Write;

/// Ends the text of a file within a script.
const END: &str = "MESH-LAB-END-OF-FILE";

/// A package to be built in a machine.
#[derive(Clone, Debug)]
pub struct Package {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) provides: Vec<String>,
    pub(crate) depends: Vec<String>,
    pub(crate) groups: Vec<String>,
    pub(crate) after_install: Option<String>,
    pub(crate) is_lost: bool,
    pub(crate) is_vetoed: bool,
    files: Vec<(String, &'static str, String)>,
    bulk: Option<(String, u32)>,
}

/// One package for each thing an installation can meet:
///
/// | name | is |
/// |---|---|
/// | `hello` | ordinary: `/usr/bin/hello`, `/etc/hello.conf` |
/// | `tea`, `coffee` | the two packages of the group `drinks` (pacman only) |
/// | `postbox` | provider of `mail-carrier`, which no package is named |
/// | `letters` | in need of `mail-carrier` |
/// | `ticker` | the carrier of a unit, `ticker.service` |
/// | `faulty` | failing in its script after installation; pacman then only warns and exits 0 |
/// | `vetoed` | stopped before installation: a hook (pacman), a preinst (dpkg) |
/// | `lost` | in the index and missing from the mirror |
/// | `bulky` | 32 MiB in `/opt/bulky`, small to fetch: see [`crate::Machine::small_disk`] |
pub fn shelf() -> Vec<Package> {
    let program = "#!/bin/sh\nwhile :; do echo tick; sleep 1; done\n";
    vec![
        Package::new("hello", "1.0")
            .program("/usr/bin/hello", "#!/bin/sh\necho hello 1.0\n")
            .file("/etc/hello.conf", "greeting = hello\n"),
        Package::new("tea", "1.0").group("drinks").file("/usr/share/tea/leaf", "green\n"),
        Package::new("coffee", "1.0").group("drinks").file("/usr/share/coffee/bean", "black\n"),
        Package::new("postbox", "1.0").provides("mail-carrier").file("/usr/share/postbox", "red\n"),
        Package::new("letters", "1.0").depends("mail-carrier").file("/usr/share/letters", "two\n"),
        Package::new("ticker", "1.0")
            .program("/usr/bin/ticker", program)
            .unit("ticker.service", "[Service]\nExecStart=/usr/bin/ticker\n"),
        Package::new("faulty", "1.0")
            .file("/usr/share/faulty", "here\n")
            .after_install("echo cannot set up >&2; exit 1"),
        Package::new("vetoed", "1.0").file("/usr/share/vetoed", "here\n").vetoed(),
        Package::new("lost", "1.0").file("/usr/share/lost", "here\n").lost(),
        Package::new("bulky", "1.0").bulk("/opt/bulky/heap", 32),
    ]
}

impl Package {
    pub fn new(name: &str, version: &str) -> Package {
        Package {
            name: name.to_owned(),
            version: version.to_owned(),
            provides: Vec::new(),
            depends: Vec::new(),
            groups: Vec::new(),
            after_install: None,
            is_lost: false,
            is_vetoed: false,
            files: Vec::new(),
            bulk: None,
        }
    }

    pub fn file(self, path: &str, text: &str) -> Package {
        self.with(path, "644", text)
    }

    pub fn program(self, path: &str, text: &str) -> Package {
        self.with(path, "755", text)
    }

    /// A systemd unit, where a package puts units.
    pub fn unit(self, name: &str, text: &str) -> Package {
        self.file(&format!("/usr/lib/systemd/system/{name}"), text)
    }

    pub fn provides(mut self, name: &str) -> Package {
        self.provides.push(name.to_owned());
        self
    }

    pub fn depends(mut self, name: &str) -> Package {
        self.depends.push(name.to_owned());
        self
    }

    /// Puts it into a group; apt knows none.
    pub fn group(mut self, name: &str) -> Package {
        self.groups.push(name.to_owned());
        self
    }

    /// A shell script that the package manager runs after it has unpacked the package.
    pub fn after_install(mut self, script: &str) -> Package {
        self.after_install = Some(script.to_owned());
        self
    }

    /// The package manager is told no before it unpacks the package.
    pub fn vetoed(mut self) -> Package {
        self.is_vetoed = true;
        self
    }

    /// It stands in the repository's index, and its file is not on the mirror.
    pub fn lost(mut self) -> Package {
        self.is_lost = true;
        self
    }

    /// A file of `size_mib` zeros: small while compressed.
    pub fn bulk(mut self, path: &str, size_mib: u32) -> Package {
        self.bulk = Some((path.to_owned(), size_mib));
        self
    }

    fn with(mut self, path: &str, mode: &'static str, text: &str) -> Package {
        assert!(path.starts_with('/') && !path.contains('\''), "a package's path: {path}");
        self.files.push((path.to_owned(), mode, text.to_owned()));
        self
    }

    /// Appends to `script` the making of its files below the directory `stage`.
    pub(crate) fn stage(&self, stage: &str, script: &mut String) {
        let _ = writeln!(script, "rm -rf '{stage}'; mkdir -p '{stage}'");
        for (path, mode, text) in &self.files {
            put(script, &format!("{stage}{path}"), mode, text);
        }
        if let Some((path, size_mib)) = &self.bulk {
            let path = format!("{stage}{path}");
            let _ = writeln!(script, "mkdir -p \"$(dirname '{path}')\"");
            let _ = writeln!(script, "head -c {size_mib}M /dev/zero > '{path}'");
        }
    }
}

/// Appends to `script` the writing of one file.
pub(crate) fn put(script: &mut String, path: &str, mode: &str, text: &str) {
    assert!(!text.contains(END), "{path}: holds the mark of its own end");
    let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    let _ = writeln!(script, "mkdir -p \"$(dirname '{path}')\"\ncat > '{path}' <<'{END}'");
    let _ = writeln!(script, "{text}{end}{END}\nchmod {mode} '{path}'");
}
