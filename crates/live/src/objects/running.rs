//! What is so while a program runs: asked for by SIGUSR1, since a service does not end.

use crate::nodes::Kinds;
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

/// Tells whether somebody has asked.
pub struct Requests {
    answered: u64,
}

impl Requests {
    /// From now on SIGUSR1 asks, and does not end this process. Programs that it starts are left alone.
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

    /// Whether somebody has, since the last time.
    pub fn asked(&mut self) -> bool {
        let now = REQUESTS.load(Relaxed);
        std::mem::replace(&mut self.answered, now) != now
    }
}

impl RunningProcess {
    /// A process that takes so much of the budget; none if it has ended.
    pub fn look(pid: u32, fast_bytes: i64, kinds: &Kinds) -> Option<RunningProcess> {
        let folder = Path::new("/proc").join(pid.to_string());
        let program = std::fs::read_to_string(folder.join("comm")).ok()?;
        let maps = std::fs::read_to_string(folder.join("numa_maps")).unwrap_or_default();
        let on = |nodes: &[u32]| -> u64 {
            let pages = maps.lines().map(|line| bytes_on(line, nodes));
            pages.sum()
        };
        Some(RunningProcess {
            pid,
            program: program.trim_end().into(),
            fast_bytes: fast_bytes.max(0) as u64,
            on_fast_nodes: on(&kinds.fast),
            on_slow_nodes: on(&kinds.slow),
        })
    }
}

/// Bytes of a mapping on these nodes, by its line in `numa_maps`: `7f.. prefer:0 anon=3 N0=2 N1=1 kernelpagesize_kB=4`.
fn bytes_on(line: &str, nodes: &[u32]) -> u64 {
    let words = line
        .split_whitespace()
        .filter_map(|word| word.split_once('='));
    let (mut pages, mut page_kib) = (0, 4);
    for (key, value) in words {
        let Ok(value) = value.parse::<u64>() else {
            continue;
        };
        let node = key.strip_prefix('N').and_then(|node| node.parse().ok());
        match node {
            Some(node) if nodes.contains(&node) => pages += value,
            None if key == "kernelpagesize_kB" => page_kib = value,
            _ => {}
        }
    }
    1024 * pages * page_kib
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_a_mapping_are_told_by_node() {
        let line = "7f2a00000000 prefer (many):0 anon=3 dirty=3 active=0 N0=2 N11=1 kernelpagesize_kB=2048";
        assert_eq!(bytes_on(line, &[0]), 4 << 20);
        assert_eq!(bytes_on(line, &[1]), 0);
        assert_eq!(bytes_on(line, &[0, 11]), 6 << 20);
        assert_eq!(
            bytes_on(
                "55d0 default file=/usr/bin/N1=5 mapped=7 N0=7 kernelpagesize_kB=4",
                &[0]
            ),
            28 << 10
        );
        assert_eq!(bytes_on("55d0 default", &[0]), 0);
    }
}
