//! Pictures in the formats of tools that people know, each written from plain data: flame graphs, heat maps, timelines
//! for Perfetto. Nothing here depends on the kind of program.
//!
//! The same data gives the same bytes: no dates, no numbers of processes. Every file has a limit, and names the parts
//! that it left out.

mod flame;
mod heat;
mod perfetto;
mod png;
mod timeline;

pub use flame::{By, Flame, Stack};
pub use heat::{Cell, Colour, HeatMap, Range};
pub(crate) use png::base64;
pub use timeline::{Counter, Lane, Meaning, Timeline, TimelineRun, TimelineSpan};

use crate::{Error, file};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// A file beside a page, with one sentence: its contents, and the program that opens it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompanionFile {
    /// Its name in the folder.
    pub file: String,
    /// The sentence.
    pub says: String,
    /// The drawing, as SVG, if it is one; only while it is new.
    #[serde(skip)]
    pub drawn: Option<String>,
}

/// All pictures of a comparison of runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pictures {
    /// Memory that threads wait for, in two runs.
    pub flame: Option<Flame>,
    /// Which functions wait, in the same runs.
    pub code: Option<Flame>,
    /// Events with their times, in each run.
    pub timeline: Timeline,
    /// Accesses to memory over time, in each run.
    pub heat: Vec<HeatMap>,
}

/// Heat maps in one file at most.
const MOST_MAPS: usize = 6;

impl Pictures {
    /// Writes those that there is something to see in into a folder that exists; the files, in the order of the page.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn save(&self, folder: &Path) -> Result<Vec<CompanionFile>, Error> {
        let mut written = Vec::new();
        let mut put = |name: &str, content: Option<String>, says: &str| -> Result<(), Error> {
            let Some(content) = content else {
                return Ok(());
            };
            file::write_atomically(&folder.join(name), content.as_bytes())?;
            written.push(CompanionFile {
                file: name.into(),
                says: says.into(),
                drawn: name.ends_with(".svg").then_some(content),
            });
            Ok(())
        };
        for flame in self.flames() {
            let slow = &flame.slow;
            let (graph, difference, what) = match flame.by {
                By::Memory => ("flame.svg", "flame-difference.svg", "where threads wait"),
                By::Function => (
                    "flame-code.svg",
                    "flame-code-difference.svg",
                    "which functions wait",
                ),
            };
            put(
                graph,
                flame.graph(),
                &format!(
                    "a flame graph of {what} for memory {slow}; open it in a browser, click to zoom, Ctrl-F searches."
                ),
            )?;
            let fast = flame.fast.as_deref().unwrap_or_default();
            put(
                difference,
                flame.difference(),
                &format!(
                    "the same, coloured by the difference: red waits longer {slow} than {fast}; open it in a browser."
                ),
            )?;
        }
        let maps = &self.heat[..self.heat.len().min(MOST_MAPS)];
        let left_out = match self.heat.len() - maps.len() {
            0 => String::new(),
            n => format!(" The last {n} runs are left out."),
        };
        put(
            "heat.svg",
            heat::draw(maps, Colour::Accesses),
            &format!("addresses over time, coloured by accesses; open it in a browser.{left_out}"),
        )?;
        put(
            "heat-memory.svg",
            heat::draw(maps, Colour::Memory),
            &format!(
                "addresses over time, coloured by the memory that pages are in; open it in a browser.{left_out}"
            ),
        )?;
        let timeline = self.timeline.bounded();
        put(
            "timeline.perfetto.json",
            perfetto::write(&timeline),
            "phases, collections, requests and page moves of each run, with bandwidth and power; open it at ui.perfetto.dev, or in \
             chrome://tracing.",
        )?;
        Ok(written)
    }

    /// Flame graphs, in the order of the page.
    fn flames(&self) -> impl Iterator<Item = &Flame> + Clone {
        self.flame.iter().chain(&self.code)
    }
}
