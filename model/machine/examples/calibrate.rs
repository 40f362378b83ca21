//! The classic curves of a machine on the model, published beside ours, and the errors of each curve.
//!
//! `cargo run --release -p varve-machine --example calibrate -- [MACHINE] [full]`

use varve_machine::Machine;
use varve_machine::calibrate::{Effort, published, summaries, table};

fn main() {
    let mut args = std::env::args().skip(1);
    let name = args.next().unwrap_or_else(|| "optane-8260".into());
    let effort = match args.next().as_deref() {
        Some("full") => Effort::Full,
        _ => Effort::Quick,
    };
    let only = args.next().unwrap_or_default();
    let machine = match Machine::load(&name) {
        Ok(m) => m,
        Err(e) => {
            eprintln!("{e}");
            std::process::exit(1);
        }
    };
    let mut ours = Vec::new();
    for m in varve_machine::calibrate::measurements(&machine, effort) {
        if m.id.contains(&only) {
            ours.push(m.run());
        }
    }
    let rows = table(&ours, &published(&name));
    for c in &ours {
        println!("{} ({} -> {})", c.id, c.axis, c.unit);
        for p in &c.points {
            println!("    {:>28} {:10.2}", p.at, p.value);
        }
    }
    println!();
    for r in &rows {
        println!(
            "{:24} {:>36} {:8.2} {:8} {:>7} %{}",
            r.curve,
            r.at,
            r.published,
            r.ours.map_or("-".into(), |v| format!("{v:.2}")),
            r.error_percent.map_or("-".into(), |e| format!("{e:+.0}")),
            if r.is_input { "  input" } else { "" }
        );
    }
    println!();
    for s in summaries(&rows) {
        println!(
            "{:24} {:3} points, {} not reached; median {:4.0} %, worst {:4.0} % at {}",
            s.curve, s.points, s.missing, s.median_percent, s.worst_percent, s.worst_at
        );
    }
}
