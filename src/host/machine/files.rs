//! Looking at a directory entry: what it is, whose, and whether it holds what is declared.
//!
//! Changes nothing, not even access times where the kernel lets us. What should be a file is opened
//! first and looked at through its descriptor, without waiting: a FIFO blocks nobody so. Only where
//! devices live is it looked at by name before, since opening one can have effects.

use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::time::Duration;

use super::clock::Deadline;
use super::root::Spot;
use super::sys::{self, Kind, Stat};
use crate::digest::{Hasher, Sha256};
use crate::resource::{Entry, Found, Holds};

/// The most that is read at once, in bytes.
const PIECE: usize = 64 << 10;

/// Reads files through one buffer.
#[derive(Debug)]
pub(super) struct Reader {
    piece: Box<[u8]>,
    /// The kernel has let us read without touching access times so far.
    no_atime: bool,
}

impl Reader {
    /// A reader with its buffer.
    pub fn new() -> Reader {
        Reader { piece: vec![0; PIECE].into(), no_atime: true }
    }

    /// What is at `spot`; reading it may take `limit`.
    pub fn look(
        &mut self,
        spot: &Spot,
        holds: Option<Holds>,
        limit: Duration,
    ) -> io::Result<Found> {
        if let Some(holds) = holds.filter(|_| !spot.dir.is_of_devices()) {
            if let Some(found) = self.read(spot, holds, limit)? {
                return Ok(found);
            }
        }
        let stat = match sys::stat_at(&spot.dir.fd, &spot.name) {
            Ok(stat) => stat,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Found::Nothing),
            Err(error) => return Err(error),
        };
        let kind = match stat.kind {
            Kind::File => {
                Entry::File { size: stat.size, holds: self.holds(spot, &stat, holds, limit)? }
            }
            Kind::Directory => Entry::Directory,
            Kind::Symlink => Entry::Symlink(sys::read_link(&spot.dir.fd, &spot.name)?),
            Kind::Other(name) => Entry::Other(name),
        };
        let Stat { mode, uid, gid, linked, .. } = stat;
        Ok(Found::Entry { kind, mode, uid, gid, linked })
    }

    /// What is at `spot` where that is a regular file that can be opened: one walk of the kernel to
    /// it, and not two.
    fn read(&mut self, spot: &Spot, holds: Holds, limit: Duration) -> io::Result<Option<Found>> {
        if matches!(holds, Holds::Target(_)) {
            return Ok(None);
        }
        // Why it cannot be opened, a closer look will tell.
        let Ok(file) = self.open(spot) else { return Ok(None) };
        let stat = sys::stat(&file)?;
        if stat.kind != Kind::File {
            return Ok(None);
        }
        let same = self.same(&file, &stat, holds, limit)?;
        let kind = Entry::File { size: stat.size, holds: Some(same) };
        let Stat { mode, uid, gid, linked, .. } = stat;
        Ok(Some(Found::Entry { kind, mode, uid, gid, linked }))
    }

    /// Opens the regular file at `spot` for reading.
    pub fn open(&mut self, spot: &Spot) -> io::Result<OwnedFd> {
        let flags = libc::O_RDONLY | libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;
        if self.no_atime {
            match sys::open(&spot.dir.fd, &spot.name, flags | libc::O_NOATIME, 0) {
                // Not our file and no CAP_FOWNER over it: a trial run, or a mapped root.
                Err(error) if error.raw_os_error() == Some(libc::EPERM) => self.no_atime = false,
                result => return result,
            }
        }
        sys::open(&spot.dir.fd, &spot.name, flags, 0)
    }

    /// SHA-256 of the next `size` bytes of `file`; `None` where it has fewer or more.
    pub fn digest(
        &mut self,
        file: &OwnedFd,
        size: u64,
        limit: Duration,
    ) -> io::Result<Option<Sha256>> {
        let until = Deadline::after(limit);
        let (mut hasher, mut seen) = (Hasher::new(), 0);
        loop {
            let read = sys::read(file, &mut self.piece)?;
            seen += read as u64;
            if read == 0 || seen > size {
                return Ok((seen == size).then(|| hasher.finish()));
            }
            hasher.update(&self.piece[..read]);
            if until.passed() {
                let cause = format!("reading it took longer than {} s", limit.as_secs_f32());
                return Err(io::Error::new(io::ErrorKind::TimedOut, cause));
            }
        }
    }

    /// All of the regular file at `spot`; an error where it has more than `cap` bytes.
    pub fn whole(&mut self, spot: &Spot, cap: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let file = std::fs::File::from(self.open(spot)?);
        if !file.metadata()?.is_file() {
            return Err(io::Error::other("it is no longer a regular file"));
        }
        file.take(cap + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > cap {
            return Err(io::Error::other(format!("it has more than {cap} bytes")));
        }
        Ok(bytes)
    }

    fn holds(
        &mut self,
        spot: &Spot,
        stat: &Stat,
        holds: Option<Holds>,
        limit: Duration,
    ) -> io::Result<Option<bool>> {
        match holds {
            None | Some(Holds::Target(_)) => Ok(None),
            Some(Holds::Bytes(bytes)) if bytes.len() as u64 != stat.size => Ok(Some(false)),
            Some(holds) => {
                let file = self.open(spot)?;
                self.same(&file, stat, holds, limit).map(Some)
            }
        }
    }

    /// `file` holds what it should.
    fn same(
        &mut self,
        file: &OwnedFd,
        stat: &Stat,
        holds: Holds,
        limit: Duration,
    ) -> io::Result<bool> {
        match holds {
            Holds::Bytes(bytes) => Ok(bytes.len() as u64 == stat.size && self.equals(file, bytes)?),
            Holds::Digest(expected) => {
                Ok(self.digest(file, stat.size, limit)?.as_ref() == Some(expected))
            }
            Holds::Target(_) => Ok(false),
        }
    }

    /// `file` holds `bytes` and no more, as far as one byte beyond them shows.
    fn equals(&mut self, file: &OwnedFd, bytes: &[u8]) -> io::Result<bool> {
        let mut rest = bytes;
        loop {
            let want = self.piece.len().min(rest.len() + 1);
            let read = sys::read(file, &mut self.piece[..want])?;
            if read > rest.len() || self.piece[..read] != rest[..read] {
                return Ok(false);
            }
            rest = &rest[read..];
            if rest.is_empty() || read == 0 {
                return Ok(rest.is_empty());
            }
        }
    }
}
