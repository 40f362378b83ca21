//! The programs: three on a graph engine, as in the paper, and others that stand for lines of its table 1, by rates of allocation and
//! survival. They are not DaCapo. Eclipse has no counterpart.

use crate::managed::{Profiled, module, profiles};
use crate::{Effort, StudyOptions, Watch};
use std::sync::Arc;
use varve_machine::Machine;
use varve_observed::{Access, ManagedProgram, ManagedSpec};
use varve_run::{Error, Numa};
use varve_runtime::Config;
use varve_sites::Profile;

/// A program with its input, and another input that its site profile is made on.
pub struct PimaProgram {
    /// Its name here.
    pub name: &'static str,
    /// Its module.
    module: (&'static str, &'static [u8]),
    /// Arguments of the runs, from small to full.
    input: [&'static str; 3],
    /// Arguments of full runs that are long enough for plans that sample, near their memory and with both spread over sockets, where
    /// they differ.
    long: Option<[&'static str; 2]>,
    /// Arguments of the profiled run.
    training: &'static str,
    /// The line of table 1 that it stands for: of those whose rate it can reach, one with about as many survivors.
    pub stands_for: &'static str,
    /// On the graph engine.
    pub graph: bool,
    /// Threads of what it stands for. An instance here has one thread and one core, and so its part of a nursery that these
    /// threads share in the paper.
    threads: u64,
    /// Part of the coarse version.
    quick: bool,
}

const fn entry(
    name: &'static str,
    module: (&'static str, &'static [u8]),
    input: [&'static str; 3],
    training: &'static str,
    stands_for: &'static str,
    quick: bool,
) -> PimaProgram {
    PimaProgram {
        name,
        module,
        input,
        long: None,
        training,
        stands_for,
        graph: false,
        threads: if several_threads(stands_for) { 4 } else { 1 },
        quick,
    }
}

const fn graph(
    name: &'static str,
    input: [&'static str; 3],
    long: [&'static str; 2],
    training: &'static str,
    quick: bool,
) -> PimaProgram {
    PimaProgram {
        name,
        module: module!("graph"),
        input,
        long: Some(long),
        training,
        stands_for: name,
        graph: true,
        threads: 4,
        quick,
    }
}

/// Whether a program of the paper has several threads: of DaCapo, those that its authors name so (Blackburn et al., OOPSLA
/// 2006), and Pjbb with its four warehouses. The paper runs them with four.
const fn several_threads(name: &str) -> bool {
    matches!(
        name.as_bytes(),
        b"Lusearch"
            | b"Lu.Fix"
            | b"Xalan"
            | b"Sunflow"
            | b"Pmd"
            | b"Pmd.Scale"
            | b"Avrora"
            | b"Pjbb"
    )
}

const ALL: [PimaProgram; 16] = [
    graph(
        "PR",
        [
            "pagerank --scale 8 --iterations 2",
            "pagerank --scale 12 --iterations 3",
            "pagerank --scale 15 --iterations 3",
        ],
        [
            "pagerank --scale 15 --iterations 13",
            "pagerank --scale 14 --iterations 8",
        ],
        "pagerank --scale 11 --iterations 3 --seed 7",
        true,
    ),
    graph(
        "CC",
        [
            "components --scale 8",
            "components --scale 12 --iterations 3",
            "components --scale 15 --iterations 3",
        ],
        [
            "components --scale 15 --iterations 13",
            "components --scale 14 --iterations 8",
        ],
        "components --scale 11 --seed 7",
        true,
    ),
    graph(
        "ALS",
        [
            "als --users 60 --items 20 --ratings 8 --iterations 1",
            "als --users 800 --items 200 --ratings 15 --iterations 2",
            "als --users 6000 --items 1000 --ratings 25 --iterations 2",
        ],
        [
            "als --users 3000 --items 500 --ratings 20 --iterations 13",
            "als --users 3000 --items 500 --ratings 20 --iterations 8",
        ],
        "als --users 900 --items 300 --ratings 12 --iterations 2 --seed 7",
        true,
    ),
    entry(
        "arrays",
        module!("kinds"),
        ["arrays 1", "arrays 5", "arrays 25"],
        "arrays 3",
        "Lusearch",
        false,
    ),
    entry(
        "aircraft",
        module!("kinds"),
        ["aircraft 1", "aircraft 8", "aircraft 40"],
        "aircraft 4",
        "Lu.Fix",
        false,
    ),
    entry(
        "parser",
        module!("kinds"),
        ["parser 1", "parser 4", "parser 12"],
        "parser 3",
        "Antlr",
        false,
    ),
    entry(
        "trees",
        module!("trees"),
        ["6", "13", "15"],
        "11",
        "Pmd",
        true,
    ),
    entry(
        "strings",
        module!("strings"),
        ["100", "800", "3000"],
        "500 --seed 7",
        "Pmd.Scale",
        false,
    ),
    entry(
        "json",
        module!("strings"),
        ["60 --json 1", "600 --json 1", "3000 --json 1"],
        "400 --json 1 --seed 7",
        "Fop",
        false,
    ),
    entry(
        "mutable",
        module!("collections"),
        ["mutable 100", "mutable 1000", "mutable 4000"],
        "mutable 700",
        "Sunflow",
        false,
    ),
    entry(
        "persistent",
        module!("collections"),
        ["persistent 100", "persistent 4000", "persistent 20000"],
        "persistent 1500",
        "Xalan",
        true,
    ),
    entry(
        "maps",
        module!("collections"),
        ["maps 200", "maps 5000", "maps 15000"],
        "maps 3000",
        "Hsqldb",
        false,
    ),
    entry(
        "linked",
        module!("collections"),
        ["linked 100", "linked 5000", "linked 30000"],
        "linked 2000",
        "Luindex",
        false,
    ),
    entry(
        "kv",
        module!("kv"),
        [
            "300 --records 50",
            "6000 --records 2000",
            "40000 --records 10000",
        ],
        "4000 --records 1000 --seed 7",
        "Pjbb",
        true,
    ),
    entry(
        "deltablue",
        module!("classics"),
        ["deltablue 30", "deltablue 500", "deltablue 3000"],
        "deltablue 200",
        "Bloat",
        false,
    ),
    entry(
        "richards",
        module!("classics"),
        ["richards 1", "richards 1", "richards 6"],
        "richards 1",
        "Avrora",
        true,
    ),
];

/// The common settings of this study's runs.
pub struct PimaSuite {
    /// The programs.
    pub programs: Vec<&'static PimaProgram>,
    /// The numbers of cores, each with an instance, ascending.
    pub cores: Vec<u32>,
    machine: Machine,
    size: usize,
    seed: u64,
    profiles: Vec<(&'static str, Arc<Profile>)>,
    /// How often an instruction of a program counts, as far as that was found.
    pub slower: Vec<(&'static str, f64)>,
}

impl PimaSuite {
    /// Profiles every program on its training input.
    pub fn new(options: &StudyOptions, watch: Watch) -> Result<PimaSuite, Error> {
        let quick = options.effort != Effort::Full;
        let programs: Vec<&PimaProgram> = ALL.iter().filter(|e| e.quick || !quick).collect();
        let (size, cores) = match options.effort {
            Effort::Tiny => (0, vec![8, 32]),
            Effort::Quick => (1, vec![8, 32]),
            Effort::Full => (2, vec![4, 8, 16, 32]),
        };
        let mut suite = PimaSuite {
            programs,
            cores,
            machine: options.machine("optane-6242")?,
            size,
            seed: options.seed,
            profiles: Vec::new(),
            slower: Vec::new(),
        };
        let training = |entry: &&PimaProgram| Profiled {
            name: entry.name,
            program: program(
                entry,
                if size == 0 {
                    entry.input[0]
                } else {
                    entry.training
                },
            ),
            config: suite.training(entry),
        };
        let wanted: Vec<Profiled> = suite.programs.iter().map(training).collect();
        let made = profiles(&wanted, options, watch)?;
        suite.profiles = suite.programs.iter().map(|e| e.name).zip(made).collect();
        Ok(suite)
    }

    /// How often an instruction of a program counts, so that it allocates as fast as what it stands for.
    pub fn slower(&self, entry: &PimaProgram) -> f64 {
        let known = self.slower.iter().find(|w| w.0 == entry.name);
        known.map_or(1.0, |w| w.1)
    }

    /// The paper's nursery, 4 MB, of which an instance has what one thread has there. Graphs have half of the paper's 32 MB, and
    /// smaller versions of the study smaller ones still, since inputs are smaller and collections have to happen.
    fn config(&self, entry: &PimaProgram) -> Config {
        let whole: u64 = match (self.size, entry.graph) {
            (0, _) => (256 << 10) * entry.threads,
            (1, true) => 8 << 20,
            (_, true) => 16 << 20,
            (_, false) => 4 << 20,
        };
        let nursery = whole / entry.threads;
        Config {
            nursery,
            // The paper's do not grow.
            nursery_max: nursery,
            ..Config::default()
        }
    }

    /// A program by its name, if this version of the study has it.
    pub fn named(&self, name: &str) -> Option<&'static PimaProgram> {
        self.programs.iter().copied().find(|e| e.name == name)
    }

    /// A profile's nursery is smaller, as its input is: without survivors, a profile has no hot site.
    fn training(&self, entry: &PimaProgram) -> Config {
        let config = self.config(entry);
        let nursery = (config.nursery / 16).max(64 << 10);
        Config {
            nursery,
            nursery_max: nursery,
            ..config
        }
    }

    /// Edges of the graph that PageRank runs on: eight for each of its 2^scale vertices.
    pub fn edges(&self) -> u64 {
        let words = ALL[0].input[self.size].split(' ');
        let scale = words.skip_while(|w| *w != "--scale").nth(1);
        8 << scale.and_then(|s| s.parse().ok()).unwrap_or(0)
    }

    /// The most cores.
    pub fn most(&self) -> u32 {
        self.cores.last().copied().unwrap_or(1)
    }

    /// A run of a program that is long enough for plans that sample: 104 intervals in the full version, 64 where threads are spread,
    /// whose runs take several times as long to compute.
    pub fn long(&self, entry: &PimaProgram, plan: &str, cores: u32, numa: Numa) -> ManagedSpec {
        let mut spec = self.spec(entry, plan, cores, numa);
        // Times are from the first one on.
        spec.config.intervals = true;
        if let Some([near, spread]) = entry.long.filter(|_| self.size == 2) {
            let arguments = if numa == Numa::Local { near } else { spread };
            spec.program = program(entry, arguments);
        }
        spec
    }

    /// A run of a program.
    pub fn spec(&self, entry: &PimaProgram, plan: &str, cores: u32, numa: Numa) -> ManagedSpec {
        let profile = self.profiles.iter().find(|p| p.0 == entry.name);
        let mut spec = ManagedSpec::new(
            self.machine.clone(),
            plan,
            program(entry, entry.input[self.size]),
        );
        spec.config = Config {
            profile: profile.map(|p| Arc::clone(&p.1)),
            slower: self.slower(entry),
            ..self.config(entry)
        };
        (spec.instances, spec.numa, spec.seed) = (cores, numa, self.seed);
        spec
    }
}

/// Graphs are in a file, as the paper's are: reads and writes go through the system's cache of files.
fn program(entry: &PimaProgram, arguments: &str) -> ManagedProgram {
    let program = ManagedProgram::new(entry.module.0, entry.module.1);
    let words = arguments.split(' ');
    if !entry.graph {
        return program.with_arguments(words);
    }
    ManagedProgram {
        access: Access::to_own_folder(),
        ..program.with_arguments(words.chain(["--shards", "shards"]))
    }
}

/// The name of a run.
pub fn key(program: &str, plan: &str, cores: u32, numa: Numa) -> String {
    format!("{program}/{plan}/{cores}/{numa}")
}
