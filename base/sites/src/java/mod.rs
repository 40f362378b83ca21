//! Allocation sites of Java programs on a stock virtual machine: where objects are made, which collections they survive, and
//! what fills the old generation.
//!
//! ```text
//! { "format": "varve sites", "version": 2, "kind": "java", "program": "Orders", "command": ["java", "Orders"],
//!   "heap": { "java": 17, "collector": "Serial", "old_by": "address", "young_collections": 40, "tenuring": 5, ... },
//!   "sampled": { "interval_bytes": 524288, "milliseconds": 900, ... }, "lifetimes": [[65536, 812000], ...],
//!   "frames": [ { "class": "Orders", "method": "order", "file": "Orders.java", "line": 24 } ],
//!   "sites": [ { "stack": [0], "class": "Orders$Item", "objects": 12, "bytes": 288, "samples": 3,
//!                "survived": [[9, 216]], "died": [[3, 72]], "old_objects": 8, "old_bytes": 192, ... } ] }
//! ```
//!
//! All counts are estimates from samples. Collections that an object survives are counted while it is young; a collection of
//! the young generation says nothing of old objects.
//!
//! | file | job |
//! |---|---|
//! | `mod` | what is known |
//! | `file` | profiles in files, and how runs add up |
//! | [`advice`] | the size of the young generation, and which sites fill the old one |
//! | [`names`] | names of classes, and which line of a stack is the program's own |

pub mod advice;
mod file;
pub mod names;

use crate::Counts;
use serde::{Deserialize, Serialize};

/// A call, as its class file tells.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Frame {
    /// The class, such as `java.util.ArrayList`.
    pub class: String,
    /// The method.
    pub method: String,
    /// The source file, without its folder; empty if it is not known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub file: String,
    /// The line; 0 if it is not known.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub line: u32,
}

fn is_zero(n: &u32) -> bool {
    *n == 0
}

fn is_none(n: &u64) -> bool {
    *n == 0
}

/// Looks from which on it is said how much of a site is used: one in twenty that is used is found in 92 of 100 cases.
pub const LOOKS: u64 = 50;

/// Objects, and their bytes.
pub type Pair = (u64, u64);

/// The fate of a site's objects.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Ages {
    /// Those that were seen to survive their first, second, ... collection while they were young.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub survived: Vec<Pair>,
    /// Those that were seen to die in it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub died: Vec<Pair>,
    /// Objects that reached the old generation, or were born there.
    pub old_objects: u64,
    /// Their bytes.
    pub old_bytes: u64,
    /// Of these, bytes that were found dead later.
    pub old_freed_bytes: u64,
    /// Objects alive at the end, or not known to be dead.
    pub live_objects: u64,
    /// Their bytes.
    pub live_bytes: u64,
    /// Looks at pages of old objects.
    #[serde(skip_serializing_if = "is_none")]
    pub looks: u64,
    /// Bytes that these objects stand for, summed over looks.
    #[serde(skip_serializing_if = "is_none")]
    pub looked_bytes: u64,
    /// Of these, bytes of looks that found the page used.
    #[serde(skip_serializing_if = "is_none")]
    pub used_bytes: u64,
}

/// A site: a stack, and the class of what is made there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Site {
    /// The innermost first, 16 frames at most. Empty: all sites that had no room of their own.
    pub stack: Vec<Frame>,
    /// The class, such as `byte[]`.
    pub class: String,
    /// Objects and bytes born; `freed`, `lifetime_bytes` of those that were found dead; `survivors` of the first collection.
    pub counts: Counts,
    /// Their fate.
    pub ages: Ages,
}

/// The virtual machine and its heap.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Heap {
    /// Feature version, such as 17.
    pub java: u32,
    /// The collector.
    pub collector: String,
    /// How it was known that an object is old: by its `address`, or by its `age`; empty if it was not.
    pub old_by: String,
    /// Collections of the young generation.
    pub young_collections: u64,
    /// Collections of everything.
    pub full_collections: u64,
    /// Time for which it stood still for collections, ms; 0 if it is not known.
    #[serde(skip_serializing_if = "is_none")]
    pub paused_ms: u64,
    /// Collections that a young object survived without being promoted, at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenuring: Option<u32>,
    /// Size of the young generation at the end, bytes; 0 if it is not known.
    pub young_bytes: u64,
    /// Size of the old generation at the end, bytes; 0 if it is not known.
    pub old_bytes: u64,
    /// Bytes that the program allocated.
    pub allocated_bytes: u64,
    /// Bytes that were old and not found dead: their lifetimes are not known.
    pub kept_bytes: u64,
    /// Bytes that were young and alive at the end.
    pub undecided_bytes: u64,
}

/// How samples were taken.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Sampling {
    /// Bytes that a thread allocated between two samples, on average.
    pub interval_bytes: u64,
    /// Time from the first to the last, ms.
    pub milliseconds: u64,
    /// Threads had no buffers of their own to allocate from (`-XX:-UseTLAB`).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub without_tlabs: bool,
    /// How often samples became too many to follow all: each time half of them were given up.
    pub thinned: u32,
    /// Samples that died in one of several collections, it is not known which: they count for none.
    pub late: u64,
}

/// The allocation sites of a Java program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// Main class, or the jar's file.
    pub program: String,
    /// The command; of a machine that ran already, its own command line.
    pub command: Vec<String>,
    /// The machine.
    pub heap: Heap,
    /// The samples.
    pub sampled: Sampling,
    /// Lifetimes of objects found dead, in bytes that the program allocated meanwhile: the end of a class, and bytes of objects
    /// in it. Ascending.
    pub lifetimes: Vec<(u64, u64)>,
    /// The sites.
    pub sites: Vec<Site>,
}

impl Ages {
    /// The share of bytes that survives this many collections, from 1 (all) to 0; `None` if no sample got that far.
    ///
    /// It is the product of what survived each one of those that met it (the estimator of Kaplan and Meier), so objects that were
    /// too young at the end are not taken for dead. Promoted objects left after they survived.
    pub fn surviving(&self, collections: usize) -> Option<f64> {
        let mut part = 1.0;
        for at in 0..collections {
            let bytes = |all: &[Pair]| all.get(at).map_or(0, |pair| pair.1) as f64;
            let (survived, died) = (bytes(&self.survived), bytes(&self.died));
            if survived + died == 0.0 {
                // Nothing was left to meet this one.
                return (part == 0.0).then_some(0.0);
            }
            part *= survived / (survived + died);
        }
        Some(part)
    }

    /// The share of old bytes whose page was used in a look, 0 to 1; `None` if there were fewer than [`LOOKS`].
    pub fn used(&self) -> Option<f64> {
        let enough = self.looks >= LOOKS && self.looked_bytes > 0;
        enough.then(|| self.used_bytes as f64 / self.looked_bytes as f64)
    }

    /// Adds what another run, or another site, counted.
    pub fn add(&mut self, other: &Ages) {
        let lists = [
            (&mut self.survived, &other.survived),
            (&mut self.died, &other.died),
        ];
        for (sum, more) in lists {
            sum.resize(sum.len().max(more.len()), (0, 0));
            for (sum, more) in sum.iter_mut().zip(more) {
                *sum = (sum.0.saturating_add(more.0), sum.1.saturating_add(more.1));
            }
        }
        for (sum, more) in [
            (&mut self.old_objects, other.old_objects),
            (&mut self.old_bytes, other.old_bytes),
            (&mut self.old_freed_bytes, other.old_freed_bytes),
            (&mut self.live_objects, other.live_objects),
            (&mut self.live_bytes, other.live_bytes),
            (&mut self.looks, other.looks),
            (&mut self.looked_bytes, other.looked_bytes),
            (&mut self.used_bytes, other.used_bytes),
        ] {
            *sum = sum.saturating_add(more);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SitesFile;

    #[test]
    fn survival_is_of_those_that_met_a_collection() {
        let ages = Ages {
            // ten objects met their first collection, five of them; of four that met their second one died
            survived: vec![(5, 500), (3, 300)],
            died: vec![(5, 500), (1, 100)],
            ..Ages::default()
        };
        assert_eq!(ages.surviving(0), Some(1.0));
        assert_eq!(ages.surviving(1), Some(0.5));
        assert_eq!(ages.surviving(2), Some(0.375));
        assert_eq!(ages.surviving(3), None, "no sample got that far");
        let dead = Ages {
            died: vec![(5, 500)],
            ..Ages::default()
        };
        assert_eq!(dead.surviving(4), Some(0.0), "who is dead stays dead");
        assert_eq!(Ages::default().surviving(1), None);
    }

    #[test]
    fn runs_add_up_site_by_site() {
        let site = |line, bytes| Site {
            stack: vec![Frame {
                line,
                ..Frame::default()
            }],
            class: "byte[]".into(),
            counts: Counts {
                bytes,
                ..Counts::default()
            },
            ages: Ages {
                survived: vec![(1, bytes)],
                ..Ages::default()
            },
        };
        let run = |line, bytes| Profile {
            program: "P".into(),
            lifetimes: vec![(1024, bytes)],
            sites: vec![site(line, bytes)],
            heap: Heap {
                young_collections: 2,
                young_bytes: bytes,
                ..Heap::default()
            },
            ..Profile::default()
        };
        let mut sum = run(1, 10);
        sum.merge(&run(2, 20)).unwrap();
        sum.merge(&run(1, 30)).unwrap();
        assert_eq!(sum.sites.len(), 2);
        assert_eq!(sum.sites[0].counts.bytes, 40);
        assert_eq!(sum.sites[0].ages.survived, [(2, 40)]);
        assert_eq!(sum.lifetimes, [(1024, 60)]);
        assert_eq!(sum.heap.young_collections, 6);
        assert_eq!(sum.heap.young_bytes, 30, "sizes are those of the last run");
        let other = Profile {
            heap: Heap {
                collector: "G1".into(),
                ..Heap::default()
            },
            ..run(1, 10)
        };
        let error = sum.merge(&other).unwrap_err().to_string();
        assert!(error.contains("G1"), "{error}");
    }
}
