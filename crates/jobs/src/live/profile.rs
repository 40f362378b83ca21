//! Demands on this machine: each program alone, in either memory, with 1, 2, 4 and so on threads.
//!
//! Wall time and resident memory, but for that of files, are measured. Bytes a second would take counters of the memory controllers, which few machines show to
//! users; classes then go by times alone.

use super::host::LiveHost;
use super::inside::InPart;
use super::start::{self, Launch, Started};
use super::{LiveOptions, sys, words};
use crate::demand::{Demand, Part, Point};
use crate::error::Error;
use crate::group::Group;
use crate::inside::Told;
use crate::kinds::Memory;
use std::time::{Duration, Instant};
use varve_run::objects::live::SHARE;

const LOOK: Duration = Duration::from_millis(2);

/// Pages by node are looked for once in so many looks: reading them takes the kernel time.
const PAGES_EVERY: u32 = 16;

/// Measures the demands of one program. `go_on` is called many times a second, and ends the program by returning `false`.
///
/// # Errors
/// A program that cannot be started or does not end well; an interrupt.
pub fn profile(
    group: &Group,
    i: usize,
    host: &LiveHost,
    options: &LiveOptions,
    go_on: &mut dyn FnMut(&str) -> bool,
) -> Result<Demand, Error> {
    start::check(group)?;
    std::fs::create_dir_all(&options.logs).map_err(|e| Error::Live(e.to_string()))?;
    let entry = &group.programs[i];
    let cores = host.cpus.len() as u32;
    let mut counts: Vec<u32> = (0..).map(|k| 1 << k).take_while(|&n| n <= cores).collect();
    if entry.threads <= cores {
        counts.push(entry.threads);
    }
    counts.push(cores);
    counts.sort_unstable();
    counts.dedup();
    let mut demand = Demand {
        name: entry.name.clone(),
        ..Demand::default()
    };
    demand.missing.push(
        "bytes read and written a second: no counters of memory traffic are read here".into(),
    );
    let mut measure = |memory: Option<Memory>, in_part: Option<InPart>| {
        let mut bytes = Bytes::default();
        let mut curve = Vec::new();
        let words = memory.map_or("in part".into(), |m| m.to_string());
        for &threads in &counts {
            let launch = Launch {
                threads,
                memory: memory.filter(|_| host.kinds.is_some()),
                in_part,
                cpus: Some(&host.cpus[..threads as usize]),
                log: options.logs.join(format!("profile-{i}.log")),
            };
            let what = format!("{}, {threads} threads, {words}", entry.name);
            let (seconds, most) = alone(group, i, &launch, host, options, &mut || go_on(&what))?;
            bytes.all = bytes.all.max(most.all);
            bytes.fast = bytes.fast.max(most.fast);
            curve.push(Point {
                threads,
                seconds,
                read_gbps: None,
                write_gbps: None,
            });
        }
        Ok::<_, Error>((curve, bytes))
    };
    for memory in Memory::ALL {
        if host.kinds.is_none() && memory == Memory::Slow {
            demand.missing.push("slow memory: there is none".into());
            continue;
        }
        let (curve, bytes) = measure(Some(memory), None)?;
        demand.bytes = demand.bytes.max(bytes.all);
        demand.curves[memory.index()] = curve;
    }
    if let Some(inside) = entry.inside.as_ref().filter(|_| host.kinds.is_some()) {
        let share = (demand.bytes as f64 * SHARE / 100.0) as u64;
        // Sites have to know how much there is to choose.
        let fast = inside
            .fast
            .or((inside.told == Told::Sites).then_some(share));
        let (curve, bytes) = measure(None, Some(InPart { fast }))?;
        demand.part = Some(Part {
            fast_bytes: inside.fast.unwrap_or(bytes.fast),
            curve,
        });
    }
    // Whatever carries a workload out has some MiB of its own, which do not become less by scaling.
    if let Some(line) = words::carried_out(entry, 1, options)
        && let Ok(workload) = varve_workloads::build(&line)
    {
        demand.bytes = workload.regions().iter().map(|r| r.bytes).sum();
    }
    if let Some(bytes) = entry.bytes {
        demand.bytes = bytes;
    }
    Ok(demand)
}

/// The most memory that a program had, bytes.
#[derive(Clone, Copy, Default)]
struct Bytes {
    all: u64,
    /// On fast nodes, of one in part.
    fast: u64,
}

/// Seconds and bytes.
fn alone(
    group: &Group,
    i: usize,
    launch: &Launch,
    host: &LiveHost,
    options: &LiveOptions,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<(f64, Bytes), Error> {
    let begun = Instant::now();
    let Started {
        mut child,
        mut job,
        prepared,
    } = start::start(group, i, launch, host, options)?;
    let limit = group.programs[i].time_limit_s;
    let mut bytes = Bytes::default();
    let mut looks = 0u32;
    let failed = |what: String| {
        let remedy = format!("see {}", launch.log.display());
        Error::from(group.problem(i, "command", what, &remedy))
    };
    loop {
        bytes.all = bytes.all.max(job.own_memory());
        if let Some(prepared) = &prepared {
            prepared.look();
            if looks.is_multiple_of(PAGES_EVERY) {
                let by_node = job.by_node();
                let fast = host.nodes(Memory::Fast).unwrap_or(&[]);
                let there = fast.iter().filter_map(|n| by_node.get(n)).sum();
                bytes.fast = bytes.fast.max(there);
            }
            looks += 1;
        }
        let status = child.try_wait().map_err(|e| Error::Live(e.to_string()))?;
        if let Some(status) = status {
            sys::signal(child.id(), libc::SIGKILL);
            if !status.success() {
                return Err(failed(format!("did not end well ({status})")));
            }
            return Ok((begun.elapsed().as_secs_f64(), bytes));
        }
        let late = limit.is_some_and(|l| begun.elapsed().as_secs_f64() > l);
        let stopped = !go_on();
        if late || stopped {
            sys::signal(child.id(), libc::SIGKILL);
            let _ = child.wait();
            return Err(match stopped {
                true => varve_machine::model::RunError::Interrupted.into(),
                false => failed("took longer than its time limit".into()),
            });
        }
        std::thread::sleep(LOOK);
    }
}
