//! Native programs on a machine with one memory whose DIMMs lie one after the other: hot sites share few DIMMs, and cold sites are
//! packed on others, so that those left over sleep (Olson et al., TACO 2018, sections 7.1 and 8.2).

use super::layout::Quotas;
use super::tiers::is_fast;
use crate::{Error, TrayOptions};
use varve_access::Fault;
use varve_pages::policies::TrayPolicy;
use varve_pages::trays::{Colour, DimmMap, TrayError};
use varve_pages::{Frames, Policy, Topology};
use varve_sites::Counts;
use varve_sites::knapsack::{self, Item};

/// The colours of sites. Cold are those with the most bytes that together have at most the part `capacity` of all
/// misses: an access that a cache serves wakes no DIMM. All others are hot, unknown ones too.
pub fn colours(sites: &[Counts], capacity: f64) -> Quotas {
    let misses = |c: &Counts| c.misses.saturating_add(c.write_misses);
    let item = |c: &Counts| Item {
        value: c.peak_bytes,
        weight: misses(c),
    };
    let items: Vec<Item> = sites.iter().map(item).collect();
    let all = sites.iter().map(misses).fold(0u64, u64::saturating_add);
    let mut bytes = vec![u64::MAX; sites.len()];
    for site in knapsack::solve(&items, (capacity * all as f64) as u64) {
        if sites[site].peak_bytes > 0 {
            bytes[site] = 0;
        }
    }
    Quotas { bytes }
}

/// The DIMMs of a machine.
///
/// # Errors
/// Its memory is interleaved by channel.
pub fn dimms(machine: &str, topology: &Topology) -> Result<DimmMap, Error> {
    DimmMap::of(topology).map_err(|e| match e {
        TrayError::Interleaved => Error::NoTiers(machine.into()),
        e => varve_pages::Error::from(e).into(),
    })
}

/// Pages by the colour of their address (those of the fast arena are hot), or all DIMMs in turn without settings.
pub fn policy(
    map: &DimmMap,
    topology: &Topology,
    settings: Option<&TrayOptions>,
) -> Result<(Frames, Box<dyn Policy>), Error> {
    let page = topology.page_bytes;
    let spread = settings.is_none();
    let colour = move |fault: &Fault| match spread || is_fast(fault.vpn * page) {
        true => (Colour::Hot, fault.socket),
        false => (Colour::Cold, fault.socket),
    };
    let settings = settings.cloned().unwrap_or_else(TrayOptions::all_dimms);
    let policy = TrayPolicy::with_settings(map, settings, page, Box::new(colour));
    let policy = policy.map_err(varve_pages::Error::from)?;
    Ok((Frames::in_order(topology), Box::new(policy)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Cold sites have few misses, and no site that is left out would still fit.
        #[test]
        fn cold_sites_are_as_many_bytes_as_their_misses_allow(
            all in prop::collection::vec((0u64..5000, 0u64..1000), 1..12), percent in 1u64..50
        ) {
            let site = |&(peak_bytes, misses): &(u64, u64)| Counts { peak_bytes, misses, ..Counts::default() };
            let sites: Vec<Counts> = all.iter().map(site).collect();
            let quotas = colours(&sites, percent as f64 / 100.0);
            let most = percent as f64 / 100.0 * all.iter().map(|s| s.1).sum::<u64>() as f64;
            let cold = |hot: &&(u64, &(u64, u64))| hot.0 == 0;
            let each: Vec<(u64, &(u64, u64))> = quotas.bytes.iter().copied().zip(&all).collect();
            let misses: u64 = each.iter().filter(cold).map(|s| s.1.1).sum();
            prop_assert!(misses as f64 <= most);
            for &(_, &(bytes, own)) in each.iter().filter(|s| !cold(s)) {
                prop_assert!(bytes == 0 || (misses + own) as f64 > most.floor());
            }
        }
    }
}
