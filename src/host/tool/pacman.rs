//! pacman: how it is asked and what it answers. Pure.
//!
//! Seen with 6.0.2. It exits 1 for nearly every failure, so its words are judged; 0 where only a
//! script of the package failed. An empty database is listed with exit 1 and no word. What was cut
//! off while it was unpacked, or did not fit on the disk, is listed as if it were there.

use super::installer::{argv, cause, lines, strange, whole};
use super::installer::{Argv, Hitch, Installer, List, Listed, Lock, Manner, Mends, Offer, Said};

/// pacman(8).
#[derive(Debug)]
pub struct Pacman;

const LOCAL: &str = "/var/lib/pacman/local";

/// The first that is found counts, so the particular stand before the general.
static MENDS: &Mends = &[
    ("unable to lock database", "another package manager took the lock; try again"),
    ("does not exist (use '-Sy'", "its database is missing: upgrade the machine (pacman -Syu)"),
    ("no usable package repositories", "name a repository in /etc/pacman.conf"),
    ("no servers configured", "name a Server for the repository in /etc/pacman.conf"),
    ("config file /etc/pacman.conf could not be read", "write /etc/pacman.conf"),
    ("/var/lib/pacman/sync/", "its database is damaged: upgrade the machine (pacman -Syyu)"),
    (" 404", "the database is stale: upgrade the machine (pacman -Syu)"),
    ("from disk : ", "the repository on disk does not hold what its database lists: mend it"),
    ("failed retrieving file", "the mirror cannot be used: mend it or the Server that names it"),
    ("not enough free disk space", "make room on the disk"),
    ("Partition ", "make room on the disk"),
    ("(Write failed)", "the disk is full: make room"),
    ("No space left on device", "the disk is full: make room"),
    ("failed to run transaction hooks", "a hook of the machine refused: see what it asks for"),
    ("command failed to execute", "it is there, but a script or hook failed: finish its work"),
    ("exists in filesystem", "a file that no package brought is in its way: move it away"),
    ("conflicting dependencies", "a package that is there excludes it: remove one of the two"),
    (
        "unresolvable package conflicts",
        "a package that is there excludes it: remove one of the two",
    ),
    ("is in conflict", "a package that is there excludes it: remove one of the two"),
    ("could not satisfy dependencies", "the repositories lack something that it needs"),
    ("signature", "its signature does not hold: bring the keyring up to date"),
    ("was not found", "no repository has it: mend the name, or add the repository"),
];

impl Installer for Pacman {
    fn name(&self) -> &'static str {
        "pacman"
    }

    fn database(&self) -> &'static str {
        LOCAL
    }

    fn serves(&self, id: &str) -> bool {
        ["arch", "archarm", "archlinux"].contains(&id)
    }

    fn lock(&self) -> Lock {
        Lock::Made("/var/lib/pacman/db.lck")
    }

    fn processes(&self) -> &'static [&'static str] {
        &["pacman", "packagekitd", "pamac-daemon", "yay", "paru"]
    }

    fn list(&self, root: &str) -> Argv {
        pacman(root, &["-Q"])
    }

    fn listed(&self, said: &Said) -> Result<List, String> {
        let is_empty = said.out.is_empty() && !lines(said).iter().any(|line| is_error(line));
        if !said.well && !is_empty {
            return Err(failure(said));
        }
        whole(said)?.lines().map(entry).collect()
    }

    fn proof(&self, name: &str, version: &str) -> Option<String> {
        Some(format!("{LOCAL}/{name}-{version}/desc"))
    }

    fn inquire(&self, root: &str, name: &str) -> Argv {
        // Takes a name for nothing but a package's.
        pacman(root, &["-Si", "--", name])
    }

    fn offer(&self, name: &str, said: &Said) -> Result<Offer, String> {
        if !said.well {
            return Ok(Offer::Nothing(failure(said)));
        }
        let out = whole(said)?;
        let value = |key: &str| {
            let mut fields = out.lines().filter_map(|line| line.split_once(" : "));
            fields.find(|(found, _)| found.trim_end() == key).map(|(_, value)| value.trim())
        };
        match (value("Name"), value("Version")) {
            (Some(found), Some(version)) if found == name && is_word(version) => {
                Ok(Offer::Package(version.into()))
            }
            _ => Err(strange(out.lines().next().unwrap_or_default())),
        }
    }

    fn instead(&self, root: &str, name: &str) -> Option<Argv> {
        // Without dependencies, and only printed.
        Some(pacman(root, &["-Sddp", "--print-format", "%n", "--", name]))
    }

    fn group(&self, root: &str, name: &str) -> Option<Argv> {
        Some(pacman(root, &["-Sg", "--", name]))
    }

    fn install(&self, root: &str, names: &[&str], manner: Manner) -> Argv {
        let mut argv = pacman(root, &["-S", "--noconfirm", "--noprogressbar"]);
        if manner != Manner::Again {
            argv.push("--needed".into());
        }
        if let Manner::Over(paths) = manner {
            argv.extend(paths.iter().flat_map(|path| ["--overwrite".into(), plain(path)]));
        }
        argv.extend(["--"].iter().chain(names).map(|word| word.to_string()));
        argv
    }

    fn hitch(&self, said: &Said) -> Option<Hitch> {
        let lines = lines(said);
        // A script that failed does not count for pacman, and does for us.
        if said.well && !lines.iter().any(|line| line.contains("command failed to execute")) {
            return None;
        }
        let after = |line: &str, words: &str| line.strip_prefix(words).map(str::to_string);
        let halves = lines.iter();
        let halves =
            halves.filter_map(|line| after(line, "error: problem occurred while installing "));
        let conflicts = lines.iter().filter_map(|line| line.strip_suffix(" exists in filesystem"));
        let paths = conflicts.filter_map(|line| line.split_once(": ")).map(|(_, path)| path.into());
        Some(Hitch { cause: failure(said), in_the_way: paths.collect(), by_half: halves.collect() })
    }

    fn unlist(&self, root: &str, names: &[&str]) -> Option<Argv> {
        Some(self.remove(root, &["--dbonly", "--"], names))
    }

    fn take_back(&self, root: &str, names: &[&str]) -> Option<Argv> {
        Some(self.remove(root, &["--"], names))
    }
}

impl Pacman {
    fn remove(&self, root: &str, flags: &[&str], names: &[&str]) -> Argv {
        let mut argv = pacman(root, &["-Rdd", "--noconfirm", "--noprogressbar"]);
        argv.extend(flags.iter().chain(names).map(|word| word.to_string()));
        argv
    }
}

fn pacman(root: &str, arguments: &[&str]) -> Argv {
    match root {
        "/" => argv("pacman", arguments),
        // Its configuration, keys and repositories are then the tree's own, unlike with --root.
        _ => argv("pacman", &[&["--sysroot", root], arguments].concat()),
    }
}

/// A line `name version`.
fn entry(line: &str) -> Result<(Box<str>, Listed), String> {
    match line.split_once(' ') {
        Some((name, version)) if !name.is_empty() && is_word(version) => {
            Ok((name.into(), Listed { version: version.into(), by_half: None, broken: false }))
        }
        _ => Err(strange(line)),
    }
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && !text.contains(|c: char| c.is_whitespace() || c == '/')
}

fn is_error(line: &str) -> bool {
    line.starts_with("error:")
}

fn failure(said: &Said) -> String {
    let tells = |lines: &[&str], at: usize| {
        let line = lines[at];
        // What a script said stands before the word that it failed.
        let before = lines.get(at + 1).is_some_and(|next| next.contains("command failed to"));
        let conflicts = line.contains(" exists in filesystem") || line.contains("are in conflict");
        is_error(line) || before || conflicts || line.contains(" does not exist (use ")
    };
    cause(said, tells, MENDS)
}

/// The pattern that `path` alone matches; a comma would end it.
fn plain(path: &str) -> String {
    path.replace(['[', ']', '*', '!', '\\', ','], "?")
}

#[cfg(test)]
mod tests {
    use super::super::installer::tests::{cut_anywhere, said};
    use super::*;

    macro_rules! transcript {
        ($name:literal) => {
            include_str!(concat!("../../../tests/transcripts/pacman/", $name))
        };
    }

    fn hitch(text: &str) -> Hitch {
        Pacman.hitch(&said(false, text)).unwrap()
    }

    #[test]
    fn the_list_is_read_and_what_is_no_list_is_not() {
        let list = Pacman.listed(&said(true, transcript!("list"))).unwrap();
        assert_eq!(list.len(), 2);
        assert_eq!(&*list["letters"].version, "1.0-1");
        assert_eq!(Pacman.listed(&said(false, "")), Ok(List::new()), "an empty one exits 1");
        let bad = ["hello\n", "hello \n", " 1.0\n", "hello 1.0 2.0\n", "hello ../../1\n", "a 1"];
        for bad in bad {
            assert!(Pacman.listed(&said(true, bad)).is_err(), "{bad:?}");
        }
        assert!(Pacman.listed(&said(false, "error: no database\n")).is_err());
    }

    #[test]
    fn a_cut_answer_is_true_or_none() {
        for list in cut_anywhere(transcript!("list"), |said| Pacman.listed(said)) {
            assert!(list.values().all(|it| &*it.version == "1.0-1"));
        }
        let offers = cut_anywhere(transcript!("offer"), |said| Pacman.offer("hello", said));
        assert!(!offers.is_empty());
        assert!(offers.iter().all(|offer| *offer == Offer::Package("1.0-1".into())));
        for text in [transcript!("full-disk"), transcript!("in-the-way"), transcript!("script")] {
            cut_anywhere(text, |said| Ok(Pacman.hitch(&Said { well: false, ..*said })));
        }
    }

    #[test]
    fn a_name_offers_the_package_of_that_very_name() {
        assert_eq!(
            Pacman.offer("hello", &said(true, transcript!("offer"))),
            Ok(Offer::Package("1.0-1".into()))
        );
        assert!(Pacman.offer("hell", &said(true, transcript!("offer"))).is_err());
        assert!(Pacman.offer("hello", &said(true, "")).is_err());
        let none = Pacman.offer("nowhere", &said(false, transcript!("offer-none")));
        assert!(matches!(none, Ok(Offer::Nothing(why)) if why.contains("no repository has it")));
    }

    #[test]
    fn each_failure_is_told_with_what_mends_it() {
        let told = [
            (transcript!("locked"), "another package manager took the lock"),
            (transcript!("missing-database"), "its database is missing"),
            (transcript!("no-repository"), "name a repository"),
            (transcript!("damaged-database"), "its database is damaged"),
            (transcript!("dead-mirror"), "the mirror cannot be used"),
            (transcript!("lost"), "repository on disk"),
            (transcript!("no-server"), "name a Server"),
            (transcript!("hook"), "a hook of the machine refused"),
            (transcript!("full-disk"), "the disk is full"),
            (transcript!("in-the-way"), "\"tea: /usr/share/tea/leaf exists in filesystem\""),
        ];
        for (text, words) in told {
            let cause = hitch(text).cause;
            assert!(cause.contains(words), "{words}: {cause}");
        }
    }

    #[test]
    fn what_came_by_half_or_is_in_the_way_is_named() {
        assert_eq!(hitch(transcript!("full-disk")).by_half, ["bulky"]);
        assert_eq!(hitch(transcript!("in-the-way")).in_the_way, ["/usr/share/tea/leaf"]);
        assert_eq!(
            hitch(transcript!("locked")),
            Hitch { cause: hitch(transcript!("locked")).cause, ..Hitch::default() }
        );
    }

    #[test]
    fn a_script_that_fails_counts_though_pacman_exits_0() {
        assert_eq!(Pacman.hitch(&said(true, transcript!("installed"))), None);
        let cause = Pacman.hitch(&said(true, transcript!("script"))).unwrap().cause;
        assert!(
            cause.contains("\"cannot set up\"") && cause.contains("finish its work"),
            "{cause}"
        );
    }

    #[test]
    fn it_is_never_asked_to_upgrade_and_overwrites_nothing_but_what_is_named() {
        let paths = ["/a,b".to_string(), "/c[d]*".to_string()];
        for manner in [Manner::Missing, Manner::Again, Manner::Over(&paths)] {
            let argv = Pacman.install("/mnt/tree", &["x"], manner);
            assert!(argv.contains(&"-S".to_string()), "neither -Sy nor -Su: {argv:?}");
            assert_eq!(argv[..3], ["pacman", "--sysroot", "/mnt/tree"]);
            assert_eq!(argv[argv.len() - 2..], ["--", "x"]);
            assert_eq!(argv.contains(&"--needed".to_string()), manner != Manner::Again);
            let over = argv.iter().filter(|word| *word == "--overwrite").count();
            assert_eq!(over, if let Manner::Over(paths) = manner { paths.len() } else { 0 });
        }
        assert_eq!([plain("/a,b"), plain("/c[d]*")], ["/a?b", "/c?d??"]);
    }
}
