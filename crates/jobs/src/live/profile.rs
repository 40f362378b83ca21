//! Demands on this machine: each program alone, in either memory, with 1, 2, 4 and so on threads.
//!
//! Wall time and resident memory, but for that of files, are measured. Bytes a second would take counters of the memory controllers, which few machines show to
//! users; classes then go by times alone.

use super::host::LiveHost;
use super::start::{self, Launch};
use super::{LiveOptions, sys, words};
use crate::demand::{Demand, Point};
use crate::error::Error;
use crate::group::Group;
use crate::kinds::Memory;
use std::time::{Duration, Instant};

const LOOK: Duration = Duration::from_millis(2);

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
    for memory in Memory::ALL {
        if host.kinds.is_none() && memory == Memory::Slow {
            demand.missing.push("slow memory: there is none".into());
            continue;
        }
        for &threads in &counts {
            let launch = Launch {
                threads,
                memory: host.kinds.as_ref().map(|_| memory),
                cpus: Some(&host.cpus[..threads as usize]),
                log: options.logs.join(format!("profile-{i}.log")),
            };
            let what = format!("{}, {threads} threads, {memory}", entry.name);
            let (seconds, bytes) = alone(group, i, &launch, host, options, &mut || go_on(&what))?;
            demand.bytes = demand.bytes.max(bytes);
            demand.curves[memory.index()].push(Point {
                threads,
                seconds,
                read_gbps: None,
                write_gbps: None,
            });
        }
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

/// Seconds and bytes.
fn alone(
    group: &Group,
    i: usize,
    launch: &Launch,
    host: &LiveHost,
    options: &LiveOptions,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<(f64, u64), Error> {
    let begun = Instant::now();
    let (mut child, mut job) = start::start(group, i, launch, host, options)?;
    let limit = group.programs[i].time_limit_s;
    let mut bytes = 0;
    let failed = |what: String| {
        let remedy = format!("see {}", launch.log.display());
        Error::from(group.problem(i, "command", what, &remedy))
    };
    loop {
        bytes = bytes.max(job.own_memory());
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
