//! Demands on this machine: each program alone, in either memory, with 1, 2, 4 and so on threads.
//!
//! Wall time and resident memory, but for that of files, are measured. Bytes a second are where the processor counts them for groups of
//! tasks (resctrl), and then as the sum of what is read and what is written. Elsewhere classes go by times alone.

use super::host::LiveHost;
use super::inside::InPart;
use super::start::{self, Launch, Started};
use super::{LiveOptions, sys, words};
use crate::class::WRITES;
use crate::demand::{Demand, Part, Point};
use crate::error::Error;
use crate::group::Group;
use crate::inside::Told;
use crate::kinds::Memory;
use std::time::{Duration, Instant};
use varve_live::resctrl::MonitoringGroup;
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
    if let Err(why) = &host.traffic {
        demand
            .missing
            .push(format!("bytes read and written a second: {why}"));
    }
    let mut uncounted = None;
    let mut measure = |memory: Option<Memory>, in_part: Option<InPart>| {
        let mut bytes = Bytes::default();
        let mut curve = Vec::new();
        let words = memory.map_or("in part".into(), |m| m.to_string());
        for &threads in &counts {
            let counted = host.traffic.as_ref().ok().map(|traffic| traffic.group());
            let (counted, tasks) = match counted {
                Some(Ok((group, tasks))) => (Some(group), Some(tasks)),
                Some(Err(why)) => {
                    uncounted = Some(why);
                    (None, None)
                }
                None => (None, None),
            };
            let before = counted.as_ref().and_then(MonitoringGroup::bytes);
            let launch = Launch {
                threads,
                memory: memory.filter(|_| host.kinds.is_some()),
                in_part,
                cpus: Some(&host.cpus[..threads as usize]),
                log: options.logs.join(format!("profile-{i}.log")),
                tasks,
            };
            let what = format!("{}, {threads} threads, {words}", entry.name);
            let (seconds, most) = alone(group, i, &launch, host, options, &mut || go_on(&what))?;
            bytes.all = bytes.all.max(most.all);
            bytes.fast = bytes.fast.max(most.fast);
            let after = counted.as_ref().and_then(MonitoringGroup::bytes);
            // A counter that begins with the group says nothing before the first access.
            let moved = after.and_then(|bytes| bytes.checked_sub(before.unwrap_or(0)));
            curve.push(Point {
                threads,
                seconds,
                total_gbps: moved.map(|bytes| bytes as f64 / seconds / 1e9),
                ..Point::default()
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
        let takes = demand.bytes;
        let (curve, bytes) = measure(None, Some(InPart { fast, takes }))?;
        demand.part = Some(Part {
            fast_bytes: inside.fast.unwrap_or(bytes.fast),
            curve,
        });
    }
    if let Some(why) = uncounted {
        demand
            .missing
            .push(format!("bytes read and written a second: {why}"));
    }
    demand.missing.extend(written(&demand, host, entry.threads));
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

/// What a sum of bytes says of whether a program writes much, in a line.
fn written(demand: &Demand, host: &LiveHost, threads: u32) -> Option<String> {
    let total = demand.point(Memory::Fast, threads)?.total_gbps?;
    let limit = host.slow_write_gbps().map(|gbps| WRITES * gbps);
    Some(match limit.filter(|&limit| total < limit) {
        Some(limit) => format!(
            "what is read and what is written a second: resctrl counts both together, {total:.2} GB/s, which is less than the {limit:.2} that count as writing much"
        ),
        None => format!(
            "what is read and what is written a second: resctrl counts both together, {total:.2} GB/s; say write_intensive = true if it writes much"
        ),
    })
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::Path;
    use varve_live::resctrl::{MOUNT, Resctrl};

    /// A program that counts its own bytes, in a folder that pretends to be the processor's.
    #[test]
    fn bytes_are_those_that_the_processor_counts_for_the_programs_group() {
        let root = tempfile::tempdir().unwrap();
        let resctrl = root.path().join(MOUNT);
        fs::create_dir_all(resctrl.join("info/L3_MON")).unwrap();
        fs::create_dir_all(resctrl.join("mon_groups")).unwrap();
        fs::write(
            resctrl.join("info/L3_MON/mon_features"),
            "mbm_total_bytes\n",
        )
        .unwrap();
        let script = root.path().join("program");
        let text = format!(
            "for group in {}/mon_groups/*; do\n[ \"$(cat $group/tasks)\" = 0 ] || continue\n\
             mkdir -p $group/mon_data/mon_L3_00\necho 3000000000 > $group/mon_data/mon_L3_00/mbm_total_bytes\ndone\n",
            resctrl.display()
        );
        fs::write(&script, text).unwrap();
        let group = format!(
            "[[program]]\nname = \"counts\"\ncommand = [\"sh\", \"{}\"]\nthreads = 1\n",
            script.display()
        );
        let group = crate::group::parse(&group, "g.toml").unwrap();
        let mut host = LiveHost::new(None).unwrap();
        host.kinds = None;
        host.traffic = Resctrl::at(root.path()).map(Into::into);
        let options = LiveOptions {
            logs: root.path().join("logs"),
            scale: 1,
            seed: 1,
            varve: Path::new("varve").into(),
        };
        let demand = profile(&group, 0, &host, &options, &mut |_| true).unwrap();
        let point = demand.point(Memory::Fast, 1).unwrap();
        let gb = point.total_gbps.unwrap() * point.seconds;
        assert!((gb - 3.0).abs() < 1e-6, "{demand:?}");
        assert_eq!((point.read_gbps, point.write_gbps), (None, None));
        let said = demand.missing.join("\n");
        assert!(
            said.contains("counts both together") && said.contains("write_intensive"),
            "{said}"
        );

        host.traffic = Err("it takes more".into());
        let demand = profile(&group, 0, &host, &options, &mut |_| true).unwrap();
        assert_eq!(demand.point(Memory::Fast, 1).unwrap().total_gbps, None);
        assert!(
            demand.missing[0].ends_with("a second: it takes more"),
            "{:?}",
            demand.missing
        );
    }
}
