//! One run of a group on the model.

use super::ModelSpec;
use super::member::Member;
use super::rooms::Rooms;
use super::stage::{Shared, Stage};
use crate::error::Error;
use crate::group::{Group, Modelled, OnFailure};
use crate::plan::Plan;
use crate::result::{GroupResult, ProgramResult};
use varve_access::Program;
use varve_machine::model::{self, Options, Progress};

/// Runs a group by a plan. `watch` is called now and then and ends the run by returning `false`.
///
/// # Errors
/// A program that is nothing on a model, pages that find no room, an interrupt.
pub fn run(
    group: &Group,
    plan: &Plan,
    spec: &ModelSpec,
    watch: &mut dyn FnMut(&Progress) -> bool,
) -> Result<GroupResult, Error> {
    let topology = spec.topology()?;
    let machine = spec.scaled();
    let page_bytes = spec.page_bytes();
    let mut programs: Vec<Box<dyn Program>> = Vec::new();
    let mut in_part = Vec::new();
    for (i, p) in plan.programs.iter().enumerate() {
        let placed = match p.in_part {
            true => spec.placed(group, i, Some(p.fast_bytes), p.bytes)?,
            false => None,
        };
        let (program, is_fast) = match placed {
            Some(placed) => (placed.program, Some(placed.is_fast)),
            None => (spec.program(group, i, p.threads)?, None),
        };
        programs.push(program);
        in_part.push(is_fast);
    }
    let threads: Vec<usize> = programs.iter().map(|p| p.threads().max(1)).collect();
    let stop_all = group.on_failure == OnFailure::Stop;
    let stage = Shared::new(Stage::new(plan.dispatcher(), &threads, stop_all));
    let scale = f64::from(spec.scale);
    let evicted = |i: usize| plan.evictions.iter().any(|e| e.who == i);
    let mut members: Vec<Member> = (programs.into_iter().enumerate())
        .map(|(i, program)| {
            let limit = group.programs[i].time_limit_s;
            let limit = limit.map(|s| (s * 1e9 / scale) as u64);
            Member::new(program, i, stage.clone(), evicted(i), page_bytes, limit)
        })
        .collect();
    let fast_pages: Vec<u64> = (plan.programs.iter())
        .map(|p| match p.fast_bytes {
            // Regions begin on pages of their own: the last ones of a program that is not split count with it.
            fast if fast >= p.bytes => u64::MAX,
            fast => fast / u64::from(spec.scale) / page_bytes,
        })
        .collect();
    let mut rooms = Rooms::new(
        &topology,
        &threads,
        &fast_pages,
        in_part,
        &plan.evictions,
        stage.clone(),
    );
    let options = Options {
        seed: spec.seed,
        ..Options::default()
    };
    {
        let mut running: Vec<&mut dyn Program> =
            members.iter_mut().map(|m| m as &mut dyn Program).collect();
        model::run(&machine, &mut rooms, &mut running, &options, watch)?;
    }
    let seconds = |ns: u64| ns as f64 * scale / 1e9;
    let stage = stage.lock();
    let programs: Vec<ProgramResult> = (plan.programs.iter().zip(&stage.lives))
        .zip(&threads)
        .map(|((p, life), &threads)| ProgramResult {
            name: p.name.clone(),
            memory: p.memory,
            in_part: p.in_part,
            threads: threads as u32,
            start_s: life.start.map(seconds),
            end_s: life.start.and(life.end).map(seconds),
            reason: life.reason,
            exit: None,
            failure: life.failed.clone().or_else(|| {
                let never = "it was not started, since another one failed";
                life.start.is_none().then(|| never.into())
            }),
            log: None,
        })
        .collect();
    let end = programs.iter().filter_map(|p| p.end_s).fold(0.0, f64::max);
    Ok(GroupResult {
        strategy: plan.strategy,
        seconds: end,
        programs,
        moved_bytes: rooms.moved * u64::from(spec.scale),
        moving_s: rooms.moving.map_or(0.0, |(from, to)| seconds(to - from)),
        notes: notes(group, spec.scale),
        times: Vec::new(),
    })
}

/// Notes on programs that cannot be scaled.
fn notes(group: &Group, scale: u32) -> Vec<String> {
    let fixed = |p: &&crate::group::Program| p.modelled.as_ref().is_some_and(Modelled::is_fixed);
    let note = |p: &crate::group::Program| {
        format!(
            "{} runs as it is, and stands for one {scale} times as large that takes {scale} times as long: --scale 1 for its own size",
            p.name
        )
    };
    match scale {
        1 => Vec::new(),
        _ => group.programs.iter().filter(fixed).map(note).collect(),
    }
}
