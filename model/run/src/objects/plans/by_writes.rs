//! Of sites that were chosen since they are written, those that find room.

use super::quotas_of;
use varve_sites::Counts;
use varve_sites::select::{self, Candidate};

/// All of the `chosen` sites, those with most write misses for each byte first, until the budget, bytes, is full.
pub fn written(sites: &[Counts], budget: u64, chosen: &[usize]) -> Vec<u64> {
    let of = |&site: &usize| Candidate {
        value: sites[site].write_misses,
        peak_bytes: sites[site].peak_bytes,
    };
    let candidates: Vec<Candidate> = chosen.iter().map(of).collect();
    let fits = select::hot_sites(&candidates, budget);
    let fits = fits.into_iter().map(|(at, bytes)| (chosen[at], bytes));
    quotas_of(fits.collect(), sites.len())
}
