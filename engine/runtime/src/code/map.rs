//! From addresses in code to what they stand for: traps, stack maps, exception handlers, places in the module.

use super::link::Relocation;
use crate::error::TrapKind;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Live references of a frame at a return address.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct StackMap {
    /// Frame pointer less stack pointer at the call.
    pub frame_size: u32,
    /// Offsets of references from the stack pointer.
    pub slots: Box<[u32]>,
}

/// Where exceptions of a call go.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Handler {
    /// Frame pointer less stack pointer at the call.
    pub frame_size: u32,
    pub code: u32,
}

/// The metadata of one piece of code. Keys and offsets count from its start.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct CodeInfo {
    pub start: usize,
    pub len: usize,
    /// The function, or none for the pieces that glue host and compiled code.
    pub func: Option<u32>,
    pub traps: Vec<(u32, TrapKind)>,
    /// Where it is interrupted if it comes to a throw that it leaves out, and that throw's location, as in `offsets`.
    pub left_out: Box<[(u32, u32)]>,
    /// By return address.
    pub stack_maps: Vec<(u32, StackMap)>,
    /// By return address.
    pub handlers: Vec<(u32, Handler)>,
    /// Starts of runs of instructions with their locations: byte offsets in the module, or with the bit [`INLINED`]
    /// indices of `inlined`.
    pub offsets: Vec<(u32, u32)>,
    pub inlined: Box<[Inlined]>,
    /// Fields in the code that lead elsewhere.
    pub relocations: Box<[Relocation]>,
}

/// Set in locations that are in inlined functions.
pub(crate) const INLINED: u32 = 1 << 31;

/// A location in a function that was inlined.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Inlined {
    pub func: u32,
    pub offset: u32,
    /// Location of the call in the function around it.
    pub caller: u32,
}

fn find<T>(table: &[(u32, T)], at: u32) -> Option<&T> {
    table
        .binary_search_by_key(&at, |e| e.0)
        .ok()
        .map(|i| &table[i].1)
}

impl CodeInfo {
    pub fn trap(&self, pc: usize) -> Option<TrapKind> {
        find(&self.traps, (pc - self.start) as u32).copied()
    }

    /// The location of the throw that code leaves out where it was interrupted.
    pub fn left_out(&self, pc: usize) -> Option<u32> {
        find(&self.left_out, (pc - self.start) as u32).copied()
    }

    pub fn stack_map(&self, return_address: usize) -> Option<&StackMap> {
        find(&self.stack_maps, (return_address - self.start) as u32)
    }

    pub fn handler(&self, return_address: usize) -> Option<Handler> {
        find(&self.handlers, (return_address - self.start) as u32).copied()
    }

    /// Functions, and byte offsets in their module, that the instruction at `pc` belongs to: innermost first.
    pub fn places(&self, pc: usize) -> Vec<(u32, u32)> {
        let at = (pc - self.start) as u32;
        let i = self.offsets.partition_point(|e| e.0 <= at);
        self.places_of(self.offsets[..i].last().map_or(0, |e| e.1))
    }

    /// The same for a location.
    pub fn places_of(&self, mut location: u32) -> Vec<(u32, u32)> {
        let Some(func) = self.func else {
            return vec![];
        };
        let mut places = Vec::new();
        while location & INLINED != 0 {
            let inlined = self.inlined[(location & !INLINED) as usize];
            places.push((inlined.func, inlined.offset));
            location = inlined.caller;
        }
        places.push((func, location));
        places
    }
}

/// All code of a store by address.
#[derive(Default, Debug)]
pub(crate) struct CodeMap {
    pieces: BTreeMap<usize, Arc<CodeInfo>>,
}

impl CodeMap {
    pub fn add(&mut self, info: CodeInfo) {
        self.pieces.insert(info.start, Arc::new(info));
    }

    pub fn find(&self, pc: usize) -> Option<&Arc<CodeInfo>> {
        let (_, info) = self.pieces.range(..=pc).next_back()?;
        // A return address may be the end of the code.
        (pc <= info.start + info.len).then_some(info)
    }
}
