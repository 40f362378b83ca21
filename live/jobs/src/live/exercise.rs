//! A modelled workload on real memory: its accesses are carried out by threads of this process.
//!
//! Computation in between is a chain of additions with the same number of instructions; sleeps are slept, and barriers waited at.

use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};
use varve_access::{Kind, Op, Program, Region};
use varve_live::Mapped;

/// Ops that a thread takes at a time.
const BATCH: usize = 4096;

/// The memory that stands for a workload's regions. It lies where the kernel had room: two programs of one process may have been
/// modelled at the same addresses.
struct Space(Vec<Place>);

/// A region of the model, and where its bytes are.
struct Place {
    modelled: usize,
    len: usize,
    memory: Mapped,
}

impl Space {
    fn new(regions: &[Region]) -> Result<Space, String> {
        let mut space = Space(Vec::new());
        for r in regions {
            let len = (r.bytes as usize).next_multiple_of(4096);
            let memory = Mapped::new(len).map_err(|e| {
                let size = varve_report::fmt::bytes(r.bytes as f64);
                format!(
                    "no memory for region `{}` of {size}: {e}; take a larger scale",
                    r.name
                )
            })?;
            space.0.push(Place {
                modelled: r.base as usize,
                len,
                memory,
            });
        }
        space.0.sort_unstable_by_key(|m| m.modelled);
        Ok(space)
    }

    /// Where the bytes of an access are, if it lies in one of the regions.
    fn find(&self, modelled: usize, len: usize) -> Option<usize> {
        let after = self.0.partition_point(|m| m.modelled <= modelled);
        let m = self.0.get(after.checked_sub(1)?)?;
        let offset = modelled - m.modelled;
        (offset + len <= m.len).then_some(m.memory.start() + offset)
    }
}

/// Threads that wait for one another.
struct Barrier {
    /// Threads that have not ended, threads that wait, and how often all have met.
    state: Mutex<(usize, usize, u64)>,
    met: Condvar,
}

impl Barrier {
    fn wait(&self) {
        let mut state = lock(&self.state);
        state.1 += 1;
        if state.1 == state.0 {
            self.open(&mut state);
            return;
        }
        let times = state.2;
        while state.2 == times {
            state = self.met.wait(state).unwrap_or_else(|e| e.into_inner());
        }
    }

    fn leave(&self) {
        let mut state = lock(&self.state);
        state.0 -= 1;
        if state.1 > 0 && state.1 == state.0 {
            self.open(&mut state);
        }
    }

    fn open(&self, state: &mut (usize, usize, u64)) {
        state.1 = 0;
        state.2 += 1;
        self.met.notify_all();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}

/// Counts of a workload's run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Exercised {
    /// Accesses carried out.
    pub accesses: u64,
    /// Accesses outside of the workload's regions, which were not.
    pub outside: u64,
    /// How long it took, s.
    pub seconds: f64,
}

/// Carries a program out.
///
/// # Errors
/// No memory for it.
pub fn exercise(program: &mut dyn Program) -> Result<Exercised, String> {
    let space = Space::new(&program.regions())?;
    let threads = program.threads().max(1);
    let begun = Instant::now();
    let barrier = Barrier {
        state: Mutex::new((threads, 0, 0)),
        met: Condvar::new(),
    };
    let program = Mutex::new(program);
    let mut all = Exercised::default();
    let done: Vec<Exercised> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|t| {
                let (program, barrier, space) = (&program, &barrier, &space);
                scope.spawn(move || worker(t, program, barrier, space, begun))
            })
            .collect();
        workers.into_iter().filter_map(|w| w.join().ok()).collect()
    });
    for d in done {
        all.accesses += d.accesses;
        all.outside += d.outside;
    }
    all.seconds = begun.elapsed().as_secs_f64();
    Ok(all)
}

fn worker(
    thread: usize,
    program: &Mutex<&mut dyn Program>,
    barrier: &Barrier,
    space: &Space,
    begun: Instant,
) -> Exercised {
    let mut ops: Vec<Op> = Vec::with_capacity(BATCH);
    let mut done = Exercised::default();
    let mut sum = thread as u64;
    loop {
        ops.clear();
        let now = begun.elapsed().as_nanos() as u64;
        let more = lock(program).fill(thread, now, &mut ops);
        for op in &ops {
            match op.kind {
                Kind::Barrier => barrier.wait(),
                Kind::Sleep => std::thread::sleep(Duration::from_nanos(op.addr)),
                _ => carry_out(op, space, &mut sum, &mut done),
            }
        }
        if !more {
            barrier.leave();
            std::hint::black_box(sum);
            return done;
        }
    }
}

/// One access of at least a byte, and the instructions before it.
#[inline]
fn carry_out(op: &Op, space: &Space, sum: &mut u64, done: &mut Exercised) {
    for _ in 0..op.instructions {
        *sum = std::hint::black_box(sum.wrapping_add(1));
    }
    if !op.kind.is_access() || matches!(op.kind, Kind::Fetch | Kind::Flush) {
        return;
    }
    let Some(at) = space.find(op.addr as usize, 8.min(op.size.max(1) as usize)) else {
        done.outside += 1;
        return;
    };
    done.accesses += 1;
    let byte: *mut u8 = std::ptr::with_exposed_provenance_mut(at);
    // SAFETY: the byte is in a mapping of ours that lives as long as the threads. Threads may meet at a byte without any order: what it
    // holds means nothing, and the access is atomic.
    let byte = unsafe { std::sync::atomic::AtomicU8::from_ptr(byte) };
    let order = std::sync::atomic::Ordering::Relaxed;
    if matches!(op.kind, Kind::Read | Kind::Update) {
        *sum = sum.wrapping_add(byte.load(order).into());
    }
    if matches!(op.kind, Kind::Write | Kind::Update | Kind::NtWrite) {
        byte.store(*sum as u8, order);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workload_is_carried_out_to_its_end_by_any_number_of_threads() {
        let accesses = |threads: u32| {
            let line = format!("npb_mg:bytes=12KiB,passes=2,scale=1,threads={threads}");
            let mut program = varve_workloads::build(&line).unwrap();
            exercise(&mut *program).unwrap()
        };
        let one = accesses(1);
        // 48 lines of each of four arrays, in two passes; and a first touch of each page of them.
        assert_eq!(one.accesses, 48 * 4 * 2 + 4);
        assert_eq!(one.outside, 0);
        assert!(accesses(3).accesses >= one.accesses);
    }

    #[test]
    fn programs_that_were_modelled_at_the_same_addresses_run_side_by_side() {
        let line = "swaptions:bytes=8KiB,passes=1,threads=1";
        let mut program = varve_workloads::build(line).unwrap();
        let regions = program.regions();
        let other = Space::new(&regions).unwrap();
        let first = regions[0].base as usize;
        let at = other.find(first, 8).unwrap();
        let byte: *mut u8 = std::ptr::with_exposed_provenance_mut(at);
        // SAFETY: a byte of the other program's memory, which nothing else uses.
        unsafe { byte.write(77) };
        let done = exercise(&mut *program).unwrap();
        assert!(done.accesses > 0 && done.outside == 0, "{done:?}");
        // SAFETY: as above.
        assert_eq!(unsafe { byte.read() }, 77);
    }

    #[test]
    fn what_lies_outside_is_not_found() {
        let program = varve_workloads::build("swaptions:bytes=8KiB,passes=1,threads=1").unwrap();
        let regions = program.regions();
        let space = Space::new(&regions).unwrap();
        let low = regions.iter().map(|r| r.base).min().unwrap() as usize;
        assert_eq!(space.find(low - 1, 1), None);
        let high = space.0.last().map(|m| m.modelled + m.len).unwrap();
        assert!(space.find(high - 8, 8).is_some());
        assert_eq!(space.find(high - 7, 8), None);
        assert_eq!(space.find(high, 1), None);
    }
}
