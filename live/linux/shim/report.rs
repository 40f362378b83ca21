//! The report: one line of JSON per process, which it leaves when it ends.

use crate::line::{self, process, quoted};
use crate::place::conflicts::Conflicts;
use crate::state::State;
use std::fmt::Write as _;
use std::path::Path;

/// Reports that nothing could be placed, and why.
pub fn idle(path: Option<&Path>, why: &str) {
    match path {
        Some(_) => line::leave(&format!("{{{},\"idle\":{}}}\n", process(), quoted(why))),
        None => eprintln!("varve: pages are not placed: {why}"),
    }
}

/// Reports what was placed. A process that asked for nothing large says nothing.
pub fn write(state: &mut State) {
    let (at_end, other_frame) = state.drift();
    let s = &state.stats;
    if s.placed_ranges + s.left_no_memory + s.left_hidden + s.left_failed == 0 {
        return line::leave_nothing();
    }
    let mut line = format!("{{{}", process());
    let bins = state.config.bins;
    let _ = write!(
        line,
        ",\"bins_bytes\":{},\"ways\":{}",
        bins.cache_bytes(),
        bins.ways
    );
    for (name, value) in [
        ("placed_ranges", s.placed_ranges),
        ("placed_pages", s.placed_pages),
        ("huge_pages", s.huge_pages),
        ("moved_pages", s.moved_pages),
        ("placing_ns", s.nanoseconds),
        ("extra_bytes", s.extra_bytes),
        ("left_no_memory", s.left_no_memory),
        ("left_hidden", s.left_hidden),
        ("left_failed", s.left_failed),
        ("dropped_pages", s.dropped_pages),
        ("pages_at_end", at_end),
        ("other_frame_at_end", other_frame),
    ] {
        let _ = write!(line, ",\"{name}\":{value}");
    }
    let _ = write!(line, ",\"last_failure\":{}", quoted(&s.last_failure));
    let _ = writeln!(
        line,
        ",\"before\":{},\"after\":{}}}",
        conflicts(&s.peak_before),
        conflicts(&s.peak_after)
    );
    line::leave(&line);
}

fn conflicts(c: &Conflicts) -> String {
    format!(
        "{{\"pages\":{},\"bins_used\":{},\"sharing\":{},\"excess\":{},\"fullest\":{},\"random_sharing\":{:.3},\
         \"random_excess\":{:.3},\"least_excess\":{}}}",
        c.pages,
        c.bins_used,
        c.sharing,
        c.excess,
        c.fullest,
        c.random_sharing,
        c.random_excess,
        c.least_excess
    )
}
