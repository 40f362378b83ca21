//! Rows of all results: each run with the values of its point, and a table with medians over seeds.

use super::spec::Sweep;
use serde_json::{Map, Value as Json};
use std::collections::BTreeMap;
use varve_report::fmt::Format;
use varve_report::{Better, Column, RunReport, RunTable, Value};

/// Rows that a table shows; all are in the files.
const MOST_ROWS: usize = 60;
const SEED: &str = "seed";

/// One run of a point.
pub struct Row {
    /// The value of each axis, by its place.
    pub at: Vec<usize>,
    /// The run's own name, if its point has several.
    pub name: Option<String>,
    /// All that it measured.
    pub figures: Map<String, Json>,
}

impl Row {
    /// A figure that is a number.
    pub fn number(&self, figure: &str) -> Option<f64> {
        let mut at = self.figures.get(figure);
        if at.is_none() {
            let mut parts = figure.split('.');
            at = parts.next().and_then(|first| self.figures.get(first));
            for part in parts {
                at = at.and_then(|inner| inner.get(part));
            }
        }
        at.and_then(Json::as_f64)
    }
}

/// The rows of points that are done, in their order.
pub fn rows<'a>(sweep: &Sweep, done: impl Iterator<Item = (usize, &'a RunReport)>) -> Vec<Row> {
    // Where a point is of one plan or policy, what else it ran to compare with (all in DRAM) is left out.
    let placed = ["plan", "policy"].into_iter().find_map(|name| {
        let axis = sweep.axes.iter().position(|axis| axis.name == name)?;
        Some((axis, name))
    });
    let mut rows = Vec::new();
    for (number, report) in done {
        let at = sweep.at(number);
        let asked = placed.map(|(axis, name)| (name, sweep.shown(axis, at[axis])));
        let is_asked = |run: &Json| {
            let asked = asked.as_ref();
            asked.is_some_and(|(name, value)| run.get(name).and_then(Json::as_str) == Some(value))
        };
        let only = report.runs.iter().filter(|run| is_asked(run)).count() == 1;
        for (run, named) in report.runs.iter().zip(&report.table.rows) {
            let Json::Object(figures) = run else { continue };
            if only && !is_asked(run) {
                continue;
            }
            rows.push(Row {
                at: at.clone(),
                name: (!only && report.runs.len() > 1).then(|| named.name.clone()),
                figures: figures.clone(),
            });
        }
    }
    rows
}

/// The runs as JSON: what each measured, and the values of its axes before it.
pub fn records(sweep: &Sweep, rows: &[Row]) -> Vec<Json> {
    let record = |row: &Row| {
        let mut all = Map::new();
        for axis in sweep.varying() {
            let key = format!("sweep.{}", sweep.axes[axis].name);
            all.insert(key, sweep.shown(axis, row.at[axis]).into());
        }
        all.extend(row.figures.clone());
        Json::Object(all)
    };
    rows.iter().map(record).collect()
}

/// Rows that differ in nothing but their seed.
pub struct Group<'a> {
    /// The value of each axis; that of the seed says nothing.
    pub at: Vec<usize>,
    pub name: Option<&'a str>,
    pub rows: Vec<&'a Row>,
}

impl Group<'_> {
    /// The median of a figure.
    pub fn median(&self, figure: &str) -> Option<f64> {
        median(
            self.rows
                .iter()
                .filter_map(|row| row.number(figure))
                .collect(),
        )
    }

    /// From the lowest to the highest, over the median.
    fn spread(&self, figure: &str) -> Option<f64> {
        let values = || self.rows.iter().filter_map(|row| row.number(figure));
        let (low, high) = (
            values().fold(f64::NAN, f64::min),
            values().fold(f64::NAN, f64::max),
        );
        let spread = (high - low) / self.median(figure)?;
        spread.is_finite().then_some(spread)
    }
}

pub fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len().checked_sub(1)? / 2;
    Some((values[middle] + values[values.len() / 2]) / 2.0)
}

/// Groups in the order of their first rows.
pub fn groups<'a>(sweep: &Sweep, rows: &'a [Row]) -> Vec<Group<'a>> {
    let seed = sweep.axes.iter().position(|axis| axis.name == SEED);
    let mut places = BTreeMap::new();
    let mut groups: Vec<Group> = Vec::new();
    for row in rows {
        let mut at = row.at.clone();
        if let Some(seed) = seed {
            at[seed] = 0;
        }
        let place = *places
            .entry((at.clone(), &row.name))
            .or_insert(groups.len());
        if place == groups.len() {
            groups.push(Group {
                at,
                name: row.name.as_deref(),
                rows: Vec::new(),
            });
        }
        groups[place].rows.push(row);
    }
    groups
}

/// The values that a group's row is called by.
pub fn called(sweep: &Sweep, group: &Group, without: &[&str]) -> String {
    let shown = |axis: usize| {
        let name = &sweep.axes[axis].name;
        (name != SEED && !without.contains(&name.as_str()))
            .then(|| sweep.shown(axis, group.at[axis]))
    };
    let mut words: Vec<String> = sweep.varying().filter_map(shown).collect();
    words.extend(group.name.map(String::from));
    words.join(", ")
}

/// A row for each group.
pub fn table(sweep: &Sweep, groups: &[Group]) -> RunTable {
    let axes: Vec<&str> = sweep
        .varying()
        .map(|axis| sweep.axes[axis].name.as_str())
        .collect();
    let axes: Vec<&str> = axes.into_iter().filter(|name| *name != SEED).collect();
    let title = match sweep.about.is_empty() {
        true => sweep.stem.clone(),
        false => sweep.about.clone(),
    };
    let rows_are = match axes.is_empty() {
        true => "run".into(),
        false => axes.join(", "),
    };
    let mut table = RunTable::new(title, rows_are);
    let seeded = groups.iter().any(|group| group.rows.len() > 1);
    table
        .columns
        .push(Column::new("time", Format::DurationNs, Better::Lower));
    if seeded {
        let spread = Column::new("spread", Format::Percent, Better::Neither);
        table.columns.push(spread.with_unit("% of seeds"));
    }
    table
        .columns
        .push(Column::new("DRAM", Format::Percent, Better::Lower));
    table
        .columns
        .push(Column::new("moved", Format::Bytes, Better::Lower));
    let value = |number: Option<f64>| number.map_or(Value::Missing, Value::Number);
    for group in groups.iter().take(MOST_ROWS) {
        let share = || {
            let (fast, slow) = (group.median("fast_bytes")?, group.median("slow_bytes")?);
            Some(100.0 * fast / (fast + slow)).filter(|share| share.is_finite())
        };
        let mut cells = vec![value(group.median("seconds").map(|s| s * 1e9))];
        if seeded {
            cells.push(value(group.spread("seconds").map(|share| 100.0 * share)));
        }
        cells.extend([value(share()), value(group.median("moved_bytes"))]);
        table.push(called(sweep, group, &[]), cells);
    }
    if groups.len() > MOST_ROWS {
        table.notes.push(format!(
            "{} more rows are in the files.",
            groups.len() - MOST_ROWS
        ));
    }
    if seeded {
        table.notes.push("Figures are medians over seeds.".into());
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_are_of_what_is_there() {
        assert_eq!(median(vec![]), None);
        assert_eq!(median(vec![3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![4.0, 1.0]), Some(2.5));
    }
}
