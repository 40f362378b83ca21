//! The short measurement: pointer chases by size, and streams by threads, per memory node. Other programs only make memory slower: of
//! several runs the best one counts, and it is said where the best ones disagree.

use super::cpus::{Pair, pairs, stay_on};
use super::memory::{LINE, Memory, link_randomly};
use super::topology::Topology;
use serde::{Deserialize, Serialize};
use std::hint::black_box;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Idle latency of dependent loads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Node of the processor that loads.
    pub cpu_node: u32,
    /// Node of the memory.
    pub memory_node: u32,
    /// Bytes that the chase runs over in random order, one load per 64 B line, in 2 MiB pages where the kernel has them.
    pub bytes: u64,
    /// Time of one load, ns.
    pub ns: f64,
}

/// The accesses of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StreamTraffic {
    /// Loads alone.
    Read,
    /// Stores alone (the C library's fill); lines that the processor fetches first are not counted.
    Write,
    /// Loads and stores of as many bytes (the C library's copy); both are counted.
    Copy,
}

impl StreamTraffic {
    /// All of them.
    pub const ALL: [StreamTraffic; 3] = [
        StreamTraffic::Read,
        StreamTraffic::Write,
        StreamTraffic::Copy,
    ];
}

/// Bandwidth of sequential streams.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bandwidth {
    /// Node of the processors.
    pub cpu_node: u32,
    /// Node of the memory.
    pub memory_node: u32,
    /// The threads' accesses.
    pub traffic: StreamTraffic,
    /// Threads, each on a hardware thread of its own.
    pub threads: u32,
    /// Bytes that all threads together run over. Bandwidth is the cache's where this is less than the last-level cache.
    pub bytes: u64,
    /// Bytes per second that the program asks for, in GB/s (10^9).
    pub gb_per_s: f64,
}

/// Runs per latency, and per bandwidth.
const CHASE_RUNS: usize = 15;
const STREAM_RUNS: usize = 5;
/// The best runs that have to agree, and how far apart they may be.
const AGREE: usize = 3;
const APART: f64 = 0.15;

/// The best of several runs.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Best {
    value: f64,
    /// How far the best ones are apart, as a share of the best.
    apart: f64,
}

impl Best {
    /// Of times: the least.
    fn least(mut runs: Vec<f64>) -> Best {
        runs.sort_unstable_by(f64::total_cmp);
        Best::first(&runs)
    }

    /// Of rates: the greatest.
    fn greatest(mut runs: Vec<f64>) -> Best {
        runs.sort_unstable_by(|a, b| b.total_cmp(a));
        Best::first(&runs)
    }

    fn first(sorted: &[f64]) -> Best {
        let value = sorted.first().copied().unwrap_or(0.0);
        let last = sorted.get(AGREE - 1).or(sorted.last());
        let apart = last.map_or(0.0, |last| (last / value - 1.0).abs());
        Best { value, apart }
    }

    /// What is said of a figure on which the best runs disagree.
    fn note(self, what: impl FnOnce() -> String) -> Option<String> {
        // Of nothing, nothing is known.
        (self.apart > APART).then(|| {
            format!(
                "{}: the best of several runs are {:.0} % apart, since other programs use the memory or the processors: measure again on a quiet machine",
                what(),
                100.0 * self.apart
            )
        })
    }
}
/// Sizes of the chases, bytes: within the first, second and last caches of common processors, and beyond.
const CHASES: [usize; 6] = [16 << 10, 256 << 10, 2 << 20, 16 << 20, 64 << 20, 256 << 20];

/// Measures every memory node from the nearest processors (and from the first node's), within `budget`.
pub fn all(
    topology: &Topology,
    budget: Duration,
    most_bytes: usize,
    latency: &mut Vec<Latency>,
    bandwidth: &mut Vec<Bandwidth>,
    notes: &mut Vec<String>,
) {
    let pairs = pairs(topology);
    if pairs.is_empty() {
        notes.push("nothing was measured: no node has both processors and memory in reach".into());
        return;
    }
    let share = budget / pairs.len() as u32;
    for pair in pairs {
        let end = Instant::now() + share;
        let free = pair.free_bytes / 2;
        let bytes =
            most_bytes.min(usize::try_from(free).unwrap_or(usize::MAX)) / (2 << 20) * (2 << 20);
        if bytes < 16 << 20 {
            notes.push(format!(
                "node {} was not measured: less than 32 MiB are free",
                pair.memory_node
            ));
            continue;
        }
        let Some(mut memory) = Memory::on_node(bytes, pair.memory_node, topology.nodes.len() > 1)
        else {
            notes.push(format!(
                "node {} was not measured: its memory cannot be bound",
                pair.memory_node
            ));
            continue;
        };
        chases(&pair, &mut memory, share / 3, latency, notes);
        streams(&pair, &mut memory, end, bandwidth, notes);
        if topology.last_level_bytes() > bytes as u64 {
            notes.push(format!(
                "streams ran over {} MiB, less than the {} MiB last-level cache that the system states: a part of the traffic may stay in it",
                bytes >> 20,
                topology.last_level_bytes() >> 20
            ));
        }
    }
    notes.dedup();
}

fn chases(
    pair: &Pair,
    memory: &mut Memory,
    budget: Duration,
    out: &mut Vec<Latency>,
    notes: &mut Vec<String>,
) {
    let end = Instant::now() + budget;
    let slice = budget / (CHASES.len() * CHASE_RUNS) as u32 / 2;
    // A thread of its own, so that the caller's affinity stays as it was.
    std::thread::scope(|scope| {
        let cpu = pair.cpus[0];
        let words = memory.words();
        scope.spawn(move || {
            stay_on(cpu);
            for bytes in CHASES {
                if bytes > words.len() * 8 || Instant::now() > end {
                    break;
                }
                link_randomly(words, bytes / LINE);
                let best = Best::least((0..CHASE_RUNS).map(|_| chase(words, slice)).collect());
                let (cpu_node, memory_node) = (pair.cpu_node, pair.memory_node);
                notes.extend(
                    best.note(|| format!("latency of node {memory_node} over {} KiB", bytes >> 10)),
                );
                out.push(Latency {
                    cpu_node,
                    memory_node,
                    bytes: bytes as u64,
                    ns: best.value,
                });
            }
        });
    });
}

/// Nanoseconds per dependent load, over about `time`.
fn chase(words: &[u64], time: Duration) -> f64 {
    let mut at = 0u64;
    let mut loads = 0u64;
    // One batch unmeasured, to bring small sizes into their cache.
    let batch = 16 << 10;
    for _ in 0..batch {
        at = words[at as usize];
    }
    let begun = Instant::now();
    while begun.elapsed() < time || loads == 0 {
        for _ in 0..batch {
            at = words[at as usize];
        }
        loads += batch;
    }
    black_box(at);
    begun.elapsed().as_nanos() as f64 / loads as f64
}

fn streams(
    pair: &Pair,
    memory: &mut Memory,
    end: Instant,
    out: &mut Vec<Bandwidth>,
    notes: &mut Vec<String>,
) {
    let most = pair.cpus.len();
    let mut counts: Vec<usize> = std::iter::successors(Some(1), |n| Some(n * 2))
        .take_while(|n| *n < most)
        .collect();
    counts.push(most);
    let runs = (counts.len() * StreamTraffic::ALL.len() * STREAM_RUNS) as u32;
    let slice = end.saturating_duration_since(Instant::now()) / (runs + 1);
    for &threads in &counts {
        for traffic in StreamTraffic::ALL {
            let bytes = memory.bytes as u64;
            let runs = 0..STREAM_RUNS;
            let best = Best::greatest(
                runs.map(|_| stream(pair, memory.words(), traffic, threads, slice))
                    .collect(),
            );
            let (cpu_node, memory_node) = (pair.cpu_node, pair.memory_node);
            notes.extend(best.note(|| {
                let what = format!("{traffic:?}").to_lowercase();
                format!("{what} bandwidth of node {memory_node} with {threads} threads")
            }));
            out.push(Bandwidth {
                cpu_node,
                memory_node,
                traffic,
                threads: threads as u32,
                bytes,
                gb_per_s: best.value,
            });
        }
    }
}

/// GB/s of `threads` threads, each over its own part of `words`, for about `time`.
fn stream(
    pair: &Pair,
    words: &mut [u64],
    traffic: StreamTraffic,
    threads: usize,
    time: Duration,
) -> f64 {
    let part = words.len() / threads;
    let ready = Barrier::new(threads + 1);
    let stop = AtomicBool::new(false);
    // Each thread divides its bytes by its own time, so that a late start or end of one does not count against others.
    let rates: Vec<f64> = std::thread::scope(|scope| {
        let handles: Vec<_> = words
            .chunks_exact_mut(part)
            .zip(&pair.cpus)
            .take(threads)
            .map(|(part, &cpu)| {
                let (ready, stop) = (&ready, &stop);
                scope.spawn(move || {
                    stay_on(cpu);
                    ready.wait();
                    let begun = Instant::now();
                    let mut bytes = 0u64;
                    while bytes == 0 || !stop.load(Ordering::Relaxed) {
                        bytes += pass(part, traffic, stop);
                    }
                    bytes as f64 / begun.elapsed().as_nanos() as f64
                })
            })
            .collect();
        ready.wait();
        std::thread::sleep(time);
        stop.store(true, Ordering::Relaxed);
        handles.into_iter().filter_map(|h| h.join().ok()).collect()
    });
    rates.iter().sum()
}

/// One pass over `part`, in pieces so that `stop` is seen in time; returns the bytes done.
fn pass(part: &mut [u64], traffic: StreamTraffic, stop: &AtomicBool) -> u64 {
    // 1 MiB: small against any time slice, large enough that the C library streams past the caches.
    const PIECE: usize = (1 << 20) / 8;
    let half = part.len() / 2;
    let (source, target) = part.split_at_mut(half);
    let mut bytes = 0;
    let mut go = |n: usize| {
        bytes += (n * 8) as u64;
        !stop.load(Ordering::Relaxed)
    };
    match traffic {
        StreamTraffic::Read => {
            for piece in source.chunks(PIECE).chain(target.chunks(PIECE)) {
                black_box(sum(piece));
                if !go(piece.len()) {
                    break;
                }
            }
        }
        StreamTraffic::Write => {
            for piece in source.chunks_mut(PIECE).chain(target.chunks_mut(PIECE)) {
                // SAFETY: any bytes are a valid u64.
                unsafe {
                    piece
                        .as_mut_ptr()
                        .cast::<u8>()
                        .write_bytes(1, piece.len() * 8)
                };
                if !go(piece.len()) {
                    break;
                }
            }
        }
        StreamTraffic::Copy => {
            for (from, to) in source.chunks(PIECE).zip(target.chunks_mut(PIECE)) {
                to[..from.len()].copy_from_slice(from);
                if !go(2 * from.len()) {
                    break;
                }
            }
        }
    }
    bytes
}

/// Eight sums side by side, so that additions do not wait for each other.
fn sum(words: &[u64]) -> u64 {
    let mut sums = [0u64; 8];
    for chunk in words.as_chunks::<8>().0 {
        for (s, w) in sums.iter_mut().zip(chunk) {
            *s = s.wrapping_add(*w);
        }
    }
    sums.iter().fold(0, |a, b| a.wrapping_add(*b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_programs_only_make_it_slower() {
        let noisy = vec![1671.0, 91.0, 888.0, 90.0, 95.0];
        let best = Best::least(noisy);
        assert_eq!(best.value, 90.0);
        assert_eq!(best.note(|| "latency".into()), None);
        let rates = Best::greatest(vec![3.0, 12.0, 11.5, 11.0, 5.0]);
        assert_eq!(rates.value, 12.0);
        assert_eq!(rates.note(|| "read".into()), None);
        // One quiet run alone may have been anything.
        let busy = Best::least(vec![888.0, 67.0, 1671.0, 1725.0]);
        let note = busy.note(|| "latency of node 0".into()).unwrap();
        assert!(note.starts_with("latency of node 0: ") && note.contains("apart"));
        assert_eq!(Best::least(Vec::new()).apart, 0.0);
    }

    #[test]
    fn every_pass_counts_the_bytes_it_moves() {
        let mut words = vec![1u64; 1 << 18];
        let running = AtomicBool::new(false);
        for traffic in StreamTraffic::ALL {
            assert_eq!(pass(&mut words, traffic, &running), 2 << 20);
        }
        assert_eq!(sum(&[1; 64]), 64);
    }
}
