//! How a WebAssembly program is started: its heap and its compilers, as far as a user says.

use clap::Args;
use varve_run::Error;
use varve_runtime::{Config, NurserySize, Tier};
use varve_spec::Bytes;

/// Linear memory that a program may have in any case: managed programs have some, however small their heaps are.
const LEAST_LINEAR: u64 = 16 << 20;

/// The heap of a WebAssembly program, and its compilers; `None`: as the engine has it.
#[derive(Args, Clone, Copy, Debug, Default)]
#[command(next_help_heading = "The engine")]
pub struct Heap {
    /// The most memory of the program's objects, and of its linear memories and tables [default: 2GiB, and 4GiB]
    #[arg(long, value_name = "SIZE")]
    pub heap_max: Option<Bytes>,
    /// The nursery in the beginning [default: 4MiB, and with --fast what pays, from 1MiB on]
    #[arg(long, value_name = "SIZE")]
    pub nursery: Option<Bytes>,
    /// What the nursery may grow to while much of it survives [default: 32MiB]. Under plans with an observer space it does not grow
    #[arg(long, value_name = "SIZE")]
    pub nursery_max: Option<Bytes>,
    /// Compilers: baseline, optimizing, or auto (first one, then the other where the program is hot) [default: auto]
    #[arg(long, value_name = "TIER")]
    pub tier: Option<Tier>,
}

impl Heap {
    /// The engine's settings.
    ///
    /// # Errors
    /// A nursery that begins larger than it may become.
    pub fn config(&self) -> Result<Config, Error> {
        let mut config = Config::default();
        limit_heap(self.heap_max, &mut config);
        let most = self.nursery_max.map(|b| b.0);
        if let (Some(begin), Some(most)) = (self.nursery, most)
            && begin.0 > most
        {
            return Err(Error::Asked(format!(
                "--nursery {begin} is more than --nursery-max {}: a nursery cannot begin larger than it may become",
                Bytes(most)
            )));
        }
        config.nursery_max = most.unwrap_or(config.nursery_max);
        config.sized = match self.nursery {
            Some(_) => NurserySize::Given,
            None => NurserySize::Fits,
        };
        config.nursery = self
            .nursery
            .map_or(config.nursery.min(config.nursery_max), |b| b.0)
            .min(config.heap_max);
        config.tier = self.tier.unwrap_or_default();
        Ok(config)
    }
}

/// The memory that a program may have, if the user says it: as much for its objects as for its linear memories and tables.
pub fn limit_heap(asked: Option<Bytes>, config: &mut Config) {
    if let Some(Bytes(most)) = asked {
        (config.heap_max, config.linear_max) = (most, most.max(LEAST_LINEAR));
    }
}
