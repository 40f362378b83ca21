//! What is known of values where control has come by: checks that passed need not be made again.
//!
//! A fact holds in what its place dominates. With structured control that is the rest of the block that the place is in: when
//! a block ends, what was learnt in it is forgotten.

use super::isa::Level;
use super::translate::Translator;
use crate::types::{RefType, ValType};
use cranelift_codegen::ir::Value;

/// Most facts that are looked through, from the latest on.
const LOOK_BACK: usize = 64;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fact {
    /// The array, which is not null, has an element at the index.
    InBounds(Value, Value),
    /// The reference is of the type.
    Is(Value, RefType),
}

impl Translator<'_, '_> {
    /// Notes what a check has shown.
    pub(super) fn learn(&mut self, fact: Fact) {
        if self.job.level == Level::Optimizing {
            self.facts.push(fact);
        }
    }

    /// Notes the type that a value had where it came from.
    pub(super) fn learn_type(&mut self, value: Value, ty: ValType) {
        if let ValType::Ref(r) = ty {
            self.learn(Fact::Is(value, r));
        }
    }

    fn recent(&self) -> impl Iterator<Item = &Fact> {
        self.facts.iter().rev().take(LOOK_BACK)
    }

    pub(super) fn is_in_bounds(&self, array: Value, index: Value) -> bool {
        self.recent().any(|&f| f == Fact::InBounds(array, index))
    }

    /// Whether a reference is known to be of a type.
    pub(super) fn is_known(&self, value: Value, to: RefType) -> bool {
        let types = self.env.types;
        self.recent().any(|f| {
            matches!(f, Fact::Is(v, r) if *v == value
                && types.is_subtype(ValType::Ref(*r), ValType::Ref(to)))
        })
    }

    /// What holds if a condition does, a value that a test of a type has given.
    pub(super) fn learn_condition(&mut self, condition: Value) {
        if let Some(&(value, ty)) = self.tests.get(&condition) {
            self.learn(Fact::Is(value, ty));
        }
    }
}
