//! Runs a command live into nothing, as the fastest possible model would: `cargo run --release -p varve-trace --example on_model -- COMMAND...`
use varve_access::Program;
use varve_trace::host::{Recorder, RecorderOptions};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let command: Vec<_> = std::env::args_os().skip(1).collect();
    let start = std::time::Instant::now();
    let mut live = Recorder::start(&command, RecorderOptions::default())?.live();
    let mut out = Vec::with_capacity(4096);
    let mut alive = vec![true; live.threads()];
    let mut ops = 0u64;
    while alive.contains(&true) {
        for (thread, alive) in alive.iter_mut().enumerate().filter(|(_, alive)| **alive) {
            out.clear();
            *alive = live.fill(thread, 0, &mut out);
            ops += out.iter().filter(|op| op.kind.is_access()).count() as u64;
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    eprintln!(
        "{:.1} M accesses in {seconds:.2} s: {:.1} M/s",
        ops as f64 / 1e6,
        ops as f64 / seconds / 1e6
    );
    if let Some(failure) = live.failure() {
        eprintln!("{failure}");
    }
    Ok(())
}
