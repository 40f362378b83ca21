//! Activity of one channel's memory in a span of time, from which energy is computed.

use super::counts::SocketCounts;
use super::dram::{DramCounts, RankTimes};
use super::pm::PmCounts;

/// Activity of the memory on one channel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChannelActivity {
    /// DRAM, summed over the channel's ranks.
    pub dram: DramCounts,
    /// The PM DIMM, if there is one.
    pub pm: Option<PmCounts>,
    /// Power-state times of each rank, DIMM by DIMM.
    pub ranks: Vec<RankTimes>,
}

impl ChannelActivity {
    /// The difference to an earlier reading, if there is one.
    pub fn since(&self, earlier: Option<&ChannelActivity>) -> ChannelActivity {
        let Some(e) = earlier else {
            return self.clone();
        };
        let counts = self.counts().since(Some(&e.counts()));
        ChannelActivity {
            dram: counts.dram,
            pm: self.pm.map(|_| counts.pm),
            ranks: self
                .ranks
                .iter()
                .zip(&e.ranks)
                .map(|(n, e)| since(n, e))
                .collect(),
        }
    }

    /// All counts times `factor`, rounded.
    pub fn times(&self, factor: f64) -> ChannelActivity {
        ChannelActivity {
            dram: self.dram.times(factor),
            pm: self.pm.map(|pm| pm.times(factor)),
            ranks: self.ranks.iter().map(|r| r.times(factor)).collect(),
        }
    }

    /// Adds the activity of the same channel in another span of time.
    pub fn add(&mut self, o: &ChannelActivity) {
        self.dram.add(&o.dram);
        if let (Some(pm), Some(other)) = (&mut self.pm, &o.pm) {
            pm.add(other);
        }
        for (rank, other) in self.ranks.iter_mut().zip(&o.ranks) {
            rank.add(other);
        }
    }

    fn counts(&self) -> SocketCounts {
        SocketCounts {
            dram: self.dram,
            pm: self.pm.unwrap_or_default(),
            ..SocketCounts::default()
        }
    }
}

/// A reading takes a rank for idle until its time. An access of a thread that is a little behind may come before that
/// time, and the state that was read has then had less in the end than at the reading: not less than nothing.
fn since(n: &RankTimes, e: &RankTimes) -> RankTimes {
    RankTimes {
        active: n.active.saturating_sub(e.active),
        standby: n.standby.saturating_sub(e.standby),
        powerdown: n.powerdown.saturating_sub(e.powerdown),
        selfrefresh: n.selfrefresh.saturating_sub(e.selfrefresh),
        wakes: n.wakes - e.wakes,
        deep_wakes: n.deep_wakes - e.deep_wakes,
    }
}
