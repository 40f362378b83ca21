//! Sites of a recorded program: call stacks, large static variables, stacks of threads, and the rest.

use super::tally::Tally;
use crate::Error;
use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;
use varve_sites::native::{Key, Module};
use varve_symbols::{Binary, Static, statics};
use varve_trace::{CallSite, ColoredBytes, TraceReader, space_of};

/// Sites by number, and where those are that are not allocated.
#[derive(Clone, Debug, Default)]
pub struct TraceSites {
    /// The key of each site: first all memory without a site of its own, then the trace's call stacks, then the others.
    pub keys: Vec<Key>,
    /// The files that the program consists of.
    pub modules: Vec<Module>,
    /// Memory that the program called hot or cold; `None`: it did not, or the trace is cut short.
    pub colors: Option<ColoredBytes>,
    /// Addresses of the trace, with the site that they are of.
    pub(super) ranges: Vec<(Range<u64>, u32)>,
}

impl TraceSites {
    /// Those of a trace. Static variables are known where the files are still there that were recorded.
    ///
    /// # Errors
    /// The trace cannot be read.
    pub fn read(trace: &Path) -> Result<TraceSites, Error> {
        let reader = TraceReader::open(trace)?;
        let heap = reader.sites().iter().map(CallSite::key);
        let mut sites = TraceSites {
            keys: std::iter::once(Key::Rest).chain(heap).collect(),
            modules: modules(&reader),
            colors: reader.end().and_then(|end| end.colors),
            ranges: Vec::new(),
        };
        let Some(end) = reader.end() else {
            return Ok(sites);
        };
        let mut numbers: HashMap<Key, u32> = HashMap::new();
        // Processes of a program have the same files.
        let mut read: HashMap<(&str, &str), Vec<Static>> = HashMap::new();
        for module in &end.modules {
            let path = Path::new(&module.path);
            let variables = || {
                let same = Binary::read(path).is_ok_and(|file| file.build_id() == module.build_id);
                match same {
                    true => statics(path).unwrap_or_default(),
                    false => Vec::new(),
                }
            };
            let file = (&*module.path, &*module.build_id);
            for variable in read.entry(file).or_insert_with(variables) {
                let key = Key::Static {
                    module: file_name(&module.path).into(),
                    build_id: module.build_id.clone(),
                    symbol: variable.symbol.clone(),
                };
                let at = module.base.wrapping_add(variable.address) ^ space_of(module.process);
                sites.add(key, at..at + variable.bytes, &mut numbers);
            }
        }
        for stack in &end.stacks {
            let space = space_of(stack.process);
            sites.add(
                Key::Stacks,
                stack.start ^ space..stack.end ^ space,
                &mut numbers,
            );
        }
        Ok(sites)
    }

    fn add(&mut self, key: Key, range: Range<u64>, numbers: &mut HashMap<Key, u32>) {
        let next = self.keys.len() as u32;
        let number = *numbers.entry(key.clone()).or_insert(next);
        if number == next {
            self.keys.push(key);
        }
        self.ranges.push((range, number));
    }

    /// The key of each site, once it is known which call stacks mapped memory themselves.
    pub fn keys_of<'a>(&self, tallies: impl Iterator<Item = &'a Tally>) -> Vec<Key> {
        let mut keys = self.keys.clone();
        for (key, tally) in keys.iter_mut().zip(tallies) {
            if let Key::Heap(stack) = key
                && tally.mapped
            {
                *key = Key::Mapping(std::mem::take(stack));
            }
        }
        keys
    }
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

/// The files that are in memory, or at least those in which allocation sites are.
fn modules(reader: &TraceReader) -> Vec<Module> {
    let mut known: Vec<(&str, &str)> = Vec::new();
    let loaded = reader.end().map_or(&[][..], |end| &end.modules);
    let loaded = loaded.iter().map(|m| (&*m.path, &*m.build_id));
    let sites = reader.sites().iter();
    let calls = sites.flat_map(|site| std::iter::once(site).chain(&site.callers));
    let called = calls.map(|call| (&*call.module, &*call.build_id));
    for module in loaded.chain(called) {
        if !module.0.is_empty() && !known.contains(&module) {
            known.push(module);
        }
    }
    let module = |(path, build_id): (&str, &str)| Module {
        name: file_name(path).into(),
        path: path.into(),
        build_id: build_id.into(),
    };
    known.into_iter().map(module).collect()
}
