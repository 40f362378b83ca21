//! Whole-model tests: stories about programs on machines.

use crate::model::{self, Options, Outcome};
use crate::{Fault, Kind, Machine, Op, OutOfFrames, Pager, Program};

/// Frames in the order of their first touch.
pub struct InOrder {
    pub page_bytes: u64,
    pub next: u32,
}

impl Pager for InOrder {
    fn page_bytes(&self) -> u64 {
        self.page_bytes
    }
    fn fault(&mut self, _: &Fault) -> Result<u32, OutOfFrames> {
        self.next += 1;
        Ok(self.next - 1)
    }
    fn unmap(&mut self, _: u64, _: u32) {}
}

/// Threads that each run a fixed list of ops.
pub struct Fixed(pub Vec<Vec<Op>>, Vec<usize>);

impl Fixed {
    pub fn new(threads: Vec<Vec<Op>>) -> Fixed {
        let n = threads.len();
        Fixed(threads, vec![0; n])
    }
}

impl Program for Fixed {
    fn name(&self) -> String {
        "fixed".into()
    }
    fn threads(&self) -> usize {
        self.0.len()
    }
    fn fill(&mut self, t: usize, _: u64, out: &mut Vec<Op>) -> bool {
        let from = self.1[t];
        let to = (from + 300).min(self.0[t].len());
        out.extend_from_slice(&self.0[t][from..to]);
        self.1[t] = to;
        to < self.0[t].len()
    }
}

fn run(machine: &str, page_bytes: u64, threads: Vec<Vec<Op>>) -> Outcome {
    let m = Machine::load(machine).unwrap();
    let mut pager = InOrder {
        page_bytes,
        next: 0,
    };
    let mut program = Fixed::new(threads);
    model::run(
        &m,
        &mut pager,
        &mut [&mut program],
        &Options::default(),
        &mut |_| true,
    )
    .unwrap()
}

fn random(kind: Kind, bytes: u64, n: usize, seed: u64) -> Vec<Op> {
    let mut x = seed;
    (0..n)
        .map(|_| {
            x = x
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            Op::new(
                kind,
                (1 << 32) + (((x >> 33) * (bytes >> 6)) >> 31 << 6),
                8,
                8,
            )
        })
        .collect()
}

#[test]
fn sixteen_threads_share_the_bandwidth_and_nobody_starves() {
    for kind in [Kind::Read, Kind::Update, Kind::Write, Kind::NtWrite] {
        let threads = (1..=16).map(|t| random(kind, 1 << 30, 4000, t)).collect();
        let out = run("optane-6230-memory-mode", 2 << 20, threads);
        let slowest = *out.thread_ns.iter().max().unwrap() as f64;
        let fastest = *out.thread_ns.iter().min().unwrap() as f64;
        // 64,000 lines of 64 B at no more than a few GB/s of partial PM writes.
        assert!(slowest < 20e6, "{kind:?}: {slowest} ns");
        assert!(
            slowest / fastest < 1.2,
            "{kind:?}: {fastest} to {slowest} ns"
        );
    }
}
