//! B9 with SPECjvm2008's LARGE data: the paper says only that its programs have "a default or large input size".
//!
//! ```text
//!            FFT     LU, SOR   sparse: rows, entries
//! DEFAULT    2^20    1000^2    100 k, 1 M               the size of all other runs of SciMark here
//! LARGE      2^22    2048^2    200 k, 4 M               here 2^22, 2000^2, and 400 k rows with 4 M entries
//! ```
//!
//! LARGE is four times as much data: programs are shrunk by a quarter of the machine's divisor.

use super::super::{Setup, claim};
use super::look::mean_of_all;
use super::suite::{Entry, MANY, OFFLINE, With, key};
use super::{CrossLayerSuite, Runs};
use crate::Watch;
use crate::managed::{ManagedPlan, ManagedResults};
use varve_observed::PlanResult;
use varve_pages::governor::BandwidthModel;
use varve_report::fmt::Format;
use varve_report::{Better, Column, RunTable, StudyResult, Value};
use varve_run::Error;

/// GB/s of the kernels in table 3, with one thread and with eleven.
const TABLE_3: [(&str, [f64; 2]); 4] = [
    ("fft", [8.118, 34.899]),
    ("lu", [14.087, 38.785]),
    ("sor", [3.231, 25.753]),
    ("sparse", [10.753, 35.853]),
];

/// The kernels with LARGE data, and their results.
pub(super) struct Large {
    suite: CrossLayerSuite,
    ran: ManagedResults,
}

impl Large {
    /// Makes the runs: default and offline 5 %, by one thread and by many, these with the governor as well.
    pub(super) fn run(
        setup: &Setup,
        model: Option<&BandwidthModel>,
        watch: Watch,
    ) -> Result<Large, Error> {
        let suite = CrossLayerSuite::large(setup, model, watch)?;
        let mut plan = ManagedPlan::default();
        let offline = suite.strategy(OFFLINE);
        let runs = [
            ("default", "dram"),
            (OFFLINE, offline.as_ref().map_or("dram", |s| &s.1)),
        ];
        for (at, entry) in suite.entries.iter().enumerate() {
            let mut ask = |(name, words): (&str, &str), n: u32, with: With| {
                if let Some(trays) = suite.trays(with, None) {
                    plan.run(key(entry, name, n, with), suite.spec(at, words, n, trays));
                }
            };
            for n in [1, MANY] {
                runs.into_iter()
                    .for_each(|strategy| ask(strategy, n, With::Nothing));
            }
            ask(runs[1], MANY, With::Governor);
        }
        let ran = plan.make(setup.options, watch)?;
        Ok(Large { suite, ran })
    }

    /// Why runs failed, by name.
    pub(super) fn failures(&self) -> impl Iterator<Item = (&str, &str)> {
        self.ran.failures()
    }

    /// The mean over the kernels of something of a run under offline 5 % over that of the default.
    fn over_default(&self, n: u32, with: With, of: fn(&PlanResult) -> Option<f64>) -> Option<f64> {
        mean_of_all(self.suite.entries.iter().map(|entry| {
            let base = self.ran.get(&key(entry, "default", n, With::Nothing))?;
            Some(of(self.ran.get(&key(entry, OFFLINE, n, with))?)? / of(base)?)
        }))
    }

    pub(super) fn claims(&self, out: &mut StudyResult) {
        let seconds = |r: &PlanResult| Some(r.seconds);
        let joules = |r: &PlanResult| r.energy_j;
        let note = "four times the data of the row above that is called SciMark; the paper says \"default or large\"";
        let saved = self.over_default(1, With::Nothing, joules);
        for (what, published, ours, unit) in [
            (
                "DRAM energy saved, SciMark LARGE, 1 thread, offline 5 %",
                25.5,
                saved.map(|ratio| 100.0 * (1.0 - ratio)),
                "%",
            ),
            (
                "SciMark LARGE, 11 threads, one hot DIMM, offline 5 %: time",
                2.5,
                self.over_default(MANY, With::Nothing, seconds),
                "x default",
            ),
            (
                "SciMark LARGE, 11 threads, governor, offline 5 %: time, the whole run",
                1.0,
                self.over_default(MANY, With::Governor, seconds),
                "x default",
            ),
            (
                "SciMark LARGE, 11 threads, governor, offline 5 %: DRAM energy, the whole run",
                1.0,
                self.over_default(MANY, With::Governor, joules),
                "x default",
            ),
        ] {
            out.claims
                .push(claim("B9", what, published, ours, unit, note));
        }
    }

    /// Each kernel's bandwidth as default with both sizes, beside table 3; and what offline 5 % does to LARGE.
    pub(super) fn table(&self, default: &Runs) -> RunTable {
        let mut table = RunTable::new(
            "SciMark's bandwidth with DEFAULT and LARGE data beside table 3, and LARGE under offline 5 %",
            "kernel",
        );
        table.columns = vec![
            Column::new("published", Format::BytesPerSecond, Better::Neither),
            Column::new("DEFAULT", Format::BytesPerSecond, Better::Neither),
            Column::new("LARGE", Format::BytesPerSecond, Better::Neither),
            Column::new("time, LARGE", Format::Ratio, Better::Lower),
            Column::new("energy, LARGE", Format::Ratio, Better::Lower),
            Column::new("time, governor", Format::Ratio, Better::Lower),
            Column::new("energy, governor", Format::Ratio, Better::Lower),
            Column::new("remaps", Format::Number, Better::Neither),
        ];
        for (at, n) in [1, MANY].into_iter().enumerate() {
            for entry in &self.suite.entries {
                let published = TABLE_3.iter().find(|row| row.0 == entry.name);
                let name = key(entry, "default", n, With::Nothing);
                let bandwidths = [
                    published.map(|row| 1e9 * row.1[at]),
                    default.get(&name).map(bandwidth),
                    self.ran.get(&name).map(bandwidth),
                ];
                let values = bandwidths.into_iter().chain(self.beside(entry, n));
                let values: Vec<Value> = values.map(Value::from).collect();
                table.push(format!("{} {n}T", entry.name), values);
            }
        }
        table
    }

    /// Time and energy over the default, without and with the governor, and its remaps.
    fn beside(&self, entry: &Entry, n: u32) -> [Option<f64>; 5] {
        let base = self.ran.get(&key(entry, "default", n, With::Nothing));
        let run = |with| self.ran.get(&key(entry, OFFLINE, n, with));
        let time = |r: Option<&PlanResult>| Some(r?.seconds / base?.seconds);
        let energy = |r: Option<&PlanResult>| Some(r?.energy_j? / base?.energy_j?);
        let (alone, governed) = (run(With::Nothing), run(With::Governor));
        let remaps = governed.and_then(|r| r.trays.as_ref());
        [
            time(alone),
            energy(alone),
            time(governed),
            energy(governed),
            remaps.map(|t| t.decisions.len() as f64),
        ]
    }
}

/// Bytes a second from and to DRAM.
fn bandwidth(r: &PlanResult) -> f64 {
    (r.fast_read_bytes + r.fast_written_bytes) as f64 / r.seconds
}
