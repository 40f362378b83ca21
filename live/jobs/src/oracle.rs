//! Every plan of a small group, to see how far the policies are from the best.
//!
//! Tried are all placements that fit (also in part, where a program's own memory can be placed), in each all orders within a memory, and for each program its usual threads and those that are
//! worthwhile where it is (with four programs: all usual or all worthwhile). Pages move for none of them: the oracle knows beforehand.

use crate::demand::{Demand, Point, seconds};
use crate::error::Error;
use crate::group::Group;
use crate::kinds::Memory;
use crate::plan::{Host, Plan, Strategy, plan};
use crate::policy::place::mostly;
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
    for ways in every_way(group, demands) {
        let fast = |i: usize| ways[i].fast_bytes(&demands[i]);
        let memory = |i: usize| mostly(fast(i), demands[i].bytes);
        let (mut in_fast, mut in_slow) = (0, 0);
        for (i, demand) in demands.iter().enumerate() {
            in_fast += fast(i);
            in_slow += demand.bytes - fast(i);
        }
        if in_fast > host.capacity.fast || in_slow > host.capacity.slow {
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
                    &base, group, demands, host, &ways, &order, &counted,
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
    ways: &[Way],
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
    let times: Vec<_> = (0..demands.len())
        .map(|i| move |t: u32| seconds(ways[i].curve(&demands[i]), t))
        .collect();
    let wants: Vec<Want> = (0..demands.len())
        .map(|i| {
            let usual = group.programs[i].threads;
            let most = ways[i].curve(&demands[i]).last().map_or(1, |p| p.threads);
            Want {
                memory: mostly(ways[i].fast_bytes(&demands[i]), demands[i].bytes),
                usual,
                worthwhile: match counted(i) {
                    true => threads::worthwhile(times[i], usual, most),
                    false => usual,
                },
                seconds: &times[i],
            }
        })
        .collect();
    let threads = threads::share(&wants, host.cores, group.at_once);
    for (i, p) in plan.programs.iter_mut().enumerate() {
        p.threads = threads[i];
        p.in_part = ways[i] == Way::Part;
        p.fast_bytes = ways[i].fast_bytes(&demands[i]);
        p.memory = mostly(p.fast_bytes, p.bytes);
        p.why_there = "the oracle tries it there".into();
        let item = &mut plan.items[i];
        item.memory = p.memory;
        item.held = false;
        item.rank = order.iter().position(|&o| o == i)? as u32;
    }
    Some(plan)
}

/// Where a program is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    All(Memory),
    Part,
}

impl Way {
    fn fast_bytes(self, demand: &Demand) -> u64 {
        match self {
            Way::All(Memory::Fast) => demand.bytes,
            Way::All(Memory::Slow) => 0,
            Way::Part => demand
                .part
                .as_ref()
                .map_or(0, |p| p.fast_bytes.min(demand.bytes)),
        }
    }

    fn curve(self, demand: &Demand) -> &[Point] {
        match self {
            Way::All(memory) => demand.curve(memory),
            Way::Part => demand.part.as_ref().map_or(&[], |p| &p.curve),
        }
    }
}

/// Every way of having each program somewhere, the first program's changing fastest.
fn every_way(group: &Group, demands: &[Demand]) -> Vec<Vec<Way>> {
    let mut all = vec![Vec::new()];
    for (program, demand) in group.programs.iter().zip(demands).rev() {
        let part = program.inside.is_some() && demand.part.is_some();
        let ways = Memory::ALL.map(Way::All).into_iter();
        let ways = ways.chain(part.then_some(Way::Part));
        let able = |way: &Way| program.memory.is_none_or(|m| *way == Way::All(m));
        let able: Vec<Way> = ways.filter(able).collect();
        all = (all.iter())
            .flat_map(|rest: &Vec<Way>| {
                able.iter()
                    .map(move |way| std::iter::once(*way).chain(rest.iter().copied()).collect())
            })
            .collect();
    }
    all
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
