//! A module: validated, its sections decoded, its code not yet compiled.

mod calls;
mod convert;
mod parse;
mod persistent;
mod sites;

pub(crate) use convert::Convert;
pub(crate) use persistent::topmost;
pub(crate) use sites::Site;

use crate::engine::Engine;
use crate::error::{Result, printable};
use crate::types::{Kind, RefType, TypeIndex, ValType};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, OnceLock};
use varve_sites::{Profile, ProfileError};

/// A validated module. Clones are the same module.
#[derive(Clone, Debug)]
pub struct Module {
    pub(crate) inner: Arc<ModuleInner>,
}

/// Bytes of an initialiser expression in the module.
pub(crate) type Expr = Range<usize>;

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct TableType {
    pub element: RefType,
    pub min: u64,
    pub max: Option<u64>,
    /// Whether indices have 64 bits.
    pub wide: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct MemoryType {
    pub min_pages: u64,
    pub max_pages: Option<u64>,
    /// Whether addresses have 64 bits.
    pub wide: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct GlobalType {
    pub ty: ValType,
    pub mutable: bool,
}

/// Type of an import or export.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum ExternType {
    Func(TypeIndex),
    Table(TableType),
    Memory(MemoryType),
    Global(GlobalType),
    /// The function type of the tag.
    Tag(TypeIndex),
}

impl ExternType {
    pub fn kind(&self) -> &'static str {
        match self {
            ExternType::Func(_) => "function",
            ExternType::Table(_) => "table",
            ExternType::Memory(_) => "memory",
            ExternType::Global(_) => "global",
            ExternType::Tag(_) => "tag",
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Import {
    pub module: String,
    pub name: String,
    pub ty: ExternType,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ExportKind {
    Func,
    Table,
    Memory,
    Global,
    Tag,
}

#[derive(Clone, Debug)]
pub(crate) struct Export {
    pub name: String,
    pub kind: ExportKind,
    pub index: u32,
}

#[derive(Clone, Debug)]
pub(crate) enum Items {
    Funcs(Vec<u32>),
    Exprs(Vec<Expr>),
}

impl Items {
    pub fn len(&self) -> usize {
        match self {
            Items::Funcs(f) => f.len(),
            Items::Exprs(e) => e.len(),
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) enum Mode {
    Passive,
    /// Of the table or memory with this index, at this offset.
    Active(u32, Expr),
    Declared,
}

#[derive(Clone, Debug)]
pub(crate) struct Elements {
    pub mode: Mode,
    pub items: Items,
    /// Whether the collector must see the items.
    pub managed: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Data {
    pub mode: Mode,
    pub bytes: Range<usize>,
}

#[derive(Debug)]
pub(crate) struct ModuleInner {
    pub engine: Engine,
    pub bytes: Vec<u8>,
    /// Engine's index of each type of the module.
    pub types: Vec<TypeIndex>,
    /// The kind of each of them.
    pub kinds: Vec<Kind>,
    pub imports: Vec<Import>,
    pub imported_funcs: u32,
    /// Types of all functions, imported ones first; so for the other kinds.
    pub funcs: Vec<TypeIndex>,
    pub tables: Vec<(TableType, Option<Expr>)>,
    pub memories: Vec<MemoryType>,
    pub globals: Vec<(GlobalType, Option<Expr>)>,
    pub tags: Vec<TypeIndex>,
    /// Code of each defined function.
    pub bodies: Vec<Range<usize>>,
    pub exports: Vec<Export>,
    pub export_index: HashMap<String, usize>,
    pub elements: Vec<Elements>,
    pub data: Vec<Data>,
    pub start: Option<u32>,
    pub names: HashMap<u32, String>,
    /// Names of types by their index in the module, for messages and site profiles.
    pub type_names: HashMap<u32, String>,
    /// Names of globals, and of fields by type and field in the module: how durable regions know them again.
    pub global_names: HashMap<u32, String>,
    pub field_names: HashMap<(u32, u32), String>,
    /// Fields that are stored into after their objects' birth: see `persistent.rs`.
    stored_fields: OnceLock<std::collections::HashSet<(TypeIndex, u32)>>,
    /// The names of functions in site profiles.
    site_functions: OnceLock<HashMap<u32, String>>,
    pub custom: Vec<(String, Range<usize>)>,
}

impl Module {
    /// Decodes and validates a module in binary form.
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid) with function and offset; [`Error::Unsupported`](crate::Error::Unsupported)
    /// with the name of the proposal that the module needs.
    pub fn new(engine: &Engine, bytes: &[u8]) -> Result<Module> {
        Ok(Module {
            inner: Arc::new(parse::parse(engine, bytes)?),
        })
    }

    /// Names and kinds of the module's imports, in order.
    pub fn imports(&self) -> impl Iterator<Item = (&str, &str, &'static str)> {
        self.inner
            .imports
            .iter()
            .map(|i| (i.module.as_str(), i.name.as_str(), i.ty.kind()))
    }

    /// Names of the module's exports, in order.
    pub fn exports(&self) -> impl Iterator<Item = &str> {
        self.inner.exports.iter().map(|e| e.name.as_str())
    }

    /// The bytes of the custom section of this name.
    pub fn custom_section(&self, name: &str) -> Option<&[u8]> {
        let (_, range) = self.inner.custom.iter().find(|(n, _)| n == name)?;
        Some(&self.inner.bytes[range.clone()])
    }

    /// Whether a profile may be of this module, which is called `program`; `file` is where the profile is from.
    ///
    /// # Errors
    /// If it is of another program.
    pub fn check_profile(
        &self,
        profile: &Profile,
        file: &str,
        program: &str,
    ) -> std::result::Result<(), ProfileError> {
        profile.check(file, program, |name| self.inner.has_site_function(name))
    }

    /// The engine that it was loaded for.
    pub fn engine(&self) -> &Engine {
        &self.inner.engine
    }
}

impl ModuleInner {
    /// Where the bytecode of a function begins, from the beginning of the first one's, in bytes; and its size.
    pub fn bytecode(&self, index: u32) -> (u64, u64) {
        let body = &self.bodies[(index - self.imported_funcs) as usize];
        (
            (body.start - self.bodies[0].start) as u64,
            body.len() as u64,
        )
    }

    /// Bytes of the bytecode of all functions.
    pub fn code_size(&self) -> u64 {
        match (self.bodies.first(), self.bodies.last()) {
            (Some(first), Some(last)) => (last.end - first.start) as u64,
            _ => 0,
        }
    }

    /// The name of a type by the engine's index.
    pub fn name_of_type(&self, ty: TypeIndex) -> Option<&String> {
        let indices = (0..self.types.len()).filter(|&i| self.types[i] == ty);
        indices
            .filter_map(|i| self.type_names.get(&(i as u32)))
            .next_back()
    }

    /// How messages call a function.
    pub fn func_name(&self, index: u32) -> String {
        func_name(&self.names, &self.exports, index)
    }
}

fn func_name(names: &HashMap<u32, String>, exports: &[Export], index: u32) -> String {
    if let Some(name) = names.get(&index) {
        return format!("`{}`", printable(name));
    }
    match exports
        .iter()
        .find(|e| e.kind == ExportKind::Func && e.index == index)
    {
        Some(e) => format!("`{}`", printable(&e.name)),
        None => format!("func[{index}]"),
    }
}
