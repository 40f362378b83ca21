//! A plan says which memory an object is in, when it is born and whenever it survives. Spaces, tracing and copying
//! are not its business.
//!
//! A [`Plan`] is asked about *kinds* of objects, before each collection; its answers are tabulated. For each object
//! that a collection copies there is one load from that table, whatever the plan is. The tracer calls [`Places`]: with
//! [`Dram`](crate::Dram) even the load is gone, and all that only several memories need.

use crate::header::Header;
use crate::layout::*;
use crate::sampler::{Intervals, Sampler};
use crate::warm::HotNow;
use varve_pima::{MAX_TIERS, Tier};

/// Where an object is when its place is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// It is being born, too large for the nursery.
    Birth,
    /// In the nursery: it survived for the first time.
    Nursery,
    /// In the observer space, whose objects are being sorted.
    Observer,
    /// In the mark-region space or the large-object space of a tier, and everything is being collected.
    Old(Tier),
}

/// Where an object is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Space {
    /// The observer space. Without room there, and for large objects, the plan's answer for an object that leaves
    /// the observer space unwritten counts.
    Observer,
    /// The mark-region space of a tier, or its large-object space.
    Old(Tier),
}

/// The properties of an object that a plan may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Object {
    /// Where it is.
    pub from: Origin,
    /// It has at least [`LARGE_THRESHOLD`] bytes.
    pub large: bool,
    /// It was born at a site that is hot: see [`Plan::is_hot`].
    pub hot: bool,
    /// The program wrote to it since it came to its space or, if that is later, since everything was collected.
    /// Only known while [`Plan::monitors`].
    pub written: bool,
    /// The colour that it was given at birth, 0 to 3.
    pub colour: u8,
}

/// An allocation site, as far as a plan may know it.
#[derive(Clone, Copy, Debug)]
pub struct Site<'a> {
    /// Its key in profiles.
    pub key: &'a varve_sites::Key,
    /// The programmer marked it as critical.
    pub hinted: bool,
}

/// Chooses memory for objects: observations in, decisions out. It has no clock and no input or output of its own.
pub trait Plan: Send + Sync {
    /// The name that reports show.
    fn name(&self) -> &str;

    /// How many kinds of memory there are, 1 to [`MAX_TIERS`].
    fn tiers(&self) -> u8 {
        2
    }

    /// The memory of the nursery.
    fn nursery(&self) -> Tier {
        Tier::FAST
    }

    /// The memory of the collector's tables.
    fn metadata(&self) -> Tier {
        Tier::FAST
    }

    /// The memory of compiled code.
    fn code(&self) -> Tier {
        Tier::FAST
    }

    /// The memory of an observer space between nursery and mature spaces, if there is one.
    fn observer(&self) -> Option<Tier> {
        None
    }

    /// Whether compiled code has to note every write to an object in its header: see [`WRITTEN`].
    fn monitors(&self) -> bool {
        false
    }

    /// Where an object is to be. Asked for every kind of object when a collection begins, and for nothing else.
    ///
    /// An object that is old already moves to another tier when everything is collected, if the answer differs from
    /// where it is.
    fn place(&self, object: Object) -> Space;

    /// Whether objects born at a site are hot. Asked when the site is compiled.
    fn is_hot(&self, site: Site<'_>) -> bool {
        let _ = site;
        false
    }

    /// Whether the programmer's marks at allocation sites mean anything.
    fn takes_hints(&self) -> bool {
        false
    }

    /// The plan's input from the running program besides its objects, if it uses any. Samples of running code take the place of [`Plan::is_hot`]:
    /// they decide what is hot, and not the bit in an object's header.
    fn sampler(&self) -> Option<Sampler<'_>> {
        None
    }

    /// The same if it is intervals, for reporting them to the plan.
    fn intervals_mut(&mut self) -> Option<&mut dyn Intervals> {
        None
    }
}

/// The parts of fast memory that a collection must not allocate in, if the heap has a limit of it: objects go to the next memory
/// instead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FastIsFull {
    /// There may be no room for all survivors of the nursery and the observer space.
    pub for_survivors: bool,
    /// There may be no room for old objects from elsewhere.
    pub for_old: bool,
}

/// The interface between collections and a plan. A collection calls it from several threads at once, once for each object that it copies.
pub trait Places: Send + Sync {
    /// Whether there may be more than one memory. All that has to do with it is left out otherwise.
    const SEVERAL: bool;

    /// The plan whose answers these are.
    fn plan(&self) -> &dyn Plan;

    /// The plan, for updates. Its answers change when the next collection begins.
    fn plan_mut(&mut self) -> &mut dyn Plan;

    /// A collection begins: answers do not change until the next one.
    fn begin(&mut self, full: FastIsFull);

    /// An object is born outside of the nursery, between two collections: the current samples count for it.
    fn look(&mut self) {}

    /// Whether any old object is to be elsewhere than it may be.
    fn moves_old(&self) -> bool;

    /// Where an object with this header is to be.
    fn place(&self, header: Header, large: bool, from: Origin) -> Space;
}

/// Any plan, chosen while the program runs.
pub struct AnyPlan {
    plan: Box<dyn Plan>,
    table: [Space; KINDS],
    /// Whether old objects may have to move, and by tier whether any can be there.
    moves_old: bool,
    inhabited: [bool; MAX_TIERS as usize],
    /// The hot methods and types during this collection, if samples decide.
    hot: Option<HotNow>,
}

/// Bits of the temperature byte that a plan may know: colour, hot, written.
const KNOWN: u8 = COLOUR_MASK | HOT | WRITTEN;
const _: () = assert!(KNOWN == 0b1111);
/// By where the object is, whether it is large, and its temperature.
const KINDS: usize = (3 + MAX_TIERS as usize) * 2 * 16;

impl AnyPlan {
    /// The plan with its answers.
    pub fn new(plan: Box<dyn Plan>) -> AnyPlan {
        let mut any = AnyPlan {
            plan,
            table: [Space::Old(Tier::FAST); KINDS],
            moves_old: false,
            inhabited: [false; MAX_TIERS as usize],
            hot: None,
        };
        any.begin(FastIsFull::default());
        any
    }
}

impl AnyPlan {
    /// Whether an old object can be in a tier, now or from earlier answers, that is not where it is to be: a plan that
    /// has all old objects in slow memory wants them to leave fast memory, but none is there.
    fn find_moves(&mut self) {
        let row = |from| index(from, false, 0)..index(from, true, KNOWN) + 1;
        let arrive = |inhabited: &mut [bool], answers: &[Space]| {
            for answer in answers {
                if let Space::Old(tier) = answer {
                    inhabited[usize::from(tier.0)] = true;
                }
            }
        };
        for from in [Origin::Birth, Origin::Nursery, Origin::Observer] {
            arrive(&mut self.inhabited, &self.table[row(from)]);
        }
        self.moves_old = (0..MAX_TIERS).map(Tier).any(|tier| {
            let answers = &self.table[row(Origin::Old(tier))];
            self.inhabited[usize::from(tier.0)] && answers.iter().any(|a| *a != Space::Old(tier))
        });
        if self.moves_old {
            // Where they go to, others follow.
            self.inhabited = [true; MAX_TIERS as usize];
        }
    }
}

/// Where in the table the answer for a kind of object is.
#[inline(always)]
fn index(from: Origin, large: bool, temperature: u8) -> usize {
    let row = match from {
        Origin::Birth => 0,
        Origin::Nursery => 1,
        Origin::Observer => 2,
        Origin::Old(tier) => 3 + usize::from(tier.0 % MAX_TIERS),
    };
    (row * 2 + usize::from(large)) * 16 + usize::from(temperature & KNOWN)
}

impl Places for AnyPlan {
    const SEVERAL: bool = true;

    fn plan(&self) -> &dyn Plan {
        &*self.plan
    }

    fn plan_mut(&mut self) -> &mut dyn Plan {
        &mut *self.plan
    }

    fn begin(&mut self, full: FastIsFull) {
        self.look();
        let tiers = self.plan.tiers();
        let old = (0..tiers).map(|tier| Origin::Old(Tier(tier)));
        for from in [Origin::Birth, Origin::Nursery, Origin::Observer]
            .into_iter()
            .chain(old)
        {
            for (large, temperature) in (0..=KNOWN).flat_map(|t| [(false, t), (true, t)]) {
                let asked = Object {
                    from,
                    large,
                    hot: temperature & HOT != 0,
                    written: temperature & WRITTEN != 0,
                    colour: temperature & COLOUR_MASK,
                };
                let mut space = self.plan.place(asked);
                let cannot = large || from != Origin::Nursery || self.plan.observer().is_none();
                if space == Space::Observer && cannot {
                    space = self.plan.place(Object {
                        from: Origin::Observer,
                        written: false,
                        ..asked
                    });
                }
                // A plan that names a memory it does not have gets the last one.
                let last = Tier(tiers - 1);
                let space = match space {
                    Space::Observer if cannot => Space::Old(last),
                    Space::Old(tier) => Space::Old(tier.min(last)),
                    Space::Observer => Space::Observer,
                };
                let is_full = match from {
                    Origin::Old(Tier::FAST) => false,
                    Origin::Old(_) => full.for_old,
                    _ => full.for_survivors,
                };
                let space = match space {
                    Space::Old(Tier::FAST) if is_full => Space::Old(match from {
                        Origin::Old(here) => here,
                        _ => Tier::SLOW.min(last),
                    }),
                    space => space,
                };
                self.table[index(from, large, temperature)] = space;
            }
        }
        self.find_moves();
    }

    fn look(&mut self) {
        let stacks = self.plan.sampler().and_then(Sampler::stacks);
        self.hot = stacks.map(|warmth| warmth.now());
    }

    fn moves_old(&self) -> bool {
        self.moves_old
    }

    #[inline(always)]
    fn place(&self, header: Header, large: bool, from: Origin) -> Space {
        let temperature = match &self.hot {
            None => header.temperature(),
            Some(hot) => sampled(hot, header, from),
        };
        self.table[index(from, large, temperature)]
    }
}

/// The temperature of an object whose heat is decided by samples: of its type, and for one that leaves the nursery or is born, of the
/// method that it was born in.
#[inline(never)]
fn sampled(hot: &HotNow, header: Header, from: Origin) -> u8 {
    let young = matches!(from, Origin::Birth | Origin::Nursery);
    let is_hot = hot.ty(header.type_index()) || young && hot.site(header.site());
    header.temperature() & !HOT | if is_hot { HOT } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampler::FastMemory;
    use std::time::Duration;
    use varve_pima::{Interval, ReportError};

    /// Uses all that a plan may know.
    struct Picky;

    impl Plan for Picky {
        fn name(&self) -> &str {
            "picky"
        }

        fn tiers(&self) -> u8 {
            4
        }

        fn observer(&self) -> Option<Tier> {
            Some(Tier(2))
        }

        fn place(&self, o: Object) -> Space {
            match o.from {
                Origin::Nursery if o.colour == 3 => Space::Observer,
                Origin::Old(tier) if o.written => Space::Old(tier),
                Origin::Observer if o.hot && !o.written => Space::Old(Tier(9)),
                _ => Space::Old(Tier(u8::from(o.large) + 2 * u8::from(o.hot))),
            }
        }
    }

    /// Objects to move are searched where there can be any, and for as long as there can be.
    #[test]
    fn old_objects_are_asked_about_only_if_they_may_have_to_move() {
        /// All in one memory, which the test changes.
        struct One(Tier);

        impl Plan for One {
            fn name(&self) -> &str {
                "one"
            }

            fn place(&self, _: Object) -> Space {
                Space::Old(self.0)
            }

            fn intervals_mut(&mut self) -> Option<&mut dyn Intervals> {
                Some(self)
            }
        }

        impl Intervals for One {
            fn interval(
                &mut self,
                _: Interval,
                _: FastMemory,
            ) -> Result<Option<Tier>, ReportError> {
                Ok(None)
            }

            fn moved(&mut self, _: Duration, _: u64) {
                self.0 = Tier::FAST;
            }

            fn log(&self) -> &[varve_pima::Entry] {
                &[]
            }
        }

        let mut places = AnyPlan::new(Box::new(One(Tier::SLOW)));
        assert!(!places.moves_old());
        let told = places.plan_mut().intervals_mut().unwrap();
        told.moved(Duration::ZERO, 0);
        let full = FastIsFull {
            for_survivors: true,
            for_old: true,
        };
        places.begin(full);
        assert!(!places.moves_old(), "there is no room to go to");
        let header = Header(new_header(1, 2, 0));
        let place = |places: &AnyPlan, from| places.place(header, false, from);
        assert_eq!(place(&places, Origin::Nursery), Space::Old(Tier::SLOW));
        assert_eq!(
            place(&places, Origin::Old(Tier::FAST)),
            Space::Old(Tier::FAST)
        );
        places.begin(FastIsFull::default());
        assert_eq!(place(&places, Origin::Nursery), Space::Old(Tier::FAST));
        assert!(places.moves_old());
        places.begin(FastIsFull::default());
        assert!(places.moves_old(), "some may have found no room");
    }

    #[test]
    fn the_table_says_what_the_plan_says() {
        let places = AnyPlan::new(Box::new(Picky));
        let header = |temperature| Header(new_header(1, 2, temperature | 1 << AGE_SHIFT));
        let old = |tier| Space::Old(Tier(tier));
        for (temperature, large, from, expected) in [
            (0, false, Origin::Nursery, old(0)),
            (HOT, false, Origin::Birth, old(2)),
            (HOT, true, Origin::Birth, old(3)),
            (3, false, Origin::Nursery, Space::Observer),
            (3, true, Origin::Nursery, old(1)),
            (3 | HOT, true, Origin::Nursery, old(3)),
            (HOT, false, Origin::Observer, old(3)),
            (WRITTEN, true, Origin::Old(Tier(2)), old(2)),
            (0, false, Origin::Old(Tier(2)), old(0)),
        ] {
            assert_eq!(
                places.place(header(temperature), large, from),
                expected,
                "{temperature:#b} {large} {from:?}"
            );
        }
    }
}
