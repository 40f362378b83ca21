//! Moving pages to other addresses while they keep their frames.

use super::bins::PAGE;
use super::error::PlaceError;
use super::sys;
use std::io;

// linux/userfaultfd.h.
const UFFD_API: u64 = 0xAA;
const FEATURE_MOVE: u64 = 1 << 16;
const REGISTER_MISSING: u64 = 1;

#[repr(C)]
struct Api {
    api: u64,
    features: u64,
    ioctls: u64,
}

#[repr(C)]
struct Register {
    start: u64,
    len: u64,
    mode: u64,
    ioctls: u64,
}

#[repr(C)]
struct Move {
    dst: u64,
    src: u64,
    len: u64,
    mode: u64,
    moved: i64,
}

const IOCTL_API: u64 = sys::iowr::<Api>(UFFD_API, 0x3F);
const IOCTL_REGISTER: u64 = sys::iowr::<Register>(UFFD_API, 0x00);
const IOCTL_MOVE: u64 = sys::iowr::<Move>(UFFD_API, 0x05);

const EEXIST: i32 = 17;
const EAGAIN: i32 = 11;
const EBUSY: i32 = 16;

/// How pages are moved into one target range.
///
/// `userfaultfd` (Linux 6.8) moves a page into a hole and leaves the mappings alone. `mremap` works on every
/// kernel, but each run of pages becomes a mapping of its own, and the kernel allows some 65 thousand of
/// those per process (`vm.max_map_count`).
pub enum Mover {
    /// `UFFDIO_MOVE` through this descriptor; closing it ends the registration of the target.
    Uffd(Uffd),
    /// `UFFDIO_MOVE` through another owner's descriptor, with which the target is registered.
    Lent(i32),
    /// `mremap`, for this many more runs.
    Remap {
        /// Runs left before the limit of mappings comes near.
        budget: usize,
    },
}

/// An open userfaultfd.
pub struct Uffd(i32);

impl Drop for Uffd {
    fn drop(&mut self) {
        use std::os::fd::FromRawFd;
        // SAFETY: opened by `open_uffd` and owned by this value alone.
        drop(unsafe { std::os::fd::OwnedFd::from_raw_fd(self.0) });
    }
}

fn open_uffd() -> io::Result<Uffd> {
    let uffd = Uffd(sys::userfaultfd(sys::O_CLOEXEC | sys::O_NONBLOCK)?);
    let mut api = Api {
        api: UFFD_API,
        features: FEATURE_MOVE,
        ioctls: 0,
    };
    // SAFETY: the request reads and writes an `Api`.
    unsafe { sys::ioctl(uffd.0, IOCTL_API, &mut api) }?;
    Ok(uffd)
}

/// Can this process move pages with `UFFDIO_MOVE`?
///
/// # Errors
/// The reason, when it cannot.
pub fn uffd_move_works() -> io::Result<()> {
    open_uffd().map(drop)
}

#[repr(C)]
struct Span {
    start: u64,
    len: u64,
}

// These two only read their argument: `_IOR` of the kernel's headers.
const IOCTL_UNREGISTER: u64 = sys::iowr::<Span>(UFFD_API, 0x01) & !(1 << 30);
const IOCTL_WAKE: u64 = sys::iowr::<Span>(UFFD_API, 0x02) & !(1 << 30);

/// Opens a userfaultfd whose faults the caller will serve with [`next_fault`].
pub fn open_for_faults() -> io::Result<i32> {
    let uffd = open_uffd()?;
    let fd = uffd.0;
    std::mem::forget(uffd);
    Ok(fd)
}

/// Closes a descriptor of [`open_for_faults`]; a negative one is nothing.
pub fn close(fd: i32) {
    if fd >= 0 {
        drop(Uffd(fd));
    }
}

/// Has the first touch of each hole in the range wait for a mover.
pub fn register(fd: i32, start: usize, bytes: usize) -> io::Result<()> {
    let mut register = Register {
        start: start as u64,
        len: bytes as u64,
        mode: REGISTER_MISSING,
        ioctls: 0,
    };
    // SAFETY: the request reads and writes a `Register`.
    unsafe { sys::ioctl(fd, IOCTL_REGISTER, &mut register) }.map(drop)
}

/// Gives the holes of the range back to the kernel, and wakes who waits there.
pub fn unregister(fd: i32, start: usize, bytes: usize) -> io::Result<()> {
    let mut span = Span {
        start: start as u64,
        len: bytes as u64,
    };
    // SAFETY: the request reads a `Span`.
    unsafe { sys::ioctl(fd, IOCTL_UNREGISTER, &mut span) }.map(drop)
}

/// Wakes the threads that wait in the range; a thread that still finds a hole waits again.
pub fn wake(fd: i32, start: usize, bytes: usize) {
    let mut span = Span {
        start: start as u64,
        len: bytes as u64,
    };
    // SAFETY: the request reads a `Span`. That no thread waits is no failure.
    let _ = unsafe { sys::ioctl(fd, IOCTL_WAKE, &mut span) };
}

/// The result of a wait for a fault.
pub enum FaultEvent {
    /// A thread waits at this address.
    At(usize),
    /// The time ran out, or the message was of another kind.
    Nothing,
}

/// Waits for the next fault, at most `milliseconds`.
pub fn next_fault(fd: i32, milliseconds: i32) -> io::Result<FaultEvent> {
    use std::io::Read;
    use std::mem::ManuallyDrop;
    use std::os::fd::FromRawFd;
    if !sys::wait_readable(fd, milliseconds)? {
        return Ok(FaultEvent::Nothing);
    }
    // SAFETY: the descriptor is only lent: it is not closed here.
    let mut file = ManuallyDrop::new(unsafe { std::fs::File::from_raw_fd(fd) });
    // struct uffd_msg, linux/userfaultfd.h: the kind in the first byte, a fault's address at byte 16.
    let mut message = [0u8; 32];
    match file.read_exact(&mut message) {
        Ok(()) => {}
        // The thread that waited is gone, or another page woke it.
        Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(FaultEvent::Nothing),
        Err(e) => return Err(e),
    }
    const PAGE_FAULT: u8 = 0x12;
    let address = u64::from_ne_bytes(message[16..24].try_into().unwrap_or_default());
    Ok(if message[0] == PAGE_FAULT {
        FaultEvent::At(address as usize)
    } else {
        FaultEvent::Nothing
    })
}

impl Mover {
    /// The best mover for the range `start..start + bytes`.
    ///
    /// # Safety
    /// The range must be private anonymous memory of this process, mapped readable and writable.
    pub unsafe fn for_range(start: usize, bytes: usize) -> Mover {
        match open_uffd() {
            Ok(uffd) => {
                let mut register = Register {
                    start: start as u64,
                    len: bytes as u64,
                    mode: REGISTER_MISSING,
                    ioctls: 0,
                };
                // SAFETY: the request reads and writes a `Register`; threads that touch a hole of the range
                // meanwhile wait until the registration ends.
                match unsafe { sys::ioctl(uffd.0, IOCTL_REGISTER, &mut register) } {
                    Ok(_) => Mover::Uffd(uffd),
                    Err(_) => Mover::remap(),
                }
            }
            Err(_) => Mover::remap(),
        }
    }

    /// A mover by `mremap` with what the limit of mappings leaves.
    pub fn remap() -> Mover {
        let number = |path: &str| -> Option<usize> {
            std::fs::read_to_string(path).ok()?.trim().parse().ok()
        };
        // 65530 is the kernel's default (mm/util.c, DEFAULT_MAX_MAP_COUNT).
        let limit = number("/proc/sys/vm/max_map_count").unwrap_or(65_530);
        let used = std::fs::read("/proc/self/maps")
            .map_or(limit, |m| m.iter().filter(|&&b| b == b'\n').count());
        // A moved run splits its target in three and its source in two; half of what is left stays the program's.
        Mover::Remap {
            budget: limit.saturating_sub(used) / 2 / 3,
        }
    }

    /// May the target be filled while other threads use it? Only if a page that has come up meanwhile is
    /// never overwritten.
    pub fn keeps_present_pages(&self) -> bool {
        !matches!(self, Mover::Remap { .. })
    }

    /// Moves `bytes` from `src` to `dst`; returns how many bytes of it now have the frames of the source.
    /// Pages of `dst` must be holes for `userfaultfd`; `mremap` replaces what is there.
    ///
    /// # Safety
    /// No thread uses the source, and the target's contents are not needed (see [`Mover::keeps_present_pages`]).
    ///
    /// # Errors
    /// [`PlaceError::System`] when not a single page can be moved for a reason that will not pass.
    pub unsafe fn run(
        &mut self,
        src: usize,
        dst: usize,
        bytes: usize,
    ) -> Result<usize, PlaceError> {
        match self {
            // SAFETY: passed on.
            Mover::Uffd(uffd) => unsafe { uffd_run(uffd.0, src, dst, bytes) },
            // SAFETY: passed on.
            Mover::Lent(fd) => unsafe { uffd_run(*fd, src, dst, bytes) },
            Mover::Remap { budget } => {
                if *budget == 0 {
                    return Ok(0);
                }
                *budget -= 1;
                // DONTUNMAP (Linux 5.7): the source stays mapped, empty, so that no other mapping can come to
                // lie in it before the whole reserve is unmapped.
                let flags = sys::MREMAP_MAYMOVE | sys::MREMAP_FIXED | sys::MREMAP_DONTUNMAP;
                // SAFETY: passed on.
                unsafe { sys::mremap(src, bytes, bytes, flags, dst) }.map_err(|e| {
                    PlaceError::System(
                        "cannot move pages with mremap (Linux 5.7 or newer needed)",
                        e,
                    )
                })?;
                Ok(bytes)
            }
        }
    }
}

/// # Safety
/// As for [`Mover::run`].
unsafe fn uffd_run(fd: i32, src: usize, dst: usize, bytes: usize) -> Result<usize, PlaceError> {
    let mut done = 0;
    let mut moved = 0;
    let mut tries = 0;
    while done < bytes {
        let mut m = Move {
            dst: (dst + done) as u64,
            src: (src + done) as u64,
            len: (bytes - done) as u64,
            mode: 0,
            moved: 0,
        };
        // SAFETY: the request reads and writes a `Move`; the ranges are the caller's to give.
        let error = match unsafe { sys::ioctl(fd, IOCTL_MOVE, &mut m) } {
            Ok(_) => return Ok(moved + (bytes - done)),
            Err(error) => error,
        };
        let part = m.moved.max(0) as usize;
        done += part;
        moved += part;
        match error.raw_os_error() {
            // A part was moved; go on with the rest.
            Some(EAGAIN | EBUSY) if part > 0 || tries < 100 => tries += usize::from(part == 0),
            _ if part > 0 => {}
            // The page has come up by itself (another thread touched it): leave it.
            Some(EEXIST) => done += PAGE,
            _ if moved > 0 => return Ok(moved),
            _ => {
                return Err(PlaceError::System(
                    "cannot move pages with userfaultfd",
                    error,
                ));
            }
        }
    }
    Ok(moved)
}

#[cfg(test)]
mod tests {
    use super::super::pagemap::frames_readable;
    use super::super::reserve::{Unit, page_bins, populate};
    use super::*;
    use crate::mapped::Mapped;
    use crate::place::bins::Bins;
    use crate::place::pagemap::Pagemap;

    const PAGES: usize = 64;

    fn map() -> Mapped {
        Mapped::new(PAGES * PAGE).unwrap()
    }

    /// Moves every second page and sees whether frames and contents came along.
    fn pages_keep_their_frames(mover: impl Fn(usize) -> Mover) {
        let mapped = (map(), map());
        let (from, to) = (mapped.0.start(), mapped.1.start());
        // More bins than frames, so that a bin is a frame.
        let frames = |at: usize| {
            page_bins(
                &Pagemap::own().unwrap(),
                at,
                PAGES,
                Bins {
                    sets: u32::MAX - 1,
                    ways: 1,
                },
            )
            .unwrap()
        };
        // SAFETY: our own new mappings.
        unsafe { populate(from, PAGES * PAGE, Unit::Base) }.unwrap();
        for page in 0..PAGES {
            // SAFETY: as above.
            unsafe { ((from + page * PAGE) as *mut u8).write(page as u8) };
        }
        let before = frames(from);
        let mut mover = mover(to);
        for page in (0..PAGES).step_by(2) {
            // SAFETY: as above; the target holds nothing.
            let moved = unsafe { mover.run(from + page * PAGE, to + page * PAGE, PAGE) }.unwrap();
            assert_eq!(moved, PAGE);
        }
        drop(mover);
        let after = frames(to);
        for page in 0..PAGES {
            if page % 2 == 0 {
                assert_eq!(after[page], before[page]);
                // SAFETY: the page was moved here with its content.
                let content = unsafe { ((to + page * PAGE) as *const u8).read() };
                assert_eq!(content, page as u8);
            } else {
                assert_eq!(after[page], crate::place::choose::NO_BIN);
            }
        }
    }

    #[test]
    fn frames_come_along_with_mremap() {
        if let Err(why) = frames_readable() {
            return varve_skip::skip!("{why}");
        }
        pages_keep_their_frames(|_| Mover::remap());
    }

    #[test]
    fn frames_come_along_with_userfaultfd() {
        if let Err(why) = frames_readable() {
            return varve_skip::skip!("{why}");
        }
        if let Err(why) = uffd_move_works() {
            return varve_skip::skip!("{why}");
        }
        // SAFETY: our own mapping.
        pages_keep_their_frames(|to| unsafe { Mover::for_range(to, PAGES * PAGE) });
    }

    #[test]
    fn without_budget_nothing_is_moved_with_mremap() {
        let (from, to) = (map(), map());
        // SAFETY: our own new mappings.
        let moved = unsafe { Mover::Remap { budget: 0 }.run(from.start(), to.start(), PAGE) };
        assert_eq!(moved.unwrap(), 0);
    }
}
