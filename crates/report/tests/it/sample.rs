//! Made-up results, for looking and for comparing only.

use varve_report::fmt::Format;
use varve_report::{Better, Claim, Column, RunTable, StudyResult, Value};

/// A study with every kind of value.
pub fn study() -> StudyResult {
    let mut s = StudyResult::new("made-up", "sample-machine", 7, "0.1.0");
    s.title = "A made-up study, to look at".into();
    s.command = "varve study made-up --seed 7".into();
    s.about = vec!["Nothing here was measured; every number is invented.".into()];
    s.claims = vec![
        Claim::new("M1", "throughput of one policy, hot pages clustered", 85.0, 82.4, "% of DRAM"),
        Claim::new("M2", "the spread of another policy between runs", Value::range(20.0, 80.0), 91.0, "% of DRAM")
            .with_note("Ten seeds; the published range is over an unknown number of runs, and ours leaves out the first of them."),
        Claim::new("M3", "bookkeeping for 128 GB and 1 TB", Value::AtMost { at_most: 50.0 }, 41.0, "MB"),
        Claim::new("M4", "the first policy beats the second", true, true, ""),
        Claim::new("M5", "the largest latency of a request", 4.0, 11.0, "ms"),
        Claim::new("M6", "what limits it", "queues", "queues", ""),
        Claim::new("M7", "a run too large to make here", 7.0, Value::Missing, "x"),
    ];
    s
}

/// A run comparison with every format.
pub fn runs() -> RunTable {
    use Better::*;
    let mut t = RunTable::new(
        "sort.trace on sample-machine, one row per page policy",
        "policy",
    );
    t.columns = vec![
        Column::new("time", Format::DurationNs, Lower),
        Column::new("slowdown", Format::Ratio, Lower),
        Column::new("rate", Format::PerSecond, Higher).with_unit("accesses"),
        Column::new("DRAM", Format::Percent, Lower),
        Column::new("moved", Format::Bytes, Lower),
        Column::new("read", Format::BytesPerSecond, Neither),
        Column::new("conflicts", Format::Integer, Lower).with_unit("pages"),
        Column::new("longest pause", Format::DurationNs, Lower),
        Column::new("energy", Format::Number, Lower).with_unit("J"),
        Column::new("steady", Format::Number, Neither),
    ];
    let row = |x: [f64; 9], steady: bool| x.map(Value::from).into_iter().chain([steady.into()]);
    t.push(
        "first-touch",
        row(
            [
                2.41e9, 1.87, 21.2e6, 61.0, 0.0, 9.1e9, 48_213.0, 9.2e5, 14.2,
            ],
            true,
        ),
    );
    t.push(
        "interleave",
        row(
            [2.9e9, 2.25, 17.6e6, 50.0, 0.0, 11.4e9, 0.0, 4.1e5, 17.0],
            true,
        ),
    );
    t.push(
        "static",
        row(
            [1.52e9, 1.18, 33.6e6, 61.0, 0.0, 4.4e9, 1_204.0, 4.4e5, 11.9],
            true,
        ),
    );
    t.push(
        "dynamic",
        row(
            [
                1.31e9,
                1.015,
                39.0e6,
                61.0,
                5.03e8,
                3.9e9,
                12.0,
                2.25e6,
                f64::NAN,
            ],
            false,
        ),
    );
    t.push(
        "hotset",
        row(
            [
                1.44e9, 1.12, 35.5e6, 48.0, 1.03e10, 4.2e9, 0.0, 4.18e6, 12.1,
            ],
            false,
        ),
    );
    t.trade_off = Some((1, 3));
    t.notes = vec!["Made-up advice: keep `dynamic`; it is 1.8 times as fast as `first-touch` and moves half a gibibyte once.".into()];
    t
}
