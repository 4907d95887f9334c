//! The system calls that `std` has no safe form of: each is wrapped once, and decides nothing.
//!
//! Everything is relative to a directory's descriptor and takes one name, never a path, so that no
//! call here can follow a link that somebody put on the way. Owns every `unsafe` of the file side.

use std::ffi::CStr;
use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use libc::{c_int, c_uint};

/// What sort of thing an inode is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    File,
    Directory,
    Symlink,
    Other(&'static str),
}

/// What the kernel says of an inode.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stat {
    pub kind: Kind,
    /// 0o7777 at most.
    pub mode: u16,
    pub uid: u32,
    pub gid: u32,
    pub size: u64,
    /// More than one name leads to it.
    pub linked: bool,
    /// Device and inode: no two things of one instant share both.
    pub identity: (u64, u64),
}

impl Stat {
    fn of(raw: &libc::stat) -> Stat {
        let kind = match raw.st_mode & libc::S_IFMT {
            libc::S_IFREG => Kind::File,
            libc::S_IFDIR => Kind::Directory,
            libc::S_IFLNK => Kind::Symlink,
            libc::S_IFSOCK => Kind::Other("socket"),
            libc::S_IFIFO => Kind::Other("fifo"),
            libc::S_IFBLK => Kind::Other("block device"),
            libc::S_IFCHR => Kind::Other("character device"),
            _ => Kind::Other("thing of no known kind"),
        };
        Stat {
            kind,
            mode: (raw.st_mode & 0o7777) as u16,
            uid: raw.st_uid,
            gid: raw.st_gid,
            size: u64::try_from(raw.st_size).unwrap_or(0),
            linked: kind != Kind::Directory && raw.st_nlink > 1,
            identity: (raw.st_dev, raw.st_ino),
        }
    }
}

/// Asks again while a signal interrupts: the host's own are few, and none is repeated forever.
fn retry<T: From<i8> + PartialEq>(mut call: impl FnMut() -> T) -> io::Result<T> {
    loop {
        let result = call();
        if result != T::from(-1) {
            return Ok(result);
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

/// openat(2), close-on-exec.
pub(super) fn open(dir: &OwnedFd, name: &CStr, flags: c_int, mode: u16) -> io::Result<OwnedFd> {
    let flags = flags | libc::O_CLOEXEC;
    // SAFETY: the name is NUL-terminated and outlives the call.
    let open =
        || unsafe { libc::openat(dir.as_raw_fd(), name.as_ptr(), flags, c_uint::from(mode)) };
    // SAFETY: the kernel has just handed out this descriptor; nobody else owns it.
    retry(open).map(|fd| unsafe { OwnedFd::from_raw_fd(fd) })
}

/// fstat(2).
pub(super) fn stat(fd: &OwnedFd) -> io::Result<Stat> {
    // SAFETY: all zeroes is a valid `stat`, which is plain data.
    let mut raw: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: `raw` is writable and of the size that the kernel fills.
    retry(|| unsafe { libc::fstat(fd.as_raw_fd(), &mut raw) })?;
    Ok(Stat::of(&raw))
}

/// fstatat(2), the name not followed.
pub(super) fn stat_at(dir: &OwnedFd, name: &CStr) -> io::Result<Stat> {
    // SAFETY: all zeroes is a valid `stat`, which is plain data.
    let mut raw: libc::stat = unsafe { std::mem::zeroed() };
    let flags = libc::AT_SYMLINK_NOFOLLOW;
    // SAFETY: the name is NUL-terminated, `raw` is writable and of the size the kernel fills.
    retry(|| unsafe { libc::fstatat(dir.as_raw_fd(), name.as_ptr(), &mut raw, flags) })?;
    Ok(Stat::of(&raw))
}

/// readlinkat(2); an empty name reads the link that `dir` itself is.
pub(super) fn read_link(dir: &OwnedFd, name: &CStr) -> io::Result<Vec<u8>> {
    let mut target = vec![0u8; libc::PATH_MAX as usize];
    let (room, len) = (target.as_mut_ptr().cast(), target.len());
    // SAFETY: the name is NUL-terminated and `room` has `len` writable bytes.
    let read = retry(|| unsafe { libc::readlinkat(dir.as_raw_fd(), name.as_ptr(), room, len) })?;
    target.truncate(usize::try_from(read).unwrap_or(0));
    Ok(target)
}

/// read(2).
pub(super) fn read(fd: &OwnedFd, into: &mut [u8]) -> io::Result<usize> {
    let (room, len) = (into.as_mut_ptr().cast(), into.len());
    // SAFETY: `room` has `len` writable bytes.
    let read = retry(|| unsafe { libc::read(fd.as_raw_fd(), room, len) })?;
    Ok(usize::try_from(read).unwrap_or(0))
}

/// fchown(2).
pub(super) fn chown(fd: &OwnedFd, uid: u32, gid: u32) -> io::Result<()> {
    // SAFETY: takes no memory of ours.
    retry(|| unsafe { libc::fchown(fd.as_raw_fd(), uid, gid) }).map(drop)
}

/// Gives the very symbolic link that `link` (opened with `O_PATH`) is another owner.
pub(super) fn chown_link(link: &OwnedFd, uid: u32, gid: u32) -> io::Result<()> {
    let (fd, flags) = (link.as_raw_fd(), libc::AT_EMPTY_PATH | libc::AT_SYMLINK_NOFOLLOW);
    // SAFETY: the name is a NUL-terminated constant.
    retry(|| unsafe { libc::fchownat(fd, c"".as_ptr(), uid, gid, flags) }).map(drop)
}

/// fchmod(2).
pub(super) fn chmod(fd: &OwnedFd, mode: u16) -> io::Result<()> {
    // SAFETY: takes no memory of ours.
    retry(|| unsafe { libc::fchmod(fd.as_raw_fd(), libc::mode_t::from(mode)) }).map(drop)
}

/// mkdirat(2).
pub(super) fn make_directory(dir: &OwnedFd, name: &CStr, mode: u16) -> io::Result<()> {
    let mode = libc::mode_t::from(mode);
    // SAFETY: the name is NUL-terminated.
    retry(|| unsafe { libc::mkdirat(dir.as_raw_fd(), name.as_ptr(), mode) }).map(drop)
}

/// symlinkat(2).
pub(super) fn make_link(target: &CStr, dir: &OwnedFd, name: &CStr) -> io::Result<()> {
    // SAFETY: both are NUL-terminated.
    retry(|| unsafe { libc::symlinkat(target.as_ptr(), dir.as_raw_fd(), name.as_ptr()) }).map(drop)
}

/// linkat(2) within one directory; a symbolic link gets a second name itself.
pub(super) fn second_name(dir: &OwnedFd, old: &CStr, new: &CStr) -> io::Result<()> {
    let fd = dir.as_raw_fd();
    // SAFETY: both names are NUL-terminated.
    retry(|| unsafe { libc::linkat(fd, old.as_ptr(), fd, new.as_ptr(), 0) }).map(drop)
}

/// renameat(2) within one directory: replaces what stands at `new`.
pub(super) fn rename_over(dir: &OwnedFd, old: &CStr, new: &CStr) -> io::Result<()> {
    let fd = dir.as_raw_fd();
    // SAFETY: both names are NUL-terminated.
    retry(|| unsafe { libc::renameat(fd, old.as_ptr(), fd, new.as_ptr()) }).map(drop)
}

/// renameat2(2) within one directory with `RENAME_NOREPLACE`: `EEXIST` where `new` is taken.
///
/// By number, since a C library older than glibc 2.28 has no such function.
pub(super) fn rename_new(dir: &OwnedFd, old: &CStr, new: &CStr) -> io::Result<()> {
    let (fd, number) = (dir.as_raw_fd(), libc::SYS_renameat2);
    let (old, new, flags) = (old.as_ptr(), new.as_ptr(), libc::RENAME_NOREPLACE);
    // SAFETY: the arguments are those of renameat2(2), and both names are NUL-terminated.
    retry(|| unsafe { libc::syscall(number, fd, old, fd, new, flags) }).map(drop)
}

/// unlinkat(2); never a directory.
pub(super) fn unlink(dir: &OwnedFd, name: &CStr) -> io::Result<()> {
    // SAFETY: the name is NUL-terminated.
    retry(|| unsafe { libc::unlinkat(dir.as_raw_fd(), name.as_ptr(), 0) }).map(drop)
}

/// unlinkat(2) with `AT_REMOVEDIR`: only a directory, and only an empty one.
pub(super) fn remove_directory(dir: &OwnedFd, name: &CStr) -> io::Result<()> {
    let flags = libc::AT_REMOVEDIR;
    // SAFETY: the name is NUL-terminated.
    retry(|| unsafe { libc::unlinkat(dir.as_raw_fd(), name.as_ptr(), flags) }).map(drop)
}

/// An empty file in memory, which no path leads to: nobody else can open it. `name` is what shows
/// in /proc. memfd_create(2), close-on-exec.
pub(super) fn memory(name: &CStr) -> io::Result<File> {
    // SAFETY: the name is a terminated string that outlives the call.
    let fd = retry(|| unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC) })?;
    // SAFETY: the kernel has just handed out this descriptor; nobody else owns it.
    Ok(File::from(unsafe { OwnedFd::from_raw_fd(fd) }))
}

/// A file that holds `bytes` in memory: what a child is to read and no one is to see.
pub(super) fn in_memory(bytes: &[u8]) -> io::Result<File> {
    let mut file = memory(c"input")?;
    file.write_all(bytes)?;
    file.rewind()?;
    Ok(file)
}

/// fsync(2).
pub(super) fn sync(fd: &OwnedFd) -> io::Result<()> {
    // SAFETY: takes no memory of ours.
    retry(|| unsafe { libc::fsync(fd.as_raw_fd()) }).map(drop)
}

/// syncfs(2): the whole file system that `fd` lies on.
pub(super) fn sync_file_system(fd: &OwnedFd) -> io::Result<()> {
    // SAFETY: takes no memory of ours.
    retry(|| unsafe { libc::syncfs(fd.as_raw_fd()) }).map(drop)
}

/// readdir(3) of the open directory `dir`: whether `is` says so of one of its entries.
pub(super) fn any_entry(dir: OwnedFd, is: &dyn Fn(&[u8]) -> bool) -> io::Result<bool> {
    // SAFETY: the descriptor is a directory's, and from here on the stream's.
    let stream = unsafe { libc::fdopendir(dir.as_raw_fd()) };
    if stream.is_null() {
        return Err(io::Error::last_os_error());
    }
    std::mem::forget(dir);
    let found = loop {
        // SAFETY: the thread's own errno, which tells the end from a failure.
        unsafe { *libc::__errno_location() = 0 };
        // SAFETY: the stream is open, and nobody else reads it.
        let entry = unsafe { libc::readdir(stream) };
        if entry.is_null() {
            let error = io::Error::last_os_error();
            break if error.raw_os_error() == Some(0) { Ok(false) } else { Err(error) };
        }
        // SAFETY: the name is NUL-terminated, and stays until the next call on the stream.
        let name = unsafe { CStr::from_ptr((*entry).d_name.as_ptr()) }.to_bytes();
        if !matches!(name, b"." | b"..") && is(name) {
            break Ok(true);
        }
    };
    // SAFETY: the stream is open, and not used again.
    unsafe { libc::closedir(stream) };
    found
}

/// Asks for as many as `wanted` descriptors at once, as far as the hard limit goes; how many there
/// may be then.
pub(super) fn raise_descriptors(wanted: usize) -> usize {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is writable and of the kind that the kernel fills.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) } != 0 {
        return 256;
    }
    if (limit.rlim_cur as usize) < wanted {
        let raised = libc::rlimit { rlim_cur: limit.rlim_max.min(wanted as u64), ..limit };
        // SAFETY: `raised` is initialised, and only read.
        if unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raised) } == 0 {
            limit = raised;
        }
    }
    usize::try_from(limit.rlim_cur).map_or(wanted, |limit| limit.min(wanted))
}

/// Makes this process behave alike whoever starts it: what it makes has the mode that is asked for
/// but for writing by others, and a write beyond the caller's limit on files (setrlimit(2)) fails
/// instead of ending it. To be called first of all.
pub fn set_out() {
    // SAFETY: neither takes memory, and no handler of ours is replaced.
    unsafe {
        libc::umask(0o022);
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
    }
}

/// The user and the group that this process runs as.
pub(super) fn effective_ids() -> (u32, u32) {
    // SAFETY: neither call can fail or takes memory.
    unsafe { (libc::geteuid(), libc::getegid()) }
}

/// The file system under `fd` is procfs.
pub(super) fn is_procfs(fd: &OwnedFd) -> io::Result<bool> {
    // SAFETY: all zeroes is a valid `statfs`, which is plain data.
    let mut raw: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: `raw` is writable and of the size that the kernel fills.
    retry(|| unsafe { libc::fstatfs(fd.as_raw_fd(), &mut raw) })?;
    // The C libraries differ in the signedness of both.
    Ok(i128::from(raw.f_type) == i128::from(libc::PROC_SUPER_MAGIC))
}
