//! Which methods and types are warm, by samples of the running method: a state machine without a clock (Olson et al., TACO 2018, section
//! 7.1.2, after Huang et al., OOPSLA 2004).
//!
//! ```text
//!   compiler:  method -> types that its code touches
//!   sampler:   method on top of the stack  -->  method and its types are hot
//!   time:      every cool-down: methods not sampled since the last one are cold
//! ```
//!
//! Methods and types are numbers chosen by the sampler's owner; sites say which method an object was born in. [`Warmth`] is shared by
//! the sampler, which may be another thread, and the heap, which reads it when a collection begins.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The settings of a sampler.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WarmSettings {
    /// Time between two samples; none between them: as often as can be.
    pub interval: Duration,
    /// Time after which a method that was not sampled is cold.
    pub cool: Duration,
}

/// The state machine.
#[derive(Clone, Debug, Default)]
pub struct Warm {
    cool: Duration,
    /// When the current span between two cool-downs ends.
    until: Duration,
    /// Types that the code of a method touches.
    touches: HashMap<u32, Vec<u32>>,
    /// Sampled in this span, and in this one or the one before.
    seen: Hot,
    hot: Hot,
    samples: u64,
    /// Samples that found no method running.
    empty: u64,
}

/// Methods and types.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Hot {
    methods: HashSet<u32>,
    types: HashSet<u32>,
}

/// Statistics of a sampler.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WarmStats {
    /// Samples taken.
    pub samples: u64,
    /// Those that found no method running: the program was in its collector, its compiler, or the host.
    pub empty: u64,
    /// Methods whose code is known.
    pub methods: usize,
    /// Hot ones now.
    pub hot_methods: usize,
    /// Hot types now.
    pub hot_types: usize,
}

impl Warm {
    /// Everything is cold.
    pub fn new(cool: Duration) -> Warm {
        Warm {
            cool: cool.max(Duration::from_nanos(1)),
            until: cool,
            ..Warm::default()
        }
    }

    /// The code of a method touches these types, besides those that are known.
    pub fn learn(&mut self, method: u32, types: impl IntoIterator<Item = u32>) {
        let known = self.touches.entry(method).or_default();
        known.extend(types);
        known.sort_unstable();
        known.dedup();
    }

    /// This method is on top of the stack; none if no method runs.
    pub fn sample(&mut self, now: Duration, method: Option<u32>) {
        self.at(now);
        self.samples += 1;
        let Some(method) = method else {
            self.empty += 1;
            return;
        };
        if self.seen.methods.insert(method) {
            self.hot.methods.insert(method);
            for &ty in self.touches.get(&method).into_iter().flatten() {
                self.seen.types.insert(ty);
                self.hot.types.insert(ty);
            }
        }
    }

    /// Time has come this far: cools down as often as it is due.
    pub fn at(&mut self, now: Duration) {
        let mut spans = 0;
        while now >= self.until {
            // After two spans without a sample nothing is hot; how many there were makes no difference.
            if spans < 2 {
                self.hot = std::mem::take(&mut self.seen);
                spans += 1;
                self.until += self.cool;
            } else {
                let behind = (now - self.until).as_nanos() / self.cool.as_nanos();
                let skip = u32::try_from(behind).unwrap_or(u32::MAX);
                self.until += self.cool.saturating_mul(skip).max(self.cool);
            }
        }
    }

    /// Is the method hot?
    pub fn method(&self, method: u32) -> bool {
        self.hot.methods.contains(&method)
    }

    /// Is the type hot?
    pub fn ty(&self, ty: u32) -> bool {
        self.hot.types.contains(&ty)
    }

    /// The statistics so far.
    pub fn stats(&self) -> WarmStats {
        WarmStats {
            samples: self.samples,
            empty: self.empty,
            methods: self.touches.len(),
            hot_methods: self.hot.methods.len(),
            hot_types: self.hot.types.len(),
        }
    }
}

/// The same, shared.
pub struct Warmth {
    settings: WarmSettings,
    state: Mutex<Shared>,
}

struct Shared {
    warm: Warm,
    /// The method that objects of a site are born in, by the site's number.
    sites: Vec<u32>,
}

/// No method.
const NOWHERE: u32 = u32::MAX;

/// The methods and types that were hot when a collection began, by number.
#[derive(Clone, Debug, Default)]
pub struct HotNow {
    types: Vec<u64>,
    sites: Vec<u64>,
}

impl HotNow {
    /// Is the type hot?
    #[inline(always)]
    pub fn ty(&self, ty: u32) -> bool {
        bit(&self.types, ty)
    }

    /// Are objects that are born at this site?
    #[inline(always)]
    pub fn site(&self, site: u32) -> bool {
        bit(&self.sites, site)
    }
}

#[inline(always)]
fn bit(bits: &[u64], at: u32) -> bool {
    bits.get(at as usize / 64)
        .is_some_and(|word| word >> (at % 64) & 1 == 1)
}

fn set(bits: &mut Vec<u64>, at: u32) {
    let word = at as usize / 64;
    if bits.len() <= word {
        bits.resize(word + 1, 0);
    }
    bits[word] |= 1 << (at % 64);
}

impl Warmth {
    /// Everything is cold.
    pub fn new(settings: WarmSettings) -> Arc<Warmth> {
        Arc::new(Warmth {
            settings,
            state: Mutex::new(Shared {
                warm: Warm::new(settings.cool),
                sites: Vec::new(),
            }),
        })
    }

    /// How often to sample.
    pub fn settings(&self) -> WarmSettings {
        self.settings
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// See [`Warm::learn`].
    pub fn learn(&self, method: u32, types: impl IntoIterator<Item = u32>) {
        self.lock().warm.learn(method, types);
    }

    /// Objects of this site are born in this method.
    pub fn born_in(&self, site: u32, method: u32) {
        let sites = &mut self.lock().sites;
        let at = site as usize;
        if sites.len() <= at {
            sites.resize(at + 1, NOWHERE);
        }
        sites[at] = method;
    }

    /// See [`Warm::sample`].
    pub fn sample(&self, now: Duration, method: Option<u32>) {
        self.lock().warm.sample(now, method);
    }

    /// The methods and types that are hot now.
    pub fn now(&self) -> HotNow {
        let state = self.lock();
        let mut hot = HotNow::default();
        state
            .warm
            .hot
            .types
            .iter()
            .for_each(|&t| set(&mut hot.types, t));
        for (site, &method) in state.sites.iter().enumerate() {
            if method != NOWHERE && state.warm.method(method) {
                set(&mut hot.sites, site as u32);
            }
        }
        hot
    }

    /// See [`Warm::stats`].
    pub fn stats(&self) -> WarmStats {
        self.lock().warm.stats()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn what_is_sampled_is_hot_until_a_whole_span_passes_without_it() {
        let mut warm = Warm::new(ms(100));
        warm.learn(1, [10, 11]);
        warm.learn(2, [11, 12]);
        warm.sample(ms(10), Some(1));
        assert!(warm.method(1) && warm.ty(10) && warm.ty(11));
        assert!(!warm.method(2) && !warm.ty(12));
        warm.sample(ms(150), Some(2));
        assert!(warm.method(1) && warm.ty(10), "sampled in the span before");
        warm.sample(ms(250), Some(2));
        assert!(
            !warm.method(1) && !warm.ty(10) && warm.ty(11),
            "another method touches it"
        );
        warm.sample(ms(100_000_000), None);
        assert!(!warm.method(2) && !warm.ty(11));
        assert_eq!((warm.stats().samples, warm.stats().empty), (4, 1));
    }

    #[test]
    fn sites_are_as_hot_as_the_methods_around_them() {
        let settings = WarmSettings {
            interval: ms(1),
            cool: ms(100),
        };
        let warmth = Warmth::new(settings);
        warmth.learn(5, [70]);
        warmth.born_in(130, 5);
        warmth.born_in(3, 6);
        warmth.sample(ms(1), Some(5));
        let now = warmth.now();
        assert!(now.site(130) && now.ty(70));
        assert!(!now.site(3) && !now.site(131) && !now.site(9999) && !now.ty(71));
    }

    proptest! {
        /// Against the list of all samples: methods sampled in this span or in the one before are hot.
        #[test]
        fn it_is_as_the_list_of_samples_says(
            touches in prop::collection::vec((0u32..5, 0u32..6), 0..12),
            samples in prop::collection::vec((0u64..260, prop::option::of(0u32..5)), 0..40)
        ) {
            let mut warm = Warm::new(ms(100));
            touches.iter().for_each(|&(m, t)| warm.learn(m, [t]));
            let (mut now, mut all) = (0, Vec::new());
            for (step, method) in samples {
                now += step;
                warm.sample(ms(now), method);
                all.push((now, method));
                for method in 0..5 {
                    let recent = |s: &(u64, Option<u32>)| s.1 == Some(method) && now / 100 - s.0 / 100 <= 1;
                    prop_assert_eq!(warm.method(method), all.iter().any(recent));
                }
                for ty in 0..6 {
                    let touched = touches.iter().any(|&(m, t)| t == ty && warm.method(m));
                    prop_assert_eq!(warm.ty(ty), touched);
                }
            }
        }
    }
}
