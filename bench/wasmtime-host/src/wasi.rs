//! The functions of WASI preview 1 that the benchmarks call: arguments, the clock, output, the end.

use crate::{Exit, State};
use std::io::Write;
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use wasmtime::{Caller, Error, Linker, Memory, Result};

const MODULE: &str = "wasi_snapshot_preview1";
const SUCCESS: i32 = 0;
const BAD_DESCRIPTOR: i32 = 8;
const INVALID: i32 = 28;
const REALTIME: i32 = 0;

/// Defines them. The memory is the one given, or else what the module exports.
pub fn link(linker: &mut Linker<State>, memory: Option<Memory>) -> Result<()> {
    let here = move |c: &mut Caller<'_, State>| {
        let exported = || c.get_export("memory").and_then(|e| e.into_memory());
        memory
            .map_or_else(exported, Some)
            .ok_or_else(|| Error::msg("the module has no memory"))
    };
    let begin = Instant::now();
    linker.func_wrap(MODULE, "proc_exit", |code: i32| -> Result<()> {
        Err(Exit(code).into())
    })?;
    linker.func_wrap(
        MODULE,
        "clock_time_get",
        move |mut c: Caller<'_, State>, clock: i32, _: i64, at: i32| {
            let now = match clock {
                REALTIME => SystemTime::now()
                    .duration_since(UNIX_EPOCH)
                    .unwrap_or_default(),
                _ => begin.elapsed(),
            };
            put(
                here(&mut c)?,
                &mut c,
                at,
                &(now.as_nanos() as u64).to_le_bytes(),
            )
        },
    )?;
    linker.func_wrap(
        MODULE,
        "args_sizes_get",
        move |mut c: Caller<'_, State>, count: i32, size: i32| {
            let arguments = &c.data().arguments;
            let (n, bytes) = (
                arguments.len() as u32,
                arguments.iter().map(|a| a.len() as u32 + 1).sum::<u32>(),
            );
            let memory = here(&mut c)?;
            put(memory, &mut c, count, &n.to_le_bytes())?;
            put(memory, &mut c, size, &bytes.to_le_bytes())
        },
    )?;
    linker.func_wrap(
        MODULE,
        "args_get",
        move |mut c: Caller<'_, State>, mut pointers: i32, mut text: i32| {
            let memory = here(&mut c)?;
            for argument in c.data().arguments.clone() {
                put(memory, &mut c, pointers, &text.to_le_bytes())?;
                put(memory, &mut c, text, &[argument.as_bytes(), &[0]].concat())?;
                pointers += 4;
                text += argument.len() as i32 + 1;
            }
            Ok(SUCCESS)
        },
    )?;
    linker.func_wrap(
        MODULE,
        "fd_write",
        move |mut c: Caller<'_, State>, fd: i32, vectors: i32, count: i32, done: i32| {
            let memory = here(&mut c)?;
            let mut bytes = Vec::new();
            for i in 0..count {
                let at = word(memory, &c, vectors + 8 * i)? as usize;
                let size = word(memory, &c, vectors + 8 * i + 4)? as usize;
                let part = memory.data(&c).get(at..).and_then(|rest| rest.get(..size));
                bytes.extend_from_slice(part.ok_or_else(outside)?);
            }
            match fd {
                1 => std::io::stdout().write_all(&bytes)?,
                2 => std::io::stderr().write_all(&bytes)?,
                _ => return Ok(BAD_DESCRIPTOR),
            }
            put(memory, &mut c, done, &(bytes.len() as u32).to_le_bytes())
        },
    )?;
    // A program without directories learns so when it asks for the first one, and one without environment that it is empty.
    linker.func_wrap(MODULE, "fd_prestat_get", |_: i32, _: i32| BAD_DESCRIPTOR)?;
    linker.func_wrap(MODULE, "fd_prestat_dir_name", |_: i32, _: i32, _: i32| {
        INVALID
    })?;
    linker.func_wrap(MODULE, "environ_get", |_: i32, _: i32| SUCCESS)?;
    linker.func_wrap(
        MODULE,
        "environ_sizes_get",
        move |mut c: Caller<'_, State>, count: i32, size: i32| {
            let memory = here(&mut c)?;
            put(memory, &mut c, count, &[0; 4])?;
            put(memory, &mut c, size, &[0; 4])
        },
    )?;
    Ok(())
}

fn outside() -> Error {
    Error::msg("an address outside of memory")
}

fn word(memory: Memory, c: &Caller<'_, State>, at: i32) -> Result<u32> {
    let mut bytes = [0; 4];
    memory
        .read(c, at as u32 as usize, &mut bytes)
        .map_err(|_| outside())?;
    Ok(u32::from_le_bytes(bytes))
}

fn put(memory: Memory, c: &mut Caller<'_, State>, at: i32, bytes: &[u8]) -> Result<i32> {
    memory
        .write(c, at as u32 as usize, bytes)
        .map_err(|_| outside())?;
    Ok(SUCCESS)
}
