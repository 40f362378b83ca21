//! Made-up results, only to be viewed and compared: nothing here was measured.

use varve_report::fmt::Format;
use varve_report::{
    Axis, Bars, Better, Chart, Claim, Column, Data, GanttSpan, HeatRow, Origin, Row, RunReport,
    RunTable, Scale, Series, StudyResult, Value,
};

/// A study with every kind of value, every kind of chart and a comparison.
pub fn study() -> StudyResult {
    let mut s = StudyResult::new("made-up", "sample-machine", 7, "0.1.0");
    s.title = "A made-up study, to look at".into();
    s.command = "varve study made-up --seed 7".into();
    s.about = vec!["Nothing here was measured; every number is invented to show the page.".into()];
    let ten_seeds = "Ten seeds; the published range is over an unknown number of runs, and ours leaves out the first of them.";
    s.claims = vec![
        Claim::new(
            "M1",
            "throughput of one policy, hot pages clustered",
            85.0,
            82.4,
            "% of DRAM",
        ),
        Claim::new(
            "M2",
            "the spread of another policy between runs",
            Value::range(20.0, 80.0),
            91.0,
            "% of DRAM",
        )
        .with_note(ten_seeds),
        Claim::new(
            "M3",
            "bookkeeping for 128 GB and 1 TB",
            Value::AtMost { at_most: 50.0 },
            41.0,
            "MB",
        ),
        Claim::new("M4", "the first policy beats the second", true, true, ""),
        Claim::new("M5", "the largest latency of a request", 4.0, 11.0, "ms"),
        Claim::new("M6", "what limits it", "queues", "queues", ""),
        Claim::new(
            "M7",
            "a run too large to make here",
            7.0,
            Value::Missing,
            "x",
        ),
    ];
    s.charts = charts();
    s.tables = vec![runs()];
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
    t.notes = vec![
        "Made-up advice: keep dynamic; it is 1.8 times as fast as first-touch and moves half a gibibyte once.".into(),
    ];
    t
}

/// The comparison with its origin and a chart.
pub fn report() -> RunReport {
    let origin = Origin {
        machine: "sample-machine".into(),
        seed: 7,
        version: "0.1.0".into(),
        command: "varve run --machine sample-machine --trace sort.trace --policy all --seed 7"
            .into(),
    };
    let run = |(i, row): (usize, &Row)| {
        serde_json::json!({
            "policy": row.name,
            "seconds": 1.5,
            "cache_hit_share": if i == 0 { None } else { Some(0.25) },
            "stalls": {"load": 0.5, "store": 0.0},
            "latencies": if i == 0 { vec![] } else { vec![serde_json::json!({"class": "read", "p99_ns": 7})] },
            "timeline": [{"at_s": 0.1, "accesses": 10.0}, {"at_s": 0.2, "accesses": 20.0}],
            "answers": [["sum", "42"]],
        })
    };
    let table = runs();
    RunReport {
        details: Vec::new(),
        origin,
        runs: table.rows.iter().enumerate().map(run).collect(),
        table,
        charts: charts().into_iter().take(1).collect(),
        pictures: Vec::new(),
    }
}

fn strings<const N: usize>(words: [&str; N]) -> Vec<String> {
    words.map(String::from).to_vec()
}

/// One chart of each kind.
pub fn charts() -> Vec<Chart> {
    vec![
        over_time(),
        latency(),
        grouped(),
        stacked(),
        heat(),
        gantt(),
        trade_off(),
    ]
}

fn over_time() -> Chart {
    let time: Vec<f64> = (0..=240).map(|i| f64::from(i) * 0.25e9).collect();
    let rising = |top: f64, tau: f64, wave: f64| -> Vec<f64> {
        let noise = |i: usize| ((i * 7919 + 104_729) % 97) as f64 / 97.0 - 0.5;
        let at = |(i, t): (usize, &f64)| top * (1.0 - (-t / tau).exp() * 0.7) + wave * noise(i);
        time.iter().enumerate().map(at).collect()
    };
    let mut broken = rising(58.0, 3e9, 4.0);
    broken[100..120].fill(f64::NAN);
    let series = vec![
        Series::new("static", time.clone(), rising(85.0, 2e9, 1.5)),
        Series::new("dynamic", time.clone(), rising(99.0, 4e9, 2.0)),
        Series::new("hotset", time.clone(), rising(97.0, 20e9, 2.5)),
        Series::new("random", time.clone(), broken),
        Series::new("dynamic", vec![2e9, 60e9], vec![92.0, 97.5]).published(),
    ];
    let x = Axis::new("time", "", Format::DurationNs);
    let y = Axis::new("throughput", "% of all-hot-in-DRAM", Format::Number).between(0.0, None);
    Chart::new(
        "over-time",
        "Throughput over time, hot pages clustered",
        x,
        y,
        Data::Lines(series),
    )
    .with_level("all hot in DRAM", 100.0)
    .with_note("Made-up data. The gap in random is where nothing was sampled.")
}

fn latency() -> Chart {
    let sizes: Vec<f64> = (6..=34).map(|p| 2f64.powi(p)).collect();
    let step = |far: f64| -> Vec<f64> {
        let at = |s: &f64| match s.log2() as u32 {
            0..=15 => 1.4,
            16..=20 => 5.2,
            21..=24 => 20.0 + (s.log2() - 21.0),
            p => far * (1.0 - 0.5f64.powi(p as i32 - 23)),
        };
        sizes.iter().map(at).collect()
    };
    let series = vec![
        Series::new("DRAM", sizes.clone(), step(96.0)),
        Series::new("CXL", sizes.clone(), step(250.0)),
        Series::new("PM, random", sizes.clone(), step(305.0)),
    ];
    let x = Axis::new("array", "", Format::Bytes).on(Scale::Log2);
    let y = Axis::new("latency of a load", "", Format::DurationNs).on(Scale::Log10);
    Chart::new(
        "latency",
        "Idle latency by size of the array",
        x,
        y,
        Data::Lines(series),
    )
}

fn grouped() -> Chart {
    let bars = vec![
        Bars::new("first-touch", vec![3.1, 2.7, 1.4, 1.02, 2.2]),
        Bars::new("static", vec![1.0, 1.1, 1.05, 1.0, 1.2]),
        Bars::new("dynamic", vec![1.2, 1.1, 1.04, 1.0, f64::NAN]),
        Bars::new("hotset", vec![2.0, 1.9, 1.3, 0.62, 1.4]),
    ];
    let x = Axis::new("program", "", Format::Number);
    let y = Axis::new("time against all in DRAM", "", Format::Ratio);
    let groups = strings([
        "BC 26",
        "BC 27",
        "CG.D",
        "MG.E",
        "a program with a long name",
    ]);
    let data = Data::Bars {
        groups,
        bars,
        stacked: false,
    };
    Chart::new("grouped", "Run time by program and policy", x, y, data)
        .with_level("all in DRAM", 1.0)
}

fn stacked() -> Chart {
    let bars = vec![
        Bars::new("copy", vec![1.0, 1.35, 1.2]),
        Bars::new("scan", vec![0.6, 1.5, 0.9]),
        Bars::new("interference", vec![0.0, 0.38, 0.21]),
        Bars::new("rest", vec![0.3, 0.35, 0.33]),
    ];
    let x = Axis::new("heap", "", Format::Number);
    let y = Axis::new("minor collection", "ms", Format::Number);
    let groups = strings(["DRAM-only", "Optane-only", "Optane-S"]);
    let data = Data::Bars {
        groups,
        bars,
        stacked: true,
    };
    Chart::new(
        "stacked",
        "Where a minor collection spends its time",
        x,
        y,
        data,
    )
}

fn heat() -> Chart {
    let threads = [1.0, 2.0, 4.0, 8.0, 10.0];
    let row = |name: &str, k: f64| {
        let cell = |t: &f64| (100.0 * (1.0 - (-t * k).exp()) * 10.0).round() / 10.0;
        HeatRow {
            name: name.into(),
            cells: threads.iter().map(cell).collect(),
        }
    };
    let mut rows = vec![
        row("sequential read", 0.02),
        row("random read", 0.05),
        row("sequential write", 0.25),
        row("random write", 0.6),
    ];
    rows[1].cells[3] = f64::NAN;
    let x = Axis::new("threads on PM", "", Format::Integer);
    let y = Axis::new("bandwidth lost", "", Format::Percent).between(0.0, 100.0);
    let columns = threads.iter().map(|t| t.to_string()).collect();
    Chart::new(
        "heat",
        "What traffic on PM takes from writers on DRAM",
        x,
        y,
        Data::HeatMap { columns, rows },
    )
}

fn gantt() -> Chart {
    let span = |lane, name: &str, kind: &str, start: f64, end: f64| GanttSpan {
        lane,
        name: name.into(),
        kind: kind.into(),
        start: start * 1e9,
        end: end * 1e9,
    };
    let spans = vec![
        span(0, "ocean", "bandwidth-sensitive", 0.0, 62.0),
        span(0, "lu", "bandwidth-sensitive", 62.0, 118.0),
        span(1, "freqmine", "CPU-bound", 0.0, 45.0),
        span(1, "swaptions", "CPU-bound", 45.0, 96.0),
        span(2, "redis", "latency-sensitive", 0.0, 118.0),
        span(3, "dedup", "write-intensive", 64.0, 70.0),
        span(3, "vips", "write-intensive", 72.0, 101.0),
    ];
    let x = Axis::new("time", "", Format::DurationNs);
    let y = Axis::new("place", "", Format::Number);
    let lanes = strings([
        "DRAM, cores 0-9",
        "DRAM, cores 10-15",
        "DRAM, cores 16-19",
        "PM, cores 10-15",
    ]);
    Chart::new(
        "gantt",
        "Which program runs where, and when",
        x,
        y,
        Data::Gantt { lanes, spans },
    )
}

fn trade_off() -> Chart {
    let point = |name: &str, x: f64, y: f64| Series::new(name, vec![x], vec![y]);
    let series = vec![
        point("first-touch", 61.0, 1.87),
        point("interleave", 50.0, 2.25),
        point("static", 61.0, 1.18),
        point("dynamic", 61.0, 1.015),
        point("hotset", 48.0, 1.12),
        point("all in DRAM", 100.0, 1.0),
    ];
    let x = Axis::new("share of DRAM", "", Format::Percent).between(0.0, 100.0);
    let y = Axis::new("slowdown", "", Format::Ratio);
    Chart::new(
        "trade-off",
        "Slowdown against the DRAM it takes",
        x,
        y,
        Data::Points(series),
    )
}
