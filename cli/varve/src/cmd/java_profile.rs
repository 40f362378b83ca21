//! `varve profile -o app.sites -- java ...`: where a Java program on a stock virtual machine makes objects, and which survive.

use super::profiles::{self, SampledTarget};
use crate::args::ProfileArgs;
use crate::args::run::jvm;
use crate::ui::{self, Done, Failure, failed, stop_flag, wrong};
use std::path::Path;
use varve_live::java::sites::{
    self, AllocationSampling, JavaError, JavaSite, JavaSites, SeenMachines,
};
use varve_report::fmt;
use varve_sites::Counts;
use varve_sites::java::{Ages, Frame, Heap, Pair, Profile, Site, names};

/// Bytes between two samples of a thread, where none are given: the virtual machine's own default.
const INTERVAL: u64 = 512 << 10;
/// Fewer samples than these say little of a site that makes a hundredth of all bytes.
const FEW: u64 = 1000;

/// Is the profile to be one of Java's allocations? Words that ask for another kind are not contradicted: `--machine`, `--sample` and
/// `--whole` for the model, `--rate` for samples of pages.
pub fn is_meant(a: &ProfileArgs) -> Result<bool, Failure> {
    let asked = a.java.java || a.java.interval.is_some();
    if let (true, Some(program)) = (asked, &a.program) {
        return Err(wrong(format!(
            "{program}: allocations of Java are sampled in a command or a process: write `varve profile -o FILE.sites -- COMMAND`, or --pid \
             NUMBER"
        )));
    }
    if asked && (a.sample.is_some() || a.whole) {
        return Err(wrong(
            "--sample and --whole are for profiles on the model, and --java is for samples of allocations: take one of them",
        ));
    }
    if asked {
        return Ok(true);
    }
    let modelled = a.machine.is_some() || a.sample.is_some() || a.whole;
    let other = modelled || a.from.is_some() || a.live.rate.is_some();
    let command = a.program.is_none() && a.command.first().is_some_and(|word| jvm::is_java(word));
    Ok(!other && (command || a.live.pid.is_some_and(sites::is_java)))
}

pub fn profile(a: &ProfileArgs) -> Done {
    let before = profiles::before(a)?;
    let stop = stop_flag();
    let sampling = AllocationSampling {
        interval_bytes: a.java.interval.map_or(INTERVAL, |bytes| bytes.0),
        time: a.live.time,
        stop: &stop,
    };
    let seen = match profiles::sampled(a, "varve profile")? {
        SampledTarget::Process(process) => {
            sites::can_attach(process).map_err(wrong)?;
            let until = match a.live.time {
                Some(_) => "",
                None => " until Ctrl-C, or its end",
            };
            crate::ui::message!("varve: sampling the allocations of process {process}{until}");
            sites::attach(process, &sampling).map_err(refused)?
        }
        SampledTarget::Command(command) => sites::command(command, &sampling).map_err(refused)?,
    };
    let Some((machine, others)) = seen.machines.split_first() else {
        return Err(failed(JavaError::NoReport));
    };
    let profile = profile_of(machine, a);
    let notes = notes(&seen, machine, others);
    let profile = profiles::keep(a, before, profile)?;
    for note in notes {
        crate::ui::message!("varve: note: {note}");
    }
    say(a, &profile);
    profiles::ended(a, seen.status, &stop)
}

/// An error before a run is bad input; an error of a run is a failure.
fn refused(e: JavaError) -> Failure {
    match e {
        JavaError::NoReport | JavaError::Nothing(_) => failed(e),
        _ => wrong(e),
    }
}

/// Caveats on the profile.
fn notes(seen: &SeenMachines, machine: &JavaSites, others: &[JavaSites]) -> Vec<String> {
    let mut notes = seen.notes.clone();
    if !others.is_empty() {
        let bytes: u64 = others.iter().map(|other| other.allocated_bytes).sum();
        notes.push(format!(
            "{} more virtual machines allocated {}: they are left out, and the profile is of {}, which allocated most",
            others.len(),
            fmt::bytes(bytes as f64),
            program(machine)
        ));
    }
    let samples: u64 = machine.sites.iter().map(|site| site.samples).sum();
    if samples < FEW {
        notes.push(format!(
            "{samples} samples are few: run longer, or sample more often, such as --interval {}",
            fmt::bytes((machine.interval_bytes / 8).max(1 << 10) as f64).replace(' ', "")
        ));
    }
    if machine.thinned > 0 {
        notes.push(format!(
            "too many samples were alive at once, so only one in {} was followed and survival is less precise; a larger --interval takes fewer",
            1u64 << machine.thinned.min(63)
        ));
    }
    if 20 * machine.late > samples {
        notes.push(format!(
            "{:.0} % of the samples died in one of several collections, it is not known which, and count for none: collections follow each \
             other faster than the agent gets a processor",
            100.0 * machine.late as f64 / samples.max(1) as f64
        ));
    }
    if machine.old_by.is_empty() {
        let whose = match &*machine.collector {
            "other" => "this collector",
            known => known,
        };
        notes.push(format!(
            "the collections of {whose} are not known one by one: what survives them is not known, only what was alive at the end"
        ));
    }
    notes
}

/// Main class or jar.
fn program(machine: &JavaSites) -> String {
    let first = machine.command.split_whitespace().next().unwrap_or("java");
    first.rsplit('/').next().unwrap_or(first).into()
}

fn profile_of(machine: &JavaSites, a: &ProfileArgs) -> Profile {
    let words = |text: &str| text.split_whitespace().map(String::from).collect();
    let command = a.command.iter().map(|w| w.to_string_lossy().into_owned());
    let has_ages = !machine.old_by.is_empty();
    // Of a heap without generations that are known, their sizes mean nothing.
    let size = |bytes: u64| if has_ages { bytes } else { 0 };
    let frame = |(class, method, file, line): &(String, String, String, i64)| Frame {
        class: names::of_signature(class),
        method: method.clone(),
        file: file.clone(),
        line: u32::try_from(*line).unwrap_or(0),
    };
    let frames: Vec<Frame> = machine.frames.iter().map(frame).collect();
    let mut profile = Profile {
        program: program(machine),
        command: match a.live.pid {
            Some(_) => words(&machine.command),
            None => command.collect(),
        },
        heap: Heap {
            java: machine.java,
            collector: machine.collector.clone(),
            old_by: machine.old_by.clone(),
            young_collections: machine.young,
            full_collections: machine.full,
            paused_ms: machine.paused_ms,
            tenuring: u32::try_from(machine.tenuring).ok(),
            young_bytes: size(machine.young_bytes),
            old_bytes: size(machine.old_bytes),
            allocated_bytes: machine.allocated_bytes,
            kept_bytes: machine.kept_bytes,
            undecided_bytes: machine.undecided_bytes,
        },
        sampled: varve_sites::java::Sampling {
            interval_bytes: machine.interval_bytes,
            milliseconds: machine.milliseconds,
            without_tlabs: machine.tlabs == Some(false),
            thinned: machine.thinned,
            late: machine.late,
        },
        lifetimes: machine.lifetimes.clone(),
        sites: Vec::new(),
    };
    let mut places = std::collections::HashMap::new();
    for site in &machine.sites {
        let stack = site.stack.iter().filter_map(|&at| frames.get(at).cloned());
        let class = machine.classes.get(site.class).map_or("", |class| class);
        let site = Site {
            stack: stack.collect(),
            class: names::of_signature(class),
            counts: counts(site),
            ages: ages(site),
        };
        // Lines of the same name in two class loaders are one.
        let key = (site.stack.clone(), site.class.clone());
        match places.get(&key) {
            Some(&at) => {
                let same: &mut Site = &mut profile.sites[at];
                same.counts.add(&site.counts);
                same.ages.add(&site.ages);
            }
            None => {
                places.insert(key, profile.sites.len());
                profile.sites.push(site);
            }
        }
    }
    profile
}

/// Whole objects and bytes. Estimates of a part may be above those of the whole where few samples were followed.
fn within((objects, bytes): (f64, f64), whole: Pair) -> Pair {
    (
        (objects.round() as u64).min(whole.0),
        (bytes.round() as u64).min(whole.1),
    )
}

fn born(site: &JavaSite) -> Pair {
    (
        (site.born.0.round() as u64).max(site.samples),
        site.born.1.round() as u64,
    )
}

fn counts(site: &JavaSite) -> Counts {
    let (objects, bytes) = born(site);
    // Not all were seen in their first collection: what was seen is a part of all.
    let part = ages(site).surviving(1).unwrap_or(0.0);
    let survivors = (objects as f64 * part, bytes as f64 * part);
    let (survivors, survived_bytes) = within(survivors, (objects, bytes));
    Counts {
        objects,
        bytes,
        survivors,
        survived_bytes,
        freed: within(site.freed, (objects, bytes)).0,
        lifetime_bytes: site.lifetime_bytes.round() as u64,
        samples: site.samples,
        ..Counts::default()
    }
}

fn ages(site: &JavaSite) -> Ages {
    let born = born(site);
    let all = |sums: &[(f64, f64)]| sums.iter().map(|&sum| within(sum, born)).collect();
    let old = within(site.old, born);
    let live = within(site.live, born);
    Ages {
        survived: all(&site.survived),
        died: all(&site.died),
        old_objects: old.0,
        old_bytes: old.1,
        old_freed_bytes: within(site.old_freed, old).1,
        live_objects: live.0,
        live_bytes: live.1,
        looks: site.looks.0,
        looked_bytes: site.looked_bytes.0.round() as u64,
        used_bytes: site.looked_bytes.1.round() as u64,
    }
}

/// One line about what was seen, where the program's own output is not.
fn say(a: &ProfileArgs, profile: &Profile) {
    let samples: u64 = profile.sites.iter().map(|s| s.counts.samples).sum();
    let old: u64 = profile.sites.iter().map(|s| s.ages.old_bytes).sum();
    let file = a.output.display().to_string();
    let heap = &profile.heap;
    let reached = match heap.old_by.is_empty() {
        true => String::new(),
        false => format!(
            "; {} reached the old generation in {} young and {} full collections",
            fmt::bytes(old as f64),
            heap.young_collections,
            heap.full_collections
        ),
    };
    crate::ui::message!(
        "varve: {file}: {} samples of {} at {} sites{reached}",
        fmt::integer(samples as f64),
        fmt::bytes(heap.allocated_bytes as f64),
        profile.sites.len(),
    );
    let file = ui::quoted(&Path::new(&file).display().to_string());
    crate::ui::message!("varve: `varve sites {file}` shows what survives, and what to do");
}
