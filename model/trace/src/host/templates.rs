//! Templates from the probes' knowledge of code: runs of QEMU's blocks, single accesses, and accesses of libraries.

use super::ring::{
    ABSOLUTE as AT_INSTRUCTION, DERIVED, FIRST, NEXT, NO_REGISTER, Site, SiteAccess, UNKNOWN,
};
use crate::format::{ABSOLUTE, Template, TemplateOp, Templates};
use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use varve_access::{Kind, Op};

/// State of a thread after a run, as far as the next run depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct After {
    /// QEMU: the last instruction's block, its place there, and the block's length.
    pub block: u32,
    pub index: u32,
    pub count: u32,
    /// QEMU: registers that the last two loads wrote.
    pub loaded: [u8; 2],
    /// Compiled code: low half of the return address of the last access.
    pub caller: u32,
}

impl Default for After {
    fn default() -> After {
        After {
            block: u32::MAX,
            index: 0,
            count: 1,
            loaded: [NO_REGISTER; 2],
            caller: 0,
        }
    }
}

impl After {
    /// Instructions from the last one on to the one at `index` of `block`, that one included.
    pub fn until(&self, block: u32, index: u32) -> u32 {
        if block == self.block && index > self.index {
            index - self.index
        } else {
            // the last block ran to its end, and this one from its beginning
            (self.count - 1).saturating_sub(self.index) + index + 1
        }
    }

    /// An access by an instruction: does its address come from a load just before?
    fn load(&mut self, kind: Kind, base: u8, index: u8, loads: u8) -> u8 {
        if kind == Kind::Write || kind == Kind::NtWrite {
            return 0;
        }
        let from_load = |register: u8| register != NO_REGISTER && self.loaded.contains(&register);
        let dependent = from_load(base) || from_load(index);
        self.loaded = [loads, self.loaded[0]];
        u8::from(dependent)
    }
}

/// Input of a template. Equal keys have equal templates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    /// The probe's word.
    pub what: u64,
    /// Instructions up to the first op.
    pub lead: u32,
    pub loaded: [u8; 2],
    /// The process's bits of an address.
    pub space: u64,
}

/// Mixes the few words of a key; no attacker chooses them to collide.
#[derive(Clone, Copy, Default)]
pub(super) struct Mixer(u64);

impl std::hash::Hasher for Mixer {
    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 32
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn write_u32(&mut self, word: u32) {
        self.write_u64(u64::from(word));
    }

    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }
}

/// Where in a process code is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Place {
    pub process: u32,
    /// Of its first instruction that accesses memory. Of compiled code it is the low half of a return address; 0 if
    /// there is none: the code is of the function that ran before.
    pub address: u64,
}

/// All templates of a recording.
#[derive(Default)]
pub(super) struct Registry {
    pub templates: Templates,
    after: Vec<After>,
    /// Where the code is that a template is of.
    places: Vec<Place>,
    known: HashMap<Key, u32, BuildHasherDefault<Mixer>>,
    /// Templates that differ only in the run before share their slots, by the site or address that they begin with.
    slots: HashMap<u64, u32>,
    /// Equal templates, by their contents.
    same: HashMap<(u64, u32, u64, Vec<u8>, After), u32>,
}

impl Registry {
    pub fn get(&self, number: u32) -> &Template {
        // numbers come from this registry
        self.templates
            .get(number)
            .unwrap_or_else(|| unreachable!("a template that was never made"))
    }

    pub fn after(&self, number: u32) -> After {
        self.after.get(number as usize).copied().unwrap_or_default()
    }

    /// Where the code of a template is.
    pub fn place(&self, number: u32) -> Place {
        self.places
            .get(number as usize)
            .copied()
            .unwrap_or_default()
    }

    pub fn known(&self, key: &Key) -> Option<u32> {
        self.known.get(key).copied()
    }

    /// Makes the template of a key, or finds that another key has made it. `what` is common to all templates of this
    /// code, and `place` is where it is.
    pub fn add(
        &mut self,
        key: Key,
        what: u64,
        addresses: usize,
        ops: &[TemplateOp],
        after: After,
        place: Place,
    ) -> u32 {
        let dependent = ops.iter().map(|op| op.op.dependent).collect();
        let same = (key.what, key.lead, key.space, dependent, after);
        let number = match self.same.get(&same) {
            Some(&number) => number,
            None => {
                let next = self.templates.slots();
                let first = match addresses {
                    0 => next,
                    _ => *self.slots.entry(what).or_insert(next),
                };
                let Some(number) = self.templates.add(first, addresses, ops) else {
                    unreachable!("runs have few addresses and ops")
                };
                self.after.resize(number as usize + 1, After::default());
                self.after[number as usize] = after;
                self.places.resize(number as usize + 1, Place::default());
                self.places[number as usize] = place;
                self.same.insert(same, number);
                number
            }
        };
        self.known.insert(key, number);
        number
    }
}

fn kind_of(code: u8, site: &Site) -> Kind {
    match code {
        0 => Kind::Read,
        1 if site.non_temporal != 0 => Kind::NtWrite,
        1 => Kind::Write,
        _ => Kind::Update,
    }
}

/// The accesses of a run that begins at site `first`, in order, with their sites' numbers. At most `leaders` addresses:
/// accesses after the next one are left out.
pub(super) fn accesses(
    sites: &[Site],
    first: usize,
    leaders: usize,
) -> Vec<(usize, usize, SiteAccess)> {
    let mut found = Vec::new();
    let Some(start) = sites.get(first) else {
        return found;
    };
    let end = (start.block as usize + usize::from(start.count)).min(sites.len());
    let mut seen = 0;
    for (number, site) in sites.iter().enumerate().take(end).skip(first) {
        for (which, access) in site.accesses.iter().enumerate() {
            let opens = matches!(access.source, FIRST | NEXT);
            let ends = access.source == UNKNOWN
                || access.source == FIRST && seen > 0
                || opens && seen == leaders;
            if ends {
                return found;
            }
            seen += usize::from(opens);
            if opens || matches!(access.source, DERIVED | AT_INSTRUCTION) && seen > 0 {
                found.push((number, which, *access));
            }
        }
    }
    found
}

/// The template ops of a run, and how it leaves the thread. `more` instructions come before the first op.
pub(super) fn run_ops(
    sites: &[Site],
    found: &[(usize, usize, SiteAccess)],
    mut after: After,
    lead: u32,
    space: u64,
) -> (Vec<TemplateOp>, After) {
    let mut ops: Vec<TemplateOp> = Vec::with_capacity(found.len());
    for &(number, which, access) in found {
        let site = &sites[number];
        let index = (number as u32).saturating_sub(site.block);
        let instructions = match (ops.is_empty(), which) {
            (true, _) => lead,
            _ if index == after.index => 0,
            _ => index - after.index,
        };
        (after.block, after.index, after.count) =
            (site.block, index, u32::from(site.count).max(index + 1));
        let kind = kind_of(access.kind, site);
        let dependent = match which {
            0 => after.load(kind, site.base, site.index, site.loads),
            _ => 0,
        };
        let (from, addr) = match access.source {
            AT_INSTRUCTION => (
                ABSOLUTE,
                site.pc.wrapping_add_signed(i64::from(access.offset)) ^ space,
            ),
            DERIVED => (access.leader, i64::from(access.offset) as u64),
            _ => (access.leader, 0),
        };
        let op = Op {
            addr,
            instructions,
            size: u16::from(access.size),
            kind,
            dependent,
        };
        ops.push(TemplateOp { op, from });
    }
    (ops, after)
}

/// The same for an access that its site does not describe.
pub(super) fn single_op(
    site: &Site,
    number: u32,
    kind: Kind,
    size: u16,
    mut after: After,
    lead: u32,
) -> (TemplateOp, After) {
    let index = number.saturating_sub(site.block);
    (after.block, after.index, after.count) =
        (site.block, index, u32::from(site.count).max(index + 1));
    let dependent = after.load(kind, site.base, site.index, site.loads);
    let op = Op {
        addr: 0,
        instructions: lead,
        size,
        kind,
        dependent,
    };
    (TemplateOp { op, from: 0 }, after)
}
