//! Calls of all kinds, and exceptions.

use super::isa::Level;
use super::signatures::{REFERENCE, clif_type, helper_signature};
use super::slot::Slot;
use super::translate::{Translator, Values, args};
use super::traps::trap_code;
use crate::code::link::{Native, helper_name};
use crate::error::{Result, TrapKind};
use crate::helpers::Helper;
use crate::store::region::{Context, FuncRecord, displacement};
use crate::types::*;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    self, Block, BlockArg, BlockCall, ExceptionTableData, ExceptionTableItem, InstBuilder,
    MemFlagsData, Value, types,
};
use smallvec::SmallVec;
use std::mem::offset_of;
use wasmparser::{Catch, Operator};

/// The callee of an operator.
#[derive(Clone, Copy)]
pub(super) enum Callee {
    /// A function of this module.
    Direct(u32),
    /// An entry of a table.
    Table(u32),
    /// The reference on the stack.
    Reference,
}

impl Translator<'_, '_> {
    /// Calls a function that knows nothing of the store.
    pub(super) fn call_native(
        &mut self,
        native: Native,
        signature: impl FnOnce() -> ir::Signature,
        operands: &[Value],
    ) -> ir::Inst {
        let f = match self.maps.natives.get(&native) {
            Some(&f) => f,
            None => {
                let signature = self.b.import_signature(signature());
                let name = self.b.func.declare_imported_user_function(native.name());
                let f = self.b.import_function(ir::ExtFuncData {
                    name: ir::ExternalName::user(name),
                    signature,
                    colocated: false,
                    patchable: false,
                });
                self.maps.natives.insert(native, f);
                f
            }
        };
        let signature = self.b.func.dfg.ext_funcs[f].signature;
        let code = self.ins().func_addr(types::I64, f);
        self.ins().call_indirect(signature, code, operands)
    }

    /// Calls a helper of the runtime. Helpers trap by themselves; an exception that some throw goes to the enclosing handler, if there is one.
    pub(super) fn call_helper(&mut self, helper: Helper, operands: &[Value]) -> Option<Value> {
        let f = match self.maps.helpers.get(&helper) {
            Some(&f) => f,
            None => {
                let sig = self.b.import_signature(helper_signature(helper));
                let name = helper_name(helper as u32);
                let name = self.b.func.declare_imported_user_function(name);
                let data = ir::ExtFuncData {
                    name: ir::ExternalName::user(name),
                    signature: sig,
                    colocated: true,
                    patchable: false,
                };
                let f = self.b.import_function(data);
                self.maps.helpers.insert(helper, f);
                if !helper.may_collect() {
                    self.harmless.insert(f);
                }
                f
            }
        };
        let vm = self.load_context(offset_of!(Context, vm));
        let mut all = Values::new();
        all.push(vm);
        let (wanted, _) = helper.signature();
        for (&operand, &ty) in operands.iter().zip(wanted) {
            // Helpers take references as memory has them.
            let wide = self.b.func.dfg.value_type(operand) == REFERENCE;
            all.push(match wide && ty == types::I32 {
                true => self.ins().ireduce(types::I32, operand),
                false => operand,
            });
        }
        if helper.may_collect() {
            self.fresh.clear();
        }
        if helper.stores_elements() {
            self.forget_elements();
            // Objects stored into durable arrays become durable.
            self.forget_settled();
        }
        let handler = self.handlers.last().copied();
        let result = match handler.filter(|_| helper.may_throw()) {
            None => {
                let inst = self.ins().call(f, &all);
                self.b.inst_results(inst).first().copied()
            }
            Some(handler) => {
                let (_, result) = helper.signature();
                let sig = self.b.func.dfg.ext_funcs[f].signature;
                let (table, normal) = self.exception_table(sig, result.as_slice(), handler);
                self.ins().try_call(f, &all, table);
                self.go_on_after_try(normal).first().copied()
            }
        };
        self.forget_base();
        match helper.gives_reference() {
            true => result.map(|narrow| self.ins().uextend(REFERENCE, narrow)),
            false => result,
        }
    }

    /// Calls a helper with operands from the stack as its last arguments.
    pub(super) fn help(
        &mut self,
        helper: Helper,
        first: &[Value],
        operands: usize,
    ) -> Option<Value> {
        let mut args = first.to_vec();
        args.extend(self.pop_n(operands));
        self.call_helper(helper, &args)
    }

    pub(super) fn instance_id(&mut self) -> Value {
        self.i32(self.env.instance_id as i64)
    }

    /// A value as the 64 bits that helpers take.
    pub(super) fn bits(&mut self, value: Value) -> Value {
        let ty = self.b.func.dfg.value_type(value);
        let value = match ty {
            types::F32 => self.ins().bitcast(types::I32, MemFlagsData::new(), value),
            types::F64 => return self.ins().bitcast(types::I64, MemFlagsData::new(), value),
            types::I64 => return value,
            _ => value,
        };
        self.ins().uextend(types::I64, value)
    }

    /// The address of a function record's fields, as a base for offsets within it.
    fn record(&mut self, func: Value) -> (Value, i32) {
        let base = self.base();
        (self.ins().iadd(base, func), displacement(0))
    }

    fn code_of(&mut self, func: Value, null: TrapKind) -> Value {
        let (address, at) = self.record(func);
        let flags = MemFlagsData::new()
            .with_aligned()
            .with_trap_code(Some(trap_code(null)));
        self.ins().load(
            types::I64,
            flags,
            address,
            at + offset_of!(FuncRecord, code) as i32,
        )
    }

    pub(super) fn type_of_func(&mut self, func: Value, null: TrapKind) -> Value {
        let (address, at) = self.record(func);
        let flags = MemFlagsData::new()
            .with_aligned()
            .with_trap_code(Some(trap_code(null)));
        self.ins().load(
            types::I32,
            flags,
            address,
            at + offset_of!(FuncRecord, ty) as i32,
        )
    }

    /// The code of a function of this instance.
    fn direct(&mut self, index: u32) -> Value {
        let place = self.env.instance.funcs[index as usize];
        let base = self.base();
        let at = displacement(place) + offset_of!(FuncRecord, code) as i32;
        self.ins()
            .load(types::I64, MemFlagsData::trusted(), base, at)
    }

    /// The function in a table, and its code.
    fn indirect(&mut self, table: u32, ty: TypeIndex) -> (Value, Value) {
        let index = self.pop();
        let address = self.element_address(table, index, TrapKind::UndefinedElement);
        let func = self.ins().uload32(MemFlagsData::trusted(), address, 0);
        let element = self.env.module.tables[table as usize].0.element.heap;
        let wanted = HeapType::Concrete(ty, Kind::Func);
        if !self.env.types.is_heap_subtype(element, wanted) {
            let actual = self.type_of_func(func, TrapKind::UninitializedElement);
            let fits = self.is_type(actual, ty);
            self.ins()
                .trapz(fits, trap_code(TrapKind::IndirectCallType));
        }
        let code = self.code_of(func, TrapKind::UninitializedElement);
        (func, code)
    }

    fn call_code(&mut self, code: Value, ty: TypeIndex) {
        let f = self.env.types.func(ty);
        let types: SmallVec<[ValType; 4]> = f.results.iter().copied().collect();
        let count = f.params.len();
        let operands = self.pop_n(count);
        let sig = self.signature(ty);
        let results = self.call_signature(sig, code, &operands, &types);
        for (v, t) in results.into_iter().zip(types) {
            self.push(v, t);
        }
    }

    /// Calls code; its exceptions go to the enclosing handler, if there is one.
    pub(super) fn call_signature(
        &mut self,
        sig: ir::SigRef,
        code: Value,
        operands: &[Value],
        results: &[ValType],
    ) -> Values {
        self.fresh.clear();
        self.forget_contents();
        match self.handlers.last().copied() {
            None => {
                let inst = self.ins().call_indirect(sig, code, operands);
                self.forget_base();
                Values::from_slice(self.b.inst_results(inst))
            }
            Some(handler) => self.try_call(sig, code, operands, results, handler),
        }
    }

    fn try_call(
        &mut self,
        sig: ir::SigRef,
        code: Value,
        operands: &[Value],
        results: &[ValType],
        handler: Block,
    ) -> Values {
        let results: SmallVec<[ir::Type; 4]> = results.iter().map(|&t| clif_type(t)).collect();
        let (table, normal) = self.exception_table(sig, &results, handler);
        self.ins().try_call_indirect(code, operands, table);
        self.go_on_after_try(normal)
    }

    /// Where a call goes on: the block that it returns to, and with what was thrown the handler.
    fn exception_table(
        &mut self,
        sig: ir::SigRef,
        results: &[ir::Type],
        handler: Block,
    ) -> (ir::ExceptionTable, Block) {
        let normal = self.b.create_block();
        for &t in results {
            self.b.append_block_param(normal, t);
        }
        let pool = &mut self.b.func.dfg.value_lists;
        let returned = BlockCall::new(
            normal,
            (0..results.len() as u32).map(BlockArg::TryCallRet),
            pool,
        );
        let thrown = BlockCall::new(handler, [BlockArg::TryCallExn(0)], pool);
        let table = ExceptionTableData::new(sig, returned, [ExceptionTableItem::Default(thrown)]);
        (self.b.func.dfg.exception_tables.push(table), normal)
    }

    /// Goes on where a call returns to: its results.
    fn go_on_after_try(&mut self, normal: Block) -> Values {
        self.b.switch_to_block(normal);
        self.b.seal_block(normal);
        Values::from_slice(self.b.block_params(normal))
    }

    fn return_call_code(&mut self, code: Value, ty: TypeIndex) {
        let count = self.env.types.func(ty).params.len();
        let operands = self.pop_n(count);
        let sig = self.signature(ty);
        self.ins().return_call_indirect(sig, code, &operands);
        self.dead();
    }

    /// A call in the place of a return. The frame of an inlined function is its caller's: it calls, and returns there.
    fn return_call(&mut self, callee: Callee, ty: TypeIndex) -> Result<()> {
        if self.activations.len() == 1 {
            let code = match callee {
                Callee::Direct(index) => self.direct(index),
                Callee::Table(table) => self.indirect(table, ty).1,
                Callee::Reference => {
                    let func = self.pop();
                    self.code_of(func, TrapKind::NullReference)
                }
            };
            self.return_call_code(code, ty);
            return Ok(());
        }
        // The handlers of the function that returns are left.
        let first = self.activation().handlers;
        let handlers = self.handlers.split_off(first);
        self.call_any(callee, ty, true)?;
        self.join_truth();
        self.handlers.extend(handlers);
        if self.is_reachable() {
            let depth = self.function_depth();
            self.branch(depth);
        }
        Ok(())
    }

    /// A call: of a function that is known, inline if that is worth it; of one that the counters suggest, behind a guard;
    /// or of whatever the reference says.
    fn call_any(&mut self, callee: Callee, ty: TypeIndex, returns: bool) -> Result<()> {
        match callee {
            Callee::Direct(index) => self.call_direct(index, returns),
            Callee::Table(table) => {
                let (func, code) = self.indirect(table, ty);
                self.count_target(func);
                self.call_code(code, ty);
                Ok(())
            }
            Callee::Reference => self.call_reference(ty, returns),
        }
    }

    fn call_and_return(&mut self, callee: Callee, ty: TypeIndex) -> Result<()> {
        self.call_any(callee, ty, false)?;
        self.check_nothing_durable();
        Ok(())
    }

    /// Calls the function whose record is in the reference on the stack.
    pub(super) fn call_unknown(&mut self, ty: TypeIndex) {
        let func = self.pop();
        self.count_target(func);
        let code = self.code_of(func, TrapKind::NullReference);
        self.call_code(code, ty);
    }

    /// Calls a function of this instance by its record.
    pub(super) fn call_record(&mut self, index: u32) {
        if self.is_certain() {
            self.called.push(index);
        }
        let code = self.direct(index);
        self.call_code(code, self.env.module.funcs[index as usize]);
    }

    /// Removes the calls since control last came from elsewhere from the usual ones: the path ends here.
    pub(super) fn forget_called(&mut self) {
        self.called.truncate(self.called_before);
    }

    /// Throws the exception object: to the handler in this function, if there is one, else to the caller's.
    pub(super) fn throw(&mut self, exception: Value) {
        self.throw_to(exception, self.handlers.len());
    }

    /// The same, where only the first `handlers` count.
    pub(super) fn throw_to(&mut self, exception: Value, handlers: usize) {
        match self.handlers[..handlers].last().copied() {
            Some(handler) => {
                self.ins().jump(handler, &args(&[exception]));
            }
            None => {
                self.call_helper(Helper::Throw, &[exception]);
                self.ins().trap(trap_code(TrapKind::Unreachable));
            }
        }
        self.dead();
    }

    fn throw_tag(&mut self, tag: u32) {
        let ty = self
            .env
            .types
            .exception_of(self.env.module.tags[tag as usize]);
        let fields = self.env.types.fields(ty).len();
        let values = self.pop_n(fields - 1);
        let id = self.i32(self.env.instance.tags[tag as usize] as i64);
        if let [carried] = values[..]
            && self.job.level == Level::Baseline
            && self.handlers.is_empty()
            && !self.observes()
            && self.env.types.fields(ty)[1].storage.is_managed()
        {
            return self.throw_new(ty, id, carried);
        }
        let mut all = vec![id];
        all.extend(values);
        let exception = self.new_struct(ty, &all);
        self.throw(exception);
    }

    /// Throws to a caller's handler in baseline code. Compilers of Java write a throw for each null check and bounds check, of which hardly
    /// one ever runs: the runtime makes the object too, which is less code.
    fn throw_new(&mut self, ty: TypeIndex, tag: Value, carried: Value) {
        let site = self.site();
        let (ty, site) = (self.i32(ty.into()), self.i32(site.into()));
        self.call_helper(Helper::ThrowNew, &[ty, site, tag, carried]);
        self.ins().trap(trap_code(TrapKind::Unreachable));
        self.dead();
    }

    /// The block that takes the exceptions of a `try_table`: compares tags in order, and passes on what none wants.
    pub(super) fn dispatch(&mut self, block: Block, catches: &[Catch]) {
        self.b.switch_to_block(block);
        self.fresh.clear();
        self.forget_recorded();
        let exn = ValType::Ref(RefType {
            nullable: false,
            heap: HeapType::Exn,
        });
        let exception = self.caught_in(block);
        let height = self.stack.len();
        let thrown = self.tag_of(exception);
        for catch in catches {
            let (tag, label, with_ref) = match *catch {
                Catch::One { tag, label } => (Some(tag), label, false),
                Catch::OneRef { tag, label } => (Some(tag), label, true),
                Catch::All { label } => (None, label, false),
                Catch::AllRef { label } => (None, label, true),
            };
            let next = tag.map(|tag| self.take_tag(thrown, tag));
            if let Some(tag) = tag {
                self.push_payload(exception, tag);
            }
            if with_ref {
                self.push(exception, exn);
            }
            let (target, types) = self.target(label);
            let values = self.branch_args(types.len());
            self.ins().jump(target, &values);
            self.stack.truncate(height);
            match next {
                Some(no) => {
                    self.b.switch_to_block(no);
                    self.forget_recorded();
                }
                None => return, // catches everything
            }
        }
        let reachable = self.is_reachable();
        self.throw(exception);
        self.set_reachable(reachable);
    }

    /// The exception that a block takes, which is the one that translation goes on in.
    pub(super) fn caught_in(&mut self, block: Block) -> Value {
        let payload = self.b.block_params(block)[0];
        // The throwing code may have left anything in the upper half.
        let low = self.ins().ireduce(types::I32, payload);
        let exception = self.ins().uextend(REFERENCE, low);
        self.track(exception);
        exception
    }

    pub(super) fn tag_of(&mut self, exception: Value) -> Value {
        self.load(&Slot::exception(exception, ValType::I32, HEADER))
    }

    /// Goes on where what was thrown has the tag: the block where it has not.
    pub(super) fn take_tag(&mut self, thrown: Value, tag: u32) -> Block {
        let (yes, no) = (self.b.create_block(), self.b.create_block());
        let id = self.env.instance.tags[tag as usize] as i64;
        let same = self.ins().icmp_imm_s(IntCC::Equal, thrown, id);
        self.ins().brif(same, yes, &[], no, &[]);
        self.b.seal_block(yes);
        self.b.seal_block(no);
        self.b.switch_to_block(yes);
        self.fresh.clear();
        self.forget_recorded();
        no
    }

    /// Pushes the values of an exception with the tag.
    pub(super) fn push_payload(&mut self, exception: Value, tag: u32) {
        let ty = self
            .env
            .types
            .exception_of(self.env.module.tags[tag as usize]);
        let (fields, offsets) = (
            self.env.types.fields(ty).to_vec(),
            self.env.types.get(ty).layout.offsets.clone(),
        );
        for (field, offset) in fields.iter().zip(offsets).skip(1) {
            let ty = field.storage.unpacked();
            let v = self.load(&Slot::exception(exception, ty, offset));
            self.push(v, ty);
        }
    }

    /// Translates a call or a throw; whether the operator is one.
    pub(super) fn translate_call(&mut self, op: &Operator<'_>) -> Result<bool> {
        use Operator::*;
        let ty_of = |t: &Self, index: u32| t.env.module.types[index as usize];
        match *op {
            Call { function_index } => {
                let ty = self.env.module.funcs[function_index as usize];
                self.call_and_return(Callee::Direct(function_index), ty)?;
            }
            ReturnCall { function_index } => {
                let ty = self.env.module.funcs[function_index as usize];
                self.return_call(Callee::Direct(function_index), ty)?;
            }
            CallIndirect {
                type_index,
                table_index,
            } => {
                let ty = ty_of(self, type_index);
                self.call_and_return(Callee::Table(table_index), ty)?;
            }
            ReturnCallIndirect {
                type_index,
                table_index,
            } => {
                let ty = ty_of(self, type_index);
                self.return_call(Callee::Table(table_index), ty)?;
            }
            CallRef { type_index } => {
                let ty = ty_of(self, type_index);
                self.call_and_return(Callee::Reference, ty)?;
            }
            ReturnCallRef { type_index } => {
                let ty = ty_of(self, type_index);
                self.return_call(Callee::Reference, ty)?;
            }
            Throw { tag_index } => {
                self.forget_called();
                self.throw_tag(tag_index);
            }
            ThrowRef => {
                self.forget_called();
                let exception = self.pop();
                self.ins()
                    .trapz(exception, trap_code(TrapKind::NullReference));
                self.throw(exception);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
}
