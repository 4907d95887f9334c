//! Kernel parameters, read and written through /proc/sys.
//!
//! Always the running kernel's, never a path inside a mounted tree, and never through the walk.

use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::path::Path;

use super::sys;
use super::words::words;

/// The largest value that is read, in bytes.
const LARGEST: u64 = 64 << 10;

/// The value of `key`, trailing newline removed; `None` where the kernel has no such key.
pub(super) fn read(key: &str) -> Result<Option<String>, String> {
    let file = match open(key, libc::O_RDONLY)? {
        Some(file) => file,
        None => return Ok(None),
    };
    let mut value = Vec::new();
    let read = file.take(LARGEST + 1).read_to_end(&mut value);
    read.map_err(|error| match error.kind() {
        io::ErrorKind::IsADirectory => "it is a group of parameters, not one".to_string(),
        _ => words(&error),
    })?;
    if value.len() as u64 > LARGEST {
        return Err(format!("its value has more than {LARGEST} bytes"));
    }
    let mut value = String::from_utf8(value).map_err(|_| "its value is not text".to_string())?;
    if value.ends_with('\n') {
        value.pop();
    }
    Ok(Some(value))
}

/// Writes `value` to `key`, in one write: the kernel takes each as a whole value.
pub(super) fn write(key: &str, value: &str) -> Result<(), String> {
    let mut file = open(key, libc::O_WRONLY)?.ok_or("the kernel has no such parameter")?;
    let line = format!("{value}\n");
    match file.write(line.as_bytes()) {
        Ok(written) if written == line.len() => Ok(()),
        Ok(written) => Err(format!("the kernel took {written} of {} bytes", line.len())),
        Err(error) => Err(words(&error)),
    }
}

fn open(key: &str, flags: i32) -> Result<Option<File>, String> {
    let Some(path) = file(key) else { return Err("it is no name of a parameter".to_string()) };
    let top = File::open(Path::new("/proc/sys"))
        .map_err(|error| format!("open /proc/sys: {}", words(&error)))?;
    let top = OwnedFd::from(top);
    if !sys::is_procfs(&top).map_err(|error| words(&error))? {
        return Err("/proc/sys is not the kernel's: mount proc at /proc".to_string());
    }
    match sys::open(&top, &path, flags | libc::O_NOFOLLOW, 0) {
        Ok(fd) => Ok(Some(File::from(fd))),
        Err(error) => match error.raw_os_error() {
            Some(libc::ENOENT | libc::ENOTDIR) => Ok(None),
            _ => Err(words(&error)),
        },
    }
}

/// The file of the dotted `key`, below /proc/sys; a `/` in it stands for a dot inside a name.
/// `None` for what could lead elsewhere.
fn file(key: &str) -> Option<CString> {
    let swapped: String = key
        .chars()
        .map(|c| match c {
            '.' => '/',
            '/' => '.',
            other => other,
        })
        .collect();
    let sound = swapped.split('/').all(|name| !matches!(name, "" | "." | ".."));
    sound.then(|| CString::new(swapped).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slash_in_a_key_is_a_dot_in_a_name() {
        let shown = |key| file(key).map(|path| path.into_string().unwrap());
        assert_eq!(shown("net.ipv4.ip_forward").unwrap(), "net/ipv4/ip_forward");
        assert_eq!(shown("net.ipv4.conf.eth0/100.mtu").unwrap(), "net/ipv4/conf/eth0.100/mtu");
    }

    #[test]
    fn a_key_leads_nowhere_but_below_proc_sys() {
        for key in ["", ".", "/", "..", "//", ".net", "net.", "a..b", "//.//.//.etc.passwd", "a\0b"]
        {
            assert_eq!(file(key), None, "{key:?}");
        }
    }

    #[test]
    fn a_value_is_read_as_the_kernel_has_it() {
        //
        let kernel = std::fs::read_to_string("/proc/sys/kernel/ostype").unwrap();
        assert_eq!(read("kernel.ostype").unwrap().unwrap(), kernel.trim_end());
        assert_eq!(read("kernel.no_such_parameter").unwrap(), None);
        assert_eq!(read("kernel.ostype.below").unwrap(), None);
        assert!(read("kernel").unwrap_err().contains("group of parameters"));
        assert!(read("kernel/").is_ok_and(|value| value.is_none()));
    }

    #[test]
    fn what_the_kernel_refuses_is_refused_in_its_words() {
        //
        assert_eq!(
            write("kernel.no_such_parameter", "1").unwrap_err(),
            "the kernel has no such parameter"
        );
        let refused = write("kernel.ostype", "Other").unwrap_err();
        let known = ["permission denied", "operation not permitted", "read-only file system"];
        assert!(known.iter().any(|words| refused.starts_with(words)), "{refused}");
        let read_only = "/proc/sys is mounted read-only or this is not root";
        match write("vm.swappiness", "many") {
            Err(cause) if cause == "invalid argument" => {}
            Err(cause) => eprintln!("skipped: {read_only}: {cause}"),
            Ok(()) => panic!("the kernel took a word for a number"),
        }
    }
}
