//! Analysis of a function before its code is generated: the order of its blocks, and of each value how often it is used, and
//! whether farther from where it is made than registers are kept.

use super::assembler::Reg;
use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::ir::{Block, Function, Inst, InstructionData, Opcode, Type, Value, types};

pub(super) const NONE: u32 = u32::MAX;
pub(super) const NO_REGISTER: Reg = Reg::MAX;

/// The kind of a value.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum What {
    /// A number, or the bits of one.
    Constant(i64),
    /// The address of a slot that the function has declared: its offset from the frame pointer.
    Frame(i32),
    /// The heap's base.
    Pinned,
    /// Whatever an instruction makes, or a block takes.
    Made,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Info {
    pub what: What,
    /// Uses whose code is to come.
    pub uses: u32,
    pub is_used: bool,
    /// Where it is in the frame, as an offset from the frame pointer: 0 for nowhere.
    pub slot: i32,
    pub reg: Reg,
    pub float: bool,
    /// Whether it is used in another stretch of blocks than it is made in.
    pub global: bool,
    /// Whether it is in its slot.
    pub stored: bool,
    stretch: u32,
}

impl Info {
    const NEW: Info = Info {
        what: What::Made,
        uses: 0,
        is_used: false,
        slot: 0,
        reg: NO_REGISTER,
        float: false,
        global: false,
        stored: false,
        stretch: NONE,
    };
}

#[derive(Default)]
pub(super) struct Plan {
    /// Blocks that are reached, in the order of their code: those that are seldom run are last.
    pub order: Vec<Block>,
    /// Whether the block at this place is reached from the one before it alone, so that registers still hold what they held.
    pub follows: Vec<bool>,
    /// Ways that lead to a block, or [`NONE`] for one that follows.
    ways: SecondaryMap<Block, u32>,
    /// By value.
    pub values: Vec<Info>,
    /// Offsets of declared slots from the frame pointer.
    pub slots: Vec<i32>,
    /// Whether the function takes what its callees throw. Then all registers may hold something else.
    pub catches: bool,
    /// Bytes of the frame that are in use.
    pub frame: i32,
    work: Vec<Block>,
}

/// Whether values of a type fit into the registers that are used here.
fn is_supported(ty: Type) -> bool {
    matches!(
        ty,
        types::I8 | types::I16 | types::I32 | types::I64 | types::F32 | types::F64
    )
}

/// The kind of an instruction's result, in a function whose slots are at these offsets.
fn what(func: &Function, slots: &[i32], inst: Inst) -> What {
    match func.dfg.insts[inst] {
        InstructionData::UnaryImm { imm, .. } => What::Constant(imm.bits()),
        InstructionData::UnaryIeee32 { imm, .. } => What::Constant(imm.bits().into()),
        InstructionData::UnaryIeee64 { imm, .. } => What::Constant(imm.bits() as i64),
        InstructionData::StackAddr {
            stack_slot, offset, ..
        } => What::Frame(slots[stack_slot.as_u32() as usize] + i32::from(offset)),
        InstructionData::NullAry {
            opcode: Opcode::GetPinnedReg,
        } => What::Pinned,
        _ => What::Made,
    }
}

impl Plan {
    /// None for a function with types that are not supported.
    pub fn make(&mut self, func: &Function, shared: &[Inst]) -> Option<()> {
        self.find_blocks(func);
        self.place_slots(func)?;
        self.values.clear();
        self.values.resize(func.dfg.num_values(), Info::NEW);
        self.find_values(func, shared)?;
        self.count_uses(func);
        Some(())
    }

    fn find_blocks(&mut self, func: &Function) {
        self.ways.clear();
        self.order.clear();
        self.follows.clear();
        self.catches = false;
        let dfg = &func.dfg;
        let entry = func.layout.entry_block().expect("a function has a block");
        self.ways[entry] = 1;
        self.work.clear();
        self.work.push(entry);
        while let Some(block) = self.work.pop() {
            let Some(last) = func.layout.last_inst(block) else {
                continue;
            };
            self.catches |= matches!(
                dfg.insts[last],
                InstructionData::TryCall { .. } | InstructionData::TryCallIndirect { .. }
            );
            let to = dfg.insts[last].branch_destination(&dfg.jump_tables, &dfg.exception_tables);
            for call in to {
                let next = call.block(&dfg.value_lists);
                if self.ways[next] == 0 {
                    self.work.push(next);
                }
                self.ways[next] += 1;
            }
        }
        for cold in [false, true] {
            let blocks = func.layout.blocks();
            let reached = blocks.filter(|&b| self.ways[b] > 0 && func.layout.is_cold(b) == cold);
            self.order.extend(reached);
        }
        for (i, &block) in self.order.iter().enumerate() {
            let before = i.checked_sub(1).map(|before| self.order[before]);
            let follows = before.is_some_and(|before| self.follows(func, before, block));
            self.follows.push(follows);
        }
        for (&block, &follows) in self.order.iter().zip(&self.follows) {
            if follows {
                self.ways[block] = NONE;
            }
        }
    }

    /// Whether a block is reached from the one before it alone.
    pub fn is_following(&self, block: Block) -> bool {
        self.ways[block] == NONE
    }

    fn follows(&self, func: &Function, before: Block, block: Block) -> bool {
        let dfg = &func.dfg;
        let Some(last) = func.layout.last_inst(before) else {
            return false;
        };
        let leads = |call: &cranelift_codegen::ir::BlockCall| call.block(&dfg.value_lists) == block;
        self.ways[block] == 1
            && match dfg.insts[last] {
                InstructionData::Jump { destination, .. } => leads(&destination),
                InstructionData::Brif { blocks, .. } => blocks.iter().any(leads),
                InstructionData::TryCall { exception, .. }
                | InstructionData::TryCallIndirect { exception, .. } => {
                    leads(dfg.exception_tables[exception].normal_return())
                }
                _ => false,
            }
    }

    fn place_slots(&mut self, func: &Function) -> Option<()> {
        self.frame = 0;
        self.slots.clear();
        if !func.dynamic_stack_slots.is_empty() {
            return None;
        }
        for data in func.sized_stack_slots.values() {
            let align = 1i32.checked_shl(data.align_shift.into())?.max(8);
            if align > 16 || data.size > 1 << 16 {
                return None;
            }
            self.frame = (self.frame + data.size as i32 + align - 1) & -align;
            self.slots.push(-self.frame);
        }
        self.frame = (self.frame + 7) & -8;
        Some(())
    }

    fn find_values(&mut self, func: &Function, shared: &[Inst]) -> Option<()> {
        let dfg = &func.dfg;
        for &inst in shared {
            let info = &mut self.values[dfg.first_result(inst).as_u32() as usize];
            info.what = what(func, &self.slots, inst);
        }
        let mut stretch = 0;
        for (i, &block) in self.order.iter().enumerate() {
            stretch += u32::from(!self.follows[i]);
            // A parameter passed in a slot has its own slot, which other blocks write before the parameter is defined.
            let handed = i > 0 && !self.follows[i];
            let values = &mut self.values;
            let mut define = |value: Value, what: What, global: bool| {
                let ty = dfg.value_type(value);
                let info = &mut values[value.as_u32() as usize];
                info.what = what;
                info.float = ty.is_float();
                info.stretch = stretch;
                info.global = global;
                is_supported(ty).then_some(())
            };
            for &param in dfg.block_params(block) {
                define(param, What::Made, handed)?;
            }
            for inst in func.layout.block_insts(block) {
                let what = what(func, &self.slots, inst);
                for &result in dfg.inst_results(inst) {
                    define(result, what, false)?;
                }
            }
        }
        Some(())
    }

    fn count_uses(&mut self, func: &Function) {
        let mut stretch = 0;
        for i in 0..self.order.len() {
            stretch += u32::from(!self.follows[i]);
            for inst in func.layout.block_insts(self.order[i]) {
                for value in func.dfg.inst_values(inst) {
                    let value = func.dfg.resolve_aliases(value);
                    let info = &mut self.values[value.as_u32() as usize];
                    info.uses += 1;
                    info.is_used = true;
                    info.global |= info.stretch != stretch;
                }
            }
        }
    }
}
