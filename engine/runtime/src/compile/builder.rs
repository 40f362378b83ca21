//! Makes instructions, with less to do for each than Cranelift's frontend has.

use super::shared::Shared;
use super::translate::Translator;
use cranelift_codegen::ir::immediates::Offset32;
use cranelift_codegen::ir::{
    DataFlowGraph, Inst, InstBuilder, InstBuilderBase, InstructionData, MemFlags, MemFlagsData,
    Opcode, Type, Value, types,
};
use cranelift_frontend::FunctionBuilder;
use rustc_hash::FxHashMap as HashMap;

/// Adds an instruction to the block that is being filled.
pub(super) struct Builder<'s, 'a> {
    b: &'s mut FunctionBuilder<'a>,
    shared: Option<&'s mut Shared>,
    flags: &'s mut HashMap<MemFlagsData, MemFlags>,
}

/// In the place of Cranelift's own of the same names.
impl Builder<'_, '_> {
    pub fn load(self, ty: Type, flags: MemFlagsData, address: Value, offset: i32) -> Value {
        self.load_by(Opcode::Load, ty, flags, address, offset)
    }

    pub fn uload32(self, flags: MemFlagsData, address: Value, offset: i32) -> Value {
        self.load_by(Opcode::Uload32, types::I64, flags, address, offset)
    }

    pub fn store(self, flags: MemFlagsData, value: Value, address: Value, offset: i32) {
        self.store_by(Opcode::Store, flags, value, address, offset);
    }

    pub fn istore32(self, flags: MemFlagsData, value: Value, address: Value, offset: i32) {
        self.store_by(Opcode::Istore32, flags, value, address, offset);
    }

    fn load_by(
        mut self,
        opcode: Opcode,
        ty: Type,
        flags: MemFlagsData,
        address: Value,
        offset: i32,
    ) -> Value {
        let flags = self.known_flags(flags);
        let offset = Offset32::new(offset);
        let (inst, dfg) = self.Load(opcode, ty, flags, offset, address);
        dfg.first_result(inst)
    }

    fn store_by(
        mut self,
        opcode: Opcode,
        flags: MemFlagsData,
        value: Value,
        address: Value,
        offset: i32,
    ) {
        let flags = self.known_flags(flags);
        let offset = Offset32::new(offset);
        let ty = self.b.func.dfg.value_type(value);
        self.Store(opcode, ty, flags, offset, value, address);
    }

    fn known_flags(&mut self, flags: MemFlagsData) -> MemFlags {
        let set = &mut self.b.func.dfg.mem_flags;
        let known = self.flags.entry(flags);
        *known.or_insert_with(|| set.insert_unchecked(flags))
    }
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
        // The frontend records where control goes.
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
            flags: &mut self.maps.flags,
        }
    }

    /// A constant that no other instruction has, so that it can be changed later.
    pub(super) fn own_constant(&mut self, ty: Type, value: i64) -> Value {
        self.b.ins().iconst(ty, value)
    }
}
