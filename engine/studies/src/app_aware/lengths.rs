//! E8 and E9 by how long programs run, which the paper does not say: the cost of moving pages is a smaller part of a longer group, and the saving by
//! order depends on how long the disturbing program runs.

use super::Setup;
use crate::Effort;
use varve_jobs::compare::{Compared, Making, compare, run_all};
use varve_jobs::group::Modelled;
use varve_jobs::{Error, Group, GroupResult, Memory, Strategy, plan};
use varve_machine::model::RunError;
use varve_report::fmt::Format;
use varve_report::{
    Axis, Better, Chart, Column, Data, RunTable, Scale, Series, StudyResult, Value,
};

/// How many times as long all programs of a group are for what moving costs: to some minutes, as the paper's take.
fn of_all(effort: Effort) -> &'static [f64] {
    match effort {
        Effort::Full => &[2.0, 8.0],
        Effort::Quick | Effort::Tiny => &[],
    }
}

/// How many times as long the program is that disturbs others, for what order saves, as far as its passes can be divided.
const OF_ONE: [f64; 5] = [0.25, 0.5, 1.0, 2.0, 4.0];

/// A group under Linux and under a strategy, with programs that run this factor longer.
struct Longer {
    times: f64,
    linux: GroupResult,
    other: GroupResult,
}

impl Longer {
    fn of(times: f64, results: Vec<GroupResult>) -> Longer {
        let [linux, other] = results
            .try_into()
            .expect("a result for each of two strategies");
        Longer {
            times,
            linux,
            other,
        }
    }

    fn moving(&self) -> f64 {
        100.0 * self.other.moving_s / self.other.seconds
    }

    fn saves(&self) -> f64 {
        100.0 * (1.0 - self.other.seconds / self.linux.seconds)
    }
}

/// The specification of a workload that runs this factor longer, if it makes passes.
fn longer(line: &str, times: f64) -> Result<String, Error> {
    let longer = varve_workloads::registry::longer(line, times);
    let longer = longer.map_err(|e| Error::Run(RunError::Program(e.to_string()).into()))?;
    Ok(longer.unwrap_or_else(|| line.into()))
}

/// A group whose programs run this factor longer, as far as `which` says so.
fn lengthened(group: &Group, which: &dyn Fn(usize) -> bool, times: f64) -> Result<Group, Error> {
    let mut group = group.clone();
    for (i, program) in group.programs.iter_mut().enumerate() {
        if let Some(Modelled::Workload(line)) = &mut program.modelled
            && which(i)
            && times != 1.0
        {
            *line = longer(line, times)?;
        }
    }
    Ok(group)
}

/// All programs run longer. What each asks of memory is known: times are in proportion, so that none is profiled at this length.
fn all_longer(
    setup: &Setup,
    group: &Group,
    times: f64,
    known: &Compared,
    strategy: Strategy,
    making: &Making,
) -> Result<Longer, Error> {
    let group = lengthened(group, &|_| true, times)?;
    let mut demands = known.demands.clone();
    let points = demands
        .iter_mut()
        .flat_map(|d| d.curves.iter_mut())
        .flatten();
    points.for_each(|point| point.seconds *= times);
    let plans = [Strategy::LINUX, strategy].map(|s| plan(&group, &demands, &known.host, s));
    let plans = plans.into_iter().collect::<Result<Vec<_>, _>>()?;
    let results = run_all(&group, &plans, &setup.spec, making)?;
    Ok(Longer::of(times, results))
}

/// The cost of moving pages for a group whose programs all run longer: the results under Linux and otherwise are known at the usual length. Returns
/// the longest run.
pub fn moving(
    setup: &Setup,
    group: &Group,
    key: &str,
    known: &Compared,
    (linux, other): (&GroupResult, &GroupResult),
    making: &Making,
    out: &mut StudyResult,
) -> Result<GroupResult, Error> {
    let mut all = vec![Longer {
        times: 1.0,
        linux: linux.clone(),
        other: other.clone(),
    }];
    for &times in of_all(setup.options.effort) {
        all.push(all_longer(
            setup,
            group,
            times,
            known,
            other.strategy,
            making,
        )?);
    }
    if all.len() > 1 {
        let title = format!("{}: moving pages, by how long its programs run", group.name);
        let mut table = RunTable::new(title.clone(), "length");
        table.columns = vec![
            Column::new("time", Format::DurationNs, Better::Neither),
            Column::new("moved", Format::Bytes, Better::Neither),
            Column::new("moving", Format::Percent, Better::Lower),
            Column::new("saved", Format::Percent, Better::Neither),
        ];
        for l in &all {
            table.push(
                format!("{} x", l.times),
                [
                    (l.other.seconds * 1e9).into(),
                    (l.other.moved_bytes as f64).into(),
                    l.moving().into(),
                    l.saves().into(),
                ],
            );
        }
        out.tables.push(table);
        let points = all.iter().map(|l| (l.other.seconds * 1e9, l.moving()));
        let (x, y): (Vec<f64>, Vec<f64>) = points.unzip();
        let time = Axis::new("time of the group", "", Format::DurationNs).on(Scale::Log10);
        let part = Axis::new("moving", "", Format::Percent).on(Scale::Log10);
        let lines = Data::Lines(vec![Series::new("moving", x, y)]);
        out.charts.push(Chart::new(
            format!("{key}-moving"),
            title,
            time,
            part,
            lines,
        ));
    }
    let last = all.pop().expect("there is a length");
    Ok(last.other)
}

/// The saving by order if the first program in slow memory, which disturbs others, runs for other times.
pub fn order(
    setup: &Setup,
    group: &Group,
    order: Strategy,
    making: &Making,
    out: &mut StudyResult,
) -> Result<(), Error> {
    if setup.options.effort != Effort::Full {
        return Ok(());
    }
    let slow = |program: &varve_jobs::group::Program| program.memory == Some(Memory::Slow);
    let Some(disturbs) = group.programs.iter().position(slow) else {
        return Ok(());
    };
    let Some(Modelled::Workload(line)) = &group.programs[disturbs].modelled else {
        return Ok(());
    };
    let name = &group.programs[disturbs].name;
    let title = format!("{}: what order saves, by how long {name} runs", group.name);
    let mut table = RunTable::new(title, "length");
    table.columns = vec![
        Column::new("as given", Format::DurationNs, Better::Lower),
        Column::new("in order", Format::DurationNs, Better::Lower),
        Column::new("saved", Format::Percent, Better::Neither),
    ];
    for times in OF_ONE {
        // Of a single pass there is no part.
        if times < 1.0 && longer(line, times)? == longer(line, 1.0)? {
            continue;
        }
        let group = lengthened(group, &|i| i == disturbs, times)?;
        let strategies = [Strategy::LINUX, order];
        let l = Longer::of(
            times,
            compare(&group, &setup.spec, &strategies, making)?.results,
        );
        let row = [
            (l.linux.seconds * 1e9).into(),
            (l.other.seconds * 1e9).into(),
            l.other.saves(&l.linux).map_or(Value::Missing, Value::from),
        ];
        table.push(format!("{times} x"), row);
    }
    out.tables.push(table);
    Ok(())
}
