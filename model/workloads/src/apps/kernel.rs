//! The one loop that carries out a [`Shape`].

use super::shapes::{Random, Shape};
use crate::init::{By, FirstTouch, chunk};
use crate::layout::{Array, Layout};
use varve_access::random::Rng;
use varve_access::{Kind, Op, Program, Region};
use varve_spec::{Error, Values};

/// Bytes of a line, the unit of a step.
const LINE: u64 = 64;

/// Lines by which each array's walk is ahead of the one before, and each thread's: a page of 4 KiB and a bit. Arrays and parts of
/// real programs do not lie at the same place in their pages, and those that do would all meet at one device.
const AHEAD: [u64; 2] = [71, 37];

/// Barrier numbers start here, after that of initialization.
const BARRIER_PASS: u64 = 1;

/// A running program.
pub struct App {
    shape: &'static Shape,
    layout: Layout,
    /// Arrays that are walked; the first `shape.reads` are only read.
    arrays: Vec<Array>,
    table: Option<Array>,
    passes: u64,
    /// Steps of a block.
    block: u64,
    init: FirstTouch,
    threads: Vec<Thread>,
}

/// Where a thread is.
#[derive(Clone, Copy, Debug)]
struct Thread {
    low: u64,
    high: u64,
    /// Next step.
    next: u64,
    /// First step of the block that it is in.
    from: u64,
    /// Times that the block was gone over.
    again: u32,
    pass: u64,
    /// Lines by which its walks are ahead of its steps.
    ahead: u64,
    rng: Rng,
}

impl App {
    /// Reads the parameters of the shape's entry.
    ///
    /// # Errors
    /// Too little memory for a line of each array and thread.
    pub fn new(shape: &'static Shape, values: &Values) -> Result<App, Error> {
        let threads = values.count("threads") as usize;
        let walked = u64::from(shape.reads + shape.writes);
        let least = LINE * (walked + 1) * threads as u64;
        let bytes = values.count_in("bytes", least, 1 << 46)?;
        let table_bytes = bytes * u64::from(shape.table_percent) / 100;
        let lines = match walked {
            0 => 0,
            n => (bytes - table_bytes) / n / LINE,
        };
        let mut layout = Layout::new();
        let arrays: Vec<Array> = (0..walked)
            .map(|i| layout.array(&format!("array {i}"), lines, LINE))
            .collect();
        let table = (table_bytes > 0).then(|| layout.array("table", table_bytes / LINE, LINE));
        // Without arrays a pass has one access per line of the table.
        let steps = match (walked, table) {
            (0, Some(t)) => t.len / u64::from(shape.per_step.max(1)),
            _ => lines,
        };
        let all: Vec<Array> = arrays.iter().copied().chain(table).collect();
        let touch = values.count("touch");
        let block = match shape.block {
            0 => u64::MAX,
            bytes => (bytes / values.scale() / walked.max(1) / LINE).max(1),
        };
        let seed = values.count("seed");
        let thread = |thread: usize| {
            let (low, high) = chunk(steps, thread, threads);
            Thread {
                low,
                high,
                next: low,
                from: low,
                again: 0,
                pass: 0,
                ahead: thread as u64 * AHEAD[1],
                rng: Rng::new(seed, thread as u64),
            }
        };
        Ok(App {
            shape,
            layout,
            init: FirstTouch::new(FirstTouch::ranges(&all), touch, By::All, threads),
            arrays,
            table,
            passes: values.count_in("passes", 1, u64::MAX)?,
            block,
            threads: (0..threads).map(thread).collect(),
        })
    }

    /// Ops of a step.
    fn ops(&self) -> usize {
        self.arrays.len() + self.shape.per_step as usize + 1
    }
}

/// One step: a line of every array, then the table.
fn step(shape: &Shape, arrays: &[Array], table: Option<Array>, t: &mut Thread, out: &mut Vec<Op>) {
    let part = (t.high - t.low).max(1);
    let ops = arrays.len() as u32 + shape.per_step;
    // The instructions come between the accesses in equal parts.
    let each = (shape.instructions / ops.max(1)).max(1);
    for (i, array) in arrays.iter().enumerate() {
        let kind = match (i as u32) < shape.reads {
            true => Kind::Read,
            false => Kind::Update,
        };
        let line = t.low + (t.next - t.low + t.ahead + i as u64 * AHEAD[0]) % part;
        out.push(Op::new(kind, array.at(line), LINE as u16, each));
    }
    let Some(table) = table else { return };
    for _ in 0..shape.per_step {
        let at = table.at(t.rng.below(table.len));
        out.push(match shape.random {
            Random::Chase => Op::read(at, 8, each).after_load(),
            Random::Update => Op::new(Kind::Update, at, 8, each),
            Random::No => continue,
        });
    }
}

impl Program for App {
    fn name(&self) -> String {
        self.shape.name.into()
    }

    fn threads(&self) -> usize {
        self.threads.len()
    }

    fn regions(&self) -> Vec<Region> {
        self.layout.regions().to_vec()
    }

    fn fill(&mut self, thread: usize, _now: u64, out: &mut Vec<Op>) -> bool {
        if self.init.fill(thread, out) {
            return true;
        }
        let room = (out.capacity().saturating_sub(out.len()) / self.ops()).max(1);
        let t = &mut self.threads[thread];
        for _ in 0..room {
            if t.next < t.high {
                step(self.shape, &self.arrays, self.table, t, out);
                t.next += 1;
            }
            let end = t.high.min(t.from.saturating_add(self.block));
            if t.next < end {
                continue;
            }
            t.again += 1;
            if t.again < self.shape.reuse {
                t.next = t.from;
                continue;
            }
            (t.from, t.again) = (end, 0);
            if end < t.high {
                continue;
            }
            out.push(Op::mark(Kind::Barrier, BARRIER_PASS + t.pass));
            t.pass += 1;
            (t.next, t.from) = (t.low, t.low);
            // Ops after a barrier would be given before the others have arrived.
            break;
        }
        t.pass < self.passes
    }

    fn answers(&self) -> Vec<(String, String)> {
        let passes = self.threads.iter().map(|t| t.pass).min().unwrap_or(0);
        vec![("passes".into(), passes.to_string())]
    }
}
