//! Common parts of the sites of all kinds of programs.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::Hash;

use crate::Counts;

/// A site in a profile of any kind.
pub trait AnySite {
    /// The key that identifies the site.
    type Key: Clone + Eq + Hash;

    /// The key that identifies the site.
    fn key(&self) -> Self::Key;

    /// Its counts.
    fn counts(&self) -> &Counts;

    /// Adds what another run counted.
    fn add(&mut self, more: &Self);

    /// Numbers that no run can have counted, beside those in its counts.
    fn impossible(&self) -> Option<String> {
        None
    }

    /// Its name in errors, if it is not its number.
    fn name(&self) -> Option<String> {
        None
    }
}

/// Adds sites to others, one for each key.
pub(crate) fn join<S: AnySite>(sites: &mut Vec<S>, more: Vec<S>, mut add: impl FnMut(&mut S, &S)) {
    let places = sites.iter().enumerate();
    let mut places: HashMap<_, usize> = places.map(|(at, site)| (site.key(), at)).collect();
    for site in more {
        match places.entry(site.key()) {
            Entry::Occupied(at) => add(&mut sites[*at.get()], &site),
            Entry::Vacant(free) => {
                free.insert(sites.len());
                sites.push(site);
            }
        }
    }
}
