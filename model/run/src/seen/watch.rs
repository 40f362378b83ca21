//! Observers: a program whose accesses are counted, and a pager whose decisions are. Both behave as without
//! observation, and an unobserved run has neither.

use super::heat::{Grid, Heat};
use std::sync::{Arc, Mutex, PoisonError};
use varve_access::{
    Daemons, Fault, Move, Op, OutOfFrames, Pager, Program, Region, Sample, Stretch,
};
use varve_machine::model::ADDRESS_BITS;
use varve_pages::Topology;

/// State that the observers of one run share; empty if the run is not observed.
#[derive(Clone, Default)]
pub struct Eye(Option<Arc<Mutex<Seeing>>>);

struct Seeing {
    grid: Grid,
    /// First frame of each node, and whether it is fast.
    nodes: Vec<(u32, bool)>,
    page_bytes: u64,
    /// The time of the pager's last notification, ns.
    now: u64,
}

impl Seeing {
    fn place(&mut self, vpn: u64, frame: u32, sign: i64) {
        let node = self.nodes.iter().rev().find(|(first, _)| frame >= *first);
        let fast = node.is_some_and(|(_, fast)| *fast);
        let (now, bytes) = (self.now, self.page_bytes);
        self.grid.place(now, vpn * bytes, fast, sign * bytes as i64);
    }
}

impl Eye {
    /// Observes a run on such frames, if that is wanted.
    pub fn new(wanted: bool, topology: &Topology) -> Eye {
        let seeing = || {
            let mut first = 0;
            let nodes = topology.nodes.iter().map(|node| {
                let begin = first;
                first += node.frames;
                (begin, node.fast)
            });
            Seeing {
                grid: Grid::new(topology.page_bytes),
                nodes: nodes.collect(),
                page_bytes: topology.page_bytes,
                now: 0,
            }
        };
        Eye(wanted.then(|| Arc::new(Mutex::new(seeing()))))
    }

    /// Is the run observed?
    pub fn looks(&self) -> bool {
        self.0.is_some()
    }

    /// Accesses to memory and its places, until a time.
    pub fn heat(&self, end: u64, factor: u64) -> Heat {
        self.see(|seeing| {
            let fast = seeing.nodes.iter().filter(|(_, fast)| *fast).count();
            let tiers = fast > 0 && fast < seeing.nodes.len();
            seeing.grid.heat(end, factor, tiers)
        })
        .unwrap_or_default()
    }

    fn see<T>(&self, what: impl FnOnce(&mut Seeing) -> T) -> Option<T> {
        let seeing = self.0.as_ref()?;
        // It holds after each step.
        let mut seeing = seeing.lock().unwrap_or_else(PoisonError::into_inner);
        Some(what(&mut seeing))
    }
}

/// A program whose accesses are counted, at the time at which the model asks for them: right before they run.
pub struct SeenProgram<'a> {
    program: &'a mut dyn Program,
    /// Upper bits of its addresses.
    tag: u64,
    eye: Eye,
}

impl<'a> SeenProgram<'a> {
    /// Program number `space` of a run.
    pub fn new(program: &'a mut dyn Program, space: usize, eye: &Eye) -> SeenProgram<'a> {
        SeenProgram {
            program,
            tag: (space as u64) << ADDRESS_BITS,
            eye: eye.clone(),
        }
    }
}

impl Program for SeenProgram<'_> {
    fn name(&self) -> String {
        self.program.name()
    }

    fn threads(&self) -> usize {
        self.program.threads()
    }

    fn regions(&self) -> Vec<Region> {
        self.program.regions()
    }

    fn fill(&mut self, thread: usize, now: u64, out: &mut Vec<Op>) -> bool {
        let from = out.len();
        let goes_on = self.program.fill(thread, now, out);
        self.eye.see(|seeing| {
            // A program may have exchanged the buffer for another one.
            let new = out.get(from..).unwrap_or(out);
            for op in new.iter().filter(|op| op.kind.is_access()) {
                seeing.grid.access(now, op.addr | self.tag);
            }
        });
        goes_on
    }

    fn code(&mut self, thread: usize, steps: &mut Vec<(u32, u32)>) {
        self.program.code(thread, steps);
    }

    fn code_name(&self, number: u32) -> Vec<String> {
        self.program.code_name(number)
    }

    fn classes(&self) -> Vec<String> {
        self.program.classes()
    }

    fn answers(&self) -> Vec<(String, String)> {
        self.program.answers()
    }

    fn stretches(&self) -> Option<Vec<Stretch>> {
        self.program.stretches()
    }

    fn failure(&self) -> Option<String> {
        self.program.failure()
    }
}

/// A pager whose pages are counted.
pub struct SeenPager<'a> {
    pager: &'a mut dyn Pager,
    eye: Eye,
}

impl<'a> SeenPager<'a> {
    pub fn new(pager: &'a mut dyn Pager, eye: &Eye) -> SeenPager<'a> {
        SeenPager {
            pager,
            eye: eye.clone(),
        }
    }
}

impl Pager for SeenPager<'_> {
    fn page_bytes(&self) -> u64 {
        self.pager.page_bytes()
    }

    fn fault(&mut self, fault: &Fault) -> Result<u32, OutOfFrames> {
        let frame = self.pager.fault(fault)?;
        self.eye.see(|seeing| {
            seeing.now = fault.now;
            seeing.place(fault.vpn, frame, 1);
        });
        Ok(frame)
    }

    fn unmap(&mut self, vpn: u64, frame: u32) {
        self.eye.see(|seeing| seeing.place(vpn, frame, -1));
        self.pager.unmap(vpn, frame);
    }

    fn to_zero(&mut self) -> Option<u32> {
        self.pager.to_zero()
    }

    fn zeroed(&mut self, frame: u32) {
        self.pager.zeroed(frame);
    }

    fn is_dirty(&self, frame: u32) -> bool {
        self.pager.is_dirty(frame)
    }

    fn daemons(&self) -> Daemons {
        self.pager.daemons()
    }

    fn sample(&mut self, sample: &Sample) {
        self.eye
            .see(|seeing| seeing.now = seeing.now.max(sample.now));
        self.pager.sample(sample);
    }

    fn traffic(&mut self, now: u64, bytes: u64) {
        self.pager.traffic(now, bytes);
    }

    fn tick(&mut self, now: u64, moves: &mut Vec<Move>) {
        self.eye.see(|seeing| seeing.now = seeing.now.max(now));
        self.pager.tick(now, moves);
    }

    /// A move that was cancelled comes from where it should have gone to, and changes nothing.
    fn moved(&mut self, done: &Move) {
        if done.from != done.to {
            self.eye.see(|seeing| {
                seeing.place(done.vpn, done.from, -1);
                seeing.place(done.vpn, done.to, 1);
            });
        }
        self.pager.moved(done);
    }
}
