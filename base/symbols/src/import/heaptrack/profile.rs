//! A profile of what heaptrack has written.

use std::collections::HashMap;
use std::path::PathBuf;

use super::{Piece, State};
use crate::Binary;
use crate::import::Imported;
use varve_sites::Counts;
use varve_sites::native::{Frame, Key, Module, Profile, Site};

/// Calls of a stack that are kept, at most; recursion goes deeper.
const MOST_CALLS: usize = 64;

impl State {
    /// The calls of a trace, the innermost first.
    fn stack(&self, mut trace: usize, mut frame: impl FnMut(u64) -> Frame) -> Vec<Frame> {
        let mut stack = Vec::new();
        while let Some(&(call, parent)) = trace.checked_sub(1).and_then(|at| self.traces.get(at)) {
            if stack.len() == MOST_CALLS {
                break;
            }
            stack.push(frame(call));
            trace = parent;
        }
        stack
    }

    pub fn finish(self) -> Imported {
        let mut binaries: HashMap<PathBuf, Option<Binary>> = HashMap::new();
        let mut known: HashMap<u64, Frame> = HashMap::new();
        let mut frame = |call: u64| {
            if !self.is_raw {
                let at = (call as usize).checked_sub(1);
                return at
                    .and_then(|at| self.calls.get(at))
                    .cloned()
                    .unwrap_or_default();
            }
            let frame = known
                .entry(call)
                .or_insert_with(|| self.raw_frame(call, &mut binaries));
            frame.clone()
        };
        let mut traces: Vec<(&usize, &(Counts, u64))> = self.counts.iter().collect();
        traces.sort_unstable_by_key(|(trace, _)| **trace);
        let site = |(&trace, (counts, _)): (&usize, &(Counts, u64))| Site {
            key: Key::Heap(self.stack(trace, &mut frame)),
            counts: counts.clone(),
        };
        let sites = traces.into_iter().map(site).collect();
        let command: Vec<String> = self
            .command
            .split_ascii_whitespace()
            .map(str::to_string)
            .collect();
        let program = match self.program.as_os_str().is_empty() {
            true => PathBuf::from(command.first().cloned().unwrap_or_default()),
            false => self.program.clone(),
        };
        let mut paths: Vec<&PathBuf> = self.pieces.iter().map(|piece| &piece.path).collect();
        paths.dedup();
        let module = |path: &PathBuf| Module {
            name: crate::elf::name(path),
            path: path.to_string_lossy().into_owned(),
            build_id: binaries
                .get(path)
                .and_then(Option::as_ref)
                .map_or(String::new(), |b| b.build_id().into()),
        };
        let mut missing = vec!["heaptrack counts no reads, writes or misses".to_string()];
        if !self.is_raw {
            let lifetimes = match self.has_objects {
                true => "this file's",
                false => "this file has no lifetimes, and its",
            };
            missing.push(format!("{lifetimes} addresses are of one run, so its sites are not found again in other profiles; `heaptrack --raw` has both"));
        }
        let profile = Profile {
            program: crate::elf::name(&program),
            command,
            machine: String::new(),
            sampled: None,
            modules: paths.into_iter().map(module).collect(),
            sites,
        };
        // traces that differ only beyond what is kept are one site
        Imported {
            profile: profile.cut(MOST_CALLS),
            missing,
        }
    }

    fn raw_frame(&self, address: u64, binaries: &mut HashMap<PathBuf, Option<Binary>>) -> Frame {
        let holds = |piece: &&Piece| (piece.start..piece.end).contains(&address);
        let Some(piece) = self.pieces.iter().rev().find(holds) else {
            return Frame {
                offset: address,
                ..Frame::default()
            };
        };
        let read = || Binary::read(&piece.path).ok();
        let binary = binaries.entry(piece.path.clone()).or_insert_with(read);
        // a damaged file may have any of these
        let offset = address.wrapping_sub(piece.base).wrapping_add(1);
        // heaptrack tells the call itself, a byte before where it returns to
        let unnamed = || Frame {
            module: crate::elf::name(&piece.path),
            offset,
            ..Frame::default()
        };
        binary
            .as_ref()
            .map_or_else(unnamed, |binary| binary.frame(offset))
    }
}
