//! Instructions that a function has once, for code that is to be there soon: constants of integers, and the heap's base.
//!
//! They have no place among the instructions: the generator of one pass makes them where they are used. Passes that need a place for them call
//! [`place`].

use cranelift_codegen::ir::{DataFlowGraph, Function, Inst, InstructionData, Opcode, Type};
use rustc_hash::FxHashMap as HashMap;

/// Instructions without a place, each once.
#[derive(Default)]
pub(super) struct Shared {
    constants: HashMap<(Type, i64), Inst>,
    base: Option<Inst>,
    all: Vec<Inst>,
}

impl Shared {
    /// The instruction that is the same as this one, if it is of a kind that is shared.
    pub fn find(
        &mut self,
        data: InstructionData,
        ty: Type,
        dfg: &mut DataFlowGraph,
    ) -> Option<Inst> {
        let all = &mut self.all;
        let make = || {
            let inst = dfg.make_inst(data);
            dfg.make_inst_results(inst, ty);
            all.push(inst);
            inst
        };
        match data {
            InstructionData::UnaryImm {
                opcode: Opcode::Iconst,
                imm,
            } => {
                let known = self.constants.entry((ty, imm.bits()));
                Some(*known.or_insert_with(make))
            }
            InstructionData::NullAry {
                opcode: Opcode::GetPinnedReg,
            } => Some(*self.base.get_or_insert_with(make)),
            _ => None,
        }
    }

    /// All of them; the next function has others.
    pub fn take_all(&mut self) -> Vec<Inst> {
        self.constants.clear();
        self.base = None;
        std::mem::take(&mut self.all)
    }
}

/// Puts instructions without a place where a function begins.
pub(super) fn place(func: &mut Function, shared: &[Inst]) {
    let layout = &mut func.layout;
    let entry = layout.entry_block().expect("a function has a block");
    let first = layout.first_inst(entry).expect("a block has instructions");
    for &inst in shared {
        layout.insert_inst(inst, first);
    }
}
