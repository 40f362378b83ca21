//! Facts about values on the current path: checks that passed need not be made again.
//!
//! A fact holds in the blocks that its place dominates. Where paths meet, at the end of a block, only facts of all of them hold; a fact at the
//! beginning of a loop has to hold at its end too.

use super::alias::Region;
use super::effects::Effects;
use super::isa::Level;
use super::translate::Translator;
use crate::store::region::Place;
use crate::types::{RefType, ValType};
use cranelift_codegen::ir::condcodes::{CondCode, IntCC};
use cranelift_codegen::ir::{InstructionData, Opcode, Value};

/// Most facts that are searched, from the latest on.
const LOOK_BACK: usize = 64;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fact {
    /// Nothing has become durable yet: no object is elsewhere than its reference says. The first of all facts, if it is known.
    NothingDurable,
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
    /// The object of the first reference, which is not null, is where the second one says. Nothing could make it durable since.
    Place(Value, Value),
    /// A field of the reference, which is not null, holds this value.
    Field(Value, Region, Value),
    /// The element at the index, which is within the array, is this value.
    Element(Value, Value, Region, Value),
    /// The global at the place holds this value.
    Global(Place, Value),
    /// The reference is of the function whose record is at the place.
    Function(Value, Place),
    /// No code was called since the first iteration of the loop at this offset began.
    Uncalled(u32),
}

/// The facts at a place, latest last.
pub(super) type Facts = Vec<Fact>;

/// Where paths meet: keeps the facts of all of them. `known` is none as long as there is no path.
pub(super) fn meet(known: &mut Option<Facts>, path: &Facts) {
    match known {
        None => *known = Some(path.clone()),
        Some(known) => known.retain(|fact| path.contains(fact)),
    }
}

/// The meaning of a condition that is not 0.
#[derive(Clone, Copy, Debug)]
pub(super) enum Condition {
    Is(Value, RefType),
    Compare(IntCC, Value, Value),
    /// The first integer is at least 0 and less than the second, with sign.
    Within(Value, Value),
    /// The reference is null; if it is not, it is of the type.
    Null(Value, RefType),
    /// The other condition is 0.
    Not(Value),
}

impl Translator<'_, '_> {
    /// Whether this code uses facts that control flow has shown.
    pub(super) fn knows_facts(&self) -> bool {
        self.job.level == Level::Optimizing
    }

    /// Records the fact that a check has shown.
    pub(super) fn learn(&mut self, fact: Fact) {
        if self.knows_facts() {
            if self.facts.len() == 2 * LOOK_BACK {
                let first = usize::from(self.nothing_durable());
                self.facts.drain(first..LOOK_BACK);
            }
            self.facts.push(fact);
        }
    }

    /// Records the type that a value had at its source.
    pub(super) fn learn_type(&mut self, value: Value, ty: ValType) {
        if let ValType::Ref(r) = ty {
            self.learn(Fact::Is(value, r));
        }
    }

    /// The value of a field, if it has been read or written.
    pub(super) fn field_of(&self, reference: Value, field: Region) -> Option<Value> {
        self.recent().find_map(|&f| match f {
            Fact::Field(r, region, value) if (r, region) == (reference, field) => Some(value),
            _ => None,
        })
    }

    /// The value of an element, if it has been read or written.
    pub(super) fn element_of(&self, array: Value, index: Value, elements: Region) -> Option<Value> {
        self.recent().find_map(|&f| match f {
            Fact::Element(a, i, region, value) if (a, i, region) == (array, index, elements) => {
                Some(value)
            }
            _ => None,
        })
    }

    /// The value of a global, if it has been read or set.
    pub(super) fn global_at(&self, place: Place) -> Option<Value> {
        self.recent().find_map(|&f| match f {
            Fact::Global(p, value) if p == place => Some(value),
            _ => None,
        })
    }

    /// The function that a reference is known to be of, by its record's place.
    pub(super) fn function_of(&self, reference: Value) -> Option<Place> {
        self.recent().find_map(|&f| match f {
            Fact::Function(r, place) if r == reference => Some(place),
            _ => None,
        })
    }

    /// Something was stored in a region.
    pub(super) fn forget_stored(&mut self, stored: Region) {
        self.stored.push(Some(stored));
        self.forget(|region| region == stored);
    }

    /// Something was stored in arrays.
    pub(super) fn forget_elements(&mut self) {
        self.stored.push(None);
        self.forget(|region| matches!(region, Region::Elements(_)));
    }

    /// Anything may have been stored anywhere, and anything may be durable: code was called.
    pub(super) fn forget_contents(&mut self) {
        self.forget(|_| true);
        self.forget_settled();
        let outlives = |f: &Fact| !matches!(f, Fact::NothingDurable | Fact::Uncalled(_));
        self.facts.retain(outlives);
    }

    /// Whether nothing is durable yet wherever control comes by here.
    pub(super) fn nothing_durable(&self) -> bool {
        self.facts.first() == Some(&Fact::NothingDurable)
    }

    /// Records that nothing is durable.
    pub(super) fn learn_nothing_durable(&mut self) {
        if !self.nothing_durable() {
            self.facts.insert(0, Fact::NothingDurable);
        }
    }

    /// At the head of a loop whose first iteration has stored in these regions and has called no code: other known contents are assumed to hold at
    /// its end too.
    pub(super) fn assume_for_loop(&mut self, stored: &[Option<Region>]) -> Facts {
        self.forget(|region| {
            let elements = matches!(region, Region::Elements(_));
            stored.contains(&Some(region)) || elements && stored.contains(&None)
        });
        self.forget_settled();
        let is_content =
            |f: &&Fact| matches!(f, Fact::Field(..) | Fact::Element(..) | Fact::Global(..));
        self.facts.iter().filter(is_content).copied().collect()
    }

    /// At the head of a loop, which is also reached from its end.
    pub(super) fn forget_for_loop(&mut self, effects: &Effects) {
        if effects.anything {
            // After each call in the loop it is looked up again, but not where an exception is caught.
            let nothing_durable = self.nothing_durable() && !effects.catches;
            self.forget_contents();
            if nothing_durable {
                self.learn_nothing_durable();
            }
            return;
        }
        if effects.catches {
            self.facts.retain(|&fact| fact != Fact::NothingDurable);
        }
        if self.stores_references(effects) {
            self.forget_settled();
        }
        let regions: Vec<Region> = effects
            .fields
            .iter()
            .map(|&(ty, field)| self.field_region(self.env.module.types[ty as usize], field))
            .chain(
                effects
                    .arrays
                    .iter()
                    .map(|&ty| self.element_region(self.env.module.types[ty as usize])),
            )
            .chain(
                effects
                    .globals
                    .iter()
                    .map(|&global| Region::Global(self.env.instance.globals[global as usize])),
            )
            .collect();
        self.forget(|region| regions.contains(&region));
    }

    /// Whether references are stored, which may make objects durable.
    pub(super) fn stores_references(&self, effects: &Effects) -> bool {
        let types = self.env.types;
        let index = |ty: u32| self.env.module.types[ty as usize];
        let mut fields = effects.fields.iter();
        let mut arrays = effects.arrays.iter();
        fields.any(|&(ty, field)| types.fields(index(ty))[field as usize].storage.is_managed())
            || arrays.any(|&ty| types.element(index(ty)).storage.is_managed())
    }

    fn forget(&mut self, stored: impl Fn(Region) -> bool) {
        self.facts.retain(|fact| match *fact {
            Fact::Field(_, region, _) | Fact::Element(_, _, region, _) => !stored(region),
            Fact::Global(place, _) => !stored(Region::Global(place)),
            _ => true,
        });
    }

    fn recent(&self) -> impl Iterator<Item = &Fact> {
        self.facts.iter().rev().take(LOOK_BACK)
    }

    /// Records that an array has an element. Baseline code knows it until control comes from elsewhere.
    pub(super) fn learn_in_bounds(&mut self, array: Value, index: Value) {
        self.learn(Fact::InBounds(array, index));
        if let (false, Some(block)) = (self.observes(), self.b.current_block()) {
            self.within_here = Some((block, array, index));
        }
    }

    pub(super) fn is_in_bounds(&self, array: Value, index: Value) -> bool {
        if let Some(block) = self.b.current_block()
            && self.within_here == Some((block, array, index))
        {
            return true;
        }
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

    /// Where the object of a reference was found to be.
    pub(super) fn place_of(&self, reference: Value) -> Option<Value> {
        self.recent().find_map(|&f| match f {
            Fact::Place(r, place) if r == reference => Some(place),
            _ => None,
        })
    }

    /// Any object may have become durable.
    pub(super) fn forget_settled(&mut self) {
        let is_of_places =
            |f: &Fact| matches!(f, Fact::Settled(_) | Fact::Volatile(_) | Fact::Place(..));
        self.facts.retain(|fact| !is_of_places(fact));
    }

    /// Whether a reference is known to be of a type.
    pub(super) fn is_known(&self, value: Value, to: RefType) -> bool {
        let types = self.env.types;
        self.recent().any(|f| {
            matches!(f, Fact::Is(v, r) if *v == value
                && types.is_subtype(ValType::Ref(*r), ValType::Ref(to)))
        })
    }

    /// Records the meaning of a value that is used as a condition.
    pub(super) fn says(&mut self, value: Value, condition: Condition) {
        if self.job.level == Level::Optimizing {
            self.conditions.insert(value, condition);
        }
    }

    /// Learns from a branch: the condition holds here, or it does not.
    pub(super) fn learn_condition(&mut self, condition: Value, holds: bool) {
        match self.conditions.get(&condition).copied() {
            Some(Condition::Is(value, ty)) if holds => self.learn(Fact::Is(value, ty)),
            Some(Condition::Null(value, ty)) if !holds => self.learn(Fact::Is(value, ty)),
            Some(Condition::Within(index, length)) if holds => {
                self.learn(Fact::NonNegative(index));
                self.learn(Fact::Less(index, length));
            }
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

    /// The result of a comparison of 32-bit integers, if that is known.
    pub(super) fn decided(&self, cc: IntCC, a: Value, b: Value) -> Option<bool> {
        let knows = |fact| self.recent().any(|&f| f == fact);
        let less = |a: Value, b: Value| {
            knows(Fact::Less(a, b)) || (self.constant(a) == Some(-1) && knows(Fact::NonNegative(b)))
        };
        let not_less = |a: Value, b: Value| {
            knows(Fact::Less(b, a)) || (self.constant(b) == Some(0) && knows(Fact::NonNegative(a)))
        };
        let is_less = |a, b| match (less(a, b), not_less(a, b)) {
            (true, _) => Some(true),
            (_, true) => Some(false),
            _ => None,
        };
        match cc {
            IntCC::SignedLessThan => is_less(a, b),
            IntCC::SignedGreaterThanOrEqual => is_less(a, b).map(|is| !is),
            IntCC::SignedGreaterThan => is_less(b, a),
            IntCC::SignedLessThanOrEqual => is_less(b, a).map(|is| !is),
            _ => None,
        }
    }

    /// Whether a reference is known not to be null.
    pub(super) fn is_never_null(&self, value: Value) -> bool {
        self.recent().any(|fact| match *fact {
            Fact::Is(v, ty) => v == value && !ty.nullable,
            Fact::InBounds(v, _)
            | Fact::Length(v, _)
            | Fact::Settled(v)
            | Fact::Volatile(v)
            | Fact::Place(v, _)
            | Fact::Field(v, ..)
            | Fact::Element(v, ..)
            | Fact::Function(v, _) => v == value,
            Fact::NothingDurable
            | Fact::NonNegative(_)
            | Fact::Less(..)
            | Fact::Global(..)
            | Fact::Uncalled(_) => false,
        })
    }

    /// The value of a 32-bit constant.
    pub(super) fn constant(&self, value: Value) -> Option<i64> {
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
