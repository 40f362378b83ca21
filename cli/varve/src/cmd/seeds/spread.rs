//! Tables and charts of the same run with several seeds as one: medians, and how far they spread.

use crate::sweep::merged::median;
use varve_report::fmt::Format;
use varve_report::{Better, Chart, Column, Data, RunReport, RunTable, Series, Value};

/// The first table with what `of` makes of each of its numbers over all tables.
fn over(tables: &[&RunTable], of: &dyn Fn(Vec<f64>) -> Option<f64>) -> RunTable {
    let first = tables[0];
    let mut table = first.clone();
    for (place, row) in table.rows.iter_mut().enumerate() {
        for (column, value) in row.values.iter_mut().enumerate() {
            if let Some(number) = of(numbers(tables, place, column)) {
                *value = Value::Number(number);
            }
        }
    }
    table
}

/// A row's numbers in a column, in all tables that have this row.
fn numbers(tables: &[&RunTable], place: usize, column: usize) -> Vec<f64> {
    let name = &tables[0].rows[place].name;
    let same = |table: &&&RunTable| table.rows.get(place).is_some_and(|r| r.name == *name);
    let tables = tables.iter().filter(same);
    tables
        .filter_map(|table| table.value(place, column).number())
        .collect()
}

fn ends(values: &[f64]) -> (f64, f64) {
    let ends = |all: (f64, f64), x: &f64| (all.0.min(*x), all.1.max(*x));
    values.iter().fold((f64::NAN, f64::NAN), ends)
}

/// From the lowest to the highest, over the median.
fn spread(values: Vec<f64>) -> Option<f64> {
    let (low, high) = ends(&values);
    Some((high - low) / median(values)?).filter(|x| x.is_finite())
}

/// The first table with the median of each number, and how far the first column spreads.
pub fn medians(tables: &[&RunTable]) -> RunTable {
    let first = tables[0];
    let mut table = over(tables, &median);
    table.notes.clear();
    table.trade_off = first.trade_off.map(|(a, b)| {
        let moved = |column| if column > 0 { column + 1 } else { column };
        (moved(a), moved(b))
    });
    let at = 1.min(table.columns.len());
    let column = Column::new("spread", Format::Percent, Better::Neither);
    table.columns.insert(at, column);
    for (place, row) in table.rows.iter_mut().enumerate() {
        let spread = spread(numbers(tables, place, 0)).map(|share| 100.0 * share);
        let value = spread.map_or(Value::Missing, Value::Number);
        row.values.insert(at, value);
    }
    table.notes.push(format!(
        "Medians of {} seeds. Spread: from the lowest to the highest {}, over the median.",
        tables.len(),
        first.columns.first().map_or("value", |column| &column.name)
    ));
    table
}

/// The lowest and the highest of each number, and medians of the tables that each run has besides.
pub fn details(reports: &[&RunReport]) -> Vec<RunTable> {
    let seeds = reports.len();
    let tables: Vec<&RunTable> = reports.iter().map(|report| &report.table).collect();
    let end = |word: &str, of: &dyn Fn(Vec<f64>) -> Option<f64>| {
        let mut table = over(&tables, of);
        table.title = format!("{word} of {seeds} seeds");
        table.notes.clear();
        table.trade_off = None;
        // Each number may be of another run, so none of these rows is better than another.
        for column in &mut table.columns {
            column.better = Better::Neither;
        }
        table
    };
    let some = |x: f64| Some(x).filter(|x| x.is_finite());
    let mut all = vec![
        end("Lowest", &|values| some(ends(&values).0)),
        end("Highest", &|values| some(ends(&values).1)),
    ];
    for (place, first) in reports[0].details.iter().enumerate() {
        let same = reports
            .iter()
            .filter_map(|report| report.details.get(place));
        let same: Vec<&RunTable> = same.filter(|table| table.title == first.title).collect();
        let mut table = over(&same, &median);
        table
            .notes
            .push(format!("Medians of {} seeds.", same.len()));
        all.push(table);
    }
    all
}

/// The charts that have the same points with every seed, with medians of their values.
pub fn charts(reports: &[&RunReport]) -> Vec<Chart> {
    let all = |id: &str| -> Option<Vec<&Chart>> {
        reports
            .iter()
            .map(|report| report.charts.iter().find(|chart| chart.id == id))
            .collect()
    };
    let merge = |first: &Chart| merged(&all(&first.id)?);
    reports[0].charts.iter().filter_map(merge).collect()
}

fn merged(charts: &[&Chart]) -> Option<Chart> {
    let mut chart = charts[0].clone();
    let mut widest = 0f64;
    let mut one = |values: Vec<f64>| {
        widest = widest.max(spread(values.clone()).unwrap_or(0.0));
        median(values).unwrap_or(f64::NAN)
    };
    let others: Vec<&Data> = charts.iter().map(|chart| &chart.data).collect();
    match &mut chart.data {
        Data::Bars { groups, bars, .. } => {
            let same = |data: &&Data| match data {
                Data::Bars {
                    groups: g, bars: b, ..
                } if g == groups && b.len() == bars.len() => Some(b.clone()),
                _ => None,
            };
            let all = others.iter().map(same).collect::<Option<Vec<_>>>()?;
            for (place, bar) in bars.iter_mut().enumerate() {
                for (at, value) in bar.values.iter_mut().enumerate() {
                    let values = all.iter().filter_map(|bars| bars[place].values.get(at));
                    *value = one(values.copied().filter(|x| x.is_finite()).collect());
                }
            }
        }
        Data::Lines(series) | Data::Points(series) => {
            let same = |data: &&Data| match data {
                Data::Lines(s) | Data::Points(s) if alike(s, series) => Some(s.clone()),
                _ => None,
            };
            let all = others.iter().map(same).collect::<Option<Vec<_>>>()?;
            for (place, line) in series.iter_mut().enumerate() {
                for at in 0..line.x.len() {
                    line.x[at] = median(all.iter().map(|s| s[place].x[at]).collect())?;
                    line.y[at] = one(all.iter().map(|s| s[place].y[at]).collect());
                }
            }
        }
        // Timelines differ with each seed.
        Data::HeatMap { .. } | Data::Gantt { .. } => return None,
    }
    let said = format!(
        "Medians of {} seeds; from its lowest to its highest, a value spreads by up to {:.1} % of its median.",
        charts.len(),
        100.0 * widest
    );
    chart.note = match chart.note.is_empty() {
        true => said,
        false => format!("{} {said}", chart.note),
    };
    Some(chart)
}

/// Series by the same names, with as many points.
fn alike(a: &[Series], b: &[Series]) -> bool {
    a.len() == b.len()
        && a.iter()
            .zip(b)
            .all(|(a, b)| a.name == b.name && a.x.len() == b.x.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use varve_report::{Axis, Bars};

    #[test]
    fn a_table_of_medians_tells_how_far_they_spread() {
        let table = |time: f64| {
            let mut table = RunTable::new("t", "plan");
            table.columns = vec![
                Column::new("time", Format::DurationNs, Better::Lower),
                Column::new("name", Format::Number, Better::Neither),
            ];
            table.push("dram", [time.into(), Value::Text("x".into())]);
            table
        };
        let (a, b, c) = (table(90.0), table(100.0), table(120.0));
        let all = medians(&[&a, &b, &c]);
        assert!(all.check().is_ok());
        assert_eq!(
            all.rows[0].values,
            [100.0.into(), 30.0.into(), Value::Text("x".into())]
        );
        let report = |table: RunTable| RunReport {
            table,
            ..RunReport::default()
        };
        let reports = [report(a), report(b), report(c)];
        let details = details(&reports.iter().collect::<Vec<_>>());
        let first = |at: usize| details[at].rows[0].values[0].clone();
        assert_eq!([first(0), first(1)], [90.0.into(), 120.0.into()]);
        assert_eq!(details[0].title, "Lowest of 3 seeds");
    }

    #[test]
    fn charts_have_medians_where_all_seeds_have_the_same_points() {
        let axis = || Axis::new("a", "", Format::Number);
        let bars = |values: Vec<f64>| Data::Bars {
            groups: vec!["g".into(); values.len()],
            bars: vec![Bars::new("b", values)],
            stacked: false,
        };
        let line = |x: Vec<f64>| Data::Lines(vec![Series::new("l", x.clone(), x)]);
        let report = |seed: f64| RunReport {
            charts: vec![
                Chart::new("bars", "", axis(), axis(), bars(vec![1.0, seed])),
                Chart::new("long", "", axis(), axis(), line(vec![1.0; seed as usize])),
                Chart::new("line", "", axis(), axis(), line(vec![0.0, seed])),
            ],
            ..RunReport::default()
        };
        let reports = [report(2.0), report(4.0), report(3.0)];
        let all = charts(&reports.iter().collect::<Vec<_>>());
        let ids: Vec<&str> = all.iter().map(|chart| &chart.id[..]).collect();
        assert_eq!(ids, ["bars", "line"], "lines of other lengths are left out");
        assert_eq!(all[0].data, bars(vec![1.0, 3.0]));
        assert_eq!(all[1].data, line(vec![0.0, 3.0]));
        assert!(
            all[0].note.contains("up to 66.7 % of its median"),
            "{}",
            all[0].note
        );
    }
}
