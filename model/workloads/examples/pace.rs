//! Runs a workload without a machine and prints its mix of ops and how fast the host makes them:
//! `cargo run --release -p varve-workloads --example pace -- gups:bytes=1GiB,updates=4M`

use std::time::Instant;

use varve_access::{Kind, Op};

fn main() {
    let Some(line) = std::env::args().nth(1) else {
        for entry in varve_workloads::list() {
            println!("{:<12} {}", entry.name, entry.about);
        }
        return;
    };
    let start = Instant::now();
    let mut program = match varve_workloads::build(&line) {
        Ok(program) => program,
        Err(error) => {
            eprintln!("{error}");
            std::process::exit(1);
        }
    };
    println!("built in {:.2} s", start.elapsed().as_secs_f64());
    for region in program.regions() {
        println!(
            "  {:<24} {:>10.1} MiB",
            region.name,
            region.bytes as f64 / (1 << 20) as f64
        );
    }
    let threads = program.threads();
    let mut waiting = vec![false; threads];
    let mut ended = vec![false; threads];
    let mut counts = [0u64; Kind::ALL.len()];
    let (mut ops, mut instructions, mut dependent) = (0u64, 0u64, 0u64);
    let mut clocks = vec![0u64; threads];
    let mut out: Vec<Op> = Vec::with_capacity(256);
    let start = Instant::now();
    while !ended.iter().all(|&ended| ended) {
        if (0..threads).all(|thread| waiting[thread] || ended[thread]) {
            waiting.fill(false);
        }
        for thread in 0..threads {
            if waiting[thread] || ended[thread] {
                continue;
            }
            out.clear();
            ended[thread] = !program.fill(thread, clocks[thread], &mut out);
            clocks[thread] += 10 * out.len() as u64;
            ops += out.len() as u64;
            for op in &out {
                counts[op.kind as usize] += 1;
                instructions += u64::from(op.instructions);
                dependent += u64::from(op.dependent);
            }
            waiting[thread] = out.last().is_some_and(|op| op.kind == Kind::Barrier);
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "{ops} ops in {seconds:.2} s: {:.1} ns per op; {:.1} instructions per op; {:.1} % dependent",
        seconds * 1e9 / ops as f64,
        instructions as f64 / ops as f64,
        100.0 * dependent as f64 / ops as f64
    );
    for kind in Kind::ALL {
        if counts[kind as usize] > 0 {
            println!("  {kind:?}: {}", counts[kind as usize]);
        }
    }
    for (name, value) in program.answers() {
        println!("{name} = {value}");
    }
    if let Some(failure) = program.failure() {
        println!("failed: {failure}");
    }
}
