//! Allocation sites of native programs: calls of an allocator with the calls that led there, mappings, static
//! variables, and what is left.
//!
//! ```text
//! { "format": "varve sites", "version": 2, "kind": "native", "program": "redis-server",
//!   "command": ["redis-server", "--save", ""], "machine": "optane-6242",
//!   "modules": [ { "name": "redis-server", "path": "/usr/bin/redis-server", "build_id": "5f0c..." } ],
//!   "frames": [ { "module": 0, "offset": 305419, "function": "dictResize", "within": 43,
//!                 "line": "dict.c:214" } ],
//!   "sites": [ { "kind": "heap", "stack": [0], "objects": 12, "bytes": 6144, "reads": 100, "writes": 20, ... } ] }
//! ```
//!
//! A frame of a script, such as one in Python, is a line of a file: the file is its module, the line's number the address, and what is in
//! the file its build id. It comes behind the calls of the interpreter that it led to.
//!
//! A frame is known by its module's build id, or by the module's name where it has none, and by an address in it that
//! does not change from run to run. So a profile fits the very build that it was made with. Lines are for readers, and
//! functions for those too who want it for another build ([`stale`]).
//!
//! | file | job |
//! |---|---|
//! | `native` | frames, keys, profiles |
//! | `file` | profiles in files, and how they add up |
//! | `cached` | hot sites that a cache held while the profile was made |
//! | `stale` | sites of another build, by the names of their functions |
//! | `names` | which functions only pass allocations on; what sites are called for people |

pub mod cached;
mod file;
pub mod names;
pub mod stale;

use std::hash::{Hash, Hasher};

use serde::{Deserialize, Serialize};

use crate::Counts;
use crate::any_site::join;

/// A function that was inlined at a place.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Inlined {
    /// The function, demangled.
    pub function: String,
    /// File and line that were being executed in it, such as `dict.c:214`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<String>,
}

/// The place of a call: what a return address says. Two frames are equal if they are at one address of one module.
#[derive(Clone, Debug, Default)]
pub struct Frame {
    /// Name of the program's or library's file, without its folder. Empty if the address belongs to none.
    pub module: String,
    /// Build id of the file in hexadecimal digits; empty if it has none.
    pub build_id: String,
    /// The return address as the file counts addresses (link-time virtual address). Without a module the address
    /// itself.
    pub offset: u64,
    /// The function, demangled. With inlined functions it is the one that has them inside.
    pub function: Option<String>,
    /// Bytes from the beginning of that function to the return address, by which another build's is found.
    pub within: Option<u64>,
    /// File and line of the call, such as `dict.c:214`; in `function`, not in what is inlined.
    pub line: Option<String>,
    /// Functions that were inlined at the call, the innermost first.
    pub inlined: Vec<Inlined>,
}

/// The identity of a module.
fn same<'a>(module: &'a str, build_id: &'a str) -> (bool, &'a str) {
    match build_id.is_empty() {
        true => (false, module),
        false => (true, build_id),
    }
}

impl Frame {
    fn id(&self) -> ((bool, &str), u64) {
        (same(&self.module, &self.build_id), self.offset)
    }

    /// Is this a line of a script? Then its address is the line of its own file.
    pub fn is_script(&self) -> bool {
        let line = self.line.as_deref().and_then(|line| line.rsplit_once(':'));
        line.is_some_and(|(file, line)| file == self.module && line == self.offset.to_string())
    }
}

/// The identity of an allocation site.
#[derive(Clone, Debug)]
pub enum Key {
    /// A call of an allocator: the calls that led there, the innermost first.
    Heap(Vec<Frame>),
    /// Memory that the program mapped itself, likewise.
    Mapping(Vec<Frame>),
    /// A static variable.
    Static {
        /// Name of the module's file.
        module: String,
        /// Its build id; empty if it has none.
        build_id: String,
        /// The variable, demangled.
        symbol: String,
    },
    /// The stacks of all threads.
    Stacks,
    /// All other memory.
    Rest,
}

/// A key by what two equal ones have in common.
#[derive(PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Id<'a> {
    Heap(&'a [Frame]),
    Mapping(&'a [Frame]),
    Static((bool, &'a str), &'a str),
    Stacks,
    Rest,
}

impl Key {
    fn id(&self) -> Id<'_> {
        match self {
            Key::Heap(stack) => Id::Heap(stack),
            Key::Mapping(stack) => Id::Mapping(stack),
            Key::Static {
                module,
                build_id,
                symbol,
            } => Id::Static(same(module, build_id), symbol),
            Key::Stacks => Id::Stacks,
            Key::Rest => Id::Rest,
        }
    }

    /// The calls that led there, the innermost first; none for memory without an allocation call.
    pub fn stack(&self) -> &[Frame] {
        match self {
            Key::Heap(stack) | Key::Mapping(stack) => stack,
            _ => &[],
        }
    }

    /// The same site without the lines of scripts: what native code can tell of it.
    pub fn without_scripts(&self) -> Key {
        let native = |stack: &[Frame]| {
            let native = stack.iter().take_while(|frame| !frame.is_script());
            native.cloned().collect()
        };
        match self {
            Key::Heap(stack) => Key::Heap(native(stack)),
            Key::Mapping(stack) => Key::Mapping(native(stack)),
            other => other.clone(),
        }
    }

    /// The same site, its stack cut `depth` frames after the first that is no [wrapper](names::is_wrapper); at least
    /// that one is kept.
    pub fn cut(&self, depth: usize) -> Key {
        let cut = |stack: &[Frame]| {
            let keep = names::first(stack).saturating_add(depth.max(1));
            stack[..keep.min(stack.len())].to_vec()
        };
        match self {
            Key::Heap(stack) => Key::Heap(cut(stack)),
            Key::Mapping(stack) => Key::Mapping(cut(stack)),
            other => other.clone(),
        }
    }
}

/// Equality, order and hash of a type by what its `id` gives.
macro_rules! by_id {
    ($type:ty) => {
        impl PartialEq for $type {
            fn eq(&self, other: &$type) -> bool {
                self.id() == other.id()
            }
        }
        impl Eq for $type {}
        impl PartialOrd for $type {
            fn partial_cmp(&self, other: &$type) -> Option<std::cmp::Ordering> {
                Some(self.cmp(other))
            }
        }
        impl Ord for $type {
            fn cmp(&self, other: &$type) -> std::cmp::Ordering {
                self.id().cmp(&other.id())
            }
        }
        impl Hash for $type {
            fn hash<H: Hasher>(&self, hasher: &mut H) {
                self.id().hash(hasher);
            }
        }
    };
}

by_id!(Frame);
by_id!(Key);

/// A file of the program, or a library.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Module {
    /// Name of the file, without its folder.
    pub name: String,
    /// Where it was.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub path: String,
    /// Build id in hexadecimal digits; empty if it has none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub build_id: String,
}

/// An allocation site and what was counted of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// Its identity.
    pub key: Key,
    /// Its counts.
    pub counts: Counts,
}

/// The allocation sites of a native program, as one run or several showed them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// Name of the program's file, without its folder.
    pub program: String,
    /// The command that was run: the program and its arguments.
    pub command: Vec<String>,
    /// The machine on which [`Counts::fast_ns`] and [`Counts::slow_ns`] hold; empty if these were not counted.
    pub machine: String,
    /// The program and its libraries, those with sites or without.
    pub modules: Vec<Module>,
    /// How samples were taken, where the profile is one from samples: then its counts are estimates. Misses are pages that were
    /// used, summed over scans.
    pub sampled: Option<Sampling>,
    /// Its sites, each key once.
    pub sites: Vec<Site>,
}

/// How a profile from samples was made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sampling {
    /// The source of the samples, for readers.
    pub source: String,
    /// How often.
    pub looks: u64,
    /// Milliseconds from the first scan to the last.
    pub milliseconds: u64,
    /// Blind spots, one sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blind: Vec<String>,
}

impl Profile {
    /// The same with stacks [cut](Key::cut). What is one site then is added up: its peak is the sum of peaks, which
    /// need not have been at one time.
    pub fn cut(&self, depth: usize) -> Profile {
        self.with_keys(|key| key.cut(depth))
    }

    /// The same [without the lines of scripts](Key::without_scripts), for those who see native code alone. What is one site
    /// then is added up as above.
    pub fn without_scripts(&self) -> Profile {
        self.with_keys(Key::without_scripts)
    }

    fn with_keys(&self, new: impl Fn(&Key) -> Key) -> Profile {
        let cut = self.sites.iter().map(|site| Site {
            key: new(&site.key),
            counts: site.counts.clone(),
        });
        let mut sites = Vec::new();
        join(&mut sites, cut.collect(), |sum: &mut Site, more| {
            let peak = sum.counts.peak_bytes.saturating_add(more.counts.peak_bytes);
            sum.counts.add(&more.counts);
            sum.counts.peak_bytes = peak;
        });
        Profile {
            sites,
            ..self.clone()
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::SitesFile;

    /// A frame of a module with a build id.
    pub fn frame(function: &str, offset: u64) -> Frame {
        Frame {
            module: "p".into(),
            build_id: "abcd".into(),
            offset,
            function: Some(function.into()),
            ..Frame::default()
        }
    }

    pub fn site(key: Key, counts: Counts) -> Site {
        Site { key, counts }
    }

    pub fn profile(sites: impl IntoIterator<Item = Site>) -> Profile {
        Profile {
            program: "p".into(),
            command: vec!["p".into(), "-x".into()],
            machine: "optane-6242".into(),
            modules: vec![Module {
                name: "p".into(),
                path: "/bin/p".into(),
                build_id: "abcd".into(),
            }],
            sampled: None,
            sites: sites.into_iter().collect(),
        }
    }

    fn peak(objects: u64, peak_bytes: u64) -> Counts {
        Counts {
            objects,
            peak_bytes,
            ..Counts::default()
        }
    }

    #[test]
    fn a_frame_is_a_place_in_a_build_whatever_it_is_called() {
        let moved = Frame {
            module: "renamed".into(),
            function: None,
            line: Some("a.c:1".into()),
            ..frame("f", 16)
        };
        assert_eq!(frame("f", 16), moved);
        assert_ne!(frame("f", 16), frame("f", 17));
        let rebuilt = Frame {
            build_id: "abce".into(),
            ..frame("f", 16)
        };
        assert_ne!(frame("f", 16), rebuilt);
        // without build ids the name decides, which is never taken for a build id
        let named = |module: &str, build_id: &str| Frame {
            module: module.into(),
            build_id: build_id.into(),
            ..frame("f", 16)
        };
        assert_eq!(named("p", ""), named("p", ""));
        assert_ne!(named("p", ""), named("q", ""));
        assert_ne!(named("abcd", ""), named("p", "abcd"));
        assert_ne!(
            Key::Heap(vec![frame("f", 1)]),
            Key::Mapping(vec![frame("f", 1)])
        );
    }

    #[test]
    fn two_runs_have_the_larger_peak_and_two_callers_the_sum() {
        let called_from = |offset| Key::Heap(vec![frame("make", 1), frame("main", offset)]);
        let first = profile([
            site(called_from(10), peak(1, 100)),
            site(called_from(20), peak(2, 50)),
        ]);
        let mut both = first.clone();
        both.merge(&profile([site(called_from(20), peak(3, 70))]))
            .unwrap();
        let seen: Vec<_> = both.sites.iter().map(|s| s.counts.peak_bytes).collect();
        assert_eq!((seen, both.sites[1].counts.objects), (vec![100, 70], 5));
        let cut = first.cut(1);
        assert_eq!(cut.sites.len(), 1);
        assert_eq!(cut.sites[0].key, Key::Heap(vec![frame("make", 1)]));
        let counts = &cut.sites[0].counts;
        assert_eq!((counts.objects, counts.peak_bytes), (3, 150));
        assert_eq!(first.cut(2), first);
    }

    #[test]
    fn a_cut_keeps_the_first_frame_that_is_no_wrapper() {
        let key = Key::Heap(vec![
            frame("zmalloc", 1),
            frame("dictExpand", 2),
            frame("main", 3),
        ]);
        assert_eq!(
            key.cut(0),
            Key::Heap(vec![frame("", 1), frame("", 2)]),
            "never nothing"
        );
        assert_eq!(key.cut(2), key);
        assert_eq!(Key::Heap(vec![]).cut(2), Key::Heap(vec![]));
        assert_eq!(Key::Stacks.cut(1), Key::Stacks);
    }

    /// A line of a script.
    pub fn line(file: &str, function: &str, number: u64) -> Frame {
        Frame {
            module: file.into(),
            build_id: "0123456789abcdef".into(),
            offset: number,
            function: Some(function.into()),
            line: Some(format!("{file}:{number}")),
            ..Frame::default()
        }
    }

    #[test]
    fn lines_of_scripts_are_sites_which_native_code_takes_together() {
        let called = |number| {
            Key::Heap(vec![
                frame("PyArray_Zeros", 1),
                line("np.py", "<module>", number),
            ])
        };
        let both = profile([site(called(3), peak(1, 100)), site(called(5), peak(2, 50))]);
        assert_ne!(called(3), called(5));
        assert_eq!(
            both.cut(1).sites.len(),
            2,
            "the interpreter's own calls say too little"
        );
        let native = both.without_scripts();
        assert_eq!(native.sites.len(), 1);
        assert_eq!(native.sites[0].key.stack(), [frame("PyArray_Zeros", 1)]);
        assert_eq!(native.sites[0].counts.peak_bytes, 150);
        let in_c = Frame {
            line: Some("np.c:3".into()),
            ..frame("main", 3)
        };
        assert!(line("np.py", "f", 3).is_script() && !in_c.is_script());
    }

    #[test]
    fn samples_and_exact_counts_do_not_add_up() {
        let sampled = Profile {
            sampled: Some(Sampling {
                looks: 5,
                ..Sampling::default()
            }),
            ..profile([])
        };
        let error = profile([]).merge(&sampled).unwrap_err().to_string();
        assert!(error.contains("samples"), "{error}");
        let mut sum = sampled.clone();
        sum.merge(&sampled).unwrap();
        assert_eq!(sum.sampled.unwrap().looks, 10);
    }

    #[test]
    fn times_of_two_machines_do_not_add_up() {
        let mut one = profile([]);
        let other = Profile {
            machine: "mars".into(),
            ..profile([])
        };
        let error = one.merge(&other).unwrap_err().to_string();
        assert!(
            error.contains("optane-6242") && error.contains("mars"),
            "{error}"
        );
    }
}
