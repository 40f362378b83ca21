//! Sweeps: many runs of `varve run` that differ in some options, each kept in a file of its own.
//!
//! ```text
//! spec.rs        the file: which options, with which values
//! point.rs       one run: its command line, and what its result is kept by
//! standing.rs    which results are there
//! share.rs       one of several shares
//! child.rs       a run as a process of its own
//! work.rs        all runs that are missing
//! merged.rs      rows of all results; medians over seeds
//! picture.rs     a chart of them
//! emit.rs        scripts that share work out
//! slurm.rs       what Slurm is asked
//! submission.rs  what was submitted to it
//! progress.rs    points by what is known of them: done, running, failed
//! ```
//!
//! A point is a command line and nothing else, so whatever `varve run` can do on a model can be swept, and each point can be
//! repeated by hand.

pub mod child;
pub mod emit;
pub mod merged;
pub mod picture;
pub mod point;
pub mod progress;
pub mod share;
pub mod slurm;
pub mod spec;
pub mod standing;
pub mod submission;
pub mod work;
