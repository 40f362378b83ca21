//! The kernel's monitors of accesses, one for each process. Their settings are reset when we end, even if we are killed: a guard outlives us for as long as that
//! takes.

use super::{Observer, Scope, Use, is_due, within};
use crate::sampled::damon::{self, Damon, Monitors, Pace};
use crate::sampled::used;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Processes that are watched at once; others are seen in another way.
const MOST: usize = 64;

/// Monitors that are asked at a look. The kernel answers one after the other, each up to a second later; of the others the last answer
/// still holds.
const ASKED: usize = 2;

/// The kernel's monitors.
pub struct Kernel {
    all: Monitors,
    _guard: Guard,
}

/// Those of this process, while some thread of it has them.
static SHARED: Mutex<Weak<Kernel>> = Mutex::new(Weak::new());

/// Whether this process has them, or could take them. To find out changes their number for a moment, so that no other thread may
/// take them meanwhile.
pub fn are_to_be_had() -> bool {
    let shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    shared.strong_count() > 0 || damon::is_free(Path::new(damon::FOLDER))
}

impl Kernel {
    /// Those of this process, taken if no thread of it has them; `None` if they are not to be had.
    pub fn shared() -> Option<Arc<Kernel>> {
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kernel) = shared.upgrade() {
            return Some(kernel);
        }
        let kernel = Arc::new(Kernel::take()?);
        *shared = Arc::downgrade(&kernel);
        Some(kernel)
    }

    fn take() -> Option<Kernel> {
        let folder = Path::new(damon::FOLDER);
        Some(Kernel {
            all: Monitors::take(folder, MOST)?,
            _guard: Guard::begin(folder)?,
        })
    }
}

/// The monitor of one process.
pub struct Monitor {
    // It is turned off before the guard is told that all is done.
    damon: Damon,
    kernel: Arc<Kernel>,
    process: u32,
    scope: Scope,
    page_bytes: u64,
    looks: u64,
    /// Its last answer; `None` before it watches anything.
    counts: Option<Vec<(Range<u64>, f64)>>,
}

impl Monitor {
    /// Takes one for a process; `None` if all are in use.
    pub fn begin(
        kernel: &Arc<Kernel>,
        process: u32,
        scope: Scope,
        page_bytes: u64,
    ) -> Option<Monitor> {
        Some(Monitor {
            damon: kernel.all.begin(process, Pace::ALWAYS)?,
            kernel: kernel.clone(),
            process,
            scope,
            page_bytes,
            looks: 0,
            counts: None,
        })
    }
}

impl Observer for Monitor {
    fn look(&mut self, pages: &[u64], uses: &mut Vec<Use>) -> io::Result<()> {
        let mappings = used::mappings(self.process, &[])?;
        let bytes = self.page_bytes;
        // Mappings without a page that is there have nothing to watch.
        let has_pages = |range: &Range<u64>| !within(pages, bytes, range).is_empty();
        let ranges = self.scope.of(&mappings).map(|m| m.start..m.end);
        let ranges: Vec<Range<u64>> = ranges.filter(has_pages).collect();
        if ranges.is_empty() {
            return Ok(());
        }
        self.looks += 1;
        let Some(last) = &mut self.counts else {
            self.damon.watch(&ranges)?;
            self.counts = Some(Vec::new());
            return Ok(());
        };
        if is_asked(self.damon.number(), self.kernel.all.in_use(), self.looks) {
            self.damon.watch(&ranges)?;
            *last = self.damon.counts()?;
        }
        for (part, share) in last {
            if !is_due(*share, self.looks) {
                continue;
            }
            let within = within(pages, bytes, part);
            uses.extend(within.iter().map(|&page| Use::of(page)));
        }
        Ok(())
    }

    fn elsewhere_seconds(&self) -> f64 {
        let seconds = self.damon.thread().and_then(thread_seconds);
        seconds.unwrap_or(0.0)
    }
}

/// Whether a monitor is asked at a look: some are at each, in turns.
fn is_asked(number: usize, in_use: usize, look: u64) -> bool {
    let turns = in_use.div_ceil(ASKED).max(1);
    number % turns == look as usize % turns
}

/// Processor time of a thread of the kernel so far.
fn thread_seconds(thread: u32) -> Option<f64> {
    let stat = std::fs::read_to_string(format!("/proc/{thread}/stat")).ok()?;
    let ticks = ticks(&stat)?;
    // SAFETY: asks for a number.
    let per_second = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    Some(ticks as f64 / per_second.max(1) as f64)
}

/// `utime` and `stime`, fields 14 and 15: behind the name, which may have blanks.
fn ticks(stat: &str) -> Option<u64> {
    let mut words = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let mut next = || words.next()?.parse::<u64>().ok();
    Some(next()? + next()?)
}

/// A process that waits for our end and then turns the monitors off, if we did not.
struct Guard(Child);

impl Guard {
    fn begin(folder: &Path) -> Option<Guard> {
        let folder = folder.display();
        // Its input ends when we do, whichever way. Ctrl-C is for us.
        let script = format!(
            "trap '' INT TERM HUP; read -r word; [ \"$word\" = done ] || {{ for one in '{folder}'/*/state; do echo off >\"$one\"; done; echo 0 >'{folder}/nr_kdamonds'; }}"
        );
        let child = Command::new("/bin/sh")
            .args(["-c", &script])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        child.ok().map(Guard)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        use std::io::Write;
        if let Some(mut input) = self.0.stdin.take() {
            let _ = input.write_all(b"done\n");
        }
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn monitors_are_asked_in_turns() {
        for (in_use, turns) in [(1, 1), (2, 1), (3, 2), (64, 32)] {
            for number in 0..in_use {
                let asked = (0..320).filter(|look| is_asked(number, in_use, *look));
                assert_eq!(asked.count(), 320 / turns, "{number} of {in_use}");
            }
        }
    }

    #[test]
    fn times_of_a_thread_are_read_behind_its_name() {
        let stat = "42 (kdamond.0 (x)) S 2 0 0 0 -1 2129984 0 0 0 0 7 35 0 0 20 0 1 0 99";
        assert_eq!(ticks(stat), Some(42));
        assert_eq!(ticks("42 (kdamond"), None);
    }

    #[test]
    fn a_guard_turns_the_monitor_off_if_nobody_says_that_it_is_done() {
        let folder = tempfile::tempdir().unwrap();
        for number in ["0", "1"] {
            std::fs::create_dir(folder.path().join(number)).unwrap();
            std::fs::write(folder.path().join(number).join("state"), "on\n").unwrap();
        }
        let count = folder.path().join("nr_kdamonds");
        let read = || std::fs::read_to_string(&count).unwrap();
        std::fs::write(&count, "1\n").unwrap();
        drop(Guard::begin(folder.path()).unwrap());
        assert_eq!(read(), "1\n", "whoever says done has done it");
        let mut guard = Guard::begin(folder.path()).unwrap();
        // As the kernel closes it when we are killed.
        drop(guard.0.stdin.take());
        guard.0.wait().unwrap();
        assert_eq!(read(), "0\n");
        for number in ["0", "1"] {
            let state = folder.path().join(number).join("state");
            assert_eq!(std::fs::read_to_string(state).unwrap(), "off\n");
        }
    }
}
