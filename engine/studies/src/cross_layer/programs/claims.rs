//! The claims of B9, and the table of its programs.

use super::super::claim;
use super::look::{Look, columns, label, mean_of_all};
use super::steady::Steady;
use super::suite::{CONTINUOUS, MANY, OFFLINE, ONLINE, SMALLEST, With, key};
use super::{CrossLayerSuite, Runs, charts};
use varve_report::fmt::Format;
use varve_report::{Better, Column, RunTable, StudyResult, Value};

pub(super) fn claims(ran: &(CrossLayerSuite, Runs), out: &mut StudyResult) {
    let all = Look {
        suite: &ran.0,
        ran: &ran.1,
    };
    let saved = |ratio: Option<f64>| ratio.map(|r| 100.0 * (1.0 - r));
    let energy = |scimark, strategy: &str, n| {
        let strategy = strategy.to_string();
        saved(all.mean(scimark, |e| all.energy(e, &strategy, n, With::Nothing)))
    };
    let many = |strategy: &str, with| all.mean(true, |e| all.time(e, strategy, MANY, with));
    let slow = "2 to 3 in the paper";
    let energies = |with| all.mean(true, |e| all.energy(e, OFFLINE, MANY, with));
    let steady = |of: fn(&Steady) -> f64| {
        let kernels = all.entries(true);
        mean_of_all(kernels.map(|e| all.steady(e, OFFLINE, MANY).as_ref().map(of)))
    };
    let searched = steady(|s| 100.0 * s.search).map_or(String::new(), |percent| {
        format!(
            "from a sample after the last remap on, and the default for the same last bytes: the search is {percent:.0} % of the runs"
        )
    });
    out.claims.extend([
        claim(
            "B9",
            "DRAM energy saved, small programs, online 1 ms",
            19.8,
            energy(false, ONLINE, 1),
            "%",
            "Java programs of ours in place of DaCapo",
        ),
        claim(
            "B9",
            "DRAM energy saved, SciMark, 1 thread, offline 5 %",
            25.5,
            energy(true, OFFLINE, 1),
            "%",
            "SPECjvm2008's DEFAULT data; LARGE below",
        ),
        claim(
            "B9",
            "sor, 1 thread, cold part of the heap with offline 1 %",
            32.0,
            all.entries(true)
                .find(|e| e.name == "sor")
                .and_then(|e| all.cold(e, SMALLEST, 1)),
            "%",
            "one site of the original's heap; the rest of figures 8 and 9 is only drawn",
        ),
        claim(
            "B9",
            "SciMark, 11 threads, one hot DIMM, offline 5 %: time",
            2.5,
            many(OFFLINE, With::Nothing),
            "x default",
            slow,
        ),
        claim(
            "B9",
            "the same with the governor, the whole run",
            1.0,
            many(OFFLINE, With::Governor),
            "x default",
            "",
        ),
        claim(
            "B9",
            "the same with the governor, once it has settled",
            1.0,
            steady(|s| s.time),
            "x default",
            &searched,
        ),
        claim(
            "B9",
            "SciMark, 11 threads, governor, offline 5 %: DRAM energy, the whole run",
            1.0,
            energies(With::Governor),
            "x default",
            "about the same in the paper",
        ),
        claim(
            "B9",
            "DRAM energy once it has settled",
            1.0,
            steady(|s| s.energy),
            "x default",
            &searched,
        ),
    ]);
    out.tables.push(table(&all));
    out.tables.push(governed(&all));
    charts::charts(&all, out);
}

fn table(all: &Look) -> RunTable {
    let mut table = RunTable::new(
        "Programs, offline 5 % and online 1 ms beside default",
        "program",
    );
    table.columns = vec![
        Column::new("bandwidth", Format::BytesPerSecond, Better::Neither),
        Column::new("cold, offline", Format::Percent, Better::Neither),
        Column::new("cold, online", Format::Percent, Better::Neither),
        Column::new("time, offline", Format::Ratio, Better::Lower),
        Column::new("time, online", Format::Ratio, Better::Lower),
        Column::new("energy, offline", Format::Ratio, Better::Lower),
        Column::new("energy, online", Format::Ratio, Better::Lower),
    ];
    let value = |x: Option<f64>| x.map_or(Value::Missing, Value::from);
    for column in columns(all) {
        let (entry, n) = column;
        let Some(base) = all.ran.get(&key(entry, "default", n, With::Nothing)) else {
            continue;
        };
        let cold = |strategy: &str| all.cold(entry, strategy, n);
        let bytes = (base.fast_read_bytes + base.fast_written_bytes) as f64 / base.seconds;
        table.push(
            label(&column),
            [
                bytes.into(),
                value(cold(OFFLINE)),
                value(cold(ONLINE)),
                value(all.time(entry, OFFLINE, n, With::Nothing)),
                value(all.time(entry, ONLINE, n, With::Nothing)),
                value(all.energy(entry, OFFLINE, n, With::Nothing)),
                value(all.energy(entry, ONLINE, n, With::Nothing)),
            ],
        );
    }
    table
}

/// Whole runs with the governor, and the part of them in which it has settled.
fn governed(all: &Look) -> RunTable {
    let mut table = RunTable::new(
        format!("SciMark, {MANY} threads, with the governor (figures 16 and 17)"),
        "kernel and strategy",
    );
    table.columns = vec![
        Column::new("time", Format::Ratio, Better::Lower),
        Column::new("time, settled", Format::Ratio, Better::Lower),
        Column::new("energy", Format::Ratio, Better::Lower),
        Column::new("energy, settled", Format::Ratio, Better::Lower),
        Column::new("search", Format::Percent, Better::Lower),
        Column::new("hot DIMMs", Format::Number, Better::Neither),
    ];
    for entry in all.entries(true) {
        for strategy in [OFFLINE, CONTINUOUS] {
            let steady = all.steady(entry, strategy, MANY);
            let hot = all
                .pair(entry, strategy, MANY, With::Governor)
                .and_then(|(_, r)| Some(f64::from(r.trays.as_ref()?.hot)));
            table.push(
                format!("{}, {strategy}", entry.name),
                [
                    all.time(entry, strategy, MANY, With::Governor),
                    steady.map(|s| s.time),
                    all.energy(entry, strategy, MANY, With::Governor),
                    steady.map(|s| s.energy),
                    steady.map(|s| 100.0 * s.search),
                    hot,
                ]
                .map(Value::from),
            );
        }
    }
    table
}
