//! Observed code: appends each access to data to the store's recording, with the instructions since the one before.
//!
//! | operator | instructions |
//! |---|---|
//! | constants, locals, `drop`, `nop`, the ends and beginnings of blocks, null tests that fault | 0 |
//! | arithmetic, a branch, a load or store at an address | 1 |
//! | a field, an element or a length, unless its value is known | 1 |
//! | a store of a reference, whose object may be older; a store under a plan that counts them | 3 and 1 more |
//! | an index that is compared with a length, unless it is known to be less | 2 |
//! | `br_table`, an element of a table | 3 |
//! | a type test or cast, of a reference that may be null | 5, 7 |
//! | a division of integers, or a number that is made an integer | 6 |
//! | a target of a call through a reference that is guessed | 3 |
//! | a call that is not inlined, and its return | 24 |
//! | an allocation | 12 |
//!
//! They are counted in the code that the optimizing compiler makes of programs (`varve run --jitdump`, `perf annotate`), and equal the executed ones:
//! values known to the compiler cost nothing here either. `bench/instructions/run` compares their sums with the executed instructions. They are
//! summed up while code is translated; where blocks of code meet, instructions not yet reported with an access are added to a counter in memory,
//! which the next access takes along.
//!
//! An access is *dependent* if its address is the value that the access before it has loaded.

use super::persist::Bias;
use super::translate::{Translator, may_branch};
use crate::helpers::Helper;
use crate::store::observe::{HEAP, Recording, SLACK, code_at, code_bytes, memory_at};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, InstructionData, MemFlagsData, Value, types};
use varve_access::{Kind, Op};
use varve_heap::layout::COLLECTOR_BYTE;
use wasmparser::Operator;

/// The state of recording while code is translated.
pub(super) struct Recorded {
    /// Instructions since the last access or block.
    pending: u32,
    /// Whether the counter in memory is known to be 0.
    counted: bool,
    /// The value that the last access loaded.
    loaded: Option<Value>,
    /// Accesses that were appended since the buffer was last found to have room.
    unchecked: u32,
}

impl Default for Recorded {
    /// Where blocks of code meet: nothing is known, and the next access checks whether the buffer is full.
    fn default() -> Recorded {
        Recorded {
            pending: 0,
            counted: false,
            loaded: None,
            unchecked: MOST_UNCHECKED,
        }
    }
}

/// Bytes of code that a call of a function fetches at most: of a longer one seldom all runs.
const MOST_CODE: u64 = 1024;

/// Accesses in straight code of which only the last checks whether the buffer is full. Each check may call, and the references live across each call
/// are recorded: that would take minutes for code that makes a table of thousands of objects.
const MOST_UNCHECKED: u32 = 64;
const _: () = assert!(MOST_UNCHECKED < SLACK as u32);

/// Instructions in an iteration of a loop after which they are reported even without an access: far below the limit of a counter.
const MOST_INSTRUCTIONS: i64 = 1 << 30;

const INSTRUCTIONS_SHIFT: i64 = 0;
const SIZE_SHIFT: i64 = 32;
const KIND_SHIFT: i64 = 48;
const DEPENDENT_SHIFT: i64 = 56;
const _: () = assert!(
    std::mem::offset_of!(Op, addr) == 0
        && std::mem::offset_of!(Op, instructions) as i64 * 8 == 64 + INSTRUCTIONS_SHIFT
        && std::mem::offset_of!(Op, size) as i64 * 8 == 64 + SIZE_SHIFT
        && std::mem::offset_of!(Op, kind) as i64 * 8 == 64 + KIND_SHIFT
        && std::mem::offset_of!(Op, dependent) as i64 * 8 == 64 + DEPENDENT_SHIFT
);

/// Instructions of a persistence check beside its load: likely, unbiased, unlikely, very unlikely. Means over `classics.wasm richards 3` and
/// `trees.wasm 11` of what a check adds to the code's instructions: (6.6 + 2.8) / 2, (6.8 + 3.2) / 2, (6.1 + 2.8) / 2 and, under `profiled`, (4.0 +
/// 0.0) / 2, the load among them; callgrind, six rounds, 23 November 2026.
const CHECK: [u32; 4] = [4, 4, 3, 1];

/// Instructions of a call, and of the return: arguments, the frame, the test for the stack's end, saved registers. They are reported with the
/// fetch of the called code, so that an inlined call has none.
const CALL: u32 = 24;

/// Instructions that compare a function with one that is guessed.
const GUARD: u32 = 3;

/// Instructions that load or store a value in an object.
pub(super) const ACCESS: u32 = 1;

/// Instructions of the write barrier's test for a store of a reference, and of its branch.
pub(super) const BARRIER: u32 = 3;

/// Instructions that compare an index with a length, and branch.
pub(super) const BOUNDS: u32 = 2;

/// Instructions of a comparison.
pub(super) const COMPARISON: u32 = 1;

/// Instructions of an operator. Those that access objects are counted at the access, since a known value is not loaded.
fn cost(op: &Operator<'_>) -> u32 {
    use Operator::*;
    match op {
        Nop | Drop | Block { .. } | Loop { .. } | Else | End | TryTable { .. } | Unreachable => 0,
        Try { .. } | Catch { .. } | CatchAll | Delegate { .. } => 0,
        LocalGet { .. } | LocalSet { .. } | LocalTee { .. } => 0,
        I32Const { .. } | I64Const { .. } | F32Const { .. } | F64Const { .. } => 0,
        RefNull { .. } | RefFunc { .. } | RefAsNonNull => 0,
        StructGet { .. } | StructGetS { .. } | StructGetU { .. } | StructSet { .. } => 0,
        ArrayGet { .. } | ArrayGetS { .. } | ArrayGetU { .. } | ArraySet { .. } | ArrayLen => 0,
        AnyConvertExtern | ExternConvertAny => 0,
        BrTable { .. } | TableGet { .. } | TableSet { .. } => 3,
        RefTestNonNull { .. } | RefCastNonNull { .. } => 5,
        RefTestNullable { .. } | RefCastNullable { .. } => 7,
        BrOnCast { .. } | BrOnCastFail { .. } => 7,
        I32DivS | I32DivU | I32RemS | I32RemU | I64DivS | I64DivU | I64RemS | I64RemU => 6,
        I32TruncF32S | I32TruncF64S | I64TruncF32S | I64TruncF64S => 6,
        I32TruncSatF32S | I32TruncSatF64S | I64TruncSatF32S | I64TruncSatF64S => 6,
        BrOnNull { .. } | BrOnNonNull { .. } => 2,
        Call { .. } | CallIndirect { .. } | CallRef { .. } => 0,
        ReturnCall { .. } | ReturnCallIndirect { .. } | ReturnCallRef { .. } => 0,
        Throw { .. } | ThrowRef | Rethrow { .. } => 5,
        StructNew { .. } | StructNewDefault { .. } | ArrayNew { .. } => 12,
        ArrayNewDefault { .. } | ArrayNewFixed { .. } => 12,
        ArrayNewData { .. } | ArrayNewElem { .. } => 12,
        _ => 1,
    }
}

/// Whether code goes on elsewhere than after the operator, or comes from elsewhere.
fn joins(op: &Operator<'_>) -> bool {
    use Operator::*;
    let calls_or_tests = matches!(
        op,
        RefTestNonNull { .. }
            | RefTestNullable { .. }
            | RefCastNonNull { .. }
            | RefCastNullable { .. }
            | Call { .. }
            | CallIndirect { .. }
            | CallRef { .. }
            | ReturnCall { .. }
            | ReturnCallIndirect { .. }
            | ReturnCallRef { .. }
            | Throw { .. }
            | ThrowRef
            | Rethrow { .. }
    );
    calls_or_tests || may_branch(op)
}

impl Translator<'_, '_> {
    /// Whether this code records its accesses.
    pub(super) fn observes(&self) -> bool {
        self.env.recording.is_some()
    }

    /// Before an operator is translated.
    pub(super) fn begin_operator(&mut self, op: &Operator<'_>) {
        if self.observes() {
            self.recorded.pending += if self.is_mark(op) { 0 } else { cost(op) };
            if joins(op) {
                self.carry();
            }
        }
    }

    /// After an operator was translated.
    pub(super) fn end_operator(&mut self, op: &Operator<'_>) {
        if self.observes() && joins(op) {
            self.recorded = Recorded::default();
        }
    }

    /// Code comes from elsewhere.
    pub(super) fn forget_recorded(&mut self) {
        self.recorded = Recorded::default();
    }

    fn recording(&mut self) -> Option<Value> {
        let address = self.env.recording?.address();
        Some(self.i64(address))
    }

    /// At a function's beginning: its code is fetched.
    pub(super) fn fetch_code(&mut self) {
        if self.observes() {
            let (from, _) = self.env.module.bytecode(self.job.index);
            let at = self.i64(code_at(self.env.instance_id, from) as i64);
            self.recorded.pending += CALL;
            self.fetched = self.append(Kind::Fetch, None, at, 0);
        }
    }

    /// At its end: how much code it is, with that of the functions that are inlined in it.
    pub(super) fn set_fetched(&mut self) {
        let Some(word) = self.fetched else { return };
        let (_, own) = self.env.module.bytecode(self.job.index);
        let bytes = code_bytes(own + self.inlined_bytes as u64, self.job.level).min(MOST_CODE);
        let dfg = &mut self.b.func.dfg;
        let inst = dfg.value_def(word).inst().expect("a constant");
        if let InstructionData::UnaryImm { imm, .. } = &mut dfg.insts[inst] {
            *imm = (imm.bits() | (bytes as i64) << SIZE_SHIFT).into();
        }
    }

    /// Adds pending instructions to the counter in memory.
    fn carry(&mut self) {
        let pending = std::mem::take(&mut self.recorded.pending);
        self.recorded.counted = false;
        self.recorded.loaded = None;
        if pending == 0 {
            return;
        }
        let Some(recording) = self.recording() else {
            return;
        };
        let (flags, at) = (MemFlagsData::trusted(), Recording::INSTRUCTIONS);
        let count = self.ins().load(types::I64, flags, recording, at);
        let count = self.ins().iadd_imm_s(count, i64::from(pending));
        self.ins().store(flags, count, recording, at);
    }

    /// At the head of a loop: a loop that accesses nothing must not count for ever.
    pub(super) fn tell_long_loop(&mut self) {
        let Some(recording) = self.recording() else {
            return;
        };
        let (flags, at) = (MemFlagsData::trusted(), Recording::INSTRUCTIONS);
        let count = self.ins().load(types::I64, flags, recording, at);
        let many = self
            .ins()
            .icmp_imm_u(IntCC::UnsignedGreaterThan, count, MOST_INSTRUCTIONS);
        let (tell, next) = (self.b.create_block(), self.b.create_block());
        self.b.set_cold_block(tell);
        self.ins().brif(many, tell, &[], next, &[]);
        self.b.seal_block(tell);
        self.b.switch_to_block(tell);
        self.recorded = Recorded::default();
        let base = self.base();
        let context = crate::store::region::displacement(crate::store::region::CONTEXT);
        self.observe(Kind::Read, None, base, context, 8);
        self.ins().jump(next, &[]);
        self.b.seal_block(next);
        self.b.switch_to_block(next);
        self.recorded = Recorded::default();
    }

    /// Adds the instructions that compare a function with the predicted one. Code goes on in two places then.
    pub(super) fn execute_guard(&mut self) {
        if self.observes() {
            self.recorded.pending += GUARD;
            self.carry();
        }
    }

    /// Records an access to `bytes` at the host's `address` in the heap or the store's region; `reference` is what the
    /// address was computed from.
    pub(super) fn observe(
        &mut self,
        kind: Kind,
        reference: Option<Value>,
        address: Value,
        offset: i32,
        bytes: u32,
    ) {
        if self.observes() {
            let base = self.base();
            let at = self.ins().isub(address, base);
            let at = self.ins().iadd_imm_s(at, HEAP as i64 + i64::from(offset));
            self.append(kind, reference, at, bytes);
        }
    }

    /// Records the load of a persistence check: the header's byte. The access after it depends on the reference as the check does.
    pub(super) fn observe_check(&mut self, reference: Value, address: Value) {
        if self.observes() {
            let loaded = self.recorded.loaded;
            self.observe(Kind::Read, Some(reference), address, COLLECTOR_BYTE, 1);
            self.recorded.loaded = loaded;
        }
    }

    /// Adds a persistence check's other instructions.
    pub(super) fn execute_check(&mut self, bias: Bias) {
        if self.observes() {
            self.recorded.pending += CHECK[bias as usize];
        }
    }

    /// Records an access to a linear memory, by its number in the store.
    pub(super) fn record_memory(
        &mut self,
        kind: Kind,
        memory: u32,
        index: Value,
        offset: u64,
        bytes: u32,
    ) {
        if self.observes() {
            let wide = self.widened(index);
            let at = memory_at(memory).wrapping_add(offset) as i64;
            let at = self.ins().iadd_imm_s(wide, at);
            self.append(kind, Some(index), at, bytes);
        }
    }

    /// Adds instructions.
    pub(super) fn execute(&mut self, instructions: u32) {
        if self.observes() {
            self.recorded.pending += instructions;
        }
    }

    /// An operator is not executed after all.
    pub(super) fn not_executed(&mut self, instructions: u32) {
        self.recorded.pending = self.recorded.pending.saturating_sub(instructions);
    }

    /// Remembers the value that the last access loaded.
    pub(super) fn record_loaded(&mut self, value: Value) {
        self.recorded.loaded = Some(value);
    }

    /// The result is the constant that encodes the access.
    fn append(&mut self, kind: Kind, from: Option<Value>, at: Value, bytes: u32) -> Option<Value> {
        let recording = self.recording()?;
        let flags = MemFlagsData::trusted();
        let dependent = from.is_some() && from == self.recorded.loaded;
        let instructions = std::mem::take(&mut self.recorded.pending);
        let word = i64::from(instructions) << INSTRUCTIONS_SHIFT
            | i64::from(bytes) << SIZE_SHIFT
            | (kind as i64) << KIND_SHIFT
            | i64::from(dependent) << DEPENDENT_SHIFT;
        let constant = self.i64(word);
        let mut word = constant;
        if !std::mem::replace(&mut self.recorded.counted, true) {
            let count = Recording::INSTRUCTIONS;
            let carried = self.ins().load(types::I64, flags, recording, count);
            word = self.ins().iadd(word, carried);
            let zero = self.i64(0);
            self.ins().store(flags, zero, recording, count);
        }
        let ins = Recording::NEXT;
        let next = self.ins().load(types::I64, flags, recording, ins);
        self.ins().store(flags, at, next, 0);
        self.ins().store(flags, word, next, 8);
        let next = self.ins().iadd_imm_s(next, size_of::<Op>() as i64);
        self.ins().store(flags, next, recording, ins);
        self.recorded.loaded = None;
        self.recorded.unchecked += 1;
        if self.recorded.unchecked > MOST_UNCHECKED {
            self.tell_if_full(recording, next);
        }
        Some(constant)
    }

    /// Hands the buffer over if it is full.
    fn tell_if_full(&mut self, recording: Value, next: Value) {
        self.recorded.unchecked = 0;
        let flags = MemFlagsData::trusted();
        let end = self
            .ins()
            .load(types::I64, flags, recording, Recording::END);
        let full = self
            .ins()
            .icmp(IntCC::UnsignedGreaterThanOrEqual, next, end);
        let (tell, go_on) = (self.b.create_block(), self.b.create_block());
        self.b.set_cold_block(tell);
        self.ins().brif(full, tell, &[], go_on, &[]);
        self.b.seal_block(tell);
        self.b.switch_to_block(tell);
        self.call_helper(Helper::Tell, &[]);
        self.ins().jump(go_on, &[]);
        self.b.seal_block(go_on);
        self.b.switch_to_block(go_on);
    }
}
