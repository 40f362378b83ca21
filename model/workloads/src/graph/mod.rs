//! Graph kernels on Kronecker graphs, in the manner of the GAP benchmark suite (Beamer, Asanović, Patterson,
//! arXiv:1508.03619) and of Graph500.

use std::sync::Arc;

use varve_access::Program;

use crate::entry::WorkloadEntry;
use crate::loops::{Loops, Share};
use varve_spec::{Error, Param, Values, Want};

pub mod bc;
pub mod bfs;
pub mod build;
pub mod csr;
pub mod levels;
pub mod pagerank;
pub mod search;

#[cfg(test)]
mod bfs_tests;
#[cfg(test)]
mod tests;

use csr::{Csr, Kronecker};

/// Parameters that every graph kernel takes.
const fn graph_params() -> [Param; 5] {
    [
        Param::scaled(
            "vertices",
            Want::COUNT,
            "1048576",
            "vertices of the Kronecker graph, rounded down to a power of two (2^27 is 134217728)",
        ),
        Param::new("degree", Want::COUNT, "16", "edges generated per vertex"),
        Param::new(
            "id",
            Want::Word(&["4", "8"]),
            "4",
            "bytes per vertex name in the modelled arrays",
        ),
        Param::new(
            "iterations",
            Want::COUNT,
            "4",
            "iterations: start vertices, or sweeps over the graph",
        ),
        Param::new(
            "schedule",
            Want::Word(&["static", "dynamic"]),
            "dynamic",
            "how a loop over vertices is shared among threads: equal parts, or 64 at a time to the next free thread",
        ),
    ]
}

const PARAMS: &[Param] = &graph_params();

/// Graph500's reference names vertices by 8 bytes.
const BFS_PARAMS: &[Param] = &{
    let mut params = graph_params();
    params[2].default = "8";
    params
};

/// The workloads of this module.
pub const ENTRIES: &[WorkloadEntry] = &[
    WorkloadEntry {
        name: "bc",
        about: "betweenness centrality of a Kronecker graph, as in the GAP suite",
        params: PARAMS,
        build: build_bc,
    },
    WorkloadEntry {
        name: "bfs",
        about: "breadth-first search of a Kronecker graph, as in Graph500",
        params: BFS_PARAMS,
        build: build_bfs,
    },
    WorkloadEntry {
        name: "pagerank",
        about: "PageRank of a Kronecker graph by pulling, as in the GAP suite",
        params: PARAMS,
        build: build_pagerank,
    },
];

/// Host memory of a kernel in bytes per vertex, besides edges: row pointers and the kernel's own arrays.
const HOST_BYTES_PER_VERTEX: u64 = 48;
/// Host memory per generated edge while the graph is built: both directions as pairs, and as names in their rows.
const HOST_BYTES_PER_EDGE: u64 = 24;
/// Largest host footprint that is accepted.
const HOST_BYTES: u64 = 8 << 30;

struct Common {
    graph: Arc<Csr>,
    generated: u64,
    id: u64,
    iterations: usize,
    share: Share,
    touch: u64,
    threads: usize,
}

fn common(values: &Values) -> Result<Common, Error> {
    let degree = values.count_in("degree", 1, 1 << 10)?;
    let per_vertex = HOST_BYTES_PER_EDGE * degree + HOST_BYTES_PER_VERTEX;
    let vertices = values.count_in("vertices", 2, (HOST_BYTES / per_vertex).min(1 << 31))?;
    let seed = values.count("seed");
    let shape = Kronecker {
        scale: vertices.ilog2(),
        degree: degree as u32,
        seed,
    };
    Ok(Common {
        generated: shape.edges(),
        id: if values.word("id") == "8" { 8 } else { 4 },
        iterations: values.count_in("iterations", 1, 1 << 20)? as usize,
        share: match values.word("schedule") {
            "dynamic" => Share::Dynamic(64),
            _ => Share::Static,
        },
        touch: values.count_in("touch", 64, u64::MAX)?,
        threads: values.count("threads") as usize,
        graph: Arc::new(shape.build()),
    })
}

/// Parameters of kernels that search the graph from some vertices.
fn searched(values: &Values) -> Result<(Arc<Csr>, search::SearchSetting), Error> {
    let common = common(values)?;
    let setting = search::SearchSetting {
        sources: common
            .graph
            .sources(common.iterations, values.count("seed")),
        generated: common.generated,
        id: common.id,
        share: common.share,
        touch: common.touch,
        threads: common.threads,
    };
    Ok((common.graph, setting))
}

fn build_bc(values: &Values) -> Result<Box<dyn Program>, Error> {
    let (graph, setting) = searched(values)?;
    let threads = setting.threads;
    let kernel = bc::Betweenness::new(graph, setting);
    Ok(Box::new(Loops::new(kernel, None, threads)))
}

fn build_bfs(values: &Values) -> Result<Box<dyn Program>, Error> {
    let (graph, setting) = searched(values)?;
    let threads = setting.threads;
    let kernel = bfs::Search::new(graph, setting);
    Ok(Box::new(Loops::new(kernel, None, threads)))
}

fn build_pagerank(values: &Values) -> Result<Box<dyn Program>, Error> {
    let common = common(values)?;
    let setting = pagerank::PageRankSetting {
        iterations: common.iterations,
        generated: common.generated,
        id: common.id,
        share: common.share,
        touch: common.touch,
        threads: common.threads,
    };
    let kernel = pagerank::PageRank::new(common.graph, setting);
    Ok(Box::new(Loops::new(kernel, None, common.threads)))
}
