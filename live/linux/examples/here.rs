//! Prints what this machine is and what it lets us do.

fn main() {
    for c in varve_live::doctor() {
        println!(
            "{:<22} {:<7} {}{}{}",
            c.name,
            format!("{:?}", c.available),
            c.why,
            if c.remedy.is_empty() { "" } else { " -> " },
            c.remedy
        );
    }
    println!(
        "{:#?}",
        varve_live::probe(&varve_live::ProbeOptions::default())
    );
}
