//! The write barrier: reports a store into an object to the collector and the plan.

use super::alias::Region;
use super::isa::Level;
use super::observe::{ACCESS, BARRIER};
use super::translate::Translator;
use crate::helpers::Helper;
use crate::store::region::{CONTEXT, Context, displacement};
use cranelift_codegen::ir::{Block, InstBuilder, Value, types};
use std::mem::offset_of;
use varve_access::Kind as Access;
use varve_heap::layout;

impl Translator<'_, '_> {
    /// Logs for the collector that a reference was stored into an object, unless that has been logged already. Optimized code does it
    /// without a call, so that references stay in registers; baseline code calls, which is less code.
    ///
    /// `element` is the address of the element, in two parts, if the object is an array: of large ones only the line of what was
    /// stored is logged.
    pub(super) fn note_reference(&mut self, reference: Value, element: Option<(Value, i32)>) {
        if self.fresh.contains(&reference) {
            return;
        }
        let address = self.object_address(reference);
        let flags = self.trusted(Region::Headers);
        let byte = self
            .ins()
            .load(types::I8, flags, address, layout::COLLECTOR_BYTE);
        self.observe(
            Access::Read,
            Some(reference),
            address,
            layout::COLLECTOR_BYTE,
            1,
        );
        self.execute(BARRIER);
        let unlogged = self.ins().band_imm_u(byte, layout::UNLOGGED as i64);
        let (slow, next) = (self.b.create_block(), self.b.create_block());
        self.b.set_cold_block(slow);
        self.ins().brif(unlogged, slow, &[], next, &[]);
        self.b.seal_block(slow);
        self.b.switch_to_block(slow);
        if self.job.level == Level::Baseline {
            self.log(reference, element);
        } else {
            self.remember_object(reference, address, byte, element, next);
        }
        self.ins().jump(next, &[]);
        self.b.seal_block(next);
        self.b.switch_to_block(next);
    }

    fn log(&mut self, reference: Value, element: Option<(Value, i32)>) {
        match element {
            None => self.call_helper(Helper::Log, &[reference]),
            Some((array, at)) => {
                let address = self.ins().iadd_imm_s(array, i64::from(at));
                self.call_helper(Helper::LogElement, &[reference, address])
            }
        };
    }

    /// Remembers an object whose header's byte says that it was not remembered yet, or of a large array a line, after which code goes on
    /// in `next`.
    fn remember_object(
        &mut self,
        reference: Value,
        address: Value,
        byte: Value,
        element: Option<(Value, i32)>,
        next: Block,
    ) {
        let flags = self.trusted(Region::Headers);
        if let Some((array, at)) = element {
            let (large, small) = (self.b.create_block(), self.b.create_block());
            self.b.set_cold_block(large);
            self.b.set_cold_block(small);
            let bit = self.ins().band_imm_u(byte, layout::LARGE as i64);
            self.ins().brif(bit, large, &[], small, &[]);
            self.b.seal_block(large);
            self.b.seal_block(small);
            self.b.switch_to_block(large);
            self.note_line(array, at, next);
            self.b.switch_to_block(small);
        }
        let logged = self.ins().band_imm_u(byte, !layout::UNLOGGED as i64);
        self.ins()
            .store(flags, logged, address, layout::COLLECTOR_BYTE);
        self.remember(reference);
    }

    /// Logs the line of an element of a large array, unless it has been logged; goes on in `next`.
    fn note_line(&mut self, array: Value, at: i32, next: Block) {
        let base = self.base();
        let address = self.ins().iadd_imm_s(array, i64::from(at));
        let offset = self.ins().isub(address, base);
        let line = self
            .ins()
            .ushr_imm_u(offset, layout::LINE_SIZE.trailing_zeros() as i64);
        let flags = self.trusted(Region::Mutator);
        let at = displacement(CONTEXT) + offset_of!(Context, mutator) as i32;
        let cards = self
            .ins()
            .load(types::I64, flags, base, at + layout::MUTATOR_CARDS);
        let card = self.ins().iadd(cards, line);
        let flags = self.trusted(Region::Cards);
        let noted = self.ins().load(types::I8, flags, card, 0);
        let note = self.b.create_block();
        self.b.set_cold_block(note);
        self.ins().brif(noted, next, &[], note, &[]);
        self.b.seal_block(note);
        self.b.switch_to_block(note);
        let one = self.ins().iconst(types::I8, 1);
        self.ins().store(flags, one, card, 0);
        let entry = self.ins().ishl_imm_u(line, 1);
        let entry = self.ins().bor_imm_u(entry, layout::REMEMBERED_LINE as i64);
        self.remember(entry);
        self.ins().jump(next, &[]);
    }

    /// Adds an entry to the remembered set of the next collection.
    fn remember(&mut self, entry: Value) {
        let (base, flags) = (self.base(), self.trusted(Region::Mutator));
        let at = displacement(CONTEXT)
            + offset_of!(Context, mutator) as i32
            + layout::MUTATOR_REMEMBERED;
        let cursor = self.ins().load(types::I64, flags, base, at);
        let entries = self.trusted(Region::Remembered);
        self.ins().istore32(entries, entry, cursor, 0);
        let after = self.ins().iadd_imm_s(cursor, 4);
        self.ins().store(flags, after, base, at);
    }

    /// Records in an object's header that it was written to, if the plan monitors writes. New objects need no record: survival is no write.
    pub(super) fn note_write(&mut self, reference: Value) {
        if !self.env.heap.monitors() || self.fresh.contains(&reference) {
            return;
        }
        let address = self.object_address(reference);
        let flags = self.trusted(Region::Headers);
        let at = layout::TEMPERATURE_BYTE;
        let byte = self.ins().load(types::I8, flags, address, at);
        let byte = self.ins().bor_imm_u(byte, layout::WRITTEN as i64);
        self.ins().store(flags, byte, address, at);
        self.execute(ACCESS);
        self.observe(Access::Update, Some(reference), address, at, 1);
    }
}
