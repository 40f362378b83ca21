//! The programmer's marks at allocation sites: a call, with an object that was just allocated, of an import that does
//! nothing else.
//!
//! Where the object was allocated in the same code, functions inlined there included, its temperature is in the constants
//! that this code gives such objects, and the call itself leaves nothing behind. Whatever lies between the two, a
//! constructor for instance, is no matter, as long as it is the same value. Any other object is marked at run time, in its
//! header: its site may also allocate objects without a mark.
//!
//! An object that languages have as one may be two: arrays of Java and Kotlin are objects that hold the array of their
//! elements. So arrays in an object's fields, by their declared types, are marked with it.

use super::translate::Translator;
use crate::helpers::Helper;
use crate::store::{FuncKind, Inline, MARKED};
use crate::types::{FieldType, HeapType, Kind, RefType, Storage, TypeIndex, ValType};
use cranelift_codegen::ir::{InstructionData, Value};
use varve_heap::layout;
use wasmparser::Operator;

/// An object that is allocated in the code that is being compiled.
pub(super) struct Birth {
    object: Value,
    /// The constant that its header begins as; none if only the runtime writes it.
    header: Option<Value>,
    /// The constant that is passed to the runtime when it allocates the object.
    site: Value,
    /// Arrays that it was made with.
    parts: Parts,
}

enum Parts {
    These(Vec<Value>),
    /// It was made empty, and may be filled somewhere.
    Unknown,
}

/// Whether a field holds an array of its object.
pub(crate) fn holds_part(field: &FieldType) -> bool {
    let heap = match field.storage {
        Storage::Val(ValType::Ref(RefType { heap, .. })) => heap,
        _ => return false,
    };
    matches!(heap, HeapType::Concrete(_, Kind::Array))
}

impl Translator<'_, '_> {
    /// Records an allocation, `site` being the constant in the call of the runtime.
    pub(super) fn born(&mut self, object: Value, header: Option<Value>, site: Value) {
        if self.env.heap.plan().takes_hints() {
            self.births.push(Birth {
                object,
                header,
                site,
                parts: Parts::These(Vec::new()),
            });
        }
    }

    /// The last one was a struct, and was made empty.
    pub(super) fn born_empty(&mut self, ty: TypeIndex) {
        let may_have = self.env.types.fields(ty).iter().any(holds_part);
        if let Some(birth) = self.births.last_mut().filter(|_| may_have) {
            birth.parts = Parts::Unknown;
        }
    }

    /// Records the sources of the last one.
    pub(super) fn born_of(&mut self, ty: TypeIndex, values: &[Value]) {
        let fields = self.env.types.fields(ty).iter().zip(values);
        let parts = fields.filter(|(field, _)| holds_part(field));
        let parts = parts.map(|(_, &value)| value).collect();
        if let Some(birth) = self.births.last_mut() {
            birth.parts = Parts::These(parts);
        }
    }

    /// The latest allocation of a value, by its number.
    fn birth_of(&self, object: Value) -> Option<usize> {
        let dfg = &self.b.func.dfg;
        let object = dfg.resolve_aliases(object);
        let is_it = |birth: &Birth| dfg.resolve_aliases(birth.object) == object;
        self.births.iter().rposition(is_it)
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

    /// Marks the object on the stack.
    pub(super) fn mark(&mut self) {
        let operand = self.pop_operand();
        if !self.env.heap.plan().takes_hints() {
            return;
        }
        match self.births_of_all(operand.value) {
            Some(births) => {
                self.env.sites.mark();
                births.into_iter().for_each(|birth| self.heat(birth));
            }
            None => {
                self.call_helper(Helper::Mark, &[operand.value]);
            }
        }
    }

    /// The allocations of an object and all its parts, if they are known.
    fn births_of_all(&self, object: Value) -> Option<Vec<usize>> {
        let birth = self.birth_of(object)?;
        let mut all = vec![birth];
        match &self.births[birth].parts {
            Parts::These(parts) => {
                for &part in parts {
                    all.push(self.birth_of(part)?);
                }
            }
            Parts::Unknown => return None,
        }
        Some(all)
    }

    /// Has all objects of an allocation begin hot: its constants are changed.
    fn heat(&mut self, birth: usize) {
        let (header, site) = (self.births[birth].header, self.births[birth].site);
        let hot = u64::from(self.env.heap.marked()) << layout::TEMPERATURE_SHIFT;
        let header = header.map(|header| (header, hot as i64));
        for (constant, bits) in header.into_iter().chain([(site, i64::from(MARKED))]) {
            let dfg = &mut self.b.func.dfg;
            let inst = dfg.value_def(constant).inst().expect("a constant");
            if let InstructionData::UnaryImm { imm, .. } = &mut dfg.insts[inst] {
                *imm = (imm.bits() | bits).into();
            }
        }
    }
}
