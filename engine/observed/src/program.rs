//! A managed program, and its start.

use super::access::Access;
use crate::SourceMap;
use std::collections::HashSet;
use std::io::{Cursor, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;
use varve_runtime::host::{
    Console, Input, Output, State, Wasi, js_string, placement, teavm, toolchains, wasi,
};
use varve_runtime::{
    Clock, Config, Engine, Error, GcStats, Linker, Module, PimaEntry, Sink, Store, Val, ValType,
};
use varve_sites::{Key, Profile, SitesFile};

/// The default seed of random numbers.
pub const SEED: u64 = 1;

/// A program and its inputs.
#[derive(Clone, Debug)]
pub struct ManagedProgram {
    /// The module's file, which is also its argument 0.
    pub file: String,
    /// The module.
    pub bytes: Arc<[u8]>,
    /// Its arguments.
    pub arguments: Vec<Vec<u8>>,
    /// The parts of the system that it may access.
    pub access: Access,
    /// An export to call instead of its main function; the arguments are then those of the call.
    pub invoke: Option<String>,
    /// Its standard input.
    pub input: Arc<[u8]>,
    /// Its clock that never goes back shows for how long processors ran its thread: for measurements beside other work.
    pub processor_time: bool,
}

/// The results of a program that ran on this machine.
pub struct HostRun {
    /// Persistence checks, if they were counted.
    pub checks: Option<varve_runtime::CheckStats>,
    /// Baseline code's counts of the places that check.
    pub sites: varve_runtime::SiteStats,
    /// The counters of the durable region, if there was one.
    pub durable: Option<varve_runtime::DurableStats>,
    /// Standard output.
    pub out: Vec<u8>,
    /// Standard error.
    pub err: Vec<u8>,
}

/// How an observed program ended.
pub struct End {
    /// Its exit code.
    pub code: i32,
    /// The statistics of its collector.
    pub stats: GcStats,
    /// The phases of a plan that samples.
    pub phases: Vec<PimaEntry>,
    /// When the program's first interval had ended, if it reports any.
    pub first_interval: Option<Duration>,
    /// The input that the plan needs and the program has not reported.
    pub untold: Option<String>,
    /// The number of executed allocation sites that the profile, if there is one, does not know, and of all executed ones.
    pub unknown: Option<(usize, usize)>,
    /// Its standard output.
    pub out: Vec<u8>,
    /// Its standard error.
    pub err: Vec<u8>,
}

/// A program that failed.
pub struct Failed {
    /// Why.
    pub error: Box<Error>,
    /// Its standard error by then.
    pub err: Vec<u8>,
    /// The phases of a plan that samples, by then.
    pub phases: Vec<PimaEntry>,
}

/// Bytes that a program wrote, in a place that outlives it.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<u8>>>);

impl Kept {
    fn take(&self) -> Vec<u8> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(|e| e.into_inner()))
    }
}

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let mut kept = self.0.lock().unwrap_or_else(|e| e.into_inner());
        kept.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Keeps output after passing it to another receiver.
struct Heard<F>(Kept, F);

impl<F: FnMut(&[u8])> Write for Heard<F> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        (self.1)(bytes);
        self.0.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl ManagedProgram {
    /// A program that is started by its main function, without arguments or input.
    pub fn new(file: &str, bytes: impl Into<Arc<[u8]>>) -> ManagedProgram {
        ManagedProgram {
            file: file.into(),
            bytes: bytes.into(),
            arguments: Vec::new(),
            access: Access::default(),
            invoke: None,
            input: Arc::new([]),
            processor_time: false,
        }
    }

    /// The same with arguments.
    pub fn with_arguments<'a>(
        mut self,
        arguments: impl IntoIterator<Item = &'a str>,
    ) -> ManagedProgram {
        self.arguments = arguments.into_iter().map(|a| a.as_bytes().into()).collect();
        self
    }

    /// The file's name without its folder.
    pub fn name(&self) -> &str {
        self.file.rsplit('/').next().unwrap_or(&self.file)
    }

    /// The program's environment: its console, its arguments, and the parts of the system that it may access.
    ///
    /// # Errors
    /// A folder that cannot be opened.
    pub fn state(&self, console: Console) -> Result<State, Error> {
        let mut wasi = Wasi::new().arg(&*self.file);
        for word in &self.arguments {
            wasi = wasi.arg(word.as_slice());
        }
        Ok(State {
            console,
            wasi: self.access.grant(wasi)?,
            clock: match self.processor_time {
                true => Clock::processor(),
                false => Clock::default(),
            },
        })
    }

    /// The same, but its clocks count their reads, and random numbers are a sequence given by the seed: each run is the same.
    ///
    /// # Errors
    /// As there.
    pub fn repeatable(&self, console: Console, seed: u64) -> Result<State, Error> {
        let state = self.state(console)?;
        Ok(State {
            wasi: state.wasi.seed(seed),
            clock: Clock::counted(),
            ..state
        })
    }

    /// Runs the program's main function, or the export that is asked for; its exit code.
    ///
    /// # Errors
    /// A module that is no program, and the program's errors.
    pub fn start(&self, store: &mut Store<State>, module: &Module) -> Result<i32, Error> {
        let (file, bytes) = (PathBuf::from(&self.file), Arc::clone(&self.bytes));
        // Read when it is first asked. Of a damaged map there are no lines; `varve profile` says what is wrong with it.
        let map = OnceLock::new();
        store.source_lines(move |offset| {
            let map = map.get_or_init(|| SourceMap::of(&file, &bytes).ok().flatten());
            map.as_ref()?.line(offset)
        });
        let texts: Vec<String> = self
            .arguments
            .iter()
            .map(|a| String::from_utf8_lossy(a).into_owned())
            .collect();
        match &self.invoke {
            Some(name) => invoke(store, module, name, &texts),
            None => main(store, module, &texts),
        }
    }

    /// A profile from a file, which a plan for the program's objects uses.
    ///
    /// # Errors
    /// A line: it cannot be read, or is of another program; the module is none.
    pub fn known(&self, profile: &Path) -> Result<Profile, String> {
        let known = Profile::read(profile).map_err(|e| e.to_string())?;
        let module = Module::new(&Engine::default(), &self.bytes)
            .map_err(|e| format!("{}: {e}", self.file))?;
        let fits = module.check_profile(&known, &profile.display().to_string(), self.name());
        fits.map(|()| known).map_err(|e| e.to_string())
    }

    /// Whether the program can report intervals of its work, which some plans go by.
    pub fn reports_intervals(&self) -> bool {
        let module = Module::new(&Engine::default(), &self.bytes);
        module.is_ok_and(|module| {
            let mut imports = module.imports();
            imports.any(|(module, name, _)| (module, name) == ("varve", "interval"))
        })
    }

    /// The program's accesses to the objects of each of its allocation sites: the same every time, if nothing is compiled in the background.
    ///
    /// # Errors
    /// A module that is no program, and the program's errors.
    pub fn profile(&self, config: Config) -> Result<Profile, Error> {
        let engine = Engine::new(config);
        let module = Module::new(&engine, &self.bytes)?;
        let console = Console {
            input: Input::new(Box::new(Cursor::new(Arc::clone(&self.input)))),
            out: Output::new(Box::new(std::io::sink())),
            err: Output::new(Box::new(std::io::sink())),
        };
        let mut store: Store<State> = Store::profiled(&engine, self.repeatable(console, SEED)?)?;
        self.start(&mut store, &module)?;
        Ok(store.profile(self.name()).unwrap_or_default())
    }

    /// Runs the program to its end on this machine at full speed, and returns its output and the counters of its engine.
    ///
    /// # Errors
    /// A module that is no program, the program's errors, and an exit code that is not 0.
    pub fn ran(&self, config: Config) -> Result<HostRun, Error> {
        self.ran_heard(config, |_| {})
    }

    /// The same, and `hear` receives the program's standard error at once.
    ///
    /// # Errors
    /// As [`ManagedProgram::ran`].
    pub fn ran_heard(
        &self,
        config: Config,
        hear: impl FnMut(&[u8]) + Send + 'static,
    ) -> Result<HostRun, Error> {
        let (out, err) = (Kept::default(), Kept::default());
        let engine = Engine::new(config);
        let module = Module::new(&engine, &self.bytes)?;
        let console = Console {
            input: Input::new(Box::new(Cursor::new(Arc::clone(&self.input)))),
            out: Output::new(Box::new(out.clone())),
            err: Output::new(Box::new(Heard(err.clone(), hear))),
        };
        let mut store: Store<State> = Store::new(&engine, self.state(console)?)?;
        let code = self.start(&mut store, &module)?;
        if code != 0 {
            let said = String::from_utf8_lossy(&err.take()).into_owned();
            let line = said.lines().last().unwrap_or_default().to_string();
            return Err(Error::Usage(format!(
                "{} ended with code {code}: {line}",
                self.file
            )));
        }
        Ok(HostRun {
            checks: store.check_stats(),
            sites: store.check_sites(),
            durable: store.durable_stats().map(|(stats, _)| stats),
            out: out.take(),
            err: err.take(),
        })
    }

    /// Runs the program to its end and passes all its accesses to `sink`. Its random numbers are those of the seed.
    pub fn observed(&self, config: Config, seed: u64, sink: Box<dyn Sink>) -> Result<End, Failed> {
        let (out, err) = (Kept::default(), Kept::default());
        let mut phases = Vec::new();
        let end = self.run(config, seed, sink, (&out, &err), &mut phases);
        end.map_err(|error| Failed {
            error: Box::new(error),
            err: err.take(),
            phases,
        })
    }

    fn run(
        &self,
        config: Config,
        seed: u64,
        sink: Box<dyn Sink>,
        (out, err): (&Kept, &Kept),
        phases: &mut Vec<PimaEntry>,
    ) -> Result<End, Error> {
        let engine = Engine::new(config);
        let module = Module::new(&engine, &self.bytes)?;
        let console = Console {
            input: Input::new(Box::new(Cursor::new(Arc::clone(&self.input)))),
            out: Output::new(Box::new(out.clone())),
            err: Output::new(Box::new(err.clone())),
        };
        let mut store = Store::observed(&engine, self.repeatable(console, seed)?, sink)?;
        store.data_mut().clock = store.clock();
        let code = self.start(&mut store, &module);
        let told = store.tell();
        *phases = store.phases().to_vec();
        let code = match (code, told) {
            // The model takes no more accesses: it has reached its end, or has an error of its own.
            (Err(Error::Unobserved), _) => 0,
            (Ok(code), Err(Error::Unobserved)) => code,
            (code, told) => {
                let code = code?;
                told?;
                code
            }
        };
        Ok(End {
            code,
            stats: store.gc_stats(),
            phases: std::mem::take(phases),
            first_interval: store.first_interval(),
            untold: store.untold(),
            unknown: unknown_sites(&mut store),
            out: out.take(),
            err: err.take(),
        })
    }
}

/// The number of executed allocation sites that the store's profile, if there is one, does not know, and of all executed ones.
pub fn unknown_sites(store: &mut Store<State>) -> Option<(usize, usize)> {
    let profile = store.engine().config().profile.clone()?;
    let known: HashSet<&Key> = profile.sites.iter().map(|site| &site.key).collect();
    let all = store.allocation_sites();
    let unknown = all.iter().filter(|key| !known.contains(key)).count();
    Some((unknown, all.len()))
}

fn main(store: &mut Store<State>, module: &Module, arguments: &[String]) -> Result<i32, Error> {
    let code = if teavm::is_teavm(module) {
        teavm::run_main(store, module, arguments)?
    } else if wasi::is_command(module) {
        wasi::run_command(store, module)?
    } else {
        return Err(Error::Usage(format!(
            "the module is no program of a known toolchain (TeaVM, WASI); call an export with --invoke NAME: it has {}",
            names(module)
        )));
    };
    Ok(code)
}

fn names(module: &Module) -> String {
    let names: Vec<_> = module
        .exports()
        .take(20)
        .map(|n| format!("`{n}`"))
        .collect();
    match names.len() {
        0 => "none".into(),
        _ => names.join(", "),
    }
}

fn invoke(
    store: &mut Store<State>,
    module: &Module,
    name: &str,
    arguments: &[String],
) -> Result<i32, Error> {
    let mut linker = Linker::new(module.engine());
    if teavm::is_teavm(module) {
        teavm::link(&mut linker, &mut *store, module)?;
    } else {
        if wasi::is_used(module) {
            wasi::link(&mut linker, None);
        }
        placement::link(&mut linker);
        toolchains::link(&mut linker);
        js_string::link(&mut linker, store, module)?;
    }
    let instance = linker.instantiate(&mut *store, module)?;
    let func = instance.get_func(&mut *store, name).ok_or_else(|| {
        Error::Usage(format!(
            "the module exports no function `{name}`; it exports {}",
            names(module)
        ))
    })?;
    let ty = func.ty(&mut *store)?;
    if ty.params.len() != arguments.len() {
        return Err(Error::Usage(format!(
            "`{name}` has type {ty}: give {} arguments after `--`, not {}",
            ty.params.len(),
            arguments.len()
        )));
    }
    let values = ty
        .params
        .iter()
        .zip(arguments)
        .map(|(&t, a)| value(t, a))
        .collect::<Result<Vec<_>, _>>()?;
    let mut results: Vec<Val> = ty.results.iter().map(|&t| Val::zero(t)).collect();
    let outcome = func.call(&mut *store, &values, &mut results);
    store.data_mut().console.flush()?;
    if let Err(Error::Exit(code)) = outcome {
        return Ok(code);
    }
    outcome?;
    let lines: String = results.iter().map(|r| text(r) + "\n").collect();
    let out = &mut store.data_mut().console.out;
    out.text(&lines).map_err(|error| Error::Output {
        stream: "standard output",
        error,
    })?;
    Ok(0)
}

/// An argument as a value of a type.
fn value(ty: ValType, text: &str) -> Result<Val, Error> {
    let wrong = |_| Error::Usage(format!("argument `{text}` is no {ty}"));
    match ty {
        // Unsigned numbers mean the same bits.
        ValType::I32 => text
            .parse()
            .or_else(|_| text.parse::<u32>().map(|v| v as i32))
            .map(Val::I32)
            .map_err(|_| wrong(())),
        ValType::I64 => text
            .parse()
            .or_else(|_| text.parse::<u64>().map(|v| v as i64))
            .map(Val::I64)
            .map_err(|_| wrong(())),
        ValType::F32 => text.parse().map(Val::f32).map_err(|_| wrong(())),
        ValType::F64 => text.parse().map(Val::f64).map_err(|_| wrong(())),
        ValType::V128 => match text.strip_prefix("0x") {
            Some(digits) => u128::from_str_radix(digits, 16)
                .map(Val::V128)
                .map_err(|_| wrong(())),
            None => text.parse().map(Val::V128).map_err(|_| wrong(())),
        },
        ValType::Ref(_) if text == "null" => Ok(Val::zero(ty)),
        ValType::Ref(_) => Err(Error::Usage(format!(
            "argument `{text}`: of type {ty}, only `null` can be given"
        ))),
    }
}

fn text(v: &Val) -> String {
    match v {
        Val::I32(v) => v.to_string(),
        Val::I64(v) => v.to_string(),
        Val::F32(b) => f32::from_bits(*b).to_string(),
        Val::F64(b) => f64::from_bits(*b).to_string(),
        Val::V128(v) => format!("{v:#034x}"),
        Val::FuncRef(None) | Val::AnyRef(None) | Val::ExternRef(None) | Val::ExnRef(None) => {
            "null".into()
        }
        Val::FuncRef(_) => "funcref".into(),
        Val::AnyRef(_) => "anyref".into(),
        Val::ExternRef(_) => "externref".into(),
        Val::ExnRef(_) => "exnref".into(),
    }
}
