//! `varve run module.wasm`: runs a program of WebAssembly on the engine.

use super::timeout::Timeout;
use super::{managed, nodes, phases, plans, sandbox};
use crate::args::{RunArgs, Sandbox};
use crate::ui::{Done, Failure, failed, wrong};
use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use varve_machine::Bytes;
use varve_run::{ManagedProgram, unknown_sites};
use varve_runtime::host::{Console, State};
use varve_runtime::sites::Profile;
use varve_runtime::{Config, Engine, Error, Module, Store};

/// Whether the file begins as modules in binary form do, or is called like one.
pub fn is_wasm(file: &str) -> bool {
    let mut magic = [0; 4];
    let begins = File::open(file).and_then(|mut f| f.read_exact(&mut magic));
    (begins.is_ok() && magic == *b"\0asm") || file.ends_with(".wasm")
}

/// The nursery, as far as the user says.
fn sizes(a: &RunArgs, config: &mut Config) -> Result<(), Failure> {
    let most = a.nursery_max.map(|b| b.0);
    if let (Some(begin), Some(most)) = (a.nursery, most)
        && begin.0 > most
    {
        return Err(wrong(format!(
            "--nursery {begin} is more than --nursery-max {}: a nursery cannot begin larger than it may become",
            Bytes(most)
        )));
    }
    config.nursery_max = most.unwrap_or(config.nursery_max);
    config.nursery = a
        .nursery
        .map_or(config.nursery.min(config.nursery_max), |b| b.0)
        .min(config.heap_max);
    Ok(())
}

pub fn run(a: &RunArgs, file: &str) -> Done {
    if let Some((option, why)) = refused(a, a.machine.is_some()) {
        return Err(wrong(format!("{file}: {option} {why}: leave it out")));
    }
    let mut config = Config::default();
    heap_max(a.heap_max, &mut config);
    sizes(a, &mut config)?;
    config.tier = a.tier.unwrap_or_default();
    config.fast_max = a.fast_max.map(|b| b.0);
    let program = program(file, a.invoke.as_deref(), &a.command, &a.sandbox)?;
    config.profile = profile(a, file, &program.bytes)?;
    super::durable::configure(&a.durable, &mut config)?;
    if let Some(machine) = &a.machine {
        return managed::run(a, machine, config, program);
    }
    config.interruptible = a.sandbox.timeout.is_some();
    let plan = a.plan.as_deref();
    let plan = plan.map(|spec| plans::named(spec, config.profile.as_deref()));
    config.plan = plan.transpose()?;
    plans::check_log(a.pima_log.is_some(), config.plan.as_slice())?;
    let phases = a.pima_log.as_deref().map(phases::Log::open).transpose()?;
    let (placed, note) = nodes::memory(a, file)?;
    let timeout = Timeout::begin(a.sandbox.timeout, file);
    let engine = Engine::new(config);
    let module = Module::new(&engine, &program.bytes).map_err(|e| of(file, &e))?;
    let mut store = program
        .state(Console::inherit())
        .and_then(|state| nodes::store(&engine, state, placed.clone()))
        .map_err(|e| of(file, &e))?;
    note.iter().for_each(|line| eprintln!("{line}"));
    if let Some(to) = &a.gc_log {
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
        eprintln!("note: {lacks}");
    }
    unknown(a, unknown_sites(&mut store));
    if a.durable.check_stats {
        eprintln!("{}", super::durable::stats(&store));
    }
    if a.gc_stats {
        // A program that failed is the one whose collections are looked at.
        eprintln!("{}", store.gc_stats());
        if a.plan.is_some() && placed.is_none() {
            eprintln!("{}", plans::spaces(&store.gc_spaces()));
        }
    }
    // A program that failed has its own line.
    if let Some(placed) = placed.filter(|_| a.gc_stats || outcome.is_ok()) {
        nodes::tell(&store, &placed, a.gc_stats);
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

/// Linear memory that a program may have in any case: managed programs have some, however small their heaps are.
const LEAST_LINEAR: u64 = 16 << 20;

/// The memory that a program may have, if the user says it: as much for its objects as for its linear memories and tables.
pub fn heap_max(asked: Option<Bytes>, config: &mut Config) {
    if let Some(Bytes(most)) = asked {
        (config.heap_max, config.linear_max) = (most, most.max(LEAST_LINEAR));
    }
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

/// What a program is called in reports and profiles.
pub fn name(file: &str) -> &str {
    file.rsplit('/').next().unwrap_or(file)
}

/// The profile of the program that is to be run, if one was given.
fn profile(a: &RunArgs, file: &str, bytes: &[u8]) -> Result<Option<Arc<Profile>>, Failure> {
    let Some(path) = &a.profile else {
        return Ok(None);
    };
    let profile = Profile::read(path).map_err(wrong)?;
    let module = Module::new(&Engine::default(), bytes).map_err(|e| of(file, &e))?;
    let fits = module.check_profile(&profile, &path.display().to_string(), name(file));
    fits.map_err(wrong)?;
    Ok(Some(Arc::new(profile)))
}

/// Says how many allocation sites of what ran the profile does not know, of how many, if there is one.
pub fn unknown(a: &RunArgs, sites: Option<(usize, usize)>) {
    if let Some((unknown, all)) = sites.filter(|s| s.0 > 0) {
        eprintln!(
            "varve: {}: does not know {unknown} of the {all} allocation sites in the code that ran",
            a.profile.as_deref().unwrap_or(Path::new("")).display(),
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
        // The program goes on without its log, and somebody is told, once.
        if let Err(e) = writeln!(out, "{record}")
            && !std::mem::replace(&mut failed, true)
        {
            eprintln!("{}: {e}; the log of collections ends here", to.display());
        }
    });
    Ok(())
}

/// An option that was given, not as its default says, and means nothing here; and why.
fn refused(a: &RunArgs, on_model: bool) -> Option<(&'static str, &'static str)> {
    const NEVER: &str = "means nothing to a WebAssembly program";
    const MODEL: &str = "means something on a modelled machine only, such as --machine optane-6242";
    const PLAN: &str =
        "means something with a heap plan that goes by it only, such as --plan cgz-f";
    const REAL: &str = "means something without a modelled machine only";
    [
        (a.policy != "all", "--policy", NEVER),
        (a.scale.is_some(), "--scale", NEVER),
        (a.cores != 0, "--cores", NEVER),
        (a.until.is_some(), "--until", NEVER),
        (
            a.fast_max.is_some() && a.plan.is_none() && !on_model,
            "--fast-max",
            "means something with a --plan of two memories only",
        ),
        (!on_model && a.page.is_some(), "--page", MODEL),
        (
            !on_model && a.profile.is_some() && a.plan.is_none(),
            "--profile",
            PLAN,
        ),
        (!on_model && a.seed != 1, "--seed", MODEL),
        (!on_model && a.json, "--json", MODEL),
        (!on_model && a.out.is_some(), "--out", MODEL),
        (!on_model && a.jobs != 0, "--jobs", MODEL),
        (!on_model && a.instances.is_some(), "--instances", MODEL),
        (!on_model && a.numa.is_some(), "--numa", MODEL),
        (a.bins.is_some(), "--bins", NEVER),
        (a.ways != 1, "--ways", NEVER),
        (a.count_only, "--count-only", NEVER),
        (on_model && a.live, "--live", REAL),
        (on_model && a.nodes.is_some(), "--nodes", REAL),
        (on_model && a.gc_log.is_some(), "--gc-log", REAL),
        (on_model && a.gc_stats, "--gc-stats", REAL),
        (on_model && a.durable.domain.is_some(), "--domain", REAL),
        (on_model && a.durable.sync.is_some(), "--sync", REAL),
        (on_model && a.durable.check_stats, "--check-stats", REAL),
    ]
    .into_iter()
    .find_map(|(given, name, why)| given.then_some((name, why)))
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
