//! `varve sweep --list`.

use super::{Opened, command_of, shown};
use crate::sweep::standing::Standing;
use crate::ui::{Done, failed, print};
use serde_json::json;
use std::fmt::Write as _;
use std::process::ExitCode;
use varve_run::State;

/// The points, and which of them are done.
pub fn list(json: bool, opened: &Opened, standing: &Standing) -> Done {
    let sweep = &opened.sweep;
    let word = |state| match state {
        State::Missing => "left",
        State::Other => "other build",
        State::Done => "done",
    };
    let missing = standing.missing().len();
    if json {
        let points = standing.points.iter().enumerate().map(|(number, point)| {
            json!({"number": number, "state": word(point.state), "result": point.name, "command": command_of(sweep, number)})
        });
        let all = json!({"points": points.collect::<Vec<_>>(), "left": missing});
        print(serde_json::to_string_pretty(&all).map_err(failed)?);
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = String::new();
    for (number, point) in standing.points.iter().enumerate() {
        let shown = shown(sweep, number);
        let _ = writeln!(text, "{number:6}  {:11}  {shown}", word(point.state));
    }
    print(format!("{text}{} points, {missing} left", sweep.points()));
    Ok(ExitCode::SUCCESS)
}
