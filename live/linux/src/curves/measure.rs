//! The curves of a plan, one after the other.

use super::pattern::{BlockOrder, How, Pattern, Rate, together};
use super::{LiveCurve, LivePoint, MeasuredNode, Plan};
use crate::probe::memory::{LINE, Memory, STEP, link_in_order, link_randomly};

/// A region that the first-level cache holds, bytes.
const SMALL: usize = 16 << 10;
/// Block of bandwidth by threads and by mix, words: 256 B.
const BLOCK: usize = 4 * STEP;

/// Patterns that are measured by threads and by size, and their names in ids.
const HOWS: [(How, &str); 3] = [
    (How::Read, "read"),
    (How::NtStore, "ntstore"),
    (How::StoreClwb, "clwb"),
];

/// Measures every curve of `plan`. `watch` gets each curve before it is measured and cancels everything by
/// returning `false`; the curves so far are returned. Impossible measurements are added to the notes.
pub fn measure(
    plan: &Plan,
    notes: &mut Vec<String>,
    watch: &mut dyn FnMut(&str) -> bool,
) -> Vec<LiveCurve> {
    let mut out = Vec::new();
    for place in &plan.places {
        let several = plan.places.len() > 1;
        let Some(mut memory) = Memory::on_node(plan.bytes as usize, place.node, several) else {
            notes.push(format!("node {}: its memory cannot be bound", place.node));
            continue;
        };
        let mut bench = Bench {
            plan,
            place,
            words: memory.words(),
        };
        for (id, curve) in curves(plan, place) {
            if !watch(&id) {
                return joined(out);
            }
            out.push(bench.curve(id, curve));
        }
    }
    joined(out)
}

impl Plan {
    /// Ids of the curves of all memories, as often as they are measured.
    pub fn ids(&self) -> Vec<String> {
        let of = |place| curves(self, place).into_iter().map(|c| c.0);
        self.places.iter().flat_map(of).collect()
    }

    fn can(&self, how: How) -> bool {
        match how {
            How::Read | How::Chase => true,
            How::NtStore | How::Mix(_) => self.streams,
            How::StoreClwb => self.write_backs,
        }
    }
}

/// The quantity of a curve.
#[derive(Clone, Copy)]
enum Shows {
    Idle,
    Chase(BlockOrder),
    Threads(How),
    Sizes(How),
    Mix,
    Loaded,
}

/// The curves of one memory with their ids.
fn curves(plan: &Plan, place: &MeasuredNode) -> Vec<(String, Shows)> {
    let id = place.id;
    let mut all = vec![
        ("idle-latency".to_string(), Shows::Idle),
        (
            format!("chase/{id}/random"),
            Shows::Chase(BlockOrder::Random),
        ),
        (
            format!("chase/{id}/sequential"),
            Shows::Chase(BlockOrder::Sequential),
        ),
    ];
    // As on the model, bandwidths of remote memory are left to its loaded latency.
    if id != "remote-dram" {
        let hows = || HOWS.iter().filter(|h| plan.can(h.0));
        all.extend(
            hows().map(|(how, name)| (format!("threads/{id}/{name}"), Shows::Threads(*how))),
        );
        all.extend(hows().map(|(how, name)| (format!("size/{id}/{name}"), Shows::Sizes(*how))));
        if plan.streams {
            all.push((format!("mix/{id}"), Shows::Mix));
        }
    }
    if place.cpus.len() > 1 {
        all.push((format!("loaded/{id}"), Shows::Loaded));
    }
    all
}

/// One curve of idle latencies over all memories, as on the model.
fn joined(curves: Vec<LiveCurve>) -> Vec<LiveCurve> {
    let mut out: Vec<LiveCurve> = Vec::new();
    for curve in curves {
        match out.iter_mut().find(|c| c.id == curve.id) {
            Some(first) => {
                for mut point in curve.points {
                    point.x = first.points.len() as f64;
                    first.points.push(point);
                }
            }
            None => out.push(curve),
        }
    }
    out
}

/// Memory of one place.
struct Bench<'a> {
    plan: &'a Plan,
    place: &'a MeasuredNode,
    words: &'a mut [u64],
}

impl Bench<'_> {
    fn curve(&mut self, id: String, shows: Shows) -> LiveCurve {
        let plan = self.plan;
        let all = self.place.cpus.len();
        let (axis, unit, points) = match shows {
            Shows::Idle => ("access", "ns", self.idle()),
            Shows::Chase(order) => {
                let bytes = plan.footprints.iter();
                let points = bytes.map(|&b| point(b as f64, self.chase(order, b as usize)));
                ("footprint, B", "ns", points.collect())
            }
            Shows::Threads(how) => {
                let counts = plan.threads.iter();
                let gbps = |&n| {
                    point(
                        n as f64,
                        self.bandwidth(how, BlockOrder::Sequential, n, BLOCK),
                    )
                };
                ("threads", "GB/s", counts.map(gbps).collect())
            }
            Shows::Sizes(how) => {
                let sizes = plan.sizes.iter();
                let gbps = |&s: &u64| {
                    let runs = self.bandwidth(how, BlockOrder::Random, all, s as usize / 8);
                    point(s as f64, runs)
                };
                ("access size, B", "GB/s", sizes.map(gbps).collect())
            }
            Shows::Mix => {
                let shares = plan.shares.iter();
                let gbps = |&s: &u8| {
                    let runs = self.bandwidth(How::Mix(s), BlockOrder::Sequential, all, BLOCK);
                    point(f64::from(s), runs)
                };
                ("reads, %", "GB/s", shares.map(gbps).collect())
            }
            Shows::Loaded => ("bandwidth, GB/s", "ns", self.loaded()),
        };
        LiveCurve {
            id,
            axis: axis.into(),
            unit: unit.into(),
            points,
        }
    }

    /// The runs of one point: each thread in a part of its own of the first `words` words.
    fn runs(&mut self, pattern: Pattern, threads: usize, words: usize) -> Vec<Vec<Rate>> {
        let part = words / threads / STEP * STEP;
        let (time, cpus) = (self.plan.time, &self.place.cpus);
        let one = |_| {
            let parts = self.words[..part * threads].chunks_exact_mut(part);
            let jobs = parts.zip(cpus).map(|(part, &cpu)| (pattern, part, cpu));
            together(jobs.collect(), time)
        };
        (0..self.plan.runs).map(one).collect()
    }

    fn bandwidth(&mut self, how: How, order: BlockOrder, threads: usize, block: usize) -> Vec<f64> {
        let pattern = Pattern {
            how,
            order,
            block,
            pace: 0,
        };
        let runs = self.runs(pattern, threads, self.words.len());
        let sum = |run: &Vec<Rate>| run.iter().map(|r| r.gb_per_s()).sum();
        runs.iter().map(sum).collect()
    }

    fn latency(&mut self, how: How, words: usize) -> Vec<f64> {
        let pattern = Pattern {
            how,
            order: BlockOrder::Sequential,
            block: STEP,
            pace: 0,
        };
        let runs = self.runs(pattern, 1, words);
        runs.iter().map(|run| run[0].ns_per_line()).collect()
    }

    fn chase(&mut self, order: BlockOrder, bytes: usize) -> Vec<f64> {
        match order {
            BlockOrder::Sequential => link_in_order(self.words, bytes / LINE),
            BlockOrder::Random => link_randomly(self.words, bytes / LINE),
        }
        self.latency(How::Chase, bytes / 8)
    }

    /// Loads that wait for one another over all the memory, and stores one at a time.
    fn idle(&mut self) -> Vec<LivePoint> {
        let bytes = self.words.len() * 8;
        let mut found = vec![
            (
                "read, sequential",
                self.chase(BlockOrder::Sequential, bytes),
            ),
            ("read, random", self.chase(BlockOrder::Random, bytes)),
        ];
        if self.plan.can(How::NtStore) {
            found.push(("write (ntstore)", self.latency(How::NtStore, bytes / 8)));
        }
        if self.plan.can(How::StoreClwb) {
            found.push(("write (clwb)", self.latency(How::StoreClwb, SMALL / 8)));
        }
        let named = |(i, (name, runs)): (usize, (&str, Vec<f64>))| LivePoint {
            at: format!("{} {name}", self.place.words),
            ..point(i as f64, runs)
        };
        found.into_iter().enumerate().map(named).collect()
    }

    /// One thread chases through half of the memory while all others read the rest, more and more often.
    fn loaded(&mut self) -> Vec<LivePoint> {
        let (plan, cpus) = (self.plan, &self.place.cpus);
        let half = self.words.len() / 2 / STEP * STEP;
        link_randomly(self.words, half / STEP);
        let mut out: Vec<LivePoint> = Vec::new();
        for &pace in &plan.paces {
            let chase = Pattern {
                how: How::Chase,
                order: BlockOrder::Random,
                block: STEP,
                pace: 0,
            };
            let load = Pattern {
                how: How::Read,
                order: BlockOrder::Sequential,
                block: BLOCK,
                pace,
            };
            let one = |_| {
                let (chased, read) = self.words.split_at_mut(half);
                let part = read.len() / (cpus.len() - 1) / STEP * STEP;
                let mut jobs = vec![(chase, chased, cpus[0])];
                let readers = read.chunks_exact_mut(part).zip(&cpus[1..]);
                jobs.extend(readers.map(|(part, &cpu)| (load, part, cpu)));
                together(jobs, plan.time)
            };
            let runs: Vec<Vec<Rate>> = (0..plan.runs).map(one).collect();
            let gbps = |run: &Vec<Rate>| run.iter().map(|r| r.gb_per_s()).sum();
            let x = median(runs.iter().map(gbps).collect());
            let ns = runs.iter().map(|run| run[0].ns_per_line()).collect();
            // Past saturation more pressure gives no more bandwidth: the curve ends where it turns back.
            if out.last().is_none_or(|p| x > p.x) {
                let at = format!("{x:.1}");
                out.push(LivePoint { at, ..point(x, ns) });
            }
        }
        out
    }
}

fn point(x: f64, runs: Vec<f64>) -> LivePoint {
    LivePoint {
        x,
        at: format!("{x}"),
        least: runs.iter().copied().fold(f64::INFINITY, f64::min),
        most: runs.iter().copied().fold(0.0, f64::max),
        median: median(runs),
    }
}

fn median(mut runs: Vec<f64>) -> f64 {
    runs.sort_unstable_by(f64::total_cmp);
    runs.get(runs.len() / 2).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_is_the_median_with_its_spread() {
        let p = point(4.0, vec![12.0, 10.0, 11.0]);
        assert_eq!(
            (p.at.as_str(), p.median, p.least, p.most),
            ("4", 11.0, 10.0, 12.0)
        );
        assert_eq!(p.spread_percent().round(), 18.0);
    }

    #[test]
    fn idle_latencies_of_all_memories_are_one_curve() {
        let curve = |id: &str, at: &str| LiveCurve {
            id: id.into(),
            axis: "access".into(),
            unit: "ns".into(),
            points: vec![LivePoint {
                at: at.into(),
                ..point(0.0, vec![1.0])
            }],
        };
        let all = joined(vec![
            curve("idle-latency", "DRAM read"),
            curve("mix/dram", "0"),
            curve("idle-latency", "CXL read"),
        ]);
        assert_eq!(all.len(), 2);
        let at: Vec<_> = all[0].points.iter().map(|p| (p.x, p.at.as_str())).collect();
        assert_eq!(at, [(0.0, "DRAM read"), (1.0, "CXL read")]);
    }
}
