//! Reading a machine file key by key, so that every unknown key, wrong type and missing field is reported with its line at once.

use std::collections::BTreeMap;
use toml::de::{DeTable, DeValue};

use super::fields::{self, FIELDS, Field, FieldType, OPTIONAL_SECTIONS};
use super::numbers::{Finding, covers, in_range};
use super::problem::Problem;
use varve_spec::Bytes;

/// Contents of a file, by dotted key.
pub struct Document<'a> {
    file: &'a str,
    text: &'a str,
    /// Byte offset of each key and section.
    places: BTreeMap<String, usize>,
    /// Keys to leave out when reading on: section, if any, and name.
    unknown: Vec<(String, String)>,
    problems: Vec<Problem>,
}

impl<'a> Document<'a> {
    /// Walks the text. The document keeps all problems found.
    pub fn read(text: &'a str, file: &'a str) -> Document<'a> {
        let mut doc = Document {
            file,
            text,
            places: BTreeMap::new(),
            unknown: Vec::new(),
            problems: Vec::new(),
        };
        let (root, errors) = DeTable::parse_recoverable(text);
        for e in &errors {
            let offset = e.span().map_or(0, |s| s.start);
            let what = format!("not TOML: {}", e.message().replace('\n', " "));
            doc.problem_at(
                offset,
                "",
                what,
                "write it as `key = value` under a `[section]`",
            );
        }
        if errors.is_empty() {
            doc.table(root.get_ref(), "");
            doc.missing();
        }
        doc
    }

    /// Line of a key, or of the nearest section around it; 1 if there is none.
    pub fn line(&self, key: &str) -> usize {
        let mut key = key;
        loop {
            if let Some(&offset) = self.places.get(key) {
                return self.line_of(offset);
            }
            match key.rsplit_once('.') {
                Some((parent, _)) => key = parent,
                None => return 1,
            }
        }
    }

    /// Problems so far, in the order of lines.
    pub fn into_problems(mut self) -> Vec<Problem> {
        self.problems.sort_by_key(|p| p.line);
        self.problems
    }

    /// Nothing wrong so far?
    pub fn is_clean(&self) -> bool {
        self.problems.is_empty()
    }

    /// Adds a problem found later at a key, unless that key has one already.
    pub fn add(&mut self, key: &str, what: String, remedy: &str) {
        if self.problems.iter().all(|p| p.key != key) {
            let line = self.line(key);
            self.push(line, key, what, remedy);
        }
    }

    /// Adds the findings of the rules. A source whose number is missing or wrong is not called stale on top of that.
    pub fn add_findings(&mut self, findings: Vec<Finding>) {
        let (sources, others): (Vec<_>, Vec<_>) = findings
            .into_iter()
            .partition(|(key, ..)| key.starts_with("sources."));
        for (key, what, remedy) in others {
            self.add(&key, what, &remedy);
        }
        let troubled: Vec<String> = self.problems.iter().map(|p| p.key.clone()).collect();
        for (key, what, remedy) in sources {
            let source = key.trim_start_matches("sources.");
            if !troubled
                .iter()
                .any(|t| covers(source, t) || covers(t, source))
            {
                self.add(&key, what, &remedy);
            }
        }
    }

    /// The file's values without its unknown keys; `None` if it is not TOML.
    pub fn tree(&self) -> Option<toml::Table> {
        let mut tree: toml::Table = self.text.parse().ok()?;
        for (section, name) in &self.unknown {
            if let Some(table) = descend(&mut tree, section) {
                table.remove(name);
            }
        }
        Some(tree)
    }

    fn problem_at(&mut self, offset: usize, key: &str, what: String, remedy: &str) {
        let line = self.line_of(offset);
        self.push(line, key, what, remedy);
    }

    fn push(&mut self, line: usize, key: &str, what: String, remedy: &str) {
        self.problems.push(Problem {
            file: self.file.into(),
            line,
            key: key.into(),
            what,
            remedy: remedy.into(),
        });
    }

    fn line_of(&self, offset: usize) -> usize {
        1 + self.text.as_bytes()[..offset.min(self.text.len())]
            .iter()
            .filter(|&&b| b == b'\n')
            .count()
    }

    fn table(&mut self, table: &DeTable<'_>, prefix: &str) {
        for (name, value) in table {
            let key = if prefix.is_empty() {
                name.get_ref().to_string()
            } else {
                format!("{prefix}.{}", name.get_ref())
            };
            let offset = name.span().start;
            if name.get_ref().contains('.') {
                // TOML reads a dotted key in quotes as one name; its author probably meant a section.
                self.problem_at(
                    offset,
                    &key,
                    "unknown key".into(),
                    "write dotted keys without quotes, or under their `[section]`",
                );
                self.unknown
                    .push((prefix.into(), name.get_ref().to_string()));
                continue;
            }
            self.places.insert(key.clone(), offset);
            if key == "sources" {
                self.sources(value.get_ref(), offset);
            } else if fields::is_section(&key) {
                match value.get_ref() {
                    DeValue::Table(inner) => self.table(inner, &key),
                    other => {
                        let what = format!("is a section, not a {}", other.type_str());
                        self.problem_at(offset, &key, what, &format!("write it as `[{key}]`"));
                    }
                }
            } else if let Some(field) = fields::find(&key) {
                if let Err(what) = fits(field, value.get_ref()) {
                    self.problem_at(
                        offset,
                        &key,
                        what,
                        &format!("write {}", field.ty.describe()),
                    );
                }
            } else {
                let remedy = match varve_spec::nearest(&key, FIELDS.iter().map(|f| f.key)) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => "remove it, or see docs/machines.md for the known keys".into(),
                };
                self.problem_at(offset, &key, "unknown key".into(), &remedy);
                self.unknown
                    .push((prefix.into(), name.get_ref().to_string()));
            }
        }
    }

    fn sources(&mut self, value: &DeValue<'_>, offset: usize) {
        let DeValue::Table(table) = value else {
            let remedy = "write `[sources]`, then `\"core.ghz\" = \"a citation\"`";
            return self.problem_at(offset, "sources", "is a section".into(), remedy);
        };
        for (name, value) in table {
            let key = format!("sources.{}", name.get_ref());
            self.places.insert(key.clone(), name.span().start);
            let (what, remedy) = match value.get_ref() {
                DeValue::String(s) if !s.trim().is_empty() => continue,
                DeValue::String(_) => (
                    "is empty",
                    "name the data sheet, paper or reasoning".to_string(),
                ),
                DeValue::Table(_) => (
                    "is nested",
                    format!(
                        "put the dotted key in quotes: `\"{}.…\" = \"a citation\"`",
                        name.get_ref()
                    ),
                ),
                _ => (
                    "is not text",
                    "name the data sheet, paper or reasoning, in quotes".to_string(),
                ),
            };
            self.problem_at(name.span().start, &key, what.into(), &remedy);
        }
    }

    fn missing(&mut self) {
        if !self.places.contains_key("sources") {
            self.push(
                1,
                "sources",
                "missing".into(),
                "add `[sources]`: each number's key and where it comes from",
            );
        }
        for field in FIELDS {
            if field.optional || self.places.contains_key(field.key) {
                continue;
            }
            // One problem for a section that is missing as a whole; none if the machine may lack it.
            let parents = field.key.match_indices('.').map(|(i, _)| &field.key[..i]);
            if let Some(section) = parents.into_iter().find(|s| !self.places.contains_key(*s)) {
                if !OPTIONAL_SECTIONS.contains(&section) {
                    self.add(
                        section,
                        "missing".into(),
                        &format!("add `[{section}]`; see docs/machines.md for its keys"),
                    );
                }
                continue;
            }
            let section = field.key.rsplit_once('.').map(|(s, _)| s);
            let name = field.key.rsplit('.').next().unwrap_or(field.key);
            let place = section.map_or("at the top".to_string(), |s| format!("under `[{s}]`"));
            let remedy = format!(
                "add `{name} = …` {place}: {}{}",
                field.about,
                unit(field.unit)
            );
            self.add(field.key, "missing".into(), &remedy);
        }
    }
}

fn unit(unit: &str) -> String {
    if unit.is_empty() {
        String::new()
    } else {
        format!(" ({unit})")
    }
}

fn descend<'t>(table: &'t mut toml::Table, section: &str) -> Option<&'t mut toml::Table> {
    section
        .split('.')
        .filter(|part| !part.is_empty())
        .try_fold(table, |t, part| t.get_mut(part)?.as_table_mut())
}

/// Is the value of this type and in its range?
fn fits(field: &Field, value: &DeValue<'_>) -> Result<(), String> {
    let wrong = || Err(format!("is a {}", value.type_str()));
    let number: f64 = match (field.ty, value) {
        (FieldType::Text, DeValue::String(s)) if s.trim().is_empty() => {
            return Err("is empty".into());
        }
        (FieldType::Text, DeValue::String(_)) => return Ok(()),
        (FieldType::Choice(words), DeValue::String(s)) => {
            return if words.contains(&s.as_ref()) {
                Ok(())
            } else {
                Err(format!("`{s}` is unknown"))
            };
        }
        (FieldType::Size, DeValue::String(s)) => match s.parse::<Bytes>() {
            Ok(b) => b.0 as f64,
            Err(_) => return Err(format!("`{s}` is not a size")),
        },
        (FieldType::Count | FieldType::Size | FieldType::Real, DeValue::Integer(i)) => {
            i64::from_str_radix(i.as_str(), i.radix())
                .map_err(|_| format!("{} is out of range", i.as_str()))? as f64
        }
        (FieldType::Real, DeValue::Float(f)) => f
            .as_str()
            .parse()
            .map_err(|_| format!("{} is not a number", f.as_str()))?,
        _ => return wrong(),
    };
    in_range(field, number)
}
