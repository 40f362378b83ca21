//! The programs and their runs, with machine and strategies.

use super::super::Setup;
use crate::managed::{Profiled, module, profiles};
use crate::{Effort, Watch};
use std::sync::Arc;
use varve_machine::Machine;
use varve_observed::{ManagedProgram, ManagedSpec, Shifts};
use varve_pages::governor::BandwidthModel;
use varve_run::{Error, TrayOptions};
use varve_runtime::Config;
use varve_sites::Profile;

/// A program, its input, and a smaller one that its site profile is made on.
pub(super) struct Entry {
    pub(super) name: &'static str,
    module: (&'static str, &'static [u8]),
    /// Arguments: at a sliver of the size, coarse, and full; `SHRINK` stands for the data's divisor.
    input: [&'static str; 3],
    training: &'static str,
    pub(super) scimark: bool,
    quick: bool,
}

const fn kernel(name: &'static str, input: [&'static str; 3], training: &'static str) -> Entry {
    Entry {
        name,
        module: module!("scimark"),
        input,
        training,
        scimark: true,
        quick: true,
    }
}

const fn other(
    name: &'static str,
    module: (&'static str, &'static [u8]),
    input: [&'static str; 3],
    training: &'static str,
    quick: bool,
) -> Entry {
    Entry {
        name,
        module,
        input,
        training,
        scimark: false,
        quick,
    }
}

const ALL: [Entry; 10] = [
    kernel(
        "fft",
        [
            "fft 1 --large 1 --shrink 256",
            "fft 1 --large 1 --shrink SHRINK",
            "fft 1 --large 1 --shrink SHRINK",
        ],
        "fft 1",
    ),
    kernel(
        "lu",
        [
            "lu 1",
            "lu 1 --large 1 --shrink SHRINK",
            "lu 1 --large 1 --shrink SHRINK",
        ],
        "lu 1",
    ),
    kernel(
        "sor",
        [
            "sor 1",
            "sor 2 --large 1 --shrink SHRINK",
            "sor 2 --large 1 --shrink SHRINK",
        ],
        "sor 1",
    ),
    kernel(
        "sparse",
        [
            "sparse 1",
            "sparse 8 --large 1 --shrink SHRINK",
            "sparse 4 --large 1 --shrink SHRINK",
        ],
        "sparse 1",
    ),
    other("trees", module!("trees"), ["6", "13", "16"], "11", true),
    other(
        "kv",
        module!("kv"),
        [
            "300 --records 50",
            "6000 --records 2000",
            "40000 --records 10000",
        ],
        "4000 --records 1000 --seed 7",
        true,
    ),
    other(
        "maps",
        module!("collections"),
        ["maps 200", "maps 5000", "maps 15000"],
        "maps 3000",
        true,
    ),
    other(
        "PR",
        module!("graph"),
        [
            "pagerank --scale 8 --iterations 2",
            "pagerank --scale 12 --iterations 2",
            "pagerank --scale 15 --iterations 3",
        ],
        "pagerank --scale 10 --iterations 3 --seed 7",
        true,
    ),
    other(
        "strings",
        module!("strings"),
        ["100", "800", "3000"],
        "500 --seed 7",
        false,
    ),
    other(
        "deltablue",
        module!("classics"),
        ["deltablue 30", "deltablue 500", "deltablue 3000"],
        "deltablue 200",
        false,
    ),
];

/// Time between two samples of the bandwidth, ns: the paper's second, shrunk with the runs.
pub(super) const SAMPLE_NS: u64 = 100_000;

/// The way to provide bandwidth and capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum With {
    /// One hot DIMM, always enough room.
    Nothing,
    /// The governor.
    Governor,
    /// 25 % of the peak on each hot DIMM.
    Limit,
}

/// The instances of SciMark's kernels: the paper's one and eleven threads.
pub(super) const MANY: u32 = 11;

/// The programs with what their runs have in common.
pub struct CrossLayerSuite {
    pub(super) entries: Vec<&'static Entry>,
    machine: Machine,
    pub(super) shrink: u32,
    /// Size of the data over SPECjvm2008's DEFAULT.
    data: u32,
    size: usize,
    seed: u64,
    profiles: Vec<Arc<Profile>>,
    model: Option<BandwidthModel>,
}

/// The divisor of the machine for coarse runs, and for those of which every instance is run.
const SMALL: u32 = 64;

impl CrossLayerSuite {
    pub(super) fn new(
        setup: &Setup,
        model: Option<&BandwidthModel>,
        watch: Watch,
    ) -> Result<CrossLayerSuite, Error> {
        let (shrink, size) = match setup.options.effort {
            Effort::Tiny => (SMALL, 0),
            Effort::Quick => (SMALL, 1),
            Effort::Full => (16, 2),
        };
        let entries = ALL.iter().filter(|e| e.quick || !setup.quick());
        CrossLayerSuite::of(setup, model, (shrink, size, entries.collect()), watch)
    }

    /// SciMark's kernels alone, on the machine of coarse runs.
    pub(super) fn kernels(
        setup: &Setup,
        model: Option<&BandwidthModel>,
        watch: Watch,
    ) -> Result<CrossLayerSuite, Error> {
        let size = usize::from(!setup.tiny());
        let entries = ALL.iter().filter(|e| e.scimark);
        CrossLayerSuite::of(setup, model, (SMALL, size, entries.collect()), watch)
    }

    /// The same with SPECjvm2008's LARGE data.
    pub(super) fn large(
        setup: &Setup,
        model: Option<&BandwidthModel>,
        watch: Watch,
    ) -> Result<CrossLayerSuite, Error> {
        let kernels = CrossLayerSuite::kernels(setup, model, watch)?;
        Ok(CrossLayerSuite { data: 4, ..kernels })
    }

    fn of(
        setup: &Setup,
        model: Option<&BandwidthModel>,
        (shrink, size, entries): (u32, usize, Vec<&'static Entry>),
        watch: Watch,
    ) -> Result<CrossLayerSuite, Error> {
        let mut suite = CrossLayerSuite {
            entries,
            machine: setup.bench.machine.scaled(shrink),
            shrink,
            data: 1,
            size,
            seed: setup.options.seed,
            profiles: Vec::new(),
            model: model.cloned(),
        };
        let training = |entry: &&Entry| Profiled {
            name: entry.name,
            program: suite.program(entry, entry.training),
            config: suite.config(),
        };
        let wanted: Vec<Profiled> = suite.entries.iter().map(training).collect();
        suite.profiles = profiles(&wanted, setup.options, watch)?;
        Ok(suite)
    }

    fn config(&self) -> Config {
        Config {
            nursery: (4 << 20) / u64::from(self.shrink),
            ..Config::default()
        }
    }

    fn program(&self, entry: &Entry, arguments: &str) -> ManagedProgram {
        let shrink = (self.shrink / self.data).to_string();
        let words = arguments
            .split(' ')
            .map(|w| if w == "SHRINK" { &shrink[..] } else { w });
        ManagedProgram::new(entry.module.0, entry.module.1).with_arguments(words)
    }

    pub(super) fn spec(
        &self,
        at: usize,
        plan: &str,
        instances: u32,
        trays: TrayOptions,
    ) -> ManagedSpec {
        let entry = self.entries[at];
        let program = self.program(entry, entry.input[self.size]);
        let mut spec = ManagedSpec::new(self.machine.clone(), plan, program);
        spec.config = Config {
            profile: Some(Arc::clone(&self.profiles[at])),
            ..self.config()
        };
        (spec.instances, spec.seed, spec.trays) = (instances, self.seed, trays);
        spec
    }

    /// A kernel again and again for a given time, each instance of it run.
    pub(super) fn timed(
        &self,
        at: usize,
        plan: &str,
        instances: u32,
        trays: TrayOptions,
        shifts: Shifts,
    ) -> ManagedSpec {
        let mut spec = self.spec(at, plan, instances, trays);
        let entry = self.entries[at];
        // More than there is time for.
        let rounds = format!("{} --rounds 1000000", entry.input[self.size]);
        spec.program = self.program(entry, &rounds);
        spec.shifts = Some(shifts);
        spec
    }

    /// Trays whose times shrink with the runs: a sample in a tenth of a millisecond.
    pub(super) fn trays(&self, with: With, peak: Option<u64>) -> Option<TrayOptions> {
        let usual = TrayOptions {
            sample_ns: SAMPLE_NS,
            tick_ns: 50_000,
            ..TrayOptions::default()
        };
        match with {
            With::Nothing => Some(usual),
            With::Governor => Some(TrayOptions {
                model: Some(self.model.clone()?),
                ..usual
            }),
            With::Limit => Some(TrayOptions {
                limit: Some((peak? / 4).max(4096)),
                ..usual
            }),
        }
    }

    /// Offline by capacity, online by interval: the paper's names, and the strategies here.
    pub(super) fn strategies(&self) -> Vec<(&'static str, String)> {
        let cool = 100_000 / self.shrink;
        let online = |us: u32| format!("sampled:interval={us}us,cool={cool}us");
        let mut all = vec![
            (SMALLEST, "knapsack:capacity=0.01".to_string()),
            ("offline-2%", "knapsack:capacity=0.02".to_string()),
            (OFFLINE, "knapsack:capacity=0.05".to_string()),
            ("offline-10%", "knapsack:capacity=0.1".to_string()),
            ("offline-20%", "knapsack:capacity=0.2".to_string()),
            (CONTINUOUS, online(0)),
            (ONLINE, online(1_000 / self.shrink)),
            ("online-100ms", online(100_000 / self.shrink)),
        ];
        if self.size < 2 {
            all.retain(|s| [SMALLEST, OFFLINE, "offline-20%", CONTINUOUS, ONLINE].contains(&s.0));
        }
        all
    }

    pub(super) fn strategy(&self, name: &str) -> Option<(&'static str, String)> {
        self.strategies().into_iter().find(|s| s.0 == name)
    }
}

pub(super) const SMALLEST: &str = "offline-1%";
pub(super) const OFFLINE: &str = "offline-5%";
pub(super) const CONTINUOUS: &str = "online-ct";
pub(super) const ONLINE: &str = "online-1ms";

pub(super) fn key(entry: &Entry, strategy: &str, instances: u32, with: With) -> String {
    format!("{}, {instances}, {strategy}, {with:?}", entry.name)
}
