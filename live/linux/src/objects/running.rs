//! The state of a running program, requested by SIGUSR1, since a service does not end.

use crate::nodes::{Kinds, by_node};
use crate::program;
use std::path::Path;
use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// A run that goes on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Running {
    /// Since its beginning.
    pub elapsed: Duration,
    /// Fast memory for objects of all processes together, bytes.
    pub budget_bytes: u64,
    /// Its processes that have objects placed.
    pub processes: Vec<RunningProcess>,
}

/// A process of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunningProcess {
    /// Process number.
    pub pid: u32,
    /// Name of the program, as the kernel knows it.
    pub program: String,
    /// Bytes of objects and mappings in fast memory, as the budget counts them: to a step, and with what was taken and not told.
    pub fast_bytes: u64,
    /// Bytes of all its memory on fast nodes, as the kernel says.
    pub on_fast_nodes: u64,
    /// The same on slow nodes.
    pub on_slow_nodes: u64,
}

/// Signals so far. Each run remembers which it has answered, so that of several none is left out.
static REQUESTS: AtomicU64 = AtomicU64::new(0);

extern "C" fn request(_: i32) {
    REQUESTS.fetch_add(1, Relaxed);
}

/// Detects requests for a report.
pub struct Requests {
    answered: u64,
}

impl Requests {
    /// From now on SIGUSR1 is a request, and does not end this process. Programs that it starts do not inherit this.
    pub fn begin() -> Requests {
        static HANDLER: Once = Once::new();
        HANDLER.call_once(|| {
            // SAFETY: the handler adds to a number, which is safe at any instant.
            unsafe { libc::signal(libc::SIGUSR1, request as *const () as libc::sighandler_t) };
        });
        Requests {
            answered: REQUESTS.load(Relaxed),
        }
    }

    /// Whether there was a request since the last call.
    pub fn asked(&mut self) -> bool {
        let now = REQUESTS.load(Relaxed);
        std::mem::replace(&mut self.answered, now) != now
    }
}

impl RunningProcess {
    /// A process that takes a share of the budget; none if it has ended.
    pub fn look(pid: u32, fast_bytes: i64, kinds: &Kinds) -> Option<RunningProcess> {
        let folder = Path::new("/proc").join(pid.to_string());
        let program = program::name_in(&folder)?;
        let maps = std::fs::read_to_string(folder.join("numa_maps")).unwrap_or_default();
        let there = by_node(&maps, |_| true);
        let on = |nodes: &[u32]| {
            let some = there.iter().filter(|(node, _)| nodes.contains(node));
            some.map(|(_, bytes)| bytes).sum()
        };
        Some(RunningProcess {
            pid,
            program,
            fast_bytes: fast_bytes.max(0) as u64,
            on_fast_nodes: on(&kinds.fast),
            on_slow_nodes: on(&kinds.slow),
        })
    }
}
