//! Pointer chasing: each load's address is the result of the load before it.
//!
//! Stands for the latency kernels of lmbench (`lat_mem_rd`) and Intel's memory latency checker: the nodes of an array are
//! linked into one cycle in random order. The order is a computed permutation, not stored pointers, so the array may
//! have any size; thread t starts at the t-th equal part of the cycle.

use varve_access::Op;

use crate::entry::WorkloadEntry;
use crate::init::chunk;
use crate::layout::{Array, Layout};
use crate::limit::{Limit, TIME};
use crate::steady::{Steady, SteadyKernel};
use varve_access::random::Permutation;
use varve_spec::{Error, Param, Values, Want};

/// Instructions per step: the load, and a share of the unrolled loop's counter.
const INSTRUCTIONS: u32 = 2;

/// The workload of this module.
pub const ENTRY: WorkloadEntry = WorkloadEntry {
    name: "chase",
    about: "pointer chasing round one random cycle: idle latency",
    params: &[
        Param::scaled("bytes", Want::Bytes, "16GiB", "size of the array"),
        Param::new(
            "node",
            Want::Bytes,
            "64",
            "bytes per node; its first 8 are the pointer",
        ),
        Param::new(
            "steps",
            Want::COUNT,
            "1M",
            "steps per thread; 0: no such limit",
        ),
        TIME,
    ],
    build: |values| Ok(Box::new(Chase::new(values)?)),
};

/// The running kernel.
pub struct Chase {
    nodes: Array,
    cycle: Permutation,
    /// Place of each thread in the cycle.
    at: Vec<u64>,
}

impl Chase {
    /// Reads the parameters of [`ENTRY`].
    ///
    /// # Errors
    /// An array without nodes, nodes without room for a pointer, or no limit.
    pub fn new(values: &Values) -> Result<Steady<Chase>, Error> {
        let threads = values.count("threads") as usize;
        let node = values.count_in("node", 8, 1 << 30)?;
        let bytes = values.count_in("bytes", node * threads as u64, 1 << 46)?;
        let mut layout = Layout::new();
        let nodes = layout.array("nodes", bytes / node, node);
        let chase = Chase {
            nodes,
            cycle: Permutation::new(nodes.len, values.count("seed")),
            at: (0..threads)
                .map(|thread| chunk(nodes.len, thread, threads).0)
                .collect(),
        };
        Steady::new(values, layout, &[nodes], chase)
    }
}

impl SteadyKernel for Chase {
    const NAME: &'static str = ENTRY.name;
    const STEPS: &'static str = "steps";

    fn advance(&mut self, thread: usize, _: u64, count: u64, out: &mut Vec<Op>) {
        let mut at = self.at[thread];
        for _ in 0..count {
            let node = self.nodes.at(self.cycle.at(at));
            out.push(Op::read(node, 8, INSTRUCTIONS).after_load());
            at = if at + 1 == self.nodes.len { 0 } else { at + 1 };
        }
        self.at[thread] = at;
    }

    fn answers(&self, _: &Limit) -> Vec<(String, String)> {
        let node = |&at: &u64| self.cycle.at(at).to_string();
        let nodes: Vec<String> = self.at.iter().map(node).collect();
        vec![("next nodes".into(), nodes.join(" "))]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::{self, CallOrder};
    use varve_access::{Kind, Program};

    fn make(text: &str) -> Steady<Chase> {
        Chase::new(&ENTRY.values(text).unwrap()).unwrap()
    }

    #[test]
    fn one_round_visits_every_node_once_and_ends_where_it_began() {
        let mut chase = make("bytes=64000,threads=1,steps=1000");
        let start = chase.answers();
        let mut nodes = Vec::new();
        harness::each(&mut chase, CallOrder::RoundRobin, |_, op| {
            if op.kind == Kind::Read {
                assert_eq!(op.dependent, 1);
                nodes.push(op.addr);
            }
        });
        let in_a_row = nodes
            .windows(2)
            .filter(|pair| pair[1] == pair[0] + 64)
            .count();
        assert!(
            in_a_row < 10,
            "{in_a_row} steps go to the next node: no random order"
        );
        nodes.sort_unstable();
        nodes.dedup();
        assert_eq!(nodes.len(), 1000);
        assert_eq!(chase.answers(), start);
    }

    #[test]
    fn order_does_not_matter() {
        harness::assert_order_does_not_matter(
            || Box::new(make("bytes=1MiB,threads=5,steps=777,node=256")),
            1 << 20,
        );
    }
}
