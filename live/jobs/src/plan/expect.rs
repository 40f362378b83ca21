//! The expected timeline of a schedule, if each program takes as long as alone: starts, and their reasons.

use super::Plan;
use crate::policy::order::Reason;
use serde::{Deserialize, Serialize};

/// One program's turn.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Turn {
    /// Which program.
    pub program: usize,
    /// When it starts, s.
    pub start: f64,
    /// When it ends, s.
    pub end: f64,
    /// Why it starts then.
    pub reason: Reason,
}

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Expected {
    /// Turns in the order of their starts.
    pub turns: Vec<Turn>,
    /// When the last one ends, s.
    pub seconds: f64,
}

/// Plays a plan through. `seconds` says how long a program takes alone; one of which nothing is known takes no time. Pages
/// that make room have moved at once.
pub fn expect(plan: &Plan, seconds: &dyn Fn(usize, u32) -> Option<f64>) -> Expected {
    let mut dispatcher = plan.dispatcher();
    for e in &plan.evictions {
        dispatcher.ready(e.room_for);
    }
    let mut out = Expected::default();
    let mut running: Vec<(f64, usize)> = Vec::new();
    let mut now = 0.0;
    loop {
        while let Some((program, reason)) = dispatcher.start() {
            let takes = seconds(program, plan.programs[program].threads).unwrap_or(0.0);
            let end = now + takes;
            running.push((end, program));
            out.turns.push(Turn {
                program,
                start: now,
                end,
                reason,
            });
        }
        let next = (0..running.len()).min_by(|&a, &b| running[a].0.total_cmp(&running[b].0));
        let Some(next) = next else { break };
        let (end, program) = running.swap_remove(next);
        now = end;
        out.seconds = end;
        dispatcher.ended(program);
    }
    out
}
