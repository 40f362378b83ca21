//! Demands on the model: each program alone, in either memory, with 1, 2, 3 and so on threads.
//!
//! More threads are tried until one does not pay any more, as Algorithm 2 does, and with as many as the program usually has.

use super::ModelSpec;
use super::head::Head;
use crate::demand::{Demand, Point};
use crate::error::Error;
use crate::group::{Group, Memory, Modelled, Program as Entry};
use crate::plan::Host;
use crate::policy::threads::PAYS;
use varve_machine::model::{self, Options, Progress};
use varve_machine::{Fault, OutOfFrames, Pager, Program};
use varve_pages::{Frames, Topology};
use varve_run::Keep;

/// A program's speed is measured over this part of its accesses, and over no fewer than [`LEAST`].
const PART: u64 = 12;

/// See [`PART`].
const LEAST: u64 = 200_000;

/// Measures the demands of one program, keeping what was measured before in `keep`.
///
/// It runs once from beginning to end, in fast memory with its usual threads; all other points are of its first part, and their
/// times are in proportion.
///
/// # Errors
/// What the program is on the model cannot be run there; an interrupt.
pub fn profile(
    group: &Group,
    i: usize,
    spec: &ModelSpec,
    host: &Host,
    keep: &Keep,
    watch: &mut dyn FnMut(&Progress) -> bool,
) -> Result<Demand, Error> {
    let entry = &group.programs[i];
    let key = key(entry, spec, host.cores);
    let mut demand = match keep.get::<Demand>(&key) {
        Some(kept) => kept,
        None => {
            let measured = measure(group, i, spec, host, watch)?;
            keep.put(&key, &measured)?;
            measured
        }
    };
    demand.name = entry.name.clone();
    if let Some(bytes) = entry.bytes {
        demand.bytes = bytes;
    }
    Ok(demand)
}

fn measure(
    group: &Group,
    i: usize,
    spec: &ModelSpec,
    host: &Host,
    watch: &mut dyn FnMut(&Progress) -> bool,
) -> Result<Demand, Error> {
    let entry = &group.programs[i];
    let usual = entry.threads;
    let whole = alone(spec, spec.program(group, i, usual)?, Memory::Fast, watch)?;
    let part = (whole.accesses / PART).max(LEAST);
    let mut head = |memory: Memory, threads: u32| -> Result<Measured, Error> {
        let program = Head::new(spec.program(group, i, threads)?, part);
        alone(spec, Box::new(program), memory, watch)
    };
    let mut demand = Demand {
        bytes: whole.bytes,
        ..Demand::default()
    };
    let start = head(Memory::Fast, usual)?;
    let to_whole = whole.seconds / start.seconds;
    // A trace has as many threads as were recorded.
    let fixed = matches!(entry.modelled, Some(Modelled::Trace(_)));
    if fixed {
        let what = format!(
            "its trace has {} threads: no others were tried",
            whole.threads
        );
        demand.missing.push(what);
    }
    for memory in Memory::ALL {
        let first = head(memory, 1)?;
        let mut points = vec![first.clone()];
        let mut speedup = 1.0;
        for threads in 2..=host.cores {
            if fixed {
                break;
            }
            let point = head(memory, threads)?;
            let next = first.seconds / point.seconds;
            points.push(point);
            if (next - speedup) / speedup < PAYS {
                break;
            }
            speedup = next;
        }
        if !fixed && points.iter().all(|p| p.threads != usual) {
            points.push(head(memory, usual)?);
            points.sort_by_key(|p| p.threads);
        }
        let point = |m: &Measured| m.point(to_whole);
        demand.curves[memory.index()] = points.iter().map(point).collect();
    }
    Ok(demand)
}

/// What was measured of a program alone, at full size.
#[derive(Clone, Debug)]
struct Measured {
    threads: u32,
    seconds: f64,
    accesses: u64,
    bytes: u64,
    read_gbps: f64,
    write_gbps: f64,
}

impl Measured {
    fn point(&self, to_whole: f64) -> Point {
        Point {
            threads: self.threads,
            seconds: self.seconds * to_whole,
            read_gbps: Some(self.read_gbps),
            write_gbps: Some(self.write_gbps),
        }
    }
}

/// Everything that a measurement depends on.
fn key(entry: &Entry, spec: &ModelSpec, cores: u32) -> String {
    let modelled = match &entry.modelled {
        Some(Modelled::Trace(file)) => {
            let changed = file.metadata().and_then(|m| m.modified()).ok();
            format!("{} {changed:?}", file.display())
        }
        other => format!("{other:?}"),
    };
    let machine = serde_json::to_string(&spec.machine).unwrap_or_default();
    format!(
        "demand {modelled} {machine} {} {} {} {cores}",
        spec.scale, spec.seed, entry.threads
    )
}

fn alone(
    spec: &ModelSpec,
    mut program: Box<dyn Program>,
    memory: Memory,
    watch: &mut dyn FnMut(&Progress) -> bool,
) -> Result<Measured, Error> {
    let topology = spec.topology()?;
    let threads = program.threads().max(1) as u32;
    let mut pager = One::new(&topology, memory);
    let options = Options {
        seed: spec.seed,
        ..Options::default()
    };
    let mut running: Vec<&mut dyn Program> = vec![program.as_mut()];
    let outcome = model::run(&spec.scaled(), &mut pager, &mut running, &options, watch)?;
    if let Some(why) = outcome.failure {
        return Err(model::RunError::Program(why).into());
    }
    let (mut reads, mut writes, mut accesses) = (0, 0, 0);
    for phase in &outcome.phases {
        let m = phase.memory();
        reads += m.dram.reads + m.pm.reads + m.cxl_reads;
        writes += m.dram.writes + m.pm.writes + m.cxl_writes;
        accesses += phase.counts.accesses;
    }
    let gbps = |lines: u64| lines as f64 * 64.0 / outcome.ns.max(1) as f64;
    Ok(Measured {
        threads,
        seconds: outcome.ns as f64 * f64::from(spec.scale) / 1e9,
        accesses,
        bytes: outcome.pages * outcome.page_bytes * u64::from(spec.scale),
        read_gbps: gbps(reads),
        write_gbps: gbps(writes),
    })
}

/// All pages in one memory.
struct One {
    frames: Frames,
    nodes: Vec<usize>,
}

impl One {
    fn new(topology: &Topology, memory: Memory) -> One {
        let near = topology.nearest(0).into_iter();
        let fast = memory == Memory::Fast;
        One {
            frames: Frames::in_order(topology),
            nodes: near.filter(|&n| topology.nodes[n].fast == fast).collect(),
        }
    }
}

impl Pager for One {
    fn page_bytes(&self) -> u64 {
        self.frames.page_bytes()
    }

    fn fault(&mut self, _: &Fault) -> Result<u32, OutOfFrames> {
        let frame = (self.nodes.iter()).find_map(|&n| self.frames.take_from(n));
        frame.ok_or(OutOfFrames {
            pages: self.frames.used(),
            page_bytes: self.frames.page_bytes(),
        })
    }

    fn unmap(&mut self, _: u64, frame: u32) {
        self.frames.give(frame);
    }
}
