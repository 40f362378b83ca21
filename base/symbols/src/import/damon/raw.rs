//! What `damo report access --raw_form` prints; `damo report raw` in versions before 2.7.2.
//!
//! ```text
//! 563ebaa00000-563ebadf3000(   3.949 MiB):    0                until 1.2.7
//! 563ebaa00000-563ebadf3000(   3.949 MiB):    0 (age: -1)      1.2.8
//! 563ebaa00000-563ebadf3000 (   3.949 MiB)           0    -1    since 1.2.9
//! 94827419009024-94827423150080 (4141056): 0 5000               raw_form.py, of its examples: percent or checks
//! ```
//!
//! A size is of 12 columns, so that one of 1000 MiB has no blank before it. `--raw_number` has bytes without a unit.

use super::records::{Look, Records, Region, Uses};
use super::text;

#[derive(Default)]
pub(super) struct Raw {
    records: Records,
    /// When the first record begins, in nanoseconds.
    base: f64,
    open: Option<Open>,
    /// Of `raw_form.py`: addresses are decimal.
    decimal: bool,
    /// Checks of a page in a record, which `raw_form.py` of new versions tells. Without, it tells percentages.
    checks: Option<f64>,
}

/// The record that is read.
#[derive(Default)]
struct Open {
    look: Look,
    /// How many parts it says that it has, and how many were there.
    told: Option<u64>,
    found: u64,
    has_target: bool,
}

impl Open {
    fn check(&self) -> Result<(), String> {
        match self.told {
            Some(told) if told != self.found => Err(format!(
                "the record before ends with {} of its {told} regions: is the file cut?",
                self.found
            )),
            _ => Ok(()),
        }
    }

    fn is_whole(&self) -> bool {
        self.told == Some(self.found)
    }
}

impl Raw {
    /// Reads a line. Lines that are of nothing here are left out, but for those between the parts of a record.
    pub fn line(&mut self, line: &str) -> Result<(), String> {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            return Ok(());
        }
        if let Some((name, value)) = line.split_once(':')
            && self.header(name, value.trim())?
        {
            return Ok(());
        }
        if line.ends_with("-th record") {
            self.decimal = true;
            self.checks = None;
            return self.close();
        }
        if line.ends_with("-th snapshot") && self.decimal {
            return self.begin();
        }
        if looks_like_region(line) {
            return self.region(line);
        }
        match &self.open {
            Some(open) if !open.is_whole() => {
                Err(format!("`{line}` is no region, such as {EXAMPLE}"))
            }
            _ => Ok(()),
        }
    }

    pub fn finish(mut self) -> Result<Records, String> {
        self.close()?;
        Ok(self.records)
    }

    /// Whether the line is one that says something of what follows.
    fn header(&mut self, name: &str, value: &str) -> Result<bool, String> {
        let time = || {
            text::nanoseconds(value, 1.0)
                .ok_or_else(|| format!("`{value}` is no time, such as `104.599 ms`"))
        };
        match name {
            "base_time_absolute" => {
                self.close()?;
                self.base = time()?;
            }
            "monitoring_start" => {
                self.begin()?;
                self.records.at(self.base + time()?);
            }
            "monitoring_end" => self.records.at(self.base + time()?),
            "target_id" => {
                if self.open.as_ref().is_none_or(|open| open.has_target) {
                    self.begin()?;
                }
                self.opened().has_target = true;
            }
            "nr_regions" => {
                let told = text::address(value)
                    .ok_or_else(|| format!("`{value}` is no number of regions"))?;
                self.opened().told = Some(told);
            }
            "intervals" if self.decimal => self.intervals(value)?,
            "monitoring_duration" | "data source" | "snapshot sample interval" => {}
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Microseconds between two checks, and of a record.
    fn intervals(&mut self, value: &str) -> Result<(), String> {
        let numbers: Vec<f64> = value
            .split_ascii_whitespace()
            .filter_map(text::number)
            .collect();
        let [sample, all] = numbers[..] else {
            return Err(format!("`{value}` are no two intervals"));
        };
        if sample > 0.0 {
            self.checks = Some((all / sample).round().max(1.0));
        }
        Ok(())
    }

    fn opened(&mut self) -> &mut Open {
        self.open.get_or_insert_default()
    }

    fn begin(&mut self) -> Result<(), String> {
        self.close()?;
        self.opened().look.checks = self.checks;
        Ok(())
    }

    fn close(&mut self) -> Result<(), String> {
        if let Some(open) = self.open.take() {
            open.check()?;
            self.records.keep(open.look);
        }
        Ok(())
    }

    fn region(&mut self, line: &str) -> Result<(), String> {
        let part = match self.decimal {
            true => decimal(line, self.checks.is_some()),
            false => hexadecimal(line),
        };
        let (start, end, uses) = part.ok_or_else(|| format!("no region, such as {EXAMPLE}"))?;
        if uses.is_none() {
            self.records.unknown += 1;
        }
        let open = self.opened();
        open.found += 1;
        if open.told.is_some_and(|told| open.found > told) {
            return Err(format!(
                "the record has more regions than the {} that it tells of",
                open.found - 1
            ));
        }
        let region = Region::new(start..end, uses.unwrap_or(Uses::Checks(0.0)))?;
        open.look.regions.extend(region);
        Ok(())
    }
}

const EXAMPLE: &str = "`1000-2000 ( 4.000 KiB) 3 7`";

/// Two addresses, and then a size in brackets.
fn looks_like_region(line: &str) -> bool {
    let before = line.split('(').next().unwrap_or_default().trim_end();
    before.contains('-') && !before.contains(char::is_whitespace)
}

/// Start, end, and how often it was in use, if it says so.
type Part = (u64, u64, Option<Uses>);

/// Addresses, and what follows the size.
fn split(line: &str) -> Option<((&str, &str), &str)> {
    let (range, rest) = line.split_once('(')?;
    let (size, rest) = rest.split_once(')')?;
    text::is_size(size).then_some(())?;
    let rest = rest.strip_prefix(':').unwrap_or(rest);
    Some((range.trim().split_once('-')?, rest.trim()))
}

fn hexadecimal(line: &str) -> Option<Part> {
    let ((start, end), rest) = split(line)?;
    let hex = |text: &str| u64::from_str_radix(&text.replace(',', ""), 16).ok();
    let (uses, age) = match rest.split_once([' ', '\t']) {
        Some((uses, age)) => (uses, age.trim()),
        None => (rest, "-1"),
    };
    let (uses, age) = match age.strip_prefix('%') {
        Some(age) => (Uses::Share(text::percent(uses)?), age.trim()),
        None => (Uses::Checks(text::number(uses)?), age),
    };
    let age = match age.strip_prefix("(age:") {
        Some(age) => age.strip_suffix(')')?,
        None => age,
    };
    (age.is_empty() || text::is_age(age)).then_some(())?;
    Some((hex(start)?, hex(end)?, Some(uses)))
}

fn decimal(line: &str, has_checks: bool) -> Option<Part> {
    let ((start, end), rest) = split(line)?;
    let (uses, age) = rest.split_once(' ')?;
    text::is_age(age).then_some(())?;
    let uses = match uses {
        "None" => None,
        uses if has_checks => Some(Uses::Checks(text::number(uses)?)),
        uses => Some(Uses::Share(text::percent(uses)?)),
    };
    Some((text::address(start)?, text::address(end)?, uses))
}
