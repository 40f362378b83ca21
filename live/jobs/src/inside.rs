//! How a program's own memory is placed, within the part of fast memory that the group's plan gives it.
//!
//! Such a program can be in fast memory *in part*: its hot sites, its young generation, its nursery are there, and the rest is in slow
//! memory. That is a third way beside all in fast and all in slow memory.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The parts of a program's memory that are distinguished.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Told {
    /// Objects of a native program, by allocation site.
    Sites,
    /// Generations of a Java virtual machine.
    Generations,
    /// Objects of a WebAssembly program.
    Heap,
}

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inside {
    /// The parts that are distinguished.
    pub told: Told,
    /// The plan by which it is placed, as `varve run --plan` takes it.
    pub plan: String,
    /// The profile of allocation sites that the plan goes by, if it does.
    pub sites: Option<PathBuf>,
    /// Fast memory that the program needs to be placed so, bytes, where a user says it. Objects never get more.
    pub fast: Option<u64>,
}

impl Inside {
    /// In a sentence.
    pub fn words(&self) -> String {
        let what = match self.told {
            Told::Sites => "objects by site",
            Told::Generations => "generations",
            Told::Heap => "objects",
        };
        format!("its {what} under {}", self.plan)
    }

    /// The key of the file that says it, for messages.
    pub fn key(&self) -> &'static str {
        match self.sites {
            Some(_) => "sites",
            None => "plan",
        }
    }
}
