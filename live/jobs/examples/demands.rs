//! Demands of every program of `varve_workloads::apps` on a modelled machine, by threads and memory.
//!
//!     cargo run --release -p varve-jobs --example demands -- optane-6230n

use varve_jobs::model::{ModelSpec, profile::profile};
use varve_jobs::{Memory, group};
use varve_machine::Machine;
use varve_run::Keep;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let machine = args.next().unwrap_or_else(|| "optane-6230n".into());
    let scale: u32 = args.next().map_or(Ok(512), |s| s.parse())?;
    let only: Vec<String> = args.collect();
    let names = varve_workloads::apps::ENTRIES.iter().map(|e| e.name);
    let text: String = names
        .filter(|n| only.is_empty() || only.iter().any(|o| o == n))
        .map(|n| format!("[[program]]\nname = \"{n}\"\nworkload = \"{n}\"\n"))
        .collect();
    let group = group::parse(&text, "demands.toml").map_err(varve_jobs::Error::Group)?;
    let mut spec = ModelSpec::new(Machine::load(&machine)?);
    spec.scale = scale;
    let host = spec.host(&group)?;
    println!(
        "{:14} {:4} {:>7} {:>8} {:>8} {:>8} {:>8}",
        "program", "mem", "threads", "s", "read", "written", "host s"
    );
    for i in 0..group.programs.len() {
        let t = std::time::Instant::now();
        let d = profile(&group, i, &spec, &host, &Keep::nothing(), &mut |_| true)?;
        for memory in Memory::ALL {
            for p in d.curve(memory) {
                println!(
                    "{:14} {memory:4} {:7} {:8.2} {:8.2} {:8.2}",
                    d.name,
                    p.threads,
                    p.seconds,
                    p.read_gbps.unwrap_or(0.0),
                    p.write_gbps.unwrap_or(0.0)
                );
            }
        }
        let slow = |t| d.slowdown(t).unwrap_or(0.0);
        println!(
            "{:14} slowdown {:.2} with 1, {:.2} with 8; {:.1} s here",
            d.name,
            slow(1),
            slow(8),
            t.elapsed().as_secs_f64()
        );
    }
    Ok(())
}
