//! Prints how fast workloads produce their accesses, without a machine behind them:
//! `cargo run --release -p varve-workloads --example fill -- bc:vertices=1048576,threads=4`

use std::time::Instant;

use varve_access::{Kind, Op};

fn main() -> Result<(), varve_spec::Error> {
    for line in std::env::args().skip(1) {
        let start = Instant::now();
        let mut program = varve_workloads::build(&line)?;
        println!("{line}: built in {:.2} s", start.elapsed().as_secs_f64());
        let threads = program.threads();
        let footprint: u64 = program.regions().iter().map(|region| region.bytes).sum();
        let mut waiting = vec![false; threads];
        let mut ended = vec![false; threads];
        let mut out: Vec<Op> = Vec::with_capacity(512);
        let (mut ops, mut instructions, mut largest) = (0u64, 0u64, 0);
        // Ops since the last barrier by thread, and what threads would wait at barriers if all ops took the same time.
        let mut since = vec![0u64; threads];
        let (mut longest, mut barriers) = (0u64, 0u64);
        let start = Instant::now();
        // At most ten seconds each: streams need not end.
        while ended.contains(&false) && start.elapsed().as_secs() < 10 {
            for thread in 0..threads {
                if waiting[thread] || ended[thread] {
                    continue;
                }
                out.clear();
                ended[thread] = !program.fill(thread, ops, &mut out);
                waiting[thread] = out.last().is_some_and(|op| op.kind == Kind::Barrier);
                ops += out.len() as u64;
                since[thread] += out.len() as u64;
                instructions += out.iter().map(|op| u64::from(op.instructions)).sum::<u64>();
                largest = largest.max(out.len());
            }
            if (0..threads).all(|thread| waiting[thread] || ended[thread]) {
                waiting.fill(false);
                longest += since.iter().max().unwrap_or(&0);
                barriers += 1;
                since.fill(0);
            }
        }
        let seconds = start.elapsed().as_secs_f64();
        println!(
            "  {:.2} GiB, {ops} ops in {seconds:.2} s: {:.2} ns per op, {:.2} instructions per op, at most {largest} ops at once",
            footprint as f64 / (1u64 << 30) as f64,
            seconds * 1e9 / ops as f64,
            instructions as f64 / ops as f64,
        );
        if barriers > 1 {
            let busy = ops as f64 / (longest.max(1) * threads as u64) as f64;
            println!(
                "  {barriers} barriers, {:.1} % of the time spent waiting at them if all ops took the same",
                100.0 * (1.0 - busy).max(0.0)
            );
        }
        for (name, value) in program.answers() {
            println!("  {name}: {value}");
        }
    }
    Ok(())
}
