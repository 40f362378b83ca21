//! The sentence at the end of a comparison: which policy to use, and what it saves.

use super::table::speed;
use varve_report::fmt;
use varve_run::RunResult;

/// Policies that a system can have, the simplest first: of two that are equally good the simpler one is advised.
/// `oracle` and `fast` are limits, not policies, and `slow` is a floor.
const SIMPLEST_FIRST: [&str; 6] = ["first-touch", "interleave", "random", "static", "dynamic", "hotset"];

/// Within this factor two speeds count as equal.
const EQUAL: f64 = 1.03;

/// One or two sentences, or none when there is nothing to choose from.
pub fn advice(results: &[RunResult]) -> Vec<String> {
    let (_, rate) = speed(results);
    let base = |r: &RunResult| r.policy.split(':').next().unwrap_or_default().to_string();
    let mut real: Vec<&RunResult> =
        results.iter().filter(|r| SIMPLEST_FIRST.contains(&base(r).as_str())).collect();
    real.sort_by_key(|r| SIMPLEST_FIRST.iter().position(|p| *p == base(r)));
    if real.len() < 2 {
        return Vec::new();
    }
    let best = real.iter().map(|r| rate(r)).fold(0.0, f64::max);
    let Some(chosen) = real.iter().find(|r| rate(r) * EQUAL >= best) else { return Vec::new() };
    // What a system does today: fragmented Linux under a DRAM cache, first touch on nodes of their own.
    let today = if chosen.placement.bins > 0 { "random" } else { "first-touch" };
    let Some(linux) = real.iter().find(|r| base(r) == today) else {
        return vec![format!("Advice: use `{}`.", chosen.policy)];
    };
    let gain = rate(chosen) / rate(linux);
    let text = if chosen.policy == linux.policy || gain < EQUAL {
        format!(
            "Advice: stay with `{}` (what Linux does); no policy is more than {:.0} % faster for this program here.",
            linux.policy,
            100.0 * (best / rate(linux) - 1.0).max(0.0)
        )
    } else {
        format!(
            "Advice: use `{}`: {} as fast as Linux today (`{}`), with {} instead of {} of the memory reads served by \
             slow memory{}.",
            chosen.policy,
            fmt::ratio(gain),
            linux.policy,
            percent(chosen.slow_share),
            percent(linux.slow_share),
            if chosen.moved_bytes == 0 { " and no daemon" } else { "" }
        )
    };
    vec![text]
}

fn percent(share: f64) -> String {
    format!("{} %", fmt::significant(100.0 * share, 2))
}
