//! How much fast memory each group may have.

use super::config::GroupConfig;
use varve_spec::Bytes;

/// A group's wish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// This much, whatever others have.
    Exactly(u64),
    /// A part of what is left, by weight, and a floor at least.
    Part {
        /// Beside the other groups' weights; at least 1.
        weight: u64,
        /// Bytes.
        floor: u64,
    },
}

impl Wish {
    /// Of a group that the kernel protects `protected` bytes of.
    pub fn of(group: &GroupConfig, protected: u64) -> Wish {
        match group.fast {
            Some(bytes) => Wish::Exactly(bytes),
            None => Wish::Part {
                weight: group.weight,
                floor: group.floor.max(protected),
            },
        }
    }
}

/// Divides `all` bytes: what is to be had exactly first, then the rest by weight. A group whose part is less than its floor has its
/// floor, and the others divide what is left.
///
/// # Errors
/// A line: more is wanted than there is.
pub fn divide(all: u64, wishes: &[Wish]) -> Result<Vec<u64>, String> {
    let least: u128 = wishes
        .iter()
        .map(|wish| match wish {
            Wish::Exactly(bytes) => u128::from(*bytes),
            Wish::Part { floor, .. } => u128::from(*floor),
        })
        .sum();
    if least > u128::from(all) {
        let least = Bytes(u64::try_from(least).unwrap_or(u64::MAX));
        return Err(format!(
            "the groups want at least {least} of fast memory (`fast` and `floor`), and there are {}",
            Bytes(all)
        ));
    }
    let mut has: Vec<Option<u64>> = wishes
        .iter()
        .map(|wish| match wish {
            Wish::Exactly(bytes) => Some(*bytes),
            Wish::Part { .. } => None,
        })
        .collect();
    loop {
        let left = all - has.iter().flatten().sum::<u64>();
        let open = || {
            let wishes = wishes.iter().enumerate();
            let has = &has;
            wishes.filter_map(move |(at, wish)| match (has[at], wish) {
                (None, Wish::Part { weight, floor }) => Some((at, (*weight).max(1), *floor)),
                _ => None,
            })
        };
        let weights: u128 = open().map(|(_, weight, _)| u128::from(weight)).sum();
        let part = |weight: u64| (u128::from(left) * u128::from(weight) / weights.max(1)) as u64;
        let short: Vec<(usize, u64)> = open()
            .filter(|(_, weight, floor)| part(*weight) < *floor)
            .map(|(at, _, floor)| (at, floor))
            .collect();
        if short.is_empty() {
            let parts: Vec<(usize, u64)> = open().map(|(at, w, _)| (at, part(w))).collect();
            for (at, bytes) in parts {
                has[at] = Some(bytes);
            }
            return Ok(has.into_iter().flatten().collect());
        }
        for (at, floor) in short {
            has[at] = Some(floor);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn part(weight: u64, floor: u64) -> Wish {
        Wish::Part { weight, floor }
    }

    #[test]
    fn the_rest_goes_by_weight_and_floors_hold() {
        let wishes = [Wish::Exactly(10), part(1, 0), part(2, 0)];
        assert_eq!(divide(100, &wishes), Ok(vec![10, 30, 60]));
        let wishes = [part(1, 50), part(1, 0), part(2, 0)];
        assert_eq!(divide(80, &wishes), Ok(vec![50, 10, 20]));
        let why = divide(40, &[part(1, 30), Wish::Exactly(20)]).unwrap_err();
        assert!(why.contains("want at least 50"), "{why}");
    }

    fn wish() -> impl Strategy<Value = Wish> {
        prop_oneof![
            (0u64..50).prop_map(Wish::Exactly),
            (1u64..9, 0u64..50).prop_map(|(w, f)| part(w, f)),
        ]
    }

    proptest! {
        /// Of two groups above their floors neither has more for its weight than the other.
        #[test]
        fn no_one_has_too_little_and_no_byte_is_given_twice(
            all in 0u64..500,
            wishes in prop::collection::vec(wish(), 1..6),
        ) {
            let Ok(has) = divide(all, &wishes) else {
                return Ok(());
            };
            prop_assert!(has.iter().sum::<u64>() <= all);
            let open = wishes.iter().any(|w| matches!(w, Wish::Part { .. }));
            prop_assert!(!open || has.iter().sum::<u64>() + 6 > all, "{has:?}");
            let per_weight = |at: usize| match wishes[at] {
                Wish::Part { weight, .. } => has[at] as f64 / weight as f64,
                Wish::Exactly(_) => f64::NAN,
            };
            for (at, wish) in wishes.iter().enumerate() {
                match wish {
                    Wish::Exactly(bytes) => prop_assert_eq!(has[at], *bytes),
                    Wish::Part { floor, .. } => {
                        prop_assert!(has[at] >= *floor);
                        // What has more than its floor has no more for its weight than any other.
                        for other in 0..wishes.len() {
                            if has[at] > *floor && !per_weight(other).is_nan() {
                                prop_assert!(per_weight(at) <= per_weight(other) + 1.0);
                            }
                        }
                    }
                }
            }
        }
    }
}
