//! A managed program's objects on the memory nodes of this machine.

use super::plans::{Planned, mib};
use crate::args::run::job::LiveObjects;
use crate::ui::{Failure, wrong};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use varve_live::nodes::{Kinds, NodeMemory, Positions, ZeroPool, positions};
use varve_live::probe::Topology;
use varve_observed::OnNodes;
use varve_runtime::host::State;
use varve_runtime::{Engine, Error, Store};

/// Memory for a heap.
#[derive(Clone)]
pub struct Placed {
    memory: NodeMemory,
    /// Slow memory that is zero already.
    pool: Option<Arc<ZeroPool>>,
}

/// Where the plan's memories are on this machine; none if there is one kind of memory. That a plan places nothing is a line for the
/// user.
pub fn memory(
    a: &LiveObjects,
    plan: &Planned,
    file: &str,
) -> Result<(Option<Placed>, Option<String>), Failure> {
    let (topology, _) = Topology::read(Path::new("/"));
    let kinds = match &a.nodes.nodes {
        Some(given) => Kinds::parse(given, &topology).map_err(wrong)?,
        None => match Kinds::probe(&topology) {
            Ok(kinds) => kinds,
            Err(why) if a.live.live => {
                return Err(wrong(format!("{file}: --live: {why}: leave --live out")));
            }
            Err(why) => {
                // A plan with a single tier needs no second memory.
                let several = plan.tiers > 1;
                let note = format!("varve: note: {why}: heap plan {} places nothing", plan.spec);
                return Ok((None, several.then_some(note)));
            }
        },
    };
    let both = kinds.fast.iter().find(|node| kinds.slow.contains(node));
    let note = both
        .map(|node| format!("node {node} is both fast and slow by --nodes: memory is alike there"));
    if let Some(why) = note.as_ref().filter(|_| a.live.live) {
        return Err(wrong(format!(
            "{file}: --live: {why}: leave --live out, or name different nodes"
        )));
    }
    let note = note
        .map(|why| format!("varve: note: {why}, and times do not show the cost of slow memory"));
    let memory = NodeMemory::new(kinds).map_err(wrong)?;
    let pool = ZeroPool::new().map(Arc::new);
    Ok((Some(Placed { memory, pool }), note))
}

/// A store whose heap is there.
pub fn store(engine: &Engine, state: State, placed: Option<Placed>) -> Result<Store<State>, Error> {
    match placed {
        Some(p) => Store::placed(engine, state, Box::new(OnNodes::new(p.memory, p.pool))),
        None => Store::new(engine, state),
    }
}

/// Says where the spaces' pages are, as the kernel tells; with `all` in a table, otherwise only if any are not where the plan
/// wants them.
pub fn tell(store: &Store<State>, placed: &Placed, all: bool) {
    let memory = &placed.memory;
    let kinds = memory.kinds();
    let mut seen = Vec::new();
    for space in store.gc_ranges() {
        // The quick question first.
        if !all && memory.holds(&space.ranges, space.tier.0).unwrap_or(false) {
            continue;
        }
        let nodes = kinds.of_tier(space.tier.0);
        match positions(&space.ranges) {
            Ok(found) => seen.push((space, nodes, found)),
            Err(e) => {
                return crate::ui::message!("varve: note: where objects are cannot be seen: {e}");
            }
        }
    }
    if all {
        let rows: Vec<Row> = seen
            .iter()
            .map(|(s, _, p)| (&*s.name, s.tier.0, p))
            .collect();
        crate::ui::message!("{}", table(store, kinds, &rows));
        if let Some(pool) = &placed.pool {
            let c = pool.counts();
            crate::ui::message!(
                "pool of slow memory, MiB: {:.1} given back, {:.1} taken zero, {:.1} zero, {:.1} not yet",
                mib(c.given),
                mib(c.taken),
                mib(c.zero),
                mib(c.dirty)
            );
        }
    }
    for (space, nodes, found) in &seen {
        let elsewhere = found.outside(nodes);
        if elsewhere > 0 {
            crate::ui::message!(
                "varve: note: {:.1} of {:.1} MiB of {} are not on node {}",
                mib(elsewhere),
                mib(found.total()),
                space.name,
                Kinds::list(nodes)
            );
        }
    }
}

/// A space, its memory, and where it is.
type Row<'a> = (&'a str, u8, &'a Positions);

fn table(store: &Store<State>, kinds: &Kinds, rows: &[Row]) -> String {
    let wanted = kinds.fast.iter().chain(&kinds.slow).copied();
    let found = rows.iter().flat_map(|(_, _, p)| p.bytes.keys().copied());
    let nodes: BTreeSet<u32> = wanted.chain(found).collect();
    let mut text = format!("memory of the heap: {kinds}, pages by node in MiB\n");
    text.push_str(&format!(
        "{:<11} {:>6} {:>9} {:>9}",
        "space", "memory", "used MiB", "held MiB"
    ));
    for node in &nodes {
        text.push_str(&format!(" {:>9}", format!("node {node}")));
    }
    let spaces = store.gc_spaces();
    for (name, tier, positions) in rows {
        // Tables are in no space.
        let space = spaces.iter().find(|s| s.name == *name);
        let of = |bytes: Option<u64>| bytes.map_or("-".into(), |b| format!("{:.1}", mib(b)));
        let (used, held) = (of(space.map(|s| s.used)), of(space.map(|s| s.held)));
        text.push_str(&format!("\n{name:<11} {tier:>6} {used:>9} {held:>9}"));
        for node in &nodes {
            let bytes = positions.bytes.get(node).copied().unwrap_or(0);
            text.push_str(&format!(" {:>9.1}", mib(bytes)));
        }
    }
    text
}
