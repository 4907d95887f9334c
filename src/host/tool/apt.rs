//! apt and dpkg: how they are asked and what they answer. Pure.
//!
//! Seen with apt 2.6.2 and dpkg 1.21.23. Where they find no package of a name, both apt-get and
//! apt-cache take it for a pattern, for something provided, or for one with a trailing `+` or `-`:
//! `he.lo` names `hello`. So what is there by a name is asked first, and the answer must be of that
//! very name. With -y apt-get would remove what is in the way, without --no-remove.

use super::installer::{argv, cause, strange, whole};
use super::installer::{Argv, Hitch, Installer, List, Listed, Lock, Manner, Mends, Offer, Said};

/// apt-get(8), over dpkg(1).
#[derive(Debug)]
pub struct Apt;

/// One package a line; `dpkg` itself tells the machine's own architecture.
const FORMAT: &str = "${Package}\t${Architecture}\t${db:Status-Status}\t${Version}\n";

/// The first that is found counts, so the particular stand before the general.
static MENDS: &Mends = &[
    ("Could not get lock", "another package manager took the lock; try again"),
    ("dpkg was interrupted", "someone's work on packages was cut off: dpkg --configure -a"),
    ("remove is disabled", "a package that is there excludes it: remove one of the two"),
    ("404  Not Found", "the index is stale: apt-get update"),
    ("File not found - ", "the repository on disk does not hold what its index lists: mend it"),
    ("Hash Sum mismatch", "the mirror serves something else than its index lists: apt-get update"),
    ("Failed to fetch", "the mirror cannot be used: mend it or the source that names it"),
    ("You don't have enough free space", "make room on the disk"),
    ("No space left on device", "the disk is full: make room"),
    ("script subprocess returned error", "a script of a package failed: mend what it asks for"),
    ("has no installation candidate", "no source offers it now: see apt-cache policy"),
    ("unmet dependencies", "the sources lack something that it needs"),
    ("Unable to locate package", NOWHERE),
    ("cannot be authenticated", "its source is not signed by a key that is trusted here"),
];

const NOWHERE: &str =
    "no source has it: mend the name, add its source, or read the indexes (apt-get update)";

impl Installer for Apt {
    fn name(&self) -> &'static str {
        "apt-get"
    }

    fn database(&self) -> &'static str {
        "/var/lib/dpkg/status"
    }

    fn serves(&self, id: &str) -> bool {
        ["debian", "ubuntu"].contains(&id)
    }

    fn lock(&self) -> Lock {
        Lock::Taken(&[
            "/var/lib/dpkg/lock-frontend",
            "/var/lib/dpkg/lock",
            "/var/cache/apt/archives/lock",
        ])
    }

    fn processes(&self) -> &'static [&'static str] {
        &["apt-get", "apt", "dpkg", "aptitude", "unattended-upgr", "packagekitd"]
    }

    fn env(&self) -> &'static [(&'static str, &'static str)] {
        &[("DEBIAN_FRONTEND", "noninteractive")]
    }

    fn list(&self, root: &str) -> Argv {
        match root {
            "/" => argv("dpkg-query", &["-W", "-f", FORMAT]),
            _ => argv("dpkg-query", &[&rooted(root), "-W", "-f", FORMAT]),
        }
    }

    fn listed(&self, said: &Said) -> Result<List, String> {
        if !said.well {
            return Err(failure(said));
        }
        let mut lines = Vec::new();
        for line in whole(said)?.lines() {
            let mut fields = line.split('\t');
            let four = [(); 4].map(|()| fields.next());
            let [Some(name), Some(arch), Some(state), Some(version)] = four else {
                return Err(strange(line));
            };
            if name.is_empty() || state.is_empty() || fields.next().is_some() {
                return Err(strange(line));
            }
            lines.push((name, arch, state, version));
        }
        let own = lines.iter().find(|line| line.0 == "dpkg").map(|line| line.1);
        // Of another architecture it is another package, which apt names `name:architecture`.
        lines.retain(|line| {
            line.1 == "all" || line.1.is_empty() || own.is_none_or(|own| own == line.1)
        });
        let there =
            lines.into_iter().filter(|line| !["not-installed", "config-files"].contains(&line.2));
        Ok(there.map(|(name, _, state, version)| (name.into(), listed(state, version))).collect())
    }

    fn inquire(&self, root: &str, name: &str) -> Argv {
        apt("apt-cache", root, &["showpkg", "--", name])
    }

    fn offer(&self, name: &str, said: &Said) -> Result<Offer, String> {
        if !said.well {
            return Err(failure(said));
        }
        let out = whole(said)?;
        let mut lines = out.lines();
        if lines.next().and_then(|line| line.strip_prefix("Package: ")) != Some(name) {
            return Ok(Offer::Nothing(NOWHERE.into()));
        }
        let section = |title: &'static str| {
            let lines = out.lines().skip_while(move |line| line.trim_end() != title).skip(1);
            lines.take_while(|line| !line.trim_end().ends_with(':'))
        };
        // A version stands before the index that has it, which is dpkg's own for what was there.
        let version = section("Versions:").find_map(|line| line.split_once(" ("));
        if let Some((version, _)) = version {
            return Ok(Offer::Package(version.into()));
        }
        let providers = section("Reverse Provides:").filter_map(|line| line.split(' ').next());
        let mut providers: Vec<String> = providers.map(Into::into).collect();
        providers.sort();
        providers.dedup();
        match providers.is_empty() {
            true => Ok(Offer::Nothing(NOWHERE.into())),
            false => Ok(Offer::Others(providers)),
        }
    }

    fn install(&self, root: &str, names: &[&str], manner: Manner) -> Argv {
        let mut arguments = vec!["install", "-y", "-q", "--no-remove"];
        // A file that a person changed, or put there, stays.
        arguments.extend(["-o", "Dpkg::Options::=--force-confdef"]);
        arguments.extend(["-o", "Dpkg::Options::=--force-confold"]);
        arguments.push(match manner {
            // What is half unpacked is skipped with --no-upgrade, exit 0.
            Manner::Again => "--reinstall",
            Manner::Missing | Manner::Over(_) => "--no-upgrade",
        });
        arguments.push("--");
        arguments.extend(names);
        apt("apt-get", root, &arguments)
    }

    fn hitch(&self, said: &Said) -> Option<Hitch> {
        (!said.well).then(|| Hitch { cause: failure(said), ..Hitch::default() })
    }

    fn resume(&self, root: &str) -> Option<Argv> {
        let configure = ["--force-confdef", "--force-confold", "--configure", "-a"];
        Some(match root {
            "/" => argv("dpkg", &configure),
            _ => argv("dpkg", &[&[rooted(root).as_str()][..], &configure].concat()),
        })
    }
}

fn listed(state: &str, version: &str) -> Listed {
    let by_half = (!is_whole(state)).then(|| state.into());
    Listed { version: version.into(), by_half, broken: state == "half-installed" }
}

/// What waits for triggers is configured all the same.
fn is_whole(state: &str) -> bool {
    ["installed", "triggers-awaited", "triggers-pending"].contains(&state)
}

fn rooted(root: &str) -> String {
    format!("--root={root}")
}

fn apt(program: &str, root: &str, arguments: &[&str]) -> Argv {
    if root == "/" {
        return argv(program, arguments);
    }
    // RootDir would lack dpkg's own tables of the running machine.
    let dir = format!("Dir={root}");
    let status = format!("Dir::State::status={}/var/lib/dpkg/status", root.trim_end_matches('/'));
    let dpkg = format!("Dpkg::Options::={}", rooted(root));
    argv(program, &[&["-o", &dir, "-o", &status, "-o", &dpkg], arguments].concat())
}

fn failure(said: &Said) -> String {
    let tells = |lines: &[&str], at: usize| {
        let line = lines[at];
        let starts = ["E: ", "dpkg: error", "dpkg-query: error"];
        let after =
            at.checked_sub(1).is_some_and(|before| lines[before].starts_with("dpkg: error"));
        // What a script said stands before the word that it failed.
        let next = lines.get(at + 1).is_some_and(|next| next.starts_with("dpkg: error"));
        starts.iter().any(|start| line.starts_with(start)) || after || next
    };
    cause(said, tells, MENDS)
}

#[cfg(test)]
mod tests {
    use super::super::installer::tests::{cut_anywhere, said};
    use super::*;

    macro_rules! transcript {
        ($name:literal) => {
            include_str!(concat!("../../../tests/transcripts/apt/", $name))
        };
    }

    fn cause_of(text: &str) -> String {
        Apt.hitch(&said(false, text)).unwrap().cause
    }

    #[test]
    fn the_list_tells_how_far_each_is_there() {
        let list = Apt.listed(&said(true, transcript!("list"))).unwrap();
        assert!(list.len() > 200);
        assert_eq!(&*list["apt"].version, "2.6.2");
        assert_eq!(list["apt"].by_half, None);
        let states = "a\tall\tinstalled\t1\nb\tall\tnot-installed\t\nc\tall\tconfig-files\t1\n\
                      d\tall\thalf-installed\t1\ne\tall\tunpacked\t1\n\
                      f\tall\thalf-configured\t1\ng\tall\ttriggers-pending\t1\n";
        let list = Apt.listed(&said(true, states)).unwrap();
        let half = |name: &str| list[name].by_half.as_deref();
        assert!(!list.contains_key("b") && !list.contains_key("c"));
        assert_eq!([half("a"), half("d"), half("g")], [None, Some("half-installed"), None]);
        assert_eq!([half("e"), half("f")], [Some("unpacked"), Some("half-configured")]);
        assert!(list["d"].broken && !list["f"].broken);
        for bad in [
            "a\n",
            "a\tall\tinstalled\n",
            "\tall\tinstalled\t1\n",
            "a\tall\t\t1\n",
            "a\tb\tc\td\te\n",
        ] {
            assert!(Apt.listed(&said(true, bad)).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_package_of_another_architecture_is_another_package() {
        let list = "dpkg\tamd64\tinstalled\t1\nwine\ti386\tinstalled\t1\n\
                    libc6\tamd64\tinstalled\t2\nlibc6\ti386\tinstalled\t1\n";
        let list = Apt.listed(&said(true, list)).unwrap();
        assert!(!list.contains_key("wine"));
        assert_eq!(&*list["libc6"].version, "2");
    }

    #[test]
    fn a_cut_answer_is_true_or_none() {
        let all = Apt.listed(&said(true, transcript!("list"))).unwrap();
        for list in cut_anywhere(transcript!("list"), |said| Apt.listed(said)) {
            assert!(list.iter().all(|(name, it)| all[name] == *it));
        }
        let real = cut_anywhere(transcript!("offer"), |said| Apt.offer("hello", said));
        assert!(real.iter().all(|it| !matches!(it, Offer::Others(_))));
        let provided = |said: &Said| Apt.offer("mail-carrier", said);
        let provided = cut_anywhere(transcript!("offer-provided"), provided);
        assert!(provided.iter().all(|it| !matches!(it, Offer::Package(_))));
        cut_anywhere(
            transcript!("full-disk"),
            |said| Ok(Apt.hitch(&Said { well: false, ..*said })),
        );
    }

    #[test]
    fn a_name_offers_the_package_of_that_very_name() {
        let offer = |name: &str, text: &str| Apt.offer(name, &said(true, text)).unwrap();
        assert_eq!(offer("hello", transcript!("offer")), Offer::Package("1.0".into()));
        let there = offer("libc6", transcript!("offer-there"));
        assert_eq!(there, Offer::Package("2.36-9+deb12u14".into()));
        let provided = offer("mail-carrier", transcript!("offer-provided"));
        assert_eq!(provided, Offer::Others(vec!["postbox".into()]));
        for (name, text) in [("he.lo", transcript!("offer-pattern")), ("nowhere", "")] {
            assert!(matches!(offer(name, text), Offer::Nothing(_)), "{name}");
        }
    }

    #[test]
    fn each_failure_is_told_with_what_mends_it() {
        let told = [
            (transcript!("locked"), "another package manager took the lock"),
            (transcript!("dead-mirror"), "the mirror cannot be used"),
            (transcript!("lost"), "repository on disk"),
            (transcript!("nowhere"), "no source has it"),
            (transcript!("vetoed"), "\"no vetoed here\""),
            (transcript!("script"), "\"cannot set up\""),
            (transcript!("script"), "a script of a package failed"),
            (transcript!("excluded"), "a package that is there excludes it"),
            (transcript!("full-disk"), "the disk is full"),
            (transcript!("interrupted"), "dpkg --configure -a"),
        ];
        for (text, words) in told {
            let cause = cause_of(text);
            assert!(cause.contains(words), "{words}: {cause}");
        }
        assert_eq!(Apt.hitch(&said(true, "")), None);
    }

    #[test]
    fn it_is_never_asked_to_remove_or_to_upgrade() {
        for manner in [Manner::Missing, Manner::Again] {
            let argv = Apt.install("/", &["x"], manner);
            let has = |word: &str| argv.iter().any(|it| it == word);
            assert!(has("--no-remove") && has("--no-upgrade") == (manner == Manner::Missing));
            assert_eq!(argv[argv.len() - 2..], ["--", "x"]);
        }
        let tree = Apt.install("/mnt/tree", &["x"], Manner::Missing);
        assert!(tree.contains(&"Dir::State::status=/mnt/tree/var/lib/dpkg/status".to_string()));
    }
}
