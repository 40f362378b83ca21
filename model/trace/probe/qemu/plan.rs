//! Which accesses of a block QEMU has to be asked for. Within a block, an address that is at a fixed distance from an
//! earlier one (the stack, the fields of one object) follows from it, and one that is relative to the instruction is
//! known already.

use crate::decode::{Access, Insn, Place, RSP};
use crate::ring::*;

/// A register's value: one that is not known, and a distance from it.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Value {
    version: u32,
    offset: i64,
}

/// The common part of two addresses at a fixed distance from each other.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Group {
    base: u32,
    index: u32,
    scale: u8,
    segment: u8,
}

const NO_VERSION: u32 = u32::MAX;

/// Goes through a block, one instruction after the other.
pub struct Plan {
    registers: [Value; 16],
    versions: u32,
    leaders: Vec<(Group, i64)>,
    /// Ask for every access, to check the others.
    ask_all: bool,
}

impl Plan {
    pub fn new(ask_all: bool) -> Plan {
        let mut plan = Plan {
            registers: [Value {
                version: 0,
                offset: 0,
            }; 16],
            versions: 0,
            leaders: Vec::new(),
            ask_all,
        };
        plan.forget(u16::MAX);
        plan
    }

    /// The registers in the mask have values that are not known.
    fn forget(&mut self, mask: u16) {
        for register in (0..16).filter(|register| mask >> register & 1 != 0) {
            self.registers[register] = Value {
                version: self.versions,
                offset: 0,
            };
            self.versions += 1;
        }
    }

    /// The accesses of the site of the next instruction, at `pc` and of `length` bytes.
    pub fn next(&mut self, insn: &Insn, pc: u64, length: usize) -> [SiteAccess; 2] {
        let mut sites = [SiteAccess::default(); 2];
        if insn.unknown || self.ask_all {
            // instructions that are known to access nothing are not asked
            if insn.unknown || insn.accesses[0].is_some() {
                sites[0].source = UNKNOWN;
                self.leaders.clear();
            }
        } else {
            for (site, access) in sites.iter_mut().zip(&insn.accesses) {
                if let Some(access) = access {
                    *site = self.access(access, pc, length);
                }
            }
        }
        self.apply(insn);
        sites
    }

    fn access(&mut self, access: &Access, pc: u64, length: usize) -> SiteAccess {
        let site = |source, leader, offset| SiteAccess {
            offset,
            source,
            leader,
            size: access.size,
            kind: access.kind,
        };
        if self.leaders.len() == RUN_ADDRESSES {
            self.leaders.clear();
        }
        let (group, offset) = self.group(&access.place);
        if !self.leaders.is_empty() {
            if access.place.relative && access.place.segment == 0 {
                let distance = i32::try_from(access.place.displacement + length as i64);
                if let (Ok(distance), true) = (distance, pc < 1 << 47) {
                    return site(ABSOLUTE, 0, distance);
                }
            } else if let Some(leader) = self.leaders.iter().position(|leader| leader.0 == group)
                && let Ok(distance) = i32::try_from(offset.wrapping_sub(self.leaders[leader].1))
                && !access.place.narrow
            {
                return site(DERIVED, leader as u8, distance);
            }
        }
        let source = if self.leaders.is_empty() { FIRST } else { NEXT };
        // an address of 32 bits wraps, so it leads no group: its own is one that no other access has
        let group = if access.place.narrow || access.place.relative {
            self.alone()
        } else {
            group
        };
        self.leaders.push((group, offset));
        site(source, (self.leaders.len() - 1) as u8, 0)
    }

    fn alone(&mut self) -> Group {
        self.versions += 1;
        Group {
            base: self.versions - 1,
            index: NO_VERSION,
            scale: 0,
            segment: 0,
        }
    }

    fn group(&self, place: &Place) -> (Group, i64) {
        let value = |register: u8| match register {
            NO_REGISTER => Value {
                version: NO_VERSION,
                offset: 0,
            },
            register => self.registers[usize::from(register & 15)],
        };
        let (base, index) = (value(place.base), value(place.index));
        let group = Group {
            base: base.version,
            index: index.version,
            scale: place.scale,
            segment: place.segment,
        };
        let offset = place
            .displacement
            .wrapping_add(base.offset)
            .wrapping_add(index.offset << place.scale);
        (group, offset)
    }

    /// The registers after the instruction.
    fn apply(&mut self, insn: &Insn) {
        let effect = &insn.effect;
        if effect.all {
            return self.forget(u16::MAX);
        }
        let assigned = effect.assigns.map(|(to, from, distance)| {
            let value = self.registers[usize::from(from)];
            (
                to,
                Value {
                    offset: value.offset.wrapping_add(distance),
                    ..value
                },
            )
        });
        let stack = &mut self.registers[usize::from(RSP)];
        stack.offset = stack.offset.wrapping_add(effect.stack);
        self.forget(effect.clobbers);
        if let Some((to, value)) = assigned {
            self.registers[usize::from(to)] = value;
        }
    }
}
