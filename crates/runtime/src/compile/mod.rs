//! Compilation: functions of modules, and the glue between host and compiled code.

mod access;
mod calls;
pub(crate) mod env;
pub(crate) mod glue;
pub(crate) mod isa;
mod numeric;
mod objects;
mod translate;

use crate::code::map::{CodeInfo, Handler, StackMap};
use crate::code::memory::CodeMemory;
use crate::error::{Error, Result};
use cranelift_codegen::binemit::Reloc;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir;
use cranelift_codegen::isa::TargetIsa;
use cranelift_codegen::{Context, FinalizedMachExceptionHandler, FinalizedRelocTarget};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use env::{Env, signature};
use translate::Translator;

/// Reusable memory of the compiler.
#[derive(Default)]
pub(crate) struct Scratch {
    builder: FunctionBuilderContext,
}

/// Compiles the body at `range` in the module of `env`.
pub(crate) fn function(
    isa: &dyn TargetIsa,
    scratch: &mut Scratch,
    memory: &mut CodeMemory,
    helpers: &[*const u8],
    env: Env<'_>,
    index: u32,
) -> Result<CodeInfo> {
    let module = env.module;
    let func_id = env.func_id;
    let body = module.bodies[(index - module.imported_funcs) as usize].clone();
    let reader = wasmparser::BinaryReader::new(&module.bytes[body.clone()], body.start as u64);
    let body = wasmparser::FunctionBody::new(reader);
    let ty = env.types.func(module.funcs[index as usize]).clone();
    let mut context = Context::for_function(ir::Function::with_name_signature(
        ir::UserFuncName::user(0, index),
        signature(&ty),
    ));
    let builder = FunctionBuilder::new(&mut context.func, &mut scratch.builder);
    Translator::new(builder, env, ty).run(&body, isa.frontend_config())?;
    emit(isa, context, memory, helpers, Some(func_id))
}

/// Generates code for a function in intermediate form and puts it into memory.
fn emit(
    isa: &dyn TargetIsa,
    mut context: Context,
    memory: &mut CodeMemory,
    helpers: &[*const u8],
    func: Option<u32>,
) -> Result<CodeInfo> {
    let failed = |what: String| Error::Internal(format!("code generation: {what}"));
    // Compilation borrows the whole context.
    let names = context.func.params.user_named_funcs().clone();
    let compiled = context
        .compile(isa, &mut ControlPlane::default())
        .map_err(|e| failed(format!("{:?}", e.inner)))?;
    let buffer = &compiled.buffer;
    let base = memory.next() as usize;
    let mut code = buffer.data().to_vec();
    for reloc in buffer.relocs() {
        let at = reloc.offset as usize;
        let target = match &reloc.target {
            FinalizedRelocTarget::ExternalName(ir::ExternalName::User(name)) => {
                let name = &names[*name];
                helpers[name.index as usize] as i64
            }
            FinalizedRelocTarget::Func(offset) => base as i64 + *offset as i64,
            other => return Err(failed(format!("relocation against {other:?}"))),
        };
        match reloc.kind {
            Reloc::X86CallPCRel4 | Reloc::X86PCRel4 => {
                let relative = target + reloc.addend - (base + at) as i64;
                let relative =
                    i32::try_from(relative).map_err(|_| failed("a call out of reach".into()))?;
                code[at..at + 4].copy_from_slice(&relative.to_le_bytes());
            }
            Reloc::Abs8 => code[at..at + 8].copy_from_slice(&(target + reloc.addend).to_le_bytes()),
            other => return Err(failed(format!("relocation {other:?}"))),
        }
    }
    let start = memory.add(&code)? as usize;
    debug_assert_eq!(start, base);

    let traps = buffer
        .traps()
        .iter()
        .filter_map(|t| Some((t.offset, translate::trap_kind(t.code)?)))
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
        func,
        traps,
        stack_maps,
        handlers,
        offsets,
    })
}
