//! The sentence at the end of a comparison: which policy to use, and what it saves.

use super::table::speed;
use varve_pages::policies::{self, policies};
use varve_report::fmt;
use varve_run::RunResult;

/// Within this factor two speeds count as equal.
const EQUAL: f64 = 1.03;

/// One or two sentences, or none when there is nothing to choose from.
pub fn advice(results: &[RunResult]) -> Vec<String> {
    let (_, rate) = speed(results);
    let cached = |r: &RunResult| r.placement.bins > 0;
    // Policies are listed from the simplest on.
    let order = |r: &RunResult| {
        let entry = policies::entry(&r.policy).ok()?;
        let place = policies().iter().position(|p| p.name == entry.name)?;
        entry.is_advised(cached(r)).then_some(place)
    };
    let mut real: Vec<&RunResult> = results.iter().filter(|r| order(r).is_some()).collect();
    real.sort_by_key(|r| order(r));
    if real.len() < 2 {
        return Vec::new();
    }
    let best = real.iter().map(|r| rate(r)).fold(0.0, f64::max);
    let Some(chosen) = real.iter().find(|r| rate(r) * EQUAL >= best) else {
        return Vec::new();
    };
    let does_today = |r: &&&RunResult| {
        let entry = policies::entry(&r.policy);
        entry.is_ok_and(|p| p.is_linux(cached(chosen)))
    };
    let Some(linux) = real.iter().find(does_today) else {
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
