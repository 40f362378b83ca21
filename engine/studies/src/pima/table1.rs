//! The values of the paper's table 1 for its programs, on 32 cores with all memory in DRAM. Rates are inputs (`pace.rs`); survivors are reported
//! beside ours.

use std::fmt;

/// A line of the table.
pub struct Line {
    /// As the paper calls the program.
    pub name: &'static str,
    /// All instances together, GB/s.
    pub allocated: f64,
    /// Of what is allocated, what survives the nursery, %.
    pub survival: f64,
}

const fn line(name: &'static str, allocated: f64, survival: f64) -> Line {
    Line {
        name,
        allocated,
        survival,
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Line {
            name,
            allocated,
            survival,
        } = self;
        write!(f, "{name}: {allocated} GB/s, {survival} %")
    }
}

const LINES: [Line; 17] = [
    line("Eclipse", 0.37, 14.0),
    line("Avrora", 0.11, 15.0),
    line("Fop", 0.40, 20.0),
    line("Luindex", 0.08, 22.0),
    line("Antlr", 0.33, 15.0),
    line("Hsqldb", 1.13, 60.0),
    line("ALS", 2.34, 63.0),
    line("Sunflow", 3.96, 2.0),
    line("Pmd", 2.84, 23.0),
    line("Pjbb", 2.89, 20.0),
    line("CC", 3.71, 24.0),
    line("Pmd.Scale", 3.55, 27.0),
    line("Lu.Fix", 5.57, 2.0),
    line("Bloat", 7.23, 4.0),
    line("Xalan", 4.50, 14.0),
    line("PR", 5.42, 36.0),
    line("Lusearch", 13.97, 4.0),
];

/// The line of a program.
pub fn of(name: &str) -> Option<&'static Line> {
    LINES.iter().find(|l| l.name == name)
}
