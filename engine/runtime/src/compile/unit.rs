//! From a translated function to code in memory.

use super::early;
use super::safepoints::Safepoints;
use super::shared;
use super::translate::{Maps, Translated};
use super::traps;
use crate::arch::{OnePass, Piece};
use crate::code::link::{Relocation, link};
use crate::code::map::{CodeInfo, Handler, Inlined, StackMap};
use crate::code::memory::CodeMemory;
use crate::error::{Error, Result};
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::{AliasRegionData, Function, Inst, TrapCode};
use cranelift_codegen::isa::TargetIsa;
use cranelift_codegen::settings::OptLevel;
use cranelift_codegen::{CodegenResult, CompiledCode, Context, FinalizedMachExceptionHandler};
use cranelift_frontend::FunctionBuilderContext;

/// Functions' memory that is kept for others, at most: some ten KiB each.
const MOST_FUNCTIONS: usize = 32;

/// Reusable memory of the compiler, of one thread.
pub(crate) struct Scratch {
    pub(super) builder: FunctionBuilderContext,
    pub(super) maps: Maps,
    safepoints: Safepoints,
    context: Context,
    one_pass: OnePass,
    /// Of functions whose code is generated.
    functions: Vec<Function>,
}

impl Default for Scratch {
    fn default() -> Scratch {
        Scratch {
            builder: FunctionBuilderContext::default(),
            maps: Maps::default(),
            safepoints: Safepoints::default(),
            context: Context::new(),
            one_pass: OnePass::default(),
            functions: Vec::new(),
        }
    }
}

impl Scratch {
    /// An empty function.
    pub fn function(&mut self) -> Function {
        self.functions.pop().unwrap_or_else(Function::new)
    }

    /// Takes the memory of a function that is not needed any more, for another.
    pub fn recycle(&mut self, mut function: Function) {
        if self.functions.len() < MOST_FUNCTIONS {
            function.clear();
            self.functions.push(function);
        }
    }
}

/// A function in Cranelift's form, with the other data that its code's map needs.
pub(crate) struct Unit {
    pub function: Function,
    pub func: Option<u32>,
    pub inlined: Box<[Inlined]>,
    /// Throws that it leaves out, by their locations.
    pub left_out: Vec<u32>,
    /// Functions of the store that it calls, in order.
    pub called: Vec<u32>,
    /// Whether code that is there soon is worth more than code that is fast.
    pub soon: bool,
    /// Constants, and the heap's base, that have no place yet.
    pub shared: Vec<Inst>,
    /// References that the collector has to find, until they are in slots; and the region that those slots are.
    pub references: Option<(Translated, Option<AliasRegionData>)>,
}

/// Code that is not in memory yet, and its metadata, except for its address.
pub(crate) struct Generated {
    pub code: Vec<u8>,
    pub info: CodeInfo,
}

fn failed(what: String) -> Error {
    Error::Internal(format!("code generation: {what}"))
}

impl Unit {
    /// Functions that were inlined, by their numbers in the store; some more than once.
    pub fn inlined_functions(&self) -> impl Iterator<Item = u32> + use<'_> {
        let mut last = None;
        let all = self.inlined.iter().map(|i| i.func);
        all.filter(move |&func| last.replace(func) != Some(func))
    }

    /// Glue, which belongs to no function.
    pub fn glue(function: Function) -> Unit {
        Unit {
            function,
            func: None,
            inlined: Box::default(),
            left_out: Vec::new(),
            called: Vec::new(),
            soon: false,
            shared: Vec::new(),
            references: None,
        }
    }

    /// Generates code, and leaves the function's memory to `scratch`. Needs nothing of the store, so that any thread can do it.
    pub fn generate(mut self, isa: &dyn TargetIsa, scratch: &mut Scratch) -> Result<Generated> {
        if let Some((translated, region)) = self.references.take() {
            let safepoints = &mut scratch.safepoints;
            let shared = self.soon.then_some(&mut self.shared);
            safepoints.run(&mut self.function, &translated, region, shared);
        }
        if self.soon
            && let Some(piece) = scratch.one_pass.generate(&self.function, &self.shared)
        {
            let generated = self.with_map(piece)?;
            scratch.recycle(self.function);
            return Ok(generated);
        }
        shared::place(&mut self.function, &self.shared);
        let context = &mut scratch.context;
        context.clear();
        std::mem::swap(&mut context.func, &mut self.function);
        let compiled = compile(context, isa).map_err(|e| failed(format!("{e:?}")))?;
        let mut generated = generated(&context.func, &compiled, self.func, self.inlined)?;
        let traps = compiled.buffer.traps().iter();
        let traps = traps.map(|t| (t.offset, t.code));
        generated.info.left_out = left_out(traps, &self.left_out);
        std::mem::swap(&mut context.func, &mut self.function);
        scratch.recycle(self.function);
        Ok(generated)
    }

    /// Code of one pass, with its map.
    fn with_map(&mut self, piece: Piece) -> Result<Generated> {
        let names = self.function.params.user_named_funcs();
        let relocations = piece.fields.iter().map(|(at, kind, name, addend)| {
            Relocation::to_name(*at, *kind, name, |name| names[name].clone(), *addend)
        });
        let traps = piece.traps.iter().copied();
        let stack_maps = piece.stack_maps.into_iter();
        let handlers = piece.handlers.into_iter();
        let info = CodeInfo {
            start: 0,
            len: piece.code.len(),
            func: self.func,
            relocations: relocations.collect::<Result<_>>()?,
            left_out: left_out(traps.clone(), &self.left_out),
            traps: traps
                .filter_map(|(at, code)| Some((at, traps::trap_kind(code)?)))
                .collect(),
            stack_maps: stack_maps
                .map(|(at, frame_size, slots)| (at, StackMap { frame_size, slots }))
                .collect(),
            handlers: handlers
                .map(|(at, frame_size, code)| (at, Handler { frame_size, code }))
                .collect(),
            offsets: piece.sources,
            inlined: std::mem::take(&mut self.inlined),
        };
        Ok(Generated {
            code: piece.code,
            info,
        })
    }
}

/// Where the traps are that stand for throws, and the locations of these.
fn left_out(traps: impl Iterator<Item = (u32, TrapCode)>, locations: &[u32]) -> Box<[(u32, u32)]> {
    let of = |code| locations.get(traps::left_out(code)?).copied();
    traps
        .filter_map(|(at, code)| Some((at, of(code)?)))
        .collect()
}

fn is_optimizing(isa: &dyn TargetIsa) -> bool {
    isa.flags().opt_level() == OptLevel::Speed
}

/// Has Cranelift make code of the context's function. Between its two halves, values find their places.
fn compile(context: &mut Context, isa: &dyn TargetIsa) -> CodegenResult<CompiledCode> {
    let plane = &mut ControlPlane::default();
    context.optimize(isa, plane)?;
    if is_optimizing(isa) {
        context.compute_loop_analysis();
        let (cfg, domtree) = (&context.cfg, &context.domtree);
        early::run(&mut context.func, cfg, domtree, &context.loop_analysis);
        context.verify_if(isa)?;
    }
    let (func, registers) = (&context.func, &mut Default::default());
    let code = isa.compile_function(func, &context.domtree, registers, false, plane)?;
    Ok(code.apply_params(&func.params))
}

fn generated(
    function: &Function,
    compiled: &CompiledCode,
    func: Option<u32>,
    inlined: Box<[Inlined]>,
) -> Result<Generated> {
    let names = function.params.user_named_funcs();
    let buffer = &compiled.buffer;
    let code = buffer.data().to_vec();
    let relocations = buffer.relocs().iter();
    let relocations = relocations.map(|r| Relocation::new(r, |name| names[name].clone()));
    let relocations = relocations.collect::<Result<Box<[_]>>>()?;
    let traps = buffer
        .traps()
        .iter()
        .filter_map(|t| Some((t.offset, traps::trap_kind(t.code)?)))
        .collect();
    let stack_maps = buffer
        .user_stack_maps()
        .iter()
        .map(|(at, frame_size, map)| {
            let slots = map.entries().map(|(_, offset)| offset).collect();
            (
                *at,
                StackMap {
                    frame_size: *frame_size,
                    slots,
                },
            )
        })
        .collect();
    let mut handlers = Vec::new();
    for site in buffer.call_sites() {
        for handler in site.exception_handlers {
            if let (FinalizedMachExceptionHandler::Default(code), Some(frame_size)) =
                (handler, site.frame_offset)
            {
                handlers.push((
                    site.ret_addr,
                    Handler {
                        frame_size,
                        code: *code,
                    },
                ));
            }
        }
    }
    let offsets = buffer
        .get_srclocs_sorted()
        .iter()
        .filter(|s| !s.loc.is_default())
        .map(|s| (s.start, s.loc.bits()))
        .collect();
    let info = CodeInfo {
        start: 0,
        len: code.len(),
        func,
        left_out: Box::default(),
        traps,
        stack_maps,
        handlers,
        offsets,
        inlined,
        relocations,
    };
    Ok(Generated { code, info })
}

impl Generated {
    /// Puts the code into memory.
    pub fn place(self, memory: &mut CodeMemory, helpers: &[*const u8]) -> Result<CodeInfo> {
        let Generated { mut code, mut info } = self;
        info.start = memory.next() as usize;
        link(&mut code, info.start, &info.relocations, helpers)?;
        let start = memory.add(&code)? as usize;
        debug_assert_eq!(start, info.start);
        Ok(info)
    }
}
