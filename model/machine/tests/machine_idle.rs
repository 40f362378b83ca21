//! The idle latencies that `varve machine show` adds up are those that the model charges: a pointer chase over 1 GiB.

use varve_access::{Fault, Op, OutOfFrames, Pager, Program};
use varve_machine::load::builtin;
use varve_machine::model::{self, Options};
use varve_machine::{Machine, Mode, NodeKind};

const BYTES: u64 = 1 << 30;
const PAGE: u64 = 2 << 20;
const LOADS: u64 = 40_000;

/// Loads of random lines, each at an address that the load before it delivered.
struct Chase {
    left: u64,
    state: u64,
}

impl Program for Chase {
    fn name(&self) -> String {
        "chase".into()
    }
    fn threads(&self) -> usize {
        1
    }
    fn fill(&mut self, _: usize, _: u64, out: &mut Vec<Op>) -> bool {
        for _ in 0..self.left.min(500) {
            self.state = self
                .state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let line = (self.state >> 33) % (BYTES / 64);
            out.push(Op::read((1 << 32) + line * 64, 8, 1).after_load());
        }
        self.left -= self.left.min(500);
        self.left > 0
    }
}

/// Frames of one node, in the order of first touches.
struct OnNode(u32);

impl Pager for OnNode {
    fn page_bytes(&self) -> u64 {
        PAGE
    }
    fn fault(&mut self, _: &Fault) -> Result<u32, OutOfFrames> {
        self.0 += 1;
        Ok(self.0 - 1)
    }
    fn unmap(&mut self, _: u64, _: u32) {}
}

/// Mean latency of the chase on the memory of a kind on socket 0, ns.
fn chase(m: &Machine, kind: NodeKind) -> f64 {
    let mut m = m.clone();
    m.os.fault_ns = 1e-3; // First touches are not what is measured.
    let before = m
        .nodes()
        .into_iter()
        .take_while(|n| n.kind != kind)
        .map(|n| n.bytes.0)
        .sum::<u64>();
    let mut pager = OnNode((before / PAGE) as u32);
    let mut program = Chase {
        left: LOADS,
        state: 1,
    };
    let out = model::run(
        &m,
        &mut pager,
        &mut [&mut program],
        &Options::default(),
        &mut |_| true,
    )
    .unwrap();
    out.ns as f64 / LOADS as f64
}

#[test]
fn the_sum_of_the_numbers_is_what_the_model_charges() {
    for (name, _) in builtin() {
        let m = Machine::load_from(name, &[]).unwrap();
        if m.mode != Mode::Flat {
            continue; // Its only node answers from two memories.
        }
        for node in m.nodes().iter().filter(|n| n.socket == 0) {
            let (sum, charged) = (m.idle_read_ns(node.kind), chase(&m, node.kind));
            let off = charged / sum - 1.0;
            // The rest is chance: lines that hit the last level, rows still open, ranks asleep, pages that miss the TLB.
            assert!(
                off.abs() < 0.08,
                "{name}, {:?}: {charged:.1} ns on the model, {sum:.1} ns added up",
                node.kind
            );
        }
    }
}
