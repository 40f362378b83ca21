//! Runs of one thread as blocks of a trace.

use super::templates::Registry;
use super::walk::{RawEvent, Runs};
use crate::BLOCK_OPS;
use crate::format::{EventAt, RunEncoder, Template};

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

/// Codes what a thread does.
#[derive(Default)]
pub(super) struct Coder {
    encoder: RunEncoder,
    pub open: Piece,
    pub done: Vec<Piece>,
    /// Memory of old columns.
    pub spare: Vec<crate::format::Columns>,
}

impl Coder {
    /// Closes the open block.
    pub fn close(&mut self) {
        if self.open.ops > 0
            || !self.open.raw.is_empty()
            || !self.open.events.is_empty()
            || !self.encoder.columns.are_empty()
        {
            let empty = self.spare.pop().unwrap_or_default();
            self.open.columns = std::mem::replace(&mut self.encoder.columns, empty);
            self.done.push(std::mem::take(&mut self.open));
        }
        self.encoder.reset();
    }
}

impl Runs for Coder {
    #[inline(always)]
    fn run(
        &mut self,
        how: u8,
        first: bool,
        number: u32,
        more: u32,
        of: (&Template, &Registry),
        addresses: &[u64],
    ) {
        self.open.ops += of.0.ops();
        self.open.instructions += of.0.instructions() + u64::from(more);
        self.encoder.run(how, first, number, more, of.0, addresses);
    }

    fn event(&mut self, event: RawEvent) {
        self.open.raw.push((self.open.ops as u32, event));
    }

    #[inline(always)]
    fn is_full(&self) -> bool {
        self.open.ops >= BLOCK_OPS
            || self.encoder.columns.are_full()
            || self.open.events.len() + self.open.raw.len() >= BLOCK_EVENTS
    }

    fn next_block(&mut self) {
        self.close();
    }
}

/// Ops, for a program that runs on the model.
#[derive(Debug, Default)]
pub(super) struct Expander {
    pub ops: Vec<varve_machine::Op>,
}

impl Runs for Expander {
    #[inline(always)]
    fn run(
        &mut self,
        _: u8,
        _: bool,
        _: u32,
        more: u32,
        of: (&Template, &Registry),
        addresses: &[u64],
    ) {
        let (template, registry) = of;
        let mut more = more;
        for op in registry.templates.ops(template) {
            // an absolute op counts from 0
            let from = addresses.get(usize::from(op.from)).copied().unwrap_or(0);
            let instructions = op.op.instructions.saturating_add(std::mem::take(&mut more));
            self.ops.push(varve_machine::Op {
                addr: op.op.addr.wrapping_add(from),
                instructions,
                ..op.op
            });
        }
    }

    fn event(&mut self, _: RawEvent) {}

    fn is_full(&self) -> bool {
        false
    }

    fn next_block(&mut self) {}
}
