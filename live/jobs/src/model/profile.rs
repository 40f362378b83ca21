//! Demands on the model: each program alone, in either memory, with 1, 2, 3 and so on threads.
//!
//! More threads are tried until one does not pay any more, as Algorithm 2 does, and the program's usual number.

use super::head::Head;
use super::rooms::IsFast;
use super::{ModelSpec, inside};
use crate::demand::{Demand, PartialDemand, Point};
use crate::error::Error;
use crate::group::{Group, Modelled, Program as Entry};
use crate::inside::Told;
use crate::kinds::Memory;
use crate::plan::Host;
use crate::policy::threads::PAYS;
use varve_access::Program;
use varve_machine::model::{self, Options, Progress};
use varve_pages::policies::ByTier;
use varve_pages::{Counting, Frames, Placement};
use varve_run::Keep;
use varve_run::request::SHARE;

/// A program's speed is measured over this part of its accesses, and over no fewer than [`LEAST`].
const PART: u64 = 12;

/// See [`PART`].
const LEAST: u64 = 200_000;

/// Measures the demands of one program, keeping what was measured before in `keep`.
///
/// It runs once from beginning to end, in fast memory with its usual threads; all other points are of its first part, and their
/// times are in proportion. A program that cannot be scaled runs to its end in either memory. Of one that fails nothing is known but how
/// much memory it had, and why.
///
/// # Errors
/// The modelled form of the program cannot be run; an interrupt.
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
    let what = || format!("what {} asks of memory", entry.name);
    let mut demand: Demand =
        keep.kept_or_made(&key, &what, || measure(group, i, spec, host, watch))?;
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
    let mut demand = Demand::default();
    // In fast memory, or in slow if that alone has room.
    let mut home = None;
    for memory in Memory::ALL {
        let program = spec.program(group, i, usual)?;
        home = alone(spec, program, Place::All(memory), watch)?.map(|m| (memory, m));
        if home.is_some() {
            break;
        }
        demand.missing.push(no_room(memory));
    }
    let Some((home, whole)) = home else {
        let name = &spec.machine.name;
        let what = format!("needs more memory than either kind of {name} has");
        let remedy = "make it smaller, or take a machine with more";
        return Err(group.problem(i, entry.key(), what, remedy).into());
    };
    demand.bytes = whole.bytes;
    if let Some(why) = whole.failure {
        demand.missing.push(format!("it does not end well: {why}"));
        return Ok(demand);
    }
    let memories = || Memory::ALL.into_iter().skip(home.index());
    if entry.modelled.as_ref().is_some_and(Modelled::is_fixed) {
        let threads = whole.threads;
        let s = if threads == 1 { "" } else { "s" };
        let what = format!("it has {threads} thread{s}: no others were tried");
        demand.missing.push(what);
        demand.curves[home.index()] = vec![whole.point(1.0)];
        for other in memories().filter(|&m| m != home) {
            let program = spec.program(group, i, usual)?;
            match alone(spec, program, Place::All(other), watch)? {
                Some(m) => demand.curves[other.index()] = vec![m.point(1.0)],
                None => demand.missing.push(no_room(other)),
            }
        }
        demand.part = part(group, i, spec, demand.bytes, watch)?;
        return Ok(demand);
    }
    let part = (whole.accesses / PART).max(LEAST);
    let mut head = |memory: Memory, threads: u32| -> Result<Option<Measured>, Error> {
        let program = Head::new(spec.program(group, i, threads)?, part);
        alone(spec, Box::new(program), Place::All(memory), watch)
    };
    let start = head(home, usual)?.map_or(whole.seconds, |m| m.seconds);
    let to_whole = whole.seconds / start;
    for memory in memories() {
        match curve(&mut |threads| head(memory, threads), usual, host.cores)? {
            Some(points) => {
                demand.curves[memory.index()] = points.iter().map(|m| m.point(to_whole)).collect();
            }
            None => demand.missing.push(no_room(memory)),
        }
    }
    Ok(demand)
}

/// The same program with its own memory placed, if its file says how and the model can.
fn part(
    group: &Group,
    i: usize,
    spec: &ModelSpec,
    bytes: u64,
    watch: &mut dyn FnMut(&Progress) -> bool,
) -> Result<Option<PartialDemand>, Error> {
    let Some(inside) = inside::of(group, i) else {
        return Ok(None);
    };
    let share = (bytes as f64 * SHARE / 100.0) as u64;
    // Sites have to know how much there is to choose.
    let fast = inside
        .fast
        .or((inside.told == Told::Sites).then_some(share));
    let Some(placed) = spec.placed(group, i, fast, bytes)? else {
        return Ok(None);
    };
    let place = Place::Part(placed.is_fast);
    let Some(measured) = alone(spec, placed.program, place, watch)? else {
        return Ok(None);
    };
    if measured.failure.is_some() {
        return Ok(None);
    }
    Ok(Some(PartialDemand {
        fast_bytes: inside.fast.unwrap_or(measured.fast_bytes),
        curve: vec![measured.point(1.0)],
    }))
}

fn no_room(memory: Memory) -> String {
    format!("{}: it has no room there", memory.words())
}

/// One memory's curve: with more and more threads until another one does not pay, and with the usual ones. `None` if there is no room.
fn curve(
    head: &mut dyn FnMut(u32) -> Result<Option<Measured>, Error>,
    usual: u32,
    cores: u32,
) -> Result<Option<Vec<Measured>>, Error> {
    let Some(first) = head(1)? else {
        return Ok(None);
    };
    let one = first.seconds;
    let mut points = vec![first];
    let mut speedup = 1.0;
    for threads in 2..=cores {
        let Some(point) = head(threads)? else {
            return Ok(None);
        };
        let next = one / point.seconds;
        points.push(point);
        if (next - speedup) / speedup < PAYS {
            break;
        }
        speedup = next;
    }
    if points.iter().all(|p| p.threads != usual) {
        points.extend(head(usual)?);
        points.sort_by_key(|p| p.threads);
    }
    Ok(Some(points))
}

/// Measurements of a program alone, at full size.
#[derive(Clone, Debug)]
struct Measured {
    threads: u32,
    seconds: f64,
    accesses: u64,
    bytes: u64,
    /// The most of these in fast memory.
    fast_bytes: u64,
    read_gbps: f64,
    write_gbps: f64,
    failure: Option<String>,
}

impl Measured {
    fn point(&self, to_whole: f64) -> Point {
        Point {
            threads: self.threads,
            seconds: self.seconds * to_whole,
            read_gbps: Some(self.read_gbps),
            write_gbps: Some(self.write_gbps),
            ..Point::default()
        }
    }
}

/// Everything that a measurement depends on.
fn key(entry: &Entry, spec: &ModelSpec, cores: u32) -> String {
    let modelled = entry.modelled.as_ref().map(Modelled::identity);
    let modelled = modelled.unwrap_or_default();
    let machine = serde_json::to_string(&spec.machine).unwrap_or_default();
    let profile = entry.inside.as_ref().and_then(|i| i.sites.as_deref());
    let profile = profile.and_then(varve_run::digest);
    format!(
        "demand {modelled} {machine} {} {} {} {cores} {:?} {profile:?}",
        spec.scale, spec.seed, entry.threads, entry.inside
    )
}

/// Runs a program by itself; `None` if there is no room for it.
fn alone(
    spec: &ModelSpec,
    mut program: Box<dyn Program>,
    place: Place,
    watch: &mut dyn FnMut(&Progress) -> bool,
) -> Result<Option<Measured>, Error> {
    let topology = spec.topology()?;
    let threads = program.threads().max(1) as u32;
    let page = topology.page_bytes;
    let (is_fast, or_other): (IsFast, bool) = match place {
        Place::All(memory) => (Box::new(move |_| memory == Memory::Fast), false),
        Place::Part(is_fast) => (is_fast, true),
    };
    let nodes = [false, true].map(|fast| topology.nearest_of(0, fast));
    let policy = ByTier::new(nodes, move |vpn| is_fast(vpn * page)).or_other(or_other);
    let frames = Frames::in_order(&topology);
    let pager = Placement::with("alone", topology, frames, Box::new(policy));
    let mut pager = pager.counted(Counting::of_one());
    let options = Options {
        seed: spec.seed,
        ..Options::default()
    };
    let mut running: Vec<&mut dyn Program> = vec![program.as_mut()];
    let outcome = match model::run(&spec.scaled(), &mut pager, &mut running, &options, watch) {
        Err(model::RunError::OutOfFrames(_)) => return Ok(None),
        other => other?,
    };
    let (mut reads, mut writes, mut accesses) = (0, 0, 0);
    for phase in &outcome.phases {
        let m = phase.memory();
        reads += m.dram.reads + m.pm.reads + m.cxl_reads;
        writes += m.dram.writes + m.pm.writes + m.cxl_writes;
        accesses += phase.counts.accesses;
    }
    let most_fast = pager.counting().map_or(0, Counting::most_fast);
    let gbps = |lines: u64| lines as f64 * 64.0 / outcome.ns.max(1) as f64;
    Ok(Some(Measured {
        threads,
        seconds: outcome.ns as f64 * f64::from(spec.scale) / 1e9,
        accesses,
        bytes: outcome.pages * outcome.page_bytes * u64::from(spec.scale),
        fast_bytes: most_fast * outcome.page_bytes * u64::from(spec.scale),
        read_gbps: gbps(reads),
        write_gbps: gbps(writes),
        failure: outcome.failure,
    }))
}

/// Where the pages of a program are that runs alone.
enum Place {
    /// All in one memory, and nowhere else.
    All(Memory),
    /// These addresses in fast memory, and others in slow; where that is full, in the other one.
    Part(IsFast),
}
