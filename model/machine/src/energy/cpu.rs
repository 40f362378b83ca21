//! Energy of processors: a socket is asleep or awake, and each core that has a thread draws the same, whether the thread computes,
//! waits for memory, or spins.
//!
//! That is all: no clocks, no sleep states of cores, no power by instruction. It shows savings of memory energy beside
//! the energy of a processor for as long as a program runs, and no more.

use super::NoEnergyData;
use crate::describe::{CpuPower, Machine};

/// Energy of the processors in a span of time, J.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CpuEnergy {
    /// Sockets on which nothing runs.
    pub asleep: f64,
    /// Sockets on which something runs, without their cores.
    pub awake: f64,
    /// Cores with threads.
    pub cores: f64,
}

impl CpuEnergy {
    /// Of threads that ran for `thread_seconds` on each socket, in a span of `seconds`. Threads fill cores before a core has two.
    ///
    /// # Errors
    /// The machine's file lacks `[cpu]`.
    pub fn of(
        m: &Machine,
        seconds: f64,
        thread_seconds: &[f64],
    ) -> Result<CpuEnergy, NoEnergyData> {
        let power = m.cpu.as_ref().ok_or(NoEnergyData {
            machine: m.name.clone(),
            key: "cpu",
        })?;
        let mut sum = CpuEnergy::default();
        for socket in 0..m.sockets as usize {
            let busy = thread_seconds.get(socket).copied().unwrap_or(0.0);
            sum.add(
                power,
                seconds,
                busy.min(f64::from(m.core.per_socket) * seconds),
            );
        }
        Ok(sum)
    }

    fn add(&mut self, p: &CpuPower, seconds: f64, core_seconds: f64) {
        if core_seconds > 0.0 {
            self.awake += p.awake_w * seconds;
            self.cores += p.core_w * core_seconds;
        } else {
            self.asleep += p.asleep_w * seconds;
        }
    }

    /// All of it, J.
    pub fn total(&self) -> f64 {
        self.asleep + self.awake + self.cores
    }
}
