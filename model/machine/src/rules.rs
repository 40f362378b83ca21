//! The rules of the model, each with a machine on which it does not hold: to learn which rules a result depends on.
//!
//! A rule is switched off by numbers of the machine's description alone. The run then uses the same model, of a machine
//! that does not exist.

use crate::Machine;
use varve_spec::Bytes;

/// A rule of the model.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// Name of the machine without the rule, such as `no prefetchers`.
    pub without: &'static str,
    /// Switches it off.
    pub off: fn(&mut Machine),
}

/// So short, ns, that it has no effect; machine files may not have zero everywhere.
const NOTHING_NS: f64 = 0.001;
/// So long, ns, that it does not happen in a run.
const NEVER_NS: f64 = 1e12;

/// All rules that a machine's numbers can switch off.
pub const RULES: &[Rule] = &[
    Rule {
        without: "no prefetchers",
        off: |m| m.prefetch.streams = 0,
    },
    Rule {
        without: "page walks that cost nothing",
        off: |m| {
            m.tlb.l2_ns = NOTHING_NS;
            m.tlb.walk_4k_ns = NOTHING_NS;
            m.tlb.walk_2m_ns = NOTHING_NS;
        },
    },
    Rule {
        without: "stores that miss one at a time",
        off: |m| m.core.store_misses = 1,
    },
    Rule {
        without: "rows that open and close in no time",
        off: |m| {
            m.dram.rcd_ns = NOTHING_NS;
            m.dram.rp_ns = NOTHING_NS;
            m.dram.ras_ns = NOTHING_NS;
            m.dram.faw_ns = NOTHING_NS;
        },
    },
    Rule {
        without: "a bus that turns round in no time",
        off: |m| m.dram.turnaround_ns = NOTHING_NS,
    },
    Rule {
        without: "no refresh",
        off: |m| m.dram.rfc_ns = NOTHING_NS,
    },
    Rule {
        without: "ranks that never sleep",
        off: |m| {
            m.dram.powerdown_after_ns = NEVER_NS;
            m.dram.selfrefresh_after_ns = NEVER_NS;
        },
    },
    Rule {
        without: "queues of the controller eight times as long",
        off: |m| {
            let c = &mut m.controller;
            for entries in [
                &mut c.read_queue,
                &mut c.write_queue,
                &mut c.drain_high,
                &mut c.drain_low,
            ] {
                *entries *= 8;
            }
        },
    },
    Rule {
        without: "a PM buffer of four lines, which hardly combines",
        off: |m| {
            if let Some(pm) = &mut m.pm {
                pm.buffer_bytes = Bytes(4 * pm.line_bytes.0);
            }
        },
    },
    Rule {
        without: "PM that writes as fast as it reads",
        off: |m| {
            if let Some(pm) = &mut m.pm {
                pm.media_write_gbps = pm.media_read_gbps;
            }
        },
    },
    Rule {
        without: "faults and page moves that cost nothing",
        off: |m| {
            m.os.fault_ns = NOTHING_NS;
            m.os.sample_ns = NOTHING_NS;
            m.os.remap_ns = NOTHING_NS;
            m.os.shootdown_ns = NOTHING_NS;
        },
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rule_can_be_switched_off_on_every_machine_and_changes_some() {
        let machines: Vec<Machine> = crate::load::builtin()
            .iter()
            .map(|(name, _)| Machine::load(name).unwrap())
            .collect();
        for rule in RULES {
            let mut changed = 0;
            for machine in &machines {
                let mut without = machine.clone();
                (rule.off)(&mut without);
                changed += usize::from(without != *machine);
                let problems = without.check();
                assert!(problems.is_empty(), "{}: {problems:?}", rule.without);
            }
            assert!(changed > 0, "{} changes nothing", rule.without);
        }
    }
}
