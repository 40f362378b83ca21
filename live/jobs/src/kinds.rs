//! The two words that groups, demands, classes and policies share: kinds of memory, and classes of programs.

use serde::{Deserialize, Serialize};

/// The two kinds of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Memory {
    /// DRAM.
    Fast,
    /// Persistent memory, a CXL expander, a node without processors.
    Slow,
}

impl Memory {
    /// Both, fast first.
    pub const ALL: [Memory; 2] = [Memory::Fast, Memory::Slow];

    /// 0 or 1.
    pub fn index(self) -> usize {
        self as usize
    }

    /// The other one.
    pub fn other(self) -> Memory {
        match self {
            Memory::Fast => Memory::Slow,
            Memory::Slow => Memory::Fast,
        }
    }

    /// In a sentence.
    pub fn words(self) -> &'static str {
        match self {
            Memory::Fast => "fast memory",
            Memory::Slow => "slow memory",
        }
    }
}

impl std::fmt::Display for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Memory::Fast => "fast",
            Memory::Slow => "slow",
        })
    }
}

/// The resource that limits a program's speed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// The processor: its memory may be anywhere.
    CpuBound,
    /// How many bytes a second its memory can give.
    BandwidthSensitive,
    /// How long an access takes.
    LatencySensitive,
}

impl Class {
    /// All of them.
    pub const ALL: [Class; 3] = [
        Class::CpuBound,
        Class::BandwidthSensitive,
        Class::LatencySensitive,
    ];

    /// As it is written in files.
    pub fn name(self) -> &'static str {
        match self {
            Class::CpuBound => "cpu-bound",
            Class::BandwidthSensitive => "bandwidth-sensitive",
            Class::LatencySensitive => "latency-sensitive",
        }
    }
}

impl std::fmt::Display for Class {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}
