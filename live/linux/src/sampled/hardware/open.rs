//! Events on the threads of a process: one of each kind on each processor, inherited by whatever they start. The samples of a
//! processor go into one ring.

use super::event::Event;
use super::ring::{self, Hit, Records};
use crate::perf::{Attributes, open, refused};
use crate::probe::sysfs::parse_list;
use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

/// Samples in a second of each event and processor: perf's default.
const RATE: u64 = 4000;
/// Pages of a ring behind its first. An ordinary user may have 512 KiB for each processor.
const PAGES: usize = 64;
const PAGE: usize = 4096;
/// Where the kernel keeps its position and ours in the first page of a ring (`struct perf_event_mmap_page`).
const HEAD: usize = 1024;
const TAIL: usize = 1032;

const INHERIT: u64 = 1 << 1;
const USER_ONLY: u64 = Attributes::EXCLUDE_KERNEL | Attributes::EXCLUDE_HYPERVISOR;
/// An ordinary user may sample programs of his own up to this level.
const PARANOID: i32 = 2;
const BY_FREQUENCY: u64 = 1 << 10;
const PRECISE_SHIFT: u64 = 15;
/// `PERF_EVENT_IOC_SET_OUTPUT`: samples go into another event's ring.
const SET_OUTPUT: libc::Ioctl = 0x2405;

/// Events that are open.
pub struct Hardware {
    rings: Vec<Ring>,
    /// Kept open with their rings.
    _events: Vec<OwnedFd>,
    /// Samples that were lost, or could not be read.
    pub lost: u64,
}

struct Ring {
    processor: u32,
    at: *const u8,
    event: OwnedFd,
}

impl Hardware {
    /// Opens events on all threads of a process.
    ///
    /// # Errors
    /// A line that says why not.
    pub fn begin(process: u32, events: &[Event]) -> Result<Hardware, String> {
        let threads = threads(process)?;
        let mut hardware = Hardware {
            rings: Vec::new(),
            _events: Vec::new(),
            lost: 0,
        };
        for event in events {
            for processor in processors(event)? {
                for &thread in &threads {
                    match hardware.open(event, thread, processor) {
                        Ok(true) => break,
                        Ok(false) => {}
                        // Threads come and go.
                        Err(e) if e.raw_os_error() == Some(libc::ESRCH) => {}
                        Err(e) => return Err(refused(&e, PARANOID)),
                    }
                }
            }
        }
        match hardware.rings.is_empty() {
            true => Err("the process has ended".into()),
            false => Ok(hardware),
        }
    }

    /// True if that opened it for all that the processor does.
    fn open(&mut self, event: &Event, thread: i32, processor: u32) -> io::Result<bool> {
        let leader = match event.leader {
            Some(config) => Some(counting(event, config, thread, processor)?),
            None => None,
        };
        let group = leader.as_ref().map_or(-1, AsRawFd::as_raw_fd);
        let mut own = sampling(event, thread, processor, group);
        // Older kernels have IBS for whole processors only. Others' samples are left out by their process.
        let refused = |e: &io::Error| e.raw_os_error() == Some(libc::EINVAL);
        let whole = !event.user_only && own.as_ref().is_err_and(refused);
        if whole {
            own = sampling(event, -1, processor, group);
        }
        let own = own?;
        self._events.extend(leader);
        match self.rings.iter().find(|r| r.processor == processor) {
            None => self.rings.push(Ring::map(processor, own)?),
            Some(ring) => {
                // SAFETY: two descriptors of ours.
                let result =
                    unsafe { libc::ioctl(own.as_raw_fd(), SET_OUTPUT, ring.event.as_raw_fd()) };
                if result != 0 {
                    return Err(io::Error::last_os_error());
                }
                self._events.push(own);
            }
        }
        Ok(whole)
    }

    /// The samples since the last call.
    pub fn take(&mut self) -> Vec<Hit> {
        let mut records = Records::default();
        for ring in &self.rings {
            ring.take(&mut records);
        }
        self.lost += records.lost + records.broken;
        records.hits
    }
}

fn threads(process: u32) -> Result<Vec<i32>, String> {
    let folder = format!("/proc/{process}/task");
    let entries = std::fs::read_dir(&folder).map_err(|e| format!("{folder}: {e}"))?;
    let number = |entry: std::fs::DirEntry| entry.file_name().to_str()?.parse().ok();
    Ok(entries.flatten().filter_map(number).collect())
}

fn processors(event: &Event) -> Result<Vec<u32>, String> {
    const ONLINE: &str = "/sys/devices/system/cpu/online";
    let listed = match event.processors.is_empty() {
        true => std::fs::read_to_string(ONLINE).map_err(|e| format!("{ONLINE}: {e}"))?,
        false => event.processors.clone(),
    };
    Ok(parse_list(&listed))
}

fn counting(event: &Event, config: [u64; 3], thread: i32, processor: u32) -> io::Result<OwnedFd> {
    let attributes = Attributes {
        flags: INHERIT | USER_ONLY,
        ..Attributes::of(event.kind, config)
    };
    open(attributes, thread, processor as i32, -1)
}

fn sampling(event: &Event, thread: i32, processor: u32, group: i32) -> io::Result<OwnedFd> {
    let exclude = match event.user_only {
        true => USER_ONLY,
        false => 0,
    };
    let inherit = if thread < 0 { 0 } else { INHERIT };
    let by = match event.period {
        Some(_) => 0,
        None => BY_FREQUENCY,
    };
    let attributes = Attributes {
        period: event.period.unwrap_or(RATE),
        sample_type: ring::WANTED,
        flags: inherit | exclude | by | event.precise << PRECISE_SHIFT,
        ..Attributes::of(event.kind, event.config)
    };
    open(attributes, thread, processor as i32, group)
}

impl Ring {
    fn map(processor: u32, event: OwnedFd) -> io::Result<Ring> {
        // SAFETY: a new mapping of a descriptor of ours.
        let at = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                (1 + PAGES) * PAGE,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                event.as_raw_fd(),
                0,
            )
        };
        if at == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let at = at.cast_const().cast();
        Ok(Ring {
            processor,
            at,
            event,
        })
    }

    /// A position that the kernel shares with us.
    fn position(&self, at: usize) -> &AtomicU64 {
        // SAFETY: within the first page, aligned, and used by both sides as one word.
        unsafe { &*self.at.add(at).cast() }
    }

    fn take(&self, records: &mut Records) {
        let head = self.position(HEAD).load(Ordering::Acquire);
        let tail = self.position(TAIL).load(Ordering::Relaxed);
        let parts = ring::parts(PAGES * PAGE, tail, head);
        let part = |part: Range<usize>| {
            // SAFETY: within the pages behind the first one, between tail and head, where the kernel writes nothing.
            unsafe { std::slice::from_raw_parts(self.at.add(PAGE + part.start), part.len()) }
        };
        records.add(&parts.map(part).concat());
        self.position(TAIL).store(head, Ordering::Release);
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: our mapping, which is no longer used.
        unsafe { libc::munmap(self.at.cast_mut().cast(), (1 + PAGES) * PAGE) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mapped::Mapped;

    #[test]
    fn samples_of_this_process_and_of_a_thread_that_comes_later_have_its_addresses() {
        let own = std::process::id();
        let mut hardware = match Hardware::begin(own, &[Event::page_faults()]) {
            Ok(hardware) => hardware,
            Err(why) => return varve_skip::skip!("{why}"),
        };
        let memory = Fresh::new();
        let sampled = |hit: &Hit| hit.process == own && memory.range().contains(&hit.address);
        // The kernel leaves samples out for a tick when they come too fast, which one burst may fall into.
        let mut seen = |touch: &dyn Fn()| {
            (0..500).any(|_| {
                touch();
                std::thread::sleep(std::time::Duration::from_millis(2));
                hardware.take().iter().any(sampled)
            })
        };
        assert!(seen(&|| memory.touch()), "a thread that was there");
        let other = || std::thread::scope(|scope| scope.spawn(|| memory.touch()).join().unwrap());
        assert!(seen(&other), "threads that came later");
    }

    const BYTES: usize = 1024 * PAGE;

    /// Pages that are released after each touch, so that the next one is a fault again.
    struct Fresh(Mapped);

    impl Fresh {
        fn new() -> Fresh {
            let mapped = Mapped::new(BYTES).unwrap();
            // SAFETY: advice about a new mapping. Large pages would make one fault of 512.
            unsafe { libc::madvise(mapped.as_ptr(), BYTES, libc::MADV_NOHUGEPAGE) };
            Fresh(mapped)
        }

        fn range(&self) -> Range<u64> {
            let start = self.0.start() as u64;
            start..start + BYTES as u64
        }

        fn touch(&self) {
            for at in (0..BYTES).step_by(PAGE) {
                // SAFETY: within the mapping, which is written only, a byte at a time.
                unsafe { self.0.as_ptr::<u8>().add(at).write_volatile(1) };
            }
            // SAFETY: the mapping, whose content is not needed.
            unsafe { libc::madvise(self.0.as_ptr(), BYTES, libc::MADV_DONTNEED) };
        }
    }

    #[test]
    fn what_is_not_there_is_said_in_a_line() {
        let none = Event {
            kind: 4_000_000,
            ..Event::page_faults()
        };
        let why = Hardware::begin(std::process::id(), &[none]).err().unwrap();
        assert!(!why.contains('\n') && !why.is_empty(), "{why}");
        assert!(Hardware::begin(u32::MAX - 1, &[Event::page_faults()]).is_err());
    }
}
