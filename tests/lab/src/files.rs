//! Files in a machine, seen and changed from inside, so that its links and mounts count.

use crate::Machine;
use std::fs;
use std::path::Path;

impl Machine {
    /// Writes a file, root's and 0644 if it is new, with the directories above it.
    #[track_caller]
    pub fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let script = r#"mkdir -p -- "$(dirname -- "$1")"; cat > "$1""#;
        self.command(["sh", "-ec", script, "write", path]).input(content).run().ok();
    }

    /// A file's text.
    #[track_caller]
    pub fn read(&self, path: &str) -> String {
        String::from_utf8_lossy(self.run(["cat", "--", path]).ok().bytes()).into_owned()
    }

    /// True if something is at `path`; a dangling link is something.
    #[track_caller]
    pub fn exists(&self, path: &str) -> bool {
        self.run(["sh", "-c", r#"[ -e "$1" ] || [ -L "$1" ]"#, "exists", path]).code() == 0
    }

    /// What `stat` says of `path` by `format`, for instance `%a %U:%G`.
    #[track_caller]
    pub fn stat(&self, path: &str, format: &str) -> String {
        self.run(["stat", "--format", format, "--", path]).ok().stdout()
    }

    /// Copies a program of this computer to `path`, executable.
    #[track_caller]
    pub fn place(&self, program: &Path, path: &str) {
        let bytes = fs::read(program).unwrap_or_else(|e| panic!("{}: {e}", program.display()));
        let argv = ["install", "-D", "--mode=755", "--", "/dev/stdin", path];
        self.command(argv).input(bytes).run().ok();
    }

    /// Puts an empty disk of `size_kib` at `path`, to be filled up; gone with the next boot.
    #[track_caller]
    pub fn small_disk(&self, path: &str, size_kib: u32) {
        self.run(["mkdir", "-p", "--", path]).ok();
        let size = format!("size={size_kib}k,mode=755");
        self.run(["mount", "-t", "tmpfs", "-o", &size, "small-disk", path]).ok();
    }
}
