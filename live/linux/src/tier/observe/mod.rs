//! Observes which pages of a process are accessed.
//!
//! ```text
//! hardware.rs  accesses that the processor samples by itself (PEBS, IBS)
//! damon.rs     the kernel's monitors of accesses
//! idle.rs      the kernel's idle page tracking: accessed bits, page by page
//! writes.rs    soft-dirty bits: pages that were written, by write protection
//! bits.rs      accessed bits by mapping
//! ```
//!
//! They are tried in this order: each observes less than the one before.

mod bits;
mod damon;
mod hardware;
mod idle;
mod writes;

pub use hardware::Accesses;

use super::mapped::tiered;
use crate::sampled;
use crate::sampled::used::Mapping;
use std::cell::RefCell;
use std::fmt;
use std::io;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

/// A use of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Use {
    /// Its address divided by the size of pages.
    pub page: u64,
    /// It was written; otherwise that is not known, or it was read.
    pub writes: bool,
}

impl Use {
    /// Of a page of which no more is known.
    fn of(page: u64) -> Use {
        let writes = false;
        Use { page, writes }
    }
}

/// Of these ascending pages of `bytes` each, the ones that overlap a range.
fn within<'p>(pages: &'p [u64], bytes: u64, range: &Range<u64>) -> &'p [u64] {
    let first = pages.partition_point(|page| (page + 1) * bytes <= range.start);
    let behind = pages.partition_point(|page| page * bytes < range.end);
    &pages[first..behind.max(first)]
}

/// Observes which pages of one process are accessed.
pub trait Observer {
    /// Appends the accesses since the last scan to known pages, ascending.
    ///
    /// # Errors
    /// The process has ended, or may not be observed.
    fn look(&mut self, pages: &[u64], uses: &mut Vec<Use>) -> io::Result<()>;

    /// Processor time that the kernel took for it elsewhere so far, in seconds.
    fn elsewhere_seconds(&self) -> f64 {
        0.0
    }
}

/// Observes nothing: for policies that do not need accesses.
pub struct Blind;

impl Observer for Blind {
    fn look(&mut self, _: &[u64], _: &mut Vec<Use>) -> io::Result<()> {
        Ok(())
    }
}

/// A way to observe accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// The processor's samples.
    Hardware,
    /// The kernel's monitors.
    Damon,
    /// Idle page tracking.
    Idle,
    /// Soft-dirty bits.
    Writes,
    /// Accessed bits of mappings.
    Bits,
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Way {
    /// All ways, in the order in which they are tried.
    pub const ALL: [Way; 5] = [Way::Hardware, Way::Damon, Way::Idle, Way::Writes, Way::Bits];

    /// Its name in `--observe`.
    pub fn name(self) -> &'static str {
        match self {
            Way::Hardware => "hardware",
            Way::Damon => "damon",
            Way::Idle => "idle",
            Way::Writes => "writes",
            Way::Bits => "bits",
        }
    }

    /// Its description, its cost, and its blind spots; a line each.
    pub fn words(self) -> [&'static str; 3] {
        match self {
            Way::Hardware => [
                "accesses that no cache served, sampled by the processor (PEBS or IBS)",
                "at most 4000 interrupts per second and processor, at the program's expense",
                "prefetches, and accesses that its caches serve",
            ],
            Way::Damon => [
                "the kernel's monitor (DAMON): in how many of ten checks, 100 ms apart, a region of memory was accessed",
                "a kernel thread for each process, up to 10,000 checks a second together; their CPU time is printed at the end",
                "more than 1000 regions in all processes together, at least 50 in each: pages within a region count alike; accesses that hit the TLB; writes apart from reads",
            ],
            Way::Idle => [
                "the kernel's idle page tracking: whether a page was accessed since the last scan",
                "two scans of the kernel's record of each page in each interval, within the CPU budget below",
                "how often a page is accessed between two scans; of pages larger than 4 KiB all but one of the kernel's; writes apart from reads",
            ],
            Way::Writes => [
                "soft-dirty bits: whether a page was written since the last scan",
                "the program's first write to each page after a scan is a fault of about a microsecond; scans are within the CPU budget below",
                "reads: memory that is only read counts as cold",
            ],
            Way::Bits => [
                "accessed bits by mapping: how much of each mapping was accessed since the last scan",
                "scans are within the CPU budget below",
                "which pages of a mapping are accessed: all of them count alike; writes apart from reads",
            ],
        }
    }

    /// The reason why it does not work here, if it does not. Each is tried.
    pub fn why_not(self) -> Option<String> {
        let of = |result: io::Result<()>, what: &str| result.err().map(|e| format!("{what}: {e}"));
        match self {
            Way::Hardware => sampled::hardware().err(),
            Way::Damon => match damon::are_to_be_had() {
                true => None,
                false => Some(
                    "DAMON: the kernel has none for processes (CONFIG_DAMON_SYSFS, CONFIG_DAMON_VADDR), another program uses it, or this user may not (run as root)"
                        .into(),
                ),
            },
            Way::Idle => of(
                idle::Idle::open(std::process::id(), 4096).map(drop),
                "idle page tracking (CONFIG_IDLE_PAGE_TRACKING, root)",
            ),
            Way::Writes => match writes::works() {
                true => None,
                false => Some("soft-dirty bits: the kernel has none (CONFIG_MEM_SOFT_DIRTY)".into()),
            },
            Way::Bits => of(
                sampled::used::forget(std::process::id()),
                "accessed bits (CONFIG_PROC_PAGE_MONITOR)",
            ),
        }
    }
}

/// The first way that works here.
///
/// # Errors
/// No way works: a reason for each.
pub fn first() -> Result<Way, String> {
    let mut why = Vec::new();
    for way in Way::ALL {
        match way.why_not() {
            None => return Ok(way),
            Some(no) => why.push(no),
        }
    }
    Err(why.join("; "))
}

/// The memory whose accesses are observed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Of processes' own and of what they share, but for programs and libraries.
    Tiered,
    /// Of all that is mapped.
    All,
}

impl Scope {
    /// Those of a process's mappings that it has.
    fn of(self, all: &[Mapping]) -> impl Iterator<Item = &Mapping> {
        let some = tiered(all).map(|(m, _)| m);
        let some = some.filter(move |_| self == Scope::Tiered);
        let every = all.iter().filter(move |m| {
            self == Scope::All && !m.path.starts_with("[v") && !m.rights.starts_with("---")
        });
        some.chain(every)
    }
}

/// Makes observers of processes.
pub struct Observers {
    way: Option<Way>,
    scope: Scope,
    page_bytes: u64,
    accesses: Rc<RefCell<Accesses>>,
    /// The kernel's monitors, once they are taken.
    kernel: Option<Arc<damon::Kernel>>,
}

impl Observers {
    /// All of them in this way; `None`: nothing is seen.
    pub fn new(way: Option<Way>, scope: Scope, page_bytes: u64) -> Observers {
        Observers {
            way,
            scope,
            page_bytes,
            accesses: Rc::default(),
            kernel: None,
        }
    }

    /// An observer of a process, and how it sees. `inherited`: the process was started by one that is observed already.
    ///
    /// # Errors
    /// A line that says why it cannot be observed.
    pub fn of(
        &mut self,
        process: u32,
        inherited: bool,
    ) -> Result<(Box<dyn Observer>, &'static str), String> {
        let page_bytes = self.page_bytes;
        let Some(way) = self.way else {
            return Ok((Box::new(Blind), "none"));
        };
        Ok(match way {
            Way::Hardware => {
                if !inherited {
                    let events = sampled::hardware()?;
                    self.accesses.borrow_mut().add(process, &events)?;
                }
                let one = hardware::Sampled::new(process, page_bytes, self.accesses.clone());
                (Box::new(one), way.name())
            }
            Way::Damon => {
                if self.kernel.is_none() {
                    self.kernel = damon::Kernel::shared();
                }
                let begin = |kernel| damon::Monitor::begin(kernel, process, self.scope, page_bytes);
                match self.kernel.as_ref().and_then(begin) {
                    Some(monitor) => (Box::new(monitor), way.name()),
                    None => return self.lesser(process),
                }
            }
            Way::Idle => {
                let idle = idle::Idle::open(process, page_bytes);
                let idle = idle.map_err(|e| format!("idle page tracking: {e}"))?;
                (Box::new(idle), way.name())
            }
            Way::Writes => (
                Box::new(writes::Written::of(process, page_bytes)),
                way.name(),
            ),
            Way::Bits => (
                Box::new(bits::Bits::of(process, self.scope, page_bytes)),
                way.name(),
            ),
        })
    }

    /// One that sees less than a monitor: all are in use.
    fn lesser(&mut self, process: u32) -> Result<(Box<dyn Observer>, &'static str), String> {
        let ways = [Way::Idle, Way::Writes, Way::Bits];
        let way = ways.into_iter().find(|way| way.why_not().is_none());
        let way = way.ok_or(
            "the kernel's monitors are in use, and no other way to observe its pages works",
        )?;
        let mut others = Observers::new(Some(way), self.scope, self.page_bytes);
        others.of(process, false)
    }
}

/// Whether something that is in use for a share of the time counts as used at look `number`: of many looks that share.
fn is_due(share: f64, number: u64) -> bool {
    let share = share.clamp(0.0, 1.0);
    (share * (number + 1) as f64).floor() > (share * number as f64).floor()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_all_looks_counts() {
        for (share, expected) in [(0.0, 0), (0.1, 10), (0.5, 50), (1.0, 100), (2.0, 100)] {
            let due = (0..100).filter(|n| is_due(share, *n)).count();
            assert_eq!(due, expected, "{share}");
        }
    }

    #[test]
    fn every_way_says_what_it_is_and_each_is_to_be_had_or_says_why_not() {
        for way in Way::ALL {
            assert!(way.words().iter().all(|words| words.len() > 10));
            if let Some(why) = way.why_not() {
                assert!(!why.contains('\n') && !why.is_empty(), "{way}: {why}");
            }
        }
    }
}
