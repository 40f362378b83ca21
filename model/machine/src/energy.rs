//! Energy of a machine's memory, from the counts of a run on the model and the currents in the machine's file.
//!
//! A pure function of both: nothing is counted for it that the model does not count anyway. DRAM is computed as Micron
//! does (TN-40-07, Calculating Memory Power for DDR4 SDRAM, 2017): a rank's devices draw a background current that
//! depends on its power state, and every activate, burst and refresh draws its current less that background. PM is an
//! idle power and an energy of each media line. `docs/model.md` has the formulas and their limits.

mod cpu;
mod dram;
mod series;

pub use cpu::CpuEnergy;
pub use dram::DramEnergy;
pub use series::{EnergySpan, between, series};

use crate::describe::{Machine, Pm};
use crate::load::NodeKind;
use crate::model::{ChannelActivity, Outcome, Phase, PmCounts};
use dram::RankPower;

/// Energy that a machine's memory took in a span of virtual time. All energies are joules.
#[derive(Clone, Debug, PartialEq)]
pub struct Energy {
    /// The span, s.
    pub seconds: f64,
    /// Per socket and channel.
    pub sockets: Vec<Vec<ChannelEnergy>>,
    /// Memories of the machine without published energy figures; no sum here contains them.
    pub left_out: Vec<NodeKind>,
}

/// Energy of the DIMMs on one channel, J.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChannelEnergy {
    /// Per DRAM DIMM and rank.
    pub dimms: Vec<Vec<DramEnergy>>,
    /// The PM DIMM, if there is one.
    pub pm: Option<PmEnergy>,
}

/// Energy of a PM DIMM, J.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PmEnergy {
    /// Idle energy of the DIMM.
    pub idle: f64,
    /// Reading media lines.
    pub read: f64,
    /// Writing media lines.
    pub write: f64,
}

/// The machine's file has no power of its memory.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "machine `{machine}` has no power parameters: `{key}` is missing from its file; add it with its source, see docs/machines.md"
)]
pub struct NoEnergyData {
    /// The machine.
    pub machine: String,
    /// The key that its file lacks.
    pub key: &'static str,
}

impl Energy {
    /// Energy of a whole run.
    ///
    /// # Errors
    /// The machine's file lacks `[dram.power]`, or the energies of its PM.
    pub fn of(m: &Machine, run: &Outcome) -> Result<Energy, NoEnergyData> {
        let mut sum = Energy::during(m, 0.0, &[])?;
        for p in &run.phases {
            sum.add(&Energy::of_phase(m, p)?);
        }
        Ok(sum)
    }

    /// Energy of one phase of a run.
    ///
    /// # Errors
    /// As [`Energy::of`].
    pub fn of_phase(m: &Machine, phase: &Phase) -> Result<Energy, NoEnergyData> {
        Energy::during(m, phase.ns() as f64 / 1e9, &phase.channels)
    }

    /// Energy of the channels' activity on each socket in `seconds`.
    ///
    /// # Errors
    /// As [`Energy::of`].
    pub fn during(
        m: &Machine,
        seconds: f64,
        sockets: &[Vec<ChannelActivity>],
    ) -> Result<Energy, NoEnergyData> {
        let missing = |key| NoEnergyData {
            machine: m.name.clone(),
            key,
        };
        let power = m.dram.power.as_ref().ok_or(missing("dram.power"))?;
        let rank = RankPower::of(&m.dram, power);
        let pm =
            m.pm.as_ref()
                .map(PmPower::of)
                .transpose()
                .map_err(missing)?;
        let channel = |c: &ChannelActivity| ChannelEnergy {
            dimms: rank
                .channel(&c.dram, &c.ranks)
                .chunks(m.dram.ranks.max(1) as usize)
                .map(<[DramEnergy]>::to_vec)
                .collect(),
            pm: pm.as_ref().zip(c.pm).map(|(p, c)| p.energy(seconds, &c)),
        };
        Ok(Energy {
            seconds,
            sockets: sockets
                .iter()
                .map(|s| s.iter().map(channel).collect())
                .collect(),
            left_out: m.cxl.iter().map(|_| NodeKind::Cxl).collect(),
        })
    }

    /// Adds the energy of the same machine in another span.
    pub fn add(&mut self, o: &Energy) {
        self.seconds += o.seconds;
        grow(&mut self.sockets, &o.sockets, |socket, o| {
            grow(socket, o, ChannelEnergy::add);
        });
    }

    /// DRAM of all sockets.
    pub fn dram(&self) -> DramEnergy {
        sum(self.channels().map(ChannelEnergy::dram))
    }

    /// PM of all sockets; zeros without any.
    pub fn pm(&self) -> PmEnergy {
        let mut all = PmEnergy::default();
        for pm in self.channels().filter_map(|c| c.pm) {
            all.add(&pm);
        }
        all
    }

    /// One socket's memory, J; 0 for a socket that the machine lacks.
    pub fn socket(&self, socket: usize) -> f64 {
        let channels = self.sockets.get(socket).into_iter().flatten();
        channels.map(ChannelEnergy::total).sum()
    }

    /// All memory but what is [left out](Energy::left_out), J.
    pub fn total(&self) -> f64 {
        self.channels().map(ChannelEnergy::total).sum()
    }

    /// Average power of all of it, W; 0 in no time.
    pub fn watts(&self) -> f64 {
        if self.seconds > 0.0 {
            self.total() / self.seconds
        } else {
            0.0
        }
    }

    fn channels(&self) -> impl Iterator<Item = &ChannelEnergy> {
        self.sockets.iter().flatten()
    }
}

impl ChannelEnergy {
    /// One DRAM DIMM.
    pub fn dimm(&self, dimm: usize) -> DramEnergy {
        sum(self.dimms.get(dimm).into_iter().flatten().copied())
    }

    /// The channel's DRAM.
    pub fn dram(&self) -> DramEnergy {
        sum(self.dimms.iter().flatten().copied())
    }

    /// Everything on the channel, J.
    pub fn total(&self) -> f64 {
        self.dram().total() + self.pm.map_or(0.0, |p| p.total())
    }

    fn add(&mut self, o: &ChannelEnergy) {
        grow(&mut self.dimms, &o.dimms, |dimm, o| {
            grow(dimm, o, DramEnergy::add);
        });
        if let Some(o) = &o.pm {
            self.pm.get_or_insert_default().add(o);
        }
    }
}

impl PmEnergy {
    /// All of it, J.
    pub fn total(&self) -> f64 {
        self.idle + self.read + self.write
    }

    fn add(&mut self, o: &PmEnergy) {
        self.idle += o.idle;
        self.read += o.read;
        self.write += o.write;
    }
}

/// Power and energies of a PM DIMM.
struct PmPower {
    /// W.
    idle: f64,
    /// J for a media line.
    read: f64,
    /// J for a media line.
    write: f64,
}

impl PmPower {
    /// ... or the key that is missing.
    fn of(p: &Pm) -> Result<PmPower, &'static str> {
        Ok(PmPower {
            idle: p.idle_w.ok_or("pm.idle_w")?,
            read: p.read_nj.ok_or("pm.read_nj")? * 1e-9,
            write: p.write_nj.ok_or("pm.write_nj")? * 1e-9,
        })
    }

    fn energy(&self, seconds: f64, c: &PmCounts) -> PmEnergy {
        PmEnergy {
            idle: self.idle * seconds,
            read: self.read * c.media_reads as f64,
            write: self.write * c.media_writes as f64,
        }
    }
}

fn sum(parts: impl Iterator<Item = DramEnergy>) -> DramEnergy {
    let mut all = DramEnergy::default();
    for p in parts {
        all.add(&p);
    }
    all
}

/// Adds list to list by place; a list that is shorter is longer afterwards.
fn grow<T: Clone + Default>(to: &mut Vec<T>, from: &[T], add: impl Fn(&mut T, &T)) {
    if to.len() < from.len() {
        to.resize(from.len(), T::default());
    }
    for (t, f) in to.iter_mut().zip(from) {
        add(t, f);
    }
}

#[cfg(test)]
mod tests;
