//! Advice on native programs: whether slow memory matters to them at all, and which sites it gets.

use super::{Size, percent};
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
