//! Pictures of programs whose pages were moved while they ran.

use super::compared::origin;
use super::pictures;
use super::tier_said::{as_json, end};
use crate::ui::{self, Failure, failed};
use std::path::Path;
use varve_live::tier::TierReport;
use varve_report::fmt::Format;
use varve_report::{Better, Column, RunReport, RunTable};
use varve_tier::seen::TierEye;

/// Writes a page with pictures of what was seen.
pub fn draw(folder: &Path, spec: &str, report: &TierReport, eye: &TierEye) -> Result<(), Failure> {
    let seen = eye.seen();
    let names: Vec<&str> = report.processes.iter().map(|p| &p.name[..]).collect();
    let title = format!("{} on this machine", names.join(", "));
    let drawn = pictures::of(&title, &[(spec, &seen)], (None, None));
    let mut table = RunTable::new(&title, "program");
    table.columns = ["on fast nodes", "on slow nodes"]
        .map(|name| Column::new(name, Format::Bytes, Better::Neither))
        .into();
    for process in &report.processes {
        let name = format!("{} ({})", process.name, process.pid);
        let [fast, slow] = [process.on_fast, process.on_slow].map(|bytes| (bytes as f64).into());
        table.push(name, [fast, slow]);
    }
    for object in &report.shared {
        let [fast, slow] = [object.on_fast, object.on_slow].map(|bytes| (bytes as f64).into());
        table.push(object.name.clone(), [fast, slow]);
    }
    table.notes = end(report);
    ui::folder(folder)?;
    let pictures = drawn.map(|drawn| drawn.save(folder)).transpose();
    let page = RunReport {
        origin: origin("here", 0),
        table,
        details: Vec::new(),
        charts: Vec::new(),
        pictures: pictures.map_err(failed)?.unwrap_or_default(),
        runs: vec![as_json(spec, report)],
    };
    ui::save(&page, folder)
}
