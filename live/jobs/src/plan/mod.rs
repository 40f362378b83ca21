//! A plan for a group: where each program is, with how many threads, and by which rule it starts. Pure.

mod expect;
mod explain;

use crate::class::{Classified, Limits, classify};
use crate::demand::{Demand, Point, seconds};
use crate::error::Error;
use crate::group::Group;
use crate::kinds::Memory;
use crate::policy::order::{Dispatcher, Item};
use crate::policy::part;
use crate::policy::place::{self, Arrival, Capacity, Eviction, PartialSlowdown, mostly};
use crate::policy::threads::{self, Want};
use serde::{Deserialize, Serialize};

pub use expect::{Expected, expect};
pub use explain::explain;

/// Which of the three optimizations are on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Strategy {
    /// Programs are placed by need (Algorithm 1), else first come, first served.
    pub placement: bool,
    /// Threads are counted (Algorithm 2), else the group's numbers are used.
    pub threads: bool,
    /// Interference is avoided (methods 1 and 2), else the first that waits starts.
    pub order: bool,
}

impl Strategy {
    /// Linux's strategy, without knowledge of programs.
    pub const LINUX: Strategy = Strategy {
        placement: false,
        threads: false,
        order: false,
    };

    /// All three.
    pub const ALL: Strategy = Strategy {
        placement: true,
        threads: true,
        order: true,
    };

    /// The baseline, each alone, and all together, as the paper compares them.
    pub const COMPARED: [Strategy; 5] = [
        Strategy::LINUX,
        Strategy {
            placement: true,
            ..Strategy::LINUX
        },
        Strategy {
            threads: true,
            ..Strategy::LINUX
        },
        Strategy {
            order: true,
            ..Strategy::LINUX
        },
        Strategy::ALL,
    ];

    /// `linux`, `placement`, `placement+order`, ..., `all`.
    pub fn name(self) -> String {
        let parts = [
            (self.placement, "placement"),
            (self.threads, "threads"),
            (self.order, "order"),
        ];
        let on: Vec<&str> = parts.iter().filter(|p| p.0).map(|p| p.1).collect();
        match on.len() {
            0 => "linux".into(),
            3 => "all".into(),
            _ => on.join("+"),
        }
    }
}

impl std::str::FromStr for Strategy {
    type Err = String;

    fn from_str(text: &str) -> Result<Strategy, String> {
        match text {
            "linux" => return Ok(Strategy::LINUX),
            "all" => return Ok(Strategy::ALL),
            _ => {}
        }
        let mut strategy = Strategy::LINUX;
        for part in text.split('+') {
            match part.trim() {
                "placement" => strategy.placement = true,
                "threads" => strategy.threads = true,
                "order" => strategy.order = true,
                other => {
                    return Err(format!(
                        "no strategy is called `{other}`; there are linux, placement, threads, order, sums such as placement+order, and all"
                    ));
                }
            }
        }
        Ok(strategy)
    }
}

/// The machine, as far as plans depend on it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Host {
    /// Its name.
    pub name: String,
    /// Cores that programs may use.
    pub cores: u32,
    /// Memory that programs may use.
    pub capacity: Capacity,
    /// The limits that classes depend on.
    pub limits: Limits,
    /// Is its memory all alike? Then placement decides nothing.
    pub alike: bool,
}

/// One program's part of a plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Assignment {
    /// Its name.
    pub name: String,
    /// Memory that it uses, bytes.
    pub bytes: u64,
    /// Its class.
    pub class: Classified,
    /// Bytes of it in fast memory.
    pub fast_bytes: u64,
    /// These are a part by its own placement; otherwise whatever comes first, if they are not all.
    #[serde(default)]
    pub in_part: bool,
    /// The memory that most of it is in: it takes its turn there.
    pub memory: Memory,
    /// Why it is there.
    pub why_there: String,
    /// Its threads.
    pub threads: u32,
    /// Threads that are worthwhile there, if they were determined.
    pub worthwhile: Option<u32>,
}

/// See the module.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The strategy behind it.
    pub strategy: Strategy,
    /// Each program, in the group's order.
    pub programs: Vec<Assignment>,
    /// Pages that move before their new owner starts.
    pub evictions: Vec<Eviction>,
    /// Programs that run at once in each memory; 0: all.
    pub at_once: u32,
    /// The inputs of the order.
    pub items: Vec<Item>,
    /// The expected timeline, from the demands, without interference.
    pub expected: Expected,
}

impl Plan {
    /// The dispatcher, which decides when each program starts.
    pub fn dispatcher(&self) -> Dispatcher {
        Dispatcher::new(self.items.clone(), self.at_once, self.strategy.order)
    }
}

/// Plans a group.
///
/// # Errors
/// A program that finds no room, with its line.
pub fn plan(
    group: &Group,
    demands: &[Demand],
    host: &Host,
    strategy: Strategy,
) -> Result<Plan, Error> {
    let classes: Vec<Classified> = (group.programs.iter().zip(demands))
        .map(|(p, d)| classify(p, d, &host.limits))
        .collect();
    let placement = place_all(group, demands, &classes, host, strategy)?;
    let memories: Vec<Memory> = (placement.fast_bytes.iter().zip(demands))
        .map(|(&fast, d)| mostly(fast, d.bytes))
        .collect();
    let times = Times {
        demands,
        placement: &placement,
    };
    let curves: Vec<&[Point]> = (0..demands.len())
        .map(|i| curve(&demands[i], memories[i], placement.in_part[i]))
        .collect();
    let worthwhile: Vec<u32> = (0..demands.len())
        .map(|i| worthwhile(curves[i], group.programs[i].threads, host.cores))
        .collect();
    let threads: Vec<u32> = match strategy.threads {
        false => group.programs.iter().map(|p| p.threads).collect(),
        true => {
            let seconds: Vec<_> = (0..demands.len())
                .map(|i| move |t: u32| times.seconds(i, t))
                .collect();
            let wants: Vec<Want> = (0..demands.len())
                .map(|i| Want {
                    memory: memories[i],
                    usual: group.programs[i].threads,
                    worthwhile: worthwhile[i],
                    seconds: &seconds[i],
                })
                .collect();
            threads::share(&wants, host.cores, group.at_once)
        }
    };
    let items: Vec<Item> = (0..demands.len())
        .map(|i| Item {
            rank: i as u32,
            memory: memories[i],
            class: classes[i].class,
            write_intensive: classes[i].write_intensive,
            write_gbps: written(curves[i], threads[i]),
            after: group.programs[i].after.clone(),
            held: placement.evictions.iter().any(|e| e.room_for == i),
        })
        .collect();
    let programs: Vec<Assignment> = (0..demands.len())
        .map(|i| Assignment {
            name: group.programs[i].name.clone(),
            bytes: demands[i].bytes,
            class: classes[i].clone(),
            fast_bytes: placement.fast_bytes[i],
            in_part: placement.in_part[i],
            memory: memories[i],
            why_there: placement.why[i].clone(),
            threads: threads[i],
            worthwhile: strategy.threads.then_some(worthwhile[i]),
        })
        .collect();
    let mut plan = Plan {
        strategy,
        programs,
        evictions: placement.evictions.clone(),
        at_once: group.at_once,
        items,
        expected: Expected::default(),
    };
    plan.expected = expect(&plan, &|i, t| times.seconds(i, t));
    Ok(plan)
}

fn place_all(
    group: &Group,
    demands: &[Demand],
    classes: &[Classified],
    host: &Host,
    strategy: Strategy,
) -> Result<place::Placement, Error> {
    let arrivals: Vec<Arrival> = (0..demands.len())
        .map(|i| Arrival {
            name: group.programs[i].name.clone(),
            bytes: demands[i].bytes,
            class: classes[i].class,
            slowdown: classes[i].slowdown,
            pinned: group.programs[i].memory.filter(|_| !host.alike),
            part: part_of(group, demands, i),
        })
        .collect();
    let placed = match strategy.placement && !host.alike {
        true => part::by_need_in_part(&arrivals, host.capacity),
        false => place::first_come(&arrivals, host.capacity),
    };
    placed.map_err(|e| {
        let size = |b: u64| varve_report::fmt::bytes(b as f64);
        let what = format!(
            "needs {}, and {} has {} of fast and {} of slow memory left when it comes",
            size(demands[e.who].bytes),
            host.name,
            size(e.fast),
            size(e.slow)
        );
        let remedy = "give the group more (`fast`, `slow`), make it smaller, or split the group";
        Error::Group(vec![group.problem(e.who, "bytes", what, remedy)])
    })
}

/// The part of a program in fast memory, if its own memory is placed; none if the part is all of it.
fn part_of(group: &Group, demands: &[Demand], i: usize) -> Option<PartialSlowdown> {
    let (program, demand) = (&group.programs[i], &demands[i]);
    program.inside.as_ref()?;
    let part = PartialSlowdown {
        fast_bytes: demand.part.as_ref()?.fast_bytes,
        slowdown: demand.slowdown_in_part(program.threads),
    };
    (part.fast_bytes < demand.bytes).then_some(part)
}

/// The points of a program where it is.
fn curve(demand: &Demand, memory: Memory, in_part: bool) -> &[Point] {
    match &demand.part {
        Some(part) if in_part => &part.curve,
        _ => demand.curve(memory),
    }
}

/// Threads worthwhile where a program is (Algorithm 2); what was not measured there is not worth more than one.
fn worthwhile(curve: &[Point], usual: u32, cores: u32) -> u32 {
    let most = curve.last().map_or(1, |p| p.threads).min(cores);
    threads::worthwhile(|t| seconds(curve, t), usual, most)
}

fn written(curve: &[Point], threads: u32) -> f64 {
    let nearest = curve.iter().min_by_key(|p| p.threads.abs_diff(threads));
    nearest.and_then(|p| p.write_gbps).unwrap_or(0.0)
}

/// How long programs take where they are.
#[derive(Clone, Copy)]
struct Times<'a> {
    demands: &'a [Demand],
    placement: &'a place::Placement,
}

impl Times<'_> {
    /// A program that is split takes its time in each memory by its share there; one in part what was measured so.
    fn seconds(&self, program: usize, threads: u32) -> Option<f64> {
        let d = &self.demands[program];
        if self.placement.in_part[program] {
            return d.seconds_in_part(threads);
        }
        let share = self.placement.fast_bytes[program] as f64 / d.bytes.max(1) as f64;
        let of = |memory, share: f64| match share > 0.0 {
            true => d.seconds(memory, threads).map(|s| s * share),
            false => Some(0.0),
        };
        Some(of(Memory::Fast, share)? + of(Memory::Slow, 1.0 - share)?)
    }
}
