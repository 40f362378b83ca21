//! A thread beside a program that has a region's file open: it checks pages against their checksums, gives copies to other processes, and watches the
//! file's name.

use crate::journal;
use crate::layout::{GROUP_PAGES, PAGE};
use crate::name::Owned;
use crate::pages::{self, Mark, sum_of, wrong_sum};
use crate::snapshot::{Watch, read_page};
use crate::transfer::{self, Sender};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::thread::JoinHandle;

/// The interval at which the file's name is checked, in milliseconds.
const LOOK: i32 = 200;
/// Pages that are checked or copied at a time.
const STEP: u64 = 256;

/// The thread, which ends when this is dropped.
pub(crate) struct Keeper {
    /// Closed to wake the thread.
    stop: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
}

struct Work {
    owned: Owned,
    name: String,
    watch: Arc<Watch>,
    /// Address of the image.
    base: usize,
    listener: Option<UnixListener>,
    stop: UnixStream,
    /// Pages that are to be checked, by their number, and where marks are, by group.
    unchecked: std::ops::Range<u64>,
    tables: Vec<u64>,
    first: u64,
}

impl Keeper {
    /// Begins. `unchecked` pages are checked; those of [`pages::is_marked`] with `first`.
    ///
    /// # Errors
    /// If there is no thread.
    ///
    /// # Safety
    /// The image at `base` has as many bytes as `watch` says until the keeper is dropped.
    pub unsafe fn start(
        owned: Owned,
        name: &str,
        watch: Arc<Watch>,
        base: *mut u8,
        unchecked: std::ops::Range<u64>,
        tables: Vec<u64>,
        first: u64,
    ) -> io::Result<Keeper> {
        let (stop, stopped) = UnixStream::pair()?;
        // Without the listener no process gets copies, and a request fails with an error: in other name spaces, on systems without the barrier.
        let listener = match register_barrier() {
            true => owned
                .file
                .metadata()
                .and_then(|m| transfer::listen(&m))
                .ok(),
            false => None,
        };
        let work = Work {
            owned,
            name: name.into(),
            watch,
            base: base.expose_provenance(),
            listener,
            stop: stopped,
            unchecked,
            tables,
            first,
        };
        let thread = std::thread::Builder::new().name("region keeper".into());
        let thread = thread.spawn(move || work.run())?;
        Ok(Keeper {
            stop: Some(stop),
            thread: Some(thread),
        })
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Work {
    fn run(mut self) {
        loop {
            let idle = self.unchecked.is_empty();
            match self.wait(if idle { LOOK } else { 0 }) {
                Event::Stop => return,
                Event::Asked => {
                    if let Some(stream) = self.listener.as_ref().and_then(transfer::accept) {
                        // The receiver sees that the end is missing.
                        let _ = self.give(stream);
                        self.watch.end();
                    }
                }
                Event::None => {}
            }
            if idle && !self.owned.is_named() {
                self.watch.set_gone();
            }
            self.check_some();
        }
    }

    fn wait(&self, milliseconds: i32) -> Event {
        let poll = |fd| libc::pollfd {
            fd,
            events: libc::POLLIN,
            revents: 0,
        };
        let listener = self.listener.as_ref().map_or(-1, |l| l.as_raw_fd());
        let mut fds = [poll(self.stop.as_raw_fd()), poll(listener)];
        // SAFETY: the array has two entries.
        let ready = unsafe { libc::poll(fds.as_mut_ptr(), 2, milliseconds) };
        match ready > 0 {
            true if fds[0].revents != 0 => Event::Stop,
            true if fds[1].revents != 0 => Event::Asked,
            _ => Event::None,
        }
    }

    fn base(&self) -> *const u8 {
        std::ptr::with_exposed_provenance(self.base)
    }

    /// Gives a copy.
    fn give(&self, stream: UnixStream) -> io::Result<()> {
        let pages = self.watch.begin(barrier);
        let mut sender = Sender::begin(stream, pages)?;
        for from in (0..pages).step_by(STEP as usize) {
            let fetched = self
                .watch
                .fetch(self.base(), from, STEP.min(pages - from))
                .ok_or(io::ErrorKind::OutOfMemory)?;
            for (page, mut bytes) in fetched {
                if page == 0 {
                    // A copy has the region's bytes alone.
                    journal::take_off_copy(&mut bytes[..]);
                }
                sender.send(page, &bytes)?;
            }
            if matches!(self.wait(0), Event::Stop) {
                return Err(io::ErrorKind::Interrupted.into());
            }
        }
        sender.end()
    }

    /// Checks the next pages. The program may be storing: it opens a page before.
    fn check_some(&mut self) {
        let to = (self.unchecked.start + STEP).min(self.unchecked.end);
        for page in self.unchecked.start..to {
            if pages::is_marked(page, self.first) && !self.is_well(page) {
                eprintln!(
                    "{}: {}: a program that meets it ends; `varve durable salvage` recovers the intact objects",
                    self.name,
                    wrong_sum(page)
                );
                self.watch.set_damaged();
                let at = self.base().wrapping_add((page * PAGE) as usize).cast_mut();
                // SAFETY: a page of the image. Accesses to it end the program in a line, see `guard`.
                unsafe { libc::mprotect(at.cast(), PAGE as usize, libc::PROT_NONE) };
            }
        }
        self.unchecked.start = to;
    }

    fn is_well(&self, page: u64) -> bool {
        let at = self.tables[(page / GROUP_PAGES) as usize] + page % GROUP_PAGES * 8;
        let mark = || {
            let word = self.base().wrapping_add(at as usize);
            // SAFETY: marks are in the image, at a multiple of 8.
            let word = unsafe { &*word.cast::<std::sync::atomic::AtomicU64>() };
            Mark::of(word.load(std::sync::atomic::Ordering::Acquire))
        };
        match mark() {
            Mark::Empty | Mark::Open => true,
            Mark::Damaged => false,
            sealed @ Mark::Sealed { lines, sum } => {
                let bytes = read_page(self.base(), page);
                std::sync::atomic::fence(std::sync::atomic::Ordering::Acquire);
                sum_of(&bytes, lines) == sum || mark() != sealed
            }
        }
    }
}

enum Event {
    Stop,
    Asked,
    None,
}

/// `MEMBARRIER_CMD_PRIVATE_EXPEDITED` and its registration.
const BARRIER: libc::c_int = 1 << 3;
const REGISTER: libc::c_int = 1 << 4;

fn register_barrier() -> bool {
    // SAFETY: a call without memory.
    unsafe { libc::syscall(libc::SYS_membarrier, REGISTER, 0, 0) == 0 }
}

/// Has all threads of the process pass a memory barrier.
fn barrier() {
    // SAFETY: a call without memory; it was registered.
    unsafe { libc::syscall(libc::SYS_membarrier, BARRIER, 0, 0) };
}
