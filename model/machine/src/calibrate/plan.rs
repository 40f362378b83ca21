//! Which points are measured, as data: so that a live machine can be measured at the same ones.

/// How much is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// A few points of every curve; a few seconds.
    Quick,
    /// Every point; within a minute.
    Full,
}

/// How much memory the threads of a bandwidth curve run over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// Bytes for each thread.
    Each(u64),
    /// Bytes for all threads of a measurement together.
    Together(u64),
}

impl Room {
    /// Bytes for each of `threads` threads: a multiple of 2 MiB, and never none.
    pub fn of(self, threads: usize) -> u64 {
        const UNIT: u64 = 2 << 20;
        match self {
            Room::Each(bytes) => bytes,
            Room::Together(bytes) => bytes / threads.max(1) as u64,
        }
        .max(UNIT)
            / UNIT
            * UNIT
    }
}

/// The points of the curves, and the conditions that they are measured under.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Bytes that a chase runs over; none: no such curve.
    pub footprints: Vec<u64>,
    /// Bytes of the region of the chases of an idle machine.
    pub idle_bytes: u64,
    /// Threads of bandwidth by threads. Numbers above the machine's cores are skipped.
    pub threads: Vec<usize>,
    /// Block sizes of bandwidth by access size, bytes: multiples of 64.
    pub sizes: Vec<u64>,
    /// Shares of reads, %.
    pub shares: Vec<u8>,
    /// Every how many-th of the paces of loaded latency is taken.
    pub pace_step: usize,
    /// Memory of bandwidth curves.
    pub room: Room,
    /// Threads of bandwidth by access size; `None`: the number that a study found best.
    pub size_threads: Option<usize>,
    /// Are the prefetchers on in every curve? Else only in loaded latencies, mixes and interference, as in the study of
    /// Yang et al.
    pub prefetch: bool,
}

impl Plan {
    /// As studies measured, so that their figures can stand beside ours.
    pub fn published(effort: Effort) -> Plan {
        let quick = effort == Effort::Quick;
        let pick = |few: &[u64], all: Vec<u64>| if quick { few.to_vec() } else { all };
        Plan {
            footprints: Vec::new(),
            idle_bytes: 1 << 30,
            threads: if quick {
                vec![1, 2, 4, 8, 12, 16, 20, 24, 32, 48, 64]
            } else {
                (1..=24).chain((28..=128).step_by(4)).collect()
            },
            sizes: pick(
                &[64, 256, 1 << 10, 4 << 10, 16 << 10, 1 << 20],
                (6..=21).map(|shift| 1 << shift).collect(),
            ),
            shares: if quick {
                vec![0, 25, 50, 60, 75, 90, 100]
            } else {
                vec![0, 10, 20, 25, 30, 40, 50, 60, 67, 70, 75, 80, 90, 100]
            },
            pace_step: if quick { 2 } else { 1 },
            room: Room::Each(64 << 20),
            size_threads: None,
            prefetch: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_whole_pages_and_never_none() {
        assert_eq!(Room::Each(64 << 20).of(7), 64 << 20);
        assert_eq!(Room::Together(100 << 20).of(3), 32 << 20);
        assert_eq!(Room::Together(1).of(8), 2 << 20);
    }
}
