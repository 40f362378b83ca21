//! Every placement plan by name.
//!
//! ```
//! let plan = varve_heap::plans::by_name("pima:alpha=2,hold-off=10s", None)?;
//! assert_eq!(plan.plan.name(), "pima");
//! let error = varve_heap::plans::by_name("kg-m", None).err().unwrap();
//! assert!(error.to_string().contains("did you mean `kg-n`?"));
//! # Ok::<(), varve_heap::plans::PlanError>(())
//! ```

mod by_site;
pub(crate) mod dram;
mod kg_n;
mod kg_w;
mod params;
mod sampled;
mod slow;
mod slow_copy;
mod slow_scan;
mod stacks;

pub use by_site::{BySite, Hot};
pub use kg_n::KgN;
pub use kg_w::KgW;
pub use params::{CODE, Param, Values, Want};
pub use sampled::Sampled;
pub use slow::Slow;
pub use slow_copy::SlowCopy;
pub use slow_scan::SlowScan;
pub use stacks::Stacks;

use crate::pima::{Pima, PimaError, PimaSettings};
use crate::plan::{Plan, Tier};
use crate::sites::{Profile, classify};
use crate::warm::WarmSettings;

/// A plan: what it is called, what it takes, how it is made.
#[derive(Clone, Copy)]
pub struct Entry {
    /// Its name.
    pub name: &'static str,
    /// One line: what is where.
    pub about: &'static str,
    /// Where it comes from.
    pub source: &'static str,
    /// Whether it needs a site profile.
    pub profile: bool,
    /// Its parameters; [`CODE`] comes on top.
    pub params: &'static [Param],
    make: Make,
}

impl Entry {
    /// Whether the plan is worth comparing where its memories are colours of one memory: what it has where depends on how hot
    /// objects are, not on which memory is faster.
    pub fn colours(&self) -> bool {
        ["dram", "hot-sites", "knapsack", "hints", "sampled"].contains(&self.name)
    }

    /// Whether the plan tries both memories, and wants the program's reports for it.
    pub fn samples(&self) -> bool {
        self.params.contains(&ALPHA)
    }
}

type Make = fn(&Values, &Profile) -> Result<Box<dyn Plan>, PlanError>;

/// A plan that was made, and where it has compiled code.
pub struct Chosen {
    /// The plan.
    pub plan: Box<dyn Plan>,
    /// The memory of compiled code.
    pub code: Tier,
}

/// Why there is no such plan.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PlanError {
    /// No plan of that name.
    #[error("no heap plan is called `{name}`; there are {known}{}", meant.as_ref().map(|m| format!(" (did you mean `{m}`?)")).unwrap_or_default())]
    Unknown {
        /// The name given.
        name: String,
        /// All names.
        known: String,
        /// The nearest of them, if one is near.
        meant: Option<&'static str>,
    },
    /// The plan has no such parameter.
    #[error("heap plan `{plan}` has no parameter `{key}`; it takes {known}")]
    UnknownKey {
        /// The plan.
        plan: String,
        /// The key given.
        key: String,
        /// Its keys.
        known: String,
    },
    /// The same key twice.
    #[error("heap plan `{plan}`: parameter `{key}` is given twice")]
    Twice {
        /// The plan.
        plan: String,
        /// The key.
        key: String,
    },
    /// A value that cannot be read.
    #[error("heap plan `{plan}`: {key}={value} will not do: {want}")]
    BadValue {
        /// The plan.
        plan: String,
        /// The key.
        key: String,
        /// The value given.
        value: String,
        /// What would do.
        want: String,
    },
    /// A plan by allocation sites, without a profile of them.
    #[error("heap plan `{plan}` needs a site profile, made on another input than this run's")]
    NoProfile {
        /// The plan.
        plan: String,
    },
    /// Cold sites that cannot be chosen.
    #[error("heap plan `knapsack`: {0}")]
    Knapsack(#[from] classify::KnapsackError),
    /// Settings of the sampler that cannot work.
    #[error(transparent)]
    Pima(#[from] PimaError),
}

const THRESHOLD: &str = "threshold";

const ALPHA: Param = Param {
    key: "alpha",
    want: Want::Number,
    default: "1.5",
    about: "fast memory is chosen if the program is slower by more than this factor in slow memory, at least 1 (section 6.4)",
};
const INTERVALS: Param = Param {
    key: "intervals",
    want: Want::Count,
    default: "2",
    about: "intervals per memory in a sample, N_i (section 6.4)",
};
const HOLD_OFF: Param = Param {
    key: "hold-off",
    want: Want::Time,
    default: "50s",
    about: "time from a decision to the next sample (section 6.4)",
};
const TOGETHER: Param = Param {
    key: "together",
    want: Want::Word(&["no", "yes"]),
    default: "yes",
    about: "whether the samples of several instances begin when all of them are ready (section 6.2)",
};
const FREQUENCY: Param = Param {
    key: THRESHOLD,
    want: Want::Number,
    default: "1",
    about: "writes per surviving object from which a site is hot (section 5.3)",
};

/// All plans, in the order of the papers.
pub fn plans() -> &'static [Entry] {
    const NONE: &[Param] = &[];
    static ALL: &[Entry] = &[
        Entry {
            name: "dram",
            about: "everything in fast memory",
            source: "A1, DRAM-only",
            profile: false,
            params: NONE,
            make: |_, _| Ok(Box::new(dram::Dram)),
        },
        Entry {
            name: "slow",
            about: "everything in slow memory, code and tables too",
            source: "A1, Optane-only",
            profile: false,
            params: NONE,
            make: |_, _| Ok(Box::new(Slow)),
        },
        Entry {
            name: "slow-scan",
            about: "all but old objects in slow memory",
            source: "A2, Optane-S",
            profile: false,
            params: NONE,
            make: |_, _| Ok(Box::new(SlowScan)),
        },
        Entry {
            name: "slow-copy",
            about: "all but the nursery in slow memory",
            source: "A2, Optane-C",
            profile: false,
            params: NONE,
            make: |_, _| Ok(Box::new(SlowCopy)),
        },
        Entry {
            name: "kg-n",
            about: "the nursery in fast memory, old objects in slow memory",
            source: "A3, Kingsguard-nursery",
            profile: false,
            params: NONE,
            make: |_, _| Ok(Box::new(KgN)),
        },
        Entry {
            name: "kg-w",
            about: "survivors are watched; those written to in fast memory, others in slow memory",
            source: "A4, Kingsguard-writers",
            profile: false,
            params: &[Param {
                key: "old",
                want: Want::Word(&["watched", "kept"]),
                default: "watched",
                about: "whether old objects are sorted again whenever everything is collected",
            }],
            make: |v, _| {
                Ok(Box::new(KgW {
                    old: v.word("old") == "watched",
                }))
            },
        },
        Entry {
            name: "cgz-f",
            about: "sites whose objects are written to often in fast memory",
            source: "A5, Crystal Gazer, CGZ-F1",
            profile: true,
            params: &[FREQUENCY],
            make: |v, p| {
                let hot = classify::by_frequency(p, v.number(THRESHOLD));
                Ok(Box::new(BySite::new("cgz-f", Hot::Profiled(hot))))
            },
        },
        Entry {
            name: "cgz-d",
            about: "sites whose bytes are written to often in fast memory",
            source: "A5, Crystal Gazer, CGZ-D1",
            profile: true,
            params: &[Param {
                about: "writes per surviving byte from which a site is hot (section 5.3)",
                ..FREQUENCY
            }],
            make: |v, p| {
                let hot = classify::by_density(p, v.number(THRESHOLD));
                Ok(Box::new(BySite::new("cgz-d", Hot::Profiled(hot))))
            },
        },
        Entry {
            name: "hot-sites",
            about: "sites with some of the objects that are accessed most in fast memory",
            source: "A6, section 5.3",
            profile: true,
            params: &[
                Param {
                    key: "top",
                    want: Want::Number,
                    default: "0.2",
                    about: "the part of all objects that is hot (section 5.3)",
                },
                Param {
                    key: "homogeneity",
                    want: Want::Number,
                    default: "0.01",
                    about: "the part of a site's objects that has to be hot (section 5.3)",
                },
            ],
            make: |v, p| {
                let (top, homogeneity) = (v.number("top"), v.number("homogeneity"));
                let hot = classify::by_hot_objects(p, top, homogeneity);
                Ok(Box::new(BySite::new("hot-sites", Hot::Profiled(hot))))
            },
        },
        Entry {
            name: "knapsack",
            about: "sites in slow memory that take most bytes for a part of all accesses, others in fast memory",
            source: "B2, Olson et al., TACO 2018, section 7.1",
            profile: true,
            params: &[Param {
                key: "capacity",
                want: Want::Part,
                default: "0.05",
                about: "the part of all accesses that slow sites may have together: the paper tries 0.01 to 0.2",
            }],
            make: |v, p| {
                let cold = classify::cold_by_knapsack(p, v.part("capacity"))?;
                Ok(Box::new(BySite::new("knapsack", Hot::AllBut(cold))))
            },
        },
        Entry {
            name: "sampled",
            about: "objects of types that running methods touch in fast memory, others in slow memory, found by sampling what runs",
            source: "B3, Olson et al., TACO 2018, section 7.1.2",
            profile: false,
            params: &[
                Param {
                    key: "interval",
                    want: Want::Time,
                    default: "1ms",
                    about: "time between two samples of what runs, 0s for none: the paper tries 0s and 10us to 1s, and finds 1ms best for small loads",
                },
                Param {
                    key: "cool",
                    want: Want::Time,
                    default: "100ms",
                    about: "methods and types that were not sampled for so long are cold (section 8.2: 0.1 s)",
                },
            ],
            make: |v, _| {
                let (interval, cool) = (v.time("interval"), v.time("cool"));
                if cool.is_zero() {
                    return Err(PlanError::BadValue {
                        plan: "sampled".into(),
                        key: "cool".into(),
                        value: v.word("cool").into(),
                        want: "a time above 0, such as 100ms".into(),
                    });
                }
                Ok(Box::new(Stacks::new(WarmSettings { interval, cool })))
            },
        },
        Entry {
            name: "hints",
            about: "sites that the programmer marked as critical in fast memory",
            source: "A7, criticality hints",
            profile: false,
            params: NONE,
            make: |_, _| Ok(Box::new(BySite::new("hints", Hot::Hinted))),
        },
        Entry {
            name: "pima",
            about: "old objects where the program runs well, found by sampling both memories",
            source: "A8, PIMA",
            profile: false,
            params: &[ALPHA, INTERVALS, HOLD_OFF, TOGETHER],
            make: |v, _| Ok(Box::new(Sampled::new("pima", pima(v)?, None))),
        },
        Entry {
            name: "hints+pima",
            about: "the same for marked sites alone, others in slow memory",
            source: "A8, CH+PIMA",
            profile: false,
            params: &[ALPHA, INTERVALS, HOLD_OFF, TOGETHER],
            make: |v, _| {
                let about = Some(Hot::Hinted);
                Ok(Box::new(Sampled::new("hints+pima", pima(v)?, about)))
            },
        },
        Entry {
            name: "cgz+pima",
            about: "the same for the sites of cgz-f alone, others in slow memory",
            source: "A8, CGZ+PIMA",
            profile: true,
            params: &[FREQUENCY, ALPHA, INTERVALS, HOLD_OFF, TOGETHER],
            make: |v, p| {
                let hot = classify::by_frequency(p, v.number(THRESHOLD));
                let about = Some(Hot::Profiled(hot));
                Ok(Box::new(Sampled::new("cgz+pima", pima(v)?, about)))
            },
        },
    ];
    ALL
}

fn pima(v: &Values) -> Result<Pima, PimaError> {
    Pima::new(PimaSettings {
        alpha: v.number(ALPHA.key),
        intervals: v.count(INTERVALS.key),
        hold_off: v.time(HOLD_OFF.key),
        coordinated: v.word(TOGETHER.key) == "yes",
    })
}

/// The entry of a plan, by `name` or `name:key=value,...`.
///
/// # Errors
/// If there is none; the nearest name is suggested.
pub fn entry(spec: &str) -> Result<&'static Entry, PlanError> {
    let name = spec.split_once(':').map_or(spec, |(name, _)| name).trim();
    let found = plans().iter().find(|entry| entry.name == name);
    found.ok_or_else(|| {
        let names: Vec<&str> = plans().iter().map(|entry| entry.name).collect();
        let near = |n: &&&'static str| strsim::damerau_levenshtein(name, n) <= 1 + n.len() / 4;
        let distance = |n: &&&'static str| strsim::damerau_levenshtein(name, n);
        PlanError::Unknown {
            name: name.into(),
            known: names.join(", "),
            meant: names.iter().filter(near).min_by_key(distance).copied(),
        }
    })
}

/// Makes the plan that `name` or `name:key=value,...` says, with the profile of the program's allocation sites if
/// there is one.
///
/// # Errors
/// If the name, a parameter or its value is wrong, or a profile is needed.
pub fn by_name(spec: &str, profile: Option<&Profile>) -> Result<Chosen, PlanError> {
    let entry = entry(spec)?;
    let given = spec.split_once(':').map_or("", |(_, given)| given);
    let values = Values::parse(entry.name, entry.params, given)?;
    if entry.profile && profile.is_none() {
        return Err(PlanError::NoProfile {
            plan: entry.name.into(),
        });
    }
    let plan = (entry.make)(&values, profile.unwrap_or(&Profile::default()))?;
    Ok(Chosen {
        code: values.code().unwrap_or(plan.code()),
        plan,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Object, Origin, Site, Space};
    use crate::sites::Key;

    #[test]
    fn every_plan_is_found_by_its_name_and_knows_it() {
        let profile = Profile::default();
        for entry in plans() {
            let made = by_name(entry.name, Some(&profile)).unwrap();
            assert_eq!(made.plan.name(), entry.name);
            assert_eq!(made.plan.pima().is_some(), entry.samples());
            assert!((1..=2).contains(&made.plan.tiers()), "{}", entry.name);
            assert_eq!(by_name(entry.name, None).is_err(), entry.profile);
            for param in entry.params.iter().chain([&CODE]) {
                let spec = format!("{}:{}={}", entry.name, param.key, param.default);
                assert!(by_name(&spec, Some(&profile)).is_ok(), "{spec}");
                let wrong = format!("{}:{}=?", entry.name, param.key);
                let error = by_name(&wrong, Some(&profile)).err().unwrap().to_string();
                assert!(
                    error.contains(param.key) && error.contains("will not do"),
                    "{error}"
                );
            }
        }
    }

    #[test]
    fn what_is_wrong_is_said_in_one_line() {
        let says = |spec: &str| by_name(spec, None).err().unwrap().to_string();
        assert!(says("kgn").contains("no heap plan is called `kgn`"));
        assert!(says("kgn").ends_with("(did you mean `kg-n`?)"));
        assert!(says("pmia").ends_with("(did you mean `pima`?)"));
        assert!(!says("immortal-objects").contains("did you mean"));
        assert!(says("cgz-f").contains("needs a site profile"));
        assert!(says("kg-n:alpha=2").contains("no parameter `alpha`; it takes code"));
        assert!(says("pima:alpha=2,alpha=2").contains("given twice"));
        assert!(says("pima:alpha=0.5").contains("must be at least 1"));
        assert!(says("pima:intervals=0").contains("at least 1"));
        assert!(says("pima:hold-off=50").contains("hold-off=50 will not do: a time"));
        assert!(says("knapsack:capacity=five").contains("will not do: a part, such as 0.05 or 5%"));
        let profiled = |spec: &str| by_name(spec, Some(&Profile::default()));
        assert!(profiled("knapsack:capacity=5%").is_ok());
        for wrong in ["101%", "0%", "1.01", "0"] {
            let error = profiled(&format!("knapsack:capacity={wrong}"))
                .err()
                .unwrap();
            assert!(
                error.to_string().contains("above 0 and at most 1"),
                "{error}"
            );
        }
    }

    #[test]
    fn code_is_where_the_user_wants_it() {
        let code = |spec| by_name(spec, None).unwrap().code;
        assert_eq!(code("dram"), Tier::FAST);
        assert_eq!(code("slow"), Tier::SLOW);
        assert_eq!(code("slow:code=fast"), Tier::FAST);
        assert_eq!(code("kg-n"), Tier::FAST);
        assert_eq!(code("kg-n:code=slow"), Tier::SLOW);
    }

    /// What the paper's table of systems says, A1 to A8.
    #[test]
    fn plans_place_as_their_paper_says() {
        let key = Key::default();
        let object = |from, hot, written| Object {
            from,
            large: false,
            hot,
            written,
            colour: 0,
        };
        let (fast, slow) = (Space::Old(Tier::FAST), Space::Old(Tier::SLOW));
        let profile = Profile::default();
        for (name, nursery, cold, hot) in [
            ("dram", Tier::FAST, fast, fast),
            ("slow", Tier::SLOW, slow, slow),
            ("slow-scan", Tier::SLOW, fast, fast),
            ("slow-copy", Tier::FAST, slow, slow),
            ("kg-n", Tier::FAST, slow, slow),
            ("kg-w", Tier::FAST, Space::Observer, Space::Observer),
            ("cgz-f", Tier::FAST, slow, fast),
            ("cgz-d", Tier::FAST, slow, fast),
            ("hot-sites", Tier::FAST, slow, fast),
            ("knapsack", Tier::FAST, slow, fast),
            ("sampled", Tier::FAST, slow, fast),
            ("hints", Tier::FAST, slow, fast),
            ("pima", Tier::FAST, slow, slow),
            ("hints+pima", Tier::FAST, slow, slow),
            ("cgz+pima", Tier::FAST, slow, slow),
        ] {
            let plan = by_name(name, Some(&profile)).unwrap().plan;
            assert_eq!(plan.nursery(), nursery, "{name}");
            let survivors =
                [false, true].map(|hot| plan.place(object(Origin::Nursery, hot, false)));
            assert_eq!(survivors, [cold, hot], "{name}");
            let hinted = [false, true].map(|hinted| plan.is_hot(Site { key: &key, hinted }));
            let unknown = name == "knapsack";
            assert_eq!(
                hinted,
                [unknown, unknown || name.starts_with("hints")],
                "{name}"
            );
        }
        let kg_w = by_name("kg-w", None).unwrap().plan;
        let sorted =
            [false, true].map(|written| kg_w.place(object(Origin::Observer, false, written)));
        assert_eq!(sorted, [slow, fast]);
    }
}
