//! Objects that survive: how a program's region is set up, and `varve durable`.

use crate::args::DurableCommand;
use crate::args::medium::{Domain, Sync};
use crate::args::run::region::{self as args, Region};
use crate::ui::{self, Done, Failure, failed, wrong};
use serde_json::json;
use std::fmt::Write as _;
use std::io::{BufWriter, ErrorKind, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::time::Duration;
use varve_durable::{Error, Inspection};
use varve_runtime::host::State;
use varve_runtime::{Checks, Config, DurableFile, Medium, ObjectAlign, Store};
use varve_spec::Bytes;

/// The engine's settings for durable objects and checks, from the command line.
pub fn configure(a: &Region, medium: &args::Medium, config: &mut Config) -> Result<(), Failure> {
    configure_file(a, medium, config)?;
    if let Some(path) = &a.durable {
        config.object_align = alignment(path, a.region_max)?;
    }
    Ok(())
}

/// The same for a file that need not be a region.
pub fn configure_file(
    a: &Region,
    medium: &args::Medium,
    config: &mut Config,
) -> Result<(), Failure> {
    config.checks = a.checks;
    config.count_checks = medium.check_stats;
    let Some(path) = &a.durable else {
        return Ok(());
    };
    if a.checks == Some(Checks::None) {
        return Err(wrong(
            "--checks none: without checks no object can survive; leave it out, or --durable",
        ));
    }
    let medium = match (medium.domain, medium.sync) {
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
        verify: a.verify,
    });
    Ok(())
}

/// The alignment of objects with which references reach all of a region of the existing or the requested size.
fn alignment(path: &Path, most: Option<Bytes>) -> Result<ObjectAlign, Failure> {
    let held = varve_durable::alignment(path).map_err(|e| failure(&e))?;
    let asked = match most {
        None => None,
        // A little of what references reach is taken for class data.
        Some(bytes) => Some(
            ObjectAlign::for_durable(bytes.0 - bytes.0 / 64).ok_or_else(|| {
                wrong(format!(
                    "--region-max {bytes}: references reach 256GiB at most"
                ))
            })?,
        ),
    };
    Ok(held.max(asked).unwrap_or_default())
}

/// Statistics of checks and the region.
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
            "region: {} objects became durable ({} bytes), {} stores, {} regions, {} rolled back, {} lines logged, {} fences, {} collections",
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
        Error::Io { .. }
        | Error::NoLocks { .. }
        | Error::Full { .. }
        | Error::Refused { .. }
        | Error::Usage(_)
        | Error::Gone(_)
        | Error::Failed(_) => failed(e),
        _ => wrong(e),
    }
}

pub fn durable(command: &DurableCommand) -> Done {
    let done = match command {
        DurableCommand::Check { file, json } => check(file, *json),
        DurableCommand::Info { file, json } => info(file, *json),
        DurableCommand::Compact { file, json } => compact(file, *json),
        DurableCommand::Backup { file, copy, json } => backup(file, copy, *json),
        DurableCommand::Salvage { file, into, json } => salvage(file, into, *json),
        DurableCommand::Export { file, root } => export(file, root.as_deref()),
    };
    done.unwrap_or_else(|e| match &e {
        // A file that is not there, or that this user may not read, is wrong input.
        Error::Io { source, .. }
            if matches!(
                source.kind(),
                ErrorKind::NotFound | ErrorKind::PermissionDenied
            ) =>
        {
            Err(wrong(&e))
        }
        _ => Err(failure(&e)),
    })
}

type Outcome = Result<Done, Error>;

/// Lines to standard output.
fn print(text: impl AsRef<str>) {
    ui::print(text.as_ref().trim_end());
}

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
                1 => "1 damage".to_string(),
                n => format!("{n} damages"),
            }
        );
        if region.taken_back > 0 {
            let _ = writeln!(
                text,
                "a failure-atomic region was not over: opening rolls back {} cache lines",
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
                "version": region.version,
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
        region.version,
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

/// Does work that makes a new file, on a thread: Ctrl-C leaves nothing of the file behind.
fn interruptible<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Failure> {
    let stop = ui::stop_flag();
    let thread = std::thread::spawn(work);
    while !thread.is_finished() {
        if stop.load(Ordering::Relaxed) {
            varve_durable::abandon_drafts();
            return Err(ui::interrupted());
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    Ok(thread
        .join()
        .unwrap_or_else(|e| std::panic::resume_unwind(e)))
}

fn compact(file: &Path, as_json: bool) -> Outcome {
    let path = file.to_path_buf();
    let copy = match interruptible(move || varve_durable::compact(&path)) {
        Ok(done) => done?,
        Err(stopped) => return Ok(Err(stopped)),
    };
    match as_json {
        true => print(format!(
            "{:#}\n",
            json!({"bytes_before": copy.before, "bytes": copy.bytes, "objects": copy.objects})
        )),
        false => print(format!(
            "{}: {} bytes before, {} now, {} objects\n",
            file.display(),
            copy.before,
            copy.bytes,
            copy.objects
        )),
    }
    Ok(Ok(ExitCode::SUCCESS))
}

fn backup(file: &Path, to: &Path, as_json: bool) -> Outcome {
    let (path, copy) = (file.to_path_buf(), to.to_path_buf());
    let work = move || {
        let bar = ui::bar(1, "copying, MiB");
        let done = varve_durable::backup(&path, &copy, &mut |done, all| {
            bar.set_length(all >> 20);
            bar.set_position(done >> 20);
        });
        bar.finish_and_clear();
        done
    };
    let copy = match interruptible(work) {
        Ok(done) => done?,
        Err(stopped) => return Ok(Err(stopped)),
    };
    match as_json {
        true => print(format!(
            "{:#}\n",
            json!({"copy": to, "bytes": copy.bytes, "objects": copy.objects})
        )),
        false => print(format!(
            "{}: {} bytes, {} objects, verified\n",
            to.display(),
            copy.bytes,
            copy.objects
        )),
    }
    Ok(Ok(ExitCode::SUCCESS))
}

fn salvage(file: &Path, into: &Path, as_json: bool) -> Outcome {
    let (path, to) = (file.to_path_buf(), into.to_path_buf());
    let done = match interruptible(move || varve_durable::salvage(&path, &to)) {
        Ok(done) => done?,
        Err(stopped) => return Ok(Err(stopped)),
    };
    let lost = !done.lost.is_empty() || !done.roots.is_empty();
    if as_json {
        print(format!(
            "{:#}\n",
            json!({
                "into": into,
                "objects": done.copy.objects,
                "bytes": done.copy.bytes,
                "repaired": done.repaired,
                "lost": done.lost,
                "roots_lost": done.roots,
            })
        ));
    } else {
        let mut text = String::new();
        for line in &done.repaired {
            let _ = writeln!(text, "repaired: {line}");
        }
        for line in &done.lost {
            let _ = writeln!(text, "lost: {line}");
        }
        for name in &done.roots {
            let _ = writeln!(text, "lost: root \"{name}\"");
        }
        let _ = writeln!(
            text,
            "{}: {} objects, {} bytes, {}",
            into.display(),
            done.copy.objects,
            done.copy.bytes,
            match lost {
                true => "all intact objects",
                false => "nothing is lost",
            }
        );
        print(&text);
    }
    Ok(Ok(match lost {
        true => ExitCode::from(1),
        false => ExitCode::SUCCESS,
    }))
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
        // The reader has closed its end.
        Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => Ok(ExitCode::SUCCESS),
        Err(e) => Err(failed(format!("standard output: {e}"))),
    })
}
