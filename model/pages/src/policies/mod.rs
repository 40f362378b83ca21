//! Every page policy by name. Each is one file here, with its [`Entry`].

mod by_tier;
pub mod channels;
pub mod daemon;
pub mod dynamic;
pub mod entry;
pub mod fast;
pub mod first_touch;
pub mod hotset;
pub mod interleave;
mod only;
pub mod oracle;
pub mod parts;
mod random;
pub mod slow;
pub mod static_;
pub mod trays;

pub use by_tier::ByTier;
pub use dynamic::Dynamic;
pub use entry::{Advised, Entry, Live, Made, Needs, Observed, SCALE};
pub use first_touch::FirstTouch;
pub use hotset::HotSet;
pub use interleave::Interleave;
pub use only::Only;
pub use oracle::Oracle;
pub use parts::PageParts;
pub use random::Random;
pub use static_::Static;
pub use trays::{ColourOf, Meter, TrayPolicy, TraySettings};

use entry::KIND;
use varve_spec::{Param, Values, Want};

use crate::bins::MAX_LEVELS;
use crate::error::Error;
use crate::topology::Topology;

/// Every policy, in the order of the documentation: the simplest first.
const ENTRIES: &[Entry] = &[
    first_touch::ENTRY,
    interleave::ENTRY,
    random::ENTRY,
    static_::ENTRY,
    dynamic::ENTRY,
    hotset::ENTRY,
    fast::ENTRY,
    slow::ENTRY,
    oracle::ENTRY,
    channels::ENTRY,
    trays::ENTRY,
];

/// Every policy, in the order of the documentation: the simplest first.
pub fn policies() -> &'static [Entry] {
    ENTRIES
}

/// The entry that a specification, `NAME` or `NAME:key=value,...`, names.
///
/// # Errors
/// An unknown name; the nearest one is suggested.
pub fn entry(spec: &str) -> Result<&'static Entry, Error> {
    Ok(varve_spec::find(KIND, spec, policies(), |entry| {
        entry.name
    })?)
}

/// Reads a specification without making the policy.
///
/// # Errors
/// An unknown name, or the first parameter that is unknown, repeated, unreadable or missing.
pub fn parse(spec: &str) -> Result<(&'static Entry, Values), Error> {
    let entry = entry(spec)?;
    Ok((entry, entry.values(varve_spec::split(spec).1)?))
}

/// The parameter of policies that draw among equal bins.
const SEED: Param = Param::new(
    "seed",
    Want::COUNT,
    "1",
    "seed of the choice among equal bins; 0: always the one that has waited longest",
);

/// The parameters of a daemon, and one more.
const fn with_daemon(own: Param) -> [Param; daemon::PARAMS.len() + 1] {
    let mut all = [own; daemon::PARAMS.len() + 1];
    let mut at = 0;
    while at < daemon::PARAMS.len() {
        all[at] = daemon::PARAMS[at];
        at += 1;
    }
    all
}

/// Most pages that share a bin in any node.
fn pages_per_bin(topology: &Topology) -> u32 {
    let deepest = topology
        .nodes
        .iter()
        .filter_map(|node| Some(node.frames.div_ceil(node.bins?)));
    deepest.max().unwrap_or(1).min(MAX_LEVELS - 1)
}

/// Sockets with memory, and those before them.
fn sockets(topology: &Topology) -> std::ops::Range<u32> {
    let ends = topology.nodes.iter().map(|node| node.socket + 1);
    0..ends.max().unwrap_or(1)
}

/// Nodes by distance for each socket.
fn nearest(topology: &Topology) -> Vec<Vec<usize>> {
    let from = |socket| topology.nearest(socket);
    sockets(topology).map(from).collect()
}

/// Fast nodes by distance for each socket, or the others.
fn nearest_of(topology: &Topology, fast: bool) -> Vec<Vec<usize>> {
    let from = |socket| topology.nearest_of(socket, fast);
    sockets(topology).map(from).collect()
}

/// Nodes by distance from `socket`; for a socket without memory, from socket 0.
fn seen_from(nearest: &[Vec<usize>], socket: u32) -> &[usize] {
    nearest
        .get(socket as usize)
        .or(nearest.first())
        .map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistyped_name_is_suggested() {
        let error = parse("statc").err().unwrap().to_string();
        assert!(error.ends_with("(did you mean `static`?)"), "{error}");
    }

    #[test]
    fn names_are_unique_and_whoever_is_advised_says_where_it_is_from() {
        let mut names: Vec<&str> = policies().iter().map(|p| p.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), policies().len());
        for cached in [false, true] {
            let linux = policies().iter().filter(|p| p.is_linux(cached));
            let linux: Vec<&Entry> = linux.collect();
            assert_eq!(linux.len(), 1, "Linux does one thing");
            assert!(linux[0].is_advised(cached));
        }
        assert!(policies().iter().all(|p| !p.source.is_empty()));
        let unsaid = Entry::new("", "", slow::ENTRY.build).live;
        assert!(policies().iter().all(|p| p.live != unsaid));
    }

    /// The properties in an entry agree with the policy once it is made.
    #[test]
    fn an_entry_tells_how_often_its_policy_wakes_and_what_it_goes_by() {
        for (machine, specs) in [
            (
                "cxl-spr",
                ["hotset", "hotset:period=5ms,sample-period=0", "first-touch"],
            ),
            (
                "optane-6230-memory-mode",
                ["dynamic", "dynamic:period=0s", "static"],
            ),
        ] {
            let machine = varve_machine::Machine::load(machine).unwrap().scaled(4096);
            let topology = Topology::of(&machine, 2 << 20).unwrap();
            for spec in specs {
                let (entry, _) = parse(spec).unwrap();
                let given = varve_spec::split(spec).1;
                let (_, policy) = entry.make(given, &topology).unwrap();
                let daemons = policy.daemons();
                let period = Some(daemons.period).filter(|ns| *ns > 0);
                assert_eq!(entry.wakes(given).unwrap(), period, "{spec}");
                let by_use = daemons.period > 0 && daemons.sample_period > 0;
                assert_eq!(entry.goes_by_use(given).unwrap(), by_use, "{spec}");
            }
        }
    }

    proptest::proptest! {
        #[test]
        fn no_specification_makes_it_panic(text in "[a-z:-]{0,14}(:|,)([a-z-]{1,8}=[-0-9.kMGiBuns+/x,]{0,20},?){0,4}") {
            let _ = parse(&text);
        }
    }
}
