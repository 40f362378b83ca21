//! `varve profile program.wasm -o p.sites -- ARGUMENTS`: counts what a program does to the objects of each allocation site.

use super::timeout::Timeout;
use super::{files, java_profile, native_profile, native_sampled, profiles, sandbox, wasm};
use crate::args::ProfileArgs;
use crate::args::run::job::RunSubject;
use crate::ui::{self, Done, wrong};
use indicatif::ProgressBar;
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;
use varve_observed::{ManagedProgram, SEED, SourceMap};
use varve_report::fmt;
use varve_runtime::host::{Console, Output, State};
use varve_runtime::{Config, Engine, Error, Module, Store};
use varve_sites::Profile;

pub fn profile(a: &ProfileArgs) -> Done {
    if java_profile::is_meant(a)? {
        return java_profile::profile(a);
    }
    if a.live.live {
        return native_sampled::profile(a);
    }
    for (given, option) in [
        (a.live.pid.is_some(), "--pid"),
        (a.live.time.is_some(), "--for"),
    ] {
        if given {
            return Err(wrong(format!(
                "{option} is for programs that are sampled: add --live; a Java virtual machine is known by itself, or by --java"
            )));
        }
    }
    if let Some(tool) = a.from {
        return native_profile::import(tool, a);
    }
    let native = match &a.program {
        None if a.command.is_empty() => {
            return Err(wrong(
                "nothing to profile: name a WebAssembly program or a trace, or write `varve profile -o FILE.sites -- COMMAND`",
            ));
        }
        None => RunSubject::Command(a.command.clone()),
        Some(file) if files::is_wasm(file) => return managed(file, a),
        Some(file) => RunSubject::Named(file.clone()),
    };
    let usual = |given: bool, option: &str| match given {
        true => Err(wrong(format!(
            "{option} is for WebAssembly programs, and this is a native one: leave it out"
        ))),
        false => Ok(()),
    };
    usual(a.invoke.is_some(), "--invoke")?;
    usual(a.heap_max.is_some(), "--heap-max")?;
    usual(a.nursery.is_some(), "--nursery")?;
    usual(a.tier.is_some(), "--tier")?;
    if let (RunSubject::Named(file), [word, ..]) = (&native, &a.command[..]) {
        return Err(wrong(format!(
            "{file} is not a WebAssembly program, and takes no arguments: leave `-- {}` out; for a command leave `{file}` out",
            word.to_string_lossy()
        )));
    }
    native_profile::profile(&native, a)
}

fn managed(file: &str, a: &ProfileArgs) -> Done {
    if a.machine.is_some() {
        return Err(wrong(
            "--machine is for native programs: what a WebAssembly program does to its objects is counted as it runs; leave it out",
        ));
    }
    if a.sample.is_some() || a.whole {
        return Err(wrong(
            "--sample and --whole are for native programs: of a WebAssembly program all of the run is counted as it runs; leave them out",
        ));
    }
    let program = wasm::name(file);
    let managed = wasm::program(file, a.invoke.as_deref(), &a.command, &a.sandbox)?;
    let before: Option<Profile> = profiles::before(a)?;
    let timeout = Timeout::begin(a.sandbox.timeout, file);
    let engine = Engine::new(config(a));
    let module = Module::new(&engine, &managed.bytes).map_err(|e| wasm::of(file, &e))?;
    if let Some(before) = &before {
        let shown = a.output.display().to_string();
        let fits = module.check_profile(before, &shown, program);
        fits.map_err(wrong)?;
    }
    let bar = ui::spinner("profiling");
    let outcome = run(&managed, &engine, &module, &bar, timeout.as_ref());
    bar.finish_and_clear();
    let (code, mut profile) = outcome.map_err(|e| wasm::ended(timeout.as_ref(), file, &e))?;
    profile.program = program.into();
    add_lines(&mut profile, &managed);
    let profile = profiles::keep(a, before, profile)?;
    say(file, a, &profile);
    Ok(code)
}

fn config(a: &ProfileArgs) -> Config {
    let usual = Config::default();
    let mut config = Config {
        interruptible: a.sandbox.timeout.is_some(),
        tier: a.tier.unwrap_or_default(),
        // The same input gives the same profile.
        background: false,
        ..usual
    };
    varve_observed::request::limit_heap(a.heap_max, &mut config);
    let nursery = a.nursery.map_or(config.nursery, |b| b.0);
    config.nursery = nursery.min(config.heap_max);
    config
}

/// Adds source lines, where a source map knows them. Without a map that can be read there are none, and nothing else is missing.
fn add_lines(profile: &mut Profile, managed: &ManagedProgram) {
    match SourceMap::of(Path::new(&managed.file), &managed.bytes) {
        Ok(map) => {
            for site in &mut profile.sites {
                site.line = map.as_ref().and_then(|map| map.line(site.offset));
            }
        }
        Err(e) => crate::ui::message!("no source lines: {e}"),
    }
}

/// Runs the program to its end.
fn run(
    program: &ManagedProgram,
    engine: &Engine,
    module: &Module,
    bar: &ProgressBar,
    timeout: Option<&Timeout>,
) -> Result<(ExitCode, Profile), Error> {
    let state = program.repeatable(console(bar), SEED)?;
    let mut store: Store<State> = Store::profiled(engine, state)?;
    let shown = bar.clone();
    let mut collections = 0;
    store.on_collection(move |_| {
        collections += 1;
        shown.set_message(format!("{collections} collections"));
    });
    if let Some(timeout) = timeout {
        timeout.stops(store.interrupt());
    }
    let outcome = program.start(&mut store, module);
    if !matches!(outcome, Ok(0)) {
        bar.suspend(|| sandbox::tell(program, store.data().wasi.refused()));
    }
    let code = outcome?;
    let profile = store.profile(program.name());
    Ok((
        ExitCode::from(code as u8),
        profile.expect("the store is profiled"),
    ))
}

/// The process's own streams; on a terminal the progress makes room for what the program prints.
fn console(bar: &ProgressBar) -> Console {
    let inherited = Console::inherit();
    if !std::io::stderr().is_terminal() {
        return inherited;
    }
    let around = |to: Box<dyn Write + Send>| {
        let bar = bar.clone();
        Output::new(Box::new(Around { bar, to }))
    };
    Console {
        out: around(Box::new(std::io::stdout())),
        err: around(Box::new(std::io::stderr())),
        ..inherited
    }
}

/// A stream beside a progress bar.
struct Around {
    bar: ProgressBar,
    to: Box<dyn Write + Send>,
}

impl Write for Around {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let to = &mut self.to;
        self.bar
            .suspend(|| to.write_all(bytes).and_then(|()| to.flush()))
            .map(|()| bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.to.flush()
    }
}

/// One line about what was counted, where the program's own output is not.
fn say(program: &str, a: &ProfileArgs, profile: &Profile) {
    let sum = |of: fn(&varve_sites::Counts) -> u64| {
        let all = profile.sites.iter().map(|s| of(&s.counts));
        all.fold(0u64, u64::saturating_add)
    };
    let made = profile.sites.iter().filter(|s| s.counts.objects > 0);
    let shown = a.output.display();
    crate::ui::message!(
        "varve: {shown}: {} allocation sites with objects; {} objects, {}, {} reads, {} writes",
        made.count(),
        fmt::integer(sum(|c| c.objects) as f64),
        fmt::bytes(sum(|c| c.bytes) as f64),
        fmt::integer(sum(|c| c.reads) as f64),
        fmt::integer(sum(|c| c.writes) as f64),
    );
    let (file, program) = (ui::quoted(&shown.to_string()), ui::quoted(program));
    crate::ui::message!(
        "varve: `varve sites {file}` shows them, `varve run {program} --profile {file} --plan cgz-f` uses them"
    );
}
