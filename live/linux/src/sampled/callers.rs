//! From a copy of a stack to the calls on it, by the rules of `.eh_frame`.

use super::used::Mapping;
use crate::objects::Rules;
use object::{Object, ObjectSegment};
use std::collections::HashMap;
use std::path::Path;

/// Maximum number of calls in a stack.
const DEEPEST: usize = 64;

/// A place in a file: its path, and the address as the linker numbers them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileAddress {
    /// The file; empty if the address belongs to none.
    pub path: String,
    /// The return address.
    pub offset: u64,
}

/// A loaded part of a file.
struct Segment {
    offset: u64,
    bytes: u64,
    address: u64,
}

struct File {
    segments: Vec<Segment>,
    rules: Option<Rules>,
}

impl File {
    fn read(path: &Path) -> File {
        let bytes = std::fs::read(path).unwrap_or_default();
        let parsed = object::File::parse(&*bytes).ok();
        let segments = parsed.iter().flat_map(|file| file.segments());
        File {
            segments: segments
                .map(|s| Segment {
                    offset: s.file_range().0,
                    bytes: s.file_range().1,
                    address: s.address(),
                })
                .collect(),
            rules: Rules::read(path).ok(),
        }
    }

    /// The address of a byte of the file.
    fn address(&self, offset: u64) -> Option<u64> {
        let holds = |s: &&Segment| offset >= s.offset && offset - s.offset < s.bytes;
        let segment = self.segments.iter().find(holds)?;
        Some(offset - segment.offset + segment.address)
    }
}

/// Code of a process.
#[derive(Default)]
pub struct Code {
    /// Mappings with code, by address.
    mappings: Vec<Mapping>,
    files: HashMap<String, File>,
}

impl Code {
    /// Learns where code is now.
    pub fn learn(&mut self, all: &[Mapping]) {
        let code = all
            .iter()
            .filter(|m| m.rights.contains('x') && m.path.starts_with('/'));
        for mapping in code {
            let path = &mapping.path;
            if !self.files.contains_key(path) {
                self.files.insert(path.clone(), File::read(Path::new(path)));
            }
        }
        self.mappings = all
            .iter()
            .filter(|m| m.rights.contains('x'))
            .cloned()
            .collect();
    }

    /// The place of a return address.
    fn place(&self, address: u64) -> Option<FileAddress> {
        let mapping = super::used::holding(&self.mappings, address)?;
        let offset = address - mapping.start + mapping.offset;
        Some(FileAddress {
            offset: self.files.get(&mapping.path)?.address(offset)?,
            path: mapping.path.clone(),
        })
    }

    /// The calls of a stack, the innermost first. `registers` are return address, stack pointer and frame pointer of the
    /// innermost; `stack` is what lies from the stack pointer on.
    pub fn walk(&self, registers: [u64; 3], stack: &[u64]) -> Vec<FileAddress> {
        let [mut address, begin, mut frame] = registers;
        let mut top = begin;
        let word = |at: u64| {
            let index = at.checked_sub(begin).filter(|d| d % 8 == 0)? / 8;
            stack.get(usize::try_from(index).ok()?).copied()
        };
        let mut places = Vec::new();
        while places.len() < DEEPEST {
            let Some(place) = self.place(address) else {
                break;
            };
            let rules = self.files.get(&place.path).and_then(|f| f.rules.as_ref());
            let rule = rules.and_then(|rules| rules.at(place.offset));
            places.push(place);
            let Some(rule) = rule else { break };
            let from = if rule.by_frame_pointer { frame } else { top };
            let end = from.wrapping_add_signed(i64::from(rule.above));
            let Some(next) = end.checked_sub(8).and_then(word) else {
                break;
            };
            if end <= top {
                break;
            }
            if let Some(at) = rule.frame_pointer_at {
                match word(end.wrapping_add_signed(i64::from(at))) {
                    Some(saved) => frame = saved,
                    None => break,
                }
            }
            (address, top) = (next, end);
        }
        places
    }
}
