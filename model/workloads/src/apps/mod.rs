//! Programs of PARSEC, SPLASH-2x and the NAS benchmarks as access patterns: their memory accesses, not their
//! computations. [`crate::splash`] has some of these suites' programs as kernels.
//!
//! For groups of programs that share a machine (`varve jobs`) these matter: how much a program reads and writes, in
//! which order, how often again, and the instructions in between. A [`Shape`] has them in a few numbers, and one loop
//! carries it out. The same total work is shared by however many threads there are. Where real kernels are wanted, the
//! module [`crate::nas`] has four of them.
//!
//! `shapes.rs` has the numbers, each with its source or the reasoning behind the guess.

mod kernel;
mod shapes;

use crate::entry::WorkloadEntry;
use crate::registry;
use varve_access::Program;
use varve_spec::{Error, Param, Values, Want};

pub use kernel::App;
pub use shapes::{Random, Shape};

/// Declares the entry of one shape.
macro_rules! entry {
    ($shape:expr, $bytes:literal, $passes:literal) => {
        WorkloadEntry {
            name: $shape.name,
            about: $shape.about,
            params: &[
                Param::scaled("bytes", Want::Bytes, $bytes, "memory that it uses"),
                Param::new(
                    "passes",
                    Want::COUNT,
                    $passes,
                    "times that it goes over its memory",
                ),
                THREADS,
            ],
            build: |values| make(&$shape, values),
        }
    };
}

/// Fewer than other workloads have.
const THREADS: Param = Param {
    default: "8",
    ..registry::THREADS
};

/// The workloads of this module. Sizes are those of the suites' own large inputs where they can be worked out
/// (`shapes.rs`); passes are chosen so that each takes some seconds with eight threads in DRAM.
pub const ENTRIES: &[WorkloadEntry] = &[
    entry!(shapes::STREAMCLUSTER, "1GiB", "130"),
    entry!(shapes::FLUIDANIMATE, "1GiB", "24"),
    entry!(shapes::SWAPTIONS, "64MiB", "1"),
    entry!(shapes::CANNEAL, "1GiB", "24"),
    entry!(shapes::RADIX, "2GiB", "45"),
    entry!(shapes::NPB_FT, "5GiB", "18"),
    entry!(shapes::NPB_MG, "3GiB", "50"),
    entry!(shapes::NPB_SP, "1GiB", "90"),
    entry!(shapes::NPB_LU, "1GiB", "50"),
];

fn make(shape: &'static Shape, values: &Values) -> Result<Box<dyn Program>, Error> {
    Ok(Box::new(App::new(shape, values)?))
}

#[cfg(test)]
mod tests;
