//! Managed programs on a machine with one memory whose DIMMs lie one after the other: the memories of a heap's plan are colours
//! of pages there. Objects in the plan's fast memory are hot, all others are cold; a plan with one memory has its pages on all DIMMs
//! in turn, as channel interleaving does.

use super::ManagedSpec;
use super::pages::Tiers;
use std::sync::Arc;
use varve_pages::policies::{TrayPolicy, trays};
use varve_pages::trays::{Colour, DimmMap, TrayError, Trays};
use varve_pages::{Frames, Placement, Topology};
use varve_run::{Error, Numa, TrayOptions};
use varve_runtime::plans;

/// Where pages of a managed program go.
pub fn placement(
    spec: &ManagedSpec,
    topology: &Topology,
    tiers: Arc<Tiers>,
) -> Result<Placement, Error> {
    let o = &spec.trays;
    let map = DimmMap::of(topology).map_err(|e| match e {
        TrayError::Interleaved => Error::NoTiers(spec.machine.name.clone()),
        e => varve_pages::Error::from(e).into(),
    })?;
    // Whether the plan knows colours at all.
    let profile = spec.config.profile.as_deref();
    let coloured = plans::by_name(&spec.plan, profile).map_or(true, |p| p.plan.tiers() > 1);
    let numa = spec.numa;
    let colour = Box::new(move |fault: &varve_access::Fault| {
        let colour = match coloured && tiers.of(fault.vpn) > 0 {
            true => Colour::Cold,
            false => Colour::Hot,
        };
        let socket = match numa {
            Numa::Local | Numa::Remote => 0,
            Numa::Auto => (fault.vpn % 2) as u32,
        };
        (colour, socket)
    });
    // An impossible request is refused under every plan before anything runs.
    Trays::new(&map, o.hot, None).map_err(varve_pages::Error::from)?;
    let settings = match coloured {
        true => o.clone(),
        false => TrayOptions::all_dimms(),
    };
    let policy = TrayPolicy::with_settings(&map, settings, spec.page_bytes, colour);
    let policy = policy.map_err(varve_pages::Error::from)?;
    let frames = Frames::in_order(topology);
    Ok(Placement::with(
        trays::ENTRY.name,
        topology.clone(),
        frames,
        Box::new(policy),
    ))
}
