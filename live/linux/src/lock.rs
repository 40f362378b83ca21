//! A lock that one process of ours holds at a time: a name that vanishes with it, even if it is killed.

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

/// Held as long as it lives.
#[derive(Debug)]
pub struct Lock(#[allow(dead_code, reason = "it is held")] UnixListener);

impl Lock {
    /// Takes it; `None` if another one has it.
    ///
    /// # Errors
    /// The system gives no such names.
    pub fn named(name: &str) -> io::Result<Option<Lock>> {
        let name = SocketAddr::from_abstract_name(name)?;
        match UnixListener::bind_addr(&name) {
            Ok(listener) => Ok(Some(Lock(listener))),
            Err(e) if e.kind() == io::ErrorKind::AddrInUse => Ok(None),
            Err(e) => Err(e),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_taken_once() {
        let own = &format!("varve-test-{}", std::process::id());
        let first = Lock::named(own).unwrap().expect("it is free");
        assert!(Lock::named(own).unwrap().is_none());
        drop(first);
        // Another test that starts a program now has a copy of the socket between its fork and its exec.
        let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
        while Lock::named(own).unwrap().is_none() {
            assert!(std::time::Instant::now() < until, "still taken");
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }
}
