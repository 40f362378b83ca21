//! Copies the reachable objects of a region into a new one: without garbage, or for a program whose types changed.
//!
//! The new region is written beside the old one, in a file that is mapped, and takes its name once all of it is in the medium: a crash leaves
//! one of both.

use crate::domain::{Domain, Fence};
use crate::error::{Error, Result};
use crate::evolve::{Convert, Live, Plan};
use crate::image::Image;
use crate::inspect::Inspection;
use crate::layout::*;
use crate::space::Space;
use crate::types::Tables;
use crate::walk::header_of;
use std::io;
use varve_heap::layout::*;
use varve_heap::{Header, ObjectAlign, Ref};

/// The region is written as a whole, once it is done.
pub(crate) struct Later;

impl Domain for Later {
    fn name(&self) -> &'static str {
        "file"
    }

    fn write_back(&mut self, _: *const u8, _: u64) {}

    fn fence(&mut self, _: Fence) -> io::Result<()> {
        Ok(())
    }
}

/// The bytes of a region with the same objects, for a program with these tables.
///
/// # Errors
/// If objects do not fit the program's types: see [`Plan`].
pub fn rewritten(old: &Inspection, tables: &Tables) -> Result<Vec<u8>> {
    let capacity = 2 * old.image.len() + 2 * MOST_GROWTH;
    let image = Image::memory(&[], capacity);
    Ok(rewrite(old, tables, old.align, image)?.to_vec())
}

/// The same, written into an image without bytes, with objects at multiples of `align`; closed in order.
pub(crate) fn rewrite(
    old: &Inspection,
    tables: &Tables,
    align: ObjectAlign,
    image: Image,
) -> Result<Image> {
    rewrite_without(old, tables, align, image, &|_| false)
}

/// The same without some objects: references to them become null.
pub(crate) fn rewrite_without(
    old: &Inspection,
    tables: &Tables,
    align: ObjectAlign,
    image: Image,
    lost: &dyn Fn(u64) -> bool,
) -> Result<Image> {
    let changed = |what: String| Error::OtherProgram {
        path: old.path().into(),
        what,
    };
    let plan = Plan::new(&old.tables, &old.late, &live(old), tables, align).map_err(&changed)?;
    check_narrowed(old, &plan, tables).map_err(&changed)?;
    check_constants(old, &plan, tables).map_err(&changed)?;
    let of_type = |ty: u32| plan.of_type(ty).expect("all live types are planned");
    let mut new = Space::create(old.path(), image, Box::new(Later), tables.clone(), align)?;
    let (from, to) = (Addresses(old.align), Addresses(align));
    // Places first, then contents: references lead anywhere.
    let mut places = vec![0; old.walk.objects.len()];
    for (&at, place) in old.walk.objects.iter().zip(&mut places) {
        if lost(at) {
            continue;
        }
        let ty = Header(old.image.u64(at)).type_index();
        let planned = of_type(ty).to;
        let info = &new.infos[planned as usize];
        let bytes = match info.element {
            0 => u64::from(info.size),
            element => align.array_size(element, old.image.u32(at + ARRAY_LENGTH as u64)),
        };
        *place = new.allocate(bytes)?;
        let header = header_of(planned).to_le_bytes();
        new.image.write(*place, &header);
    }
    let moved = |r: Ref| -> Ref {
        match from.place(r) {
            _ if !r.is_object() => r,
            Place::File(at) => match old.walk.index(at).map(|i| places[i]) {
                None | Some(0) => Ref::NULL,
                Some(at) => to.reference(at),
            },
            Place::Constant(offset) => match plan.constants.get(&(offset as u32)) {
                Some(&offset) => to.constant(offset.into()),
                None => Ref::NULL,
            },
            Place::Outside => r,
        }
    };
    let convert = |convert: Convert, at: u64| -> u64 {
        let mut bits = [0; 8];
        old.image.read(at, &mut bits[..convert.reads() as usize]);
        match convert {
            Convert::Reference => moved(Ref(u64::from_le_bytes(bits) as u32)).0.into(),
            other => other.apply(u64::from_le_bytes(bits)),
        }
    };
    for (&at, &place) in old.walk.objects.iter().zip(&places) {
        if place == 0 {
            continue;
        }
        let ty = Header(old.image.u64(at)).type_index();
        let info = &old.infos[ty as usize];
        let planned = of_type(ty);
        if info.element == 0 {
            for step in &planned.steps {
                let bits = convert(step.convert, at + u64::from(step.from)).to_le_bytes();
                let bytes = &bits[..step.convert.bytes() as usize];
                new.image.write(place + u64::from(step.to), bytes);
            }
            continue;
        }
        let length = u64::from(old.image.u32(at + ARRAY_LENGTH as u64));
        new.image
            .write(place + ARRAY_LENGTH as u64, &(length as u32).to_le_bytes());
        let (first, element) = (u64::from(info.size), u64::from(info.element));
        let into = &new.infos[planned.to as usize];
        let (into_first, into_element) = (u64::from(into.size), u64::from(into.element));
        match planned.element {
            None | Some(Convert::Same(_)) => {
                let held = old.image.bytes(at + first, element * length);
                new.image.write(place + into_first, &held);
            }
            Some(how) => {
                for i in 0..length {
                    let bits = convert(how, at + first + element * i).to_le_bytes();
                    let slot = place + into_first + into_element * i;
                    new.image.write(slot, &bits[..how.bytes() as usize]);
                }
            }
        }
    }
    for late in &plan.late {
        new.add_late(late.clone())?;
    }
    for named in &old.named {
        if let Place::File(at) = to.place(moved(named.object))
            && (named.of.is_some()
                || new.infos[Header(new.image.u64(at)).type_index() as usize].named)
        {
            let of = named.of.as_ref().map(|of| plan.named[of].clone());
            new.new_named.push((at, of));
        }
    }
    new.add_named()?;
    for root in &old.roots {
        new.set_root(&root.name, moved(root.object))?;
    }
    if let Some(damage) = new.check().damages.first() {
        return Err(changed(damage.to_string()));
    }
    new.into_image()
}

/// The parts of a region that a plan must map: the types of its objects, and the constants that they and roots refer to.
fn live(old: &Inspection) -> Live {
    let from = Addresses(old.align);
    let mut live = Live {
        types: old.walk.by_type.iter().map(|c| c.0 > 0).collect(),
        named: old.named.iter().filter_map(|n| n.of.clone()).collect(),
        ..Live::default()
    };
    let mut note = |r: Ref| {
        if let Place::Constant(offset) = from.place(r)
            && r.is_object()
        {
            live.constants.insert(offset as u32);
        }
    };
    old.roots.iter().for_each(|root| note(root.object));
    for &at in &old.walk.objects {
        let info = &old.infos[Header(old.image.u64(at)).type_index() as usize];
        if info.element == 0 {
            info.refs
                .iter()
                .for_each(|&(offset, _)| note(Ref(old.image.u32(at + u64::from(offset)))));
        } else if !info.refs.is_empty() {
            let length = u64::from(old.image.u32(at + ARRAY_LENGTH as u64));
            let first = at + u64::from(info.size);
            (0..length).for_each(|i| note(Ref(old.image.u32(first + 4 * i))));
        }
    }
    live
}

/// Checks constants of enumerations whose class or name follows from more than their type.
fn check_constants(
    old: &Inspection,
    plan: &Plan,
    tables: &Tables,
) -> std::result::Result<(), String> {
    let from = Addresses(old.align);
    for named in old.named.iter().filter(|n| n.of.is_none()) {
        let Place::File(at) = from.place(named.object) else {
            continue;
        };
        let ty = Header(old.image.u64(at)).type_index();
        let (Some(planned), Some(name)) = (
            plan.of_type(ty),
            old.tables.types.get(ty as usize).and_then(|t| t.named_by),
        ) else {
            continue;
        };
        let Some(enumeration) = tables.enumeration_of(planned.to) else {
            continue;
        };
        let name = old.text(Ref(old.image.u32(at + u64::from(name))), 3);
        plan.check_constant(&old.tables, tables, enumeration, planned.to, &name)?;
    }
    Ok(())
}

/// Checks the targets of fields that have another class now.
fn check_narrowed(
    old: &Inspection,
    plan: &Plan,
    tables: &Tables,
) -> std::result::Result<(), String> {
    let from = Addresses(old.align);
    for &at in &old.walk.objects {
        let ty = Header(old.image.u64(at)).type_index();
        for field in plan
            .of_type(ty)
            .map_or(&[][..], |planned| &planned.narrowed)
        {
            let r = Ref(old.image.u32(at + u64::from(field.from)));
            if let Place::File(to) = from.place(r)
                && r.is_object()
            {
                let of = Header(old.image.u64(to)).type_index();
                plan.fits(&old.tables, tables, ty, field, of)?;
            }
        }
    }
    Ok(())
}
