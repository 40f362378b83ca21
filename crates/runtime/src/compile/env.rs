//! What the translator knows about the instance whose function it compiles.

use super::feedback::FeedbackTable;
use super::resume::Points;
use crate::helpers::Helper;
use crate::module::ModuleInner;
use crate::store::heap::Heap;
use crate::store::instance::InstanceData;
use crate::store::linear::{LinearMemory, TableData};
use crate::store::observe::Recording;
use crate::store::region::{FuncRecord, Place, Region};
use crate::store::{FuncData, FuncKind};
use crate::types::{FuncType, Registry, ValType};
use cranelift_codegen::ir::{self, types};
use cranelift_codegen::isa::CallConv;
use std::collections::HashMap;
use varve_heap::sites::Key;

/// What translation reads of the store, and the few lists that it adds to.
pub(crate) struct Env<'a> {
    pub module: &'a ModuleInner,
    pub instance: &'a InstanceData,
    pub instance_id: u32,
    pub types: &'a Registry,
    pub funcs: &'a [FuncData],
    pub tables: &'a [TableData],
    pub memories: &'a [LinearMemory],
    pub sites: &'a mut Sites,
    pub region: &'a mut Region,
    pub feedback: &'a mut FeedbackTable,
    pub points: &'a mut Points,
    /// Where what compiled code accesses is recorded, if it is.
    pub recording: Option<&'a Recording>,
    /// Asked for the temperature of allocation sites.
    pub heap: &'a Heap,
}

impl<'a> Env<'a> {
    /// The body of a function of the module.
    pub fn body(&self, index: u32) -> wasmparser::FunctionBody<'a> {
        let module: &'a ModuleInner = self.module;
        let range = module.bodies[(index - module.imported_funcs) as usize].clone();
        let reader =
            wasmparser::BinaryReader::new(&module.bytes[range.clone()], range.start as u64);
        wasmparser::FunctionBody::new(reader)
    }

    /// The type of a function of the module.
    pub fn func_type(&self, index: u32) -> FuncType {
        self.types.func(self.module.funcs[index as usize]).clone()
    }

    /// What an allocation site is called, if the heap's plan may want to know: the function's name, the type's, and which one
    /// it is of those with both.
    pub fn site_key(&self, func: u32, offset: u32) -> Option<Key> {
        if !self.heap.asks_about_sites() {
            return None;
        }
        let FuncKind::Wasm { index, .. } = self.funcs[func as usize].kind else {
            return None;
        };
        let name = |ty: u32| {
            let names = &self.module.type_names;
            let ty = self.module.types[ty as usize];
            names.get(&ty).map_or("", String::as_str)
        };
        let mut reader = self.body(index).get_operators_reader().ok()?;
        let mut before: HashMap<&str, u32> = HashMap::new();
        while !reader.eof() {
            let at = reader.original_position() as u32;
            let Some(ty) = allocated(&reader.read().ok()?) else {
                continue;
            };
            let ty = name(ty);
            let nth = before.entry(ty).or_default();
            if at == offset {
                let function = self.module.func_name(index);
                return Some(Key {
                    function,
                    ty: ty.into(),
                    nth: *nth,
                });
            }
            *nth += 1;
        }
        None
    }

    /// The function whose record is at a place: its number in the store.
    pub fn func_at(&self, place: Place) -> u32 {
        // SAFETY: places of functions are of records.
        unsafe { (*self.region.address::<FuncRecord>(place)).id }
    }

    /// The value of an immutable global.
    pub fn constant(&self, place: Place) -> u64 {
        // SAFETY: places of globals hold 8 bytes.
        unsafe { self.region.address::<u64>(place).read() }
    }
}

/// The type, by its index in the module, of the object that an operator allocates.
fn allocated(op: &wasmparser::Operator<'_>) -> Option<u32> {
    use wasmparser::Operator::*;
    match *op {
        StructNew { struct_type_index } | StructNewDefault { struct_type_index } => {
            Some(struct_type_index)
        }
        ArrayNew { array_type_index }
        | ArrayNewDefault { array_type_index }
        | ArrayNewFixed {
            array_type_index, ..
        }
        | ArrayNewData {
            array_type_index, ..
        }
        | ArrayNewElem {
            array_type_index, ..
        } => Some(array_type_index),
        _ => None,
    }
}

/// Allocation sites of a store: numbers for (function, offset).
#[derive(Default)]
pub(crate) struct Sites {
    numbers: HashMap<(u32, u32), u32>,
    places: Vec<(u32, u32)>,
    /// What objects that are born there begin with in their temperature bytes.
    temperatures: Vec<u8>,
    /// Whether the programmer marked one.
    marked: bool,
}

impl Sites {
    /// The number of a site; 0, which means unknown, once the header has no bits for more.
    pub fn number(&mut self, func: u32, offset: u32, temperature: impl FnOnce() -> u8) -> u32 {
        if let Some(&n) = self.numbers.get(&(func, offset)) {
            return n;
        }
        let n = self.places.len() as u32 + 1;
        if n >= 1 << varve_heap::layout::SITE_BITS {
            return 0;
        }
        self.places.push((func, offset));
        self.temperatures.push(temperature());
        self.numbers.insert((func, offset), n);
        n
    }

    /// The temperature of objects that are born at a site.
    pub fn temperature(&self, site: u32) -> u8 {
        let place = (site as usize).checked_sub(1);
        place.map_or(0, |place| self.temperatures[place])
    }

    /// The programmer marked a site: from now on its objects begin with this besides.
    pub fn mark(&mut self, site: u32, temperature: u8) {
        self.marked = true;
        if let Some(place) = (site as usize).checked_sub(1) {
            self.temperatures[place] |= temperature;
        }
    }

    /// Whether any site was marked.
    pub fn any_marked(&self) -> bool {
        self.marked
    }

    /// Function number and byte offset of a site.
    pub fn place(&self, site: u32) -> Option<(u32, u32)> {
        self.places.get((site as usize).checked_sub(1)?).copied()
    }
}

pub(crate) fn clif_type(ty: ValType) -> ir::Type {
    match ty {
        ValType::I32 | ValType::Ref(_) => types::I32,
        ValType::I64 => types::I64,
        ValType::F32 => types::F32,
        ValType::F64 => types::F64,
    }
}

/// Signature of a WebAssembly function.
pub(crate) fn signature(ty: &crate::types::FuncType) -> ir::Signature {
    let mut sig = ir::Signature::new(CallConv::Tail);
    sig.params
        .extend(ty.params.iter().map(|&t| ir::AbiParam::new(clif_type(t))));
    sig.returns
        .extend(ty.results.iter().map(|&t| ir::AbiParam::new(clif_type(t))));
    sig
}

/// Signature of a helper; the first parameter is the store's `Vm`.
pub(crate) fn helper_signature(helper: Helper) -> ir::Signature {
    let mut sig = ir::Signature::new(CallConv::SystemV);
    sig.params.push(ir::AbiParam::new(types::I64));
    let (params, result) = helper.signature();
    sig.params
        .extend(params.iter().map(|&t| ir::AbiParam::new(t)));
    sig.returns.extend(result.map(ir::AbiParam::new));
    sig
}
