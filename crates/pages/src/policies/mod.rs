//! Every page policy by name.

pub mod daemon;
mod dynamic;
mod first_touch;
mod hotset;
mod interleave;
mod only;
mod oracle;
mod random;
mod static_;
mod trays;

pub use dynamic::Dynamic;
pub use first_touch::FirstTouch;
pub use hotset::HotSet;
pub use interleave::Interleave;
pub use only::Only;
pub use oracle::Oracle;
pub use random::Random;
pub use static_::Static;
pub use trays::{ColourOf, Meter, TrayPolicy};

use daemon::Settings;

use crate::bins::MAX_LEVELS;
use crate::frames::Frames;
use crate::governor::BandwidthModel;
use crate::params::{Error, Param, Unit, Values};
use crate::policy::Policy;
use crate::topology::Topology;
use crate::trays::{Colour, DimmMap, Trays};

/// What a policy needs of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// Any machine.
    Any,
    /// DRAM as a cache of slow memory.
    MemoryMode,
    /// Fast and slow memory as nodes of their own.
    Flat,
    /// DIMMs that lie one after the other: channels that are not interleaved.
    Trays,
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

/// A whole number from `min` to `max`.
const fn count(
    key: &'static str,
    min: u64,
    max: u64,
    default: &'static str,
    about: &'static str,
) -> Param {
    Param {
        key,
        unit: Unit::Count { min, max },
        default,
        scaled: false,
        about,
    }
}

/// The parameter of policies that draw among equal bins.
const SEED: Param = count(
    "seed",
    0,
    u64::MAX,
    "1",
    "seed of the choice among equal bins; 0: always the one that has waited longest",
);

/// The parameters of a daemon and a seed.
const fn with_seed() -> [Param; daemon::PARAMS.len() + 1] {
    let mut all = [SEED; daemon::PARAMS.len() + 1];
    let mut at = 0;
    while at < daemon::PARAMS.len() {
        all[at] = daemon::PARAMS[at];
        at += 1;
    }
    all
}

/// The parameters of a daemon and the DRAM that is kept free.
const fn with_spare() -> [Param; daemon::PARAMS.len() + 1] {
    let spare = Param {
        key: "spare",
        unit: Unit::Bytes,
        default: "0",
        scaled: true,
        about: "DRAM of each socket kept free for new pages; HeMem's artifact makes room only for a hot page, hence 0",
    };
    let mut all = [spare; daemon::PARAMS.len() + 1];
    let mut at = 0;
    while at < daemon::PARAMS.len() {
        all[at] = daemon::PARAMS[at];
        at += 1;
    }
    all
}

/// Makes a policy and the frames it works on.
pub type Build = fn(&Values, &Topology) -> Result<(Frames, Box<dyn Policy>), Error>;

const ENTRIES: &[Entry] = &[
    Entry {
        name: "first-touch",
        about: "lowest free frame of the nearest memory: Linux on a fresh, unfragmented system",
        source: "Linux's default; Johnny Cache, section 2.1",
        needs: Needs::Any,
        params: &[],
        build: |_, topology| {
            let policy = FirstTouch::new(topology);
            Ok((Frames::in_order(topology), Box::new(policy)))
        },
    },
    Entry {
        name: "interleave",
        about: "pages in turn over all nodes: Linux's (weighted) interleave",
        source: "Linux, set_mempolicy(2): MPOL_INTERLEAVE, MPOL_WEIGHTED_INTERLEAVE",
        needs: Needs::Any,
        params: &[
            count(
                "fast",
                0,
                1000,
                "1",
                "pages to each fast node in a turn; 1 is Linux's default",
            ),
            count(
                "slow",
                0,
                1000,
                "1",
                "pages to each slow node in a turn; 1 is Linux's default",
            ),
        ],
        build: |values, topology| {
            let (fast, slow) = (values.number("fast"), values.number("slow"));
            let of_kind = |fast| topology.nodes.iter().any(|node| node.fast == fast);
            if !(fast > 0 && of_kind(true) || slow > 0 && of_kind(false)) {
                let key = if of_kind(true) { "fast" } else { "slow" };
                return Err(values.refuse(key, "a weight above 0, or no node gets any page"));
            }
            let policy = Interleave::new(topology, fast, slow);
            Ok((Frames::in_order(topology), Box::new(policy)))
        },
    },
    Entry {
        name: "random",
        about: "runs of free frames in random order: Linux whose memory is fragmented",
        source: "Johnny Cache, section 5.1",
        needs: Needs::Any,
        params: &[
            Param {
                key: "run",
                unit: Unit::Bytes,
                default: "4MiB",
                scaled: true,
                about: "contiguous bytes of free memory: the largest block of Linux's buddy allocator on x86-64 (MAX_ORDER), which fragmentation leaves whole",
            },
            count("seed", 0, u64::MAX, "1", "seed of the order"),
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
        source: "Johnny Cache, section 4.2",
        needs: Needs::MemoryMode,
        params: &[SEED],
        build: |values, topology| {
            let frames = Frames::in_bins(topology, pages_per_bin(topology) + 1);
            let policy = Static::new(topology, values.number("seed"));
            Ok((frames, Box::new(policy)))
        },
    },
    Entry {
        name: "dynamic",
        about: "the coldest bin, and a daemon that parts hot pages in one bin: JC-dyn",
        source: "Johnny Cache, section 4.3",
        needs: Needs::MemoryMode,
        params: &with_seed(),
        build: |values, topology| {
            let settings = Settings::of(values, topology.page_bytes)?;
            let frames = Frames::in_bins(topology, dynamic::LEVELS);
            let policy = Dynamic::new(topology, settings, values.number("seed"));
            Ok((frames, Box::new(policy)))
        },
    },
    Entry {
        name: "hotset",
        about: "DRAM first; a daemon exchanges hot pages of slow memory for cold ones of DRAM: HeMem",
        source: "Raybuck et al., HeMem, SOSP 2021; Johnny Cache, section 2.1",
        needs: Needs::Flat,
        params: &with_spare(),
        build: |values, topology| {
            let settings = Settings::of(values, topology.page_bytes)?;
            let spare = (values.number("spare") / topology.page_bytes).min(u64::from(u32::MAX));
            let policy = HotSet::new(topology, settings, spare as u32);
            Ok((Frames::in_order(topology), Box::new(policy)))
        },
    },
    Entry {
        name: "fast",
        about: "DRAM only; a footprint larger than DRAM is out of memory",
        source: "Johnny Cache, section 5.3: Linux-DRAM",
        needs: Needs::Flat,
        params: &[],
        build: |_, topology| {
            Ok((
                Frames::in_order(topology),
                Box::new(Only::new(topology, true)),
            ))
        },
    },
    Entry {
        name: "slow",
        about: "slow memory only: what DRAM is worth",
        source: "the other end of the scale",
        needs: Needs::Flat,
        params: &[],
        build: |_, topology| {
            Ok((
                Frames::in_order(topology),
                Box::new(Only::new(topology, false)),
            ))
        },
    },
    Entry {
        name: "oracle",
        about: "knows the hot pages, as no system does: hot pages in DRAM, or in bins of their own",
        source: "Johnny Cache, section 5.2: all hot data manually allocated in DRAM",
        needs: Needs::Any,
        params: &[Param {
            key: "hot",
            unit: Unit::Ranges,
            default: "",
            scaled: false,
            about: "hot ranges of virtual addresses, BASE+BYTES joined by /",
        }],
        build: |values, topology| {
            let page = topology.page_bytes;
            let ranges = values.ranges("hot").iter().filter(|(_, bytes)| *bytes > 0);
            let hot = ranges.map(|(base, bytes)| base / page..(base + bytes).div_ceil(page));
            let policy = Oracle::new(topology, hot.collect());
            Ok((Oracle::frames(topology), Box::new(policy)))
        },
    },
    Entry {
        name: "channels",
        about: "pages in turn over all DIMMs: what channel interleaving does, by pages",
        source: "Olson et al., TACO 2018, section 8.1: the baseline",
        needs: Needs::Trays,
        params: &[],
        build: |_, topology| {
            let trays = Trays::new(&DimmMap::of(topology)?, 0, None)?;
            let policy = TrayPolicy::new(trays, Box::new(|f| (Colour::Hot, f.socket)), None, 0);
            Ok((Frames::in_order(topology), Box::new(policy)))
        },
    },
    Entry {
        name: "trays",
        about: "hot pages on few DIMMs, cold ones packed on others, so that those left over sleep",
        source: "Olson et al., TACO 2018, sections 4.1, 7.2 and 8.2.3",
        needs: Needs::Trays,
        params: TRAYS,
        build: build_trays,
    },
];

/// The parameters of `trays`. Those of time and size shrink with the machine.
const TRAYS: &[Param] = &[
    Param {
        key: "hot",
        unit: Unit::Ranges,
        default: "",
        scaled: false,
        about: "hot ranges of virtual addresses, BASE+BYTES joined by /; all else is cold",
    },
    Param {
        key: "remote",
        unit: Unit::Ranges,
        default: "0+0",
        scaled: false,
        about: "ranges whose pages go to the other socket",
    },
    count(
        "dimms",
        0,
        64,
        "1",
        "hot DIMMs of each socket in the beginning, 0 for all; Olson et al., TACO 2018, section 8.2.3: one",
    ),
    Param {
        key: "map",
        unit: Unit::Ranges,
        default: "0+0",
        scaled: false,
        about: "DIMMs as ranges of physical addresses of the machine at full size, in the order of their use; 0+0: what the machine's file says",
    },
    Param {
        key: "limit",
        unit: Unit::Bytes,
        default: "0",
        scaled: true,
        about: "most hot bytes of a DIMM: on overflow another one becomes hot, and pages move; 0: the DIMM's size",
    },
    Param {
        key: "model",
        unit: Unit::Limits,
        default: "0",
        scaled: false,
        about: "GB/s that 1, 2, ... hot DIMMs sustain, joined by / (`varve machine governor` makes them): bandwidth is watched and pages move; 0: not",
    },
    count(
        "undo",
        0,
        1,
        "1",
        "1: a remap to more DIMMs that does not raise the bandwidth is undone; 0: as in the paper",
    ),
    Param {
        key: "sample",
        unit: Unit::Time,
        default: "1s",
        scaled: true,
        about: "time between two samples of the bandwidth; Olson et al., TACO 2018, section 7.2: one second",
    },
    Param {
        key: "tick",
        unit: Unit::Time,
        default: "10ms",
        scaled: true,
        about: "time between two wake-ups in which pages move; an assumption",
    },
];

fn build_trays(values: &Values, topology: &Topology) -> Result<(Frames, Box<dyn Policy>), Error> {
    let page = topology.page_bytes;
    let pages = |key: &str| {
        let ranges = values.ranges(key).iter().filter(|(_, bytes)| *bytes > 0);
        let whole =
            ranges.map(|(base, bytes)| base / page..base.saturating_add(*bytes).div_ceil(page));
        whole.collect::<Vec<_>>()
    };
    let map = match values.ranges("map") {
        [(0, 0)] | [] => DimmMap::of(topology)?,
        given => {
            // The map is of the machine at full size, and so is what is said of it.
            let scale = values.scale();
            let scaled: Vec<_> = given.iter().map(|(b, n)| (b / scale, n / scale)).collect();
            DimmMap::given(topology, &scaled).map_err(|e| e.at_full_size(scale))?
        }
    };
    let limit = values.number("limit");
    let limit = (limit > 0).then(|| (limit / page).max(1).min(u64::from(u32::MAX)) as u32);
    let shelves = Trays::new(&map, values.number("dimms") as usize, limit)?;
    let limits = values.limits("model");
    let meter = match limits == [0.0] {
        true => None,
        false => {
            let model = BandwidthModel::new(limits)?;
            let undoes = values.number("undo") == 1;
            Some(Meter::new(model, &shelves, values.number("sample"), undoes))
        }
    };
    let tick = match meter.is_some() || limit.is_some() {
        true => values.number("tick").max(1),
        false => 0,
    };
    let colour = trays::by_ranges(pages("hot"), pages("remote"));
    let policy = TrayPolicy::new(shelves, colour, meter, tick);
    Ok((Frames::in_order(topology), Box::new(policy)))
}

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
            Needs::Trays => return DimmMap::of(topology).map(|_| ()).map_err(Error::from),
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

/// Fast nodes by distance for each socket, or the others.
fn nearest_of(topology: &Topology, fast: bool) -> Vec<Vec<usize>> {
    let mut nearest = nearest(topology);
    nearest
        .iter_mut()
        .for_each(|order| order.retain(|&node| topology.nodes[node].fast == fast));
    nearest
}

/// Nodes by distance from `socket`; a socket without memory looks from socket 0.
fn seen_from(nearest: &[Vec<usize>], socket: u32) -> &[usize] {
    nearest
        .get(socket as usize)
        .or(nearest.first())
        .map_or(&[], Vec::as_slice)
}
