//! One `tier` for each process: a name that vanishes with us, even if we are killed.

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

/// Held as long as it lives.
pub struct Lock(#[allow(dead_code, reason = "it is held")] UnixListener);

impl Lock {
    /// Takes it for a process; `None` if another one has it.
    ///
    /// # Errors
    /// The system gives no such names.
    pub fn of(process: u32) -> io::Result<Option<Lock>> {
        let name = SocketAddr::from_abstract_name(format!("varve-tier-{process}"))?;
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
    fn a_process_has_one_at_a_time() {
        let own = std::process::id();
        let first = Lock::of(own).unwrap().expect("nobody has it");
        assert!(Lock::of(own).unwrap().is_none());
        drop(first);
        assert!(Lock::of(own).unwrap().is_some());
    }
}
