//! How fast the model is on this host: accesses per second of processor time, median of several runs.
//!
//! `cargo run --release -p varve-machine --example speed`

#[path = "../benches/pattern/mod.rs"]
mod pattern;

use pattern::{InOrder, Pattern};
use varve_machine::model::{self, Options};
use varve_machine::{Kind, Machine};

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
    let case = |name: &str, machine: &str, page: u64, bytes: u64, step, kind, threads, n: u64| {
        if !name.contains(&only) {
            return;
        }
        let m = Machine::load(machine).expect("a built-in machine");
        let mut rates = Vec::new();
        let mut note = String::new();
        for _ in 0..runs {
            let mut program = Pattern::new(bytes, step, kind, threads, n);
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
        8,
        Kind::Read,
        1,
        20_000_000,
    );
    case(
        "random, 1 GiB, 1 thread",
        mm,
        2 << 20,
        1 << 30,
        0,
        Kind::Read,
        1,
        5_000_000,
    );
    case(
        "random, 1 GiB, 4 KiB pages",
        mm,
        4096,
        1 << 30,
        0,
        Kind::Read,
        1,
        5_000_000,
    );
    case(
        "random updates, 1 GiB, 16 threads",
        mm,
        2 << 20,
        1 << 30,
        0,
        Kind::Update,
        16,
        5_000_000,
    );
    case(
        "random updates, 96 GiB, 16 threads",
        mm,
        2 << 20,
        96 << 30,
        0,
        Kind::Update,
        16,
        5_000_000,
    );
    case(
        "behind the caches, 1 GiB, 1 thread",
        mm,
        2 << 20,
        1 << 30,
        64,
        Kind::NtWrite,
        1,
        10_000_000,
    );
    case(
        "behind the caches, 48 GiB, 1 thread",
        mm,
        2 << 20,
        48 << 30,
        64,
        Kind::NtWrite,
        1,
        10_000_000,
    );
    case(
        "random, 1 GiB, flat DRAM",
        "optane-6230",
        2 << 20,
        1 << 30,
        0,
        Kind::Read,
        1,
        5_000_000,
    );
    case(
        "stream, 1 GiB, flat DRAM",
        "optane-6230",
        2 << 20,
        1 << 30,
        8,
        Kind::Read,
        1,
        20_000_000,
    );
    case(
        "nt stream, 1 GiB, flat DRAM, 4 thr",
        "optane-6230",
        2 << 20,
        1 << 30,
        64,
        Kind::NtWrite,
        4,
        5_000_000,
    );
}
