//! How a process that has a region open gives a copy of it to another one: over a local socket whose name is the file's device and number, so
//! that the two need not agree on a name of the file, and a killed process leaves nothing behind.
//!
//! ```text
//! VARVECPY   bytes of the region (u64)   { page (u64)   its 4096 bytes } ...   u64::MAX
//! ```
//!
//! Pages of zeroes are left out. A stream without its end is no copy.

use crate::layout::PAGE;
use crate::snapshot::Page;
use std::fs::{File, Metadata};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::os::fd::AsRawFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::time::Duration;

const MAGIC: [u8; 8] = *b"VARVECPY";
const END: u64 = u64::MAX;

/// How long either side waits for the other.
const PATIENCE: Duration = Duration::from_secs(20);

fn address(file: &Metadata) -> io::Result<SocketAddr> {
    let name = format!("varve-region-{:x}-{:x}", file.dev(), file.ino());
    SocketAddr::from_abstract_name(name)
}

/// The socket for requests of copies of a file.
pub(crate) fn listen(file: &Metadata) -> io::Result<UnixListener> {
    let listener = UnixListener::bind_addr(&address(file)?)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Accepts a client that may read the file: the same user, or root.
pub(crate) fn accept(listener: &UnixListener) -> Option<UnixStream> {
    let (stream, _) = listener.accept().ok()?;
    stream.set_nonblocking(false).ok()?;
    stream.set_write_timeout(Some(PATIENCE)).ok()?;
    // SAFETY: a call without memory.
    let own = unsafe { libc::geteuid() };
    let user = user_of(&stream)?;
    (user == own || user == 0).then_some(stream)
}

fn user_of(stream: &UnixStream) -> Option<u32> {
    // SAFETY: plain numbers, for which zeroes are valid.
    let mut who: libc::ucred = unsafe { std::mem::zeroed() };
    let mut bytes = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: the structure is as long as is said.
    let failed = unsafe {
        libc::getsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut who).cast(),
            &mut bytes,
        )
    };
    (failed == 0).then_some(who.uid)
}

/// The sending side.
pub(crate) struct Sender(BufWriter<UnixStream>);

impl Sender {
    pub fn begin(stream: UnixStream, pages: u64) -> io::Result<Sender> {
        let mut to = BufWriter::with_capacity(1 << 20, stream);
        to.write_all(&MAGIC)?;
        to.write_all(&(pages * PAGE).to_le_bytes())?;
        Ok(Sender(to))
    }

    pub fn send(&mut self, page: u64, bytes: &Page) -> io::Result<()> {
        if bytes.iter().all(|&b| b == 0) {
            return Ok(());
        }
        self.0.write_all(&page.to_le_bytes())?;
        self.0.write_all(bytes)
    }

    pub fn end(mut self) -> io::Result<()> {
        self.0.write_all(&END.to_le_bytes())?;
        self.0.flush()
    }
}

/// Has the process that has `file` open write a copy of it into `to`, which is empty.
///
/// # Errors
/// If no process listens or gives one.
pub(crate) fn fetch(
    file: &Metadata,
    to: &File,
    progress: &mut dyn FnMut(u64, u64),
) -> io::Result<u64> {
    let stream = UnixStream::connect_addr(&address(file)?)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut from = BufReader::with_capacity(1 << 20, stream);
    let mut word = [0; 8];
    from.read_exact(&mut word)?;
    if word != MAGIC {
        return Err(io::ErrorKind::InvalidData.into());
    }
    from.read_exact(&mut word)?;
    let bytes = u64::from_le_bytes(word);
    to.set_len(bytes)?;
    let mut page: Page = [0; PAGE as usize];
    let mut done = 0;
    loop {
        from.read_exact(&mut word)?;
        let number = u64::from_le_bytes(word);
        if number == END {
            return Ok(bytes);
        }
        let at = number.checked_mul(PAGE).filter(|&at| at < bytes);
        let at = at.ok_or(io::ErrorKind::InvalidData)?;
        from.read_exact(&mut page)?;
        to.write_all_at(&page, at)?;
        done += PAGE;
        progress(done, bytes);
    }
}
