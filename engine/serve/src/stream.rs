//! Where clients come from: ports of the network and sockets in the file system.

use mio::event::Source;
use mio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use mio::{Interest, Registry, Token};
use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// A client's connection.
#[derive(Debug)]
pub(crate) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// The same expression on whatever a stream or a listener is.
macro_rules! either {
    ($on:expr, $kind:ident, $of:pat => $do:expr) => {
        match $on {
            $kind::Tcp($of) => $do,
            $kind::Unix($of) => $do,
        }
    };
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        either!(self, Stream, s => s.read(buffer))
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        either!(self, Stream, s => s.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        either!(self, Stream, s => s.flush())
    }
}

impl Source for Stream {
    fn register(&mut self, to: &Registry, token: Token, interest: Interest) -> io::Result<()> {
        either!(self, Stream, s => s.register(to, token, interest))
    }

    fn reregister(&mut self, to: &Registry, token: Token, interest: Interest) -> io::Result<()> {
        either!(self, Stream, s => s.reregister(to, token, interest))
    }

    fn deregister(&mut self, from: &Registry) -> io::Result<()> {
        either!(self, Stream, s => s.deregister(from))
    }
}

impl Stream {
    /// Shuts down the sending side, while the client may still send.
    pub fn end(&mut self) -> io::Result<()> {
        either!(self, Stream, s => s.shutdown(std::net::Shutdown::Write))
    }
}

/// Where a server waits for clients.
#[derive(Debug)]
pub(crate) enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Listener {
    pub fn accept(&self) -> io::Result<Stream> {
        match self {
            Listener::Tcp(listener) => {
                let (stream, _) = listener.accept()?;
                // Answers are whole when they are sent.
                let _ = stream.set_nodelay(true);
                Ok(Stream::Tcp(stream))
            }
            Listener::Unix(listener) => Ok(Stream::Unix(listener.accept()?.0)),
        }
    }

    pub fn register(&mut self, to: &Registry, token: Token) -> io::Result<()> {
        either!(self, Listener, l => to.register(l, token, Interest::READABLE))
    }
}

/// A socket in the file system, which is removed when this is dropped.
#[derive(Debug)]
pub(crate) struct Name {
    path: PathBuf,
    /// Device and number of the file: another server may have put its own in its place.
    file: (u64, u64),
}

impl Drop for Name {
    fn drop(&mut self) {
        if identity(&self.path).is_ok_and(|file| file == self.file) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let metadata = fs::symlink_metadata(path)?;
    Ok((metadata.dev(), metadata.ino()))
}

/// Listens on a socket in the file system, with a mode. One without a listener is replaced.
pub(crate) fn listen_at(path: &Path, mode: u32) -> io::Result<(UnixListener, Name)> {
    match fs::symlink_metadata(path) {
        Ok(there) if !there.file_type().is_socket() => {
            return Err(other("a file that is no socket is there"));
        }
        Ok(_) => {
            if std::os::unix::net::UnixStream::connect(path).is_ok() {
                return Err(other("another server listens there"));
            }
        }
        Err(e) if e.kind() == io::ErrorKind::NotFound => {}
        Err(e) => return Err(e),
    }
    // No other user may connect before the socket has its mode: it gets that in a folder of its own.
    let mut folder = path.as_os_str().to_owned();
    folder.push(format!(".{}", std::process::id()));
    let folder = PathBuf::from(folder);
    fs::DirBuilder::new().mode(0o700).create(&folder)?;
    let made = listen_within(&folder.join("s"), path, mode);
    let _ = fs::remove_dir_all(&folder);
    made
}

fn listen_within(first: &Path, path: &Path, mode: u32) -> io::Result<(UnixListener, Name)> {
    let listener = UnixListener::bind(first)?;
    fs::set_permissions(first, fs::Permissions::from_mode(mode))?;
    fs::rename(first, path)?;
    let file = identity(path)?;
    let path = path.to_path_buf();
    Ok((listener, Name { path, file }))
}

fn other(text: &str) -> io::Error {
    io::Error::other(text.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_has_its_mode_and_goes_with_its_server() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        for mode in [0o700, 0o770] {
            let (_listener, name) = listen_at(&path, mode).unwrap();
            let found = fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!(found & 0o777, mode);
            drop(name);
            assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
        }
    }

    #[test]
    fn a_socket_in_use_is_refused_and_a_stale_one_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let (listener, name) = listen_at(&path, 0o700).unwrap();
        let e = listen_at(&path, 0o700).unwrap_err();
        assert!(e.to_string().contains("another server"), "{e}");
        // As after a kill: no process listens, and the name is still there.
        drop(listener);
        let second = listen_at(&path, 0o700).unwrap();
        // The first one's end leaves what is not its own.
        drop(name);
        assert!(path.exists());
        drop(second);
        assert!(!path.exists());
    }

    #[test]
    fn a_file_that_is_no_socket_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        fs::write(&path, "precious").unwrap();
        let e = listen_at(&path, 0o700).unwrap_err();
        assert!(e.to_string().contains("no socket"), "{e}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
    }
}
