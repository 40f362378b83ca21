//! Power of a rank of DRAM in its states, and energy of its commands.

use crate::describe::{Dram, DramPower};
use crate::model::{DramCounts, ROW_TIMEOUT_NS, RankTimes};

/// Energy of a rank of DRAM, J.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DramEnergy {
    /// Background while some bank is at work (active stand-by, IDD3N).
    pub active: f64,
    /// Background while all rest with the clock on (precharge stand-by, IDD2N).
    pub standby: f64,
    /// Background in power-down (IDD2P, or IDD3P where rows are left open).
    pub powerdown: f64,
    /// Self-refresh, its refreshes included (IDD6).
    pub selfrefresh: f64,
    /// Refreshes outside self-refresh, less background (IDD5).
    pub refresh: f64,
    /// Activates and precharges, less background (IDD0).
    pub activate: f64,
    /// Read bursts, less background (IDD4R).
    pub read: f64,
    /// Write bursts, less background (IDD4W).
    pub write: f64,
    /// Drivers and termination of bursts, where the machine's file knows them.
    pub io: f64,
    /// The rank's part of its DIMM's register, where the machine's file knows it.
    pub register: f64,
}

impl DramEnergy {
    /// Energy of the rank's power states, J.
    pub fn background(&self) -> f64 {
        self.active + self.standby + self.powerdown + self.selfrefresh + self.register
    }

    /// Energy of commands on top of the background, refreshes included, J.
    pub fn operation(&self) -> f64 {
        self.refresh + self.activate + self.read + self.write + self.io
    }

    /// Both, J.
    pub fn total(&self) -> f64 {
        self.background() + self.operation()
    }

    /// Adds another rank's, or another time's.
    pub fn add(&mut self, o: &DramEnergy) {
        self.active += o.active;
        self.standby += o.standby;
        self.powerdown += o.powerdown;
        self.selfrefresh += o.selfrefresh;
        self.refresh += o.refresh;
        self.activate += o.activate;
        self.read += o.read;
        self.write += o.write;
        self.io += o.io;
        self.register += o.register;
    }
}

/// Power and energies of one rank.
pub struct RankPower {
    /// Power of the states, W.
    active: f64,
    standby: f64,
    powerdown: f64,
    selfrefresh: f64,
    /// Power while a refresh runs, W, and the share of time that it does outside self-refresh.
    refresh: f64,
    refreshing: f64,
    /// One activate with its precharge, one burst of 64 B; J, less background.
    activate: f64,
    read: f64,
    write: f64,
    /// Drivers and termination of one burst, J.
    io: f64,
    /// A DIMM's register while a rank is awake, in power-down and in self-refresh, W; and the ranks that share one.
    register: [f64; 3],
    ranks: usize,
}

impl RankPower {
    /// The devices of a rank work in lock-step.
    pub fn of(d: &Dram, p: &DramPower) -> RankPower {
        let watts = |ma: f64| ma / 1e3 * p.vdd * f64::from(p.devices);
        let (active, standby) = (watts(p.idd3n_ma), watts(p.idd2n_ma));
        // A rank that falls asleep before its rows are closed keeps them open.
        let powerdown = if d.powerdown_after_ns < ROW_TIMEOUT_NS {
            p.idd3p_ma
        } else {
            p.idd2p_ma
        };
        // IDD0 is the mean of a whole activate-to-activate time, of which tRAS is active stand-by.
        let (ras, rp) = (d.ras_ns / 1e9, d.rp_ns / 1e9);
        let activate = watts(p.idd0_ma) * (ras + rp) - active * ras - standby * rp;
        // Eight transfers.
        let burst = 8.0 / (f64::from(d.mts) * 1e6);
        RankPower {
            active,
            standby,
            powerdown: watts(powerdown),
            selfrefresh: watts(p.idd6_ma),
            refresh: watts(p.idd5_ma),
            refreshing: d.rfc_ns / d.refi_ns,
            activate,
            read: (watts(p.idd4r_ma) - active) * burst,
            write: (watts(p.idd4w_ma) - active) * burst,
            io: p.io_nj.unwrap_or(0.0) * 1e-9,
            register: {
                let awake = p.register_ma.unwrap_or(0.0);
                let powerdown = p.register_powerdown_ma.unwrap_or(awake);
                let selfrefresh = p.register_selfrefresh_ma.unwrap_or(powerdown);
                [awake, powerdown, selfrefresh].map(|ma| ma / 1e3 * p.vdd)
            },
            ranks: d.ranks.max(1) as usize,
        }
    }

    /// The ranks of a channel. Which of them a command went to is not counted: each has the share in them that it has in
    /// the channel's active time.
    pub fn channel(&self, c: &DramCounts, ranks: &[RankTimes]) -> Vec<DramEnergy> {
        let active: u64 = ranks.iter().map(|r| r.active).sum();
        let registers = ranks.chunks(self.ranks).flat_map(|dimm| {
            let share = self.register(dimm) / dimm.len() as f64;
            dimm.iter().map(move |_| share)
        });
        ranks
            .iter()
            .zip(registers)
            .map(|(r, register)| {
                let share = if active == 0 {
                    1.0 / ranks.len() as f64
                } else {
                    r.active as f64 / active as f64
                };
                DramEnergy {
                    register,
                    ..self.rank(c, share, r)
                }
            })
            .collect()
    }

    /// A DIMM's register, J. It is awake while any rank is; when that was for two ranks together is not counted, and the time
    /// of the one that was awake longer is taken. Ranks are in self-refresh together.
    fn register(&self, ranks: &[RankTimes]) -> f64 {
        let most = |time: &dyn Fn(&RankTimes) -> u64| ranks.iter().map(time).max().unwrap_or(0);
        let least = ranks.iter().map(|t| t.selfrefresh).min().unwrap_or(0);
        let awake = |t: &RankTimes| t.active + t.standby;
        let span = most(&|t| awake(t) + t.powerdown + t.selfrefresh);
        let selfrefresh = least.min(span);
        let on = most(&awake).min(span - selfrefresh);
        let times = [on, span - on - selfrefresh, selfrefresh];
        let parts = self.register.iter().zip(times);
        parts.map(|(watts, ps)| watts * ps as f64).sum::<f64>() / 1e12
    }

    fn rank(&self, c: &DramCounts, share: f64, t: &RankTimes) -> DramEnergy {
        let seconds = |ps: u64| ps as f64 / 1e12;
        let in_state = |watts: f64, ps: u64| watts * seconds(ps);
        let refresh = |watts: f64, ps: u64| (self.refresh - watts) * self.refreshing * seconds(ps);
        let each = |joules: f64, count: u64| joules * count as f64 * share;
        DramEnergy {
            active: in_state(self.active, t.active),
            standby: in_state(self.standby, t.standby),
            powerdown: in_state(self.powerdown, t.powerdown),
            selfrefresh: in_state(self.selfrefresh, t.selfrefresh),
            // A refresh wakes a rank and draws IDD5 whatever the state: less the charge of that state above.
            refresh: refresh(self.active, t.active)
                + refresh(self.standby, t.standby)
                + refresh(self.powerdown, t.powerdown),
            activate: each(self.activate, c.activates),
            read: each(self.read, c.reads),
            write: each(self.write, c.writes),
            io: each(self.io, c.reads + c.writes),
            register: 0.0,
        }
    }
}
