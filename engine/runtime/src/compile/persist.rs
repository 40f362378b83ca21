//! Persistence checks: before an object is accessed, whether it is where the reference says, and before a store, whether it survives.
//!
//! | access | check | action |
//! |---|---|---|
//! | load, comparison of references | forwarded? | takes the object's new place |
//! | store | forwarded or durable? | the runtime stores, in the order that the medium needs |
//!
//! A store's action contains the store itself, so that one check does where the paper has two. Baseline code counts how often each check was
//! activated and bypassed; optimized code is biased by that, or as the configuration says. *Very unlikely* actions are not compiled: the
//! activation goes on in baseline code.
//!
//! As long as nothing of a program is durable, optimized code has no checks at all. A program runs on one thread, and the operation that makes the
//! first object durable is a call of the runtime: so code checks after each call whether that has happened, and then goes on in baseline code. The
//! optimized code of all functions is given up at that moment. A pass that loses its facts where a loop begins again, as after an exception that
//! was caught, is done anew with checks.
//!
//! Nothing is checked where the answer is known: for objects with functions in them, which never become durable; for fields that never
//! change after their object's birth, which forwarding objects keep; for objects that were just born; and for those that were checked
//! since anything could make them durable last, which calls and stores with actions can.

use super::alias::Region;
use super::facts::Fact;
use super::feedback::CellKind;
use super::isa::Level;
use super::resume::Why;
use super::signatures::REFERENCE as WIDE;
use super::slot::{Kind, Slot};
use super::translate::{Translator, args};
use crate::engine::Checks;
use crate::error::TrapKind;
use crate::helpers::Helper;
use crate::module::topmost;
use crate::store::durable::REFERENCE;
use crate::store::durable::class_data::never_survives;
use crate::store::region::{CONTEXT, Context, displacement};
use crate::types::{HeapType, TypeIndex, ValType};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, InstBuilder, MemFlagsData, Value, types};
use std::mem::offset_of;
use varve_heap::layout;

/// How likely a check's action is, as code is laid out for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
pub(crate) enum Bias {
    /// More than 95 %.
    Likely,
    Unbiased,
    /// Less than 5 %.
    Unlikely,
    /// Never so far, and that often enough.
    VeryUnlikely,
}

/// Checks of a place from which on it says something that none of them was activated: by the rule of three (Hanley and Lippman-Hand, JAMA 249,
/// 1983), if none of n was, their share is below 3/n with 95 % certainty; with 60 that is below the 5 % up to which an action is unlikely.
pub(crate) const ENOUGH: u64 = 60;

/// The bias of a check by baseline code's counters: bypassed, activated.
fn bias_of(bypassed: u64, activated: u64) -> Bias {
    match activated as f64 / (bypassed + activated).max(1) as f64 {
        _ if activated == 0 && bypassed >= ENOUGH => Bias::VeryUnlikely,
        share if share > 0.95 => Bias::Likely,
        share if share < 0.05 => Bias::Unlikely,
        _ => Bias::Unbiased,
    }
}

/// A check whose outcome has been computed.
struct Check {
    /// Not 0 if the action is due.
    due: Value,
    bias: Bias,
}

impl Translator<'_, '_> {
    /// Whether code checks here.
    fn checks(&self) -> bool {
        self.env.checks.is_some() && !self.nothing_durable()
    }

    /// Where optimized code is entered, which it is as long as nothing is durable.
    pub(super) fn begin_unchecked(&mut self) {
        if self.relies_on_nothing_durable() {
            self.learn_nothing_durable();
        }
    }

    fn relies_on_nothing_durable(&self) -> bool {
        self.env.assumed.nothing_durable
            && self.job.speculates
            && self.job.level == Level::Optimizing
    }

    /// After a call: goes on in other code if anything has become durable.
    pub(super) fn check_nothing_durable(&mut self) {
        if !self.relies_on_nothing_durable() || self.nothing_durable() || !self.is_reachable() {
            return;
        }
        self.join_truth();
        let offset = std::mem::replace(&mut self.offset, self.next_offset);
        if self.may_leave_after_call() {
            let base = self.base();
            let at = displacement(CONTEXT) + offset_of!(Context, durable) as i32;
            let flags = MemFlagsData::trusted();
            let durable = self.ins().load(types::I64, flags, base, at);
            let (leave, next) = (self.b.create_block(), self.b.create_block());
            self.b.set_cold_block(leave);
            self.ins().brif(durable, leave, &[], next, &[]);
            self.b.seal_block(leave);
            self.b.seal_block(next);
            self.b.switch_to_block(leave);
            let (fresh, facts) = (self.fresh.clone(), self.facts.clone());
            let point = self.point(self.offset, self.stack.len(), 0);
            self.leave_for(point, Why::EndOfCode);
            (self.fresh, self.facts) = (fresh, facts);
            self.b.switch_to_block(next);
            self.learn_nothing_durable();
        }
        self.offset = offset;
    }

    /// Where a loop begins again.
    pub(super) fn repeat(&mut self, frame: usize) {
        let known = self.control[frame].entry.first() == Some(&Fact::NothingDurable);
        self.lost_nothing_durable |= known && !self.nothing_durable();
    }

    fn never_durable(&self, ty: TypeIndex) -> bool {
        never_survives(self.env.types, ty)
    }

    /// Whether a load needs no check, whatever its object is.
    fn is_settled(&self, slot: &Slot) -> bool {
        match slot.kind {
            Kind::Field { ty, field } => self.is_settled_field(ty, field),
            Kind::Element { ty, .. } => {
                !self.env.types.element(ty).mutable || self.never_durable(ty)
            }
            _ => true,
        }
    }

    /// Whether a load of a struct's field needs no check.
    fn is_settled_field(&self, ty: TypeIndex, field: u32) -> bool {
        let t = self.env.types.get(ty);
        let constant = t.opaque || !self.env.types.fields(ty)[field as usize].mutable;
        let stored = || {
            let top = topmost(self.env.types, ty, field);
            let fields = self.env.module.stored_fields(self.env.types);
            fields.contains(&(top, field))
        };
        constant || self.never_durable(ty) || !stored()
    }

    /// How a check at this operator is compiled.
    fn bias(&mut self) -> Bias {
        let checks = self.env.checks.expect("asked where checks are compiled");
        if self.job.level == Level::Baseline {
            return Bias::Unlikely;
        }
        let wanted = match checks {
            Checks::None | Checks::Unlikely => Bias::Unlikely,
            Checks::Likely => Bias::Likely,
            Checks::Unbiased => Bias::Unbiased,
            Checks::Deopt => Bias::VeryUnlikely,
            Checks::Profiled | Checks::Quick => {
                let func = self.activation().func_id;
                let counted = self.env.feedback.get(&func);
                let counted = counted.and_then(|f| f.check(self.env.region, self.offset));
                // An uncounted check may still be activated.
                counted.map_or(Bias::Unlikely, |(bypassed, activated)| {
                    bias_of(bypassed, activated)
                })
            }
        };
        match wanted {
            Bias::VeryUnlikely if !self.may_leave_at_check() => Bias::Unlikely,
            bias => bias,
        }
    }

    /// Computes whether an object's header has one of `bits`.
    fn check(&mut self, reference: Value, bits: u8) -> Check {
        let address = self.object_address(reference);
        let flags = self.trapping(Region::Headers, TrapKind::NullReference);
        let byte = self
            .ins()
            .load(types::I8, flags, address, layout::COLLECTOR_BYTE);
        self.observe_check(reference, address);
        let due = self.ins().band_imm_u(byte, i64::from(bits));
        self.biased(due)
    }

    fn biased(&mut self, due: Value) -> Check {
        if self.counts() {
            let is = self.ins().icmp_imm_s(IntCC::NotEqual, due, 0);
            self.count_as(is, CellKind::Check);
        }
        let bias = self.bias();
        self.execute_check(bias);
        self.count_bias(due, bias);
        Check { due, bias }
    }

    /// Counts a check by its bias, if that is asked for.
    fn count_bias(&mut self, due: Value, bias: Bias) {
        let Some(place) = self.env.check_counters else {
            return;
        };
        let row = match self.counts() {
            true => 4,
            false => bias as i32,
        };
        let is = self.ins().icmp_imm_s(IntCC::NotEqual, due, 0);
        let wide = self.ins().uextend(types::I64, is);
        let byte = self.ins().ishl_imm_u(wide, 3);
        let base = self.base();
        let address = self.ins().iadd(base, byte);
        let (flags, at) = (MemFlagsData::trusted(), displacement(place) + 16 * row);
        let count = self.ins().load(types::I64, flags, address, at);
        let count = self.ins().iadd_imm_s(count, 1);
        self.ins().store(flags, count, address, at);
    }

    /// Branches to the blocks for the action and for going on, laid out as the bias says. A very unlikely outcome leaves this code, and translation
    /// goes on with the other one: no blocks.
    fn branch_on(&mut self, check: &Check) -> Option<(Block, Block)> {
        let (action, next) = (self.b.create_block(), self.b.create_block());
        match check.bias {
            Bias::Likely => self.b.set_cold_block(next),
            Bias::Unbiased => {}
            Bias::Unlikely | Bias::VeryUnlikely => self.b.set_cold_block(action),
        }
        self.ins().brif(check.due, action, &[], next, &[]);
        self.b.seal_block(action);
        self.b.seal_block(next);
        if check.bias != Bias::VeryUnlikely {
            return Some((action, next));
        }
        self.b.switch_to_block(action);
        // Facts that the exit drops still hold on the path that stays.
        let (fresh, facts) = (self.fresh.clone(), self.facts.clone());
        let point = self.point(self.offset, self.stack.len(), 0);
        self.leave_for(point, Why::Guard);
        (self.fresh, self.facts) = (fresh, facts);
        self.b.switch_to_block(next);
        None
    }

    /// Where a forwarding object's durable copy is: see [`varve_heap::Header::became_durable`].
    fn forwarded_to(&mut self, reference: Value) -> Value {
        let address = self.object_address(reference);
        let flags = self.trusted(Region::Headers);
        let header = self.ins().load(types::I64, flags, address, 0);
        let low = self.ins().ushr_imm_u(header, i64::from(layout::SITE_SHIFT));
        let low = self.ins().ireduce(types::I32, low);
        let low = self.ins().band_imm_u(low, (1 << layout::SITE_BITS) - 1);
        let high = self
            .ins()
            .ushr_imm_u(header, i64::from(layout::TEMPERATURE_SHIFT));
        let high = self.ins().ireduce(types::I32, high);
        let high = self.ins().ishl_imm_u(high, i64::from(layout::SITE_BITS));
        let place = self.ins().bor(low, high);
        self.ins().uextend(WIDE, place)
    }

    /// The object to load from: that of the reference, or its durable copy. None if the slot is in no object. The operands of the operator
    /// are on the stack still.
    pub(super) fn settle(&mut self, slot: &Slot) -> Option<Value> {
        let reference = slot.reference?;
        if !self.checks() || self.is_settled(slot) || self.knows_settled(reference) {
            return Some(reference);
        }
        if let Some(place) = self.place_of(reference) {
            return Some(place);
        }
        let check = match slot.ahead {
            true => self.check_ahead(reference),
            false => self.check(reference, layout::FORWARDED),
        };
        Some(self.resolved(reference, &check))
    }

    /// The check where a field is read ahead of the operators that want it, which have been counted and this has not.
    fn check_ahead(&mut self, reference: Value) -> Check {
        let address = self.object_address(reference);
        let flags = self.trusted(Region::Headers);
        let byte = self
            .ins()
            .load(types::I8, flags, address, layout::COLLECTOR_BYTE);
        self.observe_check(reference, address);
        let due = self.ins().band_imm_u(byte, i64::from(layout::FORWARDED));
        let bias = Bias::Unlikely;
        self.execute_check(bias);
        Check { due, bias }
    }

    /// The reference, or where the check says that it leads.
    fn resolved(&mut self, reference: Value, check: &Check) -> Value {
        let Some((action, next)) = self.branch_on(check) else {
            self.learn(Fact::Settled(reference));
            return reference;
        };
        let done = self.b.create_block();
        let place = self.b.append_block_param(done, WIDE);
        self.b.switch_to_block(action);
        let to = self.forwarded_to(reference);
        self.ins().jump(done, &args(&[to]));
        self.b.switch_to_block(next);
        self.ins().jump(done, &args(&[reference]));
        self.b.seal_block(done);
        self.b.switch_to_block(done);
        // It is used again as long as nothing becomes durable, across collections too.
        self.track(place);
        self.learn(Fact::Place(reference, place));
        place
    }

    /// How far from its object's start a slot is, as passed to the runtime.
    fn distance(&mut self, slot: &Slot) -> Value {
        match slot.kind {
            Kind::Element { index, .. } => {
                let wide = self.ins().uextend(types::I64, index);
                let bytes = i64::from(slot.width.bytes());
                let byte = self.ins().imul_imm_s(wide, bytes);
                self.ins().iadd_imm_s(byte, i64::from(slot.offset))
            }
            _ => self.i64(i64::from(slot.offset)),
        }
    }

    /// Begins a store that may be the runtime's to do. If there is a block, the store is done there, and instructions emitted from here on are for
    /// objects that do not survive, until [`Translator::end_store`].
    pub(super) fn begin_store(&mut self, slot: &Slot, value: Value) -> Option<Block> {
        let reference = slot.reference?;
        let (Kind::Field { ty, .. } | Kind::Element { ty, .. }) = slot.kind else {
            return None;
        };
        if !self.checks() || self.never_durable(ty) || self.knows_volatile(reference) {
            return None;
        }
        let check = self.check(reference, layout::PERSISTENCE_CHECK);
        let Some((action, next)) = self.branch_on(&check) else {
            self.learn(Fact::Volatile(reference));
            return None;
        };
        let done = self.b.create_block();
        self.b.switch_to_block(action);
        let at = self.distance(slot);
        let bits = self.bits(value);
        let width = match slot.managed {
            true => i64::from(REFERENCE),
            false => i64::from(slot.width.bytes()),
        };
        let width = self.i32(width);
        self.call_helper(Helper::StoreDurable, &[reference, at, bits, width]);
        self.ins().jump(done, &[]);
        self.b.switch_to_block(next);
        Some(done)
    }

    /// Ends the store.
    pub(super) fn end_store(&mut self, durable: Option<Block>, slot: &Slot) {
        if let Some(done) = durable {
            self.ins().jump(done, &[]);
            self.b.seal_block(done);
            self.b.switch_to_block(done);
            if slot.managed {
                // Whatever the value reaches may be durable now.
                self.forget_settled();
            }
        }
        if let (Kind::Field { ty, field }, Some(reference)) = (slot.kind, slot.reference) {
            self.after_constant(reference, ty, field);
        }
    }

    /// Whether two references are to the same object; an i8.
    pub(super) fn same(
        &mut self,
        a: super::translate::Operand,
        b: super::translate::Operand,
    ) -> Value {
        let equal = self.ins().icmp(IntCC::Equal, a.value, b.value);
        let may_move = |t: &Self, ty: ValType| match ty {
            ValType::Ref(r) => match r.heap {
                HeapType::Concrete(i, _) => !t.never_durable(i),
                HeapType::I31 | HeapType::None => false,
                _ => true,
            },
            _ => false,
        };
        if !self.checks() || !may_move(self, a.ty) || !may_move(self, b.ty) {
            return equal;
        }
        let (different, objects) = (self.b.create_block(), self.b.create_block());
        let done = self.b.create_block();
        let result = self.b.append_block_param(done, types::I8);
        let one = self.ins().iconst(types::I8, 1);
        self.ins().brif(equal, done, &args(&[one]), different, &[]);
        self.b.seal_block(different);
        self.b.switch_to_block(different);
        // Null and integers are never the same as anything else.
        let least = self.ins().umin(a.value, b.value);
        let some = self.ins().icmp_imm_s(IntCC::NotEqual, least, 0);
        let either = self.ins().bor(a.value, b.value);
        let tag = self.ins().band_imm_u(either, i64::from(layout::I31_TAG));
        let even = self.ins().icmp_imm_s(IntCC::Equal, tag, 0);
        let both = self.ins().band(some, even);
        let zero = self.ins().iconst(types::I8, 0);
        self.ins().brif(both, objects, &[], done, &args(&[zero]));
        self.b.seal_block(objects);
        self.b.switch_to_block(objects);
        let byte = |t: &mut Self, reference| {
            let address = t.object_address(reference);
            let flags = t.trusted(Region::Headers);
            let byte =
                t.b.ins()
                    .load(types::I8, flags, address, layout::COLLECTOR_BYTE);
            t.observe_check(reference, address);
            byte
        };
        let (x, y) = (byte(self, a.value), byte(self, b.value));
        let either = self.ins().bor(x, y);
        let due = self.ins().band_imm_u(either, i64::from(layout::FORWARDED));
        let check = self.biased(due);
        if let Some((action, next)) = self.branch_on(&check) {
            self.b.switch_to_block(action);
            let place = |t: &mut Self, byte, reference| {
                let moved = t.b.ins().band_imm_u(byte, i64::from(layout::FORWARDED));
                let to = t.forwarded_to(reference);
                t.b.ins().select(moved, to, reference)
            };
            let (p, q) = (place(self, x, a.value), place(self, y, b.value));
            let same = self.ins().icmp(IntCC::Equal, p, q);
            self.ins().jump(done, &args(&[same]));
            self.b.switch_to_block(next);
        }
        self.ins().jump(done, &args(&[zero]));
        self.b.seal_block(done);
        self.b.switch_to_block(done);
        result
    }

    /// After a store into a field of a new object that may have made it a constant of an enumeration.
    fn after_constant(&mut self, reference: Value, ty: TypeIndex, field: u32) {
        let Some(own) = self.env.durable.and_then(|d| d.enumeration) else {
            return;
        };
        if own.number.0 != field || !self.env.types.is_subtype_index(ty, own.ty) {
            return;
        }
        self.call_helper(Helper::ConstantMade, &[reference]);
        self.may_be_another();
    }

    /// After a store into a global that may hold an object that is the same in each run.
    pub(super) fn after_global(&mut self, global: u32) {
        if self
            .env
            .durable
            .is_some_and(|d| d.canonical.is_field(global))
        {
            let global = self.i32(i64::from(global));
            self.call_helper(Helper::CanonicalSet, &[global]);
            self.may_be_another();
        }
    }

    /// An object that was just made may be one of the region.
    fn may_be_another(&mut self) {
        // It may be another object now, and the first durable one that the program knows.
        self.fresh.clear();
        let relied = self.nothing_durable();
        self.forget_contents();
        self.lost_nothing_durable |= relied;
    }

    /// Whether objects of a type are class data, which are allocated where the region names them.
    pub(super) fn is_class_data(&self, ty: TypeIndex) -> bool {
        self.env.durable.is_some_and(|d| d.is_class_data(ty))
    }

    /// A new object of class data.
    pub(super) fn allocate_class_data(&mut self, ty: TypeIndex) -> Value {
        let number = self.i32(i64::from(ty));
        let reference = self.call_helper(Helper::AllocClassData, &[number]);
        reference.expect("result")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_seen_seldom_is_not_said_never_to_happen() {
        assert_eq!(bias_of(0, 0), Bias::Unlikely);
        assert_eq!(bias_of(1, 0), Bias::Unlikely);
        assert_eq!(bias_of(ENOUGH - 1, 0), Bias::Unlikely);
        assert_eq!(bias_of(ENOUGH, 0), Bias::VeryUnlikely);
        assert_eq!(bias_of(1_000_000, 1), Bias::Unlikely);
        assert_eq!(bias_of(19, 1), Bias::Unbiased);
        assert_eq!(bias_of(1, 19), Bias::Unbiased);
        assert_eq!(bias_of(1, 99), Bias::Likely);
        assert_eq!(bias_of(0, 1), Bias::Likely);
    }
}
