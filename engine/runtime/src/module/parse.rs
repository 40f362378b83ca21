//! Decodes and validates a module.

use super::convert::{Convert, kind_of};
use super::*;
use crate::error::{Error, printable};
use wasmparser as wp;
use wasmparser::{Parser, Payload, ValidPayload, Validator, WasmFeatures};

/// The proposals that the engine implements: WebAssembly 3.0 without relaxed SIMD, and exceptions as they were before it, which
/// compilers still emit.
fn features() -> WasmFeatures {
    let all = WasmFeatures::WASM3 | WasmFeatures::LEGACY_EXCEPTIONS;
    all.difference(WasmFeatures::RELAXED_SIMD | WasmFeatures::THREADS)
}

pub(super) fn parse(engine: &Engine, bytes: &[u8]) -> Result<ModuleInner> {
    let mut m = Reading::new(engine, bytes);
    m.sections().map_err(|e| match e {
        Fail::Decoder(e) => m.explain(e),
        Fail::Own(e) => e,
    })?;
    Ok(m.module)
}

enum Fail {
    Decoder(wp::Error),
    Own(Error),
}

impl From<wp::Error> for Fail {
    fn from(e: wp::Error) -> Fail {
        Fail::Decoder(e)
    }
}

impl From<Error> for Fail {
    fn from(e: Error) -> Fail {
        Fail::Own(e)
    }
}

struct Reading<'a> {
    bytes: &'a [u8],
    module: ModuleInner,
}

fn range(r: std::ops::Range<u64>) -> Range<usize> {
    r.start as usize..r.end as usize
}

fn expr(e: &wp::ConstExpr<'_>) -> Expr {
    let reader = e.get_binary_reader();
    range(reader.range())
}

impl<'a> Reading<'a> {
    fn new(engine: &Engine, bytes: &'a [u8]) -> Self {
        let module = ModuleInner {
            engine: engine.clone(),
            bytes: bytes.to_vec(),
            types: vec![],
            kinds: vec![],
            imports: vec![],
            imported_funcs: 0,
            funcs: vec![],
            tables: vec![],
            memories: vec![],
            globals: vec![],
            tags: vec![],
            bodies: vec![],
            exports: vec![],
            export_index: HashMap::new(),
            elements: vec![],
            data: vec![],
            start: None,
            names: HashMap::new(),
            type_names: HashMap::new(),
            global_names: HashMap::new(),
            field_names: HashMap::new(),
            stored_fields: OnceLock::new(),
            site_functions: OnceLock::new(),
            custom: vec![],
        };
        Reading { bytes, module }
    }

    fn convert(&self) -> Convert<'_> {
        Convert {
            types: &self.module.types,
            kinds: &self.module.kinds,
        }
    }

    fn sections(&mut self) -> Result<(), Fail> {
        let mut validator = Validator::new_with_features(features());
        let mut bodies = Vec::new();
        let bytes = self.bytes;
        for payload in Parser::new(0).parse_all(bytes) {
            let payload = payload?;
            if let Payload::CodeSectionEntry(body) = &payload {
                // Before validation, so that its errors can name the function.
                self.module.bodies.push(range(body.range()));
            }
            if let ValidPayload::Func(func, body) = validator.payload(&payload)? {
                bodies.push((func, body));
            }
            self.section(payload)?;
        }
        let mut allocations = wp::FuncValidatorAllocations::default();
        for (func, body) in bodies {
            let mut v = func.into_validator(allocations);
            v.validate(&body)?;
            allocations = v.into_allocations();
        }
        Ok(())
    }

    fn section(&mut self, payload: Payload<'a>) -> Result<(), Fail> {
        match payload {
            Payload::Version {
                encoding, range, ..
            } if encoding != wp::Encoding::Module => {
                return Err(Fail::Own(Error::Unsupported {
                    feature: "the component model".into(),
                    offset: range.start,
                    function: None,
                }));
            }
            Payload::TypeSection(s) => {
                for group in s {
                    let group = group?;
                    let types: Vec<_> = group.types().collect();
                    self.module.kinds.extend(types.iter().map(|t| kind_of(t)));
                    let convert = self.convert();
                    let group = types
                        .iter()
                        .map(|t| convert.sub(t))
                        .collect::<Result<Vec<_>>>()?;
                    let count = group.len() as u32;
                    let base = self.module.engine.types().intern(group);
                    self.module.types.extend(base..base + count);
                }
            }
            Payload::ImportSection(s) => {
                for import in s.into_imports() {
                    let import = import?;
                    self.import(import)?;
                }
            }
            Payload::FunctionSection(s) => {
                for f in s {
                    let ty = self.module.types[f? as usize];
                    self.module.funcs.push(ty);
                }
            }
            Payload::TableSection(s) => {
                for t in s {
                    let t = t?;
                    let init = match &t.init {
                        wp::TableInit::RefNull => None,
                        wp::TableInit::Expr(e) => Some(expr(e)),
                    };
                    let ty = self.table(t.ty)?;
                    self.module.tables.push((ty, init));
                }
            }
            Payload::MemorySection(s) => {
                for m in s {
                    let ty = memory(m?);
                    self.module.memories.push(ty);
                }
            }
            Payload::TagSection(s) => {
                for t in s {
                    let ty = self.module.types[t?.func_type_idx as usize];
                    self.tag(ty);
                }
            }
            Payload::GlobalSection(s) => {
                for g in s {
                    let g = g?;
                    let ty = self.global(g.ty)?;
                    self.module.globals.push((ty, Some(expr(&g.init_expr))));
                }
            }
            Payload::ExportSection(s) => {
                for e in s {
                    let e = e?;
                    self.export(e);
                }
            }
            Payload::StartSection { func, .. } => self.module.start = Some(func),
            Payload::ElementSection(s) => {
                for e in s {
                    let e = e?;
                    let mut managed = false;
                    let items = match e.items {
                        wp::ElementItems::Functions(f) => {
                            Items::Funcs(f.into_iter().collect::<Result<_, _>>()?)
                        }
                        wp::ElementItems::Expressions(ty, exprs) => {
                            managed = self.convert().reference(ty)?.heap.is_managed();
                            Items::Exprs(
                                exprs
                                    .into_iter()
                                    .map(|e| e.map(|e| expr(&e)))
                                    .collect::<Result<_, _>>()?,
                            )
                        }
                    };
                    let mode = match e.kind {
                        wp::ElementKind::Passive => Mode::Passive,
                        wp::ElementKind::Declared => Mode::Declared,
                        wp::ElementKind::Active {
                            table_index,
                            offset_expr,
                        } => Mode::Active(table_index.unwrap_or(0), expr(&offset_expr)),
                    };
                    self.module.elements.push(Elements {
                        mode,
                        items,
                        managed,
                    });
                }
            }
            Payload::DataSection(s) => {
                for d in s {
                    let d = d?;
                    let end = d.range.end as usize;
                    let mode = match d.kind {
                        wp::DataKind::Passive => Mode::Passive,
                        wp::DataKind::Active {
                            memory_index,
                            offset_expr,
                        } => Mode::Active(memory_index, expr(&offset_expr)),
                    };
                    self.module.data.push(Data {
                        mode,
                        bytes: end - d.data.len()..end,
                    });
                }
            }
            Payload::CustomSection(c) => {
                let end = c.data_offset() as usize + c.data().len();
                self.module
                    .custom
                    .push((c.name().into(), c.data_offset() as usize..end));
                if let wp::KnownCustom::Name(names) = c.as_known() {
                    self.names(names);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Names are for messages only: names that do not decode are left out, as the standard asks.
    fn names(&mut self, names: wp::NameSectionReader<'_>) {
        for name in names.into_iter().flatten() {
            match name {
                wp::Name::Function(map) => {
                    let names = map
                        .into_iter()
                        .flatten()
                        .map(|n| (n.index, n.name.to_string()));
                    self.module.names.extend(names);
                }
                wp::Name::Type(map) => {
                    for n in map.into_iter().flatten() {
                        self.module.type_names.insert(n.index, n.name.to_string());
                    }
                }
                wp::Name::Global(map) => {
                    for n in map.into_iter().flatten() {
                        self.module.global_names.insert(n.index, n.name.to_string());
                    }
                }
                wp::Name::Field(map) => {
                    for of_type in map.into_iter().flatten() {
                        for n in of_type.names.flatten() {
                            let key = (of_type.index, n.index);
                            self.module.field_names.insert(key, n.name.to_string());
                        }
                    }
                }
                _ => {}
            }
        }
    }

    fn table(&self, ty: wp::TableType) -> Result<TableType> {
        Ok(TableType {
            element: self.convert().reference(ty.element_type)?,
            min: ty.initial,
            max: ty.maximum,
            wide: ty.table64,
        })
    }

    fn global(&self, ty: wp::GlobalType) -> Result<GlobalType> {
        Ok(GlobalType {
            ty: self.convert().val(ty.content_type)?,
            mutable: ty.mutable,
        })
    }

    fn tag(&mut self, ty: TypeIndex) {
        self.module.engine.types().exception(ty);
        self.module.tags.push(ty);
    }

    fn import(&mut self, import: wp::Import<'_>) -> Result<()> {
        let ty = match import.ty {
            wp::TypeRef::Func(i) | wp::TypeRef::FuncExact(i) => {
                let ty = self.module.types[i as usize];
                self.module.funcs.push(ty);
                self.module.imported_funcs += 1;
                ExternType::Func(ty)
            }
            wp::TypeRef::Table(t) => {
                let ty = self.table(t)?;
                self.module.tables.push((ty.clone(), None));
                ExternType::Table(ty)
            }
            wp::TypeRef::Memory(m) => {
                let ty = memory(m);
                self.module.memories.push(ty);
                ExternType::Memory(ty)
            }
            wp::TypeRef::Global(g) => {
                let ty = self.global(g)?;
                self.module.globals.push((ty, None));
                ExternType::Global(ty)
            }
            wp::TypeRef::Tag(t) => {
                let ty = self.module.types[t.func_type_idx as usize];
                self.tag(ty);
                ExternType::Tag(ty)
            }
        };
        self.module.imports.push(Import {
            module: import.module.into(),
            name: import.name.into(),
            ty,
        });
        Ok(())
    }

    fn export(&mut self, e: wp::Export<'_>) {
        let kind = match e.kind {
            wp::ExternalKind::Func | wp::ExternalKind::FuncExact => ExportKind::Func,
            wp::ExternalKind::Table => ExportKind::Table,
            wp::ExternalKind::Memory => ExportKind::Memory,
            wp::ExternalKind::Global => ExportKind::Global,
            wp::ExternalKind::Tag => ExportKind::Tag,
        };
        self.module
            .export_index
            .insert(e.name.into(), self.module.exports.len());
        self.module.exports.push(Export {
            name: e.name.into(),
            kind,
            index: e.index,
        });
    }

    /// The decoder's error with the function that holds the offset; a feature that needs a proposal is named as such.
    fn explain(&self, e: wp::Error) -> Error {
        let offset = e.offset();
        let body = self
            .module
            .bodies
            .iter()
            .position(|b| b.start as u64 <= offset && offset < b.end as u64);
        let function = body.map(|i| {
            let index = self.module.imported_funcs + i as u32;
            // The name section comes last: look ahead for it.
            let mut names = Reading::new(&self.module.engine, self.bytes);
            for payload in Parser::new(0).parse_all(self.bytes).map_while(Result::ok) {
                if let Payload::CustomSection(c) = payload
                    && let wp::KnownCustom::Name(n) = c.as_known()
                {
                    names.names(n);
                }
            }
            func_name(&names.module.names, &self.module.exports, index)
        });
        match unsupported_proposal(&e) {
            Some(feature) => Error::Unsupported {
                feature,
                offset,
                function,
            },
            None => Error::Invalid {
                message: match cut(self.bytes) || offset >= self.bytes.len() as u64 {
                    true => format!("{}: {INCOMPLETE}", printable(without_bytes(e.message()))),
                    false => printable(without_bytes(e.message())).into_owned(),
                },
                offset,
                function,
            },
        }
    }
}

const INCOMPLETE: &str = "the file is incomplete or damaged, build or copy it again";

/// Whether the bytes begin as a module and end in the middle of a section.
fn cut(bytes: &[u8]) -> bool {
    const HEADER: &[u8] = b"\0asm\x01\0\0\0";
    if bytes.len() < HEADER.len() {
        return HEADER.starts_with(bytes);
    }
    let mut reader = wp::BinaryReader::new(&bytes[HEADER.len()..], HEADER.len() as u64);
    while bytes.starts_with(HEADER) && !reader.eof() {
        let Ok(_id) = reader.read_u8() else {
            return true;
        };
        let size = match reader.read_var_u32() {
            Ok(size) => size as usize,
            // A size of too many bytes is wrong, not cut.
            Err(_) => return reader.eof(),
        };
        if reader.read_bytes(size).is_err() {
            return true;
        }
    }
    false
}

fn memory(ty: wp::MemoryType) -> MemoryType {
    MemoryType {
        min_pages: ty.initial,
        max_pages: ty.maximum,
        wide: ty.memory64,
    }
}

/// A message without the list of bytes that some end with.
fn without_bytes(message: &str) -> &str {
    message.split(" - expected=[").next().unwrap_or(message)
}

/// The proposal that a module needs and the engine lacks.
fn unsupported_proposal(e: &wp::Error) -> Option<String> {
    let missing = e.missing_wasm_feature()?;
    let known = [
        (WasmFeatures::RELAXED_SIMD, "relaxed SIMD"),
        (WasmFeatures::THREADS, "threads"),
        (
            WasmFeatures::SHARED_EVERYTHING_THREADS,
            "threads (shared everything)",
        ),
        (WasmFeatures::COMPONENT_MODEL, "the component model"),
        (WasmFeatures::CUSTOM_PAGE_SIZES, "custom page sizes"),
        (WasmFeatures::STACK_SWITCHING, "stack switching"),
        (WasmFeatures::WIDE_ARITHMETIC, "wide arithmetic"),
        (WasmFeatures::CUSTOM_DESCRIPTORS, "custom descriptors"),
    ];
    let name = known
        .iter()
        .find(|(f, _)| missing.intersects(*f))
        .map(|(_, name)| (*name).to_string());
    Some(name.unwrap_or_else(|| format!("the proposal {missing:?}").to_lowercase()))
}
