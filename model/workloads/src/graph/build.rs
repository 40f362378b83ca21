//! Accesses of loading a graph, before the first timed second: arrays that are touched, and arrays that are freed.

use varve_access::{Kind, Op};

use crate::init::INSTRUCTIONS_PER_LINE;
use crate::layout::{Array, Layout};
use crate::loops::{Share, Stage, Work};

/// One step of the build, a stage of the program.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// Threads walk their shares of the array and write it.
    Touch(Array),
    /// Threads read their shares of the first array in order and write the second one.
    Copy(Array, Array),
    /// Threads read their shares of the first array in order and write all over the second one.
    Scatter(Array, Array),
    /// Thread 0 gives the array back to the operating system.
    Unmap(Array),
}

/// Pages of 4 KiB per `Unmap` op: the most that fit its 16-bit size, rounded down to 128 MiB.
const UNMAP_PAGES: u64 = 1 << 15;

/// Bytes per small page, the unit of first touch.
const PAGE: u64 = 4096;

/// The memory side of the GAP suite's graph builder (generate an edge list, count degrees, place every edge in both
/// directions, sort and squeeze out duplicates into a second copy), one touch per `stride` bytes.
///
/// | array | bytes | lives |
/// |---|---|---|
/// | `build.edges` | 2 × id × degree × n | from generation until the rows are placed |
/// | `build.degrees`, `build.offsets` | id × n, 8 × (n + 1) | while rows are placed |
/// | `build.neighbours`, `build.index` | 2 × id × degree × n, 8 × (n + 1) | until squeezed |
/// | `build.kept`, `build.squeezed` | id × n, 8 × (n + 1) | while squeezing |
/// | `csr.neighbours`, `csr.index` | id × directed edges, 8 × (n + 1) | for good |
///
/// So most of the memory allocated at the peak is gone, and its frames free again, when the timed loop starts.
/// The scattered placement touches the pages of `build.neighbours` in a scattered order (page numbers times a
/// constant, modulo their number), which stands for the order in which random edges reach random rows.
#[derive(Clone, Debug)]
pub struct Build {
    steps: Vec<Step>,
    next: usize,
    stride: u64,
    factor: u64,
    pages: u64,
    /// Row pointers: 8 bytes per vertex, and one more.
    pub index: Array,
    /// Neighbour names.
    pub neighbours: Array,
}

impl Build {
    /// The build of a graph of `n` vertices, `generated` edges of which `directed` stored ones remain, with `id`
    /// bytes per vertex name.
    pub fn new(
        layout: &mut Layout,
        n: u64,
        generated: u64,
        directed: u64,
        id: u64,
        stride: u64,
    ) -> Build {
        let edges = layout.array("build.edges", generated, 2 * id);
        let degrees = layout.array("build.degrees", n, id);
        let offsets = layout.array("build.offsets", n + 1, 8);
        let placed = layout.array("build.neighbours", 2 * generated, id);
        let placed_index = layout.array("build.index", n + 1, 8);
        let kept = layout.array("build.kept", n, id);
        let squeezed = layout.array("build.squeezed", n + 1, 8);
        let neighbours = layout.array("csr.neighbours", directed, id);
        let index = layout.array("csr.index", n + 1, 8);
        let steps = vec![
            Step::Touch(edges),
            Step::Touch(degrees),
            Step::Touch(offsets),
            Step::Touch(placed_index),
            Step::Scatter(edges, placed),
            Step::Unmap(offsets),
            Step::Unmap(degrees),
            Step::Unmap(edges),
            Step::Touch(kept),
            Step::Touch(squeezed),
            Step::Copy(placed, neighbours),
            Step::Touch(index),
            Step::Unmap(squeezed),
            Step::Unmap(kept),
            Step::Unmap(placed_index),
            Step::Unmap(placed),
        ];
        Build {
            steps,
            next: 0,
            stride: stride.max(1),
            factor: 1,
            pages: 1,
            index,
            neighbours,
        }
    }

    /// Adds an array that is allocated and filled after the graph is built.
    pub fn then_touch(&mut self, array: Array) {
        self.steps.push(Step::Touch(array));
    }

    /// The stage of the next step, or `None` when the graph stands.
    pub fn next_stage(&mut self) -> Option<Stage> {
        let step = *self.steps.get(self.next)?;
        self.next += 1;
        let stage = match step {
            Step::Touch(array) | Step::Copy(_, array) => {
                Stage::parallel(array.bytes().div_ceil(self.stride))
            }
            Step::Scatter(_, array) => {
                self.pages = array.bytes().div_ceil(self.stride);
                self.factor = scatter_factor(self.pages);
                Stage::parallel(self.pages)
            }
            Step::Unmap(array) => {
                let pages = array.bytes().div_ceil(PAGE);
                Stage::serial(pages.div_ceil(UNMAP_PAGES))
            }
        };
        let phase = (self.next == 1).then_some(crate::init::PHASE_INIT);
        Some(Stage { phase, ..stage })
    }

    /// Does one item of the current step.
    pub fn step(&self, work: &mut Work, out: &mut Vec<Op>) {
        let item = work.at;
        work.at += 1;
        match self.steps[self.next - 1] {
            Step::Touch(array) => out.push(self.touch(Kind::Write, array, item)),
            Step::Copy(from, to) => {
                let same_share = (item * self.stride).min(from.bytes() - 1) / self.stride;
                out.push(self.touch(Kind::Read, from, same_share));
                out.push(self.touch(Kind::Write, to, item));
            }
            Step::Scatter(from, to) => {
                let same_share = (item * self.stride).min(from.bytes() - 1) / self.stride;
                out.push(self.touch(Kind::Read, from, same_share));
                let page = (u128::from(item) * u128::from(self.factor)) % u128::from(self.pages);
                out.push(self.touch(Kind::Write, to, page as u64));
            }
            Step::Unmap(array) => {
                let pages = array.bytes().div_ceil(PAGE);
                let first = item * UNMAP_PAGES;
                let count = (pages - first).min(UNMAP_PAGES) as u16;
                out.push(Op::new(Kind::Unmap, array.base + first * PAGE, count, 0));
            }
        }
    }

    fn touch(&self, kind: Kind, array: Array, item: u64) -> Op {
        let at = item * self.stride;
        let size = (array.bytes() - at).min(self.stride).min(64) as u16;
        Op::new(kind, array.base + at, size, INSTRUCTIONS_PER_LINE)
    }
}

/// How a stage that resets an array is shared: `bytes` in blocks of 4 KiB.
pub fn fill_stage(array: Array, share: Share) -> Stage {
    Stage {
        share,
        ..Stage::parallel(array.bytes().div_ceil(PAGE))
    }
}

/// Appends the stores of a `memset` of block `item`; returns the elements that the block holds.
pub fn fill_block(array: Array, item: u64, out: &mut Vec<Op>) -> std::ops::Range<usize> {
    let at = item * PAGE;
    let end = (at + PAGE).min(array.bytes());
    crate::loops::run(
        out,
        Kind::Write,
        array.base + at,
        end - at,
        INSTRUCTIONS_PER_LINE,
    );
    (at / array.size) as usize..(end / array.size) as usize
}

/// A number near the golden section of `n` without a common divisor with it: its multiples visit all residues, each
/// far from the last.
fn scatter_factor(n: u64) -> u64 {
    let near = (n as f64 * 0.618_033_988_749_895) as u64;
    (near.max(1)..)
        .find(|&factor| gcd(factor, n) == 1)
        .unwrap_or(1)
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn the_build_touches_every_page_and_gives_back_all_but_the_graph() {
        let mut layout = Layout::new();
        let mut build = Build::new(&mut layout, 1000, 16_000, 30_000, 8, PAGE);
        let mut mapped: BTreeMap<u64, u32> = BTreeMap::new();
        let mut peak = 0;
        while let Some(stage) = build.next_stage() {
            let mut work = Work {
                at: 0,
                end: stage.items,
                within: 0,
            };
            let mut out = Vec::new();
            while work.at < work.end {
                build.step(&mut work, &mut out);
            }
            for op in out {
                match op.kind {
                    Kind::Unmap => {
                        for page in 0..u64::from(op.size) {
                            assert!(mapped.remove(&(op.addr + page * PAGE)).is_some());
                        }
                    }
                    Kind::Write => *mapped.entry(op.addr).or_default() += 1,
                    _ => assert!(mapped.contains_key(&(op.addr & !(PAGE - 1)))),
                }
            }
            peak = peak.max(mapped.len() as u64);
        }
        assert!(mapped.values().all(|&writes| writes == 1));
        let left: Vec<u64> = [build.neighbours, build.index]
            .iter()
            .flat_map(|array| {
                (0..array.bytes().div_ceil(PAGE)).map(|page| array.base + page * PAGE)
            })
            .collect();
        assert_eq!(mapped.into_keys().collect::<Vec<_>>(), left);
        assert!(peak > 16_000 * 16 * 2 / PAGE, "{peak}");
    }

    #[test]
    fn scattering_visits_every_page_once() {
        for n in [1, 2, 3, 64, 1000, 1 << 20] {
            let factor = scatter_factor(n);
            assert_eq!(gcd(factor, n), 1, "{n}");
        }
    }
}
