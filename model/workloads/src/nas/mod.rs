//! Kernels in the manner of the NAS parallel benchmarks: the same loops over the same arrays, written from the
//! reports (Bailey et al., "The NAS parallel benchmarks", RNR-94-007, 1994; "The NAS parallel benchmarks 2.0",
//! NAS-95-020, 1995).
//!
//! CG, EP, FT, IS and MG do the computations of the benchmark and give its verification values.
//!
//! Every kernel runs with real data or without (`data=addresses`): it then makes the same accesses, for sizes that
//! do not fit the host. Runs of consecutive elements are handed to the model one cache line at a time.

use varve_access::Program;

use crate::entry::WorkloadEntry;
use varve_spec::{Error, Values};

pub mod cg;
pub mod cg_matrix;
pub mod ep;
pub mod fft;
pub mod ft;
pub mod is;
pub mod lcg;
pub mod mg;
pub mod mg_data;
pub mod mg_grid;
pub mod setup;

#[cfg(test)]
pub(crate) mod dense;
#[cfg(test)]
mod is_tests;

use setup::{NasSetup, PARAMS};

macro_rules! entry {
    ($name:literal, $about:literal, $module:ident) => {
        WorkloadEntry {
            name: $name,
            about: $about,
            params: PARAMS,
            build: |values: &Values| -> Result<Box<dyn Program>, Error> {
                Ok(Box::new($module::program(&NasSetup::new(values)?)?))
            },
        }
    };
}

/// The workloads of this module.
pub const ENTRIES: &[WorkloadEntry] = &[
    entry!(
        "cg",
        "NAS CG: smallest eigenvalue of a sparse matrix by conjugate gradients",
        cg
    ),
    entry!("ep", "NAS EP: pairs of normal deviates", ep),
    entry!(
        "ft",
        "NAS FT: three-dimensional fast Fourier transforms",
        ft
    ),
    entry!("is", "NAS IS: ranks of integer keys by buckets", is),
    entry!(
        "mg",
        "NAS MG: multigrid V-cycles with 27-point stencils",
        mg
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kernel_can_be_built_by_name_and_refuses_what_is_out_of_range() {
        let names: Vec<&str> = ENTRIES.iter().map(|entry| entry.name).collect();
        assert_eq!(names, ["cg", "ep", "ft", "is", "mg"]);
        for name in names {
            let program = crate::build(&format!("{name}:class=S,threads=3")).unwrap();
            assert_eq!((program.name(), program.threads()), (name.to_string(), 3));
            assert!(crate::build(&format!("{name}:class=S,seed=7")).is_ok());
            let error = crate::build(&format!("{name}:class=S,scale=1000000")).err();
            let error = error.map(|error| error.to_string()).unwrap_or_default();
            assert!(
                matches!(name, "ft" | "mg") || error.contains("size="),
                "{name}: {error}"
            );
        }
    }
}
