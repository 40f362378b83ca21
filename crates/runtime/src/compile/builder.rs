//! Makes instructions, with less to do for each than Cranelift's frontend has.

use super::shared::Shared;
use super::translate::Translator;
use cranelift_codegen::ir::{
    DataFlowGraph, Inst, InstBuilder, InstBuilderBase, InstructionData, Type, Value,
};
use cranelift_frontend::FunctionBuilder;

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
