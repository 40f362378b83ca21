//! The sentence at the end of a comparison: which policy to use, and what it saves.

use super::table::speed;
use varve_report::fmt;
use varve_run::RunResult;

/// Policies that a system can have, the simplest first: of two that are equally good the simpler one is advised.
/// `oracle` and `fast` are limits, not policies, and `slow` is a floor. Under a DRAM cache `first-touch` and `interleave`
/// are not to be had either: they take frames in order, which only a freshly booted system has.
const SIMPLEST_FIRST: [&str; 6] = [
    "first-touch",
    "interleave",
    "random",
    "static",
    "dynamic",
    "hotset",
];

/// Within this factor two speeds count as equal.
const EQUAL: f64 = 1.03;

/// One or two sentences, or none when there is nothing to choose from.
pub fn advice(results: &[RunResult]) -> Vec<String> {
    let (_, rate) = speed(results);
    let base = |r: &RunResult| r.policy.split(':').next().unwrap_or_default().to_string();
    let to_be_had = |r: &&RunResult| {
        let name = base(r);
        let fresh_only =
            r.placement.bins > 0 && ["first-touch", "interleave"].contains(&name.as_str());
        SIMPLEST_FIRST.contains(&name.as_str()) && !fresh_only
    };
    let mut real: Vec<&RunResult> = results.iter().filter(to_be_had).collect();
    real.sort_by_key(|r| SIMPLEST_FIRST.iter().position(|p| *p == base(r)));
    if real.len() < 2 {
        return Vec::new();
    }
    // Under a DRAM cache nobody can choose to have unfragmented memory: `random` is what a running system has.
    if real.iter().any(|r| r.placement.bins > 0) && real.iter().any(|r| base(r) == "random") {
        real.retain(|r| !["first-touch", "interleave"].contains(&base(r).as_str()));
    }
    let best = real.iter().map(|r| rate(r)).fold(0.0, f64::max);
    let Some(chosen) = real.iter().find(|r| rate(r) * EQUAL >= best) else {
        return Vec::new();
    };
    // What a system does today: fragmented Linux under a DRAM cache, first touch on nodes of their own.
    let today = if chosen.placement.bins > 0 {
        "random"
    } else {
        "first-touch"
    };
    let Some(linux) = real.iter().find(|r| base(r) == today) else {
        return vec![format!("Advice: use `{}`.", chosen.policy)];
    };
    let gain = rate(chosen) / rate(linux);
    let text = if chosen.policy == linux.policy || gain < EQUAL {
        let faster = 100.0 * (EQUAL - 1.0);
        let why = match linux.slow_share {
            0.0 => "all that the program reads fits into fast memory.".into(),
            share if share < 0.5 => format!(
                "no other policy here is more than {faster:.0} % faster, and slow memory serves only {} of the memory reads.",
                percent(share)
            ),
            share => format!(
                "no other policy here is more than {faster:.0} % faster. Slow memory still serves {} of the memory reads: more fast \
                 memory would help, another policy does not.",
                percent(share)
            ),
        };
        format!(
            "Advice: stay with `{}` (what Linux does): {why}",
            linux.policy
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
            if chosen.moved_bytes == 0 {
                " and no daemon"
            } else {
                ""
            }
        )
    };
    vec![text]
}

fn percent(share: f64) -> String {
    format!("{} %", fmt::significant(100.0 * share, 2))
}
