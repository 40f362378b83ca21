//! The report of a Java program whose memory was placed.

use crate::report::Ran;
use serde::Deserialize;
use std::collections::BTreeMap;

/// The result of [`crate::java::run`]. Processes are its virtual machines.
pub type JavaReport = Ran<JavaProcess>;

/// A virtual machine's report at its end.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default)]
pub struct JavaProcess {
    /// Process number.
    pub pid: u32,
    /// The collector.
    pub collector: String,
    /// Feature version, such as 17.
    pub java: u32,
    /// Collections of the young generation.
    pub minor: u64,
    /// Collections of everything.
    pub full: u64,
    /// Times that the machine stood still.
    pub pauses: u64,
    /// For how long together, ns.
    pub pause_ns: u64,
    /// The longest time, ns.
    pub longest_pause_ns: u64,
    /// Ranges that could not be bound.
    pub refused: u32,
    /// Why the last one could not.
    pub why_refused: String,
    /// The uses of its memory at its end, and their residency.
    pub parts: Vec<JavaPart>,
}

/// A range of a virtual machine's memory.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default)]
pub struct JavaPart {
    /// Its use: `young`, `old`, `heap`, `metaspace`, `code`.
    pub what: String,
    /// Its first address.
    pub start: u64,
    /// Bytes that were reserved for it.
    pub reserved_bytes: u64,
    /// The nodes that it was to be on; empty if it was left to the system.
    pub wanted: Vec<u32>,
    /// Bytes in memory by node, as the kernel says.
    pub nodes: BTreeMap<u32, u64>,
}

impl JavaProcess {
    /// Bytes by node of all parts for the same, and of these bytes those that are on no node that was wanted.
    pub fn part(&self, what: &str) -> Option<(BTreeMap<u32, u64>, u64)> {
        let mut parts = self
            .parts
            .iter()
            .filter(|part| part.what == what)
            .peekable();
        parts.peek()?;
        let (mut nodes, mut elsewhere) = (BTreeMap::new(), 0);
        for part in parts {
            for (&node, &bytes) in &part.nodes {
                *nodes.entry(node).or_default() += bytes;
                if !part.wanted.is_empty() && !part.wanted.contains(&node) {
                    elsewhere += bytes;
                }
            }
        }
        Some((nodes, elsewhere))
    }

    /// The uses of its memory, each once.
    pub fn uses(&self) -> Vec<&str> {
        let mut all: Vec<&str> = Vec::new();
        for part in &self.parts {
            if !all.contains(&&*part.what) {
                all.push(&part.what);
            }
        }
        all
    }
}
