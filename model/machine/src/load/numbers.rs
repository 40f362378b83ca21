//! Single numbers of a machine: their range, and whether each has a source.

use super::fields::{self, FIELDS, Field, FieldType};
use crate::describe::Machine;
use varve_spec::Bytes;

/// Key, problem, remedy.
pub type Finding = (String, String, String);

/// Problems of single numbers and their sources, even in a file that lacks fields.
pub fn table_findings(tree: &toml::Table) -> Vec<Finding> {
    let mut found = Vec::new();
    let numbers = numbers(tree);
    ranges(&numbers, &mut found);
    sources(tree, &numbers, &mut found);
    found
}

/// A machine as the table that its file holds.
pub fn tree(m: &Machine) -> toml::Table {
    toml::Table::try_from(m).expect("every field of a machine has a TOML form")
}

/// Every number of a machine by its dotted key, in the order of [`FIELDS`].
fn numbers(tree: &toml::Table) -> Vec<(&'static str, f64)> {
    FIELDS
        .iter()
        .filter(|f| f.ty.is_number())
        .filter_map(|f| {
            let leaf = lookup(tree, f.key)?;
            let number = match leaf {
                toml::Value::Integer(i) => *i as f64,
                toml::Value::Float(x) => *x,
                toml::Value::String(s) => s.parse::<Bytes>().ok()?.0 as f64,
                _ => return None,
            };
            Some((f.key, number))
        })
        .collect()
}

fn lookup<'t>(tree: &'t toml::Table, key: &str) -> Option<&'t toml::Value> {
    match key.split_once('.') {
        Some((section, rest)) => lookup(tree.get(section)?.as_table()?, rest),
        None => tree.get(key),
    }
}

fn ranges(numbers: &[(&'static str, f64)], found: &mut Vec<Finding>) {
    for &(key, number) in numbers {
        let Some(field) = fields::find(key) else {
            continue;
        };
        if let Err(what) = in_range(field, number) {
            found.push((key.into(), what, format!("write {}", field.ty.describe())));
        } else if number == 0.0 && !field.zero {
            found.push((
                key.into(),
                "is zero".into(),
                format!("write {}", field.ty.describe()),
            ));
        }
    }
}

/// Is the source for this key: the key itself, or a section that it is in?
pub fn covers(source: &str, key: &str) -> bool {
    key.strip_prefix(source)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

fn sources(tree: &toml::Table, numbers: &[(&'static str, f64)], found: &mut Vec<Finding>) {
    let Some(sources) = tree.get("sources").and_then(|s| s.as_table()) else {
        return;
    };
    for (key, _) in numbers {
        if !sources.keys().any(|s| covers(s, key)) {
            let remedy = format!(
                "add `\"{key}\" = \"a citation\"` to [sources], or \"assumption: …\" with the reasoning"
            );
            found.push((key.to_string(), "has no source".into(), remedy));
        }
    }
    for (source, text) in sources {
        if !numbers.iter().any(|(key, _)| covers(source, key)) {
            let what = "names no number of this machine".to_string();
            found.push((
                format!("sources.{source}"),
                what,
                "remove it, or correct the key".into(),
            ));
        } else if text.as_str().is_some_and(|t| t.trim().is_empty()) {
            let remedy = "name the data sheet, paper or reasoning".to_string();
            found.push((format!("sources.{source}"), "is empty".into(), remedy));
        }
    }
}

/// Numbers of a machine, and how many of them rest on an assumption by their most exact source.
pub fn count_sources(m: &Machine) -> (usize, usize) {
    let numbers = numbers(&tree(m));
    let assumed = |key: &str| {
        let exact = m
            .sources
            .iter()
            .filter(|(s, _)| covers(s, key))
            .max_by_key(|(s, _)| s.len());
        exact.is_some_and(|(_, text)| text.contains("assum"))
    };
    (
        numbers.len(),
        numbers.iter().filter(|(key, _)| assumed(key)).count(),
    )
}

/// Is the number finite, not negative and no slip of the pen?
pub fn in_range(field: &Field, number: f64) -> Result<(), String> {
    if !number.is_finite() {
        Err(format!("{number} is not finite"))
    } else if number < 0.0 {
        Err(format!("{number} is negative"))
    } else if number > field.limit {
        Err(too_large(field, number))
    } else {
        Ok(())
    }
}

fn too_large(field: &Field, number: f64) -> String {
    let (number, limit) = match field.ty {
        FieldType::Size => (
            Bytes(number as u64).to_string(),
            Bytes(field.limit as u64).to_string(),
        ),
        _ => (number.to_string(), field.limit.to_string()),
    };
    format!("{number} is larger than any machine's (at most {limit})")
}
