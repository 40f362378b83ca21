//! A walk over everything that is reachable, which believes nothing. For tests and for hunting down what a compiler
//! got wrong.

use std::collections::{BTreeMap, HashSet};

use crate::header::Header;
use crate::heap::Heap;
use crate::layout::*;
use crate::mutator::Mutator;
use crate::observer::Observer;
use crate::plan::Places;
use crate::reference::Ref;
use crate::remembered::Remembered;
use crate::roots::Roots;
use crate::trace::slot_at;

/// The reachable objects of an intact heap, in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    /// Objects that are reachable.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Those of them in the nursery.
    pub young: u64,
}

/// A damage of the heap, and the path from a root to it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{object:?} is damaged: {what} (reached from {from})")]
pub struct Damage {
    /// The object.
    pub object: Ref,
    /// The rule that it breaks.
    pub what: String,
    /// The object that refers to it, or a root.
    pub from: String,
}

impl<P: Places, O: Observer> Heap<P, O> {
    /// Checks every reachable object: that it lies in a space, whole, with a header that fits the space; that
    /// objects do not overlap; that an object outside of the nursery that was stored into is remembered. Takes time
    /// and memory in proportion to the reachable objects.
    pub fn verify(&self, mutator: &Mutator, roots: &mut dyn Roots) -> Result<Verified, Damage> {
        let remembered: HashSet<u32> = mutator.remembered().map(Remembered::bits).collect();
        let observed_slots: HashSet<u32> = self.old_to_observed.iter().copied().collect();
        let mut seen: BTreeMap<Ref, u64> = BTreeMap::new();
        let mut pending = Vec::new();
        roots.visit(&mut |&mut r| pending.push((r, None)));
        let mut verified = Verified::default();
        while let Some((r, from)) = pending.pop() {
            if !r.is_object() || seen.contains_key(&r) || self.is_in_durable_range(r) {
                continue;
            }
            let damaged = |what: String| {
                let from = from.map_or("a root".into(), |from: Ref| self.describe(from));
                Damage {
                    object: r,
                    what,
                    from,
                }
            };
            self.check_place(mutator, r).map_err(&damaged)?;
            let header = self.header(r);
            if header.has(FORWARDED) && header.has(DURABLE) {
                continue; // Its durable copy counts, and is not the heap's.
            }
            let bytes = self
                .check_object(mutator, r, &remembered)
                .map_err(&damaged)?;
            seen.insert(r, bytes);
            verified.objects += 1;
            verified.bytes += bytes;
            let young = self.is_young(mutator, r);
            verified.young += u64::from(young);
            let at = self.config.align.offset(r);
            self.each_ref(r, |offset, child| {
                let logged = || {
                    let line = Remembered::Line(((at + offset) / LINE_SIZE) as u32);
                    remembered.contains(&r.0) || remembered.contains(&line.bits())
                };
                if !young && child.is_object() && self.is_young(mutator, child) && !logged() {
                    let what =
                        format!("it refers to {child:?} in the nursery but is not remembered");
                    return Err(damaged(what));
                }
                let sorted = || observed_slots.contains(&slot_at(at + offset));
                let old = !young && !self.is_observed(r);
                if old && child.is_object() && self.is_observed(child) && !logged() && !sorted() {
                    let what = format!(
                        "it refers to {child:?} in the observer space and is not remembered"
                    );
                    return Err(damaged(what));
                }
                pending.push((child, Some(r)));
                Ok(())
            })?;
        }
        let mut end = (Ref::NULL, 0);
        for (&r, &bytes) in &seen {
            let at = self.config.align.offset(r);
            if at < end.1 {
                let what = format!("it overlaps with {}", self.describe(end.0));
                return Err(Damage {
                    object: r,
                    what,
                    from: "the walk's list".into(),
                });
            }
            end = (r, at + bytes);
        }
        Ok(verified)
    }

    /// Calls `f` with every object of the nursery, reachable or not, its header and its bytes.
    pub(crate) fn each_young(&self, mutator: &Mutator, mut f: impl FnMut(Ref, Header, u64)) {
        let mut at = self.nursery.start();
        let end = at + self.nursery.used(mutator);
        while at < end {
            let r = self.config.align.reference(at);
            let bytes = self.object_size(r);
            f(r, self.header(r), bytes);
            at += bytes;
        }
    }

    fn is_young(&self, mutator: &Mutator, r: Ref) -> bool {
        let start = self.nursery.start();
        let used = start..start + self.nursery.used(mutator);
        used.contains(&self.config.align.offset(r))
    }

    fn is_observed(&self, r: Ref) -> bool {
        self.observed.contains(self.config.align.offset(r))
    }

    /// Whether there can be an object at all.
    fn check_place(&self, mutator: &Mutator, r: Ref) -> Result<(), String> {
        let (tables, at) = (&self.tables, self.config.align.offset(r));
        if !self.config.align.is_aligned(at) {
            return Err("it is not aligned".into());
        }
        let inside = (NULL_GUARD..tables.memory.extent()).contains(&at);
        if inside
            && (self.is_young(mutator, r)
                || self.observed.contains(at)
                || self.large.iter().any(|space| space.contains(at)))
        {
            return Ok(());
        }
        match inside && tables.blocks.is_mature(at) {
            true if tables.lines.in_use(at) => Ok(()),
            true => Err("it begins in a free line".into()),
            false => Err("it is in no space".into()),
        }
    }

    fn check_object(
        &self,
        mutator: &Mutator,
        r: Ref,
        remembered: &HashSet<u32>,
    ) -> Result<u64, String> {
        let header = self.header(r);
        let wrong = |what: &str| Err(format!("{what} ({header:?})"));
        if header.has(FORWARDED | FORWARDING) {
            return wrong("it moved");
        }
        if header.type_index() as usize >= self.shapes.len() {
            return wrong("its type does not exist");
        }
        let (at, bytes) = (self.config.align.offset(r), self.object_size(r));
        let end = at + bytes;
        if self.is_young(mutator, r) {
            if header.collector() != 0 {
                return wrong("it is in the nursery and has collector bits");
            }
            let fits = end <= self.nursery.start() + self.nursery.used(mutator);
            return if fits {
                Ok(bytes)
            } else {
                wrong("it reaches out of the nursery")
            };
        }
        let observed = self.observed.contains(at);
        if observed && header.has(LARGE) {
            return wrong("it is large and in the observer space");
        }
        if !observed && header.has(LARGE) == self.tables.blocks.is_mature(at) {
            return wrong("its header and its place disagree on whether it is large");
        }
        if !observed && !header.has(LARGE) && (end - 1) / BLOCK_SIZE != at / BLOCK_SIZE {
            return wrong("it reaches out of its block");
        }
        if !header.is_marked(self.mark) {
            return wrong("the last full collection did not reach it");
        }
        if header.has(UNLOGGED) == remembered.contains(&r.0) {
            return wrong("its header and the remembered set disagree on whether it is logged");
        }
        Ok(bytes)
    }

    fn describe(&self, r: Ref) -> String {
        let type_index = self.header(r).type_index();
        let name = self
            .shapes
            .get(type_index)
            .map_or("no type", |shape| &shape.name);
        format!("{r:?}, a {name}")
    }

    /// Calls `f` with every reference in an object, and its offset in it. Panics outside of the heap.
    pub fn each_ref<E>(
        &self,
        object: Ref,
        mut f: impl FnMut(u64, Ref) -> Result<(), E>,
    ) -> Result<(), E> {
        let info = self.shapes.info(self.header(object).type_index());
        let mut visit = |offset: u64| f(offset, self.read_ref(object, offset));
        if info.is_array() {
            let length = if info.has_refs {
                self.array_length(object)
            } else {
                0
            };
            let offset = |index| u64::from(ARRAY_NARROW_BASE) + 4 * u64::from(index);
            return (0..length).map(offset).try_for_each(visit);
        }
        let near = (0..u64::BITS).filter(|bit| info.bits >> bit & 1 == 1);
        let near = near.map(|bit| STRUCT_BASE + 4 * bit);
        let far = self.shapes.listed(info).iter().copied();
        near.chain(far).map(u64::from).try_for_each(&mut visit)
    }
}
