//! The reserve: memory of ours whose frames are known. A frame is freed right before the kernel is to allocate it to a program;
//! another frame has replaced it in the reserve by then.

use crate::mapped::Mapped;
use crate::nodes::policy::{MisplacedPages, prefer};
use crate::place::huge;
use crate::place::pagemap::{Entry, Pagemap};
use crate::place::reserve::{Unit, populate};
use crate::place::sys;
use crate::tier::memory::of_place;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;

/// Memory of one node.
struct Block {
    node: u32,
    /// Holds its pages.
    _memory: Mapped,
    start: usize,
    /// Of each unit, whether it is to have a frame; and those that are not.
    active: Vec<bool>,
    idle: Vec<usize>,
}

/// A frame by the kernel's number, and where it is: block and unit.
type Place = (u64, (usize, usize));

/// Frames that are ours.
pub struct Held {
    unit: Unit,
    blocks: Vec<Block>,
    /// Where each of the kernel's frames is: block and unit.
    places: HashMap<u64, (usize, usize)>,
    /// Units whose frames were given up.
    empty: Vec<(usize, usize)>,
    /// Frames that were allocated ahead, in place of the same number of frames that are freed later.
    ahead: usize,
    map: Pagemap,
}

/// Units of a block that have no frame, and get one for the time in which others are given up.
const SPARE: usize = 32;
/// Steps in which a search for better frames takes what there is, at most.
const ROUNDS: usize = 16;

impl Held {
    /// None yet.
    ///
    /// # Errors
    /// This process's own page map cannot be read.
    pub fn new(unit: Unit) -> io::Result<Held> {
        Ok(Held {
            unit,
            blocks: Vec::new(),
            places: HashMap::new(),
            empty: Vec::new(),
            ahead: 0,
            map: Pagemap::own().map_err(of_place)?,
        })
    }

    /// Takes `bytes` more of a node.
    ///
    /// # Errors
    /// The system has no more memory, or frame numbers are hidden.
    pub fn take(&mut self, node: u32, bytes: u64) -> io::Result<()> {
        let size = self.unit.bytes();
        let units = bytes as usize / size;
        if units == 0 {
            return Ok(());
        }
        let all = (units + SPARE) * size + size;
        let memory = Mapped::unreserved(all)?;
        let start = memory.start().next_multiple_of(size);
        self.blocks.push(Block {
            node,
            _memory: memory,
            start,
            active: (0..units + SPARE).map(|at| at < units).collect(),
            idle: (units..units + SPARE).collect(),
        });
        prefer(
            start,
            (units + SPARE) * size,
            &[node],
            MisplacedPages::Ignore,
        )?;
        // SAFETY: mapped just now, private and anonymous, and ours alone.
        unsafe { populate(start, units * size, self.unit) }.map_err(of_place)?;
        self.read(self.blocks.len() - 1, 0, units)
    }

    /// Searches better frames of each node: allocates more, keeps the same number as before, and frees the others. `class` says of a frame
    /// what it is good for; frames of each class but 0 are kept in equal parts, and those of class 0 if there are no others. `room`
    /// says how much of a node may be taken for that.
    ///
    /// # Errors
    /// As [`Held::take`]. What was held before is held then.
    pub fn renew(
        &mut self,
        class: &dyn Fn(u64) -> u8,
        room: &dyn Fn(u32) -> u64,
    ) -> io::Result<()> {
        let mut nodes: Vec<u32> = self.blocks.iter().map(|block| block.node).collect();
        nodes.sort_unstable();
        nodes.dedup();
        for node in nodes {
            let of_node = self.blocks.iter().filter(|block| block.node == node);
            let wanted: usize = of_node
                .map(|b| b.active.iter().filter(|a| **a).count())
                .sum();
            let mut left = room(node);
            let step = ((wanted * self.unit.bytes()) as u64).max(left / ROUNDS as u64);
            for _ in 0..ROUNDS {
                let good = self
                    .of(node)
                    .into_iter()
                    .filter(|(frame, _)| class(*frame) > 0);
                if good.count() >= wanted || left < step || self.take(node, step).is_err() {
                    break;
                }
                left -= step;
            }
            self.keep(node, wanted, class);
        }
        self.blocks.retain(|block| block.active.contains(&true));
        self.fill()
    }

    /// Frames of a node, and where they are, in order.
    fn of(&self, node: u32) -> Vec<Place> {
        let all = self.places.iter().map(|(frame, place)| (*frame, *place));
        let mut all: Vec<_> = all
            .filter(|(_, (block, _))| self.blocks[*block].node == node)
            .collect();
        all.sort_unstable();
        all
    }

    /// Keeps `wanted` frames of a node, and frees the others.
    fn keep(&mut self, node: u32, wanted: usize, class: &dyn Fn(u64) -> u8) {
        let mut of_class: BTreeMap<u8, Vec<Place>> = BTreeMap::new();
        for one in self.of(node) {
            of_class.entry(class(one.0)).or_default().push(one);
        }
        let useless = of_class.remove(&0).unwrap_or_default();
        let mut kept: Vec<Place> = Vec::new();
        // One of each class in turn, and then those that are of no use yet.
        let most = of_class.values().map(Vec::len).max().unwrap_or(0);
        for at in 0..most {
            kept.extend(of_class.values().filter_map(|all| all.get(at)));
        }
        kept.extend(useless);
        for (frame, place) in kept.split_off(wanted.min(kept.len())) {
            self.give_up(frame);
            self.blocks[place.0].rest(place.1);
        }
        self.empty.clear();
    }

    /// Reads all frames anew, since the kernel may have moved some, and has it give frames where there are none.
    ///
    /// # Errors
    /// As [`Held::take`].
    pub fn fill(&mut self) -> io::Result<()> {
        self.places.clear();
        self.empty.clear();
        for number in 0..self.blocks.len() {
            self.read(number, 0, self.blocks[number].active.len())?;
        }
        let has: HashSet<(usize, usize)> = self.places.values().copied().collect();
        for (number, block) in self.blocks.iter().enumerate() {
            let active = (0..block.active.len()).filter(|at| block.active[*at]);
            let missing = active
                .map(|at| (number, at))
                .filter(|place| !has.contains(place));
            self.empty.extend(missing);
        }
        self.replace()
    }

    /// Allocates at most this many free frames of a node. The same number of frames that are freed after that are not replaced.
    ///
    /// # Errors
    /// As [`Held::take`].
    pub fn take_ahead(&mut self, node: u32, units: usize) -> io::Result<()> {
        let size = self.unit.bytes();
        for number in 0..self.blocks.len() {
            while self.ahead < units && self.blocks[number].node == node {
                let block = &mut self.blocks[number];
                let Some(index) = block.idle.pop() else {
                    break;
                };
                block.active[index] = true;
                let at = block.start + index * size;
                self.ahead += 1;
                // SAFETY: mapped by `take`, private and anonymous, and ours alone.
                unsafe { populate(at, size, self.unit) }.map_err(of_place)?;
                self.read(number, index, 1)?;
            }
        }
        Ok(())
    }

    /// Has the kernel give frames in the place of those that were given up, but for those that were taken ahead.
    ///
    /// # Errors
    /// As [`Held::take`].
    pub fn replace(&mut self) -> io::Result<()> {
        let size = self.unit.bytes();
        // Should fewer have been given up, there are more from now on.
        for _ in 0..std::mem::take(&mut self.ahead) {
            if let Some((number, index)) = self.empty.pop() {
                self.blocks[number].rest(index);
            }
        }
        for (number, index) in std::mem::take(&mut self.empty) {
            let at = self.blocks[number].start + index * size;
            // SAFETY: mapped by `take`, private and anonymous, and ours alone.
            unsafe { populate(at, size, self.unit) }.map_err(of_place)?;
            self.read(number, index, 1)?;
        }
        Ok(())
    }

    fn read(&mut self, number: usize, first: usize, units: usize) -> io::Result<()> {
        let size = self.unit.bytes();
        let start = self.blocks[number].start + first * size;
        let frames = match self.unit {
            Unit::Base => {
                let mut frames = Vec::with_capacity(units);
                let read = |_: usize, entry: Entry| frames.push(entry.frame());
                self.map.read(start, units, read).map_err(of_place)?;
                frames
            }
            Unit::Huge => huge::frames(&self.map, start, units).map_err(of_place)?,
        };
        for (index, frame) in frames.into_iter().enumerate() {
            if let (Some(frame), true) = (frame, self.blocks[number].active[first + index]) {
                self.places.insert(frame, (number, first + index));
            }
        }
        Ok(())
    }

    /// The frames.
    pub fn frames(&self) -> impl Iterator<Item = u64> + '_ {
        self.places.keys().copied()
    }

    /// Gives a frame back to the kernel: the next who asks for one on this processor gets it. Says whether it was ours.
    pub fn give_up(&mut self, frame: u64) -> bool {
        let Some((number, index)) = self.places.remove(&frame) else {
            return false;
        };
        let size = self.unit.bytes();
        self.empty.push((number, index));
        let at = self.blocks[number].start + index * size;
        // SAFETY: memory of ours that holds nothing.
        unsafe { sys::madvise(at, size, sys::MADV_DONTNEED) }.is_ok()
    }
}

impl Block {
    /// A unit is to have no frame any more.
    fn rest(&mut self, index: usize) {
        self.active[index] = false;
        self.idle.push(index);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_held_given_up_and_replaced() {
        if crate::place::pagemap::frames_readable().is_err() {
            return varve_skip::skip!("frame numbers are hidden from this user");
        }
        let mut held = Held::new(Unit::Base).unwrap();
        held.take(0, 1 << 20).unwrap();
        assert_eq!(held.frames().count(), 256);
        let one = held.frames().next().unwrap();
        assert!(held.give_up(one) && !held.give_up(one));
        assert_eq!(held.frames().count(), 255);
        held.replace().unwrap();
        assert_eq!(held.frames().count(), 256);
        held.fill().unwrap();
        assert_eq!(held.frames().count(), 256);
        // Two are taken ahead, in place of those that are given up then.
        held.take_ahead(0, 2).unwrap();
        assert_eq!(held.frames().count(), 258);
        let two: Vec<u64> = held.frames().take(2).collect();
        assert!(two.iter().all(|frame| held.give_up(*frame)));
        held.replace().unwrap();
        assert_eq!(held.frames().count(), 256);
        held.fill().unwrap();
        assert_eq!(held.frames().count(), 256);
        assert!(!held.give_up(u64::MAX));
        // Of frames with odd and even numbers only the odd ones are any good; there are enough of them somewhere.
        let odd = |frame: u64| (frame % 2) as u8;
        held.renew(&odd, &|_| 64 << 20).unwrap();
        let all: Vec<u64> = held.frames().collect();
        assert_eq!(all.len(), 256);
        assert!(
            all.iter().filter(|frame| **frame % 2 == 1).count() >= 250,
            "{all:?}"
        );
        // Both kinds in equal parts.
        held.renew(&|frame| 1 + (frame % 2) as u8, &|_| 64 << 20)
            .unwrap();
        assert_eq!(held.frames().count(), 256);
    }
}
