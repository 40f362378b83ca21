//! A table of a TOML file, taken key by key. What is left over in the end is unknown.

use std::cell::RefCell;
use std::ops::Range;
use std::str::FromStr;
use toml::Spanned;
use toml::de::{DeTable, DeValue};
use varve_machine::Problem;
use varve_spec::Bytes;

/// A file and what is wrong with it.
pub struct File<'a> {
    name: &'a str,
    text: &'a str,
    problems: RefCell<Vec<Problem>>,
}

impl<'a> File<'a> {
    pub fn new(name: &'a str, text: &'a str) -> File<'a> {
        File {
            name,
            text,
            problems: RefCell::default(),
        }
    }

    pub fn line(&self, offset: usize) -> usize {
        let before = &self.text.as_bytes()[..offset.min(self.text.len())];
        1 + before.iter().filter(|&&b| b == b'\n').count()
    }

    pub fn wrong(
        &self,
        line: usize,
        key: &str,
        what: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        self.problems.borrow_mut().push(Problem {
            file: self.name.into(),
            line,
            key: key.into(),
            what: what.into(),
            remedy: remedy.into(),
        });
    }

    /// The problems, by line.
    pub fn problems(self) -> Vec<Problem> {
        let mut problems = self.problems.into_inner();
        problems.sort_by_key(|p| p.line);
        problems
    }
}

/// A table and the keys that it may have.
pub struct Keys<'f, 'a> {
    pub file: &'f File<'a>,
    table: &'f DeTable<'a>,
    /// The prefix of its keys, such as `published`.
    prefix: String,
    /// Line that it begins in.
    pub line: usize,
    asked: RefCell<Vec<&'static str>>,
}

impl<'f, 'a> Keys<'f, 'a> {
    pub fn new(
        file: &'f File<'a>,
        table: &'f DeTable<'a>,
        prefix: &str,
        span: Range<usize>,
    ) -> Self {
        Keys {
            file,
            table,
            prefix: prefix.into(),
            line: file.line(span.start),
            asked: RefCell::default(),
        }
    }

    fn full(&self, key: &str) -> String {
        match self.prefix.as_str() {
            "" => key.into(),
            prefix => format!("{prefix}.{key}"),
        }
    }

    pub fn value(&self, key: &'static str) -> Option<&'f Spanned<DeValue<'a>>> {
        self.asked.borrow_mut().push(key);
        self.table.get(key)
    }

    pub fn line_of(&self, key: &str) -> usize {
        let known = self.table.iter().find(|(name, _)| name.get_ref() == key);
        known.map_or(self.line, |(name, _)| self.file.line(name.span().start))
    }

    pub fn wrong(&self, key: &str, what: impl Into<String>, remedy: impl Into<String>) {
        let line = self.line_of(key);
        self.file.wrong(line, &self.full(key), what, remedy);
    }

    fn not_a(&self, key: &str, value: &DeValue<'_>, remedy: &str) {
        self.wrong(key, format!("is a {}", value.type_str()), remedy);
    }

    /// A text.
    pub fn text(&self, key: &'static str) -> Option<String> {
        match self.value(key)?.get_ref() {
            DeValue::String(s) => Some(s.to_string()),
            other => {
                self.not_a(key, other, "write a text in quotes");
                None
            }
        }
    }

    /// A text that is read as something else.
    pub fn read<T: FromStr<Err = String>>(&self, key: &'static str, remedy: &str) -> Option<T> {
        let text = self.text(key)?;
        let read = text.parse();
        read.map_err(|e: String| self.wrong(key, e, remedy)).ok()
    }

    /// One of some words.
    pub fn word<T: Copy>(&self, key: &'static str, words: &[(&str, T)]) -> Option<T> {
        let text = self.text(key)?;
        let found = words.iter().find(|(word, _)| *word == text);
        if found.is_none() {
            let known: Vec<String> = words.iter().map(|(w, _)| format!("\"{w}\"")).collect();
            self.wrong(
                key,
                format!("`{text}` is not known"),
                format!("write {}", known.join(" or ")),
            );
        }
        found.map(|(_, value)| *value)
    }

    /// A size such as "6GiB", or a number of bytes.
    pub fn bytes(&self, key: &'static str) -> Option<u64> {
        if matches!(self.table.get(key)?.get_ref(), DeValue::Integer(_)) {
            return self.number(key, 1, u64::MAX);
        }
        let bytes: Bytes = self.read(key, "write a size such as \"6GiB\"")?;
        Some(bytes.0)
    }

    /// A whole number from `low` to `high`.
    pub fn number(&self, key: &'static str, low: u64, high: u64) -> Option<u64> {
        let range = match high {
            u64::MAX => format!("write a whole number, {low} or more"),
            _ => format!("write a whole number from {low} to {high}"),
        };
        match self.value(key)?.get_ref() {
            DeValue::Integer(n) => {
                let number = i128::from_str_radix(n.as_str(), n.radix()).ok();
                let fits = number.and_then(|n| u64::try_from(n).ok());
                let fits = fits.filter(|n| (low..=high).contains(n));
                if fits.is_none() {
                    self.wrong(key, format!("{} is not possible", n.as_str()), range);
                }
                fits
            }
            other => {
                self.not_a(key, other, &range);
                None
            }
        }
    }

    /// Yes or no.
    pub fn flag(&self, key: &'static str) -> Option<bool> {
        match self.value(key)?.get_ref() {
            DeValue::Boolean(b) => Some(*b),
            other => {
                self.not_a(key, other, "write true or false");
                None
            }
        }
    }

    /// A list of texts.
    pub fn texts(&self, key: &'static str) -> Option<Vec<String>> {
        let remedy = "write a list of texts, such as [\"./program\", \"argument\"]";
        let DeValue::Array(all) = self.value(key)?.get_ref() else {
            self.wrong(key, "is not a list", remedy);
            return None;
        };
        let texts: Vec<String> = all
            .iter()
            .filter_map(|v| v.get_ref().as_str().map(String::from))
            .collect();
        if texts.len() < all.len() {
            self.wrong(key, "has an element that is not a string", remedy);
            return None;
        }
        Some(texts)
    }

    /// Every key of a table whose keys a user names.
    pub fn all(&self) -> impl Iterator<Item = (&'f str, &'f DeValue<'a>)> {
        self.table
            .iter()
            .map(|(k, v)| (k.get_ref().as_ref(), v.get_ref()))
    }

    /// Reports keys that no reader asked for.
    pub fn leftover(self) {
        let asked = self.asked.borrow();
        for (name, _) in self.table {
            let key = name.get_ref().as_ref();
            if asked.contains(&key) {
                continue;
            }
            let remedy = match varve_spec::nearest(key, asked.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => {
                    let mut known = asked.clone();
                    known.sort_unstable();
                    known.dedup();
                    format!("remove it; there are {}", known.join(", "))
                }
            };
            let line = self.file.line(name.span().start);
            self.file
                .wrong(line, &self.full(key), "unknown key", remedy);
        }
    }
}
