//! Runs of one thread as blocks of a trace.

use super::templates::Registry;
use super::walk::{RawEvent, Runs, Transition};
use crate::BLOCK_OPS;
use crate::format::{EventAt, Run, RunEncoder};

/// Events per block, at most.
const BLOCK_EVENTS: usize = 1 << 16;

/// A block, finished or still growing.
#[derive(Default)]
pub(super) struct Piece {
    pub columns: crate::format::Columns,
    pub ops: usize,
    pub instructions: u64,
    pub events: Vec<EventAt>,
    /// Events whose call sites are not named yet; they come after the others.
    pub raw: Vec<(u32, RawEvent)>,
}

/// Codes the records of a thread.
#[derive(Default)]
pub(super) struct Coder {
    encoder: RunEncoder,
    pub open: Piece,
    pub done: Vec<Piece>,
    /// Memory of old columns.
    pub spare: Vec<crate::format::Columns>,
    /// Instructions of the blocks that are closed.
    closed: u64,
}

impl Coder {
    /// Instructions so far.
    pub fn total(&self) -> u64 {
        self.closed + self.open.instructions
    }

    /// Closes the open block.
    pub fn close(&mut self) {
        if self.open.ops > 0
            || !self.open.raw.is_empty()
            || !self.open.events.is_empty()
            || !self.encoder.is_empty()
        {
            let empty = self.spare.pop().unwrap_or_default();
            self.open.columns = self.encoder.finish(empty);
            self.closed += self.open.instructions;
            self.done.push(std::mem::take(&mut self.open));
        }
    }
}

impl Runs for Coder {
    fn run(&mut self, run: &Run, addresses: &[u64], _: &Registry) {
        self.open.ops += run.ops as usize;
        self.open.instructions += run.instructions + u64::from(run.more);
        self.encoder.run(run, addresses);
    }

    #[inline(always)]
    fn again(&mut self, known: &Transition, addresses: &[u64], space: u64, _: &Registry) -> bool {
        self.open.ops += usize::from(known.ops);
        self.open.instructions += known.instructions;
        let slot = known.first_slot as usize;
        let is_coded = self.encoder.again(slot, addresses, space);
        if !is_coded {
            self.open.ops -= usize::from(known.ops);
            self.open.instructions -= known.instructions;
        }
        is_coded
    }

    #[inline(always)]
    fn has_room(&self) -> bool {
        self.open.ops < BLOCK_OPS
    }

    fn event(&mut self, event: RawEvent) {
        self.open.raw.push((self.open.ops as u32, event));
    }

    fn is_full(&self) -> bool {
        !self.has_room()
            || self.encoder.is_full()
            || self.open.events.len() + self.open.raw.len() >= BLOCK_EVENTS
    }

    fn next_block(&mut self) {
        self.close();
    }
}

/// Ops, for a program that runs on the model.
#[derive(Debug, Default)]
pub(super) struct Expander {
    pub ops: Vec<varve_access::Op>,
}

impl Runs for Expander {
    fn run(&mut self, run: &Run, addresses: &[u64], registry: &Registry) {
        self.expand(run.number, run.more, addresses, 0, registry);
    }

    fn again(
        &mut self,
        known: &Transition,
        addresses: &[u64],
        space: u64,
        registry: &Registry,
    ) -> bool {
        let is_whole = addresses.iter().all(|address| address >> 63 == 0);
        if is_whole {
            self.expand(known.number, 0, addresses, space, registry);
        }
        is_whole
    }

    fn event(&mut self, _: RawEvent) {}

    fn has_room(&self) -> bool {
        true
    }

    fn is_full(&self) -> bool {
        false
    }

    fn next_block(&mut self) {}
}

impl Expander {
    #[inline(always)]
    fn expand(
        &mut self,
        number: u32,
        mut more: u32,
        addresses: &[u64],
        space: u64,
        registry: &Registry,
    ) {
        let template = registry.get(number);
        for op in registry.templates.ops(template) {
            // an absolute op counts from 0
            let from = addresses.get(usize::from(op.from));
            let from = from.map_or(0, |from| from ^ space);
            let instructions = op.op.instructions.saturating_add(std::mem::take(&mut more));
            self.ops.push(varve_access::Op {
                addr: op.op.addr.wrapping_add(from),
                instructions,
                ..op.op
            });
        }
    }
}
