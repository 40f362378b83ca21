//! Compilation: functions of modules, and the glue between host and compiled code.

mod alias;
mod allocate;
mod arrays;
mod barrier;
mod calls;
mod casts;
mod control;
mod copies;
mod effects;
pub(crate) mod env;
mod facts;
pub(crate) mod feedback;
pub(crate) mod glue;
pub(crate) mod hash;
pub(crate) mod hints;
mod inline;
pub(crate) mod isa;
mod live;
mod loops;
mod memories;
mod numeric;
mod observe;
mod peel;
pub(crate) mod persist;
mod pipeline;
mod profile;
mod ranges;
mod references;
pub(crate) mod resume;
mod running;
mod safepoints;
mod signatures;
mod slot;
mod structs;
mod tables;
pub(crate) mod touches;
pub(crate) mod translate;
mod traps;
mod truth;
mod variables;
mod vectors;
pub(crate) mod worker;

use crate::code::link::{Relocation, link};
use crate::code::map::{CodeInfo, Handler, Inlined, StackMap};
use crate::code::memory::CodeMemory;
use crate::error::{Error, Result};
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir;
use cranelift_codegen::ir::AliasRegionData;
use cranelift_codegen::isa::TargetIsa;
use cranelift_codegen::{Context, FinalizedMachExceptionHandler};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use env::{Assumptions, Env};
use safepoints::Safepoints;
use signatures::signature;
use translate::{Job, Translated, Translator};

/// Reusable memory of the compiler.
#[derive(Default)]
pub(crate) struct Scratch {
    builder: FunctionBuilderContext,
    safepoints: Safepoints,
    /// Of a function that is in memory by now.
    context: Option<Context>,
}

/// A function in Cranelift's form, with what its code's map needs besides: before and after code was generated for it.
pub(crate) struct Unit {
    context: Context,
    func: Option<u32>,
    inlined: Box<[Inlined]>,
    /// References that the collector has to find, until they are in slots; and the region that those slots are.
    references: Option<(Translated, Option<AliasRegionData>)>,
}

/// Translates a function, or the rest of one; or says what may be assumed, if that is less than was.
pub(crate) fn translate(
    isa: &dyn TargetIsa,
    scratch: &mut Scratch,
    env: Env<'_>,
    job: &Job,
) -> Result<Result<Unit, Assumptions>> {
    let mut ty = env.func_type(job.index);
    if job.from.is_some() {
        ty.params.clear();
    }
    let mut context = scratch.context.take().unwrap_or_else(Context::new);
    context.func.name = ir::UserFuncName::user(0, job.index);
    context.func.signature = signature(&ty);
    let builder = FunctionBuilder::new(&mut context.func, &mut scratch.builder);
    let translated = Translator::new(builder, env, job).run(isa.frontend_config())?;
    Ok(translated.map(|mut translated| Unit {
        context,
        func: Some(job.func_id),
        inlined: std::mem::take(&mut translated.inlined).into(),
        references: Some((translated, alias::of_spills(job.level))),
    }))
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
    pub fn glue(context: Context) -> Unit {
        Unit {
            context,
            func: None,
            inlined: Box::default(),
            references: None,
        }
    }

    /// Generates code. Needs nothing of the store, so that any thread can do it.
    pub fn generate(&mut self, isa: &dyn TargetIsa, scratch: &mut Scratch) -> Result<()> {
        if let Some((translated, region)) = self.references.take() {
            let safepoints = &mut scratch.safepoints;
            safepoints.run(&mut self.context.func, &translated, region);
        }
        match self.context.compile(isa, &mut ControlPlane::default()) {
            Ok(_) => Ok(()),
            Err(e) => Err(failed(format!("{:?}", e.inner))),
        }
    }

    /// Puts generated code into memory.
    pub fn place(&mut self, memory: &mut CodeMemory, helpers: &[*const u8]) -> Result<CodeInfo> {
        let names = self.context.func.params.user_named_funcs();
        let compiled = self
            .context
            .compiled_code()
            .ok_or_else(|| failed("there is no code yet".into()))?;
        let buffer = &compiled.buffer;
        let base = memory.next() as usize;
        let mut code = buffer.data().to_vec();
        let relocations = buffer.relocs().iter();
        let relocations = relocations.map(|r| Relocation::new(r, |name| names[name].clone()));
        let relocations = relocations.collect::<Result<Box<[_]>>>()?;
        link(&mut code, base, &relocations, helpers)?;
        let start = memory.add(&code)? as usize;
        debug_assert_eq!(start, base);

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
        Ok(CodeInfo {
            start,
            len: code.len(),
            func: self.func,
            traps,
            stack_maps,
            handlers,
            offsets,
            inlined: std::mem::take(&mut self.inlined),
            relocations,
        })
    }

    /// Gives the memory of the function's form to the next one.
    pub fn recycle(mut self, scratch: &mut Scratch) {
        self.context.clear();
        scratch.context = Some(self.context);
    }
}
