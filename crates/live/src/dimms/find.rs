//! Which bits of a physical address choose the bank that it is in, by how long two addresses take that are read in turn.
//!
//! A bank has one row open. Two addresses of one bank and of different rows close each other's row, and take longer in turn than
//! any others (Pessl et al., *DRAMA: Exploiting DRAM Addressing for Cross-CPU Attacks*, USENIX Security 2016). Controllers choose
//! the channel, the DIMM, the rank and the bank by functions that are each the parity (XOR) of some bits of the address. So:
//!
//! ```text
//!   pairs that take long       same bank: each function has the same value for both, or 0 for a ^ b
//!   all these a ^ b            span a space over GF(2)
//!   what is 0 on all of it     are the functions, and their sums
//!   fresh pairs                take long where all functions agree, and only there? else nothing is claimed
//! ```
//!
//! Which function chooses a channel and which a bank, conflicts do not tell: `meaning.rs`.

use super::gf2::{Space, lightest, orthogonal, parity};
use super::modes::{Modes, modes};

/// Address bits of a cache line are of no bank.
const LINE_BITS: u32 = 6;
/// Random pairs that are timed to see two modes, at first and at most: with 512 banks one in 512 takes long.
const PAIRS: (usize, usize) = (2_000, 32_000);
/// The time of such a pair is the middle one of so many.
const MIDDLE: usize = 5;
/// A pair takes long if it does so each time.
const TIMES: usize = 4;
/// Pairs that take long are collected for so many times the bits of an address.
const PER_BIT: usize = 6;
/// Timings until then, at most.
const TIMINGS: usize = 1_500_000;
/// Draws of pairs of which the functions are those of the fewest wrong ones.
const DRAWS: usize = 48;
/// Pairs that a function has to agree with, of those that took long.
const AGREE: f64 = 0.9;
/// Fresh pairs of either kind that are to be as predicted, and the part of them that is. Two addresses of one bank may be in one row.
const FRESH: usize = 200;
const PREDICTED: f64 = 0.85;

/// What was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// Functions, each the parity of these bits of an address, the lightest ones; all their sums are functions too.
    pub functions: Vec<u64>,
    /// Bits that were the same in all addresses, or went with others: of them nothing is known. Without those of a line.
    pub unseen: u64,
    /// Time of a pair in different banks, and in one, in the unit of the timings.
    pub times: (f64, f64),
    /// Part of fresh pairs that took as long as the functions say, where they agree, and where they do not.
    pub predicted: (f64, f64),
}

/// Why nothing was found.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Unfound {
    /// Too few addresses.
    #[error("{0} addresses are too few to tell banks apart: give more memory")]
    Few(usize),
    /// No pair takes longer than others.
    #[error(
        "no row conflicts can be seen here: pairs of addresses take {median:.0} ticks, and no group of them takes clearly longer"
    )]
    OneMode {
        /// Of a pair.
        median: f64,
    },
    /// Too few pairs take long each time.
    #[error(
        "no row conflicts can be seen here: of {timings} timings {pairs} pairs took long each time, and {wanted} are needed; try again when nobody else uses memory"
    )]
    Rare {
        /// Timings.
        timings: usize,
        /// Pairs.
        pairs: usize,
        /// Pairs that are needed.
        wanted: usize,
    },
    /// Pairs that take long have nothing in common.
    #[error("row conflicts are seen, and no XOR of address bits goes with them")]
    NoFunctions,
    /// Banks are chosen by something else too.
    #[error(
        "row conflicts are seen, but XORs of address bits do not tell them all: of pairs that should conflict {same:.0} % do, of others {other:.0} % do not; channels that are no power of two, or a hole in the addresses, are such cases"
    )]
    NotLinear {
        /// Per cent.
        same: f64,
        /// Per cent.
        other: f64,
    },
}

/// Finds the functions. `time` tells how long these two addresses, of those given, take when they are read in turn past the caches.
///
/// # Errors
/// Why nothing was found: never a guess.
pub fn find(
    addresses: &[u64],
    seed: u64,
    time: &mut dyn FnMut(u64, u64) -> f64,
) -> Result<Found, Unfound> {
    let mut look = Look {
        addresses,
        state: seed,
        time,
        timings: 0,
    };
    if addresses.len() < FRESH {
        return Err(Unfound::Few(addresses.len()));
    }
    let modes = look.modes()?;
    let all = Space::of(
        addresses
            .iter()
            .map(|a| (a ^ addresses[0]) >> LINE_BITS << LINE_BITS),
    );
    let wanted = PER_BIT * all.dimension() + 32;
    let mut conflicts: Vec<u64> = Vec::new();
    while conflicts.len() < wanted {
        if look.timings > TIMINGS {
            return Err(Unfound::Rare {
                timings: look.timings,
                pairs: conflicts.len(),
                wanted,
            });
        }
        let (a, b) = look.pair();
        if look.takes_long(a, b, &modes) {
            conflicts.push((a ^ b) >> LINE_BITS << LINE_BITS);
        }
    }
    let bits = addresses
        .iter()
        .fold(0, |bits, a| bits | (a ^ addresses[0]))
        >> LINE_BITS
        << LINE_BITS;
    // Parities that are the same for all addresses say nothing.
    let idle = orthogonal(all.basis(), bits);
    let functions = look.solve(&conflicts, bits, &idle);
    if functions.is_empty() {
        return Err(Unfound::NoFunctions);
    }
    let predicted = look.check(&functions, &modes);
    if predicted.0 < PREDICTED || predicted.1 < PREDICTED {
        return Err(Unfound::NotLinear {
            same: 100.0 * predicted.0,
            other: 100.0 * predicted.1,
        });
    }
    let top = addresses.iter().fold(0, |bits, a| bits | a);
    let below = u64::MAX.checked_shr(top.leading_zeros()).unwrap_or(0);
    let tied = idle.iter().fold(0, |tied, mask| tied | mask);
    Ok(Found {
        functions,
        unseen: (below & !bits | tied) >> LINE_BITS << LINE_BITS,
        times: (modes.fast, modes.slow),
        predicted,
    })
}

struct Look<'a> {
    addresses: &'a [u64],
    state: u64,
    time: &'a mut dyn FnMut(u64, u64) -> f64,
    timings: usize,
}

impl Look<'_> {
    /// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
    fn random(&mut self, below: usize) -> usize {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ z >> 31) % below as u64) as usize
    }

    fn pair(&mut self) -> (u64, u64) {
        let n = self.addresses.len();
        (
            self.addresses[self.random(n)],
            self.addresses[self.random(n)],
        )
    }

    fn timed(&mut self, a: u64, b: u64) -> f64 {
        self.timings += 1;
        (self.time)(a, b)
    }

    fn modes(&mut self) -> Result<Modes, Unfound> {
        let mut times = Vec::new();
        let mut next = PAIRS.0;
        loop {
            while times.len() < next {
                let (a, b) = self.pair();
                let mut each: [f64; MIDDLE] = std::array::from_fn(|_| self.timed(a, b));
                each.sort_unstable_by(f64::total_cmp);
                times.push(each[MIDDLE / 2]);
            }
            match modes(&times) {
                Ok(modes) => return Ok(modes),
                Err(median) if next >= PAIRS.1 => return Err(Unfound::OneMode { median }),
                Err(_) => next *= 2,
            }
        }
    }

    fn takes_long(&mut self, a: u64, b: u64, modes: &Modes) -> bool {
        (0..TIMES).all(|_| self.timed(a, b) > modes.limit)
    }

    /// What is 0 on the differences of all pairs, but for those that took long for another reason.
    fn solve(&mut self, conflicts: &[u64], bits: u64, idle: &[u64]) -> Vec<u64> {
        let enough = bits.count_ones() as usize + 16;
        let mut best: Vec<u64> = Vec::new();
        for _ in 0..DRAWS {
            let drawn: Vec<u64> = (0..enough)
                .map(|_| conflicts[self.random(conflicts.len())])
                .collect();
            let all = orthogonal(Space::of(drawn).basis(), bits);
            let functions = lightest(&all, idle);
            let agrees = |d: &&u64| functions.iter().all(|f| !parity(*f & **d));
            let part = conflicts.iter().filter(agrees).count() as f64 / conflicts.len() as f64;
            if part >= AGREE && functions.len() > best.len() {
                best = functions;
            }
        }
        best
    }

    /// Parts of fresh pairs that are as predicted: where all functions agree, and where some do not.
    fn check(&mut self, functions: &[u64], modes: &Modes) -> (f64, f64) {
        let bank = |address: u64| {
            let bits = functions.iter().map(|f| u64::from(parity(f & address)));
            bits.fold(0, |bank, bit| bank << 1 | bit)
        };
        let mut of_bank: Vec<(u64, u64)> = self.addresses.iter().map(|a| (bank(*a), *a)).collect();
        of_bank.sort_unstable();
        let (mut same, mut other) = ((0, 0), (0, 0));
        for _ in 0..FRESH {
            let at = self.random(of_bank.len());
            let (bank, a) = of_bank[at];
            let first = of_bank.partition_point(|one| one.0 < bank);
            let end = of_bank.partition_point(|one| one.0 <= bank);
            let (_, b) = of_bank[first + self.random(end - first)];
            if a != b {
                same.1 += 1;
                same.0 += usize::from(self.takes_long(a, b, modes));
            }
            let (there, c) = of_bank[self.random(of_bank.len())];
            if there != bank {
                other.1 += 1;
                other.0 += usize::from(!self.takes_long(a, c, modes));
            }
        }
        let part = |(good, all): (usize, usize)| good as f64 / all.max(1) as f64;
        (part(same), part(other))
    }
}

#[cfg(test)]
#[path = "find_tests.rs"]
mod tests;
