//! Quadrants of the Kronecker generator, several levels with one random number.

use varve_access::random::Rng;

/// Probabilities of the quadrants, of the Graph500 specification (and GAP, arXiv:1508.03619), by the bit of the edge's
/// first vertex and that of its second.
const QUADRANTS: [[f64; 2]; 2] = [[0.57, 0.19], [0.19, 0.05]];

/// Draws the quadrants of some levels at once, by the alias method (Walker 1977, Vose 1991): a uniform cell, and
/// with the rest of its probability the cell's alias. Outcomes have their probability up to 2^-32.
pub struct Levels {
    bits: u32,
    threshold: Vec<u32>,
    alias: Vec<u8>,
}

/// Probability that the next `bits` bits of the two vertices are those of `outcome` (first vertex above second).
fn probability(outcome: usize, bits: u32) -> f64 {
    let bit = |at: u32| outcome >> at & 1;
    (0..bits)
        .map(|level| QUADRANTS[bit(level + bits)][bit(level)])
        .product()
}

impl Levels {
    /// A table for `bits` levels, at most 3.
    pub fn new(bits: u32) -> Levels {
        let cells = 1usize << (2 * bits);
        // Share of each cell, in cells: 1 on average.
        let mut held: Vec<f64> = (0..cells)
            .map(|cell| probability(cell, bits) * cells as f64)
            .collect();
        let mut threshold = vec![u32::MAX; cells];
        let mut alias: Vec<u8> = (0..cells).map(|cell| cell as u8).collect();
        let (mut small, mut large): (Vec<usize>, Vec<usize>) =
            (0..cells).partition(|&cell| held[cell] < 1.0);
        while let (Some(&low), Some(&high)) = (small.last(), large.last()) {
            small.pop();
            threshold[low] = (held[low] * 4_294_967_296.0) as u32;
            alias[low] = high as u8;
            held[high] -= 1.0 - held[low];
            if held[high] < 1.0 {
                large.pop();
                small.push(high);
            }
        }
        Levels {
            bits,
            threshold,
            alias,
        }
    }

    /// The next bits of an edge's two vertices.
    #[inline(always)]
    pub fn draw(&self, rng: &mut Rng) -> (u32, u32) {
        let random = rng.bits();
        let cell = random as usize & (self.threshold.len() - 1);
        let kept = ((random >> 32) as u32) < self.threshold[cell];
        let outcome = if kept {
            cell as u32
        } else {
            u32::from(self.alias[cell])
        };
        (outcome >> self.bits, outcome & ((1 << self.bits) - 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_holds_the_products_of_the_quadrants() {
        for bits in 1..=3 {
            let levels = Levels::new(bits);
            let cells = levels.threshold.len();
            let mut held = vec![0.0; cells];
            for cell in 0..cells {
                let kept = f64::from(levels.threshold[cell]) / 4_294_967_296.0;
                held[cell] += kept / cells as f64;
                held[usize::from(levels.alias[cell])] += (1.0 - kept) / cells as f64;
            }
            for (outcome, held) in held.into_iter().enumerate() {
                assert!(
                    (held - probability(outcome, bits)).abs() < 1e-8,
                    "{bits} bits, {outcome}: {held}"
                );
            }
        }
        // First vertex 0b011, second 0b001: quadrants (0,0), (1,0), (1,1).
        assert!((probability(0b011_001, 3) - 0.57 * 0.19 * 0.05).abs() < 1e-15);
    }
}
