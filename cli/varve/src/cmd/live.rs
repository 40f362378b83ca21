//! `varve run --live`: the program on this machine, its pages placed in the bins of a DRAM cache.

use crate::args::run::job::LivePages;
use crate::ui::{Done, Failure, print, wrong};
use serde_json::json;
use std::ffi::OsString;
use std::path::Path;
use std::process::{ExitCode, ExitStatus};
use varve_live::probe::Topology;
use varve_live::{Conflicts, LiveOptions, LiveReport, PageSize};

pub fn run(command: &[OsString], a: &LivePages) -> Done {
    let cache_bytes = match a.cache.bins {
        Some(bytes) => bytes.0,
        None => dram_cache()?,
    };
    let mut options = LiveOptions::new(cache_bytes);
    options.ways = a.cache.ways;
    options.count_only = a.cache.count_only;
    options.pages = match a.page.page.map(|b| b.0) {
        None => PageSize::Auto,
        Some(4096) => PageSize::Base,
        Some(0x20_0000) => PageSize::Huge,
        Some(_) => return Err(wrong("--page of a live run is 4KiB or 2MiB")),
    };
    let report = varve_live::run(command, &options).map_err(wrong)?;
    if a.json.json {
        print(serde_json::to_string_pretty(&as_json(&report)).unwrap_or_default());
    } else {
        // The program's own output is on standard output; ours goes beside it.
        eprint!("{}", as_text(&report));
    }
    ended(&report.ran.status)
}

/// Bytes of this machine's DRAM cache, as its kernel tells.
fn dram_cache() -> Result<u64, Failure> {
    let (topology, _) = Topology::read(Path::new("/"));
    topology.dram_cache_bytes().map_err(wrong)
}

/// Ends as the program ended, and says so if that was not well.
pub fn ended(status: &ExitStatus) -> Done {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(0), _) => Ok(ExitCode::SUCCESS),
        (Some(code), _) => {
            crate::ui::message!("varve: note: the program ended with exit code {code}");
            Err(Failure::Quiet(code as u8))
        }
        (_, signal) => {
            let signal = signal.unwrap_or(0);
            crate::ui::message!("varve: note: the program was ended by signal {signal}");
            Err(Failure::Quiet(128 + signal as u8))
        }
    }
}

fn as_text(report: &LiveReport) -> String {
    let mut text = String::new();
    let mut line = |s: String| {
        text.push_str(&s);
        text.push('\n');
    };
    for p in &report.ran.processes {
        match &p.idle {
            Some(why) => line(format!(
                "varve: {} ({}): nothing placed: {why}",
                p.program, p.pid
            )),
            None => {
                line(format!(
                    "varve: {} ({}): {} pages placed in {} ranges; the cache holds {:.1} % of them at once, {:.1} % before, {:.1} % at best; {:.0} ms",
                    p.program,
                    p.pid,
                    p.placed_pages,
                    p.placed_ranges,
                    100.0 * p.after.held(),
                    100.0 * p.before.held(),
                    100.0 * p.after.most_held(),
                    p.placing_ns as f64 / 1e6
                ));
            }
        }
    }
    if let Some(seen) = &report.seen {
        line(format!(
            "varve: seen from outside: the cache holds {:.1} % of {} pages at once",
            100.0 * seen.held(),
            seen.pages
        ));
    }
    for note in &report.ran.notes {
        line(format!("varve: note: {note}"));
    }
    text
}

fn as_json(report: &LiveReport) -> serde_json::Value {
    let conflicts = |c: &Conflicts| json!({"pages": c.pages, "bins_used": c.bins_used, "held_at_once": c.held(), "pages_sharing_a_bin": c.sharing, "expected_by_chance": c.random_sharing});
    json!({
        "exit_code": report.ran.status.code(),
        "seconds": report.ran.seconds,
        "processes": report.ran.processes.iter().map(|p| json!({
            "pid": p.pid,
            "program": p.program,
            "nothing_placed": p.idle,
            "placed_ranges": p.placed_ranges,
            "placed_pages": p.placed_pages,
            "huge_pages": p.huge_pages,
            "moved_pages": p.moved_pages,
            "placing_ns": p.placing_ns,
            "before": conflicts(&p.before),
            "after": conflicts(&p.after),
        })).collect::<Vec<_>>(),
        "seen_from_outside": report.seen.as_ref().map(conflicts),
        "notes": report.ran.notes,
    })
}
