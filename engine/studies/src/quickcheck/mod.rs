//! QuickCheck: using speculation to reduce the overhead of checks in NVM frameworks (Shull, Huang, Torrellas, VEE 2019). Claims C7 to C9.
//!
//! Everything is measured on this machine, in processor time, in one run, in turns: each program under each kind of checks, then all of them
//! again. A program does its work several times over in one process; the first half of the rounds compile and are left out. The compared values are
//! medians over the turns, of the ratios of best rounds within a turn: other work on the machine, which takes caches, makes rounds longer, never
//! shorter, and work that lasts longer than a turn makes all of them longer. Measuring the same code twice shows the remaining error.

mod biases;
mod counted;
mod instructions;
mod mark;
mod modelled;
mod programs;
mod scratch;
mod stores;
mod turns;
mod work;

use crate::{Effort, StudyOptions, StudyProgress, Watch};
use counted::Counter;
use programs::{DURABLE, QuickProgram, VOLATILE};
use scratch::Scratch;
use turns::{Turns, mean};
use varve_observed::{HostRun, ManagedProgram};
use varve_report::fmt::Format;
use varve_report::{Better, Claim, Column, Kind, RunTable, StudyResult, Value};
use varve_run::{Error, VERSION};
use varve_runtime::{Checks, Config};
pub use work::counted;

/// Checks, their name, and the paper's means over Clean in percent, by suite.
type Published = (Checks, &'static str, Option<(f64, f64)>);

/// Kinds of checks beside none, with the paper's means over Clean in percent, by suite.
const KINDS: [Published; 6] = [
    (Checks::Likely, "Likely", Some((61.0, 62.3))),
    (Checks::Unbiased, "Unbiased", Some((51.1, 59.7))),
    (Checks::Unlikely, "Unlikely", Some((19.1, 38.5))),
    (Checks::Deopt, "Deopt", Some((8.8, 5.7))),
    (Checks::Profiled, "QuickCheck", Some((8.8, 5.7))),
    (Checks::Quick, "None until something is durable", None),
];

/// A mean over programs is known well enough if its standard error over turns is at most this number of percentage points. Fewer turns give no
/// estimate.
const KNOWN: f64 = 1.0;
const LEAST_TURNS: usize = 3;

/// Clean, measured a second time in each turn.
const AGAIN: &str = "Clean again";

struct Study<'a> {
    options: &'a StudyOptions,
    watch: Watch<'a>,
    done: usize,
    runs: usize,
    failures: Vec<String>,
    /// The counter of instructions, or the reason why there is none.
    counter: Result<Counter, &'static str>,
}

pub fn run(options: &StudyOptions, watch: Watch) -> Result<StudyResult, Error> {
    let mut study = Study {
        options,
        watch,
        done: 0,
        runs: 0,
        failures: Vec::new(),
        counter: Counter::find(options.program.as_ref()),
    };
    let mut out = StudyResult::new("quickcheck", "here", options.seed, VERSION);
    out.title = "Objects that survive, and the checks that they need".into();
    out.about = vec![
        "Times are processor time of this machine, measured in turns in one run; a program's first rounds, which compile, are left out. Clean is \
         the same engine without any check."
            .into(),
        "Stores of others, on libpmemobj and on the JVM, are beside ours in bench/stores.".into(),
        "A store has one check here, whose action contains the store, where the paper's has two; loads of fields that never change after \
         their object's birth, and of objects with methods in them, have none, nor have objects that were just checked. So all kinds cost less \
         than the paper's."
            .into(),
    ];
    let (volatile, durable) = (study.chosen(&VOLATILE), study.chosen(&DURABLE));
    let turns = study.turns();
    // Measurements on this machine depend on no rule of the model.
    let here = |id| options.without.is_none() && options.wants(id);
    study.runs = [
        ("C7", volatile.len() * turns * (2 + KINDS.len())),
        ("C7", instructions::runs_volatile(&study, &volatile)),
        ("C8", biases::runs(&durable)),
        ("C9", durable.len() * turns * 2),
        ("C9", stores::turns(&study) * stores::STEPS),
        ("C9", instructions::runs_durable(&study, &durable)),
    ]
    .iter()
    .filter(|(id, _)| here(id))
    .map(|(_, n)| n)
    .sum();
    if options.wants("C9") {
        study.runs += modelled::runs(&durable);
    }
    if here("C7") {
        overheads(&mut study, &volatile, turns, &mut out)?;
        instructions::volatile(&mut study, &volatile, &mut out)?;
    }
    if here("C8") {
        biases::biases(&mut study, &durable, &mut out)?;
    }
    if here("C9") {
        kernels(&mut study, &durable, turns, &mut out)?;
        stores::stores(&mut study, &mut out)?;
        instructions::durable(&mut study, &durable, &mut out)?;
    }
    for c in &mut out.claims {
        c.kind = Kind::Measured;
    }
    if options.wants("C9") {
        modelled::modelled(&mut study, &durable, &mut out)?;
    }
    out.failures = study.failures;
    Ok(out)
}

impl Study<'_> {
    fn size(&self) -> usize {
        match self.options.effort {
            Effort::Tiny => 0,
            Effort::Quick => 1,
            Effort::Full => 2,
        }
    }

    /// Turns at most.
    fn turns(&self) -> usize {
        [1, 3, 5][self.size()]
    }

    fn rounds(&self) -> usize {
        [2, 6, 8][self.size()]
    }

    fn chosen<'e>(&self, all: &'e [QuickProgram]) -> Vec<&'e QuickProgram> {
        let coarse = self.options.effort == Effort::Quick;
        all.iter().filter(|e| e.quick || !coarse).collect()
    }

    /// Tells what runs next.
    fn begin(&mut self, what: String) -> Result<(), Error> {
        let progress = StudyProgress {
            done: self.done,
            runs: self.runs,
            what,
        };
        if !(self.watch)(&progress) {
            return Err(Error::interrupted());
        }
        self.done += 1;
        Ok(())
    }

    /// A program that does its work in `rounds` rounds.
    fn program(&self, entry: &QuickProgram, rounds: usize) -> ManagedProgram {
        let rounds = rounds.to_string();
        let words = entry.input[self.size()]
            .split(' ')
            .chain(["--rounds", &rounds]);
        ManagedProgram::new(entry.module.0, entry.module.1).with_arguments(words)
    }

    /// Runs a program. One that fails is reported, and left out.
    fn run(
        &mut self,
        entry: &QuickProgram,
        what: &str,
        config: Config,
    ) -> Result<Option<HostRun>, Error> {
        self.begin(format!("{} {what}", entry.name))?;
        let program = ManagedProgram {
            processor_time: true,
            ..self.program(entry, self.rounds())
        };
        match program.ran(config) {
            Ok(ran) => Ok(Some(ran)),
            Err(e) => {
                self.failures
                    .push(format!("{} {what} failed: {e}", entry.name));
                Ok(None)
            }
        }
    }
}

/// The best of a run's later rounds, ms.
fn best_round(ran: &HostRun) -> Option<f64> {
    best_of(&ran.err)
}

/// The same of what it said on standard error.
fn best_of(err: &[u8]) -> Option<f64> {
    let text = String::from_utf8_lossy(err);
    let rounds: Vec<f64> = text
        .lines()
        .filter_map(|line| {
            line.strip_prefix("round: ")?
                .strip_suffix(" ms")?
                .parse()
                .ok()
        })
        .collect();
    let later = rounds[rounds.len() / 2..].iter().copied();
    later.min_by(f64::total_cmp)
}

/// Runs all programs with all configurations, in turns: as many, or until the means over the first one are known well enough.
fn times(
    study: &mut Study,
    programs: &[&QuickProgram],
    turns: usize,
    kinds: &[(&'static str, &dyn Fn() -> Config)],
) -> Result<Turns, Error> {
    let mut all = Turns::default();
    let names: Vec<&str> = programs.iter().map(|e| e.name).collect();
    for turn in 0..turns {
        let error = |(kind, _): &(&'static str, _)| all.error(&names, kind, kinds[0].0);
        if turn >= LEAST_TURNS && kinds[1..].iter().all(|kind| error(kind) <= KNOWN) {
            let left = (turns - turn) * programs.len() * kinds.len();
            study.runs -= left;
            break;
        }
        for entry in programs {
            for (kind, config) in kinds {
                let ran = study.run(entry, kind, config())?;
                all.note(entry.name, kind, ran.as_ref().and_then(best_round));
            }
        }
    }
    Ok(all)
}

fn overheads(
    study: &mut Study,
    programs: &[&QuickProgram],
    turns: usize,
    out: &mut StudyResult,
) -> Result<(), Error> {
    let with = |checks| {
        move || Config {
            checks: Some(checks),
            ..Config::default()
        }
    };
    let configs: Vec<_> = KINDS.iter().map(|k| (k.1, with(k.0))).collect();
    let clean = with(Checks::None);
    let mut kinds: Vec<(&'static str, &dyn Fn() -> Config)> = vec![("Clean", &clean)];
    kinds.extend(
        configs
            .iter()
            .map(|(name, f)| (*name, f as &dyn Fn() -> Config)),
    );
    kinds.push((AGAIN, &clean));
    let times = times(study, programs, turns, &kinds)?;
    let over = |entry: &QuickProgram, kind| times.over(entry.name, kind, "Clean");
    let mut table = RunTable::new("Time over Clean", "program");
    table.columns = vec![Column::new("Clean", Format::Number, Better::Lower)];
    let names = KINDS.iter().map(|k| k.1).chain([AGAIN]);
    table
        .columns
        .extend(names.map(|name| Column::new(name, Format::Percent, Better::Lower)));
    for entry in programs {
        let kinds = KINDS.iter().map(|k| k.1).chain([AGAIN]);
        let row = std::iter::once(times.typical(entry.name, "Clean"))
            .chain(kinds.map(|kind| over(entry, kind)));
        let row: Vec<Value> = row.map(|v| v.map_or(Value::Missing, Value::from)).collect();
        table.push(entry.name, row);
    }
    let apart = programs.iter().filter_map(|e| over(e, AGAIN)).map(f64::abs);
    let apart: Vec<f64> = apart.collect();
    let noise = format!(
        "the same code measured twice is {:.1} % apart on average, {:.1} % at most",
        mean(&apart).unwrap_or(0.0),
        apart.iter().copied().fold(0.0, f64::max)
    );
    table.notes.push(format!(
        "Clean in ms, the best later round; the others in percent over it, medians of {} turns, which stop where the means' standard errors over turns are at most {KNOWN} points; {noise}.",
        times.number()
    ));
    out.tables.push(table);
    let of = |kind| programs.iter().filter_map(|e| over(e, kind)).collect();
    let means = KINDS.map(|(_, kind, _)| of(kind));
    let claims = overhead_claims(&means, "");
    let noted = claims
        .into_iter()
        .map(|claim| claim.with_note(noise.clone()));
    out.claims.extend(noted);
    Ok(())
}

/// What each kind of checks costs over none, percent, and how much of Unbiased's cost the last two save: the paper's headline. `over` has a
/// value for each program, by kind. `apart` comes after what is told.
fn overhead_claims(over: &[Vec<f64>; KINDS.len()], apart: &str) -> Vec<Claim> {
    let claim = |what: String, published: Option<(f64, f64)>, ours: Option<f64>| {
        let published = published.map_or(Value::Missing, |(a, b)| Value::Range {
            low: f64::min(a, b),
            high: f64::max(a, b),
        });
        let ours = ours.map_or(Value::Missing, Value::from);
        Claim::new("C7", format!("{what}{apart}"), published, ours, "%")
    };
    let mut claims = Vec::new();
    for ((_, kind, published), over) in KINDS.iter().zip(over) {
        // Means of ratios, as the paper's figures have them.
        claims.push(claim(
            format!("{kind}, mean over Clean"),
            *published,
            mean(over),
        ));
    }
    let of = |wanted| KINDS.iter().position(|(checks, ..)| *checks == wanted);
    let Some(unbiased) = of(Checks::Unbiased) else {
        return claims;
    };
    let saved = |all: f64, own: f64| (all > 0.0).then(|| 100.0 * (all - own) / all);
    for kind in [Checks::Profiled, Checks::Quick].into_iter().filter_map(of) {
        let published = KINDS[unbiased].2.zip(KINDS[kind].2);
        let published =
            published.and_then(|(all, own)| saved(all.0, own.0).zip(saved(all.1, own.1)));
        let ours = mean(&over[unbiased]).zip(mean(&over[kind]));
        let ours = ours.and_then(|(all, own)| saved(all, own));
        let what = format!("{}, saved of Unbiased's cost", KINDS[kind].1);
        claims.push(claim(what, published, ours));
    }
    claims
}

fn kernels(
    study: &mut Study,
    programs: &[&QuickProgram],
    turns: usize,
    out: &mut StudyResult,
) -> Result<(), Error> {
    let scratch = Scratch::new().map_err(Error::Hosted)?;
    let unbiased = || scratch.config(Checks::Unbiased, false);
    let quick = || scratch.config(Checks::Profiled, false);
    let kinds: [(&'static str, &dyn Fn() -> Config); 2] =
        [("Unbiased", &unbiased), ("QuickCheck", &quick)];
    let times = times(study, programs, turns, &kinds)?;
    let mut table = RunTable::new("Kernels whose lists survive", "kernel");
    table.columns = vec![
        Column::new("Unbiased", Format::Number, Better::Lower),
        Column::new("QuickCheck", Format::Number, Better::Lower),
        Column::new("less", Format::Percent, Better::Higher),
    ];
    let mut all = Vec::new();
    for entry in programs {
        let time = |kind| times.typical(entry.name, kind);
        let (Some(unbiased), Some(quick), Some(over)) = (
            time("Unbiased"),
            time("QuickCheck"),
            times.over(entry.name, "QuickCheck", "Unbiased"),
        ) else {
            continue;
        };
        let less = -over;
        all.push(less);
        table.push(entry.name, [unbiased.into(), quick.into(), less.into()]);
    }
    table.notes.push(
        format!(
            "The best later round in ms, medians of {} turns. Lines are written back and fenced, on an ordinary file.",
            times.number()
        ),
    );
    out.tables.push(table);
    let ours = mean(&all).map_or(Value::Missing, Value::from);
    out.claims.push(Claim::new(
        "C9",
        "kernels: QuickCheck takes less than Unbiased, mean",
        3.7,
        ours,
        "%",
    ));
    Ok(())
}
