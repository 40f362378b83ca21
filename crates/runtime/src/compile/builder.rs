//! Makes instructions, with less to do for each than Cranelift's frontend has.
//!
//! Code that is to be there soon has each constant once, and the heap's base once. They have no place among the instructions: the
//! generator of one pass makes them where they are used. Whoever needs a place for them gives them one: see [`place`].

use super::translate::Translator;
use cranelift_codegen::ir::{
    DataFlowGraph, Function, Inst, InstBuilder, InstBuilderBase, InstructionData, Opcode, Type,
    Value,
};
use cranelift_frontend::FunctionBuilder;
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
    fn find(&mut self, data: InstructionData, ty: Type, dfg: &mut DataFlowGraph) -> Option<Inst> {
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

/// Adds an instruction to the block that is being filled.
pub(super) struct Builder<'s, 'a> {
    b: &'s mut FunctionBuilder<'a>,
    shared: Option<&'s mut Shared>,
}

impl<'s> InstBuilderBase<'s> for Builder<'s, '_> {
    fn data_flow_graph(&self) -> &DataFlowGraph {
        &self.b.func.dfg
    }

    fn data_flow_graph_mut(&mut self) -> &mut DataFlowGraph {
        &mut self.b.func.dfg
    }

    fn build(mut self, data: InstructionData, ty: Type) -> (Inst, &'s mut DataFlowGraph) {
        let inst = self.build_aux_inst(data, ty);
        (inst, &mut self.b.func.dfg)
    }

    fn build_aux_inst(&mut self, data: InstructionData, ty: Type) -> Inst {
        let b = &mut *self.b;
        if let Some(shared) = &mut self.shared
            && let Some(inst) = shared.find(data, ty, &mut b.func.dfg)
        {
            return inst;
        }
        let opcode = data.opcode();
        // The frontend notes where control goes.
        if opcode.is_terminator() {
            return b.ins().build(data, ty).0;
        }
        b.ensure_inserted_block();
        let block = b.current_block().expect("code is added to a block");
        let source = b.srcloc();
        let func = &mut *b.func;
        let inst = func.dfg.make_inst(data);
        if opcode.is_call() || opcode.constraints().num_fixed_results() > 0 {
            func.dfg.make_inst_results(inst, ty);
        }
        func.layout.append_inst(inst, block);
        if !source.is_default() {
            func.set_srcloc(inst, source);
        }
        inst
    }
}

impl<'a> Translator<'a, '_> {
    /// Adds an instruction.
    pub(super) fn ins(&mut self) -> Builder<'_, 'a> {
        Builder {
            b: &mut self.b,
            shared: self.soon.then_some(&mut self.maps.shared),
        }
    }

    /// A constant that no other instruction has, so that it can be changed later.
    pub(super) fn own_constant(&mut self, ty: Type, value: i64) -> Value {
        self.b.ins().iconst(ty, value)
    }
}
