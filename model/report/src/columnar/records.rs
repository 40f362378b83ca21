//! Runs as they are, whatever their shape: a row per run, and a file per list in them.

use super::writer::{Cells, File};
use crate::{Error, RunReport};
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};

/// Objects in objects become columns with dots in their names, such as `stalls.load`.
type Flat = Vec<(String, Value)>;

/// A column: its name and its cells.
pub type NamedCells = (String, Cells);

/// Runs as columns.
pub struct Records {
    /// One row per run and one column per figure.
    pub runs: Vec<NamedCells>,
    /// Each list of objects in runs, such as a timeline: its name, and one row per element.
    pub lists: Vec<(String, Vec<NamedCells>)>,
}

impl Records {
    /// Runs, which are JSON objects, as columns whose names and units are those of the JSON. `names` are those of runs:
    /// elements of lists have them in a column named `rows_are`.
    ///
    /// # Errors
    /// A run that is no object.
    pub fn of(runs: &[Value], rows_are: &str, names: &[&str]) -> Result<Records, Error> {
        let mut whole: Vec<Flat> = Vec::new();
        let mut lists: Vec<(String, Vec<Flat>)> = Vec::new();
        for (at, run) in runs.iter().enumerate() {
            let Value::Object(run) = run else {
                return Err(Error::Inconsistent {
                    what: format!("run {at}"),
                    why: "it is no object".into(),
                });
            };
            let mut row = Flat::new();
            flatten("", run, &mut row);
            // Lists of objects are tables of their own; the other values stay in their row.
            let (own, rest): (Flat, Flat) = row.into_iter().partition(|(_, v)| is_list(v));
            whole.push(rest);
            for (name, list) in own {
                let place = lists.iter().position(|l| l.0 == name).unwrap_or_else(|| {
                    lists.push((name, Vec::new()));
                    lists.len() - 1
                });
                for element in list.as_array().into_iter().flatten() {
                    let mut row = vec![(rows_are.to_string(), names.get(at).copied().into())];
                    flatten("", element.as_object().unwrap_or(&Map::new()), &mut row);
                    lists[place].1.push(row);
                }
            }
        }
        let lists = lists.into_iter().map(|(name, rows)| (name, columns(&rows)));
        Ok(Records {
            runs: columns(&whole),
            lists: lists.collect(),
        })
    }
}

/// Write `runs.parquet`, with one row per run and one column per figure, and one `runs-LIST.parquet` for each
/// list of objects in a run, such as its timeline, with one row per element, into a folder that exists; the files
/// written. None where the report has no runs. Names and units are those of the JSON.
pub fn records(report: &RunReport, folder: &Path) -> Result<Vec<PathBuf>, Error> {
    if report.runs.is_empty() {
        return Ok(Vec::new());
    }
    let names: Vec<&str> = report.table.rows.iter().map(|r| r.name.as_str()).collect();
    let records = Records::of(&report.runs, &report.table.rows_are, &names)?;
    let mut written = vec![folder.join("runs.parquet")];
    write(report, records.runs, &written[0])?;
    for (name, columns) in records.lists {
        let path = folder.join(format!("runs-{name}.parquet"));
        write(report, columns, &path)?;
        written.push(path);
    }
    Ok(written)
}

fn is_list(value: &Value) -> bool {
    let objects = |list: &Vec<Value>| !list.is_empty() && list.iter().all(Value::is_object);
    value.as_array().is_some_and(objects)
}

fn flatten(prefix: &str, object: &Map<String, Value>, out: &mut Flat) {
    for (key, value) in object {
        let name = format!("{prefix}{key}");
        match value {
            Value::Object(inner) => flatten(&format!("{name}."), inner, out),
            // An empty list has no rows for a file of its own.
            Value::Array(list) if list.is_empty() => {}
            value => out.push((name, value.clone())),
        }
    }
}

fn columns(rows: &[Flat]) -> Vec<NamedCells> {
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in rows.iter().flatten() {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    let of = |name: &str| {
        let of = |row: &Flat| row.iter().find(|c| c.0 == name).map(|c| c.1.clone());
        let cells: Vec<Value> = rows.iter().map(|r| of(r).unwrap_or_default()).collect();
        (name.to_string(), column(&cells))
    };
    names.into_iter().map(of).collect()
}

fn write(report: &RunReport, columns: Vec<NamedCells>, path: &Path) -> Result<(), Error> {
    let mut file = File::new(&report.origin);
    file.note("title", &report.table.title);
    for (name, cells) in columns {
        file.column(&name, "", cells);
    }
    file.write(path)
}

/// Numbers where all are numbers, whole ones as such, else texts; other values are written as their JSON.
fn column(cells: &[Value]) -> Cells {
    let whole = |c: &Value| c.as_i64().is_some() || c.is_null();
    if cells.iter().all(whole) && !cells.iter().all(Value::is_null) {
        return Cells::Integers(cells.iter().map(Value::as_i64).collect());
    }
    if cells.iter().all(|c| c.is_number() || c.is_null()) {
        return Cells::numbers(cells.iter().map(Value::as_f64));
    }
    if cells.iter().all(Value::is_boolean) {
        return Cells::Flags(cells.iter().filter_map(Value::as_bool).collect());
    }
    Cells::text(cells.iter().map(|c| match c {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }))
}
