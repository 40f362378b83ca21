//! `mbind`, `move_pages` and the advice to have memory now, all of which leave what memory holds as it is; and `mremap`, which
//! does not.

use super::mask::Mask;
use std::io;

/// Size of the pages of positions.
pub const PAGE: usize = 4096;

// linux/mempolicy.h.
/// Only pages that no other process has.
pub(super) const MPOL_MF_MOVE: u32 = 2;

/// Has the system give memory for a range now. What it holds stays.
pub fn populate(address: usize, bytes: usize) -> io::Result<()> {
    // SAFETY: the advice writes nothing into pages that are there, and adds zeroed ones where none are, as a first touch does.
    let result =
        unsafe { libc::syscall(libc::SYS_madvise, address, bytes, libc::MADV_POPULATE_WRITE) };
    check(result)
}

/// Moves pages of this process, given by their addresses, to a node. `status` is then as the kernel says, a node or a
/// negative error number for each page.
pub fn move_to(pages: &[usize], node: u32, status: &mut [i32]) -> io::Result<()> {
    let nodes = vec![node as i32; pages.len()];
    move_pages(0, pages, nodes.as_ptr(), status, MPOL_MF_MOVE)
}

/// On which nodes pages of this process are. `status` is then a node or a negative error number for each page.
pub fn nodes_of(pages: &[usize], status: &mut [i32]) -> io::Result<()> {
    move_pages(0, pages, std::ptr::null(), status, MPOL_MF_MOVE)
}

/// `move_pages` on a process, 0 being the caller. `nodes` is null, or has as many elements as `pages`.
pub(super) fn move_pages(
    process: u32,
    pages: &[usize],
    nodes: *const i32,
    status: &mut [i32],
    flags: u32,
) -> io::Result<()> {
    assert!(status.len() >= pages.len());
    // SAFETY: `pages`, `nodes` unless it is null, and `status` have as many elements as stated; the kernel reads the first two,
    // writes the third, and changes no byte of the pages, whosever they are.
    let result = unsafe {
        libc::syscall(
            libc::SYS_move_pages,
            process,
            pages.len(),
            pages.as_ptr(),
            nodes,
            status.as_mut_ptr(),
            flags,
        )
    };
    // A positive number counts pages that could not be moved; each has its reason in `status`.
    check(result)
}

/// Moves all pages of a process, 0 being the caller, from some nodes to others. Pages that could not move are counted.
///
/// # Errors
/// Those of migrate_pages(2).
pub fn migrate(process: u32, from: &[u32], to: &[u32]) -> io::Result<u64> {
    let (from, to) = (Mask::of(from), Mask::of(to));
    // SAFETY: both masks have as many bits as stated, since the kernel reads one less, and are read only; pages keep what they
    // hold, whosever they are.
    let result = unsafe {
        libc::syscall(
            libc::SYS_migrate_pages,
            process,
            from.limit(),
            from.as_ptr(),
            to.as_ptr(),
        )
    };
    check(result).map(|()| result as u64)
}

/// Moves the memory of a range to another address, in the place of what is there. The range stays, with no memory and so with
/// zeros (`MREMAP_DONTUNMAP`, Linux 5.7). On an error `from` is as it was, and `to` is memory still, with zeros or with what it
/// held.
///
/// # Safety
/// Both ranges are private anonymous memory of the caller's own, and their contents are not needed in place.
pub unsafe fn move_pages_of(from: u64, to: u64, bytes: u64) -> io::Result<()> {
    let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED | libc::MREMAP_DONTUNMAP;
    // SAFETY: the caller's promise; the kernel touches no other address.
    let result = unsafe { libc::syscall(libc::SYS_mremap, from, bytes, bytes, flags, to) };
    let moved = check(result);
    if moved.is_err() {
        fill_hole(to, bytes);
    }
    moved
}

/// Maps zeros to a range if nothing is there: a move that fails may have unmapped the place it was to go to.
fn fill_hole(at: u64, bytes: u64) {
    // SAFETY: without touching what is mapped, which `MAP_FIXED_NOREPLACE` refuses.
    let mapped = unsafe {
        libc::mmap(
            std::ptr::with_exposed_provenance_mut(at as usize),
            bytes as usize,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE
                | libc::MAP_ANONYMOUS
                | libc::MAP_NORESERVE
                | libc::MAP_FIXED_NOREPLACE,
            -1,
            0,
        )
    };
    let error = io::Error::last_os_error();
    if mapped == libc::MAP_FAILED && error.raw_os_error() != Some(libc::EEXIST) {
        // The owner of the range relies on its memory: any other thread's mapping might come there.
        eprintln!(
            "varve: the system took memory away and gives none back: {error}; the process ends"
        );
        std::process::abort();
    }
}

pub fn check(result: i64) -> io::Result<()> {
    match result {
        0.. => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
