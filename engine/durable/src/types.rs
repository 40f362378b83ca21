//! The types of a program's objects, by name and layout: the part of a region's tables that gives the bytes their meaning.

use serde::{Deserialize, Serialize};
use varve_heap::ObjectAlign;
use varve_heap::layout::*;

/// The storage of a field or an element.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum Storage {
    I8,
    I16,
    /// Sixteen bits without a sign, where the program says so: characters.
    U16,
    I32,
    I64,
    F32,
    F64,
    /// A reference to an object of some type.
    Ref(Target),
    /// A reference to a function: means nothing outside of the program's run.
    Func,
}

impl Storage {
    /// Bytes that it takes.
    pub fn bytes(&self) -> u32 {
        match self {
            Storage::I8 => 1,
            Storage::I16 | Storage::U16 => 2,
            Storage::I64 | Storage::F64 => 8,
            _ => 4,
        }
    }
}

/// The types that a reference may refer to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    /// Whether it may be null.
    pub nullable: bool,
    /// Objects of which type.
    pub to: Heap,
}

/// Sets of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum Heap {
    /// Everything, integers too.
    Any,
    I31,
    Struct,
    Array,
    /// Nothing but null.
    None,
    /// A type, by its number, and those that extend it.
    Type(u32),
    /// Values of the host and exceptions.
    Foreign,
}

/// A field of a struct.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Field {
    /// Its name; empty if the program does not say.
    pub name: String,
    /// Bytes from the object's start.
    pub offset: u32,
    /// The kind of its values.
    pub storage: Storage,
}

/// The contents of objects of a type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Fields.
    Struct {
        /// Bytes of an object with its header.
        size: u32,
        /// In the order of their offsets.
        fields: Vec<Field>,
    },
    /// Elements.
    Array(Storage),
    /// Nothing that could survive: functions, values of the host, exceptions.
    Opaque,
}

/// A type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Type {
    /// Its name; empty if the program does not say.
    pub name: String,
    /// The type that it extends, by number.
    #[serde(rename = "super")]
    pub supertype: Option<u32>,
    /// The contents of its objects.
    pub kind: Kind,
    /// Why its objects must not become durable, if they must not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// Offset of the reference to what names its objects, if the program makes each of them anew in each run and means the same object:
    /// constants of an enumeration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub named_by: Option<u32>,
}

/// An object that the program makes anew in each run and that durable objects refer to: class data. It is at the same place in each run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Constant {
    /// Its name in the program.
    pub name: String,
    /// Bytes from the beginning of constants.
    pub offset: u32,
    /// Its type, by number.
    #[serde(rename = "type")]
    pub ty: u32,
}

/// The contents of a region's tables.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Tables {
    /// All types, by the numbers that objects' headers have.
    pub types: Vec<Type>,
    /// All constants.
    pub constants: Vec<Constant>,
    /// Whether fields have the names that they have in the program's source, all of them. Otherwise a toolchain has named them, which may
    /// have numbered equal ones, and may have left out those that the program does not use.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub from_source: bool,
    /// Renames that are done, where the old name now means something else. The entry keeps them from being applied again: a region that has it was
    /// rewritten by it, or made with it. None: a region of a version that kept no such record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applied: Option<Vec<Renamed>>,
    /// Renames that the program declares. Not in files: it is for the opening that finds the old names.
    #[serde(skip)]
    pub renamed: Vec<Renamed>,
}

/// A class or a field that had another name in an older version of the program.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Renamed {
    /// The class, by its name now.
    pub class: String,
    /// The field, by its name now; none: it is the class that had the other name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// The old name.
    pub was: String,
}

/// Tables are equal if the same file would do for them: whatever was renamed to have them so.
impl PartialEq for Tables {
    fn eq(&self, other: &Tables) -> bool {
        self.types == other.types
            && self.constants == other.constants
            && self.from_source == other.from_source
            && self.applied() == other.applied()
    }
}

impl Eq for Tables {}

/// The part of a type that traversals and copies need.
#[derive(Clone, Debug)]
pub(crate) struct Info {
    /// The alignment of objects.
    pub align: ObjectAlign,
    /// Struct: bytes, rounded. Array: offset of the elements.
    pub size: u32,
    /// Bytes of an element; 0 for structs.
    pub element: u32,
    /// Struct: offsets and targets of its references. Array: one entry if elements are references.
    pub refs: Vec<(u32, Target)>,
    /// Why its objects cannot be durable.
    pub refused: Option<String>,
    /// Whether its objects are the same in each run, by their names.
    pub named: bool,
    /// Struct: offsets of references that are null in the region, whatever they were.
    pub forgets: Vec<u32>,
}

impl Tables {
    /// The renames that the region's record lists as done.
    pub(crate) fn applied(&self) -> &[Renamed] {
        self.applied.as_deref().unwrap_or_default()
    }

    /// The same tables with a record of what they rename to a name, or from a name, that something else has in this program.
    ///
    /// Two fields that swap their names are the case: the region has both names before and afterwards, so that only this record says whether
    /// it has been done.
    pub fn recorded(&self) -> Tables {
        let is_taken = |r: &&Renamed| {
            let others = || self.renamed.iter().filter(|o| o.class == r.class);
            match &r.field {
                None => {
                    self.types.iter().any(|t| t.name == r.was)
                        || self
                            .renamed
                            .iter()
                            .any(|o| o.field.is_none() && o.class == r.was)
                }
                Some(_) => {
                    let class = self.types.iter().find(|t| t.name == r.class);
                    let fields = match class.map(|t| &t.kind) {
                        Some(Kind::Struct { fields, .. }) => &fields[..],
                        _ => &[],
                    };
                    fields.iter().any(|f| f.name == r.was)
                        || others().any(|o| o.field.as_ref() == Some(&r.was))
                }
            }
        };
        let mut applied: Vec<Renamed> = self.renamed.iter().filter(is_taken).cloned().collect();
        applied.sort();
        applied.dedup();
        Tables {
            applied: Some(applied),
            ..self.clone()
        }
    }

    /// The enumeration that objects of a type are constants of: the type itself, or the one of which it is a constant's own.
    pub fn enumeration_of(&self, ty: u32) -> Option<u32> {
        let named = |ty: u32| self.types.get(ty as usize)?.named_by;
        named(ty)?;
        let (mut at, mut below) = (ty, None);
        // Supertypes have lower numbers, so that this ends whatever a file says.
        while let Some(next) = self.types[at as usize].supertype
            && next < at
            && named(next).is_some()
        {
            below = Some(at);
            at = next;
        }
        below
    }

    /// A type's name, for messages.
    pub fn name(&self, ty: u32) -> String {
        match self.types.get(ty as usize) {
            Some(t) if !t.name.is_empty() => t.name.clone(),
            Some(_) => format!("type {ty}"),
            None => format!("no type ({ty})"),
        }
    }

    /// "type" with a type's name, or with its number where it has none, for messages.
    pub fn described(&self, ty: u32) -> String {
        match self.types.get(ty as usize) {
            Some(t) if !t.name.is_empty() => format!("type {}", t.name),
            _ => self.name(ty),
        }
    }

    /// Whether a type is another one or extends it.
    pub fn extends(&self, mut ty: u32, other: u32) -> bool {
        // Supertypes have lower numbers, so that this ends whatever a file says.
        loop {
            if ty == other {
                return true;
            }
            match self.types.get(ty as usize).and_then(|t| t.supertype) {
                Some(next) if next < ty => ty = next,
                _ => return false,
            }
        }
    }

    /// Whether an object of a type may be where a reference to `to` is.
    pub fn fits(&self, ty: u32, to: Heap) -> bool {
        let kind = self.types.get(ty as usize).map(|t| &t.kind);
        match to {
            Heap::Any => true,
            Heap::Struct => matches!(kind, Some(Kind::Struct { .. })),
            Heap::Array => matches!(kind, Some(Kind::Array(_))),
            Heap::Type(other) => self.extends(ty, other),
            // A program may hand any of its objects to the host and have it back.
            Heap::Foreign => !matches!(kind, Some(Kind::Opaque) | None),
            Heap::I31 | Heap::None => false,
        }
    }

    pub(crate) fn infos(&self, align: ObjectAlign) -> Vec<Info> {
        self.types.iter().map(|t| self.info(t, align)).collect()
    }

    fn info(&self, t: &Type, align: ObjectAlign) -> Info {
        let mut refused = t.refused.clone();
        let mut refuse = |why: &str| {
            refused.get_or_insert_with(|| why.to_string());
        };
        let mut refs = Vec::new();
        let (size, element) = match &t.kind {
            Kind::Opaque => {
                refuse("it is a value of the host, which no other run would know");
                (OBJECT_ALIGN as u32, 0)
            }
            Kind::Array(storage) => {
                match storage {
                    Storage::Func => {
                        refuse("it has references to functions, which no other run would know")
                    }
                    &Storage::Ref(target) => refs.push((0, target)),
                    _ => {}
                }
                (array_base(storage.bytes()), storage.bytes())
            }
            Kind::Struct { size, fields } => {
                for field in fields {
                    match &field.storage {
                        Storage::Func => {
                            refuse("it has references to functions, which no other run would know")
                        }
                        &Storage::Ref(target) => refs.push((field.offset, target)),
                        _ => {}
                    }
                }
                (align.object_size(u64::from(*size)) as u32, 0)
            }
        };
        Info {
            align,
            size,
            element,
            refs,
            refused,
            named: t.named_by.is_some(),
            forgets: Vec::new(),
        }
    }

    /// The first rule that the tables break, if any: readers of the tables may rely on those rules.
    pub fn broken(&self) -> Option<String> {
        for (number, t) in self.types.iter().enumerate() {
            let name = || self.name(number as u32);
            if t.supertype.is_some_and(|s| s as usize >= number) {
                return Some(format!("{} extends a later type", name()));
            }
            if let Kind::Struct { size, fields } = &t.kind {
                if !(HEADER_SIZE..=varve_heap::MAX_STRUCT).contains(size) {
                    return Some(format!("{} has {size} bytes", name()));
                }
                let mut free = STRUCT_BASE;
                for f in fields {
                    let bytes = f.storage.bytes();
                    let end = f.offset.checked_add(bytes);
                    if f.offset < free
                        || !f.offset.is_multiple_of(bytes)
                        || end.is_none_or(|e| e > *size)
                    {
                        return Some(format!("field {} of {} is misplaced", f.name, name()));
                    }
                    free = f.offset + bytes;
                }
            }
        }
        let mut free = 0u64;
        for c in &self.constants {
            let in_order =
                u64::from(c.offset) >= free && c.offset.is_multiple_of(OBJECT_ALIGN as u32);
            if !in_order || c.ty as usize >= self.types.len() {
                return Some(format!("constant {} is misplaced", c.name));
            }
            free = u64::from(c.offset) + OBJECT_ALIGN;
        }
        None
    }
}

/// In what two programs' tables differ first.
pub fn difference(file: &Tables, program: &Tables) -> Option<String> {
    if file == program {
        return None;
    }
    for (i, (a, b)) in file.types.iter().zip(&program.types).enumerate() {
        if a != b {
            let (file, program) = (file.name(i as u32), program.name(i as u32));
            return Some(match file == program {
                true => format!("type {file} has other fields there"),
                false => format!("type {file} is where the program has {program}"),
            });
        }
    }
    if file.types.len() != program.types.len() {
        return Some(format!(
            "it has {} types, the program {}",
            file.types.len(),
            program.types.len()
        ));
    }
    let differ = file
        .constants
        .iter()
        .zip(&program.constants)
        .find(|(a, b)| a != b);
    Some(match differ {
        Some((a, b)) => format!("constant {} is where the program has {}", a.name, b.name),
        None if file.applied() != program.applied() => {
            "it records other names that were changed".into()
        }
        None if file.constants.len() == program.constants.len() => {
            "its fields are not named as in the program's source".into()
        }
        None => format!(
            "it has {} constants, the program {}",
            file.constants.len(),
            program.constants.len()
        ),
    })
}
