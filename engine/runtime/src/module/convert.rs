//! From the decoder's types to the engine's.

use crate::error::{Error, Result};
use crate::types::*;
use wasmparser as wp;

/// Translates types of one module; `types` holds the engine's index of each type that is already known, and from
/// `group` on, references are to members of the group that is being read.
pub(crate) struct Convert<'a> {
    pub types: &'a [TypeIndex],
    pub kinds: &'a [Kind],
}

fn unsupported<T>(feature: &str) -> Result<T> {
    Err(Error::Unsupported {
        feature: feature.into(),
        offset: 0,
        function: None,
    })
}

impl Convert<'_> {
    pub fn index(&self, index: u32) -> TypeIndex {
        match self.types.get(index as usize) {
            Some(&i) => i,
            None => IN_GROUP | (index - self.types.len() as u32),
        }
    }

    pub fn heap(&self, ty: wp::HeapType) -> Result<HeapType> {
        use wp::AbstractHeapType as A;
        Ok(match ty {
            wp::HeapType::Abstract { ty, .. } => match ty {
                A::Any => HeapType::Any,
                A::Eq => HeapType::Eq,
                A::I31 => HeapType::I31,
                A::Struct => HeapType::Struct,
                A::Array => HeapType::Array,
                A::None => HeapType::None,
                A::Func => HeapType::Func,
                A::NoFunc => HeapType::NoFunc,
                A::Extern => HeapType::Extern,
                A::NoExtern => HeapType::NoExtern,
                A::Exn => HeapType::Exn,
                A::NoExn => HeapType::NoExn,
                A::Cont | A::NoCont => return unsupported("stack switching"),
            },
            wp::HeapType::Concrete(i) => {
                let i = i
                    .as_module_index()
                    .expect("a module's own types are not canonicalised by the decoder");
                HeapType::Concrete(self.index(i), self.kinds[i as usize])
            }
            wp::HeapType::Exact(_) => return unsupported("custom descriptors"),
        })
    }

    pub fn reference(&self, ty: wp::RefType) -> Result<RefType> {
        Ok(RefType {
            nullable: ty.is_nullable(),
            heap: self.heap(ty.heap_type())?,
        })
    }

    pub fn val(&self, ty: wp::ValType) -> Result<ValType> {
        Ok(match ty {
            wp::ValType::I32 => ValType::I32,
            wp::ValType::I64 => ValType::I64,
            wp::ValType::F32 => ValType::F32,
            wp::ValType::F64 => ValType::F64,
            wp::ValType::V128 => ValType::V128,
            wp::ValType::Ref(r) => ValType::Ref(self.reference(r)?),
        })
    }

    fn field(&self, ty: &wp::FieldType) -> Result<FieldType> {
        let storage = match ty.element_type {
            wp::StorageType::I8 => Storage::I8,
            wp::StorageType::I16 => Storage::I16,
            wp::StorageType::Val(v) => Storage::Val(self.val(v)?),
        };
        Ok(FieldType {
            storage,
            mutable: ty.mutable,
        })
    }

    pub fn func(&self, ty: &wp::FuncType) -> Result<FuncType> {
        let list = |types: &[wp::ValType]| {
            types
                .iter()
                .map(|&t| self.val(t))
                .collect::<Result<Vec<_>>>()
        };
        Ok(FuncType {
            params: list(ty.params())?,
            results: list(ty.results())?,
        })
    }

    pub fn sub(&self, ty: &wp::SubType) -> Result<SubType> {
        let composite = match &ty.composite_type.inner {
            wp::CompositeInnerType::Func(f) => Composite::Func(self.func(f)?),
            wp::CompositeInnerType::Array(a) => Composite::Array(self.field(&a.0)?),
            wp::CompositeInnerType::Struct(s) => Composite::Struct(
                s.fields
                    .iter()
                    .map(|f| self.field(f))
                    .collect::<Result<_>>()?,
            ),
            wp::CompositeInnerType::Cont(_) => return unsupported("stack switching"),
        };
        let supertype = ty
            .supertype_idxs
            .first()
            .and_then(|i| i.as_module_index())
            .map(|i| self.index(i));
        Ok(SubType {
            is_final: ty.is_final,
            supertype,
            composite,
        })
    }
}

pub(super) fn kind_of(ty: &wp::SubType) -> Kind {
    match ty.composite_type.inner {
        wp::CompositeInnerType::Array(_) => Kind::Array,
        wp::CompositeInnerType::Struct(_) => Kind::Struct,
        _ => Kind::Func,
    }
}
