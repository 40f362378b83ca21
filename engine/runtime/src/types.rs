//! Types of the engine: every module's types, canonicalised so that equal recursion groups have equal indices.
//!
//! A type index of the engine is at the same time the shape index in object headers, so that a cast compares numbers.

use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fmt;

/// Index of a canonical type in its [`Engine`](crate::Engine).
pub type TypeIndex = u32;

/// The kind of objects that a concrete type describes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Kind {
    /// A function.
    Func,
    /// A struct.
    Struct,
    /// An array.
    Array,
}

/// The type of objects that a reference points at.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum HeapType {
    Any,
    Eq,
    I31,
    Struct,
    Array,
    None,
    Func,
    NoFunc,
    Extern,
    NoExtern,
    Exn,
    NoExn,
    /// A type that a module defined.
    Concrete(TypeIndex, Kind),
}

/// The hierarchies of heap types; references never cross from one to another without a conversion.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Hierarchy {
    Any,
    Func,
    Extern,
    Exn,
}

impl HeapType {
    pub(crate) fn hierarchy(self) -> Hierarchy {
        use HeapType::*;
        match self {
            Any | Eq | I31 | Struct | Array | None => Hierarchy::Any,
            Func | NoFunc => Hierarchy::Func,
            Extern | NoExtern => Hierarchy::Extern,
            Exn | NoExn => Hierarchy::Exn,
            Concrete(_, Kind::Func) => Hierarchy::Func,
            Concrete(..) => Hierarchy::Any,
        }
    }

    /// Whether values of this type are managed by the collector. Function references are not: they are places in the
    /// store's own table of functions.
    pub(crate) fn is_managed(self) -> bool {
        self.hierarchy() != Hierarchy::Func
    }
}

/// A reference type.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct RefType {
    /// Whether null is a value of this type.
    pub nullable: bool,
    /// The type of its target.
    pub heap: HeapType,
}

/// A value type.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum ValType {
    I32,
    I64,
    F32,
    F64,
    V128,
    Ref(RefType),
}

impl ValType {
    /// `funcref`.
    pub const FUNCREF: ValType = ValType::Ref(RefType {
        nullable: true,
        heap: HeapType::Func,
    });
    /// `externref`.
    pub const EXTERNREF: ValType = ValType::Ref(RefType {
        nullable: true,
        heap: HeapType::Extern,
    });
    /// `anyref`.
    pub const ANYREF: ValType = ValType::Ref(RefType {
        nullable: true,
        heap: HeapType::Any,
    });

    /// Whether values of this type are references that the collector must see.
    pub(crate) fn is_managed(self) -> bool {
        matches!(self, ValType::Ref(r) if r.heap.is_managed())
    }

    /// Bytes of a value in an object.
    pub(crate) fn bytes(self) -> u32 {
        match self {
            ValType::I64 | ValType::F64 => 8,
            ValType::V128 => 16,
            _ => 4,
        }
    }

    /// Words of 64 bits in which a value travels between host and code.
    pub(crate) fn words(self) -> usize {
        if self == ValType::V128 { 2 } else { 1 }
    }
}

impl fmt::Display for ValType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ValType::I32 => f.write_str("i32"),
            ValType::I64 => f.write_str("i64"),
            ValType::F32 => f.write_str("f32"),
            ValType::F64 => f.write_str("f64"),
            ValType::V128 => f.write_str("v128"),
            ValType::Ref(r) => {
                f.write_str(if r.nullable { "(ref null " } else { "(ref " })?;
                match r.heap {
                    HeapType::Concrete(i, _) => write!(f, "type {i})"),
                    h => write!(f, "{})", format!("{h:?}").to_lowercase()),
                }
            }
        }
    }
}

/// Type of a field or element as stored.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)]
pub enum Storage {
    I8,
    I16,
    Val(ValType),
}

impl Storage {
    /// Bytes that one such value takes in an object.
    pub fn bytes(self) -> u32 {
        match self {
            Storage::I8 => 1,
            Storage::I16 => 2,
            Storage::Val(v) => v.bytes(),
        }
    }

    /// The type of the value once it has been read.
    pub fn unpacked(self) -> ValType {
        match self {
            Storage::I8 | Storage::I16 => ValType::I32,
            Storage::Val(v) => v,
        }
    }

    pub(crate) fn is_managed(self) -> bool {
        matches!(self, Storage::Val(v) if v.is_managed())
    }
}

/// A field of a struct, or the element of an array.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct FieldType {
    /// How it is stored.
    pub storage: Storage,
    /// Whether it may be written after creation.
    pub mutable: bool,
}

/// A function's parameters and results.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct FuncType {
    /// Types of the parameters.
    pub params: Vec<ValType>,
    /// Types of the results.
    pub results: Vec<ValType>,
}

impl FuncType {
    /// A function type.
    pub fn new(
        params: impl IntoIterator<Item = ValType>,
        results: impl IntoIterator<Item = ValType>,
    ) -> Self {
        FuncType {
            params: params.into_iter().collect(),
            results: results.into_iter().collect(),
        }
    }

    /// Words that hold the parameters, and after a call the results.
    pub(crate) fn words(&self) -> usize {
        let words = |types: &[ValType]| types.iter().map(|t| t.words()).sum::<usize>();
        words(&self.params).max(words(&self.results)).max(1)
    }
}

impl fmt::Display for FuncType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |f: &mut fmt::Formatter<'_>, types: &[ValType]| {
            for (i, t) in types.iter().enumerate() {
                write!(f, "{}{t}", if i > 0 { " " } else { "" })?;
            }
            Ok(())
        };
        f.write_str("(")?;
        list(f, &self.params)?;
        f.write_str(") -> (")?;
        list(f, &self.results)?;
        f.write_str(")")
    }
}

/// The structure of a defined type.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)]
pub enum Composite {
    Func(FuncType),
    Struct(Vec<FieldType>),
    Array(FieldType),
}

/// One defined type.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct SubType {
    /// Whether it can have no subtypes.
    pub is_final: bool,
    /// The type that it extends.
    pub supertype: Option<TypeIndex>,
    /// Its structure.
    pub composite: Composite,
}

impl SubType {
    pub(crate) fn kind(&self) -> Kind {
        match self.composite {
            Composite::Func(_) => Kind::Func,
            Composite::Struct(_) => Kind::Struct,
            Composite::Array(_) => Kind::Array,
        }
    }
}

/// Where a struct's fields lie, or an array's elements.
#[derive(Clone, Debug, Default)]
pub(crate) struct Layout {
    /// Byte offset of each field.
    pub offsets: Vec<u32>,
    /// Bytes of a struct with its header, a multiple of 8; of an array without elements, where the first one begins.
    pub size: u32,
}

/// Bytes of an object's header.
pub(crate) const HEADER: u32 = 8;

/// Offset of the first element, by the element's size.
pub(crate) fn array_base(element_bytes: u32) -> u32 {
    if element_bytes >= 8 { 16 } else { 12 }
}

fn layout_of(composite: &Composite) -> Layout {
    match composite {
        Composite::Struct(fields) => layout_of_fields(fields),
        Composite::Array(e) => Layout {
            offsets: vec![],
            size: array_base(e.storage.bytes()),
        },
        Composite::Func(_) => Layout::default(),
    }
}

fn layout_of_fields(fields: &[FieldType]) -> Layout {
    // In the order of declaration, so that a subtype's layout extends its supertype's.
    let mut at = HEADER;
    let mut offsets = Vec::with_capacity(fields.len());
    for field in fields {
        let bytes = field.storage.bytes();
        // Objects are aligned to 8 bytes, and so are vectors.
        at = at.next_multiple_of(bytes.min(8));
        offsets.push(at);
        at += bytes;
    }
    Layout {
        offsets,
        size: at.next_multiple_of(8),
    }
}

/// A canonical type with derived data.
#[derive(Clone, Debug)]
pub(crate) struct Canonical {
    pub ty: SubType,
    pub layout: Layout,
    /// The chain of supertypes from the root to this type itself.
    pub display: Vec<TypeIndex>,
    /// Modules cannot access the contents of its objects: the host's, and exceptions.
    pub opaque: bool,
    /// Another type extends it.
    pub extended: bool,
}

/// The type of objects that stand for values of the host; the first of every engine.
pub(crate) const HOST_TYPE: TypeIndex = 0;

/// The type of JavaScript's strings: arrays of 16-bit units whose contents no module can access. The second of every
/// engine.
pub(crate) const STRING_TYPE: TypeIndex = 1;

/// In a recursion group that is looked up, references to members of the group itself carry this bit and the member's
/// position.
pub(crate) const IN_GROUP: u32 = 1 << 31;

/// All types of an engine.
#[derive(Debug)]
pub(crate) struct Registry {
    types: Vec<Canonical>,
    groups: HashMap<Vec<SubType>, TypeIndex>,
    exceptions: HashMap<TypeIndex, TypeIndex>,
}

impl Default for Registry {
    fn default() -> Self {
        let mut registry = Registry {
            types: vec![],
            groups: HashMap::new(),
            exceptions: HashMap::new(),
        };
        let handle = FieldType {
            storage: Storage::Val(ValType::I64),
            mutable: false,
        };
        let host = registry.private(Composite::Struct(vec![handle]));
        debug_assert_eq!(host, HOST_TYPE);
        let string = registry.private(Composite::Array(FieldType {
            storage: Storage::I16,
            mutable: false,
        }));
        debug_assert_eq!(string, STRING_TYPE);
        registry
    }
}

impl Registry {
    pub fn len(&self) -> usize {
        self.types.len()
    }

    pub fn get(&self, index: TypeIndex) -> &Canonical {
        &self.types[index as usize]
    }

    pub fn func(&self, index: TypeIndex) -> &FuncType {
        match &self.get(index).ty.composite {
            Composite::Func(f) => f,
            _ => panic!("type {index} is no function type"),
        }
    }

    pub fn fields(&self, index: TypeIndex) -> &[FieldType] {
        match &self.get(index).ty.composite {
            Composite::Struct(fields) => fields,
            _ => panic!("type {index} is no struct type"),
        }
    }

    /// The fields, if it is a struct type.
    pub fn fields_of(&self, index: TypeIndex) -> Option<&[FieldType]> {
        match &self.get(index).ty.composite {
            Composite::Struct(fields) => Some(fields),
            _ => None,
        }
    }

    pub fn element(&self, index: TypeIndex) -> FieldType {
        match &self.get(index).ty.composite {
            Composite::Array(e) => *e,
            _ => panic!("type {index} is no array type"),
        }
    }

    /// The index of the first type of a recursion group; adds the group if it is new.
    pub fn intern(&mut self, group: Vec<SubType>) -> TypeIndex {
        if let Some(&base) = self.groups.get(&group) {
            return base;
        }
        let base = self.types.len() as TypeIndex;
        for ty in &group {
            let ty = absolute(ty, base);
            let mut display = match ty.supertype {
                Some(s) => {
                    self.types[s as usize].extended = true;
                    self.get(s).display.clone()
                }
                None => Vec::new(),
            };
            display.push(self.types.len() as TypeIndex);
            self.types.push(Canonical {
                layout: layout_of(&ty.composite),
                ty,
                display,
                opaque: false,
                extended: false,
            });
        }
        self.groups.insert(group, base);
        base
    }

    /// The type of a lone function type: final and without supertype.
    pub fn intern_func(&mut self, ty: FuncType) -> TypeIndex {
        self.intern(vec![SubType {
            is_final: true,
            supertype: None,
            composite: Composite::Func(ty),
        }])
    }

    /// The struct type of exceptions whose tag has the function type `func`: the tag's place in the store, then the
    /// tag's parameters. No module can name it, since it is never equal to a type of a module.
    pub fn exception(&mut self, func: TypeIndex) -> TypeIndex {
        if let Some(&t) = self.exceptions.get(&func) {
            return t;
        }
        let field = |v| FieldType {
            storage: Storage::Val(v),
            mutable: false,
        };
        let mut fields = vec![field(ValType::I32)];
        fields.extend(self.func(func).params.iter().map(|&v| field(v)));
        let index = self.private(Composite::Struct(fields));
        self.exceptions.insert(func, index);
        index
    }

    /// The type that [`Registry::exception`] made; loading a module makes those of its tags.
    pub fn exception_of(&self, func: TypeIndex) -> TypeIndex {
        self.exceptions[&func]
    }

    /// A type that no module can name.
    fn private(&mut self, composite: Composite) -> TypeIndex {
        let index = self.types.len() as TypeIndex;
        self.types.push(Canonical {
            layout: layout_of(&composite),
            ty: SubType {
                is_final: true,
                supertype: None,
                composite,
            },
            display: vec![index],
            opaque: true,
            extended: false,
        });
        index
    }

    pub fn is_subtype_index(&self, sub: TypeIndex, sup: TypeIndex) -> bool {
        sub == sup || self.get(sub).display.contains(&sup)
    }

    pub fn is_heap_subtype(&self, sub: HeapType, sup: HeapType) -> bool {
        use HeapType::*;
        match (sub, sup) {
            (a, b) if a == b => true,
            (None, b) => b.hierarchy() == Hierarchy::Any,
            (NoFunc, b) => b.hierarchy() == Hierarchy::Func,
            (NoExtern, b) => b.hierarchy() == Hierarchy::Extern,
            (NoExn, b) => b.hierarchy() == Hierarchy::Exn,
            (Eq | I31 | Struct | Array, Any) | (I31 | Struct | Array, Eq) => true,
            (Concrete(a, _), Concrete(b, _)) => self.is_subtype_index(a, b),
            (Concrete(_, Kind::Func), Func) => true,
            (Concrete(_, Kind::Struct), Struct | Eq | Any) => true,
            (Concrete(_, Kind::Array), Array | Eq | Any) => true,
            _ => false,
        }
    }

    pub fn is_ref_subtype(&self, sub: RefType, sup: RefType) -> bool {
        (sup.nullable || !sub.nullable) && self.is_heap_subtype(sub.heap, sup.heap)
    }

    pub fn is_subtype(&self, sub: ValType, sup: ValType) -> bool {
        match (sub, sup) {
            (ValType::Ref(a), ValType::Ref(b)) => self.is_ref_subtype(a, b),
            (a, b) => a == b,
        }
    }
}

/// A member of a group with references into the group made absolute.
fn absolute(ty: &SubType, base: TypeIndex) -> SubType {
    let index = |i: TypeIndex| {
        if i & IN_GROUP != 0 {
            base + (i & !IN_GROUP)
        } else {
            i
        }
    };
    let val = |v: ValType| match v {
        ValType::Ref(RefType {
            nullable,
            heap: HeapType::Concrete(i, kind),
        }) => ValType::Ref(RefType {
            nullable,
            heap: HeapType::Concrete(index(i), kind),
        }),
        v => v,
    };
    let field = |f: &FieldType| FieldType {
        storage: match f.storage {
            Storage::Val(v) => Storage::Val(val(v)),
            s => s,
        },
        mutable: f.mutable,
    };
    SubType {
        is_final: ty.is_final,
        supertype: ty.supertype.map(index),
        composite: match &ty.composite {
            Composite::Func(f) => Composite::Func(FuncType::new(
                f.params.iter().map(|&v| val(v)),
                f.results.iter().map(|&v| val(v)),
            )),
            Composite::Struct(fields) => Composite::Struct(fields.iter().map(field).collect()),
            Composite::Array(e) => Composite::Array(field(e)),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(next: u32) -> SubType {
        let next = RefType {
            nullable: true,
            heap: HeapType::Concrete(next, Kind::Struct),
        };
        SubType {
            is_final: true,
            supertype: None,
            composite: Composite::Struct(vec![
                FieldType {
                    storage: Storage::I8,
                    mutable: true,
                },
                FieldType {
                    storage: Storage::Val(ValType::F64),
                    mutable: true,
                },
                FieldType {
                    storage: Storage::Val(ValType::Ref(next)),
                    mutable: true,
                },
            ]),
        }
    }

    #[test]
    fn equal_groups_share_an_index_and_refer_to_themselves() {
        let mut r = Registry::default();
        let a = r.intern(vec![list(IN_GROUP)]);
        let b = r.intern(vec![list(IN_GROUP)]);
        let c = r.intern(vec![list(a)]);
        assert_eq!(a, b);
        assert_ne!(a, c, "a list of lists of another type is another type");
        assert_eq!(r.get(c).layout.offsets, [8, 16, 24]);
        assert_eq!(r.get(c).layout.size, 32);
        let Storage::Val(ValType::Ref(next)) = r.fields(a)[2].storage else {
            panic!()
        };
        assert_eq!(next.heap, HeapType::Concrete(a, Kind::Struct));
    }

    #[test]
    fn subtypes_follow_the_declared_chain_and_the_hierarchies() {
        let mut r = Registry::default();
        let open = |supertype| SubType {
            is_final: false,
            supertype,
            composite: Composite::Struct(vec![]),
        };
        let a = r.intern(vec![open(None)]);
        let b = r.intern(vec![open(Some(a))]);
        let s = |i| HeapType::Concrete(i, Kind::Struct);
        assert!(r.is_heap_subtype(s(b), s(a)) && !r.is_heap_subtype(s(a), s(b)));
        assert!(r.is_heap_subtype(s(b), HeapType::Eq) && r.is_heap_subtype(HeapType::None, s(b)));
        assert!(
            !r.is_heap_subtype(HeapType::NoFunc, s(b)) && !r.is_heap_subtype(s(a), HeapType::Array)
        );
    }
}
