//! Accesses that the processor samples by itself.

use super::{Observer, Use};
use crate::sampled::hardware::{Event, Hardware, Hit};
use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::rc::Rc;

/// The samples of all processes: those that a process starts are in its parent's rings.
#[derive(Default)]
pub struct Accesses {
    rings: Vec<Hardware>,
    hits: HashMap<u32, Vec<Hit>>,
}

impl Accesses {
    /// Samples a process and what it will start.
    ///
    /// # Errors
    /// A line that says why not.
    pub fn add(&mut self, process: u32, events: &[Event]) -> Result<(), String> {
        self.rings.push(Hardware::begin(process, events)?);
        Ok(())
    }

    /// A process's samples since the last call for it.
    fn take(&mut self, process: u32) -> Vec<Hit> {
        for hit in self.rings.iter_mut().flat_map(Hardware::take) {
            self.hits.entry(hit.process).or_default().push(hit);
        }
        self.hits.remove(&process).unwrap_or_default()
    }

    /// Drops the samples of all other processes if there are too many.
    fn only(&mut self, process: u32) {
        const KEPT: usize = 1 << 20;
        let all: usize = self.hits.values().map(Vec::len).sum();
        if all > KEPT {
            self.hits.retain(|p, _| *p == process);
        }
    }
}

/// The samples of one process.
pub struct Sampled {
    process: u32,
    page_bytes: u64,
    all: Rc<RefCell<Accesses>>,
}

impl Sampled {
    pub fn new(process: u32, page_bytes: u64, all: Rc<RefCell<Accesses>>) -> Sampled {
        Sampled {
            process,
            page_bytes,
            all,
        }
    }
}

impl Observer for Sampled {
    fn look(&mut self, _: &[u64], uses: &mut Vec<Use>) -> io::Result<()> {
        let mut all = self.all.borrow_mut();
        let hits = all.take(self.process);
        all.only(self.process);
        let used = |hit: &Hit| Use {
            page: hit.address / self.page_bytes,
            writes: hit.writes,
        };
        let first = uses.len();
        uses.extend(hits.iter().map(used));
        uses[first..].sort_by_key(|used| used.page);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_reach_the_process_that_they_are_of() {
        let hit = |process, address| Hit {
            process,
            address,
            period: 1,
            writes: address == 8192,
        };
        let all: Rc<RefCell<Accesses>> = Rc::default();
        all.borrow_mut().hits = HashMap::from([
            (7, vec![hit(7, 12289), hit(7, 8192)]),
            (8, vec![hit(8, 4096)]),
        ]);
        let mut uses = Vec::new();
        let mut seven = Sampled::new(7, 4096, all.clone());
        seven.look(&[], &mut uses).unwrap();
        let seen: Vec<(u64, bool)> = uses.iter().map(|u| (u.page, u.writes)).collect();
        assert_eq!(seen, [(2, true), (3, false)]);
        uses.clear();
        seven.look(&[], &mut uses).unwrap();
        assert!(uses.is_empty(), "once");
        Sampled::new(8, 4096, all).look(&[], &mut uses).unwrap();
        assert_eq!(uses.len(), 1);
    }
}
