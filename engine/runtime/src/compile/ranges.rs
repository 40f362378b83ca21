//! Checks of an index against an array's length that compilers of Java write out: two comparisons that one can do.
//!
//! ```text
//! block $in
//!   block $out
//!     local.get $i  i32.const 0  i32.lt_s  br_if $out        <- this
//!     local.get $i  local.get $array  array.len  i32.lt_s  br_if $in
//!   end
//!   throw
//! end
//! ```
//!
//! A length is never negative, so that a comparison without sign says both.

use super::facts::Condition;
use super::isa::Level;
use super::translate::Translator;
use crate::types::ValType;
use cranelift_codegen::ir::Value;
use cranelift_codegen::ir::condcodes::IntCC;
use wasmparser::{Operator, OperatorsReader};

impl Translator<'_, '_> {
    /// Whether an operator is the branch of the first comparison, and the second one follows.
    pub(super) fn begins_range_check(
        &mut self,
        op: &Operator<'_>,
        after: &OperatorsReader<'_>,
    ) -> bool {
        if self.job.level != Level::Optimizing || !self.reachable {
            return false;
        }
        let Operator::BrIf { relative_depth: 0 } = *op else {
            return false;
        };
        let condition = self.stack.last().expect("validated").value;
        let Some(&Condition::Compare(IntCC::SignedLessThan, index, zero)) =
            self.conditions.get(&condition)
        else {
            return false;
        };
        self.constant(zero) == Some(0) && self.compares_with_length(index, after.clone())
    }

    /// Whether the code after this compares an index with the length of an array that is not null, and ends the block if it is not less.
    fn compares_with_length(&mut self, index: Value, mut reader: OperatorsReader<'_>) -> bool {
        let mut next = || reader.read().ok();
        let Some(Operator::LocalGet { local_index: i }) = next() else {
            return false;
        };
        let Some(Operator::LocalGet { local_index: array }) = next() else {
            return false;
        };
        let rest = [next(), next(), next(), next()];
        let [
            Some(Operator::ArrayLen),
            Some(Operator::I32LtS),
            Some(Operator::BrIf { .. }),
            Some(Operator::End),
        ] = rest
        else {
            return false;
        };
        let first = self.activation().locals;
        let array = &self.locals[first + array as usize];
        let never_null = matches!(array.ty, ValType::Ref(r) if !r.nullable);
        let i = self.locals[first + i as usize].variable;
        never_null && self.value_of(i) == index
    }
}
