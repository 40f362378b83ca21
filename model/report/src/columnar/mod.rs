//! Results as Parquet columns, with each column's unit in the file's key-value metadata.
//!
//! Every file carries `machine`, `seed`, `version` and `command`; a column `c` with a unit carries
//! `unit.c`. Numbers are in the base units that [`crate::fmt::Format`] names, never scaled.

mod records;
mod writer;

use crate::fmt::Format;
use crate::{Chart, Data, Error, Origin, RunTable, StudyResult, Value};
pub use records::{NamedCells, Records, records};
use std::path::{Path, PathBuf};
pub use writer::Cells;
use writer::File;

/// Write a study's claims. A value takes three columns: as text, and its lowest and highest number
/// (equal for a number, one of them null for a bound, both null for words).
pub fn claims(result: &StudyResult, path: &Path) -> Result<(), Error> {
    let claims = &result.claims;
    let text = |f: fn(&crate::Claim) -> &str| Cells::text(claims.iter().map(|c| Some(f(c))));
    let mut file = File::new(&result.origin());
    file.note("study", &result.study);
    file.column("id", "", text(|c| &c.id));
    file.column("what", "", text(|c| &c.what));
    type Side = fn(&crate::Claim) -> &Value;
    let sides: [(&str, Side); 2] = [("published", |c| &c.published), ("ours", |c| &c.ours)];
    for (name, side) in sides {
        let values = || claims.iter().map(side);
        let words = values().map(|v| (*v != Value::Missing).then(|| v.to_string()));
        // The unit differs by row and has a column of its own.
        file.column(name, "", Cells::text(words));
        file.column(
            &format!("{name}_low"),
            "",
            Cells::numbers(values().map(|v| v.bounds().0)),
        );
        file.column(
            &format!("{name}_high"),
            "",
            Cells::numbers(values().map(|v| v.bounds().1)),
        );
    }
    file.column("unit", "", text(|c| &c.unit));
    file.column("ratio", "x", Cells::numbers(claims.iter().map(|c| c.ratio)));
    file.column("note", "", text(|c| &c.note));
    file.column("kind", "", text(|c| c.kind.word()));
    let spread = |end: fn((f64, f64)) -> f64| claims.iter().map(move |c| c.spread.map(end));
    file.column("spread_low", "", Cells::numbers(spread(|s| s.0)));
    file.column("spread_high", "", Cells::numbers(spread(|s| s.1)));
    let moved = || claims.iter().map(|c| c.sensitivity.as_ref());
    file.column(
        "rule",
        "",
        Cells::text(moved().map(|s| s.map(|s| &s.rule[..]))),
    );
    file.column(
        "ours_without_rule",
        "",
        Cells::numbers(moved().map(|s| s.and_then(|s| s.ours.number()))),
    );
    file.write(path)
}

/// Write a comparison: the runs' names, then one column for each column of the table.
///
/// ```
/// # fn main() -> Result<(), varve_report::Error> {
/// use varve_report::{Better, Column, Origin, RunTable, columnar, fmt::Format};
/// let mut table = RunTable::new("sort", "policy");
/// table.columns.push(Column::new("time", Format::DurationNs, Better::Lower));
/// table.push("static", [1.5e9.into()]);
/// let folder = tempfile::tempdir().unwrap();
/// columnar::table(&table, &Origin::default(), &folder.path().join("table.parquet"))?;
/// # Ok(())
/// # }
/// ```
pub fn table(table: &RunTable, origin: &Origin, path: &Path) -> Result<(), Error> {
    table.check()?;
    let mut file = File::new(origin);
    file.note("title", &table.title);
    file.column(
        &table.rows_are,
        "",
        Cells::text(table.rows.iter().map(|r| Some(&r.name))),
    );
    for (i, c) in table.columns.iter().enumerate() {
        let values = || (0..table.rows.len()).map(|r| table.value(r, i));
        let numeric = values().all(|v| matches!(v, Value::Number(_) | Value::Missing));
        let cells = if numeric && c.format == Format::Integer {
            Cells::Integers(values().map(|v| v.number().map(|x| x as i64)).collect())
        } else if numeric {
            Cells::numbers(values().map(Value::number))
        } else {
            Cells::text(values().map(|v| (*v != Value::Missing).then(|| v.to_string())))
        };
        file.column(&c.name, &c.format.base_unit(&c.unit), cells);
    }
    file.write(path)
}

/// Write a chart's data, one point, bar, cell or span per row.
pub fn chart(chart: &Chart, origin: &Origin, path: &Path) -> Result<(), Error> {
    chart.check()?;
    let x = chart.x.format.base_unit(&chart.x.unit);
    let y = chart.y.format.base_unit(&chart.y.unit);
    let mut file = File::new(origin);
    for (key, text) in [
        ("chart", &chart.id),
        ("title", &chart.title),
        ("x", &chart.x.what),
        ("y", &chart.y.what),
    ] {
        file.note(key, text);
    }
    match &chart.data {
        Data::Lines(series) | Data::Points(series) => {
            let of = |s: &'_ crate::Series| vec![s.name.clone(); s.x.len()];
            file.column(
                "series",
                "",
                Cells::text(series.iter().flat_map(of).map(Some)),
            );
            let published = series.iter().flat_map(|s| vec![s.published; s.x.len()]);
            file.column("published", "", Cells::Flags(published.collect()));
            file.column(
                "x",
                &x,
                Cells::numbers(series.iter().flat_map(|s| &s.x).map(|v| Some(*v))),
            );
            file.column(
                "y",
                &y,
                Cells::numbers(series.iter().flat_map(|s| &s.y).map(|v| Some(*v))),
            );
        }
        Data::Bars { groups, bars, .. } => {
            let names = bars
                .iter()
                .flat_map(|b| vec![&b.name; groups.len()])
                .map(Some);
            file.column(
                "group",
                "",
                Cells::text(bars.iter().flat_map(|_| groups).map(Some)),
            );
            file.column("bar", "", Cells::text(names));
            file.column(
                "y",
                &y,
                Cells::numbers(bars.iter().flat_map(|b| &b.values).map(|v| Some(*v))),
            );
        }
        Data::HeatMap { columns, rows } => {
            let names = rows
                .iter()
                .flat_map(|r| vec![&r.name; columns.len()])
                .map(Some);
            file.column("row", "", Cells::text(names));
            file.column(
                "column",
                "",
                Cells::text(rows.iter().flat_map(|_| columns).map(Some)),
            );
            file.column(
                "y",
                &y,
                Cells::numbers(rows.iter().flat_map(|r| &r.cells).map(|v| Some(*v))),
            );
        }
        Data::Gantt { lanes, spans } => {
            file.column(
                "lane",
                "",
                Cells::text(spans.iter().map(|s| Some(&lanes[s.lane]))),
            );
            file.column("name", "", Cells::text(spans.iter().map(|s| Some(&s.name))));
            file.column("kind", "", Cells::text(spans.iter().map(|s| Some(&s.kind))));
            file.column(
                "start",
                &x,
                Cells::numbers(spans.iter().map(|s| Some(s.start))),
            );
            file.column("end", &x, Cells::numbers(spans.iter().map(|s| Some(s.end))));
        }
    }
    file.write(path)
}

/// Write `claims.parquet`, one `chart-ID.parquet` per chart and one `table-N.parquet` per table of a
/// study into a folder that exists; the files written, in that order.
pub fn study(result: &StudyResult, folder: &Path) -> Result<Vec<PathBuf>, Error> {
    result.check()?;
    let origin = result.origin();
    let mut written = vec![folder.join("claims.parquet")];
    claims(result, &written[0])?;
    for c in &result.charts {
        let path = folder.join(format!("chart-{}.parquet", c.id));
        chart(c, &origin, &path)?;
        written.push(path);
    }
    for (i, of) in result.tables.iter().enumerate() {
        let path = folder.join(format!("table-{}.parquet", i + 1));
        table(of, &origin, &path)?;
        written.push(path);
    }
    Ok(written)
}
