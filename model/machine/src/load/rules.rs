//! Constraints between the numbers of a machine.

use super::numbers::{Finding, table_findings, tree};
use super::power;
use super::problem::Problem;
use crate::describe::{Cache, Machine, Mode};
use crate::model::MAX_RATIO;
use varve_spec::Bytes;

/// Memory of a machine below which 4 KiB frames have 32-bit numbers.
pub const MAX_BYTES: u64 = u32::MAX as u64 * 4096;

/// Sets of a cache that the model can number.
pub const MAX_SETS: u64 = (1 << 24) - 1;

/// Tags of a cache that the model can distinguish.
const MAX_TAGS: u64 = (1 << 31) - 2;

impl Machine {
    /// Checks a machine that was made or changed in memory. All problems are reported, without lines.
    pub fn check(&self) -> Vec<Problem> {
        let problem = |(key, what, remedy)| Problem {
            file: self.name.clone(),
            line: 0,
            key,
            what,
            remedy,
        };
        findings(self).into_iter().map(problem).collect()
    }
}

/// Everything that is inconsistent about a machine.
pub fn findings(m: &Machine) -> Vec<Finding> {
    let mut found = table_findings(&tree(m));
    let mut say = |key: &str, what: String, remedy: &str| {
        found.push((key.to_string(), what, remedy.to_string()))
    };
    caches(m, &mut say);
    queues(m, &mut say);
    memories(m, &mut say);
    exposure(m, &mut say);
    power::findings(m, &mut say);
    found
}

type Say<'a> = &'a mut dyn FnMut(&str, String, &str);

fn caches(m: &Machine, say: Say<'_>) {
    // More memory than frames can number has a problem of its own.
    let lines = if m.total_bytes() >= MAX_BYTES {
        0
    } else {
        m.total_bytes() / 64
    };
    let mut one = |name: &str, c: &Cache| {
        let set = u64::from(c.ways) * 64;
        let key = format!("{name}.bytes");
        if set == 0 || c.bytes.0 == 0 {
            return; // Told already.
        }
        let sets = c.bytes.0 / set;
        if !c.bytes.0.is_multiple_of(set) {
            let what = format!(
                "{} is not a whole number of sets of {} lines of 64 B",
                c.bytes, c.ways
            );
            say(&key, what, &format!("correct it, or {name}.ways"));
        } else if sets > MAX_SETS {
            let what = format!("{sets} sets are more than the model numbers ({MAX_SETS})");
            say(&key, what, &format!("lower it, or raise {name}.ways"));
        } else if lines / sets > MAX_TAGS {
            let what = format!(
                "too few sets ({sets}) for {} of memory",
                Bytes(m.total_bytes())
            );
            say(&key, what, &format!("raise it, or lower {name}.ways"));
        }
    };
    one("l1", &m.l1);
    one("l2", &m.l2);
    one("llc", &m.llc);
    for (low, a, high, b) in [("l1", &m.l1, "l2", &m.l2), ("l2", &m.l2, "llc", &m.llc)] {
        if b.bytes < a.bytes {
            let what = format!("{} is smaller than {low} ({})", b.bytes, a.bytes);
            say(
                &format!("{high}.bytes"),
                what,
                "each level must hold at least what the level above it does",
            );
        }
        if b.ns < a.ns {
            let what = format!("{} ns is faster than {low} ({} ns)", b.ns, a.ns);
            say(
                &format!("{high}.ns"),
                what,
                "latencies are load-to-use, from the core",
            );
        }
    }
    for (level, entries, ways) in [
        ("l1", m.tlb.l1_entries, m.tlb.l1_ways),
        ("l2", m.tlb.l2_entries, m.tlb.l2_ways),
    ] {
        if ways > 0 && !entries.is_multiple_of(ways) {
            let what = format!("{entries} entries do not divide into {ways} ways");
            say(
                &format!("tlb.{level}_entries"),
                what,
                "correct one of the two",
            );
        }
    }
    let sets = m.tlb.l1_entries.checked_div(m.tlb.l1_ways).unwrap_or(1);
    if m.tlb.l1_entries.is_multiple_of(m.tlb.l1_ways) && !sets.is_power_of_two() {
        let what = format!("{sets} sets are no power of two");
        say(
            "tlb.l1_ways",
            what,
            "the lowest bits of a page's number choose its set",
        );
    }
    if m.prefetch.streams > 0 && m.prefetch.distance == 0 {
        say(
            "prefetch.distance",
            "is zero with the prefetcher on".into(),
            "set a distance, or prefetch.streams = 0",
        );
    }
}

fn queues(m: &Machine, say: Say<'_>) {
    let c = &m.controller;
    if c.drain_high > c.write_queue {
        let what = format!(
            "{} is more than the write queue holds ({})",
            c.drain_high, c.write_queue
        );
        say(
            "controller.drain_high",
            what,
            "set it below controller.write_queue",
        );
    }
    if c.drain_low >= c.drain_high {
        let what = format!("{} is not below drain_high ({})", c.drain_low, c.drain_high);
        say(
            "controller.drain_low",
            what,
            "draining must end at a lower fill than it begins",
        );
    }
}

fn interleave(key: &str, bytes: Bytes, device: Bytes, say: Say<'_>) {
    if bytes.0 == 0 {
        return;
    }
    if !bytes.0.is_power_of_two() || bytes.0 < 64 {
        say(
            key,
            format!("{} is not a power of two of at least 64 B", bytes.0),
            "write 0, 256 or \"4KiB\", for example",
        );
    } else if bytes > device {
        say(
            key,
            format!("{bytes} is larger than a DIMM ({device})"),
            "write a smaller interleave, or 0 for none",
        );
    }
}

fn memories(m: &Machine, say: Say<'_>) {
    let d = &m.dram;
    interleave(
        "dram.interleave_bytes",
        d.interleave_bytes,
        d.dimm_bytes,
        say,
    );
    if d.row_bytes.0 < 64 || !d.row_bytes.0.is_power_of_two() {
        say(
            "dram.row_bytes",
            format!("{} is not a power of two of at least 64 B", d.row_bytes.0),
            "a rank's row is 8KiB, usually",
        );
    }
    if d.rfc_ns >= d.refi_ns {
        let what = format!(
            "a refresh of {} ns does not end before the next, {} ns later",
            d.rfc_ns, d.refi_ns
        );
        say(
            "dram.rfc_ns",
            what,
            "tRFC is 260-550 ns and tREFI 7800 ns for DDR4",
        );
    }
    if d.selfrefresh_after_ns < d.powerdown_after_ns {
        let what = format!(
            "{} ns is earlier than power-down ({} ns)",
            d.selfrefresh_after_ns, d.powerdown_after_ns
        );
        say(
            "dram.selfrefresh_after_ns",
            what,
            "self-refresh is the deeper state and comes later",
        );
    }
    if let Some(pm) = &m.pm {
        interleave(
            "pm.interleave_bytes",
            pm.interleave_bytes,
            pm.dimm_bytes,
            say,
        );
        if pm.dimms > d.channels {
            let what = format!("{} PM DIMMs on {} channels", pm.dimms, d.channels);
            say(
                "pm.dimms",
                what,
                "a channel takes one PM DIMM beside its DRAM",
            );
        }
        if pm.line_bytes.0 < 64 || !pm.line_bytes.0.is_power_of_two() {
            say(
                "pm.line_bytes",
                format!("{} is not a power of two of at least 64 B", pm.line_bytes.0),
                "Optane's is 256",
            );
        } else if !pm.buffer_bytes.0.is_multiple_of(pm.line_bytes.0) {
            let what = format!(
                "{} is not a whole number of media lines ({})",
                pm.buffer_bytes, pm.line_bytes
            );
            say("pm.buffer_bytes", what, "Optane's is \"16KiB\"");
        }
    }
    for (key, bytes) in [
        ("dram.dimm_bytes", Some(d.dimm_bytes)),
        ("pm.dimm_bytes", m.pm.as_ref().map(|p| p.dimm_bytes)),
        ("cxl.bytes", m.cxl.as_ref().map(|c| c.bytes)),
    ] {
        if bytes.is_some_and(|b| !b.0.is_multiple_of(4096)) {
            say(
                key,
                "is not a whole number of 4 KiB pages".into(),
                "round it down to 4KiB",
            );
        }
    }
    if m.total_bytes() >= MAX_BYTES {
        let what = format!(
            "{} in all are more 4 KiB frames than 32 bits can number",
            Bytes(m.total_bytes())
        );
        say(
            "sockets",
            what,
            "describe fewer sockets or smaller memories: below 16TiB",
        );
    }
    if m.sockets > 1 && m.link.is_none() {
        say(
            "link",
            format!("missing with {} sockets", m.sockets),
            "add `[link]` with ns and gbps, or set sockets = 1",
        );
    }
}

fn exposure(m: &Machine, say: Say<'_>) {
    if m.mode == Mode::Flat {
        if m.dram_cache.is_some() {
            say(
                "dram_cache",
                "has no use in mode \"flat\"".into(),
                "remove the section, or set mode = \"memory-mode\"",
            );
        }
        return;
    }
    let slow = m.slow_bytes();
    if slow == 0 {
        say(
            "mode",
            "\"memory-mode\" without slow memory".into(),
            "add `[pm]` or `[cxl]`, or set mode = \"flat\"",
        );
    }
    if m.pm.is_some() && m.cxl.is_some() {
        say(
            "cxl",
            "memory mode with both PM and CXL behind the DRAM cache".into(),
            "remove one of the two",
        );
    }
    let Some(cache) = &m.dram_cache else {
        say(
            "mode",
            "\"memory-mode\" without a DRAM cache".into(),
            "add `[dram_cache]` with bytes and ways",
        );
        return;
    };
    if cache.bytes.0 > m.dram_bytes() {
        let what = format!(
            "{} is more than the socket's DRAM ({})",
            cache.bytes,
            Bytes(m.dram_bytes())
        );
        say(
            "dram_cache.bytes",
            what,
            "the cache lives in the DRAM: lower it, or enlarge dram",
        );
    }
    let set = u64::from(cache.ways).max(1).saturating_mul(4096);
    if !cache.bytes.0.is_multiple_of(set) {
        let what = format!(
            "{} is not a whole number of 4 KiB pages in {} ways",
            cache.bytes, cache.ways
        );
        say("dram_cache.bytes", what, "correct it, or dram_cache.ways");
    }
    let ratio = slow
        .saturating_mul(cache.ways.into())
        .div_ceil(cache.bytes.0.max(1));
    if cache.bytes.0 > 0 && ratio > MAX_RATIO {
        let what = format!(
            "{ratio} stretches of slow memory meet in one set, at most {MAX_RATIO} can be told apart"
        );
        say(
            "dram_cache.bytes",
            what,
            "enlarge the cache, or lower its ways or the slow memory",
        );
    }
}
