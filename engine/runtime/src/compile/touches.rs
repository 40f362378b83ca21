//! The types that the code of a function touches: the sampling plan treats them as warm when the function runs.

use crate::module::ModuleInner;
use crate::types::TypeIndex;
use wasmparser::{BinaryReader, FunctionBody, Operator};

/// Types of the engine whose objects function `index` of the module reads or writes, each once, ascending.
pub(crate) fn of(module: &ModuleInner, index: u32) -> Vec<TypeIndex> {
    let Some(body) = index.checked_sub(module.imported_funcs) else {
        return Vec::new();
    };
    let range = module.bodies[body as usize].clone();
    let reader = BinaryReader::new(&module.bytes[range.clone()], range.start as u64);
    let Ok(operators) = FunctionBody::new(reader).get_operators_reader() else {
        return Vec::new();
    };
    // The module is valid: that its code decodes is known.
    let touched = operators.into_iter().filter_map(|op| touched(&op.ok()?));
    let mut types: Vec<TypeIndex> = touched.map(|ty| module.types[ty as usize]).collect();
    types.sort_unstable();
    types.dedup();
    types
}

/// The type of the object that an operator reads or writes.
fn touched(op: &Operator<'_>) -> Option<u32> {
    use Operator::*;
    match *op {
        StructGet {
            struct_type_index, ..
        }
        | StructGetS {
            struct_type_index, ..
        }
        | StructGetU {
            struct_type_index, ..
        }
        | StructSet {
            struct_type_index, ..
        } => Some(struct_type_index),
        ArrayGet { array_type_index }
        | ArrayGetS { array_type_index }
        | ArrayGetU { array_type_index }
        | ArraySet { array_type_index }
        | ArrayFill { array_type_index }
        | ArrayInitData {
            array_type_index, ..
        }
        | ArrayInitElem {
            array_type_index, ..
        } => Some(array_type_index),
        ArrayCopy {
            array_type_index_dst,
            ..
        } => Some(array_type_index_dst),
        _ => None,
    }
}
