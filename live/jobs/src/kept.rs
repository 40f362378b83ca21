//! Demands that were measured on this machine, in a file: measuring them takes as long as the programs themselves, many times.

use crate::demand::Demand;
use crate::group::Program;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::Path;

/// The file of measured demands.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Kept {
    /// The common conditions: machine, scale, version.
    about: String,
    demands: Vec<KeptDemand>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct KeptDemand {
    /// The program at the time of its measurement: its command or workload, its placement, its variables, its threads.
    program: String,
    demand: Demand,
}

/// The parts of a program's entry that its demand depends on; not its name or its dependencies.
fn key(p: &Program) -> String {
    let all = (&p.live, &p.modelled, &p.inside, &p.env, p.threads, p.bytes);
    serde_json::to_string(&all).unwrap_or_default()
}

impl Kept {
    /// Reads a file; nothing is kept yet if it is not there. What was measured on another machine, at another scale or by another
    /// version is left out.
    ///
    /// # Errors
    /// A line: it cannot be read, or is something else.
    pub fn read(file: &Path, about: &str) -> Result<Kept, String> {
        let shown = file.display();
        let kept: Kept = match fs::read_to_string(file) {
            Ok(text) => serde_json::from_str(&text).map_err(|e| {
                format!("--demands {shown}: {e}: no file of demands; choose another one")
            })?,
            Err(e) if e.kind() == io::ErrorKind::NotFound => Kept::default(),
            Err(e) => return Err(format!("--demands {shown}: {e}")),
        };
        match kept.about == about {
            true => Ok(kept),
            false => Ok(Kept {
                about: about.into(),
                demands: Vec::new(),
            }),
        }
    }

    /// The demand of a program, if it was measured in its present form.
    pub fn of(&self, program: &Program) -> Option<Demand> {
        let key = key(program);
        let kept = self.demands.iter().find(|kept| kept.program == key)?;
        Some(Demand {
            name: program.name.clone(),
            ..kept.demand.clone()
        })
    }

    /// Adds what was measured, in place of what was before.
    pub fn add(&mut self, program: &Program, demand: Demand) {
        let program = key(program);
        self.demands.retain(|kept| kept.program != program);
        self.demands.push(KeptDemand { program, demand });
    }

    /// Writes the file, whole or not at all.
    ///
    /// # Errors
    /// A line: it cannot be written.
    pub fn write(&self, file: &Path) -> Result<(), String> {
        let beside = file.with_extension("new");
        let text = serde_json::to_string_pretty(self).map_err(|e| e.to_string())?;
        let written = fs::write(&beside, text + "\n").and_then(|()| fs::rename(&beside, file));
        written.map_err(|e| format!("--demands {}: cannot be written: {e}", file.display()))
    }
}
