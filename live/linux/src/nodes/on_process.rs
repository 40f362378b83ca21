//! `move_pages` on the pages of another process, and a handle that tells when it has ended.

use super::sys::{MPOL_MF_MOVE, move_pages};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// Pages of several processes, too.
const MPOL_MF_MOVE_ALL: u32 = 4;

/// Moves pages of a process, given by their addresses, to a node; those that several processes share, too, if `everybodys` is said:
/// that needs the right to (`CAP_SYS_NICE`). `status` is then as the kernel says, a node or a negative error number for each page.
pub fn move_with(
    process: u32,
    pages: &[usize],
    node: u32,
    status: &mut [i32],
    everybodys: bool,
) -> io::Result<()> {
    let nodes = vec![node as i32; pages.len()];
    // Pages that the kernel does not reach count as not migrated.
    status[..pages.len()].fill(-libc::EAGAIN);
    let flags = match everybodys {
        true => MPOL_MF_MOVE_ALL,
        false => MPOL_MF_MOVE,
    };
    call(process, pages, nodes.as_ptr(), status, flags)?;
    let status = &mut status[..pages.len()];
    if status.contains(&-libc::EAGAIN) {
        // After a page that cannot be moved the kernel reports nothing about those around it, moved or not.
        let mut there = vec![0; pages.len()];
        nodes_of(process, pages, &mut there)?;
        for (status, there) in status.iter_mut().zip(there) {
            if *status == -libc::EAGAIN && there == node as i32 {
                *status = there;
            }
        }
    }
    Ok(())
}

/// Whether this process may move pages that several processes share.
pub fn may_move_everybodys() -> bool {
    // Asks where a page of ours is, in the way in which everybody's would be moved.
    let here = 0u8;
    let address = std::hint::black_box(&raw const here) as usize;
    call(0, &[address], std::ptr::null(), &mut [0], MPOL_MF_MOVE_ALL).is_ok()
}

/// On which nodes pages of a process are. `status` is then a node or a negative error number for each page.
pub fn nodes_of(process: u32, pages: &[usize], status: &mut [i32]) -> io::Result<()> {
    call(process, pages, std::ptr::null(), status, MPOL_MF_MOVE)
}

fn call(
    process: u32,
    pages: &[usize],
    nodes: *const i32,
    status: &mut [i32],
    flags: u32,
) -> io::Result<()> {
    if pages.is_empty() {
        return Ok(());
    }
    match move_pages(process, pages, nodes, status, flags) {
        // No page could be moved at all, which kernels say in this way, too.
        Err(e) if e.raw_os_error() == Some(libc::ENOENT) => Ok(()),
        result => result,
    }
}

/// A handle of a process (`pidfd_open`, Linux 5.3).
pub fn handle(process: u32) -> io::Result<OwnedFd> {
    // SAFETY: plain numbers; the answer is a descriptor of ours, or an error.
    unsafe {
        match libc::syscall(libc::SYS_pidfd_open, process, 0) {
            file @ 0.. => Ok(OwnedFd::from_raw_fd(file as i32)),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// Whether the process of a handle has ended.
pub fn has_ended(handle: &OwnedFd) -> bool {
    let mut asked = libc::pollfd {
        fd: handle.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: one element, filled in by the call.
    let answers = unsafe { libc::poll(&raw mut asked, 1, 0) };
    answers > 0
}
