//! `varve trace`: record, inspect, import.

use super::files;
use super::list::hang;
use crate::args::{TraceAction, TraceArgs};
use crate::ui::{self, Done, Failure, failed, print, wrong};
use indicatif::ProgressBar;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use varve_report::fmt;
use varve_trace::host::{Recorder, RecorderOptions};
use varve_trace::import::{Format, ImportError, import};
use varve_trace::{End, PAGE_BYTES, TraceInfo};

pub fn trace(a: &TraceArgs) -> Done {
    match &a.action {
        Some(TraceAction::Info { file, json }) => info(file, *json),
        Some(TraceAction::Import { from, file, output }) => {
            let format = format(from)?;
            files::exists(
                file,
                "no such file",
                &format!("give the trace that {from} wrote"),
            )?;
            files::can_be_made(output)?;
            let end = import(format, file, output).map_err(|e| {
                // A disk that filled up leaves what fitted; half of a file that is wrong is of no use.
                if matches!(e, ImportError::Line { .. } | ImportError::Record { .. }) {
                    let _ = std::fs::remove_file(output);
                }
                wrong(e)
            })?;
            if end.ops == 0 {
                crate::ui::message!("varve: note: {}: no access in it", file.display());
            }
            crate::ui::message!(
                "varve: {}: {} accesses",
                output.display(),
                fmt::integer(end.ops as f64)
            );
            Ok(ExitCode::SUCCESS)
        }
        None if a.command.is_empty() => Err(wrong(
            "nothing to record; write `varve trace -o FILE -- COMMAND`, or see --help",
        )),
        None => record(a),
    }
}

fn record(a: &TraceArgs) -> Done {
    let output = a
        .output
        .clone()
        .unwrap_or_else(|| named_after(&a.command[0]));
    files::can_be_made(&output)?;
    // The flag lets the recorder end the program and close the file when Ctrl-C comes.
    ui::stop_flag();
    let options = RecorderOptions {
        allocations: !a.no_sites,
        marked: a.marked,
        extent: a.windows.extent(),
        ..RecorderOptions::default()
    };
    let recorder = Recorder::start(&a.command, options).map_err(wrong)?;
    for line in recorder.warnings() {
        crate::ui::message!("varve: note: {line}");
    }
    let bar = spinner(&output);
    let end = recorder.record_to(&output).map_err(failed);
    bar.finish_and_clear();
    let end = end?;
    let size = std::fs::metadata(&output).map_or(0, |m| m.len());
    crate::ui::message!(
        "varve: {}: {} accesses in {}",
        output.display(),
        fmt::integer((end.ops - end.touches) as f64),
        fmt::bytes(size as f64)
    );
    if let Some(line) = part(&end) {
        crate::ui::message!("varve: note: {line}");
    }
    if let Some(line) = ended(&end) {
        return Err(Failure::Line { code: 1, line });
    }
    Ok(ExitCode::SUCCESS)
}

/// How much of a run was recorded, if not all of it.
pub fn part(end: &End) -> Option<String> {
    let (skipped, recorded) = (end.skipped_instructions, end.instructions);
    let all = skipped + recorded;
    (skipped > 0).then(|| {
        format!(
            "{:.2} % of the run was recorded: {} of {} instructions",
            100.0 * recorded as f64 / all as f64,
            fmt::integer(recorded as f64),
            fmt::integer(all as f64)
        )
    })
}

/// Shows for how long a program has been recorded, and how large its trace is.
pub fn spinner(output: &Path) -> ProgressBar {
    let file = output.to_path_buf();
    ui::spinner_with("recording", move || {
        let bytes = std::fs::metadata(&file).map_or(0, |m| m.len());
        format!(
            "{} so far; the program decides when it ends",
            fmt::bytes(bytes as f64)
        )
    })
}

/// `/usr/bin/sort` is recorded into `sort.trace`.
fn named_after(program: &std::ffi::OsStr) -> PathBuf {
    let name = Path::new(program).file_name().unwrap_or(program);
    PathBuf::from(name).with_extension("trace")
}

fn info(file: &Path, json: bool) -> Done {
    let reader = files::open_trace(file)?;
    let info = TraceInfo::read(&reader).map_err(|e| files::of_trace(&e))?;
    if json {
        print(serde_json::to_string_pretty(&info).map_err(failed)?);
        return Ok(ExitCode::SUCCESS);
    }
    let line = |term: &str, text: String| print(hang(term, 16, &text));
    line("program", info.header.command.join(" "));
    for java in reader.java().iter() {
        line(
            "java",
            format!(
                "version {}, collector {}: {} minor and {} full collections in {} pauses",
                java.version,
                java.collector.name(),
                java.minor,
                java.full,
                java.pauses
            ),
        );
    }
    line(
        "accesses",
        format!(
            "{}, {:.2} B of the file each",
            fmt::integer(info.ops as f64),
            info.bytes_per_op()
        ),
    );
    line("instructions", fmt::integer(info.instructions as f64));
    if let Some(part) = info.end.as_ref().and_then(part) {
        line("part", part);
    }
    line(
        "reads, writes",
        format!(
            "{} and {}",
            fmt::integer(info.reads as f64),
            fmt::integer(info.writes as f64)
        ),
    );
    let all = match info.pages > info.most_pages {
        true => format!(
            " at a time, {} in all",
            fmt::bytes((info.pages * PAGE_BYTES) as f64)
        ),
        false => String::new(),
    };
    line(
        "footprint",
        format!(
            "{} in pages of 4 KiB{all}",
            fmt::bytes(info.footprint_bytes() as f64)
        ),
    );
    line("threads", info.threads.len().to_string());
    if let Some(cut) = &info.cut {
        line("cut", cut.clone());
    }
    if let Some(failure) = info.end.as_ref().and_then(ended) {
        line("ended", failure);
    }
    if !info.sites.is_empty() {
        print("\nAllocation sites with most bytes:");
        for s in info.sites.iter().take(10) {
            let text = format!(
                "{} in {} allocations, {} reads, {} writes",
                fmt::bytes(s.bytes as f64),
                fmt::integer(s.allocations as f64),
                fmt::integer(s.reads as f64),
                fmt::integer(s.writes as f64)
            );
            print(hang(&format!("  {}", s.name), 34, &text));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn format(name: &str) -> Result<Format, Failure> {
    let known: Vec<&str> = Format::ALL.iter().map(|(n, _)| *n).collect();
    let found = Format::ALL
        .iter()
        .find(|(n, _)| *n == name)
        .map(|(_, f)| *f);
    found.ok_or_else(|| {
        wrong(format!(
            "no trace format is called `{name}`; there are {}",
            known.join(", ")
        ))
    })
}

/// How the recorded program ended, when it did not end well.
pub fn ended(end: &End) -> Option<String> {
    match (end.exit_code, end.signal) {
        (_, Some(signal)) => Some(format!(
            "the program was ended by signal {signal}; what it did before is recorded"
        )),
        (Some(code), _) if code != 0 => Some(format!("the program ended with exit code {code}")),
        _ => None,
    }
}
