//! Allocation sites of a store: the numbers that are in the headers of objects.

use super::Vm;
use super::func::FuncKind;
use super::heap::Heap;
use crate::module::{ModuleInner, Site};
use crate::types::Registry;
use rustc_hash::FxHashMap as HashMap;
use serde::{Deserialize, Serialize};
use varve_heap::layout::SITE_BITS;
use varve_heap::record::Recorder;
use varve_sites::{Key, Profile, SiteProfile, SitesFile};

/// Where objects are made.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(crate) enum Origin {
    /// At an operator of a function, by its number in the store: the operator's offset in the module, after those of calls of
    /// [makers](crate::module::ModuleInner::is_made_by).
    Code { func: u32, at: Box<[u32]> },
    /// In an instance, when it begins: objects of a type, by its index in the module.
    Beginning { instance: u32, ty: u32 },
}

/// Numbers of origins. 0 means unknown.
#[derive(Default)]
pub(crate) struct Sites {
    numbers: HashMap<Origin, u32>,
    origins: Vec<Origin>,
    /// The initial temperature bytes of objects that are born there.
    temperatures: Vec<u8>,
    /// Whether the programmer marked one.
    marked: bool,
    /// Sites of functions, by their numbers in the store.
    listed: HashMap<u32, HashMap<Box<[u32]>, Key>>,
}

impl Sites {
    /// The number of an origin, if it has one.
    pub fn known(&self, origin: &Origin) -> Option<u32> {
        self.numbers.get(origin).copied()
    }

    /// Gives an origin a number; 0 once the header has no bits for more.
    pub fn add(&mut self, origin: Origin, temperature: u8) -> u32 {
        let n = self.origins.len() as u32 + 1;
        if n >= 1 << SITE_BITS {
            return 0;
        }
        self.origins.push(origin.clone());
        self.temperatures.push(temperature);
        self.numbers.insert(origin, n);
        n
    }

    /// All origins, in the order of their numbers from 1 on.
    pub fn origins(&self) -> &[Origin] {
        &self.origins
    }

    /// Gives the origins of an earlier run the numbers that they had, if sites that have numbers by now have the same ones; returns whether that is
    /// so. Their objects begin as all do.
    pub fn restore(&mut self, origins: Vec<Origin>) -> bool {
        let known = self.origins.len();
        if origins.get(..known) != Some(&self.origins[..]) {
            return false;
        }
        for origin in origins.into_iter().skip(known) {
            self.add(origin, 0);
        }
        true
    }

    /// The temperature of objects that are born at a site.
    pub fn temperature(&self, site: u32) -> u8 {
        let place = (site as usize).checked_sub(1);
        place.map_or(0, |place| self.temperatures[place])
    }

    /// The programmer marked objects of a site.
    pub fn mark(&mut self) {
        self.marked = true;
    }

    /// Whether any site was marked.
    pub fn any_marked(&self) -> bool {
        self.marked
    }

    /// The key of a place in a function in profiles, if it is one that makes objects of the program. The function is `index`
    /// of its module, `func` of the store.
    pub fn key(
        &mut self,
        (module, index): (&ModuleInner, u32),
        func: u32,
        at: &[u32],
        types: &Registry,
    ) -> Option<&Key> {
        let listed = self.listed.entry(func).or_insert_with(|| {
            let sites = module.sites(index, types).into_iter();
            sites.map(|Site { at, key }| (at.into(), key)).collect()
        });
        listed.get(at)
    }
}

/// The initial temperature byte of objects of a site.
pub(crate) fn temperature(heap: &Heap, key: Option<&Key>) -> u8 {
    key.map_or(0, |key| {
        heap.temperature(varve_heap::Site { key, hinted: false })
    })
}

impl Vm {
    /// The site of an object that an instance makes when it begins.
    pub(super) fn beginning(&mut self, instance: u32, module: &ModuleInner, ty: u32) -> u32 {
        let origin = Origin::Beginning { instance, ty };
        if let Some(site) = self.sites.known(&origin) {
            return site;
        }
        let key = module.beginning(ty, &self.engine.types());
        let temperature = temperature(self.heap(), Some(&key));
        self.sites.add(origin, temperature)
    }

    /// The profile, if accesses are counted.
    pub(crate) fn profile(&mut self, program: &str) -> Option<Profile> {
        self.counters?;
        let named = self.named_sites();
        let place = |site: u32| {
            let (key, offset) = named.get(site.checked_sub(1)? as usize)?.clone()?;
            Some((key, offset, None))
        };
        // SAFETY: the context lives as long as the store, whose thread this is.
        let mutator = unsafe { &(*self.context).mutator };
        let counted = Recorder::profile(self.heap().profiled()?, mutator, program, place);
        // Instances of one module share their sites' names.
        let mut profile = Profile {
            program: program.into(),
            sites: Vec::new(),
        };
        let empty = |(key, offset)| SiteProfile {
            key,
            offset,
            ..SiteProfile::default()
        };
        let uncounted = named.iter().flatten().cloned().map(empty);
        let all = Profile {
            program: program.into(),
            sites: counted.sites.into_iter().chain(uncounted).collect(),
        };
        profile.merge(&all).expect("the same program");
        Some(profile)
    }

    /// The sites that code was compiled for, by their numbers from 1 on: the key of each, and its offset in the module. Sites that are not the
    /// program's have none.
    pub(crate) fn named_sites(&mut self) -> Vec<Option<(Key, u64)>> {
        let types = self.engine.types();
        let mut named = Vec::new();
        for origin in self.sites.origins.clone() {
            named.push(match origin {
                Origin::Beginning { instance, ty } => {
                    let module = &self.instances[instance as usize].module;
                    Some((module.beginning(ty, &types), 0))
                }
                Origin::Code { func, at } => match self.funcs[func as usize].kind {
                    FuncKind::Wasm { instance, index } => {
                        let module = &self.instances[instance as usize].module;
                        let key = self.sites.key((module, index), func, &at, &types);
                        key.map(|key| (key.clone(), at[0].into()))
                    }
                    FuncKind::Host(..) => None,
                },
            });
        }
        named
    }
}
