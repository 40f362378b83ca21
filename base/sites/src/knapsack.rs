//! Which items to take: the most value within a capacity of weight, each item whole or not at all (0/1 knapsack).
//!
//! [`exact`] is dynamic programming over states that nothing dominates: with as much or less weight there is no more value. States that
//! cannot become better than what is known already are left out, so that it is quick for most inputs, but the worst need more states
//! than there is memory for; then it gives up. [`fast`] takes items by value per weight, as long as they fit, and solves only the
//! items around that border exactly: it is never worse than half of the best, and usually equal.

use std::ops::Range;

/// An item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item {
    /// The quantity to maximize.
    pub value: u64,
    /// The limited quantity.
    pub weight: u64,
}

/// Number of states after which [`exact`] gives up, and [`fast`] skips the best choice around its border. Some
/// milliseconds.
const MOST_STEPS: usize = 150_000;
/// Items on each side of the border that [`fast`] solves exactly.
const CORE: usize = 24;

/// The best choice, as indices in ascending order; the best that is found quickly where the best one is not.
pub fn solve(items: &[Item], capacity: u64) -> Vec<usize> {
    let sorted = Sorted::new(items, capacity);
    let known = sorted.fast(capacity);
    let best = sorted.best(0..sorted.order.len(), capacity, known.clone());
    let mut chosen = best.unwrap_or(known);
    chosen.extend(&sorted.free);
    chosen.sort_unstable();
    chosen
}

/// The best choice, as indices in ascending order; `None` where that takes too many states.
pub fn exact(items: &[Item], capacity: u64) -> Option<Vec<usize>> {
    let sorted = Sorted::new(items, capacity);
    // The known lower bound prunes most states.
    let known = sorted.fast(capacity);
    let mut chosen = sorted.best(0..sorted.order.len(), capacity, known)?;
    chosen.extend(&sorted.free);
    chosen.sort_unstable();
    Some(chosen)
}

/// A good choice, as indices in ascending order, in time for a hundred thousand items.
pub fn fast(items: &[Item], capacity: u64) -> Vec<usize> {
    let sorted = Sorted::new(items, capacity);
    let mut chosen = sorted.fast(capacity);
    chosen.extend(&sorted.free);
    chosen.sort_unstable();
    chosen
}

/// Items by value per weight, the most first, with sums of those before each.
struct Sorted<'a> {
    items: &'a [Item],
    order: Vec<usize>,
    /// Items without weight, that are worth something.
    free: Vec<usize>,
    weights: Vec<u128>,
    values: Vec<u128>,
}

/// A choice among the items so far: its sums, the item that came last, and the choice before.
#[derive(Clone, Copy)]
struct State {
    weight: u64,
    value: u64,
    item: u32,
    before: u32,
}

const NONE: u32 = u32::MAX;

impl<'a> Sorted<'a> {
    fn new(items: &'a [Item], capacity: u64) -> Sorted<'a> {
        let worth = (0..items.len()).filter(|&i| items[i].value > 0);
        let (free, mut order): (Vec<usize>, Vec<usize>) =
            worth.partition(|&i| items[i].weight == 0);
        order.retain(|&i| items[i].weight <= capacity);
        order.sort_by(|&a, &b| {
            let (a, b) = (items[a], items[b]);
            let density = |x: Item, y: Item| u128::from(x.value) * u128::from(y.weight);
            density(b, a)
                .cmp(&density(a, b))
                .then(a.weight.cmp(&b.weight))
        });
        let sums = |of: &dyn Fn(Item) -> u64| {
            let mut sum = 0u128;
            let mut all = vec![0];
            all.extend(order.iter().map(|&i| {
                sum += u128::from(of(items[i]));
                sum
            }));
            all
        };
        let (weights, values) = (sums(&|i| i.weight), sums(&|i| i.value));
        Sorted {
            items,
            order,
            free,
            weights,
            values,
        }
    }

    fn value(&self, chosen: &[usize]) -> u128 {
        let values = chosen.iter().map(|&i| u128::from(self.items[i].value));
        values.sum()
    }

    /// The items of a range that fit, one after the other.
    fn greedy(&self, range: Range<usize>, capacity: u64) -> Vec<usize> {
        let (mut left, mut chosen) = (capacity, Vec::new());
        for &i in &self.order[range] {
            if self.items[i].weight <= left {
                left -= self.items[i].weight;
                chosen.push(i);
            }
        }
        chosen
    }

    /// See [`fast`].
    fn fast(&self, capacity: u64) -> Vec<usize> {
        let all = self.order.len();
        // The border: the first item that does not fit behind all before it.
        let border = self.weights[1..].partition_point(|w| *w <= u128::from(capacity));
        let core = border.saturating_sub(CORE)..(border + CORE).min(all);
        let left = capacity - self.weights[core.start] as u64;
        let mut inner = self.greedy(core.clone(), left);
        if let Some(best) = self.best(core.clone(), left, inner.clone()) {
            inner = best;
        }
        let used: u64 = inner.iter().map(|&i| self.items[i].weight).sum();
        let mut chosen = self.order[..core.start].to_vec();
        chosen.extend(inner);
        chosen.extend(self.greedy(core.end..all, left - used));
        // One item may be worth more than all that was taken.
        let single = self.order.iter().copied();
        let single = single.max_by_key(|&i| self.items[i].value);
        match single.filter(|&i| u128::from(self.items[i].value) > self.value(&chosen)) {
            Some(one) => vec![one],
            None => chosen,
        }
    }

    /// The most value that items from `at` to `end` may add within `left`, if they could be taken in part.
    fn bound(&self, at: usize, end: usize, left: u64) -> u128 {
        let reach = self.weights[at] + u128::from(left);
        let whole = at + self.weights[at + 1..=end].partition_point(|w| *w <= reach);
        let value = self.values[whole] - self.values[at];
        match self.order.get(whole).filter(|_| whole < end) {
            None => value,
            Some(&i) => {
                let rest = reach - self.weights[whole];
                let part = rest * u128::from(self.items[i].value);
                value + part / u128::from(self.items[i].weight)
            }
        }
    }

    /// The best choice of a range, where `fallback` is one that is known; `None` where that takes too many steps.
    fn best(&self, range: Range<usize>, capacity: u64, fallback: Vec<usize>) -> Option<Vec<usize>> {
        let end = range.end;
        let (mut known, mut steps) = (self.value(&fallback), 0);
        let mut states: Vec<State> = vec![State {
            weight: 0,
            value: 0,
            item: NONE,
            before: NONE,
        }];
        // Indices of states that may still become the best, by ascending weight and value.
        let mut open: Vec<u32> = vec![0];
        let mut best = None;
        for at in range {
            let i = self.order[at];
            let item = self.items[i];
            let mut next: Vec<u32> = Vec::with_capacity(open.len() * 2);
            let (mut without, mut with) = (0, 0);
            // The highest value so far: a state with more weight must have more value.
            let mut top = None::<u64>;
            while without < open.len() || with < open.len() {
                steps += 1;
                if steps > MOST_STEPS {
                    return None;
                }
                let extended = |n: usize| {
                    let s = states[open[n] as usize];
                    Some((
                        s.weight.checked_add(item.weight)?,
                        s.value.checked_add(item.value)?,
                    ))
                };
                let new = (with < open.len()).then(|| extended(with)).flatten();
                let new = new.filter(|n| n.0 <= capacity);
                if new.is_none() {
                    // Those that follow are heavier still.
                    with = open.len();
                }
                let old = open.get(without).map(|&n| states[n as usize]);
                let take_new = match (old, new) {
                    (None, None) => break,
                    (Some(_), None) => false,
                    (None, Some(_)) => true,
                    // Of two that weigh the same the one with more value first: the other one is dominated then.
                    (Some(o), Some(n)) => (n.0, o.value) < (o.weight, n.1),
                };
                let (weight, value) = match (take_new, old, new) {
                    (true, _, Some(n)) => n,
                    (_, Some(o), _) => (o.weight, o.value),
                    _ => break,
                };
                let number = if take_new { open[with] } else { open[without] };
                if take_new {
                    with += 1;
                } else {
                    without += 1;
                }
                if top.is_some_and(|top| value <= top) {
                    continue;
                }
                let may = u128::from(value) + self.bound(at + 1, end, capacity - weight);
                top = Some(value);
                // Prunes states that cannot exceed the known value.
                if may <= known {
                    continue;
                }
                let number = match take_new {
                    false => number,
                    true => {
                        states.push(State {
                            weight,
                            value,
                            item: i as u32,
                            before: number,
                        });
                        (states.len() - 1) as u32
                    }
                };
                if u128::from(value) > known {
                    known = u128::from(value);
                    best = Some(number);
                }
                next.push(number);
            }
            open = next;
        }
        let Some(mut at) = best else {
            return Some(fallback);
        };
        let mut chosen = Vec::new();
        while at != NONE {
            let state = states[at as usize];
            if state.item != NONE {
                chosen.push(state.item as usize);
            }
            at = state.before;
        }
        Some(chosen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn items(all: &[(u64, u64)]) -> Vec<Item> {
        let item = |&(value, weight): &(u64, u64)| Item { value, weight };
        all.iter().map(item).collect()
    }

    fn sums(items: &[Item], chosen: &[usize]) -> (u128, u128) {
        chosen.iter().fold((0, 0), |(v, w), &i| {
            (
                v + u128::from(items[i].value),
                w + u128::from(items[i].weight),
            )
        })
    }

    /// Every subset.
    fn brute_force(items: &[Item], capacity: u64) -> u128 {
        let subset = |set: u32| (0..items.len()).filter(move |i| set >> i & 1 == 1);
        let all = (0..1u32 << items.len()).map(|set| sums(items, &subset(set).collect::<Vec<_>>()));
        all.filter(|s| s.1 <= u128::from(capacity))
            .map(|s| s.0)
            .max()
            .unwrap_or(0)
    }

    #[test]
    fn the_densest_item_is_not_always_right() {
        let all = items(&[(60, 10), (100, 20), (120, 30)]);
        assert_eq!(exact(&all, 50).unwrap(), [1, 2]);
        assert_eq!(fast(&all, 50), [1, 2]);
        assert_eq!(exact(&all, 0).unwrap(), [0usize; 0]);
        // Without weight for nothing, and worthless not at all.
        let all = items(&[(5, 0), (0, 0), (0, 3), (7, 4)]);
        assert_eq!(
            (exact(&all, 0).unwrap(), fast(&all, 4)),
            (vec![0], vec![0, 3])
        );
    }

    #[test]
    fn one_heavy_item_may_be_worth_all_others() {
        let mut all = vec![
            Item {
                value: 3,
                weight: 1
            };
            2
        ];
        all.push(Item {
            value: 1_000_000,
            weight: 1_000_000,
        });
        assert_eq!(fast(&all, 1_000_000), [2]);
    }

    #[test]
    fn it_gives_up_where_there_are_too_many_states() {
        // Values equal to weights: no bound tells anything apart, and sums differ all.
        let mut x = 1u64;
        let all: Vec<Item> = (0..60)
            .map(|_| {
                x = x
                    .wrapping_mul(6364136223846793005)
                    .wrapping_add(1442695040888963407);
                let n = (2 * (x >> 20)) | (1 << 46);
                Item {
                    value: n,
                    weight: n,
                }
            })
            .collect();
        let capacity = all.iter().map(|i| i.weight).sum::<u64>() / 2;
        let chosen = solve(&all, capacity);
        let (value, weight) = sums(&all, &chosen);
        assert!(weight <= u128::from(capacity) && value * 100 > u128::from(capacity) * 95);
    }

    proptest! {
        #[test]
        fn exact_is_the_best_of_all_subsets_and_fast_at_least_half_of_it(
            all in prop::collection::vec((0u64..60, 0u64..40), 0..13), capacity in 0u64..300
        ) {
            let all = items(&all);
            let best = brute_force(&all, capacity);
            let (value, weight) = sums(&all, &exact(&all, capacity).unwrap());
            prop_assert_eq!(value, best);
            prop_assert!(weight <= u128::from(capacity));
            let (value, weight) = sums(&all, &fast(&all, capacity));
            prop_assert!(weight <= u128::from(capacity));
            prop_assert!(2 * value >= best, "{} of {}", value, best);
        }

        /// So large that nothing may be added without care.
        #[test]
        fn huge_numbers_do_not_overflow(
            all in prop::collection::vec((any::<u64>(), any::<u64>()), 0..10), capacity in any::<u64>()
        ) {
            let all: Vec<Item> = items(&all).iter().map(|i| Item { value: i.value / 16, ..*i }).collect();
            let best = brute_force(&all, capacity);
            prop_assert_eq!(sums(&all, &exact(&all, capacity).unwrap()).0, best);
            let (value, weight) = sums(&all, &fast(&all, capacity));
            prop_assert!(weight <= u128::from(capacity) && 2 * value >= best);
        }

        /// More items than brute force can solve: compares the fast solution with the exact one.
        #[test]
        fn fast_is_within_a_percent_for_many_items(
            all in prop::collection::vec((1u64..10_000, 1u64..10_000), 200..400), part in 0.02f64..0.5
        ) {
            let all = items(&all);
            let capacity = (part * all.iter().map(|i| i.weight).sum::<u64>() as f64) as u64;
            if let Some(best) = exact(&all, capacity) {
                let (best, _) = sums(&all, &best);
                let (value, weight) = sums(&all, &fast(&all, capacity));
                prop_assert!(weight <= u128::from(capacity) && value <= best && 100 * value >= 99 * best);
            }
        }
    }
}
