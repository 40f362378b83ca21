//! `cgz-f`, `cgz-d`, `hot-sites`, `knapsack`, `hints`: objects of hot allocation sites in fast memory, the others in slow memory
//! (A5, A6, A7, B2). They differ in the source of hot sites: a profile and a rule of `sites::classify`, or the
//! programmer.
//!
//! A site's heat is a bit in its objects' headers from birth on, a constant in the code that makes them. Nothing is
//! watched, and nothing moves from one memory to the other.

use std::collections::HashSet;

use crate::plan::{Object, Plan, Site, Space};
use varve_pima::Tier;
use varve_sites::Key;

/// By allocation site.
#[derive(Clone, Debug)]
pub struct BySite {
    name: &'static str,
    hot: Hot,
}

/// Which sites are hot.
#[derive(Clone, Debug)]
pub enum Hot {
    /// Those that a profile showed. A site that it does not know is cold.
    Profiled(HashSet<Key>),
    /// All but these. A site that the profile does not know is hot, as the paper has it.
    AllBut(HashSet<Key>),
    /// Those that the programmer marked.
    Hinted,
}

impl Hot {
    /// Whether a site is.
    pub fn is_hot(&self, site: Site<'_>) -> bool {
        match self {
            Hot::Profiled(keys) => keys.contains(site.key),
            Hot::AllBut(cold) => !cold.contains(site.key),
            Hot::Hinted => site.hinted,
        }
    }
}

impl BySite {
    /// A plan of this name.
    pub fn new(name: &'static str, hot: Hot) -> BySite {
        BySite { name, hot }
    }
}

impl Plan for BySite {
    fn name(&self) -> &str {
        self.name
    }

    fn place(&self, o: Object) -> Space {
        Space::Old(if o.hot { Tier::FAST } else { Tier::SLOW })
    }

    fn is_hot(&self, site: Site<'_>) -> bool {
        self.hot.is_hot(site)
    }

    fn takes_hints(&self) -> bool {
        matches!(self.hot, Hot::Hinted)
    }
}
