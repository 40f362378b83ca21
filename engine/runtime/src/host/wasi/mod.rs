//! WASI preview 1: the system as programs of many toolchains see it. Sockets and signals are not there, and say so.

mod directory;
mod environment;
mod errno;
mod guest;
mod moved;
mod path;
mod poll;
mod refused;
mod resolve;
mod socket;
mod status;
mod table;
mod transfer;

use super::{State, exit_code};
use crate::{Caller, Error, Extern, Linker, Memory, Module, Result, Store};
use errno::Outcome;
use guest::Guest;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
pub use refused::Refused;
use rustix::rand::{GetRandomFlags, getrandom};
use std::any::Any;
use std::path::Path;
use std::sync::Arc;
use table::{Directory, Entry, Kind, Table, rights};

const MODULE: &str = "wasi_snapshot_preview1";

/// The parts of the system that a program may access.
pub struct Wasi {
    arguments: Vec<Vec<u8>>,
    environment: Vec<Vec<u8>>,
    files: Table,
    /// Paths that led out of all that.
    refused: Vec<Refused>,
    /// Where random numbers come from, if not from the system.
    chance: Option<Box<ChaCha8Rng>>,
    /// Values that are dropped with it.
    kept: Vec<Box<dyn Any + Send>>,
}

impl Default for Wasi {
    fn default() -> Self {
        Wasi::new()
    }
}

impl Wasi {
    /// No arguments, no environment, no files but the standard streams.
    pub fn new() -> Wasi {
        Wasi {
            arguments: Vec::new(),
            environment: Vec::new(),
            files: Table::new(),
            refused: Vec::new(),
            chance: None,
            kept: Vec::new(),
        }
    }

    /// Keeps something for as long as the program sees this: the guard of a folder that vanishes afterwards, for example.
    pub fn keep(mut self, guard: impl Any + Send) -> Wasi {
        self.kept.push(Box::new(guard));
        self
    }

    /// Random numbers are a sequence that the seed says, so that a program that does the same gets the same.
    pub fn seed(mut self, seed: u64) -> Wasi {
        self.chance = Some(Box::new(ChaCha8Rng::seed_from_u64(seed)));
        self
    }

    /// Fills a buffer with random bytes.
    pub(crate) fn random(&mut self, mut rest: &mut [u8]) -> rustix::io::Result<()> {
        if let Some(chance) = &mut self.chance {
            chance.fill_bytes(rest);
            return Ok(());
        }
        while !rest.is_empty() {
            let done =
                rustix::io::retry_on_intr(|| getrandom(&mut *rest, GetRandomFlags::empty()))?;
            rest = &mut rest[done..];
        }
        Ok(())
    }

    /// Adds an argument. The first one is by custom the program's name.
    pub fn arg(mut self, argument: impl Into<Vec<u8>>) -> Wasi {
        self.arguments.push(argument.into());
        self
    }

    /// Sets a variable of the environment.
    pub fn env(mut self, name: impl Into<Vec<u8>>, value: impl Into<Vec<u8>>) -> Wasi {
        let mut variable = name.into();
        variable.push(b'=');
        self.environment.retain(|v| !v.starts_with(&variable));
        variable.extend(value.into());
        self.environment.push(variable);
        self
    }

    /// Opens a directory in advance, for the program under another name: the first one is descriptor 3. Paths lead out of it
    /// only if it is the host's root.
    ///
    /// Libraries of C find files by these names: relative paths in a directory named `.`, absolute ones in the directory whose
    /// name they begin with.
    ///
    /// # Errors
    /// If it cannot be opened, or is one too many.
    pub fn preopen(self, host: &Path, name: &str) -> Result<Wasi> {
        self.open(host, name, false)
    }

    /// The same for a directory that the program, and whatever it opens there, cannot change.
    ///
    /// # Errors
    /// As [`Wasi::preopen`].
    pub fn preopen_read_only(self, host: &Path, name: &str) -> Result<Wasi> {
        self.open(host, name, true)
    }

    fn open(mut self, host: &Path, name: &str, read_only: bool) -> Result<Wasi> {
        use rustix::fs::{CWD, Mode, OFlags, fstat, openat, stat};
        let failed = |e| Error::System(format!("{}: {e}", host.display()));
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = openat(CWD, host, flags, Mode::empty()).map_err(failed)?;
        let (opened, root) = (fstat(&fd).map_err(failed)?, stat("/").map_err(failed)?);
        let n = self
            .files
            .free()
            .map_err(|_| Error::usage("too many directories are opened in advance"))?;
        let entry = Entry {
            kind: Kind::Directory(Directory {
                fd: Arc::new(fd),
                whole: (opened.st_dev, opened.st_ino) == (root.st_dev, root.st_ino),
                preopened: Some(name.into()),
                listing: Vec::new(),
            }),
            rights: rights::OF_DIRECTORY,
            inheriting: rights::ALL,
            read_only,
        };
        self.files.put(n, entry);
        Ok(self)
    }
}

type C<'a> = Caller<'a, State>;

/// Calls a function with memory and state; its error code, or zero.
fn call(
    mut c: C<'_>,
    memory: Option<Memory>,
    f: impl FnOnce(&mut Guest, &mut State) -> Outcome,
) -> Result<i32> {
    let exported = || c.get_export("memory").and_then(Extern::into_memory);
    let memory = memory.or_else(exported).ok_or_else(|| {
        Error::usage("the program calls WASI without exporting a memory named `memory`")
    })?;
    let observed = c.is_observed();
    let (bytes, state) = c.memory_and_data(memory)?;
    let mut guest = Guest::new(bytes, observed);
    let outcome = f(&mut guest, state);
    for moved in guest.moved.unwrap_or_default() {
        c.observe_file(memory, &moved);
    }
    Ok(outcome.err().map_or(0, |e| e.0 as i32))
}

macro_rules! functions {
    ($linker:ident, $memory:ident, $($file:ident: $($name:ident($($arg:ident $ty:ty),*))*;)*) => {
        $($(
            $linker.func_wrap(MODULE, stringify!($name), move |c: C<'_>, $($arg: $ty),*| -> Result<i32> {
                call(c, $memory, |g, s| $file::$name(g, s, $($arg),*))
            });
        )*)*
    };
}

/// Defines the functions of WASI preview 1. They work on the memory given, or else on the one that the caller exports as `memory`.
pub fn link(linker: &mut Linker<State>, memory: Option<Memory>) {
    functions! { linker, memory,
        environment:
            args_get(a u32, b u32) args_sizes_get(a u32, b u32)
            environ_get(a u32, b u32) environ_sizes_get(a u32, b u32)
            clock_res_get(a u32, b u32) clock_time_get(a u32, b u64, c u32)
            random_get(a u32, b u32) sched_yield() proc_raise(a u32);
        transfer:
            fd_advise(a u32, b u64, c u64, d u32) fd_allocate(a u32, b u64, c u64) fd_close(a u32) fd_datasync(a u32)
            fd_pread(a u32, b u32, c u32, d u64, e u32) fd_pwrite(a u32, b u32, c u32, d u64, e u32)
            fd_read(a u32, b u32, c u32, d u32) fd_renumber(a u32, b u32) fd_seek(a u32, b i64, c u32, d u32)
            fd_sync(a u32) fd_tell(a u32, b u32) fd_write(a u32, b u32, c u32, d u32);
        status:
            fd_fdstat_get(a u32, b u32) fd_fdstat_set_flags(a u32, b u32) fd_fdstat_set_rights(a u32, b u64, c u64)
            fd_filestat_get(a u32, b u32) fd_filestat_set_size(a u32, b u64)
            fd_filestat_set_times(a u32, b u64, c u64, d u32);
        directory:
            fd_prestat_get(a u32, b u32) fd_prestat_dir_name(a u32, b u32, c u32)
            fd_readdir(a u32, b u32, c u32, d u64, e u32);
        path:
            path_create_directory(a u32, b u32, c u32) path_filestat_get(a u32, b u32, c u32, d u32, e u32)
            path_filestat_set_times(a u32, b u32, c u32, d u32, e u64, f u64, g u32)
            path_link(a u32, b u32, c u32, d u32, e u32, f u32, g u32)
            path_open(a u32, b u32, c u32, d u32, e u32, f u64, g u64, h u32, i u32)
            path_readlink(a u32, b u32, c u32, d u32, e u32, f u32) path_remove_directory(a u32, b u32, c u32)
            path_rename(a u32, b u32, c u32, d u32, e u32, f u32) path_symlink(a u32, b u32, c u32, d u32, e u32)
            path_unlink_file(a u32, b u32, c u32);
        poll: poll_oneoff(a u32, b u32, c u32, d u32);
        socket:
            sock_accept(a u32, b u32, c u32) sock_recv(a u32, b u32, c u32, d u32, e u32, f u32)
            sock_send(a u32, b u32, c u32, d u32, e u32) sock_shutdown(a u32, b u32);
    }
    linker.func_wrap(MODULE, "proc_exit", |code: u32| -> Result<()> {
        Err(Error::Exit(code as i32))
    });
}

/// Whether the module imports functions of WASI.
pub fn is_used(module: &Module) -> bool {
    module.imports().any(|(m, ..)| m == MODULE)
}

/// Where a program begins: at `_start`; or at `_initialize`, where compilers of Kotlin put the main function, and others the code that must run
/// before a library is used.
const ENTRIES: [&str; 2] = ["_start", "_initialize"];

/// Whether the module is a program: it exports `_start` or `_initialize`.
pub fn is_command(module: &Module) -> bool {
    module.exports().any(|name| ENTRIES.contains(&name))
}

/// Runs a program to its end: its `_start` or, without one, its `_initialize`; the program's exit code.
///
/// # Errors
/// If the module is no program, lacks imports, or traps.
pub fn run_command(store: &mut Store<State>, module: &Module) -> Result<i32> {
    let mut linker = Linker::new(module.engine());
    link(&mut linker, None);
    super::placement::link(&mut linker);
    super::toolchains::link(&mut linker);
    super::js_string::link(&mut linker, store, module)?;
    let outcome = linker
        .instantiate(&mut *store, module)
        .and_then(|instance| {
            let start = ENTRIES
                .iter()
                .find_map(|name| instance.get_func(&mut *store, name))
                .ok_or_else(|| Error::usage("the program has no function `_start`"))?;
            start.call(&mut *store, &[], &mut [])
        });
    exit_code(store, outcome)
}
