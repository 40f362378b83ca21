//! Advice on native programs: whether slow memory matters to them at all, and which sites it gets.

use super::{EQUAL, Size, percent};
use crate::objects::{ObjectResult, PlacedSite};
use crate::pipeline::Compared;
use varve_machine::Machine;

/// Sites that are named.
const NAMED: usize = 3;

/// A run that takes at most this many times as long is nearly as fast.
const NEARLY: f64 = 1.05;

/// Advice for a program that fits into the last cache of the machine, so that it hardly goes to memory.
pub(crate) fn fits(
    machine: &Machine,
    base: &ObjectResult,
    slow: Option<&ObjectResult>,
    size: Size,
) -> Option<String> {
    let caches = machine.llc.bytes.0;
    if base.most_bytes == 0 || base.most_bytes > caches {
        return None;
    }
    let fits = format!(
        "Advice: its {} fit into the processor's last cache of {}",
        size(base.most_bytes),
        size(caches)
    );
    let slower = |slow: &ObjectResult| slow.slowdown(base);
    let more = |slow: &ObjectResult| percent((slower(slow) - 1.0).max(0.0));
    Some(match slow {
        Some(slow) if slower(slow) > NEARLY => format!(
            "{fits}. It goes to memory for the first access to each line, and for little else: all of it in slow memory takes {} more \
             time, and a longer run loses less.",
            more(slow)
        ),
        Some(slow) => format!(
            "{fits}, so that any memory will do. All of it in slow memory takes {} more time.",
            more(slow)
        ),
        // It did not run: nothing is known of slow memory.
        None => format!("{fits}."),
    })
}

/// How much of a run, and of the cost of slow memory, is the start-up before the steady state; none if no steady state was found.
pub(crate) fn start_up(base: &ObjectResult, slow: Option<&ObjectResult>) -> Option<String> {
    let steady = base.steady?;
    let part = format!(
        "Steady state: all figures are of {} of the accesses, and `whole run` is of all. The start-up before it, {}, accesses {} of the \
         pages for the first time",
        percent(steady.share),
        percent(steady.before),
        percent(steady.pages_before),
    );
    let cost = slow.and_then(|slow| {
        let whole = slow.steady?.whole_seconds - steady.whole_seconds;
        let outside = whole - (slow.seconds - base.seconds);
        // What costs no more than the model's accuracy has no shares.
        (whole > (EQUAL - 1.0) * steady.whole_seconds).then(|| outside / whole)
    });
    Some(match cost {
        Some(share) => format!(
            "{part}: it and the end have {} of what slow memory costs.",
            percent(share.clamp(0.0, 1.0))
        ),
        None => format!("{part}."),
    })
}

/// How much longer all but the steady state takes under a plan, where that differs.
pub(crate) fn start_up_under(told: &ObjectResult, base: &ObjectResult) -> Option<String> {
    let rest = |r: &ObjectResult| Some(r.steady?.whole_seconds - r.seconds);
    let ratio = rest(told)? / rest(base)?;
    let differs = !(1.0 / EQUAL..=EQUAL).contains(&(ratio / told.slowdown(base)));
    differs.then(|| {
        format!(
            "Start-up and end take {} more time under `{}`.",
            percent((ratio - 1.0).max(0.0)),
            told.plan
        )
    })
}

/// Which sites have most of their memory in slow memory then.
pub(crate) fn slow_sites(r: &ObjectResult, size: Size) -> Option<String> {
    let fast = |site: &PlacedSite| site.fast_quota_bytes.unwrap_or(0);
    if r.placed.iter().all(|site| fast(site) == 0) {
        return None;
    }
    let slow = |site: &&PlacedSite| site.counts.peak_bytes.saturating_sub(fast(site));
    let mut sites: Vec<&PlacedSite> = r.placed.iter().collect();
    sites.retain(|site| site.counts.objects > 0 && 2 * slow(site) > site.counts.peak_bytes);
    sites.sort_by_key(|site| std::cmp::Reverse(slow(site)));
    let named: Vec<String> = sites
        .iter()
        .take(NAMED)
        .map(|site| {
            let (bytes, all) = (slow(site), site.counts.peak_bytes);
            let part = match bytes == all {
                true => format!("the {}", size(all)),
                false => format!("{} of the {}", size(bytes), size(all)),
            };
            format!("{part} of {}", site.site)
        })
        .collect();
    (!named.is_empty()).then(|| format!("In slow memory under `{}`: {}.", r.plan, named.join("; ")))
}
