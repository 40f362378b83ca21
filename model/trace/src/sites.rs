//! The site table of a trace as it is read: calls, and sites made of them.

use crate::writer::CallSite;
use serde::Deserialize;

/// Calls of one site, at most: a damaged number must not ask for memory.
const MOST_CALLS: usize = 256;

/// A site as it is in a block.
#[derive(Deserialize)]
#[serde(untagged)]
enum Line {
    /// Numbers of calls, the innermost first.
    Stack(Vec<usize>),
    /// The call itself with its callers, up to version 2.
    Whole(Box<CallSite>),
}

/// The site table, as far as it was read.
#[derive(Default)]
pub(crate) struct Sites {
    calls: Vec<CallSite>,
    pub all: Vec<CallSite>,
}

impl Sites {
    /// Calls by their numbers, each without those that led there.
    pub fn calls(&self) -> &[CallSite] {
        &self.calls
    }

    /// Takes in a block of calls. `None` if it is damaged.
    pub fn add_calls(&mut self, json: &[u8]) -> Option<()> {
        self.calls
            .extend(serde_json::from_slice::<Vec<CallSite>>(json).ok()?);
        Some(())
    }

    /// Takes in a block of sites. `None` if it is damaged, or a site is made of calls that are not there.
    pub fn add_sites(&mut self, json: &[u8]) -> Option<()> {
        let lines: Vec<Line> = serde_json::from_slice(json).ok()?;
        let site = |line| match line {
            Line::Whole(site) => Some(*site),
            Line::Stack(numbers) if numbers.len() > MOST_CALLS => None,
            Line::Stack(numbers) => {
                let mut calls = numbers
                    .iter()
                    .map(|&number| self.calls.get(number).cloned());
                let mut site = calls.next()??;
                site.callers = calls.collect::<Option<_>>()?;
                Some(site)
            }
        };
        let sites = lines.into_iter().map(site).collect::<Option<Vec<_>>>()?;
        self.all.extend(sites);
        Some(())
    }
}
