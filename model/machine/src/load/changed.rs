//! A machine with other values for some keys: `cxl-spr:cxl.latency_ns=300,core.ipc=2`.

use super::fields::{FIELDS, Field, FieldType, OPTIONAL_SECTIONS};
use super::problem::{LoadError, Problem};
use crate::describe::Machine;

/// The source of a changed number.
const SOURCE: &str = "given for this run";

/// A machine's name or path with more changes behind it.
pub fn changed(name: &str, changes: &[String]) -> String {
    match (changes, split(name).1.is_empty()) {
        ([], _) => name.into(),
        (changes, true) => format!("{name}:{}", changes.join(",")),
        (changes, false) => format!("{name},{}", changes.join(",")),
    }
}

/// A machine's name or path, and the changes behind it: from the last `:` on, if a `=` follows.
pub fn split(name: &str) -> (&str, Vec<&str>) {
    match name.rsplit_once(':') {
        Some((base, changes)) if changes.contains('=') => (base, changes.split(',').collect()),
        _ => (name, Vec::new()),
    }
}

/// The machine with these changes, which its name lists too.
///
/// # Errors
/// A key that no machine has, or this one has not; a value that cannot be, by itself or beside the others.
pub fn with(machine: &Machine, changes: &[&str]) -> Result<Machine, LoadError> {
    let wrong = |key: &str, what: String, remedy: String| {
        LoadError::Invalid(vec![Problem {
            file: machine.name.clone(),
            line: 0,
            key: key.into(),
            what,
            remedy,
        }])
    };
    let mut table =
        toml::Table::try_from(machine).expect("every field of a machine has a TOML form");
    for change in changes {
        let Some((key, value)) = change.split_once('=') else {
            let remedy = "write it as core.ipc=2".into();
            return Err(wrong(
                change,
                "a change needs a key and a value".into(),
                remedy,
            ));
        };
        let (key, value) = (key.trim(), value.trim());
        let Some(field) = FIELDS.iter().find(|f| f.key == key && key != "name") else {
            let remedy = match varve_spec::nearest(key, FIELDS.iter().map(|f| f.key)) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => match keys_beside(key) {
                    keys if keys.is_empty() => {
                        "`varve machine show NAME --toml` lists the keys".into()
                    }
                    keys => format!("there are {}", keys.join(", ")),
                },
            };
            return Err(wrong(key, "no machine has this key".into(), remedy));
        };
        if let Some(section) = missing_section(&table, key) {
            let what = format!("this machine has no [{section}]");
            return Err(wrong(key, what, "take a machine that has one".into()));
        }
        let Some(value) = toml_value(field, value) else {
            let remedy = format!("write {}", field.ty.describe());
            return Err(wrong(
                key,
                format!("`{value}` is not a value of it"),
                remedy,
            ));
        };
        put(&mut table, key, value);
        if field.ty.is_number()
            && let Some(sources) = table.get_mut("sources").and_then(toml::Value::as_table_mut)
        {
            sources.insert(key.into(), SOURCE.into());
        }
    }
    let text = toml::to_string(&table).expect("a table of text and numbers");
    let file = format!("{}.toml", machine.name);
    let mut changed = Machine::parse(&text, &file).map_err(|error| match error {
        LoadError::Invalid(mut problems) => {
            for problem in &mut problems {
                (problem.file, problem.line) = (machine.name.clone(), 0);
            }
            LoadError::Invalid(problems)
        }
        other => other,
    })?;
    changed.name = format!("{}:{}", machine.name, changes.join(","));
    Ok(changed)
}

/// The keys of the section that a key seems to be of.
fn keys_beside(key: &str) -> Vec<&'static str> {
    let Some((section, _)) = key.rsplit_once('.') else {
        return Vec::new();
    };
    let beside = |other: &&str| other.rsplit_once('.').is_some_and(|(s, _)| s == section);
    FIELDS.iter().map(|f| f.key).filter(beside).collect()
}

/// The section of a key, if a machine may lack it and this one does.
fn missing_section<'k>(table: &toml::Table, key: &'k str) -> Option<&'k str> {
    let (section, _) = key.rsplit_once('.')?;
    let mut at = table;
    for part in section.split('.') {
        match at.get(part).and_then(toml::Value::as_table) {
            Some(inner) => at = inner,
            None => return OPTIONAL_SECTIONS.contains(&section).then_some(section),
        }
    }
    None
}

fn put(table: &mut toml::Table, key: &str, value: toml::Value) {
    match key.split_once('.') {
        None => {
            table.insert(key.into(), value);
        }
        Some((section, rest)) => {
            let inner = table
                .entry(section)
                .or_insert_with(|| toml::Value::Table(toml::Table::new()));
            if let Some(inner) = inner.as_table_mut() {
                put(inner, rest, value);
            }
        }
    }
}

fn toml_value(field: &Field, text: &str) -> Option<toml::Value> {
    Some(match field.ty {
        FieldType::Text | FieldType::Choice(_) => text.trim_matches('"').into(),
        FieldType::Size => text
            .parse::<varve_spec::Bytes>()
            .ok()
            .map(|_| text.into())?,
        FieldType::Count => text.parse::<i64>().ok()?.into(),
        FieldType::Real => text.parse::<f64>().ok().filter(|v| v.is_finite())?.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_with_another_value_is_the_same_but_for_it() {
        let machine = Machine::load("cxl-spr").unwrap();
        let other = Machine::load("cxl-spr:core.ipc=1.5,llc.bytes=30MiB").unwrap();
        assert_eq!(other.name, "cxl-spr:core.ipc=1.5,llc.bytes=30MiB");
        assert_eq!((other.core.ipc, other.llc.bytes.0), (1.5, 30 << 20));
        assert_eq!(other.sources["core.ipc"], SOURCE);
        let back = other
            .with(&[
                &format!("core.ipc={}", machine.core.ipc),
                "llc.bytes=105MiB",
            ])
            .unwrap();
        assert_eq!(back.core, machine.core);
        assert_eq!(back.dram, machine.dram);
    }

    #[test]
    fn names_are_told_from_changes() {
        assert_eq!(split("cxl-spr"), ("cxl-spr", vec![]));
        assert_eq!(
            split("a:b/m.toml:x=1,y=2"),
            ("a:b/m.toml", vec!["x=1", "y=2"])
        );
        assert_eq!(split("a:b"), ("a:b", vec![]));
        let more = ["z=3".to_string()];
        assert_eq!(changed("m:x=1", &more), "m:x=1,z=3");
        assert_eq!(changed("m", &more), "m:z=3");
        assert_eq!(changed("m", &[]), "m");
    }

    #[test]
    fn what_cannot_be_changed_is_said() {
        for (change, said) in [
            (
                "core.ipcs=2",
                "core.ipcs: no machine has this key; did you mean `core.ipc`?",
            ),
            ("cxl.somewhat=2", "there are cxl."),
            ("pm.dimms=2", "this machine has no [pm]"),
            (
                "core.ipc=much",
                "`much` is not a value of it; write a number",
            ),
            ("core.ipc=0", "cxl-spr: core.ipc: is zero"),
            ("name=x", "no machine has this key"),
            ("llc.bytes=1x", "`1x` is not a value of it; write a size"),
        ] {
            let error = Machine::load(&format!("cxl-spr:{change}"))
                .unwrap_err()
                .to_string();
            assert!(
                error.contains(said) && !error.contains('\n'),
                "{change}: {error}"
            );
        }
    }
}
