//! Every plan of a small group, to see how far the policies are from the best.
//!
//! Tried are all placements that fit, in each all orders within a memory, and for each program its usual threads and those that are
//! worthwhile where it is (with four programs: all usual or all worthwhile). Pages move for none of them: the oracle knows beforehand.

use crate::demand::Demand;
use crate::error::Error;
use crate::group::Group;
use crate::kinds::Memory;
use crate::plan::{Host, Plan, Strategy, plan};
use crate::policy::threads::{self, Want};

/// Most programs of a group that all plans are tried of.
pub const MOST: usize = 4;

/// Every plan of a group.
///
/// # Errors
/// A group that is too large, or does not fit the machine.
pub fn candidates(group: &Group, demands: &[Demand], host: &Host) -> Result<Vec<Plan>, Error> {
    let n = group.programs.len();
    if n > MOST {
        let what = format!("{n} programs have too many plans to try them all");
        let remedy = "take a group of up to 4 programs, or leave --oracle out";
        return Err(group.problem(usize::MAX, "program", what, remedy).into());
    }
    let base = plan(group, demands, host, Strategy::ALL)?;
    let mut all = Vec::new();
    for placed in 0..1u32 << n {
        let memory = |i: usize| match placed >> i & 1 {
            0 => Memory::Fast,
            _ => Memory::Slow,
        };
        let fits = Memory::ALL.iter().all(|&m| {
            let of = (0..n).filter(|&i| memory(i) == m);
            of.map(|i| demands[i].bytes).sum::<u64>() <= host.capacity.of(m)
        });
        let pinned = (0..n).all(|i| group.programs[i].memory.is_none_or(|m| m == memory(i)));
        if !fits || !pinned {
            continue;
        }
        let choices: Vec<u32> = match n {
            MOST => vec![0, (1 << n) - 1],
            _ => (0..1 << n).collect(),
        };
        for order in orders(n, &memory) {
            for &choice in &choices {
                let counted = |i: usize| choice >> i & 1 == 1;
                all.extend(candidate(
                    &base, group, demands, host, &memory, &order, &counted,
                ));
            }
        }
    }
    Ok(all)
}

fn candidate(
    base: &Plan,
    group: &Group,
    demands: &[Demand],
    host: &Host,
    memory: &dyn Fn(usize) -> Memory,
    order: &[usize],
    counted: &dyn Fn(usize) -> bool,
) -> Option<Plan> {
    let mut plan = base.clone();
    plan.evictions.clear();
    plan.strategy = Strategy {
        placement: true,
        threads: (0..demands.len()).any(counted),
        order: false,
    };
    let seconds: Vec<_> = (0..demands.len())
        .map(|i| move |t: u32| demands[i].seconds(memory(i), t))
        .collect();
    let wants: Vec<Want> = (0..demands.len())
        .map(|i| {
            let usual = group.programs[i].threads;
            let most = demands[i].curve(memory(i)).last().map_or(1, |p| p.threads);
            Want {
                memory: memory(i),
                usual,
                worthwhile: match counted(i) {
                    true => threads::worthwhile(&seconds[i], most),
                    false => usual,
                },
                seconds: &seconds[i],
            }
        })
        .collect();
    let threads = threads::share(&wants, host.cores, group.at_once);
    for (i, p) in plan.programs.iter_mut().enumerate() {
        p.memory = memory(i);
        p.threads = threads[i];
        p.in_part = false;
        p.fast_bytes = match p.memory {
            Memory::Fast => p.bytes,
            Memory::Slow => 0,
        };
        p.why_there = "the oracle tries it there".into();
        let item = &mut plan.items[i];
        item.memory = p.memory;
        item.held = false;
        item.rank = order.iter().position(|&o| o == i)? as u32;
    }
    Some(plan)
}

/// All orders of programs that differ within a memory: those of fast memory first, in each of their orders.
fn orders(n: usize, memory: &dyn Fn(usize) -> Memory) -> Vec<Vec<usize>> {
    let lane = |m: Memory| permutations((0..n).filter(|&i| memory(i) == m).collect());
    let mut all = Vec::new();
    for fast in lane(Memory::Fast) {
        for slow in lane(Memory::Slow) {
            all.push(fast.iter().chain(&slow).copied().collect());
        }
    }
    all
}

fn permutations(of: Vec<usize>) -> Vec<Vec<usize>> {
    if of.is_empty() {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for (at, &first) in of.iter().enumerate() {
        let mut rest = of.clone();
        rest.remove(at);
        for mut p in permutations(rest) {
            p.insert(0, first);
            all.push(p);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_differ_within_a_memory_only() {
        let all = orders(4, &|i| if i < 3 { Memory::Fast } else { Memory::Slow });
        assert_eq!(all.len(), 6);
        assert!(all.iter().all(|o| o[3] == 3));
        assert_eq!(orders(4, &|_| Memory::Slow).len(), 24);
    }
}
