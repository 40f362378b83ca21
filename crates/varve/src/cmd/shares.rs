//! `--fast 10%,25%`: heap plans with shares of the memory that a program takes as fast memory, one share after the other.

use varve_report::fmt::Format;
use varve_report::{Axis, Chart, Data, Series, fmt};

/// The plan that has everything in fast memory. What the program takes is what it takes under this one, which has no limit.
pub const BASE: &str = "dram";

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

/// Runs of plans, each with shares of fast memory. The first run is that of [`BASE`].
pub struct Shares {
    plans: Vec<String>,
    /// Shares, in %.
    percents: Vec<f64>,
}

impl Shares {
    /// Plans other than [`BASE`] with each of the shares, in %.
    pub fn new(mut plans: Vec<String>, percents: &[f64]) -> Shares {
        plans.retain(|plan| plan != BASE);
        Shares {
            plans,
            percents: percents.to_vec(),
        }
    }

    /// The plan of each run.
    pub fn runs(&self) -> Vec<String> {
        let limited = self.percents.iter().flat_map(|_| self.plans.clone());
        std::iter::once(BASE.into()).chain(limited).collect()
    }

    /// What each run is called.
    pub fn names(&self) -> Vec<String> {
        let limited = self.percents.iter().flat_map(|&percent| {
            let name = move |plan: &String| self.name(plan, percent);
            self.plans.iter().map(name)
        });
        std::iter::once(BASE.into()).chain(limited).collect()
    }

    fn name(&self, plan: &str, percent: f64) -> String {
        match self.percents.len() {
            1 => plan.into(),
            _ => format!("{plan} at {percent}%"),
        }
    }

    /// Fast memory of each run after the first, bytes, if the program takes `most` bytes.
    pub fn limits(&self, most: u64) -> Vec<u64> {
        let of = |percent: &f64| vec![(most as f64 * percent / 100.0) as u64; self.plans.len()];
        self.percents.iter().flat_map(of).collect()
    }

    /// What the shares came to.
    pub fn note(&self, instances: u32, most_bytes: u64) -> String {
        let each = match instances {
            1 => "",
            _ => " of each instance",
        };
        let sizes: Vec<String> = self
            .percents
            .iter()
            .map(|percent| {
                let bytes = most_bytes as f64 * percent / 100.0;
                format!("{percent}% is {}", fmt::bytes(bytes))
            })
            .collect();
        format!(
            "--fast {}{each}: a share of the {} that the program takes with everything in fast memory (plan `{BASE}`, which has no \
             limit). Objects are limited so; tables and compiled code come on top.",
            sizes.join(", "),
            fmt::bytes(most_bytes as f64)
        )
    }

    /// The same for programs whose pages count, not objects alone.
    pub fn note_native(&self, most_bytes: u64) -> String {
        let sizes: Vec<String> = self
            .percents
            .iter()
            .map(|percent| {
                let bytes = most_bytes as f64 * percent / 100.0;
                format!("{percent}% is {}", fmt::bytes(bytes))
            })
            .collect();
        format!(
            "--fast {}: a share of the {} of pages that the program takes at most (plan `{BASE}`, which has no limit).",
            sizes.join(", "),
            fmt::bytes(most_bytes as f64)
        )
    }

    /// Slowdown by share of fast memory, a line for each plan; none of a single share. `slowdown` tells that of a run by its name.
    pub fn chart(&self, program: &str, slowdown: impl Fn(&str) -> Option<f64>) -> Option<Chart> {
        if self.percents.len() < 2 {
            return None;
        }
        let mut percents = self.percents.clone();
        percents.sort_by(f64::total_cmp);
        let lines = self.plans.iter().map(|plan| {
            let of = |&percent: &f64| slowdown(&self.name(plan, percent)).unwrap_or(f64::NAN);
            let slowdowns = percents.iter().map(of).collect();
            Series::new(plan, percents.clone(), slowdowns)
        });
        let chart = Chart::new(
            "slowdown",
            format!(
                "Slowdown of {} by the share of its memory that is DRAM",
                program
            ),
            Axis::new("DRAM, share of the program's memory", "", Format::Percent)
                .between(0.0, None),
            Axis::new("slowdown", "x all in DRAM", Format::Number).between(1.0, None),
            Data::Lines(lines.collect()),
        );
        Some(chart)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(percents: &[f64]) -> Shares {
        let plans = ["slow", "dram", "kg-n"].map(String::from);
        Shares::new(plans.to_vec(), percents)
    }

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

    #[test]
    fn each_plan_runs_with_each_share_and_the_one_without_a_limit_once() {
        let two = shares(&[10.0, 25.0]);
        assert_eq!(two.runs(), ["dram", "slow", "kg-n", "slow", "kg-n"]);
        assert_eq!(
            two.names(),
            [
                "dram",
                "slow at 10%",
                "kg-n at 10%",
                "slow at 25%",
                "kg-n at 25%"
            ]
        );
        assert_eq!(two.limits(1000), [100, 100, 250, 250]);
        assert_eq!(shares(&[25.0]).names(), ["dram", "slow", "kg-n"]);
    }
}
