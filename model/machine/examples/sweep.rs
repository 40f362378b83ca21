//! Sequential bandwidth of `optane-8260` at the points that were published, and ours beside them.
//!
//! `cargo run --release -p varve-machine --example sweep -- [FILTER] [all]`: one line for each point whose
//! `memory/how/bytes/threads` contains FILTER, then a geometric mean of errors for each memory and operation. Without `all`
//! only every few points are measured, and none of those that are held back.

use std::collections::BTreeMap;
use varve_machine::Machine;
use varve_machine::calibrate::sweep::{measure, published};

fn main() {
    let mut args = std::env::args().skip(1);
    let filter = args.next().unwrap_or_default();
    let all = args.next().as_deref() == Some("all");
    let machine = Machine::load("optane-8260").expect("a built-in machine");
    // Sum of logarithms of errors and points, by group: decided with, and held back.
    let mut errors: BTreeMap<String, [(f64, u32); 2]> = BTreeMap::new();
    for p in published() {
        let id = format!("{}/{}/{}/{}", p.memory, p.how, p.bytes, p.threads);
        let few = !p.held_back && [64, 256, 4096, 65536].contains(&p.bytes);
        if !id.contains(&filter) || !(all || few) {
            continue;
        }
        let ours = measure(&machine, &p);
        let ratio = ours.gbps / p.gbps;
        let writes = match (p.write_ratio, ours.write_ratio) {
            (Some(p), Some(o)) => format!("  write ratio {p:.2} {o:.2}"),
            _ => String::new(),
        };
        if !all {
            println!(
                "{id:28} {:8.2} {:8.2} {ratio:6.2}{writes}",
                p.gbps, ours.gbps
            );
        }
        for group in [format!("{}/{}", p.memory, p.how), "~ all".into()] {
            let sums = &mut errors.entry(group).or_default()[usize::from(p.held_back)];
            sums.0 += ratio.ln().abs();
            sums.1 += 1;
        }
    }
    println!(
        "{:20} {:>14} {:>7} {:>14} {:>7}",
        "", "error, factor", "points", "held back", "points"
    );
    for (group, [open, held]) in errors {
        let mean = |s: (f64, u32)| (s.0 / f64::from(s.1.max(1))).exp();
        println!(
            "{group:20} {:14.3} {:7} {:14.3} {:7}",
            mean(open),
            open.1,
            mean(held),
            held.1
        );
    }
}
