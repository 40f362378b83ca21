//! `trays`: hot pages on few DIMMs, cold ones packed on others, so that those left over sleep (Olson et al., TACO 2018). `channels`:
//! pages in turn over all DIMMs, what channel interleaving does, by pages.
//!
//! Which pages are hot is told, as ranges of addresses; what else there is to decide is in `trays.rs` and `governor.rs`.

use std::ops::Range;

use varve_machine::{Daemons, Fault};

use crate::frames::Frames;
use crate::governor::{BandwidthModel, Decision, Governor};
use crate::policy::{Policy, Remap};
use crate::trays::{Colour, TrayState, Trays};

/// Says of a page that is touched for the first time what colour it has, and near which socket it is to be.
pub type ColourOf = Box<dyn Fn(&Fault) -> (Colour, u32) + Send>;

/// Colours, from whoever knows them.
pub struct TrayPolicy {
    trays: Trays,
    colour: ColourOf,
    meter: Option<Meter>,
    /// Time between two ticks, ns; 0 without any.
    tick: u64,
}

/// The governor and its once-a-period reading of the counters.
pub struct Meter {
    governor: Governor,
    /// Time between two samples, ns.
    period: u64,
    last: (u64, u64),
    /// What was decided, by time.
    log: Vec<(u64, Decision)>,
}

impl Meter {
    /// Samples every `period` ns.
    pub fn new(model: BandwidthModel, trays: &Trays, period: u64, undoes: bool) -> Meter {
        Meter {
            governor: Governor::new(model, trays.hot(), trays.dimms(), undoes),
            period: period.max(1),
            last: (0, 0),
            log: Vec::new(),
        }
    }

    /// The counters at a time, ns: at the end of a period they are a sample, and the trays do what comes of it.
    pub fn read(&mut self, now: u64, bytes: u64, trays: &mut Trays) {
        let (then, before) = self.last;
        let span = now.saturating_sub(then);
        if span < self.period {
            return;
        }
        self.last = (now, bytes);
        self.governor.changed(trays.hot());
        let decision = self.governor.sample((bytes - before) as f64 / span as f64);
        if decision != Decision::Stay {
            self.log.push((now, decision));
        }
        trays.set_hot(self.governor.hot());
    }
}

impl TrayPolicy {
    /// Pages of the colours that `colour` says.
    pub fn new(trays: Trays, colour: ColourOf, meter: Option<Meter>, tick: u64) -> TrayPolicy {
        TrayPolicy {
            trays,
            colour,
            meter,
            tick,
        }
    }
}

/// Pages in the ranges `hot` are hot, all others cold; those in the ranges `remote` belong to the other socket.
pub fn by_ranges(hot: Vec<Range<u64>>, remote: Vec<Range<u64>>) -> ColourOf {
    let holds = |ranges: &[Range<u64>], vpn: u64| ranges.iter().any(|r| r.contains(&vpn));
    Box::new(move |fault| {
        let colour = match holds(&hot, fault.vpn) {
            true => Colour::Hot,
            false => Colour::Cold,
        };
        (colour, fault.socket ^ u32::from(holds(&remote, fault.vpn)))
    })
}

impl Policy for TrayPolicy {
    fn place(&mut self, frames: &mut Frames, fault: &Fault) -> Option<u32> {
        let (colour, socket) = (self.colour)(fault);
        self.trays.place(frames, socket, colour)
    }

    fn is_hot(&self, frame: u32) -> bool {
        self.trays.colour(frame) == Some(Colour::Hot)
    }

    fn trays(&self) -> Option<TrayState> {
        let mut state = self.trays.state();
        let log = self.meter.as_ref().map(|m| m.log.clone());
        state.decisions = log.unwrap_or_default();
        Some(state)
    }

    fn freed(&mut self, _frames: &mut Frames, frame: u32) {
        self.trays.freed(frame);
    }

    fn daemons(&self) -> Daemons {
        Daemons {
            threads: u32::from(self.tick > 0),
            period: self.tick,
            sample_period: 0,
        }
    }

    fn traffic(&mut self, now: u64, bytes: u64) {
        if let Some(meter) = &mut self.meter {
            meter.read(now, bytes, &mut self.trays);
        }
    }

    fn tick(&mut self, frames: &mut Frames, remaps: &mut Vec<Remap>) {
        self.trays.remaps(frames, remaps);
    }

    fn moved(&mut self, _frames: &mut Frames, done: Remap) {
        self.trays.moved(done);
    }

    fn cancelled(&mut self, _frames: &mut Frames, remap: Remap) {
        self.trays.cancelled(remap);
    }
}
