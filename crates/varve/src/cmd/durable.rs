//! Objects that survive: how a program's region is set up, and `varve durable`.

use crate::args::durable::{Domain, Sync};
use crate::args::{DurableCommand, DurableRun};
use crate::ui::{Done, Failure, failed, print, wrong};
use serde_json::json;
use std::fmt::Write as _;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;
use varve_durable::{Error, Inspection, Lock, replace, rewritten};
use varve_runtime::host::State;
use varve_runtime::{Checks, Config, DurableFile, Medium, Store};

/// What the command line says of durable objects and checks, as the engine's settings.
pub fn configure(a: &DurableRun, config: &mut Config) -> Result<(), Failure> {
    config.checks = a.checks;
    config.count_checks = a.check_stats;
    let Some(path) = &a.durable else {
        return Ok(());
    };
    if a.checks == Some(Checks::None) {
        return Err(wrong(
            "--checks none: without checks no object can survive; leave it out, or --durable",
        ));
    }
    let medium = match (a.domain, a.sync) {
        (None, None) => Medium::Best,
        (Some(Domain::Dax), None) => Medium::Dax,
        (Some(Domain::Memory), None) => Medium::Memory,
        (Some(Domain::File) | None, Some(Sync::Every(interval))) => Medium::File(Some(interval)),
        (Some(Domain::File) | None, _) => Medium::File(None),
        (Some(_), Some(_)) => {
            return Err(wrong(
                "--sync means something with --domain file only: leave it out",
            ));
        }
    };
    config.durable = Some(DurableFile {
        path: path.clone(),
        medium,
    });
    Ok(())
}

/// What checks and the region did.
pub fn stats(store: &Store<State>) -> String {
    let mut text = String::new();
    if let Some(checks) = store.check_stats() {
        let (all, activated) = checks.total();
        let share = |n: u64| 100.0 * n as f64 / all.max(1) as f64;
        let _ = writeln!(
            text,
            "checks: {all}, activated {activated} ({:.3} %)",
            share(activated)
        );
        let names = ["likely", "unbiased", "unlikely", "very unlikely"];
        let rows = names.iter().zip(checks.optimized);
        for (name, (b, a)) in rows.chain([(&"baseline code", checks.baseline)]) {
            let _ = writeln!(
                text,
                "  {name:<14} {:>12}  {:6.2} %, activated {a}",
                a + b,
                share(a + b)
            );
        }
        let sites = store.check_sites();
        let _ = writeln!(
            text,
            "sites: {} never activated, {} sometimes, {} always; {} checked too seldom to say",
            sites.never,
            sites.sometimes,
            sites.always,
            sites.all() - sites.known()
        );
    }
    let compiled = store.compiler_stats();
    let _ = writeln!(
        text,
        "compiled: {} baseline, {} optimized, {} guards failed, {} given up",
        compiled.baseline, compiled.optimized, compiled.failed_guards, compiled.given_up
    );
    if let Some((s, _)) = store.durable_stats() {
        let _ = writeln!(
            text,
            "region: {} objects became durable ({} bytes), {} stores, {} regions, {} taken back, {} lines logged, {} fences, {} collections",
            s.moved,
            s.moved_bytes,
            s.stores,
            s.regions,
            s.taken_back,
            s.logged,
            s.fences,
            s.collections
        );
    }
    text.trim_end().to_string()
}

/// An error of a region with its exit code: 2 for a file that does not fit, 1 for what went wrong with one that does.
pub fn failure(e: &Error) -> Failure {
    match e {
        Error::Io { .. } | Error::Full { .. } | Error::Refused { .. } | Error::Usage(_) => {
            failed(e)
        }
        _ => wrong(e),
    }
}

pub fn durable(command: &DurableCommand) -> Done {
    let done = match command {
        DurableCommand::Check { file, json } => check(file, *json),
        DurableCommand::Info { file, json } => info(file, *json),
        DurableCommand::Compact { file } => compact(file),
        DurableCommand::Export { file, root } => export(file, root.as_deref()),
    };
    done.unwrap_or_else(|e| {
        let line = failure(&e);
        Err(match (&e, line) {
            // A file that is not there is wrong input.
            (Error::Io { .. }, _) => wrong(&e),
            (_, line) => line,
        })
    })
}

type Outcome = Result<Done, Error>;

fn check(file: &Path, as_json: bool) -> Outcome {
    let region = Inspection::of_file(file)?;
    let damages = &region.walk.damages;
    if as_json {
        let all = damages
            .iter()
            .map(|d| json!({"at": d.at, "what": d.what, "from": d.from}));
        print(format!(
            "{:#}\n",
            json!({
                "objects": region.walk.objects.len(),
                "bytes": region.walk.bytes,
                "taken_back": region.taken_back,
                "damages": all.collect::<Vec<_>>(),
            })
        ));
    } else {
        let mut text = String::new();
        for d in damages {
            let _ = writeln!(text, "{d}");
        }
        let _ = writeln!(
            text,
            "{}: {} objects, {} bytes, {}",
            file.display(),
            region.walk.objects.len(),
            region.walk.bytes,
            match damages.len() {
                0 => "whole".to_string(),
                n => format!("{n} damaged references"),
            }
        );
        if region.taken_back > 0 {
            let _ = writeln!(
                text,
                "a failure-atomic region was not over: opening takes back {} cache lines",
                region.taken_back
            );
        }
        print(&text);
    }
    Ok(Ok(match damages.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(1),
    }))
}

fn info(file: &Path, as_json: bool) -> Outcome {
    let region = Inspection::of_file(file)?;
    let walk = &region.walk;
    let mut types: Vec<(u64, u64, String)> = walk
        .by_type
        .iter()
        .enumerate()
        .filter(|(_, c)| c.0 > 0)
        .map(|(i, &(objects, bytes))| (bytes, objects, region.tables.name(i as u32)))
        .collect();
    types.sort_by(|a, b| b.cmp(a));
    if as_json {
        let roots: Vec<_> = region.roots.iter().map(|r| r.name.clone()).collect();
        let by_type = types.iter().map(
            |(bytes, objects, name)| json!({"type": name, "objects": objects, "bytes": bytes}),
        );
        print(format!(
            "{:#}\n",
            json!({
                "version": varve_durable::layout::VERSION,
                "file_bytes": region.image.len(),
                "objects": walk.objects.len(),
                "bytes": walk.bytes,
                "opened": region.commit.opened,
                "closed": region.commit.closed,
                "domain": region.commit.domain,
                "roots": roots,
                "types": by_type.collect::<Vec<_>>(),
                "damages": walk.damages.len(),
            })
        ));
        return Ok(Ok(ExitCode::SUCCESS));
    }
    let mut text = String::new();
    let _ = writeln!(
        text,
        "{}: format {}, {} bytes, opened {} times, {} ({})",
        file.display(),
        varve_durable::layout::VERSION,
        region.image.len(),
        region.commit.opened,
        match region.commit.closed {
            true => "closed in order",
            false => "open now, or not closed in order",
        },
        region.commit.domain
    );
    let _ = writeln!(text, "{} objects, {} bytes", walk.objects.len(), walk.bytes);
    for root in &region.roots {
        let _ = writeln!(text, "root \"{}\"", root.name);
    }
    for (bytes, objects, name) in types.iter().take(20) {
        let _ = writeln!(text, "{objects:>10} {bytes:>12}  {name}");
    }
    if types.len() > 20 {
        let _ = writeln!(text, "and {} more types", types.len() - 20);
    }
    print(&text);
    Ok(Ok(ExitCode::SUCCESS))
}

fn compact(file: &Path) -> Outcome {
    let _lock = Lock::take(file)?;
    let region = Inspection::of_file(file)?.whole()?;
    let before = region.image.len();
    let bytes = rewritten(&region, &region.tables)?;
    replace(file, &bytes)?;
    print(format!(
        "{}: {before} bytes before, {} now, {} objects\n",
        file.display(),
        bytes.len(),
        region.walk.objects.len()
    ));
    Ok(Ok(ExitCode::SUCCESS))
}

fn export(file: &Path, root: Option<&str>) -> Outcome {
    let region = Inspection::of_file(file)?;
    if let Some(name) = root
        && !region.roots.iter().any(|r| r.name == name)
    {
        let names: Vec<_> = region.roots.iter().map(|r| r.name.as_str()).collect();
        return Ok(Err(wrong(format!(
            "{}: no root \"{name}\"; there are: {}",
            file.display(),
            names.join(", ")
        ))));
    }
    let mut out = BufWriter::new(std::io::stdout().lock());
    let written = region.export(root, &mut out).and_then(|()| out.flush());
    Ok(match written {
        Ok(()) => Ok(ExitCode::SUCCESS),
        // Whoever reads has seen enough.
        Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => Ok(ExitCode::SUCCESS),
        Err(e) => Err(failed(format!("standard output: {e}"))),
    })
}
