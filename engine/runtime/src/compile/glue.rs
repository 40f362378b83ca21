//! Code between host and compiled code: values travel in arrays of 64-bit words.

use super::signatures::{clif_type, helper_signature, signature};
use super::traps::trap_code;
use super::{Scratch, Unit};
use crate::code::link::helper_name;
use crate::code::map::CodeInfo;
use crate::code::memory::CodeMemory;
use crate::error::{Result, TrapKind};
use crate::helpers::Helper;
use crate::store::region::{CONTEXT, Context as StoreContext, displacement};
use crate::types::{FuncType, ValType};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self, InstBuilder, MemFlagsData, types};
use cranelift_codegen::isa::{CallConv, TargetIsa};
use cranelift_frontend::FunctionBuilder;
use std::mem::offset_of;

/// `trampoline(code, values)`: calls compiled code of type `ty` with arguments from `values`, and puts results there.
pub(crate) fn trampoline(
    isa: &dyn TargetIsa,
    scratch: &mut Scratch,
    memory: &mut CodeMemory,
    ty: &FuncType,
) -> Result<CodeInfo> {
    let mut sig = ir::Signature::new(CallConv::SystemV);
    sig.params.extend([ir::AbiParam::new(types::I64); 2]);
    let mut function = scratch.function();
    function.name = ir::UserFuncName::user(1, 0);
    function.signature = sig;
    let mut b = FunctionBuilder::new(&mut function, &mut scratch.builder);
    let entry = b.create_block();
    b.append_block_params_for_function_params(entry);
    b.switch_to_block(entry);
    let (code, values) = (b.block_params(entry)[0], b.block_params(entry)[1]);
    let args = load(&mut b, &ty.params, values);
    let callee = b.import_signature(signature(ty));
    let inst = b.ins().call_indirect(callee, code, &args);
    let results = b.inst_results(inst).to_vec();
    store(&mut b, &ty.results, &results, values);
    b.ins().return_(&[]);
    b.seal_all_blocks();
    b.finalize(isa.frontend_config());
    let code = Unit::glue(function).generate(isa, scratch)?;
    code.place(memory, &[])
}

/// Code of host function `func` of type `ty`: calls the host with its arguments in an array.
pub(crate) fn host_function(
    isa: &dyn TargetIsa,
    scratch: &mut Scratch,
    memory: &mut CodeMemory,
    helpers: &[*const u8],
    ty: &FuncType,
    func: u32,
) -> Result<CodeInfo> {
    let mut function = scratch.function();
    function.name = ir::UserFuncName::user(2, func);
    function.signature = signature(ty);
    let mut b = FunctionBuilder::new(&mut function, &mut scratch.builder);
    let entry = b.create_block();
    b.append_block_params_for_function_params(entry);
    b.switch_to_block(entry);
    let args = b.block_params(entry).to_vec();
    let flags = MemFlagsData::trusted();
    let base = b.ins().get_pinned_reg(types::I64);
    let field = |offset: usize| displacement(CONTEXT) + offset as i32;
    let sp = b.ins().get_stack_pointer(types::I64);
    let limit = b.ins().load(
        types::I64,
        flags,
        base,
        field(offset_of!(StoreContext, stack_limit)),
    );
    let low = b.ins().icmp(IntCC::UnsignedLessThan, sp, limit);
    b.ins().trapnz(low, trap_code(TrapKind::StackOverflow));
    let words = ty.words() as u32;
    let slot = b.create_sized_stack_slot(ir::StackSlotData::new(
        ir::StackSlotKind::ExplicitSlot,
        words * 8,
        3,
    ));
    let values = b.ins().stack_addr(types::I64, slot, 0);
    store(&mut b, &ty.params, &args, values);
    let sig = b.import_signature(helper_signature(Helper::HostCall));
    let name = helper_name(Helper::HostCall as u32);
    let name = b.func.declare_imported_user_function(name);
    let helper = b.import_function(ir::ExtFuncData {
        name: ir::ExternalName::user(name),
        signature: sig,
        colocated: true,
        patchable: false,
    });
    let vm = b
        .ins()
        .load(types::I64, flags, base, field(offset_of!(StoreContext, vm)));
    let id = b.ins().iconst(types::I32, func as i64);
    b.ins().call(helper, &[vm, id, values]);
    let results = load(&mut b, &ty.results, values);
    b.ins().return_(&results);
    b.seal_all_blocks();
    b.finalize(isa.frontend_config());
    // A program has dozens, and calls few of them.
    let unit = Unit {
        soon: true,
        ..Unit::glue(function)
    };
    unit.generate(isa, scratch)?.place(memory, helpers)
}

/// Words of which no more than their own alignment is known.
fn flags() -> MemFlagsData {
    MemFlagsData::new().with_notrap()
}

/// Values from an array of words.
fn load(b: &mut FunctionBuilder<'_>, types: &[ValType], words: ir::Value) -> Vec<ir::Value> {
    let mut at = 0;
    let mut values = Vec::with_capacity(types.len());
    for &ty in types {
        values.push(match ty {
            ValType::Ref(_) => b.ins().uload32(flags(), words, at),
            _ => b.ins().load(clif_type(ty), flags(), words, at),
        });
        at += 8 * ty.words() as i32;
    }
    values
}

/// Values into an array of words.
fn store(b: &mut FunctionBuilder<'_>, types: &[ValType], values: &[ir::Value], words: ir::Value) {
    let mut at = 0;
    for (&ty, &v) in types.iter().zip(values) {
        b.ins().store(flags(), v, words, at);
        at += 8 * ty.words() as i32;
    }
}
