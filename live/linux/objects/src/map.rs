//! The site map as it lies in its file. The builder on the other side made it whole; it is checked for its size alone.

use crate::format::{
    self, COUNTS, FAST_NODES, MAGIC, MASK_WORDS, MODULES, Rule, SLOW_NODES, WORDS,
};
use std::sync::atomic::{AtomicPtr, Ordering};

/// The map in force.
pub struct Map {
    words: &'static [u64],
    /// The group of what no site decides; none if that is left to the kernel.
    pub undecided: Option<usize>,
    /// First words of modules, nodes, groups, statics, bytes.
    starts: [usize; 5],
}

static MAP: AtomicPtr<Map> = AtomicPtr::new(std::ptr::null_mut());

/// The map, once there is one.
#[inline]
pub fn map() -> Option<&'static Map> {
    // SAFETY: null, or a map that is never freed.
    unsafe { MAP.load(Ordering::Acquire).as_ref() }
}

/// A return address of the map.
pub struct Node {
    /// 0: innermost; else the node that it called, plus 1.
    pub parent: u32,
    pub module: usize,
    pub address: u64,
}

/// A static variable.
pub struct Static {
    pub module: usize,
    pub address: u64,
    pub bytes: u64,
    pub tier: u64,
}

impl Map {
    /// The map at these addresses; none if it is of another version or cut short.
    pub fn at(at: usize, bytes: usize) -> Option<Map> {
        // SAFETY: a file that was mapped for good, at a page's start, and that is never written.
        let words = unsafe { std::slice::from_raw_parts(at as *const u64, bytes / 8) };
        if words.len() < MODULES || words[0] != MAGIC {
            return None;
        }
        let mut starts = [MODULES; 5];
        for part in 0..4 {
            let count = words[COUNTS + part] as usize;
            starts[part + 1] = starts[part].saturating_add(count.saturating_mul(WORDS[part]));
        }
        let own = (words[COUNTS + 2] as usize).checked_sub(format::OWN_GROUPS)?;
        let undecided = (words[2] != format::ANYWHERE).then_some(own);
        (starts[4] <= words.len()).then_some(Map {
            words,
            undecided,
            starts,
        })
    }

    /// Puts the map in force.
    pub fn begin(self) {
        MAP.store(Box::into_raw(Box::new(self)), Ordering::Release);
    }

    #[inline]
    fn word(&self, part: usize, index: usize, word: usize) -> u64 {
        self.words[self.starts[part] + index * WORDS[part] + word]
    }

    pub fn budget(&self) -> u64 {
        self.words[1]
    }

    pub fn nodes_of(&self, tier: u64) -> &[u64] {
        let start = if tier == format::FAST {
            FAST_NODES
        } else {
            SLOW_NODES
        };
        &self.words[start..start + MASK_WORDS]
    }

    pub fn modules(&self) -> usize {
        self.words[COUNTS] as usize
    }

    pub fn nodes(&self) -> usize {
        self.words[COUNTS + 1] as usize
    }

    pub fn groups(&self) -> usize {
        self.words[COUNTS + 2] as usize
    }

    pub fn statics(&self) -> usize {
        self.words[COUNTS + 3] as usize
    }

    fn bytes(&self, part: usize, index: usize, word: usize) -> &[u8] {
        let (first, count) = (
            self.word(part, index, word),
            self.word(part, index, word + 1),
        );
        let all = &self.words[self.starts[4]..];
        // SAFETY: words are bytes too.
        let all = unsafe { std::slice::from_raw_parts(all.as_ptr().cast::<u8>(), all.len() * 8) };
        all.get(first as usize..(first + count) as usize)
            .unwrap_or_default()
    }

    pub fn module_name(&self, index: usize) -> &[u8] {
        self.bytes(0, index, 0)
    }

    /// Empty: not known.
    pub fn module_id(&self, index: usize) -> &[u8] {
        self.bytes(0, index, 2)
    }

    pub fn node(&self, index: usize) -> Node {
        Node {
            parent: self.word(1, index, 0) as u32,
            module: self.word(1, index, 1) as usize,
            address: self.word(1, index, 2),
        }
    }

    /// The group that this return address decides on, plus 1; 0 if callers have to be asked.
    pub fn decided(&self, node: usize) -> u32 {
        self.word(1, node, 3) as u32
    }

    /// The group of a site whose stack ends here, plus 1; 0 for none.
    pub fn ends(&self, node: usize) -> u32 {
        self.word(1, node, 4) as u32
    }

    pub fn rule(&self, node: usize) -> Option<Rule> {
        Rule::unpacked(self.word(1, node, 5))
    }

    pub fn tier(&self, group: usize) -> u64 {
        self.word(2, group, 0)
    }

    pub fn promised(&self, group: usize) -> u64 {
        self.word(2, group, 1)
    }

    pub fn variable(&self, index: usize) -> Static {
        Static {
            module: self.word(3, index, 0) as usize,
            address: self.word(3, index, 1),
            bytes: self.word(3, index, 2),
            tier: self.word(3, index, 3),
        }
    }
}
