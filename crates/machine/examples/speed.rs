//! How fast the model is on this host: accesses per second of processor time, median of several runs.
//!
//! `cargo run --release -p varve-machine --example speed`

use varve_machine::model::{self, Options};
use varve_machine::{Fault, Kind, Machine, Op, OutOfFrames, Pager, Program};

/// Frames in the order of their first touch.
struct InOrder {
    page_bytes: u64,
    next: u32,
}

impl Pager for InOrder {
    fn page_bytes(&self) -> u64 {
        self.page_bytes
    }
    fn fault(&mut self, _: &Fault) -> Result<u32, OutOfFrames> {
        self.next += 1;
        Ok(self.next - 1)
    }
    fn unmap(&mut self, _: u64, _: u32) {}
}

/// Accesses over `bytes`: random, or a stream of 8 B loads.
struct Pattern {
    bytes: u64,
    random: bool,
    kind: Kind,
    threads: usize,
    left: Vec<u64>,
    at: Vec<u64>,
    state: Vec<u64>,
}

impl Pattern {
    fn new(bytes: u64, random: bool, kind: Kind, threads: usize, accesses: u64) -> Pattern {
        Pattern {
            bytes,
            random,
            kind,
            threads,
            left: vec![accesses / threads as u64; threads],
            at: (0..threads as u64)
                .map(|t| t * (bytes / threads as u64))
                .collect(),
            state: (1..=threads as u64).collect(),
        }
    }
}

impl Program for Pattern {
    fn name(&self) -> String {
        "pattern".into()
    }
    fn threads(&self) -> usize {
        self.threads
    }
    fn fill(&mut self, t: usize, _now: u64, out: &mut Vec<Op>) -> bool {
        let n = self.left[t].min(512);
        self.left[t] -= n;
        for _ in 0..n {
            let address = if self.random {
                let x = &mut self.state[t];
                *x = x
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                ((*x >> 33) * (self.bytes >> 6) >> 31) << 6
            } else {
                self.at[t] = (self.at[t] + 8) % self.bytes;
                self.at[t]
            };
            out.push(Op::new(self.kind, (1 << 32) + address, 8, 8));
        }
        self.left[t] > 0
    }
}

/// Processor time of this process, s: other work on a shared host does not count.
fn cpu_seconds() -> f64 {
    // SAFETY: an all-zero timespec is valid, and the call only writes to it.
    let mut t: libc::timespec = unsafe { std::mem::zeroed() };
    // SAFETY: as above.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut t) };
    t.tv_sec as f64 + t.tv_nsec as f64 / 1e9
}

fn main() {
    // An argument picks the cases whose name contains it, a second one the runs (for profilers).
    let only = std::env::args().nth(1).unwrap_or_default();
    let runs = std::env::args()
        .nth(2)
        .and_then(|n| n.parse().ok())
        .unwrap_or(3);
    let case = |name: &str, machine: &str, page: u64, bytes: u64, random, kind, threads, n: u64| {
        if !name.contains(&only) {
            return;
        }
        let m = Machine::load(machine).expect("a built-in machine");
        let mut rates = Vec::new();
        let mut note = String::new();
        for _ in 0..runs {
            let mut program = Pattern::new(bytes, random, kind, threads, n);
            let mut pager = InOrder {
                page_bytes: page,
                next: 0,
            };
            let begin = cpu_seconds();
            let out = model::run(
                &m,
                &mut pager,
                &mut [&mut program],
                &Options::default(),
                &mut |_| true,
            )
            .expect("the pattern fits the machine");
            rates.push(n as f64 / (cpu_seconds() - begin) / 1e6);
            let c = out.last().counts;
            note = format!(
                "{:.1} ns/access/thread, LLC misses {:.2}, slow {:.2}",
                out.ns as f64 * threads as f64 / n as f64,
                c.llc_misses as f64 / n as f64,
                c.slow as f64 / c.llc_misses.max(1) as f64
            );
        }
        rates.sort_by(f64::total_cmp);
        println!(
            "{name:34} {:7.1} M/s   model: {note}",
            rates[rates.len() / 2]
        );
    };
    let mm = "optane-6230-memory-mode";
    case(
        "stream, cache-resident, 1 thread",
        mm,
        2 << 20,
        16 << 10,
        false,
        Kind::Read,
        1,
        20_000_000,
    );
    case(
        "random, 1 GiB, 1 thread",
        mm,
        2 << 20,
        1 << 30,
        true,
        Kind::Read,
        1,
        5_000_000,
    );
    case(
        "random, 1 GiB, 4 KiB pages",
        mm,
        4096,
        1 << 30,
        true,
        Kind::Read,
        1,
        5_000_000,
    );
    case(
        "random updates, 1 GiB, 16 threads",
        mm,
        2 << 20,
        1 << 30,
        true,
        Kind::Update,
        16,
        5_000_000,
    );
    case(
        "random updates, 96 GiB, 16 threads",
        mm,
        2 << 20,
        96 << 30,
        true,
        Kind::Update,
        16,
        5_000_000,
    );
    case(
        "random, 1 GiB, flat DRAM",
        "optane-6230",
        2 << 20,
        1 << 30,
        true,
        Kind::Read,
        1,
        5_000_000,
    );
    case(
        "stream, 1 GiB, flat DRAM",
        "optane-6230",
        2 << 20,
        1 << 30,
        false,
        Kind::Read,
        1,
        20_000_000,
    );
    case(
        "nt stream, 1 GiB, flat DRAM, 4 thr",
        "optane-6230",
        2 << 20,
        1 << 30,
        false,
        Kind::NtWrite,
        4,
        5_000_000,
    );
}
