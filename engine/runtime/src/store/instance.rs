//! Instances: a module with its imports, and the work of making one.

use super::Vm;
use super::region::Place;
use super::vm::GlobalData;
use crate::error::{Error, Result, TrapKind};
use crate::extern_::{Extern, ExternId};
use crate::module::{ExportKind, ExternType, Import, Items, Mode, Module, ModuleInner};
use crate::types::Registry;
use std::sync::Arc;

/// An instance: for each index of its module, the thing in the store.
pub(crate) struct InstanceData {
    pub module: Arc<ModuleInner>,
    /// Places of the functions' records.
    pub funcs: Vec<Place>,
    pub tables: Vec<u32>,
    pub memories: Vec<u32>,
    pub globals: Vec<Place>,
    /// Numbers of globals in the store, for exports.
    pub global_ids: Vec<u32>,
    pub tags: Vec<u32>,
    /// Element segments, evaluated; empty once dropped.
    pub elements: Vec<Vec<u32>>,
    pub managed_elements: Vec<bool>,
    pub dropped_data: Vec<bool>,
}

impl Vm {
    /// Whether the given item can be imported as `expected`.
    fn matches(&self, types: &Registry, id: &ExternId, expected: &ExternType) -> bool {
        let limits = |min: u64, max: Option<u64>, want_min: u64, want_max: Option<u64>| {
            min >= want_min && want_max.is_none_or(|w| max.is_some_and(|m| m <= w))
        };
        match (id, expected) {
            (ExternId::Func(f), ExternType::Func(t)) => {
                types.is_subtype_index(self.funcs[*f as usize].ty, *t)
            }
            (ExternId::Table(t), ExternType::Table(e)) => {
                let t = &self.tables[*t as usize];
                t.ty.element == e.element
                    && t.ty.wide == e.wide
                    && limits(t.elements().len() as u64, t.ty.max, e.min, e.max)
            }
            (ExternId::Memory(m), ExternType::Memory(e)) => {
                let m = &self.memories[*m as usize];
                m.ty.wide == e.wide && limits(m.pages(), m.ty.max_pages, e.min_pages, e.max_pages)
            }
            (ExternId::Global(g), ExternType::Global(e)) => {
                let g = &self.globals[*g as usize].ty;
                g.mutable == e.mutable
                    && if e.mutable {
                        g.ty == e.ty
                    } else {
                        types.is_subtype(g.ty, e.ty)
                    }
            }
            (ExternId::Tag(t), ExternType::Tag(e)) => self.tags[*t as usize] == *e,
            _ => false,
        }
    }

    fn describe(&self, types: &Registry, ty: &ExternType) -> String {
        match ty {
            ExternType::Func(t) => format!("function {}", types.func(*t)),
            ExternType::Table(t) => {
                let element = crate::types::ValType::Ref(t.element);
                format!(
                    "table of {element}{}, {} elements or more, at most {}",
                    if t.wide { " by 64-bit indices" } else { "" },
                    t.min,
                    most(t.max)
                )
            }
            ExternType::Memory(m) => format!(
                "{}memory of {} pages or more, at most {}",
                if m.wide { "64-bit " } else { "" },
                m.min_pages,
                most(m.max_pages)
            ),
            ExternType::Global(g) => format!(
                "{} global of {}",
                if g.mutable { "mutable" } else { "immutable" },
                g.ty
            ),
            ExternType::Tag(t) => format!("tag {}", types.func(*t)),
        }
    }

    fn type_of_extern(&self, id: &ExternId) -> ExternType {
        match *id {
            ExternId::Func(f) => ExternType::Func(self.funcs[f as usize].ty),
            ExternId::Table(t) => {
                let t = &self.tables[t as usize];
                let mut ty = t.ty.clone();
                ty.min = t.elements().len() as u64;
                ExternType::Table(ty)
            }
            ExternId::Memory(m) => {
                let m = &self.memories[m as usize];
                let mut ty = m.ty;
                ty.min_pages = m.pages();
                ExternType::Memory(ty)
            }
            ExternId::Global(g) => ExternType::Global(self.globals[g as usize].ty),
            ExternId::Tag(t) => ExternType::Tag(self.tags[t as usize]),
        }
    }

    fn check_import(&self, import: &Import, given: &Extern) -> Result<()> {
        if given.store != self.id {
            return Err(Error::usage(format!(
                "import `{}` `{}` is of another store",
                import.module, import.name
            )));
        }
        let types = self.engine.types();
        if self.matches(&types, &given.id, &import.ty) {
            return Ok(());
        }
        Err(Error::ImportType {
            module: import.module.clone(),
            name: import.name.clone(),
            expected: self.describe(&types, &import.ty),
            given: self.describe(&types, &self.type_of_extern(&given.id)),
        })
    }

    /// Makes an instance and initialises it; does not run its start function. Its number.
    pub(crate) fn instantiate(&mut self, module: &Module, imports: &[Extern]) -> Result<u32> {
        let m = module.inner.clone();
        if !m.engine.same(&self.engine) {
            return Err(Error::usage(
                "the module was loaded for another engine than the store's",
            ));
        }
        if imports.len() != m.imports.len() {
            return Err(Error::usage(format!(
                "the module has {} imports, {} are given",
                m.imports.len(),
                imports.len()
            )));
        }
        self.learn_types()?;
        let id = self.instances.len() as u32;
        let mut data = InstanceData {
            module: m.clone(),
            funcs: vec![],
            tables: vec![],
            memories: vec![],
            globals: vec![],
            global_ids: vec![],
            tags: vec![],
            elements: vec![],
            managed_elements: vec![],
            dropped_data: vec![false; m.data.len()],
        };
        for (import, given) in m.imports.iter().zip(imports) {
            self.check_import(import, given)?;
            match given.id {
                ExternId::Func(f) => data.funcs.push(self.funcs[f as usize].place),
                ExternId::Table(t) => data.tables.push(t),
                ExternId::Memory(t) => data.memories.push(t),
                ExternId::Tag(t) => data.tags.push(t),
                ExternId::Global(g) => {
                    data.globals.push(self.globals[g as usize].place);
                    data.global_ids.push(g);
                }
            }
        }
        let first = m.imported_funcs;
        data.funcs
            .extend(self.add_functions(id, first, &m.funcs[first as usize..])?);
        for &ty in &m.tags[data.tags.len()..] {
            data.tags.push(self.tags.len() as u32);
            self.tags.push(ty);
        }
        for &ty in &m.memories[data.memories.len()..] {
            data.memories.push(self.new_memory(ty)?);
        }
        if let Some(recording) = &self.recording {
            recording.bind_code(id, m.code_size());
        }
        self.instances.push(data);
        self.initialise(id, &m)?;
        self.begin_durable(id)?;
        Ok(id)
    }

    fn instance(&mut self, id: u32) -> &mut InstanceData {
        &mut self.instances[id as usize]
    }

    fn initialise(&mut self, id: u32, m: &ModuleInner) -> Result<()> {
        for (ty, init) in &m.globals[self.instances[id as usize].globals.len()..] {
            let bits = self.evaluate(
                id,
                m,
                init.as_ref().expect("defined globals have initialisers"),
            )?;
            let place = self.new_global(*ty, bits)?;
            let global = self.globals.len() as u32 - 1;
            self.instance(id).globals.push(place);
            self.instance(id).global_ids.push(global);
        }
        for (ty, init) in &m.tables[self.instances[id as usize].tables.len()..] {
            let value = match init {
                Some(e) => self.evaluate(id, m, e)? as u32,
                None => 0,
            };
            let table = self.new_table(ty.clone(), value)?;
            self.instance(id).tables.push(table);
        }
        for segment in &m.elements {
            // Managed references go into the instance one by one, where a collection finds them.
            self.instance(id).elements.push(Vec::new());
            self.instance(id).managed_elements.push(segment.managed);
            for i in 0..segment.items.len() {
                let v = match &segment.items {
                    Items::Funcs(f) => self.instances[id as usize].funcs[f[i] as usize],
                    Items::Exprs(e) => self.evaluate(id, m, &e[i])? as u32,
                };
                self.instance(id)
                    .elements
                    .last_mut()
                    .expect("just pushed")
                    .push(v);
            }
        }
        for (i, segment) in m.elements.iter().enumerate() {
            match &segment.mode {
                Mode::Active(table, offset) => {
                    let to = self.evaluate(id, m, offset)? as u64;
                    let table = self.instances[id as usize].tables[*table as usize];
                    let len = segment.items.len() as u32;
                    self.table_init(id, i as u32, table, to, 0, len)?;
                    self.instance(id).elements[i].clear();
                }
                Mode::Declared => self.instance(id).elements[i].clear(),
                Mode::Passive => {}
            }
        }
        for (i, segment) in m.data.iter().enumerate() {
            if let Mode::Active(memory, offset) = &segment.mode {
                let to = self.evaluate(id, m, offset)? as u64;
                let memory = self.instances[id as usize].memories[*memory as usize];
                self.memory_init(id, i as u32, memory, to, 0, segment.bytes.len() as u32)?;
                self.instance(id).dropped_data[i] = true;
            }
        }
        Ok(())
    }

    /// A global with its first value.
    pub(crate) fn new_global(
        &mut self,
        ty: crate::module::GlobalType,
        bits: u128,
    ) -> Result<Place> {
        let place = self.region.allocate(8 * ty.ty.words())?;
        self.set_global_bits(place, ty.ty, bits);
        self.globals.push(GlobalData { place, ty });
        Ok(place)
    }

    /// The bytes of a data segment; none once it was dropped.
    pub(crate) fn data(&self, instance: u32, segment: u32) -> &[u8] {
        let i = &self.instances[instance as usize];
        match i.dropped_data[segment as usize] {
            true => &[],
            false => &i.module.bytes[i.module.data[segment as usize].bytes.clone()],
        }
    }

    /// The values of an element segment; none once it was dropped.
    pub(crate) fn elements(&self, instance: u32, segment: u32) -> &[u32] {
        &self.instances[instance as usize].elements[segment as usize]
    }

    pub(crate) fn memory_init(
        &mut self,
        instance: u32,
        segment: u32,
        memory: u32,
        to: u64,
        from: u32,
        len: u32,
    ) -> Result<()> {
        let i = &self.instances[instance as usize];
        let source: &[u8] = match i.dropped_data[segment as usize] {
            true => &[],
            false => &i.module.bytes[i.module.data[segment as usize].bytes.clone()],
        };
        let target = self.memories[memory as usize].bytes_mut();
        copy_checked(source, from, target, to, len, TrapKind::MemoryOutOfBounds)
    }

    pub(crate) fn table_init(
        &mut self,
        instance: u32,
        segment: u32,
        table: u32,
        to: u64,
        from: u32,
        len: u32,
    ) -> Result<()> {
        let source = &self.instances[instance as usize].elements[segment as usize];
        let target = self.tables[table as usize].elements_mut();
        copy_checked(source, from, target, to, len, TrapKind::TableOutOfBounds)
    }

    /// An instance's export of a name.
    pub(crate) fn export(&self, instance: u32, name: &str) -> Option<Extern> {
        let i = &self.instances[instance as usize];
        let export = &i.module.exports[*i.module.export_index.get(name)?];
        let index = export.index as usize;
        let id = match export.kind {
            ExportKind::Func => ExternId::Func(self.func_at(i.funcs[index])),
            ExportKind::Table => ExternId::Table(i.tables[index]),
            ExportKind::Memory => ExternId::Memory(i.memories[index]),
            ExportKind::Global => ExternId::Global(i.global_ids[index]),
            ExportKind::Tag => ExternId::Tag(i.tags[index]),
        };
        Some(Extern { store: self.id, id })
    }
}

fn most(max: Option<u64>) -> String {
    max.map_or("any number".into(), |m| m.to_string())
}

fn copy_checked<T: Copy>(
    source: &[T],
    from: u32,
    target: &mut [T],
    to: u64,
    len: u32,
    trap: TrapKind,
) -> Result<()> {
    let range = |start: u64, limit: usize| {
        let end = start.checked_add(len.into()).ok_or(trap)?;
        (end <= limit as u64)
            .then_some(start as usize..end as usize)
            .ok_or(trap)
    };
    let (from, to) = (range(from.into(), source.len())?, range(to, target.len())?);
    target[to].copy_from_slice(&source[from]);
    Ok(())
}
