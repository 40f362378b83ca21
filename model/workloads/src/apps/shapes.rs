//! Memory accesses of each program.
//!
//! Of NPB/LU the arrays that are written, and the instructions of a step, follow from the bandwidths that Wang et al. prints
//! of one thread in DRAM (marked *demand of Wang et al.*). All else is a guess from the programs' known behaviour, marked
//! as such; no time, ratio or saving that the paper measured went into it.

/// Accesses at random lines of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Random {
    /// None.
    No,
    /// Loads, each of which waits for the one before: pointers are followed.
    Chase,
    /// Loads and stores of the same line, independent of each other: a scatter.
    Update,
}

/// One program's pattern. A step takes the next line (64 B) of every array.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Name of the workload.
    pub name: &'static str,
    /// One line of help.
    pub about: &'static str,
    /// Arrays that are read.
    pub reads: u32,
    /// Arrays that are read and written: their lines are fetched first, as write-allocating caches do.
    pub writes: u32,
    /// Instructions of a step, with those of its accesses.
    pub instructions: u32,
    /// Bytes of all arrays together that a thread goes over `reuse` times before it goes on; 0: all of its part once.
    pub block: u64,
    /// See `block`.
    pub reuse: u32,
    /// Accesses to the table.
    pub random: Random,
    /// Accesses to the table per step.
    pub per_step: u32,
    /// Share of the memory that the table takes, in percent.
    pub table_percent: u32,
}

/// Nothing but computing; the start of every shape.
const NONE: Shape = Shape {
    name: "",
    about: "",
    reads: 0,
    writes: 0,
    instructions: 1,
    block: 0,
    reuse: 1,
    random: Random::No,
    per_step: 0,
    table_percent: 0,
};

/// Guess: distances of all points to a few centres; long sequential reads, hardly a store, few instructions a line
/// (16 floats: subtract, multiply, add in vectors, and the loop).
pub const STREAMCLUSTER: Shape = Shape {
    name: "streamcluster",
    about: "streams through points, reading (PARSEC streamcluster, as a pattern)",
    reads: 8,
    writes: 0,
    instructions: 400,
    ..NONE
};

/// Guess: particles in cells, forces between neighbours: a hundred instructions a line and visit, a third of the lines
/// written, each cell visited three times while it is in the caches.
pub const FLUIDANIMATE: Shape = Shape {
    name: "fluidanimate",
    about: "cells of particles and their neighbours (PARSEC fluidanimate, as a pattern)",
    reads: 4,
    writes: 2,
    instructions: 700,
    block: 512 << 10,
    reuse: 3,
    ..NONE
};

/// Guess: Monte-Carlo paths of a few hundred KB for each thread; nearly all in the first two caches.
pub const SWAPTIONS: Shape = Shape {
    name: "swaptions",
    about: "computes on a little memory of its own (PARSEC swaptions, as a pattern)",
    reads: 2,
    writes: 2,
    instructions: 3000,
    block: 512 << 10,
    reuse: 256,
    ..NONE
};

/// Guess: an element and its neighbours are picked at random, by pointers, and two are swapped now and then.
pub const CANNEAL: Shape = Shape {
    name: "canneal",
    about: "follows pointers to random elements (PARSEC canneal, as a pattern)",
    instructions: 400,
    random: Random::Chase,
    per_step: 6,
    table_percent: 100,
    ..NONE
};

/// Guess: keys are read in order and written to 1024 buckets, line after line somewhere else.
pub const RADIX: Shape = Shape {
    name: "radix",
    about: "reads keys in order and scatters them (SPLASH-2x radix, as a pattern)",
    reads: 1,
    writes: 0,
    instructions: 120,
    random: Random::Update,
    per_step: 1,
    table_percent: 50,
    ..NONE
};

/// Guess: passes of a three-dimensional transform over complex arrays, as much written as read. Size: three
/// arrays of 512 x 512 x 512 complex doubles are 6 GiB (class C).
pub const NPB_FT: Shape = Shape {
    name: "npb_ft",
    about: "passes of a Fourier transform over large arrays (NPB FT, as a pattern; `ft` is the real kernel)",
    reads: 1,
    writes: 2,
    instructions: 330,
    ..NONE
};

/// Guess: a stencil over nested grids: two arrays read, one written. Size: class C, 512 x 512 x 512 doubles and a half
/// again, three times.
pub const NPB_MG: Shape = Shape {
    name: "npb_mg",
    about: "stencils over nested grids (NPB MG, as a pattern; `mg` is the real kernel)",
    reads: 3,
    writes: 1,
    instructions: 150,
    ..NONE
};

/// Guess: line solves in three directions over many arrays, a third of them written.
pub const NPB_SP: Shape = Shape {
    name: "npb_sp",
    about: "line solves over many arrays (NPB SP, as a pattern)",
    reads: 6,
    writes: 3,
    instructions: 500,
    ..NONE
};

/// Demand of Wang et al., section IV-A: one thread reads 2.3 GB/s and writes 1 GB/s.
pub const NPB_LU: Shape = Shape {
    name: "npb_lu",
    about: "sweeps over arrays, many of them written (NPB LU, as a pattern)",
    reads: 4,
    writes: 3,
    instructions: 800,
    ..NONE
};
