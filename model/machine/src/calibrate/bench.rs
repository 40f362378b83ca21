//! A machine prepared for measuring, and which of its memories a pattern runs in.

use super::pattern::Pattern;
use crate::Machine;
use crate::model::{self, Backing, Options, PmCounts, SocketCounts};
use varve_access::{Fault, OutOfFrames, Pager, Program};

/// A memory that curves are measured in, seen from socket 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeasuredMemory {
    /// DRAM of socket 0.
    Dram,
    /// DRAM of socket 1.
    RemoteDram,
    /// All PM DIMMs of socket 0, interleaved as the machine does.
    Pm,
    /// One PM DIMM of socket 0.
    PmDimm,
    /// PM of socket 1.
    RemotePm,
    /// The CXL expander of socket 0.
    Cxl,
    /// Slow memory behind the DRAM cache of socket 0.
    Cached,
}

impl MeasuredMemory {
    /// Name in ids of curves.
    pub fn id(self) -> &'static str {
        match self {
            MeasuredMemory::Dram => "dram",
            MeasuredMemory::RemoteDram => "remote-dram",
            MeasuredMemory::Pm => "pm",
            MeasuredMemory::PmDimm => "pm-dimm",
            MeasuredMemory::RemotePm => "remote-pm",
            MeasuredMemory::Cxl => "cxl",
            MeasuredMemory::Cached => "cached",
        }
    }

    fn node(self) -> (Backing, usize) {
        match self {
            MeasuredMemory::Dram => (Backing::Dram, 0),
            MeasuredMemory::RemoteDram => (Backing::Dram, 1),
            MeasuredMemory::Pm | MeasuredMemory::PmDimm => (Backing::Pm, 0),
            MeasuredMemory::RemotePm => (Backing::Pm, 1),
            MeasuredMemory::Cxl => (Backing::Cxl, 0),
            MeasuredMemory::Cached => (Backing::Cached, 0),
        }
    }

    /// The memories that `machine` has.
    pub fn of(machine: &Machine) -> Vec<MeasuredMemory> {
        let all = [
            MeasuredMemory::Dram,
            MeasuredMemory::RemoteDram,
            MeasuredMemory::Pm,
            MeasuredMemory::PmDimm,
            MeasuredMemory::RemotePm,
            MeasuredMemory::Cxl,
            MeasuredMemory::Cached,
        ];
        let nodes = model::nodes(machine);
        all.into_iter()
            .filter(|m| nodes.iter().any(|n| (n.backing, n.socket) == m.node()))
            .collect()
    }
}

/// Pages of the benchmarks: of 2 MiB, as benchmarks use them; smaller where a memory is no whole number of them.
fn page_of(machine: &Machine) -> u64 {
    let sizes = model::nodes(machine).into_iter().map(|n| n.bytes);
    sizes.fold(2 << 20, |page, bytes| {
        page.min(1 << bytes.trailing_zeros().clamp(12, 30))
    })
}

/// Windows grow no longer than this, ns.
const LONGEST_WINDOW_NS: u64 = 1_000_000_000;

/// A prepared machine.
#[derive(Clone, Debug)]
pub struct Bench {
    machine: Machine,
    /// Virtual time that is measured after a warm-up of half as much, ns.
    pub window_ns: u64,
    /// Memory of another socket was never read from this one.
    cold: bool,
}

impl Bench {
    /// Prepares `machine`: first touches of pages cost nothing, and prefetchers are off as in published studies.
    pub fn new(machine: &Machine) -> Bench {
        let mut m = machine.clone();
        m.os.fault_ns = 0.0;
        m.prefetch.streams = 0;
        Bench {
            machine: m,
            window_ns: 100_000,
            cold: false,
        }
    }

    /// The same machine with the prefetchers on.
    pub fn prefetching(mut self, machine: &Machine) -> Bench {
        self.machine.prefetch = machine.prefetch.clone();
        self
    }

    /// The same with another window, ns.
    pub fn window(mut self, ns: u64) -> Bench {
        self.window_ns = ns;
        self
    }

    /// The same, but memory of another socket was never read from this one before. Otherwise it was, as in a benchmark that
    /// runs over its memory for seconds.
    pub fn cold(mut self) -> Bench {
        self.cold = true;
        self
    }

    /// The same machine with one PM DIMM per socket, as [`MeasuredMemory::PmDimm`] needs it.
    pub fn one_dimm(mut self) -> Bench {
        if let Some(pm) = &mut self.machine.pm {
            pm.dimms = 1;
        }
        self
    }

    /// Cores of socket 0.
    pub fn cores(&self) -> usize {
        self.machine.core.per_socket as usize
    }

    /// Runs patterns together, each in its memory, and returns them with their measurements.
    ///
    /// A machine so slow that nothing is done within the window, such as one that was probed while others kept it busy, gets
    /// a longer one.
    pub fn run(&self, patterns: Vec<(Pattern, MeasuredMemory)>) -> Vec<Pattern> {
        self.counted(patterns).0
    }

    /// The same; also the counts of the PM DIMMs, the warm-up included.
    pub fn counted(&self, patterns: Vec<(Pattern, MeasuredMemory)>) -> (Vec<Pattern>, PmCounts) {
        let mut bench = self.clone();
        loop {
            let (done, counts) = bench.once(patterns.clone());
            if done.iter().all(|p| p.gbps() > 0.0) || bench.window_ns >= LONGEST_WINDOW_NS {
                return (done, counts.pm);
            }
            bench.window_ns *= 10;
        }
    }

    /// Runs them once; also the counts of the memory, the warm-up included.
    fn once(&self, patterns: Vec<(Pattern, MeasuredMemory)>) -> (Vec<Pattern>, SocketCounts) {
        let warm = self.window_ns / 2;
        let page = page_of(&self.machine);
        let nodes = model::nodes(&self.machine);
        let mut pager = InOrder {
            page,
            ..InOrder::default()
        };
        let mut programs: Vec<Pattern> = Vec::new();
        let mut read_before = Vec::new();
        // Programs in the same memory lie behind one another.
        let mut taken: Vec<(MeasuredMemory, u64)> = Vec::new();
        for (pattern, memory) in patterns {
            let before: u64 = taken.iter().filter(|t| t.0 == memory).map(|t| t.1).sum();
            let node = nodes
                .iter()
                .find(|n| (n.backing, n.socket) == memory.node());
            let (base, bytes) = node.map_or((0, page), |n| (n.base, n.bytes));
            let zone = Zone {
                first: (base / page) as u32,
                frames: (bytes / page) as u32,
                next: (before / page) as u32,
            };
            // Lines that the directory knows lie in the upper half of another socket's memory.
            let known = node.filter(|n| n.socket != 0 && n.bytes >= 2 * page && !self.cold);
            let zones = match known {
                None => vec![zone],
                Some(_) => zone.halves().to_vec(),
            };
            if let [_, upper] = zones[..] {
                let from = u64::from(upper.first) * page;
                read_before.push(from..from + u64::from(upper.frames) * page);
            }
            taken.push((memory, pattern.footprint().next_multiple_of(page)));
            pager
                .program
                .extend(vec![programs.len(); pattern.threads()]);
            pager.runs.push(Run {
                zones,
                pattern: pattern.clone(),
            });
            programs.push(pattern.warm(warm));
        }
        let options = Options {
            until_ns: Some(warm + self.window_ns),
            read_before,
            ..Options::default()
        };
        let mut running: Vec<&mut dyn Program> =
            programs.iter_mut().map(|p| p as &mut dyn Program).collect();
        // A pattern never waits at a barrier, and its pages were counted: the run ends by its time.
        let outcome = model::run(
            &self.machine,
            &mut pager,
            &mut running,
            &options,
            &mut |_| true,
        );
        let mut counts = SocketCounts::default();
        for phase in outcome.iter().flat_map(|o| &o.phases) {
            counts.add(&phase.memory());
        }
        (programs, counts)
    }

    /// Runs one pattern alone.
    pub fn alone(&self, pattern: Pattern, memory: MeasuredMemory) -> Pattern {
        self.run(vec![(pattern, memory)]).remove(0)
    }
}

/// Frames of one program's memory, in the order of first touches. A memory smaller than the program is used again from
/// its beginning: addresses then share frames, which changes no latency and no bandwidth.
struct Run {
    /// One, or one for lines that the home's directory does not know and one for those it does.
    zones: Vec<Zone>,
    pattern: Pattern,
}

#[derive(Clone, Copy)]
struct Zone {
    first: u32,
    frames: u32,
    next: u32,
}

impl Zone {
    fn halves(self) -> [Zone; 2] {
        let frames = self.frames / 2;
        let first = self.first + frames;
        let lower = Zone { frames, ..self };
        [lower, Zone { first, ..lower }]
    }
}

#[derive(Default)]
struct InOrder {
    page: u64,
    /// Program of each thread.
    program: Vec<usize>,
    /// Memory of each program.
    runs: Vec<Run>,
}

impl Pager for InOrder {
    fn page_bytes(&self) -> u64 {
        self.page
    }
    fn fault(&mut self, fault: &Fault) -> Result<u32, OutOfFrames> {
        let run = &mut self.runs[self.program[fault.thread as usize]];
        let address = (fault.vpn * self.page) % (1 << model::ADDRESS_BITS);
        let upper = run.zones.len() > 1 && run.pattern.leaves_clean(address);
        let zone = &mut run.zones[usize::from(upper)];
        let frame = zone.first + zone.next % zone.frames;
        zone.next += 1;
        Ok(frame)
    }
    fn unmap(&mut self, _: u64, _: u32) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calibrate::{How, Order};
    use varve_spec::Bytes;

    /// A host that was busy while it was probed looks as slow as that.
    #[test]
    fn a_machine_with_absurd_latencies_is_measured_all_the_same() {
        let mut m = Machine::load("haswell-2620v3").unwrap();
        m.controller.overhead_ns = 400_000.0;
        for how in [How::Read, How::NtStore] {
            let p = Pattern::new(how, Order::Random, 2, 64, 1 << 20);
            assert!(Bench::new(&m).alone(p, MeasuredMemory::Dram).gbps() > 0.0);
        }
    }

    /// Firmware keeps odd amounts of memory; small machines exist. Curves of both are figures.
    #[test]
    fn odd_and_small_memories_are_measured() {
        for bytes in [(64 << 20) + 4096, 64 << 20, 100 << 30] {
            let mut m = Machine::load("haswell-2620v3").unwrap();
            m.dram.dimm_bytes = Bytes(bytes);
            let p = Pattern::new(How::Read, Order::Random, 4, 256, 256 << 20);
            let done = Bench::new(&m).alone(p, MeasuredMemory::Dram);
            assert!(done.gbps() > 1.0, "{bytes}: {}", done.gbps());
        }
    }
}
