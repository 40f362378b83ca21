//! The programmer's marks at allocation sites: a call, with an object that was just allocated, of an import that does
//! nothing else.
//!
//! Where the object was allocated in the same code, functions inlined there included, the site's temperature is set while
//! that code is compiled, in the constant that its objects begin with: the call itself leaves nothing behind. Whatever
//! lies between the two, a constructor for instance, is no matter, as long as it is the same value. Of another object its
//! site is marked at run time, by the number in its header, and code that is compiled from then on has the constant.

use super::alias::Region;
use super::translate::Translator;
use crate::helpers::Helper;
use crate::store::{FuncKind, Inline};
use crate::types::{HeapType, Kind, RefType, ValType};
use cranelift_codegen::ir::{InstBuilder, InstructionData, Value, types};
use varve_heap::layout;
use varve_machine::Kind as Access;
use wasmparser::Operator;

/// An object that is allocated in the code that is being compiled.
pub(super) struct Birth {
    object: Value,
    /// The constant that its header begins as; none if only the runtime writes it.
    header: Option<Value>,
    site: u32,
}

/// Instructions of a mark at run time besides its access.
const TEST: u32 = 2;

impl Translator<'_, '_> {
    /// Notes an allocation.
    pub(super) fn born(&mut self, object: Value, header: Option<Value>, site: u32) {
        if self.env.heap.plan().takes_hints() {
            self.births.push(Birth {
                object,
                header,
                site,
            });
        }
    }

    /// Whether an operator is a mark.
    pub(super) fn is_mark(&self, op: &Operator<'_>) -> bool {
        let &Operator::Call { function_index } = op else {
            return false;
        };
        if function_index >= self.env.module.imported_funcs {
            return false;
        }
        let place = self.env.instance.funcs[function_index as usize];
        let func = &self.env.funcs[self.env.func_at(place) as usize];
        matches!(func.kind, FuncKind::Host(_, Some(Inline::Mark)))
    }

    /// Marks the site of the object on the stack.
    pub(super) fn mark(&mut self) {
        let operand = self.pop_operand();
        if !self.env.heap.plan().takes_hints() {
            return;
        }
        let dfg = &self.b.func.dfg;
        let object = dfg.resolve_aliases(operand.value);
        let mut births = self.births.iter().rev();
        match births.find(|birth| dfg.resolve_aliases(birth.object) == object) {
            Some(birth) => {
                let (header, site) = (birth.header, birth.site);
                self.heat(header, site);
            }
            None => self.mark_at_run_time(operand.value, operand.ty),
        }
    }

    /// Has all objects of a site begin hot, those too whose allocation is translated already.
    fn heat(&mut self, header: Option<Value>, site: u32) {
        let temperature = self.env.heap.marked();
        self.env.sites.mark(site, temperature);
        let dfg = &mut self.b.func.dfg;
        let constant = header.and_then(|header| dfg.value_def(header).inst());
        if let Some(constant) = constant
            && let InstructionData::UnaryImm { imm, .. } = &mut dfg.insts[constant]
        {
            let hot = u64::from(temperature) << layout::TEMPERATURE_SHIFT;
            *imm = (imm.bits() | hot as i64).into();
        }
    }

    fn mark_at_run_time(&mut self, object: Value, ty: ValType) {
        let is_object = matches!(
            ty,
            ValType::Ref(RefType {
                heap: HeapType::Concrete(_, Kind::Struct | Kind::Array),
                ..
            })
        );
        if !is_object {
            self.call_helper(Helper::Mark, &[object]);
            return;
        }
        let (test, mark, next) = (
            self.b.create_block(),
            self.b.create_block(),
            self.b.create_block(),
        );
        self.b.set_cold_block(mark);
        self.b.ins().brif(object, test, &[], next, &[]);
        self.b.seal_block(test);
        self.b.switch_to_block(test);
        let address = self.object_address(object);
        let flags = self.trusted(Region::Headers);
        let at = layout::TEMPERATURE_BYTE;
        let byte = self.b.ins().load(types::I8, flags, address, at);
        // On one of several paths: what it takes along is in memory.
        self.forget_recorded();
        self.record_instructions(TEST);
        self.observe(Access::Read, Some(object), address, at, 1);
        let hot = self.b.ins().band_imm_u(byte, layout::HOT as i64);
        self.b.ins().brif(hot, next, &[], mark, &[]);
        self.b.seal_block(mark);
        self.b.switch_to_block(mark);
        self.call_helper(Helper::Mark, &[object]);
        self.b.ins().jump(next, &[]);
        self.b.seal_block(next);
        self.b.switch_to_block(next);
    }
}
