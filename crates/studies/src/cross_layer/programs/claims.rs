//! The claims of B9, and the table of its programs.

use super::super::{Setup, claim};
use super::suite::{CONTINUOUS, Entry, MANY, OFFLINE, ONLINE, With, key, loads};
use super::{Runs, Suite, charts};
use varve_report::fmt::Format;
use varve_report::{Better, Column, RunTable, StudyResult, Value};
use varve_run::PlanResult;

/// Looks results up beside the default.
pub(super) struct Look<'a> {
    pub(super) suite: &'a Suite,
    pub(super) ran: &'a Runs,
}

impl Look<'_> {
    pub(super) fn pair(
        &self,
        entry: &Entry,
        strategy: &str,
        n: u32,
        with: With,
    ) -> Option<(&PlanResult, &PlanResult)> {
        let base = self.ran.get(&key(entry, "default", n, With::Nothing))?;
        Some((base, self.ran.get(&key(entry, strategy, n, with))?))
    }

    pub(super) fn time(&self, entry: &Entry, strategy: &str, n: u32, with: With) -> Option<f64> {
        let (base, r) = self.pair(entry, strategy, n, with)?;
        Some(r.seconds / base.seconds)
    }

    pub(super) fn energy(&self, entry: &Entry, strategy: &str, n: u32, with: With) -> Option<f64> {
        let (base, r) = self.pair(entry, strategy, n, with)?;
        Some(r.energy_j? / base.energy_j?)
    }

    pub(super) fn entries(&self, scimark: bool) -> impl Iterator<Item = &'static Entry> + '_ {
        let all = self.suite.entries.iter().copied();
        all.filter(move |e| e.scimark == scimark)
    }

    fn mean(&self, scimark: bool, of: impl Fn(&Entry) -> Option<f64>) -> Option<f64> {
        let all: Vec<f64> = self.entries(scimark).filter_map(of).collect();
        (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64)
    }

    /// Energy of all loads together over that of the default.
    fn changing(&self, setup: &Setup, strategy: &str) -> Option<f64> {
        self.mean(true, |entry| {
            let (mut ours, mut theirs) = (0.0, 0.0);
            for &n in loads(setup) {
                let (base, r) = self.pair(entry, strategy, n, With::Governor)?;
                ours += r.energy_j?;
                theirs += base.energy_j?;
            }
            Some(ours / theirs)
        })
    }
}

pub fn claims(setup: &Setup, ran: &(Suite, Runs), out: &mut StudyResult) {
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
    let changing = "a run for each load, each beginning with one hot DIMM";
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
            "",
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
            "the same with the governor",
            1.0,
            many(OFFLINE, With::Governor),
            "x default",
            "",
        ),
        claim(
            "B9",
            "DRAM energy saved with changing load, offline 5 %",
            16.7,
            saved(all.changing(setup, OFFLINE)),
            "%",
            changing,
        ),
        claim(
            "B9",
            "DRAM energy saved with changing load, online continuous",
            13.8,
            saved(all.changing(setup, CONTINUOUS)),
            "%",
            changing,
        ),
    ]);
    out.tables.push(table(&all));
    charts::charts(&all, out);
}

/// Columns of programs as the paper's figures have them: one and eleven threads of each kernel.
pub(super) fn columns(all: &Look) -> Vec<(&'static Entry, u32)> {
    let many = all.entries(true).map(|e| (e, MANY));
    let one = all.entries(false).chain(all.entries(true)).map(|e| (e, 1));
    one.chain(many).collect()
}

pub(super) fn label((entry, n): &(&'static Entry, u32)) -> String {
    match entry.scimark {
        true => format!("{} {n}T", entry.name),
        false => entry.name.into(),
    }
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
        let cold = |strategy: &str| {
            let (_, r) = all.pair(entry, strategy, n, With::Nothing)?;
            Some(100.0 * (1.0 - r.dram_share()))
        };
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
