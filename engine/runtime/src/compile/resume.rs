//! Leaving an activation in the middle, and going on in other code.
//!
//! The state of an activation at an operator is its locals and operands. Code that leaves stores them into the store's
//! state buffer, asks the runtime for a *continuation*, and calls that in its own place. A continuation is the
//! rest of the function from that operator on, compiled for itself: it begins by loading the state. It serves three ends:
//!
//! - a loop that has become hot goes on in optimized code (on-stack replacement);
//! - optimized code whose guard fails goes on in baseline code (deoptimization); if the guard was in a function that
//!   had been inlined, the continuation of the inner one returns to the outer one's, which is left too;
//! - the rest of a function that began inside of a loop has no code for the part before: a branch back to that loop leaves
//!   again, for the continuation from the loop's beginning.
//!
//! Nothing between storing and loading collects.

use super::control::{Exits, Frame, FrameKind};
use super::live::{Locals, liveness};
use super::signatures::clif_type;
use super::translate::{Local, Operand, Translator, broken};
use crate::error::Result;
use crate::helpers::Helper;
use crate::store::FuncKind;
use crate::store::region::{STATE, STATE_WORDS, displacement};
use crate::types::ValType;
use cranelift_codegen::ir::{
    self, Block, InstBuilder, MemFlagsData, StackSlot, StackSlotData, StackSlotKind, Value, types,
};
use rustc_hash::FxHashMap as HashMap;
use serde::{Deserialize, Serialize};
use std::rc::Rc;
use wasmparser as wp;
use wasmparser::Operator;

/// Why an activation leaves its code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub(crate) enum Why {
    /// A loop has become hot.
    HotLoop,
    /// A guard failed.
    Guard,
    /// The code ends here: at a branch back to a loop that began before it, or after a call whose guard failed.
    EndOfCode,
}

impl Why {
    pub fn from_number(n: u32) -> Why {
        [Why::HotLoop, Why::Guard, Why::EndOfCode][n as usize]
    }
}

/// A place in a function where an activation may go on.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Point {
    pub func: u32,
    /// Of the operator in the module.
    pub offset: u32,
    /// Types of the operands there.
    pub stack: Vec<ValType>,
    /// Operands below each open block, from the function's own on.
    pub heights: Vec<usize>,
}

/// The purpose of generated code.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum What {
    /// A function, by its number in the store.
    Function(u32),
    /// The rest of a function, by the number of its point.
    Continuation(u32),
}

/// All points of a store that code leaves for.
#[derive(Default)]
pub(crate) struct Points {
    all: Vec<Rc<Point>>,
    numbers: HashMap<(u32, u32), u32>,
}

impl Points {
    fn number(&mut self, point: Point) -> u32 {
        let key = (point.func, point.offset);
        if let Some(&n) = self.numbers.get(&key) {
            debug_assert_eq!(self.all[n as usize].heights, point.heights);
            return n;
        }
        let n = self.all.len() as u32;
        self.all.push(Rc::new(point));
        self.numbers.insert(key, n);
        n
    }

    /// All of them, in the order of their numbers.
    pub fn all(&self) -> &[Rc<Point>] {
        &self.all
    }

    /// The points of an earlier run, with the numbers that they had.
    pub fn restore(all: Vec<Point>) -> Points {
        let mut points = Points::default();
        for point in all {
            points.number(point);
        }
        points
    }

    pub fn get(&self, number: u32) -> Rc<Point> {
        self.all[number as usize].clone()
    }
}

/// Values of functions around an inlined one that is left: where they are while its rest runs. That takes no registers from them where
/// nothing is left.
#[derive(Default)]
pub(super) struct Parked {
    values: HashMap<Value, Kept>,
    /// Slots of all sizes, which all places where code is left share.
    slots: HashMap<u32, Vec<StackSlot>>,
}

#[derive(Clone, Copy)]
enum Kept {
    /// The reference is in another value, which is in the collector's stack map.
    Reference(Value),
    Slot(StackSlot, ir::Type),
}

/// For words of the state buffer, two of which may be one value.
fn words() -> MemFlagsData {
    MemFlagsData::new().with_notrap()
}

fn slot(i: usize) -> i32 {
    displacement(STATE) + 8 * i as i32
}

impl Translator<'_, '_> {
    /// Whether the innermost activation's state fits into the buffer.
    pub(super) fn fits_state(&self) -> bool {
        let locals = self.locals.iter().map(|l| l.ty.words());
        let operands = self.stack.iter().map(|o| o.ty.words());
        locals.chain(operands).sum::<usize>() <= STATE_WORDS
    }

    /// The locals that a function needs from an operator on.
    fn live_at(&mut self, func: u32, offset: u32) -> Locals {
        if !self.live.contains_key(&func) {
            let index = match self.env.funcs[func as usize].kind {
                FuncKind::Wasm { index, .. } => index,
                FuncKind::Host(..) => unreachable!("code leaves functions of modules"),
            };
            let checked = self.env.checks.is_some();
            let found = liveness(&self.env.body(index), checked).expect("validated");
            self.live.insert(func, Rc::new(found));
        }
        let live = self.live[&func].get(&offset);
        live.expect("a place where code may be left").clone()
    }

    /// How many values leaving at this operator stores.
    pub(super) fn state_size(&mut self) -> usize {
        let mut places: Vec<_> = self.activations[1..]
            .iter()
            .zip(&self.activations)
            .map(|(inner, outer)| (outer.func_id, inner.next_offset))
            .collect();
        places.push((self.activation().func_id, self.offset));
        let locals = places.into_iter().map(|(f, o)| self.live_at(f, o).len());
        locals.sum::<usize>() + self.stack.len()
    }

    /// The number of the point at `offset` in the innermost activation, with the operands below `height` on the
    /// stack. `params` are those of a loop that begins there.
    pub(super) fn point(&mut self, offset: u32, height: usize, params: usize) -> u32 {
        let a = self.activation();
        let (func, bottom, first) = (a.func_id, a.stack, a.control);
        debug_assert!(params <= height - bottom);
        let point = Point {
            func,
            offset,
            stack: self.stack[bottom..height].iter().map(|o| o.ty).collect(),
            heights: self.control[first..]
                .iter()
                .map(|f| f.height - bottom)
                .collect(),
        };
        self.env.points.number(point)
    }

    /// Stores the innermost activation's locals and operands, and asks for the code that goes on.
    fn store_state(&mut self, point: u32, why: Why) -> Value {
        let (first, bottom) = (self.activation().locals, self.activation().stack);
        let (func, offset) = {
            let p = self.env.points.get(point);
            (p.func, p.offset)
        };
        let live = self.live_at(func, offset);
        let mut at = 0;
        let mut values: Vec<(usize, Value)> = Vec::new();
        for i in 0..self.locals.len() - first {
            let Local { variable, ty } = self.locals[first + i];
            if live.contains(i) {
                values.push((at, self.read_local(variable)));
            }
            at += ty.words();
        }
        for operand in &self.stack[bottom..] {
            values.push((at, operand.value));
            at += operand.ty.words();
        }
        let base = self.base();
        for (at, v) in values {
            let v = self.unparked(v);
            self.ins().store(words(), v, base, slot(at));
        }
        let root = self.i32(self.activations[0].func_id as i64);
        let (point, why) = (self.i32(point as i64), self.i32(why as i64));
        self.call_helper(Helper::Resume, &[point, why, root])
            .expect("result")
    }

    /// Goes on elsewhere with the state of all activations; translation must go on in another block.
    pub(super) fn leave_for(&mut self, point: u32, why: Why) {
        let is_first = self.parked.values.is_empty();
        if is_first {
            self.park();
        }
        let code = self.store_state(point, why);
        if self.activations.len() > 1 {
            // Calls on the way out are not on the way that goes on here.
            let known = self.facts.clone();
            self.leave_inlined(code);
            if is_first {
                self.parked.values.clear();
            }
            self.facts = known;
            return;
        }
        let sig = self.continuation_signature();
        self.ins().return_call_indirect(sig, code, &[]);
    }

    /// Goes on in better code if there is any, else in `next`.
    pub(super) fn leave_if_hot(&mut self, point: u32, next: Block) {
        let code = self.store_state(point, Why::HotLoop);
        let enter = self.b.create_block();
        self.b.set_cold_block(enter);
        self.ins().brif(code, enter, &[], next, &[]);
        self.b.seal_block(enter);
        self.b.switch_to_block(enter);
        let sig = self.continuation_signature();
        self.ins().return_call_indirect(sig, code, &[]);
    }

    fn continuation_signature(&mut self) -> ir::SigRef {
        let ty = crate::types::FuncType {
            params: vec![],
            results: self.activation().ty.results.clone(),
        };
        self.b.import_signature(super::signatures::signature(&ty))
    }

    /// Saves the values that outer activations need while the rest of the innermost one runs.
    fn park(&mut self) {
        let mut values: Vec<(Value, bool)> = Vec::new();
        for at in 1..self.activations.len() {
            let (outer, inner) = (&self.activations[at - 1], &self.activations[at]);
            let (func, offset) = (outer.func_id, inner.next_offset);
            let (locals, operands) = (outer.locals..inner.locals, outer.stack..inner.stack);
            if inner.returns {
                continue;
            }
            let live = self.live_at(func, offset);
            for (i, at) in locals.enumerate() {
                let local = &self.locals[at];
                let (variable, managed) = (local.variable, local.ty.is_managed());
                if live.contains(i) {
                    values.push((self.read_local(variable), managed));
                }
            }
            let operands = self.stack[operands].iter();
            values.extend(operands.map(|o| (o.value, o.ty.is_managed())));
        }
        let mut used: HashMap<u32, usize> = HashMap::default();
        for (value, managed) in values {
            let value = self.b.func.dfg.resolve_aliases(value);
            if self.parked.values.contains_key(&value) || self.is_constant(value) {
                continue;
            }
            let ty = self.b.func.dfg.value_type(value);
            let kept = match managed {
                true => {
                    let other = self.ins().iadd_imm_s(value, 0);
                    self.track(other);
                    Kept::Reference(other)
                }
                false => {
                    let used = used.entry(ty.bytes()).or_default();
                    let slot = self.parking(ty.bytes(), *used);
                    *used += 1;
                    self.ins().stack_store(types::I64, value, slot, 0);
                    Kept::Slot(slot, ty)
                }
            };
            self.parked.values.insert(value, kept);
        }
    }

    /// Whether the value is made anew wherever it is needed.
    fn is_constant(&self, value: Value) -> bool {
        let dfg = &self.b.func.dfg;
        let inst = dfg.value_def(dfg.resolve_aliases(value)).inst();
        inst.is_some_and(|i| {
            let opcode = dfg.insts[i].opcode();
            matches!(
                opcode,
                ir::Opcode::Iconst | ir::Opcode::F32const | ir::Opcode::F64const
            )
        })
    }

    fn parking(&mut self, bytes: u32, index: usize) -> StackSlot {
        let slots = self.parked.slots.entry(bytes).or_default();
        if index == slots.len() {
            let align = bytes.trailing_zeros() as u8;
            let data = StackSlotData::new(StackSlotKind::ExplicitSlot, bytes, align);
            slots.push(self.b.create_sized_stack_slot(data));
        }
        slots[index]
    }

    /// The value, wherever it was put.
    fn unparked(&mut self, value: Value) -> Value {
        let resolved = self.b.func.dfg.resolve_aliases(value);
        match self.parked.values.get(&resolved) {
            None => value,
            Some(&Kept::Reference(other)) => other,
            Some(&Kept::Slot(slot, ty)) => self.ins().stack_load(types::I64, ty, slot, 0),
        }
    }

    /// Calls the rest of the inlined activation, then leaves the one around it.
    fn leave_inlined(&mut self, code: Value) {
        let sig = self.continuation_signature();
        let inner = self.activations.pop().expect("inlined");
        let locals = self.locals.split_off(inner.locals);
        let control = self.control.split_off(inner.control);
        let stack = self.stack.split_off(inner.stack);
        let handlers = self.handlers.split_off(inner.handlers);
        let offset = self.offset;
        self.offset = inner.call_offset;
        self.locate();
        let results = inner.ty.results.clone();
        let values = self.call_signature(sig, code, &[], &results);
        for (v, &ty) in values.into_iter().zip(&results) {
            self.push(v, ty);
        }
        match inner.returns {
            // The call was in the place of its caller's return.
            true => {
                let outer = self.activations.last().expect("outer").control;
                let (label, types) = self.target_at(outer);
                let args = self.branch_args(types.len());
                self.ins().jump(label, &args);
            }
            false => {
                let point = self.point(inner.next_offset, self.stack.len(), 0);
                self.leave_for(point, Why::EndOfCode);
            }
        }
        self.stack.truncate(inner.stack);
        self.stack.extend(stack);
        self.locals.extend(locals);
        self.control.extend(control);
        self.handlers.extend(handlers);
        self.activations.push(inner);
        self.offset = offset;
        self.locate();
    }

    // ---- continuations ----------------------------------------------------------------------------------------------------------

    /// The beginning of code without parameters, whose first operator is at an offset.
    pub(super) fn begin_at(&mut self, offset: u32) {
        self.offset = offset;
        self.locate();
        let entry = self.b.create_block();
        self.b.switch_to_block(entry);
        self.b.seal_block(entry);
        self.keep_base();
        self.check_stack();
        self.note_running();
    }

    /// The beginning of a continuation: takes the state out of the buffer, opens the blocks around the point, and leaves
    /// the reader at its operator.
    pub(super) fn resume(
        &mut self,
        body: &wp::FunctionBody<'_>,
        reader: &mut wp::OperatorsReader<'_>,
        point: &Point,
    ) -> Result<()> {
        self.begin_at(point.offset);
        let mut types = self.activation().ty.params.clone();
        for group in body.get_locals_reader().map_err(broken)? {
            let (count, ty) = group.map_err(broken)?;
            let ty = self.val_type(ty);
            types.extend(std::iter::repeat_n(ty, count as usize));
        }
        let base = self.base();
        let live = self.live_at(point.func, point.offset);
        let mut at = 0;
        for (i, &ty) in types.iter().enumerate() {
            let v = match live.contains(i) {
                true => self.stored(ty, base, at),
                // Nothing reads it before it is written.
                false => self.zero(ty),
            };
            self.declare_local(ty, v);
            at += ty.words();
        }
        for &ty in &point.stack {
            let v = self.stored(ty, base, at);
            self.push(v, ty);
            at += ty.words();
        }
        self.begin_unchecked();
        self.open_function();
        let mut around = Vec::new();
        while reader.original_position() < point.offset as u64 {
            let offset = reader.original_position() as u32;
            let op = reader.read().map_err(broken)?;
            match op {
                Operator::Block { .. }
                | Operator::Loop { .. }
                | Operator::If { .. }
                | Operator::Try { .. }
                | Operator::TryTable { .. } => around.push((op, offset, false)),
                // From here on it is a clause and no longer the body.
                Operator::Catch { .. } | Operator::CatchAll => {
                    around
                        .last_mut()
                        .expect("validated: clauses are in a try")
                        .2 = true;
                }
                Operator::End | Operator::Delegate { .. } => {
                    around.pop();
                }
                _ => {}
            }
        }
        // The function's own block is the first of the heights.
        for ((op, offset, clause), &height) in around.into_iter().zip(&point.heights[1..]) {
            self.open_around(op, offset, clause, height);
        }
        Ok(())
    }

    /// A value from the state buffer.
    fn stored(&mut self, ty: ValType, base: Value, at: usize) -> Value {
        match ty {
            ValType::Ref(_) => self.ins().uload32(words(), base, slot(at)),
            _ => self.ins().load(clif_type(ty), words(), base, slot(at)),
        }
    }

    /// Opens a block that began before the point, which is in a `clause` of it or in its body.
    fn open_around(&mut self, op: Operator<'_>, offset: u32, clause: bool, height: usize) {
        let (kind, ty) = match op {
            Operator::Block { blockty } => (FrameKind::Block, blockty),
            Operator::If { blockty } => (FrameKind::EnteredIf, blockty),
            Operator::Loop { blockty } => (FrameKind::EnteredLoop(offset), blockty),
            Operator::TryTable { try_table } => {
                let dispatch = self.open_handler();
                (FrameKind::Try(dispatch, try_table.catches), try_table.ty)
            }
            Operator::Try { blockty } if clause => (FrameKind::LegacyCatch(None), blockty),
            Operator::Try { blockty } => {
                let dispatch = self.open_handler();
                (FrameKind::LegacyTry(dispatch), blockty)
            }
            _ => unreachable!("only blocks are opened"),
        };
        let (params, results) = self.block_type(ty);
        let after = self.block_for(&results);
        let label = match kind {
            FrameKind::EnteredLoop(_) => self.block_for(&params),
            _ => after,
        };
        self.control.push(Frame {
            tested: None,
            kind,
            label,
            after,
            params,
            results,
            height,
            handlers: self.handlers.len(),
            entry: self.facts.clone(),
            exits: Exits::default(),
            copies: None,
        });
    }

    /// Translates a branch back to a loop whose beginning is not in this code.
    pub(super) fn leave_for_loop(&mut self, label: Block, params: &[ValType], offset: u32) {
        self.b.switch_to_block(label);
        self.fresh.clear();
        let values = self.b.block_params(label).to_vec();
        let height = self.stack.len();
        for (value, &ty) in values.into_iter().zip(params) {
            self.stack.push(Operand { value, ty });
        }
        let point = self.point(offset, self.stack.len(), params.len());
        self.leave_for(point, Why::EndOfCode);
        self.stack.truncate(height);
    }
}
