//! Memory samples of perf, as text: `perf mem record PROGRAM`, then `perf script -F event,addr,data_src,weight,ip,sym`.
//!
//! A sample says which address was accessed, and from where. It does not name the allocation site of that memory,
//! so this is half a profile: a map of the process's objects completes it.
//!
//! | module | job |
//! |---|---|
//! | `line` | what a line is: a sample, a line of a stack, or neither |
//! | `event` | which events are of memory |
//! | `source` | what `data_src` says: load or store, and where it hit |

mod event;
mod line;
#[cfg(test)]
mod properties;
mod source;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io::BufRead;

use self::line::{Line, Reader};
use self::source::Access;
use super::{ImportError, Imported, lines};
use varve_sites::Counts;
use varve_sites::native::{Key, Profile, Site};

/// Names of other events that are told, at most.
const MOST_NAMES: usize = 5;

const NO_EVENT: &str = "no memory event such as `cpu/mem-loads/:` (Intel), `ibs_op//:` (AMD) or `memory:` (Arm's SPE): write the text of \
                        `perf mem record` with `perf script -F event,addr,data_src,weight,ip,sym`";

#[derive(Default)]
struct Samples {
    sites: BTreeMap<Key, Counts>,
    all: u64,
    unplaced: u64,
    /// They do not say where they hit, or that they missed a cache before the last one.
    without_level: u64,
    missed_near: u64,
    /// They read or wrote no data: instructions, and what is neither load nor store.
    no_data: u64,
    /// Samples of other events, by name, and the line of the first.
    others: BTreeMap<String, u64>,
    first_other: Option<u64>,
}

/// Imports memory samples. `file` is named in errors. `place` says whose memory an address is, if that is known, such as
/// a static variable or a stack; all others are of the rest.
///
/// Reads and writes are numbers of samples. A sample without `data_src` is a read if its event's name does not have
/// `store` in it, and no miss. Samples of other events are left out.
///
/// # Errors
/// It cannot be read, is compressed, has no memory event, or a line is no sample.
pub fn perf_script(
    file: &str,
    mut input: impl BufRead,
    place: impl Fn(u64) -> Option<Key>,
) -> Result<Imported, ImportError> {
    let first = input.fill_buf().map_err(|source| ImportError::Io {
        file: file.into(),
        source,
    })?;
    if first.starts_with(b"PERFILE2") {
        return Err(ImportError::NotOne {
            file: file.into(),
            what: "perf's own file: give the text that `perf script -i` makes of it",
        });
    }
    let mut samples = Samples::default();
    let (mut reader, mut number) = (Reader::default(), 0);
    lines(file, input, |line| {
        number += 1;
        samples.add(reader.line(line)?, number, &place);
        Ok(())
    })?;
    samples.finish(file)
}

impl Samples {
    fn add(&mut self, line: Line, number: u64, place: impl Fn(u64) -> Option<Key>) {
        let (address, source) = match line {
            Line::Nothing => return,
            Line::Other(name) => {
                *self.others.entry(name.into()).or_default() += 1;
                self.first_other.get_or_insert(number);
                return;
            }
            Line::Sample(address, source) => (address, source),
        };
        self.all += 1;
        let writes = match source.access {
            Access::Read => false,
            Access::Write => true,
            Access::NoData => {
                self.no_data += 1;
                return;
            }
        };
        self.without_level += u64::from(source.misses.is_none() && !source.missed_near);
        self.missed_near += u64::from(source.missed_near);
        let key = place(address);
        self.unplaced += u64::from(key.is_none());
        let counts = self.sites.entry(key.unwrap_or(Key::Rest)).or_default();
        let misses = u64::from(source.misses == Some(true));
        match writes {
            true => (counts.writes += 1, counts.write_misses += misses),
            false => (counts.reads += 1, counts.misses += misses),
        };
    }

    fn finish(self, file: &str) -> Result<Imported, ImportError> {
        if self.all == 0 {
            return Err(match self.first_other {
                Some(line) => ImportError::Line {
                    file: file.into(),
                    line,
                    what: format!("{NO_EVENT}; the file has {}", self.other_names()),
                },
                None => ImportError::NotOne {
                    file: file.into(),
                    what: NO_EVENT,
                },
            });
        }
        let missing = self.missing();
        let sites = self.sites.into_iter();
        Ok(Imported {
            profile: Profile {
                sites: sites.map(|(key, counts)| Site { key, counts }).collect(),
                ..Profile::default()
            },
            missing,
        })
    }

    fn missing(&self) -> Vec<String> {
        let mut missing = vec![
            "perf's samples have no allocations: no objects, bytes, peaks or lifetimes".to_string(),
            "reads and writes are numbers of samples".into(),
        ];
        let all = self.all;
        let mut say = |number: u64, what: &str| {
            if number > 0 {
                missing.push(format!("{number} {what}"));
            }
        };
        say(
            self.unplaced,
            &format!(
                "of {all} samples are at addresses whose site is not known, and count as all other memory; a copy of /proc/PID/maps \
                 beside the file (FILE.maps, or --maps) tells of static variables and stacks, `varve trace record` of sites"
            ),
        );
        say(
            self.without_level,
            &format!(
                "of {all} samples do not say where they hit, so their misses are not counted; ask perf script for the field data_src"
            ),
        );
        say(
            self.missed_near,
            &format!(
                "of {all} samples say that they missed a near cache, and not where they hit, so they count as no misses"
            ),
        );
        say(
            self.no_data,
            &format!("of {all} samples are neither loads nor stores of data, and are left out"),
        );
        let others = self.others.values().sum();
        say(
            others,
            &format!(
                "samples of other events are left out: {}",
                self.other_names()
            ),
        );
        missing
    }

    /// `cycles (12), l1d-miss (3) and 2 more events`.
    fn other_names(&self) -> String {
        let told: Vec<String> = self
            .others
            .iter()
            .take(MOST_NAMES)
            .map(|(name, number)| format!("{name} ({number})"))
            .collect();
        let told = told.join(", ");
        match self.others.len().saturating_sub(MOST_NAMES) {
            0 => told,
            more => format!("{told} and {more} more events"),
        }
    }
}
