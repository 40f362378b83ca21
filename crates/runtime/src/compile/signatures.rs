//! Types and signatures in Cranelift's form.

use crate::helpers::Helper;
use crate::types::{FuncType, ValType};
use cranelift_codegen::ir::{self, types};
use cranelift_codegen::isa::CallConv;

/// The type of vectors between operators.
pub(super) const VECTOR: ir::Type = types::I8X16;

pub(crate) fn clif_type(ty: ValType) -> ir::Type {
    match ty {
        ValType::I32 | ValType::Ref(_) => types::I32,
        ValType::I64 => types::I64,
        ValType::F32 => types::F32,
        ValType::F64 => types::F64,
        ValType::V128 => VECTOR,
    }
}

/// Signature of a WebAssembly function.
pub(crate) fn signature(ty: &FuncType) -> ir::Signature {
    let mut sig = ir::Signature::new(CallConv::Tail);
    sig.params
        .extend(ty.params.iter().map(|&t| ir::AbiParam::new(clif_type(t))));
    sig.returns
        .extend(ty.results.iter().map(|&t| ir::AbiParam::new(clif_type(t))));
    sig
}

/// Signature of a helper; the first parameter is the store's `Vm`.
pub(crate) fn helper_signature(helper: Helper) -> ir::Signature {
    let mut sig = ir::Signature::new(CallConv::SystemV);
    sig.params.push(ir::AbiParam::new(types::I64));
    let (params, result) = helper.signature();
    sig.params
        .extend(params.iter().map(|&t| ir::AbiParam::new(t)));
    sig.returns.extend(result.map(ir::AbiParam::new));
    sig
}
