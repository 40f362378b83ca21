//! What sites of all kinds of programs have in common.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::Hash;

use crate::Counts;

/// What a profile of any kind knows of a site.
pub trait AnySite {
    /// The key that identifies the site.
    type Key: Clone + Eq + Hash;

    /// The key that identifies the site.
    fn key(&self) -> Self::Key;

    /// What was counted.
    fn counts(&self) -> &Counts;

    /// Adds what another run counted.
    fn add(&mut self, more: &Self);

    /// Numbers that no run can have counted, beside those in its counts.
    fn impossible(&self) -> Option<String> {
        None
    }

    /// What it is called in errors, if it is not its number.
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
