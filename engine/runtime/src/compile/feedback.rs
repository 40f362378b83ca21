//! The counters of baseline code, their places, and the code that counts.
//!
//! | at | counted |
//! |---|---|
//! | entry | calls |
//! | loop | iterations |
//! | call | calls |
//! | call through a reference or table | calls of the first four targets, and of all others |
//! | allocation | objects |
//! | cast or type test | failures and successes |
//! | persistence check | bypassed and activated |
//!
//! Operators that follow each other, with no branch between them, share a counter of how often they ran.
//!
//! Counters wrap. They are read when the function, or one that it is inlined into, is compiled again.

use super::translate::Translator;
use crate::code::link::Native;
use crate::error::Result;
use crate::helpers::Helper;
use crate::store::region::{FuncCounters, Place, Region, TargetCounters, displacement};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self, InstBuilder, MemFlagsData, Value, types};
use cranelift_codegen::isa::CallConv;
use rustc_hash::FxHashMap as HashMap;
use serde::{Deserialize, Serialize};
use std::mem::{offset_of, size_of};

const _: () =
    assert!(offset_of!(FuncCounters, entries) == 0 && offset_of!(FuncCounters, heat) == 4);

/// Iterations of loops that a call counts as.
pub(crate) const HEAT_OF_CALL: i64 = 10;

/// Counters of one function.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Feedback {
    /// Of the function itself: [`FuncCounters`].
    pub counters: Place,
    /// Of its operators, by their offset in the module.
    cells: HashMap<u32, Cell>,
    /// Whether code has come to a throw that it had left out: then none is left out any more.
    pub throws: bool,
}

/// Counters of an operator.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Cell {
    place: Place,
    kind: CellKind,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) enum CellKind {
    /// How often.
    Count,
    /// Failures, successes.
    Outcome,
    /// [`TargetCounters`].
    Targets,
    /// Of a persistence check: bypassed, activated.
    Check,
}

/// Counters of a store, by the functions' numbers.
pub(crate) type FeedbackTable = HashMap<u32, Feedback>;

impl Feedback {
    /// Counters of a function that is `heat` from being hot.
    pub fn new(region: &mut Region, heat: u32) -> Result<Feedback> {
        let counters = region.allocate_cell(size_of::<FuncCounters>())?;
        let feedback = Feedback {
            counters,
            cells: HashMap::default(),
            throws: false,
        };
        feedback.reheat(region, heat);
        Ok(feedback)
    }

    /// Sets the distance to the function's next compilation, two billion at most.
    pub fn reheat(&self, region: &Region, heat: u32) {
        let heat = i32::try_from(heat).unwrap_or(i32::MAX);
        // SAFETY: the place was allocated for the counters; compiled code waits or is on this thread.
        unsafe { (*region.address::<FuncCounters>(self.counters)).heat = heat };
    }

    /// How often the function was called.
    pub fn entries(&self, region: &Region) -> u32 {
        // SAFETY: as above.
        unsafe { (*region.address::<FuncCounters>(self.counters)).entries }
    }

    fn word(region: &Region, place: Place) -> u32 {
        // SAFETY: the place was allocated for a counter.
        unsafe { region.address::<u32>(place).read() }
    }

    fn target_counters(region: &Region, place: Place) -> TargetCounters {
        // SAFETY: the place was allocated for these counters, by the cell's kind.
        unsafe { region.address::<TargetCounters>(place).read() }
    }

    /// How often an operator ran, if it was counted.
    pub fn count(&self, region: &Region, offset: u32) -> Option<u64> {
        let cell = self.cells.get(&offset)?;
        Some(match cell.kind {
            CellKind::Count => Feedback::word(region, cell.place).into(),
            CellKind::Outcome | CellKind::Check => {
                u64::from(Feedback::word(region, cell.place))
                    + u64::from(Feedback::word(region, cell.place + 4))
            }
            CellKind::Targets => Feedback::target_counters(region, cell.place).total(),
        })
    }

    /// How often a persistence check was bypassed and activated, if it was counted.
    pub fn check(&self, region: &Region, offset: u32) -> Option<(u64, u64)> {
        let cell = self.cells.get(&offset)?;
        let word = |at| u64::from(Feedback::word(region, cell.place + at));
        (cell.kind == CellKind::Check).then(|| (word(0), word(4)))
    }

    /// The same of all checks.
    pub fn checks(&self, region: &Region) -> Vec<(u64, u64)> {
        let all = self.cells.keys().filter_map(|&o| self.check(region, o));
        all.collect()
    }

    /// How often its most frequent operator ran.
    pub fn peak(&self, region: &Region) -> u64 {
        let counts = self.cells.keys().filter_map(|&o| self.count(region, o));
        counts.max().unwrap_or(0).max(self.entries(region).into())
    }

    /// Targets of the call at an operator.
    pub fn targets(&self, region: &Region, offset: u32) -> Option<TargetCounters> {
        let cell = self.cells.get(&offset)?;
        (cell.kind == CellKind::Targets).then(|| Feedback::target_counters(region, cell.place))
    }
}

impl Translator<'_, '_> {
    /// The cell of the operator that is being translated, if this code counts.
    fn cell(&mut self, bytes: usize, kind: CellKind) -> Option<Place> {
        let func = self.activation().func_id;
        if !self.counts() {
            return None;
        }
        let offset = self.offset;
        let feedback = self.env.feedback.get_mut(&func)?;
        if let Some(cell) = feedback.cells.get(&offset) {
            return Some(cell.place);
        }
        // Without room in the region the operator is not counted.
        let place = self.env.region.allocate_cell(bytes).ok()?;
        feedback.cells.insert(offset, Cell { place, kind });
        Some(place)
    }

    fn increment(&mut self, at: i32) {
        let base = self.base();
        let flags = MemFlagsData::trusted();
        let count = self.ins().load(types::I32, flags, base, at);
        let count = self.ins().iadd_imm_s(count, 1);
        self.ins().store(flags, count, base, at);
    }

    /// Counts the operator, if this code counts.
    pub(super) fn count(&mut self) {
        if !self.counts() || self.is_counted() {
            return;
        }
        if let Some(place) = self.cell(4, CellKind::Count) {
            self.increment(displacement(place));
            self.counted = Some((self.activation().func_id, place));
        }
    }

    /// Whether an operator before this one has counted, and this one runs as often: then the counter is both's.
    fn is_counted(&mut self) -> bool {
        let (func, offset) = (self.activation().func_id, self.offset);
        let Some((_, place)) = self.counted.filter(|&(f, _)| f == func) else {
            return false;
        };
        let kind = CellKind::Count;
        let Some(feedback) = self.env.feedback.get_mut(&func) else {
            return false;
        };
        // Code that was compiled earlier may count it elsewhere.
        feedback
            .cells
            .entry(offset)
            .or_insert(Cell { place, kind })
            .place
            == place
    }

    /// Counts the outcome of a test, an i8.
    pub(super) fn count_outcome(&mut self, outcome: Value) {
        self.count_as(outcome, CellKind::Outcome);
    }

    /// Counts an i8 that is 0 or 1 in the first or second of two counters.
    pub(super) fn count_as(&mut self, outcome: Value, kind: CellKind) {
        let Some(place) = self.cell(8, kind) else {
            return;
        };
        let base = self.base();
        let wide = self.ins().uextend(types::I64, outcome);
        let byte = self.ins().ishl_imm_u(wide, 2);
        let address = self.ins().iadd(base, byte);
        let (flags, at) = (MemFlagsData::trusted(), displacement(place));
        let count = self.ins().load(types::I32, flags, address, at);
        let count = self.ins().iadd_imm_s(count, 1);
        self.ins().store(flags, count, address, at);
    }

    /// Counts the target of a call through a reference.
    pub(super) fn count_target(&mut self, func: Value) {
        let Some(place) = self.cell(size_of::<TargetCounters>(), CellKind::Targets) else {
            return;
        };
        let base = self.base();
        let cell = self.ins().iadd_imm_s(base, i64::from(displacement(place)));
        let signature = || {
            let mut sig = ir::Signature::new(CallConv::PreserveAll);
            sig.params
                .extend([types::I64, types::I32].map(ir::AbiParam::new));
            sig
        };
        let func = self.ins().ireduce(types::I32, func);
        self.call_native(Native::CountTarget, signature, &[cell, func]);
        self.forget_base();
    }

    /// Counts down the function's heat by an iteration: a value that is below 0 once it is hot.
    fn cool(&mut self) -> Option<Value> {
        let func = self.activation().func_id;
        let counters = self.env.feedback.get(&func)?.counters;
        let at = displacement(counters) + offset_of!(FuncCounters, heat) as i32;
        let (base, flags) = (self.base(), MemFlagsData::trusted());
        let heat = self.ins().load(types::I32, flags, base, at);
        let heat = self.ins().iadd_imm_s(heat, -1);
        self.ins().store(flags, heat, base, at);
        Some(self.ins().icmp_imm_s(IntCC::SignedLessThan, heat, 0))
    }

    /// Counts a call of a function.
    pub(super) fn count_call_of(&mut self, func: u32) {
        if let Some(counters) = self.env.feedback.get(&func).map(|f| f.counters) {
            self.increment(displacement(counters) + offset_of!(FuncCounters, entries) as i32);
        }
    }

    /// Counts a call of the function; once it is hot, has the next calls go to better code. This one goes on here, which is less code than
    /// two ways.
    pub(super) fn count_entry(&mut self) {
        if !self.counts() {
            return;
        }
        let func = self.activation().func_id;
        if !self.job.tiers_up {
            return self.count_call_of(func);
        }
        let Some(counters) = self.env.feedback.get(&func).map(|f| f.counters) else {
            return;
        };
        let (base, flags) = (self.base(), MemFlagsData::trusted());
        let both = self
            .ins()
            .load(types::I64, flags, base, displacement(counters));
        // Calls wrap every four billion, and the heat is one off then.
        let both = self.ins().iadd_imm_s(both, 1 - (HEAT_OF_CALL << 32));
        self.ins().store(flags, both, base, displacement(counters));
        let hot = self.ins().icmp_imm_s(IntCC::SignedLessThan, both, 0);
        let (better, next) = (self.b.create_block(), self.b.create_block());
        self.b.set_cold_block(better);
        self.ins().brif(hot, better, &[], next, &[]);
        self.b.seal_block(better);
        self.b.switch_to_block(better);
        let number = self.i32(func as i64);
        self.call_helper(Helper::Hot, &[number]);
        self.ins().jump(next, &[]);
        self.b.seal_block(next);
        self.b.switch_to_block(next);
    }

    /// Counts an iteration of the loop that has just been entered, whose parameters are on the stack; once it is hot, goes on
    /// in better code.
    pub(super) fn count_loop(&mut self, params: usize) {
        self.count();
        if !self.job.tiers_up || !self.counts() || !self.fits_state() {
            return;
        }
        let Some(hot) = self.cool() else { return };
        let (better, next) = (self.b.create_block(), self.b.create_block());
        self.b.set_cold_block(better);
        self.ins().brif(hot, better, &[], next, &[]);
        self.b.seal_block(better);
        self.b.switch_to_block(better);
        let point = self.point(self.offset, self.stack.len(), params);
        self.leave_if_hot(point, next);
        self.b.seal_block(next);
        self.b.switch_to_block(next);
    }
}
