//! Cost of energy accounting in the model: the same streams on a machine whose file has no energy data, with energy at
//! the end of the run, and with power over time.
//!
//! ```text
//! cargo run --release -p varve-machine --example energy_cost                processor time, medians of interleaved runs
//! valgrind --tool=callgrind target/release/examples/energy_cost random none   instructions of one run
//! valgrind --tool=callgrind target/release/examples/energy_cost random sum
//! valgrind --tool=callgrind target/release/examples/energy_cost random series
//! ```

#[path = "../benches/pattern/mod.rs"]
mod pattern;

use pattern::{InOrder, Pattern};
use varve_access::Kind;
use varve_machine::Machine;
use varve_machine::energy::{self, Energy};
use varve_machine::model::{self, Options};

/// Energy figures that a run is asked for.
#[derive(Clone, Copy, PartialEq)]
enum Asked {
    /// Time alone, of a machine without energy data.
    None,
    /// The energy of the whole run.
    Sum,
    /// Power over time as well, in spans of [`SPAN_NS`].
    Series,
}

const ALL: [(&str, Asked); 3] = [
    ("none", Asked::None),
    ("sum", Asked::Sum),
    ("series", Asked::Series),
];

/// Span of virtual time for one value of power: as `varve run --plan` draws it, or finer.
const SPAN_NS: u64 = 100_000;

/// Name, distance of an access from the last (0: random lines), kind, threads, accesses.
const STREAMS: [(&str, u64, Kind, usize, u64); 3] = [
    ("random", 0, Kind::Read, 1, 400_000),
    ("stream", 8, Kind::Read, 1, 4_000_000),
    ("updates", 0, Kind::Update, 12, 400_000),
];

/// Runs a stream. Returns the energy in J, or 0 where none is asked for.
fn run(stream: &(&str, u64, Kind, usize, u64), asked: Asked) -> f64 {
    let mut machine = Machine::load("haswell-2620v3").expect("a built-in machine");
    if asked == Asked::None {
        machine.dram.power = None;
    }
    let &(_, step, kind, threads, accesses) = stream;
    let mut program = Pattern::new(1 << 30, step, kind, threads, accesses);
    let mut pager = InOrder {
        page_bytes: 4096,
        next: 0,
    };
    let options = Options {
        snapshot_ns: if asked == Asked::Series { SPAN_NS } else { 0 },
        per_core: 2,
        ..Options::default()
    };
    let ran = model::run(
        &machine,
        &mut pager,
        &mut [&mut program],
        &options,
        &mut |_| true,
    )
    .expect("the pattern fits the machine");
    let sum = || Energy::of(&machine, &ran).expect("the machine has its data");
    match asked {
        Asked::None => 0.0,
        Asked::Sum => sum().total(),
        Asked::Series => {
            let spans = energy::series(&machine, &ran).expect("as above");
            spans
                .iter()
                .map(|s| s.energy.total())
                .sum::<f64>()
                .max(sum().total())
        }
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
    let given: Vec<String> = std::env::args().skip(1).collect();
    if let [stream, asked] = &given[..] {
        let stream = STREAMS.iter().find(|s| s.0 == stream);
        let asked = ALL.iter().find(|a| a.0 == asked);
        let (Some(stream), Some(asked)) = (stream, asked) else {
            eprintln!(
                "energy_cost: give one of random, stream, updates and one of none, sum, series"
            );
            std::process::exit(2);
        };
        println!("{:.6} J", run(stream, asked.1));
        return;
    }
    for stream in &STREAMS {
        let mut times = [const { Vec::new() }; 3];
        for _ in 0..9 {
            for ((_, asked), times) in ALL.iter().zip(&mut times) {
                let begin = cpu_seconds();
                run(stream, *asked);
                times.push(cpu_seconds() - begin);
            }
        }
        let median = |times: &mut Vec<f64>| {
            times.sort_by(f64::total_cmp);
            times[times.len() / 2]
        };
        let [none, sum, series] = times.each_mut().map(median);
        println!(
            "{:<8} {:>7.1} ms   energy {:>+5.1} %   power over time {:>+5.1} %",
            stream.0,
            1e3 * none,
            1e2 * (sum / none - 1.0),
            1e2 * (series / none - 1.0)
        );
    }
}
