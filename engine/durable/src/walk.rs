//! Follows references from the roots through a region, and believes nothing.

use crate::class_data::Late;
use crate::image::Image;
use crate::layout::*;
use crate::roots::Root;
use crate::types::{Heap, Info, Tables, Target};
use rustc_hash::FxHashMap;
use varve_heap::layout::*;
use varve_heap::{Header, ObjectAlign, Ref};

/// Something in a region that cannot be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Where it is: offset in the file.
    pub at: u64,
    /// Description of the damage.
    pub what: String,
    /// The object or root that leads there.
    pub from: String,
    /// The slot that leads there: offset in the file.
    pub slot: u64,
}

impl std::fmt::Display for Damage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.from.is_empty() {
            true => f.write_str(&self.what),
            false => write!(
                f,
                "object at {:#x}: {}; {} refers to it",
                self.at, self.what, self.from
            ),
        }
    }
}

impl Damage {
    /// Something that is wrong with the file and no object.
    pub(crate) fn of_file(what: String) -> Damage {
        Damage {
            at: 0,
            what,
            from: String::new(),
            slot: 0,
        }
    }
}

/// The reachable objects.
#[derive(Debug, Default)]
pub struct Walk {
    /// Offsets of all objects in the file, ascending.
    pub objects: Vec<u64>,
    /// Bytes of all objects.
    pub bytes: u64,
    /// Objects and bytes by type.
    pub by_type: Vec<(u64, u64)>,
    /// Everything that is wrong, as far as could be followed.
    pub damages: Vec<Damage>,
    /// One bit for each 8 bytes of the file: an object begins there.
    begins: Vec<u64>,
    /// How many objects begin before those of each word.
    before: Vec<u32>,
}

impl Walk {
    /// The number of the object at an offset in the file, if it was found.
    pub fn index(&self, at: u64) -> Option<usize> {
        let (word, bit) = ((at / 8 / 64) as usize, at / 8 % 64);
        let bits = *self.begins.get(word)?;
        let below = bits & ((1 << bit) - 1);
        (at.is_multiple_of(8) && bits >> bit & 1 == 1)
            .then(|| self.before[word] as usize + below.count_ones() as usize)
    }
}

/// The header of a durable object of a type.
pub(crate) const fn header_of(ty: u32) -> u64 {
    new_header(ty, 0, 0) | (DURABLE as u64) << COLLECTOR_SHIFT
}

pub(crate) struct Walker<'a> {
    image: &'a Image,
    tables: &'a Tables,
    infos: &'a [Info],
    addresses: Addresses,
    /// Types of constants by their offset.
    constants: FxHashMap<u64, u32>,
    first: u64,
    pending: Vec<u64>,
    /// Pages whose bytes are not to be believed, ascending.
    without: &'a [u64],
    walk: Walk,
}

impl<'a> Walker<'a> {
    pub fn new(
        image: &'a Image,
        tables: &'a Tables,
        infos: &'a [Info],
        late: &[Late],
        first: u64,
        align: ObjectAlign,
    ) -> Self {
        let constants = tables.constants.iter().map(|c| (u64::from(c.offset), c.ty));
        let late = late.iter().map(|l| (u64::from(l.offset), l.ty));
        Walker {
            constants: constants.chain(late).collect(),
            image,
            tables,
            infos,
            addresses: Addresses(align),
            first,
            pending: Vec::new(),
            without: &[],
            walk: Walk {
                begins: vec![0; (image.len() / 8).div_ceil(64) as usize],
                by_type: vec![(0, 0); infos.len()],
                ..Walk::default()
            },
        }
    }

    /// Does not follow references to what is in these pages, which are in order: they are damaged.
    pub fn without(mut self, pages: &'a [u64]) -> Self {
        self.without = pages;
        self
    }

    /// Whether bytes are in a page that is not to be believed.
    #[inline]
    fn is_in_damaged(&self, at: u64, bytes: u64) -> bool {
        if self.without.is_empty() {
            return false;
        }
        let first = self
            .without
            .partition_point(|&page| (page + 1) * PAGE <= at);
        self.without
            .get(first)
            .is_some_and(|&page| page * PAGE < at + bytes)
    }

    /// Follows roots, and references that the program holds.
    pub fn run(mut self, roots: &[Root], held: &[Ref]) -> Walk {
        let any = Target {
            nullable: true,
            to: Heap::Any,
        };
        for root in roots {
            self.follow(root.object, any, root.place, || {
                format!("root \"{}\"", root.name)
            });
            self.drain();
        }
        // Class data that the program made and nothing durable refers to are its own matter.
        let addresses = self.addresses;
        let durable = |r: &&Ref| matches!(addresses.place(**r), Place::File(_));
        for &r in held.iter().filter(durable) {
            self.follow(r, any, 0, || "the program".into());
        }
        self.drain();
        self.finish()
    }

    fn drain(&mut self) {
        while let Some(at) = self.pending.pop() {
            self.scan(at);
        }
    }

    fn scan(&mut self, at: u64) {
        let infos = self.infos;
        let ty = Header(self.image.u64(at)).type_index();
        let info = &infos[ty as usize];
        let from = |walker: &Self| format!("{} at {at:#x}", walker.tables.name(ty));
        if info.element == 0 {
            for &(offset, target) in &info.refs {
                let slot = at + u64::from(offset);
                self.follow(Ref(self.image.u32(slot)), target, slot, String::new);
                self.name_last(slot, from);
            }
        } else if let Some(&(_, target)) = info.refs.first() {
            let length = u64::from(self.image.u32(at + ARRAY_LENGTH as u64));
            for i in 0..length {
                let slot = at + u64::from(info.size) + 4 * i;
                self.follow(Ref(self.image.u32(slot)), target, slot, String::new);
                self.name_last(slot, from);
            }
        }
    }

    /// Says where a damage was found that has just been added for a slot.
    fn name_last(&mut self, slot: u64, from: impl Fn(&Self) -> String) {
        if self
            .walk
            .damages
            .last()
            .is_some_and(|d| d.slot == slot && d.from.is_empty())
        {
            let name = from(self);
            self.walk.damages.last_mut().expect("just looked at").from = name;
        }
    }

    fn follow(&mut self, r: Ref, target: Target, slot: u64, from: impl Fn() -> String) {
        if let Err((at, what)) = self.check(r, target)
            && self.walk.damages.len() < 1000
        {
            let from = from();
            self.walk.damages.push(Damage {
                at,
                what,
                from,
                slot,
            });
        }
    }

    /// Checks what a reference leads to, and has it followed if it is new.
    fn check(&mut self, r: Ref, target: Target) -> Result<(), (u64, String)> {
        if r.is_null() {
            return match target.nullable {
                true => Ok(()),
                false => Err((0, "null where there must be an object".into())),
            };
        }
        if r.is_i31() {
            return match target.to {
                Heap::Any | Heap::I31 => Ok(()),
                _ => Err((0, "an integer where there must be an object".into())),
            };
        }
        let wrong = |tables: &Tables, ty| format!("a {} does not fit where it is", tables.name(ty));
        let at = match self.addresses.place(r) {
            Place::File(at) => at,
            Place::Constant(offset) => {
                return match self.constants.get(&offset) {
                    Some(&ty) if self.tables.fits(ty, target.to) => Ok(()),
                    Some(&ty) => Err((offset, wrong(self.tables, ty))),
                    None => Err((offset, "there is no constant".into())),
                };
            }
            Place::Outside => return Err((r.0.into(), "it is outside of the region".into())),
        };
        let damaged = || "it is in a page whose checksum is wrong".to_string();
        if self.is_in_damaged(at, HEADER_SIZE.into()) {
            return Err((at, damaged()));
        }
        let found = object_at(self.image, self.infos, self.addresses.0, self.first, at);
        let (ty, bytes) = found.map_err(|what| (at, what))?;
        let refused = &self.infos[ty as usize].refused;
        if let Some(why) = refused {
            return Err((at, format!("it is a {}: {why}", self.tables.name(ty))));
        }
        if self.is_in_damaged(at, bytes) {
            return Err((at, damaged()));
        }
        if !self.tables.fits(ty, target.to) {
            return Err((at, wrong(self.tables, ty)));
        }
        let (word, bit) = ((at / 8 / 64) as usize, at / 8 % 64);
        let begins = &mut self.walk.begins[word];
        if *begins >> bit & 1 == 0 {
            *begins |= 1 << bit;
            self.pending.push(at);
            self.walk.bytes += bytes;
            let (objects, all) = &mut self.walk.by_type[ty as usize];
            *objects += 1;
            *all += bytes;
        }
        Ok(())
    }

    /// Lists the objects, and sees that none overlap.
    fn finish(mut self) -> Walk {
        let mut end = 0;
        for i in 0..self.walk.begins.len() {
            let mut bits = self.walk.begins[i];
            self.walk.before.push(self.walk.objects.len() as u32);
            while bits != 0 {
                let at = (i as u64 * 64 + u64::from(bits.trailing_zeros())) * 8;
                bits &= bits - 1;
                let ty = Header(self.image.u64(at)).type_index();
                if at < end {
                    self.walk.damages.push(Damage {
                        at,
                        what: "it begins inside of another object".into(),
                        from: "something".into(),
                        slot: 0,
                    });
                }
                end = end.max(at + size_of_object(self.image, at, &self.infos[ty as usize]));
                self.walk.objects.push(at);
            }
        }
        self.walk
    }
}

/// The type and bytes of the object that a reference says is at an offset; the error if there can be none.
pub(crate) fn object_at(
    image: &Image,
    infos: &[Info],
    align: ObjectAlign,
    first: u64,
    at: u64,
) -> Result<(u32, u64), String> {
    let len = image.len();
    if !align.is_aligned(at) || at < first || at + u64::from(ARRAY_NARROW_BASE) > len {
        return Err("no object can begin there".into());
    }
    let header = Header(image.u64(at));
    let ty = header.type_index();
    if header.0 != header_of(ty) {
        return Err(format!(
            "its header is none of a durable object: {:#018x}",
            header.0
        ));
    }
    let Some(info) = infos.get(ty as usize) else {
        return Err(format!("its type, {ty}, does not exist"));
    };
    let bytes = size_of_object(image, at, info);
    match at + bytes <= len {
        true => Ok((ty, bytes)),
        false => Err(format!("its {bytes} bytes reach beyond the file's end")),
    }
}

/// Bytes of the object at an offset, whose type this is.
pub(crate) fn size_of_object(image: &Image, at: u64, info: &Info) -> u64 {
    match info.element {
        0 => u64::from(info.size),
        element => info
            .align
            .array_size(element, image.u32(at + ARRAY_LENGTH as u64)),
    }
}
