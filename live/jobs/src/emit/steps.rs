//! The steps of a schedule, one for each program, for every scheduler.

use super::{Emission, For};
use crate::error::Error;
use crate::group::Program;
use crate::inside::Told;
use crate::kinds::Memory;
use crate::live::inside::InPart;
use crate::live::words::{self, Filling};
use crate::plan::Plan;
use varve_live::nodes::Kinds;
use varve_report::fmt;

/// Stands for the processors of a program in its words where they are known only once it runs. No file has it in a word.
pub const CPUS_LATER: char = '\u{1}';

/// One program.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// Which program of the group.
    pub program: usize,
    /// A name for files and units, which no other program has.
    pub name: String,
    /// Its log.
    pub log: String,
    /// Programs that must have ended, well or not.
    pub after: Vec<usize>,
    /// Threads.
    pub threads: u32,
    /// Its own processors, if its threads were counted and there are enough.
    pub cpus: Option<Vec<u32>>,
    /// Nodes that its memory is bound to, and their kind; `None`: the kernel's choice.
    pub memory: Option<(Memory, Vec<u32>)>,
    /// Programs whose pages are to move when this one starts.
    pub evicts: Vec<usize>,
    /// Its command line.
    pub words: Vec<String>,
    /// Its variables.
    pub environment: Vec<(String, String)>,
    /// Most time that it may take, s.
    pub time_limit_s: Option<f64>,
}

/// All programs, in the order in which the plan expects them to start.
pub fn of(e: &Emission, target: For) -> Result<Vec<Step>, Error> {
    for (i, p) in e.group.programs.iter().enumerate() {
        if p.is_modelled_only() {
            let what = "is a trace, which runs on a model only".into();
            let remedy = "give it `command`, or leave --emit out";
            return Err(e.group.problem(i, "trace", what, remedy).into());
        }
    }
    let after = after(e);
    let cpus = processors(e);
    let turns = e.plan.expected.turns.iter();
    turns
        .map(|turn| step(e, target, turn.program, &after, &cpus))
        .collect()
}

fn step(
    e: &Emission,
    target: For,
    i: usize,
    after: &[Vec<usize>],
    cpus: &[Option<Vec<u32>>],
) -> Result<Step, Error> {
    let program = &e.group.programs[i];
    let in_part = in_part(e, i);
    let kind = memory(e, target, i).filter(|_| in_part.is_none());
    let memory = match (kind, e.nodes) {
        (Some(Memory::Fast), Some(nodes)) => Some((Memory::Fast, nodes.fast.clone())),
        (Some(Memory::Slow), Some(nodes)) => Some((Memory::Slow, nodes.slow.clone())),
        (None, Some(nodes)) if in_part.is_some() => rest(program, nodes),
        (kind, None) if kind.is_some() || in_part.is_some() => {
            return Err(Error::NoNodes(e.host.name.clone()));
        }
        _ => None,
    };
    let threads = e.plan.programs[i].threads;
    let filling = Filling {
        threads,
        memory: kind,
        nodes: memory.as_ref().map(|(_, nodes)| nodes.clone()),
        in_part: in_part.zip(e.nodes.cloned()),
        cpus: match target {
            For::Slurm => CPUS_LATER.into(),
            For::Systemd => words::list(cpus[i].as_deref().unwrap_or(e.cpus)),
        },
    };
    let name = name(e, i);
    let log = e
        .options
        .logs
        .join(format!("{name}-{}.log", e.plan.strategy.name()));
    let text = |word: std::ffi::OsString| {
        word.into_string().map_err(|word| {
            let what = format!("{} is not UTF-8, which the file is", word.display());
            Error::from(e.group.problem(i, program.key(), what, "rename it"))
        })
    };
    let mut words = words::words(program, &filling, e.options);
    if let (Some(inside), Some((part, nodes))) = (&program.inside, &filling.in_part)
        && inside.told != Told::Heap
    {
        let mut line = vec![
            e.options.varve.clone().into(),
            "run".into(),
            "--live".into(),
        ];
        line.extend(words::placed(inside, *part, nodes));
        line.push("--".into());
        line.append(&mut words);
        words = line;
    }
    Ok(Step {
        program: i,
        log: text(log.into())?,
        name,
        after: after[i].clone(),
        threads,
        cpus: cpus[i].clone(),
        memory,
        evicts: evicted_for(e.plan, i),
        words: words.into_iter().map(text).collect::<Result<_, _>>()?,
        environment: words::environment(program, &filling),
        time_limit_s: program.time_limit_s,
    })
}

/// The kind of memory that a program starts in; `None`: no policy chose one, or there is only one kind.
///
/// Pages of a running service can be moved by systemd, so that a program that is to make room begins in fast memory there.
fn memory(e: &Emission, target: For, i: usize) -> Option<Memory> {
    let decided = e.plan.strategy.placement || e.group.programs[i].memory.is_some();
    if e.host.alike || !decided {
        return None;
    }
    let moves = e.plan.evictions.iter().any(|v| v.who == i);
    match moves && target == For::Systemd {
        true => Some(Memory::Fast),
        false => Some(e.plan.programs[i].memory),
    }
}

/// The limits of a program that is in fast memory in part.
fn in_part(e: &Emission, i: usize) -> Option<InPart> {
    let plan = &e.plan.programs[i];
    let inside = e.group.programs[i].inside.as_ref();
    let inside = inside.filter(|_| plan.in_part)?;
    Some(InPart {
        fast: inside.fast.or(Some(plan.fast_bytes)),
        takes: plan.bytes,
    })
}

/// The binding of a program in part, whose own memory is placed by `varve run`: nothing of a virtual machine, which that binds
/// itself; of others all else is to be in slow memory.
fn rest(program: &Program, nodes: &Kinds) -> Option<(Memory, Vec<u32>)> {
    match program.inside.as_ref()?.told {
        Told::Generations => None,
        _ => Some((Memory::Slow, nodes.slow.clone())),
    }
}

fn evicted_for(plan: &Plan, newcomer: usize) -> Vec<usize> {
    let evictions = plan.evictions.iter();
    let of = evictions.filter(|v| v.room_for == newcomer);
    of.map(|v| v.who).collect()
}

/// Letters, digits, `-` and `_`; of two programs that would share a name the later one has its number too.
fn name(e: &Emission, i: usize) -> String {
    let plain = |name: &str| plain(name);
    let programs = &e.group.programs;
    let own = plain(&programs[i].name);
    match programs[..i].iter().any(|p| plain(&p.name) == own) {
        true => format!("{own}_{}", i + 1),
        false => own,
    }
}

/// A name for files and units.
pub fn plain(name: &str) -> String {
    let of = |c: char| match c.is_ascii_alphanumeric() || c == '-' {
        true => c,
        false => '_',
    };
    name.chars().map(of).collect()
}

/// The programs that each one waits for: those in its file; with a limit of programs at a time, the one whose place it takes; and where order
/// is decided without such a limit, those that it would disturb or be disturbed by and that come first.
fn after(e: &Emission) -> Vec<Vec<usize>> {
    let mut after: Vec<Vec<usize>> = e.group.programs.iter().map(|p| p.after.clone()).collect();
    let at_once = e.plan.at_once as usize;
    let turns = &e.plan.expected.turns;
    // The last program in each place, and its end.
    let mut places: [Vec<(usize, f64)>; 2] = Default::default();
    for (n, turn) in turns.iter().enumerate() {
        let item = &e.plan.items[turn.program];
        let waits = &mut after[turn.program];
        if at_once > 0 {
            let places = &mut places[item.memory as usize];
            let free = (0..places.len()).min_by(|&a, &b| places[a].1.total_cmp(&places[b].1));
            match free.filter(|_| places.len() == at_once) {
                Some(place) => {
                    waits.push(places[place].0);
                    places[place] = (turn.program, turn.end);
                }
                None => places.push((turn.program, turn.end)),
            }
        } else if e.plan.strategy.order {
            let before = turns[..n].iter().filter(|t| t.end <= turn.start);
            let others = before.map(|t| t.program);
            waits.extend(others.filter(|&other| e.plan.items[other].clashes(item)));
        }
        waits.sort_unstable();
        waits.dedup();
    }
    after
}

/// The processors that each program gets if programs take as long as expected.
fn processors(e: &Emission) -> Vec<Option<Vec<u32>>> {
    let mut own: Vec<Option<Vec<u32>>> = vec![None; e.group.programs.len()];
    if !e.plan.strategy.threads {
        return own;
    }
    let mut free = e.cpus.to_vec();
    let mut busy: Vec<(f64, usize)> = Vec::new();
    for turn in &e.plan.expected.turns {
        busy.retain(|&(end, other)| {
            if end <= turn.start {
                free.extend(own[other].iter().flatten());
            }
            end > turn.start
        });
        free.sort_unstable();
        let wanted = e.plan.programs[turn.program].threads as usize;
        if free.len() >= wanted {
            own[turn.program] = Some(free.drain(..wanted).collect());
            busy.push((turn.end, turn.program));
        }
    }
    own
}

/// Does `a` end before `b` begins, or `b` before `a`, whatever they take?
fn ordered(steps: &[Step], a: usize, b: usize) -> bool {
    let waits = |later: usize, earlier: usize| {
        let mut open = vec![later];
        let mut seen = vec![later];
        while let Some(i) = open.pop() {
            let step = steps.iter().find(|s| s.program == i);
            for &w in step.iter().flat_map(|s| &s.after) {
                if w == earlier {
                    return true;
                }
                if !seen.contains(&w) {
                    seen.push(w);
                    open.push(w);
                }
            }
        }
        false
    };
    waits(a, b) || waits(b, a)
}

/// Parts of the schedule that the file cannot express.
pub fn lost(e: &Emission, steps: &[Step], target: For) -> Vec<String> {
    let mut lost = Vec::new();
    let name = |i: usize| e.group.programs[i].name.as_str();
    let waits = |s: &&Step| s.after != e.group.programs[s.program].after;
    if let Some(step) = steps.iter().find(waits) {
        lost.push(format!(
            "programs wait for those that the plan expects to end by then, as {} does, and not for whatever ends first",
            name(step.program)
        ));
    }
    if e.plan.strategy.placement && !e.host.alike {
        for p in &e.plan.programs {
            if p.fast_bytes > 0 && p.fast_bytes < p.bytes && !p.in_part {
                lost.push(format!(
                    "{} of the {} of {} were to be in fast memory: the scheduler does not enforce it",
                    fmt::bytes(p.fast_bytes as f64),
                    fmt::bytes(p.bytes as f64),
                    p.name
                ));
            }
        }
    }
    let bound = steps.iter().any(|s| s.memory.is_some());
    if bound && let Some(fast) = e.group.fast {
        lost.push(format!(
            "the scheduler does not enforce the group's limit of {} of fast memory",
            fmt::bytes(fast as f64)
        ));
    }
    let several = |s: &&Step| s.memory.as_ref().is_some_and(|(_, nodes)| nodes.len() > 1);
    if let Some((kind, _)) = steps.iter().find(several).and_then(|s| s.memory.as_ref()) {
        lost.push(format!(
            "of several nodes the first is preferred: the others of {kind} memory are as good as any node"
        ));
    }
    match target {
        For::Slurm => {
            for v in e.plan.evictions.iter().filter(|_| bound) {
                lost.push(format!(
                    "pages of a running step cannot move: {} is in slow memory from its start, and not only once {} comes",
                    name(v.who),
                    name(v.room_for)
                ));
            }
            lost.push(
                "which processors a step gets is Slurm's choice: on several sockets they may be far from its memory"
                    .into(),
            );
        }
        For::Systemd => {
            if bound && !e.plan.evictions.is_empty() {
                lost.push(
                    "a program whose pages were moved may take slow memory alone from then on: the kernel ends it where that has no room"
                        .into(),
                );
            }
            let shared = steps.iter().enumerate().find_map(|(n, a)| {
                let own = a.cpus.as_ref()?;
                let same = |b: &&Step| {
                    b.cpus.iter().flatten().any(|cpu| own.contains(cpu))
                        && !ordered(steps, a.program, b.program)
                };
                Some((a, steps[n + 1..].iter().find(same)?))
            });
            if let Some((a, b)) = shared {
                lost.push(format!(
                    "processors are those that the plan expects to be free: {} and {} share some if they meet",
                    name(a.program),
                    name(b.program)
                ));
            }
        }
    }
    let scale = e.options.scale;
    let carried_out =
        |s: &Step| words::carried_out(&e.group.programs[s.program], 1, e.options).is_some();
    if scale > 1 && steps.iter().any(carried_out) {
        lost.push(format!(
            "programs without a command are their workloads at 1/{scale} of their size (--scale 1: in full)"
        ));
    }
    lost
}
