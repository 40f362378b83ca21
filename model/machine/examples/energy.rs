//! Power of one DIMM by the time between accesses, published beside ours: Olson et al., TACO 2018, section 6 and figure 3.
//!
//! `cargo run --release -p varve-machine --example energy`
//!
//! MemBench as the paper describes it: twelve threads on one socket each store into one object after the other of their
//! part of an array that lies on one DIMM, with a delay between two stores. Nothing here is an input to the machine
//! file.

use varve_access::{Fault, Kind, Op, OutOfFrames, Pager, Program};
use varve_machine::Machine;
use varve_machine::energy::Energy;
use varve_machine::model::{self, Options};

const MACHINE: &str = "haswell-2620v3";
const THREADS: u64 = 12;
/// An object with one integer: HotSpot's header of 12 B and 4 B.
const OBJECT: u64 = 16;
/// Objects of one thread's part: 2.5 GB in all.
const PART: u64 = 2_500_000_000 / OBJECT / THREADS;
/// Objects of each thread before anything is measured: three times the last level cache, so that it writes back.
const WARM: u64 = 3 * (15 << 20) / OBJECT / THREADS;
/// Objects of each thread that are measured.
const MEASURED: u64 = 1_000_000;

struct MemBench {
    delay_ns: u64,
    done: Vec<u64>,
}

impl Program for MemBench {
    fn name(&self) -> String {
        "membench".into()
    }
    fn threads(&self) -> usize {
        THREADS as usize
    }
    fn fill(&mut self, t: usize, _: u64, out: &mut Vec<Op>) -> bool {
        for _ in 0..64 {
            let n = self.done[t];
            if n == WARM {
                out.push(Op::mark(Kind::Barrier, 0));
                out.push(Op::mark(Kind::Phase, 1));
            }
            let object = t as u64 * PART + n % PART;
            out.push(Op::write((1 << 32) + object * OBJECT + 12, 4, 4));
            if self.delay_ns > 0 {
                out.push(Op::mark(Kind::Sleep, self.delay_ns));
            }
            self.done[t] += 1;
        }
        self.done[t] < WARM + MEASURED
    }
}

/// Frames in the order of first touches: without interleaving, all on the first DIMM.
struct FirstDimm(u32);

impl Pager for FirstDimm {
    fn page_bytes(&self) -> u64 {
        2 << 20
    }
    fn fault(&mut self, _: &Fault) -> Result<u32, OutOfFrames> {
        self.0 += 1;
        Ok(self.0 - 1)
    }
    fn unmap(&mut self, _: u64, _: u32) {}
}

/// One delay.
struct Point {
    delay_ns: u64,
    mbps: f64,
    /// W of the DIMM that is used, and of one of its socket that is not.
    used: f64,
    idle: f64,
}

fn measure(m: &Machine, delay_ns: u64) -> Point {
    let mut program = MemBench {
        delay_ns,
        done: vec![0; THREADS as usize],
    };
    let run = model::run(
        m,
        &mut FirstDimm(0),
        &mut [&mut program],
        &Options::default(),
        &mut |_| true,
    )
    .expect("2.5 GB fit the machine");
    let phase = run.last();
    let e = Energy::of_phase(m, phase).expect("the machine has currents");
    let lines = phase.channels[0][0].dram;
    let watts = |channel: usize| e.sockets[0][channel].total() / e.seconds;
    Point {
        delay_ns,
        mbps: (lines.reads + lines.writes) as f64 * 64.0 / phase.ns() as f64 * 1e3,
        used: watts(0),
        idle: watts(3),
    }
}

fn main() {
    let m = Machine::load(MACHINE).expect("a built-in machine");
    println!("{MACHINE}: power of one DIMM by the delay between two stores of a thread");
    println!("  delay (us)  bandwidth (MB/s)  power (W)  over an idle DIMM");
    let mut points = Vec::new();
    for delay_ns in [0, 250, 2_500, 12_000, 100_000, 1_000_000] {
        let p = measure(&m, delay_ns);
        println!(
            "  {:10.2}  {:16.1}  {:9.2}  {:17.2}",
            p.delay_ns as f64 / 1e3,
            p.mbps,
            p.used,
            p.used / p.idle
        );
        points.push(p);
    }
    let at = |delay_ns| points.iter().find(|p| p.delay_ns == delay_ns).unwrap();
    let full = at(0);
    println!();
    println!(
        "{:44}  {:>9}  {:>6}  {:>8}",
        "", "published", "ours", "residual"
    );
    let row = |what: &str, bound: &str, published: f64, ours: f64| {
        println!(
            "{what:44}  {:>9}  {ours:6.2}  {:>+6.0} %",
            format!("{bound}{published}"),
            100.0 * (ours / published - 1.0)
        );
    };
    println!("Olson et al., TACO 2018, section 6");
    row("  idle over fully active", "~", 0.15, full.idle / full.used);
    // The paper names 2.5 us for the first and 0.1 ms for the second, at which its counters saw other traffic as well:
    // bandwidths are compared, not delays.
    row("  160 MB/s over idle", ">", 4.0, at(2_500).used / full.idle);
    row("  32 MB/s over idle", ">", 3.0, at(12_000).used / full.idle);
    println!(
        "a dual-rank DIMM per channel of a Xeon E5-2690 v3 (McCalpin, TACC/HPCPerfStats issue 9, 2016), W"
    );
    row("  idle; ours in self-refresh", "", 0.92, full.idle);
    // Whether that machine's firmware allows self-refresh is not said.
    let mut awake = m.clone();
    awake.dram.selfrefresh_after_ns = 1e12;
    let powerdown = measure(&awake, 12_000).idle;
    row("  idle; ours in power-down", "", 0.92, powerdown);
    row(
        "  STREAM; ours the stores without delay",
        "",
        4.52,
        full.used,
    );
}
