//! `--fast 10%,25%`: heap plans with shares of the memory that a program takes as fast memory, one share after the other.

use varve_report::fmt::Format;
use varve_report::{Axis, Chart, Data, Series, fmt};
pub use varve_run::request::{BASE, Shares};

/// Of runs that take less DRAM than another: the one with least DRAM among those that take at most `equal` times as long as [`BASE`], and
/// true; else the fastest, and false. Runs that differ by less than the model knows are equal, and the first of equals is the simplest.
pub fn least<R>(
    results: &[R],
    share: impl Fn(&R) -> f64,
    time: impl Fn(&R) -> f64,
    equal: f64,
) -> Option<(&R, bool)> {
    let shared = |r: &R| (1000.0 * share(r)).round() as u64;
    let slower = |r: &R| (200.0 * time(r)).round() as u64;
    let most = results.iter().map(shared).max()?;
    let less = results.iter().filter(|r| shared(r) < most);
    let near = less.clone().filter(|r| time(r) <= equal);
    let near = near.min_by_key(|r| (shared(r), slower(r)));
    near.map(|r| (r, true))
        .or_else(|| Some((less.min_by_key(|r| (slower(r), shared(r)))?, false)))
}

/// What each share comes to.
fn sizes(shares: &Shares, most_bytes: u64) -> String {
    let size = |percent: &f64| {
        let bytes = most_bytes as f64 * percent / 100.0;
        format!("{percent}% is {}", fmt::bytes(bytes))
    };
    let sizes: Vec<String> = shares.percents().iter().map(size).collect();
    sizes.join(", ")
}

/// What the shares came to.
pub fn note(shares: &Shares, instances: u32, most_bytes: u64) -> String {
    let each = match instances {
        1 => "",
        _ => " of each instance",
    };
    format!(
        "--fast {}{each}: a share of the {} that the program takes with everything in fast memory (plan `{BASE}`, which has no \
         limit). Objects are limited so; tables and compiled code come on top.",
        sizes(shares, most_bytes),
        fmt::bytes(most_bytes as f64)
    )
}

/// The same for programs whose pages count, not objects alone.
pub fn note_native(shares: &Shares, most_bytes: u64) -> String {
    format!(
        "--fast {}: a share of the {} of pages that the program takes at most (plan `{BASE}`, which has no limit).",
        sizes(shares, most_bytes),
        fmt::bytes(most_bytes as f64)
    )
}

/// Slowdown by share of fast memory, a line for each plan; none of a single share. `slowdown` tells that of a run by its name.
pub fn chart(
    shares: &Shares,
    program: &str,
    slowdown: impl Fn(&str) -> Option<f64>,
) -> Option<Chart> {
    if shares.percents().len() < 2 {
        return None;
    }
    let mut percents = shares.percents().to_vec();
    percents.sort_by(f64::total_cmp);
    let lines = shares.plans().iter().map(|plan| {
        let of = |&percent: &f64| slowdown(&shares.name(plan, percent)).unwrap_or(f64::NAN);
        let slowdowns = percents.iter().map(of).collect();
        Series::new(plan, percents.clone(), slowdowns)
    });
    let chart = Chart::new(
        "slowdown",
        format!(
            "Slowdown of {} by the share of its memory that is DRAM",
            program
        ),
        Axis::new("DRAM, share of the program's memory", "", Format::Percent).between(0.0, None),
        Axis::new("slowdown", "x all in DRAM", Format::Number).between(1.0, None),
        Data::Lines(lines.collect()),
    );
    Some(chart)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_run_with_least_dram_is_chosen_of_those_that_are_about_as_fast() {
        fn of<'r>(runs: &'r [(&str, f64, f64)]) -> Option<(&'r str, bool)> {
            least(runs, |r| r.1, |r| r.2, 1.03).map(|(r, near)| (r.0, near))
        }
        assert_eq!(of(&[("dram", 1.0, 1.0)]), None);
        assert_eq!(
            of(&[("dram", 1.0, 1.0), ("slow", 0.0, 1.2), ("kg-n", 0.4, 1.02)]),
            Some(("kg-n", true))
        );
        // What the model does not know is no difference.
        assert_eq!(
            of(&[("dram", 1.0, 1.0), ("a", 0.25, 1.021), ("b", 0.2499, 1.02)]),
            Some(("a", true))
        );
        assert_eq!(
            of(&[("dram", 1.0, 1.0), ("slow", 0.0, 1.2), ("kg-n", 0.4, 1.1)]),
            Some(("kg-n", false))
        );
    }
}
