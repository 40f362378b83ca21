//! A module's types as durable regions have them.

use crate::module::ModuleInner;
use crate::store::Vm;
use crate::types::{Canonical, Composite, HeapType, Hierarchy, Storage, TypeIndex, ValType};
use std::collections::HashMap;
use varve_durable::{Field, Heap, Kind, Tables, Target, Type};

/// Types of Java whose objects are something because of what else refers to them in one run of a program.
const IDENTITIES: [(&str, &str); 4] = [
    (
        "java.lang.Enum",
        "constants of an enum are other objects in each run: keep its name() or ordinal()",
    ),
    (
        "java.lang.Class",
        "classes are other objects in each run: keep their name",
    ),
    ("java.lang.Thread", "threads end with the program"),
    (
        "java.io.OutputStream",
        "streams belong to files that this run has open",
    ),
];

impl Vm {
    /// The region's tables for an instance: all types, and its class data.
    pub(super) fn durable_tables(&self, instance: u32) -> Tables {
        let module = &self.instances[instance as usize].module;
        let names = names(module);
        let types = self.engine.types();
        let describe = |i: TypeIndex| describe(types.get(i), names.get(&i), module);
        let mut all: Vec<Type> = (0..types.len() as TypeIndex).map(describe).collect();
        // Types come after those that they extend.
        for i in 0..all.len() {
            let named = IDENTITIES.iter().find(|(name, _)| all[i].name == *name);
            let own = named.map(|(_, why)| why.to_string());
            let of_super = all[i]
                .supertype
                .and_then(|s| all[s as usize].refused.clone());
            all[i].refused = own.or(of_super);
        }
        let durable = self.durable.as_ref().expect("asked while there is one");
        Tables {
            types: all,
            constants: durable.constants.named().to_vec(),
        }
    }
}

/// Names of types with those of their fields, by the engine's index.
fn names(module: &ModuleInner) -> HashMap<TypeIndex, (String, u32)> {
    let named = module.types.iter().enumerate().filter_map(|(i, &ty)| {
        let name = module.type_names.get(&(i as u32))?;
        Some((ty, (name.clone(), i as u32)))
    });
    named.collect()
}

fn describe(ty: &Canonical, name: Option<&(String, u32)>, module: &ModuleInner) -> Type {
    let kind = match &ty.ty.composite {
        _ if ty.opaque => Kind::Opaque,
        Composite::Func(_) => Kind::Opaque,
        Composite::Array(e) => Kind::Array(storage(e.storage)),
        Composite::Struct(fields) => {
            let fields = fields.iter().zip(&ty.layout.offsets).enumerate();
            let field_name = |i: usize| {
                let key = (name?.1, i as u32);
                module.field_names.get(&key).cloned()
            };
            Kind::Struct {
                size: ty.layout.size,
                fields: fields
                    .map(|(i, (f, &offset))| Field {
                        name: field_name(i).unwrap_or_default(),
                        offset,
                        storage: storage(f.storage),
                    })
                    .collect(),
            }
        }
    };
    Type {
        name: name.map(|n| n.0.clone()).unwrap_or_default(),
        supertype: ty.ty.supertype,
        kind,
        refused: None,
    }
}

fn storage(s: Storage) -> varve_durable::Storage {
    use varve_durable::Storage as S;
    match s {
        Storage::I8 => S::I8,
        Storage::I16 => S::I16,
        Storage::Val(ValType::I32) => S::I32,
        Storage::Val(ValType::I64) => S::I64,
        Storage::Val(ValType::F32) => S::F32,
        Storage::Val(ValType::F64) => S::F64,
        Storage::Val(ValType::Ref(r)) => match r.heap.hierarchy() {
            Hierarchy::Func => S::Func,
            _ => S::Ref(Target {
                nullable: r.nullable,
                to: heap(r.heap),
            }),
        },
    }
}

fn heap(h: HeapType) -> Heap {
    match h {
        HeapType::Any | HeapType::Eq => Heap::Any,
        HeapType::I31 => Heap::I31,
        HeapType::Struct => Heap::Struct,
        HeapType::Array => Heap::Array,
        HeapType::None => Heap::None,
        HeapType::Concrete(i, _) => Heap::Type(i),
        _ => Heap::Foreign,
    }
}
