//! How fast the model is on this host: accesses per second of processor time, median of several runs.
//!
//! `cargo run --release -p varve-machine --example speed -- [NAME [RUNS [ACCESSES]]]`: the cases whose names contain NAME,
//! and how often and how long each is run. `bench/model/run` counts their instructions.

#[path = "../benches/pattern/mod.rs"]
mod pattern;

use pattern::{InOrder, Pattern};
use varve_access::Kind;
use varve_machine::Machine;
use varve_machine::model::{self, Options};

/// A program and its machine.
struct Case {
    name: &'static str,
    machine: &'static str,
    page_bytes: u64,
    /// Footprint.
    bytes: u64,
    /// Distance of one access from the last, 0 for random lines.
    step: u64,
    kind: Kind,
    threads: usize,
    /// Instances that it stands for.
    instances: u32,
    accesses: u64,
}

const FLAT: &str = "optane-6230";
const CACHED: &str = "optane-6230-memory-mode";

/// Random reads of one thread on flat DRAM, from which most cases differ a little.
const RANDOM: Case = Case {
    name: "random, 1 GiB, flat DRAM",
    machine: FLAT,
    page_bytes: 2 << 20,
    bytes: 1 << 30,
    step: 0,
    kind: Kind::Read,
    threads: 1,
    instances: 1,
    accesses: 5_000_000,
};

const CASES: [Case; 12] = [
    Case {
        name: "stream, cache-resident, 1 thread",
        machine: CACHED,
        bytes: 16 << 10,
        step: 8,
        accesses: 20_000_000,
        ..RANDOM
    },
    Case {
        name: "random, 1 GiB, 1 thread",
        machine: CACHED,
        ..RANDOM
    },
    Case {
        name: "random, 1 GiB, 4 KiB pages",
        machine: CACHED,
        page_bytes: 4096,
        ..RANDOM
    },
    Case {
        name: "random updates, 1 GiB, 16 threads",
        machine: CACHED,
        kind: Kind::Update,
        threads: 16,
        ..RANDOM
    },
    Case {
        name: "random updates, 96 GiB, 16 threads",
        machine: CACHED,
        bytes: 96 << 30,
        kind: Kind::Update,
        threads: 16,
        ..RANDOM
    },
    Case {
        name: "behind the caches, 1 GiB, 1 thread",
        machine: CACHED,
        step: 64,
        kind: Kind::NtWrite,
        accesses: 10_000_000,
        ..RANDOM
    },
    Case {
        name: "behind the caches, 48 GiB, 1 thread",
        machine: CACHED,
        bytes: 48 << 30,
        step: 64,
        kind: Kind::NtWrite,
        accesses: 10_000_000,
        ..RANDOM
    },
    RANDOM,
    Case {
        name: "stream, 1 GiB, flat DRAM",
        step: 8,
        accesses: 20_000_000,
        ..RANDOM
    },
    Case {
        name: "nt stream, 1 GiB, flat DRAM, 4 thr",
        step: 64,
        kind: Kind::NtWrite,
        threads: 4,
        ..RANDOM
    },
    Case {
        name: "32 instances, random reads",
        instances: 32,
        accesses: 1_000_000,
        ..RANDOM
    },
    Case {
        name: "32 instances, random updates",
        kind: Kind::Update,
        instances: 32,
        accesses: 1_000_000,
        ..RANDOM
    },
];

/// Processor time of this process, s: other work on a shared host does not count.
fn cpu_seconds() -> f64 {
    // SAFETY: an all-zero timespec is valid, and the call only writes to it.
    let mut t: libc::timespec = unsafe { std::mem::zeroed() };
    // SAFETY: as above.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut t) };
    t.tv_sec as f64 + t.tv_nsec as f64 / 1e9
}

fn run(case: &Case) -> model::Outcome {
    let machine = Machine::load(case.machine).expect("a built-in machine");
    let mut program = Pattern::new(
        case.bytes,
        case.step,
        case.kind,
        case.threads,
        case.accesses,
    );
    let mut pager = InOrder {
        page_bytes: case.page_bytes,
        next: 0,
    };
    let options = Options {
        replicas: case.instances,
        ..Options::default()
    };
    model::run(
        &machine,
        &mut pager,
        &mut [&mut program],
        &options,
        &mut |_| true,
    )
    .expect("the pattern fits the machine")
}

fn main() {
    let mut words = std::env::args().skip(1);
    let only = words.next().unwrap_or_default();
    let mut number = || words.next().and_then(|n| n.parse().ok());
    let (runs, accesses) = (number().unwrap_or(3), number());
    for case in CASES.into_iter().filter(|c| c.name.contains(&only)) {
        let n = accesses.unwrap_or(case.accesses);
        let case = Case {
            accesses: n,
            ..case
        };
        let mut rates = Vec::new();
        let mut note = String::new();
        for _ in 0..runs {
            let begin = cpu_seconds();
            let out = run(&case);
            rates.push(n as f64 / (cpu_seconds() - begin) / 1e6);
            let c = out.last().counts;
            note = format!(
                "{:.1} ns/access/thread, LLC misses {:.2}, slow {:.2}",
                out.ns as f64 * case.threads as f64 / n as f64,
                c.llc_misses as f64 / n as f64,
                c.slow as f64 / c.llc_misses.max(1) as f64
            );
        }
        rates.sort_by(f64::total_cmp);
        println!(
            "{:34} {:8.2} M/s   model: {note}",
            case.name,
            rates[rates.len() / 2]
        );
    }
}
