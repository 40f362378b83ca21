//! What is known of values where control has come by: checks that passed need not be made again.
//!
//! A fact holds in what its place dominates. With structured control that is the rest of the block that the place is in: when
//! a block ends, what was learnt in it is forgotten.

use super::isa::Level;
use super::translate::Translator;
use crate::types::{RefType, ValType};
use cranelift_codegen::ir::condcodes::{CondCode, IntCC};
use cranelift_codegen::ir::{InstructionData, Opcode, Value};

/// Most facts that are looked through, from the latest on.
const LOOK_BACK: usize = 64;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fact {
    /// The array, which is not null, has an element at the index.
    InBounds(Value, Value),
    /// The reference is of the type.
    Is(Value, RefType),
    /// The array, which is not null, has this length.
    Length(Value, Value),
    /// The integer is at least 0.
    NonNegative(Value),
    /// The first integer is less than the second, with sign.
    Less(Value, Value),
    /// The object, which is not null, is where the reference says: its durable copy if it has one. Nothing could make it durable since.
    Settled(Value),
    /// The same, and it is not durable.
    Volatile(Value),
    /// What was known is so no more. It keeps the places of what was learnt before.
    Nothing,
}

/// What a condition says when it is not 0.
#[derive(Clone, Copy, Debug)]
pub(super) enum Condition {
    Is(Value, RefType),
    Compare(IntCC, Value, Value),
    /// The other condition is 0.
    Not(Value),
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
        let knows = |fact| self.recent().any(|&f| f == fact);
        knows(Fact::InBounds(array, index))
            || self.length_of(array).is_some_and(|length| {
                knows(Fact::Less(index, length)) && knows(Fact::NonNegative(index))
            })
    }

    /// The length of an array, if it has been read.
    pub(super) fn length_of(&self, array: Value) -> Option<Value> {
        self.recent().find_map(|&f| match f {
            Fact::Length(a, length) if a == array => Some(length),
            _ => None,
        })
    }

    /// Whether a reference needs no persistence check for a load.
    pub(super) fn knows_settled(&self, reference: Value) -> bool {
        self.recent()
            .any(|&f| f == Fact::Settled(reference) || f == Fact::Volatile(reference))
    }

    /// Whether a reference needs none for a store.
    pub(super) fn knows_volatile(&self, reference: Value) -> bool {
        self.recent().any(|&f| f == Fact::Volatile(reference))
    }

    /// Any object may have become durable.
    pub(super) fn forget_settled(&mut self) {
        for fact in &mut self.facts {
            if matches!(fact, Fact::Settled(_) | Fact::Volatile(_)) {
                *fact = Fact::Nothing;
            }
        }
    }

    /// Whether a reference is known to be of a type.
    pub(super) fn is_known(&self, value: Value, to: RefType) -> bool {
        let types = self.env.types;
        self.recent().any(|f| {
            matches!(f, Fact::Is(v, r) if *v == value
                && types.is_subtype(ValType::Ref(*r), ValType::Ref(to)))
        })
    }

    /// Notes what a value says when it is used as a condition.
    pub(super) fn says(&mut self, value: Value, condition: Condition) {
        if self.job.level == Level::Optimizing {
            self.conditions.insert(value, condition);
        }
    }

    /// Learns from a branch: the condition holds here, or it does not.
    pub(super) fn learn_condition(&mut self, condition: Value, holds: bool) {
        match self.conditions.get(&condition).copied() {
            Some(Condition::Is(value, ty)) if holds => self.learn(Fact::Is(value, ty)),
            Some(Condition::Not(other)) => self.learn_condition(other, !holds),
            Some(Condition::Compare(cc, a, b)) => {
                self.learn_comparison(if holds { cc } else { cc.complement() }, a, b)
            }
            _ => {}
        }
    }

    fn learn_comparison(&mut self, cc: IntCC, a: Value, b: Value) {
        match cc {
            IntCC::SignedLessThan => self.learn(Fact::Less(a, b)),
            IntCC::SignedGreaterThan => self.learn(Fact::Less(b, a)),
            _ => {}
        }
        let least = match cc {
            IntCC::SignedGreaterThanOrEqual | IntCC::Equal => self.constant(b),
            IntCC::SignedGreaterThan => self.constant(b).map(|c| c + 1),
            _ => None,
        };
        if least.is_some_and(|c| c >= 0) {
            self.learn(Fact::NonNegative(a));
        }
    }

    /// The value of a 32-bit constant.
    fn constant(&self, value: Value) -> Option<i64> {
        let dfg = &self.b.func.dfg;
        let inst = dfg.value_def(dfg.resolve_aliases(value)).inst()?;
        match dfg.insts[inst] {
            InstructionData::UnaryImm {
                opcode: Opcode::Iconst,
                imm,
            } => Some(i64::from(imm.bits() as i32)),
            _ => None,
        }
    }
}
