//! Latency rises with load, and throughput with threads: requests of others to the same resources hold a request up, and others
//! do not. The laws of queues behind the caches are tested in the crate.

use varve_access::{Fault, Kind, Op, OutOfFrames, Pager, Program};
use varve_machine::Machine;
use varve_machine::calibrate::{Bench, Effort, How, MeasuredMemory, Order, Pattern, measurements};
use varve_machine::model::{self, Options};

/// Latencies of one machine under the same load differ by this much from one another, by which banks are hit.
const NOISE: f64 = 1.05;
/// The same where requests queue: a chase then makes less than a hundred loads in the time that is measured.
const NOISE_OF_QUEUES: f64 = 1.15;

#[test]
fn latency_never_falls_as_load_rises() {
    for &(name, _) in varve_machine::load::builtin() {
        let machine = Machine::load(name).unwrap();
        for measurement in measurements(&machine, Effort::Full) {
            if !measurement.id.starts_with("loaded/") {
                continue;
            }
            let curve = measurement.run();
            let mut highest: f64 = 0.0;
            for point in &curve.points {
                let noise = match point.value < 1.5 * curve.points[0].value {
                    true => NOISE,
                    false => NOISE_OF_QUEUES,
                };
                assert!(
                    point.value * noise >= highest,
                    "{name}: {}: {} ns at {:.1} GB/s, and {highest} ns with less load",
                    curve.id,
                    point.value,
                    point.x
                );
                highest = highest.max(point.value);
            }
        }
    }
}

/// Threads that read lines at random get no less when there are more of them.
#[test]
fn more_threads_never_read_less() {
    for &(name, _) in varve_machine::load::builtin() {
        let machine = Machine::load(name).unwrap();
        for memory in MeasuredMemory::of(&machine) {
            // Of slow memory many lines are in flight for long.
            let bench = Bench::new(&machine).window(match memory {
                MeasuredMemory::Dram | MeasuredMemory::RemoteDram => 40_000,
                _ => 400_000,
            });
            let mut most: f64 = 0.0;
            for threads in [1, 4, 8, 16, 32].into_iter().chain([bench.cores()]) {
                if threads > bench.cores() {
                    continue;
                }
                let reads = Pattern::new(How::Read, Order::Random, threads, 64, 16 << 20);
                let got = bench.alone(reads, memory).gbps();
                assert!(
                    got > 0.9 * most,
                    "{name}: {}: {got:.1} GB/s by {threads} threads, {most:.1} by fewer",
                    memory.id()
                );
                most = most.max(got);
            }
        }
    }
}

/// The first thread chases lines, the others load one now and then.
struct Beside {
    others: usize,
    /// The others' time between two loads, ns; by sleeping, or else by instructions.
    gap_ns: u64,
    asleep: bool,
    loads: [u64; 16],
    /// When the chase was done, ns.
    end: u64,
}

const LOADS: u64 = 4000;

impl Program for Beside {
    fn name(&self) -> String {
        "beside".into()
    }

    fn threads(&self) -> usize {
        1 + self.others
    }

    fn fill(&mut self, thread: usize, now: u64, out: &mut Vec<Op>) -> bool {
        let n = &mut self.loads[thread];
        // A line of its own each time, so that no cache has it.
        let at = ((thread as u64 + 1) << 32) + (*n * 4099 * 64) % (64 << 20);
        *n += 1;
        if thread == 0 {
            out.push(Op::read(at, 8, 2).after_load());
            self.end = now;
            return *n < LOADS;
        }
        if self.asleep {
            out.push(Op::read(at, 8, 2));
            out.push(Op::mark(Kind::Sleep, self.gap_ns));
        } else {
            // About one instruction in half a nanosecond.
            out.push(Op::read(at, 8, 2 * self.gap_ns as u32));
        }
        self.loads[0] < LOADS
    }
}

struct InTurn(u32);

impl Pager for InTurn {
    fn page_bytes(&self) -> u64 {
        2 << 20
    }

    fn fault(&mut self, _: &Fault) -> Result<u32, OutOfFrames> {
        self.0 += 1;
        Ok(self.0 - 1)
    }

    fn unmap(&mut self, _: u64, _: u32) {}
}

/// Nanoseconds of a load of the chase.
fn chase(machine: &Machine, others: usize, asleep: bool) -> f64 {
    let mut program = Beside {
        others,
        gap_ns: 10_000,
        asleep,
        loads: [0; 16],
        end: 0,
    };
    let options = Options::default();
    let mut running: [&mut dyn Program; 1] = [&mut program];
    model::run(machine, &mut InTurn(0), &mut running, &options, &mut |_| {
        true
    })
    .unwrap();
    program.end as f64 / LOADS as f64
}

#[test]
fn threads_that_ask_for_next_to_nothing_hold_nobody_up() {
    let mut machine = Machine::load("optane-8260").unwrap();
    machine.os.fault_ns = 0.0;
    machine.prefetch.streams = 0;
    let alone = chase(&machine, 0, true);
    for asleep in [false, true] {
        let beside = chase(&machine, 15, asleep);
        assert!(
            (beside / alone - 1.0).abs() < 0.03,
            "a load takes {alone:.1} ns alone, {beside:.1} ns beside 15 threads that rest (asleep: {asleep})"
        );
    }
}
