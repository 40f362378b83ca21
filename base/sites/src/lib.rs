//! Profiles of a program's allocation sites: their counts, their file, and the choice of hot sites.
//!
//! A `.sites` file is JSON. This is one of a managed program; [`native`] has those of native ones, [`java`] those of Java
//! programs on a stock virtual machine:
//!
//! ```text
//! { "format": "varve sites", "version": 2, "kind": "managed", "program": "graph.wasm", "sites": [
//!   { "function": "graph.Engine.load", "type": "graph.Vertex", "nth": 0, "offset": 51230, "line": "Engine.java:88",
//!     "objects": 100000, "bytes": 2400000, "survivors": 99000, "survived_bytes": 2376000,
//!     "reads": 900000, "writes": 500000, "old_reads": 800000, "old_writes": 200000, "accesses": [0, 0, 0, 9000, 90000] } ] }
//! ```
//!
//! A site is known by function, type, and its number among the function's sites of that type, so that a profile
//! still fits a program that was built anew. `offset` and `line` are for readers.
//!
//! | module | job |
//! |---|---|
//! | the root | counts, profiles of managed programs |
//! | `file` | profiles in files, and what can be wrong with one |
//! | [`classify`], [`knapsack`] | which sites of a managed program are hot; the choice with the most value |
//! | [`native`] | sites of native programs: frames, keys, profiles, names for people |
//! | [`java`] | sites of Java programs on a stock virtual machine: what survives, what fills the old generation |
//! | [`sampled`] | how sure a profile from samples is, and how many samples it takes |
//! | [`select`] | which sites of a native program belong in fast memory |

mod any_site;
pub mod classify;
mod file;
pub mod java;
pub mod knapsack;
pub mod native;
pub mod sampled;
pub mod select;

pub use any_site::AnySite;
pub use file::{AnyProfile, ProfileError, SitesFile};

use serde::{Deserialize, Serialize};

/// The part of a profile's objects that must be from functions of a program with another name. Different Java programs
/// here share up to 0.86 of those of a small one, which all are from the library.
const RENAMED: f64 = 0.9;

/// The name of an allocation site, in every build of its program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Key {
    /// The function's name.
    pub function: String,
    /// The type's name; empty if it has none that lasts from build to build.
    #[serde(rename = "type")]
    pub ty: String,
    /// Counts the function's sites of this type from 0, in the order of its code.
    pub nth: u32,
}

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ty = if self.ty.is_empty() { "?" } else { &self.ty };
        write!(f, "{} in {} ({})", ty, self.function, self.nth)
    }
}

/// The counts of an allocation site. Reads and writes are the program's, of anything in an object but its
/// header. The fields from `peak_bytes` on are of native programs, those about survivors of managed ones.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Counts {
    /// Objects born.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Objects that survived the nursery.
    pub survivors: u64,
    /// Their bytes.
    pub survived_bytes: u64,
    /// Reads of any object.
    pub reads: u64,
    /// Writes to any object.
    pub writes: u64,
    /// Reads of survivors, after they survived.
    pub old_reads: u64,
    /// Writes to survivors, after they survived.
    pub old_writes: u64,
    /// Survivors by how often they were read or written after they survived: never, once, 2 to 3 times, 4 to 7
    /// times, and so on. Empty if it was not counted.
    pub accesses: Vec<u64>,
    /// Most bytes alive at once.
    #[serde(skip_serializing_if = "is_zero")]
    pub peak_bytes: u64,
    /// Objects that were freed before the program ended.
    #[serde(skip_serializing_if = "is_zero")]
    pub freed: u64,
    /// Bytes that the whole program allocated between birth and death of an object, summed over freed objects:
    /// lifetimes, measured in allocation.
    #[serde(skip_serializing_if = "is_zero")]
    pub lifetime_bytes: u64,
    /// Reads that missed all caches.
    #[serde(skip_serializing_if = "is_zero")]
    pub misses: u64,
    /// Writes that missed all caches.
    #[serde(skip_serializing_if = "is_zero")]
    pub write_misses: u64,
    /// Nanoseconds that the program's threads waited for accesses to the site's objects on the profile's machine, with
    /// everything in fast memory.
    #[serde(skip_serializing_if = "is_zero")]
    pub fast_ns: u64,
    /// The same with everything in slow memory.
    #[serde(skip_serializing_if = "is_zero")]
    pub slow_ns: u64,
    /// Objects that were samples, where the profile is one [from samples](native::Profile::sampled); otherwise 0.
    #[serde(skip_serializing_if = "is_zero")]
    pub samples: u64,
    /// How often one was seen in use, or how many misses were seen.
    #[serde(skip_serializing_if = "is_zero")]
    pub uses: u64,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// An allocation site.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SiteProfile {
    /// Its name.
    pub key: Key,
    /// Byte offset in the program's file.
    pub offset: u64,
    /// File and line of the source, if the program has them.
    pub line: Option<String>,
    /// Its counts.
    pub counts: Counts,
}

/// The allocation sites of a program, as one run or several showed them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// The program's name.
    pub program: String,
    /// Its sites, each key once.
    pub sites: Vec<SiteProfile>,
}

impl Counts {
    /// The place in [`Counts::accesses`] of an object that was accessed so often.
    pub fn bucket(accesses: u64) -> usize {
        (u64::BITS - accesses.leading_zeros()) as usize
    }

    /// Survivors by how often they were accessed. Where that was not counted, all as often as the mean.
    pub fn accesses(&self) -> Vec<u64> {
        if !self.accesses.is_empty() || self.survivors == 0 {
            return self.accesses.clone();
        }
        let mean = self.old_reads.saturating_add(self.old_writes) / self.survivors;
        let mut all = vec![0; Counts::bucket(mean) + 1];
        all[Counts::bucket(mean)] = self.survivors;
        all
    }

    /// Adds what another run counted.
    pub fn add(&mut self, other: &Counts) {
        // Where one run did not count, the sum is not known exactly either.
        let mut accesses = match self.accesses.is_empty() && other.accesses.is_empty() {
            true => Vec::new(),
            false => self.accesses(),
        };
        if !(self.accesses.is_empty() && other.accesses.is_empty()) {
            let more = other.accesses();
            accesses.resize(accesses.len().max(more.len()), 0);
            accesses
                .iter_mut()
                .zip(more)
                .for_each(|(sum, more)| *sum = sum.saturating_add(more));
        }
        for (sum, more) in [
            (&mut self.objects, other.objects),
            (&mut self.bytes, other.bytes),
            (&mut self.survivors, other.survivors),
            (&mut self.survived_bytes, other.survived_bytes),
            (&mut self.reads, other.reads),
            (&mut self.writes, other.writes),
            (&mut self.old_reads, other.old_reads),
            (&mut self.old_writes, other.old_writes),
            (&mut self.freed, other.freed),
            (&mut self.lifetime_bytes, other.lifetime_bytes),
            (&mut self.misses, other.misses),
            (&mut self.write_misses, other.write_misses),
            (&mut self.fast_ns, other.fast_ns),
            (&mut self.slow_ns, other.slow_ns),
            (&mut self.samples, other.samples),
            (&mut self.uses, other.uses),
        ] {
            *sum = sum.saturating_add(more);
        }
        // Runs come one after the other.
        self.peak_bytes = self.peak_bytes.max(other.peak_bytes);
        self.accesses = accesses;
    }
}

impl Profile {
    /// Whether the profile is of a program that has these functions. One that was built anew may have lost some; one that
    /// is called otherwise must have nearly all, since programs share libraries. `file` is named if it is not.
    ///
    /// # Errors
    /// If too many of the profiled objects were born in functions that the program does not have: more than half, or
    /// a tenth if the program has another name.
    pub fn check(
        &self,
        file: &str,
        program: &str,
        has_function: impl Fn(&str) -> bool,
    ) -> Result<(), ProfileError> {
        let objects = |site: &&SiteProfile| site.counts.objects.max(1);
        let sum = |sum: u64, site: &SiteProfile| sum.saturating_add(objects(&site));
        let all = self.sites.iter().fold(0, sum);
        let known = |site: &&SiteProfile| has_function(&site.key.function);
        let here: u64 = self
            .sites
            .iter()
            .filter(known)
            .map(|site| objects(&site))
            .sum();
        let least = match self.program == program {
            true => 0.5,
            false => RENAMED,
        };
        if (here as f64) < least * all as f64 {
            return Err(ProfileError::Foreign {
                file: file.into(),
                of: self.program.clone(),
                program: program.into(),
                known: self.sites.iter().filter(known).count(),
                sites: self.sites.len(),
            });
        }
        Ok(())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A site of a function with a name.
    pub fn site(function: &str, counts: Counts) -> SiteProfile {
        SiteProfile {
            key: Key {
                function: function.into(),
                ty: "T".into(),
                nth: 0,
            },
            offset: 1,
            line: None,
            counts,
        }
    }

    pub fn profile(sites: impl IntoIterator<Item = SiteProfile>) -> Profile {
        Profile {
            program: "p.wasm".into(),
            sites: sites.into_iter().collect(),
        }
    }

    fn objects(objects: u64, survivors: u64, accesses: &[u64]) -> Counts {
        Counts {
            objects,
            survivors,
            old_reads: 8 * survivors,
            accesses: accesses.to_vec(),
            ..Counts::default()
        }
    }

    #[test]
    fn runs_add_up_by_name() {
        let mut sum = profile([site("a", objects(10, 3, &[1, 2]))]);
        let more = profile([
            site("b", objects(1, 0, &[])),
            site("a", objects(5, 4, &[0, 0, 4])),
        ]);
        sum.merge(&more).unwrap();
        assert_eq!(sum.sites.len(), 2);
        let a = &sum.sites[0].counts;
        assert_eq!(
            (a.objects, a.survivors, &a.accesses[..]),
            (15, 7, &[1, 2, 4][..])
        );
        // A run that did not count how often: its survivors were accessed 8 times on average.
        sum.merge(&profile([site("a", objects(1, 1, &[]))]))
            .unwrap();
        assert_eq!(sum.sites[0].counts.accesses, [1, 2, 4, 0, 1]);
        let other = Profile {
            program: "q.wasm".into(),
            ..Profile::default()
        };
        let error = sum.merge(&other).unwrap_err().to_string();
        assert!(
            error.contains("p.wasm") && error.contains("q.wasm"),
            "{error}"
        );
    }

    #[test]
    fn a_profile_of_another_program_is_refused() {
        let mine = profile([
            site("load", objects(100, 0, &[])),
            site("gone", objects(99, 0, &[])),
        ]);
        assert!(
            mine.check("p.sites", "p.wasm", |f| f == "load").is_ok(),
            "built anew"
        );
        assert!(mine.check("p.sites", "p.wasm", |f| f == "gone").is_err());
        assert!(
            mine.check("p.sites", "q.wasm", |f| f == "load").is_err(),
            "a library that both have"
        );
        assert!(mine.check("p.sites", "q.wasm", |_| true).is_ok(), "renamed");
        let error = mine.check("p.sites", "q.wasm", |_| false).unwrap_err();
        assert_eq!(
            error.to_string(),
            "p.sites: a profile of p.wasm, not of q.wasm: 0 of its 2 allocation sites are in functions of this program; \
             make one with `varve profile q.wasm -o FILE.sites`"
        );
        assert!(profile([]).check("p.sites", "q.wasm", |_| false).is_ok());
    }
}
