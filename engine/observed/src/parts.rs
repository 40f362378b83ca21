//! The purposes of a managed program's memory, and the phases of its collector.

use super::End;
use varve_machine::Machine;
use varve_machine::model::{ADDRESS_BITS, Outcome, Owners};
use varve_run::seen::{Eye, Lane, LaneSpan, Seen, Wait};
use varve_runtime::{GcKind, Part};

/// Parts, by their numbers.
const NAMES: [&[&str]; 6] = [
    &["heap"],
    &["linear memory"],
    &["engine", "tables of the collector"],
    &["engine", "compiled code"],
    &["engine", "other"],
    &["cache of files"],
];

/// Tells parts apart by addresses.
pub struct Parts;

impl Owners for Parts {
    fn owner(&mut self, address: u64) -> u32 {
        match Part::at(address & ((1 << ADDRESS_BITS) - 1)) {
            Part::Heap => 0,
            Part::Linear => 1,
            Part::Tables => 2,
            Part::Code => 3,
            Part::Other => 4,
            Part::Files => 5,
        }
    }
}

/// The observations of a run whose first instance ended like this.
pub fn seen(machine: &Machine, outcome: &Outcome, end: &End, eye: &Eye) -> Seen {
    let mut seen = Seen::of(machine, outcome, &[], 1, eye);
    let kind = |kind| match kind {
        GcKind::Minor => "minor",
        GcKind::Observer => "observer",
        GcKind::Full => "full",
    };
    let collections = end.stats.pauses.iter().map(|pause| LaneSpan {
        name: kind(pause.kind).into(),
        begin_ns: pause.at.as_nanos() as u64,
        end_ns: (pause.at + pause.took).as_nanos() as u64,
        count: 1,
    });
    seen.lanes
        .extend(lane("collections", collections.collect()));
    let ends = end
        .phases
        .iter()
        .skip(1)
        .map(|next| next.at.as_nanos() as u64);
    let phases = end
        .phases
        .iter()
        .zip(ends.chain([outcome.ns]))
        .map(|(entry, end_ns)| LaneSpan {
            name: varve_run::phase_name(entry.phase).into(),
            begin_ns: entry.at.as_nanos() as u64,
            end_ns,
            count: 1,
        });
    seen.lanes
        .extend(lane("phases of the plan", phases.collect()));
    let waits = outcome
        .owners
        .iter()
        .zip(NAMES)
        .filter(|(counts, _)| counts.stall_ps > 0);
    seen.waits = waits
        .map(|(counts, name)| Wait {
            of: name.iter().map(|part| part.to_string()).collect(),
            ns: counts.stall_ps / 1000,
        })
        .collect();
    seen
}

fn lane(name: &str, spans: Vec<LaneSpan>) -> Option<Lane> {
    let name = name.into();
    (!spans.is_empty()).then_some(Lane { name, spans })
}
