//! Where memory comes from that is touched for the first time.

use super::mask::Mask;
use super::sys::check;
use std::io;

/// linux/mempolicy.h, since Linux 5.15.
const MPOL_PREFERRED_MANY: i32 = 5;
const MPOL_MF_STRICT: u32 = 1;

/// Of which nodes memory is.
#[derive(Clone)]
pub struct Policy {
    mode: i32,
    nodes: Mask,
}

impl Policy {
    /// Of these nodes, in a mode of set_mempolicy(2).
    pub fn new(mode: i32, nodes: &[u32]) -> Policy {
        let nodes = Mask::of(nodes);
        Policy { mode, nodes }
    }

    /// Of these nodes, and of others only if these are full.
    pub fn preferred(nodes: &[u32]) -> Policy {
        match nodes {
            [_] => Policy::new(libc::MPOL_PREFERRED, nodes),
            _ => Policy::new(MPOL_PREFERRED_MANY, nodes),
        }
    }

    /// It is that of this thread from now on, and of all that this starts. Allocates nothing: it may be called between fork and exec.
    ///
    /// # Errors
    /// The kernel or a sandbox refuses.
    pub fn adopt(&self) -> io::Result<()> {
        let (mask, limit) = (self.nodes.as_ptr(), self.nodes.limit());
        // SAFETY: the mask has as many bits as stated, since the kernel reads one less, and is read only.
        check(unsafe { libc::syscall(libc::SYS_set_mempolicy, self.mode, mask, limit) })
    }

    /// It is that of a range from now on. What is in memory stays where it is; `flags` are those of mbind(2).
    ///
    /// # Errors
    /// Those of mbind(2).
    pub fn bind(&self, address: usize, bytes: usize, flags: u32) -> io::Result<()> {
        // SAFETY: the call changes where pages come from and no byte of them, whosever they are; the mask has as many bits as
        // stated, since the kernel reads one less, and is read only.
        check(unsafe {
            libc::syscall(
                libc::SYS_mbind,
                address,
                bytes,
                self.mode,
                self.nodes.as_ptr(),
                self.nodes.limit(),
                flags,
            )
        })
    }
}

/// What is done about pages of a range that are in memory already, on other nodes than those that it is to come from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum MisplacedPages {
    /// Checks nothing.
    Ignore,
    /// Fails with EIO if a page that is in memory is on another node.
    Refuse,
}

/// Has pages of a range come from these nodes, and from others only if these are full.
pub fn prefer(
    address: usize,
    bytes: usize,
    nodes: &[u32],
    misplaced: MisplacedPages,
) -> io::Result<()> {
    let flags = match misplaced {
        MisplacedPages::Ignore => 0,
        MisplacedPages::Refuse => MPOL_MF_STRICT,
    };
    Policy::preferred(nodes).bind(address, bytes, flags)
}
