//! Every page policy by name.

mod first_touch;
mod random;
mod static_;

pub use first_touch::FirstTouch;
pub use random::Random;
pub use static_::Static;

use crate::bins::MAX_LEVELS;
use crate::frames::Frames;
use crate::params::{Error, Param, Unit, Values};
use crate::policy::Policy;
use crate::topology::Topology;

/// What a policy needs of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// Any machine.
    Any,
    /// DRAM as a cache of slow memory.
    MemoryMode,
    /// Fast and slow memory as nodes of their own.
    Flat,
}

/// One policy: what it is called, what it takes, how it is made.
#[derive(Clone, Copy)]
pub struct Entry {
    /// The name in a specification, such as `static`.
    pub name: &'static str,
    /// One line: what it does.
    pub about: &'static str,
    /// Where it is described.
    pub source: &'static str,
    /// What it needs of a machine.
    pub needs: Needs,
    /// Its own parameters; [`crate::params::SCALE`] comes on top.
    pub params: &'static [Param],
    /// Makes it for a machine.
    pub build: Build,
}

/// Makes a policy and the frames it works on.
pub type Build = fn(&Values, &Topology) -> Result<(Frames, Box<dyn Policy>), Error>;

const ENTRIES: &[Entry] = &[
    Entry {
        name: "first-touch",
        about: "lowest free frame of the nearest memory: Linux on a fresh, unfragmented system",
        source: "Linux's default; paper D, section 2.1",
        needs: Needs::Any,
        params: &[],
        build: |_, topology| {
            Ok((
                Frames::in_order(topology),
                Box::new(FirstTouch::new(topology)),
            ))
        },
    },
    Entry {
        name: "random",
        about: "runs of free frames in random order: Linux whose memory is fragmented",
        source: "paper D, section 5.1",
        needs: Needs::Any,
        params: &[
            Param {
                key: "run",
                unit: Unit::Bytes,
                default: "4MiB",
                scaled: true,
                about: "contiguous bytes of free memory: the largest block of Linux's buddy allocator on x86-64 (MAX_ORDER), which fragmentation leaves whole",
            },
            Param {
                key: "seed",
                unit: Unit::Count {
                    min: 0,
                    max: u64::MAX,
                },
                default: "1",
                scaled: false,
                about: "seed of the order",
            },
        ],
        build: |values, topology| {
            let run = (values.number("run") / topology.page_bytes).clamp(1, u64::from(u32::MAX));
            let policy = Random::new(topology, run as u32, values.number("seed"));
            Ok((Frames::in_order(topology), Box::new(policy)))
        },
    },
    Entry {
        name: "static",
        about: "a bin with the fewest pages: JC-static",
        source: "paper D, section 4.2",
        needs: Needs::MemoryMode,
        params: &[],
        build: |_, topology| {
            Ok((
                Frames::in_bins(topology, pages_per_bin(topology) + 1),
                Box::new(Static::new(topology)),
            ))
        },
    },
];

/// Every policy, in the order of the documentation.
pub fn policies() -> &'static [Entry] {
    ENTRIES
}

/// Reads a specification, `NAME` or `NAME:key=value,...`, without making the policy.
///
/// # Errors
/// An unknown name, or the first parameter that is unknown, repeated, unreadable or missing.
pub fn parse(spec: &str) -> Result<(&'static Entry, Values), Error> {
    let (name, text) = spec.split_once(':').unwrap_or((spec, ""));
    let name = name.trim();
    let Some(entry) = policies().iter().find(|entry| entry.name == name) else {
        let known: Vec<&str> = policies().iter().map(|entry| entry.name).collect();
        return Err(Error::UnknownPolicy {
            name: name.into(),
            known: known.join(", "),
        });
    };
    Ok((entry, Values::parse(entry.name, entry.params, text)?))
}

impl Needs {
    /// Does the policy `policy` go with `topology`?
    ///
    /// # Errors
    /// One line that says what the machine lacks.
    pub fn check(self, policy: &str, topology: &Topology) -> Result<(), Error> {
        let (fits, needs, mode) = match self {
            Needs::Any => return Ok(()),
            Needs::MemoryMode => (
                topology.has_cache(),
                "a DRAM cache in front of slow memory",
                "memory-mode",
            ),
            Needs::Flat => (
                topology.has_tiers(),
                "fast and slow memory as separate nodes",
                "flat",
            ),
        };
        if fits {
            return Ok(());
        }
        let has = match (topology.has_cache(), topology.has_tiers()) {
            (true, _) => "its DRAM as a cache",
            (_, true) => "fast and slow nodes without a cache",
            _ => "only one kind of memory",
        };
        Err(Error::Unfit {
            policy: policy.into(),
            needs,
            has,
            mode,
        })
    }
}

/// Most pages that share a bin in any node.
fn pages_per_bin(topology: &Topology) -> u32 {
    let deepest = topology
        .nodes
        .iter()
        .filter_map(|node| Some(node.frames.div_ceil(node.bins?)));
    deepest.max().unwrap_or(1).min(MAX_LEVELS - 1)
}

/// Nodes by distance for each socket.
fn nearest(topology: &Topology) -> Vec<Vec<usize>> {
    let sockets = topology
        .nodes
        .iter()
        .map(|node| node.socket + 1)
        .max()
        .unwrap_or(1);
    (0..sockets)
        .map(|socket| topology.nearest(socket))
        .collect()
}

/// Nodes by distance from `socket`; a socket without memory looks from socket 0.
fn seen_from(nearest: &[Vec<usize>], socket: u32) -> &[usize] {
    nearest
        .get(socket as usize)
        .or(nearest.first())
        .map_or(&[], Vec::as_slice)
}
