//! How programs reduce one another's bandwidth (E10): every way of using memory beside every other.
//!
//! A mode is a pattern (sequential or random, reading or writing), a memory and a number of threads. Each is measured alone, and then
//! beside each other one. Nothing but the machine's queues, buses and buffers decides what comes out.

use crate::compare::{Making, in_parallel};
use crate::error::Error;
use crate::kinds::Memory;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use varve_live::curves::{PairMode, side_by_side};
use varve_machine::Machine;
use varve_machine::calibrate::{self, Bench, How, Order};
use varve_report::fmt::Format;
use varve_report::{Axis, Chart, Data, HeatRow};

/// Threads of the paper's test.
pub const THREADS: [u32; 5] = [1, 2, 4, 8, 10];

/// One thread's memory on a model, bytes: more than its part of the caches.
const REGION: u64 = 64 << 20;

/// A way of using memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mode {
    /// Stores past the caches, else loads.
    pub writes: bool,
    /// Lines in no order, else one after the other.
    pub random: bool,
    /// Where.
    pub memory: Memory,
    /// Threads, each in memory of its own.
    pub threads: u32,
}

impl Mode {
    /// `SR`, `RR`, `SW` or `RW`, as in the paper.
    pub fn pattern(&self) -> &'static str {
        match (self.random, self.writes) {
            (false, false) => "SR",
            (true, false) => "RR",
            (false, true) => "SW",
            (true, true) => "RW",
        }
    }

    /// Such as `RW slow 10`.
    pub fn name(&self) -> String {
        format!("{} {} {}", self.pattern(), self.memory, self.threads)
    }
}

/// All modes with these numbers of threads, in these memories.
pub fn modes(threads: &[u32], memories: &[Memory]) -> Vec<Mode> {
    let mut all = Vec::new();
    for &memory in memories {
        for (random, writes) in [(false, false), (true, false), (false, true), (true, true)] {
            all.extend(threads.iter().map(|&threads| Mode {
                writes,
                random,
                memory,
                threads,
            }));
        }
    }
    all
}

/// The results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Matrix {
    /// The machine.
    pub machine: String,
    /// The modes.
    pub modes: Vec<Mode>,
    /// GB/s of each mode alone.
    pub alone: Vec<f64>,
    /// GB/s of each mode (outer) beside each other one; `None` where both together have more threads than there are cores.
    pub beside: Vec<Vec<Option<f64>>>,
}

impl Matrix {
    /// The place of a mode.
    pub fn find(&self, pattern: &str, memory: Memory, threads: u32) -> Option<usize> {
        let is = |m: &Mode| m.pattern() == pattern && m.memory == memory && m.threads == threads;
        self.modes.iter().position(is)
    }

    /// Percent of its bandwidth that a mode loses beside another.
    pub fn loss(&self, mode: usize, beside: usize) -> Option<f64> {
        let with = self.beside[mode][beside]?;
        Some(100.0 * (1.0 - with / self.alone[mode])).filter(|x| x.is_finite())
    }

    /// As a picture: darker for more that is lost.
    pub fn chart(&self) -> Chart {
        let names: Vec<String> = self.modes.iter().map(Mode::name).collect();
        let n = self.modes.len();
        let rows = (0..n)
            .map(|i| HeatRow {
                name: names[i].clone(),
                // A bandwidth that grows beside another is noise, or luck: nothing is lost.
                cells: (0..n)
                    .map(|j| self.loss(i, j).map_or(f64::NAN, |x| x.max(0.0)))
                    .collect(),
            })
            .collect();
        Chart::new(
            "interference",
            format!("Bandwidth lost beside others on {}", self.machine),
            Axis::new("beside", "", Format::Number),
            Axis::new("bandwidth lost", "", Format::Percent).between(0.0, 100.0),
            Data::HeatMap {
                columns: names,
                rows,
            },
        )
        .with_note(
            "S sequential, R random; R reading, W writing; memory; threads. A row is whose bandwidth is looked at.",
        )
    }
}

/// The matrix on a modelled machine. A pair costs one run, which measures both.
///
/// # Errors
/// A machine with one memory; an interrupt.
pub fn on_model(machine: &Machine, threads: &[u32], making: &Making) -> Result<Matrix, Error> {
    use calibrate::MeasuredMemory;
    let has = MeasuredMemory::of(machine);
    let slow = [MeasuredMemory::Pm, MeasuredMemory::Cxl]
        .into_iter()
        .find(|m| has.contains(m));
    let Some(slow) = slow.filter(|_| has.contains(&MeasuredMemory::Dram)) else {
        return Err(Error::OneMemory(machine.name.clone()));
    };
    let modes = modes(threads, &Memory::ALL);
    let bench = Bench::new(machine).prefetching(machine);
    let pattern = |m: &Mode| {
        let how = if m.writes { How::Mix(0) } else { How::Read };
        let (order, block) = match m.random {
            true => (Order::Random, 64),
            false => (Order::Sequential, 256),
        };
        let place = match m.memory {
            Memory::Fast => MeasuredMemory::Dram,
            Memory::Slow => slow,
        };
        let pattern = calibrate::Pattern::new(how, order, m.threads as usize, block, REGION);
        (pattern, place)
    };
    let cores = bench.cores() as u32;
    let pairs = pairs(&modes, cores);
    let key = format!(
        "interference {} {threads:?}",
        serde_json::to_string(machine).unwrap_or_default()
    );
    let name = |i: usize| {
        let (a, b) = pairs[i];
        match b {
            Some(b) => format!("{} beside {}", modes[a].name(), modes[b].name()),
            None => modes[a].name(),
        }
    };
    let what = || format!("interference on {}", machine.name);
    making.keep.kept_or_made(&key, &what, || {
        let measured = in_parallel(pairs.len(), making, &name, &|i, go_on| {
            let idle = varve_machine::model::Progress {
                now_ns: 0,
                accesses: 0,
                phase: 0,
                requests: 0,
            };
            if !go_on(&idle) {
                return Err(varve_machine::model::RunError::Interrupted.into());
            }
            let (a, b) = pairs[i];
            let both = [Some(a), b].into_iter().flatten();
            let done = bench.run(both.map(|m| pattern(&modes[m])).collect());
            Ok(done.iter().map(calibrate::Pattern::gbps).collect())
        })?;
        Ok(gather(&machine.name, modes.clone(), &pairs, measured))
    })
}

/// The matrix on this machine: on each of its kinds of memory, by as many threads as there are processors for.
///
/// # Errors
/// Memory that cannot be had; an interrupt.
pub fn here(
    nodes: &[(Memory, u32)],
    cpus: &[u32],
    threads: &[u32],
    time: Duration,
    go_on: &mut dyn FnMut(usize, usize, &str) -> bool,
) -> Result<Matrix, Error> {
    let memories: Vec<Memory> = nodes.iter().map(|n| n.0).collect();
    let modes = modes(threads, &memories);
    let pairs = pairs(&modes, cpus.len() as u32);
    let mode = |m: &Mode| PairMode {
        writes: m.writes,
        random: m.random,
        threads: m.threads as usize,
        node: nodes.iter().find(|n| n.0 == m.memory).map_or(0, |n| n.1),
    };
    let mut measured = Vec::new();
    for (i, &(a, b)) in pairs.iter().enumerate() {
        if !go_on(i, pairs.len(), &modes[a].name()) {
            return Err(varve_machine::model::RunError::Interrupted.into());
        }
        let both: Vec<PairMode> = [Some(a), b]
            .into_iter()
            .flatten()
            .map(|m| mode(&modes[m]))
            .collect();
        measured.push(side_by_side(&both, cpus, nodes.len() > 1, time).map_err(Error::Live)?);
    }
    Ok(gather("here", modes, &pairs, measured))
}

/// Each mode alone, and every pair that has room, once.
fn pairs(modes: &[Mode], cores: u32) -> Vec<(usize, Option<usize>)> {
    let fits = |a: usize, b: usize| modes[a].threads + modes[b].threads <= cores;
    let alone = (0..modes.len()).map(|a| (a, None));
    let both = (0..modes.len())
        .flat_map(|a| (a..modes.len()).map(move |b| (a, b)))
        .filter(|&(a, b)| fits(a, b))
        .map(|(a, b)| (a, Some(b)));
    alone.chain(both).collect()
}

fn gather(
    machine: &str,
    modes: Vec<Mode>,
    pairs: &[(usize, Option<usize>)],
    measured: Vec<Vec<f64>>,
) -> Matrix {
    let n = modes.len();
    let mut matrix = Matrix {
        machine: machine.into(),
        modes,
        alone: vec![0.0; n],
        beside: vec![vec![None; n]; n],
    };
    for (&(a, b), gbps) in pairs.iter().zip(&measured) {
        match b {
            None => matrix.alone[a] = gbps[0],
            Some(b) => {
                matrix.beside[a][b] = gbps.first().copied();
                matrix.beside[b][a] = gbps.get(1).copied();
            }
        }
    }
    matrix
}
