//! Linear algebra over GF(2): a vector is a word, a sum is an XOR.

/// Whether a word has an odd number of ones.
pub fn parity(word: u64) -> bool {
    word.count_ones() % 2 == 1
}

/// A space by its reduced basis: each vector's highest bit is in no other one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Space(Vec<u64>);

impl Space {
    /// What these vectors span.
    pub fn of(vectors: impl IntoIterator<Item = u64>) -> Space {
        let mut space = Space::default();
        vectors.into_iter().for_each(|vector| {
            space.add(vector);
        });
        space
    }

    /// Adds a vector; says whether it was not in the space before.
    pub fn add(&mut self, vector: u64) -> bool {
        let rest = self.rest(vector);
        if rest == 0 {
            return false;
        }
        let high = highest(rest);
        for other in &mut self.0 {
            if *other & high != 0 {
                *other ^= rest;
            }
        }
        self.0.push(rest);
        self.0.sort_unstable_by(|a, b| b.cmp(a));
        true
    }

    /// What of a vector is not in the space; 0 if all is.
    pub fn rest(&self, vector: u64) -> u64 {
        let step = |rest: u64, base: &u64| match rest & highest(*base) {
            0 => rest,
            _ => rest ^ base,
        };
        self.0.iter().fold(vector, step)
    }

    /// Vectors of the basis.
    pub fn dimension(&self) -> usize {
        self.0.len()
    }

    /// The reduced basis, the largest first: that of equal spaces is equal.
    pub fn basis(&self) -> &[u64] {
        &self.0
    }
}

fn highest(word: u64) -> u64 {
    1 << (63 - word.leading_zeros())
}

/// A basis of all words within `bits` whose parity with each vector of a reduced basis is even.
pub fn orthogonal(reduced: &[u64], bits: u64) -> Vec<u64> {
    let heads = reduced.iter().fold(0, |heads, base| heads | highest(*base));
    let free = (0..64)
        .map(|bit| 1u64 << bit)
        .filter(|one| one & bits & !heads != 0);
    // A bit that heads no vector, and the heads of those that have it.
    free.map(|one| {
        let with = reduced.iter().filter(|base| *base & one != 0);
        with.fold(one, |word, base| word | highest(*base))
    })
    .collect()
}

/// Sums of so many vectors are all looked at.
const MOST: usize = 16;

/// A basis of what `vectors` span beyond `known`, with as few ones as possible, the lowest first.
pub fn lightest(vectors: &[u64], known: &[u64]) -> Vec<u64> {
    let sums: Vec<u64> = match vectors.len() {
        0..=MOST => {
            let mut sums: Vec<u64> = vec![0];
            for vector in vectors {
                let more: Vec<u64> = sums.iter().map(|sum| sum ^ vector).collect();
                sums.extend(more);
            }
            sums.sort_unstable_by_key(|sum| (sum.count_ones(), *sum));
            sums
        }
        _ => vectors.to_vec(),
    };
    let mut space = Space::of(known.iter().copied());
    let mut light: Vec<u64> = sums.into_iter().filter(|sum| space.add(*sum)).collect();
    light.sort_unstable();
    light
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn functions_are_shown_with_as_few_bits_as_can_be() {
        assert_eq!(lightest(&[0b1110, 0b0110], &[]), [0b0110, 0b1000]);
        assert_eq!(lightest(&[0b1110, 0b0110], &[0b0110]), [0b1000]);
        assert_eq!(lightest(&[], &[]), [0u64; 0]);
    }

    proptest! {
        /// Small enough to try all words.
        #[test]
        fn what_is_orthogonal_is_what_trying_all_words_finds(
            vectors in prop::collection::vec(0u64..256, 0..10), bits in 0u64..256,
        ) {
            let vectors: Vec<u64> = vectors.into_iter().map(|v| v & bits).collect();
            let space = Space::of(vectors.iter().copied());
            let sums = |basis: &[u64]| {
                let mut all = vec![0u64];
                for one in basis {
                    let more: Vec<u64> = all.iter().map(|sum| sum ^ one).collect();
                    all.extend(more);
                }
                all.sort_unstable();
                all
            };
            let tried: Vec<u64> = (0..256)
                .filter(|word| word & !bits == 0 && vectors.iter().all(|v| !parity(v & word)))
                .collect();
            prop_assert_eq!(sums(&orthogonal(space.basis(), bits)), tried);
            let light = lightest(&vectors, &[]);
            prop_assert_eq!(Space::of(light.iter().copied()), space.clone());
            prop_assert_eq!(light.len(), space.dimension());
            let ones = |basis: &[u64]| basis.iter().map(|v| v.count_ones()).sum::<u32>();
            prop_assert!(ones(&light) <= ones(space.basis()));
        }
    }
}
