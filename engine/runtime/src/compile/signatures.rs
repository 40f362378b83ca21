//! Types and signatures in Cranelift's form.

use crate::helpers::Helper;
use crate::types::{FuncType, ValType};
use cranelift_codegen::ir::{self, types};
use cranelift_codegen::isa::CallConv;

/// References are 32 bits wide in memory. Between operators they are 64, of which the upper half is 0: an object's address needs no
/// instruction then but the access itself.
pub(super) const REFERENCE: ir::Type = types::I64;

/// The type of vectors between operators.
pub(super) const VECTOR: ir::Type = types::I8X16;

pub(crate) fn clif_type(ty: ValType) -> ir::Type {
    match ty {
        ValType::I32 => types::I32,
        ValType::Ref(_) => REFERENCE,
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
    let (params, result) = helper.signature();
    // Both pass six parameters and a result in the same registers; where the first one throws, nothing is left in any other.
    let convention = match helper.may_throw() {
        true => CallConv::Tail,
        false => CallConv::SystemV,
    };
    debug_assert!(!helper.may_throw() || params.len() < 6);
    let mut sig = ir::Signature::new(convention);
    sig.params.push(ir::AbiParam::new(types::I64));
    sig.params
        .extend(params.iter().map(|&t| ir::AbiParam::new(t)));
    sig.returns.extend(result.map(ir::AbiParam::new));
    sig
}
