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

/// Throws that a piece of code leaves out, at most: each has a trap code of its own.
pub(crate) const MOST_LEFT_OUT: usize = 200;
/// The first of these codes.
const LEFT_OUT: u8 = 50;
const _: () = assert!(LEFT_OUT as usize > TrapKind::ALL.len());

/// The trap code that stands for a throw that code leaves out, by its number in the code: see `left_out`.
pub(crate) fn left_out_code(number: usize) -> Option<TrapCode> {
    (number < MOST_LEFT_OUT).then(|| TrapCode::unwrap_user(LEFT_OUT + number as u8))
}

/// The number of the throw that a trap code stands for.
pub(crate) fn left_out(code: TrapCode) -> Option<usize> {
    let number = code.as_raw().get().checked_sub(LEFT_OUT)?;
    (usize::from(number) < MOST_LEFT_OUT).then_some(number.into())
}

/// The trap that a trap code stands for.
pub(crate) fn trap_kind(code: TrapCode) -> Option<TrapKind> {
    TrapKind::ALL.into_iter().find(|&k| trap_code(k) == code)
}
