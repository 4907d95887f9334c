//! The workload W(n): n files of exactly 200 distinct bytes in n/10 directories, how each tool is
//! told of it, how it is damaged, and whether it stands. Nothing of it is held in memory, since a
//! child's peak memory would count what its parent holds.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Bytes in each file.
pub const FILE_BYTES: usize = 200;

/// W(n) below one directory.
pub struct Workload {
    /// How many files.
    pub n: usize,
    /// The topmost directory, itself declared. Its parent is there.
    pub tree: PathBuf,
}

impl Workload {
    fn directories(&self) -> usize {
        self.n.div_ceil(10)
    }

    fn directory(&self, i: usize) -> String {
        format!("{}/d{i:05}", self.tree.display())
    }

    fn file(&self, i: usize) -> String {
        format!("{}/f{i:06}.conf", self.directory(i / 10))
    }

    /// Writes the declaration that the host and the floor read. Returns its size in bytes.
    pub fn declaration(&self, to: &Path) -> io::Result<u64> {
        let mut out = BufWriter::new(private(to)?);
        let access = if is_root() { r#","owner":"root","group":"root""# } else { "" };
        write!(out, r#"{{"version":1,"resources":["#)?;
        let top = self.tree.display().to_string();
        let all = std::iter::once(top).chain((0..self.directories()).map(|i| self.directory(i)));
        for (i, path) in all.enumerate() {
            let comma = if i == 0 { "" } else { ",\n" };
            write!(out, r#"{comma}{{"id":"d{i}","type":"directory","path":"{path}","#)?;
            write!(out, r#""mode":"0755"{access}}}"#)?;
        }
        for i in 0..self.n {
            let (path, content) = (self.file(i), content(i).replace('\n', "\\n"));
            write!(out, ",\n{{\"id\":\"f{i}\",\"type\":\"file\",\"path\":\"{path}\",")?;
            write!(out, r#""mode":"0644"{access},"content":"{content}"}}"#)?;
        }
        writeln!(out, "]}}")?;
        out.into_inner()?.metadata().map(|found| found.len())
    }

    /// Writes the policy that cf-agent reads.
    pub fn policy(&self, to: &Path) -> io::Result<()> {
        let mut out = BufWriter::new(private(to)?);
        let owner = if is_root() { r#" owners => { "root" }; groups => { "root" };"# } else { "" };
        writeln!(out, r#"body common control {{ bundlesequence => {{ "tree" }}; }}"#)?;
        writeln!(out, r#"body perms is(mode) {{ mode => "$(mode)"; rxdirs => "false";{owner} }}"#)?;
        writeln!(out, "bundle agent tree\n{{\nfiles:")?;
        let top = self.tree.display().to_string();
        for path in std::iter::once(top).chain((0..self.directories()).map(|i| self.directory(i))) {
            writeln!(out, r#""{path}/." create => "true", perms => is("755");"#)?;
        }
        for i in 0..self.n {
            let path = self.file(i);
            write!(out, r#""{path}" create => "true", perms => is("644"), "#)?;
            writeln!(out, r#"content => "{}";"#, content(i))?;
        }
        writeln!(out, "}}")?;
        out.flush()
    }

    /// Overwrites every hundredth file (at least one).
    pub fn damage(&self) -> io::Result<()> {
        (0..self.n).step_by(100).try_for_each(|i| std::fs::write(self.file(i), "drifted\n"))
    }

    /// Every byte, mode and owner is as declared and nothing else is there; the error says what
    /// is not so.
    pub fn verify(&self) -> io::Result<()> {
        let wrong = |path: &str, what: &str| Err(io::Error::other(format!("{path}: {what}")));
        let owner = std::fs::metadata("/proc/self")?.uid();
        let mut entries = std::fs::read_dir(&self.tree)?.count();
        for i in 0..self.directories() {
            let path = self.directory(i);
            let found = std::fs::symlink_metadata(&path)?;
            if !found.is_dir() || found.mode() & 0o7777 != 0o755 || found.uid() != owner {
                return wrong(&path, "is not a directory with mode 0755");
            }
            entries += std::fs::read_dir(&path)?.count();
        }
        if entries != self.directories() + self.n {
            return wrong(&self.tree.display().to_string(), "holds what is not declared");
        }
        for i in 0..self.n {
            let path = self.file(i);
            let found = std::fs::symlink_metadata(&path)?;
            if !found.is_file() || found.mode() & 0o7777 != 0o644 || found.uid() != owner {
                return wrong(&path, "is not a file with mode 0644");
            }
            if std::fs::read(&path)? != content(i).as_bytes() {
                return wrong(&path, "holds something else");
            }
        }
        Ok(())
    }
}

/// What file `i` holds: a configuration file's kind of text, no two alike.
fn content(i: usize) -> String {
    let scattered = (i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let head = format!("# file {i}\nlisten_port = {}\ntoken = {scattered:016x}\npad = ", i % 60000);
    let pad = FILE_BYTES - head.len() - 1;
    format!("{head}{:x<pad$}\n", "")
}

fn private(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)
}

/// Whether this process is root; then the workload is root's.
pub fn is_root() -> bool {
    // SAFETY: it only returns a number and cannot fail.
    unsafe { libc::geteuid() == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_has_200_bytes_of_its_own() {
        let mut seen = std::collections::HashSet::new();
        for i in (0..100_000).step_by(7).chain([99_999, 999_999]) {
            let content = content(i);
            assert_eq!(content.len(), FILE_BYTES);
            assert!(seen.insert(content));
        }
    }

    #[test]
    fn damage_is_seen_wherever_it_is() {
        use std::os::unix::fs::PermissionsExt;
        let base = std::env::temp_dir().join(format!("mesh-bench-test-{}", std::process::id()));
        let workload = Workload { n: 30, tree: base.join("tree") };
        let stand = || {
            for i in 0..3 {
                std::fs::create_dir_all(workload.directory(i)).unwrap();
            }
            for i in 0..30 {
                std::fs::write(workload.file(i), content(i)).unwrap();
                let mode = std::fs::Permissions::from_mode(0o644);
                std::fs::set_permissions(workload.file(i), mode).unwrap();
            }
        };
        stand();
        workload.verify().unwrap();
        let last = workload.file(29);
        type Harm<'a> = &'a dyn Fn() -> io::Result<()>;
        let harms: [Harm; 5] = [
            &|| workload.damage(),
            &|| std::fs::remove_file(&last),
            &|| std::fs::write(&last, content(28)),
            &|| std::fs::set_permissions(&last, std::fs::Permissions::from_mode(0o640)),
            &|| std::fs::write(workload.directory(1) + "/left", ""),
        ];
        for (i, harm) in harms.iter().enumerate() {
            stand();
            harm().unwrap();
            assert!(workload.verify().is_err(), "harm {i} went unseen");
        }
        std::fs::remove_dir_all(&base).unwrap();
    }
}
