//! `varve machine calibrate here`: the classic curves measured on this machine, the model of it beside them.

use super::calibrate::{errors, known, number, percent, print_all, run};
use super::columns::{self, Cell};
use crate::ui::{self, Done, failed, print};
use serde_json::json;
use std::process::ExitCode;
use varve_live::curves::{Effort, LiveCurve, LivePoint, Plan, measure};
use varve_live::{ProbeOptions, probe};
use varve_machine::calibrate::{self, Point, PublishedCurve, Room, Row, planned, summaries, table};
use varve_report::{RunTable, fmt};
use varve_run::VERSION;
use varve_tier::machine_of_probe;

/// Time of the probe that the machine is described from, with `--quick`, s.
const QUICK_PROBE_S: f64 = 1.5;

pub fn calibrate(quick: bool, full: bool, json: bool) -> Done {
    let effort = match (quick, full) {
        (true, _) => Effort::Quick,
        (_, true) => Effort::Full,
        _ => Effort::Usual,
    };
    let mut options = ProbeOptions::default();
    if quick {
        options.seconds = QUICK_PROBE_S;
    }
    let found = probe(&options);
    let mut plan = Plan::here(&found.topology, effort);
    let mut notes = std::mem::take(&mut plan.notes);
    let measured = live(&plan, &mut notes);
    if ui::stopped() {
        return Err(ui::interrupted());
    }
    if measured.is_empty() {
        return Err(failed(notes.join("; ")));
    }
    // The model has as many cores as were measured with.
    let mut machine = machine_of_probe(&found);
    machine.core.per_socket = plan.places[0].cpus.len() as u32;
    let model = run(&planned(&machine, &on_the_model(&plan, full)))?;
    let rows = table(&model, &as_published(&measured, &plan));
    let summaries = summaries(&rows);
    if json {
        let all = json!({
            "machine": machine.name,
            "version": VERSION,
            "places": plan.places.iter().map(|place| json!({"id": place.id, "node": place.node})).collect::<Vec<_>>(),
            "curves": model,
            "measured": measured,
            "published": rows,
            "errors": summaries,
            "notes": notes,
        });
        print(serde_json::to_string_pretty(&all).map_err(failed)?);
    } else {
        print(format!(
            "Curves of this machine, the model of it beside them\n{}\n",
            found.topology.processor.model.trim()
        ));
        print_all(measured.iter().map(|curve| of(curve, &rows)));
        print_all(errors(&summaries));
        print(format!(
            "Measured in {} MiB of each memory; medians of {} runs of {} ms. Spread: the\n\
             highest less the lowest run, of the median. Input: the model was made from it.",
            plan.bytes >> 20,
            plan.runs,
            plan.time.as_millis()
        ));
        for note in &notes {
            print(super::list::hang("Note:", 6, note));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Measures with progress.
fn live(plan: &Plan, notes: &mut Vec<String>) -> Vec<LiveCurve> {
    let bar = ui::bar(plan.ids().len() as u64, "measuring");
    let mut begun = false;
    let measured = measure(plan, notes, &mut |id| {
        if std::mem::replace(&mut begun, true) {
            bar.inc(1);
        }
        bar.set_message(id.to_string());
        !ui::stopped()
    });
    bar.finish_and_clear();
    measured
}

/// The same points for the model.
fn on_the_model(plan: &Plan, full: bool) -> calibrate::Plan {
    calibrate::Plan {
        footprints: plan.footprints.clone(),
        idle_bytes: plan.bytes,
        threads: plan.threads.clone(),
        sizes: plan.sizes.clone(),
        shares: plan.shares.clone(),
        pace_step: if full { 1 } else { 3 },
        room: Room::Together(plan.bytes),
        size_threads: Some(plan.places[0].cpus.len()),
        prefetch: true,
    }
}

/// Measured figures take the place of published ones.
fn as_published(measured: &[LiveCurve], plan: &Plan) -> Vec<PublishedCurve> {
    let most = plan.threads.last().map_or(0.0, |n| *n as f64);
    let mut out = Vec::new();
    for curve in measured {
        // The probe chased at random and read with all cores: the machine was described from such figures.
        let is_input = |at: &str, x: f64| {
            let id = curve.id.as_str();
            (id.starts_with("chase/") && id.ends_with("/random"))
                || (id == "idle-latency" && at.ends_with("read, random"))
                || (id.starts_with("threads/") && id.ends_with("/read") && x == most)
        };
        for input in [false, true] {
            let points = curve
                .points
                .iter()
                .filter(|p| is_input(&p.at, p.x) == input);
            let points: Vec<Point> = points
                .map(|p| Point {
                    x: p.x,
                    at: p.at.clone(),
                    value: p.median,
                })
                .collect();
            if !points.is_empty() {
                out.push(PublishedCurve {
                    curve: curve.id.clone(),
                    source: format!("measured here, median of {} runs", plan.runs),
                    is_input: input,
                    points,
                });
            }
        }
    }
    out
}

/// A curve's points, those of the model beside them.
fn of(curve: &LiveCurve, rows: &[Row]) -> RunTable {
    let row = |p: &LivePoint| {
        let is_it = |r: &&Row| r.curve == curve.id && r.at == p.at;
        rows.iter().find(is_it)
    };
    let title = format!("{} ({})", curve.id, curve.unit);
    let mut cells = vec![
        Cell::new(number("measured"), |p: &LivePoint| p.median),
        Cell::new(percent("spread"), |p: &LivePoint| p.spread_percent()),
        Cell::new(number("model"), |p| known(row(p).and_then(|r| r.ours))),
        Cell::new(percent("error"), |p| {
            known(row(p).and_then(|r| r.error_percent))
        }),
    ];
    let is_input = |p: &LivePoint| row(p).is_some_and(|r| r.is_input);
    if curve.points.iter().any(is_input) {
        cells.push(Cell::new(number("input"), is_input));
    }
    let mut table = columns::table((title, &curve.axis), &curve.points, |p| &p.at, cells);
    if curve.axis.ends_with(", B") {
        for (row, p) in table.rows.iter_mut().zip(&curve.points) {
            row.name = fmt::bytes(p.x);
        }
    }
    table
}
