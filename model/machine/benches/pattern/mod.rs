//! Access patterns that the benchmark and the speed example run on the model.

use varve_access::{Fault, Kind, Op, OutOfFrames, Pager, Program};

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

/// Accesses over `bytes`: random lines, or one after the other.
pub struct Pattern {
    bytes: u64,
    step: u64,
    kind: Kind,
    threads: usize,
    left: Vec<u64>,
    at: Vec<u64>,
    state: Vec<u64>,
}

impl Pattern {
    /// `accesses` in all. `step` is the distance of one from the last, 0 for random lines.
    pub fn new(bytes: u64, step: u64, kind: Kind, threads: usize, accesses: u64) -> Pattern {
        Pattern {
            bytes,
            step,
            kind,
            threads,
            left: vec![accesses / threads as u64; threads],
            at: (0..threads as u64)
                .map(|t| t * (bytes / threads as u64))
                .collect(),
            state: (1..=threads as u64).collect(),
        }
    }
}

impl Program for Pattern {
    fn name(&self) -> String {
        "pattern".into()
    }
    fn threads(&self) -> usize {
        self.threads
    }
    fn fill(&mut self, t: usize, _now: u64, out: &mut Vec<Op>) -> bool {
        let n = self.left[t].min(512);
        self.left[t] -= n;
        let size = self.step.clamp(8, 64) as u16;
        for _ in 0..n {
            let address = if self.step == 0 {
                let x = &mut self.state[t];
                *x = x
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                (((*x >> 33) * (self.bytes >> 6)) >> 31) << 6
            } else {
                self.at[t] = (self.at[t] + self.step) % self.bytes;
                self.at[t]
            };
            out.push(Op::new(self.kind, (1 << 32) + address, size, 8));
        }
        self.left[t] > 0
    }
}
