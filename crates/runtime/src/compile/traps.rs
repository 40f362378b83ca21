//! Traps in Cranelift's form.

use crate::error::TrapKind;
use cranelift_codegen::ir::TrapCode;

/// The trap code that stands for a trap of ours.
pub(crate) fn trap_code(kind: TrapKind) -> TrapCode {
    match kind {
        TrapKind::MemoryOutOfBounds => TrapCode::HEAP_OUT_OF_BOUNDS,
        TrapKind::StackOverflow => TrapCode::STACK_OVERFLOW,
        TrapKind::IntegerOverflow => TrapCode::INTEGER_OVERFLOW,
        TrapKind::IntegerDivisionByZero => TrapCode::INTEGER_DIVISION_BY_ZERO,
        TrapKind::BadConversion => TrapCode::BAD_CONVERSION_TO_INTEGER,
        other => TrapCode::unwrap_user(other as u8),
    }
}

/// The trap that a trap code stands for.
pub(crate) fn trap_kind(code: TrapCode) -> Option<TrapKind> {
    TrapKind::ALL.into_iter().find(|&k| trap_code(k) == code)
}
