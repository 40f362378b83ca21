//! `varve run module.wasm`: runs a program of WebAssembly on the engine.

use super::plans::{self, Planned};
use super::timeout::Timeout;
use super::{nodes, phases, sandbox};
use crate::args::Sandbox;
use crate::args::run::engine as args;
use crate::args::run::job::{LiveObjects, Plain, WasmProgram};
use crate::args::run::objects::Objects;
use crate::args::run::region::{Medium, Region};
use crate::ui::{Done, Failure, failed, wrong};
use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use varve_observed::{Access, ManagedProgram, unknown_sites};
use varve_run::request::Fast;
use varve_runtime::host::{Console, State};
use varve_runtime::{
    Config, Engine, Error, JitDump, Module, PerfMap, Store, Tier, make_code_cache,
};
use varve_sites::Profile;

/// The engine's settings, wherever the program runs.
pub fn settings(
    engine: &args::Engine,
    region: &Region,
    medium: &Medium,
) -> Result<Config, Failure> {
    let mut config = engine.heap.config().map_err(wrong)?;
    super::durable::configure(region, medium, &mut config)?;
    Ok(config)
}

/// Where compiled code is kept: nowhere that the program could write code itself. `plain` is a run whose code can be kept.
fn code_cache(
    asked: Option<&Path>,
    access: &Access,
    plain: bool,
) -> Result<Option<PathBuf>, Failure> {
    let Some(folder) = asked else {
        let usual = varve_run::usual_folder().map(|folder| folder.join("code"));
        return Ok(usual.filter(|folder| !access.may_write(folder)));
    };
    if folder == "none" {
        return Ok(None);
    }
    let refused = |why: &str| {
        Err(wrong(format!(
            "--code-cache {}: {why}; name a folder of your own, or none",
            folder.display()
        )))
    };
    if !plain {
        return Err(wrong(
            "--code-cache: code for --durable, --checks, --tier or --plan is not cached: leave one of them out",
        ));
    }
    if access.may_write(folder) {
        return refused("the program may write there, and could have its own code run");
    }
    match make_code_cache(folder) {
        Ok(()) => Ok(Some(folder.into())),
        Err(e) => refused(&e.to_string()),
    }
}

/// Runs a program on this machine; `objects` places its objects, if given.
pub fn run(program: &WasmProgram, a: &Plain, objects: Option<&LiveObjects>) -> Done {
    let file = &program.file[..];
    let mut config = settings(&a.engine, &a.region, &a.medium)?;
    let managed = managed(program, &a.engine, &a.sandbox)?;
    config.interruptible = a.sandbox.timeout.is_some();
    config.gc_threads = a.log.gc_threads.map(usize::from);
    let usual = config.durable.is_none() && config.checks.is_none() && config.tier == Tier::Auto;
    config.code_cache = code_cache(
        a.log.code_cache.as_deref(),
        &managed.access,
        usual && objects.is_none(),
    )?;
    if a.log.perf_map {
        let names = PerfMap::create().map_err(|e| {
            wrong(format!(
                "--perf-map: /tmp/perf-{}.map: {e}",
                std::process::id()
            ))
        })?;
        config.perf_map = Some(Arc::new(names));
    }
    if let Some(folder) = &a.log.jitdump {
        let dump = JitDump::create(folder).map_err(|e| {
            wrong(format!(
                "--jitdump={}: no file can be made there and mapped as code: {e}; name another folder",
                folder.display()
            ))
        })?;
        config.jit_dump = Some(Arc::new(dump));
    }
    let mut placing = None;
    if let Some(objects) = objects {
        let plan = plan(&objects.objects, file, &managed.bytes, &mut config)?;
        placing = Some((objects, plan));
    }
    let log = objects.and_then(|a| a.objects.pima_log.as_deref());
    let phases = log.map(phases::Log::open).transpose()?;
    let (placed, note) = match &placing {
        Some((a, plan)) => nodes::memory(a, plan, file)?,
        None => (None, None),
    };
    let program = managed;
    let timeout = Timeout::begin(a.sandbox.timeout, file);
    let engine = Engine::new(config);
    let module = Module::new(&engine, &program.bytes).map_err(|e| of(file, &e))?;
    let mut store = program
        .state(Console::inherit())
        .and_then(|state| nodes::store(&engine, state, placed.clone()))
        .map_err(|e| of(file, &e))?;
    note.iter().for_each(|line| crate::ui::message!("{line}"));
    if let Some(to) = &a.log.gc_log {
        log_collections(&mut store, to)?;
    }
    if let Some(mut log) = phases {
        store.on_phase(move |entry| log.line(entry));
    }
    if let Some(timeout) = &timeout {
        timeout.stops(store.interrupt());
    }
    let outcome = program.start(&mut store, &module);
    if let Some(lacks) = store.untold() {
        crate::ui::message!("note: {lacks}");
    }
    if let Some(a) = objects {
        unknown(&a.objects, unknown_sites(&mut store));
    }
    if a.medium.check_stats {
        crate::ui::message!("{}", super::durable::stats(&store));
    }
    if a.log.gc_stats {
        // Collections matter most for a program that failed.
        crate::ui::message!("{}", store.gc_stats());
        if objects.is_some() && placed.is_none() {
            crate::ui::message!("{}", plans::spaces(&store.gc_spaces()));
        }
    }
    // A program that failed has its own line.
    if let Some(placed) = placed.filter(|_| a.log.gc_stats || outcome.is_ok()) {
        nodes::tell(&store, &placed, a.log.gc_stats);
    }
    // As everywhere, what does not fit a byte loses its upper bits.
    if !matches!(outcome, Ok(0)) {
        sandbox::tell(&program, store.data().wasi.refused());
    }
    let closed = store.close();
    outcome
        .and_then(|code| closed.map(|()| ExitCode::from(code as u8)))
        .map_err(|e| ended(timeout.as_ref(), file, &e))
}

/// The plan that places the program's objects on this machine, and all that it goes by.
fn plan(a: &Objects, file: &str, bytes: &[u8], config: &mut Config) -> Result<Planned, Failure> {
    let Some(plan) = &a.plans.plan else {
        return Err(wrong(format!(
            "{file}: --live places objects by a heap plan: add one, such as --plan kg-n"
        )));
    };
    config.fast_max = match &a.plans.fast {
        None => None,
        Some(Fast::Size(bytes)) => Some(bytes.0),
        Some(fast @ Fast::Percent(_)) => {
            return Err(wrong(format!(
                "--fast {fast}: how much memory the program takes is known when it has run: give a size, such as --fast 64MiB; with \
                 --machine shares are possible"
            )));
        }
    };
    if config.fast_max.is_some() {
        config.save_memory();
    }
    config.profile = profile(a, file, bytes)?;
    let plan = plans::named(plan, config.profile.as_deref())?;
    plans::check_log(a.pima_log.is_some(), std::slice::from_ref(&plan.spec))?;
    config.plan = Some(plan.spec.clone());
    Ok(plan)
}

/// The failure of a program that may have been stopped.
pub fn ended(timeout: Option<&Timeout>, file: &str, error: &Error) -> Failure {
    let stopped = timeout.and_then(|timeout| timeout.failure(error));
    stopped.unwrap_or_else(|| of(file, error))
}

/// A program in a file, with what it is given.
pub fn program(
    file: &str,
    invoke: Option<&str>,
    words: &[OsString],
    sandbox: &Sandbox,
) -> Result<ManagedProgram, Failure> {
    let bytes = std::fs::read(file).map_err(|e| {
        wrong(format!(
            "{file}: {e}; name a WebAssembly module, such as those in programs/dist"
        ))
    })?;
    let arguments = words.iter().map(|w| w.as_encoded_bytes().to_vec());
    Ok(ManagedProgram {
        arguments: arguments.collect(),
        access: super::sandbox::access(sandbox)?,
        invoke: invoke.map(String::from),
        ..ManagedProgram::new(file, bytes)
    })
}

/// A program's name in reports and profiles.
pub fn name(file: &str) -> &str {
    file.rsplit('/').next().unwrap_or(file)
}

/// A program as a run asks for it.
pub fn managed(
    p: &WasmProgram,
    engine: &args::Engine,
    a: &Sandbox,
) -> Result<ManagedProgram, Failure> {
    program(&p.file, engine.invoke.as_deref(), &p.arguments, a)
}

/// The profile of the program that is to be run, if one was given.
pub fn profile(a: &Objects, file: &str, bytes: &[u8]) -> Result<Option<Arc<Profile>>, Failure> {
    let Some(path) = &a.plans.profile else {
        return Ok(None);
    };
    let known = ManagedProgram::new(file, bytes).known(path);
    known.map(|profile| Some(Arc::new(profile))).map_err(wrong)
}

/// Says how many allocation sites of what ran the profile does not know, of how many, if there is one.
pub fn unknown(a: &Objects, sites: Option<(usize, usize)>) {
    // A profile of this very run knows all that have objects.
    if let (Some(file), Some((unknown, all))) = (&a.plans.profile, sites)
        && unknown > 0
    {
        crate::ui::message!(
            "varve: {}: does not know {unknown} of the {all} allocation sites in the code that ran",
            file.display(),
        );
    }
}

/// One line per collection on standard error, or in a file.
fn log_collections(store: &mut Store<State>, to: &Path) -> Result<(), Failure> {
    let mut out: Box<dyn Write + Send> = match to.as_os_str() == "-" {
        true => Box::new(std::io::stderr()),
        false => Box::new(File::create(to).map_err(|e| {
            wrong(format!(
                "{}: {e}; name a file that can be written for --gc-log",
                to.display()
            ))
        })?),
    };
    let to = to.to_path_buf();
    let mut failed = false;
    store.on_collection(move |record| {
        // The program continues without its log, after one warning.
        if let Err(e) = writeln!(out, "{record}")
            && !std::mem::replace(&mut failed, true)
        {
            crate::ui::message!("{}: {e}; the log of collections ends here", to.display());
        }
    });
    Ok(())
}

/// Wrong input has exit code 2, a program that fails 1.
pub fn of(file: &str, e: &Error) -> Failure {
    let line = format!("{file}: {e}");
    match e {
        // Its reader went away, which is no failure of the program: `... | head`.
        Error::Output { error, .. } if error.kind() == std::io::ErrorKind::BrokenPipe => {
            Failure::Quiet(0)
        }
        Error::Trap(_)
        | Error::Exception { .. }
        | Error::Host(_)
        | Error::Output { .. }
        | Error::System(_) => failed(line),
        Error::Durable(e) => super::durable::failure(e),
        _ => wrong(line),
    }
}
