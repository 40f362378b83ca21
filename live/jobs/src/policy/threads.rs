//! How many threads a program has (Algorithm 2 of Wang et al.), and who gets those that are left.

use crate::kinds::Memory;

/// Another thread pays if it raises the speed-up by this share of what it was (Wang et al.).
pub const PAYS: f64 = 0.1;

/// Algorithm 2: threads are added as long as each raises the speed-up by a tenth. `seconds` is how long the program takes with so
/// many; it is asked for 1, 2, 3 and so on, and for `usual`, never for more than `most`. `None` from it ends the search: more was not
/// measured.
///
/// Beyond the paper: a number at which the program is slower does not hide its `usual` one, if all threads up to that one raise the
/// speed-up by a tenth each on average. Caches that the threads share may just not be enough in between.
pub fn worthwhile(seconds: impl Fn(u32) -> Option<f64>, usual: u32, most: u32) -> u32 {
    let Some(alone) = seconds(1) else { return 1 };
    let speedup = |threads: u32| {
        (threads <= most)
            .then(|| seconds(threads))
            .flatten()
            .map(|s| alone / s)
    };
    let pays = |from: u32, to: u32| match (speedup(from), speedup(to)) {
        (Some(before), Some(after)) => after >= before * (1.0 + PAYS).powi((to - from) as i32),
        _ => false,
    };
    let mut threads = 1;
    loop {
        threads = match threads {
            t if pays(t, t + 1) => t + 1,
            t if t < usual && pays(t, usual) => usual,
            t => return t,
        }
    }
}

/// Measurements of a program's threads in the memory that it is in.
pub struct Want<'a> {
    /// Where it is.
    pub memory: Memory,
    /// Threads if no strategy chooses them.
    pub usual: u32,
    /// Threads that are worthwhile.
    pub worthwhile: u32,
    /// Its time by number of threads.
    pub seconds: &'a dyn Fn(u32) -> Option<f64>,
}

/// Threads of each program: no more than are worthwhile, and those that this frees go to programs that want more than
/// they usually have, one at a time to the one that gains the most.
///
/// `at_once` programs run in each memory at a time, all if it is 0; together they never have more threads than there are cores,
/// unless there are more programs than cores: each has at least one.
pub fn share(wants: &[Want], cores: u32, at_once: u32) -> Vec<u32> {
    let mut threads: Vec<u32> = wants
        .iter()
        .map(|w| w.usual.min(w.worthwhile).max(1))
        .collect();
    // The loss or gain of the slowest; unmeasured programs lose nothing.
    let gain = |i: usize, from: u32, to: u32| {
        let w = &wants[i];
        match ((w.seconds)(from), (w.seconds)(to)) {
            (Some(a), Some(b)) => a - b,
            _ => 0.0,
        }
    };
    while used(wants, &threads, at_once) > cores {
        let loser = (0..wants.len())
            .filter(|&i| threads[i] > 1 && lowers(wants, &threads, at_once, i))
            .min_by(|&i, &j| {
                let loss = |i: usize| gain(i, threads[i] - 1, threads[i]);
                loss(i).total_cmp(&loss(j))
            });
        match loser {
            Some(i) => threads[i] -= 1,
            None => break,
        }
    }
    loop {
        let mut best: Option<(f64, usize)> = None;
        for i in 0..wants.len() {
            if threads[i] >= wants[i].worthwhile {
                continue;
            }
            threads[i] += 1;
            let fits = used(wants, &threads, at_once) <= cores;
            threads[i] -= 1;
            let gained = gain(i, threads[i], threads[i] + 1);
            if fits && gained > 0.0 && best.is_none_or(|(most, _)| gained > most) {
                best = Some((gained, i));
            }
        }
        match best {
            Some((_, i)) => threads[i] += 1,
            None => return threads,
        }
    }
}

/// The most threads that may run at the same time.
pub fn used(wants: &[Want], threads: &[u32], at_once: u32) -> u32 {
    if at_once == 0 {
        return threads.iter().sum();
    }
    let lane = |memory: Memory| -> u32 {
        let mut of: Vec<u32> = (wants.iter().zip(threads))
            .filter(|(w, _)| w.memory == memory)
            .map(|(_, t)| *t)
            .collect();
        of.sort_unstable_by(|a, b| b.cmp(a));
        of.iter().take(at_once as usize).sum()
    };
    lane(Memory::Fast) + lane(Memory::Slow)
}

/// Does one thread less for program `i` lower the most, now or once others follow? It does if `i` is among the largest of its memory.
fn lowers(wants: &[Want], threads: &[u32], at_once: u32, i: usize) -> bool {
    if at_once == 0 {
        return true;
    }
    let mut of: Vec<u32> = (wants.iter().zip(threads))
        .filter(|(w, _)| w.memory == wants[i].memory)
        .map(|(_, t)| *t)
        .collect();
    of.sort_unstable_by(|a, b| b.cmp(a));
    let last = of.len().min(at_once as usize) - 1;
    threads[i] >= of[last]
}
