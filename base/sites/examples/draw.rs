//! How many samples does a placement take? Draws samples from exact profiles, and compares where they put memory with where
//! the exact counts do.
//!
//! ```text
//! varve profile traces/sqlite-join.trace -o sqlite.sites
//! cargo run --release -p varve-sites --example draw -- sqlite.sites
//! ```

use std::path::Path;
use varve_sites::native::Profile;
use varve_sites::sampled::{agreement, draw};
use varve_sites::select::{Candidate, hot_sites, knapsack};
use varve_sites::{Counts, SitesFile};

type Plan = fn(&[Candidate], u64) -> Vec<(usize, u64)>;

const PLANS: [(&str, Plan); 2] = [("hot-sites", hot_sites), ("knapsack", knapsack)];
/// Budgets, percent of all peaks.
const BUDGETS: [u64; 3] = [10, 25, 50];
const SEEDS: u64 = 20;

fn place(plan: Plan, counts: &[Counts], budget: u64) -> Vec<u64> {
    let sites: Vec<Candidate> = counts.iter().map(Candidate::by_misses).collect();
    let mut bytes = vec![0; counts.len()];
    for (site, fast) in plan(&sites, budget) {
        bytes[site] = fast;
    }
    bytes
}

fn main() {
    let files: Vec<String> = std::env::args().skip(1).collect();
    if files.is_empty() {
        eprintln!("name profiles that `varve profile` has made, such as sqlite.sites");
        std::process::exit(2);
    }
    for file in files {
        let profile = match Profile::read(Path::new(&file)) {
            Ok(profile) => profile,
            Err(why) => {
                eprintln!("{why}");
                std::process::exit(2);
            }
        };
        show(&profile);
    }
}

/// Bytes with the same place, percent: the mean of all draws.
fn show(profile: &Profile) {
    let exact: Vec<Counts> = profile.sites.iter().map(|s| s.counts.clone()).collect();
    let sum = |of: fn(&Counts) -> u64| exact.iter().map(of).sum::<u64>();
    let (peak, misses) = (sum(|c| c.peak_bytes), sum(|c| c.misses + c.write_misses));
    println!(
        "\n{}: {} sites, {} KiB, {misses} misses",
        profile.program,
        exact.len(),
        peak >> 10
    );
    let names = PLANS
        .iter()
        .flat_map(|(plan, _)| BUDGETS.map(|b| format!("{plan} {b}%")));
    println!(
        "| rate | samples | {} |",
        names.collect::<Vec<_>>().join(" | ")
    );
    println!("|{}", "---|".repeat(2 + PLANS.len() * BUDGETS.len()));
    for power in 0..6 {
        let rate = 0.1f64.powi(power);
        let drawn: Vec<Vec<Counts>> = (0..SEEDS).map(|seed| draw(&exact, rate, seed)).collect();
        let samples = drawn.iter().flatten().map(|c| c.uses).sum::<u64>() / SEEDS;
        let mut line = format!("| 1/{} | {samples} |", 10u64.pow(power as u32));
        for (_, plan) in PLANS {
            for percent in BUDGETS {
                let budget = peak * percent / 100;
                let truth = place(plan, &exact, budget);
                let agreed = drawn
                    .iter()
                    .map(|d| agreement(&exact, &truth, &place(plan, d, budget)));
                line += &format!(" {:.1} |", 100.0 * agreed.sum::<f64>() / SEEDS as f64);
            }
        }
        println!("{line}");
    }
}
