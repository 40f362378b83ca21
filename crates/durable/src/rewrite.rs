//! Copies what is reachable in a region into a new one: without garbage, or for a program whose types changed.
//!
//! The new region is written beside the old one and takes its name once all of it is in the medium, so that a crash leaves one of both.

use crate::domain::{Domain, Fence};
use crate::error::{Error, Result};
use crate::evolve::{Convert, Live, Plan};
use crate::image::Image;
use crate::inspect::Inspection;
use crate::layout::*;
use crate::space::Space;
use crate::types::Tables;
use crate::walk::{Place, header_of, place, size_of_object};
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use varve_heap::layout::*;
use varve_heap::{Header, Ref};

/// The region is written as a whole, once it is done.
struct Later;

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
    let changed = |what: String| Error::OtherProgram {
        path: old.path().into(),
        what,
    };
    let plan = Plan::new(&old.tables, &old.late, &live(old), tables).map_err(&changed)?;
    check_narrowed(old, &plan, tables).map_err(&changed)?;
    let of_type = |ty: u32| plan.of_type(ty).expect("all live types are planned");
    let infos = tables.infos();
    let capacity = 2 * old.image.len() + MOST_GROWTH;
    let mut new = Space::create(
        old.path(),
        Image::memory(&[], capacity),
        Box::new(Later),
        tables.clone(),
    )?;
    // Places first, then contents: references lead anywhere.
    let mut places = HashMap::new();
    for &at in &old.walk.objects {
        let ty = Header(old.image.u64(at)).type_index();
        let to = of_type(ty).to;
        let info = &infos[to as usize];
        let bytes = match info.element {
            0 => u64::from(info.size),
            _ => size_of_object(&old.image, at, &old.infos[ty as usize]),
        };
        let place = new.allocate(bytes)?;
        new.image.write(place, &vec![0; bytes as usize]);
        new.image.set_u64(place, header_of(to));
        places.insert(at, place);
    }
    let moved = |r: Ref| -> Ref {
        match place(r) {
            _ if !r.is_object() => r,
            Place::File(at) => Space::reference(places[&at]),
            Place::Constant(offset) => {
                let to = plan.constants[&(offset as u32)];
                Ref(((CONSTANTS_START + u64::from(to)) >> REF_SHIFT) as u32)
            }
            Place::Outside => r,
        }
    };
    for &at in &old.walk.objects {
        let ty = Header(old.image.u64(at)).type_index();
        let to = places[&at];
        let info = &old.infos[ty as usize];
        if info.element == 0 {
            for step in &of_type(ty).steps {
                let (mut bits, bytes) = ([0; 8], step.convert.reads() as usize);
                old.image
                    .read(at + u64::from(step.from), &mut bits[..bytes]);
                let bits = match step.convert {
                    Convert::Reference => u64::from(moved(Ref(u64::from_le_bytes(bits) as u32)).0),
                    other => other.apply(u64::from_le_bytes(bits)),
                };
                let bytes = &bits.to_le_bytes()[..step.convert.bytes() as usize];
                new.image.write(to + u64::from(step.to), bytes);
            }
            continue;
        }
        let bytes = size_of_object(&old.image, at, info);
        let held = old.image.bytes(at + 8, bytes - 8);
        new.image.write(to + 8, &held);
        if !info.refs.is_empty() {
            let length = u64::from(old.image.u32(at + ARRAY_LENGTH as u64));
            for i in 0..length {
                let slot = u64::from(info.size) + 4 * i;
                let r = moved(Ref(old.image.u32(at + slot)));
                new.image.write(to + slot, &r.0.to_le_bytes());
            }
        }
    }
    for late in &plan.late {
        new.add_late(late.clone())?;
    }
    for root in &old.roots {
        new.set_root(&root.name, moved(root.object))?;
    }
    if let Some(damage) = new.check().damages.first() {
        return Err(changed(damage.to_string()));
    }
    new.into_bytes()
}

/// What of a region a plan must map: the types of its objects, and the constants that they and roots refer to.
fn live(old: &Inspection) -> Live {
    let mut live = Live {
        types: old.walk.by_type.iter().map(|c| c.0 > 0).collect(),
        ..Live::default()
    };
    let mut note = |r: Ref| {
        if let Place::Constant(offset) = place(r)
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

/// Looks at what fields refer to that have another class now.
fn check_narrowed(
    old: &Inspection,
    plan: &Plan,
    tables: &Tables,
) -> std::result::Result<(), String> {
    for &at in &old.walk.objects {
        let ty = Header(old.image.u64(at)).type_index();
        for field in plan
            .of_type(ty)
            .map_or(&[][..], |planned| &planned.narrowed)
        {
            let r = Ref(old.image.u32(at + u64::from(field.from)));
            if let Place::File(to) = place(r)
                && r.is_object()
            {
                let of = Header(old.image.u64(to)).type_index();
                plan.fits(&old.tables, tables, ty, field, of)?;
            }
        }
    }
    Ok(())
}

/// Puts new bytes in the place of a region file: beside it first, and under its name once they are in the medium.
///
/// # Errors
/// What the system says.
pub fn replace(path: &Path, bytes: &[u8]) -> Result<()> {
    let io = |source| Error::Io {
        path: path.display().to_string(),
        what: "the new region cannot be written beside it",
        source,
    };
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    let write = || -> io::Result<()> {
        let mut file = File::create(&beside)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        std::fs::rename(&beside, path)?;
        let parent = path.parent().filter(|p| !p.as_os_str().is_empty());
        File::open(parent.unwrap_or(Path::new(".")))?.sync_all()
    };
    write()
        .inspect_err(|_| drop(std::fs::remove_file(&beside)))
        .map_err(io)
}
