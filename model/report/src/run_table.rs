//! A comparison of runs: one row per run (a page policy, a machine, a size), generic columns.

use crate::fmt::Format;
use crate::{Axis, Chart, Data, Error, Series, Value};
use serde::{Deserialize, Serialize};

/// Which way a column is better.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    /// Less is better: time, conflicts.
    Lower,
    /// More is better: throughput.
    Higher,
    /// Neither: a description.
    #[default]
    Neither,
}

/// One column of a [`RunTable`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Column {
    /// The heading, without its unit.
    pub name: String,
    /// The unit's own word (see [`Format::base_unit`]); empty for none.
    pub unit: String,
    /// How its numbers are stored and printed.
    pub format: Format,
    /// Which way is better.
    pub better: Better,
}

impl Column {
    /// A column whose unit is that of its format.
    pub fn new(name: impl Into<String>, format: Format, better: Better) -> Column {
        Column {
            name: name.into(),
            unit: String::new(),
            format,
            better,
        }
    }

    /// The same column with a unit of its own.
    pub fn with_unit(mut self, unit: impl Into<String>) -> Column {
        self.unit = unit.into();
        self
    }

    /// The heading with a unit.
    pub(crate) fn heading(&self, unit: &str) -> String {
        if unit.is_empty() {
            self.name.clone()
        } else {
            format!("{} ({unit})", self.name)
        }
    }
}

/// One run of a [`RunTable`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The run's name, such as its page policy.
    pub name: String,
    /// One value for each column.
    pub values: Vec<Value>,
}

/// A comparison of runs.
///
/// ```
/// use varve_report::{Better, Column, RunTable, fmt::Format};
/// let mut table = RunTable::new("GUPS on optane-6230", "policy");
/// table.columns.push(Column::new("time", Format::DurationNs, Better::Lower));
/// table.columns.push(Column::new("moved", Format::Bytes, Better::Lower));
/// table.push("static", [2.1e9.into(), 0.0.into()]);
/// table.push("dynamic", [1.7e9.into(), 5e8.into()]);
/// table.push("hotset", [1.9e9.into(), 9e9.into()]);
/// assert_eq!(table.best(0), vec![1]);
/// assert_eq!(table.frontier(0, 1), vec![0, 1]);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunTable {
    /// Subject of the comparison.
    pub title: String,
    /// Kind of the rows: the heading of the first column.
    pub rows_are: String,
    /// The columns after the first.
    pub columns: Vec<Column>,
    /// The runs.
    pub rows: Vec<Row>,
    /// Two columns whose trade-off matters: runs on its frontier are marked.
    #[serde(default)]
    pub trade_off: Option<(usize, usize)>,
    /// Sentences below the table, such as the advice.
    #[serde(default)]
    pub notes: Vec<String>,
}

impl RunTable {
    /// An empty comparison.
    pub fn new(title: impl Into<String>, rows_are: impl Into<String>) -> RunTable {
        RunTable {
            title: title.into(),
            rows_are: rows_are.into(),
            columns: Vec::new(),
            rows: Vec::new(),
            trade_off: None,
            notes: Vec::new(),
        }
    }

    /// Add a run; its values in the order of the columns.
    pub fn push(&mut self, name: impl Into<String>, values: impl IntoIterator<Item = Value>) {
        self.rows.push(Row {
            name: name.into(),
            values: values.into_iter().collect(),
        });
    }

    /// A cell, [`Value::Missing`] where a row is short.
    pub fn value(&self, row: usize, column: usize) -> &Value {
        self.rows
            .get(row)
            .and_then(|r| r.values.get(column))
            .unwrap_or(&Value::Missing)
    }

    /// A cell as a cost: less is better whichever way the column goes. `None` where nothing can be said.
    fn cost(&self, row: usize, column: usize) -> Option<f64> {
        let x = self.value(row, column).number()?;
        match self.columns.get(column)?.better {
            Better::Lower => Some(x),
            Better::Higher => Some(-x),
            Better::Neither => None,
        }
    }

    /// The rows that are best in a column: several when they are equal, none when the column is no
    /// measure, or all its numbers are the same.
    pub fn best(&self, column: usize) -> Vec<usize> {
        let costs: Vec<Option<f64>> = (0..self.rows.len()).map(|r| self.cost(r, column)).collect();
        let Some(least) = costs.iter().flatten().copied().reduce(f64::min) else {
            return Vec::new();
        };
        if costs.iter().flatten().all(|c| *c == least) {
            return Vec::new();
        }
        (0..costs.len())
            .filter(|&r| costs[r] == Some(least))
            .collect()
    }

    /// The Pareto frontier of two columns: rows that no other row beats in one without losing in the other.
    pub fn frontier(&self, a: usize, b: usize) -> Vec<usize> {
        let point = |r: usize| Some((self.cost(r, a)?, self.cost(r, b)?));
        let beaten = |p: (f64, f64)| {
            (0..self.rows.len())
                .filter_map(point)
                .any(|q| q.0 <= p.0 && q.1 <= p.1 && q != p)
        };
        (0..self.rows.len())
            .filter(|&r| point(r).is_some_and(|p| !beaten(p)))
            .collect()
    }

    /// The trade-off as a chart of points, its frontier marked with `◆`; `None` where the table names no
    /// trade-off, no run has both numbers, or all pay the same price, so that nothing is traded.
    pub fn trade_off_chart(&self, id: &str) -> Option<Chart> {
        let (a, b) = self.trade_off?;
        let frontier = self.frontier(a, b);
        let axis = |c: usize| {
            let column = self.columns.get(c)?;
            Some(Axis::new(&column.name, &column.unit, column.format))
        };
        let point = |(r, row): (usize, &Row)| {
            let (x, y) = (self.value(r, b).number()?, self.value(r, a).number()?);
            let mark = if frontier.contains(&r) { "◆ " } else { "" };
            Some(Series::new(format!("{mark}{}", row.name), vec![x], vec![y]))
        };
        let points: Vec<Series> = self.rows.iter().enumerate().filter_map(point).collect();
        if points.len() > 1 && points.iter().all(|p| p.x == points[0].x) {
            return None;
        }
        let (x, y) = (axis(b)?, axis(a)?);
        let title = format!("Trade-off: {} against {}", y.what, x.what);
        let note = "◆ no other run is better in both.";
        let chart = Chart::new(id, title, x, y, Data::Points(points.clone())).with_note(note);
        (!points.is_empty()).then_some(chart)
    }

    /// Whether every row has a value for every column, columns have names of their own, and the trade-off names two of them.
    pub fn check(&self) -> Result<(), Error> {
        let wrong = |why: String| {
            Err(Error::Inconsistent {
                what: format!("table \"{}\"", self.title),
                why,
            })
        };
        let columns = self.columns.len();
        if let Some(row) = self.rows.iter().find(|r| r.values.len() != columns) {
            let have = row.values.len();
            return wrong(format!(
                "row \"{}\" has {have} values for {columns} columns",
                row.name
            ));
        }
        if self
            .trade_off
            .is_some_and(|(a, b)| a >= columns || b >= columns)
        {
            return wrong(format!(
                "the trade-off names a column beyond the {columns} there are"
            ));
        }
        Ok(())
    }

    /// The cells of a column as text, and the column's heading with its unit.
    pub(crate) fn column_text(&self, column: usize) -> (String, Vec<String>) {
        let c = &self.columns[column];
        let values: Vec<&Value> = (0..self.rows.len())
            .map(|r| self.value(r, column))
            .collect();
        let number = |v: &&Value| {
            if let Value::Number(x) = v {
                *x
            } else {
                f64::NAN
            }
        };
        let numbers: Vec<f64> = values.iter().map(number).collect();
        let (unit, mut cells) = c.format.column(&c.unit, &numbers);
        let divisor = c
            .format
            .scaled(&c.unit, crate::fmt::typical(&numbers))
            .divisor;
        for (cell, value) in cells.iter_mut().zip(values) {
            if !matches!(value, Value::Number(_)) {
                *cell = value.divided(divisor).to_string();
            }
        }
        (c.heading(&unit), cells)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn table(points: &[(f64, f64)]) -> RunTable {
        let mut t = RunTable::new("t", "run");
        t.columns
            .push(Column::new("a", Format::Number, Better::Lower));
        t.columns
            .push(Column::new("b", Format::Number, Better::Higher));
        for (i, (a, b)) in points.iter().enumerate() {
            t.push(format!("r{i}"), [(*a).into(), (*b).into()]);
        }
        t
    }

    proptest! {
        /// Every row is on the frontier, or some row on the frontier is at least as good in both.
        #[test]
        fn the_frontier_covers_every_row(
            points in prop::collection::vec((0u8..6, 0u8..6), 1..12)
        ) {
            let points: Vec<(f64, f64)> = points.iter().map(|p| (p.0.into(), p.1.into())).collect();
            let frontier = table(&points).frontier(0, 1);
            prop_assert!(!frontier.is_empty());
            for (i, p) in points.iter().enumerate() {
                let covered = frontier.iter().any(|&f| points[f].0 <= p.0 && points[f].1 >= p.1);
                prop_assert!(covered);
                let beaten = points.iter().any(|q| {
                    (q.0 < p.0 && q.1 >= p.1) || (q.0 <= p.0 && q.1 > p.1)
                });
                prop_assert_eq!(frontier.contains(&i), !beaten);
            }
        }
    }

    #[test]
    fn best_is_silent_where_nothing_can_be_said() {
        let t = table(&[(1.0, 2.0), (1.0, 3.0), (f64::NAN, 3.0)]);
        assert!(t.best(0).is_empty(), "all equal");
        assert_eq!(t.best(1), vec![1, 2], "equal best share the mark");
        assert!(t.best(7).is_empty(), "no such column");
        assert_eq!(
            t.frontier(0, 1),
            vec![1],
            "a row without a number is on no frontier"
        );
    }

    #[test]
    fn where_all_pay_the_same_nothing_is_drawn() {
        let mut t = table(&[(1.0, 5.0), (2.0, 5.0)]);
        t.trade_off = Some((0, 1));
        assert!(t.trade_off_chart("t").is_none());
        t.push("r2", [3.0.into(), 6.0.into()]);
        assert!(t.trade_off_chart("t").is_some());
    }

    #[test]
    fn a_short_row_is_named() {
        let mut t = table(&[(1.0, 2.0)]);
        t.push("short", [1.0.into()]);
        assert_eq!(
            t.check().unwrap_err().to_string(),
            "table \"t\": row \"short\" has 1 values for 2 columns"
        );
    }
}
