//! References that live across calls: a call may collect, and then all objects are elsewhere.
//!
//! Such a reference is stored into a slot of the frame where it is made. The map of each call says which slots are in use, so
//! that the collector finds and changes them. Behind a call the reference is loaded from its slot again.
//!
//! Cranelift's frontend does the same for values that are declared to it, with two differences. It costs a fifth of the
//! time, as most values live within one block: those take no part in the liveness analysis. And a block of baseline code
//! loads a reference once between two calls, instead of for each use. Optimized code is left to the mid-end, which knows better what
//! to keep: sharing the loads here made a search with short loops a tenth slower.

use super::translate::{Translated, Values};
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::entity::packed_option::PackedOption;
use cranelift_codegen::entity::{EntitySet, SecondaryMap};
use cranelift_codegen::ir::{
    AliasRegionData, Block, BlockArg, BlockCall, FuncRef, Function, Inst, InstBuilder,
    InstructionData, MemFlagsData, Opcode, StackSlot, StackSlotData, StackSlotKind,
    UserStackMapEntry, Value, ValueDef, types,
};
use cranelift_codegen::isa::CallConv;
use cranelift_codegen::traversals::Dfs;
use smallvec::SmallVec;
use std::ops::Range;

const SLOT_BYTES: u32 = 8;
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    /// A reference is made: by an instruction, or as a block's parameter.
    Def,
    Use,
    /// A call, which may collect.
    Call,
    /// A reference goes along an edge out of a call.
    Passed,
}

/// The use of a reference by an instruction.
#[derive(Clone, Copy)]
struct Event {
    what: What,
    /// The reference's number; of a call, that of the list of references live across it.
    number: u32,
    /// None for a block's parameter.
    inst: Option<Inst>,
}

/// The analysis state of a reference.
struct Reference {
    value: Value,
    block: u32,
    /// Its number among those that are used in other blocks than where they are made.
    global: u32,
    /// Whether it lives across a call.
    spilled: bool,
    slot: Option<StackSlot>,
    /// The value that it has in the block that is rewritten, and since which call.
    current: Value,
    since: u32,
}

/// The pass, with memory that it uses again.
#[derive(Default)]
pub(super) struct Safepoints {
    dfs: Dfs,
    /// Blocks, each after those that it leads to, but for loops.
    order: Vec<Block>,
    index: SecondaryMap<Block, u32>,
    /// One more than the numbers of references.
    numbers: SecondaryMap<Value, u32>,
    references: Vec<Reference>,
    events: Vec<Event>,
    /// By block.
    ranges: Vec<Range<usize>>,
    /// Numbers of references that are used in other blocks.
    globals: Vec<u32>,
    /// Of each block, a bit for each global.
    live_in: Vec<u64>,
    /// By call, the references live across it.
    across: Vec<u32>,
    across_of: Vec<Range<usize>>,
    free: Vec<StackSlot>,
    live: Live,
    /// The references live at a block's end.
    out: Vec<u32>,
    /// Addresses of slots, in code that has each once; else none.
    addresses: Option<Addresses>,
}

#[derive(Default)]
struct Addresses {
    of: SecondaryMap<StackSlot, PackedOption<Value>>,
    made: Vec<Inst>,
}

/// References that are live, in no order.
#[derive(Default)]
struct Live {
    members: Vec<u32>,
    at: Vec<u32>,
}

impl Live {
    fn reset(&mut self, references: usize) {
        self.members.clear();
        self.at.clear();
        self.at.resize(references, NONE);
    }

    fn insert(&mut self, number: u32) {
        if self.at[number as usize] == NONE {
            self.at[number as usize] = self.members.len() as u32;
            self.members.push(number);
        }
    }

    fn remove(&mut self, number: u32) {
        let at = std::mem::replace(&mut self.at[number as usize], NONE);
        if at != NONE {
            self.members.swap_remove(at as usize);
            if let Some(&moved) = self.members.get(at as usize) {
                self.at[moved as usize] = at;
            }
        }
    }

    fn clear(&mut self) {
        for number in self.members.drain(..) {
            self.at[number as usize] = NONE;
        }
    }
}

impl Safepoints {
    /// Spills the references of a function that live across calls. Loads and stores of spilled references are in `region`, if
    /// they have one. If there are `shared` instructions, which have no place, addresses of slots come to them.
    pub fn run(
        &mut self,
        func: &mut Function,
        translated: &Translated,
        region: Option<AliasRegionData>,
        shared: Option<&mut Vec<Inst>>,
    ) {
        self.addresses = shared.is_some().then(Addresses::default);
        self.order.clear();
        self.order.extend(self.dfs.post_order_iter(func));
        self.index.clear();
        for (i, &block) in self.order.iter().enumerate() {
            self.index[block] = i as u32;
        }
        let references = self.close(func, &translated.references);
        if !self.find_events(func, &references, &translated.harmless) {
            return;
        }
        self.find_live_in(func);
        self.find_across(func);
        self.assign_slots(func);
        self.rewrite(func, region);
        if let (Some(shared), Some(addresses)) = (shared, self.addresses.take()) {
            shared.extend(addresses.made);
        }
    }

    /// The references that were declared, and the parameters that became those when variables were read where paths meet.
    fn close(&self, func: &Function, declared: &EntitySet<Value>) -> EntitySet<Value> {
        let dfg = &func.dfg;
        let mut all = EntitySet::with_capacity(dfg.num_values());
        for value in declared.keys().filter(|&v| declared.contains(v)) {
            let value = dfg.resolve_aliases(value);
            if !is_constant(func, value) {
                all.insert(value);
            }
        }
        // Ways from parameter to parameter.
        let mut pairs = Vec::new();
        for &block in &self.order {
            let Some(last) = func.layout.last_inst(block) else {
                continue;
            };
            for call in dfg.insts[last].branch_destination(&dfg.jump_tables, &dfg.exception_tables)
            {
                let params = dfg.block_params(call.block(&dfg.value_lists));
                for (arg, &param) in call.args(&dfg.value_lists).zip(params) {
                    let Some(value) = arg.as_value() else {
                        continue;
                    };
                    let value = dfg.resolve_aliases(value);
                    if dfg.value_type(value) == types::I64
                        && matches!(dfg.value_def(value), ValueDef::Param(..))
                    {
                        pairs.push((value, param));
                    }
                }
            }
        }
        loop {
            let mut changed = false;
            for &(value, param) in &pairs {
                if all.contains(param) && !all.contains(value) {
                    all.insert(value);
                    changed = true;
                }
            }
            if !changed {
                return all;
            }
        }
    }

    /// Lists the uses of references in each block. Returns whether there is any call that they could live across.
    fn find_events(
        &mut self,
        func: &Function,
        managed: &EntitySet<Value>,
        harmless: &EntitySet<FuncRef>,
    ) -> bool {
        self.numbers.clear();
        self.references.clear();
        self.events.clear();
        self.globals.clear();
        self.ranges.clear();
        self.ranges.resize(self.order.len(), 0..0);
        let mut calls = false;
        let dfg = &func.dfg;
        // Definitions come before uses.
        for at in (0..self.order.len()).rev() {
            let (block, start) = (self.order[at], self.events.len());
            for &param in dfg.block_params(block) {
                self.define(managed, param, at as u32, None);
            }
            for inst in func.layout.block_insts(block) {
                let data = &dfg.insts[inst];
                let is_call = may_collect(func, data, harmless);
                for &value in dfg.inst_args(inst) {
                    self.note(dfg.resolve_aliases(value), at as u32, inst, What::Use);
                }
                if is_call {
                    calls = true;
                    self.events.push(Event {
                        what: What::Call,
                        number: NONE,
                        inst: Some(inst),
                    });
                }
                let passed = if is_call { What::Passed } else { What::Use };
                let edges = match data.opcode().is_branch() {
                    true => data.branch_destination(&dfg.jump_tables, &dfg.exception_tables),
                    false => &[],
                };
                for call in edges {
                    for arg in call.args(&dfg.value_lists) {
                        if let Some(value) = arg.as_value() {
                            self.note(dfg.resolve_aliases(value), at as u32, inst, passed);
                        }
                    }
                }
                for &value in dfg.inst_results(inst) {
                    self.define(managed, value, at as u32, Some(inst));
                }
            }
            self.ranges[at] = start..self.events.len();
        }
        calls && !self.references.is_empty()
    }

    fn define(&mut self, managed: &EntitySet<Value>, value: Value, block: u32, inst: Option<Inst>) {
        if !managed.contains(value) {
            return;
        }
        let number = self.references.len() as u32;
        self.references.push(Reference {
            value,
            block,
            global: NONE,
            spilled: false,
            slot: None,
            current: value,
            since: NONE,
        });
        self.numbers[value] = number + 1;
        self.events.push(Event {
            what: What::Def,
            number,
            inst,
        });
    }

    fn note(&mut self, value: Value, block: u32, inst: Inst, what: What) {
        let Some(number) = self.number(value) else {
            return;
        };
        let reference = &mut self.references[number as usize];
        if reference.block != block && reference.global == NONE {
            reference.global = self.globals.len() as u32;
            self.globals.push(number);
        }
        self.events.push(Event {
            what,
            number,
            inst: Some(inst),
        });
    }

    /// The number of a reference that has been defined.
    fn number(&self, value: Value) -> Option<u32> {
        self.numbers[value].checked_sub(1)
    }

    /// Words of a block's bits.
    fn words(&self) -> usize {
        self.globals.len().div_ceil(64)
    }

    /// Which globals are live at the beginnings of blocks.
    fn find_live_in(&mut self, func: &Function) {
        let words = self.words();
        self.live_in.clear();
        self.live_in.resize(words * self.order.len(), 0);
        if words == 0 {
            return;
        }
        let mut kills = vec![0u64; self.live_in.len()];
        for (at, range) in self.ranges.iter().enumerate() {
            for event in &self.events[range.clone()] {
                if event.what == What::Call {
                    continue;
                }
                let reference = &self.references[event.number as usize];
                if reference.global == NONE {
                    continue;
                }
                let (word, bit) = (reference.global as usize / 64, reference.global % 64);
                match event.what {
                    What::Def => kills[at * words + word] |= 1 << bit,
                    // A reference defined in a block is not live at its beginning.
                    _ if reference.block == at as u32 => {}
                    _ => self.live_in[at * words + word] |= 1 << bit,
                }
            }
        }
        let successors: Vec<SmallVec<[u32; 4]>> = self
            .order
            .iter()
            .map(|&b| func.block_successors(b).map(|s| self.index[s]).collect())
            .collect();
        loop {
            let mut changed = false;
            // From the end on: so most of what follows is known already.
            for (at, next) in successors.iter().enumerate().rev() {
                for &next in next {
                    for word in 0..words {
                        let more = self.live_in[next as usize * words + word];
                        let old = &mut self.live_in[at * words + word];
                        let new = *old | more & !kills[at * words + word];
                        changed |= new != *old;
                        *old = new;
                    }
                }
            }
            if !changed {
                return;
            }
        }
    }

    /// The references live at a block's end.
    fn live_out(&self, func: &Function, at: usize, mut found: impl FnMut(u32)) {
        let words = self.words();
        for next in func.block_successors(self.order[at]) {
            let first = self.index[next] as usize * words;
            for (i, &word) in self.live_in[first..first + words].iter().enumerate() {
                let mut rest = word;
                while rest != 0 {
                    found(self.globals[i * 64 + rest.trailing_zeros() as usize]);
                    rest &= rest - 1;
                }
            }
        }
    }

    /// The references live across each call.
    fn find_across(&mut self, func: &Function) {
        self.across.clear();
        self.across_of.clear();
        let mut live = std::mem::take(&mut self.live);
        live.reset(self.references.len());
        for at in 0..self.order.len() {
            live.clear();
            self.live_out(func, at, |number| live.insert(number));
            for i in self.ranges[at].clone().rev() {
                let event = self.events[i];
                match event.what {
                    What::Def => live.remove(event.number),
                    What::Use | What::Passed => live.insert(event.number),
                    What::Call => {
                        let start = self.across.len();
                        self.across.extend_from_slice(&live.members);
                        self.events[i].number = self.across_of.len() as u32;
                        self.across_of.push(start..self.across.len());
                        for &number in &live.members {
                            self.references[number as usize].spilled = true;
                        }
                    }
                }
            }
        }
        self.live = live;
    }

    /// Assigns slots to spilled references. From ends of blocks to their beginnings and from later blocks to earlier ones, a definition
    /// ends the use of its slot.
    fn assign_slots(&mut self, func: &mut Function) {
        self.free.clear();
        let mut out = std::mem::take(&mut self.out);
        for at in 0..self.order.len() {
            out.clear();
            self.live_out(func, at, |number| out.push(number));
            for &number in &out {
                self.assign_slot(func, number);
            }
            for i in self.ranges[at].clone().rev() {
                let event = self.events[i];
                match event.what {
                    What::Use | What::Passed => self.assign_slot(func, event.number),
                    What::Def => self
                        .free
                        .extend(self.references[event.number as usize].slot),
                    // References live across it are used after it.
                    What::Call => {}
                }
            }
        }
        self.out = out;
    }

    fn assign_slot(&mut self, func: &mut Function, number: u32) {
        let reference = &mut self.references[number as usize];
        if reference.spilled && reference.slot.is_none() {
            let align = SLOT_BYTES.trailing_zeros() as u8;
            let data = StackSlotData::new(StackSlotKind::ExplicitSlot, SLOT_BYTES, align);
            let slot = self.free.pop();
            reference.slot = Some(slot.unwrap_or_else(|| func.create_sized_stack_slot(data)));
        }
    }

    fn rewrite(&mut self, func: &mut Function, region: Option<AliasRegionData>) {
        let region = region.map(|data| func.dfg.alias_regions.insert(data));
        let flags = MemFlagsData::trusted().with_alias_region(region);
        // Calls and beginnings of blocks so far.
        let mut now = 0;
        for at in 0..self.order.len() {
            now += 1;
            let block = self.order[at];
            let mut i = self.ranges[at].start;
            while i < self.ranges[at].end {
                let event = self.events[i];
                match event.what {
                    What::Def => self.spill(func, block, event, now, flags),
                    What::Use => {
                        let inst = event.inst.expect("an instruction's use");
                        let first = i;
                        while i + 1 < self.ranges[at].end
                            && self.events[i + 1].what == What::Use
                            && self.events[i + 1].inst == event.inst
                        {
                            i += 1;
                        }
                        self.reload_uses(func, inst, first..i + 1, now, flags);
                    }
                    What::Call => {
                        let inst = event.inst.expect("a call");
                        self.map(func, inst, event.number);
                        now += 1;
                    }
                    What::Passed => {
                        let inst = event.inst.expect("a call");
                        self.reload_on_edges(func, block, inst, flags);
                        // All edges of the call, which ends the block.
                        i = self.ranges[at].end;
                    }
                }
                i += 1;
            }
        }
    }

    /// Stores a reference that was just made into its slot.
    fn spill(
        &mut self,
        func: &mut Function,
        block: Block,
        event: Event,
        now: u32,
        flags: MemFlagsData,
    ) {
        let reference = &mut self.references[event.number as usize];
        let Some(slot) = reference.slot else { return };
        (reference.current, reference.since) = (reference.value, now);
        let value = reference.value;
        let cursor = FuncCursor::new(func);
        let mut cursor = match event.inst {
            Some(inst) => cursor.after_inst(inst),
            None => cursor.at_first_insertion_point(block),
        };
        let address = address_of(&mut self.addresses, &mut cursor, slot);
        cursor.ins().store(flags, value, address, 0);
    }

    /// Has an instruction use references in slots.
    fn reload_uses(
        &mut self,
        func: &mut Function,
        inst: Inst,
        events: Range<usize>,
        now: u32,
        flags: MemFlagsData,
    ) {
        let mut changed = false;
        for i in events {
            let reference = &mut self.references[self.events[i].number as usize];
            let Some(slot) = reference.slot else { continue };
            let shared = flags.alias_region().is_none();
            if reference.since != now || !shared {
                let mut cursor = FuncCursor::new(func).at_inst(inst);
                let address = address_of(&mut self.addresses, &mut cursor, slot);
                reference.current = cursor.ins().load(types::I64, flags, address, 0);
                reference.since = now;
            }
            changed |= reference.current != reference.value;
        }
        if !changed {
            return;
        }
        let values: Values = match func.dfg.insts[inst].opcode().is_safepoint() {
            // Arguments of its edges are not used by the call itself.
            true => Values::from_slice(func.dfg.inst_args(inst)),
            false => func.dfg.inst_values(inst).collect(),
        };
        let values = values.into_iter().map(|value| {
            let resolved = func.dfg.resolve_aliases(value);
            let reference = self.number(resolved).map(|n| &self.references[n as usize]);
            let current = reference.filter(|r| r.slot.is_some()).map(|r| r.current);
            current.unwrap_or(resolved)
        });
        let values: Values = values.collect();
        match func.dfg.insts[inst].opcode().is_safepoint() {
            true => func.dfg.inst_args_mut(inst).copy_from_slice(&values),
            false => func.dfg.overwrite_inst_values(inst, values.into_iter()),
        }
    }

    /// Adds the stack map of a call.
    fn map(&self, func: &mut Function, inst: Inst, call: u32) {
        let across = &self.across[self.across_of[call as usize].clone()];
        let entries = across.iter().map(|&number| UserStackMapEntry {
            ty: types::I64,
            slot: self.references[number as usize]
                .slot
                .expect("a slot of what is live"),
            offset: 0,
        });
        func.dfg.append_user_stack_map_entries(inst, entries);
    }

    /// Loads the arguments of a call's edges after the call: each such edge gets a block for that.
    fn reload_on_edges(
        &mut self,
        func: &mut Function,
        block: Block,
        inst: Inst,
        flags: MemFlagsData,
    ) {
        let mut behind = block;
        let edges = func.dfg.insts[inst]
            .branch_destination(&func.dfg.jump_tables, &func.dfg.exception_tables)
            .len();
        for edge in 0..edges {
            let dfg = &func.dfg;
            let call =
                dfg.insts[inst].branch_destination(&dfg.jump_tables, &dfg.exception_tables)[edge];
            let target = call.block(&dfg.value_lists);
            let passed: Vec<BlockArg> = call.args(&dfg.value_lists).collect();
            let slot_of = |value: Value| {
                let number = self.number(dfg.resolve_aliases(value))?;
                self.references[number as usize].slot
            };
            let slots: Vec<Option<StackSlot>> = passed
                .iter()
                .map(|arg| arg.as_value().and_then(slot_of))
                .collect();
            if slots.iter().all(Option::is_none) {
                continue;
            }
            let landing = func.dfg.make_block();
            func.layout.insert_block_after(landing, behind);
            if func.layout.is_cold(target) {
                func.layout.set_cold(landing);
            }
            behind = landing;
            let (mut to_landing, mut to_target) = (Vec::new(), Vec::new());
            for (i, (&arg, slot)) in passed.iter().zip(slots).enumerate() {
                match (arg, slot) {
                    (_, Some(slot)) => {
                        let mut cursor = FuncCursor::new(func).at_bottom(landing);
                        let address = address_of(&mut self.addresses, &mut cursor, slot);
                        let value = cursor.ins().load(types::I64, flags, address, 0);
                        to_target.push(BlockArg::Value(value));
                    }
                    (BlockArg::Value(_), None) => to_target.push(arg),
                    (BlockArg::TryCallRet(_) | BlockArg::TryCallExn(_), None) => {
                        let ty = func.dfg.value_type(func.dfg.block_params(target)[i]);
                        let param = func.dfg.append_block_param(landing, ty);
                        to_landing.push(arg);
                        to_target.push(BlockArg::Value(param));
                    }
                }
            }
            let mut cursor = FuncCursor::new(func).at_bottom(landing);
            cursor.ins().jump(target, &to_target);
            let call = BlockCall::new(landing, to_landing, &mut func.dfg.value_lists);
            let dfg = &mut func.dfg;
            dfg.insts[inst]
                .branch_destination_mut(&mut dfg.jump_tables, &mut dfg.exception_tables)[edge] =
                call;
        }
    }
}

/// The address of a slot.
fn address_of(
    addresses: &mut Option<Addresses>,
    cursor: &mut FuncCursor<'_>,
    slot: StackSlot,
) -> Value {
    let Some(addresses) = addresses else {
        return cursor.ins().stack_addr(types::I64, slot, 0);
    };
    if let Some(known) = addresses.of[slot].expand() {
        return known;
    }
    let dfg = &mut cursor.func.dfg;
    let inst = dfg.make_inst(InstructionData::StackAddr {
        opcode: Opcode::StackAddr,
        stack_slot: slot,
        offset: 0.into(),
    });
    dfg.make_inst_results(inst, types::I64);
    let address = dfg.first_result(inst);
    addresses.of[slot] = address.into();
    addresses.made.push(inst);
    address
}

/// Whether an instruction calls a function that may collect. Of the host's own code those are only the helpers that say so; no function of
/// the program is called by the host's conventions.
fn may_collect(func: &Function, data: &InstructionData, harmless: &EntitySet<FuncRef>) -> bool {
    match *data {
        InstructionData::Call { func_ref, .. } if harmless.contains(func_ref) => false,
        InstructionData::CallIndirect {
            opcode: Opcode::CallIndirect,
            sig_ref,
            ..
        } => func.dfg.signatures[sig_ref].call_conv == CallConv::Tail,
        _ => data.opcode().is_safepoint(),
    }
}

/// Whether a value is a constant. Of references that is null alone, which no collection changes.
fn is_constant(func: &Function, value: Value) -> bool {
    let inst = func.dfg.value_def(value).inst();
    inst.is_some_and(|inst| func.dfg.insts[inst].opcode() == Opcode::Iconst)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::isa::{Level, isa};
    use cranelift_codegen::ir::{AbiParam, Signature};
    use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext, Variable};
    use proptest::prelude::*;
    use std::collections::HashMap;

    const BLOCKS: usize = 6;
    const LOCALS: usize = 4;

    /// The steps of a random block, over and over, and its successors.
    type Steps = Vec<(u8, usize, usize)>;
    type Random = Vec<(Steps, usize, usize)>;

    fn random() -> impl Strategy<Value = Random> {
        let step = (0u8..4, 0..LOCALS, 0..LOCALS);
        let block = (prop::collection::vec(step, 0..8), 0..BLOCKS, 0..BLOCKS);
        prop::collection::vec(block, BLOCKS)
    }

    /// A function of references alone that makes, copies, uses them and calls.
    fn build(blocks: &Random) -> (Function, Translated) {
        let mut func = Function::new();
        func.signature = Signature::new(CallConv::Tail);
        func.signature.params.push(AbiParam::new(types::I64));
        let mut references = EntitySet::new();
        let mut context = FunctionBuilderContext::new();
        let mut b = FunctionBuilder::new(&mut func, &mut context);
        let sig = b.import_signature(Signature::new(CallConv::Tail));
        let entry = b.create_block();
        b.append_block_params_for_function_params(entry);
        b.switch_to_block(entry);
        let param = b.block_params(entry)[0];
        references.insert(param);
        let locals: Vec<Variable> = (0..LOCALS).map(|_| b.declare_var(types::I64)).collect();
        for &local in &locals {
            b.def_var(local, param);
        }
        let all: Vec<Block> = blocks.iter().map(|_| b.create_block()).collect();
        b.ins().jump(all[0], &[]);
        for ((steps, to, other), &block) in blocks.iter().zip(&all) {
            b.switch_to_block(block);
            for &(kind, x, y) in steps {
                let mut read = |b: &mut FunctionBuilder<'_>, at: usize| {
                    let value = b.use_var(locals[at]);
                    references.insert(value);
                    value
                };
                match kind {
                    0 => {
                        let from = read(&mut b, x);
                        let made = b.ins().load(types::I64, MemFlagsData::new(), from, 0);
                        references.insert(made);
                        b.def_var(locals[y], made);
                    }
                    1 => {
                        let from = read(&mut b, x);
                        b.def_var(locals[y], from);
                    }
                    2 => {
                        let (value, to) = (read(&mut b, x), read(&mut b, y));
                        b.ins().store(MemFlagsData::new(), value, to, 0);
                    }
                    _ => {
                        let callee = b.ins().iconst(types::I64, 0);
                        b.ins().call_indirect(sig, callee, &[]);
                    }
                }
            }
            let condition = b.ins().iconst(types::I8, 1);
            b.ins().brif(condition, all[*to], &[], all[*other], &[]);
        }
        b.seal_all_blocks();
        b.finalize(isa(Level::Baseline).unwrap().frontend_config());
        let translated = Translated {
            called: Vec::new(),
            left_out: Vec::new(),
            inlined: vec![],
            shared: vec![],
            references,
            harmless: EntitySet::new(),
        };
        (func, translated)
    }

    /// The meaning of a value: a reference to the object of this number as of a number of collections, the address of a slot, or irrelevant.
    #[derive(Clone, Copy, PartialEq, Debug)]
    enum Content {
        Reference(usize, usize),
        Slot(StackSlot),
        Other,
    }

    /// Goes the way through a function that `turns` say; each call is a collection after which all objects are elsewhere. The objects that
    /// were stored, and the targets.
    fn run(func: &Function, turns: &[bool], moves: bool) -> Vec<(usize, usize)> {
        let dfg = &func.dfg;
        let mut values: HashMap<Value, Content> = HashMap::new();
        let mut slots: HashMap<StackSlot, Content> = HashMap::new();
        let (mut objects, mut collections, mut trace) = (1, 0, vec![]);
        let mut turns = turns.iter();
        let mut block = func.layout.entry_block().unwrap();
        values.insert(dfg.block_params(block)[0], Content::Reference(0, 0));
        loop {
            let mut next = None;
            for inst in func.layout.block_insts(block) {
                let at = |v: Value| values[&dfg.resolve_aliases(v)];
                let object = |v: Value| match at(v) {
                    Content::Reference(object, seen) => {
                        assert!(
                            !moves || seen == collections,
                            "{v} is where it was in\n{func}"
                        );
                        object
                    }
                    other => panic!("{v} is {other:?} in\n{func}"),
                };
                let args = dfg.inst_args(inst);
                let result = match dfg.insts[inst] {
                    InstructionData::UnaryImm { .. } => Content::Other,
                    InstructionData::StackAddr { stack_slot, .. } => Content::Slot(stack_slot),
                    InstructionData::Load { .. } => match at(args[0]) {
                        Content::Slot(slot) => slots[&slot],
                        _ => {
                            trace.push((object(args[0]), objects));
                            objects += 1;
                            Content::Reference(objects - 1, collections)
                        }
                    },
                    InstructionData::Store { .. } => {
                        let value = object(args[0]);
                        match at(args[1]) {
                            Content::Slot(slot) => drop(slots.insert(slot, at(args[0]))),
                            _ => trace.push((value, object(args[1]))),
                        }
                        continue;
                    }
                    InstructionData::CallIndirect { .. } => {
                        let entries = dfg.user_stack_map_entries(inst);
                        for entry in entries.into_iter().flatten() {
                            let slot = slots.get_mut(&entry.slot).expect("a slot in use");
                            let Content::Reference(_, seen) = slot else {
                                panic!("no reference in {} in\n{func}", entry.slot)
                            };
                            assert_eq!(*seen, collections, "an old one is mapped in\n{func}");
                            *seen += 1;
                        }
                        collections += 1;
                        continue;
                    }
                    _ => {
                        let calls = dfg.insts[inst]
                            .branch_destination(&dfg.jump_tables, &dfg.exception_tables);
                        let call = match calls {
                            [only] => only,
                            [yes, no] => match turns.next() {
                                Some(true) => yes,
                                Some(false) => no,
                                None => return trace,
                            },
                            _ => panic!("an instruction that is not made here in\n{func}"),
                        };
                        let to = call.block(&dfg.value_lists);
                        let passed: Vec<Content> = call
                            .args(&dfg.value_lists)
                            .map(|arg| at(arg.as_value().unwrap()))
                            .collect();
                        next = Some((to, passed));
                        continue;
                    }
                };
                values.insert(dfg.inst_results(inst)[0], result);
            }
            let (to, passed) = next.expect("a branch");
            values.extend(dfg.block_params(to).iter().copied().zip(passed));
            block = to;
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        /// Where all objects move at each call, code uses the objects that it would use if none moved.
        #[test]
        fn no_reference_is_old(blocks in random(), turns in prop::collection::vec(any::<bool>(), 0..40)) {
            let (mut func, translated) = build(&blocks);
            let wanted = run(&func, &turns, false);
            let mut safepoints = Safepoints::default();
            safepoints.run(&mut func, &translated, None, None);
            prop_assert_eq!(run(&func, &turns, true), wanted.clone());
            // The same with each slot's address once, which gets a place where the function begins.
            let (mut func, translated) = build(&blocks);
            let mut shared = Vec::new();
            safepoints.run(&mut func, &translated, None, Some(&mut shared));
            crate::compile::shared::place(&mut func, &shared);
            prop_assert_eq!(run(&func, &turns, true), wanted);
        }
    }
}
