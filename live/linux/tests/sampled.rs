//! Samples of a program that runs: whose memory there is, how much of it, and what is done with it.

#![cfg(target_arch = "x86_64")]

#[path = "common/compiled.rs"]
mod compiled;

use compiled::Program;
use std::sync::atomic::AtomicBool;
use varve_live::sampled::{AccessSampling, Event, SampledMemory, SeenSite, Source, command};

/// The observations of a function's call.
fn site(seen: &SampledMemory, program: &Program, function: &str, callee: &str) -> SeenSite {
    let offset = program.frame(function, callee).offset;
    let is_it = |s: &&SeenSite| s.stack.first().is_some_and(|place| place.offset == offset);
    let mut sum = SeenSite::default();
    for one in seen.sites.iter().filter(is_it) {
        sum.mapped |= one.mapped;
        sum.bytes += one.bytes;
        sum.freed += one.freed;
        sum.peak_bytes += one.peak_bytes;
        sum.used_pages += one.used_pages;
        sum.written_pages += one.written_pages;
        sum.samples += one.samples;
    }
    sum
}

#[test]
fn sites_of_threads_mappings_and_children_have_their_bytes() {
    let Some(program) = Program::new("sampled", &["-fno-optimize-sibling-calls"]) else {
        return;
    };
    let stop = AtomicBool::new(false);
    let sampling = AccessSampling {
        rate: 20.0,
        time: None,
        stop: &stop,
        events: &[],
    };
    let seen = command(&[program.path.clone().into_os_string()], &sampling).unwrap();
    eprintln!("{:?}, {} looks", seen.source, seen.looks);
    assert!(seen.has_objects && seen.looks > 0, "{seen:?}");
    let site = |function, callee| site(&seen, &program, function, callee);
    let is_about = |seen: f64, mib: f64| {
        let bytes = mib * f64::from(1 << 20);
        assert!(
            (0.6 * bytes..1.6 * bytes).contains(&seen),
            "{seen} is not {bytes}"
        );
    };

    // 200,000 objects of 96 bytes from four threads, of which some hundred were followed.
    let kept = site("keep", "calloc");
    is_about(kept.peak_bytes, 200_000.0 * 96.0 / f64::from(1 << 20));
    assert!(kept.samples > 20 && kept.freed == 0.0, "{kept:?}");
    // What passes leaves hardly anything.
    let churn = site("churn", "malloc");
    assert!(churn.peak_bytes < 0.2 * churn.bytes.max(5e6), "{churn:?}");
    // An object that grew is one, as large as it became: all its pages are read and none is written.
    let grown = site("grow", "realloc");
    is_about(grown.peak_bytes, 16.0);
    assert!(grown.used_pages > 1000.0, "{grown:?}");
    // Mappings are known as such.
    let mapped = site("map", "mmap");
    is_about(mapped.peak_bytes, 8.0);
    assert!(mapped.mapped && mapped.used_pages > 500.0, "{mapped:?}");
    // A child has samples of its own.
    let child = site("in_child", "malloc");
    is_about(child.peak_bytes, 4.0);
    if seen.has_writes {
        assert!(child.written_pages > 100.0, "{child:?}");
        assert!(grown.written_pages < 0.2 * grown.used_pages, "{grown:?}");
    }
}

#[test]
fn a_program_that_is_asked_to_stop_is_seen_all_the_same() {
    let Some(program) = Program::new("sampled", &["-fno-optimize-sibling-calls"]) else {
        return;
    };
    let sampling = AccessSampling {
        rate: 100.0,
        time: None,
        stop: &AtomicBool::new(true),
        events: &[],
    };
    let seen = command(&[program.path.clone().into_os_string()], &sampling).unwrap();
    assert_eq!(seen.looks, 1, "{seen:?}");
}

/// No machine of ours has PEBS or IBS. First touches of pages come by the same way, with their addresses: of each object as many
/// as it has pages.
#[test]
fn sampled_addresses_are_those_of_sites_threads_mappings_variables_and_children() {
    let Some(program) = Program::new("sampled", &["-fno-optimize-sibling-calls"]) else {
        return;
    };
    let stop = AtomicBool::new(false);
    let sampling = AccessSampling {
        rate: 50.0,
        time: None,
        stop: &stop,
        events: &[Event::page_faults()],
    };
    let words = [program.path.clone().into_os_string()];
    let mut seen = command(&words, &sampling).unwrap();
    if let [why] = &seen.notes[..]
        && seen.source == Source::Bits
    {
        return varve_skip::skip!("{why}");
    }
    // Touches come in bursts, of which the kernel now and then loses some, and says so.
    for _ in 1..10 {
        if seen.notes.is_empty() {
            break;
        }
        seen = command(&words, &sampling).unwrap();
    }
    if let [why, ..] = &seen.notes[..] {
        return varve_skip::skip!("{why}, in each of ten runs");
    }
    assert_eq!(seen.source, Source::Hardware("page faults"));
    assert!(seen.has_objects && seen.looks > 0, "{seen:?}");
    // A huge page is one touch.
    let huge = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
    let few = huge.is_ok_and(|setting| setting.contains("[always]"));
    for (function, callee, mib) in [
        ("grow", "realloc", 31.0),
        ("map", "mmap", 8.0),
        ("in_child", "malloc", 4.0),
    ] {
        let site = site(&seen, &program, function, callee);
        let pages = mib * 256.0;
        let least = if few { 1.0 } else { 0.5 * pages };
        assert!(
            (least..1.6 * pages).contains(&site.used_pages),
            "{function}: {site:?}"
        );
    }
    let others: u64 = seen
        .ranges
        .iter()
        .map(|r| r.lines.values().sum::<u64>())
        .sum();
    assert!(others > 0, "{:?}", seen.ranges);
}
