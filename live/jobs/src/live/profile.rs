//! Demands on this machine: each program alone, in either memory, with 1, 2, 4 and so on threads.
//!
//! Wall time and resident memory, but for that of files, are measured. Bandwidth is measured where there are counters: of the processor for
//! groups of tasks (resctrl), as the sum of what is read and what is written; or of the memory controllers for the whole machine, which
//! has the program alone then, as far as we know. Elsewhere classes go by times alone.

use super::host::LiveHost;
use super::inside::InPart;
use super::start::{self, Launch, Started};
use super::{LiveOptions, sys, words};
use crate::class::WRITES;
use crate::demand::{Demand, PartialDemand, Point};
use crate::error::Error;
use crate::group::Group;
use crate::inside::Told;
use crate::kinds::Memory;
use std::time::{Duration, Instant};
use varve_live::traffic::{Meter, TrafficBytes, TrafficMeter};
use varve_run::request::SHARE;

const LOOK: Duration = Duration::from_millis(2);

/// How long the traffic of other programs is measured.
const REST: Duration = Duration::from_millis(100);

/// Residency is read once in this many samples: reading it costs kernel time.
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
    let others = host.traffic.as_ref().ok().and_then(|t| others(t));
    let mut uncounted = None;
    let mut measure = |memory: Option<Memory>, in_part: Option<InPart>| {
        let mut bytes = Bytes::default();
        let mut curve = Vec::new();
        let words = memory.map_or("in part".into(), |m| m.to_string());
        for &threads in &counts {
            let begun = host.traffic.as_ref().map(|traffic| traffic.begin());
            let (meter, tasks) = match begun {
                Ok(Ok((meter, tasks))) => (Some(meter), tasks),
                Ok(Err(why)) => {
                    uncounted = Some(why);
                    (None, None)
                }
                Err(_) => (None, None),
            };
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
            let moved = meter.as_ref().filter(|_| host.is_counted(memory));
            let moved = moved.and_then(Meter::moved);
            curve.push(point(threads, seconds, moved));
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
        demand.part = Some(PartialDemand {
            fast_bytes: inside.fast.unwrap_or(bytes.fast),
            curve,
        });
    }
    if let Some(why) = uncounted {
        demand
            .missing
            .push(format!("bytes read and written a second: {why}"));
    }
    if host.traffic.is_ok() && host.kinds.is_some() && !host.is_counted(Some(Memory::Slow)) {
        demand.missing.push(
            "bytes read and written a second in slow memory: the memory controllers' counters count memory of nodes with processors alone"
                .into(),
        );
    }
    demand
        .missing
        .extend(written(&demand, host, entry.threads, others));
    // The process that performs a workload has some MiB of its own, which scaling does not reduce.
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

/// GB/s that others move while the program does not run yet, where they count too.
fn others(traffic: &TrafficMeter) -> Option<f64> {
    let TrafficMeter::Machine(_) = traffic else {
        return None;
    };
    let (meter, _) = traffic.begin().ok()?;
    let begun = Instant::now();
    std::thread::sleep(REST);
    Some(meter.moved()?.sum() / begun.elapsed().as_secs_f64() / 1e9)
}

/// A point of a curve, with bytes a second as they were counted.
fn point(threads: u32, seconds: f64, moved: Option<TrafficBytes>) -> Point {
    let gbps = |bytes: f64| Some(bytes / seconds / 1e9);
    let (read_gbps, write_gbps, total_gbps) = match moved {
        None => (None, None, None),
        Some(TrafficBytes::Sum(bytes)) => (None, None, gbps(bytes)),
        Some(TrafficBytes::Apart { read, written }) => (gbps(read), gbps(written), None),
    };
    Point {
        threads,
        seconds,
        read_gbps,
        write_gbps,
        total_gbps,
    }
}

/// How bytes were counted, and what they say of whether a program writes much, in a line.
fn written(demand: &Demand, host: &LiveHost, threads: u32, others: Option<f64>) -> Option<String> {
    let point = demand.point(Memory::Fast, threads)?;
    let limit = host.slow_write_gbps().map(|gbps| WRITES * gbps);
    let said = match (point.write_gbps, point.total_gbps, limit) {
        (Some(_), _, Some(limit)) => {
            format!("from {limit:.2} GB/s written on it counts as writing much")
        }
        (Some(written), _, None) => format!(
            "it writes {written:.2} GB/s, and the firmware does not state what slow memory can write; say write_intensive = true if that is much"
        ),
        (None, Some(total), Some(limit)) if total < limit => {
            format!("{total:.2} GB/s are less than the {limit:.2} that count as writing much")
        }
        (None, Some(total), _) => {
            format!("{total:.2} GB/s; say write_intensive = true if it writes much")
        }
        (None, None, _) => return None,
    };
    let how = host.traffic.as_ref().ok()?.words();
    let others = others.map_or(String::new(), |gbps| {
        format!("; other traffic before it began: {gbps:.2} GB/s")
    });
    Some(format!("read and write bandwidth: {how}{others}; {said}"))
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
    use crate::class::{Limits, classify};
    use std::fs;
    use std::path::Path;
    use varve_live::traffic::resctrl::{MOUNT, Resctrl};
    use varve_live::traffic::{Controllers, Counter, Reader, Reading, TransferDirection};

    /// A program that counts its own bytes, in folders that pretend to be the processor's.
    #[test]
    fn bytes_are_those_that_somebody_counts() {
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
        host.traffic = Ok(TrafficMeter::Groups(Resctrl::at(root.path()).unwrap()).into());
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
            said.contains("are one sum") && said.contains("write_intensive"),
            "{said}"
        );

        // The memory controllers' counters, of which the program is the only one to count.
        let device = root.path().join("sys/bus/event_source/devices/amd_umc_0");
        fs::create_dir_all(device.join("format")).unwrap();
        for (file, text) in [
            ("type", "30"),
            ("cpumask", "0"),
            ("format/event", "config:0-7"),
            ("format/rdwrmask", "config:8-9"),
        ] {
            fs::write(device.join(file), text).unwrap();
        }
        let counted = root.path().join("counted");
        fs::write(&counted, "0 0").unwrap();
        fs::write(
            &script,
            format!("echo 30000000 10000000 > {}\n", counted.display()),
        )
        .unwrap();
        let open = move |counter: &Counter| -> Result<Reader, String> {
            let (at, counted) = (
                usize::from(counter.counts == TransferDirection::Writes),
                counted.clone(),
            );
            Ok(Box::new(move || {
                let text = fs::read_to_string(&counted)?;
                let count = text.split_whitespace().nth(at).unwrap_or("0");
                Ok(Reading {
                    count: count.parse().unwrap_or(0),
                    enabled: 0,
                    running: 0,
                })
            }))
        };
        let controllers = Controllers::with(root.path(), &open).unwrap();
        host.traffic = Ok(TrafficMeter::Machine(controllers).into());
        let demand = profile(&group, 0, &host, &options, &mut |_| true).unwrap();
        let point = demand.point(Memory::Fast, 1).unwrap();
        let gb = |gbps: Option<f64>| gbps.unwrap() * point.seconds;
        assert!((gb(point.read_gbps) - 1.92).abs() < 1e-6, "{demand:?}");
        assert!((gb(point.write_gbps) - 0.64).abs() < 1e-6, "{demand:?}");
        assert_eq!(point.total_gbps, None);
        let said = demand.missing.join("\n");
        assert!(
            [
                "do not know who asks",
                "firmware does not state",
                "other traffic before it began: 0.00 GB/s"
            ]
            .iter()
            .all(|part| said.contains(part)),
            "{said}"
        );
        // So its class is measured where it is known what slow memory can write.
        let class = |most: f64| {
            let limits = Limits {
                slow_write_gbps: Some(most),
            };
            classify(&group.programs[0], &demand, &limits).write_intensive
        };
        let gbps = point.write_gbps.unwrap();
        assert!(class(3.9 * gbps) && !class(4.1 * gbps));

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
