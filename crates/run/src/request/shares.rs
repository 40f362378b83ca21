//! Shares of the memory that a program takes as fast memory, one after the other.

/// The plan that has everything in fast memory. What the program takes is what it takes under this one, which has no limit.
pub const BASE: &str = "dram";

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

    /// The plans that have a limit.
    pub fn plans(&self) -> &[String] {
        &self.plans
    }

    /// The shares, in %.
    pub fn percents(&self) -> &[f64] {
        &self.percents
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

    /// What the run of a plan with a share, in %, is called.
    pub fn name(&self, plan: &str, percent: f64) -> String {
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
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(percents: &[f64]) -> Shares {
        let plans = ["slow", "dram", "kg-n"].map(String::from);
        Shares::new(plans.to_vec(), percents)
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
